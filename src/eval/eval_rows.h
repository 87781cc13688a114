/* eval_rows.h - the rows of a data set: one JSON object a line.
 *
 * Thread:    belongs to its caller; read by any once it is complete.
 * Ownership: eval_rows_fini frees; a file's name is borrowed from the caller.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT with file and line, SHOAL_ENOMEM. */
#ifndef SHOAL_EVAL_EVAL_ROWS_H
#define SHOAL_EVAL_EVAL_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/err.h"

struct eval_row {
    cJSON *json;
    const char *file;
    uint64_t line;
};

struct eval_rows { /* all zero: none */
    struct eval_row *rows;
    size_t n, cap;
};

/* Appends the rows of a file; "-" is stdin.  Empty lines are skipped. */
SHOAL_MUST_CHECK int eval_rows_read(struct eval_rows *rows, const char *path, struct err *e);
/* Drops all rows after the first n. */
void eval_rows_cut(struct eval_rows *rows, size_t n);
void eval_rows_fini(struct eval_rows *rows);
/* The row's text under the first of these keys (NULL at the end) that it has. */
SHOAL_MUST_CHECK int eval_rows_text(const struct eval_row *r, const char *const *keys,
                                    const char **out, struct err *e);

#endif
