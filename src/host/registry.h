/* registry.h - the models of this process: names, engines and reference counts.
 *
 * A request for a model that is not loaded starts loading it. When memory runs short, idle models
 * are unloaded to make room.
 *
 * Thread:    any.  The registry has two threads of its own, unless all engines are lent: one loads
 *            and unloads, one of low priority computes hashes.
 * Ownership: registry_get gives a reference that registry_put takes back.  The engine stays open
 *            while a reference is held.
 * Failure:   a model that cannot be loaded stays listed with the reason; the others are served. */
#ifndef SHOAL_HOST_REGISTRY_H
#define SHOAL_HOST_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/identity.h"
#include "host/model_stats.h"
#include "shoal/shoal.h"

/* engine/estimate.h */
struct cost_estimate;
struct cost_request;
struct cost_telemetry;
struct fair_who;

struct registry;
struct registry_slot;

enum registry_state {
    REGISTRY_UNLOADED,
    REGISTRY_LOADING,
    REGISTRY_READY,
    REGISTRY_UNLOADING,
    REGISTRY_FAILED
};

enum registry_duty {
    REGISTRY_SERVE,
    REGISTRY_STAGE, /* loaded; answers only requests for its version */
    REGISTRY_WAIT,  /* the same, and those that accept a version that is perhaps outdated */
    REGISTRY_LEAVE, /* the same: it only finishes running requests */
};

/* Which requests a version of a model answers.  All zero: all of them. */
struct registry_service {
    enum registry_duty duty;
    uint64_t epoch, until; /* epochs of its requests: from epoch, and before until (0: no end) */
    uint32_t share;        /* share of a canary in thousandths; 0: not a canary */
};

/* What a request needs. */
struct registry_want {
    const char *name; /* NULL: the first suitable model */
    enum shoal_kind kind;
    const uint8_t *version; /* SHA-256; NULL: whichever serves */
    uint64_t epoch;         /* 0: the current one */
    bool may_be_old;        /* a version that waits (REGISTRY_WAIT) is acceptable */
    const char *key;        /* requests with equal keys get the same side of a canary; NULL: none */
    /* Hashes of the beginnings of its prompt, the longest last: of several copies of the model, the
     * one that has read most of it is preferred. */
    const uint64_t *beginnings;
    uint32_t n_beginnings;
    bool any; /* a model in its own process is acceptable */
};

#define REGISTRY_BEGINNINGS 1024u     /* beginnings of prompts that are remembered of a copy */
#define REGISTRY_STREAM_SAVE_MS 2000u /* how old the saved state of a stream may be */

/* Settings of a model in its own process. */
struct registry_apart_opts {
    size_t memory_bytes; /* of its address space; 0: no limit */
    int32_t nice;        /* 0 to 19 */
    uint64_t cpus[16];   /* bit i: it may use CPU i; none: all */
};

/* One member of an average: several decoders that generate one text together. */
struct registry_part {
    const char *model; /* another name in the registry */
    double weight;
};

struct registry_spec { /* from the configuration; strings are copied */
    const char *name, *path;
    const char *task;   /* "generate", ...; NULL or "": whatever the file can do */
    const char *labels; /* label set of this name; NULL: the model's default */
    struct confidence_calibration calibration; /* of this label set */
    const char *pack;     /* folder with a manifest to verify the files against; or NULL */
    const char *card;     /* description in Markdown; or NULL */
    const char *key_file; /* opens an encrypted model, as in shoal_engine_opts; or NULL */
    /* SHA-256 that the content must have, checked before loading; or NULL. Several versions of a
     * name can coexist, each with its own sum and path. */
    const uint8_t *sum;
    bool staged; /* begins with REGISTRY_STAGE */
    /* Further replicas of a version, each with an engine or a process of its own, are numbered from
     * 1; they need a sum.  0: the first, which must outlive the others. */
    uint32_t copy;
    uint32_t n_ctx, max_tasks, max_queue, n_threads;
    size_t kv_bytes;
    uint32_t stream_save_ms; /* as in shoal_engine_opts, but 0: REGISTRY_STREAM_SAVE_MS */
    uint32_t stream_ttl_ms, max_streams;
    bool int8;          /* as in shoal_engine_opts */
    bool kv_q8, pinned; /* pinned: loaded at start, never unloaded automatically */
    bool context_shift; /* as in shoal_engine_opts; not in a process of its own */
    bool no_drafts;     /* never guesses tokens: SHOAL_DRAFTS_NEVER */
    bool shares_cache;  /* clients share cached prefixes and answers */
    bool standby;       /* for failover: other nodes are used first */
    int32_t priority;   /* models of lower priority are unloaded first */
    char shard[16];     /* "", or how other nodes compute layers of it; see registry_opts.chain */
    bool apart;         /* runs in its own process; see registry_apart */
    struct registry_apart_opts apart_opts;
    /* The model is the average of these (shoal_engine_opts), at most SHOAL_MAX_AVERAGE. They are
     * looked up at load time, and path is only a unique name. */
    const struct registry_part *parts;
    uint32_t n_parts; /* 0: not an average */
    /* The model is this one, another name without a sum, with the LoRA adapter at `path`: it has
     * the engine of its base, which is loaded with it and stays while the adapter is in use, and
     * most of its settings; and an identity of its own, by the bytes of both and the scale.  NULL:
     * not an adapter. */
    const char *base;
    double adapter_scale; /* 0: 1 */
};

/* Data about a model loaded in another process. */
struct registry_apart_info {
    unsigned kinds;
    bool images; /* as in shoal_engine_info */
    uint32_t n_ctx;
    size_t bytes;
    double load_ms;
    bool crashed; /* open failed because the process ended: it may work next time */
};

/* Runs models in separate processes. The registry decides when to load, unload and restart one;
 * such a model is listed, counted and waited for like any other, but has no engine here. Both are
 * called on the loading thread, without the registry's lock. */
struct registry_apart {
    void *ctx;
    /* Returns when the model is loaded, or failed. memory_bytes: memory limit of the model; 0: no
     * limit. stop: give up when it becomes true. */
    int (*open)(void *ctx, const struct registry_slot *s, const char *name, size_t memory_bytes,
                const char *cache_dir, const _Atomic bool *stop, struct registry_apart_info *out,
                struct err *e);
    /* The process has ended when this returns. */
    void (*close)(void *ctx, uint64_t serial);
};

/* A file or folder with its engine.  Several names may share it. */
#define REGISTRY_SIGNER_BYTES 64u

struct registry_slot {
    struct registry_slot *next;
    struct registry *all;
    char *path, *pack;
    uint64_t serial;                /* unique in this process, unlike an address */
    uint64_t family;                /* serial of the first copy of the same version */
    uint64_t *beginnings;           /* [REGISTRY_BEGINNINGS] that it has read; NULL: one copy */
    struct registry_spec spec;      /* spec of the first name; strings and sum are not valid */
    uint8_t want_sum[SHA256_BYTES]; /* sum that the content must have; valid with has_want_sum */
    bool has_want_sum;
    struct registry_part *parts; /* [spec.n_parts]: copies */
    struct registry_slot *base;  /* of an adapter, whose users are the base's too; or NULL */
    uint32_t n_names;
    /* under the registry's lock */
    enum registry_state state;
    bool want_unload, want_load; /* want_load: load it again once it is closed */
    bool lent;                   /* the engine is the caller's */
    struct shoal_engine *engine; /* of an adapter: the base's */
    struct shoal_adapter *adapter;
    void *attached; /* see registry_attach; freed before the engine is closed */
    void (*detach)(void *attached);
    unsigned kinds; /* enum shoal_kind; 0 until it was loaded once */
    bool images;    /* as in shoal_engine_info */
    uint32_t n_ctx; /* of the engine; 0 until it was loaded once */
    struct identity local, content;
    bool hash_failed;    /* the content could not be read: not retried until the next load */
    uint64_t created_s;  /* modification time of the file */
    uint64_t file_bytes; /* of its files when it was added; 0: unknown */
    /* Points to local or content.  Release and acquire: a reader that sees the pointer also sees
     * what it points to, which does not change while the slot is in use. */
    _Atomic(const struct identity *) identity;
    uint32_t users;
    uint64_t last_used_ns;
    uint64_t
        keep_ns;  /* how long it stays loaded when idle; 0: idle_unload_ms, UINT64_MAX: always */
    size_t bytes; /* reserved while loaded */
    double load_ms;
    char signer[REGISTRY_SIGNER_BYTES]; /* of the loaded files; "": not signed, or not checked */
    int error_code;
    char error[320];
    struct registry_wait *waiting;
    /* of an isolated model */
    bool lost;                   /* its process ended while it was loaded */
    uint64_t not_before_ns;      /* it is not restarted before this */
    uint64_t ready_ns;           /* when it was last loaded */
    uint32_t n_crashes;          /* consecutive crashes */
    uint32_t n_load_crashes;     /* those of them that happened while loading */
    uint64_t n_restarts;         /* since the server started */
    double prefill_ns, token_ns; /* as measured by its process */
    _Atomic uint32_t progress;   /* of loading, in thousandths */
};

struct registry_model { /* a name */
    char *name, *task, *labels, *card;
    struct registry_model *next;
    struct registry_slot *slot;
    bool versioned; /* added with a sum: the cluster's, not the configuration's */
    uint32_t copy;  /* of the version; 0: the first */
    uint8_t sum[SHA256_BYTES];
    struct registry_service service; /* under the registry's lock */
    float preset; /* of an adapter, under the lock: its scale in requests that choose none */
    bool gone;    /* removed: freed when the last user leaves */
    uint32_t users;
    struct confidence_calibration calibration; /* of the name's label set */
    uint64_t baseline_key;                     /* of baselines.h */
    bool baseline_saved;                       /* under the registry's lock */
    struct model_stats stats;
};

static inline struct shoal_engine *registry_engine(const struct registry_model *m)
{
    return m->slot->engine; /* does not change while m is held */
}

/* What its tasks are submitted with; NULL: nothing. */
static inline const struct shoal_adapter *registry_adapter(const struct registry_model *m)
{
    return m->slot->adapter; /* does not change while m is held */
}

/* The identity as it is known now; borrowed while m is held.  The content's hash may become known
 * at any time, so two calls may return different identities; both mean the same bytes. */
static inline const struct identity *registry_identity(const struct registry_model *m)
{
    return atomic_load_explicit(&m->slot->identity, memory_order_acquire);
}

/* SHA-256 of the model's bytes, borrowed while m is held; NULL: not known yet. */
static inline const uint8_t *registry_sum(const struct registry_model *m)
{
    if (m->versioned) /* nothing else is loaded under it */
        return m->sum;
    const struct identity *i = registry_identity(m);
    return i && i->kind == IDENTITY_CONTENT ? i->sum : NULL;
}

/* Waits until a model is loaded.  fn is called on the loading thread; rc as of registry_get. */
struct registry_wait {
    struct registry_wait *next;
    struct registry_model *model;
    void (*fn)(struct registry_wait *w, struct registry_model *m, int rc);
};

struct chain;

struct registry_opts {
    size_t memory_bytes;     /* limit for all loaded models together; 0: what the machine has */
    uint32_t idle_unload_ms; /* 0: never */
    const char *cache_dir;   /* as in shoal_engine_opts */
    bool lent_only;          /* no threads: all models come from registry_lend */
    /* Answers cached under the identity `from` belong to `to` from now on. to NULL: the file was
     * replaced, and they are obsolete. Called on a thread of the registry, under its lock; may be
     * NULL. */
    void (*identity)(void *ctx, const uint8_t from[SHA256_BYTES], const uint8_t *to);
    /* A model changed its state, or a name was added or removed.  Called on any thread, under the
     * registry's lock; may be NULL. */
    void (*changed)(void *ctx);
    /* The chain (engine/decode/chain.h) of a model with `shard`; its ops stay NULL if the whole
     * model is to be loaded here.  Called on the loading thread; NULL: such models cannot be
     * loaded. */
    int (*chain)(void *ctx, const char *path, const char *shard, struct chain *out, struct err *e);
    /* Whether a model may be loaded, under all its names: see supply/trust_policy.h.  signer: who
     * signed it, or "". Called on the loading thread, before every load; NULL: all may. */
    int (*trusted)(void *ctx, const char *const *names, size_t n, const char *path, bool included,
                   const _Atomic bool *stop, char signer[REGISTRY_SIGNER_BYTES], struct err *e);
    void *ctx;                          /* for all of them */
    const struct registry_apart *apart; /* borrowed; NULL: no model may be isolated */
};

SHOAL_MUST_CHECK int registry_create(struct registry **out, const struct registry_opts *o,
                                     struct err *e);
/* Waits for both threads.  All references must have been given back. */
void registry_destroy(struct registry *r);

/* SHOAL_EINVAL: the name exists already, or this version of it does. */
SHOAL_MUST_CHECK int registry_add(struct registry *r, const struct registry_spec *spec,
                                  struct err *e);
/* A model whose engine the caller has opened.  It is ready at once, has no identity until
 * registry_identify gives it one, and is never unloaded; the caller closes the engine after
 * registry_destroy.  labels: as in registry_spec. */
SHOAL_MUST_CHECK int registry_lend(struct registry *r, const char *name, const char *labels,
                                   struct shoal_engine *engine, struct err *e);
/* Tasks of a lent model use this adapter of its engine; the caller closes it after
 * registry_destroy. */
void registry_lend_adapter(struct registry *r, const char *name, struct shoal_adapter *adapter);
/* Sets the identity of a lent model: that of the files its engine was opened from. They are hashed
 * if no earlier run has done so. */
SHOAL_MUST_CHECK int registry_identify(struct registry *r, const char *name, const char *path,
                                       struct err *e);
/* Takes a model out of the list, with its adapters; it is unloaded when its last user leaves. */
SHOAL_MUST_CHECK int registry_remove(struct registry *r, const char *name, struct err *e);
/* name NULL: the first suitable model. 0: *out is loaded, and the caller holds a reference.
 * SHOAL_EBUSY: it is being loaded; w (may be NULL) is called once it is ready (with a reference) or
 * has failed (without). SHOAL_ENOTFOUND, SHOAL_EINVAL (it is of another kind), or the reason why it
 * could not be loaded. */
SHOAL_MUST_CHECK int registry_get(struct registry *r, const char *name, enum shoal_kind kind,
                                  struct registry_model **out, struct registry_wait *w,
                                  struct err *e);
/* The same, including isolated models: registry_get refuses those with SHOAL_EINVAL, since they
 * have no engine here. */
SHOAL_MUST_CHECK int registry_get_any(struct registry *r, const char *name, enum shoal_kind kind,
                                      struct registry_model **out, struct registry_wait *w,
                                      struct err *e);
/* The same for a version of the model, or the one that serves an epoch. SHOAL_ECHANGED: the model
 * exists, but no version of it serves that epoch, or the epoch is not known here yet. */
SHOAL_MUST_CHECK int registry_get_wanted(struct registry *r, const struct registry_want *want,
                                         struct registry_model **out, struct registry_wait *w,
                                         struct err *e);
/* Whether a request with this key belongs to the share of a canary. */
bool registry_in_share(const char *key, uint32_t share);
/* Whether s covers the epoch. */
static inline bool registry_serves(const struct registry_service *s, uint64_t epoch,
                                   bool may_be_old)
{
    return (s->duty == REGISTRY_SERVE || (may_be_old && s->duty == REGISTRY_WAIT)) &&
           epoch >= s->epoch && (s->until == 0 || epoch < s->until);
}
static inline bool registry_service_same(const struct registry_service *a,
                                         const struct registry_service *b)
{
    return a->duty == b->duty && a->epoch == b->epoch && a->until == b->until &&
           a->share == b->share;
}
/* Sets which requests a version answers, all copies of it. SHOAL_ENOTFOUND: it does not exist. */
SHOAL_MUST_CHECK int registry_set_service(struct registry *r, const char *name,
                                          const uint8_t sum[SHA256_BYTES],
                                          const struct registry_service *s, struct err *e);
/* As registry_remove, for one version with all its copies. */
SHOAL_MUST_CHECK int registry_remove_version(struct registry *r, const char *name,
                                             const uint8_t sum[SHA256_BYTES], struct err *e);
/* The same for one copy above the first. */
SHOAL_MUST_CHECK int registry_remove_copy(struct registry *r, const char *name,
                                          const uint8_t sum[SHA256_BYTES], uint32_t copy,
                                          struct err *e);
/* The first epoch that a request may name. Epoch 0 in a request means the current one. */
#define REGISTRY_FIRST_EPOCH 1u
/* The epoch of new requests, and the end of the known epochs: requests of end and later are
 * refused. end 0: all are accepted, because there is no controller. */
void registry_set_epoch(struct registry *r, uint64_t epoch, uint64_t end);
void registry_get_epoch(struct registry *r, uint64_t *epoch, uint64_t *end);
/* A request of this epoch begins here, or has ended: models that it may still use must stay loaded
 * somewhere. False: requests of too many epochs are running, and it is not counted. */
SHOAL_MUST_CHECK bool registry_hold_epoch(struct registry *r, uint64_t epoch);
void registry_release_epoch(struct registry *r, uint64_t epoch);
/* The oldest epoch of a request here; 0: none is held. */
uint64_t registry_oldest_epoch(struct registry *r);
/* Whether the model that registry_get_any would find is isolated. */
bool registry_is_apart(struct registry *r, const char *name, enum shoal_kind kind);
/* The same: whether its clients share cached prefixes. */
bool registry_shares_cache(struct registry *r, const char *name, enum shoal_kind kind);
/* The process of a model has ended or was killed: the model is restarted, with exponential backoff
 * for consecutive crashes. */
void registry_apart_lost(struct registry *r, uint64_t serial, const char *why);
/* Measurements of the process: the cost of a prompt token and of an answer token. */
void registry_apart_speed(struct registry *r, uint64_t serial, double prefill_ns, double token_ns);
/* Loading progress, in thousandths. */
void registry_apart_progress(struct registry *r, uint64_t serial, uint32_t progress);
/* Whether a held model can do this.  SHOAL_EINVAL: the message lists what it can do. */
SHOAL_MUST_CHECK int registry_check(const struct registry_model *m, enum shoal_kind kind,
                                    struct err *e);
void registry_put(struct registry_model *m);
/* Another reference to a held model. */
void registry_hold(struct registry_model *m);
/* An object that belongs to the engine of a held model: created by the first call, shared by the
 * later ones, freed by detach before the engine is closed. make gets NULL for an isolated model.
 */
SHOAL_MUST_CHECK int
registry_attach(struct registry_model *m,
                int (*make)(void *ctx, void **out, struct shoal_engine *en, struct err *e),
                void *ctx, void (*detach)(void *attached), void **out, struct err *e);
/* Whether the path holds a model that could be loaded, by its headers.  Reads no weights. */
SHOAL_MUST_CHECK int registry_check_path(const char *path, struct err *e);
/* The same for a LoRA adapter beside the model at `base`. */
SHOAL_MUST_CHECK int registry_check_adapter(const char *path, const char *base, struct err *e);
/* Whether the path holds a decoder, by its headers: it writes text and has no labels.  False: it
 * does not, or it is not known without loading it. */
bool registry_generates(const char *path);
/* How long a request to a held model would take now. */
struct cost_estimate registry_estimate(const struct registry_model *m, const struct cost_request *r,
                                       const struct fair_who *who);
/* The model's telemetry, for choosing between models. Same conditions as registry_speed. */
struct cost_telemetry registry_telemetry(const struct registry_model *m,
                                         const struct fair_who *who);
/* As cost_speed.  For held models, or within registry_each; 0 if the model is not loaded. */
void registry_speed(const struct registry_model *m, double *prefill_ns, double *token_ns);
/* Start loading or unloading, without waiting.  A model is unloaded when its last user leaves. */
SHOAL_MUST_CHECK int registry_load(struct registry *r, const char *name, struct err *e);
SHOAL_MUST_CHECK int registry_unload(struct registry *r, const char *name, struct err *e);
/* How long a model stays loaded after its last use, in place of idle_unload_ms.  0: as configured,
 * UINT64_MAX: until its memory is needed. */
SHOAL_MUST_CHECK int registry_keep(struct registry *r, const char *name, uint64_t ns,
                                   struct err *e);
/* When it will be unloaded if it stays unused; UINT64_MAX: never. Within registry_each. */
uint64_t registry_expires_ns(const struct registry_model *m);
/* Calls fn for every name, in order, under the lock: fn must not keep m nor call the registry. Of
 * several versions, the one that new requests get. */
void registry_each(struct registry *r, void (*fn)(void *ctx, const struct registry_model *m),
                   void *ctx);
/* The same for every version of every name, and every copy of it. */
void registry_each_version(struct registry *r,
                           void (*fn)(void *ctx, const struct registry_model *m), void *ctx);
/* The name of an adapter's base, borrowed while m is held; NULL: it is no adapter.  Within
 * registry_each, or for a held model. */
const char *registry_base_name(const struct registry_model *m, size_t *n);
/* The name of adapter number `id` of a base, in the order in which they were added; false: it has
 * fewer. */
bool registry_adapter_name(struct registry *r, const char *base, uint32_t id, char *out,
                           size_t cap);
void registry_set_preset(struct registry *r, const char *name, float scale);
/* Who signed the model of this name that is loaded; "": nobody that is trusted. */
void registry_signer(struct registry *r, const char *name, char out[REGISTRY_SIGNER_BYTES]);
/* false: there is no such name. */
bool registry_state(struct registry *r, const char *name, enum registry_state *out);
/* Where the hashes of files are remembered (hash_memo.h); NULL: nowhere. */
/* Memory of this process that is no model of the registry: n bytes more, or fewer.  left: what its
 * limit leaves for more models, at least 1; 0: there is no limit. */
void registry_take_memory(struct registry *r, int64_t n);
uint64_t registry_memory_left(struct registry *r);
const char *registry_memo_dir(const struct registry *r);
/* The name that "NAME" stands for, which no model has: "NAME:TAG", if there is only one tag or one
 * of them is "latest"; or "MODEL:NAME", if only one model has such an adapter. false: none. */
bool registry_find_tagged(struct registry *r, const char *name, char *out, size_t cap);
/* All pinned models are loaded or have failed. */
bool registry_ready(struct registry *r);
const char *registry_state_name(enum registry_state s);

#endif
