/* model_source.h - interface of a place that models come from: a package, a hub, a registry, a URL.
 *
 * Thread:    belongs to one thread; its calls block.
 * Ownership: opened by the function of its kind (source_*.h), closed by close. The options are
 *            borrowed until then.
 * Failure:   SHOAL_ENOTFOUND (it does not have the model), SHOAL_EINVAL (it denies access),
 *            SHOAL_EBUSY (later), SHOAL_EIO (interrupted: ask again from where it stopped),
 *            SHOAL_EFORMAT (it sent nonsense), SHOAL_ECANCELLED; errors of the sink are passed on.
 */
#ifndef SHOAL_DEPOT_SOURCE_MODEL_SOURCE_H
#define SHOAL_DEPOT_SOURCE_MODEL_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "depot/store/model_manifest.h"

struct byte_sink;
struct model_source;
struct model_store;
struct trust_policy;

#define MODEL_SOURCE_NAME_BYTES 129u

/* What a source says about a model. Texts are in the manifest's arena; NULL: it says nothing. */
struct model_described {
    struct model_manifest manifest; /* initialised by the caller */
    uint8_t sha256[SHA256_BYTES];
    char name[MODEL_SOURCE_NAME_BYTES]; /* that it gets if the user gives none */
    const char *system, *template, *parameters, *license, *messages, *task;
    const char *source; /* where it is from; NULL: what the user said */
};

struct model_source_ops {
    int (*describe)(struct model_source *s, struct model_described *d, struct err *e);
    /* File i of the manifest, from offset to its end. */
    int (*file)(struct model_source *s, const struct model_manifest *m, uint32_t i, uint64_t offset,
                const struct byte_sink *to, struct err *e);
    void (*close)(struct model_source *s);
};

struct model_source {
    const struct model_source_ops *ops;
};

/* Progress of a transfer; what: "SmolLM2.gguf", or the archive it comes in. */
struct model_progress {
    const char *what;
    const char *digest; /* "sha256:HEX" of what is transferred; "": unknown */
    uint64_t done, total;
};

struct model_source_opts {
    struct model_store *store;    /* for what must be kept on the way */
    const _Atomic bool *stop;     /* give up when it becomes true */
    bool (*stopped)(void *ctx);   /* or this does; or NULL */
    const char *ca;               /* PEM file with the CAs to trust; NULL: the system's */
    const char *hub, *pypi, *npm; /* URLs in place of the usual ones; or NULL */
    /* The index of packages that npm or pip would use here, if no setting names one: "", or false.
     * May be NULL. */
    bool (*find_index)(bool npm, char *out, size_t cap);
    const char *token;                /* of the hub or registry; or NULL */
    const char *recipes;              /* file with more recipes; or NULL */
    const struct trust_policy *trust; /* a model that it refuses is not named; NULL: none */
    const char *signature;            /* file with the signature of the model; NULL: looked for */
    const char *registry;             /* URL: all names are of this registry; or NULL */
    /* Bits of enum place_kind; 0: all.  Else a client says where, and a server that it names must
     * have a public address. */
    unsigned allow;
    bool plain_http;              /* registries speak HTTP */
    bool private_ok;              /* servers may send us to private addresses */
    uint32_t silent_ms, retry_ms; /* 0: the usual ones */
    uint64_t max_bytes;           /* of a model; 0: limited by the disk */
    void (*progress)(void *ctx, const struct model_progress *p); /* or NULL */
    void (*note)(void *ctx, const char *text);                   /* what happens; or NULL */
    void *ctx;
};

/* For web_opts.stopped; ctx: the options. */
bool model_source_stopped(void *opts);

#endif
