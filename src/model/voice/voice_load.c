/* voice_load.c - loading a voice: configuration, tensors, scratch; see voice_int.h. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch/arch.h"
#include "model/voice/voice_int.h"

static const struct decoder_config arch_name = {.arch = "vits"}; /* only its name is read */

bool voice_knows(const struct model_file *file)
{
    struct str s;
    return model_file_get_str(file, "general.architecture", &s) && s.n == 4 &&
           memcmp(s.p, "vits", 4) == 0;
}

/* ---- configuration ------------------------------------------------------------------------- */

/* A list of numbers of 1 to most; *n: how many there must be, or 0: at most cap. */
static int numbers(const struct model_file *file, const char *key, uint32_t *n, uint32_t cap,
                   uint32_t most, uint32_t *out, struct err *e)
{
    const struct model_file_value *v = model_file_find(file, key);
    int64_t x = 0;
    if (!v || v->type != MODEL_FILE_ARRAY || v->n_elems == 0 || v->n_elems > cap ||
        (*n && v->n_elems != *n))
        return err_set(e, SHOAL_EFORMAT, "metadata key %s is not a list of %s%u numbers", key,
                       *n ? "" : "1 to ", cap);
    *n = (uint32_t)v->n_elems;
    for (uint32_t i = 0; i < *n; i++) {
        if (!model_file_i64_at(v, i, &x) || x < 1 || x > most)
            return err_set(e, SHOAL_EFORMAT, "metadata key %s has a number that is not 1 to %u",
                           key, most);
        out[i] = (uint32_t)x;
    }
    return 0;
}

static int read_decoder(struct voice *v, struct err *e)
{
    uint32_t strides[VOICE_MAX_STAGES], n_branches = VOICE_BRANCHES, n_dilations;
    int rc =
        numbers(v->file, "vits.decoder.upsample", &v->n_stages, VOICE_MAX_STAGES, 64, strides, e);
    if (rc == 0)
        rc = numbers(v->file, "vits.decoder.kernels", &n_branches, VOICE_BRANCHES, VOICE_MAX_KERNEL,
                     v->branch_kernel, e);
    n_dilations = 2 * VOICE_BRANCHES;
    if (rc == 0)
        rc = numbers(v->file, "vits.decoder.dilations", &n_dilations, 2 * VOICE_BRANCHES, 64,
                     &v->dilation[0][0], e);
    if (rc < 0)
        return rc;
    v->c.hop = 1;
    for (uint32_t i = 0; i < v->n_stages; i++) {
        v->stages[i].stride = strides[i];
        v->c.hop *= strides[i];
        if (strides[i] % 2)
            return err_set(e, SHOAL_EUNSUPPORTED, "vits.decoder.upsample: %u is not even",
                           strides[i]);
    }
    for (uint32_t i = 0; i < VOICE_BRANCHES; i++) {
        const uint32_t halo = v->branch_kernel[i] / 2 * (v->dilation[i][0] + v->dilation[i][1]);
        v->branch_halo = halo > v->branch_halo ? halo : v->branch_halo;
        if (v->branch_kernel[i] % 2 == 0)
            return err_set(e, SHOAL_EUNSUPPORTED, "vits.decoder.kernels: %u is not odd",
                           v->branch_kernel[i]);
    }
    return 0;
}

static int read_config(struct voice *v, struct err *e)
{
    struct voice_config *c = &v->c;
    const struct decoder_config *as = &arch_name;
    struct str name = {"voice", 5};
    int rc;
    if (!voice_knows(v->file))
        return err_set(e, SHOAL_EUNSUPPORTED, "general.architecture is not vits");
    if ((rc = arch_u32(as, v->file, "embedding_length", 32, 1024, &c->dim, e)) < 0 ||
        (rc = arch_u32(as, v->file, "block_count", 1, VOICE_MAX_LAYERS, &c->n_layers, e)) < 0 ||
        (rc = arch_u32(as, v->file, "attention.head_count", 1, 64, &c->n_heads, e)) < 0 ||
        (rc = arch_u32(as, v->file, "attention.window", 1, 64, &c->window, e)) < 0 ||
        (rc = arch_u32(as, v->file, "feed_forward_length", 32, 8192, &c->ffn_dim, e)) < 0 ||
        (rc = arch_u32(as, v->file, "flow.count", 1, VOICE_MAX_FLOWS, &v->n_flows, e)) < 0 ||
        (rc = arch_u32(as, v->file, "flow.layers", 1, VOICE_MAX_WN, &v->n_wn, e)) < 0 ||
        (rc = arch_u32(as, v->file, "flow.kernel", 1, VOICE_MAX_KERNEL, &v->flow_kernel, e)) < 0 ||
        (rc = arch_u32(as, v->file, "decoder.post_kernel", 1, VOICE_MAX_KERNEL, &v->post_kernel,
                       e)) < 0 ||
        (rc = arch_u32(as, v->file, "sample_rate", 8000, 48000, &c->rate, e)) < 0 ||
        (rc = arch_f32_or(as, v->file, "noise", 0.667f, &c->noise, e)) < 0 ||
        (rc = arch_f32_or(as, v->file, "length", 1.0f, &c->length, e)) < 0 ||
        (rc = arch_f32_or(as, v->file, "duration_noise", 0.8f, &c->duration_noise, e)) < 0)
        return rc;
    c->head_dim = c->dim / c->n_heads;
    if (c->dim % c->n_heads || c->dim % 32 || c->ffn_dim % 32)
        return err_set(e, SHOAL_EUNSUPPORTED, "%u heads of a width of %u are not supported",
                       c->n_heads, c->dim);
    (void)model_file_get_str(v->file, "vits.voice", &name);
    snprintf(c->name, sizeof(c->name), "%.*s", (int)(name.n < 31 ? name.n : 31), name.p);
    return read_decoder(v, e);
}

/* ---- tensors ------------------------------------------------------------------------------- */

struct loading {
    struct plan p;
    struct voice *v;
    char name[64];
    int rc;
};

/* Names are made of a pattern and numbers; after a failure nothing more is read. */
#define NAME(o, ...) snprintf((o)->name, sizeof((o)->name), __VA_ARGS__)

static void conv(struct loading *o, struct voice_conv *c, uint32_t out, uint32_t in,
                 uint32_t kernel)
{
    if (o->rc == 0)
        o->rc = plan_linear(&o->p, &c->l, -1, o->name, out, in * kernel, true);
    if (o->rc < 0)
        return;
    c->in = in;
    c->kernel = kernel;
    c->out = o->v->weights.mats[c->l.mat].n_rows;
    c->form = plan_linear_wants(&o->v->weights, &c->l, LINEAR_INPUT_FLOATS);
}

static void vector(struct loading *o, const float **x, const char *kind, uint32_t n)
{
    if (o->rc == 0)
        o->rc = plan_vector(&o->p, x, -1, o->name, kind, n, true);
}

static void table(struct loading *o, const float **x, uint32_t n_rows, uint32_t n_cols)
{
    uint32_t got = 0;
    if (o->rc == 0)
        o->rc = plan_table(&o->p, x, o->name, &got, n_cols, true);
    if (o->rc == 0 && n_rows && got != n_rows)
        o->rc = err_set(o->p.e, SHOAL_EFORMAT, "tensor %s has %u rows, expected %u", o->name, got,
                        n_rows);
    if (n_rows == 0)
        o->v->c.n_symbols = got;
}

static void norm(struct loading *o, struct voice_norm *n)
{
    vector(o, &n->w, "weight", o->v->c.dim);
    vector(o, &n->b, "bias", o->v->c.dim);
}

static void layer(struct loading *o, uint32_t i)
{
    const struct voice_config *c = &o->v->c;
    struct voice_layer *l = &o->v->layers[i];
    struct voice_conv *const attn[] = {&l->q, &l->k, &l->v, &l->o};
    for (uint32_t j = 0; j < 4; j++) {
        NAME(o, "enc.blk.%u.attn_%c", i, "qkvo"[j]);
        conv(o, attn[j], c->dim, c->dim, 1);
    }
    NAME(o, "enc.blk.%u.attn_rel_k.weight", i);
    table(o, &l->rel_k, 2 * c->window + 1, c->head_dim);
    NAME(o, "enc.blk.%u.attn_rel_v.weight", i);
    table(o, &l->rel_v, 2 * c->window + 1, c->head_dim);
    NAME(o, "enc.blk.%u.attn_norm", i);
    norm(o, &l->attn_norm);
    NAME(o, "enc.blk.%u.ffn_up", i);
    conv(o, &l->up, c->ffn_dim, c->dim, 3);
    NAME(o, "enc.blk.%u.ffn_down", i);
    conv(o, &l->down, c->dim, c->ffn_dim, 3);
    NAME(o, "enc.blk.%u.ffn_norm", i);
    norm(o, &l->ffn_norm);
}

/* The parts of a stack: "<prefix>.<step>.<part>". */
static void spreads(struct loading *o, struct voice_spread *s, const char *prefix)
{
    const uint32_t dim = o->v->c.dim;
    for (uint32_t i = 0; i < VOICE_SPREADS; i++, s++) {
        NAME(o, "%s.%u.sep.weight", prefix, i);
        table(o, &s->sep, 3, dim);
        NAME(o, "%s.%u.sep", prefix, i);
        vector(o, &s->sep_bias, "bias", dim);
        NAME(o, "%s.%u.norm1", prefix, i);
        norm(o, &s->norm1);
        NAME(o, "%s.%u.norm2", prefix, i);
        norm(o, &s->norm2);
        NAME(o, "%s.%u.point", prefix, i);
        conv(o, &s->point, dim, dim, 1);
    }
}

static void pace(struct loading *o)
{
    struct voice *v = o->v;
    const uint32_t dim = v->c.dim;
    char prefix[32];
    NAME(o, "dur.pre");
    conv(o, &v->dur_pre, dim, dim, 1);
    spreads(o, v->dur, "dur.conv");
    NAME(o, "dur.proj");
    conv(o, &v->dur_proj, dim, dim, 1);
    for (uint32_t i = 0; i < VOICE_DUR_FLOWS; i++) {
        struct voice_dur_flow *f = &v->dur_flows[i];
        NAME(o, "dur.flow.%u.pre", i);
        vector(o, &f->pre, "weight", dim);
        vector(o, &f->pre_bias, "bias", dim);
        snprintf(prefix, sizeof(prefix), "dur.flow.%u.conv", i);
        spreads(o, f->spread, prefix);
        NAME(o, "dur.flow.%u.proj", i);
        conv(o, &f->proj, 3 * VOICE_BINS - 1, dim, 1);
    }
    NAME(o, "dur.affine");
    vector(o, &v->affine_shift, "shift", 2);
    vector(o, &v->affine_scale, "scale", 2);
}

static void flow(struct loading *o)
{
    struct voice *v = o->v;
    const uint32_t dim = v->c.dim;
    for (uint32_t i = 0; i < v->n_flows; i++) {
        struct voice_coupling *c = &v->couplings[i];
        NAME(o, "flow.%u.pre", i);
        conv(o, &c->pre, dim, dim / 2, 1);
        for (uint32_t j = 0; j < v->n_wn; j++) {
            NAME(o, "flow.%u.in.%u", i, j);
            conv(o, &c->in[j], 2 * dim, dim, v->flow_kernel);
            NAME(o, "flow.%u.skip.%u", i, j);
            conv(o, &c->skip[j], j + 1 < v->n_wn ? 2 * dim : dim, dim, 1);
        }
        NAME(o, "flow.%u.post", i);
        conv(o, &c->post, dim / 2, dim, 1);
    }
}

static void decoder(struct loading *o, uint32_t width)
{
    struct voice *v = o->v;
    NAME(o, "dec.pre");
    conv(o, &v->pre, width, v->c.dim, 7);
    for (uint32_t s = 0; s < v->n_stages; s++, width /= 2) {
        struct voice_stage *stage = &v->stages[s];
        stage->width = width / 2;
        NAME(o, "dec.up.%u", s);
        conv(o, &stage->up, stage->stride * stage->width, width, 2);
        for (uint32_t r = 0; r < VOICE_BRANCHES; r++)
            for (uint32_t c = 0; c < 2; c++) {
                NAME(o, "dec.res.%u.%u.%u", s, r, c);
                conv(o, &stage->res[r][c], stage->width, stage->width, v->branch_kernel[r]);
            }
    }
    NAME(o, "dec.post");
    vector(o, &v->post, "weight", v->post_kernel * width);
}

static int plan_tensors(struct voice *v, struct err *e)
{
    struct loading o = {.v = v};
    uint32_t width = 0;
    o.rc = arch_u32(&arch_name, v->file, "decoder.width", 1u << (v->n_stages + 4), 4096, &width, e);
    if (o.rc == 0)
        o.rc = plan_init(&o.p, v->file, &v->weights, &v->vectors, e);
    NAME(&o, "enc.embd.weight");
    table(&o, &v->embd, 0, v->c.dim);
    for (uint32_t i = 0; i < v->c.n_layers; i++)
        layer(&o, i);
    NAME(&o, "enc.proj");
    conv(&o, &v->proj, 2 * v->c.dim, v->c.dim, 1);
    pace(&o);
    flow(&o);
    decoder(&o, width);
    if (o.rc == 0)
        o.rc = plan_check_all_claimed(&o.p, "vits");
    plan_fini(&o.p);
    return o.rc;
}

/* ---- scratch --------------------------------------------------------------------------------- */

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void lay_out_member(struct voice *v, struct voice_member *m, struct carve *at)
{
    const uint32_t dim = v->c.dim;
    const size_t flow_rows = VOICE_FLOW_CHUNK + v->flow_kernel * v->n_wn;
    const size_t room =
        most(voice_sound_room(v, VOICE_SOUND_CHUNK), most(flow_rows, VOICE_ROWS) * 2 * dim);
    uint32_t widest = 0;
    for (uint32_t i = 0; i < v->weights.n; i++)
        widest = v->weights.mats[i].n_cols > widest ? v->weights.mats[i].n_cols : widest;
    plan_carve_act(at, &m->windows, NULL, VOICE_ROWS, (widest + 63) / 64 * 64);
    float **const buffers[] = {&m->a, &m->b, &m->c, &m->d, &m->u};
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
        *buffers[i] = plan_carve_take(at, room * sizeof(float));
    m->scores = plan_carve_take(at, (VOICE_MAX_IDS + 16) * sizeof(float));
}

/* Rows of a text, with the margins that convolutions read: zeros. */
static float *rows(struct carve *at, uint32_t width)
{
    const uint32_t margin = VOICE_MAX_KERNEL / 2;
    float *x = plan_carve_take(at, (size_t)(VOICE_MAX_IDS + 2 * margin) * width * sizeof(float));
    return at->base ? x + (size_t)margin * width : NULL;
}

static void lay_out(struct voice *v, uint8_t *base, uint32_t n_members)
{
    struct carve at = {.base = base};
    struct voice_member counted;
    const uint32_t dim = v->c.dim;
    for (uint32_t i = 0; i < n_members; i++)
        lay_out_member(v, v->members ? &v->members[i] : &counted, &at);
    v->x = rows(&at, dim);
    v->qkv = rows(&at, 3 * dim);
    v->hidden = rows(&at, v->c.ffn_dim);
    v->cond = rows(&at, dim);
    v->dur_x[0] = rows(&at, dim);
    v->dur_x[1] = rows(&at, dim);
    v->stats = rows(&at, 2 * dim);
    v->log_durations = plan_carve_take(&at, VOICE_MAX_IDS * sizeof(float));
    v->pairs = plan_carve_take(&at, (size_t)VOICE_MAX_IDS * 2 * sizeof(float));
    v->durations = plan_carve_take(&at, VOICE_MAX_IDS * sizeof(uint32_t));
    v->scratch_bytes = at.bytes;
}

/* ---- create -------------------------------------------------------------------------------- */

static int configure(struct voice *v, const struct model_file *file, const struct voice_opts *o,
                     struct err *e)
{
    v->file = file;
    v->k = o->kernels ? o->kernels : kern_select(NULL, e);
    if (!v->k)
        return SHOAL_EUNSUPPORTED;
    int rc = read_config(v, e);
    weights_init(&v->weights, &v->k->layout);
    v->weights.round = WEIGHTS_AS_STORED;
    return rc < 0 ? rc : plan_tensors(v, e);
}

static int reserve(struct voice *v, struct err *e)
{
    const uint32_t n = crew_lane_size(v->lane);
    v->members = mem_zalloc_n(n, sizeof(*v->members));
    if (!v->members)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a voice");
    lay_out(v, NULL, n);
    v->scratch = mem_pages(v->scratch_bytes);
    if (!v->scratch)
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes of scratch", v->scratch_bytes);
    lay_out(v, v->scratch, n);
    return 0;
}

int voice_create(struct voice **out, const struct model_file *file, const char *path,
                 const struct voice_opts *o, struct err *e)
{
    struct voice *v = mem_zalloc(sizeof(*v));
    *out = NULL;
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a voice");
    int rc = configure(v, file, o, e);
    if (rc == 0)
        rc = crew_lane_create(&v->lane, o->crew, o->n_threads ? o->n_threads : crew_cores(), e);
    if (rc == 0)
        rc = reserve(v, e);
    if (rc == 0)
        rc =
            weights_load(&v->weights, path, o->cache_dir, v->lane, o->progress, o->progress_ctx, e);
    if (rc < 0) {
        voice_destroy(v);
        return rc;
    }
    model_file_trim(file);
    *out = v;
    return 0;
}

void voice_destroy(struct voice *v)
{
    if (!v)
        return;
    crew_lane_destroy(v->lane);
    weights_fini(&v->weights);
    plan_small_tensors_fini(&v->vectors);
    mem_free(v->members);
    mem_free(v->frames);
    if (v->scratch)
        mem_pages_free(v->scratch, v->scratch_bytes);
    mem_free(v);
}
