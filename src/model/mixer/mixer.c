/* mixer.c - see mixer.h. */
#include "model/mixer/mixer.h"

size_t mixer_state_at(const struct mixer_ops *m, const struct decoder_config *c, uint32_t stage)
{
    size_t n = 0;
    for (uint32_t i = 0; i < stage && m->stages[i].run; i++)
        n += (size_t)m->stages[i].n_units(c) * m->stages[i].unit_floats(c);
    return n;
}
