/* run_watch.h - how long the process ran while a step took its time: whether it stood still, and
 * how much of the time its threads waited for a core that others had.
 *
 * Reading CPU time is a system call, which a step of a tiny model would notice.  So it is read at
 * the beginning of a step only if the last reading is not fresh, and at the end only after a long
 * one: the result may be too high by what all threads ran since the reading, never too low. The
 * waiting is read once in a while too, and the share of the last readings is that of the steps in
 * between: the kernel counts it in slices that are longer than many steps.
 *
 * Thread: the owner's. */
#ifndef SHOAL_ENGINE_RUN_WATCH_H
#define SHOAL_ENGINE_RUN_WATCH_H

#include <stdint.h>

#include "base/thread/run_queue.h"
#include "engine/cost.h"

struct run_watch { /* all zero: not begun */
    uint64_t began_ns;
    uint64_t read_ns, ran_ns; /* the last reading of the CPU time, and when */
    uint64_t queue_ns;        /* when the run queue was read last; 0: never */
    struct run_queue_time queue;
    double ran, waited; /* between the last readings; older ones count half as much, each */
};

void run_watch_begin(struct run_watch *w, uint64_t now_ns);
/* What began until now. */
struct cost_time run_watch_took(struct run_watch *w, uint64_t now_ns);

#endif
