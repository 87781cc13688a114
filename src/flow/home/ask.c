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
#include "flow/home/home_rules.h"
#include "flow/home/home_words.h"
#include "shoal/shoal.h"
#include "wire/json_out.h"

#define ARENA_BYTES ((size_t)8 << 20)
#define REPLY_BYTES ((size_t)1 << 16)
#define REPLY_TOKENS 120u
#define PER_CLAUSE 3u /* intent, router, entities */
#define MAX_FLOWS 64u

struct ask {
    const struct home_table *table;
    struct shoal_engine *encoder, *reply;
    float threshold;
    struct {
        char *label, *flow;
    } flows[MAX_FLOWS];
    uint32_t n_flows;
};

enum stage { STAGE_UNDERSTAND, STAGE_REPLY };

struct ask_request {
    struct ask *ask;
    struct shoal_engine *reply_engine; /* NULL: actions only */
    _Atomic uint32_t refs;             /* the caller's and the flow's own */
    _Atomic uint32_t pending; /* unfinished parts of the stage, plus one while they are started */
    _Atomic bool cancel;
    enum stage stage;
    int code; /* the first failure */
    char message[320];

    struct arena arena;
    struct home_clause clauses[ASK_MAX_CLAUSES];
    uint32_t n_clauses;
    struct ask_plan plan; /* complete after decide */
    uint32_t at_context;
    struct buf reply;
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
               struct shoal_engine *reply, struct err *e)
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
    a->reply = reply;
    size_t n = 0;
    const char *config = shoal_engine_metadata(encoder, "huggingface.config", &n);
    int rc = read_config(a, config, n, e);
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
    uint32_t which; /* 0: intent, 1: router, 2: entities */
};

static void take_label(struct part *p, const struct shoal_result *res)
{
    struct arena *a = &p->r->arena;
    /* the best label, however unsure: the rules compare it with the threshold */
    const char *name = arena_printf(a, "%s", res->labels[0].name);
    if (p->which == 0) {
        p->clause->intent = name;
        p->clause->intent_p = res->labels[0].score;
    } else {
        p->clause->router = name;
        p->clause->router_p = res->labels[0].score;
        p->clause->flow = flow_of(p->r->ask, name);
    }
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
        uint32_t word = 0;
        bool inside = false;
        *e = (struct home_entity){.from = UINT32_MAX};
        for (uint32_t b = 0; b < res->spans[i].end && text[b]; b++) {
            bool space = strchr(" \t\n\v\f\r", text[b]) != NULL;
            if (!space && !inside)
                word++;
            inside = !space;
            if (!space && b >= res->spans[i].start) {
                e->from = e->from == UINT32_MAX ? word - 1 : e->from;
                e->to = word;
            }
        }
        if (e->from == UINT32_MAX)
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
    else if (p->which < 2)
        take_label(p, res);
    else
        take_entities(p, res);
    r->step_tokens += p->which == 0 ? res->n_tokens : 0;
    part_done(r);
}

static void submit_part(struct ask_request *r, struct part *p)
{
    const struct home_table *table = r->ask->table;
    const char *const sets[] = {table->intent_labels, table->router_labels, table->entity_labels};
    struct err e = {0};
    struct shoal_task *t;
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = p->which < 2 ? SHOAL_KIND_CLASSIFY : SHOAL_KIND_TAG,
                                 .text = p->clause->text,
                                 .text_bytes = strlen(p->clause->text),
                                 .labels = sets[p->which],
                                 .deadline_ns = r->deadline_ns,
                                 .priority = r->priority,
                                 .client = r->client,
                                 .weight = r->weight,
                                 .done = part_result,
                                 .done_ctx = p};
    if (shoal_infer_submit(r->ask->encoder, &o, &t, &e) < 0) {
        fail(r, e.code, e.msg);
        part_done(r);
        return;
    }
    keep_task(r, t);
}

static void understand(struct ask_request *r)
{
    uint32_t n = r->n_clauses * PER_CLAUSE;
    struct part *parts = arena_zalloc_n(&r->arena, n + 1, sizeof(*parts));
    r->stage = STAGE_UNDERSTAND;
    /* one more, so that the stage cannot end while its parts are being submitted */
    atomic_store_explicit(&r->pending, (parts ? n : 0) + 1, memory_order_relaxed);
    for (uint32_t i = 0; parts && i < n; i++) {
        parts[i] = (struct part){r, &r->clauses[i / PER_CLAUSE], i % PER_CLAUSE};
        submit_part(r, &parts[i]);
    }
    part_done(r);
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
                                           .entities = plan_entities(&r->arena, c),
                                           .n_entities = c->n_entities};
    }
    r->plan.clauses = list;
    r->plan.n_clauses = list ? r->n_clauses : 0;
}

static void decide(struct ask_request *r)
{
    struct home_draft d = {0};
    const char **contexts;
    for (uint32_t i = 0; i < r->n_clauses; i++)
        home_rules_decide(&r->arena, r->ask->table, &d, &r->clauses[i], &r->now);
    uint32_t n = home_draft_contexts(&r->arena, &d, r->ask->table->together, &contexts);
    plan_clauses(r);
    r->plan.actions = d.actions;
    r->plan.n_actions = d.n_actions;
    r->plan.contexts = contexts;
    r->plan.n_contexts = n;
    if (r->arena.rc < 0)
        fail(r, r->arena.rc, err_text(r->arena.rc));
    step_end(r, "decide", NULL);
}

/* ---- replying ------------------------------------------------------------------------------- */

static void reply_event(void *ctx, const struct shoal_event *ev)
{
    struct ask_request *r = ctx;
    if (ev->kind == SHOAL_EVENT_TOKEN) {
        if (ev->text_bytes == 0)
            return;
        buf_put(&r->reply, ev->text, ev->text_bytes);
        emit(r, &(struct ask_event){
                    .kind = ASK_EVENT_TEXT, .text = ev->text, .text_bytes = ev->text_bytes});
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
    int rc = reply_tokens(r, r->plan.contexts[r->at_context], &tokens, &n, &e);
    if (rc == 0 && r->at_context > 0) { /* replies are joined by a space */
        buf_putc(&r->reply, ' ');
        emit(r, &(struct ask_event){.kind = ASK_EVENT_TEXT, .text = " ", .text_bytes = 1});
    }
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

/* Runs when the last part of a stage is done: starts the next stage, or ends the request. */
static void advance(struct ask_request *r)
{
    drop_tasks(r);
    if (r->stage == STAGE_UNDERSTAND) {
        step_end(r, "understand", "encoder");
        if (r->code == 0)
            decide(r);
        if (r->code == 0)
            emit(r, &(struct ask_event){.kind = ASK_EVENT_PLAN});
    } else {
        step_end(r, "reply", "reply");
        r->at_context++;
        if (r->reply.rc < 0)
            fail(r, r->reply.rc, err_text(r->reply.rc));
    }
    if (r->code == 0 && atomic_load_explicit(&r->cancel, memory_order_relaxed))
        fail(r, SHOAL_ECANCELLED, err_text(SHOAL_ECANCELLED));
    if (r->code == 0 && r->reply_engine && r->at_context < r->plan.n_contexts)
        start_reply(r);
    else
        finish(r);
}

/* ---- submitting ----------------------------------------------------------------------------- */

static int split(struct ask_request *r, const struct ask_opts *o, struct err *e)
{
    const char **clauses, *text = arena_printf(&r->arena, "%.*s", (int)o->text_bytes, o->text);
    uint32_t n = home_clauses_split(&r->arena, r->ask->table, text, &clauses);
    if (r->arena.rc < 0)
        return err_set(e, r->arena.rc, "text of %zu bytes", o->text_bytes);
    if (n == 0)
        return err_set(e, SHOAL_EINVAL, "the text is empty");
    if (n > ASK_MAX_CLAUSES)
        return err_set(e, SHOAL_ELIMIT, "the text has %u commands; the maximum is %u", n,
                       ASK_MAX_CLAUSES);
    for (uint32_t i = 0; i < n; i++)
        r->clauses[i] = (struct home_clause){.text = clauses[i],
                                             .intent = "",
                                             .router = "",
                                             .flow = "",
                                             .threshold = r->ask->threshold};
    r->n_clauses = n;
    return 0;
}

int ask_submit(struct ask *a, const struct ask_opts *o, struct ask_request **out, struct err *e)
{
    *out = NULL;
    if (o->text_bytes > ASK_MAX_TEXT)
        return err_set(e, SHOAL_ELIMIT, "the text has %zu bytes; the maximum is %u", o->text_bytes,
                       ASK_MAX_TEXT);
    struct ask_request *r = mem_zalloc(sizeof(*r));
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "request");
    r->ask = a;
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
    int rc = split(r, o, e);
    if (rc < 0) {
        atomic_store_explicit(&r->refs, 1, memory_order_relaxed);
        unref(r);
        return rc;
    }
    step_end(r, "split", NULL);
    *out = r;
    understand(r);
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
