/* home_recall.c - see home_recall.h. */
#include "apps/home/home_recall.h"

#include <string.h>

#include "apps/home/home_turn.h"

struct search {
    struct arena *a;
    const struct home_table *t;
    const struct home_recall_query *q;
    struct home_words which; /* words that say which one */
    struct home_recall *out;
    bool any_kind, by_name;
    int64_t now_ms;
};

/* Does a text have the word, in the singular or plural? */
static bool has_word(struct arena *a, const char *text, const char *word)
{
    struct home_words split = home_words_split(a, home_words_lower(a, text ? text : ""));
    struct home_words w = home_words_plain_all(a, &split);
    size_t n = strlen(word);
    n -= n > 3 && word[n - 1] == 's';
    for (uint32_t i = 0; i < w.n; i++) {
        size_t m = strlen(w.w[i]);
        m -= m > 3 && w.w[i][m - 1] == 's';
        if (m == n && strncmp(w.w[i], word, n) == 0)
            return true;
    }
    return false;
}

static bool fits(struct search *s, const struct home_later_entry *x)
{
    if (!s->any_kind && x->kind != s->q->kind)
        return false;
    for (uint32_t i = 0; i < s->which.n; i++)
        if (!has_word(s->a, x->what, s->which.w[i]) && !has_word(s->a, x->said, s->which.w[i]))
            return false;
    return true;
}

/* Is the entry's own name among the words? "The bread one" is the timer named bread. */
static bool is_called(struct search *s, const struct home_later_entry *x)
{
    const char *name = x->action ? ask_plan_text_of(x->action, "name") : NULL;
    struct home_words w = home_words_split(s->a, home_words_lower(s->a, name ? name : ""));
    for (uint32_t i = 0; i < w.n; i++) {
        bool said = false;
        for (uint32_t k = 0; k < s->which.n && !said; k++)
            said = strcmp(s->which.w[k], w.w[i]) == 0;
        if (!said)
            return false;
    }
    return w.n > 0;
}

static void add_fitting(void *ctx, const struct home_later_entry *x)
{
    struct search *s = ctx;
    struct home_recall *out = s->out;
    if (x->result || x->begun || out->n == HOME_LATER_MAX ||
        !(s->by_name ? is_called(s, x) : fits(s, x)))
        return;
    out->ids[out->n] = arena_printf(s->a, "%llu", (unsigned long long)x->id);
    out->names[out->n++] =
        s->q->due ? arena_printf(s->a, "%s (%s)", x->what, home_turn_when(s->a, s->t, x, s->now_ms))
                  : arena_printf(s->a, "%s", x->what);
}

/* Words that say which one: not "cancel", "timer", "the", "please". */
static void choose_words(struct search *s, const struct home_words *w)
{
    const struct home_later_table *l = &s->t->later;
    s->which.w = arena_zalloc_n(s->a, (size_t)w->n + 1, sizeof(*s->which.w));
    s->any_kind = s->q->kind == HOME_LATER_ACTION;
    for (uint32_t i = 0, n; s->which.w && i<w->n; i += n> 0 ? n : 1) {
        const char *word = w->w[i];
        n = home_table_phrase(&l->cancel_words, w, i);
        for (uint32_t k = 0; n == 0 && k < HOME_LATER_COUNT; k++) {
            n = home_table_phrase(&l->words[k], w, i);
            s->any_kind |= n > 0 && k == HOME_LATER_ACTION; /* "what is scheduled" */
        }
        if (n == 0 && !home_table_lists(&l->all, word) && !home_table_lists(&l->skip, word) &&
            !home_table_lists(&s->t->articles, word) && !home_table_lists(&s->t->polite, word))
            s->which.w[s->which.n++] = word;
    }
}

struct home_recall home_recall_find(struct arena *a, const struct home_table *t,
                                    struct home_later *l, const struct home_recall_query *q)
{
    struct home_recall out = {.what = ""};
    struct search s = {.a = a, .t = t, .q = q, .out = &out};
    const struct home_list *kind = &t->later.words[q->kind];
    out.ids = arena_zalloc_n(a, HOME_LATER_MAX, sizeof(*out.ids));
    out.names = arena_zalloc_n(a, HOME_LATER_MAX, sizeof(*out.names));
    if (q->words)
        choose_words(&s, q->words);
    if (a->rc < 0)
        return out;
    s.now_ms = l ? home_later_now_ms(l) : 0;
    if (l)
        home_later_each(l, add_fitting, &s);
    s.any_kind = true;
    if (l && out.n == 0 && s.which.n > 0)
        home_later_each(l, add_fitting, &s);
    s.by_name = true; /* more was said than its name */
    if (l && out.n == 0 && s.which.n > 0)
        home_later_each(l, add_fitting, &s);
    for (uint32_t i = 0; i < s.which.n; i++)
        out.what = arena_printf(a, "%s%s ", out.what, s.which.w[i]);
    out.what = arena_printf(a, "%s%s", out.what, kind->n ? kind->w[0] : "");
    return out;
}
