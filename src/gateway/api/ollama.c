/* ollama.c - see ollama.h.  Streams are one JSON object a line. */
#include "gateway/api/ollama.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gateway/api/openai.h"
#include "wire/json_out.h"

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
        {"stream", FIELD_BOOL, AT(stream), 0, 0, "one object a line; default true", NULL},         \
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
    {"system", FIELD_STR, AT(system), 0, 0, "what the model is told about its part", NULL},
    {"raw", FIELD_BOOL, AT(raw), 0, 0, "the prompt as it is, without the template", NULL},
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

static int read_options(struct gen *g, const cJSON *o, struct fields_error *e)
{
    /* Ollama's own defaults */
    struct options v = {.seed = INT64_MIN,
                        .temperature = 0.8,
                        .top_k = 40,
                        .top_p = 0.9,
                        .repeat_penalty = 1.1,
                        .repeat_last_n = 64,
                        .num_predict = -1};
    int rc = o ? fields_read(option_fields, sizeof(option_fields) / sizeof(option_fields[0]), o, &v,
                             g->call->lenient, e)
               : 0;
    if (rc == 0)
        rc = openai_read_stop(&g->p, v.stop, e);
    g->p.has_seed = v.seed != INT64_MIN;
    g->p.max_tokens = v.num_predict > 0 ? (uint32_t)v.num_predict : 0;
    g->p.sampling = (struct shoal_sampling){.temperature = (float)v.temperature,
                                            .top_k = (uint32_t)v.top_k,
                                            .top_p = (float)v.top_p,
                                            .min_p = (float)v.min_p,
                                            .repeat_penalty = (float)v.repeat_penalty,
                                            .repeat_last_n = (uint32_t)v.repeat_last_n,
                                            .presence_penalty = (float)v.presence_penalty,
                                            .frequency_penalty = (float)v.frequency_penalty,
                                            .seed = g->p.has_seed ? (uint64_t)v.seed : 0};
    return rc;
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

static void put_text(struct gen *g, struct json_out *j, const char *p, size_t n)
{
    bool chat = g->user != NULL;
    json_out_object(j);
    json_out_key(j, "model");
    json_out_str(j, g->model->name);
    put_time(j);
    json_out_key(j, chat ? "message" : "response");
    if (chat) {
        json_out_object(j);
        json_out_key(j, "role");
        json_out_str(j, "assistant");
        json_out_key(j, "content");
    }
    json_out_strn(j, p, n);
    if (chat)
        json_out_object_end(j);
}

static void put_end(struct gen *g, struct json_out *j)
{
    const struct shoal_event *d = &g->choices[0].done;
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
    buf_putc(j->b, '\n');
}

static void on_begin(struct gen *g)
{
    (void)g;
}

static void on_done(struct gen *g, uint32_t choice)
{
    (void)g;
    (void)choice;
}

static void on_token(struct gen *g, const struct gen_token *t)
{
    if (!g->p.stream) {
        buf_put(&g->choices[0].text, t->text, t->text_bytes);
    } else if (t->text_bytes > 0) {
        struct json_out j = json_out_make(&g->call->out);
        put_text(g, &j, t->text, t->text_bytes);
        json_out_key(&j, "done");
        json_out_bool(&j, false);
        json_out_object_end(&j);
        buf_putc(&g->call->out, '\n');
    }
}

static void on_finish(struct gen *g)
{
    const struct buf *text = &g->choices[0].text;
    if (!g->p.stream)
        buf_clear(&g->call->out);
    if (text->rc < 0)
        g->call->out.rc = text->rc;
    struct json_out j = json_out_make(&g->call->out);
    put_text(g, &j, buf_str(text), text->len);
    put_end(g, &j);
}

static void on_error(struct gen *g, int code, const char *msg)
{
    call_put_error(g->call, &g->call->out, "", NULL, err_name(code), msg);
}

static const struct gen_sink sink = {
    "application/x-ndjson", on_begin, on_token, on_done, on_finish, on_error};

/* ---- requests ---- */

static int prepare(struct gen *g, struct err *e)
{
    if (g->echo) /* raw */
        return shoal_tokenize(registry_engine(g->model), buf_str(&g->prompt), g->prompt.len,
                              SHOAL_TEXT_ADD_SPECIAL, &g->tokens, &g->n_tokens, e);
    return shoal_chat_tokens(registry_engine(g->model), buf_str(&g->prompt), g->prompt.len,
                             &g->tokens, &g->n_tokens, e);
}

static void put_message(struct json_out *j, const char *role, const char *text)
{
    json_out_object(j);
    json_out_key(j, "role");
    json_out_str(j, role);
    json_out_key(j, "content");
    json_out_str(j, text);
    json_out_object_end(j);
}

static int put_prompt(struct gen *g, const struct body *b, bool chat, struct fields_error *e)
{
    struct buf *out = &g->prompt;
    if (!chat && b->raw) {
        buf_puts(out, b->prompt);
        return out->rc < 0 ? fields_fail(e, "prompt", NULL, "out of memory") : 0;
    }
    buf_puts(out, "{\"messages\":");
    if (chat) {
        int rc = openai_put_messages(out, b->messages, g->call->lenient, e);
        if (rc < 0)
            return rc;
    } else {
        struct json_out j = json_out_make(out);
        json_out_array(&j);
        if (b->system && b->system[0])
            put_message(&j, "system", b->system);
        put_message(&j, "user", b->prompt);
        json_out_array_end(&j);
    }
    buf_puts(out, ",\"add_generation_prompt\":true}");
    return out->rc < 0 ? fields_fail(e, "messages", NULL, "out of memory") : 0;
}

static void start(struct call *c, const struct field *table, size_t n, bool chat)
{
    struct body b = {.stream = true, .prompt = ""};
    struct fields_error e = {{0}, {0}, NULL};
    struct gen *g = gen_create(c, &sink, "ollama-");
    if (!g)
        return;
    int rc = fields_read(table, n, c->json, &b, c->lenient, &e);
    if (rc == 0)
        rc = read_options(g, b.options, &e);
    if (rc == 0)
        rc = put_prompt(g, &b, chat, &e);
    if (rc < 0) {
        call_fail_fields(c, &e);
        gen_free(g);
        return;
    }
    g->p.stream = b.stream;
    g->prepare = prepare;
    g->prompt_kind = !chat && b.raw ? PROMPT_KIND_TEXT : PROMPT_KIND_CHAT;
    g->user = chat ? g : NULL;
    g->echo = !chat && b.raw;
    gen_run(g, b.model);
}

void ollama_chat(struct call *c)
{
    start(c, ollama_chat_fields, ollama_n_chat_fields, true);
}

void ollama_generate(struct call *c)
{
    start(c, ollama_generate_fields, ollama_n_generate_fields, false);
}

/* ---- lists ---- */

struct listing {
    struct json_out j;
    bool loaded_only;
    const char *name;
    bool found;
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

static void put_tag(void *ctx, const struct registry_model *m)
{
    struct listing *l = ctx;
    struct tm tm;
    time_t at = (time_t)m->slot->created_s;
    char stamp[40], digest[2 * SHA256_BYTES + 1] = "";
    if (l->loaded_only && m->slot->state != REGISTRY_READY)
        return;
    gmtime_r(&at, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_out_object(&l->j);
    json_out_key(&l->j, "name");
    json_out_str(&l->j, m->name);
    json_out_key(&l->j, "model");
    json_out_str(&l->j, m->name);
    json_out_key(&l->j, "modified_at");
    json_out_str(&l->j, stamp);
    json_out_key(&l->j, "size");
    json_out_uint(&l->j, m->slot->bytes);
    json_out_key(&l->j, "digest");
    const struct identity *id = registry_identity(m);
    if (id->kind == IDENTITY_CONTENT)
        sha256_hex(digest, id->sum);
    json_out_str(&l->j, digest);
    put_details(&l->j, m);
    json_out_object_end(&l->j);
}

static void list(struct call *c, bool loaded_only)
{
    struct listing l = {json_out_make(&c->out), loaded_only, NULL, false};
    json_out_object(&l.j);
    json_out_key(&l.j, "models");
    json_out_array(&l.j);
    registry_each(c->gl->gw->registry, put_tag, &l);
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
    struct listing l = {json_out_make(&c->out), false, name->valuestring, false};
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
