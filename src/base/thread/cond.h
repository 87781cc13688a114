/* cond.h - condition variables whose waits go by the monotonic clock, which nobody sets. */
#ifndef SHOAL_BASE_COND_H
#define SHOAL_BASE_COND_H

#include <pthread.h>
#include <time.h>

static inline void cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

#endif
