/* home_lists.c - see home_lists.h. */
#include "apps/home/home_lists.h"

#include <string.h>

#include "apps/home/table/home_words.h"

#define MAX_ITEM_BYTES 100u
#define MAX_OWNER_BYTES 64u
#define LISTED "listed" /* the value of an item in the store */

struct collecting {
    struct arena *a;
    const char *id;
    const char **items;
    uint32_t n, cap;
};

static void collect(void *ctx, const char *id, const struct home_state *v)
{
    struct collecting *c = ctx;
    if (strcmp(id, c->id) == 0 && c->n < c->cap)
        c->items[c->n++] = arena_printf(c->a, "%s", v->ability);
}

static const char *joined(struct arena *a, const struct home_table *t, const char *const *w,
                          uint32_t n)
{
    const char *out = n > 0 ? w[0] : "";
    for (uint32_t i = 1; i < n; i++)
        out = i + 1 == n ? arena_printf(a, "%s %s %s", out, t->list_and, w[i])
                         : arena_printf(a, "%s, %s", out, w[i]);
    return out;
}

struct said {
    const char *items, *list;
};

static const char *get_said(void *ctx, uint32_t var)
{
    const struct said *s = ctx;
    return var == HOME_VAR_TEXT ? s->items : s->list;
}

static const char *say(struct arena *a, const struct home_table *t, enum home_say which,
                       const char *items, const char *list)
{
    struct said s = {items, list};
    return home_template_fill(a, &t->say[which], get_said, &s);
}

/* How the item is written in the list; NULL: it is not on it. */
static const char *found(const struct collecting *c, const char *item)
{
    const char *low = home_words_lower(c->a, item);
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(home_words_lower(c->a, c->items[i]), low) == 0)
            return c->items[i];
    return NULL;
}

struct doing {
    struct arena *a;
    const struct home_table *t;
    struct home_states *lists;
    struct collecting has;
    const char *list;
    const char *const *items;
    uint32_t n_items;
};

static const char *do_add(struct doing *d)
{
    uint32_t n = 0;
    const char **added = arena_zalloc_n(d->a, (size_t)d->n_items + 1, sizeof(*added));
    for (uint32_t i = 0; added && i < d->n_items; i++) {
        const char *old = found(&d->has, d->items[i]);
        home_states_set(d->lists, d->has.id,
                        &(struct home_state){.ability = old ? old : d->items[i], .text = LISTED});
        struct home_state now; /* what is said to be on it must be */
        if (home_states_get(d->lists, d->a, d->has.id, old ? old : d->items[i], &now))
            added[n++] = d->items[i];
    }
    return n > 0 ? say(d->a, d->t, HOME_SAY_LIST_ADDED, joined(d->a, d->t, added, n), d->list)
                 : NULL;
}

static const char *do_remove(struct doing *d)
{
    uint32_t n = 0, m = 0;
    const char **gone = arena_zalloc_n(d->a, (size_t)d->n_items + 1, sizeof(*gone)),
               **missing = arena_zalloc_n(d->a, (size_t)d->n_items + 1, sizeof(*missing));
    for (uint32_t i = 0; gone && missing && i < d->n_items; i++) {
        const char *old = found(&d->has, d->items[i]);
        if (old && home_states_forget(d->lists, d->has.id, old))
            gone[n++] = d->items[i];
        else
            missing[m++] = d->items[i];
    }
    const char *done =
        n ? say(d->a, d->t, HOME_SAY_LIST_REMOVED, joined(d->a, d->t, gone, n), d->list) : "";
    const char *not =
        m ? say(d->a, d->t, HOME_SAY_LIST_MISSING, joined(d->a, d->t, missing, m), d->list) : "";
    return arena_printf(d->a, "%s%s%s", done, n && m ? " " : "", not );
}

static const char *do_clear(struct doing *d)
{
    for (uint32_t i = 0; i < d->has.n; i++)
        (void)home_states_forget(d->lists, d->has.id, d->has.items[i]);
    return say(d->a, d->t, HOME_SAY_LIST_EMPTY, "", d->list);
}

static const char *do_ask(const struct doing *d)
{
    uint32_t n = 0;
    const char **missing = arena_zalloc_n(d->a, (size_t)d->n_items + 1, sizeof(*missing));
    for (uint32_t i = 0; missing && i < d->n_items; i++)
        if (!found(&d->has, d->items[i]))
            missing[n++] = d->items[i];
    if (n > 0)
        return say(d->a, d->t, HOME_SAY_LIST_MISSING, joined(d->a, d->t, missing, n), d->list);
    if (d->has.n == 0)
        return say(d->a, d->t, HOME_SAY_LIST_EMPTY, "", d->list);
    return say(d->a, d->t, HOME_SAY_LIST_ITEMS, joined(d->a, d->t, d->has.items, d->has.n),
               d->list);
}

struct naming { /* the names of an owner's lists, each once */
    struct collecting c;
    size_t owner; /* bytes of "OWNER/" */
};

static void collect_name(void *ctx, const char *id, const struct home_state *v)
{
    struct naming *n = ctx;
    struct collecting *c = &n->c;
    (void)v;
    if (strncmp(id, c->id, n->owner) != 0 || c->n == c->cap)
        return;
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->items[i], id + n->owner) == 0)
            return;
    c->items[c->n++] = arena_printf(c->a, "%s", id + n->owner);
}

/* Which lists hold something: one without items is not kept. */
static const char *do_all(const struct doing *d)
{
    struct naming n = {.c = {.a = d->a, .id = d->has.id, .cap = ASK_PLAN_MAX_LIST}};
    n.c.items = arena_zalloc_n(d->a, n.c.cap, sizeof(*n.c.items));
    n.owner = (size_t)(strrchr(d->has.id, '/') - d->has.id) + 1;
    if (n.c.items)
        home_states_each(d->lists, collect_name, &n);
    return n.c.n > 0
               ? say(d->a, d->t, HOME_SAY_LIST_NAMES, joined(d->a, d->t, n.c.items, n.c.n), "")
               : say(d->a, d->t, HOME_SAY_LIST_NONE, "", "");
}

/* A copy of the action with another result, and with the items of the list as they are now. */
static void set_result(struct doing *d, struct home_draft *draft, uint32_t i, const char *result)
{
    struct ask_plan_action *o = arena_zalloc(d->a, sizeof(*o));
    struct collecting now = {.a = d->a, .id = d->has.id, .items = d->has.items, .cap = d->has.cap};
    if (!o)
        return;
    *o = *draft->actions[i];
    o->n_fields = 0;
    for (uint32_t k = 0; k < draft->actions[i]->n_fields; k++) {
        struct ask_plan_field f = draft->actions[i]->fields[k];
        if (strcmp(f.key, "reason") == 0) /* of an answer without lists */
            continue;
        if (strcmp(f.key, "result") == 0)
            f.text = result;
        o->fields[o->n_fields++] = f;
    }
    home_states_each(d->lists, collect, &now);
    if (now.n > 0 && o->n_fields < ASK_PLAN_MAX_FIELDS)
        o->fields[o->n_fields++] =
            (struct ask_plan_field){.key = "items", .items = now.items, .n_items = now.n};
    draft->actions[i] = o;
}

static void settle(struct doing *d, struct home_draft *draft, uint32_t i,
                   const struct home_action *x)
{
    const struct home_lists_table *l = &d->t->lists;
    const struct ask_plan_field *item = ask_plan_field_of(draft->actions[i], "item");
    d->items = item ? item->text ? (const char *const *)&item->text : item->items : NULL;
    d->n_items = item ? item->text ? 1 : item->n_items : 0;
    home_states_each(d->lists, collect, &d->has);
    const char *text = x == l->add      ? do_add(d)
                       : x == l->remove ? do_remove(d)
                       : x == l->clear  ? do_clear(d)
                       : x == l->all    ? do_all(d)
                                        : do_ask(d);
    set_result(d, draft, i, text ? "done" : "failed");
    for (uint32_t k = 0; k < draft->n_lines; k++)
        if (draft->lines[k].action == i + 1)
            draft->lines[k] = (struct home_draft_line){
                .say = text ? text : say(d->a, d->t, HOME_SAY_LIST_FULL, "", d->list),
                .action = i + 1};
}

void home_lists_settle(struct arena *a, const struct home_table *t, struct home_draft *draft,
                       struct home_states *lists, const char *owner)
{
    const struct home_lists_table *l = &t->lists;
    for (uint32_t i = 0; l->add && i < draft->n_actions; i++) {
        const struct ask_plan_action *o = draft->actions[i];
        const struct home_action *x = home_table_action(t, o->name);
        const char *list = ask_plan_text_of(o, "list"), *result = ask_plan_text_of(o, "result");
        bool asks = x && (x == l->ask || x == l->all);
        bool ours = x && (asks || x == l->add || x == l->remove || x == l->clear || x == l->create);
        bool now = result && (strcmp(result, "done") == 0 || asks);
        if (!ours || !now || (asks && strcmp(result, "ask") == 0))
            continue;
        struct doing d = {.a = a, .t = t, .lists = lists, .list = list ? list : l->usual};
        d.has = (struct collecting){.a = a, .cap = ASK_PLAN_MAX_LIST};
        d.has.id =
            arena_printf(a, "%.*s/%.*s", (int)MAX_OWNER_BYTES, owner, (int)MAX_ITEM_BYTES, d.list);
        d.has.items = arena_zalloc_n(a, d.has.cap, sizeof(*d.has.items));
        if (d.has.items)
            settle(&d, draft, i, x);
    }
}
