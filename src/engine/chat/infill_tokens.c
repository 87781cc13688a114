/* infill_tokens.c - see infill_tokens.h. */
#include "engine/chat/infill_tokens.h"

#include "engine/engine_state.h"
#include "engine/kinds.h"

#define MAX_PROMPT_TOKENS ((size_t)1 << 26)

int infill_tokens_of(const struct shoal_engine *en, const char *prefix, size_t n_prefix,
                     const char *suffix, size_t n_suffix, int32_t **tokens, size_t *n_tokens,
                     struct err *e)
{
    *tokens = NULL;
    *n_tokens = 0;
    if (!(en->kinds & SHOAL_KIND_GENERATE))
        return kinds_lack(en->kinds, SHOAL_KIND_GENERATE, e);
    const struct tokenizer_info *info = tokenizer_info(en->tokenizer);
    if (info->fim_pre < 0 || info->fim_suf < 0 || info->fim_mid < 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the model cannot fill in text: its vocabulary has no tokens for what is "
                       "before and behind; leave out the suffix");
    struct tok_ids ids;
    tok_ids_init(&ids, MAX_PROMPT_TOKENS);
    int rc = info->add_bos ? tok_ids_push(&ids, info->bos) : 0;
    if (rc == 0)
        rc = tok_ids_push(&ids, info->fim_pre);
    if (rc == 0)
        rc = tokenizer_encode(en->tokenizer, &ids, prefix, n_prefix, 0, e);
    if (rc == 0)
        rc = tok_ids_push(&ids, info->fim_suf);
    if (rc == 0)
        rc = tokenizer_encode(en->tokenizer, &ids, suffix, n_suffix, 0, e);
    if (rc == 0)
        rc = tok_ids_push(&ids, info->fim_mid);
    if (rc == 0) {
        *tokens = ids.ids;
        *n_tokens = ids.n;
        ids.ids = NULL;
    } else {
        err_set(e, rc, "cannot tokenize the text to fill in: %s", err_text(rc));
    }
    tok_ids_fini(&ids);
    return rc;
}
