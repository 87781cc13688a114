/* kv_pages.h - who holds which page of the key-value cache.
 *
 * A page is 16 tokens of all layers.  Pages are counted references: a full page of a prompt can be
 * found again by the tokens it holds and all before it, so requests with a common beginning share
 * it; pages nobody holds stay findable until they are needed for something else, oldest first.
 *
 * Thread:    belongs to the engine's thread; no locks inside.
 * Ownership: everything is reserved at create; nothing is allocated later.
 * Failure:   kv_pages_take returns KV_NO_PAGE when every page is held. */
#ifndef SHOAL_ENGINE_KV_PAGES_H
#define SHOAL_ENGINE_KV_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define KV_NO_PAGE UINT32_MAX

struct kv_pages;

SHOAL_MUST_CHECK int kv_pages_create(struct kv_pages **out, uint32_t n_pages, uint32_t page_tokens,
                                     struct err *e);
void kv_pages_destroy(struct kv_pages *kv);
/* Pages that nobody holds. */
uint32_t kv_pages_free(const struct kv_pages *kv);
/* An empty page, held once. */
uint32_t kv_pages_take(struct kv_pages *kv);
/* Holds a page once more, which must be held. */
void kv_pages_hold(struct kv_pages *kv, uint32_t page);
/* Gives one hold back; a page that was made findable stays so. */
void kv_pages_release(struct kv_pages *kv, uint32_t page);
/* The page that holds these tokens (a whole page of them) right after `parent` (KV_NO_PAGE: at the
 * beginning), held once more; or KV_NO_PAGE. */
uint32_t kv_pages_find(struct kv_pages *kv, uint32_t parent, const int32_t *tokens);
/* Makes a full page findable.  When a page with the same content is findable already, the caller's
 * hold moves to that one.  Returns the page that the caller holds from now on. */
uint32_t kv_pages_publish(struct kv_pages *kv, uint32_t page, uint32_t parent,
                          const int32_t *tokens);

#endif
