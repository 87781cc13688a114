/* schema_number.c - see schema_number.h. */
#include "text/grammar/schema_number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/grammar/grammar_tree.h"

#define NONE GRAMMAR_TREE_NONE
#define MAX_INTEGER 999999999999999LL
#define FRACTION 9 /* digits after the point */
#define SCALE 1000000000LL

static uint32_t digit(struct grammar_tree *t, char lo, char hi)
{
    const struct grammar_tree_range r = {(uint32_t)lo, (uint32_t)hi};
    return grammar_tree_class(t, &r, 1, false);
}

static uint32_t digits(struct grammar_tree *t, uint32_t min, uint32_t max)
{
    return grammar_tree_repeat(t, digit(t, '0', '9'), min, max);
}

static uint32_t list_end(struct grammar_tree *t, const struct grammar_tree_list *l)
{
    return grammar_tree_rc(t) < 0 ? NONE : grammar_tree_either(t, l);
}

/* Texts of n digits from lo to hi, both of n digits. */
static uint32_t same_length(struct grammar_tree *t, const char *lo, const char *hi, uint32_t n)
{
    struct grammar_tree_list l = {0};
    if (n == 0)
        return grammar_tree_text(t, "");
    if (lo[0] == hi[0])
        return grammar_tree_sequence3(t, digit(t, lo[0], lo[0]),
                                      same_length(t, lo + 1, hi + 1, n - 1), NONE);
    bool low_all = strspn(lo + 1, "0") >= n - 1, high_all = strspn(hi + 1, "9") >= n - 1;
    char from = low_all ? lo[0] : (char)(lo[0] + 1), to = high_all ? hi[0] : (char)(hi[0] - 1);
    if (!low_all)
        grammar_tree_push(t, &l,
                          grammar_tree_sequence3(t, digit(t, lo[0], lo[0]),
                                                 same_length(t, lo + 1, "999999999999999", n - 1),
                                                 NONE));
    if (from <= to)
        grammar_tree_push(
            t, &l, grammar_tree_sequence3(t, digit(t, from, to), digits(t, n - 1, n - 1), NONE));
    if (!high_all)
        grammar_tree_push(t, &l,
                          grammar_tree_sequence3(t, digit(t, hi[0], hi[0]),
                                                 same_length(t, "000000000000000", hi + 1, n - 1),
                                                 NONE));
    return list_end(t, &l);
}

/* Whole numbers from lo to hi, 0 <= lo, without leading zeros. */
static uint32_t natural(struct grammar_tree *t, long long lo, long long hi)
{
    struct grammar_tree_list l = {0};
    char a[24], b[24];
    long long low = lo;
    while (low <= hi) { /* one length after the other */
        long long top = 9;
        while (top < low)
            top = 10 * top + 9;
        top = top < hi ? top : hi;
        snprintf(a, sizeof(a), "%lld", low);
        snprintf(b, sizeof(b), "%lld", top);
        grammar_tree_push(t, &l, same_length(t, a, b, (uint32_t)strlen(a)));
        low = top + 1;
    }
    return list_end(t, &l);
}

static uint32_t minus(struct grammar_tree *t, uint32_t node)
{
    return grammar_tree_sequence3(t, grammar_tree_text(t, "-"), node, NONE);
}

uint32_t schema_number_integer(struct grammar_tree *t, const struct schema_number_bounds *b)
{
    struct grammar_tree_list l = {0};
    const double most = (double)MAX_INTEGER;
    double lo = b->has_min ? ceil(b->min) : -most, hi = b->has_max ? floor(b->max) : most;
    if (b->above && b->has_min && lo == b->min)
        lo += 1;
    if (b->below && b->has_max && hi == b->max)
        hi -= 1;
    lo = lo < -most ? -most : lo;
    hi = hi > most ? most : hi;
    if (!(lo <= hi))
        return grammar_tree_either(t, &l);
    long long from = (long long)lo, to = (long long)hi;
    if (from < 0)
        grammar_tree_push(t, &l, minus(t, natural(t, to < 0 ? -to : 1, -from)));
    if (to >= 0)
        grammar_tree_push(t, &l, natural(t, from > 0 ? from : 0, to));
    return list_end(t, &l);
}

/* ---- decimals: counted in units of 10^-9 ---- */

/* Fractions ".ddd" whose value is from lo to hi (in units), without the point.  n: digits left. */
static uint32_t fraction(struct grammar_tree *t, long long lo, long long hi, uint32_t n)
{
    struct grammar_tree_list l = {0};
    long long unit = 1;
    for (uint32_t i = 1; i < n; i++)
        unit *= 10;
    if (lo <= 0 && hi >= 10 * unit - 1)
        return digits(t, 0, n);
    if (lo <= 0) /* it may stop here: missing digits count as zeros */
        grammar_tree_push(t, &l, grammar_tree_text(t, ""));
    for (int d = 0; n > 0 && d <= 9; d++) {
        long long from = d * unit, to = from + unit - 1;
        if (to < lo || from > hi)
            continue;
        grammar_tree_push(t, &l,
                          grammar_tree_sequence3(t, digit(t, (char)('0' + d), (char)('0' + d)),
                                                 fraction(t, lo > from ? lo - from : 0,
                                                          hi < to ? hi - from : unit - 1, n - 1),
                                                 NONE));
    }
    return list_end(t, &l);
}

/* A whole part followed by a fraction from lo to hi. */
static uint32_t with_fraction(struct grammar_tree *t, uint32_t whole, long long lo, long long hi)
{
    struct grammar_tree_list l = {0};
    if (lo > hi)
        return grammar_tree_either(t, &l);
    /* a point needs a digit */
    for (int d = 0; d <= 9; d++) {
        long long unit = SCALE / 10, from = d * unit, to = from + unit - 1;
        if (to < lo || from > hi)
            continue;
        uint32_t rest =
            fraction(t, lo > from ? lo - from : 0, hi < to ? hi - from : unit - 1, FRACTION - 1);
        grammar_tree_push(
            t, &l,
            grammar_tree_sequence3(t, digit(t, (char)('0' + d), (char)('0' + d)), rest, NONE));
    }
    uint32_t some = grammar_tree_sequence3(t, grammar_tree_text(t, "."), list_end(t, &l), NONE);
    return grammar_tree_sequence3(t, whole, lo <= 0 ? grammar_tree_optional(t, some) : some, NONE);
}

/* From lo to hi units, 0 <= lo. */
static uint32_t positive(struct grammar_tree *t, long long lo, long long hi)
{
    struct grammar_tree_list l = {0};
    const long long a = lo / SCALE, b = hi / SCALE, fa = lo % SCALE, fb = hi % SCALE;
    if (lo > hi)
        return grammar_tree_either(t, &l);
    if (a == b)
        return with_fraction(t, natural(t, a, a), fa, fb);
    grammar_tree_push(t, &l, with_fraction(t, natural(t, a, a), fa, SCALE - 1));
    if (a + 1 < b)
        grammar_tree_push(t, &l, with_fraction(t, natural(t, a + 1, b - 1), 0, SCALE - 1));
    grammar_tree_push(t, &l, with_fraction(t, natural(t, b, b), 0, fb));
    return list_end(t, &l);
}

uint32_t schema_number_decimal(struct grammar_tree *t, const struct schema_number_bounds *b)
{
    struct grammar_tree_list l = {0};
    /* with nine decimals, larger numbers do not fit into 64 bits */
    const double most = 999999999.0;
    double lo = b->has_min ? b->min : -most, hi = b->has_max ? b->max : most;
    if (lo > most || hi < -most) { /* far away: integers are enough */
        return schema_number_integer(t, b);
    }
    lo = lo < -most ? -most : lo;
    hi = hi > most ? most : hi;
    double from = ceil(lo * (double)SCALE), to = floor(hi * (double)SCALE);
    if (b->has_min && b->above && lo == b->min && from <= lo * (double)SCALE)
        from += 1;
    if (b->has_max && b->below && hi == b->max && to >= hi * (double)SCALE)
        to -= 1;
    if (!(from <= to))
        return grammar_tree_either(t, &l);
    long long x = (long long)from, y = (long long)to;
    if (x < 0)
        grammar_tree_push(t, &l, minus(t, positive(t, y < 0 ? -y : 0, -x)));
    if (y >= 0)
        grammar_tree_push(t, &l, positive(t, x > 0 ? x : 0, y));
    return list_end(t, &l);
}

/* Rules for up to n more digits after digits whose number has remainder r. */
static void fill_multiples(struct grammar_tree *t, uint32_t *rules, const uint32_t *behind,
                           uint32_t m)
{
    for (uint32_t r = 0; r < m && grammar_tree_rc(t) == 0; r++) {
        struct grammar_tree_list l = {0};
        if (r == 0)
            grammar_tree_push(t, &l, grammar_tree_text(t, ""));
        for (uint32_t d = 0; behind && d < 10; d++)
            grammar_tree_push(t, &l,
                              grammar_tree_sequence3(t, digit(t, (char)('0' + d), (char)('0' + d)),
                                                     grammar_tree_call(t, behind[(10 * r + d) % m]),
                                                     NONE));
        rules[r] = grammar_tree_add_rule(t, NULL, 0);
        grammar_tree_define(t, rules[r], list_end(t, &l));
    }
}

uint32_t schema_number_multiple(struct grammar_tree *t, uint32_t m)
{
    uint32_t rules[2][SCHEMA_NUMBER_MAX_MULTIPLE];
    struct grammar_tree_list first = {0};
    for (uint32_t n = 0; n < FRACTION; n++)
        fill_multiples(t, rules[n % 2], n > 0 ? rules[(n + 1) % 2] : NULL, m);
    for (uint32_t d = 1; d < 10 && grammar_tree_rc(t) == 0; d++)
        grammar_tree_push(
            t, &first,
            grammar_tree_sequence3(t, digit(t, (char)('0' + d), (char)('0' + d)),
                                   grammar_tree_call(t, rules[(FRACTION - 1) % 2][d % m]), NONE));
    if (grammar_tree_rc(t) < 0)
        return NONE;
    uint32_t number = grammar_tree_sequence3(t, grammar_tree_optional(t, grammar_tree_text(t, "-")),
                                             grammar_tree_either(t, &first), NONE);
    return grammar_tree_either2(t, grammar_tree_text(t, "0"), number);
}
