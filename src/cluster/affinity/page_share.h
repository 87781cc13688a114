/* page_share.h - answers another node's request for the pages of a prompt: as far as this process
 * has them, for the same client, with the same model.
 *
 * Thread:    the owner's, to which `ready` comes; the engine copies on its own thread.
 * Ownership: start gives, free takes back, not before ready was called.
 * Failure:   SHOAL_EFORMAT, SHOAL_ELIMIT: the request is invalid. SHOAL_ENOTFOUND and others: this
 *            process does not have the model, or not now; nothing was started. */
#ifndef SHOAL_CLUSTER_AFFINITY_PAGE_SHARE_H
#define SHOAL_CLUSTER_AFFINITY_PAGE_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;
struct executor;
struct page_share;
struct registry;

/* message: a PagesRequest, not needed afterwards. */
SHOAL_MUST_CHECK int page_share_start(struct page_share **out, struct registry *r,
                                      const uint8_t *message, size_t n, struct executor *x,
                                      void (*ready)(void *ctx), void *ctx, struct err *e);
/* Appends the message of the next page: 1; 0: that were all. */
SHOAL_MUST_CHECK int page_share_next(struct page_share *s, struct buf *out);
void page_share_free(struct page_share *s);

#endif
