/* control.c - see control.h. */
#include "cluster/control/control.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread/thread.h"
#include "cluster/control/desired.h"

enum { CHANGE_MS = 5000 };

struct control {
    struct executor *x;
    struct control_watch watch;
    struct bus *bus;
    struct desired_store *store;
    struct lease *lease; /* NULL: takes no part in the election */
    struct event_log *events;
    char beat[BUS_MAX_SUBJECT]; /* "hb.NAME" */
    pthread_t thread;
    bool threaded;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    struct control_change *first, **end;
    bool stop;
};

/* ---- callbacks ------------------------------------------------------------------------------ */

static void on_link(void *ctx, const struct bus_status *s)
{
    struct control *c = ctx;
    if (c->watch.on_link)
        c->watch.on_link(c->watch.ctx, s);
}

static void on_heartbeat(void *ctx, const char *subject, const void *bytes, size_t n)
{
    struct control *c = ctx;
    (void)subject;
    if (c->watch.on_heartbeat)
        c->watch.on_heartbeat(c->watch.ctx, bytes, n);
}

static void on_desired(void *ctx, const struct desired *d)
{
    struct control *c = ctx;
    if (c->watch.on_desired)
        c->watch.on_desired(c->watch.ctx, d);
}

static void on_call(void *ctx, uint64_t number)
{
    struct control *c = ctx;
    if (c->watch.on_call)
        c->watch.on_call(c->watch.ctx, number);
}

static void on_controller(void *ctx, bool held, uint64_t fence)
{
    struct control *c = ctx;
    if (c->watch.on_controller)
        c->watch.on_controller(c->watch.ctx, held, fence);
}

/* ---- changes -------------------------------------------------------------------------------- */

static void finish(struct executor_task *t)
{
    struct control_change *change = EXECUTOR_OF(t, struct control_change, task);
    change->done(change, change->rc, &change->e);
}

static void run_change(struct control *c, struct control_change *change)
{
    uint64_t fence = 0;
    change->e = (struct err){0};
    if (change->controller && !control_held(c, &fence))
        change->rc = err_set(&change->e, SHOAL_ECHANGED, "this member is not the controller");
    else
        change->rc =
            desired_store_update(c->store, fence, change->fn, change->ctx, NULL, &change->e);
}

static void *run(void *arg)
{
    struct control *c = arg;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->first && !c->stop)
            pthread_cond_wait(&c->wake, &c->lock);
        if (c->stop)
            break;
        struct control_change *change = c->first;
        c->first = change->next;
        if (!c->first)
            c->end = &c->first;
        pthread_mutex_unlock(&c->lock);
        run_change(c, change);
        executor_post(c->x, &change->task); /* the change belongs to the owner from here on */
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

void control_submit(struct control *c, struct control_change *change)
{
    change->task.fn = finish;
    change->next = NULL;
    pthread_mutex_lock(&c->lock);
    *c->end = change;
    c->end = &change->next;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static int open_parts(struct control *c, const struct control_opts *o, struct err *e)
{
    struct desired_store_opts so = {.name = o->bus.name,
                                    .answers = o->may_control,
                                    .on_call = on_call,
                                    .file = o->snapshot,
                                    .poll_ms = o->desired_poll_ms,
                                    .retry_ms = CHANGE_MS,
                                    .replicas = o->replicas};
    struct event_log_opts eo = {.name = o->bus.name, .replicas = o->replicas};
    struct lease_opts lo = {.name = o->bus.name,
                            .ttl_ms = o->lease_ttl_ms,
                            .replicas = o->replicas,
                            .claim = desired_store_claim,
                            .known = desired_store_known};
    int rc = bus_open(&c->bus, &o->bus, c->x, on_link, c, e);
    if (rc < 0)
        return rc;
    so.bus = eo.bus = lo.bus = c->bus;
    if (o->hears && (rc = bus_subscribe(c->bus, "hb.*", on_heartbeat, c, NULL, e)) < 0)
        return rc;
    if ((rc = desired_store_open(&c->store, &so, c->x, on_desired, c, e)) < 0 ||
        (rc = event_log_open(&c->events, &eo, e)) < 0)
        return rc;
    lo.claim_ctx = c->store;
    if (o->may_control && (rc = lease_open(&c->lease, &lo, c->x, on_controller, c, e)) < 0)
        return rc;
    if ((rc = thread_create(&c->thread, "control", run, c, e)) == 0)
        c->threaded = true;
    return rc;
}

int control_open(struct control **out, const struct control_opts *o, struct executor *x,
                 const struct control_watch *w, struct err *e)
{
    struct control *c;
    *out = NULL;
    /* A name in a subject must not contain dots. */
    if (!o->bus.name || !desired_name_ok(o->bus.name) || strchr(o->bus.name, '.'))
        return err_set(e, SHOAL_EINVAL,
                       "'%s' is not a valid name for a member: use letters, digits and -",
                       o->bus.name ? o->bus.name : "");
    c = mem_zalloc(sizeof(*c));
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "control plane");
    c->x = x;
    c->watch = *w;
    c->end = &c->first;
    snprintf(c->beat, sizeof(c->beat), "hb.%s", o->bus.name);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    int rc = open_parts(c, o, e);
    if (rc < 0) {
        control_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

void control_close(struct control *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->threaded)
        pthread_join(c->thread, NULL);
    for (struct control_change *change = c->first, *next; change; change = next) {
        next = change->next;
        change->rc = err_set(&change->e, SHOAL_ECANCELLED, "the member is stopping");
        executor_post(c->x, &change->task);
    }
    lease_close(c->lease); /* releases the lease: others take over at once */
    event_log_close(c->events);
    desired_store_close(c->store);
    bus_close(c->bus);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

/* ---- using ---------------------------------------------------------------------------------- */

int control_beat(struct control *c, const void *bytes, size_t n, struct err *e)
{
    return bus_publish(c->bus, c->beat, bytes, n, e);
}

void control_look(struct control *c)
{
    desired_store_look(c->store);
}

bool control_confirmed(struct control *c, uint64_t version, uint64_t since_ns)
{
    return desired_store_confirmed(c->store, version, since_ns);
}

void control_heard(struct control *c, const struct desired_heard *h)
{
    desired_store_heard(c->store, h);
}

uint64_t control_known_fence(struct control *c)
{
    struct lease_known k = {.fence = 0};
    desired_store_known(c->store, &k);
    return k.fence;
}

void control_event(struct control *c, const struct event_log_entry *entry)
{
    event_log_add(c->events, entry);
}

const struct desired *control_desired(const struct control *c)
{
    return desired_store_current(c->store);
}

bool control_held(struct control *c, uint64_t *fence)
{
    *fence = 0;
    return c->lease && lease_held(c->lease, fence);
}

struct bus *control_bus(struct control *c)
{
    return c->bus;
}

void control_get_status(struct control *c, struct control_status *out)
{
    *out = (struct control_status){0};
    bus_get_status(c->bus, &out->bus);
    desired_store_get_status(c->store, &out->desired);
    event_log_get_status(c->events, &out->events);
    if (c->lease)
        lease_get_status(c->lease, &out->lease);
}
