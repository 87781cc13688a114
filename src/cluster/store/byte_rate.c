/* byte_rate.c - see byte_rate.h. */
#include "cluster/store/byte_rate.h"

#define SECOND_NS 1000000000u
#define BURST_NS (SECOND_NS / 10)

void byte_rate_init(struct byte_rate *r, uint64_t per_s)
{
    *r = (struct byte_rate){.lock = PTHREAD_MUTEX_INITIALIZER, .per_s = per_s};
}

uint64_t byte_rate_take(struct byte_rate *r, size_t n, uint64_t now_ns)
{
    uint64_t wait = 0;
    pthread_mutex_lock(&r->lock);
    if (r->per_s > 0) {
        uint64_t earliest = now_ns > BURST_NS ? now_ns - BURST_NS : 0;
        if (r->free_ns < earliest)
            r->free_ns = earliest;
        r->free_ns += (uint64_t)((double)n / (double)r->per_s * (double)SECOND_NS);
        wait = r->free_ns > now_ns ? r->free_ns - now_ns : 0;
    }
    pthread_mutex_unlock(&r->lock);
    return wait;
}
