/* ask_values.c - numbers, durations, times and dates as people say them, see ask_text.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/home/ask_text.h"

static const char *const small_numbers[] = {
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const tens[] = {"twenty", "thirty",  "forty",  "fifty",
                                   "sixty",  "seventy", "eighty", "ninety"};

/* Index in a list of words, or -1. */
static int find(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return (int)i;
    return -1;
}
#define FIND(word, list) find((word), (list), sizeof(list) / sizeof((list)[0]))

static bool all_digits(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == '\0';
}

static const char *replace(struct arena *a, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at)
        return text;
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, to,
                        replace(a, at + strlen(from), from, to));
}

/* ---- number words --------------------------------------------------------------------------- */

/* "twenty-one" is two words. */
static struct ask_words number_words(struct arena *a, const char *text)
{
    struct ask_words in = ask_words(a, ask_lower(a, text)), out = {0};
    out.w = arena_zalloc_n(a, (size_t)in.n * 2 + 4, sizeof(*out.w));
    if (!out.w)
        return out;
    for (uint32_t i = 0; i < in.n; i++) {
        const char *dash = strchr(in.w[i], '-');
        const char *ten = dash ? arena_printf(a, "%.*s", (int)(dash - in.w[i]), in.w[i]) : "";
        int unit = dash ? FIND(dash + 1, small_numbers) : -1;
        if (FIND(ten, tens) >= 0 && unit >= 1 && unit <= 9) {
            out.w[out.n++] = ten;
            out.w[out.n++] = dash + 1;
        } else {
            out.w[out.n++] = in.w[i];
        }
    }
    for (uint32_t i = 0; i < 4; i++) /* looking ahead needs no bounds */
        out.w[out.n + i] = "";
    return out;
}

/* The number that begins at word *i as digits, *i then at its last word; NULL: none. */
static const char *number_at(struct arena *a, const struct ask_words *w, uint32_t *i)
{
    int ten = FIND(w->w[*i], tens), n = FIND(w->w[*i], small_numbers);
    if (ten >= 0) {
        int unit = FIND(w->w[*i + 1], small_numbers);
        n = (ten + 2) * 10;
        if (unit >= 1 && unit <= 9) {
            n += unit;
            (*i)++;
        }
    }
    if (n >= 0 && n < 10 && strcmp(w->w[*i + 1], "hundred") == 0) {
        n *= 100;
        (*i)++;
    }
    if (n < 0 && strcmp(w->w[*i], "hundred") == 0)
        n = 100;
    if (n < 0 && !all_digits(w->w[*i]))
        return NULL;
    const char *s = n >= 0 ? arena_printf(a, "%d", n) : w->w[*i];
    if (strcmp(w->w[*i + 1], "point") == 0 && *i + 2 < w->n) {
        int digit = FIND(w->w[*i + 2], small_numbers);
        if ((digit >= 0 && digit < 10) || all_digits(w->w[*i + 2])) {
            s = digit >= 0 ? arena_printf(a, "%s.%d", s, digit)
                           : arena_printf(a, "%s.%s", s, w->w[*i + 2]);
            *i += 2;
        }
    } else if (strcmp(w->w[*i + 1], "and") == 0 && strcmp(w->w[*i + 2], "a") == 0 &&
               strcmp(w->w[*i + 3], "half") == 0) {
        s = arena_printf(a, "%s.5", s);
        *i += 3;
    }
    return s;
}

/* Number words become digits: "twenty one degrees" is "21 degrees". */
static const char *digits(struct arena *a, const char *text)
{
    struct ask_words w = number_words(a, text), out = {0};
    out.w = arena_zalloc_n(a, (size_t)w.n + 1, sizeof(*out.w));
    for (uint32_t i = 0; out.w && i < w.n; i++) {
        const char *s = number_at(a, &w, &i);
        out.w[out.n++] = s ? s : w.w[i];
    }
    return ask_join(a, &out, 0, out.n);
}

/* Length of [sign] digits [. digits] at s; 0: none. */
static size_t number_length(const char *s, const char *signs)
{
    size_t sign = *s && strchr(signs, *s) ? 1 : 0;
    size_t n = strspn(s + sign, "0123456789");
    if (n == 0)
        return 0;
    n += sign;
    size_t more = s[n] == '.' ? strspn(s + n + 1, "0123456789") : 0;
    return more ? n + 1 + more : n;
}

/* ---- values --------------------------------------------------------------------------------- */

static int whole_word_percent(const char *t)
{
    static const struct {
        const char *word;
        int percent;
    } words[] = {{"half", 50},     {"half way", 50}, {"halfway", 50}, {"full", 100},
                 {"maximum", 100}, {"max", 100},     {"minimum", 1},  {"min", 1}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(t, words[i].word) == 0)
            return words[i].percent;
    return -1;
}

static bool any_of(const char *s, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(s, *list) == 0)
            return true;
    return false;
}

struct ask_value ask_value(struct arena *a, const char *text, const char *action)
{
    static const char *const percent[] = {"%", "percent", "per cent", NULL};
    static const char *const fahrenheit[] = {
        "°f", "f", "fahrenheit", "degrees fahrenheit", "degree fahrenheit", NULL};
    static const char *const celsius[] = {
        "°", "°c", "c", "celsius", "degrees", "degree", "degrees celsius", "degree celsius", NULL};
    const char *t = digits(a, text);
    int word = whole_word_percent(t);
    if (word >= 0 && !ask_one_of(action, "set_temperature set_machine"))
        return (struct ask_value){.show = arena_printf(a, "%d%%", word),
                                  .number = word,
                                  .unit = "percent",
                                  .understood = true};
    size_t n = number_length(t, "-+");
    if (n == 0)
        return (struct ask_value){.show = t, .text = t};
    const char *num = arena_printf(a, "%.*s", (int)n, t), *u = t + n + strspn(t + n, " ");
    struct ask_value v = {.number = strtod(num, NULL), .understood = true};
    if (any_of(u, percent) || (!*u && ask_one_of(action, "set_brightness open close"))) {
        v.unit = "percent";
        v.show = arena_printf(a, "%s%%", num);
    } else if (any_of(u, fahrenheit)) {
        v.unit = "fahrenheit";
        v.show = arena_printf(a, "%s °F", num);
    } else if (any_of(u, celsius) || (!*u && strcmp(action, "set_temperature") == 0)) {
        v.unit = "celsius";
        v.show = arena_printf(a, "%s degree%s", num, strcmp(num, "1") == 0 ? "" : "s");
    } else if (!*u) {
        v.show = num;
    } else { /* units keep their case */
        const char *low = ask_lower(a, text);
        size_t nt = strlen(text), nu = strlen(u);
        if (strlen(low) == nt && nt >= nu && strcmp(low + nt - nu, u) == 0)
            u = arena_printf(a, "%s", text + nt - nu);
        v.unit = u;
        v.show = arena_printf(a, "%s %s", num, u);
    }
    return v;
}

/* ---- durations ------------------------------------------------------------------------------ */

static const struct unit {
    const char *word, *name;
    double seconds;
} units[] = {{"second", "second", 1},  {"sec", "second", 1},    {"s", "second", 1},
             {"minute", "minute", 60}, {"min", "minute", 60},   {"m", "minute", 60},
             {"hour", "hour", 3600},   {"h", "hour", 3600},     {"hr", "hour", 3600},
             {"day", "day", 86400},    {"week", "week", 604800}};

static const struct unit *find_unit(const char *word, size_t n)
{
    for (;;) {
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
            if (strlen(units[i].word) == n && memcmp(units[i].word, word, n) == 0)
                return &units[i];
        if (n < 2 || word[n - 1] != 's')
            return NULL;
        n--;
    }
}

/* "an hour and a half" and the like in plain units; "a", "an" is one. */
static const char *plain_duration(struct arena *a, const char *text)
{
    const char *t = digits(a, text);
    t = replace(a, t, "half an hour", "30 minutes");
    t = replace(a, t, "half a minute", "30 seconds");
    t = replace(a, t, "quarter of an hour", "15 minutes");
    t = replace(a, t, "an hour and a quarter", "1 hour 15 minutes");
    t = replace(a, t, "a couple of", "2");
    struct ask_words w = ask_words(a, t);
    for (uint32_t i = 0; i < w.n; i++) {
        bool one = ask_one_of(w.w[i], "a an 1");
        if (one && i + 4 < w.n && strcmp(w.w[i + 1], "hour") == 0 &&
            strcmp(w.w[i + 2], "and") == 0 &&
            ((strcmp(w.w[i + 3], "a") == 0 && strcmp(w.w[i + 4], "half") == 0) ||
             (strcmp(w.w[i + 3], "30") == 0 && strcmp(w.w[i + 4], "minutes") == 0))) {
            w.w[i + 2] = "30";
            w.w[i + 3] = "minutes";
            w.w[i + 4] = "";
        }
        if (one)
            w.w[i] = "1";
    }
    return ask_join(a, &w, 0, w.n);
}

struct ask_value ask_duration(struct arena *a, const char *text)
{
    const char *show = "";
    double total = 0.0;
    for (const char *p = plain_duration(a, text); *p;) {
        size_t n = number_length(p, "");
        if (n == 0) {
            p++;
            continue;
        }
        const char *u = p + n + strspn(p + n, " -");
        size_t nu = strspn(u, "abcdefghijklmnopqrstuvwxyz");
        if (nu == 0) {
            p += n;
            continue;
        }
        const struct unit *unit = find_unit(u, nu);
        if (!unit)
            return (struct ask_value){.show = ask_lower(a, text), .text = ask_lower(a, text)};
        show = arena_printf(a, "%s%s%.*s %s%s", show, *show ? " " : "", (int)n, p, unit->name,
                            n == 1 && *p == '1' ? "" : "s");
        total += strtod(p, NULL) * unit->seconds;
        p = u + nu;
    }
    if (!*show)
        return (struct ask_value){.show = ask_lower(a, text), .text = ask_lower(a, text)};
    return (struct ask_value){.show = show, .number = floor(total + 0.5), .understood = true};
}

/* ---- times and dates ------------------------------------------------------------------------ */

/* "half past 7", "20 to 9": true and the time. */
static bool spoken_clock(const char *t, int *hour, int *minute)
{
    static const struct {
        const char *word;
        int minutes;
    } parts[] = {{"half", 30}, {"quarter", 15}, {"a quarter", 15}};
    static const struct {
        const char *word;
        bool before;
    } sides[] = {{" past ", false}, {" after ", false}, {" to ", true}, {" before ", true}};
    int m = -1;
    size_t n = 0;
    for (size_t i = 0; m < 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strncmp(t, parts[i].word, strlen(parts[i].word)) == 0) {
            m = parts[i].minutes;
            n = strlen(parts[i].word);
        }
    if (m < 0) {
        n = strspn(t, "0123456789");
        if (n == 0 || n > 3)
            return false;
        m = (int)strtol(t, NULL, 10);
    }
    t += n;
    if (strncmp(t, " minute", 7) == 0)
        t += 7 + (t[7] == 's');
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        n = strlen(sides[i].word);
        if (strncmp(t, sides[i].word, n) != 0)
            continue;
        if (!all_digits(t + n) || strlen(t + n) > 2)
            return false;
        *hour = (int)strtol(t + n, NULL, 10);
        *minute = m;
        if (sides[i].before) {
            *hour = *hour == 1 ? 12 : *hour == 0 ? 23 : *hour - 1;
            *minute = 60 - m;
        }
        return true;
    }
    return false;
}

/* "7", "7:30", "7.30", "7 30": true, the time and how the hour was written. */
static bool written_clock(const char *t, int *hour, int *minute, size_t *hour_digits)
{
    size_t n = strspn(t, "0123456789"), more = 0;
    if (n == 0 || n > 2)
        return false;
    if (t[n] && strchr(":. ", t[n])) {
        more = strspn(t + n + 1, "0123456789");
        if (more == 0 || more > 2)
            return false;
        *minute = (int)strtol(t + n + 1, NULL, 10);
    } else {
        *minute = 0;
    }
    *hour = (int)strtol(t, NULL, 10);
    *hour_digits = n;
    return t[n + (more ? more + 1 : 0)] == '\0';
}

/* Takes "pm", "in the evening" ... off the end; "am", "pm" or NULL. */
static const char *half_of_day(struct arena *a, const char **t)
{
    static const char *const ends[] = {
        "am", "in the morning", "pm", "in the afternoon", "in the evening", "at night", "tonight"};
    size_t n = strlen(*t);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t len = strlen(ends[i]);
        if (n >= len && strcmp(*t + n - len, ends[i]) == 0) {
            *t = ask_trim_end(a, arena_printf(a, "%.*s", (int)(n - len), *t), " ");
            return i < 2 ? "am" : "pm";
        }
    }
    return NULL;
}

struct ask_value ask_clock(struct arena *a, const char *text)
{
    const char *t = digits(a, text), *low = ask_lower(a, text);
    t = replace(a, replace(a, replace(a, t, "a.m.", "am"), "p.m.", "pm"), "o'clock", "");
    t = ask_trim_end(a, t + strspn(t, " "), " ");
    if (ask_one_of(t, "noon midday midnight"))
        return (struct ask_value){
            .show = t, .text = strcmp(t, "midnight") == 0 ? "00:00" : "12:00", .understood = true};
    const char *half = half_of_day(a, &t), *show = "";
    int hour = 0, minute = 0;
    size_t hour_digits = 0;
    if (!spoken_clock(t, &hour, &minute) && !written_clock(t, &hour, &minute, &hour_digits))
        return (struct ask_value){.show = low, .text = low};
    if (hour > 23 || minute > 59 || minute < 0)
        return (struct ask_value){.show = low, .text = low};
    if (half && hour <= 12) {
        show = minute ? arena_printf(a, "%d:%02d %s", hour, minute, half)
                      : arena_printf(a, "%d %s", hour, half);
        hour = hour % 12 + (strcmp(half, "pm") == 0 ? 12 : 0);
    } else {
        show = hour_digits ? arena_printf(a, "%.*s:%02d", (int)hour_digits, t, minute)
                           : arena_printf(a, "%d:%02d", hour, minute);
    }
    return (struct ask_value){
        .show = show, .text = arena_printf(a, "%02d:%02d", hour, minute), .understood = true};
}

const char *ask_date(struct arena *a, const char *text)
{
    static const char names[] =
        "monday tuesday wednesday thursday friday saturday sunday january february march april may "
        "june july august september october november december";
    struct ask_words w = ask_words(a, ask_lower(a, text)), out = {0};
    out.w = arena_zalloc_n(a, (size_t)w.n + 1, sizeof(*out.w));
    for (uint32_t i = 0; out.w && i < w.n; i++) {
        size_t n = strspn(w.w[i], "0123456789");
        if (strcmp(w.w[i], "of") == 0)
            continue;
        if (n > 0 && ask_one_of(w.w[i] + n, "st nd rd th"))
            out.w[out.n++] = arena_printf(a, "%.*s", (int)n, w.w[i]);
        else if (ask_one_of(w.w[i], names))
            out.w[out.n++] = arena_printf(a, "%c%s", w.w[i][0] - 'a' + 'A', w.w[i] + 1);
        else
            out.w[out.n++] = w.w[i];
    }
    const char *t = ask_join(a, &out, 0, out.n);
    return strncmp(t, "the ", 4) == 0 && t[4] >= '0' && t[4] <= '9' ? t + 4 : t;
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

/* A number at *p, which moves behind it. */
static bool take_number(const char **p, double *v)
{
    size_t n = number_length(*p, "-");
    if (n == 0)
        return false;
    *v = strtod(*p, NULL);
    *p += n;
    return true;
}

static bool take(const char **p, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(*p, text, n) != 0)
        return false;
    *p += n;
    return true;
}

/* '+', '-', '*', '/' for an operator at *p; 0: none. */
static char take_operator(const char **p)
{
    static const struct {
        const char *word;
        char op;
    } words[] = {{"plus", '+'}, {"+", '+'},     {"minus", '-'},
                 {"-", '-'},    {"times", '*'}, {"multiplied by", '*'},
                 {"x", '*'},    {"*", '*'},     {"divided by", '/'},
                 {"over", '/'}, {"/", '/'}};
    *p += strspn(*p, " ");
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (take(p, words[i].word)) {
            *p += strspn(*p, " ");
            return words[i].op;
        }
    return 0;
}

static bool evaluate(const char *t, double *r)
{
    double x, y;
    const char *p = t;
    (void)take(&p, "the ");
    if (take(&p, "square root of ")) {
        if (!take_number(&p, &x) || *p || x < 0.0)
            return false;
        *r = sqrt(x);
        return true;
    }
    p = t;
    if (!take_number(&p, &x))
        return false;
    const char *q = p;
    if ((take(&q, " percent of ") || take(&q, " % of ") || take(&q, "% of ")) &&
        take_number(&q, &y) && !*q) {
        *r = x * y / 100.0;
        return true;
    }
    char op = take_operator(&p);
    if (!op || !take_number(&p, &y) || *p || (op == '/' && y == 0.0))
        return false;
    *r = op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y;
    return true;
}

bool ask_calculate(struct arena *a, const char *expr, const char **show, double *result)
{
    char text[64];
    double x;
    if (!evaluate(digits(a, expr), &x) || !isfinite(x) || fabs(x) >= 1e15)
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
