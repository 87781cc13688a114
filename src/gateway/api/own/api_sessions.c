/* api_sessions.c - see api_sessions.h. */
#include "gateway/api/own/api_sessions.h"

#include <string.h>

#include "base/mem.h"
#include "knowledge/offload.h"
#include "knowledge/sessions.h"

#define PREFIX "/v1/sessions/"
#define MAX_BYTES ((size_t)32 << 20)

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
    if (!c->gl->gw->sessions || !call_session_ok(id)) {
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
