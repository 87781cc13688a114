/* api_home.c - /v1/home: the things known to /v1/process, and replacing the home at run time. */

#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_things.h"
#include "gateway/api/api.h"
#include "gateway/call/call.h"
#include "gateway/call/ticker.h"

#define STREAM_MS 100u /* maximum delay of a stream's events */

static bool has_home(struct call *c)
{
    if (c->gl->gw->home.things)
        return true;
    call_fail(c, 404, NULL, NULL, "home_not_found",
              "this server has no home: it needs the models included with Shoal, or 'home' in its "
              "configuration");
    return false;
}

static void put_home(struct call *c)
{
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    home_things_json(&j, c->gl->gw->home.things);
    json_out_object_end(&j);
}

/* The whole home, if something changed since the last event. */
static void send_home(struct call *c)
{
    uint64_t version =
        home_things_version(c->gl->gw->home.things) + 1; /* 0: nothing was sent yet */
    if (!c->began)
        call_begin(c, SSE_TYPE);
    if (version != c->cursor) {
        call_event_begin(c, NULL);
        put_home(c);
        call_event_end(c);
    } else if (!c->event) {
        buf_puts(&c->out, ":\n\n"); /* a comment, to detect clients that are gone */
    }
    c->cursor = version;
    call_flush(c);
}

void api_home(struct call *c)
{
    static const struct ticker_ops ops = {send_home, call_end};
    bool stream;
    if (!has_home(c) || !call_query_bool(c, "stream", &stream))
        return;
    if (!stream) {
        put_home(c);
        call_json(c, 200);
    } else if (!ticker_start(c, STREAM_MS, &ops)) {
        call_refuse(c, GW_REFUSED_BUSY, 429, 10, "too many clients watch this server");
    }
}

void api_home_change(struct call *c)
{
    struct gw *gw = c->gl->gw;
    struct home_file *f;
    struct err e = {0};
    if (!has_home(c))
        return;
    if (!c->req->body || c->req->body_bytes == 0) {
        call_fail(c, 400, NULL, NULL, "missing_required_parameter",
                  "the body is empty: send a home file, as YAML or JSON");
        return;
    }
    int rc = home_file_read_text(&f, gw->home.table, c->req->body, c->req->body_bytes, "body", &e);
    if (rc == SHOAL_EFORMAT || rc == SHOAL_ELIMIT) {
        call_fail(c, rc == SHOAL_ELIMIT ? 413 : 400, NULL, NULL, "invalid_home", "%s", e.msg);
        return;
    }
    if (rc < 0) {
        call_fail_code(c, rc, e.msg);
        return;
    }
    home_things_set_file(gw->home.things, f);
    home_file_unref(f);
    api_home(c);
}
