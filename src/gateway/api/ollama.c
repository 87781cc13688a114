/* ollama.c - see ollama.h.  Streams are one JSON object a line. */
#include "gateway/api/ollama.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cluster/members.h"
#include "flow/routing.h"
#include "gateway/api/openai.h"
#include "gateway/call.h"
#include "wire/json_out.h"

#define MAX_TEXT_BYTES ((size_t)64 << 20)

struct body {
    const char *model, *prompt, *system;
    const cJSON *messages, *options;
    bool stream, raw;
};

struct options {
    int64_t seed, top_k, num_predict, repeat_last_n;
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
        {"think", FIELD_UNBUILT, 0, 0, 0, NULL, "false"},                                          \
    {                                                                                              \
        "format", FIELD_UNBUILT, 0, 0, 0, NULL, NULL                                               \
    }

const struct field ollama_chat_fields[] = {
    {"messages", FIELD_VALUE, AT(messages), 0, 0, "the conversation", "{\"type\":\"array\"}"},
    COMMON,
    {"tools", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
const size_t ollama_n_chat_fields = sizeof(ollama_chat_fields) / sizeof(ollama_chat_fields[0]);

const struct field ollama_generate_fields[] = {
    {"prompt", FIELD_STR, AT(prompt), 0, 0, "a text", NULL},
    {"system", FIELD_STR, AT(system), 0, 0, "system message", NULL},
    {"raw", FIELD_BOOL, AT(raw), 0, 0, "use the prompt as it is, without the template", NULL},
    COMMON,
    {"suffix", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"images", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"template", FIELD_UNBUILT, 0, 0, 0, NULL, NULL},
    {"context", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
const size_t ollama_n_generate_fields =
    sizeof(ollama_generate_fields) / sizeof(ollama_generate_fields[0]);

static const struct field option_fields[] = {
    {"seed", FIELD_INT, OPT(seed), -9.2e18, 9.2e18, NULL, NULL},
    {"temperature", FIELD_NUM, OPT(temperature), 0, 100, NULL, NULL},
    {"top_k", FIELD_INT, OPT(top_k), 0, 1e9, NULL, NULL},
    {"top_p", FIELD_NUM, OPT(top_p), 0, 1, NULL, NULL},
    {"min_p", FIELD_NUM, OPT(min_p), 0, 1, NULL, NULL},
    {"num_predict", FIELD_INT, OPT(num_predict), -2, 1 << 24, NULL, NULL},
    {"repeat_penalty", FIELD_NUM, OPT(repeat_penalty), 0, 10, NULL, NULL},
    {"repeat_last_n", FIELD_INT, OPT(repeat_last_n), 0, 1 << 20, NULL, NULL},
    {"presence_penalty", FIELD_NUM, OPT(presence_penalty), -2, 2, NULL, NULL},
    {"frequency_penalty", FIELD_NUM, OPT(frequency_penalty), -2, 2, NULL, NULL},
    {"stop", FIELD_VALUE, OPT(stop), 0, 0, NULL, NULL},
    {"num_ctx", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_thread", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_batch", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_gpu", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_keep", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"main_gpu", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"use_mmap", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"low_vram", FIELD_IGNORED, 0, 0, 0, NULL, NULL}};

static int read_options(struct request *r, const cJSON *o, bool lenient, struct fields_error *e)
{
    /* Ollama's own defaults */
    struct options v = {.seed = INT64_MIN,
                        .temperature = 0.8,
                        .top_k = 40,
                        .top_p = 0.9,
                        .repeat_penalty = 1.1,
                        .repeat_last_n = 64,
                        .num_predict = -1};
    struct request_generate *g = &r->generate;
    int rc = o ? fields_read(option_fields, sizeof(option_fields) / sizeof(option_fields[0]), o, &v,
                             lenient, e)
               : 0;
    if (rc == 0)
        rc = openai_read_stop(r, v.stop, e);
    g->has_seed = v.seed != INT64_MIN;
    g->max_tokens = v.num_predict > 0 ? (uint32_t)v.num_predict : 0;
    g->sampling = (struct shoal_sampling){.temperature = (float)v.temperature,
                                          .top_k = (uint32_t)v.top_k,
                                          .top_p = (float)v.top_p,
                                          .min_p = (float)v.min_p,
                                          .repeat_penalty = (float)v.repeat_penalty,
                                          .repeat_last_n = (uint32_t)v.repeat_last_n,
                                          .presence_penalty = (float)v.presence_penalty,
                                          .frequency_penalty = (float)v.frequency_penalty,
                                          .seed = g->has_seed ? (uint64_t)v.seed : 0};
    return rc;
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
        rc = read_options(r, b.options, lenient, e);
    if (rc == 0 && chat)
        rc = openai_read_messages(r, b.messages, lenient, e);
    if (rc < 0)
        return rc;
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
    struct buf text; /* whole answers: so far */
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
    if (a->text.rc < 0)
        c->out.rc = a->text.rc;
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
    call_unset_sink(a->call);
}

static const struct sink_ops answer_ops = {.start = on_start,
                                           .token = on_token,
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
    call_set_sink(c, &a->sink);
    routing_run(&c->gl->flow, r, c->sink);
}

void ollama_chat(struct call *c)
{
    start(c, true);
}

void ollama_generate(struct call *c)
{
    start(c, false);
}

/* ---- lists ---- */

struct listing {
    struct json_out j;
    bool loaded_only;
    const char *name;
    bool found;
    struct gw *gw;
};

static void put_details(struct json_out *j, const struct registry_model *m)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    char size[32] = "";
    if (m->slot->engine)
        shoal_engine_info(m->slot->engine, &info);
    if (info.n_params)
        snprintf(size, sizeof(size), "%.1fM", (double)info.n_params / 1e6);
    json_out_key(j, "details");
    json_out_object(j);
    json_out_key(j, "format");
    json_out_str(j, "gguf");
    json_out_key(j, "family");
    json_out_str(j, info.arch ? info.arch : "");
    json_out_key(j, "parameter_size");
    json_out_str(j, size);
    json_out_key(j, "quantization_level");
    json_out_str(j, "");
    json_out_object_end(j);
}

/* The object is left open.  sum: NULL: not known yet. */
static void put_head(struct json_out *j, const char *name, uint64_t created_s, uint64_t bytes,
                     const uint8_t *sum)
{
    struct tm tm;
    time_t at = (time_t)created_s;
    char stamp[40], digest[2 * SHA256_BYTES + 1] = "";
    gmtime_r(&at, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (sum)
        sha256_hex(digest, sum);
    json_out_object(j);
    json_out_member_str(j, "name", name);
    json_out_member_str(j, "model", name);
    json_out_member_str(j, "modified_at", stamp);
    json_out_member_uint(j, "size", bytes);
    json_out_member_str(j, "digest", digest);
}

static void put_tag(void *ctx, const struct registry_model *m)
{
    struct listing *l = ctx;
    if (l->loaded_only && m->slot->state != REGISTRY_READY)
        return;
    put_head(&l->j, m->name, m->slot->created_s, m->slot->bytes, registry_sum(m));
    put_details(&l->j, m);
    json_out_object_end(&l->j);
}

/* A model of another node. */
static void put_remote_tag(void *ctx, const struct node_model *m)
{
    struct listing *l = ctx;
    enum registry_state here;
    if ((l->loaded_only && m->state != REGISTRY_READY) ||
        registry_state(l->gw->registry, m->name, &here))
        return;
    put_head(&l->j, m->name, l->gw->started_s, m->bytes, m->sum);
    json_out_key(&l->j, "details");
    json_out_object(&l->j);
    json_out_member_str(&l->j, "format", "gguf");
    json_out_object_end(&l->j);
    json_out_object_end(&l->j);
}

static void list(struct call *c, bool loaded_only)
{
    struct listing l = {json_out_make(&c->out), loaded_only, NULL, false, c->gl->gw};
    json_out_object(&l.j);
    json_out_key(&l.j, "models");
    json_out_array(&l.j);
    registry_each(c->gl->gw->registry, put_tag, &l);
    if (c->gl->members)
        members_each_model(c->gl->members, put_remote_tag, &l);
    json_out_array_end(&l.j);
    json_out_object_end(&l.j);
    call_json(c, 200);
}

void ollama_tags(struct call *c)
{
    list(c, false);
}

void ollama_ps(struct call *c)
{
    list(c, true);
}

static void put_shown(void *ctx, const struct registry_model *m)
{
    struct listing *l = ctx;
    struct shoal_engine_info info = {.size = sizeof(info)};
    if (strcmp(m->name, l->name) != 0)
        return;
    l->found = true;
    if (m->slot->engine)
        shoal_engine_info(m->slot->engine, &info);
    json_out_object(&l->j);
    json_out_key(&l->j, "modelfile");
    json_out_str(&l->j, "");
    json_out_key(&l->j, "template");
    json_out_str(&l->j, info.chat_template ? info.chat_template : "");
    put_details(&l->j, m);
    json_out_key(&l->j, "model_info");
    json_out_object(&l->j);
    json_out_key(&l->j, "general.architecture");
    json_out_str(&l->j, info.arch ? info.arch : "");
    json_out_key(&l->j, "general.parameter_count");
    json_out_uint(&l->j, info.n_params);
    json_out_key(&l->j, "context_length");
    json_out_uint(&l->j, info.n_ctx);
    json_out_object_end(&l->j);
    json_out_key(&l->j, "capabilities");
    json_out_array(&l->j);
    if (m->slot->kinds & SHOAL_KIND_GENERATE || strcmp(m->task, "generate") == 0)
        json_out_str(&l->j, "completion");
    if (m->slot->kinds & SHOAL_KIND_EMBED)
        json_out_str(&l->j, "embedding");
    json_out_array_end(&l->j);
    json_out_object_end(&l->j);
}

void ollama_show(struct call *c)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(c->json, "model");
    if (!name)
        name = cJSON_GetObjectItemCaseSensitive(c->json, "name");
    if (!cJSON_IsString(name)) {
        call_fail(c, 400, NULL, "model", "missing_required_parameter", "'model' is missing");
        return;
    }
    struct listing l = {json_out_make(&c->out), false, name->valuestring, false, c->gl->gw};
    registry_each(c->gl->gw->registry, put_shown, &l);
    if (l.found)
        call_json(c, 200);
    else
        call_fail(c, 404, NULL, "model", "model_not_found", "model '%.64s' not found",
                  name->valuestring);
}

void ollama_version(struct call *c)
{
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_key(&j, "version");
    json_out_str(&j, shoal_version());
    json_out_object_end(&j);
    call_json(c, 200);
}
