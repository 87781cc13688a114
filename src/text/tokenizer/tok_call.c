/* tok_call.c - see tok_call.h. */
#include "text/tokenizer/tok_call.h"

#include <string.h>

#include "base/mem.h"

void tok_rewrite_fini(struct tok_rewrite *r)
{
    mem_free(r->from);
    *r = (struct tok_rewrite){0};
}

int tok_rewrite_reserve(struct tok_rewrite *r, size_t n)
{
    size_t want, bytes;
    if (!mem_add(&want, r->n, n) || !mem_add(&want, want, want / 2 + 64))
        return SHOAL_ENOMEM;
    if (r->n + n <= r->cap)
        return 0;
    if (!mem_mul(&bytes, want, 2 * sizeof(uint32_t) + 1))
        return SHOAL_ENOMEM;
    uint32_t *from = mem_alloc(bytes);
    if (!from)
        return SHOAL_ENOMEM;
    uint32_t *to = from + want;
    char *p = (char *)(to + want);
    if (r->n > 0) {
        memcpy(from, r->from, r->n * sizeof(*from));
        memcpy(to, r->to, r->n * sizeof(*to));
        memcpy(p, r->p, r->n);
    }
    mem_free(r->from);
    *r = (struct tok_rewrite){p, from, to, r->n, want};
    return 0;
}

size_t tok_call_unescape(char *out, const char *p, size_t n)
{
    const char *end = p + n;
    char *o = out;
    while (p < end) {
        const char *q = memchr(p, 0xe2, (size_t)(end - p));
        size_t k = (size_t)((q ? q : end) - p);
        memmove(o, p, k);
        o += k;
        p += k;
        if (p == end)
            break;
        if (end - p >= 3 && p[1] == (char)0x96 && p[2] == (char)0x81) {
            *o++ = ' ';
            p += 3;
        } else {
            *o++ = *p++;
        }
    }
    return (size_t)(o - out);
}

/* The reverse mapping is larger than the text, so it is built only on demand. */
int tok_rewrite_unescape(struct tok_rewrite *r, struct tok_call *c, const char *p, size_t n,
                         bool prefix)
{
    r->n = 0;
    int rc = tok_rewrite_reserve(r, n + 1);
    if (rc < 0)
        return rc;
    if (!c->spans) {
        if (prefix)
            r->p[r->n++] = ' ';
        r->n += tok_call_unescape(r->p + r->n, p, n);
        return 0;
    }
    uint32_t at = tok_view_from(&c->view, p);
    if (prefix)
        tok_rewrite_add(r, " ", 1, at, at);
    for (const char *end = p + n; p < end;) {
        bool escaped = end - p >= 3 && memcmp(p, "\xe2\x96\x81", 3) == 0;
        size_t len = escaped ? 3 : 1;
        tok_rewrite_add(r, escaped ? " " : p, 1, tok_view_from(&c->view, p),
                        tok_view_to(&c->view, p + len - 1));
        p += len;
    }
    c->view = tok_rewrite_view(r);
    return 0;
}

const struct tokenizer_range *tok_call_plain(const struct tok_call *c, uint32_t at)
{
    size_t lo = 0, hi = c->n_plain;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c->plain[mid].to > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo < c->n_plain ? &c->plain[lo] : NULL;
}

static bool continues(const struct tok_spans *sp, uint32_t at)
{
    return at < sp->n_input && (sp->input[at] & 0xc0) == 0x80;
}

int tok_call_span(struct tok_call *c, const char *p, size_t n)
{
    struct tok_spans *sp = c->spans;
    size_t i = c->out->n - 1, bytes;
    if (i >= sp->cap) {
        size_t cap = c->out->cap; /* at least i + 1 */
        uint32_t *start = mem_mul(&bytes, cap, 2 * sizeof(*start)) ? mem_alloc(bytes) : NULL;
        if (!start)
            return SHOAL_ENOMEM;
        if (i > 0) {
            memcpy(start, sp->start, i * sizeof(*start));
            memcpy(start + cap, sp->end, i * sizeof(*start));
        }
        mem_free(sp->start);
        *sp = (struct tok_spans){start, start + cap, cap, sp->input, sp->n_input};
    }
    uint32_t from = tok_view_from(&c->view, p);
    uint32_t to = n > 0 ? tok_view_to(&c->view, p + n - 1) : from;
    for (int k = 0; k < 3 && from > 0 && continues(sp, from); k++)
        from--;
    for (int k = 0; k < 3 && continues(sp, to); k++)
        to++;
    sp->start[i] = from;
    sp->end[i] = to > from ? to : from;
    return 0;
}
