/* speech_fold.c - see speech_fold.h. */
#include "text/speech/speech_fold.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

#include "text/speech/speech_tables.h"

static const struct {
    int32_t code;
    const char *as;
} others[] = {
    {0x2018, "'"},   {0x2019, "'"}, {0x02bc, "'"}, {0x2010, "-"},  {0x2011, "-"},  {0x2013, "-"},
    {0x2014, " - "}, {0x2212, "-"}, {0x2026, "."}, {0x00df, "ss"}, {0x00e6, "ae"}, {0x00c6, "Ae"},
    {0x00f8, "o"},   {0x00d8, "O"}, {0x0142, "l"}, {0x0141, "L"},  {0x0153, "oe"}, {0x00f0, "d"},
    {0x00fe, "th"},  {0x0131, "i"}, {0x2009, " "}, {0x00a0, " "},  {0x202f, " "},  {0x037e, ";"},
};

/* Symbols that have a word, units and currencies. */
static bool is_known(const char *p, size_t n)
{
    return speech_tables_symbol(p, n) || speech_tables_money(p, n) || speech_tables_unit(p, n) ||
           (n == 2 && (memcmp(p, "µ", 2) == 0 || memcmp(p, "μ", 2) == 0 || memcmp(p, "Ω", 2) == 0));
}

static void put_other(struct buf *out, int32_t code, const char *p, size_t n)
{
    int32_t parts[8];
    int bound = 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (others[i].code == code) {
            buf_puts(out, others[i].as);
            return;
        }
    if (is_known(p, n)) {
        buf_put(out, p, n);
        return;
    }
    const utf8proc_ssize_t got =
        utf8proc_decompose_char(code, parts, 8, UTF8PROC_DECOMPOSE, &bound);
    buf_putc(out,
             got >= 2 && got <= 8 && parts[0] >= 'A' && parts[0] <= 'z' ? (char)parts[0] : ' ');
}

void speech_fold(const char *text, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n && out->rc == 0;) {
        int32_t code = -1;
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x80) {
            buf_putc(out, (c < 0x20 && c != '\n') || c == 0x7f ? ' ' : (char)c);
            i++;
            continue;
        }
        const utf8proc_ssize_t len =
            utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(n - i), &code);
        if (len > 0)
            put_other(out, code, text + i, (size_t)len);
        else
            buf_putc(out, ' ');
        i += len > 0 ? (size_t)len : 1;
    }
}
