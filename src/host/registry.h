/* registry.h - the models of this process: which there are, which are loaded, and who uses them.
 *
 * Loading and unloading happen on a thread of the registry's own; requests for a model that is not
 * loaded start that and wait.
 *
 * Thread:    any, unless told.
 * Ownership: registry_get gives a reference that registry_put takes back; while one is held, the
 *            engine stays.
 * Failure:   a model that cannot be loaded stays listed with the reason; the others go on. */
#ifndef SHOAL_HOST_REGISTRY_H
#define SHOAL_HOST_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/cost.h"
#include "host/identity.h"
#include "host/model_stats.h"
#include "shoal/shoal.h"

struct registry;

enum registry_state {
    REGISTRY_UNLOADED,
    REGISTRY_LOADING,
    REGISTRY_READY,
    REGISTRY_UNLOADING,
    REGISTRY_FAILED
};

struct registry_spec { /* from the configuration; strings are copied */
    const char *name, *path;
    const char *task;   /* "generate", ...; NULL or "": whatever the file can do */
    const char *labels; /* label set that the name stands for; NULL: the model's default */
    const char *pack;   /* folder whose manifest tells the hashes of its files; or NULL */
    const char *card;   /* what there is to know about it, in Markdown; or NULL */
    uint32_t n_ctx, max_tasks, max_queue, n_threads;
    size_t kv_bytes;
    bool int8;          /* as in shoal_engine_opts */
    bool kv_q8, pinned; /* pinned: loaded at start, never unloaded by itself */
    int32_t priority;   /* of its place in memory: lower ones go first */
};

/* One file (or folder) with its engine; several names may stand for it. */
struct registry_slot {
    struct registry_slot *next;
    struct registry *all;
    char *path, *pack;
    uint64_t serial;           /* never used again, unlike an address */
    struct registry_spec spec; /* of the first name; strings are not valid */
    uint32_t n_names;
    /* under the registry's lock */
    enum registry_state state;
    bool want_unload, want_load; /* want_load: once it is closed */
    struct shoal_engine *engine;
    void *attached; /* of registry_attach; freed before the engine is closed */
    void (*detach)(void *attached);
    unsigned kinds; /* enum shoal_kind, known once it was loaded */
    uint32_t n_ctx; /* the same */
    struct identity local, content;
    bool hash_failed;   /* the content could not be read: not tried again until the next load */
    uint64_t created_s; /* time of the file */
    /* One of the two above.  Release and acquire: whoever sees the pointer sees what it points to,
     * which does not change while the slot is used. */
    _Atomic(const struct identity *) identity;
    uint32_t users;
    uint64_t last_used_ns;
    size_t bytes; /* reserved while loaded */
    double load_ms;
    int error_code;
    char error[320];
    struct registry_wait *waiting;
    _Atomic uint32_t progress; /* of loading, in thousandths */
};

struct registry_model { /* a name */
    char *name, *task, *labels, *card;
    struct registry_model *next;
    struct registry_slot *slot;
    bool gone; /* taken out of the list when the last user leaves */
    uint32_t users;
    struct model_stats stats;
};

static inline struct shoal_engine *registry_engine(const struct registry_model *m)
{
    return m->slot->engine; /* does not change while m is held */
}

/* Which model this is, as far as it is known now; borrowed while m is held.  Its content may become
 * known at any time, so what is asked for twice may differ, but both mean the same bytes. */
static inline const struct identity *registry_identity(const struct registry_model *m)
{
    return atomic_load_explicit(&m->slot->identity, memory_order_acquire);
}

/* Somebody who waits until a model is loaded.  fn: on the registry's thread; rc as registry_get. */
struct registry_wait {
    struct registry_wait *next;
    struct registry_model *model;
    void (*fn)(struct registry_wait *w, struct registry_model *m, int rc);
};

struct registry_opts {
    size_t memory_bytes;     /* over all that is loaded; 0: what the machine has */
    uint32_t idle_unload_ms; /* 0: never */
    const char *cache_dir;   /* as in shoal_engine_opts */
    /* What was kept of a model under the identity `from` belongs to `to` from now on; NULL: the
     * file is another one, and it is of no use any more.  On a thread of the registry's, under its
     * lock; may be NULL. */
    void (*identity)(void *ctx, const uint8_t from[SHA256_BYTES], const uint8_t *to);
    /* A model's state is another one, or a name came or went.  On any thread, under the registry's
     * lock; may be NULL. */
    void (*moved)(void *ctx);
    void *ctx; /* of both */
};

SHOAL_MUST_CHECK int registry_create(struct registry **out, const struct registry_opts *o,
                                     struct err *e);
/* Waits for the loading thread; every reference must be back. */
void registry_destroy(struct registry *r);

/* SHOAL_EINVAL: the name is there already. */
SHOAL_MUST_CHECK int registry_add(struct registry *r, const struct registry_spec *spec,
                                  struct err *e);
/* Takes a model out of the list; it is unloaded when its last user leaves. */
SHOAL_MUST_CHECK int registry_remove(struct registry *r, const char *name, struct err *e);
/* NULL name: the first model that does it.  0: *out is ready and held.  SHOAL_EBUSY: it is being
 * loaded; w (may be NULL) is called once it is ready (held) or failed (not held).
 * SHOAL_ENOTFOUND, SHOAL_EINVAL (it does other things), or why it could not be loaded. */
SHOAL_MUST_CHECK int registry_get(struct registry *r, const char *name, enum shoal_kind kind,
                                  struct registry_model **out, struct registry_wait *w,
                                  struct err *e);
/* Can this model, which is held, do that?  SHOAL_EINVAL says what it does instead. */
SHOAL_MUST_CHECK int registry_check(const struct registry_model *m, enum shoal_kind kind,
                                    struct err *e);
void registry_put(struct registry_model *m);
/* One more reference to a model that is held. */
void registry_hold(struct registry_model *m);
/* What was made for the engine of a model, which is held: made once, kept while it is loaded. */
SHOAL_MUST_CHECK int
registry_attach(struct registry_model *m,
                int (*make)(void *ctx, void **out, struct shoal_engine *en, struct err *e),
                void *ctx, void (*detach)(void *attached), void **out, struct err *e);
/* How long a request to a model, which is held, would take now. */
struct cost_estimate registry_estimate(const struct registry_model *m,
                                       const struct cost_request *r);
/* As cost_speed, of a model that is held, or within registry_each; 0 if it is not loaded. */
void registry_speed(const struct registry_model *m, double *prefill_ns, double *token_ns);
/* Starts loading or unloading; unloading waits for the users. */
SHOAL_MUST_CHECK int registry_load(struct registry *r, const char *name, struct err *e);
SHOAL_MUST_CHECK int registry_unload(struct registry *r, const char *name, struct err *e);
/* Every name in order, under the lock: look, do not keep, do not call the registry. */
void registry_each(struct registry *r, void (*fn)(void *ctx, const struct registry_model *m),
                   void *ctx);
/* false: there is no such name. */
bool registry_state(struct registry *r, const char *name, enum registry_state *out);
/* Pinned models are loaded, or have failed. */
bool registry_ready(struct registry *r);
const char *registry_state_name(enum registry_state s);

#endif
