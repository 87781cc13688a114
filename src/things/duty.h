/* duty.h - the levels of a channel that switches between them: a compressor, a pump, a relay.
 *
 * Values that stay close together are a plateau. Plateaus at the same height are visits of a level.
 * When levels were visited three times each, lie far apart and hold nearly all values, the channel
 * has a duty cycle: its levels are known. A step from one to another is then usual, and the
 * detector of the channel sees how far a value is from its own level (duty_fold).
 *
 * Thread:    belongs to its caller.
 * Ownership: plain data in the caller's storage.
 * Failure:   cannot fail. */
#ifndef SHOAL_THINGS_DUTY_H
#define SHOAL_THINGS_DUTY_H

#include <stdbool.h>
#include <stdint.h>

#define DUTY_LEVELS 4u

struct duty_level {
    double mean, spread;
    double n; /* values in its visits */
    uint32_t visits, longest;
    bool known;
};

/* Begins as zeros. */
struct duty {
    struct duty_level levels[DUTY_LEVELS];
    uint32_t n_levels, n_known;
    double low, high; /* range of the values, which slowly narrows */
    double quantum;   /* smallest difference of two values in a row; 0: none yet */
    double total;     /* values in plateaus and between them */
    double last;
    /* the present plateau, and what has left it */
    double centre, spread, before; /* before: centre of the last one */
    double far[3], far_low, far_high;
    uint32_t n, n_far;
    /* the way from a known level to another */
    uint32_t longest_way;
    double way_low, way_high;
};

enum duty_place {
    DUTY_UNKNOWN, /* there are no levels, or the value is at none of them */
    DUTY_AT,      /* at a known level */
    DUTY_BETWEEN, /* on its way from one to another, no longer than usual */
};

/* One more value. True: the known levels are others than before. */
bool duty_step(struct duty *d, double x);
/* Where the last value is. */
enum duty_place duty_where(const struct duty *d);
/* The value as if it were at the first known level; x itself, if it is at none. */
double duty_fold(const struct duty *d, double x, bool *at);
/* The reverse, for the level that the last value is at, or the nearest to its plateau. */
double duty_unfold(const struct duty *d, double folded);
/* Deviation of folded values, at least: that a channel with two values has no noise says nothing
 * about a third one. */
double duty_least(const struct duty *d);
/* Values that the channel has been at its known level, if that is far longer than ever before; 0
 * otherwise. */
uint32_t duty_overdue(const struct duty *d);

#endif
