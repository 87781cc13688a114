/* duel.h - two programs behind bench/PROTOCOL.md that take turns on the same cores, and processes
 * that keep those cores busy.
 *
 * A program runs only while it is asked: the other one is stopped (SIGSTOP), so that threads that
 * spin for their next work never count.  Nothing that is started here outlives the driver, however
 * it ends.
 *
 * Thread:    one; duel_init blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE in it.
 * Ownership: duel_fini ends all programs and frees; argv is borrowed.
 * Failure:   SHOAL_EDEADLINE: no answer in time, the program was killed; SHOAL_EIO: it ended or
 *            cannot be started; SHOAL_EFORMAT: its answer is none; SHOAL_EINVAL: it answered with
 * an error and goes on; SHOAL_ECANCELLED: a signal came (d->signal) or d->until is over. */
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
    struct buf got; /* what it has written and nobody has read */
    char said[512]; /* the end of its stderr */
};

struct duel {
    struct duel_prog prog[2]; /* ours, the peer */
    bool pinned;
    cpu_set_t cpus; /* of both programs and of the busy processes */
    int signal_fd;
    int signal;     /* that ends the run; 0: none came */
    uint64_t until; /* clock_ns when the run ends; 0: never */
    pid_t busy[DUEL_MAX_BUSY];
    size_t n_busy;
};

SHOAL_MUST_CHECK int duel_init(struct duel *d, struct err *e);
void duel_fini(struct duel *d);

SHOAL_MUST_CHECK int duel_start(struct duel *d, struct duel_prog *p, struct err *e);
/* Sends the request (taken; NULL: out of memory) and waits for its answer, at most so long; *reply
 * is the caller's to delete, and may be NULL when nobody wants it. */
SHOAL_MUST_CHECK int duel_ask(struct duel *d, struct duel_prog *p, cJSON *request, double limit_s,
                              cJSON **reply, struct err *e);
void duel_quit(struct duel *d, struct duel_prog *p); /* lets it end by itself; else kills */
void duel_kill(struct duel_prog *p);
/* Processor time of all threads of a running program; what its neighbours cannot stretch. */
double duel_cpu_ms(const struct duel_prog *p);

/* n processes that do nothing but burn the cores, until duel_quiet. */
SHOAL_MUST_CHECK int duel_busy(struct duel *d, size_t n, struct err *e);
void duel_quiet(struct duel *d);

/* Runs a program to its end, both others stopped; what it prints goes to out (NULL: nowhere).  An
 * exit code other than 0 is SHOAL_EIO with the end of its stderr. */
SHOAL_MUST_CHECK int duel_output(struct duel *d, const char *const *argv, bool pinned,
                                 double limit_s, struct buf *out, struct err *e);
/* Waits, or SHOAL_ECANCELLED. */
SHOAL_MUST_CHECK int duel_sleep(struct duel *d, double seconds, struct err *e);

#endif
