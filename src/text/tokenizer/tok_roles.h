/* tok_roles.h - end of turn, end of generation and the like by the spelling of tokens.
 *
 * Thread:    belongs to the call that loads.
 * Failure:   SHOAL_ENOMEM. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_ROLES_H
#define SHOAL_TEXT_TOKENIZER_TOK_ROLES_H

#include "text/tokenizer/tok_vocab.h"
#include "text/tokenizer/tokenizer_info.h"

struct tok_roles_source { /* tokens as a file spells them, in any order */
    bool (*next)(void *ctx, uint32_t *id, struct str *text);
    void *ctx;
};

/* Fills the roles of info that no key has named, and marks the tokens that end a generation. */
SHOAL_MUST_CHECK int tok_roles_find(struct tokenizer_info *info, struct tok_vocab *v,
                                    const struct tok_roles_source *src, struct err *e);

#endif
