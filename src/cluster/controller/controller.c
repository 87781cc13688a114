/* controller.c - see controller.h. */
#include "cluster/controller/controller.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread/executor.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/control/control.h"
#include "cluster/control/desired.h"
#include "cluster/controller/controller_decide.h"
#include "cluster/controller/controller_memory.h"
#include "cluster/controller/controller_view.h"

#define MS_NS 1000000u
#define TICK_NS (100u * (uint64_t)MS_NS)
#define PAUSE_NS (500u * (uint64_t)MS_NS)   /* between two decisions */
#define EVERY_NS (2000u * (uint64_t)MS_NS)  /* for the autoscaler */
#define LISTEN_NS (1000u * (uint64_t)MS_NS) /* a new controller, beyond the time of silence */

#define SILENT_NS (2000u * (uint64_t)MS_NS) /* until the desired state sets another value */

#define TWINS                                                                                      \
    "one of them gets no models; give each node a name and a certificate of its own ('shoal ca "   \
    "issue')"

struct controller {
    struct control *control; /* NULL: closed */
    struct executor *executor;
    struct executor_timer timer;
    struct controller_view *view;
    const struct desired *known; /* the desired state in force; NULL: none yet */
    uint64_t silent_ns;
    bool up, held;
    uint64_t from_ns;          /* decides from then on */
    uint64_t last_ns;          /* time of the last decision */
    uint64_t term_ns, term_ms; /* when it became the controller: monotonic, and Unix time */
    bool due;

    /* the running decision; meanwhile its parts belong to the thread of control.h */
    bool busy, orphan;
    struct control_change change;
    struct controller_snapshot *snapshot;
    bool read; /* the snapshot */
    struct controller_memory memory;
    struct controller_outcome outcome;

    pthread_mutex_t lock;
    struct controller_status status;
};

static void event(struct controller *c, enum event_log_kind kind, const char *node,
                  const char *model, const char *text)
{
    const struct event_log_entry e = {
        .kind = kind, .node = node, .model = model, .text = text, .fence = c->status.fence};
    log_info("controller", "%s%s%s%s%s: %s", event_log_kind_text(kind), node[0] ? " " : "", node,
             model[0] ? " " : "", model, text);
    if (c->control)
        control_event(c->control, &e);
}

/* ---- one decision ---- */

/* On the thread of control.h. */
static int decide(void *ctx, struct desired *d, struct err *e)
{
    struct controller *c = ctx;
    if (!c->read) {
        int rc = controller_snapshot_read(c->snapshot, e);
        if (rc < 0)
            return rc;
        c->read = true;
    }
    controller_outcome_fini(&c->outcome); /* left by the attempt before */
    controller_outcome_init(&c->outcome);
    int rc = controller_decide(d, c->snapshot, &c->memory, &c->outcome, e);
    return rc < 0 ? rc : c->outcome.changed ? 0 : 1;
}

static void report(struct controller *c, int rc, const struct err *e)
{
    const struct controller_outcome *o = &c->outcome;
    bool was = c->status.error[0] != '\0', gap = strcmp(c->status.gap, o->gap) != 0;
    if (rc < 0 && rc != SHOAL_ECHANGED && rc != SHOAL_ECANCELLED && !was)
        log_warn("controller", "no decision: %s", e->msg);
    for (uint32_t i = 0; rc >= 0 && i < o->n_notes; i++)
        event(c, o->notes[i].kind, o->notes[i].node, o->notes[i].model, o->notes[i].text);
    if (rc >= 0 && gap && o->gap[0])
        event(c, EVENT_LOG_PLACEMENT, "", "", o->gap);
    pthread_mutex_lock(&c->lock);
    c->status.n_changes += rc >= 0 && o->changed;
    c->status.n_failed += rc < 0;
    snprintf(c->status.error, sizeof(c->status.error), "%s", rc < 0 ? e->msg : "");
    if (rc >= 0)
        snprintf(c->status.gap, sizeof(c->status.gap), "%s", o->gap);
    pthread_mutex_unlock(&c->lock);
}

static void free_all(struct controller *c)
{
    controller_snapshot_free(c->snapshot);
    controller_outcome_fini(&c->outcome);
    controller_memory_fini(&c->memory);
    controller_view_destroy(c->view);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static void on_done(struct control_change *change, int rc, const struct err *e)
{
    struct controller *c = change->ctx;
    c->busy = false;
    if (c->orphan) {
        free_all(c);
        return;
    }
    report(c, rc, e);
    c->due |= rc < 0 || c->outcome.changed; /* the next wave may be possible at once */
    controller_snapshot_free(c->snapshot);
    c->snapshot = NULL;
}

static void begin(struct controller *c, uint64_t now)
{
    struct err e = {0};
    c->last_ns = now;
    c->due = false;
    if (controller_view_take(c->view, &c->snapshot, &e) < 0) {
        log_warn("controller", "no decision: %s", e.msg);
        return;
    }
    /* so that a time of day that jumps means nothing to what it has begun */
    c->snapshot->now_ms = c->term_ms + (now - c->term_ns) / MS_NS;
    c->snapshot->term_ms = c->term_ms;
    c->read = false;
    c->busy = true;
    c->change =
        (struct control_change){.fn = decide, .done = on_done, .ctx = c, .controller = true};
    control_submit(c->control, &c->change);
}

/* ---- time ---- */

static void on_timer(struct executor_timer *t)
{
    struct controller *c = EXECUTOR_OF(t, struct controller, timer);
    uint64_t now = clock_ns();
    executor_timer_set(c->executor, t, now + TICK_NS);
    if (!c->up)
        return;
    for (const char *name;
         now > c->silent_ns && (name = controller_view_expire(c->view, now - c->silent_ns));) {
        c->due = true;
        if (c->held)
            event(c, EVENT_LOG_NODE_LEFT, name, "", "silent");
    }
    pthread_mutex_lock(&c->lock);
    c->status.n_members = controller_view_count(c->view);
    c->status.acts = c->held && now >= c->from_ns;
    pthread_mutex_unlock(&c->lock);
    if (!c->held || c->busy || now < c->from_ns || now - c->last_ns < PAUSE_NS)
        return;
    if (c->due || now - c->last_ns >= EVERY_NS)
        begin(c, now);
}

/* ---- news ---- */

void controller_on_heartbeat(struct controller *c, const void *bytes, size_t n)
{
    enum controller_news news;
    const char *name = "";
    struct err e = {0};
    if (controller_view_hear(c->view, bytes, n, clock_ns(), &news, &name, &e) < 0) {
        log_debug("controller", "a heartbeat was refused: %s", e.msg);
        return;
    }
    if (news == CONTROLLER_NOTHING)
        return;
    if (news == CONTROLLER_TWINS) {
        log_warn("controller", "two processes run as node %s: " TWINS, name);
        if (c->held)
            event(c, EVENT_LOG_REFUSED, name, "", "two processes run under this name: " TWINS);
        return;
    }
    c->due = true;
    if (c->held && clock_ns() >= c->from_ns && news == CONTROLLER_JOINED)
        event(c, EVENT_LOG_NODE_JOINED, name, "", "heard");
    else if (c->held && news == CONTROLLER_RESTARTED)
        event(c, EVENT_LOG_NODE_JOINED, name, "", "restarted");
}

/* Reports nodes that were drained or undrained since the last state. */
static void note_drained(struct controller *c, const struct desired *d)
{
    for (uint32_t i = 0; c->known && i < d->drained.n; i++)
        if (!desired_is_drained(c->known, d->drained.items[i]))
            event(c, EVENT_LOG_NODE_DRAINED, d->drained.items[i], "", "is being drained");
    for (uint32_t i = 0; c->known && i < c->known->drained.n; i++)
        if (!desired_is_drained(d, c->known->drained.items[i]))
            event(c, EVENT_LOG_NODE_RESUMED, c->known->drained.items[i], "", "gets work again");
}

void controller_on_desired(struct controller *c, const struct desired *d)
{
    if (c->held)
        note_drained(c, d);
    c->known = d;
    c->silent_ns = (uint64_t)d->policy.heartbeat_ms * d->policy.silent_beats * MS_NS;
    c->due = true;
}

void controller_on_lease(struct controller *c, bool held, uint64_t fence)
{
    uint64_t now = clock_ns();
    pthread_mutex_lock(&c->lock);
    c->status.fence = held ? fence : 0;
    c->status.acts = false;
    pthread_mutex_unlock(&c->lock);
    if (held && !c->held) {
        c->from_ns = now + c->silent_ns + LISTEN_NS;
        c->term_ns = now;
        c->term_ms = clock_unix_ms();
        if (!c->busy) { /* otherwise the next one starts with the knowledge of the last one */
            controller_memory_fini(&c->memory);
        }
        event(c, EVENT_LOG_CONTROLLER, "", "", "this member is the controller now");
    } else if (!held && c->held) {
        log_info("controller", "this member is no longer the controller");
    }
    c->held = held;
    c->due = true;
}

void controller_on_link(struct controller *c, bool up)
{
    uint64_t now = clock_ns();
    if (up && !c->up) { /* give all nodes time to be heard again */
        controller_view_refresh(c->view, now);
        c->from_ns = now + c->silent_ns + LISTEN_NS;
    }
    c->up = up;
}

void controller_get_status(struct controller *c, struct controller_status *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->status;
    pthread_mutex_unlock(&c->lock);
}

/* ---- lifetime ---- */

int controller_create(struct controller **out, struct control *control, struct executor *x,
                      struct err *e)
{
    struct controller *c = mem_zalloc(sizeof(*c));
    *out = NULL;
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "controller");
    pthread_mutex_init(&c->lock, NULL);
    c->control = control;
    c->executor = x;
    c->timer.fn = on_timer;
    c->silent_ns = SILENT_NS;
    controller_outcome_init(&c->outcome);
    int rc = controller_view_create(&c->view, e);
    if (rc < 0) {
        free_all(c);
        return rc;
    }
    executor_timer_set(x, &c->timer, clock_ns() + TICK_NS);
    *out = c;
    return 0;
}

void controller_destroy(struct controller *c)
{
    if (!c)
        return;
    executor_timer_clear(c->executor, &c->timer);
    c->control = NULL;
    if (c->busy)
        c->orphan = true; /* on_done frees it */
    else
        free_all(c);
}
