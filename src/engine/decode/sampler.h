/* sampler.h - picks a token from logits.
 *
 * Random numbers come from a counter-based generator: the number at position p depends only on
 * (seed, p), so a generation that continues elsewhere gives the same text.
 *
 * Thread:    belongs to the engine's thread.
 * Ownership: all scratch is reserved at create; picking allocates nothing. */
#ifndef SHOAL_ENGINE_DECODE_SAMPLER_H
#define SHOAL_ENGINE_DECODE_SAMPLER_H

#include "base/err.h"
#include "kernels/kern.h"
#include "shoal/shoal.h"

struct sampler;

struct sampler_pick {
    int32_t token;
    float logprob; /* of the model's own distribution, before bias and penalties */
    uint32_t n_top;
    struct shoal_logprob top[SHOAL_MAX_LOGPROBS];
};

SHOAL_MUST_CHECK int sampler_create(struct sampler **out, const struct kern_ops *k,
                                    uint32_t n_vocab, struct err *e);
void sampler_destroy(struct sampler *s);
/* SHOAL_EINVAL if a value is out of range; the message names it. */
SHOAL_MUST_CHECK int sampler_check(const struct shoal_sampling *o, uint32_t n_vocab, struct err *e);
/* allowed: bits of the tokens to choose from, at least one; NULL: all. history: all tokens so far
 * (prompt, then n_generated generated ones); the token to pick gets position n_history. false: the
 * best logit is not a finite number; then nothing was picked. */
SHOAL_MUST_CHECK bool sampler_run(struct sampler *s, struct sampler_pick *out, const float *logits,
                                  const struct shoal_sampling *o, const uint64_t *allowed,
                                  const int32_t *history, uint32_t n_history, uint32_t n_generated);
/* The log-probability of a given token and, as o asks, of the likeliest ones. */
void sampler_score(struct sampler *s, struct sampler_pick *out, const float *logits,
                   const struct shoal_sampling *o, int32_t token);
/* After sampler_run with the same arguments, which picked out->token: replaces the
 * log-probabilities by those after filtering, for the tokens that could be sampled. */
void sampler_score_drawn(struct sampler *s, struct sampler_pick *out, const float *logits,
                         const struct shoal_sampling *o, const uint64_t *allowed,
                         const int32_t *history, uint32_t n_history, uint32_t n_generated);
/* Uniform in [0, 1). */
double sampler_uniform(uint64_t seed, uint64_t position);

#endif
