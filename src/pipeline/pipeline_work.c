/* pipeline_work.c - see pipeline_work.h. */
#include "pipeline/pipeline_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "flow/stages.h"
#include "pipeline/pipeline_value.h"
#include "wire/value_json.h"

#define MAX_TEXT_BYTES ((size_t)4 << 20)
#define MAX_VALUES 65536u
#define CALL_NS 10000000000ull /* timeout of a call without a deadline */

/* ---- ends ---- */

static void finish(struct pipeline_work *w, const struct failure *f)
{
    if (w->search)
        retrieval_fini(&w->search->retrieval);
    if (w->check)
        mem_free(w->check->embedding.vectors);
    if (w->call)
        buf_fini(&w->call->answer);
    buf_fini(&w->text);
    w->done(w, f);
}

static void finish_rc(struct pipeline_work *w, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    finish(w, &f);
}

/* Finishes with the result, if there was memory for it. */
static void finish_well(struct pipeline_work *w)
{
    if (w->arena->rc < 0)
        finish_rc(w, w->arena->rc, "the results of the flow need too much memory");
    else
        finish(w, NULL);
}

static const struct value *arg_of(const struct pipeline_work *w, enum graph_role role, uint32_t i)
{
    const struct graph_arg *a = graph_arg(w->step, role, i);
    return a ? &w->args[a - w->step->args] : NULL;
}

static struct str text_of(const struct pipeline_work *w, enum graph_role role)
{
    const struct value *v = arg_of(w, role, 0);
    return v && v->kind == VALUE_TEXT ? (struct str){v->text.p, v->text.n} : (struct str){"", 0};
}

/* ---- requests to models ---- */

static struct request *make_request(struct pipeline_work *w, enum request_kind kind)
{
    struct request *r = flow_take_request(w->owner);
    const struct request *from = w->from;
    if (!r)
        return NULL;
    memcpy(r->id, from->id, sizeof(r->id));
    request_trace(r, &w->spans);
    memcpy(r->session, from->session, sizeof(r->session));
    r->client = from->client;
    r->priority = from->priority;
    r->epoch = from->epoch;
    r->received_ns = clock_ns();
    r->deadline_ns = w->deadline_ns;
    r->no_cache = from->no_cache;
    r->streams = w->more != NULL;
    r->screened = from->screened;
    r->marked = from->marked;
    if (from->language)
        r->language = request_copy(r, from->language, strlen(from->language));
    r->here = from->here;
    r->depth = from->depth + 1;
    r->kind = kind;
    if (w->step->spec.model)
        r->model = request_copy(r, w->step->spec.model, strlen(w->step->spec.model));
    return r;
}

static struct pipeline_work *work_of(struct sink *s)
{
    return EXECUTOR_OF(s, struct pipeline_work, sink);
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    snprintf(work_of(s)->model, sizeof(work_of(s)->model), "%s", e->model);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    struct pipeline_work *w = work_of(s);
    buf_put(&w->text, e->text, e->text_bytes);
    if (w->more && w->text.rc == 0 && e->text_bytes > 0)
        w->more(w);
}

static bool on_full(struct sink *s)
{
    struct pipeline_work *w = work_of(s);
    return w->full && w->full(w);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    struct pipeline_work *w = work_of(s);
    w->has_result = true;
    w->cut = e->finish == SHOAL_FINISH_LENGTH;
    w->prompt_tokens = e->usage.prompt_tokens;
    w->generated_tokens = e->usage.generated_tokens;
}

static void on_plan(struct sink *s, const struct sink_plan *e)
{
    struct pipeline_work *w = work_of(s);
    struct value *list = arena_zalloc_n(w->arena, e->plan->n_actions, sizeof(*list));
    for (uint32_t i = 0; list && i < e->plan->n_actions; i++)
        list[i] = pipeline_value_action(w->arena, e->plan->actions[i]);
    w->actions = list;
    w->n_actions = list ? e->plan->n_actions : 0;
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    struct pipeline_work *w = work_of(s);
    w->result = pipeline_value_result(w->arena, w->step->spec.kind, e->result, w->input);
    w->prompt_tokens += e->result->n_tokens;
    w->has_result = true;
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct pipeline_work *w = work_of(s);
    w->failed = true;
    w->why = *f;
    w->why.reason = w->why.param = NULL; /* valid for the event alone */
}

/* A generation or an ask is complete. */
static void take_text(struct pipeline_work *w)
{
    const char *text = arena_copy(w->arena, buf_str(&w->text), w->text.len + 1);
    const struct value t = value_text(text ? text : "", text ? w->text.len : 0);
    if (w->step->spec.kind == GRAPH_GENERATE) {
        const char *model = arena_copy(w->arena, w->model, strlen(w->model) + 1);
        const struct value_member m[] = {
            {"text", t},
            {"tokens", pipeline_value_number(w->generated_tokens)},
            {"cut", value_bool(w->cut)},
            {"model", value_text(model ? model : "", model ? strlen(model) : 0)}};
        w->result = pipeline_value_map(w->arena, m, 4);
    } else {
        const struct value_member m[] = {
            {"text", t},
            {"actions", {.kind = VALUE_LIST, .list = {w->actions, w->n_actions}}},
            {"count", pipeline_value_number(w->n_actions)}};
        w->result = pipeline_value_map(w->arena, m, 3);
    }
}

static void on_closed(struct sink *s)
{
    struct pipeline_work *w = work_of(s);
    bool text = w->step->spec.kind == GRAPH_GENERATE || w->step->spec.kind == GRAPH_ASK;
    if (w->failed)
        finish(w, &w->why);
    else if (w->cancelled)
        finish_rc(w, SHOAL_ECANCELLED, "cancelled");
    else if (!w->has_result || w->text.rc < 0)
        finish_rc(w, SHOAL_ELIMIT, "the result is too long");
    else {
        if (text)
            take_text(w);
        finish_well(w);
    }
}

static void send(struct pipeline_work *w, struct request *r)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .plan = on_plan,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .full = on_full};
    if (!r || request_rc(r) < 0) {
        if (r)
            flow_give_request(w->owner, r);
        finish_rc(w, SHOAL_ENOMEM, "out of memory");
        return;
    }
    w->sink = (struct sink){.ops = &ops};
    stages_run(w->owner, r, &w->sink);
}

/* ---- specialists ---- */

static enum shoal_kind kind_of(enum graph_kind k)
{
    switch (k) {
    case GRAPH_TAG:
        return SHOAL_KIND_TAG;
    case GRAPH_EMBED:
        return SHOAL_KIND_EMBED;
    case GRAPH_SUMMARIZE:
        return SHOAL_KIND_SUMMARIZE;
    case GRAPH_SCORE:
        return SHOAL_KIND_SCORE;
    default:
        return SHOAL_KIND_CLASSIFY;
    }
}

static bool put_values(struct pipeline_work *w, struct request *r, struct request_input *in)
{
    const struct value *v = arg_of(w, GRAPH_ROLE_VALUES, 0);
    size_t n = v && v->kind == VALUE_LIST ? v->list.n : 0;
    double *list = n > 0 && n <= MAX_VALUES ? arena_zalloc_n(&r->arena, n, sizeof(*list)) : NULL;
    for (size_t i = 0; list && i < n; i++) {
        if (v->list.items[i].kind != VALUE_NUMBER)
            return false;
        list[i] = v->list.items[i].number;
    }
    in->values = list;
    in->n_values = (uint32_t)n;
    return list != NULL;
}

static void start_infer(struct pipeline_work *w)
{
    const struct graph_step_spec *k = &w->step->spec;
    struct request *r = make_request(w, REQUEST_INFER);
    struct request_input *in = r ? arena_zalloc(&r->arena, sizeof(*in)) : NULL;
    struct str text = text_of(w, GRAPH_ROLE_TEXT);
    if (!in) {
        if (r)
            flow_give_request(w->owner, r);
        send(w, NULL);
        return;
    }
    if (k->kind == GRAPH_SCORE) {
        if (!put_values(w, r, in)) {
            flow_give_request(w->owner, r);
            finish_rc(w, SHOAL_EINVAL, "values must be a list of at least one number");
            return;
        }
    } else {
        w->input = text.p;
        in->text = request_copy(r, text.p, text.n);
        in->text_bytes = text.n;
    }
    r->input_bytes = text.n;
    r->infer = (struct request_infer){.kind = kind_of(k->kind), .inputs = in, .n_inputs = 1};
    if (k->labels)
        r->infer.labels = request_copy(r, k->labels, strlen(k->labels));
    if (k->kind == GRAPH_SUMMARIZE) {
        r->infer.max_tokens = k->max_tokens;
        r->infer.max_sentences = k->count;
    }
    send(w, r);
}

/* ---- generations and asks ---- */

static void start_generate(struct pipeline_work *w)
{
    const struct graph_step_spec *k = &w->step->spec;
    struct request *r = make_request(w, REQUEST_GENERATE);
    struct chat_message *list = r ? arena_zalloc_n(&r->arena, 2, sizeof(*list)) : NULL;
    struct str text = text_of(w, GRAPH_ROLE_TEXT), system = text_of(w, GRAPH_ROLE_SYSTEM);
    uint32_t n = 0;
    if (list) {
        if (system.n > 0)
            list[n++] = (struct chat_message){.role = "system",
                                              .content = request_copy(r, system.p, system.n),
                                              .content_bytes = system.n};
        list[n++] = (struct chat_message){
            .role = "user", .content = request_copy(r, text.p, text.n), .content_bytes = text.n};
        r->generate = (struct request_generate){.chat = {.messages = list, .n_messages = n},
                                                .n_prompts = 1,
                                                .n = 1,
                                                .max_tokens = k->max_tokens,
                                                .sampling = {.temperature = (float)k->temperature},
                                                .has_seed = true,
                                                .seeded = true};
        r->input_bytes = text.n + system.n;
    }
    send(w, r);
}

static void start_ask(struct pipeline_work *w)
{
    struct request *r = make_request(w, REQUEST_ASK);
    struct str text = text_of(w, GRAPH_ROLE_TEXT);
    if (r) {
        r->input_bytes = text.n;
        r->ask = (struct request_ask){.text = request_copy(r, text.p, text.n), .reply = true};
    }
    send(w, r);
}

/* ---- retrieve ---- */

static struct embedding_who who_of(const struct pipeline_work *w)
{
    struct embedding_who who = {
        .client = w->from->client, .deadline_ns = w->deadline_ns, .priority = w->from->priority};
    memcpy(who.id, w->from->id, sizeof(who.id));
    who.spans = w->spans;
    return who;
}

static void on_found(struct retrieval *x, const struct failure *f)
{
    struct pipeline_work *w = EXECUTOR_OF(x, struct pipeline_search, retrieval)->work;
    w->prompt_tokens += (uint32_t)x->n_tokens;
    if (f) {
        const struct failure copy = *f;
        finish(w, &copy);
        return;
    }
    w->result = pipeline_value_passages(w->arena, x->hits, x->n_hits);
    finish_well(w);
}

static void start_retrieve(struct pipeline_work *w)
{
    const struct graph_step_spec *k = &w->step->spec;
    struct str query = text_of(w, GRAPH_ROLE_QUERY);
    struct pipeline_search *x = arena_zalloc(w->arena, sizeof(*x));
    if (!w->collections || !x || query.n == 0) {
        finish_rc(w, x ? SHOAL_EINVAL : SHOAL_ENOMEM,
                  !x                ? "out of memory"
                  : !w->collections ? "this server has no folder of collections"
                                    : "the query is empty");
        return;
    }
    x->work = w;
    x->retrieval = (struct retrieval){.owner = w->owner,
                                      .who = who_of(w),
                                      .collections = w->collections,
                                      .collection = k->collection,
                                      .query = query.p,
                                      .n_results = k->count,
                                      .reranker = k->reranker,
                                      .done = on_found};
    w->search = x;
    retrieval_run(&x->retrieval);
}

/* ---- verify ---- */

static void judge(struct pipeline_work *w)
{
    struct pipeline_check *x = w->check;
    uint32_t n = x->n_passages, dims = x->embedding.n_dims;
    const float *v = x->embedding.vectors;
    struct str answer = text_of(w, GRAPH_ROLE_TEXT), question = text_of(w, GRAPH_ROLE_QUERY);
    float *near =
        v && n > 0 ? arena_zalloc_n(w->arena, (size_t)x->support.n * n, sizeof(*near)) : NULL;
    for (uint32_t i = 0; near && i < x->support.n; i++)
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t d = 0; d < dims; d++)
                near[i * n + k] +=
                    v[(size_t)i * dims + d] * v[(size_t)(x->support.n + k) * dims + d];
    support_judge(&x->support, answer.p, x->passages, n, near);
    if (question.n > 0)
        support_answers(&x->support, answer.p, question.p, question.n, x->passages);
    w->result = pipeline_value_support(w->arena, &x->support, answer, x->hits, n);
    finish_well(w);
}

/* Without vectors, only the words decide. */
static void on_embedded(struct embedding *e, const struct failure *f)
{
    struct pipeline_work *w = EXECUTOR_OF(e, struct pipeline_check, embedding)->work;
    (void)f;
    w->prompt_tokens += (uint32_t)e->n_tokens;
    if (w->cancelled)
        finish_rc(w, SHOAL_ECANCELLED, "cancelled");
    else
        judge(w);
}

static void start_verify(struct pipeline_work *w)
{
    struct str answer = text_of(w, GRAPH_ROLE_TEXT);
    const struct value *hits = arg_of(w, GRAPH_ROLE_PASSAGES, 0);
    struct pipeline_check *x = arena_zalloc(w->arena, sizeof(*x));
    uint32_t n = 0;
    if (!x) {
        finish_rc(w, SHOAL_ENOMEM, "out of memory");
        return;
    }
    x->work = w;
    if (hits && hits->kind == VALUE_LIST) {
        x->hits = hits->list.items;
        x->n_passages =
            (uint32_t)(hits->list.n < SUPPORT_MAX_PASSAGES ? hits->list.n : SUPPORT_MAX_PASSAGES);
    }
    support_split(&x->support, answer.p, answer.n);
    for (uint32_t i = 0; i < x->support.n; i++)
        x->texts[n++] =
            (struct str){answer.p + x->support.sentences[i].at, x->support.sentences[i].n};
    for (uint32_t i = 0; i < x->n_passages; i++) {
        const struct value *t = graph_type_member(&x->hits[i], "text", 4);
        const struct value *h = graph_type_member(&x->hits[i], "heading", 7);
        const char *text = t && t->kind == VALUE_TEXT ? t->text.p : "";
        /* often only the heading says what a passage is about */
        if (h && h->kind == VALUE_TEXT && h->text.n > 0)
            text = arena_printf(w->arena, "%s.\n%s", h->text.p, text);
        x->passages[i] = text;
        x->texts[n++] = (struct str){text, strlen(text)};
    }
    w->check = x;
    x->embedding = (struct embedding){.owner = w->owner,
                                      .who = who_of(w),
                                      .model = w->step->spec.model ? w->step->spec.model : "embed",
                                      .texts = x->texts,
                                      .n = x->support.n > 0 && x->n_passages > 0 ? n : 0,
                                      .done = on_embedded};
    embedding_run(&x->embedding);
}

/* ---- calls ---- */

static void on_called(struct pipeline_call *c, int code, const char *message)
{
    struct pipeline_work *w = c->ctx;
    struct value json = {.kind = VALUE_NULL};
    if (code < 0) {
        finish_rc(w, code, message);
        return;
    }
    if (c->how->json && value_json_read(&json, w->arena, buf_str(&c->answer), c->answer.len) < 0) {
        finish_rc(w, SHOAL_EFORMAT, "the answer of the call is not JSON");
        return;
    }
    const char *text = arena_copy(w->arena, buf_str(&c->answer), c->answer.len + 1);
    const struct value_member m[] = {
        {"text", value_text(text ? text : "", text ? c->answer.len : 0)},
        {"json", json},
        {"status", pipeline_value_number(c->status)}};
    w->result = pipeline_value_map(w->arena, m, 3);
    finish_well(w);
}

/* The same for all attempts, also when the client repeats its request with an idempotency key. */
static void put_key(const struct pipeline_work *w, char *out, size_t n)
{
    char once[33] = "";
    for (size_t i = 0; w->from->has_once_key && i < 16; i++)
        snprintf(once + 2 * i, 3, "%02x", w->from->once_key[i]);
    snprintf(out, n, "%.40s-%.20s-%u", once[0] ? once : w->from->id, w->step->spec.name, w->index);
}

/* Whether a URL has a segment of dots: a server would go up from the path that the flow names. */
static bool climbs(const char *url)
{
    const char *path = strstr(url, "://");
    path = path ? path + 3 : url;
    for (const char *end = path + strcspn(path, "?#"); (path = strchr(path, '/')) && path < end;) {
        const size_t n = strcspn(++path, "/?#");
        if ((n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
            return true;
    }
    return false;
}

static bool has_nul(const struct value *v)
{
    return v->kind == VALUE_TEXT && memchr(v->text.p, '\0', v->text.n);
}

static void start_call(struct pipeline_work *w)
{
    const struct graph_step *s = w->step;
    struct pipeline_call *c = w->outside ? arena_zalloc(w->arena, sizeof(*c)) : NULL;
    char **argv = arena_zalloc_n(w->arena, s->n_args + 1u, sizeof(*argv));
    uint32_t n = 0;
    bool bad = false;
    if (!c || !argv) {
        finish_rc(w, w->outside ? SHOAL_ENOMEM : SHOAL_EUNSUPPORTED,
                  w->outside ? "out of memory" : "calls are not available here");
        return;
    }
    *c = (struct pipeline_call){.owner = w->owner,
                                .how = &s->spec.call,
                                .ctx = w,
                                .done = on_called,
                                .deadline_ns =
                                    w->deadline_ns ? w->deadline_ns : clock_ns() + CALL_NS};
    for (uint32_t i = 0; i < s->n_args; i++) {
        const struct value *v = &w->args[i];
        if (v->kind != VALUE_TEXT)
            continue;
        if (s->args[i].role == GRAPH_ROLE_PATH)
            c->url = v->text.p;
        else if (s->args[i].role == GRAPH_ROLE_TOPIC)
            c->topic = v->text.p;
        else if (s->args[i].role == GRAPH_ROLE_ARGUMENT)
            argv[n++] = (char *)(uintptr_t)v->text.p; /* never written to */
        else if (s->args[i].role == GRAPH_ROLE_PAYLOAD) {
            c->payload = v->text.p;
            c->payload_bytes = v->text.n;
        }
        bad |= s->args[i].role != GRAPH_ROLE_PAYLOAD && has_nul(v);
    }
    c->argv = n > 0 ? argv : NULL;
    w->call = c;
    put_key(w, c->key, sizeof(c->key));
    buf_init(&c->answer, MAX_TEXT_BYTES);
    if (bad)
        finish_rc(w, SHOAL_EINVAL, "a value of the call has a NUL");
    else if (c->url && climbs(c->url))
        finish_rc(w, SHOAL_EINVAL, "the URL of the call has a segment '.' or '..'");
    else
        w->outside->ops->run(w->outside, c);
}

/* ---- all kinds ---- */

void pipeline_work_start(struct pipeline_work *w)
{
    buf_init(&w->text, MAX_TEXT_BYTES);
    switch (w->step->spec.kind) {
    case GRAPH_GENERATE:
        start_generate(w);
        break;
    case GRAPH_ASK:
        start_ask(w);
        break;
    case GRAPH_RETRIEVE:
        start_retrieve(w);
        break;
    case GRAPH_VERIFY:
        start_verify(w);
        break;
    case GRAPH_CALL:
        start_call(w);
        break;
    default:
        start_infer(w);
        break;
    }
}

void pipeline_work_cancel(struct pipeline_work *w)
{
    if (w->cancelled)
        return;
    w->cancelled = true;
    if (w->search)
        retrieval_cancel(&w->search->retrieval);
    else if (w->check)
        embedding_cancel(&w->check->embedding);
    else if (w->sink.job)
        flow_cancel(&w->sink);
}
