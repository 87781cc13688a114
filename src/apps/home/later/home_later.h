/* home_later.h - the schedule: actions, timers, alarms and reminders with their times, kept in a
 * file.
 *
 * An entry is on disk before its caller hears that it is scheduled.  When it is due, its start is
 * written first, then it runs, then its result is written.  So it runs at most once: a process that
 * dies in between leaves an entry that has begun, and the next one reports it as "interrupted" and
 * does not repeat it.  An entry that did not run in time, because no process ran or because the
 * clock jumped, runs if it is at most `grace` late; otherwise it is "missed".
 *
 * Entries counted from now ("in 20 minutes") keep their distance when the clock is set; those with
 * a time of day follow the clock.
 *
 * Thread:    any; a lock inside.  With start, a thread "home-later" writes the file, watches the
 *            clock and calls back; without it, home_later_tick does that on the caller's thread.
 * Ownership: create/destroy (NULL is fine).  Entries are copied.
 * Failure:   an entry that cannot be written is not added, and `done` says why. */
#ifndef SHOAL_APPS_HOME_HOME_LATER_H
#define SHOAL_APPS_HOME_HOME_LATER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "flow/ask_plan.h"
#include "apps/home/table/home_table.h"
#include "wire/json_out.h"

#define HOME_LATER_MAX 256u       /* waiting entries */
#define HOME_LATER_MAX_EACH 64u   /* ... of one client */
#define HOME_LATER_MAX_BY 64u     /* bytes of its name */
#define HOME_LATER_MAX_RECENT 50u /* results kept */
#define HOME_LATER_MAX_TEXT 1000u
#define HOME_LATER_MAX_FILE ((size_t)8 << 20)
#define HOME_LATER_GRACE_MS 300000
#define HOME_LATER_RETRY_MS 5000

struct home_later;

struct home_later_entry {
    uint64_t id; /* 0: not added yet */
    enum home_later_kind kind;
    int64_t due_ms, made_ms; /* Unix time */
    bool counted;            /* counted from now: setting the clock does not move it */
    bool confirmed;          /* confirmed by the user */
    bool begun;
    bool paused; /* it waits until it goes on, left_ms before it is due */
    int64_t left_ms;
    int64_t not_before_ms; /* it was postponed; not in the file */
    struct ask_plan_again again;
    const char *what; /* the action in words: "turn off the heating" */
    const char *said; /* the words of the command */
    const char *by;   /* the client that scheduled it; NULL or "": unknown */
    /* Name and fields; NULL: the file had none that can be read. */
    const struct ask_plan_action *action;
    /* of finished entries */
    const char *result; /* "done", "sent", "simulated", "rang", "failed", "missed", "interrupted";
                           NULL: waiting */
    const char *reason; /* NULL: none */
    int64_t ended_ms;
};

struct home_later_clock { /* for tests; all zero: the machine's */
    int64_t (*wall_ms)(void *ctx);
    int64_t (*steady_ms)(void *ctx); /* monotonic, also counts while the machine sleeps */
    void *ctx;
};

/* Runs an entry and calls home_later_end once, on any thread, also before it returns. */
typedef void (*home_later_run_fn)(void *ctx, const struct home_later_entry *x);
/* An entry has ended and has a result. Called on the ticking thread, without the lock. */
typedef void (*home_later_told_fn)(void *ctx, const struct home_later_entry *x);

struct home_later_opts {
    const char *path; /* NULL: in memory only */
    int64_t grace_ms; /* 0: HOME_LATER_GRACE_MS */
    struct home_later_clock clock;
    home_later_run_fn run;
    void *run_ctx;
};

/* rc 0 or SHOAL_E*: SHOAL_ELIMIT: too many, or too many of one client; SHOAL_ENOTFOUND: none with
 * that id; SHOAL_EIO. */
typedef void (*home_later_done_fn)(void *ctx, int rc, const char *reason, uint64_t id);

/* SHOAL_EBUSY: another process uses the file. */
SHOAL_MUST_CHECK int home_later_create(struct home_later **out, const struct home_later_opts *o,
                                       struct err *e);
SHOAL_MUST_CHECK int home_later_start(struct home_later *l, struct err *e);
/* Starts nothing more; writes earlier changes. NULL is fine. */
void home_later_stop(struct home_later *l);
/* True when every started entry has ended. */
void home_later_destroy(struct home_later *l);
/* Before start. */
void home_later_listen(struct home_later *l, home_later_told_fn fn, void *ctx);

/* Both call `done` once, on the ticking thread, when the change is on disk. */
void home_later_add(struct home_later *l, const struct home_later_entry *x, home_later_done_fn done,
                    void *ctx);
void home_later_cancel(struct home_later *l, uint64_t id, home_later_done_fn done, void *ctx);
/* Replaces the waiting entry with this id by another, which gets the id. Calls `done` as add. */
void home_later_replace(struct home_later *l, uint64_t id, const struct home_later_entry *x,
                        home_later_done_fn done, void *ctx);
/* The same as cancel, but waits; only with a ticking thread, and not on it. */
SHOAL_MUST_CHECK int home_later_cancel_wait(struct home_later *l, uint64_t id, struct err *e);
/* An entry started by `run` has ended. */
void home_later_end(struct home_later *l, uint64_t id, const char *result, const char *reason);
/* Nothing was done because the sink cannot be reached: the entry is retried while it is not too
 * late, and then fails. */
void home_later_postpone(struct home_later *l, uint64_t id, const char *reason);
/* Runs everything that is due; returns the milliseconds until more is due, or -1: not until
 * something is added. */
int64_t home_later_tick(struct home_later *l);

int64_t home_later_now_ms(struct home_later *l);
uint64_t home_later_turns(struct home_later *l); /* grows with every change */
/* Calls fn for every waiting or running entry, the next one first, then for finished ones, the
 * newest first; under the lock. */
void home_later_each(struct home_later *l, void (*fn)(void *ctx, const struct home_later_entry *x),
                     void *ctx);
/* "scheduled": [...] and "recent": [...] as members of the open object. */
void home_later_json(struct home_later *l, struct json_out *j);
/* One entry as an object. */
void home_later_put(struct json_out *j, const struct home_later_entry *x);

/* Writes and reads the file's text. SHOAL_EFORMAT: not such a file. */
void home_later_write(struct home_later *l, struct buf *out);
SHOAL_MUST_CHECK int home_later_read(struct home_later *l, const char *json, size_t n,
                                     struct err *e);

#endif
