/* table.h - rows of numbers from a file: CSV with or without names, or JSON lines (arrays, or
 * objects by name).
 *
 * A column may also hold times ("2026-03-09 10:34:33", ISO 8601), which become seconds, or other
 * text, which is not stored.
 *
 * Thread:    belongs to its caller.
 * Ownership: table_fini frees.
 * Failure:   SHOAL_EFORMAT with the line.  An empty cell, "NaN", "NA" or null is a missing value.
 */
#ifndef SHOAL_EVAL_TABLE_H
#define SHOAL_EVAL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum table_kind { TABLE_EMPTY, TABLE_NUMBERS, TABLE_TIMES, TABLE_TEXT };

struct table {
    char **names; /* of columns; NULL: no names in the file */
    uint32_t n_cols;
    enum table_kind *kinds; /* [n_cols], decided by the first value that is not
                             * missing */
    double *values;         /* [n_rows][n_cols] */
    size_t n_rows, cap_rows;
    /* private: number of lines so far */
    uint64_t n_lines;
    char separator; /* CSV separator; 0: unknown yet, or JSON */
};

/* Adds one line of a file to a table that was all zero before its first line; modifies the line.
 * Adds a row unless the line was empty or held the names. */
SHOAL_MUST_CHECK int table_line(struct table *t, char *line, struct err *e);
/* Parses the bytes of a whole file; modifies them. */
SHOAL_MUST_CHECK int table_parse(struct table *t, char *text, struct err *e);
void table_fini(struct table *t);
/* Column of that name, or UINT32_MAX. */
uint32_t table_column(const struct table *t, const char *name);
/* The column of times; UINT32_MAX: none. */
uint32_t table_time_column(const struct table *t);
/* Seconds since 1970 of a date with optional time and zone (default UTC). */
bool table_time(const char *text, double *seconds);

#endif
