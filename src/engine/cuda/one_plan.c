/* one_plan.c - see one_plan.h. */
#include "engine/cuda/one_plan.h"

#include "base/mem.h"

enum {
    MOST_STAGES = 8,
    MOST_ROWS = 32,       /* of a chunk: one for each lane */
    MOST_KEYS = 8192,     /* whose scores are in shared memory */
    MOST_TILES = 32,      /* of keys or values */
    SEGMENT = 64,         /* ONE_SEGMENT of one.cu */
    LEAST_STAGE = 1 << 10 /* bytes: fewer are not worth a copy */
};

_Static_assert(sizeof(struct one_layer) % 16 == 0, "the kernel copies whole pieces of 16 bytes");

static bool known_fmt(const struct step_mat *m)
{
    return m->data && m->fmt >= STEP_Q8;
}

static bool known_layer(const struct step_layer *l)
{
    bool biases = true; /* all matrices of attention have one, or none */
    for (uint32_t i = 0; i < l->n_qkv; i++)
        biases = biases && !l->qkv[i].bias == !l->qkv[0].bias;
    return l->attn_norm_w && l->ffn_norm_w && !l->attn_norm_b && !l->ffn_norm_b &&
           !l->post_attn_norm && !l->post_ffn_norm && !l->local_rope && l->qkv_alike &&
           l->ffn_alike && biases && !l->gate.bias && !l->up.bias && known_fmt(&l->qkv[0]) &&
           known_fmt(&l->out) && known_fmt(&l->gate) && known_fmt(&l->up) && known_fmt(&l->down);
}

bool one_plan_knows(const struct step_model *m, const struct step_layer *layers)
{
    if (m->layer_norm || m->parallel || !m->gated || m->head_dim % 8 != 0 || !m->final_norm_w ||
        m->final_norm_b || m->n_heads % m->n_kv_heads != 0 || !known_fmt(&m->output) ||
        (m->n_heads * m->head_dim) % 32 != 0)
        return false;
    for (uint32_t i = 0; i < m->n_layers; i++)
        if (!known_layer(&layers[i]))
            return false;
    return true;
}

/* What the kernel of one token needs besides. */
static bool suits(const struct step_model *m, const struct step_layer *layers,
                  const struct step_place *at)
{
    const uint32_t blocks = at->one_blocks, heads = m->n_heads + 2 * m->n_kv_heads;
    for (uint32_t i = 0; i < m->n_layers; i++)
        if (layers[i].window)
            return false;
    return blocks && !m->kv_q8 && m->head_dim <= at->one_threads && m->n_vocab >= blocks &&
           m->dim >= blocks && m->ffn_dim >= blocks && heads * m->head_dim >= blocks;
}

/* Matrices that lie one after the other, or rows of two in turns. */
static struct one_mat mat_of(const struct step_mat *mats, uint32_t n, bool turns, uint32_t warps)
{
    const struct step_mat *m = mats;
    uint32_t rows = 0, from[2] = {UINT32_MAX, UINT32_MAX};
    float mul[3] = {1.0f, 1.0f, 1.0f};
    for (uint32_t i = 0; i < n; i++) {
        mul[i] = mats[i].mul;
        if (i > 0)
            from[i - 1] = rows;
        rows += mats[i].n_rows;
    }
    const uint32_t unit = turns ? 2 : 1, units = rows / unit;
    struct one_mat out = {.data = m->data,
                          .bias = m->bias,
                          .fmt = m->fmt,
                          .n_blocks = m->n_cols / 32,
                          .row_bytes = m->row_bytes / unit,
                          .mins = m->mins,
                          .quants = m->quants,
                          .each = units / warps,
                          .more = units % warps,
                          .unit = unit,
                          .from = {from[0], from[1]},
                          .mul = {mul[0], mul[1], mul[2]}};
    const bool two = m->fmt == STEP_Q4M || m->fmt == STEP_Q5M || m->fmt == STEP_Q6;
    out.each_terms = two ? 2 : 1;
    out.terms = out.n_blocks * out.each_terms;
    out.segs = 1;
    out.plain = !m->bias && mul[0] == 1.0f && mul[1] == 1.0f && mul[2] == 1.0f;
    out.seg_mins = m->mins;
    out.seg_quants = m->quants;
    out.scale_bytes = m->fmt == STEP_Q6 ? 4 : 2;
    out.quant_bytes = m->fmt == STEP_Q8 ? 32 : m->fmt == STEP_Q6 ? 24 : m->fmt >= STEP_Q5 ? 20 : 16;
    out.magic = (uint32_t)((((uint64_t)1 << 32) + out.n_blocks - 1) / out.n_blocks);
    return out;
}

struct one_layer *one_plan_layers(const struct step_model *m, const struct step_layer *layers,
                                  uint32_t warps)
{
    struct one_layer *to = mem_zalloc_n(m->n_layers + 1, sizeof(*to));
    if (!to)
        return NULL;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const struct step_layer *l = &layers[i];
        const struct step_mat both[2] = {l->gate, l->up};
        to[i] = (struct one_layer){.mats = {[ONE_QKV] = mat_of(l->qkv, l->n_qkv, false, warps),
                                            [ONE_OUT] = mat_of(&l->out, 1, false, warps),
                                            [ONE_FFN] = mat_of(both, 2, true, warps),
                                            [ONE_DOWN] = mat_of(&l->down, 1, false, warps)},
                                   .attn_norm = l->attn_norm_w,
                                   .ffn_norm = l->ffn_norm_w,
                                   .q_norm = l->q_norm,
                                   .k_norm = l->k_norm};
    }
    to[m->n_layers] = (struct one_layer){.mats = {mat_of(&m->output, 1, false, warps)}};
    return to;
}

/* Rows of more than SEGMENT blocks are copied in parts, if they do not come in pairs. */
static void segments(struct one_layer *layers, uint32_t n_layers)
{
    for (uint32_t i = 0; i <= n_layers; i++)
        for (uint32_t p = 0; p < (i < n_layers ? ONE_PHASES : 1); p++) {
            struct one_mat *w = &layers[i].mats[p];
            if (w->n_blocks <= SEGMENT || w->unit > 1)
                continue;
            const uint32_t scales = SEGMENT * w->scale_bytes;
            w->segs = (w->n_blocks + SEGMENT - 1) / SEGMENT;
            w->seg_mins = scales;
            w->seg_quants = scales * (w->mins ? 2 : 1);
        }
}

/* Bytes of a stage for a unit of a matrix. */
static uint32_t unit_bytes(const struct one_mat *w)
{
    return w->segs > 1 ? w->seg_quants + SEGMENT * w->quant_bytes : w->row_bytes * w->unit;
}

/* Rows that are computed together: as many as a stage holds. */
static void chunks(struct one_model *o, struct one_layer *layers, uint32_t n_layers)
{
    for (uint32_t i = 0; i <= n_layers; i++)
        for (uint32_t p = 0; p < (i < n_layers ? ONE_PHASES : 1); p++) {
            struct one_mat *w = &layers[i].mats[p];
            uint32_t rows = w->segs > 1 ? 1 : o->stage_bytes / w->row_bytes;
            rows = rows < MOST_ROWS ? rows : MOST_ROWS;
            w->chunk = rows / w->unit * w->unit;
            const uint32_t blocks = w->segs > 1 ? SEGMENT : w->n_blocks;
            const uint32_t bytes = w->chunk * ((blocks * w->each_terms) | 1) * 8;
            o->term_bytes = bytes > o->term_bytes ? bytes : o->term_bytes;
        }
}

static uint32_t take(uint32_t *at, size_t bytes)
{
    const uint32_t from = *at;
    *at += (uint32_t)((bytes + 127) / 128 * 128);
    return from;
}

/* Divides the shared memory; false: too little for two stages. */
static bool divide(struct one_model *o, const struct step_model *m, const struct step_place *at)
{
    struct one_shared *s = &o->shared;
    const uint32_t warps = at->one_threads / 32, ld = m->shared.ld;
    const uint32_t tile_bytes = 32 * m->head_dim;
    uint32_t to = 0;
    o->n_tiles = MOST_TILES;
    o->most_keys = m->score_ld < MOST_KEYS ? m->score_ld : MOST_KEYS;
    s->layers = take(&to, (m->n_layers + 1) * sizeof(struct one_layer));
    s->x = take(&to, m->dim * 4);
    s->norm = take(&to, m->dim * 4);
    s->xq = take(&to, (size_t)2 * ld);
    s->scale = take(&to, (size_t)2 * ld / 32 * 4);
    s->sums = take(&to, o->sums ? (size_t)2 * ld / 16 * 4 : 0);
    s->rope = take(&to, (size_t)2 * m->rope_dim * 4);
    s->head = take(&to, (size_t)4 * m->head_dim * 4 + 16);
    s->score = take(&to, (o->most_keys + 16) * 4);
    s->weight = take(&to, (o->most_keys + 16) * 4);
    s->terms = take(&to, (size_t)warps * o->term_bytes);
    s->ready = take(&to, (size_t)warps * MOST_STAGES * 8);
    while (o->n_tiles > 4 &&
           to + o->n_tiles * tile_bytes + 2 * warps * o->stage_bytes > at->shared_bytes)
        o->n_tiles /= 2;
    s->tiles = take(&to, (size_t)o->n_tiles * tile_bytes);
    s->ring = to;
    if (to + 2 * warps * o->stage_bytes > at->shared_bytes)
        return false;
    o->stages = (uint32_t)((at->shared_bytes - to) / (warps * o->stage_bytes));
    o->stages = o->stages < MOST_STAGES ? o->stages : MOST_STAGES;
    s->bytes = to + o->stages * warps * o->stage_bytes;
    return true;
}

static void buffers_of(struct one_model *o, const struct step_model *m)
{
    const uint32_t heads = m->n_heads * m->head_dim;
    const uint32_t n[ONE_BUFFERS] = {[ONE_TO_ATTENTION] = heads + 2 * m->n_kv_heads * m->head_dim,
                                     [ONE_TO_OUT] = heads,
                                     [ONE_TO_FFN] = m->dim,
                                     [ONE_TO_DOWN] = m->ffn_dim,
                                     [ONE_TO_QKV] = m->dim};
    for (int i = 0; i < ONE_BUFFERS; i++) {
        o->at[i] = o->n_words;
        o->n_words += (n[i] + 15) / 16 * 16;
    }
}

/* A stage holds a unit of every matrix. */
static void stage_of(struct one_model *o, const struct one_layer *layers, uint32_t n_layers)
{
    o->stage_bytes = LEAST_STAGE;
    o->q8 = 1;
    for (uint32_t i = 0; i <= n_layers; i++)
        for (uint32_t p = 0; p < (i < n_layers ? ONE_PHASES : 1); p++) {
            const struct one_mat *w = &layers[i].mats[p];
            const uint32_t bytes = (unit_bytes(w) + 127) / 128 * 128;
            o->q8 &= w->fmt == STEP_Q8;
            o->stage_bytes = bytes > o->stage_bytes ? bytes : o->stage_bytes;
        }
    o->sums = !o->q8;
}

int one_plan(struct one_model *out, const struct step_model *m, const struct step_layer *layers,
             const struct step_place *at, struct err *e)
{
    *out = (struct one_model){.layers = NULL};
    if (!suits(m, layers, at) || !one_plan_knows(m, layers))
        return 0;
    struct one_layer *all = one_plan_layers(m, layers, at->one_blocks * (at->one_threads / 32));
    if (!all)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the plan of %u layers", m->n_layers);
    struct one_model o = {.blocks = at->one_blocks};
    void *layers_at = NULL, *words_at = NULL;
    buffers_of(&o, m);
    segments(all, m->n_layers);
    stage_of(&o, all, m->n_layers);
    chunks(&o, all, m->n_layers);
    int rc = 0;
    if (divide(&o, m, at)) {
        rc = at->place(at->ctx, &layers_at, all, (m->n_layers + 1) * sizeof(*all), e);
        if (rc == 0) { /* no word may have a tag that a step will use */
            uint64_t *zeros = mem_zalloc_n((size_t)ONE_MOST_COPIES * o.n_words, sizeof(*zeros));
            rc = zeros ? at->place(at->ctx, &words_at, zeros,
                                   (size_t)ONE_MOST_COPIES * o.n_words * sizeof(*zeros), e)
                       : err_set(e, SHOAL_ENOMEM, "out of memory for the exchange of a GPU");
            mem_free(zeros);
        }
        o.layers = layers_at;
        o.words = words_at;
    }
    mem_free(all);
    if (rc == 0)
        *out = o;
    return rc;
}
