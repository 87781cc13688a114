/* wording.c - see wording.h. */
#include "base/ascii.h"
#include "knowledge/wording.h"

#include <stdio.h>
#include <string.h>

struct reader {
    struct wording *w;
    bool begins; /* a sentence */
};

static bool is_letter(char c)
{
    return ascii_is_letter(c) || (c & 0x80);
}

static void add(struct reader *r, enum wording_kind kind, const char *stem, bool name)
{
    struct wording *w = r->w;
    if (w->n == WORDING_MAX) {
        w->cut = true;
        return;
    }
    struct wording_word *x = &w->words[w->n++];
    x->kind = kind;
    x->form = WORDING_BASE;
    x->name = name;
    snprintf(x->stem, sizeof(x->stem), "%s", stem);
    r->begins = false;
}

/* ---- numbers ---- */

/* Digits with separators and a decimal point: "1,000.50" is 1000.5.  Times ("7:30") and codes keep
 * their form.  Returns the length. */
static size_t take_number(struct reader *r, const char *p, size_t n)
{
    char out[WORDING_STEM_BYTES] = "";
    size_t i = 0, k = 0;
    bool point = false;
    while (i < n && (ascii_is_digit(p[i]) || (i > 0 && i + 1 < n && ascii_is_digit(p[i + 1]) &&
                                              ascii_is_digit(p[i - 1]) && strchr(".,:/", p[i])))) {
        bool thousands =
            p[i] == ',' && i + 3 < n && ascii_is_digit(p[i + 2]) && ascii_is_digit(p[i + 3]);
        point |= p[i] == '.';
        if (!thousands && k < sizeof(out) - 1)
            out[k++] = p[i];
        i++;
    }
    while (point && k > 1 && out[k - 1] == '0')
        k--;
    k -= point && out[k - 1] == '.';
    size_t zeros = 0;
    while (zeros + 1 < k && out[zeros] == '0' && ascii_is_digit(out[zeros + 1]))
        zeros++;
    memmove(out, out + zeros, k - zeros);
    out[k - zeros] = '\0';
    add(r, WORDING_NUMBER, out, false);
    if (n - i >= 2 &&
        (strncmp(p + i, "st", 2) == 0 || strncmp(p + i, "nd", 2) == 0 ||
         strncmp(p + i, "rd", 2) == 0 || strncmp(p + i, "th", 2) == 0) &&
        (n - i == 2 || !is_letter(p[i + 2])))
        i += 2; /* an ordinal */
    return i;
}

/* ---- words ---- */

/* "°C" is two words, as in "20 degrees celsius". */
static bool take_degree(struct reader *r, const char *word)
{
    if (strncmp(word, "\xc2\xb0", 2) != 0)
        return false;
    const char *unit = word + 2;
    add(r, WORDING_PLAIN, "degre", false);
    if (unit[0])
        add(r, WORDING_PLAIN,
            strcmp(unit, "c") == 0   ? "celsius"
            : strcmp(unit, "f") == 0 ? "fahrenheit"
                                     : unit,
            false);
    return true;
}

/* Sets the form of the last word. After a number the number determines it: "20 degrees", "20
 * km". */
static void set_form(struct wording *w, enum wording_form form)
{
    const bool counted = w->n > 1 && w->words[w->n - 2].kind == WORDING_NUMBER;
    if (!w->cut && w->n > 0)
        w->words[w->n - 1].form = counted && form == WORDING_S ? WORDING_BASE : form;
}

static void take_word(struct reader *r, const char *p, size_t n)
{
    char word[WORDING_STEM_BYTES];
    bool capital = ascii_is_upper(*p);
    bool first = r->begins;
    size_t k = 0;
    for (size_t i = 0; i < n && k < sizeof(word) - 1; i++)
        word[k++] = ascii_lower(p[i]);
    word[k] = '\0';
    if (k > 3 && strcmp(word + k - 3, "n't") == 0) { /* don't, won't, can't */
        word[k - 3] = '\0';
        if (strcmp(word, "wo") == 0)
            add(r, WORDING_TENSE, "future", false);
        else if (strcmp(word, "ca") == 0 || strcmp(word, "could") == 0)
            add(r, WORDING_PLAIN, "can", false);
        add(r, WORDING_NEGATION, "not", false);
        return;
    }
    char *mark = strchr(word, '\'');
    if (mark) { /* what's, john's, we'll, i'm */
        if (strcmp(mark, "'ll") == 0)
            add(r, WORDING_TENSE, "future", false);
        *mark = '\0';
        if (!word[0])
            return;
    }
    if (take_degree(r, word))
        return;
    const char *number = wording_number(word);
    if (number) {
        add(r, WORDING_NUMBER, number, false);
        return;
    }
    enum wording_kind kind = wording_kind_of(word);
    enum wording_form form = WORDING_BASE;
    if (kind == WORDING_PLAIN) {
        const char last = word[strlen(word) - 1];
        wording_stem(word);
        const char stem_last = word[strlen(word) - 1];
        form = last == 's' && stem_last != 's'   ? WORDING_S
               : last == 'd' && stem_last != 'd' ? WORDING_ED
                                                 : WORDING_BASE;
        enum wording_kind of_stem = wording_kind_of(word);
        kind = of_stem == WORDING_FILLER ? of_stem : kind;
    }
    if (kind == WORDING_TENSE) {
        bool future = strcmp(word, "will") == 0 || strcmp(word, "shall") == 0;
        add(r, kind, future ? "future" : "past", false);
    } else {
        add(r, kind, wording_same(word), kind == WORDING_PLAIN && capital && !first);
        set_form(r->w, form);
    }
}

void wording_read(struct wording *w, const char *text, size_t n)
{
    struct reader r = {.w = w, .begins = true};
    w->n = 0;
    w->cut = false;
    for (size_t i = 0; i < n && !w->cut;) {
        char c = text[i];
        if (ascii_is_digit(c)) {
            bool minus = i > 0 && text[i - 1] == '-' && (i < 2 || text[i - 2] == ' ');
            if (minus)
                add(&r, WORDING_PLAIN, "minus", false);
            i += take_number(&r, text + i, n - i);
        } else if (is_letter(c)) {
            size_t k = i;
            while (k < n && (is_letter(text[k]) || text[k] == '\''))
                k++;
            while (k > i && text[k - 1] == '\'')
                k--;
            take_word(&r, text + i, k - i);
            i = k;
        } else {
            if (strchr(".!?", c) && c)
                r.begins = true;
            else if (strchr("%$", c) && c)
                add(&r, WORDING_PLAIN, c == '%' ? "percent" : "dollar", false);
            i++;
        }
    }
}

uint32_t wording_count(const struct wording *w, enum wording_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        n += w->words[i].kind == kind;
    return n;
}

bool wording_has(const struct wording *w, enum wording_kind kind, const char *stem)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->words[i].kind == kind && strcmp(w->words[i].stem, stem) == 0)
            return true;
    return false;
}
