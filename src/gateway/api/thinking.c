/* thinking.c - see thinking.h. */
#include "gateway/api/thinking.h"

#include <string.h>

#include "base/buf.h"

#define OPEN "<think>"
#define CLOSE "</think>"
#define MAX_SPACES 7u /* before the first tag */
_Static_assert(MAX_SPACES + sizeof(OPEN) <= sizeof(((struct thinking *)0)->held) &&
                   sizeof(CLOSE) <= sizeof(((struct thinking *)0)->held),
               "what waits for more fits");

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t spaces(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && is_space(text[i]))
        i++;
    return i;
}

/* Whether the text is the beginning of a tag, or the tag that of the text. */
static bool may_be(const char *text, size_t n, const char *tag)
{
    const size_t k = strlen(tag);
    return memcmp(text, tag, n < k ? n : k) == 0;
}

/* Where the tag or a beginning of it at the end of the text is; n: nowhere. */
static size_t find_tag(const char *text, size_t n, const char *tag)
{
    for (size_t i = 0; i < n; i++)
        if (may_be(text + i, n - i, tag))
            return i;
    return n;
}

struct thinking_parts thinking_split(const char *text, size_t n)
{
    const size_t k = strlen(OPEN), from = spaces(text, n) + k;
    if (from > n || from > MAX_SPACES + k || memcmp(text + from - k, OPEN, k) != 0)
        return (struct thinking_parts){.thought = NULL};
    const size_t begin = from + spaces(text + from, n - from);
    size_t end = begin;
    while (end < n && (n - end < strlen(CLOSE) || !may_be(text + end, n - end, CLOSE)))
        end++;
    struct thinking_parts p = {
        .thought = text + begin, .thought_bytes = end - begin, .answer_at = n, .open = end == n};
    if (!p.open) {
        p.answer_at = end + strlen(CLOSE);
        p.answer_at += spaces(text + p.answer_at, n - p.answer_at);
    }
    return p;
}

/* How much of the text can be used in this state; the rest waits for more. The state may change. */
static size_t take(struct thinking *t, const char *text, size_t n, thinking_fn fn, void *ctx)
{
    size_t at;
    switch (t->state) {
    case THINKING_UNSURE:
        at = spaces(text, n);
        if (at > MAX_SPACES || !may_be(text + at, n - at, OPEN)) {
            t->state = THINKING_OFF;
            return 0;
        }
        if (at + strlen(OPEN) > n)
            return 0;
        t->state = THINKING_BEGUN;
        fn(ctx, true, "", 0);
        return at + strlen(OPEN);
    case THINKING_ON:
        at = find_tag(text, n, CLOSE);
        if (at > 0) {
            fn(ctx, true, text, at);
            return at;
        }
        if (n < strlen(CLOSE))
            return 0;
        t->state = THINKING_OVER;
        return strlen(CLOSE);
    case THINKING_BEGUN:
    case THINKING_OVER:
        at = spaces(text, n);
        if (at < n)
            t->state = t->state == THINKING_OVER ? THINKING_OFF : THINKING_ON;
        return at;
    default:
        fn(ctx, false, text, n);
        return n;
    }
}

void thinking_push(struct thinking *t, const char *text, size_t n, thinking_fn fn, void *ctx)
{
    char both[2 * sizeof(t->held)];
    while (t->n_held > 0 && n > 0) { /* with as much of the piece as a tag can need */
        const size_t more = n < sizeof(t->held) ? n : sizeof(t->held);
        const size_t held = t->n_held, all = held + more;
        memcpy(both, t->held, held);
        memcpy(both + held, text, more);
        const enum thinking_state before = t->state;
        const size_t used = take(t, both, all, fn, ctx);
        if (used == 0 && t->state == before)
            break; /* it is all held */
        t->n_held = used < held ? held - used : 0;
        memmove(t->held, both + used, t->n_held);
        text += used > held ? used - held : 0;
        n -= used > held ? used - held : 0;
    }
    while (n > 0) {
        const enum thinking_state before = t->state;
        const size_t used = t->n_held > 0 ? 0 : take(t, text, n, fn, ctx);
        text += used;
        n -= used;
        if (used == 0 && t->state == before)
            break; /* shorter than a tag and the spaces before it */
    }
    if (n > 0)
        memcpy(t->held + t->n_held, text, n);
    t->n_held += n;
}

void thinking_gather(void *ctx, bool thought, const char *text, size_t n)
{
    struct buf *to = ctx;
    buf_put(&to[thought ? 1 : 0], text, n);
}

void thinking_end(struct thinking *t, thinking_fn fn, void *ctx)
{
    if (t->n_held > 0)
        fn(ctx, t->state == THINKING_ON, t->held, t->n_held);
    t->n_held = 0;
}
