/* silence.h - how long another member has been silent while this process listened, and whether that
 * is long.
 *
 * A process that stood still (a stopped machine, a debugger, too much load) finds on waking that it
 * has heard nobody for long: what was sent meanwhile waits in its sockets, and is read only after
 * the timers that are due.  Without this it would blame all nodes at once, and move every stream.
 *
 * A member on an overloaded machine beats late.  Moving its streams would add to the load, so one
 * whose beats came late just before gets more time, within limits; a stream that stops is noticed
 * by its own pace (pace.h).
 *
 * Thread: plain data; the owner's.  Time is what the caller says. */
#ifndef SHOAL_CLUSTER_SILENCE_H
#define SHOAL_CLUSTER_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

#define SILENCE_MOST_NS UINT64_C(200000000) /* one look counts for no more than this */
#define SILENCE_TIMES 3u                    /* the longest recent silence is not yet long */
#define SILENCE_LIMIT 4u                    /* times the usual limit: this is always long */

struct silence {        /* all zero: it was not heard yet */
    uint64_t from_ns;   /* the last look, or what was heard since */
    uint64_t silent_ns; /* so far */
    uint64_t peak_ns;   /* the longest silence of late */
};

/* For the first time, or after it was lost: then nothing is known of its beats. */
void silence_heard(struct silence *s, uint64_t now_ns);
/* It may come back as another process, on a machine that is less busy. */
void silence_lost(struct silence *s);
/* To be called several times a second: whether it is silent for too long.  usual_ns: the limit for
 * a member that beats in time. */
bool silence_is_long(struct silence *s, uint64_t now_ns, uint64_t usual_ns);

#endif
