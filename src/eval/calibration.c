/* calibration.c - see calibration.h. */
#include "base/plural.h"
#include "eval/calibration.h"

#include <string.h>

#include "base/mem.h"
#include "base/strmap.h"

#define MAX_TOKENS ((size_t)1 << 28)
#define DEFAULT_CTX 512u

struct column_sums {
    char *name;
    uint32_t n_cols;
    uint64_t n_rows; /* inputs that were added */
    double *sums;    /* [n_cols] */
    float *means;    /* [n_cols] */
};

struct calibration {
    struct column_sums *tensors;
    size_t n_tensors;
    struct strmap by_name; /* keys are in tensors */
    uint64_t n_tokens;
};

void calibration_destroy(struct calibration *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_tensors; i++) {
        mem_free(c->tensors[i].name);
        mem_free(c->tensors[i].sums);
        mem_free(c->tensors[i].means);
    }
    mem_free(c->tensors);
    strmap_fini(&c->by_name);
    mem_free(c);
}

/* Reserves room for every matrix of the file, so that the callback does not allocate. */
static int reserve(struct calibration *c, const struct model_file *file)
{
    c->tensors = mem_zalloc_n(file->n_tensors, sizeof(*c->tensors));
    if (!c->tensors || strmap_init(&c->by_name, file->n_tensors) < 0)
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct model_file_tensor *t = &file->tensors[i];
        if (t->n_dims < 2 || t->dims[0] > UINT32_MAX)
            continue;
        struct column_sums *k = &c->tensors[c->n_tensors++];
        k->n_cols = (uint32_t)t->dims[0];
        k->name = mem_strndup(t->name.p, t->name.n);
        k->sums = mem_zalloc_n(k->n_cols, sizeof(*k->sums));
        k->means = mem_zalloc_n(k->n_cols, sizeof(*k->means));
        if (!k->name || !k->sums || !k->means)
            return SHOAL_ENOMEM;
        int rc = strmap_put(&c->by_name, k->name, strlen(k->name), (uint32_t)(c->n_tensors - 1));
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct column_sums *find(const struct calibration *c, const char *tensor)
{
    uint32_t i;
    return strmap_get(&c->by_name, tensor, strlen(tensor), &i) ? &c->tensors[i] : NULL;
}

/* Called by the compute thread that begins a product; never by two at once. */
static void watch(void *ctx, const char *tensor, const float *x, uint32_t n_cols)
{
    struct column_sums *k = find(ctx, tensor);
    if (!k || k->n_cols != n_cols)
        return;
    for (uint32_t i = 0; i < n_cols; i++)
        k->sums[i] += (double)x[i] * (double)x[i];
    k->n_rows++;
}

static void run_chunk(struct decoder *d, const int32_t *ids, uint32_t n, const uint32_t *pages)
{
    uint32_t most = decoder_max_batch(d), rows = decoder_max_logits(d);
    for (uint32_t at = 0; at < n;) {
        uint32_t k = n - at < most ? n - at : most;
        /* The output matrix is only used for tokens with logits. */
        struct decoder_run run = {.tokens = ids + at,
                                  .n = k,
                                  .pos0 = at,
                                  .pages = pages,
                                  .n_logits_last = k < rows ? k : rows};
        decoder_forward(d, &run, 1);
        at += k;
    }
}

static int run_text(struct calibration *c, struct decoder *d, const struct tokenizer *t,
                    struct tok_ids *ids, const struct calibration_opts *o, struct err *e)
{
    const struct tokenizer_info *info = tokenizer_info(t);
    uint32_t ctx = o->ctx ? o->ctx : DEFAULT_CTX;
    ctx = ctx < decoder_n_ctx(d) ? ctx : decoder_n_ctx(d);
    size_t n_chunks = (ids->n + ctx - 1) / ctx;
    n_chunks = o->chunks && o->chunks < n_chunks ? o->chunks : n_chunks;
    if (ids->n < 16)
        return err_set(e, SHOAL_EINVAL, "the text has %zu token%s, too few to calibrate with",
                       ids->n, plural(ids->n));
    uint32_t *pages = mem_zalloc_n(ctx / KERN_PAGE + 1, sizeof(*pages));
    if (!pages)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a calibration");
    for (uint32_t i = 0; i <= ctx / KERN_PAGE; i++)
        pages[i] = i;
    int rc = 0;
    decoder_watch(d, watch, c);
    for (size_t k = 0; rc == 0 && k < n_chunks; k++) {
        int32_t *chunk = ids->ids + k * ctx;
        size_t left = ids->n - k * ctx;
        uint32_t n = left < ctx ? (uint32_t)left : ctx;
        if (info->add_bos && info->bos != TOKENIZER_NONE)
            chunk[0] = info->bos;
        run_chunk(d, chunk, n, pages);
        c->n_tokens += n;
        if (o->progress && o->progress(o->progress_ctx, (double)(k + 1) / (double)n_chunks))
            rc = err_set(e, SHOAL_ECANCELLED, "interrupted");
    }
    decoder_watch(d, NULL, NULL);
    mem_free(pages);
    return rc;
}

int calibration_run(struct calibration **out, struct decoder *d, const struct model_file *file,
                    const struct tokenizer *t, const char *text, size_t n,
                    const struct calibration_opts *o, struct err *e)
{
    struct tok_ids ids;
    struct calibration *c = mem_zalloc(sizeof(*c));
    *out = NULL;
    tok_ids_init(&ids, MAX_TOKENS);
    int rc = c && reserve(c, file) == 0
                 ? 0
                 : err_set(e, SHOAL_ENOMEM, "out of memory for a calibration");
    if (rc == 0)
        rc = tokenizer_encode(t, &ids, text, n, TOKENIZER_ADD_SPECIAL, e);
    if (rc == 0)
        rc = run_text(c, d, t, &ids, o, e);
    for (size_t i = 0; rc == 0 && i < c->n_tensors; i++) {
        struct column_sums *k = &c->tensors[i];
        for (uint32_t j = 0; k->n_rows && j < k->n_cols; j++)
            k->means[j] = (float)(k->sums[j] / (double)k->n_rows);
    }
    if (rc == 0) {
        *out = c;
        c = NULL;
    }
    calibration_destroy(c);
    tok_ids_fini(&ids);
    return rc;
}

uint64_t calibration_n_tokens(const struct calibration *c)
{
    return c->n_tokens;
}

const float *calibration_importance(void *ctx, const char *tensor, uint64_t n_cols)
{
    const struct column_sums *k = find(ctx, tensor);
    return k && k->n_rows && k->n_cols == n_cols ? k->means : NULL;
}
