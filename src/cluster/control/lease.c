/* lease.c - see lease.h. */
#include "cluster/control/lease.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/buf.h"
#include "base/thread/cond.h"
#include "base/thread/executor.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "cluster/control/bucket.h"
#include "cluster/control/bus.h"
#include "cluster/control/desired_code.h"
#include "shoal/control/v1/control.pb-c.h"
#include "wire/pb.h"

#define KEY "controller"
#define FORMAT 1u
#define MS 1000000u
#define MAX_VALUE_BYTES 1024u
#define MAX_BASE (UINT64_C(1) << 62)
#define LISTEN_NS (1500u * (uint64_t)MS) /* before a lease that nobody has taken yet is taken */
enum {
    DEFAULT_TTL_MS = 10000,
    MIN_TTL_MS = 500,
    MAX_TTL_MS = 300000,
    MAX_WAIT_MS = 2000,
    HISTORY = 8,
};

struct lease {
    struct bus *bus;
    struct bucket *bucket;
    struct executor *x;
    lease_fn on_change;
    void *ctx;
    int (*claim)(void *ctx, uint64_t fence, struct err *e);
    void (*known)(void *ctx, struct lease_known *out);
    void *claim_ctx;
    char name[LEASE_MAX_NAME + 1];
    uint8_t run[16];
    uint32_t ttl_ms;
    unsigned replicas;
    pthread_t thread;
    bool threaded;

    /* the thread's */
    uint64_t revision;     /* newest seen */
    uint64_t seen_ns;      /* since when it is unchanged; 0: not seen yet */
    uint64_t seen_renewal; /* and by whom it was written */
    uint8_t seen_run[16];
    uint64_t expiry_ns; /* how long it must stay unchanged until it may be taken */
    uint64_t renewal;
    uint64_t base;       /* of my_fence */
    uint64_t my_fence;   /* 0: the lease is not ours */
    uint64_t last_fence; /* of this member, ever */
    /* When the last renewal of a lease in force was sent, which the others have heard of; 0: others
     * wrote since */
    uint64_t mine_ns;
    bool claimed;
    int claim_rc; /* of the last claim that failed, and with which fence */
    uint64_t claim_fence;
    bool doubted; /* the last renewal or claim failed */
    bool bucket_there;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    uint64_t valid_until_ns; /* 0: not held */
    struct lease_status status;
    uint64_t told_fence; /* fence known to the owner: 0 is not held; owner's thread only */
    struct executor_task task;
    bool posted, stop;
};

/* Counts also while the machine is suspended, which CLOCK_MONOTONIC does not. */
static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t ttl_ns(const struct lease *l)
{
    return (uint64_t)l->ttl_ms * MS;
}

/* ---- the value ------------------------------------------------------------------------------ */

int lease_parse(struct lease_value *out, const void *bytes, size_t n, struct err *e)
{
    Shoal__Control__V1__Lease *m = NULL;
    int rc = 0;
    *out = (struct lease_value){0};
    if (n <= MAX_VALUE_BYTES)
        m = shoal__control__v1__lease__unpack(pb_heap(), n, bytes);
    if (!m || m->format != FORMAT || desired_code_unknown(m) || m->run.len != sizeof(out->run) ||
        strlen(m->holder) > LEASE_MAX_NAME || m->ttl_ms < MIN_TTL_MS || m->ttl_ms > MAX_TTL_MS ||
        m->fence_base > MAX_BASE) {
        rc = err_set(e, SHOAL_EFORMAT, "the value is not a lease");
    } else {
        snprintf(out->holder, sizeof(out->holder), "%s", m->holder);
        memcpy(out->run, m->run.data, sizeof(out->run));
        out->renewal = m->renewal;
        out->ttl_ms = m->ttl_ms;
        out->base = m->fence_base;
    }
    if (m)
        shoal__control__v1__lease__free_unpacked(m, pb_heap());
    return rc;
}

uint64_t lease_expiry_ns(uint32_t mine_ms, uint32_t theirs_ms)
{
    uint64_t longer_ns = (uint64_t)(theirs_ms > mine_ms ? theirs_ms : mine_ms) * MS;
    return longer_ns + longer_ns / 10;
}

/* Writes our lease, or its end if holder is "".  As bucket_put. */
static int put(struct lease *l, char *holder, uint64_t expected, uint64_t *revision, struct err *e)
{
    Shoal__Control__V1__Lease m = SHOAL__CONTROL__V1__LEASE__INIT;
    struct buf b;
    m.format = FORMAT;
    m.holder = holder;
    m.run = (ProtobufCBinaryData){sizeof(l->run), l->run};
    m.renewal = ++l->renewal;
    m.ttl_ms = l->ttl_ms;
    m.fence_base = l->base;
    buf_init(&b, MAX_VALUE_BYTES);
    int rc = pb_put(&b, &m.base);
    rc = rc < 0 ? err_set(e, rc, "lease")
                : bucket_put(l->bucket, KEY, b.data, b.len, expected, NULL, revision, e);
    buf_fini(&b);
    return rc;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Under the lock. */
static void tell_owner(struct lease *l)
{
    if (l->posted || l->stop)
        return;
    l->posted = true;
    executor_post(l->x, &l->task);
}

static void set_held(struct lease *l, uint64_t valid_until_ns)
{
    pthread_mutex_lock(&l->lock);
    if (!l->status.held) {
        l->status.held = true;
        l->status.fence = l->my_fence;
        l->status.n_taken++;
        tell_owner(l);
    }
    l->valid_until_ns = valid_until_ns;
    pthread_mutex_unlock(&l->lock);
}

static void set_lost(struct lease *l, const char *why)
{
    pthread_mutex_lock(&l->lock);
    bool was = l->status.held;
    uint64_t fence = l->my_fence;
    l->valid_until_ns = 0;
    if (was) {
        l->status.held = false;
        l->status.fence = 0;
        l->status.n_lost++;
        tell_owner(l);
    }
    pthread_mutex_unlock(&l->lock);
    l->my_fence = 0;
    l->claimed = false;
    if (was)
        log_warn("control", "no longer controller fence=%llu: %s", (unsigned long long)fence, why);
}

static void note(struct lease *l, int rc, const struct err *e, const char *holder)
{
    pthread_mutex_lock(&l->lock);
    snprintf(l->status.error, sizeof(l->status.error), "%s", rc < 0 ? e->msg : "");
    if (holder)
        snprintf(l->status.holder, sizeof(l->status.holder), "%s", holder);
    l->status.revision = l->revision;
    pthread_mutex_unlock(&l->lock);
}

/* The lease as it is in NATS.  Remembers since when it has not changed. */
static int observe(struct lease *l, struct lease_value *v, bool *there, struct err *e)
{
    struct buf b;
    uint64_t revision = 0;
    buf_init(&b, MAX_VALUE_BYTES * 64);
    int rc = bucket_get(l->bucket, KEY, &b, &revision, e);
    *v = (struct lease_value){0};
    *there = rc == 0;
    if (rc == SHOAL_ENOTFOUND)
        rc = 0;
    else if (rc == 0 && lease_parse(v, buf_str(&b), b.len, e) < 0)
        snprintf(v->holder, sizeof(v->holder), "(unreadable)"); /* expires like any other */
    buf_fini(&b);
    if (rc < 0)
        return rc;
    /* A server that has lost its data counts revisions from 1 again: the value tells more. */
    if (!l->seen_ns || revision != l->revision || v->renewal != l->seen_renewal ||
        memcmp(v->run, l->seen_run, sizeof(v->run)) != 0) {
        l->revision = revision;
        l->seen_renewal = v->renewal;
        memcpy(l->seen_run, v->run, sizeof(l->seen_run));
        l->seen_ns = now_ns();
        l->expiry_ns = lease_expiry_ns(l->ttl_ms, v->ttl_ms);
    }
    return 0;
}

/* Whether it may be taken: it is free, was released, is ours from before, or has not been renewed.
 */
static bool is_free(const struct lease *l, const struct lease_value *v, bool there,
                    const struct lease_known *k)
{
    const uint64_t seen = now_ns() - l->seen_ns, lasts = l->expiry_ns;
    if (there)
        return !v->holder[0] || memcmp(v->run, l->run, sizeof(v->run)) == 0 || seen >= lasts;
    if (!l->known || (l->mine_ns && now_ns() - l->mine_ns < ttl_ns(l)))
        return true; /* nobody else could have taken it since */
    return seen >= (k->fence == 0 ? LISTEN_NS : lasts);
}

/* So that the fence will be above the known ones: the revision grows by at least 1. */
static uint64_t base_for(const struct lease *l, uint64_t base, uint64_t above)
{
    if (above > MAX_BASE)
        above = MAX_BASE;
    return above > base + l->revision ? above - l->revision : base;
}

static void contend(struct lease *l)
{
    struct lease_value v;
    struct lease_known k = {.fence = 0};
    struct err e = {0};
    uint64_t revision = 0, sent, asked;
    bool there;
    int rc = 0;
    if (!l->bucket_there && (rc = bucket_create(l->bucket, l->replicas, HISTORY, &e)) == 0)
        l->bucket_there = true;
    asked = now_ns();
    if (rc == 0)
        rc = observe(l, &v, &there, &e);
    if (rc < 0) {
        l->bucket_there = false; /* looked at again */
        note(l, rc, &e, NULL);
        return;
    }
    note(l, 0, &e, v.holder);
    if (l->known)
        l->known(l->claim_ctx, &k);
    /* It is not there, but somebody has held one that this member never saw, and may count on it.
     */
    if (!there && k.heard_ago_ns && k.heard_ago_ns < now_ns() - l->seen_ns)
        l->seen_ns = now_ns() - k.heard_ago_ns;
    if (there && memcmp(v.run, l->run, sizeof(v.run)) != 0)
        l->mine_ns = 0;
    sent = now_ns();
    /* This process stood still: what it has read is old, and its revision may have come again. */
    if (sent - asked > ttl_ns(l) / 2)
        return;
    if (!is_free(l, &v, there, &k))
        return;
    l->base = base_for(l, v.base, k.fence > l->last_fence ? k.fence : l->last_fence);
    rc = put(l, l->name, l->revision, &revision, &e);
    if (rc != 0) { /* 1: another one was faster */
        l->bucket_there = rc > 0;
        note(l, rc, &e, NULL);
        return;
    }
    l->revision = revision;
    l->my_fence = l->last_fence = l->base + revision;
    l->seen_ns = sent;
    l->doubted = false;
    l->claimed = l->claim == NULL;
    l->mine_ns = l->claimed ? sent : 0;
    note(l, 0, &e, l->name);
    if (l->claimed)
        set_held(l, sent + ttl_ns(l) * 9 / 10);
    log_info("control", "took the controller's lease fence=%llu name=%s",
             (unsigned long long)l->my_fence, l->name);
}

/* Whether the lease in NATS is ours: 1; 0: it is not; negative: it could not be read.  It may have
 * been written by a renewal whose answer did not arrive in time, which does not count. */
static int is_ours(struct lease *l, struct err *e)
{
    struct lease_value v;
    bool there;
    uint64_t sent = l->seen_ns;
    int rc = observe(l, &v, &there, e);
    l->seen_ns = sent;
    return rc < 0 ? rc : there && memcmp(v.run, l->run, sizeof(v.run)) == 0;
}

static void renew(struct lease *l)
{
    struct err e = {0};
    uint64_t revision = 0, sent = now_ns();
    uint64_t until = l->seen_ns + ttl_ns(l) * 9 / 10; /* seen_ns: when the last one was sent */
    if (sent >= until) {
        set_lost(l, "the lease could not be renewed in time");
        l->seen_ns = 0;
        return;
    }
    /* After a standstill or a failure NATS may have lost its data, and another member's lease may
     * have reached the revision that ours had. */
    int rc = l->doubted || sent - l->seen_ns > ttl_ns(l) / 2 ? is_ours(l, &e) : 1;
    if (rc < 0) {
        note(l, rc, &e, NULL); /* tried again soon */
        return;
    }
    rc = rc == 0 ? 1 : put(l, l->name, l->revision, &revision, &e);
    if (rc == 1 && is_ours(l, &e) == 1) {
        sent = now_ns();
        rc = put(l, l->name, l->revision, &revision, &e);
    }
    if (rc == 1) {
        set_lost(l, "another member has taken the lease");
        l->seen_ns = 0;
        return;
    }
    note(l, rc, &e, NULL);
    l->doubted = rc < 0;
    if (rc < 0 && bucket_last(l->bucket, &revision, &e) == SHOAL_ENOTFOUND) {
        set_lost(l, "NATS has lost it"); /* nobody else could take it since: it is ours again */
        l->bucket_there = false;
        l->revision = l->seen_ns = 0;
        return;
    }
    if (rc < 0)
        return; /* tried again soon */
    l->revision = revision;
    l->seen_ns = sent;
    l->mine_ns = l->claimed ? sent : 0;
    pthread_mutex_lock(&l->lock);
    l->status.n_renewed++;
    l->status.revision = revision;
    pthread_mutex_unlock(&l->lock);
    if (l->claimed)
        set_held(l, sent + ttl_ns(l) * 9 / 10);
}

/* Makes older controllers' writes fail, then the lease counts. */
static void claim(struct lease *l)
{
    struct err e = {0};
    int rc = l->claim(l->claim_ctx, l->my_fence, &e);
    if (rc < 0) {
        if (rc != l->claim_rc || l->my_fence != l->claim_fence) /* it is tried again soon */
            log_warn("control", "the lease is not in force yet: %s", e.msg);
        l->claim_rc = rc;
        l->claim_fence = l->my_fence;
        note(l, rc, &e, NULL);
        l->doubted = true;
        if (rc == SHOAL_ECHANGED) /* taken again, with a higher fence */
            l->my_fence = 0;
        return;
    }
    l->claimed = true;
    renew(l); /* claim may have taken long */
}

/* How long to wait until the next step: a third of the ttl if all is well, less after a failure. */
static uint64_t pause_ns(struct lease *l)
{
    pthread_mutex_lock(&l->lock);
    bool failed = l->status.error[0] != '\0';
    pthread_mutex_unlock(&l->lock);
    uint32_t r = 0;
    (void)!getrandom(&r, sizeof(r), 0);
    uint64_t base = ttl_ns(l) / (l->my_fence && failed ? 12 : l->my_fence ? 3 : 5);
    return l->my_fence ? base : base + base * (r % 100) / 200;
}

/* NATS lost its data, and with it a fence that this member had not heard of: members that follow it
 * would refuse every command. It is taken again with a higher one. */
static void heed_fences(struct lease *l)
{
    struct lease_known k = {.fence = 0};
    if (!l->my_fence || !l->known)
        return;
    l->known(l->claim_ctx, &k);
    if (k.fence > l->my_fence)
        set_lost(l, "members know a higher fence");
}

static void *run(void *arg)
{
    struct lease *l = arg;
    for (;;) {
        heed_fences(l);
        if (!l->my_fence)
            contend(l);
        else
            renew(l);
        if (l->my_fence && !l->claimed)
            claim(l);
        struct timespec at;
        int rc = 0;
        clock_gettime(CLOCK_MONOTONIC, &at);
        uint64_t until = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec + pause_ns(l);
        at = (struct timespec){(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        pthread_mutex_lock(&l->lock);
        while (!l->stop && rc == 0)
            rc = pthread_cond_timedwait(&l->wake, &l->lock, &at);
        bool stop = l->stop;
        pthread_mutex_unlock(&l->lock);
        if (stop)
            return NULL;
    }
}

/* ---- the owner ------------------------------------------------------------------------------ */

static void free_lease(struct lease *l)
{
    bucket_close(l->bucket);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

static void run_task(struct executor_task *t)
{
    struct lease *l = EXECUTOR_OF(t, struct lease, task);
    pthread_mutex_lock(&l->lock);
    l->posted = false;
    bool stop = l->stop;
    uint64_t fence = l->status.held ? l->status.fence : 0, told = l->told_fence;
    l->told_fence = fence;
    pthread_mutex_unlock(&l->lock);
    if (stop) {
        free_lease(l);
        return;
    }
    lease_fn fn = l->on_change;
    void *ctx = l->ctx;
    if (!fn || fence == told)
        return;
    if (told &&
        fence) { /* lost and regained since: this call reports the loss, the next one the gain */
        pthread_mutex_lock(&l->lock);
        l->told_fence = 0;
        tell_owner(l);
        pthread_mutex_unlock(&l->lock);
        fence = 0;
    }
    fn(ctx, fence != 0, fence ? fence : told); /* may close the lease */
}

int lease_open(struct lease **out, const struct lease_opts *o, struct executor *x,
               lease_fn on_change, void *ctx, struct err *e)
{
    uint32_t ttl = o->ttl_ms ? o->ttl_ms : DEFAULT_TTL_MS, wait = ttl / 4;
    struct lease *l;
    int rc;
    *out = NULL;
    if (ttl < MIN_TTL_MS || ttl > MAX_TTL_MS)
        return err_set(e, SHOAL_EINVAL, "a lease of %u ms: use %u to %u", ttl, MIN_TTL_MS,
                       MAX_TTL_MS);
    if (!o->name || !o->name[0] || strlen(o->name) > LEASE_MAX_NAME)
        return err_set(e, SHOAL_EINVAL, "a lease needs a member's name of 1 to %u bytes",
                       LEASE_MAX_NAME);
    l = mem_zalloc(sizeof(*l));
    if (!l)
        return err_set(e, SHOAL_ENOMEM, "lease");
    l->bus = o->bus;
    l->x = x;
    l->on_change = on_change;
    l->ctx = ctx;
    l->claim = o->claim;
    l->known = o->known;
    l->claim_ctx = o->claim_ctx;
    l->ttl_ms = ttl;
    l->replicas = o->replicas;
    l->task.fn = run_task;
    snprintf(l->name, sizeof(l->name), "%s", o->name);
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->wake);
    rc = bucket_open(&l->bucket, o->bus, "lease", wait > MAX_WAIT_MS ? MAX_WAIT_MS : wait, e);
    if (rc == 0 && getrandom(l->run, sizeof(l->run), 0) != (ssize_t)sizeof(l->run))
        rc = err_set(e, SHOAL_EIO, "no random bytes for the lease");
    if (rc == 0 && (rc = thread_create(&l->thread, "lease", run, l, e)) == 0)
        l->threaded = true;
    if (rc < 0) {
        lease_close(l);
        return rc;
    }
    *out = l;
    return 0;
}

void lease_close(struct lease *l)
{
    char nobody[] = "";
    uint64_t revision;
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    l->valid_until_ns = 0;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    if (l->threaded)
        pthread_join(l->thread, NULL);
    if (l->my_fence) /* if it fails, the lease expires */
        (void)!put(l, nobody, l->revision, &revision, NULL);
    if (!l->posted) /* else the task frees it */
        free_lease(l);
}

bool lease_held(struct lease *l, uint64_t *fence)
{
    pthread_mutex_lock(&l->lock);
    bool held = l->status.held && now_ns() < l->valid_until_ns;
    *fence = held ? l->status.fence : 0;
    pthread_mutex_unlock(&l->lock);
    return held;
}

void lease_get_status(struct lease *l, struct lease_status *out)
{
    pthread_mutex_lock(&l->lock);
    *out = l->status;
    out->held = l->status.held && now_ns() < l->valid_until_ns;
    if (!out->held)
        out->fence = 0;
    pthread_mutex_unlock(&l->lock);
}
