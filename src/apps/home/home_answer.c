/* home_answer.c - see home_answer.h. */
#include "apps/home/home_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/home/home_values.h"

const struct home_effect *home_answer_asked(const struct home_table *t,
                                            const struct home_words *plain)
{
    for (uint32_t i = plain->n; i > 0; i--) /* the last word counts: "is the open sign on" */
        for (uint32_t k = 0; k < t->n_actions; k++) {
            const struct home_effect *e = t->action[k].effect;
            if (e && e->to && strcmp(e->to, plain->w[i - 1]) == 0)
                return e;
        }
    return NULL;
}

static const char *get_number(void *ctx, uint32_t var)
{
    (void)var; /* {n} is the only name */
    return ctx;
}

const char *home_answer_number(struct arena *a, const struct home_table *t, double number,
                               const char *unit)
{
    uint32_t i;
    const char *n = home_values_written(a, t, arena_printf(a, "%.6g", number));
    if (unit && strmap_get(&t->units, unit, strlen(unit), &i)) {
        const struct home_unit *u = &t->unit[i];
        return home_template_fill(a, number == 1.0 && u->show_one.n > 0 ? &u->show_one : &u->show,
                                  get_number, (void *)(uintptr_t)n);
    }
    return unit ? arena_printf(a, "%s %s", n, unit) : n;
}

const char *home_answer_spoken(struct arena *a, const struct home_table *t, double number,
                               const char *unit)
{
    const double size = fabs(number);
    const char *digits = size >= 100.0  ? arena_printf(a, "%.0f", number)
                         : size >= 1.0  ? arena_printf(a, "%.1f", number)
                         : size >= 1e-9 ? arena_printf(a, "%.2g", number)
                                        : "0";
    return home_answer_number(a, t, strtod(digits, NULL), unit);
}

static const char *in_words(struct arena *a, const struct home_table *t, const struct home_state *s)
{
    return s->text ? s->text : home_answer_number(a, t, s->number, s->unit);
}

const char *home_answer_state(struct arena *a, const struct home_table *t,
                              const struct home_here *here, const char *id,
                              const struct home_effect *asked)
{
    struct home_state s;
    if (!here->states || !home_states_get(here->states, a, id, asked ? asked->ability : NULL, &s))
        return NULL;
    return in_words(a, t, &s);
}
