/* process.c - see process.h. */
#include "gateway/api/own/process.h"

#include <string.h>

#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "pipeline/pipeline_report.h"
#include "wire/value_json.h"

struct body {
    const char *text, *confirm, *room, *language, *model;
    const cJSON *input;
    bool stream, explain, reply, dry;
    int64_t priority;
    double latency_budget_ms, heard;
};

#define AT(member) offsetof(struct body, member)
const struct field process_fields[] = {
    FIELDS_SESSION,
    {"text", FIELD_STR, AT(text), 0, 0, "a command or a question", NULL},
    {"confirm", FIELD_STR, AT(confirm), 0, 0,
     "token of actions with the result confirm: they happen now", NULL},
    {"room", FIELD_STR, AT(room), 0, 0, "the room that the speaker is in", NULL},
    {"language", FIELD_STR, AT(language), 0, 0,
     "of the text and the reply, such as de; default: Content-Language, or that of the home", NULL},
    {"model", FIELD_STR, AT(model), 0, 0,
     "a flow, or a route with one; default: process.flow of the configuration, or ask", NULL},
    {"input", FIELD_VALUE, AT(input), 0, 0, "inputs of the flow besides the text",
     "{\"type\":\"object\"}"},
    {"heard", FIELD_NUM, AT(heard), 0, 1,
     "the text was spoken: confidence of its recognizer; what was hardly heard does nothing", NULL},
    {"stream", FIELD_BOOL, AT(stream), 0, 0, "events plan, text and done as they come", NULL},
    {"explain", FIELD_BOOL, AT(explain), 0, 0, "also return each model's output and time", NULL},
    {"reply", FIELD_BOOL, AT(reply), 0, 0, "false: actions only; default true", NULL},
    {"dry_run", FIELD_BOOL, AT(dry), 0, 0,
     "only say what would be done: nothing happens, is remembered or answered", NULL},
    {"priority", FIELD_INT, AT(priority), -100, 0, "below that of the key", NULL},
    {"latency_budget_ms", FIELD_NUM, AT(latency_budget_ms), 1, 86400000,
     "refuse or stop a request that takes longer", NULL}};
const size_t process_n_fields = sizeof(process_fields) / sizeof(process_fields[0]);

/* Turns events into an answer to the call. */
struct process_answer {
    struct answer_sink answer; /* first */
    bool explain;
    const struct process_heard *heard; /* NULL: typed */
    struct chat_message message;       /* for flows: the text */
};

/* ---- answers ---- */

static void stream_plan(struct answer_sink *a, const struct sink_plan *e)
{
    struct json_out j = answer_event(a, "plan");
    ask_plan_json(&j, e->plan);
    answer_event_end(a, &j);
}

static void stream_text(struct answer_sink *a, const struct sink_token *t)
{
    struct json_out j = answer_event(a, "text");
    json_out_member_strn(&j, "text", t->text, t->text_bytes);
    answer_event_end(a, &j);
}

void process_put_heard(struct json_out *j, const struct process_heard *heard)
{
    json_out_member_object(j, "transcript");
    json_out_member_strn(j, "text", heard->text, heard->text_bytes);
    json_out_member_num(j, "confidence", (double)heard->confidence);
    json_out_member_num(j, "seconds", heard->seconds);
    json_out_member_num(j, "heard_ms", (double)heard->ns / 1e6);
    json_out_object_end(j);
}

static const struct process_heard *heard_of(const struct answer_sink *a)
{
    return ((const struct process_answer *)(const void *)a)->heard; /* its first member */
}

/* A flow has a text and a report instead of a plan. */
static void put_answer(struct answer_sink *a, struct json_out *j, const struct sink_done *d,
                       bool explain)
{
    const struct buf *reply = &a->choices[0].text;
    const struct ask_plan_answer x = {.plan = a->plan,
                                      .reply = buf_str(reply),
                                      .reply_bytes = reply->len,
                                      .steps = d->steps,
                                      .n_steps = d->n_steps,
                                      .total_ns = d->total_ns};
    if (heard_of(a))
        process_put_heard(j, heard_of(a));
    if (!d->report) {
        ask_plan_answer_json(j, &x, explain);
        return;
    }
    json_out_member_strn(j, "text", x.reply, x.reply_bytes);
    pipeline_report_json(j, d->report, explain);
}

static void stream_end(struct answer_sink *a, const struct sink_done *d)
{
    struct json_out j = answer_event(a, "done");
    put_answer(a, &j, d, true);
    answer_event_end(a, &j);
}

static void put_whole(struct answer_sink *a, const struct sink_done *d)
{
    struct json_out j = json_out_make(&a->call->out);
    json_out_object(&j);
    put_answer(a, &j, d, ((struct process_answer *)(void *)a)->explain); /* its first member */
    json_out_object_end(&j);
    buf_putc(j.b, '\n');
}

/* ---- the handler ---- */

static int read_input(struct request *r, const cJSON *json, struct fields_error *e)
{
    struct value *v = arena_zalloc(&r->arena, sizeof(*v));
    if (!cJSON_IsObject(json))
        return fields_fail(e, "input", NULL, "'input' must be an object");
    if (v)
        *v = value_json_of(&r->arena, json);
    r->input = v;
    return request_rc(r) < 0 ? fields_fail(e, "input", NULL, "'input' is too large or too deep")
                             : 0;
}

/* The requested flow: from the request, or from the configuration; NULL: ask. */
static const char *flow_of(struct call *c, struct request *r)
{
    const struct config_flows *f = &c->gl->config->flows;
    const char *name = r->model;
    if (!name && f->process)
        name = request_copy(r, f->process, strlen(f->process));
    /* the home flow, unless a flow of the configuration has its name */
    return name && strcmp(name, "ask") == 0 && !config_flows_find(f, name) ? NULL : name;
}

/* Whether the name is a flow, or a route with one. */
static bool is_flow(const struct call *c, const char *name)
{
    const struct router_route *r =
        router_table_find_for(&c->gl->config->router, name, c->client ? c->client->name : "");
    return config_flows_find(&c->gl->config->flows, r && r->flow ? r->flow : name) != NULL;
}

int process_read(struct request *r, bool *stream, const cJSON *json, bool lenient,
                 struct fields_error *e)
{
    struct body b = {.reply = true};
    int rc = fields_read(process_fields, process_n_fields, json, &b, lenient, e);
    if (rc == 0 && !b.text && b.confirm)
        b.text = "";
    if (rc == 0 && !b.text)
        rc = fields_fail(e, "text", "missing_required_parameter", "'text' is missing");
    if (rc < 0)
        return rc;
    r->kind = REQUEST_ASK;
    r->priority = (int32_t)b.priority;
    request_set_budget(r, b.latency_budget_ms);
    r->input_bytes = strlen(b.text);
    r->ask.text = request_copy(r, b.text, r->input_bytes);
    if (b.confirm)
        r->ask.confirm = request_copy(r, b.confirm, strlen(b.confirm));
    if (b.room)
        r->ask.room = request_copy(r, b.room, strlen(b.room));
    if (b.language)
        r->language = request_copy(r, b.language, strlen(b.language));
    if (b.model)
        r->model = request_copy(r, b.model, strlen(b.model));
    if (b.input && read_input(r, b.input, e) < 0)
        return SHOAL_EINVAL;
    r->ask.explain = b.explain;
    r->ask.reply = b.reply;
    r->ask.heard = (float)b.heard;
    r->ask.dry = b.dry;
    *stream = r->streams = b.stream;
    return request_rc(r) < 0 ? fields_fail(e, "text", NULL, "out of memory") : 0;
}

/* Flows answer generations: route settings for them, such as privacy, apply here too. */
static void make_generation(struct request *r, struct chat_message *m)
{
    *m = (struct chat_message){
        .role = "user", .content = r->ask.text, .content_bytes = strlen(r->ask.text)};
    r->kind = REQUEST_GENERATE;
    r->generate =
        (struct request_generate){.chat = {.messages = m, .n_messages = 1}, .n_prompts = 1, .n = 1};
}

/* Whether the model is a flow, or none is needed; false: the call is answered. */
static bool check_flow(struct call *c, const struct request *r)
{
    if (r->model && !is_flow(c, r->model))
        call_fail(c, 404, NULL, "model", "model_not_found",
                  "there is no flow '%.80s', and no route with one", r->model);
    else if (!r->model && r->input)
        call_fail(c, 400, NULL, "input", NULL, "'input' is for flows: name one in 'model'");
    else
        return true;
    return false;
}

static const struct process_heard *copy_heard(struct request *r, const struct process_heard *heard)
{
    struct process_heard *copy = heard ? arena_zalloc(&r->arena, sizeof(*copy)) : NULL;
    if (!copy)
        return NULL;
    *copy = *heard;
    copy->text = request_copy(r, heard->text, heard->text_bytes);
    return copy;
}

static void stream_heard(struct answer_sink *a, const struct process_heard *heard)
{
    answer_begin(a);
    struct json_out j = answer_event(a, "transcript");
    process_put_heard(&j, heard);
    answer_event_end(a, &j);
    call_flush(a->call);
}

void process_run(struct call *c, struct request *r, bool stream, const struct process_heard *heard)
{
    static const struct answer_frame frame = {.type = SSE_TYPE};
    static const struct answer_dialect dialect = {.frame = &frame,
                                                  .failure_event = "error",
                                                  .every_token = true,
                                                  .plan = stream_plan,
                                                  .text = stream_text,
                                                  .end = stream_end,
                                                  .whole = put_whole};
    const bool explain = r->ask.explain;
    heard = copy_heard(r, heard);
    r->model = flow_of(c, r);
    if (!check_flow(c, r)) {
        flow_give_request(&c->gl->flow, r);
        return;
    }
    struct process_answer *a = answer_create(c, r, sizeof(*a), &dialect, stream);
    if (!a)
        return;
    a->explain = explain;
    a->heard = heard;
    a->answer.keeps |= ANSWER_KEEPS_TEXT; /* the last event has all of it */
    if (stream && heard)
        stream_heard(&a->answer, heard);
    if (r->model)
        make_generation(r, &a->message);
    stages_run(&c->gl->flow, r, c->sink);
}

void process_handle(struct call *c)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = call_request(c);
    bool stream = false;
    if (!r)
        return;
    if (process_read(r, &stream, c->json, c->lenient, &e) < 0) {
        call_fail_fields(c, &e);
        flow_give_request(&c->gl->flow, r);
        return;
    }
    process_run(c, r, stream, NULL);
}
