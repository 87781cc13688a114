/* columns.h - chooses the columns of a table that a scorer reads.
 *
 * Thread:    belongs to its caller.
 * Ownership: columns_fini frees.
 * Failure:   SHOAL_EINVAL if --columns names a missing column, SHOAL_EFORMAT if the file does not
 *            fit the model. */
#ifndef SHOAL_EVAL_COLUMNS_H
#define SHOAL_EVAL_COLUMNS_H

#include "base/err.h"
#include "eval/table.h"
#include "shoal/shoal.h"

struct columns {
    uint32_t *at; /* columns of the table, in the model's order */
    uint32_t n;
    char left_out[256]; /* names of ignored columns, for a note; "" if none */
};

/* list: "a,b,c"; NULL: by the names of the model's inputs, or all columns of numbers; for a
 * model with any number of channels without times and labels.  label: a column that is not an
 * input, or NULL. */
SHOAL_MUST_CHECK int columns_choose(struct columns *c, const struct table *t,
                                    const struct shoal_engine *engine, const char *list,
                                    const char *label, struct err *e);
/* For a machine with any number of channels: those of the list, or all columns of numbers without
 * times and labels. */
SHOAL_MUST_CHECK int columns_channels(struct columns *c, const struct table *t, const char *list,
                                      struct err *e);
void columns_fini(struct columns *c);
/* The values of these columns, [n_rows][c->n]; mem_free.  NULL: out of memory. */
double *columns_gather(const struct columns *c, const struct table *t);

/* The column with anomaly labels: of this name, or (NULL) with a usual name; UINT32_MAX: none. */
uint32_t columns_label(const struct table *t, const char *name);

#endif
