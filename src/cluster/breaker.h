/* breaker.h - a circuit breaker: keeps requests away from a replica that fails.
 *
 * Closed, all requests pass.  After some failures in a row it opens: nothing passes for a while,
 * which doubles with every further failure.  Then it is half open: one request passes as a probe,
 * and its outcome closes or opens the breaker.
 *
 * Thread: plain data; the owner's. */
#ifndef SHOAL_CLUSTER_BREAKER_H
#define SHOAL_CLUSTER_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

struct breaker {         /* all zero: closed */
    uint32_t n_failures; /* consecutive failures */
    uint64_t until_ns;   /* open until then; 0: closed */
    bool probing;        /* the half-open state's probe request is in flight */
};

/* Whether a request may pass now. */
bool breaker_passes(const struct breaker *b, uint64_t now_ns);
/* A request was sent. */
void breaker_sent(struct breaker *b, uint64_t now_ns);
/* It brought something. */
void breaker_succeeded(struct breaker *b);
/* It failed, and the replica is to blame. True: this opened the breaker. */
bool breaker_failed(struct breaker *b, uint64_t now_ns);
/* It ended without an outcome, because it was cancelled. */
void breaker_forgot(struct breaker *b);
enum breaker_state breaker_state(const struct breaker *b, uint64_t now_ns);
const char *breaker_state_name(enum breaker_state s);

#endif
