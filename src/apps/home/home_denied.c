/* home_denied.c - see home_denied.h. */
#include "apps/home/home_denied.h"

#include "apps/home/home_answer.h"

const char *home_denied(struct arena *a, const struct home_table *t, const struct gate_verdict *v)
{
    static const enum home_part parts[] = {
        [GATE_WHY_RISK] = HOME_PART_RISK,       [GATE_WHY_NO_LIMITS] = HOME_PART_NO_LIMITS,
        [GATE_WHY_PRESENT] = HOME_PART_PRESENT, [GATE_WHY_ABOVE] = HOME_PART_ABOVE,
        [GATE_WHY_BELOW] = HOME_PART_BELOW,     [GATE_WHY_SPAN] = HOME_PART_SPAN,
        [GATE_WHY_UNIT] = HOME_PART_UNIT,       [GATE_WHY_STATE] = HOME_PART_STATE,
        [GATE_WHY_UNABLE] = HOME_PART_UNABLE,   [GATE_WHY_GONE] = HOME_PART_GONE,
        [GATE_WHY_ACTION] = HOME_PART_ACTION,   [GATE_WHY_UNCLEAR] = HOME_PART_UNCLEAR,
        [GATE_WHY_NOTHING] = HOME_PART_UNCLEAR};
    const char *name = v->thing && v->thing->names.n > 0
                           ? v->thing->names.w[0]
                           : home_table_part(a, t, HOME_PART_IT, NULL, NULL);
    const char *text = name, *state = NULL;
    if (v->answer == GATE_PASS)
        return NULL;
    if (v->why == GATE_WHY_ABOVE || v->why == GATE_WHY_BELOW || v->why == GATE_WHY_SPAN)
        text = v->answer == GATE_REFUSE ? home_answer_number(a, t, v->limit, v->unit) : "";
    if (v->why == GATE_WHY_UNIT)
        state = v->deed.unit;
    if (v->why == GATE_WHY_UNABLE)
        state = v->deed.ability;
    if (v->why == GATE_WHY_STATE) {
        text = v->deed.ability;
        state =
            v->deed.text ? v->deed.text : home_answer_number(a, t, v->deed.number, v->deed.unit);
    }
    return home_table_part(a, t, parts[v->why], text, state);
}
