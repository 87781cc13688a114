/* rollout.c - see rollout.h. */
#include "cluster/rollout/rollout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "cluster/control/desired.h"
#include "cluster/messages/node_state.h"
#include "cluster/rollout/rollout_judge.h"
#include "cluster/rollout/rollout_view.h"
#include "host/registry.h"

#define MAX_VIEW_BYTES ((size_t)256 << 20)
#define GRACE_MS 3000u          /* until gateways have learned about a new epoch */
#define LINGER_MS 600000u       /* maximum duration of requests with an old version */
#define STAGE_LIMIT_MS 1800000u /* time limit for fetching and loading a version */
#define ALL 1000u               /* as a share */

/* One step of one rollout. */
struct stepping {
    struct rollout_view v;
    struct desired_rollout *r;
    struct desired_model *model;
    uint64_t oldest_epoch, term_ms; /* as of the input */
    rollout_tell_fn tell;
    void *ctx;
};

static bool same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, SHA256_BYTES) == 0;
}

/* ---- telling ---- */

static void say(struct stepping *k, const char *text)
{
    if (k->tell)
        k->tell(k->ctx, k->r, text);
}

/* Enters a state, with a line in the history. */
__attribute__((format(printf, 4, 5))) static void
enter(struct stepping *k, enum desired_rollout_state state, uint32_t share, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    const struct desired_step s = {k->v.now_ms, state, share, text};
    int rc = desired_put_step(k->v.d, k->r, &s);
    if (rc < 0 && k->v.rc == 0)
        k->v.rc = rc;
    k->v.changed = true;
    say(k, text);
}

/* When the rollout entered the state and share that it is in. */
static uint64_t entered_ms(const struct stepping *k)
{
    return k->r->n_steps ? k->r->steps[k->r->n_steps - 1].at_ms : 0;
}

/* Members' clocks may differ by hours.  What another controller began counts from the beginning of
 * this one's term: rather too late than too early, and never never. */
static bool passed(const struct stepping *k, uint64_t since_ms, uint64_t ms)
{
    if (k->term_ms && (since_ms < k->term_ms || since_ms > k->v.now_ms))
        since_ms = k->term_ms;
    return k->v.now_ms >= since_ms && k->v.now_ms - since_ms >= ms;
}

/* Undoes the started part; the reason stays in the history. */
static void fail_at(struct stepping *k, const struct rollout_place *p, const char *why)
{
    k->r->failed = true;
    enter(k, DESIRED_UNDOING, k->r->share, "failed%s%s: %.400s", p ? " on node " : "",
          p ? p->node : "", why);
}

/* ---- what all kinds share ---- */

/* Fails the rollout if a node cannot load the new version, or takes too long.  True: it did. */
static bool failed(struct stepping *k)
{
    for (uint32_t i = 0; i < k->v.n; i++) {
        const struct rollout_place *p = &k->v.places[i];
        const char *error = p->to.duty ? rollout_view_error(&p->to) : NULL;
        bool late = p->alive && p->to.duty == DESIRED_STAGE && !rollout_view_ready(&p->to) &&
                    passed(k, p->to.since_ms, STAGE_LIMIT_MS);
        if (!error && !late)
            continue;
        fail_at(k, p, error ? error : "the new version is not ready after 30 minutes");
        return true;
    }
    return false;
}

static bool has_room(const struct stepping *k, const struct rollout_place *p)
{
    uint64_t need = k->r->memory_bytes ? k->r->memory_bytes : k->model->memory_bytes;
    return p->alive->memory_free == 0 || p->alive->memory_free >= need || p->to.held;
}

/* Makes the new version the model's version, for the planner too. */
static void set_version(struct stepping *k, const uint8_t *sum)
{
    const char *was = k->model->source;
    if (same(k->model->sha256, sum))
        return;
    memcpy(k->model->sha256, sum, SHA256_BYTES);
    /* the source moves with the version, so that an undo finds the old one again */
    k->model->source = k->r->source;
    k->r->source = was;
    if (k->r->memory_bytes) {
        uint64_t bytes = k->model->memory_bytes;
        k->model->memory_bytes = k->r->memory_bytes;
        k->r->memory_bytes = bytes;
    }
    k->v.changed = true;
}

/* No request on the node uses this version, now or later. */
static bool is_gone(const struct stepping *k, const struct rollout_place *p,
                    const struct rollout_side *s)
{
    return !p->alive || !s->held || (s->held->duty == DESIRED_LEAVE && rollout_view_busy(s) == 0) ||
           passed(k, s->since_ms, LINGER_MS);
}

/* Unloads the side on all nodes. True: it is gone everywhere. */
static bool let_go(struct stepping *k, size_t side)
{
    bool all = true;
    for (uint32_t i = 0; i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        struct rollout_side *s = side ? &p->to : &p->from;
        if (s->duty == 0)
            continue;
        if (s->duty != DESIRED_LEAVE)
            rollout_view_set(&k->v, p, s, DESIRED_LEAVE, s->epoch, s->until);
        if (is_gone(k, p, s))
            rollout_view_set(&k->v, p, s, 0, 0, 0);
        else
            all = false;
    }
    return all;
}

/* Every reachable node serves the new version: unloads the old one. */
static void finish(struct stepping *k)
{
    for (uint32_t i = 0; i < k->v.n; i++) { /* absent nodes catch up when they come back */
        struct rollout_place *p = &k->v.places[i];
        const bool absent = !p->alive && p->from.duty && p->to.duty != DESIRED_SERVE;
        if (absent || p->to.duty == DESIRED_STAGE) /* staged: nobody would tell it to answer */
            rollout_view_set(&k->v, p, &p->to, DESIRED_SERVE, k->r->epoch, 0);
    }
    if (!same(k->model->sha256, k->r->to)) {
        set_version(k, k->r->to);
        enter(k, DESIRED_RUNNING, ALL, "every node serves the new version; unloading the old one");
    }
    if (let_go(k, 0))
        enter(k, DESIRED_DONE, ALL, "done");
}

/* ---- rolling, eventual ---- */

/* The new version is ready on a node: it answers from now on.  The old one stays loaded. */
static void take_over(struct stepping *k, struct rollout_place *p)
{
    char text[256];
    rollout_view_set(&k->v, p, &p->to, DESIRED_SERVE, 0, 0);
    if (p->from.duty)
        rollout_view_set(&k->v, p, &p->from, DESIRED_STAGE, 0, 0);
    snprintf(text, sizeof(text), "node %.127s serves the new version", p->node);
    say(k, text);
}

/* Without room for both, the old version leaves first, if others can do without this node. */
static bool replace_in_place(struct stepping *k, struct rollout_place *p)
{
    uint32_t min = k->model->replicas_min > 1 ? k->model->replicas_min : 1;
    if (rollout_view_serving(&k->v) <= min)
        return false;
    rollout_view_set(&k->v, p, &p->from, DESIRED_LEAVE, 0, 0);
    return true;
}

struct progress {
    uint32_t n_busy;                   /* nodes that change now */
    uint32_t n_waiting;                /* nodes that have not started */
    uint32_t n_new;                    /* nodes that serve the new version */
    uint32_t n_bad;                    /* nodes that cannot load it */
    struct rollout_place *next, *full; /* full: it has no room for both */
};

/* Advances the nodes that have begun, and counts. */
static void advance_nodes(struct stepping *k, struct progress *g)
{
    *g = (struct progress){0};
    for (uint32_t i = 0; i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        if (!p->alive)
            continue;
        /* replaced in place: the old version has to go first */
        if (p->to.duty == 0 && p->from.duty == DESIRED_LEAVE) {
            if (!p->from.held || is_gone(k, p, &p->from)) {
                rollout_view_set(&k->v, p, &p->from, 0, 0, 0);
                rollout_view_set(&k->v, p, &p->to, DESIRED_STAGE, 0, 0);
            }
            g->n_busy++;
        } else if (p->to.duty == 0) {
            g->n_waiting += p->from.duty == DESIRED_SERVE;
            if (!g->next && p->from.duty == DESIRED_SERVE)
                g->next = p;
        } else if (rollout_view_error(&p->to)) {
            g->n_bad++;
        } else {
            if (rollout_view_ready(&p->to) &&
                (p->to.duty != DESIRED_SERVE || p->from.duty == DESIRED_SERVE))
                take_over(k, p);
            bool serves = rollout_view_serves(&p->to);
            g->n_new += serves;
            g->n_busy += !serves;
        }
    }
}

static void stage(struct stepping *k, struct progress *g, struct rollout_place *p)
{
    if (has_room(k, p)) {
        rollout_view_set(&k->v, p, &p->to, DESIRED_STAGE, 0, 0);
        g->n_busy++;
    } else if (replace_in_place(k, p)) {
        g->n_busy++;
    } else {
        g->full = p;
    }
}

static void roll(struct stepping *k)
{
    bool all = k->r->kind == DESIRED_EVENTUAL;
    struct progress g;
    if (same(k->model->sha256, k->r->to)) {
        finish(k);
        return;
    }
    if (!all && failed(k))
        return;
    advance_nodes(k, &g);
    for (uint32_t i = 0; all && i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        if (p->alive && p->to.duty == 0 && p->from.duty == DESIRED_SERVE)
            stage(k, &g, p);
    }
    if (!all && g.n_busy == 0 && g.next)
        stage(k, &g, g.next);
    if (g.full && g.n_busy == 0) {
        fail_at(k, g.full, "there is no room for both versions, and no other node can replace it");
        return;
    }
    if (g.n_bad > 0 && g.n_new == 0 && g.n_busy == 0 && g.n_waiting == 0)
        (void)failed(k);
    else if (g.n_busy == 0 && g.n_waiting == 0 && g.n_bad == 0 && g.n_new > 0)
        finish(k);
    else if (k->r->state == DESIRED_STAGING && g.n_new > 0)
        enter(k, DESIRED_RUNNING, k->r->share, "the first node serves the new version");
}

/* ---- canary ---- */

/* How many nodes should serve the canary. */
static uint32_t canaries(const struct stepping *k)
{
    uint64_t n = rollout_view_serving(&k->v);
    uint64_t want = (n * k->r->share + ALL - 1) / ALL;
    return want ? (uint32_t)want : 1;
}

static void stage_canaries(struct stepping *k)
{
    uint32_t want = canaries(k), n = 0, n_ready = 0, n_alive = 0;
    for (int again = 0; again < 2; again++) /* first those that have started, then the others */
        for (uint32_t i = 0; i < k->v.n; i++) {
            struct rollout_place *p = &k->v.places[i];
            if (!p->alive || (again == 0) != (p->to.duty != 0))
                continue;
            n_alive += p->from.duty == DESIRED_SERVE;
            if (again && n < want && p->from.duty == DESIRED_SERVE && has_room(k, p))
                rollout_view_set(&k->v, p, &p->to, DESIRED_STAGE, 0, 0);
            n += p->to.duty != 0;
            n_ready += p->to.duty != 0 && rollout_view_ready(&p->to);
        }
    if (n == 0 && n_alive > 0)
        fail_at(k, NULL, "no node has room for both versions");
    if (n == 0 || n_ready < n)
        return;
    struct rollout_figures from, to;
    rollout_judge_count(&from, &to, &k->v);
    k->r->judge.base_requests = from.requests;
    k->r->judge.base_errors = from.errors;
    for (uint32_t i = 0; i < k->v.n; i++)
        if (k->v.places[i].alive && k->v.places[i].to.duty == DESIRED_STAGE)
            rollout_view_set(&k->v, &k->v.places[i], &k->v.places[i].to, DESIRED_SERVE, 0, 0);
    enter(k, DESIRED_RUNNING, k->r->share,
          "%.1f %% of the requests go to the new version on %u node%s", k->r->share / 10.0, n,
          n == 1 ? "" : "s");
}

static void watch_canaries(struct stepping *k)
{
    struct rollout_figures from, to;
    uint32_t n = 0, n_alive = 0;
    char text[256];
    for (uint32_t i = 0; i < k->v.n; i++) {
        n += k->v.places[i].to.duty && k->v.places[i].alive;
        n_alive += k->v.places[i].alive != NULL;
    }
    if (n == 0 && n_alive > 0) { /* the new version may be what crashes them */
        fail_at(k, NULL, "every node with the new version is lost");
        return;
    }
    rollout_judge_count(&from, &to, &k->v);
    switch (rollout_judge(&k->r->judge, &from, &to, text, sizeof(text))) {
    case ROLLOUT_WAIT:
        break;
    case ROLLOUT_GOOD:
        enter(k, DESIRED_RUNNING, ALL, "promoted: %s", text);
        break;
    case ROLLOUT_BAD:
        fail_at(k, NULL, text);
        break;
    }
}

static void canary(struct stepping *k)
{
    if (k->r->share >= ALL)
        roll(k);
    else if (failed(k))
        return;
    else if (k->r->state == DESIRED_STAGING)
        stage_canaries(k);
    else
        watch_canaries(k);
}

/* ---- strong ---- */

/* Greater than all earlier ones. */
static uint64_t next_epoch(const struct desired *d)
{
    return rollout_epoch_end(d);
}

/* All reachable nodes serve both versions in their assigned ranges, and know the epoch. */
static bool all_know(const struct stepping *k, uint64_t epoch)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->v.n; i++) {
        const struct rollout_place *p = &k->v.places[i];
        if (!p->alive || !p->to.duty)
            continue;
        bool old = p->from.duty == 0 || rollout_view_error(&p->from) != NULL ||
                   rollout_view_serves(&p->from);
        if (!old || !rollout_view_serves(&p->to) || !node_state_knows(p->alive, epoch))
            return false;
        n++;
    }
    return n > 0;
}

/* No request uses this side, and no gateway can send one: neither a new one, nor the next step of a
 * flow, nor a moved stream, that began before the epoch. */
static bool is_drained(const struct stepping *k, size_t side, uint64_t epoch, uint64_t since_ms)
{
    bool free = passed(k, since_ms, GRACE_MS) && (k->oldest_epoch == 0 || k->oldest_epoch >= epoch);
    for (uint32_t i = 0; i < k->v.n; i++) {
        const struct rollout_place *p = &k->v.places[i];
        if (!p->alive)
            continue;
        free &= rollout_view_busy(side ? &p->to : &p->from) == 0 &&
                (p->alive->epoch_end == 0 || p->alive->epoch >= epoch);
    }
    return free || passed(k, since_ms, LINGER_MS);
}

static void prepare_epoch(struct stepping *k)
{
    uint32_t n = 0, n_ready = 0;
    for (uint32_t i = 0; i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        if (p->from.duty != DESIRED_SERVE && p->to.duty == 0)
            continue;
        if (p->alive && p->to.duty == 0 && !has_room(k, p)) {
            fail_at(k, p, "there is no room for both versions");
            return;
        }
        if (p->to.duty == 0)
            rollout_view_set(&k->v, p, &p->to, DESIRED_STAGE, 0, 0);
        n += p->alive != NULL;
        n_ready += p->alive && rollout_view_ready(&p->to);
    }
    if (n == 0 || n_ready < n)
        return;
    uint64_t epoch = next_epoch(k->v.d);
    for (uint32_t i = 0; i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        if (p->to.duty == 0)
            continue;
        rollout_view_set(&k->v, p, &p->to, DESIRED_SERVE, epoch, 0);
        if (p->from.duty)
            rollout_view_set(&k->v, p, &p->from, DESIRED_SERVE, p->from.epoch, epoch);
    }
    k->r->epoch = epoch;
    enter(k, DESIRED_RUNNING, 0, "%u node%s ready: epoch %llu is prepared", n,
          n == 1 ? " is" : "s are", (unsigned long long)epoch);
}

static void strong(struct stepping *k)
{
    uint64_t epoch = k->r->epoch;
    if (epoch && k->v.d->epoch >= epoch) { /* switched: failing is no longer possible */
        if (same(k->model->sha256, k->r->to) || is_drained(k, 0, epoch, entered_ms(k)))
            finish(k);
        return;
    }
    if (failed(k))
        return;
    if (!epoch) {
        prepare_epoch(k);
        return;
    }
    for (uint32_t i = 0; i < k->v.n; i++) { /* one that came late */
        struct rollout_place *p = &k->v.places[i];
        if (p->from.duty == DESIRED_SERVE && p->from.until != epoch) {
            rollout_view_set(&k->v, p, &p->from, DESIRED_SERVE, p->from.epoch, epoch);
            rollout_view_set(&k->v, p, &p->to, DESIRED_SERVE, epoch, 0);
        }
    }
    if (!all_know(k, epoch))
        return;
    k->v.d->epoch = epoch;
    enter(k, DESIRED_RUNNING, ALL, "epoch %llu: new requests get the new version",
          (unsigned long long)epoch);
}

/* ---- without nodes ---- */

/* No node is assigned either version: the last one failed to load it, or was removed.  The planner
 * leaves a model alone while it is rolled out, so nothing would happen any more. */
static bool is_unassigned(const struct stepping *k)
{
    for (uint32_t i = 0; i < k->v.n; i++)
        if (k->v.places[i].from.duty || k->v.places[i].to.duty)
            return false;
    return true;
}

/* An epoch is answered by one version, also when the next node is assigned another one. */
static void leave_epoch(struct stepping *k)
{
    if (k->r->kind == DESIRED_STRONG)
        k->v.d->epoch = next_epoch(k->v.d);
}

static void end_without_nodes(struct stepping *k)
{
    if (k->r->kind == DESIRED_CANARY && k->r->share < ALL) { /* nobody could judge it */
        fail_at(k, NULL, "no node has the model any more");
        return;
    }
    leave_epoch(k);
    set_version(k, k->r->to);
    enter(k, DESIRED_DONE, ALL, "no node has the model; the next one gets the new version");
}

/* ---- undoing ---- */

static void end_undo(struct stepping *k)
{
    const char *why = "";
    for (uint32_t i = 0; i < k->r->n_steps; i++)
        if (k->r->steps[i].state == DESIRED_UNDOING)
            why = k->r->steps[i].text;
    set_version(k, k->r->from);
    if (k->r->failed)
        enter(k, DESIRED_FAILED, 0, "%.450s", why);
    else
        enter(k, DESIRED_UNDONE, 0, "the old version serves again");
}

/* The old version is no longer available: better the new one than none. */
static bool cannot_return(struct stepping *k)
{
    for (uint32_t i = 0; i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        const char *error = p->from.duty && p->to.duty == DESIRED_SERVE && p->alive
                                ? rollout_view_error(&p->from)
                                : NULL;
        if (!error)
            continue;
        for (uint32_t n = 0; n < k->v.n; n++) {
            struct rollout_place *q = &k->v.places[n];
            if (q->to.duty)
                rollout_view_set(&k->v, q, &q->to, DESIRED_SERVE, q->to.epoch, 0);
            if (q->from.duty)
                rollout_view_set(&k->v, q, &q->from, 0, 0, 0);
        }
        set_version(k, k->r->to);
        enter(k, DESIRED_FAILED, ALL,
              "the old version cannot be loaded on node %s (%.200s); keeping the new one", p->node,
              error);
        return true;
    }
    return false;
}

/* The new version leaves a node as soon as the old one is ready there. */
static void undo(struct stepping *k)
{
    bool back = true;
    if (cannot_return(k))
        return;
    for (uint32_t i = 0; i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        bool serves_new = p->to.duty == DESIRED_SERVE && p->alive;
        /* one that was about to leave may be gone before the node knows */
        if (serves_new && (p->from.duty == 0 || p->from.duty == DESIRED_LEAVE))
            rollout_view_set(&k->v, p, &p->from, DESIRED_STAGE, 0, 0);
        if (serves_new && !(rollout_view_ready(&p->from) && p->from.held->duty != DESIRED_LEAVE)) {
            back = false;
            continue;
        }
        if (p->from.duty || p->to.duty)
            rollout_view_set(&k->v, p, &p->from, DESIRED_SERVE, 0, 0);
        if (p->to.duty && p->to.duty != DESIRED_LEAVE)
            rollout_view_set(&k->v, p, &p->to, DESIRED_LEAVE, 0, 0);
    }
    if (back && let_go(k, 1))
        end_undo(k);
}

/* The old version is loaded everywhere and gets its own epoch. */
static void prepare_return(struct stepping *k)
{
    bool ready = true;
    if (cannot_return(k))
        return;
    for (uint32_t i = 0; i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        if (p->to.duty && p->from.duty != DESIRED_SERVE && p->from.duty != DESIRED_STAGE)
            rollout_view_set(&k->v, p, &p->from, DESIRED_STAGE, 0, 0);
        ready &= !p->alive || !p->to.duty || rollout_view_ready(&p->from);
    }
    /* its range moves: no request may be left in the old one */
    if (!ready || !is_drained(k, 0, k->r->epoch, entered_ms(k)))
        return;
    uint64_t epoch = next_epoch(k->v.d);
    for (uint32_t i = 0; i < k->v.n; i++) {
        struct rollout_place *p = &k->v.places[i];
        if (!p->to.duty)
            continue;
        rollout_view_set(&k->v, p, &p->from, DESIRED_SERVE, epoch, 0);
        rollout_view_set(&k->v, p, &p->to, DESIRED_SERVE, p->to.epoch, epoch);
    }
    k->r->old_epoch = epoch;
    enter(k, DESIRED_UNDOING, 0, "epoch %llu is prepared to return to the old version",
          (unsigned long long)epoch);
}

/* The new version has begun to leave. */
static bool is_leaving(const struct stepping *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->v.n; i++)
        n += k->v.places[i].to.duty != 0 && k->v.places[i].to.duty != DESIRED_LEAVE;
    return n == 0;
}

static void undo_strong(struct stepping *k)
{
    uint64_t back = k->r->old_epoch;
    if (is_unassigned(k)) {
        leave_epoch(k);
        end_undo(k);
    } else if (k->r->epoch == 0 ||
               k->v.d->epoch < k->r->epoch) { /* no request has seen the new version */
        for (uint32_t i = 0; i < k->v.n; i++) {
            struct rollout_place *p = &k->v.places[i];
            if (p->from.duty)
                rollout_view_set(&k->v, p, &p->from, DESIRED_SERVE, p->from.epoch, 0);
        }
        if (let_go(k, 1))
            end_undo(k);
    } else if (!back) {
        prepare_return(k);
    } else if (k->v.d->epoch < back) {
        if (!all_know(k, back))
            return;
        k->v.d->epoch = back;
        enter(k, DESIRED_UNDOING, 0, "epoch %llu: new requests get the old version",
              (unsigned long long)back);
    } else if (is_leaving(k) || is_drained(k, 1, back, entered_ms(k))) {
        if (let_go(k, 1))
            end_undo(k);
    }
}

/* ---- one step ---- */

static void begin(struct stepping *k)
{
    if (same(k->model->sha256, k->r->to)) {
        enter(k, DESIRED_DONE, ALL, "the model has this version already");
        return;
    }
    if (!same(k->model->sha256, k->r->from)) { /* another rollout was faster */
        memcpy(k->r->from, k->model->sha256, SHA256_BYTES);
        k->v.changed = true;
        return; /* the nodes' state is read again */
    }
    for (uint32_t i = 0; i < k->v.n; i++) { /* models of the nodes' own configuration */
        struct rollout_place *p = &k->v.places[i];
        if (p->from.duty == 0 && p->alive && rollout_view_ready(&p->from))
            rollout_view_set(&k->v, p, &p->from, DESIRED_SERVE, 0, 0);
    }
    if (is_unassigned(k)) {
        end_without_nodes(k);
        return;
    }
    enter(k, DESIRED_STAGING, k->r->share, "%s, %u node%s", desired_rollout_kind_text(k->r->kind),
          k->v.n, k->v.n == 1 ? "" : "s");
}

static void advance(struct stepping *k)
{
    if (k->r->state == DESIRED_PENDING)
        begin(k);
    else if (k->r->state == DESIRED_UNDOING)
        k->r->kind == DESIRED_STRONG ? undo_strong(k) : undo(k);
    else if (k->r->state != DESIRED_STAGING && k->r->state != DESIRED_RUNNING)
        return;
    else if (is_unassigned(k))
        end_without_nodes(k);
    else if (k->r->kind == DESIRED_STRONG)
        strong(k);
    else if (k->r->kind == DESIRED_CANARY)
        canary(k);
    else
        roll(k);
}

int rollout_step(struct desired *d, const struct rollout_input *in, bool *changed,
                 rollout_tell_fn tell, void *ctx, struct err *e)
{
    struct arena a;
    int rc = 0;
    arena_init(&a, MAX_VIEW_BYTES);
    for (uint32_t i = 0; rc == 0 && i < d->n_rollouts; i++) {
        struct stepping k = {.r = &d->rollouts[i],
                             .oldest_epoch = in->oldest_epoch,
                             .term_ms = in->term_ms,
                             .tell = tell,
                             .ctx = ctx};
        if (rollout_of(d, k.r->model) != k.r) /* ended, or not its turn */
            continue;
        k.model = desired_find_model(d, k.r->model);
        if (!k.model) /* desired_check refuses such a state */
            continue;
        rc = rollout_view_make(&k.v, d, k.r, in->nodes, in->n_nodes, in->now_ms, &a);
        if (rc == 0)
            advance(&k);
        rc = rc == 0 ? k.v.rc : rc;
        *changed |= k.v.changed;
    }
    arena_fini(&a);
    return rc < 0 ? err_set(e, rc, "a step of a rollout") : 0;
}

/* ---- questions ---- */

bool rollout_active(const struct desired_rollout *r)
{
    return r->state != DESIRED_DONE && r->state != DESIRED_UNDONE && r->state != DESIRED_FAILED;
}

const struct desired_rollout *rollout_of(const struct desired *d, const char *model)
{
    const struct desired_rollout *first = NULL;
    for (uint32_t i = 0; i < d->n_rollouts; i++) {
        const struct desired_rollout *r = &d->rollouts[i];
        if (!rollout_active(r) || strcmp(r->model, model) != 0)
            continue;
        if (r->state != DESIRED_PENDING) /* it has started */
            return r;
        if (!first)
            first = r;
    }
    return first;
}

uint32_t rollout_share(const struct desired *d, const char *model, const uint8_t *sha256)
{
    const struct desired_rollout *r = rollout_of(d, model);
    if (!r || r->kind != DESIRED_CANARY || r->share >= ALL || !same(r->to, sha256) ||
        (r->state != DESIRED_RUNNING && r->state != DESIRED_PAUSED))
        return 0;
    return r->share;
}

uint64_t rollout_epoch_end(const struct desired *d)
{
    uint64_t last = d->epoch;
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        const struct desired_assignment *a = &d->assignments[i];
        last = a->epoch > last ? a->epoch : last;
        last = a->until > last ? a->until : last;
    }
    for (uint32_t i = 0; i < d->n_rollouts; i++) {
        last = d->rollouts[i].epoch > last ? d->rollouts[i].epoch : last;
        last = d->rollouts[i].old_epoch > last ? d->rollouts[i].old_epoch : last;
    }
    return last < REGISTRY_FIRST_EPOCH ? REGISTRY_FIRST_EPOCH + 1 : last + 1;
}
