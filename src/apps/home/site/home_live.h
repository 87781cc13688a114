/* home_live.h - what is measured and what is wrong, from whoever watches sensors and machines: the
 * interface between the home flow, which answers questions, and the plant.
 *
 * Thread:    any, also several at a time; must not block.
 * Ownership: it belongs to whoever made it, and outlives the flow. Results live in the caller's
 *            arena.
 * Failure:   false or NULL: not known. */
#ifndef SHOAL_APPS_HOME_HOME_LIVE_H
#define SHOAL_APPS_HOME_HOME_LIVE_H

#include <stdbool.h>

#include "base/arena.h"

struct home_live_reading {
    const char *title; /* of the sensor, with its machine */
    double value;
    const char *unit; /* "": none */
};

struct home_live_alarm {
    const char *title; /* of the machine, or of the sensor */
    const char *text;  /* what the last alarm says; NULL: there was none */
    bool over;
};

struct home_live;
struct home_live_ops {
    /* The last value of the one sensor whose words are those of both texts; "": any. */
    bool (*reading)(struct home_live *l, struct arena *a, const char *what, const char *where,
                    struct home_live_reading *out);
    /* The last alarm of a machine or sensor with these words; "": the last one that is open. false:
     * there is no such machine or sensor. */
    bool (*alarm)(struct home_live *l, struct arena *a, const char *where,
                  struct home_live_alarm *out);
};

struct home_live { /* the first member of a struct of its owner */
    const struct home_live_ops *ops;
};

#endif
