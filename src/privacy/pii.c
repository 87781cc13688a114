/* pii.c - see pii.h. */
#include "privacy/pii.h"

#include <string.h>

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

static bool wanted(const struct pii_scan *s, enum pii_kind k)
{
    return s->kinds & PII_BIT(k);
}

/* In this order: what is checked best comes first. */
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
static bool find_at(const struct pii_scan *s, size_t at, enum pii_char c, struct pii_hit *h)
{
    char sign = s->p[at];
    *h = (struct pii_hit){.form = ""};
    if (c == PII_OTHER && sign != '+' && sign != '(' && sign != ':')
        return false;
    if (c != PII_OTHER && wanted(s, PII_EMAIL) && pii_net_email(s, at, h))
        return true;
    if (wanted(s, PII_IP) && sign != '+' && sign != '(' && pii_net_ip6(s, at, h))
        return true;
    if (sign == ':' || !pii_text_begins(s, at))
        return false;
    return c == PII_LETTER ? word_at(s, at, h) : number_at(s, at, h);
}

void pii_find(const char *text, size_t n, unsigned kinds,
              void (*fn)(void *ctx, const struct pii_hit *h), void *ctx)
{
    struct pii_scan s = {.p = text, .n = n, .kinds = kinds};
    enum pii_char before = PII_OTHER;
    size_t bytes;
    for (size_t at = 0; at < n; at += bytes) {
        struct pii_hit h;
        enum pii_char c = pii_text_at(&s, at, &bytes);
        bool inside = c != PII_OTHER && before != PII_OTHER;
        before = c;
        if (inside || !find_at(&s, at, c, &h))
            continue;
        fn(ctx, &h);
        bytes = h.end - at;
        s.done = h.end;
        before = PII_LETTER;
    }
}
