/* ollama.c - see ollama.h.  Streams are one JSON object a line. */
#include "gateway/api/ollama/ollama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "flow/flow_run.h"
#include "flow/stages.h"
#include "gateway/call/answer.h"
#include "gateway/api/constraint_read.h"
#include "gateway/api/logprob_json.h"
#include "gateway/api/model_profiles.h"
#include "gateway/api/ollama/go_template.h"
#include "gateway/api/prompt_read.h"
#include "gateway/api/thinking.h"
#include "gateway/api/tools_read.h"
#include "gateway/call/guard.h"
#include "wire/json_out.h"

#define MAX_TEMPLATE_BYTES ((size_t)4 << 20)

struct body {
    const char *model, *prompt, *system, *suffix, *template;
    const cJSON *messages, *options, *think, *tools, *format, *context, *keep_alive;
    int64_t top_logprobs;
    double num_predict;
    bool stream, raw, logprobs, truncate, shift;
};

/* Counts are read like in Ollama: decimals are cut off. */
struct options {
    double seed, top_k, num_predict, repeat_last_n, num_keep;
    double temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    const cJSON *stop;
};

#define AT(member) offsetof(struct body, member)
#define OPT(member) offsetof(struct options, member)
#define COMMON                                                                                      \
    {"model", FIELD_STR, AT(model), 0, 0, "name of a model of /api/tags", NULL},                    \
        {"stream", FIELD_BOOL, AT(stream), 0, 0, "one JSON object per line; default: true", NULL},  \
        {"options",                                                                                 \
         FIELD_VALUE,                                                                               \
         AT(options),                                                                               \
         0,                                                                                         \
         0,                                                                                         \
         "temperature, seed, num_predict, ...",                                                     \
         "{\"type\":\"object\"}"},                                                                  \
        {"keep_alive",                                                                              \
         FIELD_VALUE,                                                                               \
         AT(keep_alive),                                                                            \
         0,                                                                                         \
         0,                                                                                         \
         "how long the model stays loaded: \"5m\", seconds, or -1",                                 \
         "{}"},                                                                                     \
        {"logprobs", FIELD_BOOL, AT(logprobs), 0, 0, "log-probability of every token", NULL},       \
        {"top_logprobs", FIELD_INT, AT(top_logprobs), 0, 20, "most likely tokens to return", NULL}, \
        {"think", FIELD_VALUE, AT(think),                                                           \
         0,       0,           "true, false or a level: for the model's chat template",             \
         "{}"},                                                                                     \
        {"truncate",                                                                                \
         FIELD_BOOL,                                                                                \
         AT(truncate),                                                                              \
         0,                                                                                         \
         0,                                                                                         \
         "leave out the oldest turns of a chat that is too long; default: true",                    \
         NULL},                                                                                     \
        {"shift",   FIELD_BOOL,                                                                     \
         AT(shift), 0,                                                                              \
         0,         "false: the answer ends at the context, also if the model has context_shift",   \
         NULL},                                                                                     \
        {"num_predict", FIELD_NUM, AT(num_predict),                                                 \
         -1e300,        1e300,     "as in options, where it takes precedence",                      \
         NULL},                                                                                     \
        {"temperature", FIELD_IGNORED, 0, 0, 0, "Ollama reads it in options only", NULL},           \
        {"top_p", FIELD_IGNORED, 0, 0, 0, "Ollama reads it in options only", NULL},                 \
        {"top_k", FIELD_IGNORED, 0, 0, 0, "Ollama reads it in options only", NULL},                 \
        {"max_output_tokens", FIELD_IGNORED, 0, 0, 0, "Ollama reads it in options only", NULL},     \
    {                                                                                               \
        "format", FIELD_VALUE, AT(format), 0, 0, "\"json\", or a JSON Schema of the answer", "{}"   \
    }

const struct field ollama_chat_fields[] = {
    {"messages", FIELD_VALUE, AT(messages), 0, 0, "the conversation", "{\"type\":\"array\"}"},
    FIELDS_SESSION,
    COMMON,
    {"tool_choice", FIELD_IGNORED, 0, 0, 0, "Ollama does not read it", NULL},
    {"tools", FIELD_VALUE, AT(tools), 0, 0, "functions that the model may call",
     TOOLS_READ_SCHEMA}};
const size_t ollama_n_chat_fields = sizeof(ollama_chat_fields) / sizeof(ollama_chat_fields[0]);

const struct field ollama_generate_fields[] = {
    {"prompt", FIELD_STR, AT(prompt), 0, 0, "a text", NULL},
    {"system", FIELD_STR, AT(system), 0, 0, "system message", NULL},
    {"raw", FIELD_BOOL, AT(raw), 0, 0, "use the prompt as it is, without the template", NULL},
    COMMON,
    {"suffix", FIELD_STR, AT(suffix), 0, 0, "text after the answer, for models that support infill",
     NULL},
    {"template", FIELD_STR, AT(template), 0, 0, "chat template, Jinja", NULL},
    {"context", FIELD_VALUE, AT(context), 0, 0, "as an earlier answer returned it",
     "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"},
    {"images", FIELD_UNBUILT, 0, 0, 0, NULL, NULL}};
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
    /* Ollama's run options: here the configuration decides */
    {"num_ctx", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_thread", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_batch", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_gpu", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"num_keep", FIELD_NUM, OPT(num_keep), ANY, NULL, NULL},
    {"main_gpu", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"numa", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"use_mmap", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"use_mlock", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"low_vram", FIELD_IGNORED, 0, 0, 0, NULL, NULL},
    {"f16_kv", FIELD_IGNORED, 0, 0, 0, NULL, NULL}};
#undef ANY
#define N_OPTIONS (sizeof(option_fields) / sizeof(option_fields[0]))

/* Unknown options are ignored, like in Ollama; the log names them. */
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

static int read_options(struct request *r, const cJSON *defaults, const cJSON *o,
                        double num_predict, struct fields_error *e)
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
    if (defaults)
        rc = fields_read(option_fields, N_OPTIONS, defaults, &v, true, e);
    if (num_predict != 0)
        v.num_predict = num_predict;
    if (rc == 0 && o)
        rc = fields_read(option_fields, N_OPTIONS, o, &v, true, e);
    if (rc == 0 && o)
        warn_unknown(r, o);
    if (rc == 0)
        rc = prompt_read_stop(r, v.stop, e);
    g->has_seed = !isnan(v.seed);
    g->keep_tokens = v.num_keep < 0 ? 1u << 24 : (uint32_t)within(v.num_keep, 0, 1 << 24);
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

int ollama_check_options(const cJSON *options, struct fields_error *e)
{
    struct options v = {.stop = NULL};
    const cJSON *one;
    int rc = fields_read(option_fields, N_OPTIONS, options, &v, true, e);
    if (rc < 0 || !v.stop || cJSON_IsString(v.stop))
        return rc;
    bool texts = cJSON_IsArray(v.stop);
    cJSON_ArrayForEach(one, v.stop) texts = texts && cJSON_IsString(one);
    return texts ? 0
                 : fields_fail(e, "stop", "invalid_type",
                               "'stop' must be a string or a list of them");
}

/* true, false, or a level such as "high": handled by the template. */
static int read_think(struct request *r, const cJSON *think, struct fields_error *e)
{
    if (!think)
        return 0;
    if (!cJSON_IsBool(think) && !cJSON_IsString(think))
        return fields_fail(e, "think", "invalid_type", "'think' must be true, false or a level");
    bool on = cJSON_IsTrue(think) || (cJSON_IsString(think) && think->valuestring[0]);
    prompt_add_var(r, "enable_thinking", value_bool(on));
    if (cJSON_IsString(think) && on) {
        struct value v = {.kind = VALUE_TEXT};
        v.text.p = request_copy_utf8(r, think->valuestring, strlen(think->valuestring), &v.text.n);
        prompt_add_var(r, "reasoning_effort", v);
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

/* ---- the context of an answer ----
 *
 * Numbers that a client sends back to go on from an answer, without knowing what they mean: the
 * conversation as bytes, three in a number.  A message is its role (0: user, 1: assistant), the
 * length of its text and the text. */

#define CONTEXT_MAGIC 0x53431 /* the first number */
#define MAX_CONTEXT_BYTES ((size_t)4 << 20)

static void put_context(struct json_out *j, const struct buf *bytes)
{
    const uint8_t *p = (const uint8_t *)buf_str(bytes);
    json_out_member_array(j, "context");
    json_out_uint(j, CONTEXT_MAGIC);
    json_out_uint(j, bytes->len);
    for (size_t i = 0; i < bytes->len; i += 3) {
        uint32_t v = p[i];
        v |= i + 1 < bytes->len ? (uint32_t)p[i + 1] << 8 : 0;
        v |= i + 2 < bytes->len ? (uint32_t)p[i + 2] << 16 : 0;
        json_out_uint(j, v);
    }
    json_out_array_end(j);
}

static void add_turn(struct buf *bytes, bool assistant, const char *text, size_t n)
{
    uint32_t len = (uint32_t)n;
    uint8_t head[5] = {assistant, (uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
                       (uint8_t)(len >> 24)};
    buf_put(bytes, head, sizeof(head));
    buf_put(bytes, text, n);
}

/* The bytes of a context; false: it is not one of ours. */
static bool unpack_context(struct buf *bytes, const cJSON *list)
{
    const cJSON *v = list->child, *length = v ? v->next : NULL;
    if (!cJSON_IsNumber(v) || v->valuedouble != CONTEXT_MAGIC || !cJSON_IsNumber(length) ||
        !(length->valuedouble >= 0 && length->valuedouble <= (double)MAX_CONTEXT_BYTES))
        return false;
    size_t n = (size_t)length->valuedouble;
    for (v = length->next; v && bytes->len < n; v = v->next) {
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble < 1 << 24))
            return false;
        uint32_t x = (uint32_t)v->valuedouble;
        const uint8_t three[3] = {(uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16)};
        buf_put(bytes, three, n - bytes->len < 3 ? n - bytes->len : 3);
    }
    return !v && bytes->rc == 0 && bytes->len == n;
}

/* The next message of a context; false: none, or it is damaged (then *at is not at the
 * end). */
static bool next_turn(struct request *r, const struct buf *bytes, size_t *at,
                      struct chat_message *out)
{
    const uint8_t *p = (const uint8_t *)buf_str(bytes) + *at;
    size_t left = bytes->len - *at;
    if (left < 5 || p[0] > 1)
        return false;
    size_t n = p[1] | (size_t)p[2] << 8 | (size_t)p[3] << 16 | (size_t)p[4] << 24;
    if (n > left - 5)
        return false;
    out->role = p[0] ? "assistant" : "user";
    out->content = request_copy_utf8(r, (const char *)p + 5, n, &out->content_bytes);
    r->input_bytes += out->content_bytes;
    *at += 5 + n;
    return true;
}

/* The messages of a context, with room for two more; NULL: it is damaged, or out of memory. */
static struct chat_message *read_context(struct request *r, const cJSON *context, uint32_t *n,
                                         struct fields_error *e)
{
    struct chat_message *list = NULL, one;
    struct buf bytes;
    size_t at = 0;
    buf_init(&bytes, MAX_CONTEXT_BYTES);
    *n = 0;
    bool ok = !context ||
              (cJSON_IsArray(context) && (!context->child || unpack_context(&bytes, context)));
    while (ok && next_turn(r, &bytes, &at, &one))
        (*n)++;
    ok = ok && at == bytes.len;
    if (!ok)
        fields_fail(e, "context", "invalid_value",
                    "'context' must come from an earlier answer of this server");
    if (ok)
        list = arena_zalloc_n(&r->arena, *n + 2u, sizeof(*list));
    at = 0;
    for (uint32_t i = 0; list && i < *n; i++)
        ok = next_turn(r, &bytes, &at, &list[i]);
    buf_fini(&bytes);
    return list;
}

/* ---- prompts ---- */

static struct request_prompt *plain_prompt(struct request *r, const struct body *b)
{
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    if (!p)
        return NULL; /* request_rc tells */
    p->text_bytes = strlen(b->prompt);
    p->text = request_copy(r, b->prompt, p->text_bytes);
    r->input_bytes += p->text_bytes;
    return p;
}

/* Turns a prompt into a conversation of one question, unless it is raw. */
static int use_prompt(struct request *r, const struct body *b, struct fields_error *e)
{
    struct request_generate *g = &r->generate;
    bool fill = b->suffix && b->suffix[0];
    if (b->raw || fill) {
        struct request_prompt *p = plain_prompt(r, b);
        g->prompts = p;
        g->parse_special = !fill;
        if (p && fill) {
            p->suffix_bytes = strlen(b->suffix);
            p->suffix = request_copy(r, b->suffix, p->suffix_bytes);
            r->input_bytes += p->suffix_bytes;
            r->no_cache = true;
        }
        return 0;
    }
    uint32_t n = 0;
    struct chat_message *list = read_context(r, b->context, &n, e);
    if (!list)
        return e->msg[0] ? SHOAL_EINVAL : 0;
    if (b->system && b->system[0]) {
        memmove(list + 1, list, n * sizeof(*list));
        list[0] = message_of(r, "system", b->system);
        n++;
    }
    list[n++] = message_of(r, "user", b->prompt);
    g->chat.messages = list;
    g->chat.n_messages = n;
    return 0;
}

bool ollama_read_duration(const cJSON *v, uint64_t *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    double total = 0;
    if (cJSON_IsNumber(v))
        total = v->valuedouble * 1e9;
    else if (!cJSON_IsString(v) || !v->valuestring[0])
        return false;
    for (const char *p = cJSON_IsString(v) ? v->valuestring : ""; *p;) {
        char *end;
        double n = strtod(p, &end);
        size_t i = 0, k = 0;
        if (end == p || isnan(n))
            return false;
        for (; i < sizeof(units) / sizeof(units[0]); i++)
            if (strncmp(end, units[i].name, k = strlen(units[i].name)) == 0 &&
                (units[i].name[0] != 'm' || units[i].name[1] || end[1] != 's'))
                break;
        bool seconds = *end == '\0' && p == v->valuestring; /* a number as text */
        if (i == sizeof(units) / sizeof(units[0]) && !seconds)
            return false;
        total += n * (seconds ? 1e9 : units[i].ns);
        p = seconds ? end : end + k;
    }
    *ns = total < 0 || total >= 9e18 ? UINT64_MAX : (uint64_t)total;
    return true;
}

static int read_shape(struct ollama_shape *shape, const struct body *b, bool chat,
                      struct fields_error *e)
{
    bool empty = chat ? cJSON_IsArray(b->messages) && !b->messages->child : !b->prompt[0];
    *shape = (struct ollama_shape){.chat = chat,
                                   .stream = b->stream,
                                   .empty = empty && !(b->suffix && b->suffix[0]),
                                   .raw = b->raw,
                                   .logprobs = b->logprobs};
    shape->has_keep = b->keep_alive != NULL;
    if (b->keep_alive && !ollama_read_duration(b->keep_alive, &shape->keep_ns))
        return fields_fail(e, "keep_alive", "invalid_value",
                           "'keep_alive' must be a duration such as \"5m\", or seconds");
    return 0;
}

/* No question: sets what the flow needs anyway. */
static void use_nothing(struct request *r)
{
    struct request_prompt *p = arena_zalloc(&r->arena, sizeof(*p));
    if (p)
        p->text = "";
    r->generate.prompts = p;
    r->generate.prompt_only = true;
}

/* One of Go's, as Ollama has them, becomes Jinja. */
static int use_template(struct request *r, const char *text, struct fields_error *e)
{
    struct err why = {0};
    struct buf jinja;
    int rc = 0;
    buf_init(&jinja, MAX_TEMPLATE_BYTES);
    if (!go_template_is(text))
        r->generate.chat.template = request_copy_utf8(r, text, strlen(text), NULL);
    else if ((rc = go_template_translate(&jinja, text, &why)) == 0)
        r->generate.chat.template = request_copy_utf8(r, buf_str(&jinja), jinja.len, NULL);
    buf_fini(&jinja);
    return rc < 0 ? fields_fail(e, "template", "unsupported_parameter", "'template': %s", why.msg)
                  : 0;
}

int ollama_read(struct request *r, struct ollama_shape *shape, const cJSON *body,
                const cJSON *defaults, bool chat, bool lenient, struct fields_error *e)
{
    struct body b = {.stream = true, .truncate = true, .shift = true, .prompt = ""};
    struct request_generate *g = &r->generate;
    int rc =
        chat ? fields_read(ollama_chat_fields, ollama_n_chat_fields, body, &b, lenient, e)
             : fields_read(ollama_generate_fields, ollama_n_generate_fields, body, &b, lenient, e);
    r->kind = REQUEST_GENERATE;
    g->n = g->n_prompts = 1;
    if (rc == 0)
        rc = read_options(r, defaults, b.options, b.num_predict, e);
    if (rc == 0)
        rc = read_shape(shape, &b, chat, e);
    r->streams = b.stream;
    r->truncates = b.truncate;
    g->no_shift = !b.shift;
    if (rc < 0)
        return rc;
    g->sampling.logprobs = b.logprobs;
    g->sampling.n_logprobs = b.logprobs ? (uint32_t)b.top_logprobs : 0;
    if (shape->empty)
        use_nothing(r);
    else
        rc = chat ? prompt_read_messages(r, b.messages, lenient, e) : use_prompt(r, &b, e);
    if (rc == 0 && g->chat.n_messages > 0)
        rc = read_think(r, b.think, e);
    if (rc == 0)
        rc = constraint_read_format(r, b.format, e);
    if (rc == 0 && chat && !shape->empty)
        rc = tools_read(r, b.tools, e);
    if (rc < 0)
        return rc;
    if (chat && !shape->empty)
        prompt_prefill(r);
    if (b.template && b.template[0] && g->chat.n_messages > 0)
        rc = use_template(r, b.template, e);
    if (rc < 0)
        return rc;
    if (b.model)
        r->model = request_copy(r, b.model, strlen(b.model));
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
    json_out_member_str(j, "created_at", text);
}

/* Turns the events of a generation into an answer to the call. */
struct ollama_answer {
    struct answer_sink answer; /* first */
    struct ollama_shape shape;
    struct answer_cursor shown; /* calls up to here were written */
    struct thinking thinking;   /* of a stream, */
    struct buf pieces[2];       /* and what a token adds to the answer and to the thought */
};

static struct ollama_answer *ollama_of(struct answer_sink *a)
{
    return (struct ollama_answer *)(void *)a; /* its first member */
}

/* The calls that were not shown yet. */
static void put_calls(struct ollama_answer *a, struct json_out *j)
{
    const struct answer_choice *ch = &a->answer.choices[0];
    struct answer_call call;
    if (a->shown.calls >= ch->calls.len)
        return;
    json_out_member_array(j, "tool_calls");
    while (answer_next_call(ch, &a->shown, &call)) {
        json_out_object(j);
        json_out_member_str(j, "id", call.id);
        json_out_member_object(j, "function");
        json_out_member_uint(j, "index", call.index);
        json_out_member_str(j, "name", call.name);
        json_out_member_raw(j, "arguments", call.arguments, call.arguments_bytes);
        json_out_object_end(j);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

/* thought: NULL: none. */
static void put_text(struct ollama_answer *a, struct json_out *j, const char *p, size_t n,
                     const char *thought, size_t n_thought)
{
    json_out_object(j);
    json_out_member_str(j, "model", a->answer.model);
    put_time(j);
    json_out_key(j, a->shape.chat ? "message" : "response");
    if (a->shape.chat) {
        json_out_object(j);
        json_out_member_str(j, "role", "assistant");
        json_out_key(j, "content");
    }
    json_out_strn(j, p, n);
    if (thought)
        json_out_member_strn(j, "thinking", thought, n_thought);
    put_calls(a, j);
    if (a->shape.chat)
        json_out_object_end(j);
}

/* For the next /api/generate; its system message is not part of it. */
static void put_turns(struct json_out *j, const struct chat *asked, const struct buf *text)
{
    struct buf bytes;
    buf_init(&bytes, MAX_CONTEXT_BYTES);
    for (uint32_t i = 0; i < asked->n_messages; i++) {
        const struct chat_message *m = &asked->messages[i];
        if (strcmp(m->role, "system") != 0)
            add_turn(&bytes, strcmp(m->role, "assistant") == 0, m->content, m->content_bytes);
    }
    const size_t begin = thinking_split(buf_str(text), text->len).answer_at;
    add_turn(&bytes, true, buf_str(text) + begin, text->len - begin); /* thoughts are left out */
    if (bytes.rc == 0) /* one that is too long is left out */
        put_context(j, &bytes);
    buf_fini(&bytes);
}

static void put_end(struct ollama_answer *a, struct json_out *j, const struct sink_done *d)
{
    const struct chat *asked = &a->answer.request->generate.chat;
    const struct {
        const char *name;
        uint64_t v;
    } rows[] = {{"total_duration", d->total_ns},
                {"load_duration", 0},
                {"prompt_eval_count", d->prompt_tokens},
                {"prompt_eval_duration", d->first_token_ns},
                {"eval_count", d->generated_tokens},
                {"eval_duration", d->total_ns - d->first_token_ns}};
    json_out_member_bool(j, "done", true);
    json_out_member_str(j, "done_reason",
                        a->shape.empty
                            ? a->shape.has_keep && a->shape.keep_ns == 0 ? "unload" : "load"
                        : d->finish == SHOAL_FINISH_LENGTH ? "length"
                                                           : "stop");
    if (!a->shape.chat && !a->shape.raw && !a->shape.empty && asked->n_messages > 0)
        put_turns(j, asked, &a->answer.choices[0].text);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        json_out_member_uint(j, rows[i].name, rows[i].v);
    json_out_object_end(j);
}

/* The end of a line that is not the last. */
static void end_line(struct answer_sink *sink, struct json_out *j)
{
    json_out_member_bool(j, "done", false);
    json_out_object_end(j);
    call_line_end(sink->call);
}

/* A line with what `pieces` hold. */
static struct json_out begin_line(struct ollama_answer *a)
{
    const struct buf *text = &a->pieces[0], *thought = &a->pieces[1];
    struct json_out j = json_out_make(&a->answer.call->out);
    put_text(a, &j, buf_str(text), text->len, thought->len > 0 ? buf_str(thought) : NULL,
             thought->len);
    return j;
}

static void clear_pieces(struct ollama_answer *a)
{
    buf_clear(&a->pieces[0]);
    buf_clear(&a->pieces[1]);
}

/* What was held back, since it might have begun or ended a thought, follows. */
static void settle_thought(struct ollama_answer *a)
{
    clear_pieces(a);
    if (!a->shape.raw)
        thinking_end(&a->thinking, thinking_gather, a->pieces);
    if (a->pieces[0].len + a->pieces[1].len == 0)
        return;
    struct json_out j = begin_line(a);
    end_line(&a->answer, &j);
    clear_pieces(a);
}

static void stream_text(struct answer_sink *sink, const struct sink_token *t)
{
    struct ollama_answer *a = ollama_of(sink);
    clear_pieces(a);
    if (a->shape.raw) /* a text, not an answer */
        buf_put(&a->pieces[0], t->text, t->text_bytes);
    else
        thinking_push(&a->thinking, t->text, t->text_bytes, thinking_gather, a->pieces);
    if (t->text_bytes > 0 && !t->logprobs && a->pieces[0].len + a->pieces[1].len == 0)
        return; /* it is held back */
    struct json_out j = begin_line(a);
    if (t->logprobs) {
        json_out_member_array(&j, "logprobs");
        logprob_json(&j, t);
        json_out_array_end(&j);
    }
    end_line(sink, &j);
}

/* A call is complete when its end event arrives. */
static void stream_call(struct answer_sink *sink, const struct sink_call *e)
{
    struct json_out j = json_out_make(&sink->call->out);
    if (!e->ends)
        return;
    settle_thought(ollama_of(sink));
    put_text(ollama_of(sink), &j, "", 0, NULL, 0);
    end_line(sink, &j);
}

static void stream_end(struct answer_sink *sink, const struct sink_done *d)
{
    settle_thought(ollama_of(sink));
    struct json_out j = json_out_make(&sink->call->out);
    put_text(ollama_of(sink), &j, "", 0, NULL, 0);
    put_end(ollama_of(sink), &j, d);
    call_line_end(sink->call);
}

static void stream_failure(struct answer_sink *sink, const struct failure *f)
{
    call_put_failure(sink->call, f);
    call_line_end(sink->call);
}

static void put_whole(struct answer_sink *sink, const struct sink_done *d)
{
    struct ollama_answer *a = ollama_of(sink);
    struct answer_choice *ch = &sink->choices[0];
    struct json_out j = json_out_make(&sink->call->out);
    const struct thinking_parts parts = a->shape.raw
                                            ? (struct thinking_parts){.thought = NULL}
                                            : thinking_split(buf_str(&ch->text), ch->text.len);
    put_text(a, &j, buf_str(&ch->text) + parts.answer_at, ch->text.len - parts.answer_at,
             parts.thought, parts.thought_bytes);
    if (a->shape.logprobs) {
        json_out_key(&j, "logprobs");
        logprob_json_list(&j, ch);
    }
    put_end(a, &j, d);
    buf_putc(j.b, '\n');
}

static void closed(struct answer_sink *sink)
{
    buf_fini(&ollama_of(sink)->pieces[0]);
    buf_fini(&ollama_of(sink)->pieces[1]);
}

static const struct answer_dialect dialect = {.frame = &answer_lines,
                                              .closed = closed,
                                              .text = stream_text,
                                              .call = stream_call,
                                              .end = stream_end,
                                              .failure = stream_failure,
                                              .whole = put_whole};

/* ---- handlers ---- */

/* The options of a model that was made here; NULL: none.  cJSON_Delete. */
static cJSON *default_options(struct gw *gw, const cJSON *body)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "model"));
    char known[256] = "";
    size_t n = name ? flow_name_bytes(&gw->flow, name) : 0;
    if (!gw->profiles || n == 0 || n >= sizeof(known))
        return NULL;
    memcpy(known, name, n);
    const struct model_profile *p = model_profiles_get(gw->profiles, known);
    cJSON *options = p && p->parameters ? cJSON_Parse(p->parameters) : NULL;
    model_profiles_unref(gw->profiles, p);
    return options;
}

/* Sets how long the model stays loaded. Clients without admin rights can only extend it. False: the
 * call is answered. */
static bool keep_alive(struct call *c, const struct request *r, const struct ollama_shape *shape)
{
    struct registry *all = c->gl->gw->registry;
    uint64_t least = (uint64_t)c->gl->config->idle_unload_ms * 1000000u;
    bool may = guard_may_change(c), unload = shape->empty && shape->keep_ns == 0;
    struct err e = {0};
    if (!shape->has_keep || !r->model)
        return true;
    if (unload && !may) {
        call_fail(c, 403, NULL, "keep_alive", "admin_key_needed",
                  "only administrators of this server can unload models");
        return false;
    }
    if (unload ? registry_unload(all, r->model, &e) < 0
        : may || (least > 0 && shape->keep_ns > least)
            ? registry_keep(all, r->model, shape->keep_ns ? shape->keep_ns : 1, &e) < 0
            : false)
        log_debug("ollama", "keep_alive: %s", e.msg); /* a model of another node, or none */
    return true;
}

/* Nothing to compute: the model was unloaded. */
static void answer_unloaded(struct call *c, struct request *r, const struct ollama_shape *shape)
{
    struct ollama_answer a = {.answer = {.call = c, .request = r, .model = r->model},
                              .shape = *shape};
    const struct sink_done d = {.finish = SHOAL_FINISH_STOP};
    a.shape.logprobs = false;
    a.answer.choices = &a.answer.only;
    put_whole(&a.answer, &d);
    call_json(c, 200);
}

static void run(struct call *c, struct request *r, const struct ollama_shape *shape)
{
    struct ollama_answer *a = answer_create(c, r, sizeof(*a), &dialect, shape->stream);
    if (!a)
        return;
    buf_init(&a->pieces[0], 1 << 20);
    buf_init(&a->pieces[1], 1 << 20);
    a->shape = *shape;
    if (!shape->stream)
        a->answer.keeps |= shape->logprobs ? ANSWER_KEEPS_TOKENS : 0;
    else
        a->answer.keeps = shape->chat ? ANSWER_KEEPS_CALLS : ANSWER_KEEPS_TEXT; /* for a context */
    r->whole_calls = true; /* also in streams */
    stages_run(&c->gl->flow, r, c->sink);
}

static void start(struct call *c, bool chat)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct ollama_shape shape;
    struct request *r = call_request(c);
    if (!r)
        return;
    cJSON *defaults = default_options(c->gl->gw, c->json);
    int rc = ollama_read(r, &shape, c->json, defaults, chat, c->lenient, &e);
    cJSON_Delete(defaults);
    if (rc < 0) {
        call_fail_fields(c, &e);
    } else {
        flow_resolve_name(&c->gl->flow, r);
        model_profiles_apply(c->gl->gw->profiles, r);
        if (keep_alive(c, r, &shape)) {
            if (!(shape.empty && shape.has_keep && shape.keep_ns == 0)) {
                run(c, r, &shape);
                return;
            }
            answer_unloaded(c, r, &shape);
        }
    }
    flow_give_request(&c->gl->flow, r);
}

void ollama_chat(struct call *c)
{
    start(c, true);
}

void ollama_generate(struct call *c)
{
    start(c, false);
}
