/* ask_read.c - see ask_read.h. */
#include "apps/home/ask/ask_read.h"

#include <stdio.h>
#include <string.h>

#include "apps/home/read/read_acts.h"

#define MAX_ANSWER_WORDS 6u

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

/* May the text answer the question that was asked? What is longer is something new. */
static bool is_answerable(const struct ask_request *r, const char *pending)
{
    return pending && *pending && r->words.n <= MAX_ANSWER_WORDS;
}

static void submit(struct ask_request *r)
{
    struct err e = {0};
    struct shoal_task *t;
    struct home_focus f;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &f);
    r->read_state =
        (struct read_lines_state){.here = room_named(r->file, r->room),
                                  .last = f.last,
                                  .pending = is_answerable(r, f.pending) ? f.pending : NULL};
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
    if (rc == SHOAL_ELIMIT) { /* too long for a command */
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

void ask_read_start(struct ask_request *r)
{
    r->stage = ASK_STAGE_READ;
    atomic_store_explicit(&r->pending, 1, memory_order_relaxed);
    submit(r);
}

/* ---- words that the plan leaves out ---------------------------------------------------------- */

static bool covers(struct read_plan_span s, uint32_t i)
{
    return i >= s.from && i < s.to;
}

static bool explains_word(const struct read_plan_act *x, uint32_t i)
{
    const struct read_plan_span spans[] = {x->value, x->at,       x->in,      x->lasts,
                                           x->until, x->every,    x->what,    x->list,
                                           x->name,  x->duration, x->unknown, x->elsewhere};
    for (uint32_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++)
        if (covers(spans[k], i))
            return true;
    for (uint32_t k = 0; k < x->n_items; k++)
        if (covers(x->items[k], i))
            return true;
    return false;
}

static bool is_in_names(struct arena *a, const struct home_thing *x, const char *word)
{
    for (uint32_t i = 0; i < x->names.n; i++) {
        struct home_words w = home_words_split(a, x->names.w[i]);
        for (uint32_t k = 0; k < w.n; k++)
            if (strcmp(w.w[k], word) == 0)
                return true;
    }
    return false;
}

/* Is there a number that is no part of the plan? "Oven 180 degrees for 20 minutes" must not lose
 * its minutes: whoever hears less than what was said asks. */
static bool leaves_number(struct ask_request *r, const struct read_plan *plan)
{
    struct home_words plain = home_words_plain_all(&r->arena, &r->lines->words);
    for (uint32_t i = 0; i < plain.n; i++) {
        bool known = plain.w[i][0] < '0' || plain.w[i][0] > '9';
        for (uint32_t k = 0; !known && k < plan->n; k++)
            known = explains_word(&plan->acts[k], i);
        for (uint32_t k = 0; !known && k < r->lines->n_things; k++)
            known = is_in_names(&r->arena, r->lines->things[k].thing, plain.w[i]);
        for (uint32_t k = 0; !known && k < r->lines->n_areas; k++)
            known = is_in_names(&r->arena, r->lines->areas[k], plain.w[i]);
        if (!known)
            return true;
    }
    return false;
}

static bool is_said(const struct home_words *plain, const struct home_thing *x)
{
    for (uint32_t i = 0; i < plain->n; i++)
        if (home_table_phrase(&x->names, plain, i) > 0)
            return true;
    return false;
}

static bool has_line(const struct read_plan_lines *l, uint32_t at)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i] == at)
            return true;
    return false;
}

/* Does a whole class of things get something although the text also names a room that the plan does
 * not? "All the lights off, but leave the kitchen on." */
static bool leaves_room(struct ask_request *r, const struct read_plan *plan)
{
    struct home_words plain = home_words_plain_all(&r->arena, &r->lines->words);
    for (uint32_t i = 0; i < r->lines->n_areas; i++) {
        bool known = !is_said(&plain, r->lines->areas[i]), wide = false;
        for (uint32_t k = 0; k < plan->n; k++) {
            const struct read_plan_act *x = &plan->acts[k];
            wide = wide || (x->class && x->areas.n == 0 && read_plan_acts(x));
            known = known || has_line(&x->areas, i);
            for (uint32_t n = 0; !known && n < x->things.n + x->except.n; n++) {
                const uint32_t at =
                    n < x->things.n ? x->things.at[n] : x->except.at[n - x->things.n];
                known = at < r->lines->n_things &&
                        (r->lines->things[at].thing->room == r->lines->areas[i] ||
                         is_in_names(&r->arena, r->lines->things[at].thing,
                                     r->lines->areas[i]->names.w[0]));
            }
        }
        if (!known && wide)
            return true;
    }
    return false;
}

/* ---- deciding -------------------------------------------------------------------------------- */

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

/* Fields that say what is done, not how sure it is or how a reply calls it. */
static bool matters(const char *key)
{
    static const char *const words[] = {"device", "room", "machine", "result", "risk", "simulated"};
    for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], key) == 0)
            return false;
    return true;
}

static bool same_field(const struct ask_plan_field *a, const struct ask_plan_field *b)
{
    if (!b || a->n_items != b->n_items || !a->text != !b->text || a->number != b->number)
        return false;
    for (uint32_t i = 0; i < a->n_items; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return !a->text || strcmp(a->text, b->text) == 0;
}

/* Would both drafts do the same to the same things? */
static bool agree(const struct home_draft *a, const struct home_draft *b)
{
    if (a->n_actions != b->n_actions)
        return false;
    for (uint32_t i = 0; i < a->n_actions; i++) {
        const struct ask_plan_action *x = a->actions[i], *y = b->actions[i];
        if (strcmp(x->name, y->name) != 0)
            return false;
        for (uint32_t k = 0; k < x->n_fields; k++)
            if (matters(x->fields[k].key) &&
                !same_field(&x->fields[k], ask_plan_field_of(y, x->fields[k].key)))
                return false;
    }
    return a->n_actions > 0;
}

/* The other readings that come to the same: "the radio" may be the one radio, or all of them where
 * there is one. */
static float agreeing(struct ask_request *r, const struct read_acts *best, uint32_t from)
{
    float p = 0.0f;
    for (uint32_t i = from; i < r->n_readings; i++) {
        struct read_plan plan;
        struct home_draft draft = {0};
        struct read_acts other = *best;
        struct read_lines lines = *r->lines;
        if (!read_plan_of(&plan, r->readings[i].text))
            continue;
        other.draft = &draft;
        other.lines = &lines;
        read_acts(&other, &plan);
        if (agree(best->draft, &draft))
            p += r->readings[i].p;
    }
    return p;
}

static void say_unsure(struct ask_request *r)
{
    const struct home_template *t = &r->ask->table->say[HOME_SAY_UNSURE];
    if (home_draft_reserve(&r->arena, &r->draft) && t->n > 0)
        r->draft.lines[r->draft.n_lines++] =
            (struct home_draft_line){.say = t->parts[0].text ? t->parts[0].text : ""};
}

bool ask_read_decide(struct ask_request *r, const struct home_here *here)
{
    struct read_plan plan = {.n = 0};
    struct home_draft trial = {0};
    uint32_t best = 0;
    while (best < r->n_readings && !read_plan_of(&plan, r->readings[best].text))
        best++;
    const bool readable = best < r->n_readings && r->lines;
    float p = readable ? r->readings[best].p : 0.0f;
    bool acts = false, asks = false;
    for (uint32_t i = 0; i < plan.n; i++) {
        acts = acts || read_plan_acts(&plan.acts[i]);
        asks = asks || strcmp(plan.acts[i].verb, "ask") == 0;
    }
    if (!readable) {
        explain(r, "", p, acts, asks);
        say_unsure(r);
        return false;
    }
    struct read_acts x = {.a = &r->arena,
                          .t = r->ask->table,
                          .here = here,
                          .now = &r->now,
                          .lines = r->lines,
                          .state = &r->read_state,
                          .kept = r->read_kept,
                          .text = r->said,
                          .p = 1.0f,
                          .simulated = !home_things_sink(r->ask->things),
                          .draft = &trial};
    if (acts) {
        struct read_lines lines = *r->lines;
        x.lines = &lines;
        read_acts(&x, &plan);
        p += agreeing(r, &x, best + 1);
        x.last_out = x.pending_out = x.kept_out = NULL;
        x.lines = r->lines;
    }
    explain(r, r->readings[best].text, p, acts, asks);
    if (acts && p < r->ask->table->plans.ask_p) {
        say_unsure(r); /* not sure enough even to offer it */
        return false;
    }
    x.p = acts && (leaves_number(r, &plan) || leaves_room(r, &plan)) ? 0.0f : p;
    x.draft = &r->draft;
    read_acts(&x, &plan);
    r->read_focus =
        (struct home_focus){.last = x.last_out, .pending = x.pending_out, .kept = x.kept_out};
    r->is_read = true;
    return asks && !acts;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void ask_read_remember(struct ask_request *r, struct home_focus *f)
{
    if (!r->is_read) { /* a yes is about what was read before it */
        f->last = r->reads ? r->focus.last : NULL;
        f->pending = f->kept = NULL;
        return;
    }
    f->last = r->read_focus.last;
    f->pending = r->read_focus.pending;
    f->kept = r->read_focus.kept;
}
