/* api_traces.c - /v1/traces: where the last requests spent their time.
 *
 * A key sees the traces of its own requests, a key with administration rights those of all. They
 * hold names and times, no texts. */
#include <stdlib.h>
#include <string.h>

#include "gateway/api/api.h"
#include "gateway/call/call.h"
#include "trace/trace_json.h"
#include "trace/trace_ring.h"

#define PATH "/v1/traces/"
#define MOST 200u
#define USUAL 50u

/* NULL: everybody's. */
static const char *whose(const struct call *c)
{
    return c->client && !c->client->admin ? c->client->name : NULL;
}

static bool are_kept(struct call *c)
{
    if (c->gl->gw->traces)
        return true;
    call_fail(c, 404, NULL, NULL, "tracing_off",
              "this server keeps no traces: set tracing.keep in the configuration");
    return false;
}

void api_traces(struct call *c)
{
    struct trace *list[MOST];
    struct json_out j = json_out_make(&c->out);
    char text[16];
    uint32_t most = USUAL;
    if (!are_kept(c))
        return;
    if (http_query(c->req, "limit", text, sizeof(text))) {
        const long given = strtol(text, NULL, 10);
        if (given < 1 || given > (long)MOST) {
            call_fail(c, 400, NULL, "limit", "invalid_value", "'limit' must be from 1 to %u", MOST);
            return;
        }
        most = (uint32_t)given;
    }
    const uint32_t n = trace_ring_last(c->gl->gw->traces, whose(c), list, most);
    json_out_object(&j);
    json_out_member_array(&j, "traces");
    for (uint32_t i = 0; i < n; i++) {
        trace_json(&j, list[i], false);
        trace_unref(list[i]);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    call_json(c, 200);
}

void api_trace(struct call *c)
{
    const char *id = c->req->path + strlen(PATH);
    struct json_out j = json_out_make(&c->out);
    if (!are_kept(c))
        return;
    struct trace *t = trace_ring_find(c->gl->gw->traces, id, whose(c));
    if (!t) {
        call_fail(c, 404, NULL, NULL, "trace_not_found",
                  "there is no trace '%.80s': it is older than the last %u requests, or of another "
                  "key",
                  id, c->gl->config->tracing.keep);
        return;
    }
    trace_json(&j, t, true);
    trace_unref(t);
    call_json(c, 200);
}
