/* kv_pages.h - reference counts of the pages of a key-value cache, and finding pages by content.
 *
 * A page holds 16 tokens of all layers. A full page can be found by its tokens and all tokens
 * before them, so requests with a common prefix share pages. An unreferenced page stays findable
 * until it is evicted; the oldest is evicted first.
 *
 * Thread:    belongs to the engine's thread; no locks inside.
 * Ownership: everything is reserved at create; nothing is allocated later.
 * Failure:   kv_pages_take returns KV_NO_PAGE when every page is held. */
#ifndef SHOAL_ENGINE_DECODE_KV_PAGES_H
#define SHOAL_ENGINE_DECODE_KV_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define KV_NO_PAGE UINT32_MAX

struct kv_pages;

SHOAL_MUST_CHECK int kv_pages_create(struct kv_pages **out, uint32_t n_pages, uint32_t page_tokens,
                                     struct err *e);
void kv_pages_destroy(struct kv_pages *kv);
/* Unreferenced pages. */
uint32_t kv_pages_free(const struct kv_pages *kv);
/* An empty page with one reference. */
uint32_t kv_pages_take(struct kv_pages *kv);
/* Adds a reference to a referenced page. */
void kv_pages_hold(struct kv_pages *kv, uint32_t page);
/* Drops one reference; a findable page stays findable. */
void kv_pages_release(struct kv_pages *kv, uint32_t page);
/* No page is findable any more: their content was lost. */
void kv_pages_forget_all(struct kv_pages *kv);
/* The page with these tokens (a whole page of them) right after `parent` (KV_NO_PAGE: the first
 * page), with one more reference; or KV_NO_PAGE. scope: prefixes are found only in the scope that
 * they were published in, so that nobody learns by a hit what another client has sent. */
uint32_t kv_pages_find(struct kv_pages *kv, uint64_t scope, uint32_t parent, const int32_t *tokens);
/* Makes a full page findable. If a page with the same content is findable already, the caller's
 * reference moves to that one. Returns the page that the caller now references. */
uint32_t kv_pages_publish(struct kv_pages *kv, uint64_t scope, uint32_t page, uint32_t parent,
                          const int32_t *tokens);

#endif
