/* table.h - rows of numbers from a file: CSV with or without names, or JSON lines (arrays, or
 * objects by name).
 *
 * Thread:    belongs to its caller.
 * Ownership: table_fini frees.
 * Failure:   SHOAL_EFORMAT with the line.  An empty cell, "NaN", "NA" or null is a missing value.
 */
#ifndef SHOAL_CMD_TABLE_H
#define SHOAL_CMD_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct table {
    char **names; /* of columns; NULL: the file has none */
    uint32_t n_cols;
    double *values; /* [n_rows][n_cols] */
    size_t n_rows, cap_rows;
};

/* Bytes of a whole file; changes them. */
SHOAL_MUST_CHECK int table_parse(struct table *t, char *text, struct err *e);
void table_fini(struct table *t);
/* Column of that name, or UINT32_MAX. */
uint32_t table_column(const struct table *t, const char *name);

#endif
