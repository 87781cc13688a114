/* api_scheduled.c - /v1/scheduled: schedules of the home, and cancelling them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/home/later/home_later.h"
#include "base/mem.h"
#include "gateway/api/api.h"
#include "gateway/call/call.h"
#include "gateway/call/ticker.h"
#include "knowledge/offload.h"
#include "site/things/later_site.h"

#define PREFIX "/v1/scheduled/"
#define STREAM_MS 100u /* maximum delay of a stream's events */

static bool has_schedule(struct call *c)
{
    if (later_site_list(c->gl->gw->later))
        return true;
    call_fail(c, 404, NULL, NULL, "home_not_found",
              "this server has no home with schedules: it needs the models included with Shoal, or "
              "'home' in its configuration");
    return false;
}

static void put_all(struct call *c)
{
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    home_later_json(later_site_list(c->gl->gw->later), &j);
    json_out_object_end(&j);
}

static void send_all(struct call *c)
{
    uint64_t version =
        home_later_turns(later_site_list(c->gl->gw->later)) + 1; /* 0: nothing was sent */
    if (!c->began)
        call_begin(c, SSE_TYPE);
    if (version != c->cursor) {
        call_event_begin(c, NULL);
        put_all(c);
        call_event_end(c);
    } else if (!c->event) {
        buf_puts(&c->out, ":\n\n"); /* a comment, to detect clients that are gone */
    }
    c->cursor = version;
    call_flush(c);
}

void api_scheduled(struct call *c)
{
    static const struct ticker_ops ops = {send_all, call_end};
    bool stream;
    if (!has_schedule(c) || !call_query_bool(c, "stream", &stream))
        return;
    if (!stream) {
        put_all(c);
        call_json(c, 200);
    } else if (!ticker_start(c, STREAM_MS, &ops)) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 10, "too many clients watch this server");
    }
}

/* ---- DELETE: on the pool, because the file is written first ---- */

struct work {
    struct offload offload;
    struct call *call;
    struct home_later *later;
    uint64_t id;
    int rc;
    struct err error;
};

static void cancel(void *ctx)
{
    struct work *w = ctx;
    w->rc = home_later_cancel_wait(w->later, w->id, &w->error);
}

static void on_cancelled(void *ctx)
{
    struct work *w = ctx;
    struct call *c = w->call;
    if (c->req && w->rc == SHOAL_ENOTFOUND) {
        call_fail(c, 404, NULL, NULL, "not_found",
                  "there is no scheduled entry with the id %llu; GET /v1/scheduled lists them",
                  (unsigned long long)w->id);
    } else if (c->req && w->rc < 0) {
        call_fail_code(c, w->rc, w->error.msg);
    } else if (c->req) {
        buf_clear(&c->out);
        buf_printf(&c->out, "{\"id\":%llu,\"deleted\":true}", (unsigned long long)w->id);
        call_json(c, 200);
    }
    mem_free(w);
    call_release(c);
}

void api_scheduled_cancel(struct call *c)
{
    const char *text = c->req->path + strlen(PREFIX);
    char *end;
    if (!has_schedule(c))
        return;
    errno = 0;
    unsigned long long id = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno) {
        call_fail(c, 404, NULL, NULL, "not_found",
                  "an id is a number; GET /v1/scheduled lists them");
        return;
    }
    struct work *w = mem_zalloc(sizeof(*w));
    if (!w) {
        call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        return;
    }
    w->call = c;
    w->later = later_site_list(c->gl->gw->later);
    w->id = id;
    w->offload = (struct offload){.work = cancel, .then = on_cancelled, .ctx = w};
    call_hold(c);
    if (offload_run(&w->offload, &c->gl->flow) < 0) {
        w->rc = err_set(&w->error, SHOAL_EBUSY, "too much work is waiting: try again later");
        on_cancelled(w);
    }
}
