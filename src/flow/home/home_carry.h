/* home_carry.h - from actions that were decided to what happens to things: which thing gets which
 * value, now or later, and what the action's result is then.
 *
 * The caller hands each deed to a sink (home_sink.h) and writes down its result, or has no sink:
 * then the home is simulated.  What is for later goes to a schedule (home_later.h) in the same way.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table, the file and the draft.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_FLOW_HOME_HOME_CARRY_H
#define SHOAL_FLOW_HOME_HOME_CARRY_H

#include "flow/home/home_draft.h"
#include "flow/home/later/home_later.h"
#include "flow/home/site/home_file.h"
#include "flow/home/site/home_sink.h"
#include "flow/home/site/home_states.h"

struct home_carry { /* one deed of an action */
    struct home_deed deed;
    uint32_t action; /* of the draft */
    bool listed;     /* the thing is in the file: a sink may know it */
    enum home_sink_result result;
    const char *reason; /* NULL: none */
};

struct home_carry_later { /* what an action wants of the schedule */
    uint32_t action;      /* of the draft */
    enum { HOME_CARRY_ADD, HOME_CARRY_UNDO, HOME_CARRY_CANCEL } kind; /* UNDO: "for 20 minutes" */
    struct home_later_entry entry;                                    /* ADD, UNDO */
    uint64_t id;        /* of the entry, once it is known */
    int rc;             /* 0 or SHOAL_E*, from whoever schedules */
    const char *reason; /* of a failure; NULL: none */
};

struct home_carry_now {
    int64_t ms;       /* Unix time */
    const char *said; /* the words of the request */
    const char *by;   /* the client, or "" */
    bool confirmed;   /* somebody said yes to it */
};

struct home_carry_done { /* what came of it */
    const struct home_carry *deeds;
    uint32_t n_deeds;
    const struct home_carry_later *later;
    uint32_t n_later;
    bool simulated; /* there is no sink */
    bool schedules; /* there is a schedule */
};

/* The deeds of all actions that happen now; returns how many, in *out. */
uint32_t home_carry_deeds(struct arena *a, const struct home_table *t, const struct home_file *f,
                          const struct home_draft *d, struct home_carry **out);
/* What is to be scheduled, and what is to be cancelled; returns how many, in *out. */
uint32_t home_carry_schedule(struct arena *a, const struct home_table *t, const struct home_file *f,
                             const struct home_draft *d, const struct home_carry_now *now,
                             struct home_carry_later **out);
/* The entry that ends an action which happens now for a time ("for 20 minutes"); false: it has no
 * end.  *denied: why nothing may do that by itself; NULL: it may. */
bool home_carry_end_of(struct arena *a, const struct home_table *t, const struct home_file *f,
                       const struct ask_plan_action *o, const struct home_carry_now *now,
                       struct home_later_entry *out, const char **denied);
/* The results of actions where no home is known: whoever reads them carries them out, so none is
 * "done" here. */
void home_carry_leave(struct arena *a, const struct home_table *t, struct home_draft *d);
/* Writes states, and the results of actions and their lines. */
void home_carry_settle(struct arena *a, const struct home_table *t, struct home_draft *d,
                       const struct home_carry_done *done, struct home_states *states);

#endif
