/* tok_special.c - see tok_special.h. */
#include "text/tokenizer/tok_special.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "format/token_type.h"
#include "text/tokenizer/tokenizer_info.h"

static int compare(const void *a, const void *b)
{
    const struct tok_special_entry *x = a, *y = b;
    int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    if (c != 0)
        return c;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    /* of two with the same spelling, the lower id comes first */
    return x->id < y->id ? -1 : x->id > y->id;
}

void tok_special_index(struct tok_special *sp)
{
    uint32_t k = 0;
    if (sp->n > 0)
        qsort(sp->e, sp->n, sizeof(*sp->e), compare);
    for (unsigned b = 0; b <= 256; b++) {
        while (k < sp->n && (uint8_t)*sp->e[k].p < b)
            k++;
        sp->first[b] = k;
    }
}

/* The first entry of [lo, hi) whose byte k is >= c, or > c with `above`. */
static uint32_t bound(const struct tok_special *sp, uint32_t lo, uint32_t hi, size_t k, uint8_t c,
                      bool above)
{
    for (uint32_t size = hi - lo; size > 0;) {
        uint32_t half = size / 2;
        uint8_t b = (uint8_t)sp->e[lo + half].p[k];
        if (b < c || (above && b == c)) {
            lo += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    return lo;
}

/* The list is sorted, so each byte narrows a range. */
int32_t tok_special_at(const struct tok_special *sp, const uint8_t *type, const char *p, size_t n)
{
    uint32_t lo = sp->first[(uint8_t)*p], hi = sp->first[(uint8_t)*p + 1];
    int32_t found = TOKENIZER_NONE;
    size_t found_n = 0;
    for (size_t k = 1; lo < hi; k++) {
        /* entries in [lo, hi) agree with p in their first k bytes; the shortest comes first */
        for (; lo < hi && sp->e[lo].n == k; lo++) {
            bool may = !type || type[sp->e[lo].id] == TOKEN_TYPE_USER_DEFINED;
            if (may && found_n != k) {
                found = (int32_t)lo;
                found_n = k;
            }
        }
        if (k == n)
            break;
        lo = bound(sp, lo, hi, k, (uint8_t)p[k], false);
        hi = bound(sp, lo, hi, k, (uint8_t)p[k], true);
    }
    return found;
}

int32_t tok_special_find(const struct tok_special *sp, const char *p, size_t n)
{
    uint32_t lo = 0, hi = sp->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const struct tok_special_entry *w = &sp->e[mid];
        int c = memcmp(w->p, p, w->n < n ? w->n : n);
        if (c == 0 && w->n == n)
            return (int32_t)w->id;
        if (c < 0 || (c == 0 && w->n < n))
            lo = mid + 1;
        else
            hi = mid;
    }
    return TOKENIZER_NONE;
}

size_t tok_special_control(const struct tok_special *sp, const struct tok_vocab *v, const char *p,
                           size_t n, bool *open)
{
    if (n == 0 || !tok_special_may(sp, *p))
        return 0;
    for (uint32_t i = sp->first[(uint8_t)*p]; i < sp->first[(uint8_t)*p + 1] && !*open; i++)
        *open = sp->e[i].n > n && memcmp(sp->e[i].p, p, n) == 0;
    int32_t at = tok_special_at(sp, NULL, p, n);
    if (at < 0 || v->type[sp->e[at].id] == TOKEN_TYPE_USER_DEFINED)
        return 0;
    return sp->e[at].n;
}

/* Passes a stretch of plain text on; its changes to the view are undone. */
static int give_plain(struct tok_call *c, const char *p, size_t n, tok_special_plain_fn plain,
                      void *ctx)
{
    struct tok_view view = c->view;
    int rc = n > 0 ? plain(ctx, c, p, n) : 0;
    c->view = view;
    return rc;
}

/* The entry at p < end.  A control token must not touch a plain range; a user-defined one may. */
static int32_t entry_at(const struct tok_special *sp, const struct tok_vocab *v,
                        const struct tok_call *c, const char *p, const char *end, unsigned flags)
{
    const struct tokenizer_range *plain = NULL;
    size_t n = (size_t)(end - p), free = n;
    uint32_t at = tok_view_from(&c->view, p);
    if (!(flags & TOKENIZER_PARSE_SPECIAL))
        return tok_special_at(sp, v->type, p, n);
    if (c->n_plain > 0 && (plain = tok_call_plain(c, at)))
        free = plain->from <= at ? 0 : plain->from - at < n ? plain->from - at : n;
    int32_t any = free > 0 ? tok_special_at(sp, NULL, p, free) : TOKENIZER_NONE;
    int32_t user = free < n ? tok_special_at(sp, v->type, p, n) : TOKENIZER_NONE;
    return user < 0 || (any >= 0 && sp->e[any].n >= sp->e[user].n) ? any : user;
}

int tok_special_split(const struct tok_special *sp, const struct tok_vocab *v, struct tok_call *c,
                      const char *p, size_t n, unsigned flags, tok_special_plain_fn plain,
                      void *ctx)
{
    const char *from = p, *end = p + n;
    while (p < end) {
        int32_t at = TOKENIZER_NONE;
        if (tok_special_may(sp, *p))
            at = entry_at(sp, v, c, p, end, flags);
        if (at < 0) {
            p++;
            continue;
        }
        int32_t id = (int32_t)sp->e[at].id;
        const char *stop = p;
        if (v->attr[id] & TOK_ATTR_LSTRIP)
            while (stop > from && ascii_is_space(stop[-1]))
                stop--;
        size_t len = tok_vocab_text(v, (uint32_t)id).n;
        int rc = give_plain(c, from, (size_t)(stop - from), plain, ctx);
        if (rc == 0)
            rc = tok_call_emit(c, id, p, len);
        if (rc < 0)
            return rc;
        p += len;
        if (v->attr[id] & TOK_ATTR_RSTRIP)
            while (p < end && ascii_is_space(*p))
                p++;
        from = p;
    }
    return give_plain(c, from, (size_t)(end - from), plain, ctx);
}
