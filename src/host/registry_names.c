/* registry_names.c - the registry's names, references and queries.  Loading is
 * in registry_load.c, hashing in registry_identity.c, and registry.c starts both. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "engine/backends.h"
#include "engine/estimate.h"
#include "host/baselines.h"
#include "host/registry_int.h"

const char *registry_state_name(enum registry_state s)
{
    static const char *const names[] = {"unloaded", "loading", "ready", "unloading", "failed"};
    return names[s];
}

void registry_model_free(struct registry_model *m)
{
    mem_free(m->name);
    mem_free(m->task);
    mem_free(m->labels);
    mem_free(m->card);
    mem_free(m);
}

void registry_detach(struct registry_slot *s)
{
    if (s->attached)
        s->detach(s->attached);
    s->attached = NULL;
}

void registry_slot_free(struct registry_slot *s)
{
    for (uint32_t i = 0; s->parts && i < s->spec.n_parts; i++)
        mem_free((char *)(uintptr_t)s->parts[i].model);
    mem_free(s->parts);
    mem_free(s->beginnings);
    mem_free(s->path);
    mem_free(s->pack);
    mem_free((char *)(uintptr_t)s->spec.key_file);
    mem_free(s);
}

struct registry_slot *registry_find_serial(struct registry *r, uint64_t serial)
{
    struct registry_slot *s = r->slots;
    while (s && s->serial != serial)
        s = s->next;
    return s;
}

void registry_slot_use(struct registry_slot *s)
{
    s->users++;
    if (s->base)
        s->base->users++;
}

static void slot_leave(struct registry_slot *s)
{
    s->users--;
    s->last_used_ns = clock_ns();
    if (s->base) {
        s->base->users--;
        s->base->last_used_ns = s->last_used_ns;
    }
}

static void note_change(struct registry *r)
{
    if (r->opts.changed)
        r->opts.changed(r->opts.ctx);
}

void registry_set_state(struct registry_slot *s, enum registry_state state)
{
    if (s->state == state)
        return;
    s->state = state;
    atomic_store_explicit(&s->progress, state == REGISTRY_READY ? 1000 : 0, memory_order_relaxed);
    note_change(s->all);
}

static bool is_version(const struct registry_model *m, const uint8_t *sum)
{
    const uint8_t *has = registry_sum(m);
    return has && memcmp(has, sum, SHA256_BYTES) == 0;
}

static struct registry_model *find_copy(struct registry *r, const char *name, const uint8_t *sum,
                                        uint32_t copy)
{
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && m->copy == copy && strcmp(m->name, name) == 0 && is_version(m, sum))
            return m;
    return NULL;
}

static struct registry_model *find_version(struct registry *r, const char *name, const uint8_t *sum)
{
    return find_copy(r, name, sum, 0);
}

bool registry_in_share(const char *key, uint32_t share)
{
    return share > 0 && key && hash_bytes(key, strlen(key), 0) % 1000 < share;
}

/* Of two versions that serve the request, the one that should answer it. */
static bool is_better(const struct registry_model *a, const struct registry_model *b,
                      const char *key)
{
    bool canary_a = a->service.share > 0, canary_b = b->service.share > 0;
    bool failed_a = a->slot->state == REGISTRY_FAILED;
    if (failed_a != (b->slot->state == REGISTRY_FAILED))
        return !failed_a;
    if (canary_a != canary_b)
        return canary_a == registry_in_share(key, canary_a ? a->service.share : b->service.share);
    if (a->service.epoch != b->service.epoch)
        return a->service.epoch > b->service.epoch;
    return a->versioned && !b->versioned;
}

/* The version of a name that answers. NULL: none; then *first is any other of the name. */
static struct registry_model *find_serving(struct registry *r, const struct registry_want *want,
                                           struct registry_model **first)
{
    uint64_t epoch = want->epoch ? want->epoch : r->epoch;
    struct registry_model *best = NULL;
    *first = NULL;
    for (struct registry_model *m = r->list; m; m = m->next) {
        if (m->gone || m->copy > 0 || strcmp(m->name, want->name) != 0)
            continue;
        if (!*first)
            *first = m;
        if (want->version ? is_version(m, want->version)
                          : registry_serves(&m->service, epoch, want->may_be_old) &&
                                (!best || is_better(m, best, want->key)))
            best = m;
    }
    return best;
}

/* The version for new requests, or else any. */
static struct registry_model *find(struct registry *r, const char *name)
{
    const struct registry_want want = {.name = name};
    struct registry_model *first, *m = find_serving(r, &want, &first);
    return m ? m : first;
}

/* ---- copies ---- */

/* Each hash has one place, which the newest takes. */
static uint64_t *place_of(uint64_t *beginnings, uint64_t hash)
{
    return &beginnings[hash % REGISTRY_BEGINNINGS];
}

/* How many of the beginnings it covers: the longest one that it has read decides. */
static uint32_t has_read(const struct registry_slot *s, const struct registry_want *want)
{
    for (uint32_t i = s->beginnings ? want->n_beginnings : 0; i > 0; i--)
        if (*place_of(s->beginnings, want->beginnings[i - 1]) == want->beginnings[i - 1])
            return i;
    return 0;
}

/* It will read this prompt.  Without memory it is found by load alone. */
static void note_read(struct registry_slot *s, const struct registry_want *want)
{
    if (!s->beginnings && want->n_beginnings > 0)
        s->beginnings = mem_zalloc_n(REGISTRY_BEGINNINGS, sizeof(*s->beginnings));
    for (uint32_t i = 0; s->beginnings && i < want->n_beginnings; i++)
        *place_of(s->beginnings, want->beginnings[i]) = want->beginnings[i];
}

static bool is_copy_of(const struct registry_model *m, const struct registry_model *first)
{
    return !m->gone && m->versioned && strcmp(m->name, first->name) == 0 &&
           memcmp(m->sum, first->sum, SHA256_BYTES) == 0;
}

/* Of all copies of a version that are loaded, the least busy one, or the one that has read most of
 * the prompt if that is not twice as busy. */
static struct registry_model *pick_copy(struct registry *r, struct registry_model *first,
                                        const struct registry_want *want)
{
    struct registry_model *idle = NULL, *holder = NULL;
    uint32_t n = 0, most = 0;
    for (struct registry_model *m = first->versioned ? r->list : NULL; m; m = m->next) {
        if (!is_copy_of(m, first) || m->slot->state != REGISTRY_READY)
            continue;
        uint32_t read = has_read(m->slot, want);
        n++;
        if (!idle || m->slot->users < idle->slot->users)
            idle = m;
        if (read > most || (read > 0 && read == most && m->slot->users < holder->slot->users)) {
            holder = m;
            most = read;
        }
    }
    if (!idle)
        return first;
    if (holder && holder->slot->users <= 2 * idle->slot->users + 1)
        idle = holder;
    if (n > 1 || idle->slot->beginnings)
        note_read(idle->slot, want);
    return idle;
}

/* The one without a version: from the configuration. */
static struct registry_model *find_plain(struct registry *r, const char *name)
{
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && !m->versioned && strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

/* The first model configured for this task, or else the first that can do it. */
static struct registry_model *find_for(struct registry *r, enum shoal_kind kind)
{
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && !m->slot->base && strcmp(m->task, shoal_kind_name(kind)) == 0)
            return m;
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && !m->slot->base &&
            ((m->slot->kinds & kind) || (!m->task[0] && !m->slot->kinds)))
            return m;
    return NULL;
}

static bool copy_parts(struct registry_slot *s, const struct registry_spec *spec)
{
    s->spec.n_parts = spec->n_parts;
    s->parts = spec->n_parts ? mem_zalloc_n(spec->n_parts, sizeof(*s->parts)) : NULL;
    for (uint32_t i = 0; s->parts && i < spec->n_parts; i++) {
        s->parts[i].weight = spec->parts[i].weight;
        if (!(s->parts[i].model = mem_strdup(spec->parts[i].model)))
            return false;
    }
    return s->parts || spec->n_parts == 0;
}

/* Whether a model with a required version may use the slot: the file may have changed since it was
 * loaded, so each version checks its own. */
static bool fits_version(const struct registry_slot *s, const struct registry_spec *spec)
{
    if (s->spec.copy != spec->copy)
        return false;
    return !spec->sum || (s->has_want_sum && memcmp(s->want_sum, spec->sum, SHA256_BYTES) == 0);
}

/* The slot of a path, created if needed.  NULL: out of memory. */
static struct registry_slot *find_slot(struct registry *r, const struct registry_spec *spec,
                                       struct registry_slot *base)
{
    struct registry_slot **at = &r->slots;
    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->path, spec->path) == 0 && fits_version(*at, spec) &&
            (*at)->base == base && (*at)->spec.adapter_scale == spec->adapter_scale)
            return *at;
    struct registry_slot *s = mem_zalloc(sizeof(*s));
    if (s) {
        s->path = mem_strdup(spec->path);
        s->pack = spec->pack ? mem_strdup(spec->pack) : NULL;
    }
    char *key = s && !base && spec->key_file ? mem_strdup(spec->key_file) : NULL;
    if (!s || !s->path || (spec->pack && !s->pack) || (!base && spec->key_file && !key) ||
        !copy_parts(s, spec)) {
        if (s)
            registry_slot_free(s);
        mem_free(key);
        return NULL;
    }
    s->all = r;
    atomic_init(&s->identity, &s->local);
    s->serial = ++r->next_serial;
    s->base = base;
    s->spec = base ? base->spec : *spec;
    if (base) { /* it is loaded by the first request, if its base is not */
        s->spec.pinned = spec->pinned;
        s->spec.adapter_scale = spec->adapter_scale;
    }
    s->spec.key_file = key;
    s->spec.base = NULL;
    s->spec.name = s->spec.path = s->spec.task = s->spec.labels = NULL;
    s->spec.card = s->spec.pack = NULL;
    s->spec.parts = NULL; /* s->parts */
    if (spec->sum)
        memcpy(s->want_sum, spec->sum, SHA256_BYTES);
    s->has_want_sum = spec->sum != NULL;
    s->spec.sum = NULL;
    *at = s;
    return s;
}

/* Now, or once the old engine has been closed. */
static void start_loading(struct registry_slot *s)
{
    if (s->state == REGISTRY_UNLOADING)
        s->want_load = true;
    else
        registry_set_state(s, REGISTRY_LOADING);
}

static void set_lent(struct registry_slot *s, struct shoal_engine *engine)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(engine, &info);
    s->lent = s->spec.pinned = true;
    s->engine = engine;
    s->kinds = info.kinds;
    s->images = info.images != 0;
    s->n_ctx = info.n_ctx;
    s->load_ms = info.load_ms;
    registry_set_state(s, REGISTRY_READY);
}

/* Size of the files of a path; 0: unknown. */
static uint64_t bytes_of(const char *path)
{
    struct identity_list *l = NULL;
    struct identity_file f;
    uint64_t sum = 0;
    if (identity_list(&l, path, NULL) < 0)
        return 0;
    for (uint32_t i = 0; i < identity_list_n(l); i++) {
        identity_list_file(l, i, &f);
        sum += f.bytes;
    }
    identity_list_free(l);
    return sum;
}

/* The base of an adapter; the lock is held. */
static int find_base(struct registry *r, const struct registry_spec *spec,
                     struct registry_slot **out, struct err *e)
{
    const struct registry_model *m = find_plain(r, spec->base);
    if (!m)
        return err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' of the adapter does not exist here",
                       spec->base);
    const struct registry_slot *s = m->slot;
    if (s->base || s->spec.n_parts > 0 || s->spec.apart || s->spec.shard[0])
        return err_set(e, SHOAL_EINVAL,
                       "the model '%.64s' cannot have adapters: it is %s; merge the adapter "
                       "('shoal model lora merge')",
                       spec->base,
                       s->base               ? "an adapter itself"
                       : s->spec.n_parts > 0 ? "an average of models"
                       : s->spec.apart       ? "in a process of its own"
                                             : "divided over several nodes");
    *out = m->slot;
    return 0;
}

/* lent: the engine that the caller has opened, or NULL. */
static int add(struct registry *r, const struct registry_spec *spec, struct shoal_engine *lent,
               struct err *e)
{
    struct registry_model *m = mem_zalloc(sizeof(*m));
    struct registry_slot *base = NULL;
    const uint64_t file_bytes = lent || spec->n_parts ? 0 : bytes_of(spec->path);
    struct stat st;
    int rc = 0;
    if (m) {
        m->name = mem_strdup(spec->name);
        m->task = mem_strdup(spec->task ? spec->task : "");
        m->labels = spec->labels ? mem_strdup(spec->labels) : NULL;
        m->card = spec->card ? mem_strdup(spec->card) : NULL;
        m->calibration = spec->calibration;
        confidence_watch_init(&m->stats.confidence, &m->calibration);
        m->baseline_key = baselines_key(spec->name, spec->path);
        if (m->calibration.rows == 0 && r->memo_dir)
            (void)baselines_restore(&m->stats.confidence, r->memo_dir, m->baseline_key);
        m->versioned = spec->sum != NULL;
        m->copy = spec->copy;
        m->service.duty = spec->staged ? REGISTRY_STAGE : REGISTRY_SERVE;
        if (spec->sum)
            memcpy(m->sum, spec->sum, SHA256_BYTES);
    }
    if (!m || !m->name || !m->task || (spec->labels && !m->labels) || (spec->card && !m->card)) {
        if (m)
            registry_model_free(m);
        return err_set(e, SHOAL_ENOMEM, "model");
    }
    pthread_mutex_lock(&r->lock);
    const struct registry_model *first =
        spec->copy && spec->sum ? find_version(r, spec->name, spec->sum) : NULL;
    if (spec->copy && (!first || !first->versioned))
        rc = err_set(e, SHOAL_EINVAL, "there is no model %s in this version to make a copy of",
                     spec->name);
    else if (spec->sum ? find_copy(r, spec->name, spec->sum, spec->copy)
                       : find_plain(r, spec->name))
        rc = err_set(e, SHOAL_EINVAL, "a model named %s already exists%s", spec->name,
                     spec->sum ? " in this version" : "");
    else if (spec->base && (rc = find_base(r, spec, &base, e)) < 0)
        ;
    else if (!(m->slot = find_slot(r, spec, base)))
        rc = err_set(e, SHOAL_ENOMEM, "model");
    else if (spec->apart && !r->opts.apart)
        rc = err_set(e, SHOAL_EINVAL,
                     "the model '%.64s' should run in its own process: restart the server",
                     spec->name);
    else if (m->slot->n_names > 0 && m->slot->spec.apart != spec->apart)
        rc =
            err_set(e, SHOAL_EINVAL,
                    "%.64s: another model has the same path and a different isolation", spec->name);
    else if (lent && m->slot->n_names > 0)
        rc = err_set(e, SHOAL_EINVAL, "%s is the path of another model", spec->name);
    if (rc == 0) {
        struct registry_model **at = &r->list;
        while (*at)
            at = &(*at)->next;
        *at = m;
        m->slot->n_names++;
        m->slot->family = first ? first->slot->serial : m->slot->serial;
        m->slot->spec.pinned |= spec->pinned;
        if (spec->pinned &&
            (m->slot->state == REGISTRY_UNLOADED || m->slot->state == REGISTRY_UNLOADING))
            start_loading(m->slot);
        if (lent)
            set_lent(m->slot, lent);
        else if (m->slot->created_s == 0 && stat(m->slot->path, &st) == 0)
            m->slot->created_s = (uint64_t)st.st_mtim.tv_sec;
        m->slot->file_bytes = file_bytes;
        note_change(r);
        pthread_cond_signal(&r->work);
    }
    pthread_mutex_unlock(&r->lock);
    if (rc < 0)
        registry_model_free(m);
    return rc;
}

int registry_add(struct registry *r, const struct registry_spec *spec, struct err *e)
{
    return add(r, spec, NULL, e);
}

int registry_lend(struct registry *r, const char *name, const char *labels,
                  struct shoal_engine *engine, struct err *e)
{
    const struct registry_spec spec = {.name = name, .path = name, .labels = labels};
    return add(r, &spec, engine, e);
}

void registry_lend_adapter(struct registry *r, const char *name, struct shoal_adapter *adapter)
{
    pthread_mutex_lock(&r->lock);
    struct registry_model *m = find_plain(r, name);
    if (m && m->slot->lent)
        m->slot->adapter = adapter;
    pthread_mutex_unlock(&r->lock);
}

const char *registry_base_name(const struct registry_model *m, size_t *n)
{
    const char *end = m->slot->base ? strrchr(m->name, ':') : NULL;
    *n = end ? (size_t)(end - m->name) : 0;
    return end ? m->name : NULL;
}

bool registry_adapter_name(struct registry *r, const char *base, uint32_t id, char *out, size_t cap)
{
    const struct registry_model *found = NULL;
    size_t n;
    pthread_mutex_lock(&r->lock);
    for (const struct registry_model *m = r->list; m && !found; m = m->next) {
        const char *of = m->gone ? NULL : registry_base_name(m, &n);
        if (of && strlen(base) == n && memcmp(of, base, n) == 0 && id-- == 0)
            found = m;
    }
    const bool ok = found && strlen(found->name) < cap;
    if (ok)
        memcpy(out, found->name, strlen(found->name) + 1);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

void registry_set_preset(struct registry *r, const char *name, float scale)
{
    pthread_mutex_lock(&r->lock);
    struct registry_model *m = find_plain(r, name);
    if (m)
        m->preset = scale;
    pthread_mutex_unlock(&r->lock);
}

/* The adapter of this name, whatever its base; the lock is held. */
static const struct registry_model *find_adapter(const struct registry *r, const char *name,
                                                 bool *several)
{
    const struct registry_model *found = NULL;
    size_t n;
    *several = false;
    for (const struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && registry_base_name(m, &n) && strcmp(m->name + n + 1, name) == 0) {
            *several = found != NULL;
            found = m;
        }
    return found;
}

bool registry_find_tagged(struct registry *r, const char *name, char *out, size_t cap)
{
    const size_t n = strlen(name);
    const struct registry_model *found = NULL;
    bool several = false;
    pthread_mutex_lock(&r->lock);
    for (const struct registry_model *m = r->list; m; m = m->next) {
        if (m->gone || m->slot->base || strncmp(m->name, name, n) != 0 || m->name[n] != ':')
            continue;
        bool latest = strcmp(m->name + n, ":latest") == 0;
        several = !latest && found && strcmp(found->name, m->name) != 0;
        found = m;
        if (latest)
            break;
    }
    if (!found)
        found = find_adapter(r, name, &several);
    bool ok = found && !several && strlen(found->name) < cap;
    if (ok)
        memcpy(out, found->name, strlen(found->name) + 1);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

int registry_check(const struct registry_model *m, enum shoal_kind kind, struct err *e)
{
    char can[128] = "";
    size_t n = 0;
    if (m->slot->kinds & kind)
        return 0;
    for (unsigned k = 1; k <= SHOAL_KIND_SPEAK; k <<= 1)
        if ((m->slot->kinds & k) && n < sizeof(can))
            n += (size_t)snprintf(can + n, sizeof(can) - n, "%s%s", n ? ", " : "",
                                  shoal_kind_name((enum shoal_kind)k));
    return err_set(e, SHOAL_EINVAL, "the model '%s' cannot %s; it can: %s", m->name,
                   shoal_kind_name(kind), can);
}

static void use(struct registry_model *m)
{
    m->users++;
    registry_slot_use(m->slot);
    for (struct registry_slot *s = m->slot; s; s = s->base) {
        s->want_unload = false;
        s->last_used_ns = clock_ns();
    }
}

/* The model is not loaded: starts loading it. */
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

/* The model for a request, or the reason why there is none. */
static int choose(struct registry *r, const struct registry_want *want, struct registry_model **out,
                  struct err *e)
{
    struct registry_want w = *want;
    struct registry_model *first = NULL, *m = NULL;
    if (!w.name && (m = find_for(r, w.kind)))
        w.name = m->name;
    if (w.name)
        m = find_serving(r, &w, &first);
    if (!m && w.version) /* the caller compares it when it is loaded */
        m = first;
    *out = m;
    if (r->epoch_end && w.epoch >= r->epoch_end)
        return err_set(e, SHOAL_ECHANGED, "epoch %llu is not known here yet",
                       (unsigned long long)w.epoch);
    if (!m && first)
        return err_set(e, SHOAL_ECHANGED, "no version of the model '%.64s' serves epoch %llu here",
                       w.name, (unsigned long long)(w.epoch ? w.epoch : r->epoch));
    if (!m && w.name)
        return err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' does not exist", w.name);
    if (!m)
        return err_set(e, SHOAL_ENOTFOUND, "no model here can %s", shoal_kind_name(w.kind));
    *out = pick_copy(r, m, &w);
    return 0;
}

int registry_get_wanted(struct registry *r, const struct registry_want *want,
                        struct registry_model **out, struct registry_wait *w, struct err *e)
{
    struct registry_model *m;
    *out = NULL;
    pthread_mutex_lock(&r->lock);
    int rc = choose(r, want, &m, e);
    if (rc == 0 && m->slot->spec.apart && !want->any)
        rc = err_set(e, SHOAL_EINVAL,
                     "the model '%.64s' runs in a process of its own, which cannot do this; remove "
                     "'isolation: process' from its configuration",
                     m->name);
    else if (rc == 0 && m->slot->kinds)
        rc = registry_check(m, want->kind, e);
    if (rc == 0 && m->slot->state == REGISTRY_READY) {
        use(m);
        *out = m;
    } else if (rc == 0) {
        rc = wait_for(r, m, w, e);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int registry_get(struct registry *r, const char *name, enum shoal_kind kind,
                 struct registry_model **out, struct registry_wait *w, struct err *e)
{
    const struct registry_want want = {.name = name, .kind = kind};
    return registry_get_wanted(r, &want, out, w, e);
}

int registry_get_any(struct registry *r, const char *name, enum shoal_kind kind,
                     struct registry_model **out, struct registry_wait *w, struct err *e)
{
    const struct registry_want want = {.name = name, .kind = kind, .any = true};
    return registry_get_wanted(r, &want, out, w, e);
}

bool registry_is_apart(struct registry *r, const char *name, enum shoal_kind kind)
{
    pthread_mutex_lock(&r->lock);
    const struct registry_model *m = name ? find(r, name) : find_for(r, kind);
    bool apart = m && m->slot->spec.apart;
    pthread_mutex_unlock(&r->lock);
    return apart;
}

bool registry_shares_cache(struct registry *r, const char *name, enum shoal_kind kind)
{
    pthread_mutex_lock(&r->lock);
    const struct registry_model *m = name ? find(r, name) : find_for(r, kind);
    bool shares = m && m->slot->spec.shares_cache;
    pthread_mutex_unlock(&r->lock);
    return shares;
}

void registry_hold(struct registry_model *m)
{
    pthread_mutex_lock(&m->slot->all->lock);
    m->users++;
    registry_slot_use(m->slot);
    pthread_mutex_unlock(&m->slot->all->lock);
}

void registry_put(struct registry_model *m)
{
    struct registry_slot *s = m->slot;
    struct registry *r = s->all;
    pthread_mutex_lock(&r->lock);
    m->users--;
    slot_leave(s);
    if (s->base && s->base->users == 0)
        pthread_cond_signal(&r->work);
    if ((s->users == 0 && (s->want_unload || r->opts.idle_unload_ms || s->keep_ns)) || m->gone)
        pthread_cond_signal(&r->work);
    pthread_mutex_unlock(&r->lock);
}

int registry_attach(struct registry_model *m,
                    int (*make)(void *ctx, void **out, struct shoal_engine *en, struct err *e),
                    void *ctx, void (*detach_fn)(void *attached), void **out, struct err *e)
{
    struct registry_slot *s = m->slot;
    int rc = 0;
    pthread_mutex_lock(&s->all->lock);
    if (!s->attached)
        rc = make(ctx, &s->attached, s->engine, e);
    s->detach = detach_fn;
    *out = s->attached;
    pthread_mutex_unlock(&s->all->lock);
    return rc;
}

int registry_check_path(const char *path, struct err *e)
{
    return backends_check(path, e);
}

int registry_check_adapter(const char *path, const char *base, struct err *e)
{
    return backends_check_adapter(path, base, e);
}

bool registry_generates(const char *path)
{
    return backends_generates(path);
}

struct cost_estimate registry_estimate(const struct registry_model *m, const struct cost_request *r,
                                       const struct fair_who *who)
{
    return estimate_request(registry_engine(m), r, who);
}

void registry_speed(const struct registry_model *m, double *prefill_ns, double *token_ns)
{
    *prefill_ns = m->slot->prefill_ns;
    *token_ns = m->slot->token_ns;
    if (m->slot->engine)
        estimate_speed(m->slot->engine, prefill_ns, token_ns);
}

struct cost_telemetry registry_telemetry(const struct registry_model *m, const struct fair_who *who)
{
    if (m->slot->engine)
        return estimate_telemetry(m->slot->engine, who);
    return (struct cost_telemetry){
        .prefill_ns = m->slot->prefill_ns,
        .token_ns = m->slot->token_ns,
        .in_flight = atomic_load_explicit(&m->stats.in_flight, memory_order_relaxed),
        .parallel = m->slot->spec.max_tasks};
}

enum change { CHANGE_LOAD, CHANGE_UNLOAD, CHANGE_REMOVE };

/* A name is removed: so are those of its adapters. */
static void remove_adapters(struct registry *r, const struct registry_model *base)
{
    size_t n;
    for (struct registry_model *m = r->list; m; m = m->next) {
        const char *of = m->slot->base == base->slot ? registry_base_name(m, &n) : NULL;
        if (of && strlen(base->name) == n && memcmp(of, base->name, n) == 0)
            m->gone = true;
    }
}

/* The lock is held. */
static int change(struct registry *r, const char *name, struct registry_model *m, enum change what,
                  struct err *e)
{
    struct registry_slot *s = m ? m->slot : NULL;
    if (s && what == CHANGE_LOAD) {
        s->want_unload = false;
        if (s->base && s->base->state == REGISTRY_FAILED) /* this is another try, then */
            start_loading(s->base);
        if (s->state != REGISTRY_READY)
            start_loading(s);
    } else if (s && what == CHANGE_UNLOAD) {
        s->want_unload = s->state == REGISTRY_READY && !s->lent;
    } else if (s) {
        m->gone = true;
        remove_adapters(r, m);
        note_change(r);
    }
    pthread_cond_signal(&r->work);
    return m ? 0 : err_set(e, SHOAL_ENOTFOUND, "the model '%.64s' does not exist", name);
}

static int change_name(struct registry *r, const char *name, enum change what, struct err *e)
{
    pthread_mutex_lock(&r->lock);
    struct registry_model *m = what == CHANGE_REMOVE ? find_plain(r, name) : NULL;
    int rc = change(r, name, m ? m : find(r, name), what, e);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int registry_load(struct registry *r, const char *name, struct err *e)
{
    return change_name(r, name, CHANGE_LOAD, e);
}

int registry_unload(struct registry *r, const char *name, struct err *e)
{
    return change_name(r, name, CHANGE_UNLOAD, e);
}

int registry_keep(struct registry *r, const char *name, uint64_t ns, struct err *e)
{
    pthread_mutex_lock(&r->lock);
    struct registry_model *m = find(r, name);
    if (m) {
        m->slot->keep_ns = ns;
        pthread_cond_signal(&r->work); /* its unloading may now be due sooner */
    }
    pthread_mutex_unlock(&r->lock);
    return m ? 0 : err_set(e, SHOAL_ENOTFOUND, "there is no model '%.64s'", name);
}

int registry_remove(struct registry *r, const char *name, struct err *e)
{
    return change_name(r, name, CHANGE_REMOVE, e);
}

int registry_remove_version(struct registry *r, const char *name, const uint8_t sum[SHA256_BYTES],
                            struct err *e)
{
    pthread_mutex_lock(&r->lock);
    struct registry_model *first = find_version(r, name, sum);
    int rc = change(r, name, first, CHANGE_REMOVE, e);
    for (struct registry_model *m = first && first->versioned ? r->list : NULL; m; m = m->next)
        if (is_copy_of(m, first))
            m->gone = true;
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int registry_remove_copy(struct registry *r, const char *name, const uint8_t sum[SHA256_BYTES],
                         uint32_t copy, struct err *e)
{
    pthread_mutex_lock(&r->lock);
    int rc = change(r, name, copy ? find_copy(r, name, sum, copy) : NULL, CHANGE_REMOVE, e);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int registry_set_service(struct registry *r, const char *name, const uint8_t sum[SHA256_BYTES],
                         const struct registry_service *s, struct err *e)
{
    pthread_mutex_lock(&r->lock);
    struct registry_model *m = find_version(r, name, sum);
    for (struct registry_model *c = m ? r->list : NULL; c; c = c->next)
        if ((c == m || (m->versioned && is_copy_of(c, m))) &&
            !registry_service_same(&c->service, s)) {
            c->service = *s;
            note_change(r);
        }
    pthread_mutex_unlock(&r->lock);
    return m ? 0 : err_set(e, SHOAL_ENOTFOUND, "this version of '%.64s' does not exist", name);
}

void registry_set_epoch(struct registry *r, uint64_t epoch, uint64_t end)
{
    atomic_store_explicit(&r->epoch_end, end, memory_order_relaxed);
    atomic_store_explicit(&r->epoch, epoch, memory_order_relaxed);
}

void registry_get_epoch(struct registry *r, uint64_t *epoch, uint64_t *end)
{
    *epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed);
    *end = atomic_load_explicit(&r->epoch_end, memory_order_relaxed);
}

bool registry_hold_epoch(struct registry *r, uint64_t epoch)
{
    uint32_t at = REGISTRY_MAX_EPOCHS;
    pthread_mutex_lock(&r->epoch_lock);
    for (uint32_t i = 0; i < REGISTRY_MAX_EPOCHS; i++) {
        if (r->held[i].n > 0 && r->held[i].epoch == epoch) {
            at = i;
            break;
        }
        if (r->held[i].n == 0 && at == REGISTRY_MAX_EPOCHS)
            at = i;
    }
    if (at < REGISTRY_MAX_EPOCHS) {
        r->held[at].epoch = epoch;
        r->held[at].n++;
    }
    pthread_mutex_unlock(&r->epoch_lock);
    return at < REGISTRY_MAX_EPOCHS;
}

void registry_release_epoch(struct registry *r, uint64_t epoch)
{
    pthread_mutex_lock(&r->epoch_lock);
    for (uint32_t i = 0; i < REGISTRY_MAX_EPOCHS; i++)
        if (r->held[i].n > 0 && r->held[i].epoch == epoch)
            r->held[i].n--;
    pthread_mutex_unlock(&r->epoch_lock);
}

uint64_t registry_oldest_epoch(struct registry *r)
{
    uint64_t oldest = 0;
    pthread_mutex_lock(&r->epoch_lock);
    for (uint32_t i = 0; i < REGISTRY_MAX_EPOCHS; i++)
        if (r->held[i].n > 0 && (oldest == 0 || r->held[i].epoch < oldest))
            oldest = r->held[i].epoch;
    pthread_mutex_unlock(&r->epoch_lock);
    return oldest;
}

void registry_each(struct registry *r, void (*fn)(void *ctx, const struct registry_model *m),
                   void *ctx)
{
    pthread_mutex_lock(&r->lock);
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone && m->copy == 0 && find(r, m->name) == m)
            fn(ctx, m);
    pthread_mutex_unlock(&r->lock);
}

void registry_each_version(struct registry *r,
                           void (*fn)(void *ctx, const struct registry_model *m), void *ctx)
{
    pthread_mutex_lock(&r->lock);
    for (struct registry_model *m = r->list; m; m = m->next)
        if (!m->gone)
            fn(ctx, m);
    pthread_mutex_unlock(&r->lock);
}

void registry_signer(struct registry *r, const char *name, char out[REGISTRY_SIGNER_BYTES])
{
    pthread_mutex_lock(&r->lock);
    const struct registry_model *m = find(r, name);
    memcpy(out, m ? m->slot->signer : "\0", m ? REGISTRY_SIGNER_BYTES : 1);
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

const char *registry_memo_dir(const struct registry *r)
{
    return r->memo_dir;
}
