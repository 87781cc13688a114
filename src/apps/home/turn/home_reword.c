/* home_reword.c - see home_reword.h. */
#include "apps/home/turn/home_reword.h"

#include <string.h>

#include "apps/home/home_speech.h"
#include "apps/home/home_values.h"

#define MAX_REASON 14u  /* words */
#define MAX_SUBJECT 3u  /* words before "is" in a reason: "the last guests are" */
#define MAX_NAME 6u     /* words of a name and a verb */
#define MAX_DURATION 7u /* words: "an hour and a half" */
#define MAX_EACH 4u     /* words after "every": "every kitchen ceiling light" */

/* Moves the punctuation of a dropped word to the word before. */
static void pass_on(struct arena *a, const char **before, const char *out)
{
    if (home_words_end_in(out, ",.;!?") && !home_words_end_in(*before, ",.;!?"))
        *before = arena_printf(a, "%s%c", *before, out[strlen(out) - 1]);
}

/* Removes words from..to-1. */
static void cut(struct arena *a, struct home_words *w, uint32_t from, uint32_t to)
{
    if (from > 0 && to > from)
        pass_on(a, &w->w[from - 1], w->w[to - 1]);
    for (uint32_t i = to; i < w->n; i++)
        w->w[i - (to - from)] = w->w[i];
    w->n -= to - from;
}

/* ---- in front -------------------------------------------------------------------------------- */

/* In one pass: a text may consist only of fillers. */
static bool drop_fillers(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t kept = 0, dropped = 0;
    for (uint32_t i = 0; i < plain.n;) {
        uint32_t n = home_table_phrase(&t->reword.fillers, &plain, i);
        if (n == 0 || kept + (plain.n - i) == n) /* something has to stay */
            n = 0;
        if (n > 0 && kept > 0)
            pass_on(a, &w->w[kept - 1], w->w[i + n - 1]);
        if (n == 0)
            w->w[kept++] = w->w[i];
        dropped += n;
        i += n ? n : 1;
    }
    w->n = kept;
    return dropped > 0;
}

/* "closing" is "close", "shutting" is "shut", if that is a command verb; NULL: it is not. */
static const char *verb_of(struct arena *a, const struct home_table *t, const char *word)
{
    size_t n = strlen(word);
    if (n < 6 || strcmp(word + n - 3, "ing") != 0)
        return NULL;
    int stem = (int)n - 3;
    const char *forms[] = {arena_printf(a, "%.*s", stem, word),
                           arena_printf(a, "%.*se", stem, word),
                           arena_printf(a, "%.*s", stem - 1, word)};
    bool doubled = word[stem - 1] == word[stem - 2];
    for (int i = 0; i < 2 + doubled; i++)
        if (home_table_word(t, forms[i]) & HOME_WORD_VERB)
            return forms[i];
    return NULL;
}

/* "Would you mind closing the blinds" is "close the blinds". */
static bool drop_gerund(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t n = home_table_phrase(&t->reword.gerund, &plain, 0);
    const char *verb = n > 0 && n + 1 < plain.n ? verb_of(a, t, plain.w[n]) : NULL;
    if (!verb)
        return false;
    w->w[n] = verb;
    cut(a, w, 0, n);
    return true;
}

/* Does a request begin at word `at`: a verb after a comma, or after "could you"? */
static bool requests(const struct home_table *t, const struct home_words *w,
                     const struct home_words *plain, uint32_t at)
{
    uint32_t verb = at;
    for (uint32_t n; verb < plain->n && (n = home_table_phrase(&t->wrap, plain, verb)) > 0;)
        verb += n;
    bool begins = verb < plain->n && (home_table_word(t, plain->w[verb]) & HOME_WORD_VERB) &&
                  home_table_phrase(&t->cues[HOME_SPEECH_ASK], plain, verb) == 0;
    for (uint32_t i = 0; i < t->reword.wants.n && !begins; i++)
        begins = home_words_phrase(plain, verb, t->reword.wants.p[i].from) > 0;
    return begins && (verb > at || home_words_end_in(w->w[at - 1], ",.;!"));
}

/* "The sun is in my eyes": does a statement begin at word `at`? */
static bool says_that_it_is(const struct home_table *t, const struct home_words *w,
                            const struct home_words *plain, uint32_t at)
{
    for (uint32_t i = at; i < plain->n && i - at <= MAX_SUBJECT; i++) {
        if (i > at && home_table_lists(&t->reword.is, plain->w[i]))
            return true;
        if ((home_table_word(t, plain->w[i]) & HOME_WORD_VERB) ||
            home_words_end_in(w->w[i], ",.;!?"))
            return false;
    }
    return false;
}

/* "I'm cold, could you turn the heating up": only a statement that begins like a reason, and does
 * not make the request conditional, a report or a denial. */
static bool drop_reason(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t begins = home_table_phrase(&t->reword.reasons, &plain, 0);
    if (begins == 0 && !says_that_it_is(t, w, &plain, 0))
        return false;
    for (uint32_t at = begins ? begins : 1; at + 1 < plain.n && at < MAX_REASON; at++) {
        struct home_words reason = {plain.w + begins, at - begins};
        if (!requests(t, w, &plain, at))
            continue;
        if (home_speech_pronoun(t, &plain, at) || /* "we're out of milk, put it on the list" */
            (reason.n > 0 && home_speech_cue(t, &reason, NULL) != HOME_SPEECH_COMMAND))
            return false;
        cut(a, w, 0, at);
        return true;
    }
    return false;
}

/* "Play jazz, but not too loud": no action has a slot for the manner. */
static bool drop_manner(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    for (uint32_t i = 2; i < plain.n; i++) {
        uint32_t n = home_table_phrase(&t->reword.manner, &plain, i);
        if (n == 0 || i + n >= plain.n ||
            (i + n + 1 < plain.n && !home_words_end_in(w->w[i + n], ",.;!")))
            continue;
        w->w[i - 1] = home_words_trim_end(a, w->w[i - 1], ",;");
        cut(a, w, i, i + n + 1);
        return true;
    }
    return false;
}

static struct home_value duration_in(struct arena *a, const struct home_table *t,
                                     const struct home_words *w, uint32_t from, uint32_t to)
{
    return home_values_duration(a, t, home_words_join(a, w, from, to));
}

/* "Half an hour from now" is "in half an hour". */
static bool from_now(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    const struct home_when *later = NULL;
    uint32_t at = 0, n = 0, first;
    for (uint32_t i = 0; i < t->n_when && !later; i++)
        if (t->when[i].slot->type == HOME_SLOT_DURATION && t->when[i].after.n > 0)
            later = &t->when[i];
    while (at < plain.n && (n = home_table_phrase(&t->reword.from_now, &plain, at)) == 0)
        at++;
    for (first = at > MAX_DURATION ? at - MAX_DURATION : 0; later && n > 0 && first < at; first++) {
        struct home_value all = duration_in(a, t, &plain, first, at);
        struct home_value rest = duration_in(a, t, &plain, first + 1, at);
        if (!all.understood || (rest.understood && rest.number == all.number))
            continue; /* the word before it is irrelevant */
        const char *end = w->w[at + n - 1];
        memmove(&w->w[first + 1], &w->w[first], (at - first) * sizeof(*w->w));
        w->w[first] = later->after.w[0];
        pass_on(a, &w->w[at], end);
        cut(a, w, at + 1, at + n);
        return true;
    }
    return false;
}

/* What may stand behind a wish: behind a whole command a place or a time ("some light in the
 * hall", but not "some light reading"), else no question ("let me hear what you think"). */
static bool may_follow(const struct home_table *t, const struct home_words *w,
                       const struct home_words *plain, uint32_t at, bool whole)
{
    if (at >= plain->n || home_words_end_in(w->w[at - 1], ",.;!"))
        return whole;
    if (whole)
        return home_table_lists(&t->front, plain->w[at]);
    return !(home_table_word(t, plain->w[at]) & (HOME_WORD_POLITE | HOME_WORD_VERB)) &&
           !home_table_lists(&t->pronouns, plain->w[at]) &&
           home_table_phrase(&t->cues[HOME_SPEECH_ASK], plain, at) == 0;
}

/* "Some light in the hall": what is wanted becomes the command for it. */
static bool reword_want(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t at = 0;
    for (uint32_t n; at < plain.n && (n = home_table_phrase(&t->wrap, &plain, at)) > 0;)
        at += n;
    for (uint32_t i = 0; i < t->reword.wants.n; i++) {
        const struct home_pair *p = &t->reword.wants.p[i];
        uint32_t n = home_words_phrase(&plain, at, p->from);
        if (n == 0 || !may_follow(t, w, &plain, at + n, strchr(p->to, ' ') != NULL))
            continue;
        w->w[at] = p->to;
        if (at + n == w->n) /* the punctuation behind it */
            pass_on(a, &w->w[at], w->w[at + n - 1]);
        for (uint32_t k = at + n; k < w->n; k++)
            w->w[k - n + 1] = w->w[k];
        w->n -= n - 1;
        return true;
    }
    return false;
}

bool home_reword_front(struct arena *a, const struct home_table *t, struct home_words *w)
{
    bool changed = drop_fillers(a, t, w);
    changed |= from_now(a, t, w);
    changed |= drop_reason(a, t, w);
    changed |= drop_gerund(a, t, w);
    changed |= reword_want(a, t, w);
    return changed && a->rc == 0;
}

/* ---- things ---------------------------------------------------------------------------------- */

/* Is it a word for a kind of thing, in the singular? */
static bool is_kind(const struct home_table *t, const char *word)
{
    const struct home_slot *device = home_table_slot(t, "device");
    uint32_t found;
    if (device && strmap_get(&device->known, word, strlen(word), &found))
        return true;
    for (uint32_t i = 0; i < t->n_kinds; i++)
        if (home_table_lists(&t->kinds[i].words, word))
            return true;
    return false;
}

/* ... and in the plural? */
static bool is_plural(const struct home_table *t, const char *word)
{
    size_t n = strlen(word);
    char one[64];
    if (n < 3 || n >= sizeof(one) || word[n - 1] != 's')
        return false;
    memcpy(one, word, n - 1);
    one[n - 1] = '\0';
    return is_kind(t, one);
}

/* The word with an ending, before its punctuation. */
static const char *plural(struct arena *a, const char *word, const char *plain)
{
    size_t n = strlen(plain), open = strlen(word);
    bool es = n > 2 && (strcmp(plain + n - 2, "sh") == 0 || strcmp(plain + n - 2, "ch") == 0 ||
                        plain[n - 1] == 's' || plain[n - 1] == 'x');
    while (open > 0 && strchr(HOME_WORDS_CLOSING, word[open - 1]))
        open--;
    return arena_printf(a, "%s%s%s", plain, es ? "es" : "s", word + open);
}

static bool reword_each(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t to = 0, n;
    bool changed = false;
    for (uint32_t i = 0; i < plain.n; i += n ? n : 1) {
        n = home_table_phrase(&t->reword.each, &plain, i);
        uint32_t at = i + n;
        while (n > 0 && at < plain.n && at - i - n < MAX_EACH && !is_kind(t, plain.w[at]) &&
               !(home_table_word(t, plain.w[at]) & (HOME_WORD_JOIN | HOME_WORD_VERB)) &&
               !home_words_end_in(w->w[at], ",.;!?"))
            at++;
        if (n > 0 && at < plain.n && is_kind(t, plain.w[at])) {
            w->w[at] = plural(a, w->w[at], plain.w[at]);
            w->w[to++] = t->reword.all;
            changed = true;
        } else {
            n = 0;
            w->w[to++] = w->w[i];
        }
    }
    w->n = to;
    return changed;
}

/* "In every room" adds nothing to "all lights". */
static bool drop_everywhere(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t to = 0, n;
    bool all = false, changed = false;
    for (uint32_t i = 0; i < plain.n; i += n ? n : 1) {
        n = home_table_phrase(&t->reword.everywhere, &plain, i);
        all |= is_plural(t, plain.w[i]) || home_table_lists(&t->later.all, plain.w[i]) ||
               home_table_lists(&t->stop.all, plain.w[i]);
        if (n > 0 && all && to > 0) {
            pass_on(a, &w->w[to - 1], w->w[i + n - 1]);
            changed = true;
        } else {
            n = 0;
            w->w[to++] = w->w[i];
        }
    }
    w->n = to;
    return changed;
}

/* "Pump three" where the home has a "pump 3". */
static bool name_numbers(struct arena *a, const struct home_table *t, const struct home_file *f,
                         struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    bool changed = false;
    for (uint32_t i = 1; f && i < plain.n; i++) {
        uint32_t number;
        if (!strmap_get(&t->numbers, plain.w[i], strlen(plain.w[i]), &number))
            continue;
        const char *name =
            arena_printf(a, "%s %s", plain.w[i - 1], home_values_digits(a, t, plain.w[i]));
        for (uint32_t k = 0; k < f->n_things; k++)
            if (home_table_lists(&f->things[k].names, name)) {
                const char *digits = strchr(name, ' ') + 1;
                bool closed = home_words_end_in(w->w[i], ",.;!?");
                w->w[i] =
                    closed ? arena_printf(a, "%s%c", digits, w->w[i][strlen(w->w[i]) - 1]) : digits;
                changed = true;
                break;
            }
    }
    return changed;
}

/* "A degree warmer" is "1 degree warmer". */
static bool name_one(struct arena *a, const struct home_table *t, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    bool changed = false;
    uint32_t unit;
    for (uint32_t i = 0; i + 2 < plain.n; i++) {
        const struct home_pair *one = NULL;
        for (uint32_t k = 0; k < t->duration_phrases.n && !one; k++)
            if (strcmp(t->duration_phrases.p[k].from, plain.w[i]) == 0)
                one = &t->duration_phrases.p[k]; /* "a" is 1 there too */
        if (!one || !strmap_get(&t->units, plain.w[i + 1], strlen(plain.w[i + 1]), &unit) ||
            !home_table_lists(&t->change_after, plain.w[i + 2]))
            continue;
        w->w[i] = one->to;
        changed = true;
    }
    return changed;
}

/* "Garage door, close!" is "close the garage door". */
static bool verb_first(struct arena *a, const struct home_table *t, const struct home_file *f,
                       struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t last = w->n - 1, from = 0;
    if (!f || w->n < 2 || w->n > MAX_NAME || !home_words_end_in(w->w[last - 1], ",.:") ||
        !(home_table_word(t, plain.w[last]) & HOME_WORD_VERB))
        return false;
    while (from < last && (home_table_word(t, plain.w[from]) & HOME_WORD_ARTICLE))
        from++;
    const char *name = home_words_join(a, &plain, from, last);
    for (uint32_t i = 0; from < last && i < f->n_things; i++)
        if ((f->things[i].type == HOME_THING_DEVICE || f->things[i].type == HOME_THING_MACHINE) &&
            home_table_lists(&f->things[i].names, name)) {
            w->w[0] = plain.w[last];
            w->w[1] = arena_printf(a, "the %s", name);
            w->n = 2;
            return true;
        }
    return false;
}

/* Does word i name a thing or a room, or a kind ("the light")? */
static bool speaks_of_thing(const struct home_table *t, const struct home_file *f,
                            const struct home_words *plain, uint32_t from, uint32_t i)
{
    const char *word = plain->w[i];
    bool begins = i == from || (home_table_word(t, plain->w[i - 1]) & HOME_WORD_ARTICLE);
    for (uint32_t k = 0; f && k < f->n_things; k++)
        if (f->things[k].type <= HOME_THING_MACHINE &&
            home_table_phrase(&f->things[k].names, plain, i) > 0)
            return true;
    return (begins && is_kind(t, word)) || is_plural(t, word);
}

/* The end of the reason that begins at word `at`; 0: not a reason. It begins like a reason, or
 * states something ("dinner is ready"), and contains nothing that a command could be about. */
static uint32_t reason_end(const struct home_table *t, const struct home_file *f,
                           const struct home_words *w, const struct home_words *plain, uint32_t at)
{
    bool is =
        home_table_phrase(&t->reword.reasons, plain, at) > 0 || says_that_it_is(t, w, plain, at);
    uint32_t to = at, number;
    for (; to < plain->n && to - at < MAX_REASON; to++) {
        const char *word = plain->w[to];
        if ((word[0] >= '0' && word[0] <= '9') ||
            strmap_get(&t->numbers, word, strlen(word), &number) ||
            speaks_of_thing(t, f, plain, at, to) || home_table_lists(&t->days, word))
            return 0; /* "..., the one in the hall is fine" */
        if (home_words_end_in(w->w[to], ",.;!?"))
            break;
    }
    bool ends = to == plain->n || (to < plain->n && home_words_end_in(w->w[to], ",.;!"));
    struct home_words reason = {plain->w + at, to - at};
    return is && ends && to > at + 1 && home_speech_cue(t, &reason, NULL) == HOME_SPEECH_COMMAND
               ? to + (to < plain->n)
               : 0;
}

/* "Turn off the lights, we're late": the reason after a command adds nothing to it. */
static bool drop_why(struct arena *a, const struct home_table *t, const struct home_file *f,
                     struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    bool verb = plain.n > 0 && (home_table_word(t, plain.w[0]) & HOME_WORD_VERB) &&
                home_table_phrase(&t->cues[HOME_SPEECH_ASK], &plain, 0) == 0;
    for (uint32_t i = 0; i + 2 < plain.n; i++) {
        if ((home_table_word(t, plain.w[i]) & HOME_WORD_FREE_TEXT) ||
            home_table_lists(&t->pronouns, plain.w[i]))
            return false; /* it may be part of a message, or say what "it" is */
        bool begun = i > 0 && (verb || (home_table_word(t, plain.w[i]) & HOME_WORD_REPEAT_LAST));
        uint32_t to =
            begun && home_words_end_in(w->w[i], ",.;!") ? reason_end(t, f, w, &plain, i + 1) : 0;
        if (to == 0)
            continue;
        if (to == plain.n)
            w->w[i] = home_words_trim_end(a, w->w[i], ",;");
        cut(a, w, i + 1, to);
        return true;
    }
    return false;
}

/* "Ask Paula to send towels" is "tell Paula to send towels". */
static bool reword_tell(struct arena *a, const struct home_table *t, const struct home_file *f,
                        struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    const struct home_pair *tell = NULL;
    for (uint32_t i = 0; i < t->reword.tells.n && !tell; i++)
        if (plain.n > 2 && strcmp(plain.w[0], t->reword.tells.p[i].from) == 0)
            tell = &t->reword.tells.p[i];
    for (uint32_t i = 0; f && tell && i < f->n_things; i++)
        if (f->things[i].type == HOME_THING_PERSON &&
            home_table_phrase(&f->things[i].names, &plain, 1) > 0) {
            w->w[0] = tell->to;
            return true;
        }
    return false;
}

bool home_reword_things(struct arena *a, const struct home_table *t, const struct home_file *f,
                        struct home_words *w)
{
    bool changed = drop_manner(a, t, w);
    changed |= drop_why(a, t, f, w);
    changed |= reword_tell(a, t, f, w);
    changed |= reword_each(a, t, w);
    changed |= drop_everywhere(a, t, w);
    changed |= name_numbers(a, t, f, w);
    changed |= name_one(a, t, w);
    changed |= w->n > 0 && verb_first(a, t, f, w);
    return changed && a->rc == 0;
}

/* ---- exceptions ------------------------------------------------------------------------------ */

/* May the word be part of an exception: of the name of a thing or a room, or beside one? */
static bool may_except(const struct home_table *t, const struct home_file *f, const char *word)
{
    return home_table_lists(&t->reword.beside, word) || is_kind(t, word) || is_plural(t, word) ||
           (home_table_word(t, word) & (HOME_WORD_ARTICLE | HOME_WORD_JOIN)) ||
           home_table_lists(&t->front, word) || home_file_has_word(f, word);
}

const char *home_reword_except(struct arena *a, const struct home_table *t,
                               const struct home_file *f, struct home_words *w)
{
    struct home_words plain = home_words_plain_all(a, w);
    uint32_t at = 1, n = 0, to;
    while (at < plain.n && (n = home_table_phrase(&t->reword.except, &plain, at)) == 0)
        at++;
    if (!f || n == 0 || at + n >= plain.n)
        return NULL;
    for (to = at + n; to < plain.n; to++) {
        bool joins = (home_table_word(t, plain.w[to]) & HOME_WORD_JOIN) != 0;
        uint32_t next = to + joins;
        if (next < plain.n && (joins || home_words_end_in(w->w[to - 1], ",.;")) &&
            (home_table_word(t, plain.w[next]) & HOME_WORD_VERB))
            break; /* "... except the fridge and lock the door" */
        if (!may_except(t, f, plain.w[to]))
            return NULL; /* "but not too loud" */
    }
    const char *what =
        home_words_trim_end(a, home_words_join(a, w, at + n, to), HOME_WORDS_CLOSING);
    w->w[at - 1] = home_words_trim_end(a, w->w[at - 1], ",;");
    cut(a, w, at, to);
    return a->rc == 0 ? what : NULL;
}
