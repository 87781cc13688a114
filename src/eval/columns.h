/* columns.h - which columns of a table a scorer reads.
 *
 * Thread:    belongs to its caller.
 * Ownership: columns_fini frees.
 * Failure:   SHOAL_EINVAL for what --columns asks and is not there, SHOAL_EFORMAT for a file that
 *            does not fit the model. */
#ifndef SHOAL_EVAL_COLUMNS_H
#define SHOAL_EVAL_COLUMNS_H

#include "base/err.h"
#include "eval/table.h"
#include "shoal/shoal.h"

struct columns {
    uint32_t *at; /* columns of the table, in the model's order */
    uint32_t n;
    char left_out[256]; /* names of others, for a note; "" when nothing was left out */
};

/* list: "a,b,c", or NULL: by the names of the model's inputs; else all columns of numbers, for a
 * model of any number of channels without times and labels.  label: a column that is no input, or
 * NULL. */
SHOAL_MUST_CHECK int columns_choose(struct columns *c, const struct table *t,
                                    const struct shoal_engine *engine, const char *list,
                                    const char *label, struct err *e);
void columns_fini(struct columns *c);
/* The values of these columns, [n_rows][c->n]; mem_free.  NULL: no memory. */
double *columns_gather(const struct columns *c, const struct table *t);

/* The column that says what is an anomaly: of this name, or (NULL) of the usual names; UINT32_MAX:
 * none. */
uint32_t columns_label(const struct table *t, const char *name);

#endif
