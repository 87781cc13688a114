/* run_watch.c - see run_watch.h. */
#include "engine/run_watch.h"

#include "base/clock.h"

#define FRESH_NS 1000000u
#define QUEUE_NS 10000000u /* a few slices of the kernel's; the reading costs microseconds */

void run_watch_begin(struct run_watch *w, uint64_t now_ns)
{
    w->began_ns = now_ns;
    if (w->read_ns == 0 || now_ns - w->read_ns > FRESH_NS) {
        w->read_ns = now_ns;
        w->ran_ns = clock_process_ns();
    }
    if (w->queue_ns == 0) {
        w->queue_ns = now_ns;
        w->queue = run_queue_read();
    }
}

/* 0: a reading failed. */
static double grown(uint64_t before, uint64_t now)
{
    return now > before ? (double)(now - before) : 0.0;
}

static void read_queue(struct run_watch *w, uint64_t now_ns)
{
    const struct run_queue_time t = run_queue_read();
    w->ran = w->ran / 2.0 + grown(w->queue.ran_ns, t.ran_ns);
    w->waited = w->waited / 2.0 + grown(w->queue.waited_ns, t.waited_ns);
    w->queue = t;
    w->queue_ns = now_ns;
}

struct cost_time run_watch_took(struct run_watch *w, uint64_t now_ns)
{
    const uint64_t ns = now_ns - w->began_ns;
    if (now_ns - w->queue_ns > QUEUE_NS)
        read_queue(w, now_ns);
    const double all = w->ran + w->waited;
    return (struct cost_time){ns, ns <= COST_LONG_NS ? COST_RAN : clock_process_ns() - w->ran_ns,
                              all > 0.0 ? w->waited / all : 0.0};
}
