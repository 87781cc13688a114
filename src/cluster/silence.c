/* silence.c - see silence.h. */
#include "cluster/silence.h"

#define FORGET 16u /* the longest silence of late fades by this part with every beat */

void silence_lost(struct silence *s)
{
    *s = (struct silence){0};
}

static void look(struct silence *s, uint64_t now_ns)
{
    const uint64_t passed = now_ns - s->from_ns;
    s->from_ns = now_ns;
    s->silent_ns += passed < SILENCE_MOST_NS ? passed : SILENCE_MOST_NS;
}

void silence_heard(struct silence *s, uint64_t now_ns)
{
    if (s->from_ns > 0)
        look(s, now_ns);
    s->from_ns = now_ns;
    s->peak_ns -= s->peak_ns / FORGET;
    if (s->silent_ns > s->peak_ns)
        s->peak_ns = s->silent_ns;
    s->silent_ns = 0;
}

bool silence_is_long(struct silence *s, uint64_t now_ns, uint64_t usual_ns)
{
    const uint64_t most = SILENCE_LIMIT * usual_ns, late = SILENCE_TIMES * s->peak_ns;
    look(s, now_ns);
    return s->silent_ns > (late < usual_ns ? usual_ns : late < most ? late : most);
}
