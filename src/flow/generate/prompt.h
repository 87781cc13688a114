/* prompt.h - the prompts of a request as tokens: from the chat template, from the tokenizer, or as
 * given.
 *
 * Thread:    any; no other thread may use the request during the call.
 * Ownership: prompt_fini frees; with token ids the tokens are the request's own.
 * Failure:   of the template or the tokenizer, or SHOAL_ENOMEM. */
#ifndef SHOAL_FLOW_GENERATE_PROMPT_H
#define SHOAL_FLOW_GENERATE_PROMPT_H

#include "flow/request.h"

struct prompt {
    const int32_t *tokens; /* all prompts, concatenated */
    size_t n_tokens;
    size_t *ends;   /* with several prompts: the end of each; in the request's arena */
    int32_t *owned; /* private */
};

/* p is zero before. Also converts biased texts of the request to tokens. */
SHOAL_MUST_CHECK int prompt_make(struct prompt *p, struct request *r,
                                 const struct shoal_engine *engine, struct err *e);
void prompt_fini(struct prompt *p);
/* The tokens of prompt i. */
const int32_t *prompt_tokens(const struct prompt *p, uint32_t i, size_t *n);

#endif
