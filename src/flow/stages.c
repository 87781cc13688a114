/* stages.c - see stages.h. */
#include "flow/stages.h"

#include "base/clock.h"
#include "flow/audit_sink.h"
#include "flow/dispatch.h"
#include "flow/fit_sink.h"
#include "flow/flow_run.h"
#include "flow/late_sink.h"
#include "flow/privacy/privacy_run.h"
#include "flow/routing.h"
#include "flow/tools/tool_sink.h"

/* Why the conversation of a request cannot be continued; NULL: it can. */
static const char *no_session(const struct flow_owner *o, const struct request *r,
                              const char **param, const char **reason)
{
    const struct request_generate *g = &r->generate;
    *param = "session_id";
    *reason = "invalid_value";
    if (!o->flow->session) {
        *reason = "sessions_off";
        return "this server keeps no sessions: set sessions.store in the configuration";
    }
    if (g->chat.n_messages == 0)
        return "only a chat can continue a session: send messages, or leave the session out";
    if (g->chat.n_tools > 0) {
        *param = "tools";
        return "tool calls are not kept in a session: send the messages yourself";
    }
    *param = "n";
    return g->n != 1 ? "'n' must be 1 in a session" : NULL;
}

static bool take_session(struct flow_owner *o, struct request *r, struct sink *s)
{
    const char *param, *reason;
    struct failure f;
    if (!r->remembered || r->kind != REQUEST_GENERATE || r->generate.prompt_only)
        return false;
    const char *why = no_session(o, r, &param, &reason);
    if (!why)
        return o->flow->session->ops->run(o->flow->session, o, r, s);
    failure_set(&f, FAILURE_INVALID, SHOAL_EINVAL, param, reason, "%s", why);
    flow_refuse(o, r, s, &f);
    return true;
}

static bool take_similar(struct flow_owner *o, struct request *r, struct sink *s)
{
    struct dispatch *d = o->flow->similar;
    /* what a conversation means depends on its turns; marks are those of one request */
    return d && !r->remembered && !r->marked && d->ops->run(d, o, r, s);
}

static bool run_here(struct flow_owner *o, struct request *r, struct sink *s)
{
    flow_run_here(o, r, s);
    return true;
}

/* clang-format off: one stage a line */
static const struct {
    const char *name;
    /* True: it has the request now. False: nothing happened. */
    bool (*take)(struct flow_owner *o, struct request *r, struct sink *s);
} table[STAGE_N] = {
    [STAGE_AUDIT] = {"audit", audit_sink_take},
    [STAGE_DEADLINE] = {"deadline", late_sink_take},
    [STAGE_PRIVACY] = {"privacy", privacy_take},
    [STAGE_SESSION] = {"session", take_session},
    [STAGE_FIT] = {"fit", fit_sink_take},
    [STAGE_SIMILAR] = {"similar", take_similar},
    [STAGE_TOOLS] = {"tools", tool_sink_take},
    [STAGE_ROUTE] = {"route", routing_take},
    [STAGE_LEAVE] = {"leave", privacy_take_leaving},
    [STAGE_PLACE] = {"place", flow_place},
    [STAGE_RUN] = {"run", run_here},
};
/* clang-format on */

/* The span of the stage before ends, and another begins, which is that of the first stage that
 * takes the request. */
static void next_span(struct request *r)
{
    if (!r->spans.trace)
        return;
    const uint64_t now = clock_ns();
    trace_end(r->spans.trace, r->way.span, now);
    r->way.span = trace_begin(r->spans.trace, r->way.below, "stage", now);
    r->spans.span = r->way.span;
}

static void pass_on(struct flow_owner *o, struct request *r, struct sink *s)
{
    struct stage_log *log = r->way.log;
    next_span(r);
    while (r->way.next < STAGE_N) {
        uint32_t i = r->way.next++;
        if (log)
            log->entered_ns[i] = clock_ns();
        trace_rename(r->spans.trace, r->spans.span, table[i].name);
        if (table[i].take(o, r, s))
            return;
        if (log)
            log->entered_ns[i] = 0;
    }
}

void stages_run(struct flow_owner *o, struct request *r, struct sink *s)
{
    struct stage_log *log = r->explain ? arena_zalloc(&r->arena, sizeof(*log)) : NULL;
    r->way = (struct stage_way){
        .pass_on = pass_on, .log = log, .span = TRACE_NO_SPAN, .below = r->spans.span};
    s->stages = log;
    s->routed = NULL;
    pass_on(o, r, s);
}

const char *stages_name(enum stage i)
{
    return table[i].name;
}

uint64_t stages_time(const struct stage_log *log, enum stage i, uint64_t now_ns)
{
    uint64_t end = now_ns;
    if (log->entered_ns[i] == 0)
        return 0;
    for (uint32_t k = STAGE_N - 1; k > i; k--)
        if (log->entered_ns[k])
            end = log->entered_ns[k];
    return end - log->entered_ns[i];
}
