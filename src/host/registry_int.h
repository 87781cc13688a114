/* registry_int.h - the internals of the registry, private to its files.
 *
 * Thread:    everything is protected by `lock` unless stated otherwise. */
#ifndef SHOAL_HOST_REGISTRY_INT_H
#define SHOAL_HOST_REGISTRY_INT_H

#include "host/registry.h"

#define REGISTRY_MAX_EPOCHS 16u /* epochs that requests of this process may belong to at a time */

struct identity_list;

struct registry {
    pthread_mutex_t lock;
    pthread_cond_t work;         /* for the loading thread */
    pthread_cond_t hash_work;    /* for the hashing thread */
    struct registry_model *list; /* in the order they were added */
    struct registry_slot *slots;
    struct registry_opts opts;
    char *cache_dir; /* option of the engines */
    char *memo_dir;  /* where hashes are remembered; NULL: nowhere */
    pthread_t load_thread, hash_thread;
    bool has_load_thread, has_hash_thread;
    _Atomic bool stop; /* written under the lock; loading and hashing look at it without */
    _Atomic uint64_t epoch, epoch_end; /* see registry_set_epoch; readers need no order */
    pthread_mutex_t epoch_lock;        /* guards `held` */
    struct {
        uint64_t epoch;
        uint32_t n; /* requests; 0: the entry is free */
    } held[REGISTRY_MAX_EPOCHS];
    size_t used_bytes;
    uint64_t next_serial;
};

/* NULL: it was removed. */
struct registry_slot *registry_find_serial(struct registry *r, uint64_t serial);
/* One user more of a slot and of its base. */
void registry_slot_use(struct registry_slot *s);
void registry_set_state(struct registry_slot *s, enum registry_state state);
void registry_detach(struct registry_slot *s);
void registry_slot_free(struct registry_slot *s);
void registry_model_free(struct registry_model *m);

/* registry_load.c: loads, unloads, makes room, forgets what was removed.  Ends with r->stop. */
void *registry_load_main(void *registry);

/* registry_identity.c: the paths of a model: its own, or those of an average's members. */
struct registry_parts {
    char *paths[SHOAL_MAX_AVERAGE]; /* copied: names may be removed while the model is loaded */
    double weights[SHOAL_MAX_AVERAGE];
    uint32_t n; /* 1: it is a model of its own */
};

/* Without the lock. */
SHOAL_MUST_CHECK int registry_find_parts(struct registry *r, const struct registry_slot *s,
                                         struct registry_parts *out, struct err *e);
void registry_parts_fini(struct registry_parts *p);

/* What is known about a model's files after loading it. */
struct registry_found {
    struct identity local, content;
    uint64_t time_s;
};

/* Without the lock, before the engine opens the files: checks them against the manifest of the
 * slot's pack, if it has one. */
SHOAL_MUST_CHECK int registry_check_files(struct registry *r, const struct registry_slot *s,
                                          struct registry_found *out, struct err *e);
/* Without the lock, once the engine is open: if the files changed meanwhile, it is unknown which
 * bytes were loaded, so no answer may be cached. */
void registry_recheck_files(struct registry *r, const struct registry_slot *s,
                            struct registry_found *f);
/* Whether the files are those that the slot was loaded from before. */
bool registry_same_files(const struct registry_slot *s, const struct registry_found *f);
/* The slot must be unused. */
void registry_publish_identity(struct registry_slot *s, const struct registry_found *f);
/* The hashing thread: reads the content of loaded models whose hash is not known.  Ends with
 * r->stop. */
void *registry_hash_main(void *registry);

#endif
