/* numbers.c - see numbers.h. */
#include "text/speech/numbers.h"

#include <stddef.h>

static const char *const small[] = {"zero",    "one",     "two",       "three",    "four",
                                    "five",    "six",     "seven",     "eight",    "nine",
                                    "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const small_th[] = {
    "zeroth",     "first",     "second",    "third",       "fourth",     "fifth",     "sixth",
    "seventh",    "eighth",    "ninth",     "tenth",       "eleventh",   "twelfth",   "thirteenth",
    "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"};
static const char *const tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                   "fifty", "sixty", "seventy", "eighty", "ninety"};
static const char *const tens_th[] = {"",          "",         "twentieth", "thirtieth",
                                      "fortieth",  "fiftieth", "sixtieth",  "seventieth",
                                      "eightieth", "ninetieth"};

static const struct {
    uint64_t value;
    const char *name, *th;
} large[] = {
    {1000000000000000000u, "quintillion", "quintillionth"},
    {1000000000000000u, "quadrillion", "quadrillionth"},
    {1000000000000u, "trillion", "trillionth"},
    {1000000000u, "billion", "billionth"},
    {1000000u, "million", "millionth"},
    {1000u, "thousand", "thousandth"},
    {100u, "hundred", "hundredth"},
};

static void word(struct buf *out, const char *w)
{
    buf_puts(out, w);
    buf_putc(out, ' ');
}

static void below_hundred(struct buf *out, uint32_t n, bool th)
{
    if (n < 20) {
        word(out, th ? small_th[n] : small[n]);
        return;
    }
    word(out, th && n % 10 == 0 ? tens_th[n / 10] : tens[n / 10]);
    if (n % 10)
        word(out, th ? small_th[n % 10] : small[n % 10]);
}

static void say(struct buf *out, uint64_t n, bool th);

/* The part of n that `large[i]` counts, and the rest. */
static void say_large(struct buf *out, uint64_t n, size_t i, bool th)
{
    const uint64_t rest = n % large[i].value;
    say(out, n / large[i].value, false);
    word(out, th && rest == 0 ? large[i].th : large[i].name);
    if (rest)
        say(out, rest, th);
}

static void say(struct buf *out, uint64_t n, bool th)
{
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
        if (n >= large[i].value) {
            say_large(out, n, i, th);
            return;
        }
    below_hundred(out, (uint32_t)n, th);
}

void numbers_cardinal(struct buf *out, uint64_t n)
{
    say(out, n, false);
}

void numbers_ordinal(struct buf *out, uint64_t n)
{
    say(out, n, true);
}

void numbers_year(struct buf *out, uint32_t n)
{
    const uint32_t century = n / 100, year = n % 100;
    if (n < 1000 || n > 9999 || n % 1000 < 10) {
        say(out, n, false);
        return;
    }
    below_hundred(out, century, false);
    if (year == 0) {
        word(out, "hundred");
    } else {
        if (year < 10)
            word(out, "oh");
        below_hundred(out, year, false);
    }
}

void numbers_digits(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] >= '0' && p[i] <= '9')
            word(out, small[p[i] - '0']);
}
