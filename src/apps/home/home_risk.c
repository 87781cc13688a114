/* home_risk.c - see home_risk.h. */
#include "apps/home/home_risk.h"

#include <string.h>

#include "apps/home/table/home_words.h"

/* "doors" is "door". */
static const char *singular(struct arena *a, const char *word)
{
    size_t n = strlen(word);
    return n > 3 && word[n - 1] == 's' && word[n - 2] != 's'
               ? arena_printf(a, "%.*s", (int)n - 1, word)
               : word;
}

static bool holds(struct arena *a, const struct home_condition *c, const struct home_action *action,
                  const char *thing)
{
    const struct home_action *const *p = c->actions;
    while (*p && *p != action)
        p++;
    if (!*p || c->words.n == 0)
        return *p != NULL;
    struct home_words w = home_words_split(a, thing);
    for (uint32_t i = 0; i < w.n; i++)
        w.w[i] = singular(a, home_words_plain(a, w.w[i]));
    for (uint32_t i = 0; i < w.n; i++)
        for (uint32_t k = 0; k < c->words.n; k++)
            if (home_words_phrase(&w, i, c->words.w[k]) > 0)
                return true;
    return false;
}

enum home_risk home_risk_of(struct arena *a, const struct home_table *t,
                            const struct home_action *action, const char *thing)
{
    for (int k = HOME_RISK_COUNT - 1; k > HOME_RISK_HARMLESS; k--)
        for (uint32_t i = 0; i < t->risk[k].n_rules; i++)
            if (holds(a, &t->risk[k].rules[i], action, thing))
                return (enum home_risk)k;
    return HOME_RISK_HARMLESS;
}

const struct home_limit *home_risk_limit(struct arena *a, const struct home_table *t,
                                         const struct home_action *action, const char *thing,
                                         const char *unit, double number)
{
    for (uint32_t i = 0; i < t->n_limits; i++) {
        const struct home_limit *l = &t->limits[i];
        bool same =
            unit && l->unit ? strcmp(home_words_lower(a, unit), l->unit) == 0 : !unit == !l->unit;
        if (same && holds(a, &l->when, action, thing))
            return number < l->min || number > l->max ? l : NULL;
    }
    return NULL;
}
