/* registry.c - see registry.h. */
#include "host/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "host/pack.h"

struct registry {
    pthread_mutex_t lock;
    pthread_cond_t work;         /* for the loading thread */
    struct registry_model *list; /* in the order they were added */
    struct registry_slot *slots;
    struct registry_opts opts;
    char *cache_dir;
    pthread_t thread;
    bool has_thread;
    _Atomic bool stop; /* written under the lock; loading looks at it without */
    size_t used_bytes;
    uint64_t next_serial;
};

const char *registry_state_name(enum registry_state s)
{
    static const char *const names[] = {"unloaded", "loading", "ready", "unloading", "failed"};
    return names[s];
}

static void model_free(struct registry_model *m)
{
    mem_free(m->name);
    mem_free(m->task);
    mem_free(m->labels);
    mem_free(m->card);
    mem_free(m);
}

static void detach(struct registry_slot *s)
{
    if (s->attached)
        s->detach(s->attached);
    s->attached = NULL;
}

static void slot_free(struct registry_slot *s)
{
    mem_free(s->path);
    mem_free(s->pack);
    mem_free(s);
}

static void moved(struct registry *r)
{
    if (r->opts.moved)
        r->opts.moved(r->opts.ctx);
}

static void set_state(struct registry_slot *s, enum registry_state state)
{
    if (s->state == state)
        return;
    s->state = state;
    moved(s->all);
}

/* ---- the loading thread ---- */

static bool on_progress(void *ctx, double part)
{
    struct registry_slot *s = ctx;
    atomic_store_explicit(&s->progress, (uint32_t)(part * 1000.0), memory_order_relaxed);
    return s->all->stop;
}

/* The loaded file that has to go first: not pinned, not used, lowest priority, longest idle. */
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

/* The lock is held, and given up while the engine closes. */
static void close_engine(struct registry *r, struct registry_slot *s)
{
    struct shoal_engine *en = s->engine;
    s->engine = NULL;
    set_state(s, REGISTRY_UNLOADING);
    detach(s);
    pthread_mutex_unlock(&r->lock);
    shoal_engine_close(en);
    pthread_mutex_lock(&r->lock);
    r->used_bytes -= s->bytes;
    s->bytes = 0;
    s->want_unload = false;
    set_state(s, s->want_load ? REGISTRY_LOADING : REGISTRY_UNLOADED);
    s->want_load = false;
    log_info("registry", "unloaded path=%s", s->path);
}

static void finish_load(struct registry *r, struct registry_slot *s, struct shoal_engine *en,
                        int rc, const struct err *e)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    if (rc == 0 && en) {
        shoal_engine_info(en, &info);
        s->engine = en;
        s->kinds = info.kinds;
        s->n_ctx = info.n_ctx;
        s->bytes = info.weights_bytes + info.scratch_bytes + info.kv_bytes;
        s->load_ms = info.load_ms;
        r->used_bytes += s->bytes;
        set_state(s, REGISTRY_READY);
        s->last_used_ns = clock_ns();
        s->error[0] = '\0';
        log_info("registry", "loaded path=%s mib=%zu ms=%.0f kernels=%s", s->path, s->bytes >> 20,
                 info.load_ms, info.kernels);
    } else {
        set_state(s, REGISTRY_FAILED);
        s->error_code = rc;
        snprintf(s->error, sizeof(s->error), "%s", e->msg);
        log_error("registry", "cannot load path=%s: %s", s->path, e->msg);
    }
    struct registry_wait *list = s->waiting;
    s->waiting = NULL;
    for (struct registry_wait *w = list; w && rc == 0; w = w->next) {
        s->users++;
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

/* The files are those of the manifest. */
static int verify(const struct registry_slot *s, struct err *e)
{
    struct pack *p = NULL;
    if (!s->pack)
        return 0;
    int rc = pack_open(&p, s->pack, e);
    for (uint32_t i = 0; rc == 0 && i < p->n_models; i++)
        if (strcmp(p->models[i].open, s->path) == 0) {
            rc = pack_verify(&p->models[i], e);
            break; /* other names of the same files have the same hashes */
        }
    pack_close(p);
    return rc;
}

/* What the file is now; it may be another one than when it was loaded last.  Nobody uses the slot.
 */
static void identify(struct registry_slot *s)
{
    struct stat st = {.st_size = 0};
    bool there = stat(s->path, &st) == 0;
    const uint64_t what[4] = {(uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                              (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_ino};
    static const uint8_t none[SHA256_BYTES];
    uint8_t old[SHA256_BYTES];
    struct sha256 h;
    memcpy(old, s->identity, sizeof(old));
    sha256_begin(&h);
    sha256_add(&h, s->path, strlen(s->path));
    sha256_add(&h, what, sizeof(what));
    if (!sha256_end(&h, s->identity) || !there)
        memset(s->identity, 0, sizeof(s->identity));
    if (memcmp(old, none, sizeof(old)) != 0 && memcmp(old, s->identity, sizeof(old)) != 0 &&
        s->all->opts.changed)
        s->all->opts.changed(s->all->opts.ctx, old);
    char hex[2 * SHA256_BYTES + 1];
    sha256_hex(hex, s->identity);
    snprintf(s->version, sizeof(s->version), "fp_%.12s", hex);
    s->created_s = (uint64_t)st.st_mtim.tv_sec;
}

static void load_one(struct registry *r, struct registry_slot *s)
{
    struct shoal_engine_opts o = {.size = sizeof(o),
                                  .n_ctx = s->spec.n_ctx,
                                  .max_tasks = s->spec.max_tasks,
                                  .max_queue = s->spec.max_queue,
                                  .n_threads = s->spec.n_threads,
                                  .kv_bytes = s->spec.kv_bytes,
                                  .kv_q8 = s->spec.kv_q8,
                                  .int8 = s->spec.int8,
                                  .cache_dir = r->cache_dir,
                                  .progress = on_progress,
                                  .progress_ctx = s};
    struct shoal_engine *en = NULL;
    struct err e = {0};
    int rc;
    identify(s);
    for (;;) {
        size_t limit = r->opts.memory_bytes;
        /* 1: nothing fits; the engine's message shows the arithmetic */
        o.memory_bytes = limit == 0 ? 0 : limit > r->used_bytes ? limit - r->used_bytes : 1;
        pthread_mutex_unlock(&r->lock);
        rc = verify(s, &e);
        if (rc == 0)
            rc = shoal_engine_open(&en, s->path, &o, &e);
        pthread_mutex_lock(&r->lock);
        struct registry_slot *victim = rc == SHOAL_ELIMIT ? find_victim(r, s->spec.priority) : NULL;
        if (!victim || r->stop)
            break;
        log_info("registry", "making room for path=%s by unloading path=%s", s->path, victim->path);
        close_engine(r, victim);
    }
    finish_load(r, s, en, rc, &e);
}

/* Something to do, and how long until an idle model is due (UINT64_MAX: none). */
static struct registry_slot *next_work(struct registry *r, uint64_t *wait_ns)
{
    uint64_t now = clock_ns(), idle = (uint64_t)r->opts.idle_unload_ms * 1000000u;
    *wait_ns = UINT64_MAX;
    for (struct registry_slot *s = r->slots; s; s = s->next) {
        if (s->state == REGISTRY_LOADING && s->n_names > 0)
            return s;
        if (s->users > 0)
            continue;
        if (s->n_names == 0 || (s->state == REGISTRY_READY && s->want_unload))
            return s;
        if (s->state != REGISTRY_READY || idle == 0 || s->spec.pinned)
            continue;
        uint64_t due = s->last_used_ns + idle;
        if (due <= now) {
            s->want_unload = true;
            return s;
        }
        *wait_ns = due - now < *wait_ns ? due - now : *wait_ns;
    }
    return NULL;
}

/* Names that were taken out and that nobody uses any more. */
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
        model_free(m);
    }
}

static void take_out(struct registry *r, struct registry_slot *s)
{
    struct registry_slot **at = &r->slots;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    slot_free(s);
}

static void sleep_for(struct registry *r, uint64_t wait_ns)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t at = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + wait_ns;
    ts = (struct timespec){(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
    pthread_cond_timedwait(&r->work, &r->lock, &ts);
}

static void *main_loop(void *arg)
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
            if (s->engine)
                close_engine(r, s);
            if (s->n_names == 0)
                take_out(r, s);
        } else if (wait == UINT64_MAX) {
            pthread_cond_wait(&r->work, &r->lock);
        } else {
            sleep_for(r, wait);
        }
    }
    for (struct registry_slot *s = r->slots; s; s = s->next) { /* nobody may wait for ever */
        struct err e = {.code = SHOAL_ECANCELLED, .msg = "the server is stopping"};
        if (s->waiting)
            finish_load(r, s, NULL, SHOAL_ECANCELLED, &e);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- registry ---- */

int registry_create(struct registry **out, const struct registry_opts *o, struct err *e)
{
    struct registry *r = mem_zalloc(sizeof(*r));
    pthread_condattr_t attr;
    *out = NULL;
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "model registry");
    r->opts = *o;
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->work, &attr);
    pthread_condattr_destroy(&attr);
    if (o->cache_dir && !(r->cache_dir = mem_strdup(o->cache_dir))) {
        registry_destroy(r);
        return err_set(e, SHOAL_ENOMEM, "model registry");
    }
    int rc = thread_create(&r->thread, "registry", main_loop, r, e);
    if (rc < 0) {
        registry_destroy(r);
        return rc;
    }
    r->has_thread = true;
    *out = r;
    return 0;
}

void registry_destroy(struct registry *r)
{
    if (!r)
        return;
    if (r->has_thread) {
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_signal(&r->work);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
    }
    while (r->list) {
        struct registry_model *m = r->list;
        r->list = m->next;
        model_free(m);
    }
    while (r->slots) {
        struct registry_slot *s = r->slots;
        r->slots = s->next;
        detach(s);
        shoal_engine_close(s->engine);
        slot_free(s);
    }
    mem_free(r->cache_dir);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->work);
    mem_free(r);
}

static struct registry_model *find(struct registry *r, const char *name)
{
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

/* The first that is there for this, or that is known to be able to. */
static struct registry_model *find_for(struct registry *r, enum shoal_kind kind)
{
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && strcmp(m->task, shoal_kind_name(kind)) == 0)
            return m;
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && ((m->slot->kinds & kind) || (!m->task[0] && !m->slot->kinds)))
            return m;
    return NULL;
}

/* The slot of a path: one that is there, or a new one.  NULL: no memory. */
static struct registry_slot *find_slot(struct registry *r, const struct registry_spec *spec)
{
    struct registry_slot **at = &r->slots;
    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->path, spec->path) == 0)
            return *at;
    struct registry_slot *s = mem_zalloc(sizeof(*s));
    if (s) {
        s->path = mem_strdup(spec->path);
        s->pack = spec->pack ? mem_strdup(spec->pack) : NULL;
    }
    if (!s || !s->path || (spec->pack && !s->pack)) {
        if (s)
            slot_free(s);
        return NULL;
    }
    s->all = r;
    s->serial = ++r->next_serial;
    s->spec = *spec;
    s->spec.name = s->spec.path = s->spec.task = s->spec.labels = NULL;
    s->spec.card = s->spec.pack = NULL;
    *at = s;
    return s;
}

/* Now, or when what is being closed is gone. */
static void start_loading(struct registry_slot *s)
{
    if (s->state == REGISTRY_UNLOADING)
        s->want_load = true;
    else
        set_state(s, REGISTRY_LOADING);
}

int registry_add(struct registry *r, const struct registry_spec *spec, struct err *e)
{
    struct registry_model *m = mem_zalloc(sizeof(*m));
    int rc = 0;
    if (m) {
        m->name = mem_strdup(spec->name);
        m->task = mem_strdup(spec->task ? spec->task : "");
        m->labels = spec->labels ? mem_strdup(spec->labels) : NULL;
        m->card = spec->card ? mem_strdup(spec->card) : NULL;
    }
    if (!m || !m->name || !m->task || (spec->labels && !m->labels) || (spec->card && !m->card)) {
        if (m)
            model_free(m);
        return err_set(e, SHOAL_ENOMEM, "model");
    }
    pthread_mutex_lock(&r->lock);
    if (find(r, spec->name))
        rc = err_set(e, SHOAL_EINVAL, "there is a model named %s already", spec->name);
    else if (!(m->slot = find_slot(r, spec)))
        rc = err_set(e, SHOAL_ENOMEM, "model");
    if (rc == 0) {
        struct registry_model **at = &r->list;
        while (*at)
            at = &(*at)->next;
        *at = m;
        m->slot->n_names++;
        m->slot->spec.pinned |= spec->pinned;
        if (spec->pinned &&
            (m->slot->state == REGISTRY_UNLOADED || m->slot->state == REGISTRY_UNLOADING))
            start_loading(m->slot);
        if (m->slot->n_names == 1 && m->slot->state != REGISTRY_READY)
            identify(m->slot);
        moved(r);
        pthread_cond_signal(&r->work);
    }
    pthread_mutex_unlock(&r->lock);
    if (rc < 0)
        model_free(m);
    return rc;
}

int registry_check(const struct registry_model *m, enum shoal_kind kind, struct err *e)
{
    char can[128] = "";
    size_t n = 0;
    if (m->slot->kinds & kind)
        return 0;
    for (unsigned k = 1; k <= SHOAL_KIND_SCORE; k <<= 1)
        if ((m->slot->kinds & k) && n < sizeof(can))
            n += (size_t)snprintf(can + n, sizeof(can) - n, "%s%s", n ? ", " : "",
                                  shoal_kind_name((enum shoal_kind)k));
    return err_set(e, SHOAL_EINVAL, "the model '%s' cannot %s; what it can: %s", m->name,
                   shoal_kind_name(kind), can);
}

static void use(struct registry_model *m)
{
    m->users++;
    m->slot->users++;
    m->slot->want_unload = false;
    m->slot->last_used_ns = clock_ns();
}

/* The model is not loaded: starts that. */
static int wait_for(struct registry *r, struct registry_model *m, struct registry_wait *w,
                    struct err *e)
{
    struct registry_slot *s = m->slot;
    if (s->state == REGISTRY_FAILED)
        return err_set(e, s->error_code == SHOAL_EBUSY ? SHOAL_EIO : s->error_code,
                       "the model '%s' could not be loaded: %.200s", m->name, s->error);
    start_loading(s);
    if (w) {
        w->model = m;
        w->next = s->waiting;
        s->waiting = w;
    }
    pthread_cond_signal(&r->work);
    return err_set(e, SHOAL_EBUSY, "the model '%s' is being loaded (%u %%)", m->name,
                   atomic_load_explicit(&s->progress, memory_order_relaxed) / 10);
}

int registry_get(struct registry *r, const char *name, enum shoal_kind kind,
                 struct registry_model **out, struct registry_wait *w, struct err *e)
{
    int rc = 0;
    *out = NULL;
    pthread_mutex_lock(&r->lock);
    struct registry_model *m = name ? find(r, name) : find_for(r, kind);
    if (!m && name)
        rc = err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' does not exist", name);
    else if (!m)
        rc = err_set(e, SHOAL_ENOTFOUND, "there is no model here that can %s",
                     shoal_kind_name(kind));
    else if (m->slot->kinds)
        rc = registry_check(m, kind, e);
    if (rc == 0 && m && m->slot->state == REGISTRY_READY) {
        use(m);
        *out = m;
    } else if (rc == 0 && m) {
        rc = wait_for(r, m, w, e);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

void registry_hold(struct registry_model *m)
{
    pthread_mutex_lock(&m->slot->all->lock);
    m->users++;
    m->slot->users++;
    pthread_mutex_unlock(&m->slot->all->lock);
}

void registry_put(struct registry_model *m)
{
    struct registry_slot *s = m->slot;
    struct registry *r = s->all;
    pthread_mutex_lock(&r->lock);
    m->users--;
    s->users--;
    s->last_used_ns = clock_ns();
    if ((s->users == 0 && (s->want_unload || r->opts.idle_unload_ms)) || m->gone)
        pthread_cond_signal(&r->work);
    pthread_mutex_unlock(&r->lock);
}

int registry_attach(struct registry_model *m,
                    int (*make)(void **out, struct shoal_engine *en, struct err *e),
                    void (*detach_fn)(void *attached), void **out, struct err *e)
{
    struct registry_slot *s = m->slot;
    int rc = 0;
    pthread_mutex_lock(&s->all->lock);
    if (!s->attached)
        rc = make(&s->attached, s->engine, e);
    s->detach = detach_fn;
    *out = s->attached;
    pthread_mutex_unlock(&s->all->lock);
    return rc;
}

enum change { CHANGE_LOAD, CHANGE_UNLOAD, CHANGE_REMOVE };

static int change(struct registry *r, const char *name, enum change what, struct err *e)
{
    pthread_mutex_lock(&r->lock);
    struct registry_model *m = find(r, name);
    struct registry_slot *s = m ? m->slot : NULL;
    if (s && what == CHANGE_LOAD) {
        s->want_unload = false;
        if (s->state != REGISTRY_READY)
            start_loading(s);
    } else if (s && what == CHANGE_UNLOAD) {
        s->want_unload = s->state == REGISTRY_READY;
    } else if (s) {
        m->gone = true;
        moved(r);
    }
    pthread_cond_signal(&r->work);
    pthread_mutex_unlock(&r->lock);
    return m ? 0 : err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' does not exist", name);
}

int registry_load(struct registry *r, const char *name, struct err *e)
{
    return change(r, name, CHANGE_LOAD, e);
}

int registry_unload(struct registry *r, const char *name, struct err *e)
{
    return change(r, name, CHANGE_UNLOAD, e);
}

int registry_remove(struct registry *r, const char *name, struct err *e)
{
    return change(r, name, CHANGE_REMOVE, e);
}

void registry_each(struct registry *r, void (*fn)(void *ctx, const struct registry_model *m),
                   void *ctx)
{
    pthread_mutex_lock(&r->lock);
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone)
            fn(ctx, m);
    pthread_mutex_unlock(&r->lock);
}

bool registry_state(struct registry *r, const char *name, enum registry_state *out)
{
    pthread_mutex_lock(&r->lock);
    const struct registry_model *m = find(r, name);
    if (m)
        *out = m->slot->state;
    pthread_mutex_unlock(&r->lock);
    return m != NULL;
}

bool registry_ready(struct registry *r)
{
    bool ready = true;
    pthread_mutex_lock(&r->lock);
    for (struct registry_slot *s = r->slots; s; s = s->next)
        ready &= !(s->spec.pinned && s->state == REGISTRY_LOADING);
    pthread_mutex_unlock(&r->lock);
    return ready;
}
