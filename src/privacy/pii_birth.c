/* pii_birth.c - see pii_int.h: dates after a word that marks a date of birth. */
#include <string.h>

#include "base/ascii.h"
#include "privacy/pii_int.h"

#define MAX_DATE 24u /* bytes of a date with the name of a month */

/* Bytes of the table's word at `at`; 0: none. */
static size_t word_at(const struct pii_scan *s, size_t at, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(words[i]), k = 0;
        while (k < len && at + k < s->n && ascii_lower(s->p[at + k]) == words[i][k])
            k++;
        if (k == len)
            return len;
    }
    return 0;
}

/* 1 to 4 digits; false: none, or more. */
static bool digits(const struct pii_scan *s, size_t *at, uint32_t *v, uint32_t *n)
{
    *v = *n = 0;
    while (*at < s->n && ascii_is_digit(s->p[*at]) && *n < 5) {
        *v = *v * 10 + (uint32_t)(s->p[(*at)++] - '0');
        (*n)++;
    }
    return *n > 0 && *n < 5;
}

static bool is_year(uint32_t v, uint32_t n)
{
    return n == 2 || (n == 4 && v >= 1880 && v <= 2099);
}

/* 24.12.1980, 12/24/80, 1980-12-24: *end behind it; 0: no date. */
static size_t numeric(const struct pii_scan *s, size_t at)
{
    uint32_t v[3], n[3] = {0};
    size_t i = at;
    for (int k = 0; k < 3; k++) {
        if (k > 0 && (i >= s->n || !strchr("./-", s->p[i]) || !s->p[i] ||
                      (k == 2 && s->p[i] != s->p[i - n[1] - 1])))
            return 0;
        i += k > 0;
        if (k > 0 && i < s->n && s->p[i] == ' ') /* 24. 12. 1980 */
            return 0;
        if (!digits(s, &i, &v[k], &n[k]))
            return 0;
    }
    bool last = is_year(v[2], n[2]) && v[0] >= 1 && v[0] <= 31 && v[1] >= 1 && v[1] <= 31 &&
                n[0] < 3 && n[1] < 3;
    bool first = n[0] == 4 && is_year(v[0], 4) && v[1] >= 1 && v[1] <= 12 && v[2] >= 1 &&
                 v[2] <= 31 && n[1] < 3 && n[2] < 3;
    return (last || first) && pii_text_ends(s, i) ? i : 0;
}

static size_t month(const struct pii_scan *s, size_t at)
{
    static const char *const names[] = {
        "jan",        "feb", "mar",  "m\xc3\xa4r", "apr",        "may",           "mai", "jun",
        "jul",        "aug", "sep",  "oct",        "okt",        "nov",           "dec", "dez",
        "f\xc3\xa9v", "avr", "juin", "juil",       "ao\xc3\xbb", "d\xc3\xa9\x63", "ene", "abr",
        "ago",        "dic", "gen",  "mag",        "giu",        "lug",           "set", "ott"};
    size_t len = word_at(s, at, names, sizeof(names) / sizeof(names[0])), bytes;
    if (len == 0)
        return 0;
    for (len += at; pii_text_at(s, len, &bytes) == PII_LETTER; len += bytes)
        if (len - at > 12)
            return 0;
    return len;
}

static size_t blanks(const struct pii_scan *s, size_t at)
{
    while (at < s->n && (s->p[at] == ' ' || s->p[at] == ',' || s->p[at] == '.'))
        at++;
    return at;
}

/* "st", "nd", "rd", "th", "de", "of": between the parts of a date. */
static size_t filler(const struct pii_scan *s, size_t at)
{
    static const char *const words[] = {"st", "nd", "rd", "th", "de ", "of ", "er "};
    size_t n = word_at(s, at, words, sizeof(words) / sizeof(words[0]));
    return blanks(s, at + n);
}

/* 24 December 1980, December 24th, 1980, 24. Dezember 1980, 3 de mayo de 1980. */
static size_t written(const struct pii_scan *s, size_t at)
{
    uint32_t v, n;
    size_t i = at, m = month(s, at);
    if (m) {
        i = blanks(s, m);
        if (!digits(s, &i, &v, &n) || n > 2)
            return 0;
    } else {
        if (!digits(s, &i, &v, &n) || n > 2)
            return 0;
        i = month(s, filler(s, filler(s, i)));
        if (!i)
            return 0;
    }
    i = filler(s, filler(s, i));
    if (i - at > MAX_DATE || !digits(s, &i, &v, &n) || n != 4 || !is_year(v, n))
        return 0;
    return pii_text_ends(s, i) ? i : 0;
}

bool pii_birth_find(const struct pii_scan *s, size_t at, struct pii_hit *h)
{
    static const char words[] =
        "date of birth|birth date|birthdate|birthday|born|dob|d.o.b|geboren|geburtsdatum|geb.|"
        "n\xc3\xa9 le|n\xc3\xa9\x65 le|date de naissance|nacido|nacida|fecha de nacimiento|nato il|"
        "nata il|nato a|nata a|data di nascita|geboortedatum|urodzon|data urodzenia";
    size_t end = numeric(s, at);
    if (!end)
        end = written(s, at);
    size_t word = end ? pii_text_after_word(s, at, words) : 0;
    if (!word)
        return false;
    for (size_t i = word; i < at; i++)
        if (ascii_is_digit(s->p[i]))
            return false; /* the word is another date's */
    *h = (struct pii_hit){.kind = PII_BIRTH, .form = "", .start = at, .end = end};
    return true;
}
