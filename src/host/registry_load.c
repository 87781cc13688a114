/* registry_load.c - the registry's loading thread: loads, unloads, and keeps to the memory budget.
 */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/engine_chained.h"
#include "host/registry_int.h"

/* delay before a process is restarted, which doubles with every further crash in a row */
#define MAX_NAME_BYTES 256u
#define MIN_RESTART_NS 100000000u
#define MAX_RESTART_NS 30000000000u
#define MAX_WANTED_RESTART_NS 1000000000u /* while requests wait for it */
#define MIN_CALM_NS 1000000000u
#define CALM_FACTOR 8u      /* a process that ran this many times its last backoff resets it */
#define MAX_LOAD_CRASHES 4u /* while loading, one after the other: then it has failed */

static bool on_progress(void *ctx, double part)
{
    struct registry_slot *s = ctx;
    atomic_store_explicit(&s->progress, (uint32_t)(part * 1000.0), memory_order_relaxed);
    return s->all->stop;
}

/* The loaded file to unload first: not pinned, not in use, lowest priority, longest idle. */
static struct registry_slot *find_victim(struct registry *r, int32_t priority)
{
    struct registry_slot *best = NULL;
    for (struct registry_slot *s = r->slots; s; s = s->next) {
        if (s->state != REGISTRY_READY || s->spec.pinned || s->users > 0 ||
            s->spec.priority > priority)
            continue;
        if (!best || s->spec.priority < best->spec.priority ||
            (s->spec.priority == best->spec.priority && s->last_used_ns < best->last_used_ns))
            best = s;
    }
    return best;
}

/* Memory of constraints beyond what the loaded models have reserved; the lock is held. */
static size_t constraint_bytes(const struct registry *r)
{
    size_t sum = 0;
    for (const struct registry_slot *s = r->slots; s; s = s->next) {
        struct shoal_engine_info info = {.size = sizeof(info)};
        if (s->state == REGISTRY_READY && s->engine && shoal_engine_info(s->engine, &info) == 0)
            sum += info.constraint_bytes;
    }
    return sum;
}

/* The adapter is closed, and its base stays; the lock is held. */
static void close_adapter(struct registry *r, struct registry_slot *s)
{
    registry_detach(s);
    shoal_adapter_close(s->adapter);
    s->adapter = NULL;
    s->engine = NULL;
    r->used_bytes -= s->bytes;
    s->bytes = 0;
    s->want_unload = s->want_load = false;
    registry_set_state(s, REGISTRY_UNLOADED);
    log_info("registry", "unloaded path=%s", s->path);
}

/* The lock is held, and released while the engine closes. */
static void close_engine(struct registry *r, struct registry_slot *s)
{
    struct shoal_engine *en = s->engine;
    if (s->base) {
        close_adapter(r, s);
        return;
    }
    /* nobody uses its adapters: their users would be its own */
    for (struct registry_slot *a = r->slots; a; a = a->next)
        if (a->base == s && a->state == REGISTRY_READY)
            close_adapter(r, a);
    s->engine = NULL;
    registry_set_state(s, REGISTRY_UNLOADING);
    registry_detach(s);
    pthread_mutex_unlock(&r->lock);
    if (s->spec.apart)
        r->opts.apart->close(r->opts.apart->ctx, s->serial);
    else if (!s->lent)
        shoal_engine_close(en);
    pthread_mutex_lock(&r->lock);
    r->used_bytes -= s->bytes;
    s->bytes = 0;
    s->want_unload = false;
    registry_set_state(s, s->want_load ? REGISTRY_LOADING : REGISTRY_UNLOADED);
    s->want_load = false;
    log_info("registry", "unloaded path=%s", s->path);
}

/* A model that was opened, in this process or isolated. */
struct opened {
    struct shoal_engine *engine;
    struct shoal_adapter *adapter; /* of that engine, which is the base's; NULL: no adapter */
    struct registry_apart_info apart;
};

static void set_ready(struct registry *r, struct registry_slot *s, const struct opened *n)
{
    struct shoal_engine_info info = {.size = sizeof(info), .kernels = "apart"};
    if (n->adapter) {
        info.kernels = "of its base";
        s->adapter = n->adapter;
        s->kinds = s->base->kinds;
        s->n_ctx = s->base->n_ctx;
        s->bytes = shoal_adapter_bytes(n->adapter);
    } else if (n->engine) {
        shoal_engine_info(n->engine, &info);
        s->kinds = info.kinds;
        s->images = info.images != 0;
        s->n_ctx = info.n_ctx;
        s->bytes = info.weights_bytes + info.scratch_bytes + info.kv_bytes;
        s->load_ms = info.load_ms;
    } else {
        s->kinds = n->apart.kinds;
        s->images = n->apart.images;
        s->n_ctx = n->apart.n_ctx;
        s->bytes = n->apart.bytes;
        s->load_ms = n->apart.load_ms;
    }
    s->engine = n->engine;
    r->used_bytes += s->bytes;
    registry_set_state(s, REGISTRY_READY);
    pthread_cond_signal(&r->hash_work);
    s->last_used_ns = s->ready_ns = clock_ns();
    s->n_load_crashes = 0;
    s->error[0] = '\0';
    log_info("registry", "loaded path=%s mib=%zu ms=%.0f kernels=%s", s->path, s->bytes >> 20,
             s->load_ms, info.kernels);
}

static void finish_load(struct registry *r, struct registry_slot *s, const struct opened *n, int rc,
                        const struct err *e)
{
    if (rc == 0 && n) {
        set_ready(r, s, n);
    } else {
        registry_set_state(s, REGISTRY_FAILED);
        s->n_crashes = s->n_load_crashes = 0; /* a new request resets the count */
        s->error_code = rc;
        snprintf(s->error, sizeof(s->error), "%s", e->msg);
        if (rc == SHOAL_ECANCELLED) /* only a server that stops does that */
            log_info("registry", "not loaded path=%s: %s", s->path, e->msg);
        else
            log_error("registry", "cannot load path=%s: %s", s->path, e->msg);
    }
    struct registry_wait *list = s->waiting;
    s->waiting = NULL;
    for (struct registry_wait *w = list; w && rc == 0; w = w->next) {
        registry_slot_use(s);
        w->model->users++;
    }
    pthread_mutex_unlock(&r->lock);
    while (list) {
        struct registry_wait *w = list;
        list = w->next;
        w->fn(w, w->model, rc);
    }
    pthread_mutex_lock(&r->lock);
}

static int open_average(struct registry *r, struct registry_slot *s,
                        const struct shoal_engine_opts *opts, struct shoal_engine **out,
                        struct err *e)
{
    struct shoal_engine_opts o = *opts;
    struct registry_parts p;
    int rc = registry_find_parts(r, s, &p, e);
    if (rc < 0)
        return rc;
    o.average_paths = (const char *const *)&p.paths[1];
    o.average_weights = p.weights;
    o.n_average = p.n - 1;
    rc = shoal_engine_open(out, p.paths[0], &o, e);
    registry_parts_fini(&p);
    return rc;
}

static int open_chained(struct registry *r, struct registry_slot *s,
                        const struct shoal_engine_opts *o, struct shoal_engine **out, struct err *e)
{
    struct chain chain = {NULL, NULL};
    if (!r->opts.chain)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%s: only a node of a shoal can shard a model: it needs cluster.certs and "
                       "cluster.listen",
                       s->path);
    int rc = r->opts.chain(r->opts.ctx, s->path, s->spec.shard, &chain, e);
    return rc < 0 ? rc : engine_open_chained(out, s->path, o, &chain, e);
}

/* Opens the model within the remaining memory; without the lock. */
static int open_model(struct registry *r, struct registry_slot *s, size_t memory, const char *name,
                      struct opened *out, struct err *e)
{
    struct shoal_engine_opts o = {
        .size = sizeof(o),
        .n_ctx = s->spec.n_ctx,
        .max_tasks = s->spec.max_tasks,
        .max_queue = s->spec.max_queue,
        .n_threads = s->spec.n_threads,
        .kv_bytes = s->spec.kv_bytes,
        .kv_q8 = s->spec.kv_q8,
        .context_shift = s->spec.context_shift,
        .drafts = s->spec.no_drafts ? SHOAL_DRAFTS_NEVER : SHOAL_DRAFTS_AS_THEY_PAY,
        .stream_save_ms = s->spec.stream_save_ms ? s->spec.stream_save_ms : REGISTRY_STREAM_SAVE_MS,
        .stream_ttl_ms = s->spec.stream_ttl_ms,
        .max_streams = s->spec.max_streams,
        .int8 = s->spec.int8,
        .memory_bytes = memory,
        .cache_dir = r->cache_dir,
        .key_file = s->spec.key_file,
        .progress = on_progress,
        .progress_ctx = s};
    *out = (struct opened){.engine = NULL};
    if (s->base) { /* this thread alone would close it */
        const uint64_t start = clock_ns();
        out->engine = s->base->engine;
        int rc = shoal_adapter_open(&out->adapter, out->engine, s->path, s->spec.adapter_scale, e);
        s->load_ms = (double)(clock_ns() - start) / 1e6;
        return rc;
    }
    if (s->spec.n_parts > 0)
        return open_average(r, s, &o, &out->engine, e);
    if (s->spec.shard[0])
        return open_chained(r, s, &o, &out->engine, e);
    if (!s->spec.apart)
        return shoal_engine_open(&out->engine, s->path, &o, e);
    return r->opts.apart->open(r->opts.apart->ctx, s, name, memory, r->cache_dir, &r->stop,
                               &out->apart, e);
}

/* The first name of a slot, copied: it may be removed while its model is loaded. */
static void name_of(struct registry *r, const struct registry_slot *s, char *out, size_t cap)
{
    const struct registry_model *m = r->list;
    while (m && m->slot != s)
        m = m->next;
    snprintf(out, cap, "%s", m ? m->name : "model");
}

/* How long a model's crashed process waits for its restart, by its earlier crashes in a row. */
static uint64_t restart_wait(uint32_t n_crashes)
{
    uint64_t wait = (uint64_t)MIN_RESTART_NS << (n_crashes < 16 ? n_crashes : 16);
    return wait < MAX_RESTART_NS ? wait : MAX_RESTART_NS;
}

/* A request that was interrupted waits for the next process, and only for so long: it must not fail
 * because of a pause of our own.  One that ends process after process is given up by the relay
 * (cluster/patience.h). */
static void back_off(struct registry_slot *s)
{
    uint64_t wait = restart_wait(s->n_crashes);
    if (s->users > 0 && wait > MAX_WANTED_RESTART_NS)
        wait = MAX_WANTED_RESTART_NS;
    s->not_before_ns = clock_ns() + wait;
    s->n_crashes++;
}

/* Whether a failed load is retried: after a crashed process, and not too often. */
static bool tries_again(struct registry_slot *s, const struct opened *n, int rc,
                        const struct err *e)
{
    if (rc == 0 || !n->apart.crashed || s->all->stop || ++s->n_load_crashes >= MAX_LOAD_CRASHES)
        return false;
    back_off(s);
    s->n_restarts++;
    snprintf(s->error, sizeof(s->error), "%s", e->msg);
    log_warn("registry", "path=%s: %s; restarting it in %llu ms", s->path, e->msg,
             (unsigned long long)((s->not_before_ns - clock_ns()) / 1000000u));
    return true;
}

/* Asks whether the files may be loaded, for every name. */
static int check_trust(struct registry *r, struct registry_slot *s, struct err *e)
{
    char signer[REGISTRY_SIGNER_BYTES] = "", (*copies)[MAX_NAME_BYTES] = NULL;
    const char **names = NULL;
    struct registry_parts p = {.n = 0};
    size_t n = 0;
    if (!r->opts.trusted)
        return 0;
    pthread_mutex_lock(&r->lock);
    size_t cap = (size_t)s->n_names + 1;
    copies = mem_zalloc_n(cap, sizeof(*copies));
    names = mem_zalloc_n(cap, sizeof(*names));
    for (const struct registry_model *m = r->list; m && copies && names; m = m->next)
        if (m->slot == s && n < cap) {
            snprintf(copies[n], MAX_NAME_BYTES, "%s", m->name);
            names[n] = copies[n];
            n++;
        }
    pthread_mutex_unlock(&r->lock);
    int rc = copies && names ? registry_find_parts(r, s, &p, e)
                             : err_set(e, SHOAL_ENOMEM, "the names of a model");
    for (uint32_t i = 0; rc == 0 && i < p.n; i++)
        rc = r->opts.trusted(r->opts.ctx, names, n, p.paths[i], s->pack != NULL, &r->stop, signer,
                             e);
    registry_parts_fini(&p);
    pthread_mutex_lock(&r->lock);
    snprintf(s->signer, sizeof(s->signer), "%s", rc == 0 ? signer : "");
    pthread_mutex_unlock(&r->lock);
    mem_free(names);
    mem_free(copies);
    return rc;
}

static void load_one(struct registry *r, struct registry_slot *s)
{
    struct opened opened = {.engine = NULL};
    struct err e = {0};
    struct registry_found found;
    char name[128];
    name_of(r, s, name, sizeof(name));
    s->lost = false;
    if (s->base && s->base->state != REGISTRY_READY) {
        int failed = err_set(&e, s->base->error_code < 0 ? s->base->error_code : SHOAL_EIO,
                             "its base could not be loaded: %.240s", s->base->error);
        finish_load(r, s, NULL, failed, &e);
        return;
    }
    pthread_mutex_unlock(&r->lock);
    int rc = registry_check_files(r, s, &found, &e);
    if (rc == 0)
        rc = check_trust(r, s, &e);
    pthread_mutex_lock(&r->lock);
    if (rc == 0 && s->users > 0 &&
        !registry_same_files(s, &found)) /* an isolated process has ended */
        rc =
            err_set(&e, SHOAL_EIO, "%s changed while it was in use; load the model again", s->path);
    while (rc == 0) {
        size_t limit = r->opts.memory_bytes;
        /* 1: nothing fits; the engine's message shows the arithmetic */
        const size_t used = r->used_bytes + constraint_bytes(r);
        size_t memory = limit == 0 ? 0 : limit > used ? limit - used : 1;
        pthread_mutex_unlock(&r->lock);
        rc = open_model(r, s, memory, name, &opened, &e);
        if (rc == 0)
            registry_recheck_files(r, s, &found);
        pthread_mutex_lock(&r->lock);
        struct registry_slot *victim = rc == SHOAL_ELIMIT ? find_victim(r, s->spec.priority) : NULL;
        if (!victim || r->stop)
            break;
        log_info("registry", "making room for path=%s by unloading path=%s", s->path, victim->path);
        close_engine(r, victim);
        rc = 0; /* again */
    }
    if (rc == 0 && s->lost) { /* after it had loaded: this would go unnoticed later */
        opened.apart.crashed = true;
        rc = err_set(&e, SHOAL_EIO, "%s", s->error);
    }
    if (tries_again(s, &opened, rc, &e))
        return;
    if (rc == 0 && s->users == 0)
        registry_publish_identity(s, &found);
    finish_load(r, s, &opened, rc, &e);
}

/* ---- memory of others ---- */

void registry_take_memory(struct registry *r, int64_t n)
{
    pthread_mutex_lock(&r->lock);
    r->used_bytes += (size_t)n;
    pthread_mutex_unlock(&r->lock);
}

uint64_t registry_memory_left(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    const size_t limit = r->opts.memory_bytes, used = r->used_bytes + constraint_bytes(r);
    pthread_mutex_unlock(&r->lock);
    return limit == 0 ? 0 : limit > used ? limit - used : 1;
}

/* ---- models apart ---- */

void registry_apart_lost(struct registry *r, uint64_t serial, const char *why)
{
    pthread_mutex_lock(&r->lock);
    struct registry_slot *s = registry_find_serial(r, serial);
    if (s && s->state == REGISTRY_LOADING) {
        s->lost = true;
        snprintf(s->error, sizeof(s->error), "%s", why);
    } else if (s && s->state == REGISTRY_READY) {
        uint64_t now = clock_ns();
        uint64_t calm = restart_wait(s->n_crashes) * CALM_FACTOR;
        if (now - s->ready_ns > (calm > MIN_CALM_NS ? calm : MIN_CALM_NS))
            s->n_crashes = 0;
        r->used_bytes -= s->bytes;
        s->bytes = 0;
        s->n_restarts++;
        back_off(s);
        snprintf(s->error, sizeof(s->error), "%s", why);
        registry_set_state(s,
                           s->want_unload && s->users == 0 ? REGISTRY_UNLOADED : REGISTRY_LOADING);
        log_error("registry", "path=%s: %s; restarting it in %llu ms", s->path, why,
                  (unsigned long long)((s->not_before_ns - now) / 1000000u));
        pthread_cond_signal(&r->work);
    }
    pthread_mutex_unlock(&r->lock);
}

void registry_apart_speed(struct registry *r, uint64_t serial, double prefill_ns, double token_ns)
{
    pthread_mutex_lock(&r->lock);
    struct registry_slot *s = registry_find_serial(r, serial);
    if (s) {
        s->prefill_ns = prefill_ns;
        s->token_ns = token_ns;
    }
    pthread_mutex_unlock(&r->lock);
}

void registry_apart_progress(struct registry *r, uint64_t serial, uint32_t progress)
{
    pthread_mutex_lock(&r->lock);
    struct registry_slot *s = registry_find_serial(r, serial);
    if (s)
        atomic_store_explicit(&s->progress, progress < 1000 ? progress : 1000,
                              memory_order_relaxed);
    pthread_mutex_unlock(&r->lock);
}

/* ---- the thread ---- */

/* When an idle model is unloaded; UINT64_MAX: never. */
static uint64_t registry_due_ns(const struct registry *r, const struct registry_slot *s)
{
    uint64_t idle = s->keep_ns ? s->keep_ns : (uint64_t)r->opts.idle_unload_ms * 1000000u;
    return idle == 0 || idle == UINT64_MAX || s->spec.pinned ? UINT64_MAX : s->last_used_ns + idle;
}

uint64_t registry_expires_ns(const struct registry_model *m)
{
    return registry_due_ns(m->slot->all, m->slot);
}

/* What must be loaded for a slot that should be: an adapter's base comes first. */
static struct registry_slot *first_to_load(struct registry_slot *s)
{
    struct registry_slot *b = s->base;
    if (!b || b->state == REGISTRY_READY || b->state == REGISTRY_FAILED)
        return s; /* if the base has failed, so does the adapter */
    registry_set_state(b, REGISTRY_LOADING);
    return b;
}

static bool has_adapters(const struct registry *r, const struct registry_slot *s)
{
    for (const struct registry_slot *a = r->slots; a; a = a->next)
        if (a->base == s)
            return true;
    return false;
}

/* The next slot with work, and the time until an idle model must be unloaded (UINT64_MAX: none). */
static struct registry_slot *next_work(struct registry *r, uint64_t *wait_ns)
{
    uint64_t now = clock_ns();
    *wait_ns = UINT64_MAX;
    for (struct registry_slot *s = r->slots; s; s = s->next) {
        if (s->state == REGISTRY_LOADING && s->n_names > 0) {
            if (s->not_before_ns <= now)
                return first_to_load(s);
            *wait_ns = s->not_before_ns - now < *wait_ns ? s->not_before_ns - now : *wait_ns;
            continue;
        }
        if (s->users > 0)
            continue;
        if (s->n_names == 0 && has_adapters(r, s))
            continue; /* they go first */
        if (s->n_names == 0 || (s->state == REGISTRY_READY && s->want_unload))
            return s;
        uint64_t due = registry_due_ns(r, s);
        if (s->state != REGISTRY_READY || due == UINT64_MAX)
            continue;
        if (due <= now) {
            s->want_unload = true;
            return s;
        }
        *wait_ns = due - now < *wait_ns ? due - now : *wait_ns;
    }
    return NULL;
}

/* Frees removed names that are no longer in use. */
static void forget_names(struct registry *r)
{
    for (struct registry_model **at = &r->list; *at;) {
        struct registry_model *m = *at;
        if (!m->gone || m->users > 0 || m->slot->waiting) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        m->slot->n_names--;
        registry_model_free(m);
    }
}

static void take_out(struct registry *r, struct registry_slot *s)
{
    struct registry_slot **at = &r->slots;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    registry_slot_free(s);
}

static void sleep_for(struct registry *r, uint64_t wait_ns)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t at = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + wait_ns;
    ts = (struct timespec){(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
    pthread_cond_timedwait(&r->work, &r->lock, &ts);
}

void *registry_load_main(void *arg)
{
    struct registry *r = arg;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        uint64_t wait;
        forget_names(r);
        struct registry_slot *s = next_work(r, &wait);
        if (s && s->state == REGISTRY_LOADING && s->n_names > 0) {
            load_one(r, s);
        } else if (s) {
            if (s->engine || (s->spec.apart && s->state == REGISTRY_READY))
                close_engine(r, s);
            if (s->n_names == 0)
                take_out(r, s);
        } else if (wait == UINT64_MAX) {
            pthread_cond_wait(&r->work, &r->lock);
        } else {
            sleep_for(r, wait);
        }
    }
    for (struct registry_slot *s = r->slots; s; s = s->next) { /* wake all waiters */
        struct err e = {.code = SHOAL_ECANCELLED, .msg = "the server is stopping"};
        if (s->waiting)
            finish_load(r, s, NULL, SHOAL_ECANCELLED, &e);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}
