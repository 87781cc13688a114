/* pii.c - see pii.h. */
#include "privacy/pii.h"

#include <stdint.h>
#include <string.h>

#include "base/ascii.h"
#include "privacy/pii_int.h"

static const struct {
    const char *name, *text;
} kinds_of[PII_N_KINDS] = {
    [PII_EMAIL] = {"email", "an e-mail address"},
    [PII_PHONE] = {"phone", "a phone number"},
    [PII_CARD] = {"card", "a payment card number"},
    [PII_IBAN] = {"iban", "a bank account number"},
    [PII_IP] = {"ip", "an IP address"},
    [PII_ID] = {"id", "a national id"},
    [PII_BIRTH] = {"birth", "a date of birth"},
    [PII_PERSON] = {"person", "a person's name"},
    [PII_PLACE] = {"place", "a place"},
};

const char *pii_kind_name(enum pii_kind k)
{
    return kinds_of[k].name;
}

const char *pii_kind_text(enum pii_kind k)
{
    return kinds_of[k].text;
}

bool pii_kind_read(enum pii_kind *out, const char *name, size_t n)
{
    for (unsigned k = 0; k < PII_N_KINDS; k++)
        if (strlen(kinds_of[k].name) == n && memcmp(kinds_of[k].name, name, n) == 0) {
            *out = (enum pii_kind)k;
            return true;
        }
    return false;
}

/* How far a word that has a digit, or a month before one, reaches to it. */
#define NEAR_DIGIT 40u
#define NEAR_AT 65u

/* Positions of the next such characters: most words are not near one, and need no rule. */
struct ahead {
    size_t digit, at; /* '0' to '9', '@' */
};

static bool wanted(const struct pii_scan *s, enum pii_kind k)
{
    return s->kinds & PII_BIT(k);
}

/* In this order: rules with the strongest checks first. */
static bool number_at(const struct pii_scan *s, size_t at, struct pii_hit *h)
{
    struct pii_digits d;
    if (!pii_text_digits(s, at, &d))
        return false;
    if (wanted(s, PII_BIRTH) && pii_birth_find(s, at, h))
        return true;
    if (wanted(s, PII_IP) && pii_net_ip4(s, at, h))
        return true;
    if (!d.plus && wanted(s, PII_CARD) && pii_number_card(s, &d, h))
        return true;
    if (!d.plus && wanted(s, PII_ID) && (pii_number_id(s, &d, h) || pii_word_id(s, at, h)))
        return true;
    return wanted(s, PII_PHONE) && pii_phone_find(s, &d, h);
}

static bool word_at(const struct pii_scan *s, size_t at, struct pii_hit *h)
{
    if (wanted(s, PII_IBAN) && pii_word_iban(s, at, h))
        return true;
    if (wanted(s, PII_ID) && pii_word_id(s, at, h))
        return true;
    return wanted(s, PII_BIRTH) && pii_birth_find(s, at, h);
}

/* at: the beginning of a word, a number, or a sign that may begin one. */
static bool find_at(const struct pii_scan *s, size_t at, enum pii_char c, const struct ahead *next,
                    struct pii_hit *h)
{
    char sign = s->p[at];
    *h = (struct pii_hit){.form = ""};
    if (c == PII_OTHER && sign != '+' && sign != '(' && sign != ':')
        return false;
    bool digit = next->digit - at < NEAR_DIGIT;
    if (c != PII_OTHER && next->at - at < NEAR_AT && wanted(s, PII_EMAIL) &&
        pii_net_email(s, at, h))
        return true;
    if (!digit)
        return false;
    if (wanted(s, PII_IP) && sign != '+' && sign != '(' && pii_net_ip6(s, at, h))
        return true;
    if (sign == ':' || !pii_text_begins(s, at))
        return false;
    return c == PII_LETTER ? word_at(s, at, h) : number_at(s, at, h);
}

static void look_ahead(const struct pii_scan *s, size_t from, struct ahead *next)
{
    if (next->at < from || from == 0) {
        const char *at = memchr(s->p + from, '@', s->n - from);
        next->at = at ? (size_t)(at - s->p) : SIZE_MAX;
    }
    if (next->digit >= from && from > 0)
        return;
    next->digit = from;
    while (next->digit < s->n && !ascii_is_digit(s->p[next->digit]))
        next->digit++;
    if (next->digit == s->n)
        next->digit = SIZE_MAX;
}

void pii_find(const char *text, size_t n, unsigned kinds,
              void (*fn)(void *ctx, const struct pii_hit *h), void *ctx)
{
    struct pii_scan s = {.p = text, .n = n, .kinds = kinds};
    struct ahead next = {0, 0};
    enum pii_char before = PII_OTHER;
    size_t bytes;
    if (n == 0)
        return;
    for (size_t at = 0; at < n; at += bytes) {
        struct pii_hit h;
        enum pii_char c = pii_text_at(&s, at, &bytes);
        bool inside = c != PII_OTHER && before != PII_OTHER;
        before = c;
        if (inside)
            continue;
        look_ahead(&s, at, &next);
        if (!find_at(&s, at, c, &next, &h))
            continue;
        fn(ctx, &h);
        bytes = h.end - at;
        s.done = h.end;
        before = PII_LETTER;
    }
}
