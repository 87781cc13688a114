/* pii_int.h - private to pii*.c: the text that is searched, and the rules.
 *
 * A rule looks at the text from `at` on, which is the beginning of a word or number, and fills the
 * hit if it applies there.  It reads at most PII_FAR bytes around `at`, so that a search is linear.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_PRIVACY_PII_INT_H
#define SHOAL_PRIVACY_PII_INT_H

#include <stdint.h>

#include "base/ascii.h"
#include "privacy/pii.h"

#define PII_FAR 320u    /* bytes: the longest e-mail address */
#define PII_CONTEXT 40u /* bytes before a number in which words count */
#define PII_MAX_DIGITS 24u
#define PII_MAX_GROUPS 10u

struct pii_scan {
    const char *p;
    size_t n;
    unsigned kinds;
    size_t done; /* end of the last hit */
};

/* ---- characters ---- */

enum pii_char { PII_OTHER, PII_LETTER, PII_DIGIT }; /* letters: ASCII and Latin with accents */

enum pii_char pii_text_wide(const struct pii_scan *s, size_t at, size_t *bytes); /* not ASCII */

/* The character that begins at `at`; *bytes: its length, 0 at the end. */
static inline enum pii_char pii_text_at(const struct pii_scan *s, size_t at, size_t *bytes)
{
    *bytes = at < s->n;
    if (at >= s->n)
        return PII_OTHER;
    char c = s->p[at];
    if (c & 0x80)
        return pii_text_wide(s, at, bytes);
    if (ascii_is_digit(c))
        return PII_DIGIT;
    return ascii_is_letter(c) ? PII_LETTER : PII_OTHER;
}
/* The one that ends there. */
enum pii_char pii_text_before(const struct pii_scan *s, size_t at, size_t *bytes);
/* Whether it starts a word: no letter, digit or '_' next to it, nor '-' or '.' preceded by one. */
bool pii_text_begins(const struct pii_scan *s, size_t at);
bool pii_text_ends(const struct pii_scan *s, size_t at);
/* Whether one of the words, separated by '|', begins a word in the PII_CONTEXT bytes before `at`,
 * in the same line. The words are lower case; those of the text may be of either case. Returns the
 * end of the last such word, or 0. */
size_t pii_text_after_word(const struct pii_scan *s, size_t at, const char *words);

/* ---- digits in groups ---- */

struct pii_digits {
    char d[PII_MAX_DIGITS + 1];
    uint32_t n;
    bool plus; /* "+" in front */
    uint32_t n_groups;
    struct {
        uint32_t n;   /* digits */
        char sep;     /* before the group: ' ' '-' '.' '/' '(' (also with others); 0: first */
        size_t end;   /* of the group, in the text */
        uint32_t sum; /* digits up to its end */
    } g[PII_MAX_GROUPS];
    size_t start;
};

/* False: no number begins here, or it has too many digits. */
bool pii_text_digits(const struct pii_scan *s, size_t at, struct pii_digits *out);

/* ---- rules ---- */

bool pii_net_email(const struct pii_scan *s, size_t at, struct pii_hit *h);
bool pii_net_ip4(const struct pii_scan *s, size_t at, struct pii_hit *h);
bool pii_net_ip6(const struct pii_scan *s, size_t at, struct pii_hit *h);
bool pii_number_card(const struct pii_scan *s, const struct pii_digits *d, struct pii_hit *h);
bool pii_number_id(const struct pii_scan *s, const struct pii_digits *d, struct pii_hit *h);
bool pii_phone_find(const struct pii_scan *s, const struct pii_digits *d, struct pii_hit *h);
bool pii_word_iban(const struct pii_scan *s, size_t at, struct pii_hit *h);
bool pii_word_id(const struct pii_scan *s, size_t at, struct pii_hit *h);
bool pii_birth_find(const struct pii_scan *s, size_t at, struct pii_hit *h);

#endif
