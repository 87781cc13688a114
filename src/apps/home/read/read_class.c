/* read_class.c - see read_class.h. */
#include "apps/home/read/read_class.h"

#include <string.h>

#include "apps/home/read/read_cover.h"
#include "apps/home/read/read_switch.h"

#define MAX_SAID 8u /* classes that a text names */

struct classes {
    const struct home_class *c[MAX_SAID];
    uint32_t n;
};

static bool overlap(const struct home_list *a, const struct home_list *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (home_table_lists(b, a->w[i]))
            return true;
    return false;
}

/* May one be called by a word of the other? */
static bool alike(const struct home_class *a, const struct home_class *b)
{
    return a == b || a->but == b || b->but == a || overlap(&a->kinds, &b->kinds) ||
           overlap(&a->means, &b->kinds) || overlap(&b->means, &a->kinds) ||
           overlap(&a->means, &b->means);
}

static void add(struct classes *out, const struct home_class *c)
{
    for (uint32_t i = 0; i < out->n; i++)
        if (out->c[i] == c)
            return;
    if (out->n < MAX_SAID)
        out->c[out->n++] = c;
}

/* The words of the longest phrase of a class at word i, or 1 for the end of a joined word. */
static uint32_t named_at(const struct read_work *r, const struct home_class *c,
                         const struct home_words *plain, uint32_t i)
{
    uint32_t n = home_table_phrase(&c->words, plain, i);
    for (uint32_t k = 0; n == 0 && k < c->words.n; k++)
        n = home_table_ends_in(r->t, plain->w[i], c->words.w[k]);
    return n;
}

/* The classes that words outside of copied texts say, also as parts of names or not; the longest
 * phrase counts. */
static struct classes said(const struct read_work *r, const struct read_plan_act *act,
                           bool in_names)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    struct classes out = {.n = 0};
    for (uint32_t i = 0, n; i < plain.n; i += n) {
        const struct home_class *best = NULL;
        n = 1;
        if (read_cover_explains(act, i) ||
            (!in_names && read_cover_is_name(r->a, r->lines, plain.w[i])))
            continue;
        for (uint32_t k = 0, most = 0; k < r->t->plans.n_classes; k++) {
            const struct home_class *c = &r->t->plans.classes[k];
            const uint32_t len = named_at(r, c, &plain, i);
            if (len <= most)
                continue;
            best = c;
            n = most = len;
        }
        if (best && best->kinds.n > 0)
            add(&out, best);
    }
    return out;
}

static bool any_alike(const struct classes *l, const struct home_class *c)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (alike(l->c[i], c))
            return true;
    return false;
}

static bool things_fit(const struct read_work *r, const struct classes *l,
                       const struct read_plan_act *act)
{
    for (uint32_t i = 0; i < act->things.n; i++) {
        const uint32_t at = act->things.at[i];
        if (at < r->lines->n_things && !r->lines->things[at].exact &&
            !(r->lines->things[at].class && any_alike(l, r->lines->things[at].class)))
            return false;
    }
    return true;
}

/* The rooms that the text names. */
static struct read_plan_lines rooms_said(const struct read_work *r)
{
    struct home_words plain = home_words_plain_all(r->a, &r->lines->words);
    struct read_plan_lines out = {.n = 0};
    for (uint32_t i = 0; i < r->lines->n_areas; i++)
        for (uint32_t k = 0; k < plain.n; k++)
            if (home_table_phrase(&r->lines->areas[i]->names, &plain, k) > 0) {
                out.at[out.n++] = (uint8_t)i;
                break;
            }
    return out;
}

/* "On" and "off" were guessed too: what opens has none of them. */
static void open_or_close(const struct read_work *r, struct read_plan_act *act,
                          const struct home_class *c)
{
    const struct home_kind *k = home_table_kind(r->t, c->kinds.w[0]);
    if (!k || home_table_lists(&k->abilities, "power") || !home_table_lists(&k->abilities, "open"))
        return;
    if (read_is(act->verb, "on") || read_is(act->verb, "up"))
        act->verb = "open";
    else if (read_is(act->verb, "off") || read_is(act->verb, "down"))
        act->verb = "close";
}

enum read_class read_class_check(struct read_work *r, struct read_plan_act *act, bool alone)
{
    const struct home_class *c = act->class ? home_table_class(r->t, act->class) : NULL;
    if (!alone || !read_plan_acts(act) || (!c && act->things.n == 0) || (c && c->kinds.n == 0))
        return READ_CLASS_FITS;
    const struct classes all = said(r, act, true), l = said(r, act, false);
    if (l.n == 0 || (c ? any_alike(&all, c) : things_fit(r, &all, act)))
        return READ_CLASS_FITS;
    if (l.n > 1 || act->value.to > 0)
        return READ_CLASS_WRONG;
    if (!c && act->areas.n == 0)
        act->areas = rooms_said(r);
    act->things.n = 0;
    act->class = l.c[0]->name;
    act->quantity = NULL; /* of the class that was guessed */
    act->one = false;
    open_or_close(r, act, l.c[0]);
    return READ_CLASS_MENDED;
}

bool read_class_is_beside(struct read_work *r, const struct read_plan_act *act)
{
    const struct home_class *c = act->class ? home_table_class(r->t, act->class) : NULL;
    if (!c || c->kinds.n == 0 || act->things.n == 0)
        return false;
    for (uint32_t i = 0; i < act->things.n; i++) {
        const uint32_t at = act->things.at[i];
        if (at >= r->lines->n_things || !r->lines->things[at].class ||
            alike(r->lines->things[at].class, c))
            return false;
    }
    const struct classes l = said(r, act, true);
    return any_alike(&l, c);
}
