/* prompt.c - see prompt.h. */
#include "flow/generate/prompt.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "engine/chat/infill_tokens.h"
#include "engine/chat/chat_tokens.h"
#include "engine/prompt_limit.h"

#define MAX_TOKEN_BYTES ((size_t)256 << 20)

/* A prompt that spells the token with which the model's texts begin gets no second one. */
static int drop_second_begin(const struct shoal_engine *en, int32_t *tokens, size_t *n,
                             struct err *e)
{
    int32_t *begin = NULL;
    size_t n_begin = 0;
    int rc = shoal_tokenize(en, "", 0, SHOAL_TEXT_ADD_SPECIAL, &begin, &n_begin, e);
    if (rc == 0 && n_begin == 1 && *n >= 2 && tokens[0] == begin[0] && tokens[1] == begin[0])
        memmove(tokens, tokens + 1, --*n * sizeof(*tokens));
    shoal_free(begin);
    return rc;
}

/* The text at the beginning of a prompt, or one that follows other pieces. */
static int text_tokens(const struct shoal_engine *en, const char *text, size_t bytes, bool first,
                       bool parse_special, int32_t **tokens, size_t *n, struct err *e)
{
    unsigned flags =
        (first ? SHOAL_TEXT_ADD_SPECIAL : 0) | (parse_special ? SHOAL_TEXT_PARSE_SPECIAL : 0);
    int rc = prompt_limit_tokenize(en, text, bytes, flags, tokens, n, e);
    if (rc == 0 && first && parse_special)
        rc = drop_second_begin(en, *tokens, n, e);
    return rc;
}

/* Joins texts and ids; the model's leading tokens are added if a text is first. */
static int join_pieces(const struct shoal_engine *en, const struct request_prompt *from,
                       bool parse_special, int32_t **tokens, size_t *n, struct err *e)
{
    struct buf all;
    int rc = 0;
    buf_init(&all, MAX_TOKEN_BYTES);
    for (uint32_t i = 0; i < from->n_pieces && rc == 0; i++) {
        const struct request_piece *p = &from->pieces[i];
        int32_t *own = NULL;
        size_t n_own = p->n_ids;
        if (p->text)
            rc = text_tokens(en, p->text, p->text_bytes, i == 0, parse_special, &own, &n_own, e);
        if (rc == 0)
            buf_put(&all, p->text ? own : p->ids, n_own * sizeof(*own));
        shoal_free(own);
    }
    size_t bytes = 0;
    *tokens = rc == 0 ? (int32_t *)(void *)buf_take(&all, &bytes) : NULL;
    *n = bytes / sizeof(**tokens);
    if (rc == 0 && !*tokens)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory");
    buf_fini(&all);
    return rc;
}

/* Files in front of a text to fill in. */
static int fill_in(const struct shoal_engine *en, const struct request_prompt *from,
                   uint32_t max_tokens, int32_t **tokens, size_t *n, struct err *e)
{
    struct infill_file files[REQUEST_MAX_PIECES];
    struct infill what = {.prefix = from->text,
                          .n_prefix = from->text_bytes,
                          .suffix = from->suffix,
                          .n_suffix = from->suffix_bytes,
                          .files = files,
                          .max_tokens = max_tokens};
    for (uint32_t i = 0; i < from->n_pieces && i < REQUEST_MAX_PIECES; i++)
        files[what.n_files++] = (struct infill_file){from->pieces[i].name, from->pieces[i].text,
                                                     from->pieces[i].text_bytes};
    return infill_tokens_of(en, &what, tokens, n, e);
}

static bool has_ids(const struct request_prompt *p)
{
    return !p->text && p->n_pieces == 0;
}

/* Of a prompt that is not token ids. */
static int tokenize(const struct shoal_engine *en, const struct request_prompt *from,
                    const struct request_generate *g, int32_t **tokens, size_t *n, struct err *e)
{
    if (from->suffix)
        return fill_in(en, from, g->max_tokens, tokens, n, e);
    if (!from->text)
        return join_pieces(en, from, g->parse_special, tokens, n, e);
    return text_tokens(en, from->text, from->text_bytes, true, g->parse_special, tokens, n, e);
}

/* Biases of texts become biases of their tokens. */
static int add_biases(struct request *r, const struct shoal_engine *en, struct err *e)
{
    struct request_generate *g = &r->generate;
    struct shoal_sampling *s = &g->sampling;
    struct shoal_bias *all = arena_zalloc_n(&r->arena, REQUEST_MAX_BIAS, sizeof(*all));
    int rc = all ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory");
    if (all && s->n_bias > 0)
        memcpy(all, s->bias, s->n_bias * sizeof(*all));
    for (uint32_t i = 0; i < g->n_bias_texts && rc == 0; i++) {
        const struct request_bias *b = &g->bias_texts[i];
        int32_t *tokens = NULL;
        size_t n = 0;
        rc = shoal_tokenize(en, b->text, strlen(b->text), 0, &tokens, &n, e);
        if (rc == 0 && n > REQUEST_MAX_BIAS - s->n_bias)
            rc = err_set(e, SHOAL_EINVAL, "the texts of the bias have more than %u tokens",
                         REQUEST_MAX_BIAS);
        for (size_t k = 0; k < n && rc == 0; k++)
            all[s->n_bias++] = (struct shoal_bias){tokens[k], b->bias};
        shoal_free(tokens);
    }
    if (rc == 0)
        s->bias = all;
    g->n_bias_texts = 0;
    return rc;
}

/* Several prompts: their tokens one after the other; `ends` holds where each ends. */
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
        if (!has_ids(from))
            rc = tokenize(en, from, g, &tokens, &n, e);
        if (rc == 0)
            buf_put(&all, has_ids(from) ? from->ids : tokens, n * sizeof(*tokens));
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
    } else if (!has_ids(&g->prompts[0])) {
        rc = tokenize(engine, &g->prompts[0], g, &p->owned, &p->n_tokens, e);
        p->tokens = p->owned;
    } else {
        p->tokens = g->prompts[0].ids;
        p->n_tokens = g->prompts[0].n_ids;
    }
    if (rc == 0 && g->n_bias_texts > 0)
        rc = add_biases(r, engine, e);
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
