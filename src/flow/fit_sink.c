/* fit_sink.c - see fit_sink.h. */
#include "flow/fit_sink.h"

#include <string.h>

#include "base/thread/executor.h"
#include "flow/sink_front.h"

/* Each try leaves out an eighth of the turns that are left, at least one: what is lost needlessly
 * is an eighth at most, and all tries together cost about eight of the first. */
#define PART 8u

struct fit_sink {
    struct flow_job job; /* first */
    struct flow_owner *owner;
    struct request *request; /* whole; copies of it run */
    struct sink_front front;
    struct executor_task again;
    uint32_t n_turns, drop;
    uint32_t n_sent; /* messages of the copy that runs */
    bool too_long, cancelled;
};

static struct fit_sink *fit_of(struct sink *s)
{
    return EXECUTOR_OF(s, struct fit_sink, front.sink);
}

/* ---- turns ---- */

static bool is_role(const struct chat_message *m, const char *role)
{
    return strcmp(m->role, role) == 0;
}

static bool is_system(const struct chat_message *m)
{
    return is_role(m, "system") || is_role(m, "developer");
}

uint32_t fit_sink_turns(const struct chat_message *m, uint32_t n)
{
    uint32_t turns = 0;
    for (uint32_t i = 0; i < n; i++)
        turns += is_role(&m[i], "user");
    return turns;
}

uint32_t fit_sink_trim(struct chat_message *to, const struct chat_message *from, uint32_t n,
                       uint32_t drop)
{
    uint32_t turn = 0, kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        turn += is_role(&from[i], "user");
        /* what stands before the first turn belongs to it */
        if (is_system(&from[i]) || drop == 0 || turn > drop)
            to[kept++] = from[i];
    }
    return kept;
}

/* ---- life ---- */

static void close_all(struct fit_sink *x)
{
    struct flow_owner *o = x->owner;
    struct request *r = x->request;
    o->n_jobs--;
    sink_front_close(&x->front);
    flow_give_request(o, r);
}

static void on_cancel(struct flow_job *j)
{
    struct fit_sink *x = (struct fit_sink *)(void *)j;
    x->cancelled = true;
    flow_cancel(&x->front.sink); /* between two tries there is nothing: on_again closes */
}

static void on_resume(struct flow_job *j)
{
    flow_resume(&((struct fit_sink *)(void *)j)->front.sink);
}

/* ---- events ---- */

/* Held back: a prompt that is too long fails after it. */
static void on_start(struct sink *s, const struct sink_start *e)
{
    struct fit_sink *x = fit_of(s);
    struct sink_start start = *e;
    start.n_dropped = x->request->generate.chat.n_messages - x->n_sent;
    if (start.n_dropped > 0)
        start.question = NULL; /* the body is not the question that was answered */
    sink_front_hold(&x->front, &start, s->routed);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    struct fit_sink *x = fit_of(s);
    bool long_prompt = f->reason && strcmp(f->reason, "context_length_exceeded") == 0;
    x->too_long = long_prompt && !x->front.started && !x->cancelled && x->drop + 1 < x->n_turns;
    if (!x->too_long)
        sink_front_fail(s, f);
}

static void on_closed(struct sink *s)
{
    struct fit_sink *x = fit_of(s);
    s->job = NULL;
    if (x->too_long) /* not from here: the request that ends is still in use */
        executor_later(x->owner->executor, &x->again);
    else
        close_all(x);
}

/* ---- tries ---- */

static size_t bytes_of(const struct chat_message *m, uint32_t n)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += m[i].content_bytes;
    return sum;
}

static void run(struct fit_sink *x)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .prompt = sink_front_prompt,
                                        .token = sink_front_token,
                                        .call = sink_front_call,
                                        .done = sink_front_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = sink_front_broke_off,
                                        .may_replace = sink_front_may_replace,
                                        .replace = sink_front_replace,
                                        .flush = sink_front_flush,
                                        .full = sink_front_full};
    struct request *r = x->request, *copy = flow_take_request(x->owner);
    const struct chat *c = &r->generate.chat;
    struct chat_message *list = arena_zalloc_n(&r->arena, c->n_messages, sizeof(*list));
    if (!copy || !list) {
        struct failure f;
        if (copy)
            flow_give_request(x->owner, copy);
        failure_of(&f, SHOAL_ENOMEM, "out of memory");
        x->front.to->ops->fail(x->front.to, &f);
        close_all(x);
        return;
    }
    request_borrow(copy, r);
    x->too_long = false;
    x->n_sent = fit_sink_trim(list, c->messages, c->n_messages, x->drop);
    copy->generate.chat.messages = list;
    copy->generate.chat.n_messages = x->n_sent;
    copy->input_bytes -= bytes_of(c->messages, c->n_messages) - bytes_of(list, x->n_sent);
    sink_front_init(&x->front, &ops, x->front.to);
    request_pass_on(x->owner, copy, &x->front.sink);
}

static void on_again(struct executor_task *t)
{
    struct fit_sink *x = EXECUTOR_OF(t, struct fit_sink, again);
    uint32_t step = (x->n_turns - x->drop) / PART;
    if (x->cancelled) {
        close_all(x);
        return;
    }
    x->drop += step > 0 ? step : 1;
    if (x->drop >= x->n_turns)
        x->drop = x->n_turns - 1;
    run(x);
}

bool fit_sink_take(struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_cancel, on_resume};
    const struct chat *c = &r->generate.chat;
    /* a session has rules of its own for what it leaves out */
    if (r->kind != REQUEST_GENERATE || !r->truncates || r->remembered ||
        fit_sink_turns(c->messages, c->n_messages) < 2)
        return false;
    struct fit_sink *x = arena_zalloc(&r->arena, sizeof(*x));
    if (!x) {
        flow_refuse_nomem(o, r, s);
        return true;
    }
    *x = (struct fit_sink){.job = {&job_ops},
                           .owner = o,
                           .request = r,
                           .front.to = s,
                           .again = {.fn = on_again},
                           .n_turns = fit_sink_turns(c->messages, c->n_messages)};
    s->job = &x->job;
    o->n_jobs++;
    run(x);
    return true;
}
