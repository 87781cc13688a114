/* home_clauses.c - see home_clauses.h. */
#include "apps/home/home_clauses.h"

#include <string.h>

#include "apps/home/table/home_words.h"

#define MAX_SHORT 6u /* words of "corridor lights off" */

struct splitter {
    struct arena *a;
    const struct home_table *t;
    struct home_words all, plain; /* the text's words, as written and plain */
    uint32_t *kinds;              /* of the plain words: HOME_WORD_* */
    struct home_words cur;        /* the clause so far, as written and plain */
    const char **cur_plain;
    const char **out;
    uint32_t n_out;
};

static void add_word(struct splitter *s, const char *word, const char *plain)
{
    s->cur_plain[s->cur.n] = plain;
    s->cur.w[s->cur.n++] = word;
}

static void end_clause(struct splitter *s)
{
    if (s->cur.n > 0)
        s->out[s->n_out++] =
            home_words_trim_end(s->a, home_words_join(s->a, &s->cur, 0, s->cur.n), ",;");
    s->cur.n = 0;
}

static bool is(const struct splitter *s, const char *word, uint32_t kind)
{
    return home_table_word(s->t, word) & kind;
}

static const char *clause_verb(const struct splitter *s)
{
    for (uint32_t i = 0; i < s->cur.n; i++)
        if (!is(s, s->cur_plain[i], HOME_WORD_POLITE))
            return s->cur_plain[i];
    return s->cur.n ? s->cur_plain[0] : "";
}

/* "... and the heating on": does the clause reuse the verb? */
static bool repeats_verb(const struct splitter *s, uint32_t j, const char *verb)
{
    bool before = false, any = false;
    for (uint32_t i = 0; i < s->cur.n; i++)
        before |= is(s, s->cur_plain[i], HOME_WORD_REPEAT_BEFORE);
    if (!(s->kinds[j] & HOME_WORD_REPEAT_FIRST) || !is(s, verb, HOME_WORD_REPEAT_VERB) || !before)
        return false;
    uint32_t k = j;
    while (k + 1 < s->all.n && !home_words_end_in(s->all.w[k], ",.;!?") &&
           !(s->kinds[k + 1] & HOME_WORD_JOIN))
        k++;
    for (uint32_t i = j; i <= k; i++)
        any |= (s->kinds[i] & HOME_WORD_REPEAT_ANY) != 0;
    return any || (s->kinds[k] & HOME_WORD_REPEAT_LAST);
}

/* "tv off and corridor lights off": does a clause without a verb that ends in on or off come before
 * another one? */
static bool says_again(const struct splitter *s, uint32_t j)
{
    if (!is(s, s->cur_plain[s->cur.n - 1], HOME_WORD_REPEAT_LAST))
        return false;
    for (uint32_t i = 0; i < s->cur.n; i++)
        if (is(s, s->cur_plain[i], HOME_WORD_VERB))
            return false;
    uint32_t k = j;
    while (k + 1 < s->all.n && !home_words_end_in(s->all.w[k], ",.;!?") &&
           !(s->kinds[k + 1] & (HOME_WORD_JOIN | HOME_WORD_VERB)))
        k++;
    for (uint32_t i = j + 1; i <= k && i - j < MAX_SHORT; i++) /* "... off in five minutes" */
        if ((s->kinds[i] & HOME_WORD_REPEAT_LAST) &&
            (i == k || home_table_lists(&s->t->front, s->plain.w[i + 1])))
            return true;
    return false;
}

/* Does a clause begin at word *at? Then moves *at to its first word, with a repeated verb put in
 * front. */
static bool begins(struct splitter *s, uint32_t *at)
{
    const char *last = s->cur.w[s->cur.n - 1];
    bool hard =
        home_words_end_in(last, ".;!?") && !is(s, home_words_lower(s->a, last), HOME_WORD_TITLE);
    bool always = false, joined = home_words_end_in(last, ",");
    uint32_t j = *at;
    for (; j < s->all.n && (s->kinds[j] & HOME_WORD_DROP); j++) {
        always |= (s->kinds[j] & HOME_WORD_JOIN_ALWAYS) != 0;
        joined |= (s->kinds[j] & HOME_WORD_JOIN) != 0;
    }
    if (j == s->all.n)
        return false;
    const char *verb = clause_verb(s);
    if (hard) {
        end_clause(s);
    } else if (!joined || (is(s, verb, HOME_WORD_FREE_TEXT) && !always)) {
        return false;
    } else if ((s->kinds[j] & HOME_WORD_VERB) || says_again(s, j)) {
        end_clause(s);
    } else if (repeats_verb(s, j, verb)) {
        end_clause(s);
        add_word(s, verb, verb);
    } else {
        return false;
    }
    *at = j;
    return true;
}

uint32_t home_clauses_split(struct arena *a, const struct home_table *t, const char *text,
                            const char ***out)
{
    struct splitter s = {.a = a, .t = t, .all = home_words_split(a, text)};
    size_t room = (size_t)s.all.n * 2 + 2; /* a repeated verb is one more word */
    s.plain = home_words_plain_all(a, &s.all);
    s.kinds = arena_zalloc_n(a, room, sizeof(*s.kinds));
    s.cur.w = arena_zalloc_n(a, room, sizeof(*s.cur.w));
    s.cur_plain = arena_zalloc_n(a, room, sizeof(*s.cur_plain));
    s.out = arena_zalloc_n(a, room, sizeof(*s.out));
    *out = s.out;
    if (a->rc < 0)
        return 0;
    for (uint32_t i = 0; i < s.all.n; i++)
        s.kinds[i] = home_table_word(t, s.plain.w[i]);
    bool fresh = true; /* the word at i begins a clause already */
    for (uint32_t i = 0; i < s.all.n;) {
        if (!fresh && s.cur.n > 0 && begins(&s, &i)) {
            fresh = true;
            continue;
        }
        add_word(&s, s.all.w[i], s.plain.w[i]);
        fresh = false;
        i++;
    }
    end_clause(&s);
    return a->rc < 0 ? 0 : s.n_out;
}
