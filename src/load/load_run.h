/* load_run.h - sends what a plan says when it says, and logs what comes back.
 *
 * Thread:    the caller's, until the run is over.
 * Ownership: everything is borrowed.
 * Failure:   only if the run cannot begin; what happens to requests is in the log. */
#ifndef SHOAL_LOAD_LOAD_RUN_H
#define SHOAL_LOAD_LOAD_RUN_H

#include "load/load_plan.h"
#include "load/load_request.h"
#include "load/load_stats.h"

struct tls_client;

struct load_progress {
    uint64_t n_sent, n_ok, n_failed, n_open;
    double part; /* of the time that is planned, 0 to 1 */
};

struct load_run_opts {
    const struct load_target *target;
    struct tls_client *tls; /* for https */
    uint32_t max_connections, timeout_ms;
    uint32_t n_turns;    /* of a conversation; 0 and 1: each chat is one request */
    uint32_t think_ms;   /* between an answer and the next turn */
    uint64_t planned_ns; /* for progress */
    uint64_t drain_ns;   /* how long to wait for answers after the last request; 0: the timeout */
    int stop_fd;         /* ends the run when it becomes readable; -1: none */
    void (*progress)(void *ctx, const struct load_progress *p); /* a few times a second; or NULL */
    void *ctx;
};

/* *stopped: by stop_fd. */
SHOAL_MUST_CHECK int load_run(struct load_plan *plan, const struct load_run_opts *o,
                              struct load_log *log, bool *stopped, struct err *e);

#endif
