/* models.c - see models.h. */
#include "gateway/models.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"

struct models {
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the loading thread */
    struct model *list;  /* in the order they were added */
    struct models_opts opts;
    char *cache_dir;
    pthread_t thread;
    bool has_thread;
    _Atomic bool stop; /* written under the lock; loading looks at it without */
    size_t used_bytes;
};

const char *model_state_name(enum model_state s)
{
    static const char *const names[] = {"unloaded", "loading", "ready", "unloading", "failed"};
    return names[s];
}

static void model_free(struct model *m)
{
    mem_free(m->name);
    mem_free(m->path);
    mem_free(m->task);
    mem_free(m);
}

/* ---- the loading thread ---- */

static bool on_progress(void *ctx, double part)
{
    struct model *m = ctx;
    atomic_store_explicit(&m->progress, (uint32_t)(part * 1000.0), memory_order_relaxed);
    return m->all->stop; /* a stale value only costs time */
}

/* The loaded model that has to go first: not pinned, not used, lowest priority, longest idle. */
static struct model *find_victim(struct models *ms, int32_t priority)
{
    struct model *best = NULL;
    for (struct model *m = ms->list; m; m = m->next) {
        if (m->state != MODEL_READY || m->spec.pinned || m->users > 0 ||
            m->spec.priority > priority)
            continue;
        if (!best || m->spec.priority < best->spec.priority ||
            (m->spec.priority == best->spec.priority && m->last_used_ns < best->last_used_ns))
            best = m;
    }
    return best;
}

/* The lock is held, and given up while the engine closes. */
static void close_engine(struct models *ms, struct model *m)
{
    struct shoal_engine *en = m->engine;
    m->engine = NULL;
    m->state = MODEL_UNLOADING;
    pthread_mutex_unlock(&ms->lock);
    shoal_engine_close(en);
    pthread_mutex_lock(&ms->lock);
    ms->used_bytes -= m->bytes;
    m->bytes = 0;
    m->want_unload = false;
    m->state = MODEL_UNLOADED;
    log_info("models", "unloaded model=%s", m->name);
}

static void finish_load(struct models *ms, struct model *m, struct shoal_engine *en, int rc,
                        const struct shoal_error *e)
{
    struct shoal_engine_info info;
    if (rc == 0) {
        shoal_engine_info(en, &info);
        m->engine = en;
        m->bytes = info.weights_bytes + info.scratch_bytes + info.kv_bytes;
        m->load_ms = info.load_ms;
        ms->used_bytes += m->bytes;
        m->state = MODEL_READY;
        m->last_used_ns = clock_ns();
        m->error[0] = '\0';
        log_info("models", "loaded model=%s mib=%zu ms=%.0f kernels=%s", m->name, m->bytes >> 20,
                 info.load_ms, info.kernels);
    } else {
        m->state = MODEL_FAILED;
        m->error_code = rc;
        snprintf(m->error, sizeof(m->error), "%s", e->msg);
        log_error("models", "cannot load model=%s: %s", m->name, e->msg);
    }
    struct model_wait *list = m->waiting;
    m->waiting = NULL;
    for (struct model_wait *w = list; w; w = w->next)
        m->users += rc == 0;
    pthread_mutex_unlock(&ms->lock);
    while (list) {
        struct model_wait *w = list;
        list = w->next;
        w->fn(w, m, rc);
    }
    pthread_mutex_lock(&ms->lock);
}

static void load_one(struct models *ms, struct model *m)
{
    struct shoal_engine_opts o = {.n_ctx = m->spec.n_ctx,
                                  .max_tasks = m->spec.max_tasks,
                                  .max_queue = m->spec.max_queue,
                                  .n_threads = m->spec.n_threads,
                                  .kv_bytes = m->spec.kv_bytes,
                                  .kv_q8 = m->spec.kv_q8,
                                  .cache_dir = ms->cache_dir,
                                  .progress = on_progress,
                                  .progress_ctx = m};
    struct shoal_engine *en = NULL;
    struct shoal_error e = {0};
    int rc;
    for (;;) {
        size_t limit = ms->opts.memory_bytes;
        /* 1: nothing fits; the engine's message shows the arithmetic */
        o.memory_bytes = limit == 0 ? 0 : limit > ms->used_bytes ? limit - ms->used_bytes : 1;
        pthread_mutex_unlock(&ms->lock);
        rc = shoal_engine_open(&en, m->path, &o, &e);
        pthread_mutex_lock(&ms->lock);
        struct model *victim = rc == SHOAL_ELIMIT ? find_victim(ms, m->spec.priority) : NULL;
        if (!victim || ms->stop)
            break;
        log_info("models", "making room for model=%s by unloading model=%s", m->name, victim->name);
        close_engine(ms, victim);
    }
    finish_load(ms, m, en, rc, &e);
}

/* Something to do, and how long until an idle model is due (UINT64_MAX: none). */
static struct model *next_work(struct models *ms, uint64_t *wait_ns)
{
    uint64_t now = clock_ns(), idle = (uint64_t)ms->opts.idle_unload_ms * 1000000u;
    *wait_ns = UINT64_MAX;
    for (struct model *m = ms->list; m; m = m->next) {
        if (m->state == MODEL_LOADING)
            return m;
        if (m->users > 0)
            continue;
        if (m->gone || (m->state == MODEL_READY && m->want_unload))
            return m;
        if (m->state != MODEL_READY || idle == 0 || m->spec.pinned)
            continue;
        uint64_t due = m->last_used_ns + idle;
        if (due <= now) {
            m->want_unload = true;
            return m;
        }
        *wait_ns = due - now < *wait_ns ? due - now : *wait_ns;
    }
    return NULL;
}

static void take_out(struct models *ms, struct model *m)
{
    struct model **at = &ms->list;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    model_free(m);
}

static void *main_loop(void *arg)
{
    struct models *ms = arg;
    pthread_mutex_lock(&ms->lock);
    while (!ms->stop) {
        uint64_t wait;
        struct model *m = next_work(ms, &wait);
        if (m && m->state == MODEL_LOADING) {
            load_one(ms, m);
        } else if (m) {
            if (m->engine)
                close_engine(ms, m);
            if (m->gone)
                take_out(ms, m);
        } else if (wait == UINT64_MAX) {
            pthread_cond_wait(&ms->work, &ms->lock);
        } else {
            struct timespec ts;
            clock_gettime(CLOCK_MONOTONIC, &ts);
            uint64_t at = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + wait;
            ts = (struct timespec){(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
            pthread_cond_timedwait(&ms->work, &ms->lock, &ts);
        }
    }
    for (struct model *m = ms->list; m; m = m->next) { /* nobody may wait for ever */
        struct shoal_error e = {.code = SHOAL_ECANCELLED, .msg = "the server is stopping"};
        if (m->waiting)
            finish_load(ms, m, NULL, SHOAL_ECANCELLED, &e);
    }
    pthread_mutex_unlock(&ms->lock);
    return NULL;
}

/* ---- registry ---- */

int models_create(struct models **out, const struct models_opts *o, struct err *e)
{
    struct models *ms = mem_zalloc(sizeof(*ms));
    pthread_condattr_t attr;
    *out = NULL;
    if (!ms)
        return err_set(e, SHOAL_ENOMEM, "models");
    ms->opts = *o;
    pthread_mutex_init(&ms->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ms->work, &attr);
    pthread_condattr_destroy(&attr);
    if (o->cache_dir && !(ms->cache_dir = mem_strdup(o->cache_dir))) {
        models_destroy(ms);
        return err_set(e, SHOAL_ENOMEM, "models");
    }
    if (pthread_create(&ms->thread, NULL, main_loop, ms) != 0) {
        models_destroy(ms);
        return err_set(e, SHOAL_ENOMEM, "cannot start the thread that loads models");
    }
    ms->has_thread = true;
    *out = ms;
    return 0;
}

void models_destroy(struct models *ms)
{
    if (!ms)
        return;
    if (ms->has_thread) {
        pthread_mutex_lock(&ms->lock);
        ms->stop = true;
        pthread_cond_signal(&ms->work);
        pthread_mutex_unlock(&ms->lock);
        pthread_join(ms->thread, NULL);
    }
    while (ms->list) {
        struct model *m = ms->list;
        ms->list = m->next;
        shoal_engine_close(m->engine);
        model_free(m);
    }
    mem_free(ms->cache_dir);
    pthread_mutex_destroy(&ms->lock);
    pthread_cond_destroy(&ms->work);
    mem_free(ms);
}

static struct model *find(struct models *ms, const char *name, const char *task)
{
    for (struct model *m = ms->list; m; m = m->next) {
        if (m->gone || (task && strcmp(m->task, task) != 0))
            continue;
        if (!name || strcmp(m->name, name) == 0)
            return m;
    }
    return NULL;
}

static void identify(struct model *m)
{
    struct stat st;
    uint64_t h = 0;
    if (stat(m->path, &st) == 0) {
        uint64_t what[4] = {(uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                            (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_ino};
        m->created_s = (uint64_t)st.st_mtim.tv_sec;
        h = hash_bytes(what, sizeof(what), hash_bytes(m->path, strlen(m->path), 0));
    }
    snprintf(m->version, sizeof(m->version), "fp_%012llx",
             (unsigned long long)(h & 0xffffffffffff));
}

int models_add(struct models *ms, const struct model_spec *spec, struct err *e)
{
    struct model *m = mem_zalloc(sizeof(*m));
    int rc = 0;
    if (m) {
        m->name = mem_strdup(spec->name);
        m->path = mem_strdup(spec->path);
        m->task = mem_strdup(spec->task ? spec->task : "generate");
    }
    if (!m || !m->name || !m->path || !m->task) {
        if (m)
            model_free(m);
        return err_set(e, SHOAL_ENOMEM, "model");
    }
    m->spec = *spec;
    m->spec.name = m->name;
    m->spec.path = m->path;
    m->spec.task = m->task;
    m->all = ms;
    m->state = spec->pinned ? MODEL_LOADING : MODEL_UNLOADED;
    identify(m);
    pthread_mutex_lock(&ms->lock);
    if (find(ms, spec->name, NULL)) {
        rc = err_set(e, SHOAL_EINVAL, "there is a model named %s already", spec->name);
    } else {
        struct model **at = &ms->list;
        while (*at)
            at = &(*at)->next;
        *at = m;
        pthread_cond_signal(&ms->work);
    }
    pthread_mutex_unlock(&ms->lock);
    if (rc < 0)
        model_free(m);
    return rc;
}

int models_get(struct models *ms, const char *name, const char *task, struct model **out,
               struct model_wait *w, struct err *e)
{
    int rc = 0;
    *out = NULL;
    pthread_mutex_lock(&ms->lock);
    struct model *m = find(ms, name, task);
    if (!m) {
        struct model *other = name ? find(ms, name, NULL) : NULL;
        if (other)
            rc = err_set(e, SHOAL_EINVAL, "the model '%.64s' is for another task: %s", name,
                         other->task);
        else
            rc = err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' does not exist", name ? name : "");
    } else if (m->state == MODEL_READY && !m->want_unload) {
        m->users++;
        m->last_used_ns = clock_ns();
        *out = m;
    } else if (m->state == MODEL_FAILED) {
        rc = err_set(e, m->error_code == SHOAL_EBUSY ? SHOAL_EIO : m->error_code,
                     "the model '%s' could not be loaded: %.200s", m->name, m->error);
    } else {
        m->want_unload = false;
        if (m->state == MODEL_READY) {
            m->users++;
            *out = m;
        } else {
            rc = err_set(e, SHOAL_EBUSY, "the model '%s' is being loaded (%u %%)", m->name,
                         atomic_load_explicit(&m->progress, memory_order_relaxed) / 10);
            if (m->state == MODEL_UNLOADED)
                m->state = MODEL_LOADING;
            if (w && m->state == MODEL_LOADING) {
                w->next = m->waiting;
                m->waiting = w;
            } else if (w) { /* it is just closing: rare, the client tries again */
                rc = err_set(e, SHOAL_EUNSUPPORTED, "the model '%s' is being unloaded", m->name);
            }
            pthread_cond_signal(&ms->work);
        }
    }
    pthread_mutex_unlock(&ms->lock);
    return rc;
}

void models_put(struct model *m)
{
    struct models *ms = m->all;
    pthread_mutex_lock(&ms->lock);
    m->users--;
    m->last_used_ns = clock_ns();
    if (m->users == 0 && (m->want_unload || m->gone || ms->opts.idle_unload_ms))
        pthread_cond_signal(&ms->work);
    pthread_mutex_unlock(&ms->lock);
}

int models_load(struct models *ms, const char *name, struct err *e)
{
    pthread_mutex_lock(&ms->lock);
    struct model *m = find(ms, name, NULL);
    if (m && (m->state == MODEL_UNLOADED || m->state == MODEL_FAILED)) {
        m->state = MODEL_LOADING;
        pthread_cond_signal(&ms->work);
    } else if (m) {
        m->want_unload = false;
    }
    pthread_mutex_unlock(&ms->lock);
    return m ? 0 : err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' does not exist", name);
}

int models_unload(struct models *ms, const char *name, struct err *e)
{
    pthread_mutex_lock(&ms->lock);
    struct model *m = find(ms, name, NULL);
    if (m && m->state == MODEL_READY) {
        m->want_unload = true;
        pthread_cond_signal(&ms->work);
    }
    pthread_mutex_unlock(&ms->lock);
    return m ? 0 : err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' does not exist", name);
}

int models_remove(struct models *ms, const char *name, struct err *e)
{
    pthread_mutex_lock(&ms->lock);
    struct model *m = find(ms, name, NULL);
    if (m) {
        m->gone = true;
        pthread_cond_signal(&ms->work);
    }
    pthread_mutex_unlock(&ms->lock);
    return m ? 0 : err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' does not exist", name);
}

void models_each(struct models *ms, void (*fn)(void *ctx, const struct model *m), void *ctx)
{
    pthread_mutex_lock(&ms->lock);
    for (struct model *m = ms->list; m; m = m->next)
        if (!m->gone)
            fn(ctx, m);
    pthread_mutex_unlock(&ms->lock);
}

bool models_ready(struct models *ms)
{
    bool ready = true;
    pthread_mutex_lock(&ms->lock);
    for (struct model *m = ms->list; m; m = m->next)
        ready &= !(m->spec.pinned && m->state == MODEL_LOADING);
    pthread_mutex_unlock(&ms->lock);
    return ready;
}
