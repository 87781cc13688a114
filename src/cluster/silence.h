/* silence.h - how long another member has been silent while this process listened.
 *
 * A process that stood still (a stopped machine, a debugger, too much load) finds on waking that it
 * has heard nobody for long: what was sent meanwhile waits in its sockets, and is read only after
 * the timers that are due.  Without this it would blame all nodes at once, and move every stream.
 *
 * Thread: plain data; the owner's.  Time is what the caller says. */
#ifndef SHOAL_CLUSTER_SILENCE_H
#define SHOAL_CLUSTER_SILENCE_H

#include <stdint.h>

#define SILENCE_MOST_NS UINT64_C(200000000) /* one look counts for no more than this */

struct silence {
    uint64_t from_ns; /* the last look, or what was heard since */
    uint64_t silent_ns;
};

void silence_heard(struct silence *s, uint64_t now_ns);
/* To be called several times a second.  How long it has been silent. */
uint64_t silence_look(struct silence *s, uint64_t now_ns);

#endif
