/* page_source.h - interface of what may bring pages of a prompt from another node into an engine,
 * before the prompt is computed (engine/decode/page_exchange.h).
 *
 * Thread: the owner's. */
#ifndef SHOAL_FLOW_PAGE_SOURCE_H
#define SHOAL_FLOW_PAGE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct page_source;
struct registry_model;
struct request;

/* What a generation wants; it lives until done was called. */
struct page_fetch {
    struct registry_model *model; /* held */
    const struct request *request;
    bool shared; /* clients share the cache of the model */
    const int32_t *tokens;
    uint32_t n_tokens;
    void (*done)(struct page_fetch *f);
};

struct page_source_ops {
    /* True: done will be called, not before this returns, and soon: with pages or without. False:
     * nothing happened. */
    bool (*start)(struct page_source *s, struct page_fetch *f);
};

struct page_source {
    const struct page_source_ops *ops;
};

#endif
