/* decoder.c - loading: from a GGUF's tensors to packed weights, vectors and reserved scratch. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/decoder_int.h"

/* A plan collects what the file gives and what is still unclaimed: a tensor that no one asked for
 * means an architecture we would compute wrongly. */
struct plan {
    struct decoder *d;
    bool *claimed; /* per tensor of the file */
    struct err *e;
};

static const struct gguf_tensor *claim(struct plan *p, const char *name)
{
    const struct gguf_tensor *t = gguf_find_tensor(p->d->g, name);
    if (t)
        p->claimed[t - p->d->g->tensors] = true;
    return t;
}

static void name_of(char *out, size_t cap, int layer, const char *part, const char *kind)
{
    if (layer < 0)
        snprintf(out, cap, "%s.%s", part, kind);
    else
        snprintf(out, cap, "blk.%d.%s.%s", layer, part, kind);
}

/* A vector of n floats, NULL where the file has none and it is not required. */
static int vector(struct plan *p, const float **out, int layer, const char *part, const char *kind,
                  uint32_t n, bool required)
{
    struct decoder *d = p->d;
    char name[96];
    name_of(name, sizeof(name), layer, part, kind);
    const struct gguf_tensor *t = claim(p, name);
    *out = NULL;
    if (!t)
        return required ? err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name) : 0;
    if (t->n_dims != 1 || t->dims[0] != n)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s has %llu values, expected %u", name,
                       (unsigned long long)t->dims[0], n);
    float **bigger = mem_realloc(d->vectors, (d->n_vectors + 1) * sizeof(*bigger));
    if (bigger)
        d->vectors = bigger;
    float *v = bigger ? mem_aligned(((size_t)n + 16) * sizeof(*v)) : NULL;
    if (!v)
        return err_set(p->e, SHOAL_ENOMEM, "tensor %s", name);
    quant_to_f32(t->type, t->data, v, n);
    d->vectors[d->n_vectors++] = v;
    *out = v;
    return 0;
}

static int linear(struct plan *p, struct linear *l, int layer, const char *part, uint32_t n_rows,
                  uint32_t n_cols, bool required)
{
    char name[96];
    name_of(name, sizeof(name), layer, part, "weight");
    const struct gguf_tensor *t = claim(p, name);
    *l = (struct linear){.mat = NO_MAT};
    if (!t)
        return required ? err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing", name) : 0;
    if (t->n_dims != 2 || t->dims[0] != n_cols || t->dims[1] != n_rows)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is %llu x %llu, expected %u x %u", name,
                       (unsigned long long)t->dims[1], (unsigned long long)t->dims[0], n_rows,
                       n_cols);
    int rc = weights_add(&p->d->weights, t, &l->mat, p->e);
    return rc < 0 ? rc : vector(p, &l->bias, layer, part, "bias", n_rows, false);
}

static int norm(struct plan *p, const float **w, const float **b, int layer, const char *part)
{
    const struct decoder_config *c = &p->d->c;
    int rc = vector(p, w, layer, part, "weight", c->dim, true);
    if (rc == 0 && c->layer_norm)
        rc = vector(p, b, layer, part, "bias", c->dim, false);
    return rc;
}

static int attention(struct plan *p, struct layer *l, int i)
{
    const struct decoder_config *c = &p->d->c;
    uint32_t q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    int rc = linear(p, &l->qkv[0], i, "attn_qkv", q + 2 * kv, c->dim, false);
    l->n_qkv = 1;
    if (rc == 0 && l->qkv[0].mat == NO_MAT) {
        l->n_qkv = 3;
        rc = linear(p, &l->qkv[0], i, "attn_q", q, c->dim, true);
        if (rc == 0)
            rc = linear(p, &l->qkv[1], i, "attn_k", kv, c->dim, true);
        if (rc == 0)
            rc = linear(p, &l->qkv[2], i, "attn_v", kv, c->dim, true);
        l->qkv[1].out_at = q;
        l->qkv[2].out_at = q + kv;
    }
    if (rc == 0)
        rc = vector(p, &l->q_norm, i, "attn_q_norm", "weight", c->head_dim, false);
    if (rc == 0)
        rc = vector(p, &l->k_norm, i, "attn_k_norm", "weight", c->head_dim, false);
    if (rc == 0)
        rc = linear(p, &l->attn_out, i, "attn_output", c->dim, q, true);
    return rc;
}

static int layer(struct plan *p, int i)
{
    const struct decoder_config *c = &p->d->c;
    struct layer *l = &p->d->layers[i];
    int rc = norm(p, &l->attn_norm_w, &l->attn_norm_b, i, "attn_norm");
    if (rc == 0)
        rc = attention(p, l, i);
    if (rc == 0)
        rc = vector(p, &l->post_attn_norm, i, "post_attention_norm", "weight", c->dim, false);
    if (rc == 0 && !c->parallel)
        rc = norm(p, &l->ffn_norm_w, &l->ffn_norm_b, i, "ffn_norm");
    l->gate.mat = NO_MAT;
    if (rc == 0 && c->gated)
        rc = linear(p, &l->gate, i, "ffn_gate", c->ffn_dim, c->dim, true);
    if (rc == 0)
        rc = linear(p, &l->up, i, "ffn_up", c->ffn_dim, c->dim, true);
    if (rc == 0)
        rc = linear(p, &l->down, i, "ffn_down", c->dim, c->ffn_dim, true);
    if (rc == 0)
        rc = vector(p, &l->post_ffn_norm, i, "post_ffw_norm", "weight", c->dim, false);
    bool global =
        c->window == 0 || (c->window_pattern && (uint32_t)(i + 1) % c->window_pattern == 0);
    l->window = global ? 0 : c->window;
    l->local_rope = !global && c->rope_base_local > 0.0f;
    return rc;
}

/* Frequencies of the rotation; rope_freqs.weight divides them (Llama 3's scaling). */
static int frequencies(struct plan *p)
{
    struct decoder *d = p->d;
    const uint32_t half = d->c.rope_dim / 2;
    const float *factors = NULL;
    int rc = half ? vector(p, &factors, -1, "rope_freqs", "weight", half, false) : 0;
    for (int which = 0; rc == 0 && half && which < 2; which++) {
        bool local = which == 1;
        double base =
            (double)(local && d->c.rope_base_local > 0.0f ? d->c.rope_base_local : d->c.rope_base);
        d->inv_freq[which] = mem_zalloc_n(half, sizeof(float));
        if (!d->inv_freq[which])
            return err_set(p->e, SHOAL_ENOMEM, "rotation table");
        for (uint32_t i = 0; i < half; i++) {
            double f = pow(base, -2.0 * i / d->c.rope_dim);
            if (!local)
                f *= (double)d->c.rope_scale / (double)(factors ? factors[i] : 1.0f);
            d->inv_freq[which][i] = (float)f;
        }
    }
    return rc;
}

static int embeddings(struct plan *p)
{
    struct decoder *d = p->d;
    d->embd = claim(p, "token_embd.weight");
    if (!d->embd || d->embd->n_dims != 2 || d->embd->dims[0] != d->c.dim ||
        d->embd->dims[1] > INT32_MAX)
        return err_set(p->e, SHOAL_EFORMAT, "tensor token_embd.weight is missing or not %u wide",
                       d->c.dim);
    d->c.n_vocab = (uint32_t)d->embd->dims[1];
    if (d->c.learned_positions) {
        d->pos_embd = claim(p, "position_embd.weight");
        if (!d->pos_embd || d->pos_embd->n_dims != 2 || d->pos_embd->dims[0] != d->c.dim ||
            d->pos_embd->dims[1] < d->c.n_ctx_train)
            return err_set(p->e, SHOAL_EFORMAT,
                           "tensor position_embd.weight is missing or not %u x %u",
                           d->c.n_ctx_train, d->c.dim);
    }
    int rc = linear(p, &d->output, -1, "output", d->c.n_vocab, d->c.dim, false);
    if (rc == 0 && d->output.mat == NO_MAT) /* tied to the embedding */
        rc = weights_add(&d->weights, d->embd, &d->output.mat, p->e);
    return rc;
}

static int plan_tensors(struct decoder *d, struct err *e)
{
    struct plan p = {.d = d, .e = e};
    p.claimed = mem_zalloc_n(d->g->n_tensors, sizeof(*p.claimed));
    d->layers = mem_zalloc_n(d->c.n_layers, sizeof(*d->layers));
    int rc = p.claimed && d->layers ? 0 : err_set(e, SHOAL_ENOMEM, "plan of the model");
    for (uint32_t i = 0; rc == 0 && i < d->c.n_layers; i++)
        rc = layer(&p, (int)i);
    if (rc == 0)
        rc = norm(&p, &d->final_norm_w, &d->final_norm_b, -1, "output_norm");
    if (rc == 0)
        rc = embeddings(&p);
    if (rc == 0)
        rc = frequencies(&p);
    for (size_t i = 0; rc == 0 && i < d->g->n_tensors; i++)
        if (!p.claimed[i])
            rc = err_set(e, SHOAL_EUNSUPPORTED,
                         "tensor %.*s is not part of the %s architecture as it is known here",
                         (int)d->g->tensors[i].name.n, d->g->tensors[i].name.p, d->c.arch);
    mem_free(p.claimed);
    return rc;
}

/* ---- scratch ------------------------------------------------------------------------------- */

/* Takes n bytes from the block; with base NULL it only counts. */
static void *take(struct decoder *d, uint8_t *base, size_t n)
{
    void *at = base ? base + d->scratch_bytes : NULL;
    d->scratch_bytes += (n + 127) / 64 * 64; /* 64 bytes apart: over-reads of vectors stay inside */
    return at;
}

static void take_act(struct decoder *d, uint8_t *base, struct kern_act *a, float *x, uint32_t n)
{
    size_t b = d->max_batch;
    *a = (struct kern_act){.x = x, .ld = n, .n_cols = n};
    a->q = take(d, base, b * n);
    a->scale = take(d, base, b * (n / 32) * sizeof(float));
    a->sums = take(d, base, b * (n / 16) * sizeof(int32_t));
}

static void carve(struct decoder *d, uint8_t *base)
{
    const struct decoder_config *c = &d->c;
    const size_t b = d->max_batch, f = sizeof(float);
    const uint32_t heads = c->n_heads * c->head_dim, members = crew_size(d->crew);
    d->scratch_bytes = 0;
    d->x = take(d, base, b * c->dim * f);
    d->xn = take(d, base, b * c->dim * f);
    d->qkv = take(d, base, b * d->qkv_dim * f);
    d->att = take(d, base, b * heads * f);
    d->proj = take(d, base, b * c->dim * f);
    d->keep = c->parallel ? take(d, base, b * c->dim * f) : NULL;
    d->hidden = take(d, base, b * c->ffn_dim * f);
    d->hidden_up = c->gated ? take(d, base, b * c->ffn_dim * f) : NULL;
    d->rope_cs[0] = take(d, base, b * c->rope_dim * f);
    d->rope_cs[1] = take(d, base, b * c->rope_dim * f);
    d->logits = take(d, base, (size_t)d->max_logits * c->n_vocab * f);
    take_act(d, base, &d->act_x, d->xn, c->dim);
    take_act(d, base, &d->act_att, d->att, heads);
    take_act(d, base, &d->act_hidden, d->hidden, c->ffn_dim);
    d->attn_scratch = take(d, base, members * sizeof(float *));
    for (uint32_t i = 0; i < members; i++) {
        float *s = take(d, base, kern_attn_scratch(d->n_ctx) * f);
        if (base)
            d->attn_scratch[i] = s;
    }
    /* a chunk has at most its member's share of the rows, and a tile more */
    uint32_t most_rows = c->ffn_dim > d->qkv_dim ? c->ffn_dim : d->qkv_dim;
    most_rows = c->n_vocab > most_rows ? c->n_vocab : most_rows;
    d->stage_rows = members > 1 ? most_rows / members + 64 : 0;
    d->stage = take(d, base, members * sizeof(float *));
    for (uint32_t i = 0; i < members; i++) {
        float *s = take(d, base, (size_t)2 * FEW_TOKENS * d->stage_rows * f);
        if (base)
            d->stage[i] = s;
    }
    d->units = take(d, base, c->n_kv_heads * (2 * b) * sizeof(*d->units));
    d->phases = take(d, base, (c->n_layers * 8 + 8) * sizeof(*d->phases));
    d->run_of = take(d, base, b * sizeof(uint32_t));
    d->run_first = take(d, base, b * sizeof(uint32_t));
    d->logit_token = take(d, base, d->max_logits * sizeof(uint32_t));
}

static bool is_int(const struct decoder *d, const struct linear *l)
{
    return l->mat != NO_MAT && !kern_fmt_is_float(d->weights.mats[l->mat].fmt);
}

static void which_inputs_are_quantized(struct decoder *d)
{
    for (uint32_t i = 0; i < d->c.n_layers; i++) {
        const struct layer *l = &d->layers[i];
        for (uint32_t j = 0; j < l->n_qkv; j++)
            d->int_x = d->int_x || is_int(d, &l->qkv[j]);
        d->int_x = d->int_x || is_int(d, &l->gate) || is_int(d, &l->up);
        d->int_att = d->int_att || is_int(d, &l->attn_out);
        d->int_hidden = d->int_hidden || is_int(d, &l->down);
    }
    d->int_x = d->int_x || is_int(d, &d->output);
}

/* ---- create -------------------------------------------------------------------------------- */

static uint32_t cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 64 ? 64 : (uint32_t)n;
}

static int configure(struct decoder *d, const struct gguf *g, const struct decoder_opts *o,
                     struct err *e)
{
    struct gguf_str name;
    if (!gguf_get_str(g, "general.architecture", &name))
        return err_set(e, SHOAL_EFORMAT, "metadata key general.architecture is missing");
    const struct arch *a = arch_find(name.p, name.n);
    if (!a) {
        char known[128];
        arch_names(known, sizeof(known));
        return err_set(e, SHOAL_EUNSUPPORTED, "architecture \"%.*s\" (known: %s)",
                       (int)(name.n < 64 ? name.n : 64), name.p, known);
    }
    d->g = g;
    d->c.arch = a->name;
    int rc = a->configure(&d->c, g, e);
    if (rc < 0)
        return rc;
    d->k = o->kernels ? o->kernels : kern_select(NULL, e);
    if (!d->k)
        return e ? e->code : SHOAL_EUNSUPPORTED;
    uint32_t own = d->c.n_ctx_train;
    d->n_ctx = o->n_ctx ? o->n_ctx : own < 4096 ? own : 4096;
    if (d->c.learned_positions && d->n_ctx > own)
        return err_set(e, SHOAL_ELIMIT, "context of %u, the model has positions for %u", d->n_ctx,
                       own);
    if (d->n_ctx > 1u << 20)
        return err_set(e, SHOAL_ELIMIT, "context of %u (at most %u)", d->n_ctx, 1u << 20);
    d->max_batch = o->max_batch ? o->max_batch : 128;
    d->max_logits = o->max_logits ? o->max_logits : 1;
    if (d->max_batch > 4096 || d->max_logits > d->max_batch)
        return err_set(e, SHOAL_EINVAL, "batch of %u tokens with %u rows of logits", d->max_batch,
                       d->max_logits);
    d->kv_kind = o->kv_kind;
    d->qkv_dim = (d->c.n_heads + 2 * d->c.n_kv_heads) * d->c.head_dim;
    d->kv_head_bytes = (kern_kv_head_bytes(d->kv_kind, d->c.head_dim) + 63) / 64 * 64;
    d->kv_page_bytes = d->kv_head_bytes * d->c.n_kv_heads * d->c.n_layers;
    weights_init(&d->weights, &d->k->layout);
    return 0;
}

int decoder_create(struct decoder **out, const struct gguf *g, const char *path,
                   const struct decoder_opts *o, struct err *e)
{
    static const struct decoder_opts defaults;
    o = o ? o : &defaults;
    *out = NULL;
    struct decoder *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "decoder");
    int rc = configure(d, g, o, e);
    if (rc == 0)
        rc = plan_tensors(d, e);
    if (rc == 0)
        rc = crew_create(&d->crew, o->n_threads ? o->n_threads : cores(), e);
    if (rc == 0) {
        d->max_threads = crew_size(d->crew);
        carve(d, NULL);
        d->scratch = mem_pages(d->scratch_bytes);
        rc = d->scratch ? 0
                        : err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of scratch",
                                  d->scratch_bytes);
    }
    if (rc == 0) {
        carve(d, d->scratch);
        which_inputs_are_quantized(d);
        rc =
            weights_load(&d->weights, path, o->cache_dir, d->crew, o->progress, o->progress_ctx, e);
        gguf_trim(g); /* from here on only rows of the embedding are read */
    }
    if (rc < 0) {
        decoder_destroy(d);
        return rc;
    }
    *out = d;
    return 0;
}

int decoder_measure(struct decoder_sizes *out, const struct gguf *g, const struct decoder_opts *o,
                    struct err *e)
{
    struct decoder *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "decoder");
    int rc = configure(d, g, o, e);
    if (rc == 0)
        rc = plan_tensors(d, e);
    if (rc == 0)
        rc = crew_create(&d->crew, 1, e);
    if (rc == 0) {
        carve(d, NULL);
        /* attention scratch is per thread */
        size_t more = (o->n_threads ? o->n_threads : cores()) - 1;
        d->scratch_bytes += more * kern_attn_scratch(d->n_ctx) * sizeof(float);
        *out = decoder_sizes(d);
    }
    decoder_destroy(d);
    return rc;
}

void decoder_destroy(struct decoder *d)
{
    if (!d)
        return;
    crew_destroy(d->crew);
    weights_fini(&d->weights);
    for (uint32_t i = 0; i < d->n_vectors; i++)
        mem_free(d->vectors[i]);
    mem_free(d->vectors);
    mem_free(d->layers);
    mem_free(d->inv_freq[0]);
    mem_free(d->inv_freq[1]);
    mem_pages_free(d->scratch, d->scratch_bytes);
    mem_free(d);
}

const struct decoder_config *decoder_config(const struct decoder *d)
{
    return &d->c;
}

uint32_t decoder_n_ctx(const struct decoder *d)
{
    return d->n_ctx;
}

uint32_t decoder_max_batch(const struct decoder *d)
{
    return d->max_batch;
}

uint32_t decoder_max_logits(const struct decoder *d)
{
    return d->max_logits;
}

const struct kern_ops *decoder_kernels(const struct decoder *d)
{
    return d->k;
}

uint32_t decoder_n_threads(const struct decoder *d)
{
    return crew_size(d->crew);
}

struct decoder_sizes decoder_sizes(const struct decoder *d)
{
    return (struct decoder_sizes){d->weights.data_bytes, d->scratch_bytes, d->kv_page_bytes,
                                  d->n_ctx};
}

bool decoder_from_cache(const struct decoder *d)
{
    return d->weights.from_cache;
}

size_t decoder_kv_page_bytes(const struct decoder *d)
{
    return d->kv_page_bytes;
}

void decoder_set_kv(struct decoder *d, uint8_t *kv)
{
    d->kv = kv;
}

void decoder_watch(struct decoder *d, decoder_watch_fn fn, void *ctx)
{
    d->watch = fn;
    d->watch_ctx = ctx;
}

int decoder_set_threads(struct decoder *d, uint32_t n_threads, struct err *e)
{
    struct crew *crew;
    if (n_threads == 0 || n_threads > d->max_threads)
        return err_set(e, SHOAL_EINVAL, "%u threads (1 to %u)", n_threads, d->max_threads);
    int rc = crew_create(&crew, n_threads, e);
    if (rc < 0)
        return rc;
    crew_destroy(d->crew);
    d->crew = crew;
    return 0;
}
