/* home_values.h - numbers, durations, times, dates and sums as people say them (docs/ASK.md,
 * section 4). The words come from the table; this file parses them.
 *
 * Thread:    any.
 * Ownership: results live in the caller's arena, or in the table.
 * Failure:   sticky in the arena: afterwards strings are ""; check arena->rc once. */
#ifndef SHOAL_APPS_HOME_HOME_VALUES_H
#define SHOAL_APPS_HOME_HOME_VALUES_H

#include <stdbool.h>

#include "base/arena.h"
#include "apps/home/table/home_table.h"

struct home_value {
    const char *show; /* as the reply says it */
    const char *text; /* the value as text; NULL: it is a number */
    double number;
    const char *unit; /* NULL: none */
    bool understood;  /* durations, times: number or text is the normal form */
    bool either;      /* times: morning or evening was not said */
    bool wrong;       /* it looks like one, but is impossible: 25:00, 30 February, -5 minutes */
};

/* A number as the language writes it: "21,5". */
const char *home_values_written(struct arena *a, const struct home_table *t, const char *number);
/* Number words become digits: "twenty one degrees" is "21 degrees". */
const char *home_values_digits(struct arena *a, const struct home_table *t, const char *text);
/* "19 degrees", "forty percent", "half" if amounts; bare: the unit of a bare number, and of one in
 * "degrees", if it has such; NULL: none. */
struct home_value home_values_amount(struct arena *a, const struct home_table *t, const char *text,
                                     bool amounts, const struct home_unit *bare);
/* number: seconds */
struct home_value home_values_duration(struct arena *a, const struct home_table *t,
                                       const char *text);
/* text: "HH:MM" */
struct home_value home_values_clock(struct arena *a, const struct home_table *t, const char *text);
/* text: the date in words, names as the table writes them */
struct home_value home_values_date(struct arena *a, const struct home_table *t, const char *text);
/* "7 times 8"; false: not understood.  show has at most two decimals. */
bool home_values_calculate(struct arena *a, const struct home_table *t, const char *expr,
                           const char **show, double *result);

#endif
