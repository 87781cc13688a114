/* api_sessions.c - see api_sessions.h. */
#include "gateway/api/own/api_sessions.h"

#include <string.h>

#include "base/mem.h"
#include "knowledge/offload.h"
#include "knowledge/sessions.h"

#define PREFIX "/v1/sessions/"
#define MAX_BYTES ((size_t)32 << 20)

static bool id_ok(const char *id, size_t cap)
{
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-");
    return n > 0 && id[n] == '\0' && n < cap;
}

bool api_sessions_read(struct call *c, struct request *r, bool *found)
{
    /* together with `chat_id` it is Open WebUI's, which sends the whole conversation itself */
    const cJSON *v = cJSON_HasObjectItem(c->json, "chat_id")
                         ? NULL
                         : cJSON_GetObjectItemCaseSensitive(c->json, "session_id");
    const char *id = c->req ? http_header(c->req, "x-shoal-session") : NULL;
    *found = false;
    if (v && !cJSON_IsNull(v))
        id = cJSON_IsString(v) ? v->valuestring : "";
    if (!id)
        return true;
    if (!id_ok(id, sizeof(r->session))) {
        call_fail(c, 400, NULL, "session_id", "invalid_value",
                  "'session_id' must be 1 to 63 letters, digits or ._:-");
        return false;
    }
    if (!c->gl->gw->sessions) {
        call_fail(c, 400, NULL, "session_id", "sessions_off",
                  "this server keeps no sessions: set sessions.store in the configuration");
        return false;
    }
    if (r->generate.chat.n_tools > 0) {
        call_fail(c, 400, NULL, "tools", "invalid_value",
                  "tool calls are not kept in a session: send the messages yourself");
        return false;
    }
    if (r->generate.n != 1) {
        call_fail(c, 400, NULL, "n", "invalid_value", "'n' must be 1 in a session");
        return false;
    }
    memcpy(r->session, id, strlen(id) + 1);
    *found = true;
    return true;
}

void api_sessions_run(struct call *c, struct request *r)
{
    sessions_run(c->gl->gw->sessions, &c->gl->flow, r, c->sink, &c->session_away);
}

/* ---- /v1/sessions/ID ---- */

struct work {
    struct call *call; /* held */
    struct offload offload;
    char tenant[64], id[64];
    bool drop;
    struct buf out;
    int rc;
    struct err error;
};

static void do_it(void *ctx)
{
    struct work *w = ctx;
    struct sessions *s = w->call->gl->gw->sessions;
    if (w->drop)
        w->rc = sessions_forget(s, w->tenant, w->id, &w->error);
    else
        w->rc = sessions_show(s, w->tenant, w->id, &w->out, &w->error);
}

static void on_done(void *ctx)
{
    struct work *w = ctx;
    struct call *c = w->call;
    if (c->req && w->rc == SHOAL_ENOTFOUND)
        call_fail(c, 404, NULL, NULL, "not_found", "there is no session '%s'", w->id);
    else if (c->req && w->rc == SHOAL_EIO)
        call_fail(c, 503, NULL, NULL, "sessions_away", "%s", w->error.msg);
    else if (c->req && w->rc < 0)
        call_fail_code(c, w->rc, w->error.msg);
    else if (c->req) {
        buf_clear(&c->out);
        if (w->drop)
            buf_printf(&c->out, "{\"id\":\"%s\",\"deleted\":true}", w->id);
        else
            buf_put(&c->out, buf_str(&w->out), w->out.len);
        call_json(c, 200);
    }
    buf_fini(&w->out);
    mem_free(w);
    call_release(c);
}

static void run(struct call *c, bool drop)
{
    const char *id = c->req->path + strlen(PREFIX);
    struct work *w;
    if (!c->gl->gw->sessions || !id_ok(id, sizeof(w->id))) {
        call_fail(c, 404, NULL, NULL, "not_found", "there is no such session");
        return;
    }
    w = mem_zalloc(sizeof(*w));
    if (!w) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    w->call = c;
    w->drop = drop;
    memcpy(w->id, id, strlen(id) + 1);
    if (c->client)
        memcpy(w->tenant, c->client->name, sizeof(w->tenant));
    buf_init(&w->out, MAX_BYTES);
    w->offload = (struct offload){.work = do_it, .then = on_done, .ctx = w};
    call_hold(c);
    if (offload_run(&w->offload, &c->gl->flow) < 0) {
        w->rc = err_set(&w->error, SHOAL_EBUSY, "too much work is waiting: try again later");
        on_done(w);
    }
}

void api_sessions_show(struct call *c)
{
    run(c, false);
}

void api_sessions_drop(struct call *c)
{
    run(c, true);
}
