/* prompt_limit.c - see prompt_limit.h. */
#include "engine/prompt_limit.h"

#include "engine/engine_state.h"
#include "text/tokenizer/tokenizer.h"

#define MAX_TOKENS ((size_t)1 << 26)
#define COUNTED 4u        /* contexts */
#define NORMALIZED 4u     /* bytes that a normalizer makes one of, at most */
#define FREE_BYTES 65536u /* tokenized in any case: it takes a millisecond */

size_t prompt_limit_tokens(const struct shoal_engine *en)
{
    const size_t n_ctx = en->lm.info.n_ctx;
    return n_ctx > 0 ? COUNTED * n_ctx + FREE_BYTES : MAX_TOKENS;
}

int prompt_limit_check(const struct shoal_engine *en, size_t n, struct err *e)
{
    const struct tokenizer_info *info = en->tokenizer ? tokenizer_info(en->tokenizer) : NULL;
    const size_t n_ctx = en->lm.info.n_ctx;
    /* others may make one token of any number of characters that they do not know */
    const bool spelled =
        info && (info->kind == TOKENIZER_KIND_BPE || info->kind == TOKENIZER_KIND_SPM);
    if (n_ctx == 0 || !spelled || info->max_piece_bytes == 0 ||
        n <= FREE_BYTES + n_ctx * info->max_piece_bytes * NORMALIZED)
        return 0;
    return err_set(e, SHOAL_ELIMIT,
                   "the prompt has %zu bytes, more than the context of %zu tokens can hold", n,
                   n_ctx);
}

int prompt_limit_passed(const struct shoal_engine *en, int rc, struct err *e)
{
    if (rc != SHOAL_ELIMIT || en->lm.info.n_ctx == 0)
        return rc;
    return err_set(e, rc, "the prompt has more than %zu tokens, but the context holds only %u",
                   prompt_limit_tokens(en), en->lm.info.n_ctx);
}

int prompt_limit_tokenize(const struct shoal_engine *en, const char *text, size_t n, unsigned flags,
                          int32_t **tokens, size_t *n_tokens, struct err *e)
{
    int rc = prompt_limit_check(en, n, e);
    if (rc < 0)
        return rc;
    rc = engine_tokenize(en, text, n, flags, prompt_limit_tokens(en), tokens, n_tokens, e);
    return prompt_limit_passed(en, rc, e);
}
