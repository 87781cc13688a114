/* health.c - see health.h. */
#include "gateway/grpc/health.h"

#include <string.h>

#include <grpc/health/v1/health.pb-c.h>

#include "base/mem.h"
#include "gateway/grpc/grpc_call.h"
#include "gateway/call/call.h"
#include "wire/pb.h"
#include "gateway/grpc/reflection.h"

#define MAX_WATCHERS 4096u /* per loop: such streams last as long as their clients want */
#define MAX_SERVICE_BYTES 256u
#define MAX_LIST_BYTES ((size_t)1 << 20)
#define STATUS(name) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus status_kind;

struct watcher {
    struct watcher *prev, *next;
    struct call *call; /* held */
    struct executor_timer deadline;
    int told;     /* the status sent to the client; -1: none yet */
    bool waiting; /* the client has not read it yet */
    bool server;
    char service[MAX_SERVICE_BYTES];
};

/* ---- what is known ---- */

static bool is_ending(const struct gw *gw)
{
    return atomic_load(&gw->leaving) || atomic_load(&gw->draining);
}

static status_kind server_status(struct gw *gw)
{
    return !is_ending(gw) && registry_ready(gw->registry) ? STATUS(SERVING) : STATUS(NOT_SERVING);
}

static status_kind model_status(const struct gw *gw, enum registry_state s)
{
    return s == REGISTRY_READY && !is_ending(gw) ? STATUS(SERVING) : STATUS(NOT_SERVING);
}

/* A service is "" or one of gRPC's, for which the server as a whole answers, or a model. */
static bool is_server(const char *service)
{
    return !service[0] || reflection_has_service(service);
}

static status_kind status_of(struct gw *gw, bool server, const char *service)
{
    enum registry_state s;
    if (server)
        return server_status(gw);
    return registry_state(gw->registry, service, &s) ? model_status(gw, s)
                                                     : STATUS(SERVICE_UNKNOWN);
}

/* ---- Check ---- */

static void send_message(struct call *c, const ProtobufCMessage *m)
{
    struct buf b;
    buf_init(&b, MAX_LIST_BYTES);
    if (pb_put(&b, m) < 0)
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
    else
        grpc_call_send(c, &b);
    buf_fini(&b);
}

static void send_status(struct call *c, status_kind s)
{
    Grpc__Health__V1__HealthCheckResponse m = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    m.status = s;
    send_message(c, &m.base);
}

static void check(struct call *c, const char *service)
{
    status_kind s = status_of(c->gl->gw, is_server(service), service);
    if (s == STATUS(SERVICE_UNKNOWN)) {
        grpc_call_fail_plain(c, GRPC_NOT_FOUND, "SERVICE_NOT_FOUND", "there is no such service");
        return;
    }
    send_status(c, s);
    grpc_call_finish(c);
}

/* ---- Watch ---- */

static void watcher_free(struct watcher *w)
{
    struct call *c = w->call;
    struct gw_loop *gl = c->gl;
    if (w->prev)
        w->prev->next = w->next;
    else
        gl->watchers = w->next;
    if (w->next)
        w->next->prev = w->prev;
    atomic_fetch_sub(&gl->n_watchers, 1);
    loop_timer_clear(gl->loop, &w->deadline);
    c->job = NULL;
    c->abandon = NULL;
    c->resume = NULL;
    mem_free(w);
    call_release(c);
}

/* Only the newest status matters to a slow client: on_read calls this again. */
static void tell(struct watcher *w)
{
    struct call *c = w->call;
    status_kind now = status_of(c->gl->gw, w->server, w->service);
    if (w->waiting || (int)now == w->told)
        return;
    w->told = (int)now;
    w->waiting = true;
    send_status(c, now);
    if (!c->req) /* no memory, and it is answered */
        watcher_free(w);
}

static void on_read(struct call *c)
{
    struct watcher *w = c->job;
    w->waiting = false;
    tell(w);
}

static void on_gone(struct call *c)
{
    watcher_free(c->job);
}

static void on_deadline(struct executor_timer *t)
{
    struct watcher *w = LOOP_OF(t, struct watcher, deadline);
    grpc_call_fail_plain(w->call, GRPC_DEADLINE_EXCEEDED, "DEADLINE", "the deadline passed");
    watcher_free(w);
}

static void watch(struct call *c, const char *service)
{
    struct gw_loop *gl = c->gl;
    double ms;
    if (strcmp(c->req->protocol, "h2") != 0) { /* HTTP/1.1 does not tell when the client has read */
        call_fail(c, 426, NULL, NULL, NULL, "gRPC streams need HTTP/2");
        return;
    }
    if (!grpc_call_timeout_ms(c, &ms))
        return;
    if (strlen(service) >= MAX_SERVICE_BYTES) {
        const struct grpc_error e = {.status = GRPC_INVALID_ARGUMENT,
                                     .reason = "INVALID_VALUE",
                                     .message = "the name of the service is too long",
                                     .field = "service"};
        grpc_call_fail(c, &e);
        return;
    }
    if (atomic_load(&gl->n_watchers) >= MAX_WATCHERS) {
        const struct grpc_error e = {.status = GRPC_RESOURCE_EXHAUSTED,
                                     .reason = "OVERLOADED",
                                     .message = "too many clients watch the health of this server",
                                     .retry_s = 10};
        grpc_call_fail(c, &e);
        return;
    }
    struct watcher *w = mem_zalloc(sizeof(*w));
    if (!w) {
        grpc_call_fail_frame(c, SHOAL_ENOMEM);
        return;
    }
    w->call = c;
    w->told = -1;
    w->server = is_server(service);
    w->deadline.fn = on_deadline;
    memcpy(w->service, service, strlen(service) + 1);
    w->next = gl->watchers;
    if (w->next)
        w->next->prev = w;
    gl->watchers = w;
    /* before the first look, so that no change is missed */
    atomic_fetch_add(&gl->n_watchers, 1);
    call_hold(c);
    c->job = w;
    c->abandon = on_gone;
    c->resume = on_read;
    if (ms > 0 && ms < 1e12)
        loop_timer_set(gl->loop, &w->deadline, c->start_ns + (uint64_t)(ms * 1e6));
    tell(w);
}

void health_changed(struct gw *gw)
{
    for (uint32_t i = 0; i < gw->n_loops; i++) {
        struct gw_loop *gl = &gw->loops[i];
        /* the task is in the loop's list at most once */
        if (atomic_load(&gl->n_watchers) > 0 && !atomic_exchange(&gl->health_posted, true))
            loop_post(gl->loop, &gl->health);
    }
}

void health_tell(struct gw_loop *gl)
{
    for (struct watcher *w = gl->watchers, *next; w; w = next) {
        next = w->next;
        tell(w);
    }
}

void health_on_change(struct executor_task *t)
{
    struct gw_loop *gl = LOOP_OF(t, struct gw_loop, health);
    atomic_store(&gl->health_posted, false); /* a change from here on posts the task again */
    health_tell(gl);
}

void health_end(struct gw_loop *gl)
{
    const struct grpc_error e = {.status = GRPC_UNAVAILABLE,
                                 .reason = "DRAINING",
                                 .message = "the server is stopping",
                                 .retry_s = 1};
    while (gl->watchers) {
        struct watcher *w = gl->watchers;
        grpc_call_fail(w->call, &e);
        watcher_free(w);
    }
}

/* ---- List ---- */

struct listing {
    struct gw *gw;
    struct buf out;
    int rc;
};

/* A message with one entry; the whole list is a sequence of such messages. */
static void list_one(struct listing *l, const char *name, status_kind s)
{
    Grpc__Health__V1__HealthListResponse m = GRPC__HEALTH__V1__HEALTH_LIST_RESPONSE__INIT;
    Grpc__Health__V1__HealthCheckResponse value = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    Grpc__Health__V1__HealthListResponse__StatusesEntry
        one = GRPC__HEALTH__V1__HEALTH_LIST_RESPONSE__STATUSES_ENTRY__INIT,
        *list[] = {&one};
    value.status = s;
    one.key = pb_text(name);
    one.value = &value;
    m.statuses = list;
    m.n_statuses = 1;
    int rc = pb_put(&l->out, &m.base);
    l->rc = l->rc < 0 ? l->rc : rc;
}

static void list_model(void *ctx, const struct registry_model *m)
{
    struct listing *l = ctx;
    list_one(l, m->name, model_status(l->gw, m->slot->state));
}

static void list_service(void *ctx, const char *name)
{
    struct listing *l = ctx;
    list_one(l, name, server_status(l->gw));
}

static void list(struct call *c)
{
    struct listing l = {.gw = c->gl->gw};
    buf_init(&l.out, MAX_LIST_BYTES);
    registry_each(l.gw->registry, list_model, &l);
    list_service(&l, ""); /* if a name occurs twice, the last entry wins, so services come last */
    reflection_each_service(list_service, &l);
    if (l.rc < 0) {
        grpc_call_fail_frame(c, l.rc);
    } else {
        grpc_call_send(c, &l.out);
        grpc_call_finish(c);
    }
    buf_fini(&l.out);
}

/* ---- every method ---- */

static void answer(struct call *c, const char *method, const uint8_t *p, size_t n)
{
    Grpc__Health__V1__HealthCheckRequest *q; /* List's has no fields */
    q = grpc__health__v1__health_check_request__unpack(pb_heap(), n, p);
    if (!q)
        grpc_call_fail_frame(c, SHOAL_EFORMAT);
    else if (strcmp(method, "Check") == 0)
        check(c, q->service);
    else if (strcmp(method, "Watch") == 0)
        watch(c, q->service);
    else
        list(c);
    if (q)
        grpc__health__v1__health_check_request__free_unpacked(q, pb_heap());
}

void health_handle(struct call *c)
{
    static const char *const methods[] = {"Check", "Watch", "List"};
    const char *asked = strrchr(c->req->path, '/') + 1;
    size_t i = 0;
    struct grpc_frame f;
    struct buf plain;
    while (i < 2 && strcmp(methods[i], asked) != 0)
        i++;
    if (!grpc_call_is(c, methods[i]))
        return;
    buf_init(&plain, MAX_LIST_BYTES);
    if (grpc_call_read_whole(c, &f, &plain))
        answer(c, methods[i], f.p, f.n);
    buf_fini(&plain);
}
