/* load_knee.c - see load_knee.h. */
#include "load/load_knee.h"

#include <math.h>

#define MIN_RATE 0.01 /* below that a search takes hours */

void load_knee_init(struct load_knee *k, double first, uint32_t n_steps)
{
    *k = (struct load_knee){.rate = first, .n_left = n_steps};
}

bool load_knee_next(struct load_knee *k, bool held)
{
    if (held)
        k->held = k->rate;
    else
        k->lost = k->rate;
    if (k->n_left > 0)
        k->n_left--;
    if (k->lost <= 0.0)
        k->rate = k->held * 2.0;
    else if (k->held <= 0.0)
        k->rate = k->lost / 2.0;
    else if (k->lost / k->held > LOAD_KNEE_CLOSE)
        k->rate = sqrt(k->held * k->lost);
    else
        return false;
    return k->n_left > 0 && k->rate >= MIN_RATE;
}
