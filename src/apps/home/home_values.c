/* home_values.c - see home_values.h. */
#include "apps/home/home_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/home/table/home_words.h"
#include "base/nearest.h"

#define DIGITS "0123456789"

#define MIN_NEAR 4u /* letters of a unit that may be misspelt */

static bool all_digits(const char *s)
{
    return *s && s[strspn(s, DIGITS)] == '\0';
}

/* Advances *p past the text if it starts with it. */
static bool take(const char **p, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(*p, text, n) != 0)
        return false;
    *p += n;
    return true;
}

/* Moves *p past one of the texts of a list, each with this text before and after it. */
static bool take_any(const char **p, const char *before, const struct home_list *l,
                     const char *after)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const char *q = *p;
        if (take(&q, before) && take(&q, l->w[i]) && take(&q, after)) {
            *p = q;
            return true;
        }
    }
    return false;
}

static const char *replace(struct arena *a, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at)
        return text;
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, to,
                        replace(a, at + strlen(from), from, to));
}

static const char *replace_all(struct arena *a, const char *text, const struct home_pairs *pairs)
{
    for (uint32_t i = 0; i < pairs->n; i++)
        text = replace(a, text, pairs->p[i].from, pairs->p[i].to);
    return text;
}

static bool is_next(const struct home_words *w, uint32_t i, const struct home_list *l)
{
    return i + 1 < w->n && home_table_lists(l, w->w[i + 1]);
}

/* ---- number words --------------------------------------------------------------------------- */

/* The value of a number word, or -1. */
static int32_t number_of(const struct home_table *t, const char *word)
{
    uint32_t n;
    return strmap_get(&t->numbers, word, strlen(word), &n) ? (int32_t)n : -1;
}

static bool is_ten(int32_t n)
{
    return n >= 20 && n < 100 && n % 10 == 0;
}

/* "21,5" is 21.5 where a comma is the decimal point. */
static const char *with_point(struct arena *a, const struct home_table *t, const char *w)
{
    const size_t sign = *w == '-' || *w == '+', n = sign + strspn(w + sign, DIGITS);
    if (t->decimal == '.' || n == sign || w[n] != t->decimal || strspn(w + n + 1, DIGITS) == 0)
        return w;
    return arena_printf(a, "%.*s.%s", (int)n, w, w + n + 1);
}

/* "12,000" is 12000: one to three digits, then groups of three. */
static const char *without_groups(struct arena *a, const struct home_table *t, const char *w)
{
    const char mark = t->decimal == '.' ? ',' : '.';
    size_t n = strspn(w, DIGITS), at = n;
    if (n == 0 || n > 3 || w[n] != mark)
        return with_point(a, t, w);
    const char *out = arena_printf(a, "%.*s", (int)n, w);
    while (w[at] == mark && strspn(w + at + 1, DIGITS) == 3) {
        out = arena_printf(a, "%s%.*s", out, 3, w + at + 1);
        at += 4;
    }
    return at > n && !(w[at] >= '0' && w[at] <= '9') && w[at] != mark
               ? with_point(a, t, arena_printf(a, "%s%s", out, w + at))
               : w;
}

/* Lower case; "twenty-one" is two words. */
static struct home_words number_words(struct arena *a, const struct home_table *t, const char *text)
{
    static const struct home_pair signs[] = {{"\xc2\xbd", " 1/2", 0},   /* ½ */
                                             {"\xc2\xbc", " 1/4", 0},   /* ¼ */
                                             {"\xc2\xbe", " 3/4", 0},   /* ¾ */
                                             {"\xe2\x88\x92", "-", 0}}; /* the minus sign */
    static const struct home_pairs all = {signs, sizeof(signs) / sizeof(signs[0])};
    struct home_words in = home_words_split(a, replace_all(a, home_words_lower(a, text), &all)),
                      out = {0};
    out.w = arena_zalloc_n(a, (size_t)in.n * 2 + 1, sizeof(*out.w));
    if (!out.w)
        return out;
    for (uint32_t i = 0; i < in.n; i++) {
        in.w[i] = without_groups(a, t, in.w[i]);
        const char *dash = strchr(in.w[i], '-');
        const char *ten = dash ? arena_printf(a, "%.*s", (int)(dash - in.w[i]), in.w[i]) : "";
        int32_t unit = dash ? number_of(t, dash + 1) : -1;
        if (is_ten(number_of(t, ten)) && unit > 0 && unit < 10) {
            out.w[out.n++] = ten;
            out.w[out.n++] = dash + 1;
        } else {
            out.w[out.n++] = in.w[i];
        }
    }
    return out;
}

/* Reads a whole number in words or digits from word *i on, leaves *i at its last word; -1: none. */
static int64_t whole_at(const struct home_table *t, const struct home_words *w, uint32_t *i)
{
    int64_t total = 0, cur = -1;
    uint32_t last = *i;
    for (uint32_t k = *i; k < w->n && total < 1000000000; k++) {
        int64_t n = number_of(t, w->w[k]);
        if (n < 0 && is_ten((int32_t)(cur % 100)) && home_table_lists(&t->number_join, w->w[k]) &&
            k + 1 < w->n && number_of(t, w->w[k + 1]) > 0 && number_of(t, w->w[k + 1]) < 10)
            continue; /* "vingt et un" */
        if (n < 0 && k == *i && all_digits(w->w[k]) && strlen(w->w[k]) <= 9)
            n = strtol(w->w[k], NULL, 10);
        if (n >= 0 && (cur < 0 || (is_ten((int32_t)(cur % 100)) && n > 0 && n < 10) ||
                       (cur >= 100 && cur % 100 == 0 && n < 100) || (cur == 0 && total > 0))) {
            if (k > *i && cur >= 0 && all_digits(w->w[k]))
                break;
            cur = (cur < 0 ? 0 : cur) + n;
        } else if (home_table_lists(&t->hundred, w->w[k]) && cur < 100) {
            cur = (cur < 0 ? 1 : cur) * 100;
        } else if (home_table_lists(&t->thousand, w->w[k]) && total == 0 && cur < 1000000) {
            total = (cur < 0 ? 1 : cur) * 1000;
            cur = 0;
        } else {
            break;
        }
        last = k;
        if (cur == 0 && total > 0 && !(k + 1 < w->n && number_of(t, w->w[k + 1]) > 0))
            break;
    }
    if (cur < 0)
        return -1;
    *i = last;
    return total + cur;
}

/* "1/2" as a decimal; 0: none. */
static double fraction_of(const char *w)
{
    if (w[0] < '1' || w[0] > '9' || w[1] != '/' || w[2] < '2' || w[2] > '9' || w[3])
        return 0.0;
    return (double)(w[0] - '0') / (double)(w[2] - '0');
}

/* Reads the number that begins at word *i as digits, leaves *i at its last word; NULL: not a
 * number. */
static const char *number_at(struct arena *a, const struct home_table *t,
                             const struct home_words *w, uint32_t *i)
{
    double part = fraction_of(w->w[*i]);
    if (part > 0.0)
        return arena_printf(a, "%.4g", part);
    bool written = all_digits(w->w[*i]);
    const char *first = w->w[*i];
    uint32_t from = *i;
    int64_t n = whole_at(t, w, i);
    if (n < 0)
        return written ? first : NULL;
    const char *s = written && *i == from ? first : arena_printf(a, "%lld", (long long)n);
    if (is_next(w, *i, &t->point) && *i + 2 < w->n) {
        int32_t digit = number_of(t, w->w[*i + 2]);
        if ((digit >= 0 && digit < 10) || all_digits(w->w[*i + 2])) {
            s = digit >= 0 ? arena_printf(a, "%s.%d", s, (int)digit)
                           : arena_printf(a, "%s.%s", s, w->w[*i + 2]);
            *i += 2;
        }
        return s;
    }
    part = *i + 1 < w->n ? fraction_of(w->w[*i + 1]) : 0.0;
    if (part > 0.0 && part < 1.0) {
        (*i)++;
        return arena_printf(a, "%.10g", (double)n + part);
    }
    for (uint32_t k = 0; k < t->and_a_half.n; k++) {
        uint32_t more = home_words_phrase(w, *i + 1, t->and_a_half.w[k]);
        if (more > 0) {
            *i += more;
            return arena_printf(a, "%s.5", s);
        }
    }
    return s;
}

const char *home_values_digits(struct arena *a, const struct home_table *t, const char *text)
{
    struct home_words w = number_words(a, t, text), out = {0};
    out.w = arena_zalloc_n(a, (size_t)w.n + 1, sizeof(*out.w));
    for (uint32_t i = 0; out.w && i < w.n; i++) {
        const char *s = number_at(a, t, &w, &i);
        out.w[out.n++] = s ? s : w.w[i];
    }
    return home_words_join(a, &out, 0, out.n);
}

/* Length of [sign] digits [. digits] at s; 0: none. */
static size_t number_length(const char *s, const char *signs)
{
    size_t sign = *s && strchr(signs, *s) ? 1 : 0;
    size_t n = strspn(s + sign, DIGITS);
    if (n == 0)
        return 0;
    n += sign;
    size_t more = s[n] == '.' ? strspn(s + n + 1, DIGITS) : 0;
    return more ? n + 1 + more : n;
}

/* ---- values --------------------------------------------------------------------------------- */

static const char *get_number(void *ctx, uint32_t var)
{
    (void)var; /* {n} is the only name */
    return ctx;
}

const char *home_values_written(struct arena *a, const struct home_table *t, const char *number)
{
    char *s = arena_copy(a, number, strlen(number) + 1), *dot = s ? strchr(s, '.') : NULL;
    if (dot)
        *dot = t->decimal;
    return s ? s : "";
}

static const char *show_unit(struct arena *a, const struct home_unit *u, const char *number)
{
    return home_template_fill(a, strcmp(number, "1") == 0 ? &u->show_one : &u->show, get_number,
                              (void *)(uintptr_t)number);
}

/* "half", "maximum"; NULL: no such word. */
static const struct home_pair *amount_of(const struct home_table *t, const char *text)
{
    const char *rest = text;
    while (take_any(&rest, "", &t->articles, " "))
        ;
    for (uint32_t i = 0; i < t->amounts.n; i++)
        if (strcmp(t->amounts.p[i].from, text) == 0 || strcmp(t->amounts.p[i].from, rest) == 0)
            return &t->amounts.p[i];
    return NULL;
}

/* The unit that a misspelt word means: "degress". A unit is all that can stand behind a number, so
 * a near one is meant; false: none is near. */
static bool near_unit(struct arena *a, const struct strmap *units, const char *word, size_t n,
                      uint32_t *at)
{
    const char **words = arena_zalloc_n(a, units->n_used + 1, sizeof(*words));
    uint32_t n_words = 0;
    if (!words || n < MIN_NEAR)
        return false;
    for (size_t i = 0; i < units->n_slots; i++)
        if (units->slots[i].key && units->slots[i].len >= MIN_NEAR)
            words[n_words++] =
                arena_printf(a, "%.*s", (int)units->slots[i].len, units->slots[i].key);
    const char *found = nearest_word(arena_printf(a, "%.*s", (int)n, word), words);
    return found && strmap_get(units, found, strlen(found), at);
}

struct home_value home_values_amount(struct arena *a, const struct home_table *t, const char *text,
                                     bool amounts, const struct home_unit *bare)
{
    const char *low = home_values_digits(a, t, text);
    for (uint32_t i = 0; i < t->minus.n; i++) { /* "minus 5" */
        const char *p = low;
        if (take(&p, t->minus.w[i]) && *p == ' ' && p[1] >= '0' && p[1] <= '9')
            low = arena_printf(a, "-%s", p + 1);
    }
    const struct home_pair *amount = amounts ? amount_of(t, low) : NULL;
    if (amount) {
        const char *number = arena_printf(a, "%.0f", amount->number);
        return (struct home_value){.show = show_unit(a, t->amount_unit, number),
                                   .number = amount->number,
                                   .unit = t->amount_unit->name,
                                   .understood = true};
    }
    size_t n = number_length(low, "-+");
    if (n == 0)
        return (struct home_value){.show = low, .text = low};
    const char *num = arena_printf(a, "%.*s", (int)n, low), *u = low + n + strspn(low + n, " ");
    struct home_value v = {.number = strtod(num, NULL), .understood = true};
    const struct home_unit *unit = *u ? NULL : bare;
    uint32_t at;
    if (*u && (strmap_get(&t->units, u, strlen(u), &at) ||
               (!strpbrk(u, " 0123456789") && near_unit(a, &t->units, u, strlen(u), &at))))
        unit = &t->unit[at];
    if (*u && unit && bare && home_table_lists(&t->vague_units, u) &&
        strcmp(unit->of, bare->of) == 0) /* "68 degrees" where things count in Fahrenheit */
        unit = bare;
    if (unit) {
        v.unit = unit->name;
        v.show = show_unit(a, unit, home_values_written(a, t, num));
    } else if (!*u) {
        v.show = home_values_written(a, t, num);
    } else if (strpbrk(u, DIGITS)) { /* "1,5 bar": ambiguous, it may be two numbers */
        return (struct home_value){.show = low, .text = low, .wrong = true};
    } else { /* units keep their case */
        const char *lower = home_words_lower(a, text);
        size_t nt = strlen(text), nu = strlen(u);
        if (strlen(lower) == nt && nt >= nu && strcmp(lower + nt - nu, u) == 0)
            u = arena_printf(a, "%s", text + nt - nu);
        v.unit = u;
        v.show = arena_printf(a, "%s %s", home_values_written(a, t, num), u);
    }
    return v;
}

/* ---- durations ------------------------------------------------------------------------------ */

/* The unit of a word, ignoring plural endings; NULL: none. */
static const struct home_duration_unit *find_unit(struct arena *a, const struct home_table *t,
                                                  const char *word, size_t n)
{
    const size_t plural = strlen(t->duration_plural), whole = n;
    for (;;) {
        uint32_t i;
        if (strmap_get(&t->duration_units, word, n, &i))
            return &t->duration_unit[i];
        if (plural == 0 || n <= plural ||
            memcmp(word + n - plural, t->duration_plural, plural) != 0)
            return near_unit(a, &t->duration_units, word, n < whole ? n : whole, &i)
                       ? &t->duration_unit[i]
                       : NULL;
        n -= plural;
    }
}

/* Numbers as digits, and phrases such as "an hour and a half" in plain units. */
static const char *plain_duration(struct arena *a, const struct home_table *t, const char *text)
{
    const char *s = replace_all(a, home_values_digits(a, t, text), &t->duration_replace);
    struct home_words w = home_words_split(a, s), out = {0};
    out.w = arena_zalloc_n(a, (size_t)w.n + 1, sizeof(*out.w));
    for (uint32_t i = 0; out.w && i < w.n;) {
        uint32_t used = 0;
        const char *to = w.w[i];
        for (uint32_t k = 0; k < t->duration_phrases.n; k++) {
            uint32_t n = home_words_phrase(&w, i, t->duration_phrases.p[k].from);
            if (n > used) { /* the longest one */
                used = n;
                to = t->duration_phrases.p[k].to;
            }
        }
        out.w[out.n++] = to;
        i += used ? used : 1;
    }
    return home_words_join(a, &out, 0, out.n);
}

/* Does the text begin with a minus? */
static bool negative(struct arena *a, const struct home_table *t, const char *text)
{
    struct home_words w = home_words_split(a, home_words_lower(a, text));
    return w.n > 1 && (w.w[0][0] == '-' || home_table_lists(&t->minus, w.w[0]));
}

struct home_value home_values_duration(struct arena *a, const struct home_table *t,
                                       const char *text)
{
    const char *show = "";
    double total = 0.0;
    for (const char *p = plain_duration(a, t, text); *p;) {
        size_t n = number_length(p, "");
        if (n == 0) {
            p++;
            continue;
        }
        const char *u = p + n + strspn(p + n, " -");
        size_t nu = strcspn(u, " .,;:!?-+()\"'" DIGITS);
        if (nu == 0) {
            p += n;
            continue;
        }
        const struct home_duration_unit *unit = find_unit(a, t, u, nu);
        if (!unit)
            return (struct home_value){.show = home_words_lower(a, text),
                                       .text = home_words_lower(a, text)};
        if (negative(a, t, text))
            return (struct home_value){.show = home_words_lower(a, text),
                                       .text = home_words_lower(a, text),
                                       .wrong = true};
        show = arena_printf(a, "%s%s%.*s %s", show, *show ? " " : "", (int)n, p,
                            n == 1 && *p == '1' ? unit->one : unit->many);
        total += strtod(p, NULL) * unit->seconds;
        p = u + nu;
    }
    if (!*show)
        return (struct home_value){.show = home_words_lower(a, text),
                                   .text = home_words_lower(a, text)};
    return (struct home_value){.show = show, .number = floor(total + 0.5), .understood = true};
}

/* ---- times and dates ------------------------------------------------------------------------ */

/* Minutes: "20", "a quarter"; -1: none. */
static int take_minutes(const struct home_table *t, const char **p)
{
    for (uint32_t i = 0; i < t->time_parts.n; i++)
        if (take(p, t->time_parts.p[i].from))
            return (int)t->time_parts.p[i].number;
    size_t n = strspn(*p, DIGITS);
    if (n == 0 || n > 3)
        return -1;
    int m = (int)strtol(*p, NULL, 10);
    *p += n;
    return m;
}

static void set_clock(int whole, int minutes, bool past, int *hour, int *minute)
{
    *hour = past ? whole : whole == 1 ? 12 : whole == 0 ? 23 : whole - 1;
    *minute = past ? minutes : 60 - minutes;
}

/* "halb 7": minutes before the hour behind them. */
static bool clock_before(const struct home_table *t, const char *p, int *hour, int *minute)
{
    for (uint32_t i = 0; i < t->time_before.n; i++) {
        const char *q = p;
        if (!take(&q, t->time_before.p[i].from) || !take(&q, " ") || !all_digits(q) ||
            strlen(q) > 2)
            continue;
        set_clock((int)strtol(q, NULL, 10), (int)t->time_before.p[i].number, false, hour, minute);
        return true;
    }
    return false;
}

/* "7 y media", "8 moins le quart": the hour first. */
static bool clock_after(const struct home_table *t, const char *p, int *hour, int *minute)
{
    const size_t n = strspn(p, DIGITS);
    const int whole = n > 0 && n < 3 ? (int)strtol(p, NULL, 10) : -1;
    const char *q = p + n;
    if (whole >= 0 && strcmp(q, ".5") == 0) { /* "7 y media", as a number */
        set_clock(whole, 30, true, hour, minute);
        return true;
    }
    const bool past = take_any(&q, " ", &t->time_past, " ");
    if (whole < 0 || (!past && !take_any(&q, " ", &t->time_to, " ")))
        return false;
    const int m = take_minutes(t, &q);
    (void)take_any(&q, " ", &t->time_minutes, "");
    set_clock(whole, m, past, hour, minute);
    return m >= 0 && !*q;
}

/* "half past 7", "20 to 9": true and the time. */
static bool spoken_clock(const struct home_table *t, const char *p, int *hour, int *minute)
{
    const int m = take_minutes(t, &p);
    if (m < 0)
        return false;
    (void)take_any(&p, " ", &t->time_minutes, "");
    bool past = take_any(&p, " ", &t->time_past, " ");
    if (!past && !take_any(&p, " ", &t->time_to, " "))
        return false;
    if (!all_digits(p) || strlen(p) > 2)
        return false;
    set_clock((int)strtol(p, NULL, 10), m, past, hour, minute);
    return true;
}

/* "7", "7:30", "7.30", "7 30": true, the time and how the hour was written. */
static bool written_clock(const char *t, int *hour, int *minute, size_t *hour_digits)
{
    size_t n = strspn(t, DIGITS), more = 0;
    if (n == 0 || n > 2)
        return false;
    if (t[n] && strchr(":. ", t[n])) {
        more = strspn(t + n + 1, DIGITS);
        if (more == 0 || more > 2 || (more == 1 && t[n] == '.')) /* "7.5" is no time */
            return false;
        *minute = (int)strtol(t + n + 1, NULL, 10);
    } else {
        *minute = 0;
    }
    *hour = (int)strtol(t, NULL, 10);
    *hour_digits = n;
    return t[n + (more ? more + 1 : 0)] == '\0';
}

/* Removes one of a list from the end of *s. */
static bool take_end(struct arena *a, const struct home_list *l, const char **s)
{
    size_t n = strlen(*s);
    for (uint32_t i = 0; i < l->n; i++) {
        size_t len = strlen(l->w[i]);
        if (n >= len && strcmp(*s + n - len, l->w[i]) == 0) {
            *s = home_words_trim_end(a, arena_printf(a, "%.*s", (int)(n - len), *s), " ");
            return true;
        }
    }
    return false;
}

struct home_value home_values_clock(struct arena *a, const struct home_table *t, const char *text)
{
    const char *p = replace_all(a, home_values_digits(a, t, text), &t->time_replace);
    const char *low = home_words_lower(a, text), *show = "";
    p = home_words_trim_end(a, p + strspn(p, " "), " :");
    for (uint32_t i = 0; i < t->time_words.n; i++)
        if (strcmp(t->time_words.p[i].from, p) == 0)
            return (struct home_value){
                .show = p, .text = t->time_words.p[i].to, .understood = true};
    bool am = take_end(a, &t->time_am, &p), pm = !am && take_end(a, &t->time_pm, &p);
    const char *half = am ? t->time_am.w[0] : pm ? t->time_pm.w[0] : NULL;
    int hour = 0, minute = 0;
    size_t hour_digits = 0;
    if (!(t->hour_first ? clock_after : spoken_clock)(t, p, &hour, &minute) &&
        !clock_before(t, p, &hour, &minute) && !written_clock(p, &hour, &minute, &hour_digits))
        return (struct home_value){.show = low, .text = low, .wrong = strpbrk(low, DIGITS) != NULL};
    if (hour > 23 || minute > 59 || minute < 0)
        return (struct home_value){.show = low, .text = low, .wrong = true};
    if (half && hour <= 12) {
        show = minute ? arena_printf(a, "%d:%02d %s", hour, minute, half)
                      : arena_printf(a, "%d %s", hour, half);
        hour = hour % 12 + (pm ? 12 : 0);
    } else {
        show = hour_digits ? arena_printf(a, "%.*s:%02d", (int)hour_digits, p, minute)
                           : arena_printf(a, "%d:%02d", hour, minute);
    }
    return (struct home_value){.show = show,
                               .text = arena_printf(a, "%02d:%02d", hour, minute),
                               .either = !half && hour >= 1 && hour <= 12 && *show != '0',
                               .understood = true};
}

/* Does the month have this day? February has 29: the year is open. */
static bool is_day(uint32_t month, long day)
{
    static const char days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return day >= 1 && day <= days[month];
}

struct home_value home_values_date(struct arena *a, const struct home_table *t, const char *text)
{
    struct home_words w = home_words_split(a, home_words_lower(a, text)), out = {0};
    uint32_t month = UINT32_MAX;
    long day = -1;
    out.w = arena_zalloc_n(a, (size_t)w.n + 1, sizeof(*out.w));
    for (uint32_t i = 0; out.w && i < w.n; i++) {
        size_t n = strspn(w.w[i], DIGITS);
        uint32_t name;
        if (home_table_lists(&t->date_drop, w.w[i]))
            continue;
        if (n > 0 && n <= 2 && day < 0)
            day = strtol(w.w[i], NULL, 10);
        if (n > 0 && home_table_lists(&t->date_ordinals, w.w[i] + n)) {
            out.w[out.n++] = arena_printf(a, "%.*s", (int)n, w.w[i]);
        } else if (strmap_get(&t->date_names, w.w[i], strlen(w.w[i]), &name)) {
            month = name < 7 ? month : name - 7;
            out.w[out.n++] = name < 7 ? t->weekdays.w[name] : t->months.w[name - 7];
        } else {
            out.w[out.n++] = w.w[i];
        }
    }
    const char *s = home_words_join(a, &out, 0, out.n), *rest = s;
    if (take_any(&rest, "", &t->date_articles, " ") && *rest >= '0' && *rest <= '9')
        s = rest;
    bool wrong = day >= 0 && (month == UINT32_MAX ? day > 31 || day == 0 : !is_day(month, day));
    return (struct home_value){.show = s, .text = s, .understood = !wrong, .wrong = wrong};
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

/* Reads a number at *p and moves past it. */
static bool take_number(const char **p, double *v)
{
    size_t n = number_length(*p, "-");
    if (n == 0)
        return false;
    *v = strtod(*p, NULL);
    *p += n;
    return true;
}

/* '+', '-', '*', '/' for an operator at *p; 0: none. */
static char take_operator(const struct home_table *t, const char **p)
{
    *p += strspn(*p, " ");
    for (uint32_t i = 0; i < t->operators.n; i++)
        if (take(p, t->operators.p[i].from)) {
            *p += strspn(*p, " ");
            return *t->operators.p[i].to;
        }
    return 0;
}

static bool evaluate(const struct home_table *t, const char *text, double *r)
{
    double x, y;
    const char *p = text;
    if (take_any(&p, "", &t->root, "")) {
        if (!take_number(&p, &x) || *p || x < 0.0)
            return false;
        *r = sqrt(x);
        return true;
    }
    if (!take_number(&p, &x))
        return false;
    const char *q = p;
    if (take_any(&q, "", &t->percent_of, "") && take_number(&q, &y) && !*q) {
        *r = x * y / 100.0;
        return true;
    }
    char op = take_operator(t, &p);
    if (!op || !take_number(&p, &y) || *p || (op == '/' && y == 0.0))
        return false;
    *r = op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y;
    return true;
}

bool home_values_calculate(struct arena *a, const struct home_table *t, const char *expr,
                           const char **show, double *result)
{
    char text[64];
    double x;
    if (!evaluate(t, home_values_digits(a, t, expr), &x) || !isfinite(x) || fabs(x) >= 1e15)
        return false;
    snprintf(text, sizeof(text), "%.2f", x);
    size_t n = strlen(text);
    while (text[n - 1] == '0')
        n--;
    if (text[n - 1] == '.')
        n--;
    text[n] = '\0';
    *show = strcmp(text, "-0") == 0 ? "0" : arena_printf(a, "%s", text);
    *result = strtod(*show, NULL);
    return true;
}
