/* decoder_forward.c - one pass: a program of phases over the layers, run by the crew.
 *
 * Per layer: qkv products | prepare (rotate, store) | attend | attn_out | join + norm |
 * gate, up, activation | down | join + next norm.  Small steps are not phases of their own: they
 * are the finish of the phase before, run by the member that completes it.  With one token a layer
 * takes four or five phases. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "model/decoder_int.h"
#include "model/decoder_profile.h"
#include "model/mixer/mixer.h"

#define CHUNKS_EACH 8u /* chunks of per-token work per member */
/* If there are fewer key-times-head pairs than this, one member does the attention in a finish. */
#define SMALL_ATTENTION 1024u
/* And fewer floats of a recurrent state times tokens: one member does the block. */
#define SMALL_STATE 16384u
/* ---- splitting ------------------------------------------------------------------------------ */

static struct products_with with(const struct decoder *d)
{
    return (struct products_with){d->k, &d->weights, d->stage, d->stage_rows};
}

static size_t mat_bytes(const struct decoder *d, const struct linear *l)
{
    const struct products_with w = with(d);
    return products_bytes(&w, l);
}

static uint32_t mat_tiles(const struct decoder *d, const struct linear *l)
{
    const struct products_with w = with(d);
    return products_tiles(&w, l);
}

/* ---- per-token steps ------------------------------------------------------------------------ */

static void normalize(const struct decoder *d, float *y, const float *x, const float *w,
                      const float *b)
{
    if (!w) /* the block has a norm behind it instead */
        memcpy(y, x, d->c.dim * sizeof(float));
    else if (d->c.layer_norm)
        d->k->layernorm(y, x, w, b, d->c.dim, d->c.norm_eps);
    else
        d->k->rmsnorm(y, x, w, d->c.dim, d->c.norm_eps);
}

static void quantize(const struct decoder *d, const struct kern_act *a, bool wanted, uint32_t t)
{
    if (wanted)
        d->k->quantize(a, t, 0, a->n_cols / 32);
}

void decoder_embed(const struct decoder *d, uint32_t token, uint32_t pos, float *x, float *raw,
                   float *place)
{
    size_t row = d->embd->n_bytes / d->c.n_vocab;
    model_file_read(d->embd, token * row, raw, row);
    quant_to_f32(d->embd->type, raw, x, d->c.dim);
    if (d->c.embed_scale != 1.0f)
        d->k->scale(x, d->c.embed_scale, d->c.dim);
    if (d->pos_embd) {
        row = d->pos_embd->n_bytes / (size_t)d->pos_embd->dims[1];
        model_file_read(d->pos_embd, pos * row, raw, row);
        quant_to_f32(d->pos_embd->type, raw, place, d->c.dim);
        d->k->add(x, place, d->c.dim);
    }
}

void decoder_rotation(const struct decoder *d, bool local, uint32_t pos, float *cs)
{
    const uint32_t rot = d->c.rope_dim, half = rot / 2;
    const double amplitude = local ? 1.0 : (double)d->c.rope_amplitude;
    for (uint32_t i = 0; i < half; i++) {
        const uint32_t a = d->c.rope_neox ? i : 2 * i, b = d->c.rope_neox ? i + half : a + 1;
        double angle = (double)((float)pos * d->inv_freq[local][i]);
        cs[a] = cs[b] = (float)(cos(angle) * amplitude);
        cs[rot + b] = (float)(sin(angle) * amplitude);
        cs[rot + a] = -cs[rot + b];
    }
}

/* The residual stream of token t before the first layer of this part. */
static void enter(struct decoder *d, uint32_t t)
{
    const struct decoder_run *r = &d->runs[d->run_of[t]];
    uint32_t at = t - d->run_first[d->run_of[t]], pos = r->pos0 + at;
    const size_t row = (size_t)t * d->c.dim;
    if (d->first == 0)
        decoder_embed(d, (uint32_t)r->tokens[at], pos, d->x + row, d->xn + row, d->proj + row);
    else
        memcpy(d->x + row, r->x + (size_t)at * d->c.dim, d->c.dim * sizeof(float));
    for (int which = 0; which < (d->c.rope_base_local > 0.0f ? 2 : 1); which++)
        decoder_rotation(d, which == 1, pos, d->rope_cs[which] + (size_t)t * d->c.rope_dim * 2);
}

static void norm_in(struct decoder *d, uint32_t layer, uint32_t t)
{
    const struct layer *l = &d->layers[layer];
    size_t at = (size_t)t * d->c.dim;
    normalize(d, d->xn + at, d->x + at, l->attn_norm_w, l->attn_norm_b);
    quantize(d, &d->act_x, d->int_x, t);
}

static void head_norms(const struct decoder *d, float *x, uint32_t n_heads, const float *w)
{
    const uint32_t width = d->c.qk_norm_whole ? n_heads * d->c.head_dim : d->c.head_dim;
    for (uint32_t at = 0; w && at < n_heads * d->c.head_dim; at += width)
        d->k->rmsnorm(x + at, x + at, w, width, d->c.norm_eps);
}

/* Norms of queries and keys, and their rotation, from the first own head on. */
static void prepare_heads(const struct decoder *d, const struct layer *l, uint32_t t, float *q,
                          float *k)
{
    const struct decoder_config *c = &d->c;
    const uint32_t n_kv = d->head1 - d->head0, n_q = n_kv * (c->n_heads / c->n_kv_heads);
    for (int step = 0; step < 2; step++) {
        if ((step == 1) == c->qk_norm_rotated) {
            head_norms(d, q, n_q, l->q_norm);
            head_norms(d, k, n_kv, l->k_norm);
        } else if (c->rope_dim && !l->no_rope) {
            const float *cs = d->rope_cs[l->local_rope] + (size_t)t * c->rope_dim * 2;
            d->k->rope(q, n_q, c->head_dim, c->rope_dim, cs, c->rope_neox);
            d->k->rope(k, n_kv, c->head_dim, c->rope_dim, cs, c->rope_neox);
        }
    }
}

/* Each head's query has its gate behind it: moves the gates away and the queries together. */
static void part_gates(const struct decoder *d, float *q, float *gate)
{
    const uint32_t n = d->c.head_dim;
    for (uint32_t h = 0; h < d->c.n_heads; h++) {
        memcpy(gate + (size_t)h * n, q + (size_t)(2 * h + 1) * n, n * sizeof(float));
        memmove(q + (size_t)h * n, q + (size_t)2 * h * n, n * sizeof(float));
    }
}

/* Norms of heads, rotation, and storing this token's key and value in its page. */
static void prepare(struct decoder *d, uint32_t layer, uint32_t t)
{
    const struct decoder_config *c = &d->c;
    const struct decoder_run *r = &d->runs[d->run_of[t]];
    uint32_t pos = r->pos0 + (t - d->run_first[d->run_of[t]]);
    float *q = d->qkv + (size_t)t * d->qkv_dim, *k = q + c->n_heads * c->head_dim;
    if (c->gated_attention) {
        k += c->n_heads * c->head_dim;
        part_gates(d, q, d->gate + (size_t)t * c->n_heads * c->head_dim);
    }
    float *v = k + c->n_kv_heads * c->head_dim;
    prepare_heads(d, &d->layers[layer], t,
                  q + d->head0 * (c->n_heads / c->n_kv_heads) * c->head_dim,
                  k + d->head0 * c->head_dim);
    uint8_t *page = d->kv + r->pages[pos / KERN_PAGE] * d->kv_page_bytes +
                    d->layers[layer].kv_at * (d->head1 - d->head0) * d->kv_head_bytes;
    for (uint32_t h = d->head0; h < d->head1; h++, page += d->kv_head_bytes)
        d->k->kv_store(page, d->kv_kind, c->head_dim, pos % KERN_PAGE, k + h * c->head_dim,
                       v + h * c->head_dim);
}

/* Attention's result as the input of the last product. */
static void round_attended(struct decoder *d, uint32_t t)
{
    const uint32_t n = d->c.n_heads * d->c.head_dim;
    if (d->c.gated_attention) {
        float *gate = d->gate + (size_t)t * n, *att = d->att + (size_t)t * n;
        d->k->sigmoid(gate, gate, n);
        d->k->mul(att, att, gate, n);
    }
    quantize(d, &d->act_att, d->int_att, t);
}

/* What a block adds to the residual: its result after the norm and the factor that some have. */
static void finish_block(const struct decoder *d, float *o, const float *norm)
{
    if (norm)
        d->k->rmsnorm(o, o, norm, d->c.dim, d->c.norm_eps);
    if (d->c.residual_scale != 1.0f)
        d->k->scale(o, d->c.residual_scale, d->c.dim);
}

/* Adds attention's result to the residual and prepares the feed-forward's input. */
static void join_attention(struct decoder *d, uint32_t layer, uint32_t t)
{
    const struct layer *l = &d->layers[layer];
    size_t at = (size_t)t * d->c.dim;
    float *o = d->proj + at, *x = d->x + at;
    if (d->c.parallel) { /* the feed-forward has the same residual as attention */
        memcpy(d->keep + at, o, d->c.dim * sizeof(float));
        if (!d->c.parallel_norms)
            return; /* and the same norm */
    } else {
        finish_block(d, o, l->post_attn_norm);
        d->k->add(x, o, d->c.dim);
    }
    if (d->c.no_ffn) {
        if (layer + 1 < d->c.n_layers)
            norm_in(d, layer + 1, t);
        return;
    }
    normalize(d, d->xn + at, x, l->ffn_norm_w, l->ffn_norm_b);
    quantize(d, &d->act_x, d->int_x, t);
}

/* The end of a recurrent block for one token, and its result as the input of the last product. */
static void finish_mixed(struct decoder *d, uint32_t layer, uint32_t t)
{
    const struct mixer_job job = {.k = d->k,
                                  .c = &d->c,
                                  .l = &d->layers[layer].mix,
                                  .in = d->qkv + (size_t)t * d->qkv_dim,
                                  .in_ld = d->qkv_dim,
                                  .out = d->mix + (size_t)t * d->mix_dim,
                                  .out_ld = d->mix_dim,
                                  .n = 1};
    if (d->c.mixer->finish)
        d->c.mixer->finish(&job);
    quantize(d, &d->act_mix, d->int_mix, t);
}

static void join_ffn(struct decoder *d, uint32_t layer, uint32_t t)
{
    const struct layer *l = &d->layers[layer];
    size_t at = (size_t)t * d->c.dim;
    float *o = d->proj + at, *x = d->x + at;
    finish_block(d, o, l->post_ffn_norm);
    if (d->c.parallel)
        d->k->add(x, d->keep + at, d->c.dim);
    d->k->add(x, o, d->c.dim);
    if (layer + 1 < d->end)
        norm_in(d, layer + 1, t);
}

static void join_experts(struct decoder *d, uint32_t layer, uint32_t t)
{
    experts_sum(&d->experts, d->k, t, d->proj + (size_t)t * d->c.dim, d->c.dim);
    join_ffn(d, layer, t);
}

static struct products_ffn ffn_of(const struct decoder *d, uint32_t layer)
{
    static const enum products_act act_of[] = {
        [DECODER_ACT_SILU] = PRODUCTS_ACT_SILU,
        [DECODER_ACT_GELU] = PRODUCTS_ACT_GELU,
        [DECODER_ACT_GELU_ERF] = PRODUCTS_ACT_GELU_ERF,
    };
    const struct layer *l = &d->layers[layer];
    return (struct products_ffn){.gate = &l->gate,
                                 .up = &l->up,
                                 .act = act_of[d->c.act],
                                 .in = &d->act_x,
                                 .hidden = &d->act_hidden,
                                 .h = d->hidden,
                                 .h_up = d->hidden_up,
                                 .form = d->int_hidden ? LINEAR_INPUT_BLOCKS : LINEAR_INPUT_FLOATS};
}

/* By rows: the activation of own columns; then, with those of the others, the rounding. */
static void activate_own(struct decoder *d, uint32_t layer, uint32_t t)
{
    const struct products_with w = with(d);
    const struct products_ffn f = ffn_of(d, layer);
    const struct decoder_rows *r = &d->rows;
    products_ffn_activate(&w, &f, t, r->ffn[r->index], r->ffn[r->index + 1]);
}

static void round_hidden(struct decoder *d, uint32_t t)
{
    quantize(d, &d->act_hidden, d->int_hidden, t);
}

/* ---- phases --------------------------------------------------------------------------------- */

#define EACH_TOKEN(call)                                                                           \
    for (uint32_t t = 0; t < d->n_tokens; t++)                                                     \
    call
/* name##_chunk does the step for some tokens, name##_all for all of them (as a finish). */
#define TOKEN_STEP(name, call)                                                                     \
    static void name##_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)   \
    {                                                                                              \
        struct decoder *d = ctx;                                                                   \
        const uint32_t layer = p->arg;                                                             \
        (void)member;                                                                              \
        (void)layer;                                                                               \
        const uint32_t end = (uint32_t)((uint64_t)d->n_tokens * (c + 1) / p->n_chunks);            \
        for (uint32_t t = (uint32_t)((uint64_t)d->n_tokens * c / p->n_chunks); t < end; t++)       \
            call;                                                                                  \
    }                                                                                              \
    static void name##_all(void *ctx, const struct crew_phase *p, uint32_t member)                 \
    {                                                                                              \
        struct decoder *d = ctx;                                                                   \
        const uint32_t layer = p->arg;                                                             \
        (void)member;                                                                              \
        (void)layer;                                                                               \
        EACH_TOKEN(call);                                                                          \
    }
TOKEN_STEP(start, (enter(d, t), norm_in(d, d->first, t)))
TOKEN_STEP(prepare, prepare(d, layer, t))
TOKEN_STEP(round_attended, round_attended(d, t))
TOKEN_STEP(finish_mixed, finish_mixed(d, layer, t))
TOKEN_STEP(join_attention, join_attention(d, layer, t))
TOKEN_STEP(join_ffn, join_ffn(d, layer, t))
TOKEN_STEP(join_experts, join_experts(d, layer, t))
TOKEN_STEP(activate_own, activate_own(d, layer, t))
TOKEN_STEP(round_hidden, round_hidden(d, t))
#undef TOKEN_STEP

/* Calibration only: reports the input of some products, once per layer. */
static void watch_inputs(struct decoder *d, const struct linear *l, uint32_t n_linears,
                         const struct kern_act *a, uint32_t n_tokens)
{
    for (uint32_t i = 0; i < n_linears; i++) {
        char name[96];
        if (l[i].mat == NO_MAT)
            continue;
        struct str s = d->weights.tensors[l[i].mat]->name;
        size_t n = s.n < sizeof(name) - 1 ? s.n : sizeof(name) - 1;
        memcpy(name, s.p, n);
        name[n] = '\0';
        for (uint32_t t = 0; t < n_tokens; t++)
            d->watch(d->watch_ctx, name, a->x + t * a->ld, a->n_cols);
    }
}

/* Where `up` goes if it is computed apart from the activation. */
static float *up_of(const struct decoder *d)
{
    return d->hidden_up ? d->hidden_up : d->hidden;
}

/* name_chunk computes a chunk of the products that name_batch describes, name_commit stores it,
 * name_ahead prefetches its weights. */
#define PRODUCT_PHASE(name, LINEARS, N, ACT, OUT, LD)                                              \
    static struct products name##_batch(const struct decoder *d, uint32_t layer)                   \
    {                                                                                              \
        const struct layer *l = &d->layers[layer];                                                 \
        (void)l;                                                                                   \
        return (struct products){LINEARS, N, ACT, OUT, LD};                                        \
    }                                                                                              \
    static void name##_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)   \
    {                                                                                              \
        struct decoder *d = ctx;                                                                   \
        const struct products b = name##_batch(d, p->arg);                                         \
        const struct products_with w = with(d);                                                    \
        products_run(&w, &b, p, c, member);                                                        \
        if (d->watch && c == 0)                                                                    \
            watch_inputs(d, b.l, b.n_linears, b.a, p->n_items);                                    \
    }                                                                                              \
    static void name##_commit(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)  \
    {                                                                                              \
        struct decoder *d = ctx;                                                                   \
        const struct products b = name##_batch(d, p->arg);                                         \
        const struct products_with w = with(d);                                                    \
        products_commit(&w, &b, p, c, member);                                                     \
    }                                                                                              \
    static bool name##_ahead(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t step)     \
    {                                                                                              \
        const struct decoder *d = ctx;                                                             \
        const struct products b = name##_batch(d, p->arg);                                         \
        const struct products_with w = with(d);                                                    \
        return products_ahead(&w, &b, p, c, step);                                                 \
    }
PRODUCT_PHASE(qkv, l->qkv, l->n_qkv, &d->act_x, d->qkv, d->qkv_dim)
PRODUCT_PHASE(attn_out, &l->attn_out, 1, l->recurrent ? &d->act_mix : &d->act_att, d->proj,
              d->c.dim)
PRODUCT_PHASE(gate, &l->gate, 1, &d->act_x, d->hidden, d->c.ffn_dim)
PRODUCT_PHASE(up, &l->up, 1, &d->act_x, up_of(d), d->c.ffn_dim)
PRODUCT_PHASE(down, &l->down, 1, &d->act_hidden, d->proj, d->c.dim)
PRODUCT_PHASE(router, &l->router, 1, &d->act_x, d->experts.routes, d->c.n_experts)
PRODUCT_PHASE(output, &d->output, 1, &d->act_x, d->logits, d->c.n_vocab)
#undef PRODUCT_PHASE

static void attend_unit(struct decoder *d, uint32_t layer, const struct attn_unit *u,
                        uint32_t member)
{
    const struct decoder_config *c = &d->c;
    const struct decoder_run *r = &d->runs[u->run];
    const uint32_t group = c->n_heads / c->n_kv_heads, heads = c->n_heads * c->head_dim;
    const size_t first = d->run_first[u->run], at = (size_t)u->kv_head * group * c->head_dim;
    struct kern_attn job = {
        .q = d->qkv + first * d->qkv_dim + at,
        .q_ld = d->qkv_dim,
        .out = d->att + first * heads + at,
        .out_ld = heads,
        .n_tokens = r->n,
        .n_heads = group,
        .head_dim = c->head_dim,
        .scale = c->attn_scale,
        .cap = c->attn_cap,
        .pos0 = r->pos0,
        .window = d->layers[layer].window,
        .kind = d->kv_kind,
        .kv = d->kv + (d->layers[layer].kv_at * (d->head1 - d->head0) + u->kv_head - d->head0) *
                          d->kv_head_bytes,
        .page_stride = d->kv_page_bytes,
        .pages = r->pages,
        .scratch = d->attn_scratch[member]};
    d->k->attend(&job, u->row0, u->row1);
}

static void attend_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct decoder *d = ctx;
    uint32_t from = (uint32_t)((uint64_t)d->n_units * c / p->n_chunks);
    uint32_t to = (uint32_t)((uint64_t)d->n_units * (c + 1) / p->n_chunks);
    for (uint32_t i = from; i < to; i++)
        attend_unit(d, p->arg, &d->units[i], member);
}

/* Few tokens and few keys: done by the member that completed the qkv products. */
static void attend_all(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct decoder *d = ctx;
    prepare_all(ctx, p, member);
    for (uint32_t i = 0; i < d->n_units; i++)
        attend_unit(d, p->arg, &d->units[i], member);
    round_attended_all(ctx, p, member);
}

/* ---- recurrent blocks ------------------------------------------------------------------------ */

static float *state_of(const struct decoder *d, uint32_t state, size_t at)
{
    assert(state < d->n_states);
    return d->states + state * d->state_floats + at;
}

/* One unit of one stage, through the tokens of one run. */
static void mix_unit(struct decoder *d, uint32_t layer, uint32_t stage, uint32_t run, uint32_t unit)
{
    const struct mixer_stage *s = &d->c.mixer->stages[stage];
    const struct decoder_run *r = &d->runs[run];
    const struct layer *l = &d->layers[layer];
    const size_t n_floats = s->unit_floats(&d->c), first = d->run_first[run];
    const size_t at = l->mix_at * d->layer_state_floats + mixer_state_at(d->c.mixer, &d->c, stage) +
                      unit * n_floats;
    const uint32_t cut = r->keep_at ? r->keep_at : r->n;
    struct mixer_job job = {.k = d->k,
                            .c = &d->c,
                            .l = &l->mix,
                            .in = d->qkv + first * d->qkv_dim,
                            .in_ld = d->qkv_dim,
                            .out = d->mix + first * d->mix_dim,
                            .out_ld = d->mix_dim,
                            .n = cut};
    float *own = state_of(d, r->state, at);
    if (r->pos0 == 0)
        memset(own, 0, n_floats * sizeof(float));
    else if (r->state_from != r->state)
        memcpy(own, state_of(d, r->state_from, at), n_floats * sizeof(float));
    s->run(&job, unit, own);
    if (r->keep_at)
        memcpy(state_of(d, r->keep, at), own, n_floats * sizeof(float));
    if (cut < r->n) {
        job.in += cut * job.in_ld;
        job.out += cut * job.out_ld;
        job.n = r->n - cut;
        s->run(&job, unit, own);
    }
}

/* Chunks divide the units of all runs. */
static void mix_part(struct decoder *d, uint32_t layer, uint32_t stage, uint32_t c,
                     uint32_t n_chunks)
{
    const uint32_t units = d->c.mixer->stages[stage].n_units(&d->c);
    const uint64_t all = (uint64_t)units * d->n_runs;
    for (uint64_t i = all * c / n_chunks; i < all * (c + 1) / n_chunks; i++)
        mix_unit(d, layer, stage, (uint32_t)(i / units), (uint32_t)(i % units));
}

static void mix_first_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    (void)member;
    mix_part(ctx, p->arg, 0, c, p->n_chunks);
}

static void mix_second_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    (void)member;
    mix_part(ctx, p->arg, 1, c, p->n_chunks);
}

/* Few tokens and few units: done by the member that completed the products. */
static void mix_all(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct decoder *d = ctx;
    for (uint32_t stage = 0; stage < MIXER_STAGES && d->c.mixer->stages[stage].run; stage++)
        mix_part(d, p->arg, stage, 0, 1);
    finish_mixed_all(ctx, p, member);
}

/* ---- experts --------------------------------------------------------------------------------- */

static void choose_experts(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct decoder *d = ctx;
    (void)p;
    (void)member;
    experts_choose(&d->experts, d->k, d->n_tokens);
}

/* One chunk for each group; there may be fewer groups than were planned for. */
static void experts_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct decoder *d = ctx;
    const struct layer *l = &d->layers[p->arg];
    (void)member;
    for (; c < d->experts.n_groups; c += p->n_chunks)
        experts_run(&d->experts, d->k, &d->weights, l->experts, &d->act_x, c);
}

static void ffn_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct decoder *d = ctx;
    const struct products_with w = with(d);
    const struct products_ffn f = ffn_of(d, p->arg);
    products_ffn_run(&w, &f, p, c, member);
    if (d->watch && c == 0) {
        watch_inputs(d, f.up, 1, &d->act_x, p->n_items);
        watch_inputs(d, f.gate, 1, &d->act_x, p->n_items);
    }
}

static void ffn_commit(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct decoder *d = ctx;
    const struct products_with w = with(d);
    const struct products_ffn f = ffn_of(d, p->arg);
    products_ffn_commit(&w, &f, p, c, member);
}

static bool ffn_ahead(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t step)
{
    const struct decoder *d = ctx;
    const struct products_with w = with(d);
    const struct products_ffn f = ffn_of(d, p->arg);
    return products_ffn_ahead(&w, &f, p, c, step);
}

/* ---- adapters -------------------------------------------------------------------------------- */

/* What the adapter of some tokens adds to the products of a place.  Never part of a phase with a
 * commit, whose chunks may run late: adapters come and go between passes. */
static void adapt(struct decoder *d, uint32_t layer, enum adapter_place place,
                  const struct adapted *u)
{
    const struct layer *l = &d->layers[layer];
    const struct kern_act *in = place == ADAPTER_DOWN  ? &d->act_hidden
                                : place != ADAPTER_OUT ? &d->act_x
                                : l->recurrent         ? &d->act_mix
                                                       : &d->act_att;
    float *out = place == ADAPTER_IN ? d->qkv : place == ADAPTER_FFN ? d->hidden : d->proj;
    const size_t ld = place == ADAPTER_IN    ? d->qkv_dim
                      : place == ADAPTER_FFN ? d->c.ffn_dim
                                             : d->c.dim;
    const struct adapter_rows rows = {.x = in->x + u->first * in->ld,
                                      .x_ld = in->ld,
                                      .out = {out + u->first * ld, up_of(d) + u->first * ld},
                                      .ld = ld,
                                      .n = u->n};
    if (u->adapter)
        adapter_apply(u->adapter, layer, place, u->scale, &rows);
    if (place != ADAPTER_FFN)
        return;
    const struct products_with w = with(d);
    const struct products_ffn f = ffn_of(d, layer);
    for (uint32_t t = u->first; t < u->first + u->n; t++)
        products_ffn_finish(&w, &f, t);
}

/* name##_chunk does it for one group of tokens, name##_all for all of them (as a finish). */
#define ADAPT_STEP(name, place)                                                                    \
    static void name##_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)   \
    {                                                                                              \
        struct decoder *d = ctx;                                                                   \
        (void)member;                                                                              \
        adapt(d, p->arg, place, &d->adapted[c]);                                                   \
    }                                                                                              \
    static void name##_all(void *ctx, const struct crew_phase *p, uint32_t member)                 \
    {                                                                                              \
        struct decoder *d = ctx;                                                                   \
        (void)member;                                                                              \
        for (uint32_t i = 0; i < d->n_adapted; i++)                                                \
            adapt(d, p->arg, place, &d->adapted[i]);                                               \
    }
ADAPT_STEP(adapt_in, ADAPTER_IN)
ADAPT_STEP(adapt_out, ADAPTER_OUT)
ADAPT_STEP(adapt_ffn, ADAPTER_FFN)
ADAPT_STEP(adapt_down, ADAPTER_DOWN)
#undef ADAPT_STEP

/* Gathers the rows that need logits and applies the final norm. */
static void gather_all(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct decoder *d = ctx;
    (void)p;
    (void)member;
    for (uint32_t i = 0; i < d->n_logits; i++) {
        normalize(d, d->xn + (size_t)i * d->c.dim, d->x + (size_t)d->logit_token[i] * d->c.dim,
                  d->final_norm_w, d->final_norm_b);
        if (d->c.logit_scale != 1.0f)
            d->k->scale(d->xn + (size_t)i * d->c.dim, d->c.logit_scale, d->c.dim);
        quantize(d, &d->act_x, d->int_x, i);
    }
}

/* cap * tanh(x / cap) of some of the logits. */
static void cap_logits_chunk(void *ctx, const struct crew_phase *p, uint32_t c, uint32_t member)
{
    struct decoder *d = ctx;
    const uint64_t all = (uint64_t)d->n_logits * d->c.n_vocab;
    const size_t from = (size_t)(all * c / p->n_chunks);
    const uint32_t n = (uint32_t)((size_t)(all * (c + 1) / p->n_chunks) - from);
    float *x = d->logits + from;
    (void)member;
    d->k->scale(x, 1.0f / d->c.logit_cap, n);
    d->k->tanh(x, x, n);
    d->k->scale(x, d->c.logit_cap, n);
}

/* ---- the program ---------------------------------------------------------------------------- */

typedef void (*chunk_fn)(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member);
typedef void (*finish_fn)(void *ctx, const struct crew_phase *p, uint32_t member);
typedef bool (*ahead_fn)(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t step);

static void add_phase(struct decoder *d, uint32_t *n, uint32_t layer, uint32_t n_chunks,
                      chunk_fn chunk, finish_fn finish)
{
    d->phases[(*n)++] = (struct crew_phase){.chunk = chunk,
                                            .finish = finish,
                                            .arg = layer,
                                            .n_items = d->n_tokens,
                                            .n_chunks = n_chunks};
}

/* The callbacks of a phase of products. */
struct product_fns {
    chunk_fn chunk, commit;
    ahead_fn ahead;
};
#define PRODUCT_FNS(name) (&(const struct product_fns){name##_chunk, name##_commit, name##_ahead})

/* Adds a phase of products of n_items rows.  If there are few, they are staged and committed, so
 * that a preempted member does not stall the others. */
static void add_products(struct decoder *d, uint32_t *n, uint32_t layer, size_t bytes,
                         uint32_t units, uint32_t n_items, const struct product_fns *f,
                         finish_fn finish)
{
    const uint32_t members = crew_lane_size(d->lane);
    add_phase(d, n, layer, 0, f->chunk, finish);
    struct crew_phase *p = &d->phases[*n - 1];
    products_divide(p, members, n_items, bytes, units);
    p->n_items = n_items;
    if (n_items <= PRODUCTS_FEW && members > 1) {
        p->commit = p->n_chunks <= CREW_MAX_COMMITS ? f->commit : NULL;
        p->ahead = f->ahead;
    }
}

/* The callbacks of a place that adapters change. */
struct adapt_fns {
    chunk_fn chunk;
    finish_fn all;
};
static const struct adapt_fns adapt_fns[ADAPTER_PLACES] = {
    [ADAPTER_IN] = {adapt_in_chunk, adapt_in_all},
    [ADAPTER_OUT] = {adapt_out_chunk, adapt_out_all},
    [ADAPTER_FFN] = {adapt_ffn_chunk, adapt_ffn_all},
    [ADAPTER_DOWN] = {adapt_down_chunk, adapt_down_all},
};

/* The finish of the products of a place: what adapters add comes first, in phases of its own. */
static void add_finish(struct decoder *d, uint32_t *n, uint32_t layer, enum adapter_place place,
                       finish_fn finish)
{
    struct crew_phase *products = &d->phases[*n - 1];
    if (!(d->places >> place & 1)) {
        products->finish = finish;
    } else if (d->n_tokens <= PRODUCTS_FEW) {
        products->finish = adapt_fns[place].all;
        if (finish)
            add_phase(d, n, layer, 0, NULL, finish);
    } else {
        add_phase(d, n, layer, d->n_adapted, adapt_fns[place].chunk, finish);
    }
}

/* The products that a block begins with. */
static void add_inputs(struct decoder *d, uint32_t *n, uint32_t i, finish_fn finish)
{
    const struct layer *l = &d->layers[i];
    size_t bytes = 0;
    uint32_t tiles = 0;
    for (uint32_t j = 0; j < l->n_qkv; j++) {
        bytes += mat_bytes(d, &l->qkv[j]);
        tiles += mat_tiles(d, &l->qkv[j]);
    }
    add_products(d, n, i, bytes, tiles, d->n_tokens, PRODUCT_FNS(qkv), NULL);
    add_finish(d, n, i, ADAPTER_IN, finish);
}

static void mixer_phases(struct decoder *d, uint32_t *n, uint32_t i, uint32_t token_chunks)
{
    const struct mixer_ops *m = d->c.mixer;
    const bool few = token_chunks == 0;
    const uint32_t members = crew_lane_size(d->lane), most = members == 1 ? 1 : members * 8;
    const bool small = few && (members == 1 || d->layer_state_floats * d->n_tokens < SMALL_STATE);
    add_inputs(d, n, i, small ? mix_all : NULL);
    for (uint32_t stage = 0; !small && stage < MIXER_STAGES && m->stages[stage].run; stage++) {
        const uint32_t units = m->stages[stage].n_units(&d->c) * d->n_runs;
        const bool last = stage + 1 == MIXER_STAGES || !m->stages[stage + 1].run;
        add_phase(d, n, i, units < most ? units : most, stage ? mix_second_chunk : mix_first_chunk,
                  few && last ? finish_mixed_all : NULL);
    }
    if (!few)
        add_phase(d, n, i, token_chunks, finish_mixed_chunk, NULL);
}

static void attention_phases(struct decoder *d, uint32_t *n, uint32_t i, uint32_t token_chunks,
                             bool small_attention)
{
    const bool few = token_chunks == 0;
    const uint32_t members = crew_lane_size(d->lane);
    add_inputs(d, n, i, small_attention ? attend_all : few ? prepare_all : NULL);
    if (!few)
        add_phase(d, n, i, token_chunks, prepare_chunk, NULL);
    if (!small_attention) {
        uint32_t most = members == 1 ? 1 : members * 8;
        add_phase(d, n, i, d->n_units < most ? d->n_units : most, attend_chunk,
                  few ? round_attended_all : NULL);
    }
    if (!few)
        add_phase(d, n, i, token_chunks, round_attended_chunk, NULL);
}

/* ---- by rows ---- */

/* Gets what the others computed of a result of `width` columns for each cut. */
static void gather(struct decoder *d, float *data, uint32_t ld, const uint32_t *cuts,
                   uint32_t width)
{
    struct decoder_gather g = {
        .data = data, .ld = ld, .n_tokens = d->n_tokens, .number = d->n_gathered++};
    for (uint32_t i = 0; i <= d->rows.n_parts; i++)
        g.cuts[i] = cuts[i] * width;
    d->lost = d->lost || !d->gather(d->gather_ctx, &g);
}

static void gather_attended(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct decoder *d = ctx;
    const uint32_t heads = d->c.n_heads * d->c.head_dim;
    (void)p;
    (void)member;
    gather(d, d->att, heads, d->rows.heads, heads / d->c.n_kv_heads);
}

static void gather_proj(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct decoder *d = ctx;
    (void)p;
    (void)member;
    gather(d, d->proj, d->c.dim, d->rows.dim, 1);
}

static void gather_hidden(void *ctx, const struct crew_phase *p, uint32_t member)
{
    struct decoder *d = ctx;
    (void)p;
    (void)member;
    gather(d, d->hidden, d->c.ffn_dim, d->rows.ffn, 1);
}

/* A step of each token after what a finish has brought. */
static void add_step(struct decoder *d, uint32_t *n, uint32_t i, uint32_t token_chunks,
                     chunk_fn chunk, finish_fn all)
{
    const bool few = token_chunks == 0;
    add_phase(d, n, i, token_chunks, few ? NULL : chunk, few ? all : NULL);
}

static void add_product(struct decoder *d, uint32_t *n, uint32_t i, const struct linear *l,
                        const struct product_fns *f, finish_fn finish)
{
    add_products(d, n, i, mat_bytes(d, l), mat_tiles(d, l), d->n_tokens, f, finish);
}

static void row_phases(struct decoder *d, uint32_t *n, uint32_t i, uint32_t token_chunks)
{
    const struct layer *l = &d->layers[i];
    const uint32_t members = crew_lane_size(d->lane), most = members == 1 ? 1 : members * 8;
    add_inputs(d, n, i, NULL);
    add_step(d, n, i, token_chunks, prepare_chunk, prepare_all);
    add_phase(d, n, i, d->n_units < most ? d->n_units : most, attend_chunk, gather_attended);
    add_step(d, n, i, token_chunks, round_attended_chunk, round_attended_all);
    add_product(d, n, i, &l->attn_out, PRODUCT_FNS(attn_out), gather_proj);
    add_step(d, n, i, token_chunks, join_attention_chunk, join_attention_all);
    if (l->gate.mat != NO_MAT)
        add_product(d, n, i, &l->gate, PRODUCT_FNS(gate), NULL);
    add_product(d, n, i, &l->up, PRODUCT_FNS(up), NULL);
    add_step(d, n, i, token_chunks, activate_own_chunk, activate_own_all);
    add_phase(d, n, i, 0, NULL, gather_hidden);
    add_step(d, n, i, token_chunks, round_hidden_chunk, round_hidden_all);
    add_product(d, n, i, &l->down, PRODUCT_FNS(down), gather_proj);
    add_step(d, n, i, token_chunks, join_ffn_chunk, join_ffn_all);
}

static void expert_phases(struct decoder *d, uint32_t *n, uint32_t i, uint32_t token_chunks)
{
    const struct layer *l = &d->layers[i];
    const uint32_t most = experts_most_groups(&d->experts, d->n_tokens);
    const bool few = token_chunks == 0;
    add_products(d, n, i, mat_bytes(d, &l->router), mat_tiles(d, &l->router), d->n_tokens,
                 PRODUCT_FNS(router), choose_experts);
    add_phase(d, n, i, most < CREW_MAX_CHUNKS ? most : CREW_MAX_CHUNKS, experts_chunk,
              few ? join_experts_all : NULL);
    if (!few)
        add_phase(d, n, i, token_chunks, join_experts_chunk, NULL);
}

/* Adapters change gate and up before the activation, which is otherwise part of their products. */
static void adapted_ffn_phases(struct decoder *d, uint32_t *n, uint32_t i)
{
    const struct layer *l = &d->layers[i];
    if (l->gate.mat != NO_MAT)
        add_products(d, n, i, mat_bytes(d, &l->gate), mat_tiles(d, &l->gate), d->n_tokens,
                     PRODUCT_FNS(gate), NULL);
    add_products(d, n, i, mat_bytes(d, &l->up), mat_tiles(d, &l->up), d->n_tokens, PRODUCT_FNS(up),
                 NULL);
    add_finish(d, n, i, ADAPTER_FFN, NULL);
}

static void layer_phases(struct decoder *d, uint32_t *n, uint32_t i, uint32_t token_chunks,
                         bool small_attention)
{
    const struct layer *l = &d->layers[i];
    const bool few = token_chunks == 0;
    if (l->recurrent)
        mixer_phases(d, n, i, token_chunks);
    else
        attention_phases(d, n, i, token_chunks, small_attention);
    add_products(d, n, i, mat_bytes(d, &l->attn_out), mat_tiles(d, &l->attn_out), d->n_tokens,
                 PRODUCT_FNS(attn_out), NULL);
    add_finish(d, n, i, ADAPTER_OUT, few ? join_attention_all : NULL);
    if (!few)
        add_phase(d, n, i, token_chunks, join_attention_chunk, NULL);
    if (d->c.no_ffn)
        return;
    if (l->experts) {
        expert_phases(d, n, i, token_chunks);
        return;
    }
    if (d->places >> ADAPTER_FFN & 1)
        adapted_ffn_phases(d, n, i);
    else
        add_products(d, n, i, mat_bytes(d, &l->up) + mat_bytes(d, &l->gate),
                     (d->c.ffn_dim + 31) / 32, d->n_tokens, PRODUCT_FNS(ffn), NULL);
    add_products(d, n, i, mat_bytes(d, &l->down), mat_tiles(d, &l->down), d->n_tokens,
                 PRODUCT_FNS(down), NULL);
    add_finish(d, n, i, ADAPTER_DOWN, few ? join_ffn_all : NULL);
    if (!few)
        add_phase(d, n, i, token_chunks, join_ffn_chunk, NULL);
}

/* Groups the tokens by adapter, if there are any. */
static void lay_out_adapters(struct decoder *d)
{
    d->places = d->n_adapted = 0;
    for (uint32_t i = 0; i < d->n_runs; i++)
        d->places |= d->runs[i].adapter ? adapter_places(d->runs[i].adapter) : 0;
    for (uint32_t t = 0; d->places && t < d->n_tokens; t++) {
        const struct decoder_run *r = &d->runs[d->run_of[t]];
        struct adapted *last = d->n_adapted ? &d->adapted[d->n_adapted - 1] : NULL;
        if (last && last->adapter == r->adapter && last->n < ADAPTER_TOKENS &&
            (!r->adapter || last->scale == r->adapter_scale))
            last->n++;
        else
            d->adapted[d->n_adapted++] = (struct adapted){r->adapter, r->adapter_scale, t, 1};
    }
}

/* Maps tokens to runs and lists the work of attention. */
static void lay_out(struct decoder *d, const struct decoder_run *runs, uint32_t n_runs)
{
    const uint32_t group = d->c.n_heads / d->c.n_kv_heads;
    d->runs = runs;
    d->n_runs = n_runs;
    d->n_tokens = d->n_logits = d->n_units = 0;
    for (uint32_t i = 0; i < n_runs; i++) {
        d->run_first[i] = d->n_tokens;
        for (uint32_t j = 0; j < runs[i].n; j++)
            d->run_of[d->n_tokens + j] = i;
        for (uint32_t j = runs[i].n - runs[i].n_logits_last; j < runs[i].n; j++)
            d->logit_token[d->n_logits++] = d->n_tokens + j;
        d->n_tokens += runs[i].n;
        /* at most 32 tokens per unit: its rows share the keys they read */
        for (uint32_t j = 0; j < runs[i].n; j += 32)
            for (uint32_t h = d->head0; h < d->head1; h++) {
                uint32_t to = j + 32 < runs[i].n ? j + 32 : runs[i].n;
                d->units[d->n_units++] = (struct attn_unit){i, h, j * group, to * group};
            }
    }
}

/* ---- names, for profiles -------------------------------------------------------------------- */

static const struct {
    chunk_fn fn;
    const char *name;
} chunk_names[] = {
    {start_chunk, "start"},
    {qkv_chunk, "qkv"},
    {prepare_chunk, "prepare"},
    {attend_chunk, "attend"},
    {round_attended_chunk, "round"},
    {mix_first_chunk, "mix"},
    {mix_second_chunk, "mix"},
    {finish_mixed_chunk, "mix"},
    {attn_out_chunk, "attn_out"},
    {join_attention_chunk, "join"},
    {router_chunk, "router"},
    {experts_chunk, "experts"},
    {join_experts_chunk, "join"},
    {gate_chunk, "gate"},
    {up_chunk, "up"},
    {ffn_chunk, "ffn"},
    {down_chunk, "down"},
    {join_ffn_chunk, "join"},
    {activate_own_chunk, "act"},
    {round_hidden_chunk, "round"},
    {output_chunk, "output"},
    {cap_logits_chunk, "cap"},
};
static const struct {
    finish_fn fn;
    const char *name;
} finish_names[] = {
    {start_all, "start"},          {prepare_all, "prepare"},   {attend_all, "attend"},
    {round_attended_all, "round"}, {mix_all, "mix"},           {finish_mixed_all, "mix"},
    {join_attention_all, "join"},  {choose_experts, "choose"}, {join_experts_all, "join"},
    {join_ffn_all, "join"},        {gather_all, "gather"},     {activate_own_all, "act"},
    {round_hidden_all, "round"},   {gather_attended, "wait"},  {gather_proj, "wait"},
    {gather_hidden, "wait"},
};

/* What is not in the tables is what adapters add. */
static struct profile_names names_of(const struct crew_phase *p)
{
    struct profile_names n = {.chunks = p->chunk ? "adapter" : NULL,
                              .finish = p->finish ? "adapter" : NULL};
    for (size_t i = 0; i < sizeof(chunk_names) / sizeof(chunk_names[0]); i++)
        n.chunks = p->chunk == chunk_names[i].fn ? chunk_names[i].name : n.chunks;
    for (size_t i = 0; i < sizeof(finish_names) / sizeof(finish_names[0]); i++)
        n.finish = p->finish == finish_names[i].fn ? finish_names[i].name : n.finish;
    n.of_layer = p->chunk != start_chunk && p->finish != start_all && p->finish != gather_all &&
                 p->chunk != output_chunk && p->chunk != cap_logits_chunk;
    return n;
}

/* Plans the phases of a pass over these runs; returns their number, 0 if there are no tokens. */
static uint32_t plan_pass(struct decoder *d, const struct decoder_run *runs, uint32_t n_runs)
{
    lay_out(d, runs, n_runs);
    lay_out_adapters(d);
    d->n_gathered = 0;
    d->lost = false;
    if (d->n_tokens == 0)
        return 0;
    bool few = d->n_tokens <= PRODUCTS_FEW;
    const uint32_t members = crew_lane_size(d->lane),
                   most = members == 1 ? 1 : members * CHUNKS_EACH;
    uint32_t token_chunks = few ? 0 : d->n_tokens < most ? d->n_tokens : most;
    uint64_t keys = 0;
    for (uint32_t i = 0; i < n_runs; i++)
        keys += (uint64_t)(runs[i].pos0 + runs[i].n) * runs[i].n;
    bool small = few && (members == 1 || keys * d->c.n_heads < SMALL_ATTENTION);
    uint32_t n = 0;
    if (few)
        add_phase(d, &n, 0, 0, NULL, start_all);
    else
        add_phase(d, &n, 0, token_chunks, start_chunk, NULL);
    for (uint32_t i = d->first; i < d->end; i++)
        d->rows.n_parts ? row_phases(d, &n, i, token_chunks)
                        : layer_phases(d, &n, i, token_chunks, small);
    if (d->n_logits > 0 && decoder_has_head(d)) {
        add_phase(d, &n, 0, 0, NULL, gather_all);
        add_products(d, &n, 0, mat_bytes(d, &d->output), mat_tiles(d, &d->output), d->n_logits,
                     PRODUCT_FNS(output), NULL);
        if (d->c.logit_cap > 0.0f)
            add_phase(d, &n, 0, most, cap_logits_chunk, NULL);
    }
    if (d->profile)
        decoder_profile_pass(d, d->phases, n, names_of);
    return n;
}

static uint32_t next_pass(void *ctx, const struct crew_phase **phases)
{
    struct decoder *d = ctx;
    const struct decoder_run *runs;
    const uint32_t n_runs = d->next(d->next_ctx, &runs);
    *phases = d->phases;
    return n_runs ? plan_pass(d, runs, n_runs) : 0;
}

void decoder_forward(struct decoder *d, const struct decoder_run *runs, uint32_t n_runs)
{
    crew_run(d->lane, d, d->phases, plan_pass(d, runs, n_runs), NULL);
}

void decoder_passes(struct decoder *d, decoder_next_fn next, void *ctx)
{
    d->next = next;
    d->next_ctx = ctx;
    crew_run(d->lane, d, NULL, 0, next_pass);
}

const float *decoder_logits(const struct decoder *d, uint32_t i)
{
    return d->logits + (size_t)i * d->c.n_vocab;
}

const float *decoder_hidden(const struct decoder *d, uint32_t i)
{
    return d->x + (size_t)i * d->c.dim;
}
