/* base64.c - see base64.h. */
#include "supply/base64.h"

#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

/* The bits that the padding leaves over must be zero, or two texts would mean the same bytes. */
static bool is_exact(const uint8_t *bytes, size_t n, const char *text, size_t n_text)
{
    unsigned char last[5];
    size_t rest = n % 3;
    if (rest == 0)
        return true;
    EVP_EncodeBlock(last, bytes + n - rest, (int)rest);
    return memcmp(last, text + n_text - 4, 4) == 0;
}

uint8_t *base64_read(struct arena *a, const char *text, size_t n, size_t *n_out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t pad = 0;
    *n_out = 0;
    if (n % 4 != 0 || n > INT_MAX)
        return NULL;
    while (pad < 2 && pad < n && text[n - 1 - pad] == '=')
        pad++;
    if (strspn(text, digits) < n - pad) /* EVP_DecodeBlock skips blanks */
        return NULL;
    uint8_t *out = (uint8_t *)arena_bytes(a, n / 4 * 3 + 1);
    if (!out || EVP_DecodeBlock(out, (const unsigned char *)text, (int)n) < 0)
        return NULL;
    *n_out = n / 4 * 3 - pad;
    out[*n_out] = 0;
    return is_exact(out, *n_out, text, n) ? out : NULL;
}

void base64_write(struct buf *out, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n > 0) { /* whole groups of three, so that padding comes last */
        size_t k = n < 3072 ? n : 3072;
        char *to = buf_room(out, k / 3 * 4 + 5);
        if (!to)
            return;
        buf_used(out, (size_t)EVP_EncodeBlock((unsigned char *)to, p, (int)k));
        p += k;
        n -= k;
    }
}
