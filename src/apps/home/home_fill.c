/* home_fill.c - see home_fill.h. */
#include "apps/home/home_fill.h"

#include <assert.h>

static bool same_place(struct home_place a, struct home_place b)
{
    return a.when == b.when && (a.when || a.slot == b.slot);
}

struct home_place home_fill_own(const struct home_slot *s)
{
    return (struct home_place){s, NULL};
}

const char *home_fill_get(const struct home_fill *s, struct home_place p)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (same_place(s->s[i].place, p))
            return s->s[i].text;
    return NULL;
}

/* The slot is free: there are no more places than an action has slots and rows of "when". */
void home_fill_set(struct home_fill *s, struct home_place p, const char *text)
{
    assert(s->n < HOME_FILL_MAX_PLACES);
    s->s[s->n].place = p;
    s->s[s->n++].text = text;
    if (p.slot->until) {
        s->items[0] = text;
        s->n_items = 1;
    }
}

bool home_fill_has_slot(const struct home_action *x, const struct home_slot *s)
{
    for (uint32_t i = 0; i < x->n_slots; i++)
        if (x->slots[i] == s)
            return true;
    return false;
}

static bool default_holds(const struct home_default *d, const struct home_fill *s)
{
    if (home_fill_get(s, home_fill_own(d->slot)))
        return false;
    for (const struct home_slot **p = d->with; *p; p++)
        if (!home_fill_get(s, home_fill_own(*p)))
            return false;
    for (const struct home_slot **p = d->without; *p; p++)
        if (home_fill_get(s, home_fill_own(*p)))
            return false;
    return true;
}

void home_fill_defaults(const struct home_action *x, struct home_fill *s)
{
    for (const struct home_default **p = x->defaults; *p; p++)
        if (default_holds(*p, s))
            home_fill_set(s, home_fill_own((*p)->slot), (*p)->value);
}
