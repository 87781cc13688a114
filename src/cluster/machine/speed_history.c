/* speed_history.c - see speed_history.h. */
#include "cluster/machine/speed_history.h"

#include <math.h>
#include <stdlib.h>

static uint32_t held(const struct speed_history *h)
{
    return h->n < SPEED_HISTORY_N ? h->n : SPEED_HISTORY_N;
}

void speed_history_add(struct speed_history *h, double value)
{
    if (isfinite(value) && value > 0)
        h->values[h->n++ % SPEED_HISTORY_N] = value;
}

double speed_history_best(const struct speed_history *h)
{
    double best = 0;
    for (uint32_t i = 0; i < held(h); i++)
        best = h->values[i] > best ? h->values[i] : best;
    return best;
}

double speed_history_spread(const struct speed_history *h)
{
    const double best = speed_history_best(h);
    double worst = best;
    for (uint32_t i = 0; i < held(h); i++)
        worst = h->values[i] < worst ? h->values[i] : worst;
    return best > 0 ? (best - worst) / best : 0;
}

void speed_history_write(const struct speed_history *h, struct buf *out)
{
    for (uint32_t i = h->n - held(h); i < h->n; i++)
        buf_printf(out, " %.17g", h->values[i % SPEED_HISTORY_N]);
}

void speed_history_read(struct speed_history *h, const char *text)
{
    char *end;
    for (uint32_t i = 0; i < SPEED_HISTORY_N; i++, text = end) {
        double value = strtod(text, &end);
        if (end == text)
            return;
        speed_history_add(h, value);
    }
}
