/* onnx_lm.c - see onnx_lm.h. */
#include "engine/onnx/onnx_lm.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/onnx/onnx_session.h"

#define DEFAULT_MAX_CTX 4096u
#define DEFAULT_CHUNK 512u
/* A run returns the logits of every token; the default chunk keeps them below this size. */
#define LOGITS_BYTES ((size_t)64 << 20)
#define MIN_CHUNK 16u

#define PRESENT "present."

enum feed { FEED_IDS, FEED_MASK, FEED_POSITIONS, FEED_BRANCH, FEED_KEEP, FEED_PAST, N_FEEDS };

static const char *const feed_names[FEED_PAST] = {"input_ids", "attention_mask", "position_ids",
                                                  "use_cache_branch", "num_logits_to_keep"};

struct slot {
    struct onnx_value **past; /* [n_past]; NULL until the first run */
    uint32_t n;               /* tokens in it */
};

struct onnx_lm {
    struct onnx_session *s;
    enum feed *feed_of;     /* [n_in] of the session */
    uint32_t *past_of;      /* [n_in] which past tensor an input is */
    void *feeds[FEED_PAST]; /* memory of the inputs: n_ctx elements each, and 2 for the trial run */
    struct onnx_value **in; /* [n_in] of one run */
    struct onnx_shape *shape;  /* [n_past] of an empty past tensor */
    struct onnx_value **empty; /* [n_past] */
    uint32_t n_past;
    uint32_t *want;          /* [1 + n_past] outputs: logits, then present tensors */
    struct onnx_value **out; /* [1 + n_past] */
    struct slot *slots;      /* [n_slots]; the last one is for the trial run */
    uint32_t n_slots, n_vocab, n_ctx;
    float *logits; /* [n_slots][n_vocab] */
};

/* ---- inputs and outputs --------------------------------------------------------------------- */

static int wrong_shape(const struct onnx_io *io, const char *want, struct err *e)
{
    char shape[96];
    onnx_shape_print(shape, sizeof(shape), &io->shape);
    return err_set(e, SHOAL_EUNSUPPORTED, "input %s is %s %s, expected %s", io->name,
                   onnx_type_name(io->shape.type), shape, want);
}

/* past_key_values.3.key [batch, heads, tokens, head size] and the output that continues it. */
static int match_past(struct onnx_lm *lm, size_t i, struct err *e)
{
    const struct onnx_io *io = &lm->s->in[i];
    const struct onnx_shape *sh = &io->shape;
    char name[256];
    if ((sh->type != ONNX_TYPE_F32 && sh->type != ONNX_TYPE_F16) || sh->n_dims != 4 ||
        sh->dims[0] > 1 || sh->dims[1] <= 0 || sh->dims[2] > 0 || sh->dims[3] <= 0 ||
        sh->dims[1] > 1 << 16 || sh->dims[3] > 1 << 16)
        return wrong_shape(io, "float or float16 [batch, heads, any, size]", e);
    snprintf(name, sizeof(name), PRESENT "%s", io->name + strlen(ONNX_PAST));
    int output = onnx_session_output(lm->s, name);
    if (output < 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "input %s has no matching output %s", io->name, name);
    lm->shape[lm->n_past] = *sh;
    lm->shape[lm->n_past].dims[0] = 1;
    lm->shape[lm->n_past].dims[2] = 0;
    lm->want[1 + lm->n_past] = (uint32_t)output;
    lm->past_of[i] = lm->n_past++;
    return 0;
}

static int match_input(struct onnx_lm *lm, size_t i, struct err *e)
{
    const struct onnx_io *io = &lm->s->in[i];
    const struct onnx_shape *sh = &io->shape;
    int feed = 0;
    if (strncmp(io->name, ONNX_PAST, strlen(ONNX_PAST)) == 0) {
        lm->feed_of[i] = FEED_PAST;
        return match_past(lm, i, e);
    }
    while (feed < FEED_PAST && strcmp(feed_names[feed], io->name) != 0)
        feed++;
    if (feed == FEED_PAST)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "input %s is not one of a decoder (input_ids, attention_mask, position_ids, "
                       "use_cache_branch, num_logits_to_keep, " ONNX_PAST "*)",
                       io->name);
    lm->feed_of[i] = (enum feed)feed;
    if (feed == FEED_BRANCH)
        return sh->type == ONNX_TYPE_BOOL && sh->n_dims == 1 && sh->dims[0] <= 1
                   ? 0
                   : wrong_shape(io, "bool [1]", e);
    if (feed == FEED_KEEP)
        return sh->type == ONNX_TYPE_I64 && sh->n_dims == 0 ? 0 : wrong_shape(io, "int64 []", e);
    if ((sh->type != ONNX_TYPE_I64 && sh->type != ONNX_TYPE_I32) || sh->n_dims != 2 ||
        sh->dims[0] > 1 || sh->dims[1] > 0)
        return wrong_shape(io, "int64 or int32 [batch, any]", e);
    return 0;
}

static int match(struct onnx_lm *lm, struct err *e)
{
    const struct onnx_session *s = lm->s;
    size_t n = s->n_in + 1;
    lm->feed_of = mem_zalloc_n(n, sizeof(*lm->feed_of));
    lm->past_of = mem_zalloc_n(n, sizeof(*lm->past_of));
    lm->in = mem_zalloc_n(n, sizeof(struct onnx_value *));
    lm->shape = mem_zalloc_n(n, sizeof(*lm->shape));
    lm->empty = mem_zalloc_n(n, sizeof(struct onnx_value *));
    lm->want = mem_zalloc_n(n, sizeof(*lm->want));
    lm->out = mem_zalloc_n(n, sizeof(struct onnx_value *));
    if (!lm->feed_of || !lm->past_of || !lm->in || !lm->shape || !lm->empty || !lm->want ||
        !lm->out)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %zu inputs", s->n_in);
    int logits = onnx_session_output(s, "logits");
    if (onnx_session_input(s, "input_ids") < 0 || logits < 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "not a decoder: input_ids and logits are needed among its inputs and "
                       "outputs");
    lm->want[0] = (uint32_t)logits;
    for (size_t i = 0; i < s->n_in; i++) {
        int rc = match_input(lm, i, e);
        if (rc < 0)
            return rc;
    }
    if (lm->n_past == 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "a decoder without past keys and values (" ONNX_PAST
                       "*): export it with them");
    for (uint32_t p = 0; p < lm->n_past; p++) {
        int rc = onnx_value_wrap(&lm->empty[p], lm->s, NULL, &lm->shape[p], e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- runs ----------------------------------------------------------------------------------- */

static void slot_clear(struct onnx_lm *lm, struct slot *k)
{
    for (uint32_t p = 0; p < lm->n_past && k->past; p++) {
        onnx_value_release(lm->s, k->past[p]);
        k->past[p] = NULL;
    }
    k->n = 0;
}

/* Input i of a run of n tokens after n_past ones. */
static int feed(struct onnx_lm *lm, size_t i, const struct slot *k, const int32_t *tokens,
                uint32_t n, struct err *e)
{
    enum feed f = lm->feed_of[i];
    struct onnx_shape sh = {.type = lm->s->in[i].shape.type, .n_dims = 2, .dims = {1, n}};
    void *data = lm->feeds[f];
    if (f == FEED_MASK) {
        sh.dims[1] = k->n + n;
        for (uint32_t t = 0; t < k->n + n; t++)
            onnx_put(data, sh.type, t, 1);
    } else if (f == FEED_BRANCH || f == FEED_KEEP) {
        sh.n_dims = f == FEED_BRANCH ? 1 : 0;
        sh.dims[0] = 1;
        onnx_put(data, sh.type, 0, f == FEED_KEEP || k->n > 0);
    } else {
        for (uint32_t t = 0; t < n; t++)
            onnx_put(data, sh.type, t, f == FEED_IDS ? tokens[t] : (int64_t)k->n + t);
    }
    return onnx_value_wrap(&lm->in[i], lm->s, data, &sh, e);
}

/* Keeps the returned tensors as the sequence's past. */
static int keep_present(struct onnx_lm *lm, struct slot *k, uint32_t n, struct err *e)
{
    for (uint32_t p = 0; p < lm->n_past; p++) {
        struct onnx_shape got, want = lm->shape[p];
        const void *data;
        int rc = onnx_value_get(lm->s, lm->out[1 + p], &got, &data, e);
        if (rc < 0)
            return rc;
        want.dims[2] = k->n + n;
        if (got.type != want.type || got.n_dims != 4 ||
            memcmp(got.dims, want.dims, 4 * sizeof(*got.dims)) != 0) {
            char shape[96];
            onnx_shape_print(shape, sizeof(shape), &got);
            return err_set(e, SHOAL_EFORMAT, "output %s is %s %s after %u tokens",
                           lm->s->out[lm->want[1 + p]].name, onnx_type_name(got.type), shape,
                           k->n + n);
        }
    }
    for (uint32_t p = 0; p < lm->n_past; p++) {
        onnx_value_release(lm->s, k->past[p]);
        k->past[p] = lm->out[1 + p];
        lm->out[1 + p] = NULL;
    }
    k->n += n;
    return 0;
}

/* Copies the last token's logits to out; out NULL: learns the size of the vocabulary. */
static int take_logits(struct onnx_lm *lm, uint32_t n, float *out, struct err *e)
{
    struct onnx_shape sh;
    const void *data;
    int rc = onnx_value_get(lm->s, lm->out[0], &sh, &data, e);
    if (rc < 0)
        return rc;
    if ((sh.type != ONNX_TYPE_F32 && sh.type != ONNX_TYPE_F16) || sh.n_dims != 3 ||
        sh.dims[0] != 1 || (sh.dims[1] != n && sh.dims[1] != 1) || sh.dims[2] <= 0 ||
        sh.dims[2] > 1 << 24 || (out && sh.dims[2] != lm->n_vocab)) {
        char shape[96];
        onnx_shape_print(shape, sizeof(shape), &sh);
        return err_set(e, SHOAL_EFORMAT, "output logits is %s %s for %u tokens",
                       onnx_type_name(sh.type), shape, n);
    }
    if (out)
        onnx_floats(out, data, sh.type, (size_t)(sh.dims[1] - 1) * lm->n_vocab, lm->n_vocab);
    else
        lm->n_vocab = (uint32_t)sh.dims[2];
    return 0;
}

/* Runs n tokens of one sequence.  logits: [n_vocab], or NULL if not wanted.  learn: finds out the
 * size of the vocabulary. */
static int run(struct onnx_lm *lm, struct slot *k, const int32_t *tokens, uint32_t n, float *logits,
               bool learn, struct err *e)
{
    uint32_t skip = logits || learn ? 0 : 1;
    int rc = 0;
    for (size_t i = 0; i < lm->s->n_in && rc == 0; i++) {
        uint32_t p = lm->past_of[i];
        if (lm->feed_of[i] == FEED_PAST)
            lm->in[i] = k->n ? k->past[p] : lm->empty[p];
        else
            rc = feed(lm, i, k, tokens, n, e);
    }
    if (rc == 0)
        rc = onnx_session_run(lm->s, lm->in, lm->want + skip, 1 + lm->n_past - skip, lm->out + skip,
                              e);
    if (rc == 0 && !skip)
        rc = take_logits(lm, n, logits, e);
    if (rc == 0)
        rc = keep_present(lm, k, n, e);
    for (size_t i = 0; i < lm->s->n_in; i++) {
        if (lm->feed_of[i] != FEED_PAST)
            onnx_value_release(lm->s, lm->in[i]);
        lm->in[i] = NULL;
    }
    for (uint32_t p = 0; p < 1 + lm->n_past; p++) {
        onnx_value_release(lm->s, lm->out[p]);
        lm->out[p] = NULL;
    }
    return rc;
}

static void lm_forward(struct onnx_lm *lm, const struct lm_pass *pass)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < pass->n_runs; i++) {
        const struct decoder_run *r = &pass->runs[i];
        struct slot *k = &lm->slots[pass->slots[i]];
        float *logits = r->n_logits_last ? lm->logits + (size_t)row++ * lm->n_vocab : NULL;
        struct err e = {0};
        if (r->pos0 == 0)
            slot_clear(lm, k);
        pass->codes[i] = k->n == r->pos0 && r->n <= lm->n_ctx - k->n
                             ? run(lm, k, r->tokens, r->n, logits, false, &e)
                             : err_set(&e, SHOAL_EINTERNAL, "%u tokens at %u of a sequence of %u",
                                       r->n, r->pos0, k->n);
        if (pass->codes[i] < 0) {
            log_warn("onnx", "run failed error=\"%s\"", e.msg);
            slot_clear(lm, k);
        }
    }
}

static void lm_passes(void *impl, lm_next_fn next, void *ctx)
{
    struct lm_pass pass;
    while (next(ctx, &pass))
        lm_forward(impl, &pass);
}

static const float *lm_logits(const void *impl, uint32_t i)
{
    const struct onnx_lm *lm = impl;
    return lm->logits + (size_t)i * lm->n_vocab;
}

static void lm_release(void *impl, uint32_t slot)
{
    struct onnx_lm *lm = impl;
    slot_clear(lm, &lm->slots[slot]);
}

static void lm_destroy(void *impl)
{
    struct onnx_lm *lm = impl;
    for (uint32_t i = 0; i < lm->n_slots && lm->slots; i++) {
        slot_clear(lm, &lm->slots[i]);
        mem_free(lm->slots[i].past);
    }
    for (uint32_t p = 0; p < lm->n_past; p++)
        onnx_value_release(lm->s, lm->empty[p]);
    for (size_t f = 0; f < FEED_PAST; f++)
        mem_free(lm->feeds[f]);
    onnx_session_close(lm->s);
    mem_free(lm->slots);
    mem_free(lm->feed_of);
    mem_free(lm->past_of);
    mem_free(lm->in);
    mem_free(lm->shape);
    mem_free(lm->empty);
    mem_free(lm->want);
    mem_free(lm->out);
    mem_free(lm->logits);
    mem_free(lm);
}

/* ---- opening -------------------------------------------------------------------------------- */

static int reserve(struct onnx_lm *lm, struct err *e)
{
    lm->slots = mem_zalloc_n(lm->n_slots, sizeof(*lm->slots));
    bool ok = lm->slots;
    for (uint32_t i = 0; ok && i < lm->n_slots; i++)
        ok = (lm->slots[i].past = mem_zalloc_n(lm->n_past, sizeof(struct onnx_value *)));
    for (size_t f = 0; f < FEED_PAST; f++)
        ok = (lm->feeds[f] = mem_zalloc_n((size_t)lm->n_ctx + 2, sizeof(int64_t))) && ok;
    return ok ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for %u sequences", lm->n_slots);
}

/* Two runs, the second with a past. */
static int try_out(struct onnx_lm *lm, struct err *e)
{
    static const int32_t token = 0;
    struct slot *k = &lm->slots[lm->n_slots - 1];
    int rc = run(lm, k, &token, 1, NULL, true, e);
    if (rc == 0 && !(lm->logits = mem_zalloc_n(lm->n_slots, lm->n_vocab * sizeof(*lm->logits))))
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for logits of %u tokens", lm->n_vocab);
    if (rc == 0)
        rc = run(lm, k, &token, 1, lm->logits, false, e);
    slot_clear(lm, k);
    return rc;
}

static struct lm_info describe(const struct onnx_lm *lm, const struct onnx_lm_opts *o)
{
    size_t kv = 0, most = LOGITS_BYTES / (lm->n_vocab * sizeof(float));
    for (uint32_t p = 0; p < lm->n_past; p++)
        kv += (size_t)lm->shape[p].dims[1] * (size_t)lm->shape[p].dims[3] *
              onnx_type_bytes(lm->shape[p].type);
    uint32_t chunk = o->chunk               ? o->chunk
                     : most < MIN_CHUNK     ? MIN_CHUNK
                     : most < DEFAULT_CHUNK ? (uint32_t)most
                                            : DEFAULT_CHUNK;
    return (struct lm_info){.engine = "onnx",
                            .kernels = lm->s->lib->label,
                            .arch = o->arch ? o->arch : "onnx",
                            .n_vocab = lm->n_vocab,
                            .n_ctx = lm->n_ctx,
                            .n_ctx_train = o->n_ctx_train ? o->n_ctx_train : lm->n_ctx,
                            .n_layers = (lm->n_past + 1) / 2,
                            .n_threads = lm->s->n_threads,
                            .max_batch = chunk > o->max_tasks ? chunk : o->max_tasks,
                            .weights_bytes = lm->s->file_bytes,
                            .scratch_bytes = (size_t)chunk * lm->n_vocab * sizeof(float),
                            .kv_page_bytes = kv * KERN_PAGE,
                            .file_bytes = lm->s->file_bytes,
                            .pages_hold_kv = false};
}

int onnx_lm_from_session(struct lm *out, struct onnx_session *s, const struct onnx_lm_opts *o,
                         struct err *e)
{
    static const struct lm_ops ops = {
        .passes = lm_passes, .logits = lm_logits, .release = lm_release, .close = lm_destroy};
    uint32_t most = o->n_ctx_train ? o->n_ctx_train : DEFAULT_MAX_CTX;
    memset(out, 0, sizeof(*out));
    struct onnx_lm *lm = mem_zalloc(sizeof(*lm));
    if (!lm) {
        onnx_session_close(s);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a decoder");
    }
    lm->s = s;
    lm->n_ctx = o->n_ctx ? o->n_ctx : most < DEFAULT_MAX_CTX ? most : DEFAULT_MAX_CTX;
    lm->n_slots = o->max_tasks + 1;
    int rc = o->n_ctx_train && o->n_ctx > o->n_ctx_train
                 ? err_set(e, SHOAL_EINVAL, "a context of %u tokens, the model has %u", o->n_ctx,
                           o->n_ctx_train)
                 : match(lm, e);
    if (rc == 0)
        rc = reserve(lm, e);
    if (rc == 0)
        rc = try_out(lm, e);
    if (rc < 0) {
        lm_destroy(lm);
        return rc;
    }
    *out = (struct lm){.ops = &ops, .impl = lm, .info = describe(lm, o)};
    return 0;
}

int onnx_lm_open(struct lm *out, const char *path, const struct onnx_lm_opts *o, struct err *e)
{
    struct onnx_session_opts so = {.n_threads = o->n_threads};
    struct onnx_session *s;
    memset(out, 0, sizeof(*out));
    int rc = onnx_session_open(&s, path, &so, e);
    if (rc == 0 && (rc = onnx_lm_from_session(out, s, o, e)) < 0)
        err_wrap(e, "%s", path);
    return rc;
}
