/* home_recall.c - see home_recall.h. */
#include "apps/home/home_recall.h"

#include <string.h>

#include "apps/home/later/home_due.h"

/* Where a phrase of the list occurs; n 0: nowhere. */
static uint32_t find_phrase(const struct home_words *w, const struct home_list *l, uint32_t *n)
{
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t best = 0;
        for (uint32_t k = 0; k < l->n; k++) {
            uint32_t len = home_words_phrase(w, i, l->w[k]);
            best = len > best ? len : best;
        }
        *n = best;
        if (best > 0)
            return i;
    }
    *n = 0;
    return 0;
}

struct search {
    struct arena *a;
    const struct home_table *t;
    const struct home_words *plain;
    bool *used; /* words that name no single entry */
    struct home_recall *out;
    bool begins;   /* it begins with a word that asks for a list */
    bool named;    /* words say which one */
    bool any_kind; /* the kind does not matter */
    int64_t now_ms;
};

static void use(struct search *s, uint32_t from, uint32_t n)
{
    for (uint32_t i = from; i < from + n && i < s->plain->n; i++)
        s->used[i] = true;
}

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
    if (!s->any_kind && x->kind != s->out->kind)
        return false;
    for (uint32_t i = 0; i < s->plain->n; i++)
        if (!s->used[i] && !has_word(s->a, x->what, s->plain->w[i]) &&
            !has_word(s->a, x->said, s->plain->w[i]))
            return false;
    return true;
}

static void add_fitting(void *ctx, const struct home_later_entry *x)
{
    struct search *s = ctx;
    struct home_recall *out = s->out;
    if (x->result || x->begun || out->n == HOME_LATER_MAX || !fits(s, x))
        return;
    const char *when = x->counted ? home_due_left(s->a, s->t, (x->due_ms - s->now_ms + 999) / 1000)
                                  : home_due_words(s->a, s->t, x->due_ms / 1000, s->now_ms / 1000);
    out->ids[out->n] = arena_printf(s->a, "%llu", (unsigned long long)x->id);
    out->names[out->n++] = out->want == HOME_RECALL_LIST
                               ? arena_printf(s->a, "%s (%s)", x->what, when)
                               : arena_printf(s->a, "%s", x->what);
}

/* What the user wants, from the words and the model's action. */
static void read_want(struct search *s, const struct home_recall_query *q)
{
    const struct home_later_table *l = &s->t->later;
    struct home_recall *out = s->out;
    bool kind_said = false, cancels = false;
    uint32_t n, at;
    for (uint32_t k = HOME_LATER_COUNT; k-- > 0 && !kind_said;) {
        at = find_phrase(s->plain, &l->words[k], &n);
        if (n == 0)
            continue;
        kind_said = true;
        out->kind = (enum home_later_kind)k;
        const char *last = s->plain->w[at + n - 1];
        out->all = k != HOME_LATER_ACTION && last[strlen(last) - 1] == 's';
        use(s, at, n);
    }
    for (uint32_t k = 0; k < HOME_LATER_COUNT && q->action; k++)
        if (q->action == l->cancel[k]) {
            cancels = true;
            out->kind = kind_said ? out->kind : (enum home_later_kind)k;
        }
    at = find_phrase(s->plain, &l->cancel_words, &n);
    /* "turn off the alarm" may mean the house: the model must have recognised an alarm clock */
    bool told = n > 0 && at <= 2 && kind_said && out->kind != HOME_LATER_ALARM;
    if (!q->asks && (cancels || told)) {
        out->want = HOME_RECALL_CANCEL;
        use(s, at, n);
        return;
    }
    bool other = q->action && q->action->reason; /* alarms of machines */
    at = find_phrase(s->plain, &l->list_words, &n);
    s->begins = at <= 1;
    if (q->action == l->list || (kind_said && n > 0 && !other)) {
        out->want = HOME_RECALL_LIST;
        out->kind = kind_said ? out->kind : HOME_LATER_TIMER;
    }
}

/* "pasta timer": the words that say which one, and the kind. */
static const char *said(struct search *s)
{
    const struct home_list *kind = &s->t->later.words[s->out->kind];
    const char *text = "";
    for (uint32_t i = 0; i < s->plain->n; i++)
        if (!s->used[i])
            text = arena_printf(s->a, "%s%s ", text, s->plain->w[i]);
    return arena_printf(s->a, "%s%s", text, kind->n ? kind->w[0] : "");
}

struct home_recall home_recall_find(struct arena *a, const struct home_table *t,
                                    struct home_later *l, const struct home_recall_query *q)
{
    struct home_recall out = {.what = ""};
    struct search s = {.a = a, .t = t, .plain = q->plain, .out = &out};
    s.used = arena_zalloc_n(a, (size_t)q->plain->n + 1, sizeof(*s.used));
    out.ids = arena_zalloc_n(a, HOME_LATER_MAX, sizeof(*out.ids));
    out.names = arena_zalloc_n(a, HOME_LATER_MAX, sizeof(*out.names));
    if (!t->later.list || !l || a->rc < 0 || q->plain->n == 0)
        return out;
    read_want(&s, q);
    if (out.want == HOME_RECALL_NOTHING)
        return out;
    s.now_ms = home_later_now_ms(l);
    for (uint32_t i = 0; i < q->plain->n; i++) {
        const char *w = q->plain->w[i];
        bool all = home_table_lists(&t->later.all, w);
        out.all |= all;
        s.used[i] |= all || out.want == HOME_RECALL_LIST || home_table_lists(&t->later.skip, w) ||
                     (home_table_word(t, w) & (HOME_WORD_ARTICLE | HOME_WORD_POLITE));
        s.named |= !s.used[i];
    }
    s.any_kind = out.kind == HOME_LATER_ACTION;
    home_later_each(l, add_fitting, &s);
    if (out.n == 0 && s.named) { /* "the heating timer" may be an action */
        s.any_kind = true;
        home_later_each(l, add_fitting, &s);
    }
    bool own = out.kind != HOME_LATER_ALARM; /* a machine has alarms too */
    for (uint32_t i = 0; i < q->plain->n; i++)
        own |= home_table_lists(&t->later.own, q->plain->w[i]);
    out.sure = out.want == HOME_RECALL_CANCEL ? out.n > 0 || !s.named : own && s.begins;
    out.what = said(&s);
    return out;
}
