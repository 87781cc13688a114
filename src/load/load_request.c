/* load_request.c - see load_request.h. */
#include "load/load_request.h"

#include <stdio.h>
#include <string.h>

#include "wire/json_out.h"

#define MAX_BODY_BYTES ((size_t)64 << 20)

static bool is_plain(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f)
            return false;
    return true;
}

int load_target_parse(struct load_target *t, const char *url, struct err *e)
{
    const char *rest = url;
    if (strncmp(url, "unix:", 5) == 0) {
        snprintf(t->host, sizeof(t->host), "localhost");
        if ((size_t)snprintf(t->address, sizeof(t->address), "%s", url) < sizeof(t->address))
            return 0;
        return err_set(e, SHOAL_EINVAL, "the path of the socket is too long");
    }
    t->secure = strncmp(url, "https://", 8) == 0;
    if (t->secure || strncmp(url, "http://", 7) == 0)
        rest = strstr(url, "//") + 2;
    else if (strstr(url, "://"))
        return err_set(e, SHOAL_EINVAL, "%.200s: write http://HOST:PORT, https://HOST or unix:PATH",
                       url);
    const size_t n = strcspn(rest, "/");
    size_t n_base = strlen(rest + n);
    if (n == 0 || !is_plain(url) || n >= sizeof(t->host) - 8 || n_base >= sizeof(t->base))
        return err_set(e, SHOAL_EINVAL, "%.200s: write http://HOST:PORT, https://HOST or unix:PATH",
                       url);
    snprintf(t->host, sizeof(t->host), "%.*s", (int)n, rest);
    snprintf(t->base, sizeof(t->base), "%s", rest + n);
    while (n_base > 0 && t->base[n_base - 1] == '/')
        t->base[--n_base] = '\0';
    if (n_base >= 3 && strcmp(t->base + n_base - 3, "/v1") == 0) /* as OPENAI_BASE_URL has it */
        t->base[n_base - 3] = '\0';
    const char *colon = strrchr(t->host, ':'), *bracket = strrchr(t->host, ']');
    const bool has_port = colon && !(bracket && bracket > colon);
    snprintf(t->address, sizeof(t->address), "%.*s%s", (int)n, t->host,
             has_port    ? ""
             : t->secure ? ":443"
                         : ":80");
    return 0;
}

void load_request_turn(struct buf *turns, const char *role, const char *text)
{
    struct json_out j = json_out_make(turns);
    json_out_object(&j);
    json_out_member_str(&j, "role", role);
    json_out_member_str(&j, "content", text);
    json_out_object_end(&j);
    buf_putc(turns, ',');
}

static void put_generate(struct json_out *j, const struct load_target *t, enum load_kind kind,
                         const char *turns, const char *prompt, uint32_t max_tokens)
{
    if (kind == LOAD_CHAT) {
        json_out_member_array(j, "messages");
        buf_puts(j->b, turns);
        json_out_object(j);
        json_out_member_str(j, "role", "user");
        json_out_member_str(j, "content", prompt);
        json_out_object_end(j);
        json_out_array_end(j);
    } else {
        json_out_member_str(j, "prompt", prompt);
    }
    json_out_member_bool(j, "stream", true);
    if (t->api == LOAD_OLLAMA) {
        json_out_member_object(j, "options");
        json_out_member_uint(j, "num_predict", max_tokens);
        json_out_object_end(j);
    } else {
        json_out_member_uint(j, "max_tokens", max_tokens);
        json_out_member_raw(j, "stream_options", "{\"include_usage\":true}", 22);
    }
    if (t->extra && t->extra[0]) {
        buf_putc(j->b, ',');
        buf_puts(j->b, t->extra);
    }
}

static void put_body(struct buf *b, const struct load_target *t, const struct load_part *p,
                     const char *turns, const char *prompt, uint32_t max_tokens)
{
    struct json_out j = json_out_make(b);
    const char *model = p->model[0] ? p->model : t->model ? t->model : "";
    json_out_object(&j);
    if (model[0] && p->kind != LOAD_ASK)
        json_out_member_str(&j, "model", model);
    if (p->kind == LOAD_CLASSIFY) {
        json_out_member_str(&j, "input", prompt);
    } else if (p->kind == LOAD_ASK) {
        json_out_member_str(&j, "text", prompt);
        json_out_member_bool(&j, "stream", true);
    } else {
        put_generate(&j, t, p->kind, turns, prompt, max_tokens);
    }
    json_out_object_end(&j);
}

void load_request_put(struct buf *out, const struct load_target *t, const struct load_part *p,
                      const char *turns, const char *prompt, uint32_t max_tokens)
{
    struct buf body;
    buf_init(&body, MAX_BODY_BYTES);
    put_body(&body, t, p, turns, prompt, max_tokens);
    buf_printf(out,
               "POST %s%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
               "Accept: */*\r\nContent-Length: %zu\r\n",
               t->base, load_kind_path(t->api, p->kind), t->host, body.len);
    if (t->key)
        buf_printf(out, "Authorization: Bearer %s\r\n", t->key);
    buf_puts(out, "\r\n");
    buf_put(out, buf_str(&body), body.len);
    if (body.rc < 0 && out->rc == 0)
        out->rc = body.rc;
    buf_fini(&body);
}
