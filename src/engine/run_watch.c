/* run_watch.c - see run_watch.h. */
#include "engine/run_watch.h"

#include "base/clock.h"

#define FRESH_NS 1000000u

void run_watch_begin(struct run_watch *w, uint64_t now_ns)
{
    w->began_ns = now_ns;
    if (w->read_ns == 0 || now_ns - w->read_ns > FRESH_NS) {
        w->read_ns = now_ns;
        w->ran_ns = clock_process_ns();
    }
}

struct cost_time run_watch_took(const struct run_watch *w, uint64_t now_ns)
{
    const uint64_t ns = now_ns - w->began_ns;
    return (struct cost_time){ns, ns <= COST_LONG_NS ? COST_RAN : clock_process_ns() - w->ran_ns};
}
