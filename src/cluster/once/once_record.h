/* once_record.h - the encoded record of an idempotency key that gateways share.
 *
 * Thread:    pure.
 * Ownership: decoded records point into the bytes.
 * Failure:   SHOAL_EFORMAT. */
#ifndef SHOAL_CLUSTER_ONCE_RECORD_H
#define SHOAL_CLUSTER_ONCE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define ONCE_RECORD_MAX_OWNER 64u

enum once_record_state {
    ONCE_RECORD_FREE,    /* the call failed: the next one tries again */
    ONCE_RECORD_RUNNING, /* renewed periodically while it runs */
    ONCE_RECORD_DONE,
    ONCE_RECORD_LARGE, /* done, but the answer is not stored */
    ONCE_RECORD_PARTS, /* done; the answer is in separate records: see once_record_parts */
};

struct once_record {
    enum once_record_state state;
    uint64_t until_ms; /* Unix time; DONE, LARGE and PARTS: free from then on */
    uint8_t body[32];  /* hash of the request */
    char owner[ONCE_RECORD_MAX_OWNER + 1];
    /* RUNNING: the name under which its gateway listens while it lives, or nothing.  DONE: a
     * once_record_about as a message, then messages of RunEvents.  PARTS: a once_record_parts. */
    const uint8_t *answer;
    size_t n_answer;
};

/* Data of an answer beyond its events. */
struct once_record_about {
    uint32_t prompt_tokens, cached_tokens, generated_tokens; /* of the whole answer */
    char node[128];                                          /* node that answered; "": unknown */
};

#define ONCE_RECORD_PART_BYTES ((size_t)512 << 10) /* maximum bytes of an answer in one record */
#define ONCE_RECORD_MAX_PARTS 16u

/* An answer that is too large for one record. */
struct once_record_parts {
    uint64_t run;    /* id of the run: part of the keys, so that parts of two runs never mix */
    uint64_t bytes;  /* total; each part except the last has ONCE_RECORD_PART_BYTES */
    uint8_t sum[32]; /* SHA-256 of all of it */
};

static inline uint32_t once_record_n_parts(uint64_t bytes)
{
    return (uint32_t)((bytes + ONCE_RECORD_PART_BYTES - 1) / ONCE_RECORD_PART_BYTES);
}

void once_record_put(struct buf *out, const struct once_record *r);
SHOAL_MUST_CHECK int once_record_read(struct once_record *r, const uint8_t *p, size_t n,
                                      struct err *e);
void once_record_put_about(struct buf *out, const struct once_record_about *a);
SHOAL_MUST_CHECK int once_record_read_about(struct once_record_about *a, const uint8_t *p, size_t n,
                                            struct err *e);
void once_record_put_parts(struct buf *out, const struct once_record_parts *p);
SHOAL_MUST_CHECK int once_record_read_parts(struct once_record_parts *p, const uint8_t *bytes,
                                            size_t n, struct err *e);
/* One length-prefixed message, as answers are stored. next: returns the bytes used, 0 at the end,
 * or SHOAL_EFORMAT. */
void once_record_put_message(struct buf *out, const void *p, size_t n);
int64_t once_record_next_message(const uint8_t **p, size_t *n, const uint8_t *from, size_t bytes);

#endif
