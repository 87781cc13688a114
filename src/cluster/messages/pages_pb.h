/* pages_pb.h - PagesRequest and PagesChunk of shoal/node/v1, typed on both sides. Incoming bytes
 * are not trusted.
 *
 * Thread:    no state.
 * Ownership: what is read borrows from the bytes, or lives in the arena.
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT, SHOAL_ENOMEM. */
#ifndef SHOAL_CLUSTER_MESSAGES_PAGES_PB_H
#define SHOAL_CLUSTER_MESSAGES_PAGES_PB_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "host/sha256.h"

#define PAGES_PB_MAX_TOKENS ((uint32_t)1 << 20)
#define PAGES_PB_MAX_REQUEST ((size_t)8 << 20)
#define PAGES_PB_MAX_PAGE ((size_t)16 << 20) /* bytes of a page */
#define PAGES_PB_MAX_CHUNK (PAGES_PB_MAX_PAGE + 256u)

struct pages_request {
    const char *model;
    const uint8_t *version; /* [SHA256_BYTES] */
    const char *client;
    bool shares_cache;
    uint64_t page_bytes;
    uint32_t skip;
    const int32_t *tokens;
    uint32_t n_tokens;
};

SHOAL_MUST_CHECK int pages_pb_put_request(struct buf *out, const struct pages_request *r);
SHOAL_MUST_CHECK int pages_pb_read_request(struct pages_request *out, struct arena *a,
                                           const uint8_t *p, size_t n, struct err *e);

/* The keys of pages, one after the other: what a page stands for, by its content. */
struct pages_key {
    uint8_t sum[SHA256_BYTES]; /* of the last page; before the first: of model and client */
};

SHOAL_MUST_CHECK bool pages_key_begin(struct pages_key *k, const struct pages_request *r);
SHOAL_MUST_CHECK bool pages_key_next(struct pages_key *k, const int32_t *tokens);

/* Appends the message of one page; key: its key. */
SHOAL_MUST_CHECK int pages_pb_put_page(struct buf *out, uint32_t page, const struct pages_key *key,
                                       const uint8_t *data, size_t n);
/* The page with this index and key, and with so many bytes, whose sum is right: copied to out. */
SHOAL_MUST_CHECK int pages_pb_read_page(uint8_t *out, uint32_t page, const struct pages_key *key,
                                        size_t page_bytes, const uint8_t *p, size_t n,
                                        struct err *e);

#endif
