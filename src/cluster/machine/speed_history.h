/* speed_history.h - the last measurements of one speed of a machine.
 *
 * A measurement shows what was left over by whatever else ran: the best of the recent ones is the
 * machine's speed, and how far the others are below it tells how busy it is.
 *
 * Thread: plain data; the owner's. */
#ifndef SHOAL_CLUSTER_MACHINE_SPEED_HISTORY_H
#define SHOAL_CLUSTER_MACHINE_SPEED_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SPEED_HISTORY_N 8u

struct speed_history { /* all zero: none */
    double values[SPEED_HISTORY_N];
    uint32_t n; /* so far: the oldest is replaced */
};

/* 0 and less, and what is no number: it could not be measured. */
void speed_history_add(struct speed_history *h, double value);
double speed_history_best(const struct speed_history *h); /* 0: none */
/* How far the worst is below the best, as a part of the best. */
double speed_history_spread(const struct speed_history *h);
/* As text, oldest first: " 12 15.5". */
void speed_history_write(const struct speed_history *h, struct buf *out);
/* Numbers until something else comes. */
void speed_history_read(struct speed_history *h, const char *text);

#endif
