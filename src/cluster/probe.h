/* probe.h - when a replica that looks too slow for any request gets one all the same.
 *
 * At once after it came back from silence, for its figures may tell of that time; then after a
 * second, and each time twice as long, while it goes on to look slow.
 *
 * Thread: plain data; the owner's.  Time is what the caller says. */
#ifndef SHOAL_CLUSTER_PROBE_H
#define SHOAL_CLUSTER_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct probe { /* all zero: due at once */
    uint64_t next_ns, wait_ns;
};

bool probe_due(const struct probe *p, uint64_t now_ns);
/* It got a request as a probe. */
void probe_sent(struct probe *p, uint64_t now_ns);

#endif
