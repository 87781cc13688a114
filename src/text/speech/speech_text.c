/* speech_text.c - see speech_text.h. */
#include "text/speech/speech_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "text/speech/numbers.h"
#include "text/speech/speech_fold.h"
#include "text/speech/speech_tables.h"

struct scan {
    const char *p; /* folded */
    size_t n, at;
    struct buf *out;
    size_t start; /* of what was appended */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || is_upper(c);
}

static char lower(char c)
{
    return is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

/* The character `ahead` of the present one; 0 behind the end. */
static char peek(const struct scan *s, size_t ahead)
{
    return s->at + ahead < s->n ? s->p[s->at + ahead] : '\0';
}

static const char *here(const struct scan *s)
{
    return s->p + s->at;
}

static size_t left(const struct scan *s)
{
    return s->n - s->at;
}

/* ---- output -------------------------------------------------------------------------------------
 */

static bool is_mark(char c)
{
    return c && strchr(",.;:!?", c) != NULL;
}

static char last_put(const struct scan *s)
{
    return s->out->len > s->start ? s->out->data[s->out->len - 1] : '\0';
}

static void put_space(struct scan *s)
{
    if (last_put(s) && last_put(s) != ' ')
        buf_putc(s->out, ' ');
}

static void put_words(struct scan *s, const char *words)
{
    put_space(s);
    buf_puts(s->out, words);
}

/* A mark belongs to the word before; of several the strongest one stays. */
static void put_mark(struct scan *s, char c)
{
    static const char weaker[] = ",;:.!?";
    while (last_put(s) == ' ')
        s->out->data[--s->out->len] = '\0';
    const char was = last_put(s);
    if (!was)
        return;
    if (!is_mark(was))
        buf_putc(s->out, c);
    else if (strchr(weaker, was) < strchr(weaker, c))
        s->out->data[s->out->len - 1] = c;
}

static void put_letter(struct scan *s, char c)
{
    const char name[] = {lower(c), '\0'};
    put_words(s, lower(c) == 'a' ? "ay" : name);
}

static void put_lower(struct scan *s, const char *p, size_t n)
{
    put_space(s);
    for (size_t i = 0; i < n; i++)
        buf_putc(s->out, lower(p[i]));
}

static void put_cardinal(struct scan *s, uint64_t n)
{
    put_space(s);
    numbers_cardinal(s->out, n);
}

static void put_ordinal(struct scan *s, uint64_t n)
{
    put_space(s);
    numbers_ordinal(s->out, n);
}

static void put_digits(struct scan *s, const char *p, size_t n)
{
    put_space(s);
    numbers_digits(s->out, p, n);
}

static void put_year(struct scan *s, uint32_t n)
{
    put_space(s);
    numbers_year(s->out, n);
}

/* ---- numbers
 * ------------------------------------------------------------------------------------- */

struct number {
    const char *whole; /* digits, without the commas between thousands when they are counted */
    size_t n_whole, n_commas;
    uint64_t value;
    bool large; /* more digits than value holds */
    const char *part;
    size_t n_part; /* after the decimal point */
};

static size_t count_digits(const struct scan *s, size_t at)
{
    size_t n = 0;
    while (at + n < s->n && is_digit(s->p[at + n]))
        n++;
    return n;
}

/* Two digits as a number; at must be in the text. */
static uint32_t small_at(const struct scan *s, size_t at, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v * 10 + (uint32_t)(s->p[at + i] - '0');
    return v;
}

static bool has_comma(const struct scan *s, size_t at)
{
    return at < s->n && s->p[at] == ',' && count_digits(s, at + 1) == 3;
}

/* Takes the digits at the present place. */
static struct number take_number(struct scan *s)
{
    struct number x = {.whole = here(s)};
    size_t n = count_digits(s, s->at);
    const bool groups = n <= 3;
    while (groups && has_comma(s, s->at + n)) {
        n += 4;
        x.n_commas++;
    }
    x.n_whole = n;
    for (size_t i = 0; i < n; i++)
        if (is_digit(x.whole[i])) {
            x.large = x.large || x.value > (UINT64_MAX - 9) / 10;
            x.value = x.large ? 0 : x.value * 10 + (uint64_t)(x.whole[i] - '0');
        }
    s->at += n;
    if (peek(s, 0) == '.' && is_digit(peek(s, 1))) {
        x.part = here(s) + 1;
        x.n_part = count_digits(s, s->at + 1);
        s->at += 1 + x.n_part;
    }
    return x;
}

static bool is_one(const struct number *x)
{
    return x->value == 1 && x->n_part == 0;
}

static bool begins_with_zero(const struct number *x)
{
    return x->n_whole > 1 && x->whole[0] == '0';
}

static void put_part(struct scan *s, const struct number *x)
{
    if (x->n_part == 0)
        return;
    put_words(s, "point");
    put_digits(s, x->part, x->n_part);
}

static void put_number(struct scan *s, const struct number *x)
{
    if (x->large || begins_with_zero(x))
        put_digits(s, x->whole, x->n_whole);
    else
        put_cardinal(s, x->value);
    put_part(s, x);
}

/* Skips one space, if something that `is` wants follows. */
static size_t gap(const struct scan *s)
{
    return peek(s, 0) == ' ' ? 1 : 0;
}

/* The unit behind a number. */
static bool put_unit(struct scan *s, bool one)
{
    const size_t skip = gap(s);
    const struct speech_unit *u = speech_tables_unit(here(s) + skip, left(s) - skip);
    if (!u)
        return false;
    s->at += skip + strlen(u->written);
    put_words(s, one ? u->one : u->many);
    return true;
}

static bool word_follows(const struct scan *s, const char *word, size_t *n)
{
    const size_t skip = gap(s), len = strlen(word);
    *n = skip + len;
    if (left(s) < skip + len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (lower(peek(s, skip + i)) != word[i])
            return false;
    return !is_letter(peek(s, *n)) && !is_digit(peek(s, *n));
}

/* "am", "p.m." behind a time. */
static bool put_half_of_day(struct scan *s)
{
    static const struct {
        const char *written, *said;
    } halves[] = {{"a.m.", "ay m"}, {"p.m.", "p m"}, {"a.m", "ay m"},
                  {"p.m", "p m"},   {"am", "ay m"},  {"pm", "p m"}};
    size_t n;
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++)
        if (word_follows(s, halves[i].written, &n)) {
            s->at += n;
            put_words(s, halves[i].said);
            if (s->p[s->at - 1] == '.' && s->at == s->n) /* it also ends the sentence */
                put_mark(s, '.');
            return true;
        }
    return false;
}

static bool put_time(struct scan *s)
{
    const size_t h = count_digits(s, s->at), colon = s->at + h;
    if (h < 1 || h > 2 || colon >= s->n || s->p[colon] != ':' || count_digits(s, colon + 1) != 2)
        return false;
    const uint32_t hour = small_at(s, s->at, h), minute = small_at(s, colon + 1, 2);
    if (hour > 24 || minute > 59)
        return false;
    s->at = colon + 3;
    put_cardinal(s, hour);
    uint32_t second = 0;
    if (peek(s, 0) == ':' && count_digits(s, s->at + 1) == 2) {
        second = small_at(s, s->at + 1, 2);
        s->at += 3;
    }
    if (minute > 0 && minute < 10)
        put_words(s, "oh");
    if (minute > 0)
        put_cardinal(s, minute);
    if (second > 0) {
        put_words(s, "and");
        put_cardinal(s, second);
        put_words(s, second == 1 ? "second" : "seconds");
    }
    if (!put_half_of_day(s) && minute == 0 && second == 0 && hour > 0 && hour <= 12)
        put_words(s, "o'clock");
    return true;
}

static void put_date(struct scan *s, uint32_t day, uint32_t month, uint32_t year)
{
    put_words(s, speech_tables_month_name(month));
    put_ordinal(s, day);
    if (year)
        put_year(s, year);
}

/* 2026-11-17, 17.11.2026, 11/17/2026 */
static bool put_numeric_date(struct scan *s)
{
    size_t n[3], at = s->at;
    uint32_t v[3];
    char sep = '\0';
    for (uint32_t i = 0; i < 3; i++) {
        n[i] = count_digits(s, at);
        if (n[i] == 0 || n[i] > 4)
            return false;
        v[i] = small_at(s, at, n[i]);
        at += n[i];
        if (i == 2)
            break;
        const char c = at < s->n ? s->p[at] : '\0';
        if ((c != '-' && c != '.' && c != '/') || (sep && c != sep))
            return false;
        sep = c;
        at++;
    }
    const bool iso = n[0] == 4 && n[1] <= 2 && n[2] <= 2 && sep == '-';
    const bool day_first = n[2] == 4 && n[0] <= 2 && n[1] <= 2 && (sep == '.' || v[0] > 12);
    const bool month_first = n[2] == 4 && n[0] <= 2 && n[1] <= 2 && sep != '.' && !day_first;
    const uint32_t day = iso         ? v[2]
                         : day_first ? v[0]
                                     : v[1],
                   month = iso || day_first ? v[1] : v[0];
    if ((!iso && !day_first && !month_first) || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    s->at = at;
    put_date(s, day, month, iso ? v[0] : v[2]);
    return true;
}

/* 192.168.1.10, 2.4.1 */
static bool put_dotted(struct scan *s)
{
    size_t at = s->at, n_dots = 0;
    for (;;) {
        at += count_digits(s, at);
        if (at + 1 >= s->n || s->p[at] != '.' || !is_digit(s->p[at + 1]))
            break;
        n_dots++;
        at++;
    }
    if (n_dots < 2)
        return false;
    while (s->at < at) {
        const size_t n = count_digits(s, s->at);
        if (n <= 3 && !(n > 1 && *here(s) == '0'))
            put_cardinal(s, small_at(s, s->at, n));
        else
            put_digits(s, here(s), n);
        s->at += n;
        if (s->at < at) {
            put_words(s, "dot");
            s->at++;
        }
    }
    return true;
}

static bool put_fraction(struct scan *s)
{
    const size_t a = count_digits(s, s->at), slash = s->at + a, b = count_digits(s, slash + 1);
    if (a < 1 || a > 3 || slash >= s->n || s->p[slash] != '/' || b < 1 || b > 3 ||
        (slash + 1 + b < s->n && (s->p[slash + 1 + b] == '/' || s->p[slash + 1 + b] == '.')))
        return false;
    const uint32_t over = small_at(s, s->at, a), under = small_at(s, slash + 1, b);
    s->at = slash + 1 + b;
    put_cardinal(s, over);
    if (under == 2) {
        put_words(s, over == 1 ? "half" : "halves");
    } else if (under == 4) {
        put_words(s, over == 1 ? "quarter" : "quarters");
    } else if (under >= 3 && under <= 10 && over < under) {
        put_ordinal(s, under);
        if (over != 1) { /* "two thirds": the plural belongs to the word */
            while (last_put(s) == ' ')
                s->out->len--;
            buf_putc(s->out, 's');
        }
    } else {
        put_words(s, "over");
        put_cardinal(s, under);
    }
    return true;
}

static bool put_ordinal_number(struct scan *s)
{
    static const char *const endings[] = {"st", "nd", "rd", "th"};
    const size_t n = count_digits(s, s->at);
    if (n > 9 || s->at + n + 2 > s->n)
        return false;
    const char end[] = {lower(s->p[s->at + n]), lower(s->p[s->at + n + 1]), '\0'};
    if (s->at + n + 2 < s->n && is_letter(s->p[s->at + n + 2]))
        return false;
    for (size_t i = 0; i < 4; i++)
        if (strcmp(end, endings[i]) == 0) {
            put_ordinal(s, small_at(s, s->at, n));
            s->at += n + 2;
            return true;
        }
    return false;
}

/* "17 November" */
static bool put_day_of_month(struct scan *s, const struct number *x)
{
    char word[12];
    size_t n = 0;
    if (x->n_part || x->n_commas || x->value < 1 || x->value > 31 || peek(s, 0) != ' ')
        return false;
    while (n < sizeof(word) && is_letter(peek(s, 1 + n))) {
        word[n] = lower(peek(s, 1 + n));
        n++;
    }
    const unsigned month = n < sizeof(word) ? speech_tables_month(word, n) : 0;
    if (!month || (n == 3 && month == 5 && peek(s, 1) == 'm')) /* "3 may": rather the verb */
        return false;
    put_ordinal(s, x->value);
    put_words(s, "of");
    put_words(s, speech_tables_month_name(month));
    s->at += 1 + n + (peek(s, 1 + n) == '.' && n == 3 ? 1 : 0);
    return true;
}

/* A range's other end: "10-15". */
static void put_rest_of_range(struct scan *s)
{
    if (peek(s, 0) != '-' || !is_digit(peek(s, 1)))
        return;
    s->at++;
    put_words(s, "to");
    const struct number x = take_number(s);
    put_number(s, &x);
}

static bool looks_like_phone(const struct number *x)
{
    return x->n_part == 0 && x->n_commas == 0 && x->n_whole >= 7;
}

static bool looks_like_year(const struct number *x)
{
    return x->n_part == 0 && x->n_commas == 0 && x->n_whole == 4 &&
           ((x->value >= 1100 && x->value < 2000) || (x->value >= 2010 && x->value < 2100));
}

static void put_plain(struct scan *s)
{
    const struct number x = take_number(s);
    if (put_day_of_month(s, &x))
        return;
    const size_t skip = gap(s);
    const bool unit = speech_tables_unit(here(s) + skip, left(s) - skip) != NULL;
    const bool range = peek(s, 0) == '-' && is_digit(peek(s, 1));
    if (!unit && !range && looks_like_year(&x))
        put_year(s, (uint32_t)x.value);
    else if (!unit && looks_like_phone(&x))
        put_digits(s, x.whole, x.n_whole);
    else
        put_number(s, &x);
    put_rest_of_range(s);
    if (!put_unit(s, is_one(&x)) && x.n_part == 0 && x.value >= 1 && x.value <= 12)
        (void)put_half_of_day(s);
}

/* "$5.20", "€3 million" */
static bool put_amount(struct scan *s)
{
    static const char *const scales[] = {"hundred", "thousand", "million", "billion", "trillion"};
    const struct speech_money *m = speech_tables_money(here(s), left(s));
    const size_t sign = m ? strlen(m->written) : 0;
    size_t n;
    if (!m || !is_digit(peek(s, sign)))
        return false;
    s->at += sign;
    struct number x = take_number(s);
    const bool cents = x.n_part == 2;
    const uint32_t n_cents =
        cents ? (uint32_t)(x.part[0] - '0') * 10 + (uint32_t)(x.part[1] - '0') : 0;
    if (cents)
        x.n_part = 0;
    if (!cents || x.value || x.large || n_cents == 0)
        put_number(s, &x);
    bool scaled = false;
    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]) && !cents; i++)
        if (word_follows(s, scales[i], &n)) {
            put_words(s, scales[i]);
            s->at += n;
            scaled = true;
            break;
        }
    if (!cents || x.value || x.large || n_cents == 0)
        put_words(s, is_one(&x) && !scaled ? m->one : m->many);
    if (n_cents) {
        if (x.value || x.large)
            put_words(s, "and");
        put_cardinal(s, n_cents);
        put_words(s, n_cents == 1 ? m->cent : m->cents);
    }
    return true;
}

static void number(struct scan *s)
{
    if (!put_time(s) && !put_numeric_date(s) && !put_dotted(s) && !put_fraction(s) &&
        !put_ordinal_number(s))
        put_plain(s);
}

/* ---- words
 * ---------------------------------------------------------------------------------------- */

static size_t count_letters(const struct scan *s)
{
    size_t n = 0;
    while (is_letter(peek(s, n)) || (peek(s, n) == '\'' && n > 0 && is_letter(peek(s, n + 1))))
        n++;
    return n;
}

static void spell(struct scan *s, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_letter(p[i]))
            put_letter(s, p[i]);
}

/* Bytes up to the next space. */
static size_t count_token(const struct scan *s)
{
    size_t n = 0;
    while (peek(s, n) && peek(s, n) != ' ' && peek(s, n) != '\n')
        n++;
    while (n > 0 && strchr(",.;:!?)\"'", peek(s, n - 1)))
        n--;
    return n;
}

static bool begins(const struct scan *s, const char *with)
{
    for (size_t i = 0; with[i]; i++)
        if (lower(peek(s, i)) != with[i])
            return false;
    return true;
}

static bool ends_in_domain(const char *p, size_t n)
{
    static const char *const tops[] = {".com",   ".org",  ".net", ".io",  ".de",  ".ch",
                                       ".at",    ".uk",   ".eu",  ".dev", ".ai",  ".fr",
                                       ".local", ".home", ".lan", ".gov", ".edu", ".info"};
    for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
        const size_t len = strlen(tops[i]);
        if (n > len && memcmp(p + n - len, tops[i], len) == 0)
            return true;
    }
    return false;
}

static bool is_address(const struct scan *s, size_t n)
{
    const char *at = memchr(here(s), '@', n);
    size_t name = 0; /* without a path or a port */
    while (name < n && peek(s, name) != '/' && peek(s, name) != ':')
        name++;
    if (begins(s, "http://") || begins(s, "https://") || begins(s, "www."))
        return n > 8;
    if (at)
        return at > here(s) && at + 1 < here(s) + n;
    return ends_in_domain(here(s), name);
}

/* An address, part by part. */
static void put_address(struct scan *s, size_t n)
{
    static const struct {
        char c;
        const char *said;
    } signs[] = {{'.', "dot"},        {'@', "at"},    {'/', "slash"},         {'-', "dash"},
                 {'_', "underscore"}, {':', "colon"}, {'?', "question mark"}, {'=', "equals"},
                 {'&', "and"},        {'#', "hash"},  {'%', "percent"},       {'+', "plus"},
                 {'~', "tilde"}};
    const size_t end = s->at + n;
    if (begins(s, "https://"))
        s->at += 8;
    else if (begins(s, "http://"))
        s->at += 7;
    while (s->at < end) {
        size_t len = 0;
        while (s->at + len < end && is_letter(peek(s, len)))
            len++;
        if (len == 1 || (len == 3 && begins(s, "www")))
            spell(s, here(s), len);
        else if (len > 0)
            put_lower(s, here(s), len);
        s->at += len;
        const size_t digits = s->at < end ? count_digits(s, s->at) : 0;
        if (digits > 0 && s->at + digits <= end) {
            put_digits(s, here(s), digits);
            s->at += digits;
        } else if (len == 0) {
            for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
                if (peek(s, 0) == signs[i].c)
                    put_words(s, signs[i].said);
            s->at++;
        }
    }
}

/* "e.g.", "U.S.": letters with dots. */
static bool put_dotted_letters(struct scan *s)
{
    char word[16];
    size_t n = 0, at = 0;
    while (n + 2 < sizeof(word) && is_letter(peek(s, at)) && peek(s, at + 1) == '.') {
        if (n > 0)
            word[n++] = '.';
        word[n++] = lower(peek(s, at));
        at += 2;
    }
    if (n < 3 || is_letter(peek(s, at)))
        return false;
    enum speech_short_when when;
    const char *said = speech_tables_short(word, n, &when);
    if (said)
        put_words(s, said);
    else
        spell(s, word, n);
    s->at += at;
    if (s->at == s->n || peek(s, 0) == '\n')
        put_mark(s, '.');
    return true;
}

/* Whether an abbreviation of n characters is meant here. */
static bool is_short(const struct scan *s, size_t n, enum speech_short_when when)
{
    const char next = peek(s, n + 2);
    if (when == SPEECH_SHORT_ALWAYS)
        return true;
    if (peek(s, n) != '.' || peek(s, n + 1) != ' ')
        return false;
    return when == SPEECH_SHORT_CAPITAL ? is_upper(*here(s))
           : when == SPEECH_SHORT_BEFORE_DIGIT
               ? is_digit(next)
               : is_digit(next) || (is_letter(next) && !is_upper(next));
}

/* An abbreviation, with its dot.  Letters, digits and hyphens belong to it. */
static bool put_short(struct scan *s)
{
    enum speech_short_when when;
    char word[24];
    size_t n = 0;
    while (n < sizeof(word) && (is_letter(peek(s, n)) || is_digit(peek(s, n)) ||
                                (peek(s, n) == '-' && is_letter(peek(s, n + 1))))) {
        word[n] = lower(peek(s, n));
        n++;
    }
    const char *said = n < sizeof(word) ? speech_tables_short(word, n, &when) : NULL;
    if (!said || !is_short(s, n, when))
        return false;
    put_words(s, said);
    s->at +=
        n + (peek(s, n) == '.' && peek(s, n + 1) == ' ' ? 1 : 0); /* else it ends the sentence */
    return true;
}

/* A month and its day: "Nov. 17", "March 3rd". */
static bool put_month(struct scan *s, size_t n)
{
    char word[12];
    if (n >= sizeof(word))
        return false;
    for (size_t i = 0; i < n; i++)
        word[i] = lower(peek(s, i));
    const unsigned month = speech_tables_month(word, n);
    const size_t dot = n <= 4 && peek(s, n) == '.' ? 1 : 0;
    const size_t day = s->at + n + dot + 1, digits = count_digits(s, day);
    if (!month || peek(s, n + dot) != ' ' || digits < 1 || digits > 2)
        return false;
    const uint32_t v = small_at(s, day, digits);
    const char after = day + digits < s->n ? s->p[day + digits] : '\0';
    if (v < 1 || v > 31 || after == ':' || after == '%')
        return false;
    put_words(s, speech_tables_month_name(month));
    put_ordinal(s, v);
    s->at = day + digits;
    if (is_letter(peek(s, 0)) && is_letter(peek(s, 1)) && !is_letter(peek(s, 2)))
        s->at += 2; /* "3rd" */
    return true;
}

static bool is_shouted(const struct scan *s)
{
    size_t small = 0, capital = 0;
    for (size_t i = 0; i < s->n; i++) {
        small += s->p[i] >= 'a' && s->p[i] <= 'z';
        capital += is_upper(s->p[i]);
    }
    return small == 0 && capital > 8;
}

/* Capitals that are read letter by letter. */
static bool put_capitals(struct scan *s, size_t n)
{
    size_t caps = 0;
    while (caps < n && is_upper(peek(s, caps)))
        caps++;
    const bool plural = caps + 1 == n && caps >= 2 && peek(s, caps) == 's';
    if (caps < 2 || caps > 5 || (caps < n && !plural) || speech_tables_acronym(here(s), caps) ||
        is_shouted(s))
        return false;
    spell(s, here(s), caps);
    if (plural)
        buf_puts(s->out, "'s");
    s->at += n;
    return true;
}

/* "HomeAssistant" is two words. */
static size_t until_hump(const struct scan *s, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (is_upper(peek(s, i)) && peek(s, i - 1) >= 'a' && peek(s, i - 1) <= 'z')
            return i;
    return n;
}

static void word(struct scan *s)
{
    const size_t token = count_token(s);
    if (is_address(s, token)) {
        put_address(s, token);
        return;
    }
    const size_t n = count_letters(s);
    if (put_dotted_letters(s) || put_short(s) || put_month(s, n) || put_capitals(s, n))
        return;
    const bool article = lower(*here(s)) == 'a' &&
                         (peek(s, 1) == ' ' && is_letter(peek(s, 2)) && !is_upper(peek(s, 2)));
    if (n == 1 && lower(*here(s)) == 'a' && !article && is_upper(*here(s))) {
        put_letter(s, 'a');
        s->at++;
        return;
    }
    const size_t part = until_hump(s, n);
    put_lower(s, here(s), part);
    s->at += part;
}

/* ---- the whole
 * ------------------------------------------------------------------------------------ */

static bool begins_number(const struct scan *s)
{
    return is_digit(peek(s, 0)) ||
           (peek(s, 0) == '.' && is_digit(peek(s, 1)) && !is_letter(last_put(s)));
}

/* A minus stands before a number and behind a space. */
static bool put_sign(struct scan *s)
{
    const char before = s->at > 0 ? s->p[s->at - 1] : ' ';
    if (peek(s, 0) != '-' || !is_digit(peek(s, 1)) ||
        (before != ' ' && before != '\n' && before != '('))
        return false;
    put_words(s, "minus");
    s->at++;
    return true;
}

static void other(struct scan *s)
{
    const char c = *here(s);
    const struct speech_short *symbol = speech_tables_symbol(here(s), left(s));
    if (is_mark(c)) {
        put_mark(s, c);
        s->at++;
    } else if (c == '\n') {
        put_mark(s, '.');
        s->at++;
    } else if (c == '(' || c == ')' || (c == '-' && peek(s, 1) == ' ')) {
        put_mark(s, ',');
        s->at++;
    } else if (symbol) {
        put_words(s, symbol->said);
        s->at += strlen(symbol->written);
    } else {
        put_space(s);
        s->at++;
    }
}

void speech_text_normal(const char *text, size_t n, struct buf *out)
{
    struct buf folded;
    buf_init(&folded, 3 * n + 64);
    speech_fold(text, n, &folded);
    struct scan s = {buf_str(&folded), folded.len, 0, out, out->len};
    if (folded.rc < 0)
        out->rc = folded.rc;
    while (s.at < s.n && out->rc == 0) {
        if (put_sign(&s) || put_amount(&s))
            continue;
        if (begins_number(&s)) {
            if (peek(&s, 0) == '.') {
                put_words(&s, "point");
                s.at++;
                const size_t digits = count_digits(&s, s.at);
                put_digits(&s, here(&s), digits);
                s.at += digits;
            } else {
                number(&s);
            }
        } else if (is_letter(*here(&s))) {
            word(&s);
        } else {
            other(&s);
        }
    }
    while (out->rc == 0 && last_put(&s) == ' ')
        out->data[--out->len] = '\0';
    buf_fini(&folded);
}

size_t speech_text_cut(const char *text, size_t n)
{
    const size_t most = n < SPEECH_TEXT_PIECE ? n : SPEECH_TEXT_PIECE;
    size_t comma = 0, space = 0;
    for (size_t i = 0; i < most; i++) {
        const char after = i + 1 < n ? text[i + 1] : ' ';
        if (strchr(".!?", text[i]) && text[i] && after == ' ')
            return i + 1;
        if (strchr(",;:", text[i]) && text[i])
            comma = i + 1;
        if (text[i] == ' ')
            space = i + 1;
    }
    if (most == n)
        return n;
    return comma > most / 3 ? comma : space ? space : most;
}
