/* tok_spm.c - see tok_spm.h. */
#include "text/tokenizer/algorithm/tok_spm.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/algorithm/tok_merge.h"

struct spm {
    struct tok_merge merge;
    const struct tok_special *special;
    bool space_prefix;
};

struct run { /* one text */
    const struct spm *spm;
    struct tok_merge_work work;
    struct tok_rewrite text;
};

_Static_assert(sizeof(struct tok_merge_work) <= TOKENIZER_WORK_BYTES, "working memory of a word");

/* Order of merging as an integer: the higher the score, the smaller. */
static uint32_t priority(double score)
{
    float f = (float)score;
    uint32_t bits;
    if (isnan(f))
        return UINT32_MAX - 1; /* a broken file: merge it last */
    f += 0.0f;                 /* -0 is 0 */
    memcpy(&bits, &f, sizeof(bits));
    bits = bits & 0x80000000u ? bits : ~bits & 0x7fffffffu; /* larger floats, smaller integers */
    return bits < UINT32_MAX ? bits : UINT32_MAX - 1;       /* the last value means no pair */
}

static void destroy(void *state)
{
    struct spm *spm = state;
    tok_merge_fini(&spm->merge);
    mem_free(spm);
}

int tok_spm_create(void **out, const struct tok_vocab *v, const struct tok_special *special,
                   tok_spm_score_fn score, const void *ctx, bool space_prefix, struct err *e)
{
    struct spm *spm = mem_zalloc(sizeof(*spm));
    *out = NULL;
    if (!spm)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tokenizer");
    spm->special = special;
    spm->space_prefix = space_prefix;
    int rc = tok_merge_init(&spm->merge, v, true, e);
    uint32_t *prio = rc == 0 ? mem_zalloc_n(v->n, sizeof(*prio)) : NULL;
    spm->merge.prio = prio;
    if (rc == 0 && !prio)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", v->n);
    if (rc < 0) {
        destroy(spm);
        return rc;
    }
    for (uint32_t i = 0; i < v->n; i++)
        prio[i] = priority(score(ctx, i));
    *out = spm;
    return 0;
}

static int encode_plain(void *ctx, struct tok_call *c, const char *p, size_t n)
{
    struct run *r = ctx;
    int rc = tok_rewrite_unescape(&r->text, c, p, n, r->spm->space_prefix);
    return rc < 0 ? rc : tok_merge_spaced(&r->spm->merge, &r->work, c, r->text.p, r->text.n);
}

static int encode(const void *state, struct tok_call *c, const char *p, size_t n, unsigned flags)
{
    struct run r = {.spm = state};
    int rc = tok_special_split(r.spm->special, r.spm->merge.v, c, p, n, flags, encode_plain, &r);
    tok_merge_work_fini(&r.work);
    tok_rewrite_fini(&r.text);
    return rc;
}

static int word(const void *state, struct tok_call *c, void *work, const char *p, size_t n)
{
    const struct spm *spm = state;
    return tok_merge_word(&spm->merge, work, c, p, n);
}

static void word_end(void *work)
{
    tok_merge_work_fini(work);
}

const struct tokenizer_ops tok_spm_ops = {
    .encode = encode, .word = word, .word_end = word_end, .destroy = destroy};
