/* deferred_runner.c - see deferred_runner.h. */
#include "site/deferred/deferred_runner.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/admission.h"
#include "knowledge/offload.h"
#include "net/loop.h"
#include "site/deferred/deferred.h"

#define TICK_NS 100000000u
#define MAX_RUNNING 8u
#define MAX_ANSWER_BYTES ((size_t)64 << 20)
#define MAX_REQUEST_BYTES ((size_t)512 << 20)
#define MIN_RETRY_MS 500
#define MAX_RETRY_MS 15000
#define BROKEN_RETRY_MS 5000 /* the file cannot be read or written */

/* One request, from the file and back. */
struct run {
    struct deferred_run out; /* first */
    struct deferred_runner *all;
    struct run *prev, *next; /* list of running requests */
    struct offload offload;
    bool running, found;
    bool passing; /* a temporary failure: it must be retried */
    int64_t next_ms;
    int rc;
    struct err error;
};

struct deferred_runner {
    struct deferred_runner_opts opts;
    struct executor_timer tick;
    struct run *runs;
    uint32_t n_open; /* runs, including those on the pool */
    bool asking, ended, told;
};

static void run_free(struct run *r)
{
    r->all->n_open--;
    buf_fini(&r->out.text);
    arena_fini(&r->out.arena);
    mem_free(r);
}

static void unlink_run(struct run *r)
{
    if (!r->running)
        return;
    r->running = false;
    *(r->prev ? &r->prev->next : &r->all->runs) = r->next;
    if (r->next)
        r->next->prev = r->prev;
}

/* Says once that the file cannot be used. */
static void note(struct deferred_runner *x, int rc, const struct err *e)
{
    if (rc < 0 && !x->told)
        log_warn("deferred", "deferred requests wait: %s", e->msg);
    x->told = rc < 0;
}

/* ---- the answer ---- */

/* Refused for now: another try may succeed. */
static bool is_passing(const struct run *r)
{
    struct deferred_door *door = r->all->opts.door;
    int s = r->out.status;
    return s == 0 || s == 429 || s == 502 || s == 503 || s == 504 ||
           (s == 404 && !door->hears_all(door));
}

static int64_t retry_ms(uint32_t n_tries)
{
    uint32_t shift = n_tries < 5 ? n_tries : 5;
    int64_t ms = (int64_t)MIN_RETRY_MS << shift;
    return ms < MAX_RETRY_MS ? ms : MAX_RETRY_MS;
}

static void save_work(void *ctx)
{
    static const char large[] = "{\"error\":{\"message\":\"the answer is too large to be kept\","
                                "\"type\":\"server_error\",\"code\":\"answer_too_large\"}}";
    struct run *r = ctx;
    struct deferred *d = r->all->opts.deferred;
    int64_t now = deferred_now_ms();
    char why[200];
    if (r->passing) {
        snprintf(why, sizeof(why), "status %d: %.180s", r->out.status,
                 r->out.status ? buf_str(&r->out.text) : "it broke off");
        r->rc = deferred_store_put_back(d->store, r->out.item.id,
                                        now + retry_ms(r->out.item.n_tries), why, &r->error);
    } else {
        bool fits = r->out.text.rc == 0;
        if (fits)
            r->rc = deferred_store_finish(d->store, r->out.item.id, now, r->out.status, r->out.type,
                                          buf_str(&r->out.text), r->out.text.len, &r->error);
        if (!fits || r->rc == SHOAL_ELIMIT)
            r->rc = deferred_store_finish(d->store, r->out.item.id, now, 507, "application/json",
                                          large, sizeof(large) - 1, &r->error);
        if (r->rc == 0)
            atomic_fetch_add(&d->n_answered, 1);
    }
    atomic_store(&d->next_ms, 0);
}

static void save_done(void *ctx)
{
    struct run *r = ctx;
    note(r->all, r->rc, &r->error);
    run_free(r);
}

static void save(struct run *r)
{
    unlink_run(r);
    r->passing = is_passing(r);
    r->offload = (struct offload){.work = save_work, .then = save_done, .ctx = r};
    if (offload_run(&r->offload, r->all->opts.owner) < 0) { /* the pool is full: not in its place */
        save_work(r);
        save_done(r);
    }
}

void deferred_runner_answered(struct deferred_run *r)
{
    save((struct run *)(void *)r); /* its first member */
}

/* ---- running ---- */

static void fail_unknown(struct run *r)
{
    static const char text[] = "{\"error\":{\"message\":\"the key of this request was removed\","
                               "\"type\":\"authentication_error\",\"code\":\"invalid_api_key\"}}";
    r->out.status = 401;
    snprintf(r->out.type, sizeof(r->out.type), "application/json");
    buf_put(&r->out.text, text, sizeof(text) - 1);
    save(r);
}

static void start(struct run *r)
{
    struct deferred_runner *x = r->all;
    struct admission *a = x->opts.admission;
    struct admission_client *client =
        r->out.item.client[0] ? admission_find_name(a, r->out.item.client) : NULL;
    r->next = x->runs;
    if (x->runs)
        x->runs->prev = r;
    x->runs = r;
    r->running = true;
    atomic_fetch_add(&x->opts.deferred->n_tried, 1);
    if (admission_needed(a) && !client)
        fail_unknown(r);
    else
        x->opts.door->enter(x->opts.door, &r->out, client);
}

static void take_work(void *ctx)
{
    struct run *r = ctx;
    struct deferred *d = r->all->opts.deferred;
    int rc = deferred_store_take(d->store, deferred_now_ms(), &r->out.item, &r->out.arena,
                                 &r->next_ms, &r->error);
    r->rc = rc < 0 ? rc : 0;
    r->found = rc == 1;
}

static void ask(struct deferred_runner *x);

static void take_done(void *ctx)
{
    struct run *r = ctx;
    struct deferred_runner *x = r->all;
    int64_t asked = INT64_MAX;
    x->asking = false;
    note(x, r->rc, &r->error);
    if (r->rc < 0)
        r->next_ms = deferred_now_ms() + BROKEN_RETRY_MS;
    if (r->found && !x->ended) {
        atomic_store(&x->opts.deferred->next_ms, 0);
        start(r);
        ask(x);
        return;
    }
    if (!r->found) /* unless one was put in the meantime: then it is 0 */
        atomic_compare_exchange_strong(&x->opts.deferred->next_ms, &asked, r->next_ms);
    run_free(r); /* taken but not started: it waits until the next start */
}

/* Takes the next due request, if there is room. */
static void ask(struct deferred_runner *x)
{
    if (x->asking || x->ended || x->n_open >= MAX_RUNNING ||
        x->opts.door->is_draining(x->opts.door))
        return;
    struct run *r = mem_zalloc(sizeof(*r));
    if (!r)
        return;
    r->all = x;
    arena_init(&r->out.arena, MAX_REQUEST_BYTES);
    buf_init(&r->out.text, MAX_ANSWER_BYTES);
    r->offload = (struct offload){.work = take_work, .then = take_done, .ctx = r};
    x->n_open++;
    x->asking = true;
    atomic_store(&x->opts.deferred->next_ms, INT64_MAX); /* before the file is read */
    if (offload_run(&r->offload, x->opts.owner) < 0) {
        x->asking = false;
        atomic_store(&x->opts.deferred->next_ms, 0);
        run_free(r);
    }
}

/* The server stops: puts running requests back. */
static void put_all_back(struct deferred_runner *x)
{
    struct run *r;
    while ((r = x->runs)) {
        x->opts.door->cancel(x->opts.door, &r->out);
        r->out.status = 0;
        save(r);
    }
}

static void on_tick(struct executor_timer *t)
{
    struct deferred_runner *x = LOOP_OF(t, struct deferred_runner, tick);
    if (x->opts.door->is_draining(x->opts.door))
        put_all_back(x);
    else if (deferred_now_ms() >= atomic_load(&x->opts.deferred->next_ms))
        ask(x);
    loop_timer_set(x->opts.loop, t, clock_ns() + TICK_NS);
}

int deferred_runner_create(struct deferred_runner **out, const struct deferred_runner_opts *o,
                           struct err *e)
{
    *out = NULL;
    if (!o->deferred)
        return 0;
    struct deferred_runner *x = *out = mem_zalloc(sizeof(*x));
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "out of memory for deferred requests");
    x->opts = *o;
    x->tick.fn = on_tick;
    loop_timer_set(o->loop, &x->tick, loop_now(o->loop)); /* on its thread, when it runs */
    return 0;
}

void deferred_runner_end(struct deferred_runner *x)
{
    if (!x || x->ended)
        return;
    x->ended = true;
    loop_timer_clear(x->opts.loop, &x->tick);
    put_all_back(x);
}

void deferred_runner_destroy(struct deferred_runner *x)
{
    mem_free(x);
}
