/* silence.c - see silence.h. */
#include "cluster/silence.h"

void silence_heard(struct silence *s, uint64_t now_ns)
{
    *s = (struct silence){.from_ns = now_ns};
}

uint64_t silence_look(struct silence *s, uint64_t now_ns)
{
    const uint64_t passed = now_ns - s->from_ns;
    s->from_ns = now_ns;
    s->silent_ns += passed < SILENCE_MOST_NS ? passed : SILENCE_MOST_NS;
    return s->silent_ns;
}
