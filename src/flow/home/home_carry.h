/* home_carry.h - from actions that were decided to what happens to things: which thing gets which
 * value, and what the action's result is then.
 *
 * The caller hands each deed to a sink (home_sink.h) and writes down its result, or has no sink:
 * then the home is simulated.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table, the file and the draft.
 * Failure:   sticky in the arena. */
#ifndef SHOAL_FLOW_HOME_HOME_CARRY_H
#define SHOAL_FLOW_HOME_HOME_CARRY_H

#include "flow/home/home_draft.h"
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

/* The deeds of all actions that happen now; returns how many, in *out. */
uint32_t home_carry_deeds(struct arena *a, const struct home_table *t, const struct home_file *f,
                          const struct home_draft *d, struct home_carry **out);
/* Writes states, and the results of actions and their lines.  simulated: there is no sink. */
void home_carry_settle(struct arena *a, const struct home_table *t, struct home_draft *d,
                       const struct home_carry *deeds, uint32_t n, struct home_states *states,
                       bool simulated);

#endif
