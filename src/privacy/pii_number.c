/* pii_number.c - see pii_int.h: payment cards and the national ids that consist of digits only. */
#include <string.h>

#include "privacy/pii_int.h"

/* The number that begins with the first k groups of d, if it ends there. */
static bool ends_with(const struct pii_scan *s, const struct pii_digits *d, uint32_t k)
{
    return pii_text_ends(s, d->g[k - 1].end);
}

static bool hit(struct pii_hit *h, enum pii_kind kind, const char *form, const struct pii_digits *d,
                uint32_t n_groups)
{
    *h = (struct pii_hit){
        .kind = kind, .form = form, .start = d->start, .end = d->g[n_groups - 1].end};
    return true;
}

static uint32_t number(const char *d, uint32_t n)
{
    uint32_t v = 0;
    for (uint32_t i = 0; i < n; i++)
        v = v * 10 + (uint32_t)(d[i] - '0');
    return v;
}

static uint32_t digit(const char *d, uint32_t i)
{
    return (uint32_t)(d[i] - '0');
}

/* ---- payment cards ---- */

static bool luhn(const char *d, uint32_t n)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = digit(d, n - 1 - i);
        v = i % 2 ? 2 * v : v;
        sum += v > 9 ? v - 9 : v;
    }
    return sum % 10 == 0;
}

/* By the first digits and the length; NULL: no network issues such numbers. */
static const char *network(const char *d, uint32_t n)
{
    static const struct {
        const char *name;
        uint32_t first, last, n_first; /* range of the first digits */
        uint32_t min, max;             /* digits */
    } nets[] = {
        {"visa", 4, 4, 1, 13, 19},
        {"mastercard", 51, 55, 2, 16, 16},
        {"mastercard", 2221, 2720, 4, 16, 16},
        {"amex", 34, 34, 2, 15, 15},
        {"amex", 37, 37, 2, 15, 15},
        {"discover", 6011, 6011, 4, 16, 19},
        {"discover", 644, 659, 3, 16, 19},
        {"diners", 300, 305, 3, 14, 19},
        {"diners", 36, 36, 2, 14, 19},
        {"diners", 38, 39, 2, 14, 19},
        {"jcb", 3528, 3589, 4, 16, 19},
        {"unionpay", 62, 62, 2, 16, 19},
        {"maestro", 50, 50, 2, 13, 19},
        {"maestro", 56, 58, 2, 13, 19},
        {"maestro", 67, 67, 2, 13, 19},
    };
    for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
        uint32_t v = number(d, nets[i].n_first);
        if (n >= nets[i].min && n <= nets[i].max && v >= nets[i].first && v <= nets[i].last)
            return nets[i].name;
    }
    return NULL;
}

/* Whole, in groups of four (the last may be shorter), or 4-6-5 and 4-6-4; one separator. */
static bool card_groups(const struct pii_digits *d, uint32_t k)
{
    if (k == 1)
        return true;
    bool fours = true;
    for (uint32_t i = 0; i < k; i++) {
        if (i > 0 && d->g[i].sep != d->g[1].sep)
            return false;
        fours &= d->g[i].n == 4 || (i == k - 1 && d->g[i].n < 4);
    }
    if (d->g[1].sep != ' ' && d->g[1].sep != '-')
        return false;
    return fours || (k == 3 && d->g[0].n == 4 && d->g[1].n == 6 && d->g[2].n >= 4);
}

bool pii_number_card(const struct pii_scan *s, const struct pii_digits *d, struct pii_hit *h)
{
    for (uint32_t k = d->n_groups; k > 0; k--) {
        uint32_t n = d->g[k - 1].sum;
        if (n < 13 || n > 19 || !card_groups(d, k) || !ends_with(s, d, k))
            continue;
        const char *name = network(d->d, n);
        if (name && luhn(d->d, n))
            return hit(h, PII_CARD, name, d, k);
    }
    return false;
}

/* ---- national ids ---- */

/* AAA-GG-SSSS of the USA: ranges that were never issued are rejected. */
static bool us_ssn(const struct pii_scan *s, const struct pii_digits *d, uint32_t k)
{
    bool grouped = k == 3 && d->g[0].n == 3 && d->g[1].n == 2 && d->g[2].n == 4 &&
                   d->g[1].sep == d->g[2].sep && (d->g[1].sep == '-' || d->g[1].sep == ' ');
    bool told = pii_text_after_word(s, d->start, "ssn|social security");
    uint32_t area = number(d->d, 3);
    if (d->g[k - 1].sum != 9 || !(grouped ? d->g[1].sep == '-' || told : k == 1 && told))
        return false;
    return area != 0 && area != 666 && area < 900 && number(d->d + 3, 2) && number(d->d + 5, 4);
}

/* Steuer-ID of Germany: ISO 7064 mod 11,10; of the first ten digits one occurs two or three times,
 * the others at most once. */
static bool de_tax(const char *d)
{
    uint32_t count[10] = {0}, product = 10, twice = 0;
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t sum = (digit(d, i) + product) % 10;
        product = (sum ? sum : 10) * 2 % 11;
        count[digit(d, i)]++;
    }
    for (uint32_t i = 0; i < 10; i++) {
        if (count[i] > 3)
            return false;
        twice += count[i] > 1;
    }
    return d[0] != '0' && twice == 1 && (11 - product) % 10 == digit(d, 10);
}

/* PESEL of Poland: date of birth (the month tells the century) and a check digit. */
static bool pl_pesel(const char *d)
{
    static const uint32_t weights[] = {1, 3, 7, 9, 1, 3, 7, 9, 1, 3};
    uint32_t sum = 0, month = number(d + 2, 2) % 20, day = number(d + 4, 2);
    uint32_t century = number(d + 2, 2) / 20; /* 0: 1900, 1: 2000, 4: 1800 */
    for (uint32_t i = 0; i < 10; i++)
        sum += weights[i] * digit(d, i);
    return month >= 1 && month <= 12 && (century < 2 || century == 4) && day >= 1 && day <= 31 &&
           (10 - sum % 10) % 10 == digit(d, 10);
}

/* BSN of the Netherlands: the "eleven test". */
static bool nl_bsn(const char *d)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < 8; i++)
        sum += (int32_t)((9 - i) * digit(d, i));
    sum -= (int32_t)digit(d, 8);
    return sum != 0 && sum % 11 == 0;
}

/* NIR of France, of those not born in Corsica: sex, month, and a key of two digits. */
static bool fr_nir(const char *d)
{
    uint64_t v = 0;
    uint32_t month = number(d + 3, 2);
    for (uint32_t i = 0; i < 13; i++)
        v = v * 10 + digit(d, i);
    bool born = (month >= 1 && month <= 12) || month == 20 || (month >= 30 && month <= 42) ||
                (month >= 50 && month <= 99);
    return strchr("123478", d[0]) && born && 97 - v % 97 == number(d + 13, 2);
}

static bool one_separator(const struct pii_digits *d, uint32_t k)
{
    for (uint32_t i = 1; i < k; i++)
        if (d->g[i].sep != d->g[1].sep || !strchr(" -.", d->g[i].sep))
            return false;
    return true;
}

static const char *id_of(const struct pii_scan *s, const struct pii_digits *d, uint32_t k)
{
    uint32_t n = d->g[k - 1].sum;
    if (n == 9 && us_ssn(s, d, k))
        return "us_ssn";
    if (!one_separator(d, k))
        return NULL;
    if (n == 9 && nl_bsn(d->d) &&
        pii_text_after_word(s, d->start, "bsn|burgerservicenummer|sofinummer|sofi-nummer"))
        return "nl_bsn";
    bool tax_groups = k == 1 || (k == 4 && d->g[0].n == 2 && d->g[1].n == 3 && d->g[2].n == 3);
    if (n == 11 && tax_groups && de_tax(d->d))
        return "de_tax";
    if (n == 11 && k == 1 && pl_pesel(d->d))
        return "pl_pesel";
    bool nir_groups = k == 1 || (k == 7 && d->g[0].n == 1) || (k == 2 && d->g[0].n == 13);
    if (n == 15 && nir_groups && fr_nir(d->d))
        return "fr_nir";
    return NULL;
}

bool pii_number_id(const struct pii_scan *s, const struct pii_digits *d, struct pii_hit *h)
{
    for (uint32_t k = d->n_groups; k > 0; k--) {
        uint32_t n = d->g[k - 1].sum;
        if ((n != 9 && n != 11 && n != 15) || !ends_with(s, d, k))
            continue;
        const char *form = id_of(s, d, k);
        if (form)
            return hit(h, PII_ID, form, d, k);
    }
    return false;
}
