/* home_carry.h - carries out decided actions: which thing gets which value, now or later, and the
 * result of the action.
 *
 * The caller hands each deed to a sink (home_sink.h), through the gate (gate.h), and records its
 * result; without a sink the home is simulated.  Actions for later go to a schedule (home_later.h)
 * in the same way.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table, the file and the draft.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_APPS_HOME_HOME_CARRY_H
#define SHOAL_APPS_HOME_HOME_CARRY_H

#include "apps/home/gate/gate.h"
#include "apps/home/home_draft.h"
#include "apps/home/later/home_later.h"

struct home_carry { /* one deed of an action */
    struct home_deed deed;
    uint32_t action; /* of the draft */
    bool listed;     /* the thing is in the file: a sink may know it */
    bool denied;     /* the gate does not let it pass */
    enum home_sink_result result;
    const char *reason; /* NULL: none */
};

struct home_carry_later { /* a schedule request of an action */
    uint32_t action;      /* of the draft */
    enum {
        HOME_CARRY_ADD,
        HOME_CARRY_UNDO,
        HOME_CARRY_CANCEL,
        HOME_CARRY_TURN
    } kind;                        /* UNDO: "for 20 minutes" */
    struct home_later_entry entry; /* ADD, UNDO, TURN */
    uint64_t id;                   /* of the entry, once known */
    int rc;                        /* 0 or SHOAL_E*, set by the scheduler */
    const char *reason;            /* of a failure; NULL: none */
};

struct home_carry_now {
    int64_t ms;               /* Unix time */
    const char *said;         /* the words of the request */
    const char *by;           /* the client, or "" */
    bool confirmed;           /* confirmed by the user */
    struct home_later *later; /* NULL: none */
};

struct home_carry_done { /* the results */
    const struct home_carry *deeds;
    uint32_t n_deeds;
    const struct home_carry_later *later;
    uint32_t n_later;
    bool simulated; /* no sink: actions are simulated */
    bool schedules; /* a schedule exists */
};

/* Lists the deeds of all actions that happen now; returns how many, in *out. */
uint32_t home_carry_deeds(struct arena *a, const struct gate *g, const struct home_draft *d,
                          struct home_carry **out);
/* Denies all deeds of an action if the gate does not let one of them pass: half a scene is none. */
void home_carry_check(struct arena *a, const struct gate *g, const struct home_draft *d,
                      struct home_carry *v, uint32_t n, bool confirmed);
/* Hands a deed that is not denied to the sink, through the gate; sink NULL: the home is simulated.
 * true: `done` is called once. */
bool home_carry_send(const struct gate *g, struct home_sink *sink, struct home_carry *c,
                     bool confirmed, home_sink_done_fn done, void *ctx);
/* Lists what to schedule and what to cancel; returns how many, in *out. */
uint32_t home_carry_schedule(struct arena *a, const struct gate *g, const struct home_draft *d,
                             const struct home_carry_now *now, struct home_carry_later **out);
/* The entry that ends an action which starts now for a time ("for 20 minutes"); false: it has no
 * end. *denied: why it may not end by itself; NULL: it may. */
bool home_carry_end_of(struct arena *a, const struct gate *g, const struct ask_plan_action *o,
                       const struct home_carry_now *now, struct home_later_entry *out,
                       const char **denied);
/* The results of actions where no home is known: whoever reads them carries them out, so none is
 * "done" here. */
void home_carry_leave(struct arena *a, const struct home_table *t, struct home_draft *d);
/* Writes states, and the results of actions and their lines. */
void home_carry_settle(struct arena *a, const struct home_table *t, struct home_draft *d,
                       const struct home_carry_done *done, struct home_states *states);

#endif
