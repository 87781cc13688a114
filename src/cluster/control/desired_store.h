/* desired_store.h - the desired state in NATS: read, changed by compare-and-set, watched, and kept
 * in a file for when NATS is down.
 *
 * The state is one value of the bucket shoal-CLUSTER-desired. A change reads it, lets the caller
 * change it, and writes it back if nobody else wrote in the meantime; otherwise it starts again.
 * Only states that pass desired_check are written. A value that does not decode is refused and
 * never overwritten, and the last good state stays in force.
 *
 * NATS may lose its data.  Then the next controller asks the members what they know, waits for
 * their answers (roll_call.h), and writes back the newest copy that any of them has, with a version
 * and a fence above all that they know.  An administrator's change waits for that, so that no empty
 * state comes to stand beside a known one; only where nobody knows a state does a change begin an
 * empty one.
 *
 * Watching does not depend on JetStream's consumers, which can vanish with their server: a writer
 * announces its change on the plain subject shoal.CLUSTER.desired, and the bucket's last revision
 * is compared every poll_ms.
 *
 * Thread:    load and update: any that may block.  Everything else: the owner's; on_change is
 *            called there.  Inside, a thread "desired" reads and writes the file.
 * Ownership: open gives, close takes back (NULL is fine); the bus must outlive it.  The state
 *            given to on_change is borrowed until the next on_change or close.  close returns
 *            when its thread has ended (at most wait_ms); a posted task may still be in the
 *            executor, see bus.h.
 * Failure:   as bucket.h; SHOAL_EFORMAT: what is in the bucket is not a state; SHOAL_ECHANGED: a
 *            newer controller has written (fence), or the bucket has the state of another
 *            cluster. */
#ifndef SHOAL_CLUSTER_CONTROL_DESIRED_STORE_H
#define SHOAL_CLUSTER_CONTROL_DESIRED_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct bus;
struct desired;
struct desired_store;
struct executor;
struct lease_known;

struct desired_store_opts {
    struct bus *bus;
    const char *name; /* of this member; NULL: a command */
    const char *file; /* snapshot, or NULL: none */
    bool answers;     /* it may send its copy to others: a role that may write the state */
    /* Somebody calls the roll: the owner answers with a heartbeat that has this number, on its
     * thread.  NULL: it does not answer. */
    void (*on_call)(void *ctx, uint64_t number);
    uint32_t wait_ms;  /* timeout of one NATS request; 0: 2000 */
    uint32_t poll_ms;  /* 0: 5000, plus up to half as much jitter */
    uint32_t retry_ms; /* an update retries for this long; 0: 15000 */
    unsigned replicas; /* servers that hold the bucket; 0: by the bus's addresses */
    /* NATS has no state, and an administrator's change would begin an empty one: listens to members
     * for a while, which may know one (desired_store_heard).  Called by update; NULL: it begins. */
    void (*listen)(void *ctx);
    void *listen_ctx;
};

enum desired_origin { DESIRED_FROM_NOWHERE, DESIRED_FROM_FILE, DESIRED_FROM_NATS };

struct desired_store_status {
    enum desired_origin origin; /* origin of the state in force */
    bool fresh;                 /* compared with NATS within the last three polls */
    uint64_t revision, version, fence;
    uint64_t known_fence;          /* the highest that this member knows */
    uint64_t n_changes, n_refused; /* refused: invalid or outdated values */
    char error[320];               /* why the last attempt failed; "": it succeeded */
};

typedef void (*desired_change_fn)(void *ctx, const struct desired *d);
/* Changes d.  0: write it.  1: leave everything as it is.  Negative: give up, with the error.  May
 * be called several times, each time with the newest state. */
typedef int (*desired_update_fn)(void *ctx, struct desired *d, struct err *e);

/* x and on_change may be NULL for a command: then nothing is watched and no file is used. */
SHOAL_MUST_CHECK int desired_store_open(struct desired_store **out,
                                        const struct desired_store_opts *o, struct executor *x,
                                        desired_change_fn on_change, void *ctx, struct err *e);
void desired_store_close(struct desired_store *s);
/* The state in force on this member, or NULL. */
const struct desired *desired_store_current(const struct desired_store *s);
void desired_store_get_status(struct desired_store *s, struct desired_store_status *out);

/* The state in the bucket now, for the caller to destroy.  SHOAL_ENOTFOUND: none yet.  unsure: why
 * no majority of the servers could confirm that it is the newest, so that it may be one of seconds
 * before; code 0: one did.  NULL: that does not matter. */
SHOAL_MUST_CHECK int desired_store_load(struct desired_store *s, struct desired **out,
                                        struct err *unsure, struct err *e);
/* fence: of the controller's lease; a state that a newer controller wrote is left alone
 * (SHOAL_ECHANGED). 0: an administrator, who may always write. If NATS has no state, the controller
 * restores the newest one that a member knows; SHOAL_ENOTFOUND: it waits for members to answer, or
 * for a copy that others have; SHOAL_ECHANGED: a member knows a higher fence. Where nobody knows
 * one, an empty one begins. out: the state as it is now, or NULL. SHOAL_EBUSY:
 * given up after retry_ms; the last write may still have happened. */
SHOAL_MUST_CHECK int desired_store_update(struct desired_store *s, uint64_t fence,
                                          desired_update_fn fn, void *ctx, struct desired **out,
                                          struct err *e);
/* Compares with NATS now.  Any thread. */
void desired_store_look(struct desired_store *s);
/* The version in force was compared with NATS at or after this time, and it was the newest; no
 * other member knows a newer one. */
bool desired_store_confirmed(struct desired_store *s, uint64_t version, uint64_t since_ns);
/* What a member's heartbeat says. */
struct desired_heard {
    const char *name;     /* NULL: not known */
    uint64_t version;     /* of the state that it follows */
    uint64_t writer;      /* the fence that wrote that version */
    uint64_t fence;       /* it is the controller, with this one; 0: it is not */
    uint64_t known_fence; /* the highest that it knows */
    uint64_t roll_call;   /* the number that it answers; 0: none */
};
/* Any thread. */
void desired_store_heard(struct desired_store *s, const struct desired_heard *h);
/* What this member and those it heard know.  For lease.h; any thread. */
void desired_store_known(void *store, struct lease_known *out);
/* Writes only the fence: from then on, writes of older controllers fail. For lease.h. */
SHOAL_MUST_CHECK int desired_store_claim(void *store, uint64_t fence, struct err *e);

#endif
