/* t5.c - loading: tiles the tensors of a model file, converts vectors, reserves scratch. */
#include "model/t5.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch/arch.h"
#include "model/t5_int.h"

#define USUAL_SECONDS 30u /* of a sound */

static bool is_arch(const struct model_file *file, const char *name)
{
    struct str s;
    return model_file_get_str(file, "general.architecture", &s) && s.n == strlen(name) &&
           memcmp(s.p, name, s.n) == 0;
}

static const struct relative {
    const char *name; /* general.architecture */
    int (*read)(struct t5_config *c, struct t5_shape *s, const struct model_file *file,
                struct err *e);
    bool hears;
} relatives[] = {{"t5", arch_t5, false},
                 {"bart", arch_bart, false},
                 {"marian", arch_marian, false},
                 {"moonshine", arch_moonshine, true},
                 {"whisper", arch_whisper, true}};

static const struct relative *find(const struct model_file *file)
{
    for (size_t i = 0; i < sizeof(relatives) / sizeof(relatives[0]); i++)
        if (is_arch(file, relatives[i].name))
            return &relatives[i];
    return NULL;
}

bool t5_hears(const struct model_file *file)
{
    const struct relative *r = find(file);
    return r && r->hears;
}

bool t5_knows(const struct model_file *file)
{
    return find(file) != NULL;
}

/* ---- configuration ------------------------------------------------------------------------- */

static int read_config(struct t5 *t, struct err *e)
{
    const struct relative *r = find(t->file);
    if (!r)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "general.architecture is not t5, bart, marian, moonshine or whisper");
    t->c.arch = r->name;
    t->c.hears = r->hears;
    return r->read(&t->c, &t->shape, t->file, e);
}

/* ---- tensors ------------------------------------------------------------------------------- */

struct loading {
    struct plan p;
    struct t5 *t;
    bool dec;
    uint32_t layer;
};

static const char *part_name(const struct loading *o, char *out, size_t cap, const char *part)
{
    snprintf(out, cap, "%s.blk.%u.%s", o->dec ? "dec" : "enc", o->layer, part);
    return out;
}

static int matrix(struct loading *o, struct linear *l, const char *part, uint32_t n_rows,
                  uint32_t n_cols, uint32_t out_at)
{
    char name[64];
    int rc =
        plan_linear(&o->p, l, -1, part_name(o, name, sizeof(name), part), n_rows, n_cols, true);
    l->out_at = out_at;
    return rc;
}

static int named_norm(struct loading *o, struct t5_norm *n, const char *name)
{
    int rc = plan_vector(&o->p, &n->w, -1, name, "weight", o->t->c.dim, true);
    if (rc == 0 && o->t->shape.layer_norm)
        rc = plan_vector(&o->p, &n->b, -1, name, "bias", o->t->c.dim, o->t->shape.norm_bias);
    return rc;
}

/* The norm of a block: "<block>_norm", and behind it "<behind>_norm". */
static int norm(struct loading *o, struct t5_norm *n, const char *block, const char *behind)
{
    char name[64], part[40];
    snprintf(part, sizeof(part), "%s_norm", o->t->shape.norm_behind ? behind : block);
    return named_norm(o, n, part_name(o, name, sizeof(name), part));
}

static int cross(struct loading *o, struct t5_layer *l)
{
    const uint32_t dim = o->t->c.dim, inner = o->t->inner;
    char name[64];
    int rc = norm(o, &l->cross_norm, "cross_attn", "cross_attn_output");
    if (rc == 0)
        rc = matrix(o, &l->cross_q, "cross_attn_q", inner, dim, 0);
    if (rc == 0)
        rc = matrix(o, &l->cross_kv[0], "cross_attn_k", inner, dim, 0);
    if (rc == 0)
        rc = matrix(o, &l->cross_kv[1], "cross_attn_v", inner, dim, inner);
    if (rc == 0)
        rc = matrix(o, &l->cross_out, "cross_attn_o", dim, inner, 0);
    /* present in some files, but never used */
    (void)plan_claim(&o->p, part_name(o, name, sizeof(name), "cross_attn_rel_b.weight"));
    return rc;
}

static int layer(struct loading *o, struct t5_layer *l)
{
    static const char *const qkv[] = {"attn_q", "attn_k", "attn_v"};
    const struct t5_config *c = &o->t->c;
    const uint32_t inner = o->t->inner;
    int rc = norm(o, &l->attn_norm, "attn", "attn_output");
    for (uint32_t j = 0; rc == 0 && j < 3; j++)
        rc = matrix(o, &l->qkv[j], qkv[j], inner, c->dim, j * inner);
    if (rc == 0)
        rc = matrix(o, &l->attn_out, "attn_o", c->dim, inner, 0);
    if (rc == 0 && o->dec)
        rc = cross(o, l);
    if (rc == 0)
        rc = norm(o, &l->ffn_norm, "ffn", "layer_output");
    l->gate.mat = NO_MAT;
    if (rc == 0 && o->t->shape.gated[o->dec])
        rc = matrix(o, &l->gate, "ffn_gate", c->ffn_dim, c->dim, 0);
    if (rc == 0)
        rc = matrix(o, &l->up, "ffn_up", c->ffn_dim, c->dim, 0);
    return rc < 0 ? rc : matrix(o, &l->down, "ffn_down", c->dim, c->ffn_dim, 0);
}

/* Biases by distance, which all layers of a side share. */
static int distances(struct loading *o)
{
    struct t5 *t = o->t;
    char name[64];
    uint32_t n_buckets = 0;
    o->layer = 0;
    int rc =
        plan_table(&o->p, &t->rel_b[o->dec], part_name(o, name, sizeof(name), "attn_rel_b.weight"),
                   &n_buckets, t->c.n_heads, true);
    if (rc == 0 && n_buckets != t->c.n_buckets)
        rc = err_set(o->p.e, SHOAL_EFORMAT, "tensor %s has %u buckets, expected %u", name,
                     n_buckets, t->c.n_buckets);
    return rc;
}

static int learned_places(struct loading *o)
{
    struct t5 *t = o->t;
    const char *name = o->dec ? "dec.position_embd.weight" : "enc.position_embd.weight";
    const uint32_t want = o->dec || !t->c.hears ? t->c.n_ctx_train : t->shape.n_frames;
    uint32_t n = 0;
    int rc = plan_table(&o->p, &t->places[o->dec], name, &n, t->c.dim, true);
    return rc == 0 && n != want ? err_set(o->p.e, SHOAL_EFORMAT,
                                          "tensor %s has %u positions, expected %u", name, n, want)
                                : rc;
}

/* The layers of one side, its last norm and its positions. */
static int side(struct loading *o, bool dec)
{
    struct t5 *t = o->t;
    int rc = 0;
    o->dec = dec;
    for (uint32_t i = 0; rc == 0 && i < (dec ? t->c.n_dec : t->c.n_enc); i++) {
        o->layer = i;
        rc = layer(o, &t->layers[(dec ? t->c.n_enc : 0) + i]);
    }
    if (rc == 0 && t->shape.places == T5_PLACES_LEARNED)
        rc = learned_places(o);
    else if (rc == 0 && t->shape.places == T5_PLACES_DISTANCE)
        rc = distances(o);
    if (rc == 0 && t->shape.norm_embd)
        rc = named_norm(o, &t->embd_norm[dec], dec ? "dec.token_embd_norm" : "enc.token_embd_norm");
    if (rc == 0 && !t->shape.norm_behind)
        rc = named_norm(o, dec ? &t->dec_norm : &t->enc_norm,
                        dec ? "dec.output_norm" : "enc.output_norm");
    return rc;
}

static int embeddings(struct loading *o)
{
    struct t5 *t = o->t;
    t->embd = plan_claim(&o->p, "token_embd.weight");
    if (!t->embd || t->embd->n_dims != 2 || t->embd->dims[0] != t->c.dim ||
        t->embd->dims[1] > INT32_MAX)
        return err_set(o->p.e, SHOAL_EFORMAT, "tensor token_embd.weight is missing or not %u wide",
                       t->c.dim);
    t->c.n_vocab = (uint32_t)t->embd->dims[1];
    if ((uint32_t)t->c.start_token >= t->c.n_vocab)
        return err_set(o->p.e, SHOAL_EFORMAT,
                       "%s.decoder_start_token_id is %d, but the vocabulary has %u tokens",
                       t->c.arch, t->c.start_token, t->c.n_vocab);
    t->n_aligned = aligned_heads(t->aligned, t->c.arch, t->c.n_dec, t->c.n_heads, t->c.n_vocab);
    int rc = plan_linear(&o->p, &t->output, -1, "output", t->c.n_vocab, t->c.dim, false);
    if (rc < 0 || t->output.mat != NO_MAT)
        return rc;
    rc = weights_add(&t->weights, t->embd, &t->output.mat, o->p.e); /* tied to the embedding */
    return rc < 0 ? rc
                  : plan_vector(&o->p, &t->output.bias, -1, "output", "bias", t->c.n_vocab, false);
}

static int plan_tensors(struct t5 *t, struct err *e)
{
    struct loading o = {.t = t};
    int rc = plan_init(&o.p, t->file, &t->weights, &t->vectors, e);
    t->layers = mem_zalloc_n(t->c.n_enc + t->c.n_dec, sizeof(*t->layers));
    if (rc == 0 && !t->layers)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the tensor plan");
    if (rc == 0)
        rc = stem_plan(&t->stem, &o.p, &t->shape.stem, t->c.dim);
    if (rc == 0)
        rc = side(&o, false);
    if (rc == 0)
        rc = side(&o, true);
    if (rc == 0)
        rc = embeddings(&o);
    if (rc == 0)
        rc = plan_check_all_claimed(&o.p, t->c.arch);
    plan_fini(&o.p);
    return rc;
}

static void which_inputs_are_rounded(struct t5 *t)
{
    const struct weights *w = &t->weights;
    for (uint32_t i = 0; i < t->c.n_enc + t->c.n_dec; i++) {
        const struct t5_layer *l = &t->layers[i];
        for (uint32_t j = 0; j < 3; j++)
            t->in_x = plan_linear_wants(w, &l->qkv[j], t->in_x);
        t->in_x = plan_linear_wants(w, &l->gate, plan_linear_wants(w, &l->up, t->in_x));
        t->in_att = plan_linear_wants(w, &l->attn_out, t->in_att);
        t->in_hidden = plan_linear_wants(w, &l->down, t->in_hidden);
        if (i < t->c.n_enc)
            continue;
        t->in_x = plan_linear_wants(w, &l->cross_q, t->in_x);
        t->in_x =
            plan_linear_wants(w, &l->cross_kv[0], plan_linear_wants(w, &l->cross_kv[1], t->in_x));
        t->in_att = plan_linear_wants(w, &l->cross_out, t->in_att);
    }
    t->in_x = plan_linear_wants(w, &t->output, t->in_x);
}

/* ---- positions --------------------------------------------------------------------------------
 */

uint32_t t5_bucket(int64_t d, bool both_ways, uint32_t n_buckets, uint32_t max_distance)
{
    uint32_t first = 0, n = n_buckets;
    uint64_t away = d < 0 ? (uint64_t)-d : both_ways ? (uint64_t)d : 0;
    if (both_ways) {
        n /= 2;
        first = d > 0 ? n : 0;
    }
    /* Half of the buckets hold one distance each, the others grow logarithmically.  Rounded like
     * the reference, since a distance may lie exactly on a boundary. */
    const uint32_t exact = n / 2;
    if (away < exact)
        return first + (uint32_t)away;
    float part = logf((float)away / (float)exact) /
                 (float)log((double)max_distance / (double)exact) * (float)(n - exact);
    uint32_t bucket = part < (float)n ? exact + (uint32_t)part : n - 1;
    return first + (bucket < n - 1 ? bucket : n - 1);
}

static void fill_biases(struct t5 *t)
{
    const struct t5_config *c = &t->c;
    const size_t n = t->enc_bias ? t->n_ctx : 0;
    for (size_t i = 0; i < 2 * n; i++) {
        const int64_t d = (int64_t)i - (int64_t)n;
        const float *both =
            t->rel_b[0] + (size_t)t5_bucket(d, true, c->n_buckets, c->max_distance) * c->n_heads;
        const float *back =
            t->rel_b[1] +
            (size_t)t5_bucket(d + 1, false, c->n_buckets, c->max_distance) * c->n_heads;
        for (uint32_t h = 0; h < c->n_heads; h++) {
            t->enc_bias[h * 2 * n + i] = both[h];
            if (i < n)
                t->dec_bias[h * n + i] = back[h];
        }
    }
}

/* Cosines and sines of every position, as kern_ops.rope wants them for pairs of neighbours. */
static void fill_rotations(struct t5 *t)
{
    const uint32_t rot = t->shape.rope_dim;
    for (uint32_t pos = 0; rot && pos < t->n_ctx; pos++) {
        float *cs = t->rope_cs + (size_t)pos * 2 * rot;
        for (uint32_t i = 0; i < rot; i += 2) {
            const double angle = pos * pow((double)t->shape.rope_base, -(double)i / rot);
            cs[i] = cs[i + 1] = (float)cos(angle);
            cs[rot + i] = -(float)sin(angle);
            cs[rot + i + 1] = (float)sin(angle);
        }
    }
}

/* Sines of all frequencies, then their cosines, for every position. */
static void fill_sines(struct t5 *t)
{
    const uint32_t dim = t->c.dim, half = (dim + 1) / 2;
    for (uint32_t pos = 0; t->sines && pos < t->n_ctx; pos++)
        for (uint32_t i = 0; i < dim; i++) {
            const uint32_t pair = i < half ? i : i - half;
            const double angle = pos / pow(10000.0, 2.0 * pair / dim);
            t->sines[(size_t)pos * dim + i] = (float)(i < half ? sin(angle) : cos(angle));
        }
    if (t->sines)
        t->places[0] = t->places[1] = t->sines;
}

/* ---- create -------------------------------------------------------------------------------- */

static int configure(struct t5 *t, const struct model_file *file, const struct t5_opts *o,
                     struct err *e)
{
    t->file = file;
    int rc = read_config(t, e);
    if (rc < 0)
        return rc;
    t->k = o->kernels ? o->kernels : kern_select(NULL, e);
    if (!t->k)
        return e ? e->code : SHOAL_EUNSUPPORTED;
    t->n_ctx = o->n_ctx     ? o->n_ctx
               : t->c.hears ? stem_frames(&t->shape.stem, USUAL_SECONDS * T5_SAMPLE_RATE)
               : t->c.n_ctx_train < 4096 ? t->c.n_ctx_train
                                         : 4096;
    if (t->n_ctx < t->shape.n_frames)
        t->n_ctx = t->shape.n_frames; /* a sound has always as many */
    if (t->c.hears && t->n_ctx < t->c.n_ctx_train)
        t->n_ctx = t->c.n_ctx_train; /* of the target */
    if (t->shape.places == T5_PLACES_LEARNED && !t->c.hears && t->n_ctx > t->c.n_ctx_train)
        return err_set(e, SHOAL_EINVAL,
                       "a context of %u tokens is longer than the %u positions that the model has",
                       t->n_ctx, t->c.n_ctx_train);
    t->max_tokens = o->max_tokens > t->n_ctx ? o->max_tokens : t->n_ctx;
    t->max_seqs = o->max_seqs ? o->max_seqs : 8;
    t->max_rows = o->max_rows ? o->max_rows : 16;
    if (t->n_ctx > 65536 || t->max_tokens > 1u << 20 || t->max_seqs > 4096 || t->max_rows > 4096)
        return err_set(e, SHOAL_EINVAL,
                       "limits too large: %u tokens per text, %u tokens, %u texts and %u rows per "
                       "pass",
                       t->n_ctx, t->max_tokens, t->max_seqs, t->max_rows);
    t->inner = t->c.n_heads * t->c.head_dim;
    t->kv_kind = o->kv_kind;
    t->kv_head_bytes = (kern_kv_head_bytes(t->kv_kind, t->c.head_dim) + 63) / 64 * 64;
    t->kv_page_bytes = t->kv_head_bytes * t->c.n_heads * t->c.n_dec;
    weights_init(&t->weights, &t->k->layout);
    t->weights.round = o->int8 ? WEIGHTS_BLOCKS : WEIGHTS_AS_STORED;
    return plan_tensors(t, e);
}

static int reserve(struct t5 *t, struct err *e)
{
    t5_lay_out(t, NULL, crew_lane_size(t->lane));
    t->scratch = mem_pages(t->scratch_bytes);
    if (!t->scratch)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of scratch", t->scratch_bytes);
    t5_lay_out(t, t->scratch, crew_lane_size(t->lane));
    which_inputs_are_rounded(t);
    stem_set_up(&t->stem, t->k, &t->weights);
    fill_biases(t);
    fill_rotations(t);
    fill_sines(t);
    return 0;
}

int t5_create(struct t5 **out, const struct model_file *file, const char *path,
              const struct t5_opts *o, struct err *e)
{
    static const struct t5_opts defaults;
    o = o ? o : &defaults;
    *out = NULL;
    struct t5 *t = mem_zalloc(sizeof(*t));
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "t5");
    int rc = configure(t, file, o, e);
    if (rc == 0)
        rc = crew_lane_create(&t->lane, o->crew, o->n_threads ? o->n_threads : crew_cores(), e);
    if (rc == 0)
        rc = reserve(t, e);
    if (rc == 0)
        rc =
            weights_load(&t->weights, path, o->cache_dir, t->lane, o->progress, o->progress_ctx, e);
    if (rc < 0) {
        t5_destroy(t);
        return rc;
    }
    model_file_trim(file); /* from now on only rows of the embedding are read */
    *out = t;
    return 0;
}

int t5_measure(struct t5_sizes *out, const struct model_file *file, const struct t5_opts *o,
               struct err *e)
{
    struct t5 *t = mem_zalloc(sizeof(*t));
    if (!t)
        return err_set(e, SHOAL_ENOMEM, "t5");
    int rc = configure(t, file, o, e);
    if (rc == 0) {
        t5_lay_out(t, NULL, o->n_threads ? o->n_threads : crew_cores());
        *out = t5_sizes(t);
    }
    t5_destroy(t);
    return rc;
}

void t5_destroy(struct t5 *t)
{
    if (!t)
        return;
    crew_lane_destroy(t->lane);
    stem_fini(&t->stem);
    weights_fini(&t->weights);
    plan_small_tensors_fini(&t->vectors);
    mem_free(t->layers);
    if (t->scratch)
        mem_pages_free(t->scratch, t->scratch_bytes);
    mem_free(t);
}

const struct t5_config *t5_config(const struct t5 *t)
{
    return &t->c;
}

const struct kern_ops *t5_kernels(const struct t5 *t)
{
    return t->k;
}

uint32_t t5_n_threads(const struct t5 *t)
{
    return crew_lane_size(t->lane);
}

struct crew_lane *t5_lane(const struct t5 *t)
{
    return t->lane;
}

struct t5_sizes t5_sizes(const struct t5 *t)
{
    return (struct t5_sizes){.weights = t->weights.data_bytes,
                             .scratch = t->scratch_bytes,
                             .kv_page = t->kv_page_bytes,
                             .n_ctx = t->n_ctx,
                             .max_tokens = t->max_tokens,
                             .max_seqs = t->max_seqs,
                             .max_rows = t->max_rows};
}

bool t5_from_cache(const struct t5 *t)
{
    return t->weights.from_cache;
}

const struct weights *t5_weights(const struct t5 *t)
{
    return &t->weights;
}

uint32_t t5_frames(const struct t5 *t, uint32_t n_samples)
{
    return stem_frames(&t->shape.stem, n_samples);
}

uint32_t t5_least_samples(const struct t5 *t)
{
    return (uint32_t)stem_least(&t->shape.stem, 1);
}

uint32_t t5_most_samples(const struct t5 *t)
{
    return t->stem.max_in;
}

void t5_set_kv(struct t5 *t, uint8_t *kv)
{
    t->kv = kv;
}

void t5_copy_page(struct t5 *t, uint32_t to, uint32_t from)
{
    memcpy(t->kv + to * t->kv_page_bytes, t->kv + from * t->kv_page_bytes, t->kv_page_bytes);
}
