/* home_denied.c - see home_denied.h. */
#include "apps/home/home_denied.h"

#include "apps/home/home_answer.h"

static const char *name_of(const struct gate_verdict *v)
{
    return v->thing && v->thing->names.n > 0 ? v->thing->names.w[0] : "it";
}

const char *home_denied(struct arena *a, const struct home_table *t, const struct gate_verdict *v)
{
    const char *limit = v->answer == GATE_REFUSE ? home_answer_number(a, t, v->limit, v->unit) : "";
    if (v->answer == GATE_PASS)
        return NULL;
    switch (v->why) {
    case GATE_WHY_RISK:
        return "it is dangerous, and nobody confirmed it";
    case GATE_WHY_NO_LIMITS:
        return "no limits are known for it, and nobody confirmed it";
    case GATE_WHY_PRESENT:
        return "its present value is not known, and nobody confirmed it";
    case GATE_WHY_ABOVE:
        return arena_printf(a, "the maximum is %s", limit);
    case GATE_WHY_BELOW:
        return arena_printf(a, "the minimum is %s", limit);
    case GATE_WHY_SPAN:
        return arena_printf(a, "its whole range is only %s", limit);
    case GATE_WHY_UNIT:
        return arena_printf(a, "%s cannot be set in \"%s\"", name_of(v), v->deed.unit);
    case GATE_WHY_STATE:
        return arena_printf(a, "its %s cannot be \"%s\"", v->deed.ability,
                            v->deed.text ? v->deed.text
                                         : home_answer_number(a, t, v->deed.number, v->deed.unit));
    case GATE_WHY_UNABLE:
        return arena_printf(a, "%s has no %s", name_of(v), v->deed.ability);
    case GATE_WHY_GONE:
        return "it is not in the home any more";
    case GATE_WHY_ACTION:
        return "this action is not known any more";
    case GATE_WHY_UNCLEAR:
    case GATE_WHY_NOTHING:
        break;
    }
    return "it is not clear what to set";
}
