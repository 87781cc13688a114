/* read_together.c - see read_together.h. */
#include "apps/home/read/read_together.h"

#include <string.h>

#include "apps/home/read/read_cover.h"

#define NONE UINT32_MAX

struct row { /* lines whose names stand side by side */
    struct read_plan_lines lines;
    uint32_t end; /* the word behind them */
};

static bool has(const struct read_plan_lines *l, uint8_t line)
{
    return memchr(l->at, line, l->n) != NULL;
}

/* The line whose name begins at word i, and how many words it has; NONE: there is none, or several
 * have that name. */
static uint32_t named_at(const struct read_lines *lines, const struct home_words *plain, uint32_t i,
                         uint32_t *n)
{
    uint32_t line = NONE;
    *n = 0;
    for (uint32_t k = 0; k < lines->n_things; k++) {
        const uint32_t words = home_table_phrase(&lines->things[k].thing->names, plain, i);
        if (words == 0 || words < *n)
            continue;
        line = words == *n ? NONE : k;
        *n = words;
    }
    return line;
}

/* Words that stand between the names of a row: "and the"; a comma may do without "and". */
static bool is_between(const struct home_table *t, const struct read_lines *lines,
                       const struct home_words *plain, uint32_t from, uint32_t to)
{
    const char *last = lines->words.w[from - 1];
    bool joined = last[strlen(last) - 1] == ',';
    for (uint32_t i = from; i < to; i++) {
        const bool joins = home_table_lists(&t->join, plain->w[i]);
        if (!joins && !home_table_lists(&t->articles, plain->w[i]))
            return false;
        joined = joined || joins;
    }
    return joined;
}

/* The next row of two names or more; false: there is none. */
static bool next_row(const struct home_table *t, const struct read_lines *lines,
                     const struct home_words *plain, uint32_t *at, struct row *out)
{
    uint32_t n;
    *out = (struct row){.end = 0};
    for (; *at < plain->n; (*at)++) {
        const uint32_t line = named_at(lines, plain, *at, &n);
        if (n == 0)
            continue;
        if (out->lines.n > 0 && !is_between(t, lines, plain, out->end, *at)) {
            if (out->lines.n > 1)
                return true;
            out->lines.n = 0;
        }
        if (line == NONE || out->lines.n == READ_PLAN_MAX_THINGS)
            out->lines.n = 0;
        else if (!has(&out->lines, (uint8_t)line))
            out->lines.at[out->lines.n++] = (uint8_t)line;
        *at += n - 1;
        out->end = *at + 1;
    }
    return out->lines.n > 1;
}

static bool meets(const struct read_plan_lines *a, const struct read_plan_lines *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (has(b, a->at[i]))
            return true;
    return false;
}

static bool is_plain(const struct read_plan_act *x)
{
    return read_plan_acts(x) && !x->class && !x->one && x->except.n == 0 && x->unknown.to == 0 &&
           x->amount == READ_PLAN_NO_AMOUNT;
}

/* Does nothing but politeness follow? */
static bool ends(const struct home_table *t, const struct home_words *plain, uint32_t from)
{
    while (from < plain->n && home_table_lists(&t->polite, plain->w[from]))
        from++;
    return from == plain->n;
}

/* The first act on one of the row, if all such acts do the same; NULL: leave it alone. */
static struct read_plan_act *act_on(struct read_plan *plan, const struct row *row)
{
    struct read_plan_act *first = NULL;
    for (uint32_t i = 0; i < plan->n; i++) {
        struct read_plan_act *x = &plan->acts[i];
        if (meets(&x->except, &row->lines) || read_cover_explains(x, row->end - 1))
            return NULL; /* left as they are, or part of a message */
        if (!meets(&x->things, &row->lines))
            continue;
        if (!is_plain(x) || (first && x->verb != first->verb))
            return NULL;
        first = first ? first : x;
    }
    return first;
}

/* Gives the whole row to the act, and drops others that are only about it. */
static void give(struct read_plan *plan, struct read_plan_act *act, const struct row *row)
{
    const struct read_plan_lines before = act->things;
    uint32_t kept = 0;
    act->things = row->lines; /* in the order of the text */
    for (uint32_t i = 0; i < before.n && act->things.n < READ_PLAN_MAX_THINGS; i++)
        if (!has(&row->lines, before.at[i]))
            act->things.at[act->things.n++] = before.at[i];
    for (uint32_t i = 0; i < plan->n; i++) {
        struct read_plan_act *x = &plan->acts[i];
        if (x == act || !meets(&x->things, &row->lines))
            plan->acts[kept++] = *x;
    }
    plan->n = kept;
}

/* What the reader does not know, but the home does: "motor 3" is a whole name. */
static void recognize(const struct read_lines *lines, const struct home_words *plain,
                      struct read_plan_act *x)
{
    uint32_t n, line;
    if (x->unknown.to == 0 || x->things.n > 0 || x->unknown.to > plain->n)
        return;
    line = named_at(lines, plain, x->unknown.from, &n);
    if (line == NONE || x->unknown.from + n != x->unknown.to)
        return;
    x->unknown = (struct read_plan_span){0, 0};
    x->things.at[x->things.n++] = (uint8_t)line;
}

void read_together(struct arena *a, const struct home_table *t, const struct read_lines *lines,
                   struct read_plan *plan)
{
    const struct home_words plain = home_words_plain_all(a, &lines->words);
    struct row row;
    for (uint32_t i = 0; i < plan->n; i++)
        recognize(lines, &plain, &plan->acts[i]);
    for (uint32_t at = 0; next_row(t, lines, &plain, &at, &row);) {
        struct read_plan_act *act = act_on(plan, &row);
        if (act && (ends(t, &plain, row.end) || has(&act->things, row.lines.at[row.lines.n - 1])))
            give(plan, act, &row);
    }
}
