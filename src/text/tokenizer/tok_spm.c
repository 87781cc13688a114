/* tok_spm.c - SentencePiece BPE: pieces with scores, spaces as part of words, byte fallback. */
#include "text/tokenizer/tok_internal.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "format/model_file.h"

/* Order of merging as an integer: the higher the score, the smaller. */
static uint32_t priority(double score)
{
    float f = (float)score;
    uint32_t bits;
    if (isnan(f))
        return UINT32_MAX - 1; /* a file of nonsense: merge it last */
    f += 0.0f;                 /* -0 is 0 */
    memcpy(&bits, &f, sizeof(bits));
    bits = bits & 0x80000000u ? bits : ~bits & 0x7fffffffu; /* larger floats, smaller integers */
    return bits < UINT32_MAX ? bits : UINT32_MAX - 1;       /* the last value means no pair */
}

int spm_load(struct tokenizer *t, const struct model_file *g, struct err *e)
{
    const struct model_file_value *kv = model_file_find(g, "tokenizer.ggml.scores");
    t->prio = mem_zalloc_n(t->v.n, sizeof(*t->prio));
    if (!t->prio)
        return err_set(e, SHOAL_ENOMEM, "vocabulary of %u tokens", t->v.n);
    if (!kv || kv->type != MODEL_FILE_ARRAY || kv->n_elems < t->v.n)
        return err_set(e, SHOAL_EFORMAT,
                       "tokenizer.ggml.scores is missing or shorter than the vocabulary");
    for (uint32_t i = 0; i < t->v.n; i++) {
        double score;
        if (!model_file_f64_at(kv, i, &score))
            return err_set(e, SHOAL_EFORMAT, "tokenizer.ggml.scores is no array of numbers");
        t->prio[i] = priority(score);
    }
    tok_merge_index_chars(t);
    t->info.nl = t->v.byte_id['\n'];
    return 0;
}

int spm_set_scores(struct tokenizer *t, const double *scores, struct err *e)
{
    t->prio = mem_zalloc_n(t->v.n, sizeof(*t->prio));
    if (!t->prio)
        return err_set(e, SHOAL_ENOMEM, "vocabulary of %u tokens", t->v.n);
    for (uint32_t i = 0; i < t->v.n; i++)
        t->prio[i] = priority(scores[i]);
    tok_merge_index_chars(t);
    return 0;
}

int spm_encode(struct tok_scratch *s, const char *p, size_t n, bool space_prefix)
{
    int rc = tok_unescape_view(s, p, n, space_prefix);
    return rc < 0 ? rc : tok_merge_spaced(s, s->text.p, s->text.n);
}
