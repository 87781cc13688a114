/* probe.c - see probe.h. */
#include "cluster/probe.h"

#define MIN_WAIT_NS UINT64_C(1000000000)
#define MAX_WAIT_NS (64 * MIN_WAIT_NS)

bool probe_due(const struct probe *p, uint64_t now_ns)
{
    return now_ns >= p->next_ns;
}

void probe_sent(struct probe *p, uint64_t now_ns)
{
    p->wait_ns = p->wait_ns == 0 ? MIN_WAIT_NS : p->wait_ns * 2;
    if (p->wait_ns > MAX_WAIT_NS)
        p->wait_ns = MAX_WAIT_NS;
    p->next_ns = now_ns + p->wait_ns;
}
