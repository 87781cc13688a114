/* deferred_runner.c - see deferred_runner.h. */
#include "gateway/deferred/deferred_runner.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/members.h"
#include "gateway/call.h"
#include "gateway/deferred/deferred.h"
#include "gateway/door.h"
#include "knowledge/offload.h"
#include "store/deferred_store.h"

#define TICK_NS 100000000u
#define MAX_RUNNING 8u
#define MAX_HEADERS 64u
#define MAX_ANSWER_BYTES ((size_t)64 << 20)
#define MAX_REQUEST_BYTES ((size_t)512 << 20)
#define MIN_RETRY_MS 500
#define MAX_RETRY_MS 15000
#define BROKEN_RETRY_MS 5000 /* the file cannot be read or written */

/* One request, from the file and back. */
struct run {
    struct http_req req; /* first */
    struct deferred_runner *all;
    struct run *prev, *next; /* list of running requests */
    struct offload offload;
    struct arena arena;
    struct deferred_item item;
    struct http_header headers[MAX_HEADERS];
    bool running, found;
    bool passing; /* a temporary failure: it must be retried */
    int64_t next_ms;
    struct buf text;
    char type[96];
    int status; /* of the answer; 0: the run broke off */
    int rc;
    struct err error;
};

struct heard {
    uint32_t n_nodes, n_ready;
};

struct deferred_runner {
    struct gw *gw;
    struct gw_loop *gl;
    struct deferred *deferred;
    struct executor_timer tick;
    struct run *runs;
    uint32_t n_open; /* runs, including those on the pool */
    bool asking, ended, told;
};

static void run_free(struct run *r)
{
    r->all->n_open--;
    buf_fini(&r->text);
    arena_fini(&r->arena);
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

static void look(void *ctx, const struct node_link *k)
{
    struct heard *h = ctx;
    h->n_nodes++;
    h->n_ready += node_link_ready(k, clock_ns());
}

/* Whether all nodes are heard: otherwise an unknown model may be on another node. */
static bool hears_all(const struct gw_loop *gl)
{
    struct heard h = {0, 0};
    if (!gl->members)
        return true;
    members_each(gl->members, look, &h);
    return h.n_nodes > 0 && h.n_ready == h.n_nodes;
}

/* Refused for now: another try may succeed. */
static bool is_passing(const struct run *r)
{
    int s = r->status;
    return s == 0 || s == 429 || s == 502 || s == 503 || s == 504 ||
           (s == 404 && !hears_all(r->all->gl));
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
    struct deferred *d = r->all->deferred;
    int64_t now = deferred_now_ms();
    char why[200];
    if (r->passing) {
        snprintf(why, sizeof(why), "status %d: %.180s", r->status,
                 r->status ? buf_str(&r->text) : "it broke off");
        r->rc = deferred_store_put_back(d->store, r->item.id, now + retry_ms(r->item.n_tries), why,
                                        &r->error);
    } else {
        bool fits = r->text.rc == 0;
        if (fits)
            r->rc = deferred_store_finish(d->store, r->item.id, now, r->status, r->type,
                                          buf_str(&r->text), r->text.len, &r->error);
        if (!fits || r->rc == SHOAL_ELIMIT)
            r->rc = deferred_store_finish(d->store, r->item.id, now, 507, "application/json", large,
                                          sizeof(large) - 1, &r->error);
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
    if (offload_run(&r->offload, &r->all->gl->flow) < 0) { /* the pool is full: not in its place */
        save_work(r);
        save_done(r);
    }
}

static void on_begin(struct http_req *q, int status, const struct http_header *h, size_t n,
                     int64_t body_bytes)
{
    struct run *r = (struct run *)(void *)q;
    (void)body_bytes;
    r->status = status;
    for (size_t i = 0; i < n; i++)
        if (strcmp(h[i].name, "content-type") == 0)
            snprintf(r->type, sizeof(r->type), "%s", h[i].value);
}

static void on_write(struct http_req *q, const void *p, size_t n)
{
    buf_put(&((struct run *)(void *)q)->text, p, n);
}

static void on_end(struct http_req *q, const struct http_header *trailers, size_t n)
{
    (void)trailers;
    (void)n;
    save((struct run *)(void *)q);
}

static size_t on_queued(const struct http_req *q)
{
    (void)q;
    return 0;
}

/* ---- running ---- */

static size_t list_headers(struct run *r)
{
    const char *p = r->item.headers, *end = p + r->item.n_headers;
    size_t n = 0;
    r->headers[n++] = (struct http_header){"host", "deferred"};
    while (p < end && n < MAX_HEADERS) { /* a NUL follows the last */
        const char *value = p + strlen(p) + 1;
        if (value > end)
            break;
        r->headers[n++] = (struct http_header){p, value};
        p = value + strlen(value) + 1;
    }
    return n;
}

static void fail_unknown(struct run *r)
{
    static const char text[] = "{\"error\":{\"message\":\"the key of this request was removed\","
                               "\"type\":\"authentication_error\",\"code\":\"invalid_api_key\"}}";
    r->status = 401;
    snprintf(r->type, sizeof(r->type), "application/json");
    buf_put(&r->text, text, sizeof(text) - 1);
    save(r);
}

static void start(struct run *r)
{
    static const struct http_ops ops = {on_begin, on_write, on_end, on_queued};
    struct deferred_runner *x = r->all;
    struct admission *a = x->gw->admission;
    struct admission_client *client =
        r->item.client[0] ? admission_find_name(a, r->item.client) : NULL;
    r->next = x->runs;
    if (x->runs)
        x->runs->prev = r;
    x->runs = r;
    r->running = true;
    atomic_fetch_add(&x->deferred->n_tried, 1);
    if (admission_needed(a) && !client) {
        fail_unknown(r);
        return;
    }
    r->req = (struct http_req){.method = "POST",
                               .path = r->item.path,
                               .query = r->item.query,
                               .headers = r->headers,
                               .n_headers = list_headers(r),
                               .body = r->item.body,
                               .body_bytes = r->item.n_body,
                               .peer = "deferred",
                               .protocol = "deferred",
                               .via = HTTP_VIA_NETWORK,
                               .received_ns = clock_ns(),
                               .server = x->gl->http,
                               .ops = &ops};
    struct call *c = call_create(x->gl, &r->req);
    if (!c) /* call_create has answered r->req */
        return;
    call_hold(c);
    door_enter_as(c, client);
    call_release(c);
}

static void take_work(void *ctx)
{
    struct run *r = ctx;
    struct deferred *d = r->all->deferred;
    int rc = deferred_store_take(d->store, deferred_now_ms(), &r->item, &r->arena, &r->next_ms,
                                 &r->error);
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
        atomic_store(&x->deferred->next_ms, 0);
        start(r);
        ask(x);
        return;
    }
    if (!r->found) /* unless one was put in the meantime: then it is 0 */
        atomic_compare_exchange_strong(&x->deferred->next_ms, &asked, r->next_ms);
    run_free(r); /* taken but not started: it waits until the next start */
}

/* Takes the next due request, if there is room. */
static void ask(struct deferred_runner *x)
{
    if (x->asking || x->ended || x->n_open >= MAX_RUNNING || atomic_load(&x->gw->draining))
        return;
    struct run *r = mem_zalloc(sizeof(*r));
    if (!r)
        return;
    r->all = x;
    arena_init(&r->arena, MAX_REQUEST_BYTES);
    buf_init(&r->text, MAX_ANSWER_BYTES);
    r->offload = (struct offload){.work = take_work, .then = take_done, .ctx = r};
    x->n_open++;
    x->asking = true;
    atomic_store(&x->deferred->next_ms, INT64_MAX); /* before the file is read */
    if (offload_run(&r->offload, &x->gl->flow) < 0) {
        x->asking = false;
        atomic_store(&x->deferred->next_ms, 0);
        run_free(r);
    }
}

/* The server stops: puts running requests back. */
static void put_all_back(struct deferred_runner *x)
{
    struct run *r;
    while ((r = x->runs)) {
        if (r->req.cancelled)
            r->req.cancelled(&r->req);
        r->status = 0;
        save(r);
    }
}

static void on_tick(struct executor_timer *t)
{
    struct deferred_runner *x = LOOP_OF(t, struct deferred_runner, tick);
    if (atomic_load(&x->gw->draining))
        put_all_back(x);
    else if (deferred_now_ms() >= atomic_load(&x->deferred->next_ms))
        ask(x);
    loop_timer_set(x->gl->loop, t, clock_ns() + TICK_NS);
}

int deferred_runner_create(struct deferred_runner **out, struct gw *gw, struct err *e)
{
    *out = NULL;
    if (!gw->deferred)
        return 0;
    struct deferred_runner *x = *out = mem_zalloc(sizeof(*x));
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "out of memory for deferred requests");
    x->gw = gw;
    x->gl = &gw->loops[0];
    x->deferred = gw->deferred;
    x->tick.fn = on_tick;
    loop_timer_set(x->gl->loop, &x->tick, loop_now(x->gl->loop)); /* on its thread, when it runs */
    return 0;
}

void deferred_runner_end(struct deferred_runner *x, const struct gw_loop *gl)
{
    if (!x || x->gl != gl || x->ended)
        return;
    x->ended = true;
    loop_timer_clear(x->gl->loop, &x->tick);
    put_all_back(x);
}

void deferred_runner_destroy(struct deferred_runner *x)
{
    mem_free(x);
}
