/* pii_phone.c - see pii_int.h: phone numbers, international and in common national forms. */
#include <string.h>

#include "privacy/pii_int.h"

#define PHONE_WORDS                                                                                \
    "phone|call|tel|mobile|cell|fax|whatsapp|signal|sms|text me|text him|text her|reach|ring|"     \
    "handy|telefon|mobil|anruf|rufnummer|ruf mich|appel|portable|llam|m\xc3\xb3vil|movil|"         \
    "chiama|cellulare|bel me|dzwo|contact number|hotline|dial"
/* A number after these words belongs to a thing. */
#define THING_WORDS                                                                                \
    "order|invoice|part|sku|ref|ticket|case|serial|article|item|tracking|version|build|isbn|"      \
    "issn|ean|upc|po box|lot|batch|account|bestell|rechnung|artikel|seriennummer|commande|"        \
    "facture|pedido|factura|customer no|rfc|id"

/* Codes of countries, E.164: every code of one digit, then of two; all others have three. */
static uint32_t country_digits(const char *d)
{
    static const char two[] = "20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 "
                              "55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98";
    static const char three[] = "21 22 23 24 25 26 29 35 37 38 42 50 59 67 68 80 85 87 88 96 97 99";
    const char pair[3] = {d[0], d[1], '\0'};
    if (d[0] == '1' || d[0] == '7')
        return 1;
    return strstr(two, pair) ? 2 : strstr(three, pair) ? 3 : 0;
}

/* Day, month and year, or a time after it: not a phone number. */
static bool is_date(const struct pii_digits *d)
{
    if (d->n_groups < 3)
        return false;
    const uint32_t a = d->g[0].n, b = d->g[1].n, c = d->g[2].n;
    char sep = d->g[1].sep;
    bool same = sep == d->g[2].sep && (sep == '.' || sep == '-' || sep == '/' || sep == ' ');
    bool year_first = d->d[0] == '1' || d->d[0] == '2';
    return same && ((a <= 2 && b <= 2 && c == 4 && d->n_groups <= 5 && sep != ' ') ||
                    (a == 4 && b <= 2 && c <= 2 && year_first));
}

/* From group `from` on, groups of one digit occur only as (0), or as an extension at the end. */
static bool groups_fit(const struct pii_digits *d, uint32_t from, uint32_t k)
{
    for (uint32_t i = from; i < k; i++)
        if (d->g[i].n < 2 && d->g[i].sep != '(' && (i + 1 < k || d->g[i].sep != '-'))
            return false;
    return true;
}

static bool international(const struct pii_digits *d, uint32_t k)
{
    uint32_t skip = d->plus ? 0 : 2, n = d->g[k - 1].sum - skip;
    if (!d->plus && (d->d[0] != '0' || d->d[1] != '0'))
        return false;
    if (n < 8 || n > 15 || d->d[skip] == '0' || !groups_fit(d, 2, k))
        return false;
    uint32_t code = country_digits(d->d + skip);
    if (code == 0)
        return false;
    return code != 1 || d->d[skip] != '1' || (n == 11 && d->d[skip + 1] >= '2');
}

/* NXX-NXX-XXXX of North America, with or without 1 in front. */
static bool north_american(const struct pii_digits *d, uint32_t k, bool told)
{
    uint32_t n = d->g[k - 1].sum, lead = n == 11 && d->d[0] == '1';
    const char *p = d->d + lead;
    if (n - lead != 10 || p[0] < '2' || p[3] < '2' || (p[1] == '1' && p[2] == '1'))
        return false;
    if (k == 1)
        return told;
    uint32_t first = lead && d->g[0].n == 1 ? 1 : 0;
    if (k - first == 2) /* 555 1234567, (555) 1234567, 555-123 4567 is rare */
        return d->g[first].n == 3 && d->g[first + 1].n == 7 && (told || d->g[first + 1].sep == '(');
    return k - first == 3 && d->g[first].n == 3 && d->g[first + 1].n == 3 && d->g[first + 2].n == 4;
}

/* With the 0 of long distance calls: Germany, France, Britain, Italy, the Netherlands, ... */
static bool trunk_zero(const struct pii_digits *d, uint32_t k, bool told)
{
    uint32_t n = d->g[k - 1].sum;
    const char *p = d->d;
    if (p[0] != '0' || p[1] == '0' || n < 9 || n > 12 || !groups_fit(d, 0, k))
        return false;
    if (k > 1)
        return d->g[0].n <= 6 && (k > 2 || d->g[1].n >= 4);
    bool mobile = (n == 10 && (p[1] == '6' || p[1] == '7')) || (n == 11 && p[1] == '7') ||
                  (n >= 11 && p[1] == '1' && p[2] >= '5' && p[2] <= '7');
    return told || mobile;
}

/* Without a prefix, as in Spain, Portugal and Poland: only where a phone is spoken of. */
static bool no_prefix(const struct pii_digits *d, uint32_t k, bool told)
{
    uint32_t n = d->g[k - 1].sum;
    bool whole = k == 1 && n >= 9 && n <= 11;
    return told && (whole || (n == 9 && d->d[0] >= '2' && k <= 4 && groups_fit(d, 0, k)));
}

/* The number continues to the left: "DE89 3704 0044 0532". */
static bool continues(const struct pii_scan *s, size_t at)
{
    return at >= s->done + 2 && strchr(" -/", s->p[at - 1]) && s->p[at - 2] >= '0' &&
           s->p[at - 2] <= '9';
}

bool pii_phone_find(const struct pii_scan *s, const struct pii_digits *d, struct pii_hit *h)
{
    if (d->n < 8 || (!d->plus && is_date(d)))
        return false;
    size_t told = pii_text_after_word(s, d->start, PHONE_WORDS); /* the nearer word counts */
    bool thing = pii_text_after_word(s, d->start, THING_WORDS) > told ||
                 (!told && ((d->start > 0 && s->p[d->start - 1] == '#') || continues(s, d->start)));
    for (uint32_t k = d->n_groups; k > 0; k--) {
        size_t end = d->g[k - 1].end;
        const char *form = NULL;
        if (d->g[k - 1].sum < 8)
            break;
        if (!pii_text_ends(s, end) || (end < s->n && s->p[end] == ':' && k > 1))
            continue;
        if (international(d, k) && (d->plus || !thing))
            form = "international";
        else if (!d->plus && !thing && north_american(d, k, told > 0))
            form = "us";
        else if (!d->plus && !thing && (trunk_zero(d, k, told > 0) || no_prefix(d, k, told > 0)))
            form = "national";
        if (form) {
            *h = (struct pii_hit){.kind = PII_PHONE, .form = form, .start = d->start, .end = end};
            return true;
        }
    }
    return false;
}
