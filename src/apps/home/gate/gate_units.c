/* gate_units.c - see gate_units.h. */
#include "apps/home/gate/gate_units.h"

#include <string.h>

bool gate_units_fit(const struct home_table *t, const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    const struct home_unit *x = home_table_unit(t, a), *y = home_table_unit(t, b);
    return x && y ? strcmp(x->of, y->of) == 0 : strcmp(a, b) == 0;
}

bool gate_units_convert(const struct home_table *t, const char *from, const char *to, bool change,
                        double *number)
{
    if (!gate_units_fit(t, from, to))
        return false;
    const struct home_unit *x = from ? home_table_unit(t, from) : NULL,
                           *y = to ? home_table_unit(t, to) : NULL;
    if (x == y) /* the same, or both unknown to the table */
        return true;
    double base = *number * x->factor + (change ? 0.0 : x->offset);
    *number = (base - (change ? 0.0 : y->offset)) / y->factor;
    return true;
}
