/* encoder_forward.c - one pass over a batch of sequences.
 *
 * Sequences are independent, so each member of the crew takes whole groups of them through all
 * layers without synchronizing.  If there are too few sequences for that, the members share the
 * products of each layer instead: qkv | attend | attn_out | join | up | down | join. */
#include <math.h>
#include <string.h>

#include "kernels/tiles.h"
#include "model/encoder_int.h"

/* A group's activations should stay in the L2 cache next to a layer's weights. */
#define GROUP_TOKENS 64u
#define UP_FLOATS (16u << 10) /* hidden values computed at a time, then activated */
#define TOKEN_CHUNKS 8u       /* chunks of per-token work per member */
#define TOP_ROWS 32u          /* inputs of a head per call */

/* ---- scratch ------------------------------------------------------------------------------- */

static uint32_t max_jobs(const struct encoder *d)
{
    return d->c.n_heads * (d->max_seqs + d->max_tokens / ENCODER_ROWS_PER_JOB + 1);
}

static uint32_t widest_top(const struct encoder *d)
{
    uint32_t n = 0;
    for (int i = 0; i < ENCODER_N_TOPS; i++) {
        uint32_t rows = encoder_top_rows(d, (enum encoder_top)i);
        n = rows > n ? rows : n;
    }
    return n + 32; /* rounded up to whole tiles */
}

void encoder_lay_out(struct encoder *d, uint8_t *base, uint32_t n_members)
{
    const struct encoder_config *c = &d->c;
    const size_t b = d->max_tokens, f = sizeof(float);
    struct carve at = {.base = base};
    d->x = plan_carve_take(&at, b * c->dim * f);
    d->in = c->norms_first ? plan_carve_take(&at, b * c->dim * f) : d->x;
    d->qkv = plan_carve_take(&at, b * 3 * c->dim * f);
    d->att = plan_carve_take(&at, b * c->dim * f);
    d->proj = plan_carve_take(&at, b * c->dim * f);
    d->hidden = plan_carve_take(&at, b * c->ffn_dim * f);
    if (d->embd_proj.mat != NO_MAT) {
        d->narrow = plan_carve_take(&at, b * c->embd_dim * f);
        plan_carve_act(&at, &d->act_narrow, d->narrow, d->max_tokens, c->embd_dim);
    }
    if (c->gated)
        d->gate = plan_carve_take(&at, b * c->ffn_dim * f);
    plan_carve_act(&at, &d->act_x, d->in, d->max_tokens, c->dim);
    plan_carve_act(&at, &d->act_att, d->att, d->max_tokens, c->dim);
    plan_carve_act(&at, &d->act_hidden, d->hidden, d->max_tokens, c->ffn_dim);
    d->top_x = plan_carve_take(&at, (size_t)TOP_ROWS * c->dim * f);
    plan_carve_act(&at, &d->act_top, d->top_x, TOP_ROWS, c->dim);
    d->top_out = plan_carve_take(&at, (size_t)TOP_ROWS * widest_top(d) * f);
    d->spare = plan_carve_take(&at, c->dim * f);
    d->attn_scratch = plan_carve_take(&at, n_members * sizeof(float *));
    for (uint32_t i = 0; i < n_members; i++) {
        float *s = plan_carve_take(&at, kern_attn_full_scratch(c->n_ctx, c->head_dim) * f);
        if (base)
            d->attn_scratch[i] = s;
    }
    const bool biased = c->places == ENCODER_PLACES_DISENTANGLED;
    d->attn_bias = biased ? plan_carve_take(&at, n_members * sizeof(float *)) : NULL;
    for (uint32_t i = 0; biased && i < n_members; i++) {
        float *s = plan_carve_take(&at, (size_t)ENCODER_ROWS_PER_JOB * c->n_ctx * f);
        if (base)
            d->attn_bias[i] = s;
    }
    d->jobs = plan_carve_take(&at, max_jobs(d) * sizeof(*d->jobs));
    d->phases = plan_carve_take(&at, (c->n_layers * 7 + 1) * sizeof(*d->phases));
    d->seq_first = plan_carve_take(&at, (d->max_seqs + 1) * sizeof(uint32_t));
    d->group_first = plan_carve_take(&at, (d->max_seqs + 1) * sizeof(uint32_t));
    d->seq_of = plan_carve_take(&at, b * sizeof(uint32_t));
    d->scratch_bytes = at.bytes;
}

/* ---- steps --------------------------------------------------------------------------------- */

static struct kern_act act_at(const struct kern_act *a, uint32_t t)
{
    struct kern_act r = *a;
    r.x += t * a->ld;
    r.q += (size_t)t * a->n_cols;
    r.scale += (size_t)t * (a->n_cols / 32);
    r.sums += (size_t)t * (a->n_cols / 16);
    return r;
}

static uint32_t tiles_of(const struct encoder *d, const struct linear *l)
{
    return tiles_count(&d->k->layout, d->weights.mats[l->mat].n_rows);
}

/* Tiles [t0, t1) of a product for n tokens from token `first`; out: result of the whole batch. */
static void product(const struct encoder *d, const struct linear *l, const struct kern_act *a,
                    uint32_t first, uint32_t n, uint32_t t0, uint32_t t1, float *out, size_t ld)
{
    const struct kern_act from = act_at(a, first);
    plan_linear_product(d->k, &d->weights, l, &from, n, t0, t1,
                        out + first * ld + l->out_at + (size_t)t0 * d->k->layout.tile_rows, ld);
}

/* Makes a token's input of the next products. */
static void normalize(const struct encoder *d, const struct norm *n, uint32_t t)
{
    const size_t at = (size_t)t * d->c.dim;
    if (n->w)
        d->k->layernorm(d->in + at, d->x + at, n->w, n->b, d->c.dim, d->c.norm_eps);
    else if (d->in != d->x)
        memcpy(d->in + at, d->x + at, d->c.dim * sizeof(float));
    plan_linear_round_all(d->k, &d->act_x, d->in_x, t);
}

/* A token's row of the embedding, with its type and position; [embd_dim]. */
static void look_up(const struct encoder *d, uint32_t t, float *x)
{
    const uint32_t seq = d->seq_of[t], at = t - d->seq_first[seq], dim = d->c.embd_dim;
    const struct encoder_seq *s = &d->seqs[seq];
    const size_t row = d->embd->n_bytes / d->c.n_vocab;
    const uint8_t *raw = d->embd->data + (size_t)s->tokens[at] * row;
    const enum kern_fmt fmt = tiles_fmt_of(d->embd->type);
    if (kern_fmt_is_float(fmt) && (uintptr_t)raw % 4 == 0)
        d->k->widen(x, fmt, raw, dim);
    else
        quant_to_f32(d->embd->type, raw, x, dim);
    if (d->types)
        d->k->add(x, d->types + (size_t)(s->types ? s->types[at] : 0) * dim, dim);
    if (d->positions)
        d->k->add(x, d->positions + (size_t)(d->c.pos0 + at) * dim, dim);
    d->k->layernorm(x, x, d->embd_norm.w, d->embd_norm.b, dim, d->c.norm_eps);
}

/* The patch at that place of an image; none is at its first place. */
static void look_at(const struct encoder *d, uint32_t t, float *x)
{
    const uint32_t seq = d->seq_of[t], at = t - d->seq_first[seq];
    if (at > 0)
        encoder_picture_patch(&d->c.picture, d->seqs[seq].image, at - 1, x);
    else
        memset(x, 0, d->c.embd_dim * sizeof(*x));
}

/* Completes the vector of a patch by its position. */
static void put_place(struct encoder *d, uint32_t t)
{
    const uint32_t at = t - d->seq_first[d->seq_of[t]], dim = d->c.dim;
    float *x = d->x + (size_t)t * dim;
    if (at == 0)
        memcpy(x, d->class_embd, dim * sizeof(*x));
    d->k->add(x, d->positions + (size_t)at * dim, dim);
}

/* Tokens `from` to `to`: what goes into the first layer. */
static void embed(struct encoder *d, uint32_t from, uint32_t to)
{
    static const struct norm none;
    const uint32_t dim = d->c.dim, wide = d->c.embd_dim;
    const struct linear *l = &d->embd_proj;
    const bool project = l->mat != NO_MAT, images = d->c.picture.size > 0;
    for (uint32_t t = from; t < to; t++) {
        float *x = project ? d->narrow + (size_t)t * wide : d->x + (size_t)t * dim;
        (images ? look_at : look_up)(d, t, x);
        if (project)
            plan_linear_round_all(d->k, &d->act_narrow, d->in_narrow, t);
    }
    if (project && from < to)
        product(d, l, &d->act_narrow, from, to - from, 0, tiles_of(d, l), d->x, dim);
    for (uint32_t t = from; t < to; t++) {
        if (images)
            put_place(d, t);
        normalize(d, d->c.norms_first ? &d->first_norm : &none, t);
    }
}

static void attend(struct encoder *d, const struct encoder_layer *l, const struct attn_job *j,
                   uint32_t member)
{
    const uint32_t dim = d->c.dim, hd = d->c.head_dim;
    const size_t first = d->seq_first[j->seq], ld = 3 * (size_t)dim;
    const float *q = d->qkv + first * ld + (size_t)j->head * hd;
    const struct kern_attn_full job = {.q = q,
                                       .q_ld = ld,
                                       .k = q + dim,
                                       .v = q + (size_t)2 * dim,
                                       .kv_ld = ld,
                                       .out = d->att + first * dim + (size_t)j->head * hd,
                                       .out_ld = dim,
                                       .n_keys = d->seqs[j->seq].n,
                                       .head_dim = hd,
                                       .scale = 1.0f / sqrtf((float)hd),
                                       .scratch = d->attn_scratch[member]};
    if (d->c.places == ENCODER_PLACES_NONE)
        d->k->attend_full(&job, j->row0, j->row1);
    else
        encoder_places_attend(d, l, j->head, &job, j->row0, j->row1,
                              d->attn_bias ? d->attn_bias[member] : NULL);
}

/* The hidden layer is split at the boundaries of its own groups. */
static uint32_t up_rows(const struct encoder *d)
{
    return linear_input_unit(d->in_hidden);
}

/* Values r0 to r1 of a token's hidden layer. */
static void activate(struct encoder *d, uint32_t t, uint32_t r0, uint32_t r1)
{
    const size_t at = (size_t)t * d->c.ffn_dim + r0;
    const uint32_t n = r1 - r0;
    float *h = d->hidden + at;
    if (d->c.act == ENCODER_ACT_GELU_ERF)
        d->k->gelu_erf(h, h, n);
    else if (d->c.act == ENCODER_ACT_GELU_TANH)
        d->k->gelu(h, h, n);
    else
        d->k->relu(h, h, n);
    for (uint32_t i = 0; d->c.gated && i < n; i++)
        h[i] *= d->gate[at + i];
}

/* Units u0 to u1 of the hidden layer for n tokens from `first`. */
static void up(struct encoder *d, const struct encoder_layer *l, uint32_t first, uint32_t n,
               uint32_t u0, uint32_t u1)
{
    const uint32_t rows = d->k->layout.tile_rows, ffn = d->c.ffn_dim;
    const uint32_t each = up_rows(d), r0 = u0 * each, r1 = u1 * each < ffn ? u1 * each : ffn;
    const uint32_t t0 = r0 / rows, t1 = (r1 + rows - 1) / rows;
    product(d, &l->up, &d->act_x, first, n, t0, t1, d->hidden, ffn);
    if (d->c.gated)
        product(d, &l->gate, &d->act_x, first, n, t0, t1, d->gate, ffn);
    for (uint32_t t = first; t < first + n; t++) {
        activate(d, t, r0, r1);
        plan_linear_round(d->k, &d->act_hidden, d->in_hidden, t, u0, u1);
    }
}

static uint32_t up_units(const struct encoder *d)
{
    return (d->c.ffn_dim + up_rows(d) - 1) / up_rows(d);
}

/* Adds the residual and applies the norm that follows. */
static void join(struct encoder *d, const struct norm *n, uint32_t t)
{
    const size_t at = (size_t)t * d->c.dim;
    d->k->add(d->x + at, d->proj + at, d->c.dim);
    normalize(d, n, t);
}

static void rotate(const struct encoder *d, const struct encoder_layer *l, uint32_t from,
                   uint32_t to)
{
    for (uint32_t t = from; d->c.places == ENCODER_PLACES_ROTATED && t < to; t++)
        encoder_places_rotate(d, l, t);
}

/* ---- a group of sequences through all layers ------------------------------------------------- */

static void group_layer(struct encoder *d, const struct encoder_layer *l, uint32_t s0, uint32_t s1,
                        uint32_t member)
{
    const uint32_t first = d->seq_first[s0], end = d->seq_first[s1], n = end - first;
    const uint32_t dim = d->c.dim;
    for (uint32_t j = 0; j < d->n_qkv; j++)
        product(d, &l->qkv[j], &d->act_x, first, n, 0, tiles_of(d, &l->qkv[j]), d->qkv,
                3 * (size_t)dim);
    rotate(d, l, first, end);
    for (uint32_t s = s0; s < s1; s++)
        for (uint32_t h = 0; h < d->c.n_heads; h++)
            attend(d, l, &(struct attn_job){s, h, 0, d->seqs[s].n}, member);
    for (uint32_t t = first; t < end; t++)
        plan_linear_round_all(d->k, &d->act_att, d->in_att, t);
    product(d, &l->attn_out, &d->act_att, first, n, 0, tiles_of(d, &l->attn_out), d->proj, dim);
    for (uint32_t t = first; t < end; t++)
        join(d, &l->attn_norm, t);
    /* as many rows of the hidden layer at a time as fit into the L1 cache */
    const uint32_t some = UP_FLOATS / (n * up_rows(d)) + 1;
    for (uint32_t u = 0; u < up_units(d); u += some)
        up(d, l, first, n, u, u + some < up_units(d) ? u + some : up_units(d));
    product(d, &l->down, &d->act_hidden, first, n, 0, tiles_of(d, &l->down), d->proj, dim);
    for (uint32_t t = first; t < end; t++)
        join(d, &l->out_norm, t);
}

static void group_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    const uint32_t s0 = d->group_first[c], s1 = d->group_first[c + 1];
    (void)p;
    embed(d, d->seq_first[s0], d->seq_first[s1]);
    for (uint32_t i = 0; i < d->c.n_layers; i++)
        group_layer(d, &d->layers[i], s0, s1, member);
}

/* Divides the sequences into groups of about equal numbers of tokens.  Returns false if they cannot
 * keep all members busy. */
static bool make_groups(struct encoder *d)
{
    const uint32_t members = crew_lane_size(d->lane);
    uint32_t n = (d->n_tokens + GROUP_TOKENS - 1) / GROUP_TOKENS, most = 0;
    n = (n + members - 1) / members * members;
    const uint32_t share = (d->n_tokens + n - 1) / n;
    d->n_groups = 0;
    for (uint32_t s = 0; s < d->n_seqs;) {
        const uint32_t from = d->seq_first[s];
        d->group_first[d->n_groups++] = s++;
        /* take one more if that brings the group closer to its share */
        while (s < d->n_seqs &&
               d->seq_first[s + 1] - from <= share + (d->seq_first[s + 1] - d->seq_first[s]) / 2)
            s++;
        const uint32_t tokens = d->seq_first[s] - from;
        most = tokens > most ? tokens : most;
    }
    d->group_first[d->n_groups] = d->n_seqs;
    /* many groups even out differences in size: a member that is done takes the next group */
    return members == 1 || (d->n_groups >= members &&
                            (most <= share + share / 4 || most * members * 4 <= d->n_tokens));
}

/* ---- few sequences: products shared ---------------------------------------------------------- */

/* First unit of chunk c if `units` are split into n chunks. */
static uint32_t part(uint32_t units, uint32_t c, uint32_t n)
{
    return (uint32_t)((uint64_t)units * c / n);
}

static void start_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    (void)member;
    embed(d, part(d->n_tokens, c, p->n_chunks), part(d->n_tokens, c + 1, p->n_chunks));
}

static void qkv_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    const struct linear *l = d->layers[p->arg].qkv;
    const uint32_t tiles = tiles_of(d, l), from = part(d->n_qkv * tiles, c, p->n_chunks);
    const uint32_t to = part(d->n_qkv * tiles, c + 1, p->n_chunks);
    (void)member;
    for (uint32_t j = 0; j < d->n_qkv; j++) {
        uint32_t t0 = from > j * tiles ? from - j * tiles : 0;
        uint32_t t1 = to > j * tiles ? to - j * tiles : 0;
        t1 = t1 < tiles ? t1 : tiles;
        if (t0 < t1)
            product(d, &l[j], &d->act_x, 0, d->n_tokens, t0, t1, d->qkv, 3 * (size_t)d->c.dim);
    }
}

static void qkv_finish(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct encoder *d = ctx;
    (void)member;
    rotate(d, &d->layers[p->arg], 0, d->n_tokens);
}

static void attend_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    for (uint32_t i = part(d->n_jobs, c, p->n_chunks); i < part(d->n_jobs, c + 1, p->n_chunks); i++)
        attend(d, &d->layers[p->arg], &d->jobs[i], member);
}

static void attend_finish(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct encoder *d = ctx;
    (void)p;
    (void)member;
    for (uint32_t t = 0; t < d->n_tokens; t++)
        plan_linear_round_all(d->k, &d->act_att, d->in_att, t);
}

/* attn_out and down: products into proj. */
static void proj_chunk(struct encoder *d, const struct linear *l, const struct kern_act *a,
                       const struct crew_phase *p, uint32_t c)
{
    const uint32_t tiles = tiles_of(d, l), t0 = part(tiles, c, p->n_chunks);
    const uint32_t t1 = part(tiles, c + 1, p->n_chunks);
    if (t0 < t1)
        product(d, l, a, 0, d->n_tokens, t0, t1, d->proj, d->c.dim);
}

static void attn_out_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    (void)member;
    proj_chunk(d, &d->layers[p->arg].attn_out, &d->act_att, p, c);
}

static void down_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    (void)member;
    proj_chunk(d, &d->layers[p->arg].down, &d->act_hidden, p, c);
}

static void up_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    const uint32_t u0 = part(up_units(d), c, p->n_chunks);
    const uint32_t u1 = part(up_units(d), c + 1, p->n_chunks);
    (void)member;
    if (u0 < u1)
        up(d, &d->layers[p->arg], 0, d->n_tokens, u0, u1);
}

static void join_tokens(struct encoder *d, const struct norm *n, const struct crew_phase *p,
                        uint32_t c)
{
    for (uint32_t t = part(d->n_tokens, c, p->n_chunks); t < part(d->n_tokens, c + 1, p->n_chunks);
         t++)
        join(d, n, t);
}

static void join_attention_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    (void)member;
    join_tokens(d, &d->layers[p->arg].attn_norm, p, c);
}

static void join_ffn_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct encoder *d = ctx;
    (void)member;
    join_tokens(d, &d->layers[p->arg].out_norm, p, c);
}

static void make_jobs(struct encoder *d)
{
    d->n_jobs = 0;
    for (uint32_t s = 0; s < d->n_seqs; s++)
        for (uint32_t h = 0; h < d->c.n_heads; h++)
            for (uint32_t r = 0; r < d->seqs[s].n; r += ENCODER_ROWS_PER_JOB) {
                uint32_t end = r + ENCODER_ROWS_PER_JOB < d->seqs[s].n ? r + ENCODER_ROWS_PER_JOB
                                                                       : d->seqs[s].n;
                d->jobs[d->n_jobs++] = (struct attn_job){s, h, r, end};
            }
}

static uint32_t shared_program(struct encoder *d)
{
    const uint32_t members = crew_lane_size(d->lane), pieces = members * 2;
    const uint32_t most = members * TOKEN_CHUNKS, tokens = d->n_tokens < most ? d->n_tokens : most;
    const uint32_t jobs = d->n_jobs < pieces * 2 ? d->n_jobs : pieces * 2;
    struct crew_phase *p = d->phases;
    *p++ = (struct crew_phase){.chunk = start_chunk, .n_chunks = tokens};
    for (uint32_t i = 0; i < d->c.n_layers; i++) {
        *p++ = (struct crew_phase){
            .chunk = qkv_chunk, .finish = qkv_finish, .arg = i, .n_chunks = pieces};
        *p++ = (struct crew_phase){
            .chunk = attend_chunk, .finish = attend_finish, .arg = i, .n_chunks = jobs};
        *p++ = (struct crew_phase){.chunk = attn_out_chunk, .arg = i, .n_chunks = pieces};
        *p++ = (struct crew_phase){.chunk = join_attention_chunk, .arg = i, .n_chunks = tokens};
        *p++ = (struct crew_phase){.chunk = up_chunk, .arg = i, .n_chunks = pieces};
        *p++ = (struct crew_phase){.chunk = down_chunk, .arg = i, .n_chunks = pieces};
        *p++ = (struct crew_phase){.chunk = join_ffn_chunk, .arg = i, .n_chunks = tokens};
    }
    return (uint32_t)(p - d->phases);
}

/* ---- the pass ------------------------------------------------------------------------------ */

void encoder_forward(struct encoder *d, const struct encoder_seq *seqs, uint32_t n_seqs)
{
    d->seqs = seqs;
    d->n_seqs = n_seqs;
    d->n_tokens = 0;
    for (uint32_t i = 0; i < n_seqs; i++) {
        d->seq_first[i] = d->n_tokens;
        for (uint32_t j = 0; j < seqs[i].n; j++)
            d->seq_of[d->n_tokens++] = i;
    }
    d->seq_first[n_seqs] = d->n_tokens;
    if (d->n_tokens == 0)
        return;
    if (make_groups(d)) {
        d->phases[0] = (struct crew_phase){.chunk = group_chunk, .n_chunks = d->n_groups};
        crew_run(d->lane, d, d->phases, 1, NULL);
        return;
    }
    make_jobs(d);
    crew_run(d->lane, d, d->phases, shared_program(d), NULL);
}

const float *encoder_hidden(const struct encoder *d, uint32_t seq, uint32_t token)
{
    return d->in + (size_t)(d->seq_first[seq] + token) * d->c.dim;
}

uint32_t encoder_seq_len(const struct encoder *d, uint32_t seq)
{
    return d->seq_first[seq + 1] - d->seq_first[seq];
}

/* ---- layers on top ------------------------------------------------------------------------- */

uint32_t encoder_top_rows(const struct encoder *d, enum encoder_top top)
{
    const struct linear *l = &d->top[top];
    return l->mat == NO_MAT ? 0 : d->weights.mats[l->mat].n_rows;
}

void encoder_top(struct encoder *d, enum encoder_top top, const float *const *x, uint32_t n,
                 uint32_t from, uint32_t to, float *out, size_t ld)
{
    const struct linear *l = &d->top[top];
    const uint32_t height = d->k->layout.tile_rows, t0 = from / height;
    const uint32_t t1 = (to + height - 1) / height, skip = from - t0 * height;
    const uint32_t dim = d->c.dim, wide = (t1 - t0) * height;
    for (uint32_t i = 0; i < n; i += TOP_ROWS) {
        const uint32_t m = n - i < TOP_ROWS ? n - i : TOP_ROWS;
        for (uint32_t j = 0; j < m; j++) {
            memcpy(d->top_x + (size_t)j * dim, x[i + j], dim * sizeof(float));
            plan_linear_round_all(d->k, &d->act_top,
                                  plan_linear_wants(&d->weights, l, LINEAR_INPUT_FLOATS), j);
        }
        plan_linear_product(d->k, &d->weights, l, &d->act_top, m, t0, t1, d->top_out, wide);
        for (uint32_t j = 0; j < m; j++)
            memcpy(out + (i + j) * ld, d->top_out + (size_t)j * wide + skip,
                   (to - from) * sizeof(float));
    }
}

void encoder_top_norm(const struct encoder *d, float *x)
{
    if (d->cls_norm.w)
        d->k->layernorm(x, x, d->cls_norm.w, d->cls_norm.b, d->c.dim, d->c.norm_eps);
}

float *encoder_spare(struct encoder *d)
{
    return d->spare;
}
