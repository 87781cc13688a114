/* agent.c - see agent.h. */
#include "cluster/agent/agent.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/thread/executor.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/agent/agent_plan.h"
#include "cluster/control/desired.h"
#include "cluster/messages/node_state.h"
#include "host/registry.h"

#define STEP_NS 50000000u    /* between two looks while something is under way */
#define COPIES_NS 500000000u /* between two looks at the copies of a model */
#define DEFAULT_GRACE_MS 1500u
#define DEFAULT_RETRY_MS 15000u
#define MAX_RETRY_SHIFT 8u /* an hour, with the default */
#define MS_NS 1000000u

/* A model assigned to this node. */
struct held {
    struct held *next;
    struct agent_item item;
    struct desired_model model; /* name and source are copies */
    char *source;
    char *path;        /* of its bytes, once it was added */
    uint32_t n_copies; /* replicas assigned here, at least 1 */
    uint32_t n_extra;  /* in the registry, beside the first */
    uint64_t copy_ns;  /* no further copy is tried before this */
    char error[320];
    uint32_t progress;
    uint64_t leave_ns; /* when it has to leave; 0: it stays */
    uint32_t n_failures;
    uint64_t retry_ns; /* FAILED: when it is tried again */
    bool added;        /* this agent added it to the registry */
    bool own;          /* the node's configuration has it */
    bool hidden;       /* leaves, and its grace period has ended */
    bool damaged;      /* loaded, but its bytes on disk are damaged */
    struct registry_service service;
};

struct agent {
    struct agent_opts opts;
    char *name;
    struct executor_timer timer;
    uint64_t fence; /* the highest fence followed so far */
    uint64_t refused;
    pthread_mutex_t lock; /* all below; never held while the registry calls back */
    struct held *list;
    uint64_t version; /* version of the state being followed */
    bool waits;       /* see agent_wait */
    bool set_aside;
};

static const uint8_t *sum_of(const struct held *h)
{
    return h->item.sha256;
}

static void tell(struct agent *a, enum event_log_kind kind, const struct held *h, const char *text)
{
    struct event_log_entry e = {.kind = kind,
                                .node = a->name,
                                .model = h ? h->item.name : NULL,
                                .text = text,
                                .has_sha256 = h != NULL};
    if (h)
        memcpy(e.sha256, sum_of(h), SHA256_BYTES);
    if (a->opts.event)
        a->opts.event(a->opts.event_ctx, &e);
}

static void fail(struct agent *a, struct held *h, const char *why)
{
    uint32_t shift = h->n_failures < MAX_RETRY_SHIFT ? h->n_failures : MAX_RETRY_SHIFT;
    h->item.phase = AGENT_FAILED;
    h->retry_ns = clock_ns() + ((uint64_t)a->opts.retry_ms * MS_NS << shift);
    h->n_failures++;
    snprintf(h->error, sizeof(h->error), "%s", why[0] ? why : "it could not be loaded");
    log_warn("agent", "model %s cannot be loaded here: %s", h->item.name, h->error);
    tell(a, EVENT_LOG_MODEL_FAILED, h, h->error);
}

/* ---- the registry ---- */

struct look { /* one model in the registry */
    const char *name;
    const uint8_t *sum;
    bool there, own, unknown_sum;
    enum registry_state state;
    uint32_t users;       /* of all copies */
    uint32_t failed_copy; /* a copy above the first that could not be loaded; 0: none */
    char error[320];
};

static void look_at(void *ctx, const struct registry_model *m)
{
    struct look *l = ctx;
    if (strcmp(m->name, l->name) != 0)
        return;
    const uint8_t *sum = registry_sum(m);
    if (!m->versioned) {
        l->own = true;
        l->unknown_sum |= sum == NULL;
    }
    if (!sum || memcmp(sum, l->sum, SHA256_BYTES) != 0)
        return;
    l->users += m->users;
    if (m->copy > 0) {
        if (m->slot->state == REGISTRY_FAILED)
            l->failed_copy = m->copy;
        return;
    }
    l->there = true;
    l->state = m->slot->state;
    snprintf(l->error, sizeof(l->error), "%s", m->slot->error);
}

static struct look look_up(struct agent *a, const struct held *h)
{
    struct look l = {.name = h->item.name, .sum = sum_of(h)};
    registry_each_version(a->opts.registry, look_at, &l);
    return l;
}

/* Tells the registry which requests it answers. */
static void set_service(struct agent *a, struct held *h)
{
    struct registry_service s = h->service;
    struct err e = {0};
    if ((a->waits || h->damaged) && s.duty == REGISTRY_SERVE)
        s.duty = h->damaged ? REGISTRY_STAGE : REGISTRY_WAIT;
    if ((h->added || h->own) &&
        registry_set_service(a->opts.registry, h->item.name, sum_of(h), &s, &e) < 0)
        fail(a, h, e.msg);
}

/* It answers no new requests. */
static void hide(struct agent *a, struct held *h)
{
    h->service.duty = REGISTRY_LEAVE;
    set_service(a, h);
    h->hidden = true;
}

static int add_one(struct agent *a, const struct held *h, const char *path, uint32_t copy,
                   struct err *e)
{
    struct registry_spec spec = {.name = h->item.name,
                                 .path = path,
                                 .pinned = true,
                                 .sum = sum_of(h),
                                 .copy = copy,
                                 .staged = true}; /* until its requests are known */
    if (a->opts.source.describe)
        a->opts.source.describe(a->opts.source.ctx, &spec);
    return registry_add(a->opts.registry, &spec, e);
}

/* Adds it to the registry, which loads it. */
static void add(struct agent *a, struct held *h, const char *path)
{
    struct err e = {0};
    if (add_one(a, h, path, 0, &e) < 0) {
        fail(a, h, e.msg);
        return;
    }
    mem_free(h->path);
    h->path = mem_strdup(path);
    h->added = true;
    h->item.phase = AGENT_LOADING;
    set_service(a, h);
    log_info("agent", "loading model %s from %s", h->item.name, path);
}

static void find(struct agent *a, struct held *h)
{
    const struct look l = look_up(a, h);
    char path[PATH_MAX];
    struct err e = {0};
    if (l.own && l.there) { /* the configuration has the same bytes */
        h->item.phase = l.state == REGISTRY_READY ? AGENT_READY : AGENT_FINDING;
        h->own = true;
        set_service(a, h);
        if (l.state == REGISTRY_FAILED)
            fail(a, h, l.error);
        else if (l.state == REGISTRY_UNLOADED &&
                 registry_load(a->opts.registry, h->item.name, &e) < 0)
            fail(a, h, e.msg);
        return;
    }
    if (l.own && l.unknown_sum)
        return; /* its hash is being computed */
    switch (a->opts.source.find(a->opts.source.ctx, &h->model, sum_of(h), path, sizeof(path),
                                &h->progress, &e)) {
    case AGENT_HERE:
        add(a, h, path);
        break;
    case AGENT_COMING: /* the last error is shown while it is retried */
        snprintf(h->error, sizeof(h->error), "%s", e.code ? e.msg : "");
        break;
    case AGENT_NOWHERE:
        fail(a, h, e.msg);
        break;
    }
}

/* ---- copies ---- */

static void drop_copy(struct agent *a, struct held *h)
{
    struct err e = {0};
    if (registry_remove_copy(a->opts.registry, h->item.name, sum_of(h), h->n_extra, &e) < 0)
        log_debug("agent", "%s", e.msg); /* it was removed by another change */
    h->n_extra--;
}

/* A copy that cannot be loaded is tried again later; the others serve meanwhile. */
static bool delays_copies(const struct agent *a, struct held *h, const char *why)
{
    h->copy_ns = clock_ns() + (uint64_t)a->opts.retry_ms * MS_NS;
    log_warn("agent", "no further replica of model %s can be loaded here: %s", h->item.name, why);
    return true;
}

static bool wants_copies(const struct held *h)
{
    return h->added && (h->n_copies > 1 || h->n_extra > 0);
}

/* Brings the copies beside the first to their number.  True: it must be called again. */
static bool tend_copies(struct agent *a, struct held *h, uint64_t now)
{
    struct err e = {0};
    if (!wants_copies(h))
        return false;
    const struct look l = look_up(a, h);
    if (l.failed_copy > 0 && l.failed_copy <= h->n_extra) {
        while (h->n_extra >= l.failed_copy)
            drop_copy(a, h);
        return delays_copies(a, h, "it failed to load");
    }
    while (h->n_extra + 1 > h->n_copies)
        drop_copy(a, h); /* its requests are finished; new ones go to the others */
    while (h->path && h->n_extra + 1 < h->n_copies && now >= h->copy_ns) {
        if (add_one(a, h, h->path, h->n_extra + 1, &e) < 0)
            return delays_copies(a, h, e.msg);
        h->n_extra++;
        set_service(a, h);
        log_info("agent", "loading replica %u of model %s", h->n_extra + 1, h->item.name);
    }
    return h->n_copies > 1; /* to notice one that fails */
}

static bool doubt(struct agent *a, const struct held *h)
{
    return a->opts.source.doubt && a->opts.source.doubt(a->opts.source.ctx, sum_of(h));
}

static void watch_loading(struct agent *a, struct held *h)
{
    const struct look l = look_up(a, h);
    struct err e = {0};
    if (!l.there) {
        fail(a, h, "it was removed while loading");
    } else if (l.state == REGISTRY_READY) {
        h->item.phase = AGENT_READY;
        tell(a, EVENT_LOG_MODEL_LOADED, h, desired_duty_text((enum desired_duty)h->item.duty));
    } else if (l.state == REGISTRY_FAILED) {
        fail(a, h, l.error);
        if (registry_remove_version(a->opts.registry, h->item.name, sum_of(h), &e) < 0)
            log_debug("agent", "%s", e.msg); /* it was removed by another change */
        h->added = false;
        h->n_extra = 0;
        if (doubt(a, h) && h->n_failures == 1)
            h->retry_ns = clock_ns(); /* damage is mended at once, anything else is tried later */
    }
}

/* Loads it anew, when its last request is done. */
static void mend(struct agent *a, struct held *h)
{
    const struct look l = look_up(a, h);
    struct err e = {0};
    if (l.there && l.users > 0)
        return;
    if (l.there && registry_remove_version(a->opts.registry, h->item.name, sum_of(h), &e) < 0)
        log_debug("agent", "%s", e.msg);
    h->added = h->damaged = false;
    h->n_extra = 0;
    h->item.phase = AGENT_FINDING;
}

/* True: it has left. */
static bool leave(struct agent *a, struct held *h, uint64_t now)
{
    struct err e = {0};
    if (!h->added)
        return true; /* the configuration's stays */
    if (now - h->leave_ns < (uint64_t)a->opts.grace_ms * MS_NS)
        return false; /* until gateways know about it */
    if (!h->hidden) {
        hide(a, h);
        return false;
    }
    const struct look l = look_up(a, h);
    if (l.there && l.users > 0)
        return false;
    if (l.there && registry_remove_version(a->opts.registry, h->item.name, sum_of(h), &e) < 0)
        log_debug("agent", "%s", e.msg);
    tell(a, EVENT_LOG_MODEL_UNLOADED, h, "");
    return true;
}

/* ---- steps ---- */

static void free_held(struct agent *a, struct held *h)
{
    if (a->opts.source.release)
        a->opts.source.release(a->opts.source.ctx, sum_of(h));
    mem_free(h->source);
    mem_free(h->path);
    mem_free(h);
}

/* Steps all items and returns when to step again. UINT64_MAX: nothing is in progress. */
static uint64_t step_all(struct agent *a)
{
    uint64_t now = clock_ns(), next = UINT64_MAX;
    for (struct held **at = &a->list; *at;) {
        struct held *h = *at;
        bool gone = false, tends = false;
        if (h->item.phase == AGENT_FAILED && now >= h->retry_ns)
            h->item.phase = AGENT_FINDING;
        if (h->item.phase == AGENT_FINDING)
            find(a, h);
        else if (h->item.phase == AGENT_LOADING)
            watch_loading(a, h);
        else if (h->item.phase == AGENT_LEAVING)
            gone = leave(a, h, now);
        else if (h->item.phase == AGENT_READY && h->damaged)
            mend(a, h);
        else if (h->item.phase == AGENT_READY)
            tends = tend_copies(a, h, now);
        const bool rests = h->item.phase == AGENT_READY && !h->damaged && !wants_copies(h);
        uint64_t due = rests                           ? UINT64_MAX
                       : h->item.phase == AGENT_FAILED ? h->retry_ns
                                                       : now + (tends ? COPIES_NS : STEP_NS);
        next = due < next ? due : next;
        if (!gone) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        free_held(a, h);
    }
    return next;
}

static void on_timer(struct executor_timer *t)
{
    struct agent *a = EXECUTOR_OF(t, struct agent, timer);
    pthread_mutex_lock(&a->lock);
    uint64_t next = step_all(a);
    pthread_mutex_unlock(&a->lock);
    if (next != UINT64_MAX)
        executor_timer_set(a->opts.executor, t, next);
}

/* ---- following ---- */

static void take(struct agent *a, const struct desired *d, const struct desired_assignment *x)
{
    const struct desired_model *m = desired_find_model(d, x->model);
    struct held *h = mem_zalloc(sizeof(*h));
    if (h)
        h->source = mem_strdup(agent_plan_source(d, x));
    if (!h || !h->source || strlen(x->model) >= sizeof(h->item.name)) {
        log_warn("agent", "cannot accept model %s: out of memory", x->model);
        mem_free(h ? h->source : NULL);
        mem_free(h);
        return;
    }
    snprintf(h->item.name, sizeof(h->item.name), "%s", x->model);
    memcpy(h->item.sha256, x->sha256, SHA256_BYTES);
    h->item.duty = x->duty;
    h->item.phase = AGENT_FINDING;
    h->n_copies = desired_copies(x);
    h->service = agent_plan_service(d, x);
    h->model.name = h->item.name;
    h->model.source = h->source;
    memcpy(h->model.sha256, x->sha256, SHA256_BYTES);
    h->model.memory_bytes = m ? m->memory_bytes : 0;
    h->next = a->list;
    a->list = h;
}

static void change(struct agent *a, struct held *h, const struct desired *d)
{
    const struct desired_assignment *x =
        desired_find_assignment(d, a->name, h->item.name, sum_of(h));
    switch (agent_plan_item(&h->item, x ? x->duty : 0)) {
    case AGENT_GOES:
        return;
    case AGENT_LEAVE:
        h->leave_ns = clock_ns();
        h->item.phase = AGENT_LEAVING;
        h->item.duty = DESIRED_LEAVE;
        return;
    case AGENT_RETURN:
        h->leave_ns = 0;
        h->hidden = false;
        h->error[0] = '\0';
        h->item.phase = h->added ? AGENT_LOADING : AGENT_FINDING;
        break;
    case AGENT_STAY:
        break;
    }
    h->item.duty = x->duty;
    h->n_copies = desired_copies(x);
    h->service = agent_plan_service(d, x);
    set_service(a, h);
}

static bool has(const struct agent *a, const struct desired_assignment *x)
{
    for (const struct held *h = a->list; h; h = h->next)
        if (memcmp(sum_of(h), x->sha256, SHA256_BYTES) == 0 && strcmp(h->item.name, x->model) == 0)
            return true;
    return false;
}

/* A model of the configuration that answers other requests than it should. */
struct misplaced {
    const struct agent *agent;
    const struct desired *desired;
    char name[128];
    uint8_t sum[SHA256_BYTES];
    struct registry_service service; /* as it should be */
    bool found;
};

/* An old version in the configuration must not serve alongside the shoal's; any other one serves,
 * unless an assignment restricts its requests. */
static void find_misplaced(void *ctx, const struct registry_model *m)
{
    struct misplaced *k = ctx;
    const uint8_t *sum = registry_sum(m);
    if (k->found || m->versioned || !sum || strlen(m->name) >= sizeof(k->name))
        return;
    const struct desired_model *d = desired_find_model(k->desired, m->name);
    const struct desired_assignment *x =
        desired_find_assignment(k->desired, k->agent->name, m->name, sum);
    struct registry_service want;
    memset(&want, 0, sizeof(want)); /* the registry compares all of it */
    want.duty = d && memcmp(d->sha256, sum, SHA256_BYTES) != 0 ? REGISTRY_LEAVE : REGISTRY_SERVE;
    if ((x && x->duty != DESIRED_LEAVE) || memcmp(&want, &m->service, sizeof(want)) == 0)
        return;
    k->found = true;
    k->service = want;
    snprintf(k->name, sizeof(k->name), "%s", m->name);
    memcpy(k->sum, sum, SHA256_BYTES);
}

static void place_own(struct agent *a, const struct desired *d)
{
    struct err e = {0};
    for (;;) {
        struct misplaced k = {.agent = a, .desired = d};
        registry_each_version(a->opts.registry, find_misplaced, &k);
        if (!k.found || registry_set_service(a->opts.registry, k.name, k.sum, &k.service, &e) < 0)
            return;
        log_info(
            "agent",
            k.service.duty == REGISTRY_LEAVE
                ? "the configured model %s differs from the shoal's version: it gets no requests"
                : "the configured model %s gets requests again",
            k.name);
    }
}

void agent_follow(struct agent *a, const struct desired *d)
{
    if (!agent_plan_may_follow(d, a->fence)) {
        char text[160];
        snprintf(
            text, sizeof(text),
            "ignoring the state of a replaced controller: its fence is %llu, but %llu was seen",
            (unsigned long long)d->fence, (unsigned long long)a->fence);
        if (a->refused != d->fence) { /* once for each */
            log_warn("agent", "refused %s", text);
            tell(a, EVENT_LOG_REFUSED, NULL, text);
        }
        a->refused = d->fence;
        return;
    }
    a->fence = d->fence;
    pthread_mutex_lock(&a->lock);
    for (struct held *h = a->list; h; h = h->next)
        change(a, h, d);
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        const struct desired_assignment *x = &d->assignments[i];
        if (strcmp(x->node, a->name) == 0 && x->duty != DESIRED_LEAVE && !has(a, x))
            take(a, d, x);
    }
    place_own(a, d);
    registry_set_epoch(a->opts.registry, d->epoch, agent_plan_epoch_end(d));
    a->version = d->version;
    a->set_aside = agent_plan_set_aside(d, a->name);
    pthread_mutex_unlock(&a->lock);
    executor_timer_set(a->opts.executor, &a->timer, clock_ns());
}

void agent_damaged(struct agent *a, const uint8_t sha256[SHA256_BYTES])
{
    pthread_mutex_lock(&a->lock);
    for (struct held *h = a->list; h; h = h->next)
        if (memcmp(sum_of(h), sha256, SHA256_BYTES) == 0 && h->added && !h->damaged &&
            h->item.phase != AGENT_LEAVING && doubt(a, h)) {
            h->damaged = true;
            set_service(a, h);
            tell(a, EVENT_LOG_MODEL_FAILED, h, "its file is damaged: it is loaded anew");
        }
    pthread_mutex_unlock(&a->lock);
    executor_timer_set(a->opts.executor, &a->timer, clock_ns());
}

void agent_wait(struct agent *a, bool waits)
{
    pthread_mutex_lock(&a->lock);
    bool changes = a->waits != waits;
    a->waits = waits;
    for (struct held *h = a->list; changes && h; h = h->next) {
        if (!waits && h->item.phase == AGENT_LEAVING && h->added)
            hide(a, h);
        else
            set_service(a, h);
    }
    pthread_mutex_unlock(&a->lock);
}

/* ---- telling ---- */

/* What it does, which while it waits is not what it should. */
static uint32_t told_duty(const struct agent *a, const struct held *h)
{
    return (a->waits || h->damaged) && h->item.duty == DESIRED_SERVE ? DESIRED_STAGE : h->item.duty;
}

static struct node_model *find_model(struct node_model *list, uint32_t n, const struct held *h)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i].duty && list[i].sum && memcmp(list[i].sum, sum_of(h), SHA256_BYTES) == 0 &&
            strcmp(list[i].name, h->item.name) == 0)
            return &list[i];
    return NULL;
}

void agent_fill(struct agent *a, struct node_state *s, struct arena *arena)
{
    uint32_t n = s->n_models, n_held = 0;
    pthread_mutex_lock(&a->lock);
    for (const struct held *h = a->list; h; h = h->next)
        n_held++;
    struct node_model *list = arena_zalloc_n(arena, n + n_held, sizeof(*list));
    if (list && n > 0)
        memcpy(list, s->models, n * sizeof(*list));
    for (const struct held *h = a->list; list && h; h = h->next) {
        struct node_model *m = find_model(list, s->n_models, h);
        if (m) {
            m->duty = told_duty(a, h);
        } else if (h->added || h->item.phase == AGENT_FINDING || h->item.phase == AGENT_FAILED) {
            const uint8_t *sum =
                (const uint8_t *)arena_copy(arena, (const char *)sum_of(h), SHA256_BYTES);
            list[n++] = (struct node_model){
                .name = arena_printf(arena, "%s", h->item.name),
                .sum = sum,
                .state = h->item.phase == AGENT_FAILED ? REGISTRY_FAILED : REGISTRY_LOADING,
                .duty = told_duty(a, h),
                .progress = h->progress,
                .error = arena_printf(arena, "%s", h->error)};
        }
    }
    if (list) {
        s->models = list;
        s->n_models = n;
    }
    s->desired = a->version;
    s->draining |= a->set_aside;
    pthread_mutex_unlock(&a->lock);
}

/* ---- lifetime ---- */

int agent_create(struct agent **out, const struct agent_opts *o, struct err *e)
{
    struct agent *a = mem_zalloc(sizeof(*a));
    *out = NULL;
    if (!a || !(a->name = mem_strdup(o->name))) {
        mem_free(a);
        return err_set(e, SHOAL_ENOMEM, "agent of the node");
    }
    a->opts = *o;
    a->opts.grace_ms = o->grace_ms ? o->grace_ms : DEFAULT_GRACE_MS;
    a->opts.retry_ms = o->retry_ms ? o->retry_ms : DEFAULT_RETRY_MS;
    a->timer.fn = on_timer;
    pthread_mutex_init(&a->lock, NULL);
    registry_set_epoch(o->registry, 0, 1); /* no epoch is known until a state is followed */
    *out = a;
    return 0;
}

void agent_destroy(struct agent *a)
{
    if (!a)
        return;
    executor_timer_clear(a->opts.executor, &a->timer);
    while (a->list) {
        struct held *h = a->list;
        a->list = h->next;
        free_held(a, h);
    }
    pthread_mutex_destroy(&a->lock);
    mem_free(a->name);
    mem_free(a);
}
