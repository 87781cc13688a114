/* ask_decide.c - see ask_decide.h. */
#include "apps/home/ask/ask_decide.h"

#include <string.h>

#include "apps/home/ask/ask_read.h"
#include "apps/home/home_lists.h"
#include "apps/home/stop/stop_acts.h"
#include "apps/home/table/home_words.h"

/* How the text was understood. */
static void explain(struct ask_request *r, const struct ask_plan_clause *c)
{
    r->clause = *c;
    r->plan.clauses = &r->clause;
    r->plan.n_clauses = 1;
}

/* Copies the draft's contexts for the reply, and for the plan those that the model reads. */
static void plan_contexts(struct ask_request *r, const struct home_draft *d)
{
    r->n_contexts = home_draft_contexts(&r->arena, d, r->table->together, &r->contexts);
    for (uint32_t i = 0; !r->table->reply && i < r->n_contexts; i++) { /* no model words it */
        struct home_draft_context *c = &r->contexts[i];
        c->say = c->text && !*c->say ? c->text : c->say;
        c->text = NULL;
    }
    const char **list = arena_zalloc_n(&r->arena, (size_t)r->n_contexts + 1, sizeof(*list));
    for (uint32_t i = 0; list && i < r->n_contexts; i++) {
        const struct home_draft_context *c = &r->contexts[i];
        list[i] = c->text ? c->text : arena_printf(&r->arena, "say: %s", c->say);
    }
    r->plan.contexts = list;
    r->plan.n_contexts = list ? r->n_contexts : 0;
}

/* Keeps actions that wait for a yes; each of them carries the token. */
static void keep_waiting(struct ask_request *r, struct home_draft *d)
{
    const char **lines = arena_zalloc_n(&r->arena, (size_t)d->n_held + 1, sizeof(*lines));
    const char **says = arena_zalloc_n(&r->arena, (size_t)d->n_held + 1, sizeof(*says));
    const char **todos = arena_zalloc_n(&r->arena, (size_t)d->n_held + 1, sizeof(*todos));
    const struct ask_plan_action **actions =
        arena_zalloc_n(&r->arena, (size_t)d->n_held + 1, sizeof(*actions));
    char *token = arena_bytes(&r->arena, HOME_MEMORY_TOKEN);
    if (d->n_held == 0 || r->arena.rc < 0)
        return;
    for (uint32_t i = 0; i < d->n_held; i++) {
        actions[i] = d->held[i].action;
        lines[i] = d->held[i].line;
        says[i] = d->held[i].say;
        todos[i] = d->held[i].todo;
    }
    const struct home_waiting w = {actions, lines, says, todos, d->n_held};
    if (!home_memory_wait(r->ask->memory, r->conversation, r->owner, r->start_ns, &w, token)) {
        ask_request_fail(r, SHOAL_ENOMEM, "cannot keep the actions that wait for a confirmation");
        return;
    }
    for (uint32_t i = 0; i < d->n_actions; i++) {
        struct ask_plan_action *o = arena_zalloc(&r->arena, sizeof(*o));
        if (!o)
            return;
        *o = *d->actions[i];
        for (uint32_t k = 0; k < o->n_fields; k++)
            if (strcmp(o->fields[k].key, "result") == 0 && o->n_fields < ASK_PLAN_MAX_FIELDS &&
                strcmp(o->fields[k].text, "confirm") == 0) {
                o->fields[o->n_fields++] = (struct ask_plan_field){.key = "token", .text = token};
                break;
            }
        d->actions[i] = o;
    }
}

/* The last thing that an action is about becomes the meaning of "it". */
static void remember(struct ask_request *r, const struct home_focus *old)
{
    struct home_focus f = *old;
    for (uint32_t i = 0; i < r->plan.n_actions; i++) {
        const struct ask_plan_action *o = r->plan.actions[i];
        const char *device = ask_plan_text_of(o, "device"),
                   *machine = ask_plan_text_of(o, "machine");
        if (device)
            f = (struct home_focus){.device = device, .room = ask_plan_text_of(o, "room")};
        else if (machine)
            f = (struct home_focus){.machine = machine};
        else if (ask_plan_text_of(o, "room"))
            f.room = ask_plan_text_of(o, "room");
    }
    ask_read_remember(r, &f);
    home_memory_set_focus(r->ask->memory, r->conversation, r->owner, r->start_ns, &f);
}

void ask_decide_finish(struct ask_request *r)
{
    plan_contexts(r, &r->draft);
    r->plan.actions = r->draft.actions;
    r->plan.n_actions = r->draft.n_actions;
    remember(r, &r->focus);
    if (r->arena.rc < 0)
        ask_request_fail(r, r->arena.rc, err_text(r->arena.rc));
    ask_request_step(r, "decide", NULL);
}

static struct home_here here_of(const struct ask_request *r)
{
    struct home_things *things = r->ask->things;
    return (struct home_here){r->file, things ? home_things_states(things) : NULL,
                              things ? home_things_later(things) : NULL,
                              things ? home_things_live(things) : NULL};
}

void ask_decide_read(struct ask_request *r)
{
    const struct home_here here = here_of(r);
    struct ask_plan_clause c;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &r->focus);
    if (!ask_read_decide(r, &here, &c) && !r->dry) /* a question in between changes nothing */
        home_memory_move_on(r->ask->memory, r->conversation);
    if (!r->dry)
        keep_waiting(r, &r->draft);
    explain(r, &c);
}

/* ---- confirming ----------------------------------------------------------------------------- */

static void put_say(struct ask_request *r, enum home_say which)
{
    struct home_draft *d = &r->draft;
    const struct home_template *t = &r->table->say[which];
    if (home_draft_reserve(&r->arena, d) && t->n > 0)
        d->lines[d->n_lines++] =
            (struct home_draft_line){.say = t->parts[0].text ? t->parts[0].text : ""};
}

/* The plan after a yes: the pending actions happen. token NULL: those pending in the
 * conversation. */
static void confirm(struct ask_request *r, const char *token)
{
    struct home_draft *d = &r->draft;
    struct home_waiting w;
    if (!home_memory_take(r->ask->memory, r->conversation, r->owner, token, r->start_ns, &r->arena,
                          &w))
        put_say(r, HOME_SAY_EXPIRED);
    r->confirmed = w.n > 0;
    for (uint32_t i = 0; i < w.n && home_draft_reserve(&r->arena, d); i++) {
        d->actions[d->n_actions++] = w.actions[i];
        d->lines[d->n_lines++] = (struct home_draft_line){.text = w.lines[i],
                                                          .say = w.says[i],
                                                          .joins = true,
                                                          .action = d->n_actions,
                                                          .todo = w.todos[i]};
    }
}

static void decline(struct ask_request *r)
{
    struct home_waiting w;
    (void)home_memory_take(r->ask->memory, r->conversation, r->owner, NULL, r->start_ns, &r->arena,
                           &w);
    put_say(r, HOME_SAY_DECLINED);
}

/* Do all words, apart from polite ones, form one of the phrases? */
static bool says_only(const struct ask_request *r, const struct home_words *plain,
                      const struct home_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t n = home_words_phrase(plain, 0, l->w[i]);
        while (n > 0 && n < plain->n && home_table_lists(&r->table->polite, plain->w[n]))
            n++;
        if (n > 0 && n == plain->n)
            return true;
    }
    return false;
}

bool ask_decide_stop(struct ask_request *r)
{
    const struct home_table *t = r->table;
    const struct home_here here = here_of(r);
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &r->focus);
    const struct stop_query q = {.t = t, .file = r->file, .focus = &r->focus, .text = r->text};
    struct stop what;
    if (!stop_read(&r->arena, &q, &what))
        return false;
    stop_acts(&r->arena, t, &r->draft, &what, &here, &r->now);
    if (!r->dry)
        home_memory_move_on(r->ask->memory, r->conversation); /* a later yes starts nothing */
    r->deadline_ns = 0;                                       /* better late than never */
    explain(r, &(struct ask_plan_clause){.text = r->text,
                                         .intent = "",
                                         .router = "",
                                         .flow = "",
                                         .act = "command",
                                         .act_p = 1.0f});
    return true;
}

bool ask_decide_overheard(struct ask_request *r)
{
    if (r->heard <= 0.0f || r->heard >= r->table->plans.overheard)
        return false;
    explain(r, &(struct ask_plan_clause){.text = r->text,
                                         .intent = "",
                                         .router = "",
                                         .flow = "",
                                         .act = "none",
                                         .act_p = 1.0f - r->heard});
    return true;
}

bool ask_decide_answered(struct ask_request *r, const char *token)
{
    const struct home_table *t = r->table;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &r->focus);
    if (token) {
        confirm(r, token);
        return true;
    }
    const bool asked = home_memory_waits(r->ask->memory, r->conversation, r->start_ns);
    if (r->too_long) {
        home_memory_move_on(r->ask->memory, r->conversation);
        put_say(r, HOME_SAY_LONG);
        return true;
    }
    if (!asked)
        return false;
    struct home_words plain = home_words_plain_all(&r->arena, &r->words);
    if (says_only(r, &plain, &t->yes))
        confirm(r, NULL);
    else if (says_only(r, &plain, &t->no))
        decline(r);
    else
        return false;
    return true;
}

/* ---- carrying out --------------------------------------------------------------------------- */

struct carrying { /* one deed in progress */
    struct ask_request *r;
    struct home_carry *deed;
};

/* On any thread; each deed has its own fields. */
static void on_carried(void *ctx, enum home_sink_result result, const char *reason)
{
    struct carrying *c = ctx;
    struct ask_request *r = c->r;
    c->deed->result = result;
    if (reason) {
        pthread_mutex_lock(&r->lock); /* only one thread may use the arena at a time */
        c->deed->reason = arena_printf(&r->arena, "%s", reason);
        pthread_mutex_unlock(&r->lock);
    }
    ask_request_part_done(r);
}

struct scheduling { /* one schedule request in progress */
    struct ask_request *r;
    struct home_carry_later *wish;
};

/* On the schedule's thread. */
static void on_scheduled(void *ctx, int rc, const char *reason, uint64_t id)
{
    struct scheduling *s = ctx;
    struct ask_request *r = s->r;
    s->wish->rc = rc;
    s->wish->id = id;
    if (reason) {
        pthread_mutex_lock(&r->lock);
        s->wish->reason = arena_printf(&r->arena, "%s", reason);
        pthread_mutex_unlock(&r->lock);
    }
    ask_request_part_done(r);
}

/* Sends the actions' schedule requests; returns how many to wait for. */
static struct scheduling *find_wishes(struct ask_request *r, const struct gate *g, uint32_t *n)
{
    const struct home_carry_now now = {.ms = (int64_t)r->now_s * 1000,
                                       .said = r->confirmed ? "" : r->text,
                                       .by = r->owner,
                                       .confirmed = r->confirmed,
                                       .later = home_things_later(r->ask->things)};
    r->n_later = home_carry_schedule(&r->arena, g, &r->draft, &now, &r->later);
    struct scheduling *list = arena_zalloc_n(&r->arena, (size_t)r->n_later + 1, sizeof(*list));
    *n = 0;
    for (uint32_t i = 0; list && i < r->n_later; i++)
        if (r->later[i].rc == 0)
            list[(*n)++] = (struct scheduling){r, &r->later[i]};
    return list;
}

static void schedule(struct home_later *l, struct scheduling *s)
{
    const struct home_carry_later *w = s->wish;
    if (w->kind == HOME_CARRY_CANCEL)
        home_later_cancel(l, w->id, on_scheduled, s);
    else if (w->kind == HOME_CARRY_TURN)
        home_later_replace(l, w->id, &w->entry, on_scheduled, s);
    else if (w->entry.action && strlen(w->entry.what) <= HOME_LATER_MAX_TEXT &&
             strlen(w->entry.said) <= HOME_LATER_MAX_TEXT)
        home_later_add(l, &w->entry, on_scheduled, s);
    else
        on_scheduled(s, SHOAL_ELIMIT,
                     home_table_part(&s->r->arena, s->r->table, HOME_PART_TOO_LONG, NULL, NULL), 0);
}

/* The plan as it would be carried out, and the end. */
static void show_plan(struct ask_request *r)
{
    r->plan.actions = r->draft.actions;
    r->plan.n_actions = r->draft.n_actions;
    if (r->arena.rc < 0)
        ask_request_fail(r, r->arena.rc, err_text(r->arena.rc));
    ask_request_step(r, "decide", NULL);
    if (r->code == 0)
        ask_request_emit(r, &(struct ask_event){.kind = ASK_EVENT_PLAN});
    ask_request_finish(r);
}

void ask_decide_carry(struct ask_request *r)
{
    if (r->dry) {
        show_plan(r);
        return;
    }
    struct home_things *things = r->ask->things;
    struct home_sink *sink = things ? home_things_sink(things) : NULL;
    struct home_later *later = things ? home_things_later(things) : NULL;
    const struct gate g = {r->table, r->file, things ? home_things_states(things) : NULL};
    r->n_deeds = things ? home_carry_deeds(&r->arena, &g, &r->draft, &r->deeds) : 0;
    home_carry_check(&r->arena, &g, &r->draft, r->deeds, r->n_deeds, r->confirmed);
    struct carrying *list = arena_zalloc_n(&r->arena, (size_t)r->n_deeds + 1, sizeof(*list));
    uint32_t n = list ? r->n_deeds : 0, n_wishes = 0;
    struct scheduling *wishes = later ? find_wishes(r, &g, &n_wishes) : NULL;
    r->simulated = !sink;
    for (uint32_t i = 0; i < n; i++) {
        r->deeds[i].deed.deadline_ns = r->deadline_ns; /* 0: the sink's own timeouts apply */
        list[i] = (struct carrying){r, &r->deeds[i]};
    }
    r->stage = ASK_STAGE_CARRY;
    atomic_store_explicit(&r->pending, n + n_wishes + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++)
        if (!home_carry_send(&g, sink, &r->deeds[i], r->confirmed, on_carried, &list[i]))
            ask_request_part_done(r); /* never the last one: one more is counted until the end */
    for (uint32_t i = 0; i < n_wishes; i++)
        schedule(later, &wishes[i]);
    ask_request_part_done(r);
}

void ask_decide_carried(struct ask_request *r)
{
    struct home_things *things = r->ask->things;
    const struct home_carry_done done = {.deeds = r->deeds,
                                         .n_deeds = r->n_deeds,
                                         .later = r->later,
                                         .n_later = r->n_later,
                                         .simulated = r->simulated,
                                         .schedules = things && home_things_later(things)};
    if (things)
        home_lists_settle(&r->arena, r->table, &r->draft, home_things_lists(things), r->owner);
    if (things)
        home_carry_settle(&r->arena, r->table, &r->draft, &done, home_things_states(things));
    else
        home_carry_leave(&r->arena, r->table, &r->draft);
}
