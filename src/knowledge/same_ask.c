/* same_ask.c - see same_ask.h. */
#include "knowledge/same_ask.h"

#include <string.h>

#include "knowledge/wording.h"

/* A prompt as it is compared. */
struct compared_ask {
    struct wording w;
    bool used[WORDING_MAX]; /* found in the other */
    bool circumstance;      /* it begins with one: "in the kitchen", "at sea level" */
    bool whether;           /* a yes/no question: "is the door locked" */
    bool verb_found;        /* a verb with an ending in one of the two was found */
};

static bool is(const struct wording_word *x, enum wording_kind kind, const char *stem)
{
    return x->kind == kind && strcmp(x->stem, stem) == 0;
}

static void drop(struct wording *w, uint32_t from, uint32_t n)
{
    memmove(&w->words[from], &w->words[from + n], (w->n - from - n) * sizeof(w->words[0]));
    w->n -= n;
}

/* Stems of a phrase at i, with blanks between them. */
static bool phrase_at(const struct wording *w, uint32_t i, const char *phrase, uint32_t *n)
{
    uint32_t k = 0;
    for (const char *p = phrase; *p; k++) {
        size_t len = strcspn(p, " ");
        if (i + k >= w->n || strlen(w->words[i + k].stem) != len ||
            memcmp(w->words[i + k].stem, p, len) != 0)
            return false;
        p += len + (p[len] ? 1 : 0);
    }
    *n = k;
    return true;
}

/* "is the door locked" and "if the door is locked", not "lock the door"; after polite phrases were
 * removed. */
static bool asks_whether(const struct wording *w)
{
    static const char *const firsts[] = {"is",   "are", "am", "do",      "does",  "has",
                                         "have", "can", "if", "whether", "should"};
    if (w->n < 2 || w->words[1].kind == WORDING_NEGATION) /* "do not" */
        return false;
    if (w->words[0].kind == WORDING_TENSE)
        return true;
    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++)
        if (strcmp(w->words[0].stem, firsts[i]) == 0)
            return true;
    return false;
}

/* Polite introductions without meaning of their own. */
static void drop_courtesy(struct compared_ask *a)
{
    struct wording *w = &a->w;
    /* longer phrases after their prefixes */
    static const char *const phrases[] = {
        "can you",     "could you", "would you",      "i want you to", "i need you to",
        "i want to",   "i need to", "i would lik to", "i d lik to",    "tell me",
        "show",        "show me",   "giv me",         "help me",       "let me",
        "let me know", "list",      "check",          "do you know"};
    bool again = true;
    while (again) {
        again = false;
        while (w->n > 0 && w->words[0].kind == WORDING_FILLER)
            drop(w, 0, 1);
        for (size_t i = sizeof(phrases) / sizeof(phrases[0]); i-- > 0 && !again;) {
            uint32_t n;
            if (phrase_at(w, 0, phrases[i], &n)) {
                drop(w, 0, n);
                again = true;
            }
        }
    }
    a->whether = asks_whether(w);
    a->circumstance = w->n > 0 && strlen(w->words[0].stem) > 1 &&
                      (w->words[0].kind == WORDING_LINK || w->words[0].kind == WORDING_PARTICLE) &&
                      strstr(" in at on for with by ", w->words[0].stem);
    while (w->n > 0 &&
           (w->words[0].kind == WORDING_LINK || is(&w->words[0], WORDING_PLAIN, "if") ||
            is(&w->words[0], WORDING_PLAIN, "whether")) &&
           strcmp(w->words[0].stem, "can") != 0 && strcmp(w->words[0].stem, "do") != 0 &&
           strcmp(w->words[0].stem, "does") != 0 && strcmp(w->words[0].stem, "is") != 0 &&
           strcmp(w->words[0].stem, "are") != 0)
        drop(w, 0, 1);
}

/* Phrases equal to one word: "what time" is "when". */
static void join_phrases(struct wording *w)
{
    static const struct {
        const char *phrase, *stem;
        enum wording_kind kind;
    } table[] = {{"at what tim", "when", WORDING_QUESTION},
                 {"what tim", "when", WORDING_QUESTION},
                 {"how do you", "how", WORDING_QUESTION},
                 {"is there", "is", WORDING_LINK},
                 {"are there", "are", WORDING_LINK}};
    for (uint32_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
            uint32_t n;
            if (!phrase_at(w, i, table[k].phrase, &n))
                continue;
            w->words[i].kind = table[k].kind;
            memcpy(w->words[i].stem, table[k].stem, strlen(table[k].stem) + 1);
            drop(w, i + 1, n - 1);
        }
}

/* In a question with a question word, "can" and "should" add nothing: "how can I" is "how do I".
 * "How much does it cost" is "what does it cost". */
static void weaken_modals(struct wording *w)
{
    bool price = wording_has(w, WORDING_PLAIN, "pric");
    bool asks = wording_count(w, WORDING_QUESTION) > 0;
    for (uint32_t i = 0; i < w->n && asks; i++) {
        struct wording_word *x = &w->words[i];
        if (is(x, WORDING_PLAIN, "can") || is(x, WORDING_PLAIN, "should"))
            x->kind = WORDING_LINK;
        if (price && is(x, WORDING_QUESTION, "how") && i + 1 < w->n &&
            is(x + 1, WORDING_PLAIN, "much")) {
            memcpy(x->stem, "what", 5);
            x[1].kind = WORDING_LINK;
        }
    }
}

/* "the light in the kitchen" is "the kitchen light": words after "in" move before the word in front
 * of it, those after "of" before the whole group. */
static void turn_around(struct wording *w)
{
    for (uint32_t i = 1; i + 1 < w->n; i++) {
        struct wording_word *x = w->words, held[WORDING_MAX];
        bool of = is(&x[i], WORDING_LINK, "of");
        if (x[i - 1].kind != WORDING_PLAIN || !(of || is(&x[i], WORDING_LINK, "in")))
            continue;
        uint32_t first = i - 1, from = i + 1, end;
        while (of && first > 0 && x[first - 1].kind == WORDING_PLAIN)
            first--;
        while (from < w->n &&
               (is(&x[from], WORDING_LINK, "the") || is(&x[from], WORDING_LINK, "a")))
            from++;
        for (end = from; end < w->n && x[end].kind == WORDING_PLAIN; end++)
            ;
        if (end == from)
            continue;
        memcpy(held, &x[first], (i - first) * sizeof(*x));
        memmove(&x[first], &x[from], (end - from) * sizeof(*x));
        memcpy(&x[first + end - from], held, (i - first) * sizeof(*x));
        uint32_t after = first + (end - from) + (i - first);
        drop(w, after, end - after);
        i = after;
    }
}

/* A preposition determines the meaning of a number: "by 10" is not "to 10". */
static void mark_prepositions(struct wording *w)
{
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        struct wording_word *x = &w->words[i];
        if (x->kind == WORDING_LINK && w->words[i + 1].kind == WORDING_NUMBER &&
            strstr(" by to in for at of per ", x->stem) && strlen(x->stem) > 1)
            x->kind = WORDING_PLAIN;
    }
}

/* "twenty one" is 21, "two hundred" 200. */
static void join_numbers(struct wording *w)
{
    static const char *const tens[] = {"20", "30", "40", "50", "60", "70", "80", "90"};
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        struct wording_word *x = &w->words[i], *y = x + 1;
        if (x->kind != WORDING_NUMBER || y->kind != WORDING_NUMBER)
            continue;
        for (size_t k = 0; k < 8; k++)
            if (strcmp(x->stem, tens[k]) == 0 && strlen(y->stem) == 1 && y->stem[0] != '0') {
                x->stem[1] = y->stem[0];
                drop(w, i + 1, 1);
                break;
            }
        if (i + 1 < w->n && strlen(x->stem) == 1 && strcmp(y->stem, "100") == 0) {
            memcpy(x->stem + 1, "00", 3);
            drop(w, i + 1, 1);
        }
    }
}

static void read_ask(struct compared_ask *a, const char *text, size_t n)
{
    memset(a->used, 0, sizeof(a->used));
    a->verb_found = false;
    wording_read(&a->w, text, n);
    drop_courtesy(a);
    join_phrases(&a->w);
    join_numbers(&a->w);
    weaken_modals(&a->w);
    turn_around(&a->w);
    mark_prepositions(&a->w);
}

/* ---- comparing ---- */

/* Whether the stems of one kind are the same, in order. */
static bool same_sequence(const struct wording *a, const struct wording *b, enum wording_kind kind)
{
    uint32_t i = 0, k = 0;
    for (;;) {
        while (i < a->n && a->words[i].kind != kind)
            i++;
        while (k < b->n && b->words[k].kind != kind)
            k++;
        if (i == a->n || k == b->n)
            return i == a->n && k == b->n;
        if (strcmp(a->words[i++].stem, b->words[k++].stem) != 0)
            return false;
    }
}

static const char *question_of(const struct wording *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->words[i].kind == WORDING_QUESTION)
            return w->words[i].stem;
    return "";
}

/* what, which: words to ask for a thing; "how" may be "what is the way". */
static bool same_question(const struct wording *a, const struct wording *b)
{
    const char *x = question_of(a), *y = question_of(b);
    if (strcmp(x, "which") == 0)
        x = "what";
    if (strcmp(y, "which") == 0)
        y = "what";
    if (strcmp(x, "whom") == 0)
        x = "who";
    if (strcmp(y, "whom") == 0)
        y = "who";
    if (strcmp(x, y) == 0)
        return true;
    static const char *const ways[] = {"way", "step", "procedur", "method", "instruction"};
    bool how = strcmp(x, "how") == 0 || strcmp(y, "how") == 0;
    bool what = strcmp(x, "what") == 0 || strcmp(y, "what") == 0;
    bool none = !x[0] || !y[0];
    for (size_t i = 0; i < 5 && how && (what || none); i++)
        if (wording_has(a, WORDING_FILLER, ways[i]) || wording_has(b, WORDING_FILLER, ways[i]))
            return true;
    /* "tell me the capital": the introduction is gone, and a thing is left */
    return what && none;
}

/* Possessives: "my" is optional, others are not. */
static bool same_owners(const struct wording *a, const struct wording *b)
{
    const struct wording *both[] = {a, b};
    const char *first[2] = {"", ""};
    uint32_t n[2] = {0, 0};
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < both[k]->n; i++)
            if (both[k]->words[i].kind == WORDING_OWNER) {
                first[k] = n[k] == 0 ? both[k]->words[i].stem : first[k];
                n[k]++;
            }
    if (n[0] == n[1])
        return same_sequence(a, b, WORDING_OWNER);
    return n[0] + n[1] == 1 && strcmp(n[0] ? first[0] : first[1], "my") == 0;
}

static bool counts(const struct wording_word *x)
{
    return x->kind == WORDING_PLAIN || x->kind == WORDING_PARTICLE;
}

/* "does it cost", "can it help": the verb after them has no ending. */
static bool has_helper(const struct wording *w)
{
    return wording_has(w, WORDING_LINK, "does") || wording_has(w, WORDING_LINK, "can") ||
           wording_has(w, WORDING_PLAIN, "can");
}

/* "the guest" is not "the guests", and "calls" not "called"; but "what does it cost" is "what it
 * costs". */
static bool same_form(struct compared_ask *a, uint32_t i, const struct compared_ask *b, uint32_t k)
{
    const enum wording_form x = a->w.words[i].form, y = b->w.words[k].form;
    if (x == y)
        return true;
    if (x == WORDING_ED || y == WORDING_ED || a->verb_found)
        return false;
    const struct wording *base = x == WORDING_BASE ? &a->w : &b->w;
    a->verb_found = has_helper(base) && !has_helper(base == &a->w ? &b->w : &a->w);
    return a->verb_found;
}

/* Marks the words of a that b has, each once; false: one is left. */
static bool all_found(struct compared_ask *a, struct compared_ask *b)
{
    bool all = true;
    for (uint32_t i = 0; i < a->w.n; i++) {
        if (!counts(&a->w.words[i]))
            continue;
        for (uint32_t k = 0; k < b->w.n && !a->used[i]; k++)
            if (counts(&b->w.words[k]) && !b->used[k] &&
                strcmp(a->w.words[i].stem, b->w.words[k].stem) == 0 && same_form(a, i, b, k))
                a->used[i] = b->used[k] = true;
        all &= a->used[i];
    }
    return all;
}

/* "on" of a day, and particles that only one has, are words like others. */
static bool same_words(struct compared_ask *a, struct compared_ask *b)
{
    bool all = all_found(a, b);
    for (uint32_t k = 0; k < b->w.n; k++)
        all &= !counts(&b->w.words[k]) || b->used[k];
    return all;
}

/* Common words must have the same order, unless an adverbial has moved as a whole: "in the kitchen
 * turn on the light". With only two words neither may move: "Paris to London". */
static bool same_order(const struct compared_ask *a, const struct compared_ask *b)
{
    const char *x[WORDING_MAX], *y[WORDING_MAX];
    uint32_t n = 0, m = 0;
    for (uint32_t i = 0; i < a->w.n; i++)
        if (a->w.words[i].kind == WORDING_PLAIN || a->w.words[i].kind == WORDING_NUMBER)
            x[n++] = a->w.words[i].stem;
    for (uint32_t i = 0; i < b->w.n; i++)
        if (b->w.words[i].kind == WORDING_PLAIN || b->w.words[i].kind == WORDING_NUMBER)
            y[m++] = b->w.words[i].stem;
    if (n != m)
        return false;
    const bool moved = n >= 3 && (a->circumstance || b->circumstance);
    for (uint32_t shift = 0; shift < (moved ? n : 1); shift++) {
        uint32_t k = 0;
        while (k < n && strcmp(x[(k + shift) % n], y[k]) == 0)
            k++;
        if (k == n)
            return true;
    }
    return n == 0;
}

bool same_ask(const char *a, size_t n_a, const char *b, size_t n_b, const char **why)
{
    struct compared_ask x, y;
    const char *unused = "";
    why = why ? why : &unused;
    read_ask(&x, a, n_a);
    read_ask(&y, b, n_b);
    *why = "";
    if (x.w.cut || y.w.cut || x.w.n == 0 || y.w.n == 0)
        *why = "too long or empty";
    else if (!same_sequence(&x.w, &y.w, WORDING_NUMBER))
        *why = "numbers";
    else if (wording_count(&x.w, WORDING_NEGATION) != wording_count(&y.w, WORDING_NEGATION))
        *why = "negation";
    else if (!same_sequence(&x.w, &y.w, WORDING_TENSE))
        *why = "tense";
    else if (!same_question(&x.w, &y.w) || x.whether != y.whether)
        *why = "the question";
    else if (!same_owners(&x.w, &y.w))
        *why = "whose it is";
    else if (!same_words(&x, &y))
        *why = "words";
    else if (!same_order(&x, &y))
        *why = "order";
    return !(*why)[0];
}
