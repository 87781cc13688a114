/* ask_read.c - see ask_read.h. */
#include "apps/home/ask/ask_read.h"

#include <stdio.h>
#include <string.h>

#include "apps/home/read/read_acts.h"

#define MIN_COMMAND 0.2f /* of the act model, for a command that the rules do not see at all */

static void on_read(void *ctx, const struct shoal_result *res)
{
    struct ask_request *r = ctx;
    if (res->code < 0 && res->code != SHOAL_ELIMIT) /* a text that is too long is no command */
        ask_request_fail(r, res->code, res->message);
    for (uint32_t i = 0; res->code == 0 && i < res->n_labels && i < ASK_MAX_READINGS; i++) {
        snprintf(r->readings[i].text, sizeof(r->readings[i].text), "%s", res->labels[i].name);
        r->readings[i].p = res->labels[i].score;
        r->n_readings = i + 1;
    }
    ask_request_part_done(r);
}

static const struct home_thing *room_named(const struct home_file *f, const char *name)
{
    for (uint32_t i = 0; f && name && i < f->n_things; i++) {
        const struct home_thing *x = &f->things[i];
        if (x->type == HOME_THING_ROOM &&
            (strcmp(x->id, name) == 0 || home_table_lists(&x->names, name)))
            return x;
    }
    return NULL;
}

void ask_read_submit(struct ask_request *r)
{
    struct err e = {0};
    struct shoal_task *t;
    struct home_focus f;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &f);
    r->read_state =
        (struct read_lines_state){.here = room_named(r->file, r->room),
                                  .last = f.last,
                                  .pending = f.pending && *f.pending ? f.pending : NULL};
    r->read_kept = f.kept;
    r->lines = arena_zalloc(&r->arena, sizeof(*r->lines));
    const int rc = !r->lines ? r->arena.rc
                             : read_lines_choose(r->lines, &r->arena, r->ask->table, r->file,
                                                 &r->read_state, r->said);
    const struct shoal_infer_opts o = {.size = sizeof(o),
                                       .kind = SHOAL_KIND_CLASSIFY,
                                       .text = r->lines ? r->lines->input : "",
                                       .text_bytes = r->lines ? strlen(r->lines->input) : 0,
                                       .deadline_ns = r->deadline_ns,
                                       .priority = r->priority,
                                       .client = r->client,
                                       .weight = r->weight,
                                       .done = on_read,
                                       .done_ctx = r};
    if (rc == SHOAL_ELIMIT) { /* too long for a command: the rules say so */
        ask_request_part_done(r);
    } else if (rc < 0) {
        ask_request_fail(r, rc, err_text(rc));
        ask_request_part_done(r);
    } else if (!r->reader_engine) {
        r->away->ops->infer(r->away, ASK_MODEL_READER, &o);
    } else if (shoal_infer_submit(r->reader_engine, &o, &t, &e) < 0) {
        if (e.code != SHOAL_ELIMIT)
            ask_request_fail(r, e.code, e.msg);
        ask_request_part_done(r);
    } else {
        ask_request_keep_task(r, t);
    }
}

/* ---- whose understanding --------------------------------------------------------------------- */

/* How far a draft got with the text. */
enum success {
    SUCCESS_NONE,   /* it has no actions */
    SUCCESS_STUCK,  /* it asks back, knows no such thing, or is not sure */
    SUCCESS_ANSWER, /* it answers a question, or refuses what is not allowed */
    SUCCESS_ACTS,   /* something happens, now, later or after a yes */
};

static enum success success_of(const struct home_draft *d)
{
    enum success out = SUCCESS_NONE;
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const struct ask_plan_action *o = d->actions[i];
        const char *result = ask_plan_text_of(o, "result");
        const bool stuck = !result || strcmp(result, "ask") == 0 ||
                           strcmp(result, "unknown") == 0 || strcmp(result, "unsure") == 0;
        const bool weak =
            result && (strcmp(result, "failed") == 0 || strcmp(result, "refused") == 0);
        const enum success s = stuck ? SUCCESS_STUCK : weak ? SUCCESS_ANSWER : SUCCESS_ACTS;
        out = i == 0 || s < out ? s : out;
    }
    return out;
}

/* Did the rules find that the text commands nothing? */
static bool is_denied(const struct ask_request *r)
{
    for (uint32_t i = 0; i < r->n_clauses; i++) {
        const enum home_speech s = r->clauses[i].speech;
        if (s == HOME_SPEECH_ASK || s == HOME_SPEECH_NEGATE || s == HOME_SPEECH_SUPPOSE ||
            s == HOME_SPEECH_REPORT || s == HOME_SPEECH_RETRACT)
            return true;
    }
    return false;
}

/* Does one of the draft's actions have this effect on the thing? id NULL: on nothing. */
static bool does(const struct home_table *t, const struct home_draft *d, const char *name,
                 const char *id)
{
    const struct home_action *x = home_table_action(t, name);
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const struct ask_plan_action *o = d->actions[i];
        const struct home_action *y = home_table_action(t, o->name);
        const struct ask_plan_field *ids = ask_plan_field_of(o, "ids");
        const char *one = ask_plan_text_of(o, "id");
        /* starting a thing and turning it on are one and the same to people */
        const bool alike = x && y && x->effect && y->effect && x->effect->to && y->effect->to &&
                           strcmp(x->effect->to, y->effect->to) == 0;
        if (strcmp(o->name, name) != 0 && !alike)
            continue;
        if (!id && !ids && !one)
            return true;
        for (uint32_t k = 0; id && ids && k < ids->n_items; k++)
            if (strcmp(ids->items[k], id) == 0)
                return true;
        if (id && one && strcmp(one, id) == 0)
            return true;
    }
    return false;
}

static bool includes(const struct home_table *t, const struct home_draft *a,
                     const struct home_draft *b)
{
    for (uint32_t i = 0; i < b->n_actions; i++) {
        const struct ask_plan_action *o = b->actions[i];
        const struct ask_plan_field *ids = ask_plan_field_of(o, "ids");
        for (uint32_t k = 0; ids && k < ids->n_items; k++)
            if (!does(t, a, o->name, ids->items[k]))
                return false;
        if (!ids && !does(t, a, o->name, ask_plan_text_of(o, "id")))
            return false;
    }
    return true;
}

/* Do both do the same to the same things? */
static bool agree(const struct home_table *t, const struct home_draft *a,
                  const struct home_draft *b)
{
    return includes(t, a, b) && includes(t, b, a);
}

/* Does it do what the rules have no words for? They then took the text for something else. */
static bool is_beyond(const struct home_table *t, const struct home_draft *d)
{
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const struct home_action *x = home_table_action(t, d->actions[i]->name);
        if (x && x->read_only)
            return true;
    }
    return false;
}

/* Are the words that the rules asked about a name of what the reader's action is about, or a word
 * that the reader has resolved? */
static bool explains(const struct ask_request *r, const struct ask_plan_action *o, const char *rest)
{
    const struct home_table *t = r->ask->table;
    const struct ask_plan_field *ids = ask_plan_field_of(o, "ids");
    const char *id = ask_plan_text_of(o, "id");
    if (home_table_lists(&t->pronouns, rest)) /* "make it brighter in the hall" */
        return ask_plan_text_of(o, "room") != NULL;
    for (uint32_t i = 0; i < (ids ? ids->n_items : id ? 1 : 0); i++) {
        const struct home_thing *x = home_file_thing(r->file, ids ? ids->items[i] : id);
        if (x && home_table_lists(&x->names, rest))
            return true;
    }
    return false;
}

/* Do the rules ask about words that the same action of the reader leaves out as well? */
static bool leaves_rest(struct ask_request *r, const struct home_draft *reader)
{
    const struct home_draft *rules = &r->draft;
    for (uint32_t i = 0; i < rules->n_actions; i++) {
        const char *rest = ask_plan_text_of(rules->actions[i], "rest");
        rest = rest ? home_words_lower(&r->arena, rest) : NULL;
        for (uint32_t k = 0; rest && k < reader->n_actions; k++)
            if (strcmp(rules->actions[i]->name, reader->actions[k]->name) == 0 &&
                !explains(r, reader->actions[k], rest))
                return true;
    }
    return false;
}

/* Does one turn on what the other turns off? */
static bool are_opposite(const struct home_table *t, const struct home_draft *a,
                         const struct home_draft *b)
{
    for (uint32_t i = 0; i < a->n_actions; i++)
        for (uint32_t k = 0; k < t->n_opposites; k++) {
            const struct home_opposite *o = &t->opposites[k];
            const bool first = strcmp(a->actions[i]->name, o->action[0]->name) == 0;
            if (!first && strcmp(a->actions[i]->name, o->action[1]->name) != 0)
                continue;
            for (uint32_t n = 0; n < b->n_actions; n++)
                if (strcmp(b->actions[n]->name, o->action[first]->name) == 0)
                    return true;
        }
    return false;
}

static bool changes_something(const struct home_table *t, const struct home_draft *d)
{
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const struct home_action *x = home_table_action(t, d->actions[i]->name);
        if (x && x->answer.n == 0 && !x->reason)
            return true;
    }
    return false;
}

/* Is the reader's draft to be taken instead of the rules'? */
static bool is_better(struct ask_request *r, const struct home_draft *mine, bool acts, float p)
{
    const struct home_table *t = r->ask->table;
    const enum success rules = success_of(&r->draft), reader = success_of(mine);
    if (p < (acts ? t->plans.act_p : t->plans.ask_p) || reader <= SUCCESS_STUCK ||
        (acts && is_denied(r)))
        return false;
    if (rules == SUCCESS_NONE)
        return !acts || (p >= t->plans.sure_p && r->command_p >= MIN_COMMAND);
    /* the rules do not know where the speaker is */
    const bool here = r->read_state.here && p >= t->plans.sure_p;
    if (rules == SUCCESS_STUCK)
        return here || !acts || !leaves_rest(r, mine);
    if (here && !agree(t, &r->draft, mine))
        return true;
    return p >= t->plans.sure_p && (acts ? is_beyond(t, mine) : changes_something(t, &r->draft));
}

static void explain(struct ask_request *r, const char *plan, float p, bool acts, bool asks)
{
    r->clauses[0] = (struct home_clause){.text = r->said,
                                         .intent = plan,
                                         .intent_p = p,
                                         .router = "",
                                         .flow = "",
                                         .speech = acts   ? HOME_SPEECH_COMMAND
                                                   : asks ? HOME_SPEECH_ASK
                                                          : HOME_SPEECH_NONE,
                                         .speech_p = p};
    r->n_clauses = 1;
}

void ask_read_decide(struct ask_request *r, const struct home_here *here)
{
    struct home_draft mine = {0};
    struct read_plan plan = {.n = 0};
    uint32_t best = 0;
    while (best < r->n_readings && !read_plan_of(&plan, r->readings[best].text))
        best++;
    if (best == r->n_readings || !r->lines)
        return;
    struct read_acts x = {.a = &r->arena,
                          .t = r->ask->table,
                          .here = here,
                          .now = &r->now,
                          .lines = r->lines,
                          .state = &r->read_state,
                          .kept = r->read_kept,
                          .text = r->said,
                          .p = r->readings[best].p,
                          .draft = &mine};
    bool acts = false, asks = false;
    for (uint32_t i = 0; i < plan.n; i++) {
        acts = acts || read_plan_acts(&plan.acts[i]);
        asks = asks || strcmp(plan.acts[i].verb, "ask") == 0;
    }
    read_acts(&x, &plan);
    if (!is_better(r, &mine, acts, x.p)) {
        if (x.p < r->ask->table->plans.ask_p || is_denied(r) || r->draft.n_actions != 1 ||
            mine.n_actions != 1 || !are_opposite(r->ask->table, &r->draft, &mine))
            return;
        mine = (struct home_draft){0}; /* one of two is wrong, and it matters which: offer it */
        x.p = 0.0f;
        read_acts(&x, &plan);
    }
    r->draft = mine;
    r->read_focus =
        (struct home_focus){.last = x.last_out, .pending = x.pending_out, .kept = x.kept_out};
    r->is_read = true;
    explain(r, r->readings[best].text, r->readings[best].p, acts, asks);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The verb of the plan language for an action; NULL: none. */
static const char *verb_of(const struct home_table *t, const char *action)
{
    for (uint32_t i = 0; i < t->plans.verbs.n; i++)
        if (strcmp(t->plans.verbs.p[i].to, action) == 0 && !strchr(t->plans.verbs.p[i].from, '_'))
            return t->plans.verbs.p[i].from;
    return NULL;
}

/* "set @fv1 pressure" of an action that the rules made; NULL: it has no such form. */
static const char *head_of(struct ask_request *r, const struct ask_plan_action *o)
{
    const struct home_table *t = r->ask->table;
    const char *id = ask_plan_text_of(o, "id"), *verb = verb_of(t, o->name);
    for (uint32_t i = 0; i < t->plans.n_quantities; i++) {
        const struct home_plan_quantity *q = &t->plans.quantities[i];
        if (q->set && strcmp(q->set->name, o->name) == 0 && id)
            return arena_printf(&r->arena, "set @%s %s", id, q->name);
    }
    return verb && id ? arena_printf(&r->arena, "%s @%s", verb, id) : NULL;
}

void ask_read_remember(struct ask_request *r, struct home_focus *f)
{
    if (!r->reads)
        return;
    if (r->is_read) {
        f->last = r->read_focus.last;
        f->pending = r->read_focus.pending;
        f->kept = r->read_focus.kept;
        return;
    }
    f->pending = f->kept = NULL;
    for (uint32_t i = 0; i < r->plan.n_actions; i++) {
        const char *head = head_of(r, r->plan.actions[i]);
        f->last = head ? head : f->last;
    }
}
