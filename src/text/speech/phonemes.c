/* phonemes.c - see phonemes.h. */
#include "text/speech/phonemes.h"

#include <string.h>
#include <utf8proc.h>

#include "format/model_file.h"

static bool find(const struct phonemes *p, uint32_t code, uint16_t *id)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->codes[i] == code) {
            *id = (uint16_t)i;
            return true;
        }
    return false;
}

int phonemes_read(struct phonemes *p, const struct model_file *file, struct err *e)
{
    const struct model_file_value *v = model_file_find(file, "vits.symbols");
    struct str s;
    *p = (struct phonemes){.n = 0};
    struct model_file_strings list = model_file_strings(v);
    if (list.left == 0)
        return err_set(e, SHOAL_EFORMAT, "metadata key vits.symbols is not a list of texts");
    while (model_file_strings_next(&list, &s)) {
        int32_t code = -1;
        if (p->n == 256 || utf8proc_iterate((const utf8proc_uint8_t *)s.p, (utf8proc_ssize_t)s.n,
                                            &code) != (utf8proc_ssize_t)s.n)
            return err_set(e, SHOAL_EFORMAT, "vits.symbols: symbol %u is not one character", p->n);
        p->codes[p->n++] = (uint32_t)code;
    }
    if (!find(p, '_', &p->pad) || !find(p, '^', &p->begin) || !find(p, '$', &p->end))
        return err_set(e, SHOAL_EFORMAT, "vits.symbols lacks _, ^ or $");
    return 0;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || c == '\'';
}

/* "the" is said otherwise before a vowel; at: where the word after it begins in out. */
static void soften_the(struct buf *out, size_t at)
{
    static const char *const vowels[] = {"a", "e", "i", "o", "u", "æ", "ɐ", "ɑ",
                                         "ɔ", "ə", "ɚ", "ɛ", "ɜ", "ɪ", "ʊ", "ʌ"};
    static const char the[] = "ðə ";
    const char *p = out->data + at;
    if (at < sizeof(the) - 1 || memcmp(p - (sizeof(the) - 1), the, sizeof(the) - 1) != 0 ||
        (at >= sizeof(the) && p[-(ptrdiff_t)sizeof(the)] != ' '))
        return;
    if (strncmp(p, "ˈ", 2) == 0 || strncmp(p, "ˌ", 2) == 0)
        p += 2;
    for (size_t i = 0; i < sizeof(vowels) / sizeof(vowels[0]); i++)
        if (strncmp(p, vowels[i], strlen(vowels[i])) == 0) {
            memcpy(out->data + at - 3, "ɪ", 2);
            return;
        }
}

void phonemes_of_text(const struct sounds *s, const char *text, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n;) {
        size_t len = 0;
        while (i + len < n && is_word(text[i + len]))
            len++;
        if (len > 0) {
            const size_t at = out->len;
            sounds_say(s, text + i, len, out);
            if (out->rc == 0 && out->len > at)
                soften_the(out, at);
            i += len;
        } else {
            buf_putc(out, text[i++]); /* a space or a mark */
        }
    }
}

uint32_t phonemes_ids(const struct phonemes *p, const char *phonemes, size_t n, uint16_t *out,
                      uint32_t cap)
{
    uint32_t count = 0;
#define PUT(id) (count < cap ? (void)(out[count] = (id)) : (void)0, count++)
    PUT(p->begin);
    PUT(p->pad);
    for (size_t i = 0; i < n;) {
        int32_t code = -1;
        uint16_t id;
        const utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)phonemes + i,
                                                      (utf8proc_ssize_t)(n - i), &code);
        if (len > 0 && find(p, (uint32_t)code, &id)) {
            PUT(id);
            PUT(p->pad);
        }
        i += len > 0 ? (size_t)len : 1;
    }
    PUT(p->end);
#undef PUT
    return count;
}
