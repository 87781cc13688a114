/* ask.c - the life of a request, see ask.h. */
#include "flow/home/ask.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "flow/home/home_clauses.h"
#include "flow/home/home_memory.h"
#include "flow/home/home_rules.h"
#include "flow/home/home_speech.h"
#include "flow/home/home_truth.h"
#include "flow/home/home_words.h"
#include "shoal/shoal.h"
#include "wire/json_out.h"

#define ARENA_BYTES ((size_t)8 << 20)
#define REPLY_BYTES ((size_t)1 << 16)
#define REPLY_TOKENS 120u
#define PER_CLAUSE 3u /* intent, router, entities */
#define MAX_PARTS 64u /* of a text, by speech act */
#define MAX_FLOWS 64u

struct ask {
    const struct home_table *table;
    struct shoal_engine *encoder, *act, *reply;
    struct home_memory *memory;
    float threshold;
    struct {
        char *label, *flow;
    } flows[MAX_FLOWS];
    uint32_t n_flows;
};

enum stage { STAGE_ACT, STAGE_UNDERSTAND, STAGE_REPLY };

struct ask_request {
    struct ask *ask;
    struct shoal_engine *reply_engine; /* NULL: actions only */
    struct shoal_engine *act_engine;   /* NULL: the rules alone tell commands from other talk */
    _Atomic uint32_t refs;             /* the caller's and the flow's own */
    _Atomic uint32_t pending; /* unfinished parts of the stage, plus one while they are started */
    _Atomic bool cancel;
    enum stage stage;
    int code; /* the first failure */
    char message[320];

    struct arena arena;
    const char *text, *conversation; /* in the arena; conversation "": none */
    struct home_words words;         /* of the text */
    struct home_part parts[MAX_PARTS];
    uint32_t n_parts;
    float command_p; /* that the text commands something */
    struct home_clause clauses[ASK_MAX_CLAUSES];
    uint32_t n_clauses;
    struct ask_plan plan; /* complete after decide */
    struct home_draft_context *contexts;
    uint32_t n_contexts, at_context;
    bool referred; /* "it" was replaced by what it means */
    struct buf reply;
    size_t reply_from; /* where the reply to the current context begins */
    struct tm now;

    uint64_t start_ns, deadline_ns, step_ns, total_ns;
    struct ask_plan_step steps[ASK_MAX_STEPS];
    uint32_t n_steps, step_tokens;
    int32_t priority;
    uint64_t client;
    float weight;
    void (*event)(void *ctx, const struct ask_request *r, const struct ask_event *ev);
    void *event_ctx;

    pthread_mutex_t lock; /* guards tasks, code and message, done */
    pthread_cond_t finished;
    struct shoal_task *tasks[ASK_MAX_CLAUSES * PER_CLAUSE];
    uint32_t n_tasks;
    bool done;
};

/* ---- the flow itself ------------------------------------------------------------------------ */

static int read_config(struct ask *a, const char *json, size_t n, struct err *e)
{
    cJSON *c = json ? cJSON_ParseWithLength(json, n) : NULL;
    const cJSON *s = cJSON_GetObjectItemCaseSensitive(c, "shoal"), *v;
    const cJSON *router = cJSON_GetObjectItemCaseSensitive(s, "router");
    const cJSON *intent = cJSON_GetObjectItemCaseSensitive(s, "intent");
    const cJSON *sets = cJSON_GetObjectItemCaseSensitive(intent, "label_sets");
    const cJSON *set = cJSON_GetObjectItemCaseSensitive(sets, a->table->intent_labels);
    const cJSON *threshold = cJSON_GetObjectItemCaseSensitive(set, "threshold");
    int rc = 0;
    if (!cJSON_IsObject(router) || !cJSON_IsNumber(threshold))
        rc = err_set(e, SHOAL_EFORMAT,
                     "the encoder's config.json has no shoal.router, or no threshold in "
                     "shoal.intent.label_sets.%s",
                     a->table->intent_labels);
    else
        a->threshold = (float)threshold->valuedouble;
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(router, "flow"))
    {
        if (rc < 0 || !cJSON_IsString(v) || a->n_flows == MAX_FLOWS)
            continue;
        a->flows[a->n_flows].label = mem_strdup(v->string);
        a->flows[a->n_flows].flow = mem_strdup(v->valuestring);
        if (!a->flows[a->n_flows].label || !a->flows[a->n_flows].flow)
            rc = err_set(e, SHOAL_ENOMEM, "flow");
        a->n_flows++;
    }
    cJSON_Delete(c);
    return rc;
}

int ask_create(struct ask **out, const struct home_table *table, struct shoal_engine *encoder,
               struct shoal_engine *act, struct shoal_engine *reply, struct err *e)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    *out = NULL;
    shoal_engine_info(encoder, &info);
    if (!(info.kinds & SHOAL_KIND_CLASSIFY) || !(info.kinds & SHOAL_KIND_TAG))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the encoder cannot both classify and tag, which ask needs");
    struct ask *a = mem_zalloc(sizeof(*a));
    if (!a)
        return err_set(e, SHOAL_ENOMEM, "flow");
    a->table = table;
    a->encoder = encoder;
    a->act = act;
    a->reply = reply;
    size_t n = 0;
    const char *config = shoal_engine_metadata(encoder, "huggingface.config", &n);
    int rc = read_config(a, config, n, e);
    if (rc == 0)
        rc = home_memory_create(&a->memory, e);
    if (rc < 0) {
        ask_destroy(a);
        return rc;
    }
    *out = a;
    return 0;
}

void ask_destroy(struct ask *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < a->n_flows; i++) {
        mem_free(a->flows[i].label);
        mem_free(a->flows[i].flow);
    }
    home_memory_destroy(a->memory);
    mem_free(a);
}

static const char *flow_of(const struct ask *a, const char *label)
{
    for (uint32_t i = 0; i < a->n_flows; i++)
        if (strcmp(a->flows[i].label, label) == 0)
            return a->flows[i].flow;
    return "";
}

/* ---- requests ------------------------------------------------------------------------------- */

static void unref(struct ask_request *r)
{
    if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < r->n_tasks; i++)
        shoal_task_free(r->tasks[i]);
    buf_fini(&r->reply);
    arena_fini(&r->arena);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->finished);
    mem_free(r);
}

static void emit(struct ask_request *r, const struct ask_event *ev)
{
    if (r->event)
        r->event(r->event_ctx, r, ev);
}

static void fail(struct ask_request *r, int code, const char *message)
{
    pthread_mutex_lock(&r->lock); /* the submitting thread and an engine may both fail */
    if (r->code == 0) {           /* the first failure is reported */
        r->code = code;
        snprintf(r->message, sizeof(r->message), "%s", message);
    }
    pthread_mutex_unlock(&r->lock);
}

static void step_end(struct ask_request *r, const char *name, const char *model)
{
    uint64_t now = clock_ns();
    if (r->n_steps < ASK_MAX_STEPS)
        r->steps[r->n_steps++] = (struct ask_plan_step){.name = name,
                                                        .model = model,
                                                        .start_ns = r->step_ns - r->start_ns,
                                                        .ns = now - r->step_ns,
                                                        .tokens = r->step_tokens};
    r->step_ns = now;
    r->step_tokens = 0;
}

static void finish(struct ask_request *r)
{
    r->total_ns = clock_ns() - r->start_ns;
    emit(r, &(struct ask_event){.kind = ASK_EVENT_DONE, .code = r->code, .message = r->message});
    pthread_mutex_lock(&r->lock);
    r->done = true;
    pthread_cond_broadcast(&r->finished);
    pthread_mutex_unlock(&r->lock);
    unref(r);
}

/* Keeps a task of the current stage, so that it can be cancelled. */
static void keep_task(struct ask_request *r, struct shoal_task *t)
{
    pthread_mutex_lock(&r->lock);
    r->tasks[r->n_tasks++] = t;
    pthread_mutex_unlock(&r->lock);
    if (atomic_load_explicit(&r->cancel, memory_order_relaxed))
        shoal_task_cancel(t);
}

static void drop_tasks(struct ask_request *r)
{
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->n_tasks; i++)
        shoal_task_free(r->tasks[i]);
    r->n_tasks = 0;
    pthread_mutex_unlock(&r->lock);
}

static void advance(struct ask_request *r);

static void part_done(struct ask_request *r)
{
    if (atomic_fetch_sub_explicit(&r->pending, 1, memory_order_acq_rel) == 1)
        advance(r);
}

/* ---- understanding -------------------------------------------------------------------------- */

/* One inference of a clause.  Each writes to its own fields of the clause, so results need no lock;
 * an engine delivers its results one after the other. */
struct part {
    struct ask_request *r;
    struct home_clause *clause;
    enum { PART_INTENT, PART_ROUTER, PART_ENTITIES, PART_COMMAND, PART_ACTS } which;
};

static void take_label(struct part *p, const struct shoal_result *res)
{
    struct arena *a = &p->r->arena;
    /* the best label, however unsure: the rules compare it with the threshold */
    const char *name = arena_printf(a, "%s", res->labels[0].name);
    if (p->which == PART_INTENT) {
        p->clause->intent = name;
        p->clause->intent_p = res->labels[0].score;
    } else {
        p->clause->router = name;
        p->clause->router_p = res->labels[0].score;
        p->clause->flow = flow_of(p->r->ask, name);
    }
}

/* A span in bytes to words from..to-1; false: it has none. */
static bool span_words(const char *text, const struct shoal_span *s, uint32_t *from, uint32_t *to)
{
    uint32_t word = 0;
    bool inside = false;
    *from = UINT32_MAX;
    for (uint32_t b = 0; b < s->end && text[b]; b++) {
        bool space = strchr(" \t\n\v\f\r", text[b]) != NULL;
        if (!space && !inside)
            word++;
        inside = !space;
        if (!space && b >= s->start) {
            *from = *from == UINT32_MAX ? word - 1 : *from;
            *to = word;
        }
    }
    return *from != UINT32_MAX;
}

static void take_acts(struct ask_request *r, const struct shoal_result *res)
{
    for (uint32_t i = 0; i < res->n_spans && r->n_parts < MAX_PARTS; i++) {
        struct home_part *p = &r->parts[r->n_parts];
        *p = (struct home_part){.speech = home_table_speech(res->spans[i].label),
                                .p = res->spans[i].score};
        if (span_words(r->text, &res->spans[i], &p->from, &p->to) &&
            (r->n_parts == 0 || p->from >= p[-1].to))
            r->n_parts++;
    }
}

static void take_command(struct ask_request *r, const struct shoal_result *res)
{
    for (uint32_t i = 0; i < res->n_labels; i++)
        if (home_table_speech(res->labels[i].name) == HOME_SPEECH_COMMAND)
            r->command_p = res->labels[i].score;
}

/* Spans in bytes to entities in words. */
static void take_entities(struct part *p, const struct shoal_result *res)
{
    struct arena *a = &p->r->arena;
    const char *text = p->clause->text;
    struct home_entity *list = arena_zalloc_n(a, (size_t)res->n_spans + 1, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; list && i < res->n_spans; i++) {
        struct home_entity *e = &list[n];
        *e = (struct home_entity){0};
        if (!span_words(text, &res->spans[i], &e->from, &e->to))
            continue;
        e->type = arena_printf(a, "%s", res->spans[i].label);
        n++;
    }
    p->clause->entities = list;
    p->clause->n_entities = list ? n : 0;
}

static void part_result(void *ctx, const struct shoal_result *res)
{
    struct part *p = ctx;
    struct ask_request *r = p->r;
    if (res->code < 0)
        fail(r, res->code, res->message);
    else if (p->which == PART_COMMAND)
        take_command(r, res);
    else if (p->which == PART_ACTS)
        take_acts(r, res);
    else if (p->which == PART_ENTITIES)
        take_entities(p, res);
    else
        take_label(p, res);
    r->step_tokens += p->which == PART_INTENT || p->which == PART_ACTS ? res->n_tokens : 0;
    part_done(r);
}

static void submit_part(struct ask_request *r, struct part *p)
{
    const struct home_table *table = r->ask->table;
    const char *const sets[] = {table->intent_labels, table->router_labels, table->entity_labels,
                                table->act_labels, table->act_labels};
    bool tags = p->which == PART_ENTITIES || p->which == PART_ACTS, acts = !p->clause;
    const char *text = acts ? r->text : p->clause->text;
    struct err e = {0};
    struct shoal_task *t;
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = tags ? SHOAL_KIND_TAG : SHOAL_KIND_CLASSIFY,
                                 .text = text,
                                 .text_bytes = strlen(text),
                                 .labels = sets[p->which],
                                 .deadline_ns = r->deadline_ns,
                                 .priority = r->priority,
                                 .client = r->client,
                                 .weight = r->weight,
                                 .done = part_result,
                                 .done_ctx = p};
    if (shoal_infer_submit(acts ? r->act_engine : r->ask->encoder, &o, &t, &e) < 0) {
        fail(r, e.code, e.msg);
        part_done(r);
        return;
    }
    keep_task(r, t);
}

/* Which words command something. */
static void find_acts(struct ask_request *r)
{
    struct part *parts = arena_zalloc_n(&r->arena, 2, sizeof(*parts));
    r->stage = STAGE_ACT;
    atomic_store_explicit(&r->pending, parts ? 3 : 1, memory_order_relaxed); /* as below */
    for (uint32_t i = 0; parts && i < 2; i++) {
        parts[i] = (struct part){.r = r, .which = i ? PART_ACTS : PART_COMMAND};
        submit_part(r, &parts[i]);
    }
    part_done(r);
}

/* Clauses from `only` on that are marked, or with NULL all of them, go through the encoder. */
static void understand(struct ask_request *r, const bool *only)
{
    uint32_t n = r->n_clauses * PER_CLAUSE, n_parts = 0;
    struct part *parts = arena_zalloc_n(&r->arena, n + 1, sizeof(*parts));
    for (uint32_t i = 0; parts && i < n; i++) {
        if (only && !only[i / PER_CLAUSE])
            continue;
        parts[n_parts] = (struct part){.r = r, .clause = &r->clauses[i / PER_CLAUSE]};
        parts[n_parts++].which = i % PER_CLAUSE == 0   ? PART_INTENT
                                 : i % PER_CLAUSE == 1 ? PART_ROUTER
                                                       : PART_ENTITIES;
    }
    r->stage = STAGE_UNDERSTAND;
    /* one more, so that the stage cannot end while its parts are being submitted */
    atomic_store_explicit(&r->pending, n_parts + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < n_parts; i++)
        submit_part(r, &parts[i]);
    part_done(r);
}

/* The thing that a clause names last: "the kitchen lights"; NULL: none. */
static const char *thing_in(struct ask_request *r, const struct home_clause *c)
{
    struct home_words w = home_words_split(&r->arena, c->text);
    const char *room = "", *thing = NULL;
    for (uint32_t i = 0; i < c->n_entities; i++) {
        const struct home_entity *e = &c->entities[i];
        bool is_room = strcmp(e->type, "room") == 0;
        if (!is_room && strcmp(e->type, "device") != 0 && strcmp(e->type, "machine") != 0)
            continue;
        const char *text = home_words_trim_end(
            &r->arena, home_words_join(&r->arena, &w, e->from, e->to), HOME_WORDS_CLOSING);
        if (is_room)
            room = text;
        else
            thing = text;
    }
    return thing ? arena_printf(&r->arena, "the %s%s%s", room, *room ? " " : "", thing) : NULL;
}

/* Puts what "it" means into the clauses that say it, and looks at them once more; false: there is
 * nothing to replace. */
static bool refer(struct ask_request *r)
{
    const struct home_table *t = r->ask->table;
    struct home_focus f;
    bool *again = arena_zalloc_n(&r->arena, ASK_MAX_CLAUSES, sizeof(*again)), any = false;
    if (r->referred || t->pronouns.n == 0 || !again)
        return false;
    r->referred = true;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &f);
    const char *last = f.device    ? arena_printf(&r->arena, "the %s%s%s", f.room ? f.room : "",
                                               f.room ? " " : "", f.device)
                       : f.machine ? arena_printf(&r->arena, "the %s", f.machine)
                                   : NULL;
    for (uint32_t i = 0; i < r->n_clauses; i++) {
        struct home_clause *c = &r->clauses[i];
        struct home_words w = home_words_split(&r->arena, c->text);
        struct home_words plain = home_words_plain_all(&r->arena, &w);
        const char *own = thing_in(r, c);
        if (own || c->speech != HOME_SPEECH_COMMAND || w.n > 8 ||
            home_speech_takes_back(t, &plain) == w.n) {
            last = own ? own : last;
            continue;
        }
        for (uint32_t k = 0; last && k < w.n; k++)
            if (home_table_lists(&t->pronouns, plain.w[k]) && !again[i]) {
                w.w[k] = last;
                again[i] = any = true;
            }
        if (again[i])
            c->text = home_words_join(&r->arena, &w, 0, w.n);
    }
    if (any && r->arena.rc == 0)
        understand(r, again);
    return any && r->arena.rc == 0;
}

/* Entities as texts, where the rules use places in the clause. */
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

/* Contexts of the draft for the reply, and for the plan those that the model reads. */
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

/* Actions that wait for a yes are kept, and each of them tells the token. */
static void keep_waiting(struct ask_request *r, struct home_draft *d)
{
    const char **lines = arena_zalloc_n(&r->arena, (size_t)d->n_held + 1, sizeof(*lines));
    const char **says = arena_zalloc_n(&r->arena, (size_t)d->n_held + 1, sizeof(*says));
    const struct ask_plan_action **actions =
        arena_zalloc_n(&r->arena, (size_t)d->n_held + 1, sizeof(*actions));
    char *token = arena_bytes(&r->arena, HOME_MEMORY_TOKEN);
    if (d->n_held == 0 || r->arena.rc < 0)
        return;
    for (uint32_t i = 0; i < d->n_held; i++) {
        actions[i] = d->held[i].action;
        lines[i] = d->held[i].line;
        says[i] = d->held[i].say;
    }
    const struct home_waiting w = {actions, lines, says, d->n_held};
    if (!home_memory_wait(r->ask->memory, r->conversation, r->start_ns, &w, token)) {
        fail(r, SHOAL_ENOMEM, "cannot keep the actions that wait for a confirmation");
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

static const char *field_of(const struct ask_plan_action *o, const char *key)
{
    for (uint32_t i = 0; i < o->n_fields; i++)
        if (strcmp(o->fields[i].key, key) == 0)
            return o->fields[i].text;
    return NULL;
}

/* The last thing that an action is about is what "it" means next. */
static void remember(struct ask_request *r, const struct home_focus *old)
{
    struct home_focus f = *old;
    bool changed = false;
    for (uint32_t i = 0; i < r->plan.n_actions; i++) {
        const struct ask_plan_action *o = r->plan.actions[i];
        const char *device = field_of(o, "device"), *machine = field_of(o, "machine");
        if (device)
            f = (struct home_focus){.device = device, .room = field_of(o, "room")};
        else if (machine)
            f = (struct home_focus){.machine = machine};
        changed |= device || machine;
    }
    if (changed)
        home_memory_set_focus(r->ask->memory, r->conversation, r->start_ns, &f);
}

static void finish_plan(struct ask_request *r, struct home_draft *d)
{
    plan_contexts(r, d);
    r->plan.actions = d->actions;
    r->plan.n_actions = d->n_actions;
    if (r->arena.rc < 0)
        fail(r, r->arena.rc, err_text(r->arena.rc));
    step_end(r, "decide", NULL);
}

/* What a clause speaks of. */
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

static void decide(struct ask_request *r)
{
    const struct home_table *t = r->ask->table;
    struct home_draft d = {0};
    struct home_focus focus;
    home_memory_focus(r->ask->memory, r->conversation, r->start_ns, &r->arena, &focus);
    for (uint32_t i = 1; i < r->n_clauses; i++) {
        struct home_words w = home_words_split(&r->arena, r->clauses[i].text);
        struct home_words plain = home_words_plain_all(&r->arena, &w);
        r->clauses[i - 1].taken_back = home_speech_takes_back(t, &plain) > 0;
    }
    for (uint32_t i = 0; i < r->n_clauses; i++) {
        struct home_focus now = focus;
        for (uint32_t k = 0; k < i; k++) /* "start the vacuum, no, stop it" */
            focus_on(r, &r->clauses[k], &now);
        r->clauses[i].speech = home_rules_decide(&r->arena, t, &d, &r->clauses[i], &now, &r->now);
    }
    keep_waiting(r, &d);
    plan_clauses(r);
    finish_plan(r, &d);
    remember(r, &focus);
}

/* ---- confirming ----------------------------------------------------------------------------- */

static void put_say(struct ask_request *r, struct home_draft *d, enum home_say which)
{
    const struct home_template *t = &r->ask->table->say[which];
    if (home_draft_reserve(&r->arena, d) && t->n > 0)
        d->lines[d->n_lines++] =
            (struct home_draft_line){.say = t->parts[0].text ? t->parts[0].text : ""};
}

/* The plan of a yes: what waited happens.  token NULL: what waits in the conversation. */
static void confirm(struct ask_request *r, const char *token)
{
    struct home_draft d = {0};
    struct home_waiting w;
    if (!home_memory_take(r->ask->memory, r->conversation, token, r->start_ns, &r->arena, &w))
        put_say(r, &d, HOME_SAY_EXPIRED);
    for (uint32_t i = 0; i < w.n && home_draft_reserve(&r->arena, &d); i++) {
        d.actions[d.n_actions++] = w.actions[i];
        d.lines[d.n_lines++] = (struct home_draft_line){w.lines[i], w.says[i], true};
    }
    finish_plan(r, &d);
    remember(r, &(struct home_focus){0});
}

static void decline(struct ask_request *r)
{
    struct home_draft d = {0};
    struct home_waiting w;
    (void)home_memory_take(r->ask->memory, r->conversation, NULL, r->start_ns, &r->arena, &w);
    put_say(r, &d, HOME_SAY_DECLINED);
    finish_plan(r, &d);
}

/* Are all words, polite ones aside, one of the phrases? */
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

/* Does the request need no model: a confirmation, an answer to "shall I", "stop everything"?  Then
 * the plan is made. */
static bool answered(struct ask_request *r, const char *token)
{
    const struct home_table *t = r->ask->table;
    if (token) {
        confirm(r, token);
        return true;
    }
    struct home_stopped stop;
    struct home_words all = home_words_plain_all(&r->arena, &r->words);
    if (home_speech_stops(t, &all, &stop) && stop.everything) { /* no model is asked */
        r->clauses[0] = (struct home_clause){.text = r->text,
                                             .intent = "",
                                             .router = "",
                                             .flow = "",
                                             .speech = HOME_SPEECH_COMMAND,
                                             .speech_p = 1.0f};
        r->n_clauses = 1;
        decide(r);
        return true;
    }
    if (!home_memory_waits(r->ask->memory, r->conversation, r->start_ns))
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

/* ---- replying ------------------------------------------------------------------------------- */

static void reply_event(void *ctx, const struct shoal_event *ev)
{
    struct ask_request *r = ctx;
    if (ev->kind == SHOAL_EVENT_TOKEN) {
        if (ev->text_bytes == 0)
            return;
        buf_put(&r->reply, ev->text, ev->text_bytes);
        return;
    }
    if (ev->finish == SHOAL_FINISH_ERROR)
        fail(r, ev->code, err_text(ev->code));
    r->step_tokens = ev->generated_tokens;
    part_done(r);
}

/* The context is the only message of the reply model.  Special tokens in what the user said stay
 * plain text. */
static int reply_tokens(struct ask_request *r, const char *context, int32_t **tokens, size_t *n,
                        struct err *e)
{
    struct buf json;
    buf_init(&json, REPLY_BYTES);
    struct json_out j = json_out_make(&json);
    json_out_object(&j);
    json_out_key(&j, "messages");
    json_out_array(&j);
    json_out_object(&j);
    json_out_key(&j, "role");
    json_out_str(&j, "user");
    json_out_key(&j, "content");
    json_out_str(&j, context);
    json_out_object_end(&j);
    json_out_array_end(&j);
    json_out_key(&j, "add_generation_prompt");
    json_out_bool(&j, true);
    json_out_object_end(&j);
    int rc = json.rc < 0
                 ? err_set(e, json.rc, "context")
                 : shoal_chat_tokens(r->reply_engine, buf_str(&json), json.len, tokens, n, e);
    buf_fini(&json);
    return rc;
}

static void start_reply(struct ask_request *r)
{
    struct err e = {0};
    struct shoal_task *t;
    int32_t *tokens = NULL;
    size_t n = 0;
    r->stage = STAGE_REPLY;
    atomic_store_explicit(&r->pending, 2, memory_order_relaxed); /* the task, and this function */
    int rc = reply_tokens(r, r->contexts[r->at_context].text, &tokens, &n, &e);
    r->reply_from = r->reply.len;
    if (rc == 0 && r->at_context > 0) /* replies are joined by a space */
        buf_putc(&r->reply, ' ');
    struct shoal_task_opts o = {.size = sizeof(o),
                                .tokens = tokens,
                                .n_tokens = (uint32_t)n,
                                .max_tokens = REPLY_TOKENS,
                                .deadline_ns = r->deadline_ns,
                                .priority = r->priority,
                                .client = r->client,
                                .weight = r->weight,
                                .event = reply_event,
                                .event_ctx = r};
    if (rc == 0)
        rc = shoal_task_submit(r->reply_engine, &o, &t, &e);
    shoal_free(tokens);
    if (rc < 0) {
        fail(r, e.code, e.msg);
        part_done(r);
    } else {
        keep_task(r, t);
    }
    part_done(r);
}

/* Speaks what the buffer got from `from` on, word by word. */
static void speak(struct ask_request *r, size_t from)
{
    const char *text = buf_str(&r->reply);
    for (size_t at = from, n; r->reply.rc == 0 && at < r->reply.len; at += n) {
        n = 1;
        while (at + n < r->reply.len && text[at + n] != ' ')
            n++;
        emit(r, &(struct ask_event){.kind = ASK_EVENT_TEXT, .text = text + at, .text_bytes = n});
    }
}

/* The reply to a context is whole: what the model got wrong is said in plain words. */
static void check_reply(struct ask_request *r)
{
    const struct home_draft_context *c = &r->contexts[r->at_context];
    size_t gap = r->at_context > 0 ? 1 : 0;
    if (r->reply.rc == 0 && c->say && *c->say &&
        !home_truth_holds(&r->arena, c->text, buf_str(&r->reply) + r->reply_from + gap)) {
        r->reply.len = r->reply_from + gap;
        buf_puts(&r->reply, c->say);
    }
    speak(r, r->reply_from);
}

/* Contexts that need no model. */
static void say_plain(struct ask_request *r)
{
    for (; r->at_context < r->n_contexts && !r->contexts[r->at_context].text; r->at_context++) {
        size_t from = r->reply.len;
        if (r->at_context > 0)
            buf_putc(&r->reply, ' ');
        buf_puts(&r->reply, r->contexts[r->at_context].say);
        speak(r, from);
    }
}

static void start_understanding(struct ask_request *r);

static void reply_or_finish(struct ask_request *r)
{
    if (r->code == 0 && r->reply_engine)
        say_plain(r);
    if (r->code == 0 && r->reply_engine && r->at_context < r->n_contexts)
        start_reply(r);
    else
        finish(r);
}

/* Runs when the last part of a stage is done: starts the next stage, or ends the request. */
static void advance(struct ask_request *r)
{
    drop_tasks(r);
    if (r->stage == STAGE_ACT) {
        step_end(r, "act", "act");
        if (r->code == 0 && atomic_load_explicit(&r->cancel, memory_order_relaxed))
            fail(r, SHOAL_ECANCELLED, err_text(SHOAL_ECANCELLED));
        if (r->code == 0)
            start_understanding(r);
        else
            finish(r);
        return;
    }
    if (r->stage == STAGE_UNDERSTAND) {
        step_end(r, "understand", "encoder");
        if (r->code == 0 && refer(r))
            return;
        if (r->code == 0)
            decide(r);
        if (r->code == 0)
            emit(r, &(struct ask_event){.kind = ASK_EVENT_PLAN});
    } else {
        step_end(r, "reply", "reply");
        if (r->code == 0)
            check_reply(r);
        r->at_context++;
        if (r->reply.rc < 0)
            fail(r, r->reply.rc, err_text(r->reply.rc));
    }
    if (r->code == 0 && atomic_load_explicit(&r->cancel, memory_order_relaxed))
        fail(r, SHOAL_ECANCELLED, err_text(SHOAL_ECANCELLED));
    reply_or_finish(r);
}

/* ---- submitting ----------------------------------------------------------------------------- */

/* The text's words, without an act model all of them one command. */
static int read_text(struct ask_request *r, const struct ask_opts *o, struct err *e)
{
    r->text = arena_printf(&r->arena, "%.*s", (int)o->text_bytes, o->text ? o->text : "");
    r->conversation = arena_printf(&r->arena, "%s", o->conversation ? o->conversation : "");
    r->words = home_words_split(&r->arena, r->text);
    struct home_words plain = home_words_plain_all(&r->arena, &r->words);
    uint32_t from = 0, to = 0;
    if (r->arena.rc == 0)
        home_speech_unwrap(r->ask->table, &plain, &from, &to);
    if (from > 0 || to < r->words.n) {
        r->text = home_words_join(&r->arena, &r->words, from, to);
        r->words = home_words_split(&r->arena, r->text);
    }
    if (r->arena.rc < 0)
        return err_set(e, r->arena.rc, "text of %zu bytes", o->text_bytes);
    if (r->words.n == 0 && !o->confirm)
        return err_set(e, SHOAL_EINVAL, "the text is empty");
    r->parts[0] = (struct home_part){0, r->words.n, HOME_SPEECH_COMMAND, 1.0f};
    r->n_parts = r->act_engine ? 0 : 1;
    r->command_p = r->act_engine ? 0.0f : 1.0f;
    return 0;
}

/* Clauses from what each part of the text does. */
static int split(struct ask_request *r, struct err *e)
{
    struct home_said *said;
    uint32_t n = home_speech_pieces(&r->arena, r->ask->table, &r->words, r->parts, r->n_parts,
                                    &said, ASK_MAX_CLAUSES);
    if (r->arena.rc < 0)
        return err_set(e, r->arena.rc, "text of %u words", r->words.n);
    if (n > ASK_MAX_CLAUSES)
        return err_set(e, SHOAL_ELIMIT, "the text has more than %u commands; give fewer at once",
                       ASK_MAX_CLAUSES);
    for (uint32_t i = 0; i < n; i++) {
        float p = said[i].p < r->command_p ? said[i].p : r->command_p;
        r->clauses[i] = (struct home_clause){.text = said[i].text,
                                             .intent = "",
                                             .router = "",
                                             .flow = "",
                                             .threshold = r->ask->threshold,
                                             .speech = said[i].speech,
                                             .speech_p = p};
    }
    r->n_clauses = n;
    return 0;
}

/* Refuses what is too much before a model reads it. */
static int check_clauses(struct ask_request *r, struct err *e)
{
    const char **list;
    uint32_t n = home_clauses_split(&r->arena, r->ask->table, r->text, &list);
    if (r->arena.rc < 0)
        return err_set(e, r->arena.rc, "text of %u words", r->words.n);
    if (n > ASK_MAX_CLAUSES)
        return err_set(e, SHOAL_ELIMIT, "the text has %u commands; the maximum is %u", n,
                       ASK_MAX_CLAUSES);
    return 0;
}

static void start_understanding(struct ask_request *r)
{
    struct err e = {0};
    int rc = split(r, &e);
    step_end(r, "split", NULL);
    if (rc < 0) {
        fail(r, rc, e.msg);
        finish(r);
    } else {
        understand(r, NULL);
    }
}

int ask_submit(struct ask *a, const struct ask_opts *o, struct ask_request **out, struct err *e)
{
    *out = NULL;
    if (o->text_bytes > ASK_MAX_TEXT)
        return err_set(e, SHOAL_ELIMIT, "the text has %zu bytes; the maximum is %u", o->text_bytes,
                       ASK_MAX_TEXT);
    struct shoal_engine *act = o->act ? o->act : a->act;
    if (!act && a->table->act)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the table needs the model \"%s\", which tells commands from other talk",
                       a->table->act);
    struct ask_request *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "request");
    r->ask = a;
    r->act_engine = a->table->act ? act : NULL;
    atomic_init(&r->refs, 2);
    arena_init(&r->arena, ARENA_BYTES);
    buf_init(&r->reply, REPLY_BYTES);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->finished, NULL);
    r->start_ns = r->step_ns = clock_ns();
    r->deadline_ns = o->deadline_ns;
    r->priority = o->priority;
    r->client = o->client;
    r->weight = o->weight;
    r->reply_engine = o->no_reply ? NULL : o->reply ? o->reply : a->reply;
    r->event = o->event;
    r->event_ctx = o->event_ctx;
    time_t now = o->now ? o->now : time(NULL);
    localtime_r(&now, &r->now);
    int rc = read_text(r, o, e);
    if (rc == 0 && r->act_engine)
        rc = check_clauses(r, e);
    else if (rc == 0)
        rc = split(r, e);
    if (rc < 0) {
        atomic_store_explicit(&r->refs, 1, memory_order_relaxed);
        unref(r);
        return rc;
    }
    *out = r;
    if (answered(r, o->confirm)) {
        r->stage = STAGE_REPLY;
        if (r->code == 0)
            emit(r, &(struct ask_event){.kind = ASK_EVENT_PLAN});
        reply_or_finish(r);
    } else if (r->act_engine) {
        find_acts(r);
    } else {
        step_end(r, "split", NULL);
        understand(r, NULL);
    }
    return 0;
}

void ask_cancel(struct ask_request *r)
{
    atomic_store_explicit(&r->cancel, true, memory_order_relaxed);
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->n_tasks; i++)
        shoal_task_cancel(r->tasks[i]);
    pthread_mutex_unlock(&r->lock);
}

int ask_wait(struct ask_request *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->done)
        pthread_cond_wait(&r->finished, &r->lock);
    pthread_mutex_unlock(&r->lock);
    return r->code;
}

void ask_free(struct ask_request *r)
{
    if (!r)
        return;
    ask_cancel(r);
    unref(r);
}

/* ---- reading -------------------------------------------------------------------------------- */

const struct ask_plan *ask_plan_of(const struct ask_request *r)
{
    return &r->plan;
}

const char *ask_reply_of(const struct ask_request *r, size_t *n)
{
    *n = r->reply.len;
    return buf_str(&r->reply);
}

struct ask_plan_answer ask_answer_of(const struct ask_request *r)
{
    return (struct ask_plan_answer){.plan = &r->plan,
                                    .reply = buf_str(&r->reply),
                                    .reply_bytes = r->reply.len,
                                    .steps = r->steps,
                                    .n_steps = r->n_steps,
                                    .total_ns = r->total_ns};
}

const char *ask_message_of(const struct ask_request *r)
{
    return r->message;
}
