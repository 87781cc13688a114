/* prompt.c - see prompt.h. */
#include "flow/prompt.h"

#include "base/buf.h"
#include "base/mem.h"
#include "engine/chat/infill_tokens.h"
#include "engine/chat/chat_tokens.h"

#define MAX_TOKEN_BYTES ((size_t)256 << 20)

static int tokenize(const struct shoal_engine *en, const struct request_prompt *from,
                    int32_t **tokens, size_t *n, struct err *e)
{
    if (from->suffix)
        return infill_tokens_of(en, from->text, from->text_bytes, from->suffix, from->suffix_bytes,
                                tokens, n, e);
    return shoal_tokenize(en, from->text, from->text_bytes, SHOAL_TEXT_ADD_SPECIAL, tokens, n, e);
}

/* Several prompts: their tokens behind each other, and `ends` says where. */
static int make_several(struct prompt *p, struct request *r, const struct shoal_engine *en,
                        struct err *e)
{
    const struct request_generate *g = &r->generate;
    struct buf all;
    int rc = 0;
    p->ends = arena_zalloc_n(&r->arena, g->n_prompts, sizeof(*p->ends));
    if (!p->ends)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    buf_init(&all, MAX_TOKEN_BYTES);
    for (uint32_t i = 0; i < g->n_prompts && rc == 0; i++) {
        const struct request_prompt *from = &g->prompts[i];
        int32_t *tokens = NULL;
        size_t n = from->n_ids;
        if (from->text)
            rc = tokenize(en, from, &tokens, &n, e);
        if (rc == 0)
            buf_put(&all, from->text ? tokens : from->ids, n * sizeof(*tokens));
        p->ends[i] = all.len / sizeof(*tokens);
        shoal_free(tokens);
    }
    if (rc == 0) {
        size_t bytes;
        p->owned = (int32_t *)(void *)buf_take(&all, &bytes);
        p->tokens = p->owned;
        p->n_tokens = p->owned ? bytes / sizeof(*p->owned) : 0;
        if (!p->owned)
            rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    }
    buf_fini(&all);
    return rc;
}

int prompt_make(struct prompt *p, struct request *r, const struct shoal_engine *engine,
                struct err *e)
{
    const struct request_generate *g = &r->generate;
    int rc = 0;
    if (g->chat.n_messages > 0) {
        rc = chat_tokens_of(engine, &g->chat, &p->owned, &p->n_tokens, e);
        p->tokens = p->owned;
    } else if (g->n_prompts > 1) {
        rc = make_several(p, r, engine, e);
    } else if (g->prompts[0].text) {
        rc = tokenize(engine, &g->prompts[0], &p->owned, &p->n_tokens, e);
        p->tokens = p->owned;
    } else {
        p->tokens = g->prompts[0].ids;
        p->n_tokens = g->prompts[0].n_ids;
    }
    return rc;
}

void prompt_fini(struct prompt *p)
{
    mem_free(p->owned);
    p->owned = NULL;
}

const int32_t *prompt_tokens(const struct prompt *p, uint32_t i, size_t *n)
{
    size_t from = p->ends && i > 0 ? p->ends[i - 1] : 0;
    *n = (p->ends ? p->ends[i] : p->n_tokens) - from;
    return p->tokens + from;
}
