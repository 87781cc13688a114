/* utf8.c - see utf8.h. */
#include "base/utf8.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Length of a sequence with this first byte, and the valid range of its second byte: that range
 * excludes overlong forms, surrogates and values above U+10FFFF. */
static unsigned lead(uint8_t b, uint8_t *lo, uint8_t *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (b < 0x80)
        return 1;
    if (b < 0xc2 || b > 0xf4)
        return 0;
    if (b < 0xe0)
        return 2;
    if (b < 0xf0) {
        if (b == 0xe0)
            *lo = 0xa0;
        if (b == 0xed)
            *hi = 0x9f;
        return 3;
    }
    if (b == 0xf0)
        *lo = 0x90;
    if (b == 0xf4)
        *hi = 0x8f;
    return 4;
}

unsigned utf8_decode_multi(const uint8_t *p, const uint8_t *end, uint32_t *cp)
{
    uint8_t lo, hi;
    unsigned n = lead(*p, &lo, &hi);
    if (n < 2 || (size_t)(end - p) < n || p[1] < lo || p[1] > hi)
        return 0;
    uint32_t v = ((uint32_t)*p & (0x7fu >> n)) << 6 | (p[1] & 0x3fu);
    for (unsigned i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (p[i] & 0x3fu);
    }
    *cp = v;
    return n;
}

unsigned utf8_encode(char out[4], uint32_t cp)
{
    unsigned n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const uint8_t mark[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = n; i-- > 1; cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)(mark[n] | cp);
    return n;
}

size_t utf8_valid_prefix(const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text, *start = p, *end = p + n;
    while (p < end) {
        uint64_t w;
        uint32_t cp;
        if (end - p >= 8) {
            memcpy(&w, p, 8);
            if (!(w & 0x8080808080808080u)) {
                p += 8;
                continue;
            }
        }
        unsigned len = utf8_decode(p, end, &cp);
        if (len == 0)
            break;
        p += len;
    }
    return (size_t)(p - start);
}

const char *utf8_repaired(struct arena *a, const char *p, size_t n, size_t *n_out)
{
    *n_out = n;
    if (utf8_valid_prefix(p, n) == n)
        return p;
    char *to = n > SIZE_MAX / 4 ? NULL : arena_bytes(a, 3 * n + 1);
    size_t len = 0;
    for (size_t i = 0; to && i < n;) {
        uint32_t cp;
        unsigned k = utf8_decode((const uint8_t *)p + i, (const uint8_t *)p + n, &cp);
        memcpy(to + len, k > 0 ? p + i : REPLACEMENT, k > 0 ? k : 3);
        len += k > 0 ? k : 3;
        i += k > 0 ? k : 1;
    }
    *n_out = len;
    if (!to) {
        a->rc = a->rc < 0 ? a->rc : SHOAL_ELIMIT;
        return "";
    }
    to[len] = '\0';
    return to;
}

/* Number of bytes at the end of p that start a character and may still complete one. */
static unsigned cut_tail(const uint8_t *p, size_t n)
{
    for (unsigned k = 1; k <= 3 && k <= n; k++) {
        const uint8_t *q = p + n - k;
        uint8_t lo, hi;
        if ((*q & 0xc0) == 0x80)
            continue; /* a continuation byte: the first byte is further left */
        unsigned want = lead(*q, &lo, &hi);
        if (want <= k || (k > 1 && (q[1] < lo || q[1] > hi)))
            return 0;
        return k;
    }
    return 0;
}

void utf8_stream_push(struct utf8_stream *s, struct buf *out, const char *p, size_t n)
{
    /* Fewer than four bytes are held, so the character they start ends within the next four bytes:
     * complete it byte by byte, then pass the rest on at once. */
    while (n > 0 && s->n_held > 0) {
        s->held[s->n_held++] = (uint8_t)*p++;
        n--;
        unsigned keep = cut_tail(s->held, s->n_held);
        unsigned give = s->n_held - keep;
        buf_put(out, s->held, give);
        memmove(s->held, s->held + give, keep);
        s->n_held = (uint8_t)keep;
    }
    unsigned keep = cut_tail((const uint8_t *)p, n);
    buf_put(out, p, n - keep);
    if (keep > 0) {
        memcpy(s->held, p + n - keep, keep);
        s->n_held = (uint8_t)keep;
    }
}

void utf8_stream_flush(struct utf8_stream *s, struct buf *out)
{
    buf_put(out, s->held, s->n_held);
    s->n_held = 0;
}
