/* pace.c - see pace.h. */
#include "cluster/pace.h"

#define MIN_GAPS 4u
#define TIMES_MEAN 8u
#define TIMES_PEAK 3u

void pace_begin(struct pace *p, uint64_t now)
{
    *p = (struct pace){.last_ns = now};
}

void pace_piece(struct pace *p, uint64_t now)
{
    const uint64_t gap = now - p->last_ns;
    p->last_ns = now;
    if (p->n++ == 0) /* to the first piece: the prompt, not the pace */
        return;
    p->mean_ns = p->n == 2 ? gap : p->mean_ns - p->mean_ns / 8 + gap / 8;
    p->peak_ns -= p->peak_ns / 16;
    if (gap > p->peak_ns)
        p->peak_ns = gap;
}

uint64_t pace_unusual_ns(const struct pace *p)
{
    const uint64_t mean = p->mean_ns * TIMES_MEAN, peak = p->peak_ns * TIMES_PEAK;
    if (p->n <= MIN_GAPS)
        return UINT64_MAX;
    return mean > peak ? mean : peak;
}
