/* quota_file.h - the file that keeps today's token usage of clients across restarts.
 *
 * Text: "shoal-quota 1", then for each client a line "DAY USED GRANTED NAME" with the name's
 * unusual bytes as %XX, then "end HASH" over everything before it.
 *
 * Thread:    any.
 * Failure:   SHOAL_EFORMAT: not such a file, or damaged; SHOAL_ELIMIT: too many lines. */
#ifndef SHOAL_HOST_QUOTA_FILE_H
#define SHOAL_HOST_QUOTA_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct buf;

#define QUOTA_FILE_MAX_ROWS 4096u
#define QUOTA_FILE_MAX_BYTES ((size_t)1 << 20)

struct quota_file_row {
    char name[64];
    uint64_t day; /* since 1970, UTC */
    uint64_t used, granted;
};

void quota_file_begin(struct buf *out);
void quota_file_put(struct buf *out, const struct quota_file_row *row);
void quota_file_end(struct buf *out);

/* Calls row for each line, after the whole file has been checked. */
SHOAL_MUST_CHECK int quota_file_read(const char *p, size_t n,
                                     void (*row)(void *ctx, const struct quota_file_row *row),
                                     void *ctx, struct err *e);

#endif
