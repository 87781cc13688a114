/* kept_answer.c - see kept_answer.h. */
#include "host/kept_answer.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/rd.h"

/* The encoding is little-endian; like rd.h, this writes numbers as they lie in memory. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "kept_answer.c needs a little-endian machine"
#endif

static const uint8_t magic[4] = {'S', 'K', 'A', '1'};

#define HEAD_BYTES 12u
#define CHOICE_BYTES 36u
#define TOKEN_BYTES 20u /* without alternatives and text */
#define TOP_BYTES 8u

static uint8_t *put_u32(uint8_t *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v));
    return at + sizeof(v);
}

static uint8_t *put_u64(uint8_t *at, uint64_t v)
{
    memcpy(at, &v, sizeof(v));
    return at + sizeof(v);
}

static uint8_t *put_f32(uint8_t *at, float v)
{
    memcpy(at, &v, sizeof(v));
    return at + sizeof(v);
}

void kept_answer_put_token(struct buf *tokens, const struct kept_token *t)
{
    uint8_t head[TOKEN_BYTES + KEPT_ANSWER_MAX_TOP * TOP_BYTES], *at = head;
    uint32_t n_top = t->n_top < KEPT_ANSWER_MAX_TOP ? t->n_top : KEPT_ANSWER_MAX_TOP;
    at = put_u32(at, t->choice);
    at = put_u32(at, (uint32_t)t->token);
    at = put_f32(at, t->logprob);
    at = put_u32(at, (uint32_t)t->text_bytes);
    at = put_u32(at, n_top);
    for (uint32_t i = 0; i < n_top; i++) {
        at = put_u32(at, (uint32_t)t->top[i].token);
        at = put_f32(at, t->top[i].logprob);
    }
    buf_put(tokens, head, (size_t)(at - head));
    buf_put(tokens, t->text, t->text_bytes);
}

int kept_answer_put(struct buf *out, const struct kept_choice *choices, uint32_t n_choices,
                    const struct buf *tokens)
{
    uint8_t bytes[CHOICE_BYTES], *at = bytes;
    if (n_choices == 0 || n_choices > KEPT_ANSWER_MAX_CHOICES || tokens->len > UINT32_MAX)
        return SHOAL_EINVAL;
    if (tokens->rc < 0)
        return tokens->rc;
    memcpy(at, magic, sizeof(magic));
    at = put_u32(at + sizeof(magic), n_choices);
    at = put_u32(at, (uint32_t)tokens->len);
    buf_put(out, bytes, (size_t)(at - bytes));
    for (uint32_t i = 0; i < n_choices; i++) {
        const struct kept_choice *c = &choices[i];
        if (c->finish != SHOAL_FINISH_STOP && c->finish != SHOAL_FINISH_LENGTH)
            return SHOAL_EINVAL;
        at = put_u32(bytes, (uint32_t)c->finish);
        at = put_u32(at, c->prompt_tokens);
        at = put_u32(at, c->generated_tokens);
        at = put_u64(at, c->queue_ns);
        at = put_u64(at, c->first_token_ns);
        at = put_u64(at, c->total_ns);
        buf_put(out, bytes, (size_t)(at - bytes));
    }
    buf_put(out, tokens->data, tokens->len);
    return out->rc;
}

/* ---- reading ---- */

/* The fixed part of a token, which has no padding: read as a whole, since answers from the cache
 * are what the server gives most often. */
struct token_head {
    uint32_t choice;
    int32_t token;
    float logprob;
    uint32_t text_bytes, n_top;
};

_Static_assert(sizeof(struct token_head) == TOKEN_BYTES, "a token's fixed part has padding");
_Static_assert(sizeof(struct shoal_logprob) == TOP_BYTES, "an alternative has padding");

static bool tops_are_sound(const uint8_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct shoal_logprob top;
        memcpy(&top, at + (size_t)i * TOP_BYTES, sizeof(top));
        if (top.token < 0 || isnan(top.logprob))
            return false;
    }
    return true;
}

static bool tokens_are_sound(const uint8_t *at, size_t left, uint32_t n_choices)
{
    while (left > 0) {
        struct token_head h;
        if (left < TOKEN_BYTES)
            return false;
        memcpy(&h, at, sizeof(h));
        if (h.choice >= n_choices || h.token < -1 || h.n_top > KEPT_ANSWER_MAX_TOP ||
            isnan(h.logprob))
            return false;
        uint64_t bytes = TOKEN_BYTES + (uint64_t)h.n_top * TOP_BYTES + h.text_bytes;
        if (bytes > left || !tops_are_sound(at + TOKEN_BYTES, h.n_top))
            return false;
        at += bytes;
        left -= bytes;
    }
    return true;
}

int kept_answer_open(struct kept_answer *a, const void *data, size_t n, struct err *e)
{
    struct rd r = rd_make(data, n);
    const uint8_t *head = rd_take(&r, sizeof(magic));
    uint32_t n_choices = rd_u32(&r), token_bytes = rd_u32(&r);
    if (!head || memcmp(head, magic, sizeof(magic)) != 0)
        return err_set(e, SHOAL_EFORMAT, "kept answer: unknown format");
    if (r.bad || n_choices == 0 || n_choices > KEPT_ANSWER_MAX_CHOICES)
        return err_set(e, SHOAL_EFORMAT, "kept answer: %u choices, but 1 to %u are possible",
                       n_choices, KEPT_ANSWER_MAX_CHOICES);
    const uint8_t *choices = rd_take(&r, (uint64_t)n_choices * CHOICE_BYTES);
    if (!choices || rd_left(&r) != token_bytes)
        return err_set(e, SHOAL_EFORMAT, "kept answer: %zu bytes do not match its lengths", n);
    a->n_choices = n_choices;
    a->choices = choices;
    a->at = r.p;
    a->end = r.end;
    for (uint32_t i = 0; i < n_choices; i++) {
        struct kept_choice c = kept_answer_choice(a, i);
        if (c.finish != SHOAL_FINISH_STOP && c.finish != SHOAL_FINISH_LENGTH)
            return err_set(e, SHOAL_EFORMAT, "kept answer: choice %u did not end by itself", i);
    }
    if (!tokens_are_sound(a->at, token_bytes, n_choices))
        return err_set(e, SHOAL_EFORMAT, "kept answer: a token is damaged");
    return 0;
}

struct kept_choice kept_answer_choice(const struct kept_answer *a, uint32_t i)
{
    struct rd r = rd_make(a->choices + (size_t)i * CHOICE_BYTES, CHOICE_BYTES);
    struct kept_choice c = {.finish = (enum shoal_finish)rd_u32(&r)};
    c.prompt_tokens = rd_u32(&r);
    c.generated_tokens = rd_u32(&r);
    c.queue_ns = rd_u64(&r);
    c.first_token_ns = rd_u64(&r);
    c.total_ns = rd_u64(&r);
    return c;
}

bool kept_answer_next(struct kept_answer *a, struct kept_token *out)
{
    const uint8_t *at = a->at; /* checked by kept_answer_open, with all that follows */
    struct token_head h;
    if (at == a->end)
        return false;
    memcpy(&h, at, sizeof(h));
    at += TOKEN_BYTES;
    if (h.n_top > 0) {
        memcpy(a->top, at, (size_t)h.n_top * TOP_BYTES);
        at += (size_t)h.n_top * TOP_BYTES;
    }
    out->choice = h.choice;
    out->token = h.token;
    out->logprob = h.logprob;
    out->top = a->top;
    out->n_top = h.n_top;
    out->text = (const char *)at;
    out->text_bytes = h.text_bytes;
    out->echo = false;
    a->at = at + h.text_bytes;
    return true;
}
