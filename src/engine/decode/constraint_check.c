/* constraint_check.c - see constraint_check.h. */
#include "engine/decode/constraint_check.h"

#include "engine/engine_state.h"
#include "engine/kinds.h"

int constraint_check(struct shoal_engine *en, enum shoal_constraint kind, const char *text,
                     size_t n, struct err *e)
{
    struct constraint *c = NULL;
    if (kind == SHOAL_CONSTRAINT_NONE)
        return 0;
    if (!en->lm.ops)
        return kinds_lack(en->kinds, SHOAL_KIND_GENERATE, e);
    int rc =
        constraints_get(&c, &en->constraints, en->tokenizer, en->lm.info.n_vocab, kind, text, n, e);
    constraint_unref(c);
    return rc;
}
