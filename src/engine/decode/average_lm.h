/* average_lm.h - several language models with one vocabulary combined into one: each pass runs on
 * all of them, and a row of logits is the logarithm of the weighted mean of their probabilities.
 *
 * Everything that uses logits (sampling, constraints, log-probabilities) works on the mean as on a
 * single model. Sequences have the same pages and slots in every member, so one plan serves all.
 *
 * Thread:    as lm.h.  The members' passes follow each other; each uses all compute threads.
 * Ownership: create takes over the members, also when it fails.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_ENGINE_DECODE_AVERAGE_LM_H
#define SHOAL_ENGINE_DECODE_AVERAGE_LM_H

#include "base/err.h"
#include "engine/decode/lm.h"
#include "shoal/shoal.h"

#define AVERAGE_MAX_MEMBERS SHOAL_MAX_AVERAGE

struct kern_ops;

struct average_member {
    struct lm lm;
    double weight;           /* at least 0, one of them above; members with 0 are not computed */
    struct model_file *file; /* file of lm, closed with it; NULL: the caller's */
    uint8_t *kv;             /* KV cache of lm, freed with it */
    size_t kv_bytes;
};

/* max_rows: maximum rows of logits per pass. */
SHOAL_MUST_CHECK int average_lm_create(struct lm *out, struct average_member *members, uint32_t n,
                                       const struct kern_ops *kernels, uint32_t max_rows,
                                       struct err *e);
void average_member_fini(struct average_member *m);

/* out[i] = log(sum over members of weight * softmax(row)[i]), up to a constant; every value is
 * finite if those of the rows are, so that a constraint may choose the least likely token.
 * rows: n_rows of n each.  Weights are above 0.  work: 2 * AVERAGE_BLOCK values. */
#define AVERAGE_BLOCK 1024u
void average_mix(float *out, const float *const *rows, const double *weights, uint32_t n_rows,
                 uint32_t n, const struct kern_ops *kernels, float *work);

#endif
