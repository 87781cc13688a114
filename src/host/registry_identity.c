/* registry_identity.c - the identities of models: found while loading, and completed by a thread
 * that hashes the content. */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/baselines.h"
#include "host/pack.h"
#include "host/registry_int.h"

#define SAVE_NS 2000000000u /* how long after it was learned a baseline is written, at most */

static bool same(const struct identity *a, const struct identity *b)
{
    return a->kind == b->kind && memcmp(a->sum, b->sum, sizeof(a->sum)) == 0;
}

/* ---- the files of an average ---- */

void registry_parts_fini(struct registry_parts *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        mem_free(p->paths[i]);
    *p = (struct registry_parts){.n = 0};
}

static const struct registry_model *find_part(const struct registry *r, const char *name)
{
    const struct registry_model *m = r->list;
    while (m && (m->gone || strcmp(m->name, name) != 0))
        m = m->next;
    return m;
}

/* One member of an average. */
static int add_part(const struct registry *r, const struct registry_part *part,
                    struct registry_parts *out, struct err *e)
{
    const char *name = part->model;
    const struct registry_model *m = find_part(r, name);
    if (!m)
        return err_set(e, SHOAL_ENOTFOUND,
                       "the model '%.64s' of the average does not exist on this machine: add it to "
                       "`models` here, or give the route to a node that has the models",
                       name);
    if (m->slot->spec.n_parts > 0 || m->slot->lent)
        return err_set(e, SHOAL_EINVAL, "the model '%.64s' has no file that can be averaged", name);
    if (m->slot->spec.apart)
        return err_set(e, SHOAL_EINVAL,
                       "the model '%.64s' runs in a process of its own and cannot be averaged; "
                       "remove 'isolation: process' from its configuration",
                       name);
    if (!(out->paths[out->n] = mem_strdup(m->slot->path)))
        return err_set(e, SHOAL_ENOMEM, "path of a model");
    out->weights[out->n++] = part->weight;
    return 0;
}

/* The lock is held. */
static int copy_paths(const struct registry *r, const struct registry_slot *s,
                      struct registry_parts *out, struct err *e)
{
    int rc = 0;
    *out = (struct registry_parts){.n = 0};
    if (s->base) { /* both, and how much the second adds */
        out->paths[0] = mem_strdup(s->base->path);
        out->paths[1] = mem_strdup(s->path);
        out->weights[0] = 1.0;
        out->weights[1] = s->spec.adapter_scale != 0 ? s->spec.adapter_scale : 1.0;
        out->n = 2;
        if (!out->paths[0] || !out->paths[1]) {
            registry_parts_fini(out);
            return err_set(e, SHOAL_ENOMEM, "path of a model");
        }
        return 0;
    }
    if (s->spec.n_parts == 0) {
        out->paths[0] = mem_strdup(s->path);
        out->n = out->paths[0] ? 1 : 0;
        return out->n ? 0 : err_set(e, SHOAL_ENOMEM, "path of a model");
    }
    for (uint32_t i = 0; i < s->spec.n_parts && rc == 0; i++)
        rc = add_part(r, &s->parts[i], out, e);
    if (rc < 0)
        registry_parts_fini(out);
    return rc;
}

int registry_find_parts(struct registry *r, const struct registry_slot *s,
                        struct registry_parts *out, struct err *e)
{
    pthread_mutex_lock(&r->lock);
    int rc = copy_paths(r, s, out, e);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

static int list_parts(struct identity_list **out, const struct registry_parts *p, struct err *e)
{
    struct identity_list *lists[SHOAL_MAX_AVERAGE] = {NULL};
    int rc = 0;
    *out = NULL;
    if (p->n == 1)
        return identity_list(out, p->paths[0], e);
    for (uint32_t i = 0; i < p->n && rc == 0; i++)
        rc = identity_list(&lists[i], p->paths[i], e);
    if (rc == 0)
        return identity_list_join(out, lists, p->weights, p->n, e);
    for (uint32_t i = 0; i < p->n; i++)
        identity_list_free(lists[i]);
    return rc;
}

/* The files that a slot is loaded from.  Without the lock; the slot stays. */
static int list_files(struct identity_list **out, struct registry *r, const struct registry_slot *s,
                      struct err *e)
{
    struct registry_parts p;
    *out = NULL;
    int rc = registry_find_parts(r, s, &p, e);
    if (rc < 0)
        return rc;
    rc = list_parts(out, &p, e);
    registry_parts_fini(&p);
    return rc;
}

static const struct pack_model *find_in_pack(const struct pack *p, const char *path)
{
    for (uint32_t i = 0; i < p->n_models; i++) /* other names of the same files: same hashes */
        if (strcmp(p->models[i].open, path) == 0)
            return &p->models[i];
    return NULL;
}

/* A version is loaded only if its bytes match its hash. */
static int check_sum(const struct registry *r, const struct registry_slot *s,
                     struct identity_list *list, struct identity *content, struct err *e)
{
    char want[2 * SHA256_BYTES + 1], has[2 * SHA256_BYTES + 1];
    int rc = content->kind == IDENTITY_CONTENT
                 ? 0
                 : identity_read(content, list, r->memo_dir, &r->stop, e);
    if (rc < 0 || memcmp(content->sum, s->want_sum, SHA256_BYTES) == 0)
        return rc;
    sha256_hex(want, s->want_sum);
    sha256_hex(has, content->sum);
    return err_set(e, SHOAL_EFORMAT, "%s has the SHA-256 %.16s... instead of %.16s...", s->path,
                   has, want);
}

int registry_check_files(struct registry *r, const struct registry_slot *s,
                         struct registry_found *out, struct err *e)
{
    const struct pack_model *verified = NULL;
    struct identity_list *list = NULL;
    struct pack *pack = NULL;
    struct err why = {0};
    int rc = 0;
    *out = (struct registry_found){.time_s = 0};
    /* not fatal: if a file is bad, opening the engine reports it */
    if (list_files(&list, r, s, &why) == 0) {
        out->local = identity_local(list);
        out->time_s = identity_list_time_s(list);
    }
    if (s->pack)
        rc = pack_open(&pack, s->pack, e);
    if (rc == 0 && pack && (verified = find_in_pack(pack, s->path)))
        rc = pack_verify(verified, e);
    if (rc == 0 && list)
        out->content = identity_known(list, r->memo_dir, verified);
    /* a stream with an adapter moves only to the same bytes: nobody may begin one before they are
     * known, since a name says little */
    if (rc == 0 && s->base && list && out->content.kind != IDENTITY_CONTENT)
        rc = identity_read(&out->content, list, r->memo_dir, &r->stop, e);
    if (rc == 0 && s->has_want_sum)
        rc = list ? check_sum(r, s, list, &out->content, e) : err_set(e, why.code, "%s", why.msg);
    if (rc == 0 && r->opts.trusted && list && out->content.kind != IDENTITY_CONTENT)
        rc = identity_read(&out->content, list, r->memo_dir, &r->stop, e); /* who signed what */
    pack_close(pack);
    identity_list_free(list);
    return rc;
}

void registry_recheck_files(struct registry *r, const struct registry_slot *s,
                            struct registry_found *f)
{
    struct identity_list *list = NULL;
    struct identity now = {.kind = IDENTITY_NONE};
    if (list_files(&list, r, s, NULL) == 0)
        now = identity_local(list);
    identity_list_free(list);
    if (same(&now, &f->local))
        return;
    log_warn("registry", "path=%s changed while it was loaded: its answers are not cached",
             s->path);
    *f = (struct registry_found){.time_s = f->time_s};
}

bool registry_same_files(const struct registry_slot *s, const struct registry_found *f)
{
    return same(&s->local, &f->local);
}

static void tell(struct registry_slot *s, const struct identity *from, const struct identity *to)
{
    const struct registry_opts *o = &s->all->opts;
    if (o->identity && from->kind != IDENTITY_NONE)
        o->identity(o->ctx, from->sum, to ? to->sum : NULL);
}

static void publish_content(struct registry_slot *s, const struct identity *content)
{
    s->content = *content;
    atomic_store_explicit(&s->identity, &s->content, memory_order_release);
    log_info("registry", "identified path=%s version=%s", s->path, content->version);
}

void registry_publish_identity(struct registry_slot *s, const struct registry_found *f)
{
    const struct identity was = *atomic_load_explicit(&s->identity, memory_order_relaxed);
    bool same_file = f->local.kind != IDENTITY_NONE && same(&s->local, &f->local);
    if (same_file && s->content.kind == IDENTITY_CONTENT)
        return;
    s->hash_failed = false;
    s->local = f->local;
    s->content = (struct identity){.kind = IDENTITY_NONE};
    s->created_s = f->time_s ? f->time_s : s->created_s;
    atomic_store_explicit(&s->identity, &s->local, memory_order_release);
    if (f->content.kind == IDENTITY_CONTENT)
        publish_content(s, &f->content);
    const struct identity *now = atomic_load_explicit(&s->identity, memory_order_relaxed);
    if (!same(&was, now))
        tell(s, &was, same_file ? now : NULL);
}

int registry_identify(struct registry *r, const char *name, const char *path, struct err *e)
{
    struct registry_found f = {.time_s = 0};
    struct identity_list *list = NULL;
    int rc = identity_list(&list, path, e);
    if (rc == 0) {
        f.local = identity_local(list);
        f.time_s = identity_list_time_s(list);
        rc = identity_read(&f.content, list, r->memo_dir, &r->stop, e);
    }
    identity_list_free(list);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&r->lock);
    for (struct registry_model *m = r->list; m; m = m->next)
        if (m->slot->lent && strcmp(m->name, name) == 0)
            registry_publish_identity(m->slot, &f);
    pthread_mutex_unlock(&r->lock);
    return 0;
}

/* ---- the hashing thread ---- */

static struct registry_slot *next_to_hash(struct registry *r)
{
    for (struct registry_slot *s = r->slots; s; s = s->next)
        if (s->state == REGISTRY_READY && s->local.kind == IDENTITY_LOCAL &&
            s->content.kind == IDENTITY_NONE && !s->hash_failed)
            return s;
    return NULL;
}

/* The lock is held, and released while the files are read. */
static void hash_one(struct registry *r, struct registry_slot *s)
{
    const struct identity local = s->local;
    const uint64_t serial = s->serial;
    struct registry_parts paths;
    struct identity_list *list = NULL;
    struct identity content, now;
    struct err e = {0};
    int rc = copy_paths(r, s, &paths, &e);
    pthread_mutex_unlock(&r->lock);
    if (rc == 0)
        rc = list_parts(&list, &paths, &e);
    if (rc == 0) {
        now = identity_local(list);
        rc = same(&now, &local) ? identity_read(&content, list, r->memo_dir, &r->stop, &e)
                                : err_set(&e, SHOAL_EIO, "it changed after it was loaded");
    }
    identity_list_free(list);
    pthread_mutex_lock(&r->lock);
    s = registry_find_serial(r, serial); /* it may have been removed or loaded again */
    if (s && same(&s->local, &local) && s->content.kind == IDENTITY_NONE) {
        if (rc == 0) {
            publish_content(s, &content);
            tell(s, &local, &content);
        } else if (rc != SHOAL_ECANCELLED) {
            s->hash_failed = true;
            log_warn("registry", "cannot identify path=%s: %s", s->path, e.msg);
        }
    }
    registry_parts_fini(&paths);
}

/* ---- baselines of confidences: this thread may wait for a disk ---- */

static struct registry_model *next_to_save(struct registry *r, double shares[CONFIDENCE_BINS])
{
    for (struct registry_model *m = r->list; m && r->memo_dir; m = m->next)
        if (!m->baseline_saved && confidence_watch_learned(&m->stats.confidence, shares))
            return m;
    return NULL;
}

/* The lock is held, and released while files are written. */
static void save_baselines(struct registry *r)
{
    double shares[CONFIDENCE_BINS];
    for (struct registry_model *m; (m = next_to_save(r, shares));) {
        const uint64_t key = m->baseline_key;
        struct err e = {0};
        m->baseline_saved = true;
        pthread_mutex_unlock(&r->lock);
        if (baselines_save(r->memo_dir, key, shares, &e) < 0)
            log_warn("drift", "cannot keep what is usual for a restart: %s", e.msg);
        pthread_mutex_lock(&r->lock);
    }
}

static void wait_for_work(struct registry *r)
{
    const uint64_t until = clock_ns() + SAVE_NS;
    const struct timespec ts = {.tv_sec = (time_t)(until / 1000000000u),
                                .tv_nsec = (long)(until % 1000000000u)};
    pthread_cond_timedwait(&r->hash_work, &r->lock, &ts);
}

void *registry_hash_main(void *arg)
{
    struct registry *r = arg;
    /* Hashes are not urgent: requests go first.  On Linux this affects the calling thread only. */
    (void)setpriority(PRIO_PROCESS, 0, 19);
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        struct registry_slot *s = next_to_hash(r);
        if (s)
            hash_one(r, s);
        else
            wait_for_work(r);
        save_baselines(r);
    }
    save_baselines(r);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}
