/* pii_text.c - see pii_int.h: characters, words before a number, digits in groups. */
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "privacy/pii_int.h"

enum pii_char pii_text_wide(const struct pii_scan *s, size_t at, size_t *bytes)
{
    const uint8_t *p = (const uint8_t *)s->p;
    uint32_t cp = 0;
    unsigned n = utf8_decode(p + at, p + s->n, &cp);
    *bytes = n ? n : 1;
    bool latin = n && cp >= 0xc0 && cp <= 0x24f && cp != 0xd7 && cp != 0xf7;
    return latin ? PII_LETTER : PII_OTHER;
}

enum pii_char pii_text_before(const struct pii_scan *s, size_t at, size_t *bytes)
{
    size_t back = at;
    *bytes = 0;
    if (at == 0)
        return PII_OTHER;
    do
        back--;
    while (back > 0 && at - back < 4 && ((uint8_t)s->p[back] & 0xc0) == 0x80);
    enum pii_char c = pii_text_at(s, back, bytes);
    if (back + *bytes == at)
        return c;
    *bytes = 1;
    return PII_OTHER;
}

bool pii_text_begins(const struct pii_scan *s, size_t at)
{
    size_t n;
    if (pii_text_before(s, at, &n) != PII_OTHER)
        return false;
    if (at == 0)
        return true;
    char c = s->p[at - 1];
    if (c == '_')
        return false;
    return (c != '-' && c != '.') || pii_text_before(s, at - 1, &n) == PII_OTHER;
}

bool pii_text_ends(const struct pii_scan *s, size_t at)
{
    size_t n;
    if (pii_text_at(s, at, &n) != PII_OTHER)
        return false;
    if (at >= s->n)
        return true;
    char c = s->p[at];
    if (c == '_')
        return false;
    return (c != '-' && c != '.') || pii_text_at(s, at + 1, &n) == PII_OTHER;
}

/* End of the last word that begins with `word`; 0: none. */
static size_t last_word(const char *text, size_t n, const char *word, size_t len)
{
    for (size_t i = n; i-- > 0;) {
        bool begins = i == 0 || !(ascii_is_lower(text[i - 1]) || (uint8_t)text[i - 1] >= 0x80);
        if (begins && len <= n - i && text[i] == word[0] && memcmp(text + i, word, len) == 0)
            return i + len;
    }
    return 0;
}

size_t pii_text_after_word(const struct pii_scan *s, size_t at, const char *words)
{
    char text[PII_CONTEXT];
    size_t n = 0, last = 0;
    for (size_t i = at > sizeof(text) ? at - sizeof(text) : 0; i < at; i++) {
        if (s->p[i] == '\n')
            n = 0;
        else
            text[n++] = ascii_lower(s->p[i]);
    }
    for (const char *w = words; *w;) {
        size_t len = strcspn(w, "|"), end = last_word(text, n, w, len);
        last = end > last ? end : last;
        w += len + (w[len] == '|');
    }
    return last ? at - n + last : 0;
}

/* ---- digits in groups ---- */

/* One character that may stand between groups; 0: none.  Blanks and dashes of other alphabets count
 * as theirs. */
static char separator(const struct pii_scan *s, size_t at, size_t *bytes)
{
    static const struct {
        char text[4];
        char as;
    } wide[] = {
        {"\xc2\xa0", ' '}, {"\xe2\x80\xaf", ' '}, {"\xe2\x80\x91", '-'}, {"\xe2\x80\x93", '-'}};
    *bytes = 1;
    if (at >= s->n)
        return 0;
    if (s->p[at] && strchr(" -./()", s->p[at]))
        return s->p[at];
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        *bytes = strlen(wide[i].text);
        if (s->n - at >= *bytes && memcmp(s->p + at, wide[i].text, *bytes) == 0)
            return wide[i].as;
    }
    return 0;
}

/* What separates two groups, as one character: one separator, a dash or stroke with blanks around
 * it, or parentheses.  0: no group follows. */
static char separators(const struct pii_scan *s, size_t *at)
{
    char seen[4] = {0};
    size_t i = *at, bytes;
    uint32_t n = 0;
    for (char c; (c = separator(s, i, &bytes)) != 0; i += bytes) {
        if (n == 3)
            return 0;
        seen[n++] = c;
    }
    if (n == 0 || i >= s->n || !ascii_is_digit(s->p[i]))
        return 0;
    bool paren = strchr(seen, '(') || strchr(seen, ')');
    bool plain = n == 1 || (n == 3 && seen[0] == ' ' && seen[2] == ' ' && strchr("-/", seen[1]));
    if (paren ? strchr(seen, '.') != NULL && n > 2 : !plain)
        return 0;
    *at = i;
    return paren ? '(' : seen[n > 1];
}

bool pii_text_digits(const struct pii_scan *s, size_t at, struct pii_digits *out)
{
    *out = (struct pii_digits){.start = at};
    size_t i = at;
    if (i < s->n && s->p[i] == '+') {
        out->plus = true;
        i++;
    }
    bool paren = i < s->n && s->p[i] == '('; /* of its first group, as in (415) 555-2671 */
    i += paren;
    for (char sep = 0; out->n_groups < PII_MAX_GROUPS;) {
        size_t from = i;
        while (i < s->n && ascii_is_digit(s->p[i]) && i - from <= PII_MAX_DIGITS)
            i++;
        uint32_t k = (uint32_t)(i - from);
        if (k == 0 || k > PII_MAX_DIGITS)
            break;
        if (out->n + k > PII_MAX_DIGITS)
            break;
        memcpy(out->d + out->n, s->p + from, k);
        out->n += k;
        out->g[out->n_groups].n = k;
        out->g[out->n_groups].sep = sep;
        out->g[out->n_groups].end = i;
        out->g[out->n_groups].sum = out->n;
        out->n_groups++;
        if (paren && out->n_groups == 1 && (k > 5 || i >= s->n || s->p[i] != ')'))
            return false;
        sep = separators(s, &i);
        if (!sep)
            break;
    }
    return out->n_groups > paren;
}
