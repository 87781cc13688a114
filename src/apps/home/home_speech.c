/* home_speech.c - see home_speech.h. */
#include "apps/home/home_speech.h"

#include <string.h>

#include "apps/home/home_clauses.h"

#define MAX_TAIL 8u   /* words of "if you would be so kind" */
#define MAX_CUE_AT 8u /* words in front of a question's first word */

/* ---- cues ----------------------------------------------------------------------------------- */

/* Is a phrase of the list at i..., with no word of it covered? */
static bool cue_at(const struct home_list *l, const struct home_words *w, uint32_t i,
                   const bool *covered, uint32_t kept)
{
    uint32_t n = home_table_phrase(l, w, i);
    for (uint32_t k = 0; k < n; k++)
        if (covered && covered[i + k])
            return false;
    return n > kept; /* a longer phrase of "keep" takes its meaning away */
}

enum home_speech home_speech_cue(const struct home_table *t, const struct home_words *plain,
                                 const bool *covered)
{
    bool opening = true;
    for (uint32_t i = 0; i < plain->n; i++) {
        uint32_t kept = home_table_phrase(&t->keep, plain, i);
        for (enum home_speech s = HOME_SPEECH_NEGATE; s < HOME_SPEECH_NONE; s++)
            if (cue_at(&t->cues[s], plain, i, covered, kept))
                return s;
        if (opening && i < MAX_CUE_AT && cue_at(&t->cues[HOME_SPEECH_ASK], plain, i, covered, kept))
            return HOME_SPEECH_ASK;
        opening = opening && (home_table_word(t, plain->w[i]) & HOME_WORD_POLITE);
        if (kept > 1) { /* "don't forget to": none of its words is a cue */
            i += kept - 1;
            opening = false;
        }
    }
    return HOME_SPEECH_COMMAND;
}

uint32_t home_speech_takes_back(const struct home_table *t, const struct home_words *plain)
{
    for (uint32_t i = 0; i < plain->n && i < 3; i++) { /* "nah, skip it" */
        uint32_t n = home_table_phrase(&t->cues[HOME_SPEECH_RETRACT], plain, i);
        if (n > 0)
            return i + n;
        if (!(home_table_word(t, plain->w[i]) & (HOME_WORD_DROP | HOME_WORD_POLITE)) &&
            home_table_phrase(&t->no, plain, i) != 1)
            break;
    }
    return 0;
}

bool home_speech_pronoun(const struct home_table *t, const struct home_words *plain, uint32_t from)
{
    for (uint32_t i = from; i < plain->n; i++)
        if (home_table_lists(&t->pronouns, plain->w[i]))
            return true;
    return false;
}

void home_speech_unwrap(const struct home_table *t, const struct home_words *plain, uint32_t *from,
                        uint32_t *to)
{
    uint32_t at = 0, end = plain->n;
    for (uint32_t n; at < plain->n && (n = home_table_phrase(&t->wrap, plain, at)) > 0;)
        at += n;
    /* "do" is only left out before a verb: "do lock the door", not "do you ..." */
    if (at > 0 && at < plain->n && (home_table_word(t, plain->w[at]) & HOME_WORD_VERB) &&
        home_table_phrase(&t->cues[HOME_SPEECH_ASK], plain, at) == 0)
        *from = at;
    else
        *from = 0;
    for (bool more = true; more;) {
        more = false;
        uint32_t first = end > *from + 1 + MAX_TAIL ? end - MAX_TAIL : *from + 1;
        for (uint32_t k = first; k < end && !more; k++) {
            uint32_t n = home_table_phrase(&t->tail, plain, k);
            more = n > 0 && k + n == end;
            end = more ? k : end;
        }
    }
    *to = end;
}

/* ---- pieces --------------------------------------------------------------------------------- */

struct pieces {
    struct arena *a;
    const struct home_table *t;
    const struct home_words *words;
    struct home_words plain;
    struct home_said *out;
    uint32_t n, max;
    struct home_words cur; /* words of a command that may continue */
    float p;
};

/* The first cue among words from..to-1 before or after a command. */
static enum home_speech cue_beside(const struct pieces *x, uint32_t from, uint32_t to)
{
    struct home_words w = {x->plain.w + from, to - from};
    return from < to ? home_speech_cue(x->t, &w, NULL) : HOME_SPEECH_COMMAND;
}

static bool ends_sentence(const struct pieces *x, uint32_t i)
{
    return home_words_end_in(x->words->w[i], ".!?;") &&
           !(home_table_word(x->t, home_words_lower(x->a, x->words->w[i])) & HOME_WORD_TITLE);
}

/* How the rest of the sentence changes a command: "in case of fire, ...", "... the moment he
 * leaves". Other commands, and parts that begin with "and" or "but", do not belong to that rest. */
static enum home_speech rest_of_sentence(const struct pieces *x, const struct home_part *parts,
                                         uint32_t n_parts, uint32_t i)
{
    uint32_t from = parts[i].from, to = parts[i].to;
    uint32_t least = 0, most = x->words->n;
    for (uint32_t k = 0; k < n_parts; k++) {
        bool own = parts[k].speech == HOME_SPEECH_COMMAND || parts[k].speech == HOME_SPEECH_RETRACT;
        if (own && k < i)
            least = parts[k].to;
        if (own && k > i && parts[k].from < most)
            most = parts[k].from;
    }
    while (from > least && !ends_sentence(x, from - 1))
        from--;
    while (to < most && !ends_sentence(x, to - 1) &&
           !(home_table_word(x->t, x->plain.w[to]) & HOME_WORD_JOIN) &&
           !home_table_lists(&x->t->but, x->plain.w[to]))
        to++;
    for (uint32_t k = from; k < parts[i].from; k++) /* "don't X, but Y" */
        if ((home_table_word(x->t, x->plain.w[k]) & HOME_WORD_JOIN) ||
            home_table_lists(&x->t->but, x->plain.w[k]))
            from = k + 1;
    enum home_speech before = cue_beside(x, from, parts[i].from);
    bool denies = i > 0 && parts[i - 1].speech == HOME_SPEECH_NEGATE; /* a separate clause */
    if (before != HOME_SPEECH_COMMAND && !(before == HOME_SPEECH_NEGATE && denies))
        return before;
    enum home_speech after = cue_beside(x, parts[i].to, to);
    return after == HOME_SPEECH_SUPPOSE || after == HOME_SPEECH_RETRACT ? after
                                                                        : HOME_SPEECH_COMMAND;
}

static void add(struct pieces *x, const char *text, enum home_speech speech, float p)
{
    if (x->n < x->max && *text)
        x->out[x->n++] = (struct home_said){text, speech, p};
    else if (*text)
        x->n = x->max + 1; /* too many, which the caller reports */
}

static void end_command(struct pieces *x)
{
    const char **list;
    if (x->cur.n == 0)
        return;
    uint32_t n = home_clauses_split(x->a, x->t, home_words_join(x->a, &x->cur, 0, x->cur.n), &list);
    bool conditional = false; /* "provided it rains, close the window": the comma splits it */
    for (uint32_t i = 0; i < n; i++) {
        struct home_words w = home_words_split(x->a, list[i]);
        struct home_words plain = home_words_plain_all(x->a, &w);
        add(x, list[i], conditional ? HOME_SPEECH_SUPPOSE : HOME_SPEECH_COMMAND, x->p);
        conditional = (conditional || home_speech_cue(x->t, &plain, NULL) == HOME_SPEECH_SUPPOSE) &&
                      !home_words_end_in(list[i], ".;!?");
    }
    x->cur.n = 0;
}

/* Skips words that only join or are polite. */
static bool is_filler(const struct home_table *t, const char *word, struct arena *a)
{
    const char *plain = home_words_plain(a, word);
    return !*plain || (home_table_word(t, plain) & (HOME_WORD_DROP | HOME_WORD_JOIN));
}

static bool begins_command(const struct pieces *x, const struct home_part *p)
{
    for (uint32_t i = p->from; i < p->to; i++) {
        uint32_t kind = home_table_word(x->t, home_words_plain(x->a, x->words->w[i]));
        if (kind & HOME_WORD_VERB)
            return true;
        if (!(kind & (HOME_WORD_POLITE | HOME_WORD_DROP)))
            return false;
    }
    return true;
}

/* "What time is it and what is the date": each question by itself; false: it is one. */
static bool add_questions(struct pieces *x, const char *text, float p)
{
    const char **list;
    uint32_t n = home_clauses_split(x->a, x->t, text, &list);
    for (uint32_t i = 0; i < n; i++) {
        struct home_words w = home_words_split(x->a, list[i]);
        struct home_words plain = home_words_plain_all(x->a, &w);
        if (home_table_phrase(&x->t->cues[HOME_SPEECH_ASK], &plain, 0) == 0)
            return false;
    }
    for (uint32_t i = 0; n > 1 && i < n; i++)
        add(x, list[i], HOME_SPEECH_ASK, p);
    return n > 1;
}

static void add_part(struct pieces *x, const struct home_part *p)
{
    uint32_t from = p->from, to = p->to;
    bool command = p->speech == HOME_SPEECH_COMMAND;
    /* "the kitchen and bedroom lights", "20, no, 22 degrees": no verb, so the command continues */
    bool goes_on = command && x->cur.n > 0 && !begins_command(x, p);
    while (from < to && !goes_on && is_filler(x->t, x->words->w[from], x->a))
        from++;
    if (from == to)
        return;
    for (uint32_t k = from + 1; p->speech == HOME_SPEECH_RETRACT && k < to; k++)
        if (home_table_phrase(&x->t->cues[HOME_SPEECH_RETRACT], &x->plain, k) > 0 ||
            home_table_phrase(&x->t->reword.corrects, &x->plain, k) > 0 ||
            home_table_phrase(&x->t->no, &x->plain, k) > 0)
            to = k; /* the loop ends */
    if (p->speech != HOME_SPEECH_COMMAND) {
        const char *text =
            home_words_trim_end(x->a, home_words_join(x->a, x->words, from, to), ",;");
        if (p->speech != HOME_SPEECH_ASK || !add_questions(x, text, p->p))
            add(x, text, p->speech, p->p);
        return;
    }
    if (!goes_on) {
        end_command(x);
        x->p = p->p;
    }
    x->p = p->p < x->p ? p->p : x->p;
    for (uint32_t i = from; i < to; i++)
        x->cur.w[x->cur.n++] = x->words->w[i];
}

/* Do the words from `at` on continue the sentence without a comma or a joining word? */
static bool goes_on_at(const struct pieces *x, uint32_t at)
{
    return at > 0 && !home_words_end_in(x->words->w[at - 1], ",.;:!?") &&
           !(home_table_word(x->t, x->plain.w[at]) & HOME_WORD_JOIN) &&
           !home_table_lists(&x->t->but, x->plain.w[at]);
}

uint32_t home_speech_pieces(struct arena *a, const struct home_table *t,
                            const struct home_words *words, const struct home_part *parts,
                            uint32_t n_parts, struct home_said **out, uint32_t max)
{
    struct pieces x = {.a = a, .t = t, .words = words, .max = max};
    x.plain = home_words_plain_all(a, words);
    x.out = arena_zalloc_n(a, (size_t)max + 1, sizeof(*x.out));
    x.cur.w = arena_zalloc_n(a, (size_t)words->n + 1, sizeof(*x.cur.w));
    *out = x.out;
    uint32_t at = 0;
    for (uint32_t i = 0; a->rc == 0 && i <= n_parts; i++) {
        uint32_t to = i < n_parts ? parts[i].from : words->n;
        if (at < to) {
            const struct home_part gap = {at, to, HOME_SPEECH_NONE, 0.0f};
            bool filler = true;
            for (uint32_t k = at; k < to; k++)
                filler = filler && is_filler(t, words->w[k], a);
            if (!filler && x.cur.n > 0 &&
                goes_on_at(&x, at)) { /* the model lost track in a phrase */
                for (uint32_t k = at; k < to; k++)
                    x.cur.w[x.cur.n++] = words->w[k];
            } else if (!filler) {
                end_command(&x);
                add_part(&x, &gap);
            }
        }
        if (i == n_parts)
            break;
        /* a correction inside a command is not a separate piece */
        bool inside = parts[i].speech == HOME_SPEECH_RETRACT && x.cur.n > 0 && i + 1 < n_parts &&
                      parts[i + 1].speech == HOME_SPEECH_COMMAND &&
                      !begins_command(&x, &parts[i + 1]);
        struct home_part p = parts[i];
        if (p.speech == HOME_SPEECH_COMMAND)
            p.speech = rest_of_sentence(&x, parts, n_parts, i);
        if (!inside && p.speech != HOME_SPEECH_COMMAND)
            end_command(&x);
        if (!inside)
            add_part(&x, &p);
        at = parts[i].to;
    }
    end_command(&x);
    return a->rc < 0 ? 0 : x.n;
}
