/* heat.h - how hot the machine is, from which temperature on it slows itself down, and how often it
 * has done so.
 *
 * Thread:    any; reads files.
 * Failure:   what the machine does not say is 0. */
#ifndef SHOAL_BASE_HEAT_H
#define SHOAL_BASE_HEAT_H

#include <stdint.h>

#define HEAT_USUAL_LIMIT 85.0 /* degrees, if the machine does not say when it slows down */

struct heat {
    double celsius, limit; /* of the hottest sensor; 0: unknown */
    uint64_t n_throttled;  /* since the machine started */
};

/* sys: sys_file_root(). */
void heat_read(struct heat *h, const char *sys);

static inline double heat_limit(const struct heat *h)
{
    return h->limit > 0 ? h->limit : HEAT_USUAL_LIMIT;
}

#endif
