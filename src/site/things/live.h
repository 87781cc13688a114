/* live.h - answers the home flow's questions about sensors and alarms from the plant.
 *
 * Thread:    any; looks at the plant under its lock.
 * Ownership: lives in its owner, which outlives the flow; the plant is borrowed.
 * Failure:   as of home_live.h. */
#ifndef SHOAL_SITE_THINGS_LIVE_H
#define SHOAL_SITE_THINGS_LIVE_H

#include "apps/home/site/home_live.h"

struct plant;

struct live_answers {
    struct home_live home; /* first */
    struct plant *plant;
};

void live_init(struct live_answers *l, struct plant *plant);

#endif
