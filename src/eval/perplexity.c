/* perplexity.c - see perplexity.h. */
#include "base/plural.h"
#include "eval/perplexity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

#define MAX_TEXT_BYTES ((size_t)1 << 30)
#define MAX_TOKENS ((size_t)1 << 28)

/* -log p(token) in double. */
static double surprise(const float *logits, uint32_t n, int32_t token)
{
    double max = (double)logits[0], sum = 0; /* n > 0, so sum ends at 1 or more */
    for (uint32_t i = 1; i < n; i++)
        max = (double)logits[i] > max ? (double)logits[i] : max;
    for (uint32_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - max);
    /* cppcheck-suppress invalidFunctionArg */
    return log(sum) + max - (double)logits[token];
}

/* Adds one chunk of c tokens that starts with an empty cache. */
static void score_chunk(struct perplexity_result *r, struct decoder *d, const int32_t *ids,
                        uint32_t c, const uint32_t *pages, double *sum)
{
    uint32_t most = decoder_max_batch(d), rows = decoder_max_logits(d);
    uint32_t first = c / 2; /* predictions of positions first .. c - 2 count */
    for (uint32_t at = 0; at < c;) {
        uint32_t n = c - at < most ? c - at : most;
        if (at < first && at + n > first)
            n = first - at; /* passes without and with logits */
        if (at >= first && n > rows)
            n = rows;
        struct decoder_run run = {.tokens = ids + at,
                                  .n = n,
                                  .pos0 = at,
                                  .pages = pages,
                                  .n_logits_last = at >= first ? n : 0};
        decoder_forward(d, &run, 1);
        for (uint32_t i = 0; at >= first && i < n && at + i + 1 < c; i++) {
            *sum += surprise(decoder_logits(d, i), decoder_config(d)->n_vocab, ids[at + i + 1]);
            r->n_scored++;
        }
        at += n;
    }
}

int perplexity_text(struct perplexity_result *out, struct decoder *d, const struct tokenizer *t,
                    const char *text, size_t n, const struct perplexity_opts *o, struct err *e)
{
    const struct tokenizer_info *info = tokenizer_info(t);
    uint32_t c = o->ctx ? o->ctx : decoder_n_ctx(d) < 512 ? decoder_n_ctx(d) : 512;
    struct tok_ids ids;
    uint32_t *pages = NULL;
    double sum = 0;
    uint64_t t0 = clock_ns();
    *out = (struct perplexity_result){0};
    tok_ids_init(&ids, MAX_TOKENS);
    int rc = c < 4 || c > decoder_n_ctx(d)
                 ? err_set(e, SHOAL_EINVAL, "cannot use chunks of %u tokens, expected 4 to %u", c,
                           decoder_n_ctx(d))
                 : tokenizer_encode(t, &ids, text, n, TOKENIZER_ADD_SPECIAL, e);
    uint32_t n_chunks = rc == 0 ? (uint32_t)(ids.n / c) : 0;
    if (o->chunks && o->chunks < n_chunks)
        n_chunks = o->chunks;
    if (rc == 0 && n_chunks == 0)
        rc = err_set(e, SHOAL_EINVAL, "the text has %zu token%s, but at least %u are needed", ids.n,
                     plural(ids.n), c);
    pages = rc == 0 ? mem_zalloc_n(c / KERN_PAGE + 1, sizeof(*pages)) : NULL;
    if (rc == 0 && !pages)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the text");
    for (uint32_t i = 0; rc == 0 && i <= c / KERN_PAGE; i++)
        pages[i] = i;
    for (uint32_t k = 0; rc == 0 && k < n_chunks; k++) {
        int32_t *chunk = ids.ids + (size_t)k * c;
        if (info->add_bos && info->bos != TOKENIZER_NONE)
            chunk[0] = info->bos;
        score_chunk(out, d, chunk, c, pages, &sum);
        out->n_chunks++;
        out->nll = sum / (double)out->n_scored;
        out->ppl = exp(out->nll);
        out->ms = (double)(clock_ns() - t0) / 1e6;
        if (o->progress && o->progress(o->progress_ctx, out, n_chunks))
            rc = err_set(e, SHOAL_ECANCELLED, "interrupted");
    }
    out->n_tokens = (uint32_t)ids.n;
    mem_free(pages);
    tok_ids_fini(&ids);
    return rc;
}

int perplexity_file(struct perplexity_result *out, struct decoder *d, const struct tokenizer *t,
                    const char *path, const struct perplexity_opts *o, struct err *e)
{
    struct buf text;
    char part[65536];
    FILE *f = fopen(path, "rbe");
    if (!f)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(errno));
    buf_init(&text, MAX_TEXT_BYTES);
    for (size_t n; (n = fread(part, 1, sizeof(part), f)) > 0;)
        buf_put(&text, part, n);
    int rc = ferror(f)     ? err_set(e, SHOAL_EIO, "cannot read %s", path)
             : text.rc < 0 ? err_set(e, text.rc, "%s is too large", path)
                           : 0;
    fclose(f);
    if (rc == 0)
        rc = perplexity_text(out, d, t, buf_str(&text), text.len, o, e);
    buf_fini(&text);
    return rc;
}
