/* once_ledger.h - lets the gateways of a shoal agree on which of them runs a call with an
 * idempotency key, and gives the others its answer. once.h calls it; once_bucket.h implements it.
 *
 * Thread:    any; claims come back on their own executor's thread.
 * Ownership: a claim belongs to the caller and stays until `done` has run, which happens exactly
 *            once. */
#ifndef SHOAL_CLUSTER_ONCE_LEDGER_H
#define SHOAL_CLUSTER_ONCE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/thread/executor.h"

struct once_ledger;

enum once_claimed {
    ONCE_CLAIMED_MINE,     /* run it, then complete or release the key */
    ONCE_CLAIMED_ANSWERED, /* another gateway answered: see `answer` */
    ONCE_CLAIMED_LARGE,    /* the same, but the answer was too large to be shared */
    ONCE_CLAIMED_OTHER,    /* the key was used with another request */
    ONCE_CLAIMED_UNSHARED, /* the ledger is unavailable, or the claim was cancelled */
};

struct once_claim {
    uint8_t key[32], body[32]; /* hashes of the key and of the request */
    struct executor *executor; /* gets `done` */
    struct executor_task done; /* fn is the caller's */
    enum once_claimed how;     /* this and the following: for done */
    struct buf answer;         /* ANSWERED: as in once_record.h; the caller's buf_fini */
    char where[65];            /* the gateway that has it */
    struct once_claim *next;   /* this and the following: private to the ledger */
    uint64_t due_ns, seen_ns;  /* next poll; since when its record has not changed */
    uint64_t seen;             /* revision; 0: none */
    uint64_t ask_ns, alone_ns; /* when to ask for its gateway; since when nobody answers, or 0 */
    bool cancelled;
};

struct once_ledger_ops {
    /* Waits while another gateway runs the call. */
    void (*claim)(struct once_ledger *g, struct once_claim *c);
    /* It is no longer needed: `done` runs soon. */
    void (*cancel)(struct once_ledger *g, struct once_claim *c);
    /* Completes a key that is ours with its answer, which is copied; or reports a failure, and the
     * next call with the key tries again. */
    void (*complete)(struct once_ledger *g, const uint8_t *key, const void *answer, size_t n);
    void (*release)(struct once_ledger *g, const uint8_t *key);
};

struct once_ledger {
    const struct once_ledger_ops *ops;
};

#endif
