/* encoder.c - loading: tiles the tensors of a model file, converts vectors, reserves scratch. */
#include "model/encoder.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/encoder_int.h"

/* ---- tensors ------------------------------------------------------------------------------- */

static int norm(struct plan *p, struct norm *n, int layer, const char *part, uint32_t dim,
                bool bias)
{
    int rc = plan_vector(p, &n->w, layer, part, "weight", dim, true);
    return rc < 0 ? rc : plan_vector(p, &n->b, layer, part, "bias", dim, bias);
}

static int queries_keys_values(struct plan *p, struct encoder *d, int i)
{
    static const char *const parts[] = {"attn_q", "attn_k", "attn_v"};
    const uint32_t dim = d->c.dim;
    struct encoder_layer *l = &d->layers[i];
    int rc = 0;
    if (d->n_qkv == 1)
        return plan_linear(p, &l->qkv[0], i, "attn_qkv", 3 * dim, dim, true);
    for (uint32_t j = 0; rc == 0 && j < 3; j++) {
        rc = plan_linear(p, &l->qkv[j], i, parts[j], dim, dim, true);
        l->qkv[j].out_at = j * dim;
    }
    return rc;
}

/* One half of blk.i.ffn_up, which holds two matrices: what is activated, then what it is multiplied
 * by. */
static int half_of_up(struct plan *p, struct encoder *d, struct linear *l, int i, bool second)
{
    const uint32_t ffn = d->c.ffn_dim;
    char name[96];
    snprintf(name, sizeof(name), "blk.%d.ffn_up.weight", i);
    const struct model_file_tensor *t = plan_claim(p, name);
    struct model_file_tensor *half = &d->slices[d->n_slices++];
    if (!t || t->n_dims != 2 || t->dims[0] != d->c.dim || t->dims[1] != 2 * (uint64_t)ffn ||
        !t->data)
        return err_set(p->e, SHOAL_EFORMAT, "tensor %s is missing or not %u x %u", name, 2 * ffn,
                       d->c.dim);
    *half = *t;
    half->dims[1] = ffn;
    half->n_bytes /= 2;
    half->data += second ? half->n_bytes : 0;
    int rc = weights_add(p->weights, half, &l->mat, p->e);
    if (rc == 0)
        rc = plan_vector(p, &l->bias, i, "ffn_up", "bias", 2 * ffn, false);
    if (l->bias && second)
        l->bias += ffn;
    return rc;
}

static int hidden_layer(struct plan *p, struct encoder *d, int i)
{
    struct encoder_layer *l = &d->layers[i];
    int rc;
    if (d->c.gated) {
        rc = half_of_up(p, d, &l->up, i, false);
        if (rc == 0)
            rc = half_of_up(p, d, &l->gate, i, true);
    } else {
        rc = plan_linear(p, &l->up, i, "ffn_up", d->c.ffn_dim, d->c.dim, true);
    }
    return rc < 0 ? rc : plan_linear(p, &l->down, i, "ffn_down", d->c.dim, d->c.ffn_dim, true);
}

/* The norms that follow the parts of layer i.  With norms first, the one after the hidden layer is
 * that before the next layer; layer 0 of a model without biases may have none. */
static int norms(struct plan *p, struct encoder *d, int i)
{
    const struct encoder_config *c = &d->c;
    struct encoder_layer *l = &d->layers[i];
    const bool last = (uint32_t)i + 1 == c->n_blocks;
    int rc;
    if (!c->norms_first) {
        rc = norm(p, &l->attn_norm, i, "attn_output_norm", c->dim, true);
        return rc < 0 ? rc : norm(p, &l->out_norm, i, "layer_output_norm", c->dim, true);
    }
    rc = norm(p, &l->attn_norm, i, "ffn_norm", c->dim, c->norm_bias);
    if (rc == 0 && i == 0)
        rc = plan_vector(p, &d->first_norm.w, 0, "attn_norm", "weight", c->dim, c->norm_bias);
    if (rc == 0 && i == 0)
        rc = plan_vector(p, &d->first_norm.b, 0, "attn_norm", "bias", c->dim, c->norm_bias);
    if (rc == 0)
        rc = norm(p, &l->out_norm, last ? -1 : i + 1, last ? "output_norm" : "attn_norm", c->dim,
                  c->norm_bias);
    return rc;
}

static int layer(struct plan *p, struct encoder *d, int i)
{
    struct encoder_layer *l = &d->layers[i];
    *l = (struct encoder_layer){.pos_k = {.mat = NO_MAT}, .pos_q = {.mat = NO_MAT}};
    l->qkv[1].mat = l->qkv[2].mat = l->gate.mat = NO_MAT;
    l->local = d->c.window && (uint32_t)i % d->c.global_every != 0;
    int rc = queries_keys_values(p, d, i);
    if (rc == 0)
        rc = plan_linear(p, &l->attn_out, i, "attn_output", d->c.dim, d->c.dim, true);
    if (rc == 0)
        rc = hidden_layer(p, d, i);
    return rc < 0 ? rc : norms(p, d, i);
}

/* Layers that have no tensors of their own use those of the last one that has. */
static void share_layers(struct encoder *d)
{
    const struct encoder_config *c = &d->c;
    for (uint32_t i = c->n_layers; i-- > 0;)
        d->layers[i] = d->layers[(uint64_t)i * c->n_blocks / c->n_layers];
}

static int position_table(struct plan *p, struct encoder *d)
{
    struct encoder_config *c = &d->c;
    uint32_t n_rows = 0;
    const bool required = c->places == ENCODER_PLACES_NONE || c->places == ENCODER_PLACES_BUCKETS;
    int rc = plan_table(p, &d->positions, "position_embd.weight", &n_rows, c->embd_dim, required);
    if (rc < 0 || !d->positions)
        return rc;
    if (n_rows < c->n_ctx)
        return err_set(p->e, SHOAL_EFORMAT,
                       "tensor position_embd.weight has %u rows, too few for %u tokens", n_rows,
                       c->n_ctx);
    /* RoBERTa's positions start after the padding index.  If the file kept the rows before it,
     * they are the surplus. */
    if (strcmp(c->arch, "roberta") == 0)
        c->pos0 = n_rows - c->n_ctx;
    return 0;
}

/* Patches, what stands before them, and the position of each. */
static int patches(struct plan *p, struct encoder *d)
{
    const struct encoder_config *c = &d->c;
    uint32_t n_rows = 0;
    int rc = plan_linear(p, &d->embd_proj, -1, "patch_embd", c->dim, c->embd_dim, true);
    if (rc == 0)
        rc = plan_vector(p, &d->class_embd, -1, "class_embd", "weight", c->dim, true);
    if (rc == 0)
        rc = plan_table(p, &d->positions, "position_embd.weight", &n_rows, c->dim, true);
    if (rc == 0 && n_rows != c->n_ctx)
        rc = err_set(p->e, SHOAL_EFORMAT,
                     "tensor position_embd.weight has %u rows, expected %u: one for each patch and "
                     "one for the image",
                     n_rows, c->n_ctx);
    return rc;
}

static int embeddings(struct plan *p, struct encoder *d)
{
    struct encoder_config *c = &d->c;
    d->embd = plan_claim(p, "token_embd.weight");
    if (!d->embd || d->embd->n_dims != 2 || d->embd->dims[0] != c->embd_dim ||
        d->embd->dims[1] > INT32_MAX)
        return err_set(p->e, SHOAL_EFORMAT, "tensor token_embd.weight is missing or not %u wide",
                       c->embd_dim);
    c->n_vocab = (uint32_t)d->embd->dims[1];
    int rc = position_table(p, d);
    if (rc == 0)
        rc = plan_table(p, &d->types, "token_types.weight", &c->n_types, c->embd_dim, false);
    if (rc == 0 && c->n_types > 256)
        rc = err_set(p->e, SHOAL_EUNSUPPORTED, "%u token types are not supported: at most 256",
                     c->n_types);
    if (rc == 0)
        rc = norm(p, &d->embd_norm, -1, "token_embd_norm", c->embd_dim, c->norm_bias);
    return rc < 0 ? rc
                  : plan_linear(p, &d->embd_proj, -1, "token_embd_proj", c->dim, c->embd_dim,
                                c->embd_dim != c->dim);
}

/* The layers between the last one of the encoder and its results. */
static int tops(struct plan *p, struct encoder *d)
{
    static const char *const names[] = {[ENCODER_TOP_CLS] = "cls",
                                        [ENCODER_TOP_CLS_OUTPUT] = "cls.output",
                                        [ENCODER_TOP_TAG_OUTPUT] = "tag.output"};
    int rc = 0;
    for (int i = 0; rc == 0 && i < ENCODER_N_TOPS; i++)
        rc = plan_linear(p, &d->top[i], -1, names[i], i == ENCODER_TOP_CLS ? d->c.dim : 0, d->c.dim,
                         false);
    if (rc == 0)
        rc = plan_vector(p, &d->cls_norm.w, -1, "cls.norm", "weight", d->c.dim, false);
    return rc < 0 ? rc : plan_vector(p, &d->cls_norm.b, -1, "cls.norm", "bias", d->c.dim, false);
}

static int plan_tensors(struct encoder *d, struct err *e)
{
    struct plan p;
    int rc = plan_init(&p, d->file, &d->weights, &d->vectors, e);
    d->layers = mem_zalloc_n(d->c.n_layers, sizeof(*d->layers));
    d->slices = mem_zalloc_n(2 * (size_t)d->c.n_blocks, sizeof(*d->slices));
    if (rc == 0 && (!d->layers || !d->slices))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the tensor plan");
    d->n_qkv = model_file_find_tensor(d->file, "blk.0.attn_qkv.weight") ? 1 : 3;
    if (rc == 0)
        rc = d->c.picture.size ? patches(&p, d) : embeddings(&p, d);
    for (uint32_t i = 0; rc == 0 && i < d->c.n_blocks; i++)
        rc = layer(&p, d, (int)i);
    if (rc == 0)
        rc = encoder_places_plan(&p, d);
    if (rc == 0)
        rc = tops(&p, d);
    if (rc == 0) {
        plan_claim_prefix(&p, "tag.transitions.");
        plan_claim_prefix(&p, "sentence_dense."); /* heads_sentence.c */
        rc = plan_check_all_claimed(&p, d->c.arch);
    }
    plan_fini(&p);
    return rc;
}

static void which_inputs_are_quantized(struct encoder *d)
{
    d->in_narrow = plan_linear_wants(&d->weights, &d->embd_proj, d->in_narrow);
    for (uint32_t i = 0; i < d->c.n_blocks; i++) {
        const struct encoder_layer *l = &d->layers[i];
        for (uint32_t j = 0; j < 3; j++)
            d->in_x = plan_linear_wants(&d->weights, &l->qkv[j], d->in_x);
        d->in_x = plan_linear_wants(&d->weights, &l->up, d->in_x);
        d->in_x = plan_linear_wants(&d->weights, &l->gate, d->in_x);
        d->in_att = plan_linear_wants(&d->weights, &l->attn_out, d->in_att);
        d->in_hidden = plan_linear_wants(&d->weights, &l->down, d->in_hidden);
    }
}

/* ---- create -------------------------------------------------------------------------------- */

static int configure(struct encoder *d, const struct model_file *file, const struct encoder_opts *o,
                     struct err *e)
{
    d->file = file;
    int rc = encoder_config_read(&d->c, file, e);
    if (rc < 0)
        return rc;
    d->k = o->kernels ? o->kernels : kern_select(NULL, e);
    if (!d->k)
        return e ? e->code : SHOAL_EUNSUPPORTED;
    d->max_seqs = o->max_seqs ? o->max_seqs : 64;
    d->max_tokens = o->max_tokens       ? o->max_tokens
                    : d->c.picture.size ? 4 * d->c.n_ctx
                    : d->c.n_ctx > 512  ? d->c.n_ctx
                                        : 512;
    if (d->max_tokens > 1u << 20 || d->max_seqs > 1u << 16)
        return err_set(e, SHOAL_EINVAL, "passes of %u tokens and %u sequences", d->max_tokens,
                       d->max_seqs);
    weights_init(&d->weights, &d->k->layout);
    d->weights.round = o->int8 ? WEIGHTS_WIDE : WEIGHTS_AS_STORED;
    rc = plan_tensors(d, e);
    if (rc == 0 && d->c.picture.size && d->c.n_ctx > d->max_tokens)
        return err_set(e, SHOAL_EINVAL, "passes of %u tokens do not hold an image of %u",
                       d->max_tokens, d->c.n_ctx);
    if (rc == 0 && d->c.n_ctx > d->max_tokens) /* only after the tables were checked against it */
        d->c.n_ctx = d->max_tokens;
    return rc;
}

int encoder_create(struct encoder **out, const struct model_file *file, const char *path,
                   const struct encoder_opts *o, struct err *e)
{
    static const struct encoder_opts defaults;
    o = o ? o : &defaults;
    *out = NULL;
    struct encoder *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "encoder");
    int rc = configure(d, file, o, e);
    if (rc == 0)
        rc = crew_lane_create(&d->lane, o->crew, o->n_threads ? o->n_threads : crew_cores(), e);
    if (rc == 0) {
        encoder_lay_out(d, NULL, crew_lane_size(d->lane));
        d->scratch = mem_pages(d->scratch_bytes);
        rc = d->scratch ? 0
                        : err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of scratch",
                                  d->scratch_bytes);
    }
    if (rc == 0) {
        encoder_lay_out(d, d->scratch, crew_lane_size(d->lane));
        which_inputs_are_quantized(d);
        rc =
            weights_load(&d->weights, path, o->cache_dir, d->lane, o->progress, o->progress_ctx, e);
        if (rc == 0)
            rc = encoder_places_make(d, e);
        share_layers(d);
        model_file_trim(file); /* from now on only rows of the embedding are read */
    }
    if (rc < 0) {
        encoder_destroy(d);
        return rc;
    }
    *out = d;
    return 0;
}

int encoder_measure(struct encoder_sizes *out, const struct model_file *file,
                    const struct encoder_opts *o, struct err *e)
{
    struct encoder *d = mem_zalloc(sizeof(*d));
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "encoder");
    int rc = configure(d, file, o, e);
    if (rc == 0) {
        encoder_lay_out(d, NULL, o->n_threads ? o->n_threads : crew_cores());
        d->places.owned_bytes = encoder_places_bytes(d);
        *out = encoder_sizes(d);
    }
    encoder_destroy(d);
    return rc;
}

void encoder_destroy(struct encoder *d)
{
    if (!d)
        return;
    crew_lane_destroy(d->lane);
    weights_fini(&d->weights);
    plan_small_tensors_fini(&d->vectors);
    encoder_places_fini(d);
    mem_free(d->layers);
    mem_free(d->slices);
    if (d->scratch)
        mem_pages_free(d->scratch, d->scratch_bytes);
    mem_free(d);
}

const struct encoder_config *encoder_config(const struct encoder *d)
{
    return &d->c;
}

const struct kern_ops *encoder_kernels(const struct encoder *d)
{
    return d->k;
}

uint32_t encoder_n_threads(const struct encoder *d)
{
    return crew_lane_size(d->lane);
}

struct crew_lane *encoder_lane(const struct encoder *d)
{
    return d->lane;
}

struct encoder_sizes encoder_sizes(const struct encoder *d)
{
    return (struct encoder_sizes){d->weights.data_bytes, d->scratch_bytes + d->places.owned_bytes,
                                  d->c.n_ctx, d->max_tokens, d->max_seqs};
}

bool encoder_from_cache(const struct encoder *d)
{
    return d->weights.from_cache;
}

const struct weights *encoder_weights(const struct encoder *d)
{
    return &d->weights;
}
