/* mqtt_request.c - see mqtt_request.h. */
#include "gateway/mqtt/mqtt_request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "shoal/shoal.h"
#include "wire/json_scan.h"

#define MAX_VALUE_BYTES 1024u /* of a user property */

/* User properties that map to headers. Those that begin with "x-" keep their names. */
static const struct {
    const char *property, *header;
} headers[] = {
    {"key", "x-api-key"},
    {"deadline-ms", "x-latency-budget-ms"},
    {"id", "x-request-id"},
    {"session", "x-session-id"},
    {"language", "content-language"},
    {"traceparent", "traceparent"},
    {"idempotency-key", "idempotency-key"},
    {"version", "x-shoal-version"},
};

static const struct {
    unsigned kind;
    const char *path;
} paths[] = {
    {SHOAL_KIND_GENERATE, "/v1/chat/completions"},
    {SHOAL_KIND_CLASSIFY, "/v1/classify"},
    {SHOAL_KIND_TAG, "/v1/entities"},
    {SHOAL_KIND_EMBED, "/v1/embeddings"},
    {SHOAL_KIND_RERANK, "/v1/rerank"},
    {SHOAL_KIND_SUMMARIZE, "/v1/summarize"},
    {SHOAL_KIND_SCORE, "/v1/score"},
};

static void add_header(struct mqtt_request *r, struct arena *a, const char *name, const char *value)
{
    if (r->n_headers == MQTT_REQUEST_MAX_HEADERS)
        return;
    char *lower = arena_copy(a, name, strlen(name) + 1);
    char *copy = arena_copy(a, value, strlen(value) + 1);
    if (!lower || !copy)
        return; /* the arena's rc tells */
    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    r->headers[r->n_headers++] = (struct http_header){lower, copy};
}

static const char *read_headers(struct mqtt_request *r, struct arena *a,
                                const struct mqtt_message *m)
{
    bool deadline = false;
    add_header(r, a, "host", "mqtt");
    for (size_t i = 0; i < m->n_properties; i++) {
        const struct mqtt_property *p = &m->properties[i];
        if (strlen(p->value) > MAX_VALUE_BYTES || strlen(p->name) > MAX_VALUE_BYTES)
            return "a user property is longer than 1024 bytes";
        for (size_t k = 0; k < sizeof(headers) / sizeof(headers[0]); k++)
            if (strcmp(p->name, headers[k].property) == 0) {
                add_header(r, a, headers[k].header, p->value);
                deadline |= strcmp(p->name, "deadline-ms") == 0;
            }
        if (strncmp(p->name, "x-", 2) == 0)
            add_header(r, a, p->name, p->value);
    }
    if (!deadline && m->expiry_s > 0) /* the answer is useless after the question expires */
        add_header(
            r, a, "x-latency-budget-ms",
            arena_printf(a, "%llu", 1000ull * (m->expiry_s < 86400 ? m->expiry_s : 86400ull)));
    return NULL;
}

/* The path that matches the body and the model's kinds. */
static const char *guess_path(const struct mqtt_request *r, unsigned kinds)
{
    const cJSON *b = r->body;
    if (strcmp(r->name, "process") == 0)
        return "/v1/process";
    if (cJSON_HasObjectItem(b, "messages"))
        return "/v1/chat/completions";
    if (cJSON_HasObjectItem(b, "prompt") && (kinds == 0 || (kinds & SHOAL_KIND_GENERATE)))
        return "/v1/completions";
    if (cJSON_HasObjectItem(b, "documents"))
        return "/v1/rerank";
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (kinds & paths[i].kind)
            return paths[i].path;
    return paths[0].path;
}

/* The input as the body that a path expects. */
static cJSON *wrap(cJSON *input, const char *path)
{
    cJSON *body = cJSON_CreateObject();
    if (strcmp(path, "/v1/chat/completions") == 0 || strcmp(path, "/api/chat") == 0) {
        cJSON *list = cJSON_AddArrayToObject(body, "messages"), *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "role", "user");
        cJSON_AddItemToObject(one, "content", input);
        cJSON_AddItemToArray(list, one);
        if (list)
            return body;
        cJSON_Delete(one);
    } else {
        bool prompt = strcmp(path, "/v1/completions") == 0 || strcmp(path, "/api/generate") == 0;
        const char *key = strcmp(path, "/v1/process") == 0 ? "text" : prompt ? "prompt" : "input";
        if (cJSON_AddItemToObject(body, key, input))
            return body;
        cJSON_Delete(input);
    }
    cJSON_Delete(body);
    return NULL;
}

static void set_default(cJSON *body, const char *key, cJSON *value)
{
    if (cJSON_HasObjectItem(body, key) || !cJSON_AddItemToObject(body, key, value))
        cJSON_Delete(value);
}

/* Fills missing fields: the model from the topic, priority and stream from the properties. */
static const char *fill(struct mqtt_request *r, const struct mqtt_message *m)
{
    const char *priority = mqtt_message_get(m, "priority"), *stream = mqtt_message_get(m, "stream"),
               *model = mqtt_message_get(m, "model");
    bool process = strcmp(r->path, "/v1/process") == 0;
    if (!process && (model || r->name[0]))
        set_default(r->body, "model", cJSON_CreateString(model ? model : r->name));
    if (priority) {
        char *end;
        double v = strtod(priority, &end);
        if (end == priority || *end)
            return "the user property 'priority' must be a number from -100 to 0";
        set_default(r->body, "priority", cJSON_CreateNumber(v));
    }
    if (stream && strcmp(stream, "true") != 0 && strcmp(stream, "false") != 0)
        return "the user property 'stream' must be true or false";
    if (stream)
        set_default(r->body, "stream", cJSON_CreateBool(stream[0] == 't'));
    return NULL;
}

static const char *read_payload(struct mqtt_request *r, cJSON **input, const struct mqtt_message *m,
                                size_t max_values)
{
    const char *p = m->payload;
    struct json_scan scan;
    size_t skip = 0;
    if (utf8_valid_prefix(p, m->n) != m->n || memchr(p, '\0', m->n))
        return "the payload must be text: JSON, or the input itself";
    while (skip < m->n && strchr(" \t\r\n", p[skip]))
        skip++;
    bool json = skip < m->n && (p[skip] == '{' || p[skip] == '[') &&
                !(m->content_type && strncmp(m->content_type, "text/", 5) == 0);
    if (skip == m->n)
        return "the payload is empty";
    if (!json) {
        char *text = cJSON_malloc(m->n + 1);
        if (!text)
            return "out of memory";
        memcpy(text, p, m->n);
        text[m->n] = '\0';
        *input = cJSON_CreateString(text);
        cJSON_free(text);
        return *input ? NULL : "out of memory";
    }
    int rc = json_scan(&scan, p, m->n, max_values, NULL);
    if (rc == SHOAL_ELIMIT)
        return "the payload holds more values than 'limits.values' allows";
    if (rc < 0)
        return "the payload contains NUL (\\u0000), which is not allowed in a request";
    r->n_values = scan.n_values;
    const char *end = NULL;
    cJSON *v = cJSON_ParseWithLengthOpts(p, m->n, &end, 0);
    while (v && end < p + m->n && strchr(" \t\r\n", *end))
        end++;
    if (!v || end != p + m->n) {
        cJSON_Delete(v);
        return "the payload looks like JSON but is not valid: correct it, or send it as content "
               "type text/plain";
    }
    *(cJSON_IsObject(v) ? &r->body : input) = v;
    return NULL;
}

const char *mqtt_request_read(struct mqtt_request *out, struct arena *a,
                              const struct mqtt_message *m, const char *name, unsigned kinds,
                              size_t max_values)
{
    const char *path = mqtt_message_get(m, "path");
    cJSON *input = NULL;
    *out = (struct mqtt_request){.name = arena_printf(a, "%s", name), .path = ""};
    const char *wrong = read_headers(out, a, m);
    if (!wrong && path && path[0] != '/')
        wrong = "the user property 'path' must be a path of this server, such as /v1/classify";
    if (!wrong)
        wrong = read_payload(out, &input, m, max_values);
    if (!wrong)
        out->path = path ? arena_printf(a, "%s", path) : guess_path(out, kinds);
    if (!wrong && input) {
        out->body = wrap(input, out->path);
        input = NULL;
        wrong = out->body ? NULL : "out of memory";
    }
    if (!wrong)
        wrong = fill(out, m);
    if (!wrong && a->rc < 0)
        wrong = "out of memory";
    if (wrong) {
        cJSON_Delete(out->body);
        out->body = NULL;
    }
    cJSON_Delete(input);
    return wrong;
}
