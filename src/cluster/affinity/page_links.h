/* page_links.h - one event loop's connections to other nodes for pages of prompts: fetches them
 * where the link beats the prefill (page_worth.h), and puts them into the engine.
 *
 * Whatever fails, the prompt is computed as always. A page is used only if its key, size and sum
 * are right (messages/pages_pb.h).
 *
 * Thread:    the loop's, except create and destroy while the loop does not run.
 * Ownership: fetches must have ended before destroy (NULL is fine). */
#ifndef SHOAL_CLUSTER_AFFINITY_PAGE_LINKS_H
#define SHOAL_CLUSTER_AFFINITY_PAGE_LINKS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct page_links;
struct page_source;
struct tls_client;

/* Of all loops, for Prometheus. */
struct page_counts {
    _Atomic uint64_t n_fetches, n_failed; /* started; ended without all pages asked for */
    _Atomic uint64_t n_tokens, n_bytes;   /* that came */
    _Atomic uint64_t bytes_per_s;         /* of the link that was measured last; 0: none was */
};

/* tls: borrowed; NULL: plain. link: bytes a second of the network; 0: measured. counts: borrowed. */
SHOAL_MUST_CHECK int page_links_create(struct page_links **out, struct loop *l,
                                       struct tls_client *tls, size_t link,
                                       struct page_counts *counts, struct err *e);
/* Ends all fetches: their requests are told at the loop's next turn. NULL is fine. */
void page_links_stop(struct page_links *m);
void page_links_destroy(struct page_links *m);
/* For flow_owner.pages. */
struct page_source *page_links_source(struct page_links *m);

#endif
