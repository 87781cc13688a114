/* gate_units.h - converts numbers between the units of a table ("units" of models/home.json).
 *
 * Thread:    any; no state. */
#ifndef SHOAL_APPS_HOME_GATE_GATE_UNITS_H
#define SHOAL_APPS_HOME_GATE_GATE_UNITS_H

#include "apps/home/table/home_table.h"

/* Do both measure the same quantity?  A unit that the table does not know is only itself. NULL is
 * no unit, which fits none but NULL. */
bool gate_units_fit(const struct home_table *t, const char *a, const char *b);
/* Converts *number; change: it is a difference, 9 degrees Fahrenheit are 5 degrees Celsius. False:
 * the units do not fit, and *number stays. */
bool gate_units_convert(const struct home_table *t, const char *from, const char *to, bool change,
                        double *number);

#endif
