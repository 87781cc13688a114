/* read_cover.c - see read_cover.h. */
#include "apps/home/read/read_cover.h"

#include <string.h>

#include "apps/home/home_values.h"
#include "apps/home/site/home_near.h"

static bool covers(struct read_plan_span s, uint32_t i)
{
    return i >= s.from && i < s.to;
}

/* Is word i part of a text that may be anything: a title, an item, a message? */
static bool is_free(const struct read_plan_act *x, uint32_t i)
{
    const struct read_plan_span spans[] = {x->what, x->list, x->name, x->unknown, x->elsewhere};
    for (uint32_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++)
        if (covers(spans[k], i))
            return true;
    for (uint32_t k = 0; k < x->n_items; k++)
        if (covers(x->items[k], i))
            return true;
    return false;
}

bool read_cover_explains(const struct read_plan_act *x, uint32_t i)
{
    const struct read_plan_span spans[] = {x->value, x->at,    x->in,       x->lasts,
                                           x->until, x->every, x->duration, x->also_at};
    for (uint32_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++)
        if (covers(spans[k], i))
            return true;
    return is_free(x, i);
}

static bool is_in_names(struct arena *a, const struct home_thing *x, const char *word)
{
    for (uint32_t i = 0; i < x->names.n; i++) {
        struct home_words w = home_words_split(a, x->names.w[i]);
        for (uint32_t k = 0; k < w.n; k++)
            if (strcmp(w.w[k], word) == 0)
                return true;
    }
    return false;
}

bool read_cover_is_name(struct arena *a, const struct read_lines *lines, const char *word)
{
    for (uint32_t i = 0; i < lines->n_things; i++)
        if (is_in_names(a, lines->things[i].thing, word))
            return true;
    for (uint32_t i = 0; i < lines->n_areas; i++)
        if (is_in_names(a, lines->areas[i], word))
            return true;
    return false;
}

/* Is there a number that is no part of the plan? "Oven 180 degrees for 20 minutes" must not lose
 * its minutes: whoever hears less than what was said asks. *out: where it is. */
static bool leaves_number(struct arena *a, const struct read_lines *lines,
                          const struct read_plan *plan, uint32_t *out)
{
    struct home_words plain = home_words_plain_all(a, &lines->words);
    for (uint32_t i = 0; i < plain.n; i++) {
        bool known = plain.w[i][0] < '0' || plain.w[i][0] > '9';
        for (uint32_t k = 0; !known && k < plan->n; k++)
            known = read_cover_explains(&plan->acts[k], i);
        known = known || read_cover_is_name(a, lines, plain.w[i]);
        *out = i;
        if (!known)
            return true;
    }
    return false;
}

/* The number with its unit: "20 minutes". */
static const char *left_number(struct arena *a, const struct home_table *t,
                               const struct read_lines *lines, const struct read_plan *plan)
{
    uint32_t i;
    if (!leaves_number(a, lines, plan, &i))
        return NULL;
    struct home_words plain = home_words_plain_all(a, &lines->words);
    const char *two = home_words_join(a, &plain, i, i + 1 < plain.n ? i + 2 : i + 1);
    const char *unit = home_values_amount(a, t, two, false, NULL).unit;
    return home_values_duration(a, t, two).understood || (unit && home_table_unit(t, unit))
               ? two
               : plain.w[i];
}

static bool is_said(const struct home_words *plain, const struct home_thing *x)
{
    for (uint32_t i = 0; i < plain->n; i++)
        if (home_table_phrase(&x->names, plain, i) > 0)
            return true;
    return false;
}

static bool has_line(const struct read_plan_lines *l, uint32_t at)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i] == at)
            return true;
    return false;
}

/* Does a whole class of things get something although the text also names a room that the plan does
 * not? "All the lights off, but leave the kitchen on." */
static const char *left_room(struct arena *a, const struct read_lines *lines,
                             const struct read_plan *plan)
{
    struct home_words plain = home_words_plain_all(a, &lines->words);
    for (uint32_t i = 0; i < lines->n_areas; i++) {
        bool known = !is_said(&plain, lines->areas[i]), wide = false;
        for (uint32_t k = 0; k < plan->n; k++) {
            const struct read_plan_act *x = &plan->acts[k];
            wide = wide || (x->class && x->areas.n == 0 && read_plan_acts(x));
            known = known || has_line(&x->areas, i) || has_line(&x->except_areas, i);
            for (uint32_t n = 0; !known && n < x->things.n + x->except.n; n++) {
                const uint32_t at =
                    n < x->things.n ? x->things.at[n] : x->except.at[n - x->things.n];
                known = at < lines->n_things &&
                        (lines->things[at].thing->room == lines->areas[i] ||
                         is_in_names(a, lines->things[at].thing, lines->areas[i]->names.w[0]));
            }
        }
        if (!known && wide)
            return lines->areas[i]->names.w[0];
    }
    return NULL;
}

/* ---- things ---------------------------------------------------------------------------------- */

/* Does the table or a line of the home know the word, whatever it is for? */
static bool is_known(struct arena *a, const struct home_table *t, const struct read_lines *lines,
                     const char *word)
{
    const struct home_list *lists[] = {&t->articles, &t->join,           &t->polite, &t->front,
                                       &t->idle,     &t->stop.questions, &t->stop.it};
    uint32_t at;
    for (uint32_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (home_table_lists(lists[i], word))
            return true;
    for (uint32_t i = 0; i < t->plans.n_classes; i++)
        if (home_table_lists(&t->plans.classes[i].words, word))
            return true;
    for (uint32_t i = 0; i < t->plans.n_quantities; i++)
        if (home_table_lists(&t->plans.quantities[i].words, word))
            return true;
    return read_cover_is_name(a, lines, word) ||
           strmap_get(&t->stop.known, word, strlen(word), &at);
}

static bool ends_here(const struct read_lines *lines, uint32_t i)
{
    const char *w = lines->words.w[i];
    return i + 1 == lines->words.n || strchr(",.;!?", w[strlen(w) - 1]) != NULL;
}

/* "... and the flamingo": one or two words behind an article that end what is said, and that
 * neither the plan nor the table nor the home has. Anything longer may be a reason. */
static const char *left_thing(struct arena *a, const struct home_table *t,
                              const struct read_lines *lines, const struct read_plan *plan)
{
    struct home_words plain = home_words_plain_all(a, &lines->words);
    for (uint32_t i = 1; i + 2 < plain.n; i++) {
        uint32_t from = i + 2, to = from;
        bool ended = false;
        if (!home_table_lists(&t->join, plain.w[i]) ||
            !home_table_lists(&t->articles, plain.w[i + 1]))
            continue;
        for (; to < plain.n && to < from + 2 && !ended; to++) {
            bool known = is_known(a, t, lines, plain.w[to]);
            for (uint32_t k = 0; !known && k < plan->n; k++)
                known = read_cover_explains(&plan->acts[k], to);
            if (known)
                break;
            ended = ends_here(lines, to) || home_table_lists(&t->join, plain.w[to + 1]);
        }
        if (ended)
            return home_words_join(a, &plain, i + 1, to);
    }
    return NULL;
}

const char *read_cover_left(struct arena *a, const struct home_table *t,
                            const struct read_lines *lines, const struct read_plan *plan)
{
    const char *left = left_number(a, t, lines, plan);
    left = left ? left : left_room(a, lines, plan);
    return left ? left : left_thing(a, t, lines, plan);
}

bool read_cover_all(struct arena *a, const struct read_lines *lines, const struct read_plan *plan)
{
    uint32_t at;
    return !leaves_number(a, lines, plan, &at) && !left_room(a, lines, plan);
}

float read_cover_strange(struct arena *a, const struct home_table *t, const struct home_file *f,
                         const struct read_lines *lines, const struct read_plan *plan)
{
    struct home_words plain = home_words_plain_all(a, &lines->words);
    uint32_t strange = 0, others = 0;
    for (uint32_t i = 0; i < plain.n; i++) {
        bool free = false;
        for (uint32_t k = 0; !free && k < plan->n; k++)
            free = is_free(&plan->acts[k], i);
        others += !free;
        const bool near =
            plain.n > 1 && (home_file_near_word(f, plain.w[i]) || home_table_knows(t, plain.w[i]));
        uint32_t at; /* one word alone is not taken for another */
        const bool exact = home_file_has_word(f, plain.w[i]) ||
                           strmap_get(&t->vocabulary, plain.w[i], strlen(plain.w[i]), &at);
        strange += !free && !exact && !near;
    }
    return others == 0 ? 1.0f : (float)strange / (float)others;
}

/* Is a word of the text one of the phrase's, or a slip of it? */
static bool hints_at(struct arena *a, const struct home_words *plain, const char *phrase)
{
    struct home_words w = home_words_split(a, phrase);
    for (uint32_t i = 0; i < w.n; i++)
        for (uint32_t k = 0; k < plain->n; k++)
            if (*w.w[i] > '9' && home_near(plain->w[k], w.w[i]) != HOME_NEAR_FAR)
                return true;
    return false;
}

static bool hints_at_any(struct arena *a, const struct home_words *plain, const struct home_list *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (hints_at(a, plain, l->w[i]))
            return true;
    return false;
}

bool read_cover_hints(struct arena *a, const struct home_table *t, const struct read_lines *lines,
                      const struct read_plan_act *x)
{
    const struct home_words plain = home_words_plain_all(a, &lines->words);
    const struct home_class *c = x->class ? home_table_class(t, x->class) : NULL;
    const struct home_plan_quantity *q =
        x->quantity ? home_table_plan_quantity(t, x->quantity) : NULL;
    bool said = x->it || (x->things.n == 0 && !(c && c->kinds.n > 0));
    for (uint32_t i = 0; !said && i < x->things.n; i++)
        said = x->things.at[i] < lines->n_things &&
               (lines->things[x->things.at[i]].said ||
                hints_at_any(a, &plain, &lines->things[x->things.at[i]].thing->names));
    for (uint32_t i = 0; !said && c && i < plain.n; i++)
        for (uint32_t k = 0; !said && k < c->words.n; k++)
            said = home_table_ends_in(t, plain.w[i], c->words.w[k]);
    if (!said && q && x->value.to > 0) {
        const char *value = home_words_join(a, &plain, x->value.from,
                                            x->value.to < plain.n ? x->value.to : plain.n);
        said = home_values_amount(a, t, value, true, NULL).unit != NULL;
    }
    const struct home_quantity *more = q ? home_table_quantity(t, q->name) : NULL; /* "brighter" */
    return said || (c && hints_at_any(a, &plain, &c->words)) ||
           (q && hints_at_any(a, &plain, &q->words)) ||
           (more && hints_at_any(a, &plain, &more->words));
}

bool read_cover_asks(struct arena *a, const struct home_table *t, const struct read_lines *lines)
{
    struct home_words plain = home_words_plain_all(a, &lines->words);
    const char *last = lines->words.n > 0 ? lines->words.w[lines->words.n - 1] : "";
    for (uint32_t i = 0; i < plain.n; i++)
        if (home_table_phrase(&t->later.past, &plain, i) > 0)
            return true;
    for (uint32_t i = 0; i < plain.n; i++)
        if (home_table_lists(&t->polite, plain.w[i]))
            return false;
    return *last && last[strlen(last) - 1] == '?';
}
