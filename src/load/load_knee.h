/* load_knee.h - looks for the highest rate that a server holds: doubles until one fails, then
 * halves the gap between the highest rate that held and the lowest that did not.
 *
 * Thread:    belongs to its caller; plain data.
 * Failure:   none. */
#ifndef SHOAL_LOAD_LOAD_KNEE_H
#define SHOAL_LOAD_LOAD_KNEE_H

#include <stdbool.h>
#include <stdint.h>

struct load_knee {
    double rate; /* to try now, per second */
    double held; /* the highest that held; 0: none yet */
    double lost; /* the lowest that did not; 0: none yet */
    uint32_t n_left;
};

#define LOAD_KNEE_CLOSE 1.1 /* the search ends when lost / held is at most this */

/* first: a rate above 0; n_steps: how many rates are tried at most. */
void load_knee_init(struct load_knee *k, double first, uint32_t n_steps);
/* Whether k->rate held; true: try the new k->rate, false: the search is over. */
bool load_knee_next(struct load_knee *k, bool held);

#endif
