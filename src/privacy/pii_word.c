/* pii_word.c - see pii_int.h: IBANs, and national ids that have letters. */
#include <string.h>

#include "base/ascii.h"
#include "privacy/pii_int.h"

#define MAX_IBAN 34u

/* Letters in upper case and digits from `at` on, n of them, without blanks (and hyphens) between;
 * *end: after the last.  False: there are fewer.  Blanks stand between any two. */
static bool gather(const struct pii_scan *s, size_t at, char *out, uint32_t n, size_t *end)
{
    uint32_t k = 0;
    for (size_t i = at; i < s->n && k < n; i++) {
        char c = ascii_upper(s->p[i]);
        if (ascii_is_digit(c) || ascii_is_upper(c)) {
            out[k++] = c;
            *end = i + 1;
        } else if ((c != ' ' && c != '-') || k == 0 || i > *end) {
            return false; /* one separator at most */
        }
    }
    return k == n;
}

/* ---- IBAN ---- */

/* Bytes of an IBAN of the country; 0: it has none. */
static uint32_t iban_bytes(const char *country)
{
    static const char table[] =
        "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29"
        "ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20"
        "LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29"
        "PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20"
        "YE30";
    for (size_t i = 0; i + 4 < sizeof(table); i += 4)
        if (memcmp(table + i, country, 2) == 0)
            return (uint32_t)(table[i + 2] - '0') * 10 + (uint32_t)(table[i + 3] - '0');
    return 0;
}

/* ISO 7064 mod 97,10 over the text with its first four characters moved to the end. */
static bool iban_checks(const char *t, uint32_t n)
{
    uint32_t rest = 0;
    for (uint32_t i = 0; i < n; i++) {
        char c = t[(i + 4) % n];
        uint32_t v = ascii_is_digit(c) ? (uint32_t)(c - '0') : (uint32_t)(c - 'A') + 10;
        rest = (rest * (v > 9 ? 100 : 10) + v) % 97;
    }
    return rest == 1;
}

bool pii_word_iban(const struct pii_scan *s, size_t at, struct pii_hit *h)
{
    char t[MAX_IBAN];
    size_t end = 0;
    if (s->n - at < 15 || !ascii_is_upper(ascii_upper(s->p[at])) ||
        !ascii_is_upper(ascii_upper(s->p[at + 1])) || !ascii_is_digit(s->p[at + 2]))
        return false;
    const char country[2] = {ascii_upper(s->p[at]), ascii_upper(s->p[at + 1])};
    uint32_t n = iban_bytes(country);
    if (n == 0 || !gather(s, at, t, n, &end) || !ascii_is_digit(t[2]) || !ascii_is_digit(t[3]))
        return false;
    if (!pii_text_ends(s, end) || !iban_checks(t, n))
        return false;
    *h = (struct pii_hit){.kind = PII_IBAN, .form = "", .start = at, .end = end};
    return true;
}

/* ---- national ids ---- */

/* A pattern: 9 a digit, A a letter; others must be there as they are. */
static bool fits(const char *t, const char *pattern)
{
    for (; *pattern; t++, pattern++)
        if (*pattern == '9'   ? !ascii_is_digit(*t)
            : *pattern == 'A' ? !ascii_is_upper(*t)
                              : *t != *pattern)
            return false;
    return true;
}

static uint32_t number(const char *t, uint32_t n)
{
    uint32_t v = 0;
    for (uint32_t i = 0; i < n; i++)
        v = v * 10 + (uint32_t)(t[i] - '0');
    return v;
}

/* DNI of Spain, and NIE, whose letter stands for a digit. */
static bool es_dni(const char *t)
{
    static const char letters[] = "TRWAGMYFPDXBNJZSQVHLCKE";
    bool nie = t[0] >= 'X' && t[0] <= 'Z';
    if (nie ? !fits(t + 1, "9999999A") : !fits(t, "99999999A"))
        return false;
    uint32_t v = nie ? (uint32_t)(t[0] - 'X') * 10000000 + number(t + 1, 7) : number(t, 8);
    return letters[v % 23] == t[8];
}

/* NINO of the United Kingdom. */
static bool uk_nino(const char *t)
{
    static const char never[] = "BG GB KN NK NT TN ZZ";
    const char pair[3] = {t[0], t[1], '\0'};
    return fits(t, "AA999999A") && !strchr("DFIQUV", t[0]) && !strchr("DFIOQUV", t[1]) &&
           !strstr(never, pair) && t[8] <= 'D';
}

/* Value of a character of the codice fiscale at an odd place. */
static uint32_t cf_odd(char c)
{
    static const uint8_t values[] = {1,  0,  5, 7, 9, 13, 15, 17, 19, 21, 2,  4,  18,
                                     20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23};
    return values[ascii_is_digit(c) ? c - '0' : c - 'A'];
}

/* Codice fiscale of Italy.  Digits may be letters instead, where two people would have the same. */
static bool it_cf(const char *t)
{
    static const char stands[] = "LMNPQRSTUV", digits_at[] = "\x6\x7\x9\xa\xc\xd\xe";
    char d[16];
    uint32_t sum = 0;
    memcpy(d, t, sizeof(d));
    for (const char *at = digits_at; *at; at++) {
        const char *as = ascii_is_upper(d[(int)*at]) ? strchr(stands, d[(int)*at]) : NULL;
        if (as)
            d[(int)*at] = (char)('0' + (as - stands));
    }
    if (!fits(d, "AAAAAA99A99A999A") || !strchr("ABCDEHLMPRST", d[8]))
        return false;
    uint32_t day = number(d + 9, 2);
    if (day == 0 || day > 71 || (day > 31 && day < 41))
        return false;
    for (uint32_t i = 0; i < 15; i++)
        sum +=
            i % 2 == 0 ? cf_odd(t[i]) : (uint32_t)(ascii_is_digit(t[i]) ? t[i] - '0' : t[i] - 'A');
    return (char)('A' + sum % 26) == t[15];
}

/* NIR of France, of those born in Corsica: 2A and 2B count as 19 and 18. */
static bool fr_nir(const char *t)
{
    uint64_t v = 0;
    if (!fits(t, "999992A99999999") || t[6] > 'B')
        return false; /* digits alone are pii_number.c's */
    for (uint32_t i = 0; i < 13; i++)
        v = v * 10 + (uint64_t)(i == 6 ? (t[6] == 'A' ? 9 : 8) : i == 5 ? 1 : t[i] - '0');
    return (t[0] == '1' || t[0] == '2') && 97 - v % 97 == number(t + 13, 2);
}

bool pii_word_id(const struct pii_scan *s, size_t at, struct pii_hit *h)
{
    static const struct {
        const char *form;
        uint32_t n;
        bool (*is)(const char *t);
    } rules[] = {{"es_dni", 9, es_dni},
                 {"uk_nino", 9, uk_nino},
                 {"it_cf", 16, it_cf},
                 {"fr_nir", 15, fr_nir}};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        char t[17] = {0};
        size_t end = 0;
        if (gather(s, at, t, rules[i].n, &end) && rules[i].is(t) && pii_text_ends(s, end)) {
            *h = (struct pii_hit){.kind = PII_ID, .form = rules[i].form, .start = at, .end = end};
            return true;
        }
    }
    return false;
}
