/* page_worth.c - see page_worth.h. */
#include "cluster/affinity/page_worth.h"

#include "engine/decode/page_exchange.h"

#define MARGIN 1.5                /* a fetch must be this much faster: what is measured varies */
#define FORGET_NS 60000000000     /* a link that was not measured for this long is tried again */
#define PAUSE_NS 2000000000u      /* after a fetch that failed */
#define LEAST_LIMIT_NS 500000000u /* it ends a fetch that hangs */
#define NEW_SHARE 0.5             /* of the newest measurement */

static double fetch_ns(const struct page_link *k, uint32_t n_pages, size_t page_bytes)
{
    return k->first_ns + (double)n_pages * (double)page_bytes / k->bytes_per_s * 1e9;
}

static double prefill_of(uint32_t n_pages, double prefill_ns)
{
    return (double)n_pages * PAGE_EXCHANGE_TOKENS * prefill_ns;
}

uint32_t page_worth(const struct page_link *k, uint32_t n_pages, size_t page_bytes,
                    double prefill_ns, uint64_t now_ns)
{
    if (page_bytes == 0 || n_pages == 0 || prefill_ns <= 0 || now_ns < k->fails_ns)
        return 0;
    if (n_pages > PAGE_WORTH_MAX_BYTES / page_bytes)
        n_pages = (uint32_t)(PAGE_WORTH_MAX_BYTES / page_bytes);
    if (k->bytes_per_s > 0 &&
        fetch_ns(k, n_pages, page_bytes) * MARGIN < prefill_of(n_pages, prefill_ns))
        return n_pages;
    if (k->bytes_per_s > 0 && (k->given || now_ns - k->seen_ns <= FORGET_NS))
        return 0;
    const size_t few = PAGE_WORTH_TRY_BYTES / page_bytes;
    return few >= n_pages ? n_pages : few > 0 ? (uint32_t)few : 1;
}

uint64_t page_worth_limit_ns(const struct page_link *k, uint32_t n_pages, size_t page_bytes,
                             double prefill_ns)
{
    const double known = k->bytes_per_s > 0 ? 4 * fetch_ns(k, n_pages, page_bytes) : 0;
    const double most = 2 * prefill_of(n_pages, prefill_ns); /* it could have been computed twice */
    const double limit = known > 0 && known < most ? known : most;
    return limit > LEAST_LIMIT_NS ? (uint64_t)limit : LEAST_LIMIT_NS;
}

static double mix(double old, double seen)
{
    return old > 0 ? old * (1 - NEW_SHARE) + seen * NEW_SHARE : seen;
}

void page_worth_saw(struct page_link *k, size_t bytes, uint64_t first_ns, uint64_t data_ns,
                    uint64_t now_ns)
{
    /* all of it may have come with the first byte: then the whole time is its measure */
    const double ns = (double)(data_ns > 0 ? data_ns : first_ns > 0 ? first_ns : 1);
    k->fails_ns = bytes > 0 ? 0 : k->fails_ns;
    if (bytes == 0 || k->given)
        return;
    k->bytes_per_s = mix(k->bytes_per_s, (double)bytes / ns * 1e9);
    k->first_ns = mix(k->first_ns, (double)first_ns);
    k->seen_ns = now_ns;
}

void page_worth_failed(struct page_link *k, uint64_t now_ns)
{
    k->fails_ns = now_ns + PAUSE_NS;
}
