/* model_fetch.h - brings models into the store: from other nodes, from URLs, from folders of this
 * machine.
 *
 * A fetch has sources in order of preference. When one fails, the next resumes where it stopped. A
 * failed source is skipped for a while, with exponential backoff, and one that sent wrong bytes for
 * ten minutes, also by later fetches. A fetch ends when the model is in the store, when every
 * source failed three times without bringing a byte or does not have it, when there is no room, or
 * when it is cancelled. Received bytes are kept for the next fetch.
 *
 * Thread:    start, cancel, destroy: the executor's; each: any.  Two threads "fetch-N" work,
 *            from the first fetch on.
 * Ownership: create gives, destroy takes back (NULL is fine); it ends its fetches without done.
 *            What was posted before still runs on the executor: flush it after destroy. Strings
 *            are copied.  A fetch is valid until its done was called.
 * Failure:   of a fetch: in done. SHOAL_EBUSY: the same model is being fetched, or too many are. */
#ifndef SHOAL_CLUSTER_STORE_MODEL_FETCH_H
#define SHOAL_CLUSTER_STORE_MODEL_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

#define MODEL_FETCH_MAX_SOURCES 16u
#define MODEL_FETCH_MAX_JOBS 256u

struct executor;
struct model_fetch;
struct model_fetcher;
struct model_store;
struct tls_client;

struct model_fetcher_opts {
    struct model_store *store;  /* borrowed */
    struct executor *executor;  /* where done is called */
    struct tls_client *tls;     /* for connections to other nodes; borrowed; NULL: plain */
    const char *ca;             /* PEM file to trust for https://; NULL: the system's */
    const char *const *folders; /* where file:// may read */
    size_t n_folders;
    /* Whether a model that has arrived may stay, on a fetch thread; NULL: all may.  Its signature
     * is beside it if the source had one. */
    int (*trusted)(void *ctx, const char *name, const char *path, const _Atomic bool *stop,
                   struct err *e);
    void *ctx;
    uint64_t bytes_per_s; /* rate limit of all fetches together; 0: no limit */
    uint32_t silent_ms;   /* a source is abandoned after this long without data; 0: 30000 */
    uint32_t backoff_ms;  /* after the first failure of a source; 0: 500 */
};

struct model_fetch_source {
    const char *address; /* HOST:PORT of a node, or a URL: https://, http://, file:// */
    const char *name;    /* of the node, as in its certificate; NULL: any */
};

struct model_fetch_watch {
    void *ctx;
    /* Called once, on the executor's thread. rc 0: path is the model to load. */
    void (*done)(void *ctx, int rc, const char *path, const struct err *e);
    /* What the store has of it is read again first, and replaced if it is damaged. */
    bool doubted;
};

/* Progress of a fetch. */
struct model_fetch_state {
    uint8_t sha256[SHA256_BYTES];
    const char *name;
    uint64_t bytes, total_bytes; /* total 0: not known yet */
    const char *source;          /* the current sender; "" */
    const char *error;           /* error of the last source that failed; "" */
};

SHOAL_MUST_CHECK int model_fetcher_create(struct model_fetcher **out,
                                          const struct model_fetcher_opts *o, struct err *e);
void model_fetcher_destroy(struct model_fetcher *f);
/* name: of the model, for messages. */
SHOAL_MUST_CHECK int model_fetch_start(struct model_fetch **out, struct model_fetcher *f,
                                       const char *name, const uint8_t sha256[SHA256_BYTES],
                                       const struct model_fetch_source *sources, size_t n_sources,
                                       const struct model_fetch_watch *w, struct err *e);
/* done follows, with SHOAL_ECANCELLED unless it was complete. */
void model_fetch_cancel(struct model_fetch *j);
/* The same, but done is not called. */
void model_fetch_forget(struct model_fetch *j);
/* Calls fn for every unfinished fetch, under a lock. */
void model_fetcher_each(struct model_fetcher *f,
                        void (*fn)(void *ctx, const struct model_fetch_state *s), void *ctx);

#endif
