/* page_exchange.h - computed pages of a prompt's beginning leave an engine, or come into it: from
 * another node that has read the same tokens with the same model.
 *
 * A page is the keys and values of 16 tokens in all layers, the same bytes on every machine. Pages
 * are taken and found only in the scope that they were computed in (kv_pages.h).
 *
 * Thread:    page_exchange_bytes and page_exchange_submit: any; done is called on the engine's.
 * Ownership: the job is the caller's, but between submit and done the engine's. The engine must
 *            outlive the call of submit; when it is closed, done is called with n_pages 0. */
#ifndef SHOAL_ENGINE_DECODE_PAGE_EXCHANGE_H
#define SHOAL_ENGINE_DECODE_PAGE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shoal_adapter;
struct shoal_engine;

#define PAGE_EXCHANGE_TOKENS 16u /* of a page */

struct page_job {
    struct page_job *next; /* private */
    void (*done)(struct page_job *j);
    bool import;
    uint64_t scope;        /* as in kv_pages_find */
    const int32_t *tokens; /* [n_tokens], from the start of the prompt */
    uint32_t n_tokens;     /* what is left after the last whole page does not count */
    uint32_t skip;         /* export: pages at the start that are not needed */
    uint8_t *data;         /* import: n_pages from page `skip` on; export: room for max_pages */
    uint32_t max_pages;
    uint32_t n_pages; /* export: found and copied; import: given, then: taken over */
};

/* Bytes of a page; 0: this engine's pages cannot be exchanged, or there is none (NULL). */
size_t page_exchange_bytes(const struct shoal_engine *en);
/* The scope of pages that were computed with an adapter at its own scale; NULL: without one. */
uint64_t page_exchange_scope(uint64_t scope, const struct shoal_adapter *a);
void page_exchange_submit(struct shoal_engine *en, struct page_job *j);
/* On the engine's thread, between two steps: all that were submitted. */
void page_exchange_run(struct shoal_engine *en);
/* The same when the engine ends: nothing is copied. */
void page_exchange_end(struct shoal_engine *en);

#endif
