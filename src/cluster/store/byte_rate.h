/* byte_rate.h - a limit of bytes per second that several transfers share.
 *
 * Thread:    any: one lock inside.
 * Ownership: init over the caller's storage; nothing to give back.
 * Failure:   none. */
#ifndef SHOAL_CLUSTER_STORE_BYTE_RATE_H
#define SHOAL_CLUSTER_STORE_BYTE_RATE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct byte_rate {
    pthread_mutex_t lock;
    uint64_t per_s;   /* 0: no limit */
    uint64_t free_ns; /* when the bytes that were taken have been paid for */
};

void byte_rate_init(struct byte_rate *r, uint64_t per_s);
/* Takes n bytes and returns how long to wait before the next ones: 0, or nanoseconds. A transfer
 * that was idle may send a tenth of a second's worth at once. */
uint64_t byte_rate_take(struct byte_rate *r, size_t n, uint64_t now_ns);

#endif
