/* models.h - the models of a server: which there are, which are loaded, and who uses them.
 *
 * Loading and unloading happen on a thread of the registry's own; requests for a model that is not
 * loaded start that and wait.
 *
 * Thread:    any, unless told.
 * Ownership: models_get gives a reference that models_put takes back; while one is held, the
 *            engine stays.
 * Failure:   a model that cannot be loaded stays listed with the reason; the others go on. */
#ifndef SHOAL_HOST_MODELS_H
#define SHOAL_HOST_MODELS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/metrics.h"
#include "shoal/shoal.h"

struct models;

enum model_state { MODEL_UNLOADED, MODEL_LOADING, MODEL_READY, MODEL_UNLOADING, MODEL_FAILED };

struct model_spec { /* from the configuration; strings are copied */
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
struct model_slot {
    struct model_slot *next;
    struct models *all;
    char *path, *pack;
    struct model_spec spec; /* of the first name; strings are not valid */
    uint32_t n_names;
    /* under the registry's lock */
    enum model_state state;
    bool want_unload, want_load; /* want_load: once it is closed */
    struct shoal_engine *engine;
    void *attached; /* of models_attach; freed before the engine is closed */
    void (*detach)(void *attached);
    unsigned kinds; /* enum shoal_kind, known once it was loaded */
    uint32_t users;
    uint64_t last_used_ns;
    size_t bytes; /* reserved while loaded */
    double load_ms;
    int error_code;
    char error[320];
    struct model_wait *waiting;
    _Atomic uint32_t progress; /* of loading, in thousandths */
};

struct model { /* a name */
    char *name, *task, *labels, *card;
    struct model *next;
    struct model_slot *slot;
    bool gone; /* taken out of the list when the last user leaves */
    uint32_t users;
    uint64_t created_s; /* of the file, for lists */
    char version[20];   /* hash over what makes the file what it is */
    struct model_metrics metrics;
};

static inline struct shoal_engine *model_engine(const struct model *m)
{
    return m->slot->engine; /* does not change while m is held */
}

/* Somebody who waits until a model is loaded.  fn: on the registry's thread; rc as models_get. */
struct model_wait {
    struct model_wait *next;
    struct model *model;
    void (*fn)(struct model_wait *w, struct model *m, int rc);
};

struct models_opts {
    size_t memory_bytes;     /* over all that is loaded; 0: what the machine has */
    uint32_t idle_unload_ms; /* 0: never */
    const char *cache_dir;   /* as in shoal_engine_opts */
    /* A model's file became another one: what was kept of this version is of no use any more.
     * On the registry's thread, under its lock; may be NULL. */
    void (*changed)(void *ctx, const char *old_version);
    /* A model's state is another one, or a name came or went.  On any thread, under the registry's
     * lock; may be NULL. */
    void (*moved)(void *ctx);
    void *ctx; /* of both */
};

SHOAL_MUST_CHECK int models_create(struct models **out, const struct models_opts *o, struct err *e);
/* Waits for the loading thread; every reference must be back. */
void models_destroy(struct models *ms);

/* SHOAL_EINVAL: the name is there already. */
SHOAL_MUST_CHECK int models_add(struct models *ms, const struct model_spec *spec, struct err *e);
/* Takes a model out of the list; it is unloaded when its last user leaves. */
SHOAL_MUST_CHECK int models_remove(struct models *ms, const char *name, struct err *e);
/* NULL name: the first model that does it.  0: *out is ready and held.  SHOAL_EBUSY: it is being
 * loaded; w (may be NULL) is called once it is ready (held) or failed (not held).
 * SHOAL_ENOTFOUND, SHOAL_EINVAL (it does other things), or why it could not be loaded. */
SHOAL_MUST_CHECK int models_get(struct models *ms, const char *name, enum shoal_kind kind,
                                struct model **out, struct model_wait *w, struct err *e);
/* Can this model, which is held, do that?  SHOAL_EINVAL says what it does instead. */
SHOAL_MUST_CHECK int model_check(const struct model *m, enum shoal_kind kind, struct err *e);
void models_put(struct model *m);
/* One more reference to a model that is held. */
void models_hold(struct model *m);
/* What was made for the engine of a model, which is held: made once, kept while it is loaded. */
SHOAL_MUST_CHECK int models_attach(struct model *m,
                                   int (*make)(void **out, struct shoal_engine *en, struct err *e),
                                   void (*detach)(void *attached), void **out, struct err *e);
/* Starts loading or unloading; unloading waits for the users. */
SHOAL_MUST_CHECK int models_load(struct models *ms, const char *name, struct err *e);
SHOAL_MUST_CHECK int models_unload(struct models *ms, const char *name, struct err *e);
/* Every name in order, under the lock: look, do not keep, do not call the registry. */
void models_each(struct models *ms, void (*fn)(void *ctx, const struct model *m), void *ctx);
/* false: there is no such name. */
bool models_state(struct models *ms, const char *name, enum model_state *out);
/* Pinned models are loaded, or have failed. */
bool models_ready(struct models *ms);
const char *model_state_name(enum model_state s);

#endif
