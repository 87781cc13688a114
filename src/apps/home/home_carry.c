/* home_carry.c - see home_carry.h. */
#include "apps/home/home_carry.h"

#include <stdlib.h>
#include <string.h>

#include "apps/home/home_act.h"
#include "apps/home/gate/gate_plan.h"
#include "apps/home/home_denied.h"
#include "apps/home/home_turn.h"
#include "apps/home/later/home_later_action.h"

static const char *text_of(const struct ask_plan_action *o, const char *key)
{
    const struct ask_plan_field *f = ask_plan_field_of(o, key);
    return f && f->text ? f->text : "";
}

static bool is_question(const struct home_table *t, const struct ask_plan_action *o)
{
    const struct home_action *x = home_table_action(t, o->name);
    return !x || x->answer.n > 0 || x->reason;
}

static bool happens_now(const struct home_table *t, const struct ask_plan_action *o)
{
    return !is_question(t, o) && strcmp(text_of(o, "result"), "done") == 0;
}

/* ---- deeds ---------------------------------------------------------------------------------- */

uint32_t home_carry_deeds(struct arena *a, const struct gate *g, const struct home_draft *d,
                          struct home_carry **out)
{
    struct home_deed **deeds = arena_zalloc_n(a, (size_t)d->n_actions + 1, sizeof(*deeds));
    uint32_t *counts = arena_zalloc_n(a, (size_t)d->n_actions + 1, sizeof(*counts)), all = 0, n = 0;
    *out = NULL;
    for (uint32_t i = 0; deeds && counts && i < d->n_actions; i++) {
        if (happens_now(g->table, d->actions[i]))
            counts[i] = gate_plan_deeds(a, g, d->actions[i], &deeds[i]);
        all += counts[i];
    }
    struct home_carry *v = arena_zalloc_n(a, (size_t)all + 1, sizeof(*v));
    if (a->rc < 0)
        return 0;
    for (uint32_t i = 0; i < d->n_actions; i++)
        for (uint32_t k = 0; k < counts[i]; k++, n++) {
            v[n] = (struct home_carry){.deed = deeds[i][k], .action = i};
            v[n].listed = g->file && home_file_thing(g->file, v[n].deed.id);
        }
    *out = v;
    return n;
}

void home_carry_check(struct arena *a, const struct gate *g, const struct home_draft *d,
                      struct home_carry *v, uint32_t n, bool confirmed)
{
    for (uint32_t i = 0; i < d->n_actions; i++) {
        if (!happens_now(g->table, d->actions[i]))
            continue;
        struct gate_verdict x = gate_plan_check(a, g, d->actions[i], confirmed);
        const char *why = home_denied(a, g->table, &x);
        for (uint32_t k = 0; k < n && why; k++)
            if (v[k].action == i) {
                v[k].denied = true;
                v[k].reason = why;
            }
    }
}

/* Between the check of the whole action and this one the home may have changed. */

bool home_carry_send(const struct gate *g, struct home_sink *sink, struct home_carry *c,
                     bool confirmed, home_sink_done_fn done, void *ctx)
{
    if (c->denied)
        return false;
    struct gate_verdict v = gate_carry(g, c->listed ? sink : NULL, &c->deed, confirmed, done, ctx);
    c->deed = v.deed; /* the state will be what was sent */
    c->denied = v.answer != GATE_PASS;
    return !c->denied && sink && c->listed;
}

/* ---- later ---------------------------------------------------------------------------------- */

static const struct home_action *opposite_of(const struct home_table *t,
                                             const struct home_action *x)
{
    for (uint32_t i = 0; x && i < t->n_opposites; i++)
        for (uint32_t k = 0; k < 2; k++)
            if (t->opposites[i].action[k] == x)
                return t->opposites[i].action[!k];
    return NULL;
}

/* The action at the time it is carried out: without the words about time. */
static struct ask_plan_action *then(struct arena *a, const struct ask_plan_action *o)
{
    static const char *const of_now[] = {"result", "in_s", "time", "date", "risk", "token"};
    struct ask_plan_action *c = arena_zalloc(a, sizeof(*c));
    if (!c)
        return NULL;
    c->name = o->name;
    for (uint32_t i = 0; i < o->n_fields; i++) {
        bool keep = true;
        for (size_t k = 0; k < sizeof(of_now) / sizeof(of_now[0]); k++)
            keep &= strcmp(o->fields[i].key, of_now[k]) != 0;
        if (keep)
            c->fields[c->n_fields++] = o->fields[i];
    }
    return c;
}

static void drop(struct ask_plan_action *o, const char *key)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) != 0)
            o->fields[n++] = o->fields[i];
    o->n_fields = n;
}

bool home_carry_end_of(struct arena *a, const struct gate *g, const struct ask_plan_action *o,
                       const struct home_carry_now *now, struct home_later_entry *out,
                       const char **denied)
{
    const struct home_table *t = g->table;
    const struct ask_plan_field *d = ask_plan_field_of(o, "duration_s");
    const struct home_action *x = home_table_action(t, o->name), *ends = opposite_of(t, x);
    *denied = NULL;
    if (!d || d->text || d->n_items > 0 || d->number <= 0.0 || !ends || !x->effect)
        return false;
    struct ask_plan_action *c = then(a, o);
    if (!c || d->number > (double)HOME_DUE_MAX_S) {
        *denied = home_table_part(a, t, HOME_PART_FAR, NULL, NULL);
        return true;
    }
    c->name = ends->name;
    drop(c, "duration_s");
    drop(c, "value"); /* "open the blinds half way for an hour" */
    drop(c, "unit");
    struct gate_verdict v = gate_plan_check(a, g, c, false);
    *denied = home_denied(a, t, &v);
    *out = (struct home_later_entry){.kind = HOME_LATER_ACTION,
                                     .due_ms = now->ms + (int64_t)(d->number * 1000.0),
                                     .made_ms = now->ms,
                                     .counted = true,
                                     .what = home_act_words(a, t, c),
                                     .said = now->said,
                                     .by = now->by,
                                     .action = home_later_action_fits(c) ? c : NULL};
    return true;
}

/* An action decided for later. */
static bool entry_of(struct arena *a, const struct home_table *t, const struct ask_plan_action *o,
                     const struct home_carry_now *now, struct home_later_entry *out)
{
    const struct home_action *x = home_table_action(t, o->name);
    if (!x || o->due_s == 0 || strcmp(text_of(o, "result"), "scheduled") != 0)
        return false;
    const struct ask_plan_action *c = x->rings == HOME_LATER_ACTION ? then(a, o) : o;
    *out = (struct home_later_entry){
        .kind = x->rings,
        .due_ms = o->due_s * 1000,
        .made_ms = now->ms,
        .counted = o->due_counted,
        .confirmed = now->confirmed,
        .what = o->again.words && x->rings == HOME_LATER_ACTION
                    ? arena_printf(a, "%s, %s", home_act_words(a, t, o), o->again.words)
                    : home_act_words(a, t, o),
        .again = o->again,
        .said = now->said,
        .by = now->by,
        .action = c && home_later_action_fits(c) ? c : NULL};
    return true;
}

static bool is_cancel(const struct home_table *t, const struct ask_plan_action *o)
{
    for (uint32_t k = 0; t->later.list && k < HOME_LATER_COUNT; k++)
        if (strcmp(t->later.cancel[k]->name, o->name) == 0)
            return true;
    return false;
}

/* Why an entry may not be scheduled by the home as it is now; NULL: it may. */
static const char *denied_later(struct arena *a, const struct gate *g,
                                const struct home_later_entry *entry)
{
    if (entry->kind != HOME_LATER_ACTION || !entry->action)
        return NULL;
    const struct gate then = {g->table, g->file, NULL}; /* states will be others by then */
    struct gate_verdict v = gate_plan_check(a, &then, entry->action, entry->confirmed);
    return home_denied(a, g->table, &v);
}

/* What becomes of the entries that an action pauses, resumes or changes; returns how many. */
static uint32_t turn_entries(struct arena *a, const struct home_table *t,
                             const struct ask_plan_action *o, const struct ask_plan_field *ids,
                             const struct home_carry_now *now, struct home_carry_later *out)
{
    for (uint32_t k = 0; k < ids->n_items; k++) {
        struct home_carry_later *x = &out[k];
        x->kind = HOME_CARRY_TURN;
        x->id = strtoull(ids->items[k], NULL, 10);
        if (!now->later || !home_turn_find(a, now->later, x->id, &x->entry) ||
            !home_turn_apply(a, t, o, now->ms, &x->entry))
            x->rc = SHOAL_ENOTFOUND; /* it has rung meanwhile */
    }
    return ids->n_items;
}

uint32_t home_carry_schedule(struct arena *a, const struct gate *g, const struct home_draft *d,
                             const struct home_carry_now *now, struct home_carry_later **out)
{
    const struct home_table *t = g->table;
    uint32_t n = 0, cap = 0;
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const struct ask_plan_field *ids = ask_plan_field_of(d->actions[i], "scheduled_ids");
        cap += 1 + (ids ? ids->n_items : 0);
    }
    struct home_carry_later *v = arena_zalloc_n(a, (size_t)cap + 1, sizeof(*v));
    *out = v;
    for (uint32_t i = 0; v && i < d->n_actions; i++) {
        const struct ask_plan_action *o = d->actions[i];
        const struct ask_plan_field *ids = ask_plan_field_of(o, "scheduled_ids");
        struct home_carry_later x = {.action = i};
        if (entry_of(a, t, o, now, &x.entry)) {
            x.reason = denied_later(a, g, &x.entry);
            x.rc = x.reason ? SHOAL_EINVAL : 0;
            v[n++] = x;
        } else if (happens_now(t, o) && ids && is_cancel(t, o)) {
            for (uint32_t k = 0; k < ids->n_items; k++)
                v[n++] = (struct home_carry_later){.action = i,
                                                   .kind = HOME_CARRY_CANCEL,
                                                   .id = strtoull(ids->items[k], NULL, 10)};
        } else if (happens_now(t, o) && ids && home_turn_is(t, o)) {
            const uint32_t more = turn_entries(a, t, o, ids, now, &v[n]);
            for (uint32_t k = 0; k < more; k++)
                v[n++].action = i;
        } else if (happens_now(t, o) && home_carry_end_of(a, g, o, now, &x.entry, &x.reason)) {
            x.kind = HOME_CARRY_UNDO;
            x.rc = x.reason ? SHOAL_EINVAL : 0;
            v[n++] = x;
        }
    }
    return v ? n : 0;
}

/* ---- results -------------------------------------------------------------------------------- */

struct words { /* for a line that says what was not done, and why */
    const char *todo, *reason;
};

static const char *get_word(void *ctx, uint32_t var)
{
    const struct words *w = ctx;
    return var == HOME_VAR_DO ? w->todo : w->reason;
}

/* A copy of the action with another result, and with a reason or the mark "simulated". */
static void set_result(struct arena *a, struct home_draft *d, uint32_t index, const char *result,
                       const char *key, const char *text)
{
    struct ask_plan_action *o = arena_zalloc(a, sizeof(*o));
    if (!o)
        return;
    *o = *d->actions[index];
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, "result") == 0)
            o->fields[i].text = result;
    if (key && o->n_fields < ASK_PLAN_MAX_FIELDS)
        o->fields[o->n_fields++] = (struct ask_plan_field){.key = key, .text = text};
    d->actions[index] = o;
}

/* Puts the reason into the line of an action that did not happen. */
static void say_failed(struct arena *a, const struct home_table *t, struct home_draft *d,
                       uint32_t index, const char *reason)
{
    for (uint32_t i = 0; i < d->n_lines; i++) {
        struct home_draft_line *l = &d->lines[i];
        if (l->action != index + 1)
            continue;
        struct words w = {l->todo ? l->todo : d->actions[index]->name, reason};
        const struct home_template *say = &t->say[HOME_SAY_FAILED];
        const char *text = say->n > 0 ? home_template_fill(a, say, get_word, &w)
                                      : arena_printf(a, "%s: %s", w.todo, reason);
        *l = (struct home_draft_line){.say = text, .action = index + 1};
    }
}

/* A thing that is partly open is open. */
static void set_whole(struct home_states *states, const struct home_table *t,
                      const struct home_deed *deed)
{
    const struct home_action *x = home_table_action(t, deed->action);
    const struct home_effect *e = x ? x->effect : NULL;
    bool part = e && e->partly && !deed->text && !deed->change;
    for (uint32_t i = 0; part && i < t->n_opposites; i++)
        for (uint32_t k = 0; k < 2; k++) {
            const struct home_action *y = t->opposites[i].action[k];
            bool pair = t->opposites[i].action[0] == x || t->opposites[i].action[1] == x;
            if (pair && y->effect && y->effect->to && (deed->number > 0.0) == (k == 0))
                home_states_set(states, deed->id,
                                &(struct home_state){.ability = e->ability, .text = y->effect->to});
        }
}

static void set_state(struct home_states *states, const struct home_table *t,
                      const struct home_deed *deed)
{
    set_whole(states, t, deed);
    const struct home_state v = {
        .ability = deed->ability, .text = deed->text, .number = deed->number, .unit = deed->unit};
    if (deed->change)
        (void)home_states_add(states, deed->id, &v);
    else
        home_states_set(states, deed->id, &v);
}

static void put_field(struct arena *a, struct home_draft *d, uint32_t index,
                      struct ask_plan_field f)
{
    struct ask_plan_action *o = arena_zalloc(a, sizeof(*o));
    if (!o || d->actions[index]->n_fields == ASK_PLAN_MAX_FIELDS)
        return;
    *o = *d->actions[index];
    o->fields[o->n_fields++] = f;
    d->actions[index] = o;
}

/* "2026-11-17T07:00:00", local time */
static const char *moment(struct arena *a, int64_t ms)
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];
    localtime_r(&s, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    return arena_printf(a, "%s", text);
}

static const char *get_text(void *ctx, uint32_t var)
{
    (void)var; /* {text} or {reason} is the only name */
    return ctx;
}

static void add_say(struct arena *a, const struct home_table *t, struct home_draft *d,
                    enum home_say which, const char *text)
{
    if (t->say[which].n > 0 && home_draft_reserve(a, d))
        d->lines[d->n_lines++] = (struct home_draft_line){
            .say = home_template_fill(a, &t->say[which], get_text, (void *)(uintptr_t)text)};
}

/* Handles the schedule's answer. */
static void settle_later(struct arena *a, const struct home_table *t, struct home_draft *d,
                         const struct home_carry_later *x, bool simulated)
{
    uint32_t i = x->action;
    if (x->rc < 0 && x->kind == HOME_CARRY_UNDO) {
        add_say(a, t, d, HOME_SAY_NO_END, x->reason);
        return;
    }
    if (x->rc < 0) {
        const char *reason = x->reason ? x->reason : err_text(x->rc);
        set_result(a, d, i, "failed", "reason", reason);
        say_failed(a, t, d, i, reason);
        return;
    }
    if (x->kind == HOME_CARRY_CANCEL || (x->kind == HOME_CARRY_TURN && x->entry.paused))
        return;
    put_field(a, d, i,
              (struct ask_plan_field){.key = x->kind == HOME_CARRY_UNDO ? "ends" : "due",
                                      .text = moment(a, x->entry.due_ms)});
    if (x->kind == HOME_CARRY_TURN)
        return;
    put_field(a, d, i, (struct ask_plan_field){.key = "scheduled_id", .number = (double)x->id});
    if (simulated && x->kind == HOME_CARRY_ADD && x->entry.kind == HOME_LATER_ACTION)
        put_field(a, d, i, (struct ask_plan_field){.key = "simulated", .text = "yes"});
    if (d->actions[i]->due_told && x->kind == HOME_CARRY_ADD)
        add_say(a, t, d, HOME_SAY_DUE,
                home_due_words(a, t, x->entry.due_ms / 1000, (time_t)(x->entry.made_ms / 1000)));
}

/* Without a schedule the reply must not promise anything. */
static void settle_never(struct arena *a, const struct home_table *t, struct home_draft *d,
                         uint32_t i)
{
    const struct ask_plan_action *o = d->actions[i];
    const struct home_action *x = home_table_action(t, o->name);
    bool rings = x && x->rings != HOME_LATER_ACTION && happens_now(t, o);
    if (rings || (!is_question(t, o) && strcmp(text_of(o, "result"), "scheduled") == 0)) {
        set_result(a, d, i, "scheduled", "simulated", "yes");
        say_failed(a, t, d, i, home_table_part(a, t, HOME_PART_NO_SCHEDULE, NULL, NULL));
    } else if (happens_now(t, o) && (is_cancel(t, o) || home_turn_is(t, o))) {
        set_result(a, d, i, "simulated", NULL, NULL);
        say_failed(a, t, d, i, home_table_part(a, t, HOME_PART_NO_SCHEDULE, NULL, NULL));
    } else if (happens_now(t, o) && x->effect && ask_plan_field_of(o, "duration_s") &&
               opposite_of(t, x)) {
        add_say(a, t, d, HOME_SAY_NO_END, home_table_part(a, t, HOME_PART_NO_SCHEDULE, NULL, NULL));
    }
}

/* Lists are kept by the program itself (home_lists.h). */
static bool is_list(const struct home_table *t, const struct ask_plan_action *o)
{
    const struct home_action *x = home_table_action(t, o->name);
    return x && t->lists.add &&
           (x == t->lists.add || x == t->lists.remove || x == t->lists.clear ||
            x == t->lists.create || x == t->lists.ask || x == t->lists.all);
}

/* Nothing carried the action out. Where only the home's states changed, the reply says so once; a
 * call that nobody makes is not reported as made. */
static void settle_simulated(struct arena *a, const struct home_table *t, struct home_draft *d,
                             uint32_t i, bool acts)
{
    if (acts) {
        set_result(a, d, i, "simulated", NULL, NULL);
        for (uint32_t k = 0; k < d->n_lines; k++)
            if (d->lines[k].action == i + 1 && !d->lines[k].text &&
                t->say[HOME_SAY_PRETEND].n > 0) {
                struct words w = {d->lines[k].todo ? d->lines[k].todo : d->actions[i]->name, NULL};
                d->lines[k].say = home_template_fill(a, &t->say[HOME_SAY_PRETEND], get_word, &w);
            }
        return;
    }
    set_result(a, d, i, "simulated", "reason",
               home_table_part(a, t, HOME_PART_UNCONNECTED, NULL, NULL));
    say_failed(a, t, d, i, home_table_part(a, t, HOME_PART_UNCONNECTED, NULL, NULL));
}

/* Combines the results of the deeds of one action. */
static void settle_now(struct arena *a, const struct home_table *t, struct home_draft *d,
                       uint32_t i, const struct home_carry_done *done, struct home_states *states)
{
    bool carried = false, sent = false, acts = false;
    const char *reason = NULL;
    for (uint32_t k = 0; k < done->n_deeds; k++) {
        const struct home_carry *c = &done->deeds[k];
        if (c->action != i)
            continue;
        bool failed = c->denied || (!done->simulated && c->listed && c->result >= HOME_SINK_FAILED);
        /* a change that was confirmed is in the state that the thing reported */
        bool reported = !done->simulated && c->listed && c->result == HOME_SINK_DONE;
        if (!failed && !(reported && c->deed.change))
            set_state(states, t, &c->deed);
        carried |= c->listed && !done->simulated;
        acts = true;
        sent |= c->result == HOME_SINK_SENT;
        if (failed && !reason)
            reason = c->reason ? c->reason
                               : home_table_part(a, t,
                                                 c->denied ? HOME_PART_CHANGED
                                                 : c->result == HOME_SINK_NOT_CONNECTED
                                                     ? HOME_PART_OFFLINE
                                                     : HOME_PART_FAILED,
                                                 NULL, NULL);
    }
    if (reason) {
        set_result(a, d, i, "failed", "reason", reason);
        say_failed(a, t, d, i, reason);
    } else if (!ask_plan_field_of(d->actions[i],
                                  "scheduled_ids")) { /* entries that were really cancelled */
        if (carried)
            set_result(a, d, i, sent ? "sent" : "done", NULL, NULL);
        else
            settle_simulated(a, t, d, i,
                             acts || (home_table_action(t, d->actions[i]->name)->effect != NULL));
    }
}

/* Will the reply model speak of an action that changed nothing but the simulated home? */
static bool is_simulated(const struct home_draft *d)
{
    for (uint32_t i = 0; i < d->n_lines; i++) {
        const struct home_draft_line *l = &d->lines[i];
        if (l->text && l->action > 0 &&
            strcmp(text_of(d->actions[l->action - 1], "result"), "simulated") == 0)
            return true;
    }
    return false;
}

void home_carry_leave(struct arena *a, const struct home_table *t, struct home_draft *d)
{
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const struct ask_plan_action *o = d->actions[i];
        if (happens_now(t, o))
            set_result(a, d, i, "simulated", NULL, NULL);
        else if (!is_question(t, o) && strcmp(text_of(o, "result"), "scheduled") == 0)
            set_result(a, d, i, "scheduled", "simulated", "yes");
    }
}

void home_carry_settle(struct arena *a, const struct home_table *t, struct home_draft *d,
                       const struct home_carry_done *done, struct home_states *states)
{
    for (uint32_t i = 0; i < d->n_actions; i++) {
        if (!done->schedules)
            settle_never(a, t, d, i);
        if (happens_now(t, d->actions[i]) && !is_list(t, d->actions[i]))
            settle_now(a, t, d, i, done, states);
    }
    for (uint32_t i = 0; i < done->n_later; i++)
        settle_later(a, t, d, &done->later[i], done->simulated);
    if (is_simulated(d))
        add_say(a, t, d, HOME_SAY_SIMULATED, "");
}
