/* ask_decide.c - see ask_decide.h. */
#include "apps/home/ask/ask_decide.h"

#include <string.h>

#include "apps/home/ask/ask_read.h"
#include "apps/home/ask/ask_understand.h"
#include "apps/home/home_help.h"
#include "apps/home/home_lists.h"
#include "apps/home/home_recall.h"
#include "apps/home/table/home_words.h"

/* Entities as texts, whereas the rules use positions in the clause. */
static const struct ask_plan_entity *plan_entities(struct arena *a, const struct home_clause *c)
{
    struct ask_plan_entity *list = arena_zalloc_n(a, (size_t)c->n_entities + 1, sizeof(*list));
    struct home_words w = home_words_split(a, c->text);
    for (uint32_t i = 0; a->rc == 0 && i < c->n_entities; i++) {
        const char *text = home_words_join(a, &w, c->entities[i].from, c->entities[i].to);
        list[i].type = c->entities[i].type;
        list[i].text = home_words_trim_end(a, text, HOME_WORDS_CLOSING);
    }
    return list;
}

static void plan_clauses(struct ask_request *r)
{
    struct ask_plan_clause *list = arena_zalloc_n(&r->arena, r->n_clauses, sizeof(*list));
    for (uint32_t i = 0; list && i < r->n_clauses; i++) {
        const struct home_clause *c = &r->clauses[i];
        list[i] = (struct ask_plan_clause){.text = c->text,
                                           .intent = c->intent,
                                           .router = c->router,
                                           .flow = c->flow,
                                           .intent_p = c->intent_p,
                                           .router_p = c->router_p,
                                           .act = home_table_speech_name(c->speech),
                                           .act_p = c->speech_p,
                                           .entities = plan_entities(&r->arena, c),
                                           .n_entities = c->n_entities};
    }
    r->plan.clauses = list;
    r->plan.n_clauses = list ? r->n_clauses : 0;
}

/* Copies the draft's contexts for the reply, and for the plan those that the model reads. */
static void plan_contexts(struct ask_request *r, const struct home_draft *d)
{
    r->n_contexts = home_draft_contexts(&r->arena, d, r->ask->table->together, &r->contexts);
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

/* The words of the last command, and where they name a room and a thing. */
static void remember_words(struct ask_request *r, const struct home_focus *old,
                           struct home_focus *f)
{
    const struct home_clause *c = NULL;
    for (uint32_t i = 0; i < r->n_clauses; i++)
        if (r->clauses[i].speech == HOME_SPEECH_COMMAND)
            c = &r->clauses[i];
    if (c) {
        ask_understand_places(r, c, f);
        return;
    }
    f->said = old->said;
    f->room_from = old->room_from;
    f->room_to = old->room_to;
    f->thing_from = old->thing_from;
    f->thing_to = old->thing_to;
    f->value_from = old->value_from;
    f->value_to = old->value_to;
}

/* The last thing that an action is about becomes the meaning of "it". */
static void remember(struct ask_request *r, const struct home_focus *old)
{
    struct home_focus f = *old;
    bool changed = false;
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
        changed |= device || machine || ask_plan_text_of(o, "room");
    }
    remember_words(r, old, &f);
    ask_read_remember(r, &f);
    if (changed || r->reads)
        home_memory_set_focus(r->ask->memory, r->conversation, r->start_ns, &f);
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

/* The thing that a clause is about. */
static void focus_on(struct ask_request *r, const struct home_clause *c, struct home_focus *f)
{
    struct home_words w = home_words_split(&r->arena, c->text);
    const char *room = NULL;
    for (uint32_t i = 0; i < c->n_entities; i++) {
        const struct home_entity *e = &c->entities[i];
        const char *text = home_words_trim_end(
            &r->arena, home_words_join(&r->arena, &w, e->from, e->to), HOME_WORDS_CLOSING);
        if (strcmp(e->type, "room") == 0)
            room = text;
        else if (strcmp(e->type, "device") == 0)
            *f = (struct home_focus){.device = text};
        else if (strcmp(e->type, "machine") == 0)
            *f = (struct home_focus){.machine = text};
    }
    if (room && f->device)
        f->room = room;
}

static struct home_here here_of(const struct ask_request *r)
{
    struct home_things *things = r->ask->things;
    return (struct home_here){r->file, things ? home_things_states(things) : NULL,
                              things ? home_things_later(things) : NULL,
                              things ? home_things_live(things) : NULL};
}

void ask_decide_text(struct ask_request *r)
{
    const struct home_table *t = r->ask->table;
    struct home_draft *d = &r->draft;
    const struct home_here here = here_of(r);
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &r->focus);
    for (uint32_t i = 1; i < r->n_clauses; i++) {
        struct home_words w = home_words_split(&r->arena, r->clauses[i].text);
        struct home_words plain = home_words_plain_all(&r->arena, &w);
        r->clauses[i - 1].taken_back = home_speech_takes_back(t, &plain) > 0;
    }
    for (uint32_t i = 0; i < r->n_clauses; i++) {
        struct home_focus now = r->focus;
        for (uint32_t k = 0; k < i; k++) /* "start the vacuum, no, stop it" */
            focus_on(r, &r->clauses[k], &now);
        r->clauses[i].speech =
            home_rules_decide(&r->arena, t, d, &r->clauses[i], &now, &here, &r->now);
    }
    bool asks = true; /* a question in between changes nothing */
    for (uint32_t i = 0; i < r->n_clauses; i++)
        asks = asks && r->clauses[i].speech == HOME_SPEECH_ASK;
    if (!asks)
        home_memory_move_on(r->ask->memory, r->conversation);
    if (r->except)
        home_rules_except(&r->arena, t, d, &here, r->except);
    keep_waiting(r, d);
    plan_clauses(r);
}

void ask_decide_read(struct ask_request *r)
{
    const struct home_here here = here_of(r);
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &r->focus);
    if (!ask_read_decide(r, &here)) /* a question in between changes nothing */
        home_memory_move_on(r->ask->memory, r->conversation);
    keep_waiting(r, &r->draft);
    plan_clauses(r);
}

/* ---- confirming ----------------------------------------------------------------------------- */

static void put_say(struct ask_request *r, enum home_say which)
{
    struct home_draft *d = &r->draft;
    const struct home_template *t = &r->ask->table->say[which];
    if (home_draft_reserve(&r->arena, d) && t->n > 0)
        d->lines[d->n_lines++] =
            (struct home_draft_line){.say = t->parts[0].text ? t->parts[0].text : ""};
}

void ask_decide_too_long(struct ask_request *r)
{
    home_memory_move_on(r->ask->memory, r->conversation);
    put_say(r, HOME_SAY_LONG);
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
        while (n > 0 && n < plain->n &&
               (home_table_word(r->ask->table, plain->w[n]) & HOME_WORD_POLITE))
            n++;
        if (n > 0 && n == plain->n)
            return true;
    }
    return false;
}

/* Is the whole text about the schedule? The models have seen few such texts, but the words are
 * clear.
 */
static bool recalls(struct ask_request *r, const struct home_words *plain, enum home_speech *speech)
{
    const struct home_table *t = r->ask->table;
    struct home_later *later = r->ask->things ? home_things_later(r->ask->things) : NULL;
    const bool *covered = arena_zalloc_n(&r->arena, (size_t)plain->n + 1, sizeof(*covered));
    if (!later || !covered || plain->n > 12)
        return false;
    for (uint32_t i = 0; i < plain->n; i++)
        if (home_table_word(t, plain->w[i]) & (HOME_WORD_JOIN | HOME_WORD_JOIN_ALWAYS))
            return false; /* more than one clause */
    *speech = home_speech_cue(t, plain, covered);
    if (*speech != HOME_SPEECH_COMMAND && *speech != HOME_SPEECH_ASK)
        return false;
    const struct home_recall_query q = {.plain = plain, .asks = *speech == HOME_SPEECH_ASK};
    return home_recall_find(&r->arena, t, later, &q).sure;
}

/* The whole text as one clause, without a model. */
static void make_clause(struct ask_request *r, enum home_speech speech)
{
    r->clauses[0] = (struct home_clause){.text = r->text,
                                         .intent = "",
                                         .router = "",
                                         .flow = "",
                                         .speech = speech,
                                         .speech_p = 1.0f};
    r->n_clauses = 1;
}

static void decide_plainly(struct ask_request *r, enum home_speech speech)
{
    make_clause(r, speech);
    ask_decide_text(r);
}

bool ask_decide_stop(struct ask_request *r)
{
    const struct home_table *t = r->ask->table;
    const struct home_here here = here_of(r);
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &r->focus);
    const struct stop_query q = {.t = t, .file = r->file, .focus = &r->focus, .text = r->text};
    struct stop what;
    if (!stop_read(&r->arena, &q, &what))
        return false;
    make_clause(r, HOME_SPEECH_COMMAND);
    home_rules_stop(&r->arena, t, &r->draft, &what, &r->clauses[0], &here, &r->now);
    home_memory_move_on(r->ask->memory, r->conversation); /* a later yes starts nothing */
    r->deadline_ns = 0;                                   /* better late than never */
    plan_clauses(r);
    return true;
}

bool ask_decide_answered(struct ask_request *r, const char *token)
{
    const struct home_table *t = r->ask->table;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &r->focus);
    if (token) {
        confirm(r, token);
        return true;
    }
    struct home_words all = home_words_plain_all(&r->arena, &r->words);
    bool asked = home_memory_waits(r->ask->memory, r->conversation, r->start_ns);
    enum home_speech speech;
    if (!r->reads && recalls(r, &all, &speech)) {
        decide_plainly(r, speech);
        return true;
    }
    if (!r->reads && r->ask->things && says_only(r, &all, &t->help.phrases)) {
        const struct home_here here = here_of(r);
        make_clause(r, HOME_SPEECH_ASK);
        if (home_draft_reserve(&r->arena, &r->draft))
            r->draft.lines[r->draft.n_lines++] = (struct home_draft_line){
                .say = home_help_text(&r->arena, t, &here, !home_things_sink(r->ask->things))};
        plan_clauses(r);
        return true;
    }
    if (!r->reads && r->ask->things && !r->again && !r->except &&
        home_lists_read(&r->arena, t, &r->words, &r->unspelt, &r->draft)) {
        make_clause(r, HOME_SPEECH_COMMAND);
        home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &r->focus);
        home_memory_move_on(r->ask->memory, r->conversation);
        plan_clauses(r);
        return true;
    }
    if (r->too_long) {
        ask_decide_too_long(r);
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
                                       .confirmed = r->confirmed};
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
    else if (w->entry.action && strlen(w->entry.what) <= HOME_LATER_MAX_TEXT &&
             strlen(w->entry.said) <= HOME_LATER_MAX_TEXT)
        home_later_add(l, &w->entry, on_scheduled, s);
    else
        on_scheduled(s, SHOAL_ELIMIT, "the text is too long to be kept", 0);
}

void ask_decide_carry(struct ask_request *r)
{
    struct home_things *things = r->ask->things;
    struct home_sink *sink = things ? home_things_sink(things) : NULL;
    struct home_later *later = things ? home_things_later(things) : NULL;
    const struct gate g = {r->ask->table, r->file, things ? home_things_states(things) : NULL};
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
        home_lists_settle(&r->arena, r->ask->table, &r->draft, home_things_lists(things), r->owner);
    if (things)
        home_carry_settle(&r->arena, r->ask->table, &r->draft, &done, home_things_states(things));
    else
        home_carry_leave(&r->arena, r->ask->table, &r->draft);
}
