/* prompt.h - the prompts of a request as tokens: by the chat template, by the tokenizer, or as they
 * came.
 *
 * Thread:    any; no other thread may use the request meanwhile.
 * Ownership: prompt_fini frees; with token ids the tokens are the request's own.
 * Failure:   of the template or the tokenizer, or SHOAL_ENOMEM. */
#ifndef SHOAL_FLOW_GENERATE_PROMPT_H
#define SHOAL_FLOW_GENERATE_PROMPT_H

#include "flow/request.h"

struct prompt {
    const int32_t *tokens; /* of all prompts, one after the other */
    size_t n_tokens;
    size_t *ends;   /* of several prompts: where each ends; in the request's arena */
    int32_t *owned; /* private */
};

/* p is zero before.  Texts of the request that tokens are biased by become tokens too. */
SHOAL_MUST_CHECK int prompt_make(struct prompt *p, struct request *r,
                                 const struct shoal_engine *engine, struct err *e);
void prompt_fini(struct prompt *p);
/* The tokens of prompt i. */
const int32_t *prompt_tokens(const struct prompt *p, uint32_t i, size_t *n);

#endif
