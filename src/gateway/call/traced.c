/* traced.c - see traced.h. */
#include "gateway/call/traced.h"

#include <stdio.h>

#include "base/clock.h"
#include "gateway/call/call.h"
#include "trace/trace_ring.h"
#include "trace/trace_words.h"

void traced_begin(struct call *c)
{
    char name[TRACE_MAX_TEXT];
    if (c->spans.trace) /* it goes on with that of another call */
        return;
    snprintf(name, sizeof(name), "%s %s", c->route->method, c->route->path);
    struct trace *t = trace_open(trace_ring_keeper(c->gl->gw->traces), &c->caller, name,
                                 TRACE_SERVER, c->start_ns ? c->start_ns : clock_ns());
    c->spans.trace = t;
    c->spans.span = TRACE_ROOT;
    trace_name(t, c->id, c->client ? c->client->name : "");
    trace_text(t, TRACE_ROOT, TRACE_METHOD, c->route->method);
    trace_text(t, TRACE_ROOT, TRACE_PATH, c->route->path);
    trace_text(t, TRACE_ROOT, TRACE_REQUEST, c->id);
}
