/* server_ask.c - see server_ask.h. */
#include "cmd/server_ask.h"

#include <stdlib.h>

#include "net/http_ask.h"

#define ANSWER_MS 30000u

static const char *text_or_env(const struct opts *o, const char *option, const char *variable)
{
    const char *s = opts_text(o, option);
    if (!s)
        s = getenv(variable);
    return s && s[0] ? s : NULL;
}

const char *server_ask_address(const struct opts *o)
{
    const char *server = text_or_env(o, "server", "SHOAL_SERVER");
    if (!server)
        server = text_or_env(o, "server", "SHOAL_HOST");
    return server ? server : "http://127.0.0.1:8080";
}

void server_ask_init(struct server_ask *r, const struct opts *o)
{
    *r = (struct server_ask){
        .o = o, .server = server_ask_address(o), .key = text_or_env(o, "key", "SHOAL_API_KEY")};
    buf_init(&r->body, SERVER_ASK_MAX_BYTES);
}

void server_ask_fini(struct server_ask *r)
{
    cJSON_Delete(r->json);
    buf_fini(&r->body);
}

const char *server_ask_text(const cJSON *object, const char *name)
{
    char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    for (char *p = s; p && *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    return s ? s : "";
}

double server_ask_number(const cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(v) ? v->valuedouble : 0.0;
}

static int refused(const struct server_ask *r, int status)
{
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(r->json, "error");
    const char *why = server_ask_text(error, "message");
    const char *hint = status == 401 || status == 403
                           ? "; use a key with administration rights: --key or SHOAL_API_KEY"
                           : "";
    if (why[0])
        return cmd_fail(r->o->page, "%s%s", why, hint);
    return cmd_fail(r->o->page, "%s refused the request: status %d%s", r->server, status, hint);
}

int server_ask(struct server_ask *r, const char *path, const char *list, const char *json, size_t n)
{
    struct err e = {0};
    int status = 0;
    struct http_ask a = {.server = r->server,
                         .method = n > 0 ? "POST" : "GET",
                         .path = path,
                         .key = r->key,
                         .header = r->header,
                         .content_type = "application/json",
                         .content = json,
                         .content_bytes = n,
                         .timeout_ms = ANSWER_MS};
    buf_clear(&r->body);
    cJSON_Delete(r->json);
    r->json = NULL;
    int rc = http_ask(&a, &status, &r->body, &e);
    if (rc == SHOAL_ENOTFOUND)
        return cmd_fail(r->o->page,
                        "%s\nIs it running? Start it with 'shoal serve', or name its address "
                        "with --server.",
                        e.msg);
    if (rc < 0)
        return cmd_fail(r->o->page, "%s", e.msg);
    r->json = cJSON_ParseWithLength(buf_str(&r->body), r->body.len);
    if (status != 200)
        return refused(r, status);
    if (!cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(r->json, list)))
        return cmd_fail(r->o->page, "%s does not respond like 'shoal serve'", r->server);
    return CMD_OK;
}
