/* remote.c - see remote.h. */
#include "cmd/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/clock.h"
#include "cmd/cli/term.h"
#include "net/http_ask.h"

#define MAX_ANSWER_BYTES ((size_t)256 << 20)
#define SILENT_MS 300000u /* a model may be loaded first */

static const char *env(const char *name)
{
    const char *s = getenv(name);
    return s && s[0] ? s : NULL;
}

const char *remote_server(const struct opts *o)
{
    const char *server = opts_text(o, "server");
    return server ? server : env("SHOAL_HOST");
}

int remote_init(struct remote_model *r, const struct opts *o, int interrupt_fd)
{
    static const char *const local[] = {"ctx",   "threads",  "kernels",  "kv",
                                        "chunk", "no-cache", "key-file", "lora"};
    static const char *const unsent[] = {"logit-bias", "repeat-last-n"};
    const char *key = opts_text(o, "key");
    *r = (struct remote_model){.o = o,
                               .server = remote_server(o),
                               .key = key ? key : env("SHOAL_API_KEY"),
                               .interrupt_fd = interrupt_fd};
    buf_init(&r->body, MAX_ANSWER_BYTES);
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        if (opts_given(o, local[i]))
            return opts_usage(o->page,
                              "--%s is a setting of the model where it runs: leave it out, and "
                              "configure the server",
                              local[i]);
    for (size_t i = 0; i < sizeof(unsent) / sizeof(unsent[0]); i++)
        if (opts_given(o, unsent[i]))
            return opts_usage(o->page,
                              "--%s works with a model of this process: leave it out, or "
                              "leave out the server",
                              unsent[i]);
    return CMD_OK;
}

void remote_fini(struct remote_model *r)
{
    buf_fini(&r->body);
}

static void put_real(struct json_out *j, const struct opts *o, const char *option, const char *key)
{
    if (!opts_given(o, option))
        return;
    json_out_member_num(j, key, opts_real(o, option));
}

static void put_uint(struct json_out *j, const struct opts *o, const char *option, const char *key)
{
    if (opts_given(o, option))
        json_out_member_uint(j, key, opts_uint(o, option));
}

void remote_put_options(struct json_out *j, const struct opts *o)
{
    const char *const *stops;
    size_t n = opts_list(o, "stop", &stops);
    if (opts_given(o, "model"))
        json_out_member_str(j, "model", opts_text(o, "model"));
    if (opts_uint(o, "max-tokens") > 0)
        json_out_member_uint(j, "max_tokens", opts_uint(o, "max-tokens"));
    put_real(j, o, "temp", "temperature");
    put_uint(j, o, "top-k", "top_k");
    put_real(j, o, "top-p", "top_p");
    put_real(j, o, "min-p", "min_p");
    put_real(j, o, "repeat-penalty", "repeat_penalty");
    put_real(j, o, "presence-penalty", "presence_penalty");
    put_real(j, o, "frequency-penalty", "frequency_penalty");
    put_uint(j, o, "seed", "seed");
    if (n > 0) {
        json_out_member_array(j, "stop");
        for (size_t i = 0; i < n; i++)
            json_out_str(j, stops[i]);
        json_out_array_end(j);
    }
    json_out_member_bool(j, "stream", true);
    json_out_member_object(j, "stream_options");
    json_out_member_bool(j, "include_usage", true);
    json_out_object_end(j);
}

/* ---- the stream ---- */

static const cJSON *member(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static uint32_t count(const cJSON *o, const char *name)
{
    const cJSON *v = member(o, name);
    return cJSON_IsNumber(v) && v->valuedouble > 0 ? (uint32_t)v->valuedouble : 0;
}

static void copy(char *out, size_t cap, const cJSON *v)
{
    if (cJSON_IsString(v))
        snprintf(out, cap, "%s", v->valuestring);
}

/* {"choices": [{"delta": {"content": "..."}}]} of a chat, or [{"text": "..."}]. */
static void take_event(struct remote_model *r, const cJSON *event)
{
    const cJSON *choice = cJSON_GetArrayItem(member(event, "choices"), 0);
    const cJSON *text = member(member(choice, "delta"), "content"), *usage = member(event, "usage");
    const cJSON *error = member(event, "error");
    if (!text)
        text = member(choice, "text");
    if (error)
        (void)err_set(&r->error, SHOAL_EIO, "%.140s",
                      cJSON_IsString(member(error, "message"))
                          ? member(error, "message")->valuestring
                          : "the server failed");
    copy(r->finish, sizeof(r->finish), member(choice, "finish_reason"));
    copy(r->model, sizeof(r->model), member(event, "model"));
    if (cJSON_IsObject(usage)) {
        r->prompt_tokens = count(usage, "prompt_tokens");
        r->generated_tokens = count(usage, "completion_tokens");
        r->cached_tokens = count(member(usage, "prompt_tokens_details"), "cached_tokens");
    }
    if (!cJSON_IsString(text) || !text->valuestring[0])
        return;
    if (r->first_token_ns == 0)
        r->first_token_ns = clock_ns() - r->start_ns;
    r->text(r->ctx, text->valuestring, strlen(text->valuestring));
}

/* Reads the whole lines that have arrived: "data: JSON". */
static void on_piece(void *ctx, int status, const struct buf *body)
{
    struct remote_model *r = ctx;
    const char *end;
    while (status == 200 && r->at < body->len &&
           (end = memchr(body->data + r->at, '\n', body->len - r->at))) {
        const char *line = body->data + r->at;
        size_t n = (size_t)(end - line);
        r->at += n + 1;
        if (n < 6 || strncmp(line, "data: ", 6) != 0)
            continue;
        cJSON *event = cJSON_ParseWithLength(line + 6, n - 6); /* NULL: [DONE] */
        take_event(r, event);
        cJSON_Delete(event);
    }
}

static int refused(const struct remote_model *r, int status, struct err *e)
{
    cJSON *answer = cJSON_ParseWithLength(r->body.data ? r->body.data : "", r->body.len);
    const cJSON *message = member(member(answer, "error"), "message");
    const char *hint = status == 401 || status == 403
                           ? ": use a key of this server, --key or SHOAL_API_KEY"
                       : status == 404 ? ": 'shoal ps --server' lists its models"
                                       : "";
    int rc = cJSON_IsString(message)
                 ? err_set(e, SHOAL_EINVAL, "%.100s%s", message->valuestring, hint)
                 : err_set(e, SHOAL_EINVAL, "%.80s refused the request: status %d%s", r->server,
                           status, hint);
    cJSON_Delete(answer);
    return rc;
}

int remote_run(struct remote_model *r, const char *path, const struct buf *body, struct err *e)
{
    int status = 0;
    const struct http_ask a = {.server = r->server,
                               .method = "POST",
                               .path = path,
                               .key = r->key,
                               .content_type = "application/json",
                               .content = buf_str(body),
                               .content_bytes = body->len,
                               .timeout_ms = SILENT_MS,
                               .piece = on_piece,
                               .ctx = r,
                               .stop_fd = &r->interrupt_fd};
    buf_clear(&r->body);
    r->at = 0;
    r->cancelled = false;
    r->finish[0] = r->model[0] = '\0';
    r->prompt_tokens = r->cached_tokens = r->generated_tokens = 0;
    r->first_token_ns = 0;
    r->error = (struct err){.code = 0};
    r->start_ns = clock_ns();
    int rc = http_ask(&a, &status, &r->body, e);
    r->total_ns = clock_ns() - r->start_ns;
    if (rc == SHOAL_ECANCELLED) { /* the server notices that we are gone, and ends its work */
        (void)term_interrupted(r->interrupt_fd);
        r->cancelled = true;
        snprintf(r->finish, sizeof(r->finish), "cancelled");
        return 0;
    }
    if (rc == SHOAL_ENOTFOUND)
        return err_set(e, rc,
                       "cannot reach %.60s: start it with 'shoal serve', or name another with "
                       "--server or SHOAL_HOST",
                       r->server);
    if (rc == 0 && status != 200)
        return refused(r, status, e);
    if (rc == 0 && r->error.code < 0) {
        *e = r->error;
        return r->error.code;
    }
    return rc;
}
