/* duel.h - two programs behind bench/PROTOCOL.md that take turns on the same cores, and processes
 * that keep those cores busy.
 *
 * A program runs only while it handles a request: the other one is stopped (SIGSTOP), so that
 * threads that spin for work do not disturb the measurement.  All started processes end with the
 * driver, however it ends.
 *
 * Thread:    one; duel_init blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE in it.
 * Ownership: duel_fini ends all programs and frees; argv is borrowed.
 * Failure:   SHOAL_EDEADLINE: no reply in time, the program was killed; SHOAL_EIO: it ended or
 *            cannot be started; SHOAL_EFORMAT: its reply is malformed; SHOAL_EINVAL: it replied
 *            with an error and continues; SHOAL_ECANCELLED: a signal came (d->signal) or d->until
 *            has passed.
 */
#ifndef SHOAL_BENCH_DUEL_H
#define SHOAL_BENCH_DUEL_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "base/err.h"

#define DUEL_MAX_ARGS 12
#define DUEL_MAX_BUSY 8

struct duel_prog {
    const char *name; /* for messages: "ours" */
    const char *argv[DUEL_MAX_ARGS];
    pid_t pid; /* 0: not running */
    int pid_fd, in, out, err;
    bool stopped;
    struct buf got; /* output that was not parsed yet */
    char said[512]; /* the end of its stderr */
};

struct duel {
    struct duel_prog prog[2]; /* ours, the peer */
    bool pinned;
    cpu_set_t cpus; /* for both programs and the busy processes */
    int signal_fd;
    int signal;     /* the signal that ended the run; 0: none */
    uint64_t until; /* clock_ns at which the run ends; 0: never */
    pid_t busy[DUEL_MAX_BUSY];
    size_t n_busy;
};

SHOAL_MUST_CHECK int duel_init(struct duel *d, struct err *e);
void duel_fini(struct duel *d);

SHOAL_MUST_CHECK int duel_start(struct duel *d, struct duel_prog *p, struct err *e);
/* Sends the request (takes ownership; NULL: out of memory) and waits at most limit_s for the reply.
 * The caller deletes *reply; reply may be NULL. */
SHOAL_MUST_CHECK int duel_ask(struct duel *d, struct duel_prog *p, cJSON *request, double limit_s,
                              cJSON **reply, struct err *e);
void duel_quit(struct duel *d, struct duel_prog *p); /* asks it to exit; kills it if it does not */
void duel_kill(struct duel_prog *p);
/* CPU time of all threads of a running program; busy neighbours do not affect it. */
double duel_cpu_ms(const struct duel_prog *p);

/* Starts n processes that spin until duel_quiet. */
SHOAL_MUST_CHECK int duel_busy(struct duel *d, size_t n, struct err *e);
void duel_quiet(struct duel *d);

/* Runs a program to completion while both others are stopped; out gets its stdout (may be NULL). An
 * exit code other than 0 is SHOAL_EIO with the end of its stderr. */
SHOAL_MUST_CHECK int duel_output(struct duel *d, const char *const *argv, bool pinned,
                                 double limit_s, struct buf *out, struct err *e);
/* Sleeps; SHOAL_ECANCELLED if the run ends meanwhile. */
SHOAL_MUST_CHECK int duel_sleep(struct duel *d, double seconds, struct err *e);

#endif
