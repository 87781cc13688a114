/* ollama.c - see ollama.h.  Streams are one JSON object a line. */
#include "gateway/api/ollama.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "flow/tool_sink.h"
#include "gateway/api/openai.h"
#include "gateway/api/tools_read.h"
#include "gateway/call.h"
#include "wire/json_out.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)

struct body {
    const char *model, *prompt, *system;
    const cJSON *messages, *options, *think, *tools;
    bool stream, raw;
};

/* Numbers that mean a count are read as Ollama does: what is behind the point is cut off. */
struct options {
    double seed, top_k, num_predict, repeat_last_n;
    double temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    const cJSON *stop;
};

#define AT(member) offsetof(struct body, member)
#define OPT(member) offsetof(struct options, member)
#define COMMON                                                                                     \
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /api/tags", NULL},                   \
        {"stream", FIELD_BOOL, AT(stream), 0, 0, "one JSON object per line; default: true", NULL}, \
        {"options",                                                                                \
         FIELD_VALUE,                                                                              \
         AT(options),                                                                              \
         0,                                                                                        \
         0,                                                                                        \
         "temperature, seed, num_predict, ...",                                                    \
         "{\"type\":\"object\"}"},                                                                 \
        {"keep_alive", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                     \
        {"think", FIELD_VALUE, AT(think),                                                          \
         0,       0,           "true, false or a level: for the model's chat template",            \
         "{}"},                                                                                    \
        {"truncate", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                       \
        {"shift", FIELD_IGNORED, 0, 0, 0, "accepted and not used", NULL},                          \
    {                                                                                              \
        "format", FIELD_UNBUILT, 0, 0, 0, NULL, NULL                                               \
    }

const struct field ollama_chat_fields[] = {
    {"messages", FIELD_VALUE, AT(messages), 0, 0, "the conversation", "{\"type\":\"array\"}"},
    COMMON,
    {"tools", FIELD_VALUE, AT(tools), 0, 0, "functions that the model may call",
     TOOLS_READ_SCHEMA}};
const size_t ollama_n_chat_fields = sizeof(ollama_chat_fields) / sizeof(ollama_chat_fields[0]);

const struct field ollama_generate_fields[] = {
    {"prompt", FIELD_STR, AT(prompt), 0, 0, "a text", NULL},
    {"system", FIELD_STR, AT(system), 0, 0, "system message", NULL},
    {"raw", FIELD_BOOL, AT(raw), 0, 0, "use the prompt as it is, without the template", NULL},
    COMMON,
    {"suffix", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"logprobs", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"top_logprobs", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"images", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"template", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"context", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
const size_t ollama_n_generate_fields =
    sizeof(ollama_generate_fields) / sizeof(ollama_generate_fields[0]);

#define ANY -1e300, 1e300
static const struct field option_fields[] = {
    {"seed", FIELD_NUM, OPT(seed), ANY, NULL, NULL},
    {"temperature", FIELD_NUM, OPT(temperature), ANY, NULL, NULL},
    {"top_k", FIELD_NUM, OPT(top_k), ANY, NULL, NULL},
    {"top_p", FIELD_NUM, OPT(top_p), ANY, NULL, NULL},
    {"min_p", FIELD_NUM, OPT(min_p), ANY, NULL, NULL},
    {"num_predict", FIELD_NUM, OPT(num_predict), ANY, NULL, NULL},
    {"repeat_penalty", FIELD_NUM, OPT(repeat_penalty), ANY, NULL, NULL},
    {"repeat_last_n", FIELD_NUM, OPT(repeat_last_n), ANY, NULL, NULL},
    {"presence_penalty", FIELD_NUM, OPT(presence_penalty), ANY, NULL, NULL},
    {"frequency_penalty", FIELD_NUM, OPT(frequency_penalty), ANY, NULL, NULL},
    {"stop", FIELD_VALUE, OPT(stop), 0, 0, NULL, NULL},
    /* how Ollama runs a model: the configuration decides that here */
    {"num_ctx", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_thread", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_batch", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_gpu", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_keep", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"main_gpu", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"numa", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"use_mmap", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"use_mlock", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"low_vram", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"f16_kv", FIELD_IGNORED, 0, 0, 0, NULL, NULL}};
#undef ANY
#define N_OPTIONS (sizeof(option_fields) / sizeof(option_fields[0]))

/* Ollama ignores options that it does not know, and so do we; the log tells their names. */
static void warn_unknown(const struct request *r, const cJSON *o)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, o)
    {
        size_t i = 0, n = strspn(v->string, "abcdefghijklmnopqrstuvwxyz0123456789_");
        while (i < N_OPTIONS && strcmp(option_fields[i].name, v->string) != 0)
            i++;
        if (i == N_OPTIONS)
            log_warn("ollama", "unknown option ignored req=%s option=%.*s", r->id,
                     n < 40 ? (int)n : 40, v->string);
    }
}

static double within(double v, double min, double max)
{
    return v < min ? min : v > max ? max : v;
}

static int read_options(struct request *r, const cJSON *o, struct fields_error *e)
{
    /* Ollama's own defaults */
    struct options v = {.seed = NAN,
                        .temperature = 0.8,
                        .top_k = 40,
                        .top_p = 0.9,
                        .repeat_penalty = 1.1,
                        .repeat_last_n = 64,
                        .num_predict = -1};
    struct request_generate *g = &r->generate;
    int rc = 0;
    if (o && !cJSON_IsObject(o))
        return fields_fail(e, "options", "invalid_type", "'options' must be an object");
    if (o)
        rc = fields_read(option_fields, N_OPTIONS, o, &v, true, e);
    if (rc == 0 && o)
        warn_unknown(r, o);
    if (rc == 0)
        rc = openai_read_stop(r, v.stop, e);
    g->has_seed = !isnan(v.seed);
    g->max_tokens = v.num_predict >= 1 ? (uint32_t)within(v.num_predict, 1, 1 << 24) : 0;
    bool no_window = v.repeat_last_n >= 0 && v.repeat_last_n < 1; /* 0: no penalty; -1: all */
    g->sampling = (struct shoal_sampling){
        .temperature = (float)within(v.temperature, 0, 100),
        .top_k = v.top_k >= 1 ? (uint32_t)within(v.top_k, 1, 1e9) : 0,
        .top_p = v.top_p > 0 ? (float)within(v.top_p, 1e-6, 1) : 1e-6f,
        .min_p = (float)within(v.min_p, 0, 1),
        .repeat_penalty = no_window ? 1.0f : (float)within(v.repeat_penalty, 0, 10),
        .repeat_last_n =
            v.repeat_last_n < 0 ? 1u << 20 : (uint32_t)within(v.repeat_last_n, 0, 1 << 20),
        .presence_penalty = (float)within(v.presence_penalty, -10, 10),
        .frequency_penalty = (float)within(v.frequency_penalty, -10, 10),
        .seed = g->has_seed ? (uint64_t)(int64_t)within(v.seed, -9e18, 9e18) : 0};
    return rc;
}

/* true, false, or a level such as "high": the template's matter. */
static int read_think(struct request *r, const cJSON *think, struct fields_error *e)
{
    if (!think)
        return 0;
    if (!cJSON_IsBool(think) && !cJSON_IsString(think))
        return fields_fail(e, "think", "invalid_type", "'think' must be true, false or a level");
    bool on = cJSON_IsTrue(think) || (cJSON_IsString(think) && think->valuestring[0]);
    openai_add_var(r, "enable_thinking", value_bool(on));
    if (cJSON_IsString(think) && on) {
        struct value v = {.kind = VALUE_TEXT};
        v.text.p = request_copy_utf8(r, think->valuestring, strlen(think->valuestring), &v.text.n);
        openai_add_var(r, "reasoning_effort", v);
    }
    return 0;
}

static struct chat_message message_of(struct request *r, const char *role, const char *text)
{
    struct chat_message m = {.role = role};
    m.content = request_copy_utf8(r, text, strlen(text), &m.content_bytes);
    r->input_bytes += m.content_bytes;
    return m;
}

/* A prompt becomes a conversation of one question, unless it is to stay as it is. */
static void use_prompt(struct request *r, const struct body *b)
{
    struct request_generate *g = &r->generate;
    if (b->raw) {
        struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
        if (!p)
            return; /* request_rc tells */
        p->text_bytes = strlen(b->prompt);
        p->text = request_copy(r, b->prompt, p->text_bytes);
        r->input_bytes += p->text_bytes;
        g->prompts = p;
        return;
    }
    struct chat_message *list = arena_zalloc_n(&r->arena, 2, sizeof(*list));
    if (!list)
        return;
    if (b->system && b->system[0])
        list[g->chat.n_messages++] = message_of(r, "system", b->system);
    list[g->chat.n_messages++] = message_of(r, "user", b->prompt);
    g->chat.messages = list;
}

int ollama_read(struct request *r, struct ollama_shape *shape, const cJSON *body, bool chat,
                bool lenient, struct fields_error *e)
{
    struct body b = {.stream = true, .prompt = ""};
    int rc =
        chat ? fields_read(ollama_chat_fields, ollama_n_chat_fields, body, &b, lenient, e)
             : fields_read(ollama_generate_fields, ollama_n_generate_fields, body, &b, lenient, e);
    r->kind = REQUEST_GENERATE;
    r->generate.n = r->generate.n_prompts = 1;
    if (rc == 0)
        rc = read_options(r, b.options, e);
    if (rc == 0)
        rc = read_think(r, b.think, e);
    if (rc == 0 && chat)
        rc = openai_read_messages(r, b.messages, lenient, e);
    if (rc == 0 && chat)
        rc = tools_read(r, b.tools, e);
    if (rc < 0)
        return rc;
    if (chat)
        openai_prefill(r);
    if (!chat)
        use_prompt(r, &b);
    if (b.model)
        r->model = request_copy(r, b.model, strlen(b.model));
    *shape = (struct ollama_shape){chat, b.stream};
    return request_rc(r) < 0 ? fields_fail(e, chat ? "messages" : "prompt", NULL, "out of memory")
                             : 0;
}

/* ---- answers ---- */

static void put_time(struct json_out *j)
{
    struct timespec ts;
    struct tm tm;
    char text[48];
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, sizeof(text) - n, ".%06ldZ", ts.tv_nsec / 1000);
    json_out_key(j, "created_at");
    json_out_str(j, text);
}

/* Turns the events of a generation into an answer to the call. */
struct answer {
    struct sink sink;
    struct call *call; /* held */
    struct ollama_shape shape;
    const char *model;
    struct buf text;             /* whole answers: so far */
    struct buf calls, arguments; /* of tools, as JSON; arguments: of the current call */
};

static void put_text(struct answer *a, struct json_out *j, const char *p, size_t n)
{
    json_out_object(j);
    json_out_key(j, "model");
    json_out_str(j, a->model);
    put_time(j);
    json_out_key(j, a->shape.chat ? "message" : "response");
    if (a->shape.chat) {
        json_out_object(j);
        json_out_key(j, "role");
        json_out_str(j, "assistant");
        json_out_key(j, "content");
    }
    json_out_strn(j, p, n);
    if (a->calls.len > 0) {
        json_out_key(j, "tool_calls");
        buf_putc(j->b, '[');
        buf_put(j->b, a->calls.data, a->calls.len);
        buf_putc(j->b, ']');
        j->comma = true;
        buf_clear(&a->calls);
    }
    if (a->shape.chat)
        json_out_object_end(j);
}

static void put_end(struct json_out *j, const struct sink_done *d)
{
    const struct {
        const char *name;
        uint64_t v;
    } rows[] = {{"total_duration", d->total_ns},
                {"load_duration", 0},
                {"prompt_eval_count", d->prompt_tokens},
                {"prompt_eval_duration", d->first_token_ns},
                {"eval_count", d->generated_tokens},
                {"eval_duration", d->total_ns - d->first_token_ns}};
    json_out_key(j, "done");
    json_out_bool(j, true);
    json_out_key(j, "done_reason");
    json_out_str(j, d->finish == SHOAL_FINISH_LENGTH ? "length" : "stop");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_out_key(j, rows[i].name);
        json_out_uint(j, rows[i].v);
    }
    json_out_object_end(j);
}

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

static void begin_stream(struct call *c)
{
    if (c->began)
        return;
    call_begin(c, "application/x-ndjson");
    buf_clear(&c->out);
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    struct answer *a = answer_of(s);
    a->model = e->model;
    call_set_model(a->call, e);
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct answer *a = answer_of(s);
    struct call *c = a->call;
    if (!c->req)
        return;
    if (!a->shape.stream) {
        buf_put(&a->text, t->text, t->text_bytes);
        return;
    }
    begin_stream(c);
    if (t->text_bytes == 0)
        return;
    struct json_out j = json_out_make(&c->out);
    put_text(a, &j, t->text, t->text_bytes);
    json_out_key(&j, "done");
    json_out_bool(&j, false);
    json_out_object_end(&j);
    call_line_end(c);
}

/* A call is complete when its end comes. */
static void on_call(struct sink *s, const struct sink_call *e)
{
    struct answer *a = answer_of(s);
    struct call *c = a->call;
    if (e->begins)
        buf_clear(&a->arguments);
    buf_put(&a->arguments, e->text, e->text_bytes);
    if (!e->ends || !c->req)
        return;
    struct json_out j = json_out_make(&a->calls);
    j.comma = a->calls.len > 0;
    json_out_object(&j);
    json_out_member_str(&j, "id", e->id);
    json_out_key(&j, "function");
    json_out_object(&j);
    json_out_member_uint(&j, "index", e->index);
    json_out_member_str(&j, "name", e->name);
    json_out_key(&j, "arguments");
    buf_put(&a->calls, buf_str(&a->arguments), a->arguments.len);
    j.comma = true;
    json_out_object_end(&j);
    json_out_object_end(&j);
    if (a->arguments.rc < 0)
        a->calls.rc = a->arguments.rc;
    if (!a->shape.stream)
        return;
    begin_stream(c);
    j = json_out_make(&c->out);
    put_text(a, &j, "", 0);
    json_out_key(&j, "done");
    json_out_bool(&j, false);
    json_out_object_end(&j);
    call_line_end(c);
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    struct answer *a = answer_of(s);
    struct call *c = a->call;
    if (!c->req)
        return;
    if (a->shape.stream)
        begin_stream(c);
    else
        buf_clear(&c->out);
    if (a->text.rc < 0 || a->calls.rc < 0)
        c->out.rc = a->text.rc < 0 ? a->text.rc : a->calls.rc;
    struct json_out j = json_out_make(&c->out);
    put_text(a, &j, buf_str(&a->text), a->text.len);
    put_end(&j, d);
    if (a->shape.stream) {
        call_line_end(c);
        call_end_flushed(c);
    } else {
        buf_putc(&c->out, '\n');
        call_json(c, 200);
    }
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct call *c = answer_of(s)->call;
    if (!c->req)
        return;
    if (!c->began) {
        call_fail_with(c, f);
        return;
    }
    call_put_failure(c, f);
    call_line_end(c);
    call_end_flushed(c);
}

static void on_flush(struct sink *s)
{
    struct answer *a = answer_of(s);
    if (a->shape.stream)
        call_flush(a->call);
}

static bool on_full(struct sink *s)
{
    return call_full(answer_of(s)->call);
}

static void on_closed(struct sink *s)
{
    struct answer *a = answer_of(s);
    buf_fini(&a->text);
    buf_fini(&a->calls);
    buf_fini(&a->arguments);
    call_unset_sink(a->call);
}

static const struct sink_ops answer_ops = {.start = on_start,
                                           .token = on_token,
                                           .call = on_call,
                                           .done = on_done,
                                           .fail = on_fail,
                                           .closed = on_closed,
                                           .flush = on_flush,
                                           .full = on_full};

/* ---- handlers ---- */

static void start(struct call *c, bool chat)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct ollama_shape shape;
    struct request *r = call_request(c);
    if (!r)
        return;
    int rc = ollama_read(r, &shape, c->json, chat, c->lenient, &e);
    struct answer *a = rc == 0 ? arena_zalloc(&r->arena, sizeof(*a)) : NULL;
    if (!a) {
        if (rc < 0)
            call_fail_fields(c, &e);
        else
            call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        flow_give_request(&c->gl->flow, r);
        return;
    }
    a->sink.ops = &answer_ops;
    a->call = c;
    a->shape = shape;
    buf_init(&a->text, MAX_TEXT_BYTES);
    buf_init(&a->calls, MAX_TEXT_BYTES);
    buf_init(&a->arguments, MAX_TEXT_BYTES);
    call_set_sink(c, &a->sink);
    tool_sink_run(&c->gl->flow, r, c->sink, false); /* its streams have whole calls */
}

void ollama_chat(struct call *c)
{
    start(c, true);
}

void ollama_generate(struct call *c)
{
    start(c, false);
}
