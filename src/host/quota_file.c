/* quota_file.c - see quota_file.h. */
#include "host/quota_file.h"

#include <inttypes.h>
#include <string.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "base/hash.h"

#define HEAD "shoal-quota 1\n"
#define END_BYTES (sizeof("end ") - 1 + 16 + 1)

void quota_file_begin(struct buf *out)
{
    buf_puts(out, HEAD);
}

void quota_file_put(struct buf *out, const struct quota_file_row *row)
{
    buf_printf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " ", row->day, row->used, row->granted);
    for (const char *c = row->name; *c; c++)
        if (*c > ' ' && *c < 0x7f && *c != '%')
            buf_putc(out, *c);
        else
            buf_printf(out, "%%%02X", (unsigned char)*c);
    buf_putc(out, '\n');
}

void quota_file_end(struct buf *out)
{
    char hex[17];
    hash_hex(hex, hash_bytes(buf_str(out), out->len, 0));
    buf_printf(out, "end %s\n", hex);
}

/* A number followed by a space; NULL: invalid. */
static const char *read_number(const char *p, const char *end, uint64_t *out)
{
    const char *from = p;
    *out = 0;
    for (; p < end && ascii_is_digit(*p); p++) {
        if (*out > (UINT64_MAX - 9) / 10)
            return NULL;
        *out = *out * 10 + (uint64_t)(*p - '0');
    }
    return p > from && p < end && *p == ' ' ? p + 1 : NULL;
}

static bool read_name(char out[64], const char *p, const char *end)
{
    size_t n = 0;
    for (; p < end && n < 63; n++) {
        int c = (unsigned char)*p++;
        if (c == '%') {
            int high = end - p >= 2 ? ascii_hex(p[0]) : -1, low = high < 0 ? -1 : ascii_hex(p[1]);
            c = low < 0 ? 0 : high * 16 + low;
            p += 2;
        }
        if (c == 0)
            return false;
        out[n] = (char)c;
    }
    out[n] = '\0';
    return p == end && n > 0;
}

static bool read_row(struct quota_file_row *row, const char *p, const char *end)
{
    p = read_number(p, end, &row->day);
    p = p ? read_number(p, end, &row->used) : NULL;
    p = p ? read_number(p, end, &row->granted) : NULL;
    return p && read_name(row->name, p, end);
}

/* Whether the last line has the hash of all before it. */
static bool is_whole(const char *p, size_t n)
{
    char hex[17];
    if (n < sizeof(HEAD) - 1 + END_BYTES || memcmp(p, HEAD, sizeof(HEAD) - 1) != 0)
        return false;
    const char *end = p + n - END_BYTES;
    hash_hex(hex, hash_bytes(p, n - END_BYTES, 0));
    return memcmp(end, "end ", 4) == 0 && memcmp(end + 4, hex, 16) == 0 && p[n - 1] == '\n' &&
           end[-1] == '\n';
}

int quota_file_read(const char *p, size_t n,
                    void (*row)(void *ctx, const struct quota_file_row *row), void *ctx,
                    struct err *e)
{
    struct quota_file_row one;
    if (n > QUOTA_FILE_MAX_BYTES || !is_whole(p, n))
        return err_set(e, SHOAL_EFORMAT, "not a file of token quotas, or damaged");
    for (int pass = 0; pass < 2; pass++) { /* a file with an invalid line is not used at all */
        uint32_t n_rows = 0;
        const char *at = p + sizeof(HEAD) - 1, *end = p + n - END_BYTES;
        for (const char *next; at < end; at = next + 1) {
            next = memchr(at, '\n', (size_t)(end - at)); /* the last byte is one */
            if (++n_rows > QUOTA_FILE_MAX_ROWS)
                return err_set(e, SHOAL_ELIMIT, "more than %u clients", QUOTA_FILE_MAX_ROWS);
            if (!read_row(&one, at, next))
                return err_set(e, SHOAL_EFORMAT, "client %u is malformed", n_rows);
            if (pass == 1)
                row(ctx, &one);
        }
    }
    return 0;
}
