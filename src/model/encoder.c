/* encoder.c - loading: tiles the tensors of a model file, converts vectors, reserves scratch. */
#include "model/encoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/encoder_int.h"

static const char *const archs[] = {"bert", "distilbert", "roberta"};
#define N_ARCHS (sizeof(archs) / sizeof(archs[0]))

static const char *arch_of(const struct model_file *file, struct str *name)
{
    *name = (struct str){"", 0};
    if (!model_file_get_str(file, "general.architecture", name))
        return NULL;
    for (size_t i = 0; i < N_ARCHS; i++)
        if (strlen(archs[i]) == name->n && memcmp(archs[i], name->p, name->n) == 0)
            return archs[i];
    return NULL;
}

bool encoder_knows(const struct model_file *file)
{
    struct str name;
    return arch_of(file, &name) != NULL;
}

/* ---- configuration ------------------------------------------------------------------------- */

static int read_u32(const struct encoder_config *c, const struct model_file *file, const char *key,
                    uint32_t min, uint32_t max, uint32_t *out, struct err *e)
{
    char name[96];
    uint64_t v;
    snprintf(name, sizeof(name), "%s.%s", c->arch, key);
    if (!model_file_get_u64(file, name, &v) || v < min || v > max)
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is missing or not in %u to %u", name, min,
                       max);
    *out = (uint32_t)v;
    return 0;
}

static int read_act(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    static const struct {
        const char *name;
        enum encoder_act act;
    } acts[] = {
        {"gelu", ENCODER_ACT_GELU_ERF},
        {"gelu_new", ENCODER_ACT_GELU_TANH},
        {"gelu_pytorch_tanh", ENCODER_ACT_GELU_TANH},
        {"relu", ENCODER_ACT_RELU},
    };
    char key[96];
    struct str s;
    snprintf(key, sizeof(key), "%s.activation", c->arch);
    c->act = ENCODER_ACT_GELU_ERF;
    if (!model_file_get_str(file, key, &s))
        return 0;
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        if (strlen(acts[i].name) == s.n && memcmp(acts[i].name, s.p, s.n) == 0) {
            c->act = acts[i].act;
            return 0;
        }
    return err_set(e, SHOAL_EUNSUPPORTED, "%s \"%.*s\"", key, (int)(s.n < 64 ? s.n : 64), s.p);
}

static int read_config(struct encoder_config *c, const struct model_file *file, struct err *e)
{
    struct str name;
    c->arch = arch_of(file, &name);
    if (!c->arch)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "architecture \"%.*s\" (encoders: bert, distilbert, roberta)",
                       (int)(name.n < 64 ? name.n : 64), name.p);
    int rc;
    if ((rc = read_u32(c, file, "context_length", 1, 1u << 20, &c->n_ctx, e)) < 0 ||
        (rc = read_u32(c, file, "embedding_length", 1, 65536, &c->dim, e)) < 0 ||
        (rc = read_u32(c, file, "block_count", 0, 1024, &c->n_layers, e)) < 0 ||
        (rc = read_u32(c, file, "attention.head_count", 1, 1024, &c->n_heads, e)) < 0 ||
        (rc = read_u32(c, file, "feed_forward_length", 1, 1u << 20, &c->ffn_dim, e)) < 0 ||
        (rc = read_act(c, file, e)) < 0)
        return rc;
    if (c->dim % c->n_heads != 0)
        return err_set(e, SHOAL_EFORMAT, "%u heads do not divide a width of %u", c->n_heads,
                       c->dim);
    c->head_dim = c->dim / c->n_heads;
    char key[96];
    double eps = 1e-12;
    snprintf(key, sizeof(key), "%s.attention.layer_norm_epsilon", c->arch);
    if (model_file_find(file, key) &&
        (!model_file_get_f64(file, key, &eps) || !(eps >= 0 && eps < 1)))
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is not a small number", key);
    c->norm_eps = (float)eps;
    return 0;
}

/* ---- tensors ------------------------------------------------------------------------------- */

static int norm(struct plan *p, struct norm *n, int layer, const char *part, uint32_t dim)
{
    int rc = plan_vector(p, &n->w, layer, part, "weight", dim, true);
    return rc < 0 ? rc : plan_vector(p, &n->b, layer, part, "bias", dim, true);
}

static int layer(struct plan *p, struct encoder *d, int i)
{
    static const char *const qkv[] = {"attn_q", "attn_k", "attn_v"};
    const struct encoder_config *c = &d->c;
    struct encoder_layer *l = &d->layers[i];
    int rc = 0;
    for (uint32_t j = 0; rc == 0 && j < 3; j++) {
        rc = plan_linear(p, &l->qkv[j], i, qkv[j], c->dim, c->dim, true);
        l->qkv[j].out_at = j * c->dim;
    }
    if (rc == 0)
        rc = plan_linear(p, &l->attn_out, i, "attn_output", c->dim, c->dim, true);
    if (rc == 0)
        rc = norm(p, &l->attn_norm, i, "attn_output_norm", c->dim);
    if (rc == 0)
        rc = plan_linear(p, &l->up, i, "ffn_up", c->ffn_dim, c->dim, true);
    if (rc == 0)
        rc = plan_linear(p, &l->down, i, "ffn_down", c->dim, c->ffn_dim, true);
    if (rc == 0)
        rc = norm(p, &l->out_norm, i, "layer_output_norm", c->dim);
    return rc;
}

static int embeddings(struct plan *p, struct encoder *d)
{
    struct encoder_config *c = &d->c;
    uint32_t n_rows;
    d->embd = plan_claim(p, "token_embd.weight");
    if (!d->embd || d->embd->n_dims != 2 || d->embd->dims[0] != c->dim ||
        d->embd->dims[1] > INT32_MAX)
        return err_set(p->e, SHOAL_EFORMAT, "tensor token_embd.weight is missing or not %u wide",
                       c->dim);
    c->n_vocab = (uint32_t)d->embd->dims[1];
    int rc = plan_table(p, &d->positions, "position_embd.weight", &n_rows, c->dim, true);
    if (rc < 0)
        return rc;
    if (n_rows < c->n_ctx)
        return err_set(p->e, SHOAL_EFORMAT,
                       "tensor position_embd.weight has %u rows, too few for %u tokens", n_rows,
                       c->n_ctx);
    /* RoBERTa's positions start after the padding index.  If the file kept the rows before it,
     * they are the surplus. */
    if (strcmp(c->arch, "roberta") == 0)
        c->pos0 = n_rows - c->n_ctx;
    rc = plan_table(p, &d->types, "token_types.weight", &c->n_types, c->dim, false);
    if (rc == 0 && c->n_types > 256)
        rc = err_set(p->e, SHOAL_EUNSUPPORTED, "%u token types are not supported: at most 256",
                     c->n_types);
    return rc < 0 ? rc : norm(p, &d->embd_norm, -1, "token_embd_norm", c->dim);
}

static int plan_tensors(struct encoder *d, struct err *e)
{
    static const char *const tops[] = {[ENCODER_TOP_CLS] = "cls",
                                       [ENCODER_TOP_CLS_OUTPUT] = "cls.output",
                                       [ENCODER_TOP_TAG_OUTPUT] = "tag.output"};
    struct plan p;
    int rc = plan_init(&p, d->file, &d->weights, &d->vectors, e);
    d->layers = mem_zalloc_n(d->c.n_layers, sizeof(*d->layers));
    if (rc == 0 && !d->layers)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the tensor plan");
    if (rc == 0)
        rc = embeddings(&p, d);
    for (uint32_t i = 0; rc == 0 && i < d->c.n_layers; i++)
        rc = layer(&p, d, (int)i);
    for (int i = 0; rc == 0 && i < ENCODER_N_TOPS; i++)
        rc = plan_linear(&p, &d->top[i], -1, tops[i], i == ENCODER_TOP_CLS ? d->c.dim : 0, d->c.dim,
                         false);
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
    for (uint32_t i = 0; i < d->c.n_layers; i++) {
        const struct encoder_layer *l = &d->layers[i];
        for (uint32_t j = 0; j < 3; j++)
            d->in_x = plan_linear_wants(&d->weights, &l->qkv[j], d->in_x);
        d->in_x = plan_linear_wants(&d->weights, &l->up, d->in_x);
        d->in_att = plan_linear_wants(&d->weights, &l->attn_out, d->in_att);
        d->in_hidden = plan_linear_wants(&d->weights, &l->down, d->in_hidden);
    }
}

/* ---- create -------------------------------------------------------------------------------- */

static int configure(struct encoder *d, const struct model_file *file, const struct encoder_opts *o,
                     struct err *e)
{
    d->file = file;
    int rc = read_config(&d->c, file, e);
    if (rc < 0)
        return rc;
    d->k = o->kernels ? o->kernels : kern_select(NULL, e);
    if (!d->k)
        return e ? e->code : SHOAL_EUNSUPPORTED;
    d->max_seqs = o->max_seqs ? o->max_seqs : 64;
    d->max_tokens = o->max_tokens ? o->max_tokens : d->c.n_ctx > 512 ? d->c.n_ctx : 512;
    if (d->max_tokens > 1u << 20 || d->max_seqs > 1u << 16)
        return err_set(e, SHOAL_EINVAL, "passes of %u tokens and %u sequences", d->max_tokens,
                       d->max_seqs);
    weights_init(&d->weights, &d->k->layout);
    d->weights.round = o->int8 ? WEIGHTS_WIDE : WEIGHTS_AS_STORED;
    rc = plan_tensors(d, e);
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
    mem_free(d->layers);
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
    return (struct encoder_sizes){d->weights.data_bytes, d->scratch_bytes, d->c.n_ctx,
                                  d->max_tokens, d->max_seqs};
}

bool encoder_from_cache(const struct encoder *d)
{
    return d->weights.from_cache;
}

const struct weights *encoder_weights(const struct encoder *d)
{
    return &d->weights;
}
