/* home_turn.c - see home_turn.h. */
#include "apps/home/home_turn.h"

#include <string.h>

#include "apps/home/home_act.h"
#include "apps/home/later/home_due.h"

static const struct home_action *
action_of(const struct home_table *t, const struct ask_plan_action *o, enum home_later_turn *turn)
{
    for (uint32_t i = 0; i < HOME_LATER_TURNS; i++)
        if (t->later.turn[i] && strcmp(t->later.turn[i]->name, o->name) == 0) {
            *turn = (enum home_later_turn)i;
            return t->later.turn[i];
        }
    return NULL;
}

bool home_turn_is(const struct home_table *t, const struct ask_plan_action *o)
{
    enum home_later_turn turn;
    return action_of(t, o, &turn) != NULL;
}

struct lookup {
    struct arena *a;
    uint64_t id;
    struct home_later_entry *out;
    bool found;
};

static const char *keep(struct arena *a, const char *text)
{
    return text ? arena_printf(a, "%s", text) : NULL;
}

static void take(void *ctx, const struct home_later_entry *x)
{
    struct lookup *l = ctx;
    if (x->id != l->id || x->result || x->begun || l->found || !x->action)
        return;
    l->found = true;
    *l->out = *x;
    l->out->what = keep(l->a, x->what);
    l->out->said = keep(l->a, x->said);
    l->out->by = keep(l->a, x->by);
    l->out->again.words = keep(l->a, x->again.words);
    l->out->action = ask_plan_action_copy(x->action, l->a);
}

bool home_turn_find(struct arena *a, struct home_later *l, uint64_t id,
                    struct home_later_entry *out)
{
    struct lookup x = {.a = a, .id = id, .out = out};
    home_later_each(l, take, &x);
    return x.found && out->action;
}

/* The fields of a time are those of the change; a new time without a day has none. */
static void change_fields(struct ask_plan_action *to, const struct ask_plan_action *from)
{
    static const char *const keys[] = {"duration_s", "in_s", "time", "date"};
    uint32_t n = 0;
    for (uint32_t i = 0; i < to->n_fields; i++) {
        bool keeps = true;
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            keeps = keeps && strcmp(to->fields[i].key, keys[k]) != 0;
        if (keeps)
            to->fields[n++] = to->fields[i];
    }
    to->n_fields = n;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        const struct ask_plan_field *f = ask_plan_field_of(from, keys[k]);
        if (f && to->n_fields < ASK_PLAN_MAX_FIELDS)
            to->fields[to->n_fields++] = *f;
    }
}

bool home_turn_apply(struct arena *a, const struct home_table *t, const struct ask_plan_action *o,
                     int64_t now_ms, struct home_later_entry *x)
{
    enum home_later_turn turn;
    if (!action_of(t, o, &turn))
        return false;
    if (turn == HOME_LATER_PAUSE || turn == HOME_LATER_RESUME) {
        if (x->paused == (turn == HOME_LATER_PAUSE))
            return false;
        x->paused = !x->paused;
        x->left_ms = x->paused && x->due_ms > now_ms ? x->due_ms - now_ms : x->left_ms;
        x->due_ms = now_ms + x->left_ms;
        return true;
    }
    struct ask_plan_action *c = ask_plan_action_copy(x->action, a);
    if (!c || o->due_s == 0)
        return false;
    change_fields(c, o);
    x->action = c;
    x->due_ms = o->due_s * 1000;
    x->left_ms = x->due_ms - now_ms; /* a paused one stays so */
    x->counted = o->due_counted;
    x->what = home_act_words(a, t, c);
    return true;
}

const char *home_turn_when(struct arena *a, const struct home_table *t,
                           const struct home_later_entry *x, int64_t now_ms)
{
    const int64_t left_ms = x->paused ? x->left_ms : x->due_ms - now_ms;
    const char *left = home_due_left(a, t, (left_ms + 999) / 1000);
    if (x->paused)
        return home_table_part(a, t, HOME_PART_PAUSED, left, NULL);
    return x->counted ? left : home_due_words(a, t, x->due_ms / 1000, now_ms / 1000);
}
