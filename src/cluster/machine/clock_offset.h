/* clock_offset.h - how far the clock of another machine is ahead of ours, from messages that say
 * when they were sent.
 *
 * A message that was on its way for d ms makes the other clock look d ms late.  So the largest
 * offset of the last messages is the nearest to the truth: it is too small by the shortest of their
 * ways.
 *
 * Thread:    plain data. */
#ifndef SHOAL_CLUSTER_MACHINE_CLOCK_OFFSET_H
#define SHOAL_CLUSTER_MACHINE_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_OFFSET_SPAN 32u /* messages; between one and two spans count */

struct clock_offset {
    int64_t now, before; /* the largest of this span and of the one before */
    uint32_t n, n_before;
};

static inline void clock_offset_add(struct clock_offset *o, uint64_t theirs_ms, uint64_t ours_ms)
{
    const int64_t ms = (int64_t)(theirs_ms - ours_ms);
    if (o->n == CLOCK_OFFSET_SPAN) {
        o->before = o->now;
        o->n_before = o->n;
        o->n = 0;
    }
    if (o->n++ == 0 || ms > o->now)
        o->now = ms;
}

/* false: nothing was heard yet. */
static inline bool clock_offset_get(const struct clock_offset *o, int64_t *ms)
{
    *ms = o->n_before > 0 && o->before > o->now ? o->before : o->now;
    return o->n > 0;
}

#endif
