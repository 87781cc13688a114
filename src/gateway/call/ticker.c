/* ticker.c - see ticker.h. */
#include "gateway/call/ticker.h"

#include "base/clock.h"
#include "base/mem.h"
#include "gateway/call/call.h"

#define MAX_TICKERS 1024u /* per loop */
#define MS_NS 1000000u

struct ticker {
    struct ticker *prev, *next;
    struct call *call; /* held */
    const struct ticker_ops *ops;
    uint64_t interval_ns;
    bool waiting; /* the last state was not read yet */
    uint64_t seen;
    struct executor_timer timer;
};

static void ticker_free(struct ticker *k)
{
    struct call *c = k->call;
    struct gw_loop *gl = c->gl;
    if (k->prev)
        k->prev->next = k->next;
    else
        gl->tickers = k->next;
    if (k->next)
        k->next->prev = k->prev;
    atomic_fetch_sub(&gl->n_watchers, 1);
    loop_timer_clear(gl->loop, &k->timer);
    c->job = NULL;
    c->abandon = NULL;
    c->resume = NULL;
    mem_free(k);
    call_release(c);
}

static void tell(struct ticker *k)
{
    struct call *c = k->call;
    if (k->waiting)
        return;
    k->waiting = true;
    k->ops->send(c);
    if (!c->req) /* sending failed, and the call has been answered */
        ticker_free(k);
}

static void on_timer(struct executor_timer *t)
{
    struct ticker *k = LOOP_OF(t, struct ticker, timer);
    loop_timer_set(k->call->gl->loop, t, clock_ns() + k->interval_ns);
    tell(k);
}

static void on_read(struct call *c)
{
    ((struct ticker *)c->job)->waiting = false;
}

static void on_gone(struct call *c)
{
    ticker_free(c->job);
}

bool ticker_start(struct call *c, uint32_t interval_ms, const struct ticker_ops *ops)
{
    struct gw_loop *gl = c->gl;
    struct ticker *k = atomic_load(&gl->n_watchers) < MAX_TICKERS ? mem_zalloc(sizeof(*k)) : NULL;
    if (!k)
        return false;
    k->call = c;
    k->ops = ops;
    k->interval_ns = (uint64_t)interval_ms * MS_NS;
    k->timer.fn = on_timer;
    k->next = gl->tickers;
    if (k->next)
        k->next->prev = k;
    gl->tickers = k;
    atomic_fetch_add(&gl->n_watchers, 1);
    call_hold(c);
    c->job = k;
    c->abandon = on_gone;
    c->resume = on_read;
    loop_timer_set(gl->loop, &k->timer, clock_ns() + k->interval_ns);
    tell(k);
    return true;
}

uint64_t *ticker_seen(struct call *c)
{
    return &((struct ticker *)c->job)->seen;
}

void ticker_tell(struct gw_loop *gl)
{
    struct ticker *next;
    for (struct ticker *k = gl->tickers; k; k = next) {
        next = k->next;
        tell(k);
    }
}

void ticker_end(struct gw_loop *gl)
{
    while (gl->tickers) {
        struct ticker *k = gl->tickers;
        struct call *c = k->call;
        const struct ticker_ops *ops = k->ops;
        call_hold(c);
        ticker_free(k);
        ops->end(c);
        call_release(c);
    }
}
