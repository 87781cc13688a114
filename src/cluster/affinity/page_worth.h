/* page_worth.h - whether the pages of a prompt are fetched from the node that has them, or computed
 * again: a pure decision by the measured rates of the link and of this node.
 *
 * A link that was never measured, or looked too slow and was not measured lately, is tried with a
 * small part of the pages.
 *
 * Thread: plain data. */
#ifndef SHOAL_CLUSTER_AFFINITY_PAGE_WORTH_H
#define SHOAL_CLUSTER_AFFINITY_PAGE_WORTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_WORTH_TRY_BYTES ((size_t)256 << 10) /* to measure a link */
#define PAGE_WORTH_MAX_BYTES ((size_t)64 << 20)  /* of one fetch */

struct page_link {
    double bytes_per_s; /* 0: never measured */
    double first_ns;    /* from the request to the first byte */
    uint64_t seen_ns;   /* when it was measured last */
    bool given;         /* by the configuration: bytes_per_s is not measured */
    uint64_t fails_ns;  /* no fetch is tried before this, after one that failed */
};

/* How many of n_pages to fetch, from the first on. prefill_ns: measured cost of a token here; 0:
 * unknown, and nothing is fetched. */
uint32_t page_worth(const struct page_link *k, uint32_t n_pages, size_t page_bytes,
                    double prefill_ns, uint64_t now_ns);
/* The longest that a fetch of n pages may take before it is given up. */
uint64_t page_worth_limit_ns(const struct page_link *k, uint32_t n_pages, size_t page_bytes,
                             double prefill_ns);
/* A fetch has ended: bytes in data_ns after the first one, which came after first_ns. */
void page_worth_saw(struct page_link *k, size_t bytes, uint64_t first_ns, uint64_t data_ns,
                    uint64_t now_ns);
void page_worth_failed(struct page_link *k, uint64_t now_ns);

#endif
