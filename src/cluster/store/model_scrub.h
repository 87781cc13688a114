/* model_scrub.h - reads all models of a store again, one after the other, and reports those that no
 * longer fit their hash.
 *
 * A pass begins every `every_ms`, with the first one after that time.  Its thread reads with the
 * lowest priority, and pauses between models.
 *
 * Thread:    open, close: the executor's; found is called there.  Inside, a thread "scrub".
 * Ownership: open gives, close takes back (NULL is fine): it waits for the thread.  A posted task
 *            may still be in the executor, and frees what is left.  The store must outlive it.
 * Failure:   SHOAL_ENOMEM.  A store that cannot be listed is tried again. */
#ifndef SHOAL_CLUSTER_STORE_MODEL_SCRUB_H
#define SHOAL_CLUSTER_STORE_MODEL_SCRUB_H

#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

struct executor;
struct model_scrub;
struct model_store;

struct model_scrub_opts {
    struct model_store *store; /* borrowed */
    struct executor *executor;
    uint32_t every_ms;
    /* A damaged model. */
    void (*found)(void *ctx, const uint8_t sha256[SHA256_BYTES]);
    void *ctx;
};

SHOAL_MUST_CHECK int model_scrub_open(struct model_scrub **out, const struct model_scrub_opts *o,
                                      struct err *e);
void model_scrub_close(struct model_scrub *s);

#endif
