/* ask_read.c - see ask_read.h. */
#include "apps/home/ask/ask_read.h"

#include <stdio.h>
#include <string.h>

#include "apps/home/read/read_acts.h"
#include "apps/home/read/read_cover.h"

#define MAX_ANSWER_WORDS 6u
/* Shares of words that nothing explains: beyond the first nothing happens, from the second on it is
 * only offered. Reasons have some: "my son is here". */
#define MAX_STRANGE 0.49f
/* One or two words easily mean nothing: they are done at once only from this probability on. */
#define ACT_TWO_WORDS 0.99f
#define SOME_STRANGE 0.25f

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
    r->step_tokens = res->n_tokens;
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
    if (r->answer)
        r->read_state.pending = NULL;
    r->read_kept = f.kept;
    r->lines = arena_zalloc(&r->arena, sizeof(*r->lines));
    const int rc = !r->lines ? r->arena.rc
                             : read_lines_choose(r->lines, &r->arena, r->table, r->file,
                                                 &r->read_state, r->text);
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
    /* one more, so that the stage cannot end while its part is being submitted */
    atomic_store_explicit(&r->pending, 2, memory_order_relaxed);
    submit(r);
    ask_request_part_done(r);
}

/* ---- answers that are none ---------------------------------------------------------------------
 */

struct ask_answer { /* the text as an answer */
    const char *pending;
    struct read_lines *lines;
    uint32_t n;
    char readings[sizeof(((struct ask_request *)0)->readings)];
};

static bool is_verb(const char *verb, const char *const *list)
{
    while (*list && strcmp(*list, verb) != 0)
        list++;
    return *list != NULL;
}

/* The first reading that is a plan; NULL: none. */
static const struct read_plan_act *best_act(const struct ask_request *r, struct read_plan *plan,
                                            float *p)
{
    for (uint32_t i = 0; i < r->n_readings; i++)
        if (read_plan_of(plan, r->readings[i].text) && plan->n > 0) {
            *p = r->readings[i].p;
            return &plan->acts[0];
        }
    return NULL;
}

/* May the answer be a sentence about a thing: "remind me" - "of what?" - "to feed the cat"? */
static bool may_be_any(struct ask_request *r)
{
    static const char *const verbs[] = {"message", "announce", "remind", "event", NULL};
    const char *last = r->read_state.last ? r->read_state.last : "";
    return is_verb(arena_printf(&r->arena, "%.*s", (int)strcspn(last, " "), last), verbs);
}

/* Do words of the text name a thing of the home, or a class of things? */
static bool names_thing(struct ask_request *r)
{
    const struct home_words plain = home_words_plain_all(&r->arena, &r->words);
    for (uint32_t k = 0; r->lines && k < plain.n; k++) {
        for (uint32_t i = 0; i < r->lines->n_things; i++)
            if (home_table_phrase(&r->lines->things[i].thing->names, &plain, k) > 0)
                return true;
        for (uint32_t i = 0; i < r->table->plans.n_classes; i++)
            if (home_table_phrase(&r->table->plans.classes[i].words, &plain, k) > 0)
                return true;
    }
    return false;
}

static void keep_better(struct ask_request *r)
{
    const struct ask_answer *x = r->answer;
    struct read_plan plan;
    float p = 0.0f;
    const struct read_plan_act *act = best_act(r, &plan, &p);
    if (act && read_plan_acts(act) && strcmp(act->verb, "answer") != 0 &&
        p >= r->table->plans.ask_p)
        return;
    r->read_state.pending = x->pending;
    r->lines = x->lines;
    r->n_readings = x->n;
    memcpy(r->readings, x->readings, sizeof(r->readings));
}

bool ask_read_again(struct ask_request *r)
{
    struct read_plan plan;
    float p;
    if (r->answer) {
        keep_better(r);
        return false;
    }
    const struct read_plan_act *act = r->read_state.pending ? best_act(r, &plan, &p) : NULL;
    if (!act || strcmp(act->verb, "answer") != 0 || r->words.n < 2 || !names_thing(r) ||
        may_be_any(r))
        return false;
    r->answer = arena_zalloc(&r->arena, sizeof(*r->answer));
    if (!r->answer)
        return false;
    r->answer->pending = r->read_state.pending;
    r->answer->lines = r->lines;
    r->answer->n = r->n_readings;
    memcpy(r->answer->readings, r->readings, sizeof(r->readings));
    r->n_readings = 0;
    ask_read_start(r);
    return true;
}

/* ---- deciding -------------------------------------------------------------------------------- */

static struct ask_plan_clause understood(const struct ask_request *r, const char *plan, float p,
                                         bool acts, bool asks)
{
    return (struct ask_plan_clause){.text = r->text,
                                    .intent = plan,
                                    .intent_p = p,
                                    .router = "",
                                    .flow = "",
                                    .act = acts   ? "command"
                                           : asks ? "ask"
                                                  : "none",
                                    .act_p = p};
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
static float agreeing(struct ask_request *r, const struct read_work *best, uint32_t from)
{
    float p = 0.0f;
    for (uint32_t i = from; i < r->n_readings; i++) {
        struct read_plan plan;
        struct home_draft draft = {0};
        struct read_work other = *best;
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

/* Has the text the whole name of a thing? */
static bool has_name(const struct ask_request *r)
{
    for (uint32_t i = 0; i < r->lines->n_things; i++)
        if (r->lines->things[i].exact)
            return true;
    return false;
}

/* "Stop it, Harold": a stop of nothing in particular. */
static bool is_bare_stop(const struct read_plan *plan)
{
    const struct read_plan_act *x = &plan->acts[0];
    return plan->n == 1 && strcmp(x->verb, "stop") == 0 && x->things.n == 0 && !x->class &&
           !x->unknown.to;
}

/* Is it talk among people?  Typed, it gets an answer; heard, it does not. */
static bool is_overheard(const struct ask_request *r, const struct read_plan *plan)
{
    static const char *const words[] = {"talk", "negated", "reported", "condition"};
    bool talk = r->heard > 0.0f && plan->n > 0;
    for (uint32_t i = 0; talk && i < plan->n; i++) {
        const struct read_plan_act *x = &plan->acts[i];
        talk = false;
        for (size_t k = 0; strcmp(x->verb, "none") == 0 && x->word && k < 4; k++)
            talk = talk || strcmp(x->word, words[k]) == 0;
    }
    return talk;
}

/* Were the words heard too badly to act on them without asking? */
static bool is_unclear(const struct ask_request *r)
{
    return r->heard > 0.0f && r->heard < r->table->plans.heard;
}

static void say_unsure(struct ask_request *r)
{
    const struct home_template *t = &r->table->say[HOME_SAY_UNSURE];
    if (home_draft_reserve(&r->arena, &r->draft) && t->n > 0)
        r->draft.lines[r->draft.n_lines++] =
            (struct home_draft_line){.say = t->parts[0].text ? t->parts[0].text : ""};
}

static bool is_word(const struct read_plan_act *x, const char *word)
{
    return x->word && strcmp(x->word, word) == 0;
}

/* Did the home only look something up, and had nothing to look it up with? */
static bool knows_nothing(const struct home_draft *d)
{
    for (uint32_t i = 0; i < d->n_actions; i++) {
        const char *result = ask_plan_text_of(d->actions[i], "result");
        if (!result || strcmp(result, "failed") != 0)
            return false;
    }
    return true;
}

/* Does an act leave something open? Those of commands and of chat do not. */
static enum ask_plan_open act_leaves(const struct read_plan_act *x)
{
    if (strcmp(x->verb, "ask") == 0)
        return ASK_PLAN_TALK;
    if (strcmp(x->verb, "other") == 0)
        return is_word(x, "help") ? ASK_PLAN_SETTLED : ASK_PLAN_QUESTION;
    if (strcmp(x->verb, "none") != 0)
        return ASK_PLAN_SETTLED;
    return is_word(x, "question") ? ASK_PLAN_QUESTION
           : is_word(x, "talk")   ? ASK_PLAN_TALK
                                  : ASK_PLAN_SETTLED;
}

/* Whether something else may know what the home did not: it has nothing to do with the text, or
 * nothing to answer it with. */
static enum ask_plan_open left_open(const struct home_draft *d, const struct read_plan *plan)
{
    enum ask_plan_open open = ASK_PLAN_SETTLED;
    for (uint32_t i = 0; i < plan->n; i++) {
        const enum ask_plan_open one = act_leaves(&plan->acts[i]);
        if (one == ASK_PLAN_SETTLED || !knows_nothing(d))
            return ASK_PLAN_SETTLED;
        open = one > open ? one : open;
    }
    return open == ASK_PLAN_QUESTION && d->n_actions > 0 ? ASK_PLAN_TALK : open;
}

bool ask_read_decide(struct ask_request *r, const struct home_here *here,
                     struct ask_plan_clause *out)
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
        *out = understood(r, "", p, acts, asks);
        say_unsure(r);
        return false;
    }
    struct read_work x = {.a = &r->arena,
                          .t = r->table,
                          .here = here,
                          .now = &r->now,
                          .lines = r->lines,
                          .state = &r->read_state,
                          .kept = r->read_kept,
                          .text = r->text,
                          .p = 1.0f,
                          .simulated = !r->ask->things || !home_things_sink(r->ask->things),
                          .draft = &trial};
    if (acts) {
        struct read_lines lines = *r->lines;
        x.lines = &lines;
        read_acts(&x, &plan);
        p += agreeing(r, &x, best + 1);
        x.last_out = x.pending_out = x.kept_out = NULL;
        x.lines = r->lines;
    }
    *out = understood(r, r->readings[best].text, p, acts, asks);
    if (is_overheard(r, &plan))
        return true;                                    /* it changes nothing */
    const bool answers = r->read_state.pending != NULL; /* may be any words */
    const float strange =
        acts && !answers ? read_cover_strange(&r->arena, x.t, r->file, r->lines, &plan) : 0.0f;
    const bool guessed = acts && !answers && p < r->table->plans.act_p && plan.n == 1 &&
                         !read_cover_hints(&r->arena, x.t, r->lines, &plan.acts[0]);
    if (acts && (p < r->table->plans.ask_p || guessed || strange > MAX_STRANGE ||
                 (strange > 0.0f && is_bare_stop(&plan)))) {
        say_unsure(r); /* not sure enough even to offer it */
        return false;
    }
    const bool brief = r->words.n <= 2 && !answers && !has_name(r) && p < ACT_TWO_WORDS;
    const bool whole = !acts || (!is_unclear(r) && !brief && strange < SOME_STRANGE &&
                                 !(plan.n == 1 && read_cover_asks(&r->arena, x.t, r->lines)) &&
                                 read_cover_all(&r->arena, r->lines, &plan));
    const char *left = acts ? read_cover_left(&r->arena, r->table, r->lines, &plan) : NULL;
    x.p = whole ? p : 0.0f;
    x.draft = &r->draft;
    if (left && !whole) /* in front of the question */
        read_work_say(&x, HOME_SAY_LEFT, left);
    read_acts(&x, &plan);
    if (left && whole)
        read_work_say(&x, HOME_SAY_LEFT, left);
    r->plan.open = left_open(&r->draft, &plan);
    r->read_focus =
        (struct home_focus){.last = x.last_out, .pending = x.pending_out, .kept = x.kept_out};
    r->is_read = true;
    return asks && !acts;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void ask_read_remember(struct ask_request *r, struct home_focus *f)
{
    if (!r->is_read) { /* a yes is about what was read before it */
        f->last = r->focus.last;
        f->pending = f->kept = NULL;
        return;
    }
    f->last = r->read_focus.last;
    f->pending = r->read_focus.pending;
    f->kept = r->read_focus.kept;
}
