/* t5_forward.c - the passes of T5 as programs of phases that the crew runs: encoding sources into
 * the pages of their keys and values, and one step of the decoder.
 *
 * A phase is a product over all tokens, attention of some heads, or a small per-token step.  With
 * few tokens the small steps are the finish of the phase before. */
#include <string.h>

#include "model/t5_int.h"

#define ROWS_PER_UNIT 128u
/* If there are fewer key-times-head pairs than this, one member does the attention in a finish. */
#define SMALL_ATTENTION 1024u

enum product { /* which matrices a phase multiplies */
               PRODUCT_QKV,
               PRODUCT_ATTN_OUT,
               PRODUCT_CROSS_Q,
               PRODUCT_CROSS_OUT,
               PRODUCT_DOWN,
               PRODUCT_CROSS_KV,
               PRODUCT_OUTPUT,
               PRODUCT_NONE
};

enum step { /* per-token work */
            STEP_NONE,
            STEP_START,  /* embed, first norm */
            STEP_ROTATE, /* queries and keys by their position */
            STEP_ATTEND, /* quantize attention's result for the next product */
            STEP_SELF,   /* residual after self attention */
            STEP_CROSS,  /* residual after cross attention */
            STEP_FFN,    /* residual after the feed-forward */
            STEP_STORE   /* store keys and values of a source in their page */
};

/* A phase's arg encodes all its parameters. */
static uint32_t phase_arg(uint32_t layer, enum product product, enum step step)
{
    return layer | (uint32_t)product << 16 | (uint32_t)step << 24;
}

static uint32_t layer_of(uint32_t arg)
{
    return arg & 0xffff;
}

static enum product product_of(uint32_t arg)
{
    return (enum product)(arg >> 16 & 0xff);
}

static enum step step_of(uint32_t arg)
{
    return (enum step)(arg >> 24);
}

/* ---- scratch ------------------------------------------------------------------------------- */

void t5_lay_out(struct t5 *t, uint8_t *base, uint32_t n_members)
{
    const struct t5_config *c = &t->c;
    struct carve at = {.base = base};
    const uint32_t tokens = t->max_tokens > t->max_rows ? t->max_tokens : t->max_rows;
    const size_t b = tokens, f = sizeof(float), n_ctx = t->n_ctx, rot = t->shape.rope_dim;
    const bool biased = t->shape.places == T5_PLACES_DISTANCE;
    t->x = plan_carve_take(&at, b * c->dim * f);
    t->xn = plan_carve_take(&at, b * c->dim * f);
    t->qkv = plan_carve_take(&at, b * 3 * t->inner * f);
    t->att = plan_carve_take(&at, b * t->inner * f);
    t->proj = plan_carve_take(&at, b * c->dim * f);
    t->hidden = plan_carve_take(&at, b * c->ffn_dim * f);
    t->hidden_up =
        t->shape.gated[0] || t->shape.gated[1] ? plan_carve_take(&at, b * c->ffn_dim * f) : NULL;
    t->logits = plan_carve_take(&at, (size_t)t->max_rows * c->n_vocab * f);
    t->enc_bias = biased ? plan_carve_take(&at, c->n_heads * 2 * n_ctx * f) : NULL;
    t->dec_bias = biased ? plan_carve_take(&at, c->n_heads * n_ctx * f) : NULL;
    t->rope_cs = rot ? plan_carve_take(&at, n_ctx * 2 * rot * f) : NULL;
    t->sines = t->shape.places == T5_PLACES_SINES ? plan_carve_take(&at, n_ctx * c->dim * f) : NULL;
    if (c->hears)
        stem_lay_out(&t->stem, &at, &t->shape.stem,
                     t->shape.stem.n_bands ? MEL_SAMPLES
                                           : (uint32_t)stem_least(&t->shape.stem, t->max_tokens),
                     t->x);
    plan_carve_act(&at, &t->act_x, t->xn, tokens, c->dim);
    plan_carve_act(&at, &t->act_att, t->att, tokens, t->inner);
    plan_carve_act(&at, &t->act_hidden, t->hidden, tokens, c->ffn_dim);
    uint32_t most_rows = c->ffn_dim > 3 * t->inner ? c->ffn_dim : 3 * t->inner;
    most_rows = c->n_vocab > most_rows ? c->n_vocab : most_rows;
    t->stage_rows = products_stage_rows(n_members, most_rows);
    const size_t full = kern_attn_full_scratch(t->n_ctx, c->head_dim);
    const size_t paged = kern_attn_scratch(t->n_ctx);
    t->attn_scratch = plan_carve_take(&at, n_members * sizeof(float *));
    t->stage = plan_carve_take(&at, n_members * sizeof(float *));
    for (uint32_t i = 0; i < n_members; i++) {
        float *s = plan_carve_take(&at, (full > paged ? full : paged) * f);
        float *stage = plan_carve_take(&at, (size_t)2 * PRODUCTS_FEW * t->stage_rows * f);
        if (base) {
            t->attn_scratch[i] = s;
            t->stage[i] = stage;
        }
    }
    t->units =
        plan_carve_take(&at, (size_t)c->n_heads * (t->max_seqs + t->max_tokens / ROWS_PER_UNIT) *
                                 sizeof(*t->units));
    t->phases = plan_carve_take(&at, (c->n_enc * 9 + c->n_dec * 15 + 8 + STEM_MAX_PHASES) *
                                         sizeof(*t->phases));
    t->seq_of = plan_carve_take(&at, b * sizeof(uint32_t));
    t->seq_first = plan_carve_take(&at, (t->max_seqs + 1) * sizeof(uint32_t));
    t->scratch_bytes = at.bytes;
}

/* ---- steps per token ------------------------------------------------------------------------ */

static void norm_in(struct t5 *t, const struct t5_norm *norm, uint32_t token)
{
    size_t at = (size_t)token * t->c.dim;
    if (t->shape.layer_norm)
        t->k->layernorm(t->xn + at, t->x + at, norm->w, norm->b, t->c.dim, t->c.norm_eps);
    else
        t->k->rmsnorm(t->xn + at, t->x + at, norm->w, t->c.dim, t->c.norm_eps);
    if (norm == &t->dec_norm && t->c.output_scale != 1.0f)
        t->k->scale(t->xn + at, t->c.output_scale, t->c.dim);
    plan_linear_round_all(t->k, &t->act_x, t->in_x, token);
}

static void embed(struct t5 *t, uint32_t token)
{
    const uint32_t seq = t->seq_of[token];
    const int32_t id =
        t->rows ? t->rows[token].token : t->sources[seq].tokens[token - t->seq_first[seq]];
    /* a row in the file's encoding is never longer than as floats */
    float *x = t->x + (size_t)token * t->c.dim, *raw = t->xn + (size_t)token * t->c.dim;
    const size_t row = t->embd->n_bytes / t->c.n_vocab;
    model_file_read(t->embd, (size_t)id * row, raw, row);
    quant_to_f32(t->embd->type, raw, x, t->c.dim);
    if (t->shape.embd_scale != 0.0f)
        t->k->scale(x, t->shape.embd_scale, t->c.dim);
}

/* Adds the vector of a token's position. */
static void place(struct t5 *t, uint32_t token)
{
    if (!t->places[0])
        return;
    const uint32_t pos = t->rows ? t->rows[token].pos : token - t->seq_first[t->seq_of[token]];
    t->k->add(t->x + (size_t)token * t->c.dim, t->places[t->rows != NULL] + (size_t)pos * t->c.dim,
              t->c.dim);
}

static void rotate(struct t5 *t, float *qk, uint32_t n_heads, uint32_t pos)
{
    const uint32_t rot = t->shape.rope_dim;
    t->k->rope(qk, n_heads, t->c.head_dim, rot, t->rope_cs + (size_t)pos * 2 * rot, false);
}

/* A token at the start of the first layer. */
static void start(struct t5 *t, const struct t5_norm *first_norm, uint32_t token)
{
    const size_t at = (size_t)token * t->c.dim;
    if (t->rows || t->sources) /* a sound's frames are there already */
        embed(t, token);
    place(t, token);
    if (!t->shape.norm_behind) {
        norm_in(t, first_norm, token);
    } else if (t->shape.norm_embd) {
        norm_in(t, &t->embd_norm[t->rows != NULL], token);
        memcpy(t->x + at, t->xn + at, t->c.dim * sizeof(float));
    } else {
        memcpy(t->xn + at, t->x + at, t->c.dim * sizeof(float));
        plan_linear_round_all(t->k, &t->act_x, t->in_x, token);
    }
}

/* Adds a block's result; then the norm behind the block, or the one in front of the next. */
static void join(struct t5 *t, const struct t5_norm *own, const struct t5_norm *next,
                 uint32_t token)
{
    const size_t at = (size_t)token * t->c.dim;
    t->k->add(t->x + at, t->proj + at, t->c.dim);
    norm_in(t, t->shape.norm_behind ? own : next, token);
    if (t->shape.norm_behind)
        memcpy(t->x + at, t->xn + at, t->c.dim * sizeof(float));
}

static uint8_t *kv_at(const struct t5 *t, uint32_t page, uint32_t layer, uint32_t head)
{
    return t->kv + page * t->kv_page_bytes +
           ((size_t)(layer - t->c.n_enc) * t->c.n_heads + head) * t->kv_head_bytes;
}

static void store(struct t5 *t, uint32_t layer, uint32_t token)
{
    const uint32_t seq = t->seq_of[token], pos = token - t->seq_first[seq], hd = t->c.head_dim;
    const uint32_t *pages = t->sources ? t->sources[seq].pages : t->sound_pages;
    const uint32_t page = pages[pos / KERN_PAGE];
    const float *k = t->qkv + (size_t)token * 2 * t->inner, *v = k + t->inner;
    for (uint32_t h = 0; h < t->c.n_heads; h++)
        t->k->kv_store(kv_at(t, page, layer, h), t->kv_kind, hd, pos % KERN_PAGE, k + h * hd,
                       v + h * hd);
}

static void run_step(struct t5 *t, uint32_t arg, uint32_t token)
{
    const uint32_t layer = layer_of(arg), n_layers = t->c.n_enc + t->c.n_dec;
    const struct t5_layer *l = &t->layers[layer];
    switch (step_of(arg)) {
    case STEP_START:
        start(t, &l->attn_norm, token);
        break;
    case STEP_ROTATE: /* of a source: keys follow the queries */
        rotate(t, t->qkv + (size_t)token * 3 * t->inner, 2 * t->c.n_heads,
               token - t->seq_first[t->seq_of[token]]);
        break;
    case STEP_ATTEND:
        plan_linear_round_all(t->k, &t->act_att, t->in_att, token);
        break;
    case STEP_SELF:
        join(t, &l->attn_norm, l->cross_norm.w ? &l->cross_norm : &l->ffn_norm, token);
        break;
    case STEP_CROSS:
        join(t, &l->cross_norm, &l->ffn_norm, token);
        break;
    case STEP_FFN:
        join(t, &l->ffn_norm,
             layer + 1 == t->c.n_enc ? &t->enc_norm
             : layer + 1 == n_layers ? &t->dec_norm
                                     : &l[1].attn_norm,
             token);
        break;
    case STEP_STORE:
        store(t, layer, token);
        break;
    case STEP_NONE:
        break;
    }
}

/* First unit of chunk c if `units` are split into n chunks. */
static uint32_t part(uint32_t units, uint32_t c, uint32_t n)
{
    return (uint32_t)((uint64_t)units * c / n);
}

static void step_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct t5 *t = ctx;
    const uint32_t end = part(t->n_tokens, c + 1, p->n_chunks);
    (void)member;
    for (uint32_t i = part(t->n_tokens, c, p->n_chunks); i < end; i++)
        run_step(t, p->arg, i);
}

static void step_finish(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct t5 *t = ctx;
    (void)member;
    for (uint32_t i = 0; i < t->n_tokens; i++)
        run_step(t, p->arg, i);
}

/* ---- attention ------------------------------------------------------------------------------ */

static void attend_source(struct t5 *t, const struct t5_unit *u, uint32_t member)
{
    const uint32_t hd = t->c.head_dim;
    const size_t first = t->seq_first[u->seq], ld = 3 * (size_t)t->inner;
    const float *q = t->qkv + first * ld + (size_t)u->head * hd;
    const struct kern_attn_full job = {
        .q = q,
        .q_ld = ld,
        .k = q + t->inner,
        .v = q + (size_t)2 * t->inner,
        .kv_ld = ld,
        .out = t->att + first * t->inner + (size_t)u->head * hd,
        .out_ld = t->inner,
        .n_keys = t->seq_first[u->seq + 1] - t->seq_first[u->seq],
        .head_dim = hd,
        .scale = t->shape.attn_scale,
        .bias = t->enc_bias ? t->enc_bias + (2 * (size_t)u->head + 1) * t->n_ctx : NULL,
        .bias_ld = -1,
        .scratch = t->attn_scratch[member]};
    t->k->attend_full(&job, u->row0, u->row1);
}

static void source_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct t5 *t = ctx;
    const uint32_t end = part(t->n_units, c + 1, p->n_chunks);
    for (uint32_t i = part(t->n_units, c, p->n_chunks); i < end; i++)
        attend_source(t, &t->units[i], member);
}

/* Keeps where a head looked, if it is an aligned one.  The kernels leave the weights of the keys in
 * their scratch, with Q8 times the scales of the values. */
static void keep_looks(struct t5 *t, const struct t5_row *r, const struct kern_attn *job,
                       uint32_t layer, uint32_t head)
{
    uint32_t at = 0;
    while (at < t->n_aligned &&
           (t->aligned[at].layer != layer - t->c.n_enc || t->aligned[at].head != head))
        at++;
    if (at == t->n_aligned)
        return;
    float *to = r->looks + (size_t)at * r->n_source;
    memcpy(to, job->scratch, r->n_source * sizeof(*to));
    for (uint32_t i = 0; t->kv_kind == KERN_KV_Q8 && i < r->n_source; i++) {
        const uint8_t *page = job->kv + job->pages[i / KERN_PAGE] * job->page_stride;
        const float *scales =
            (const float *)(const void *)(page + (size_t)2 * KERN_PAGE * job->head_dim);
        const float scale = scales[KERN_PAGE + i % KERN_PAGE];
        to[i] = scale > 0 ? to[i] / scale : 0;
    }
}

/* One head of one row: attends to the row's own tokens, the newest of which it stores first, or to
 * its source. */
static void attend_row(struct t5 *t, uint32_t arg, uint32_t row, uint32_t head, uint32_t member)
{
    const uint32_t layer = layer_of(arg), hd = t->c.head_dim;
    const bool cross = product_of(arg) == PRODUCT_CROSS_Q;
    const struct t5_row *r = &t->rows[row];
    float *q = t->qkv + (size_t)row * (cross ? 1 : 3) * t->inner + (size_t)head * hd;
    if (!cross && t->shape.rope_dim) {
        rotate(t, q, 1, r->pos);
        rotate(t, q + t->inner, 1, r->pos);
    }
    if (!cross)
        t->k->kv_store(kv_at(t, r->pages[r->pos / KERN_PAGE], layer, head), t->kv_kind, hd,
                       r->pos % KERN_PAGE, q + t->inner, q + (size_t)2 * t->inner);
    const struct kern_attn job = {.q = q,
                                  .out = t->att + (size_t)row * t->inner + (size_t)head * hd,
                                  .n_tokens = 1,
                                  .n_heads = 1,
                                  .head_dim = hd,
                                  .scale = t->shape.attn_scale,
                                  .pos0 = cross ? r->n_source - 1 : r->pos,
                                  .bias = cross || !t->dec_bias
                                              ? NULL
                                              : t->dec_bias + (size_t)head * t->n_ctx +
                                                    (t->n_ctx - 1 - r->pos),
                                  .kind = t->kv_kind,
                                  .kv = kv_at(t, 0, layer, head),
                                  .page_stride = t->kv_page_bytes,
                                  .pages = cross ? r->source_pages : r->pages,
                                  .scratch = t->attn_scratch[member]};
    t->k->attend(&job, 0, 1);
    if (cross && r->looks)
        keep_looks(t, r, &job, layer, head);
}

/* A unit is a head of a row; of chained rows a head of all, in their order: each needs what those
 * before it store. */
static void attend_unit(struct t5 *t, uint32_t arg, uint32_t unit, uint32_t member)
{
    if (!t->chained)
        attend_row(t, arg, unit / t->c.n_heads, unit % t->c.n_heads, member);
    for (uint32_t row = 0; t->chained && row < t->n_tokens; row++)
        attend_row(t, arg, row, unit, member);
}

static uint32_t n_row_units(const struct t5 *t)
{
    return t->chained ? t->c.n_heads : t->n_tokens * t->c.n_heads;
}

static void row_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct t5 *t = ctx;
    const uint32_t units = n_row_units(t), end = part(units, c + 1, p->n_chunks);
    for (uint32_t i = part(units, c, p->n_chunks); i < end; i++)
        attend_unit(t, p->arg, i, member);
}

/* Few rows and few keys: done by the member that completed the products. */
static void row_finish(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct t5 *t = ctx;
    for (uint32_t i = 0; i < n_row_units(t); i++)
        attend_unit(t, p->arg, i, member);
    step_finish(ctx, p, member);
}

/* ---- products ------------------------------------------------------------------------------- */

static struct products_with with(const struct t5 *t)
{
    return (struct products_with){t->k, &t->weights, t->stage, t->stage_rows};
}

static struct products products_of(const struct t5 *t, uint32_t arg)
{
    const struct t5_layer *l = &t->layers[layer_of(arg)];
    switch (product_of(arg)) {
    case PRODUCT_QKV:
        return (struct products){l->qkv, 3, &t->act_x, t->qkv, 3 * (size_t)t->inner};
    case PRODUCT_ATTN_OUT:
        return (struct products){&l->attn_out, 1, &t->act_att, t->proj, t->c.dim};
    case PRODUCT_CROSS_Q:
        return (struct products){&l->cross_q, 1, &t->act_x, t->qkv, t->inner};
    case PRODUCT_CROSS_OUT:
        return (struct products){&l->cross_out, 1, &t->act_att, t->proj, t->c.dim};
    case PRODUCT_DOWN:
        return (struct products){&l->down, 1, &t->act_hidden, t->proj, t->c.dim};
    case PRODUCT_CROSS_KV:
        return (struct products){l->cross_kv, 2, &t->act_x, t->qkv, 2 * (size_t)t->inner};
    case PRODUCT_OUTPUT:
    case PRODUCT_NONE:
        break;
    }
    return (struct products){&t->output, 1, &t->act_x, t->logits, t->c.n_vocab};
}

static void product_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    const struct products_with w = with(ctx);
    const struct products b = products_of(ctx, p->arg);
    products_run(&w, &b, p, c, member);
}

static void product_commit(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    const struct products_with w = with(ctx);
    const struct products b = products_of(ctx, p->arg);
    products_commit(&w, &b, p, c, member);
}

static struct products_ffn ffn_of(const struct t5 *t, uint32_t arg)
{
    const struct t5_layer *l = &t->layers[layer_of(arg)];
    const enum products_act act = t->shape.act[layer_of(arg) >= t->c.n_enc];
    return (struct products_ffn){&l->gate,       &l->up,    act,          &t->act_x,
                                 &t->act_hidden, t->hidden, t->hidden_up, t->in_hidden};
}

static void ffn_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    const struct products_with w = with(ctx);
    const struct products_ffn f = ffn_of(ctx, p->arg);
    products_ffn_run(&w, &f, p, c, member);
}

static void ffn_commit(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    const struct products_with w = with(ctx);
    const struct products_ffn f = ffn_of(ctx, p->arg);
    products_ffn_commit(&w, &f, p, c, member);
}

/* ---- programs ------------------------------------------------------------------------------- */

struct program {
    struct t5 *t;
    struct crew_phase *next;
    bool few;
};

static void add(struct program *g, struct crew_phase p)
{
    p.n_items = g->t->n_tokens;
    if (!g->few || crew_lane_size(g->t->lane) == 1 || p.n_chunks > CREW_MAX_COMMITS)
        p.commit = NULL;
    *g->next++ = p;
}

/* Adds a step as a phase of its own, unless it can be the finish of the phase before. */
static void add_step(struct program *g, uint32_t arg)
{
    const uint32_t members = crew_lane_size(g->t->lane), most = members == 1 ? 1 : members * 8;
    const uint32_t n = (g->t->n_tokens + 3) / 4;
    if (g->few && g->next > g->t->phases && !g->next[-1].finish) {
        g->next[-1].arg = (g->next[-1].arg & 0xffffff) | (arg & 0xff000000);
        g->next[-1].finish = step_finish;
    } else {
        add(g,
            (struct crew_phase){.chunk = step_chunk, .arg = arg, .n_chunks = n < most ? n : most});
    }
}

static void add_product(struct program *g, uint32_t layer, enum product product, enum step step)
{
    const struct products_with w = with(g->t);
    const uint32_t arg = phase_arg(layer, product, STEP_NONE);
    const struct products b = products_of(g->t, arg);
    size_t bytes = 0;
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < b.n_linears; i++) {
        bytes += products_bytes(&w, &b.l[i]);
        tiles += products_tiles(&w, &b.l[i]);
    }
    struct crew_phase p = {.chunk = product_chunk, .commit = product_commit, .arg = arg};
    products_divide(&p, crew_lane_size(g->t->lane), g->t->n_tokens, bytes, tiles);
    add(g, p);
    if (step != STEP_NONE)
        add_step(g, phase_arg(layer, product, step));
}

static void add_ffn(struct program *g, uint32_t layer)
{
    const struct products_with w = with(g->t);
    const uint32_t arg = phase_arg(layer, PRODUCT_NONE, STEP_NONE);
    const struct products_ffn f = ffn_of(g->t, arg);
    const size_t bytes = products_bytes(&w, f.gate) + products_bytes(&w, f.up);
    struct crew_phase p = {.chunk = ffn_chunk, .commit = ffn_commit, .arg = arg};
    products_divide(&p, crew_lane_size(g->t->lane), g->t->n_tokens, bytes, products_ffn_units(&f));
    add(g, p);
    add_product(g, layer, PRODUCT_DOWN, STEP_FFN);
}

/* Adds attention after the products of its queries; if small, as their finish. */
static void add_attention(struct program *g, uint32_t layer, enum product product, uint32_t units,
                          bool small)
{
    const uint32_t members = crew_lane_size(g->t->lane), most = members == 1 ? 1 : members * 8;
    const uint32_t arg = phase_arg(layer, product, STEP_ATTEND);
    if (small) {
        g->next[-1].arg = arg;
        g->next[-1].finish = row_finish;
        return;
    }
    add(g, (struct crew_phase){.chunk = g->t->rows ? row_chunk : source_chunk,
                               .arg = phase_arg(layer, product, STEP_NONE),
                               .n_chunks = units < most ? units : most});
    if (g->t->in_att != LINEAR_INPUT_FLOATS)
        add_step(g, arg);
}

static void run(struct program *g)
{
    crew_run(g->t->lane, g->t, g->t->phases, (uint32_t)(g->next - g->t->phases), NULL);
}

/* A source of n tokens or frames joins the pass. */
static void add_source(struct t5 *t, uint32_t seq, uint32_t n)
{
    t->seq_first[seq] = t->n_tokens;
    for (uint32_t i = 0; i < n; i++)
        t->seq_of[t->n_tokens++] = seq;
    t->seq_first[seq + 1] = t->n_tokens;
    for (uint32_t h = 0; h < t->c.n_heads; h++)
        for (uint32_t r = 0; r < n; r += ROWS_PER_UNIT)
            t->units[t->n_units++] =
                (struct t5_unit){seq, h, r, r + ROWS_PER_UNIT < n ? r + ROWS_PER_UNIT : n};
}

static void encode(struct program *g)
{
    struct t5 *t = g->t;
    add_step(g, phase_arg(0, PRODUCT_NONE, STEP_START));
    for (uint32_t i = 0; i < t->c.n_enc; i++) {
        add_product(g, i, PRODUCT_QKV, t->shape.rope_dim ? STEP_ROTATE : STEP_NONE);
        add_attention(g, i, PRODUCT_QKV, t->n_units, false);
        add_product(g, i, PRODUCT_ATTN_OUT, STEP_SELF);
        add_ffn(g, i);
    }
    for (uint32_t i = t->c.n_enc; i < t->c.n_enc + t->c.n_dec; i++)
        add_product(g, i, PRODUCT_CROSS_KV, STEP_STORE);
    run(g);
}

void t5_encode(struct t5 *t, const struct t5_source *sources, uint32_t n)
{
    t->sources = sources;
    t->rows = NULL;
    t->n_tokens = t->n_units = 0;
    for (uint32_t s = 0; s < n; s++)
        add_source(t, s, sources[s].n);
    if (t->n_tokens == 0)
        return;
    struct program g = {t, t->phases, t->n_tokens <= PRODUCTS_FEW};
    encode(&g);
}

uint32_t t5_hear(struct t5 *t, const float *samples, uint32_t n, const uint32_t *pages)
{
    t->sources = NULL;
    t->rows = NULL;
    t->sound_pages = pages;
    t->n_tokens = t->n_units = 0;
    add_source(t, 0, stem_frames(&t->shape.stem, n));
    struct program g = {t, t->phases, t->n_tokens <= PRODUCTS_FEW};
    g.next += stem_phases(&t->stem, t->phases, samples, n, crew_lane_size(t->lane));
    encode(&g);
    return t->n_tokens;
}

const float *t5_encoded(const struct t5 *t, uint32_t source, uint32_t token)
{
    return t->xn + (size_t)(t->seq_first[source] + token) * t->c.dim;
}

void t5_decode(struct t5 *t, const struct t5_row *rows, uint32_t n)
{
    uint64_t own = 0, source = 0;
    t->rows = rows;
    t->n_tokens = n;
    t->chained = false;
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        t->chained |= i > 0 && rows[i].pages == rows[i - 1].pages;
        t->seq_of[i] = i;
        own += rows[i].pos + 1;
        source += rows[i].n_source;
    }
    const bool few = n <= PRODUCTS_FEW, alone = crew_lane_size(t->lane) == 1;
    const bool small_own = few && (alone || own * t->c.n_heads < SMALL_ATTENTION);
    const bool small_source = few && (alone || source * t->c.n_heads < SMALL_ATTENTION);
    struct program g = {t, t->phases, few};
    add_step(&g, phase_arg(t->c.n_enc, PRODUCT_NONE, STEP_START));
    for (uint32_t i = t->c.n_enc; i < t->c.n_enc + t->c.n_dec; i++) {
        add_product(&g, i, PRODUCT_QKV, STEP_NONE);
        add_attention(&g, i, PRODUCT_QKV, n_row_units(t), small_own);
        add_product(&g, i, PRODUCT_ATTN_OUT, STEP_SELF);
        add_product(&g, i, PRODUCT_CROSS_Q, STEP_NONE);
        add_attention(&g, i, PRODUCT_CROSS_Q, n_row_units(t), small_source);
        add_product(&g, i, PRODUCT_CROSS_OUT, STEP_CROSS);
        add_ffn(&g, i);
    }
    if (!rows[0].looks)
        add_product(&g, 0, PRODUCT_OUTPUT, STEP_NONE);
    run(&g);
}

uint32_t t5_n_aligned(const struct t5 *t)
{
    return t->n_aligned;
}

const float *t5_logits(const struct t5 *t, uint32_t i)
{
    return t->logits + (size_t)i * t->c.n_vocab;
}
