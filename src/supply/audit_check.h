/* audit_check.h - checks an audit log: no line changed, lost, added or out of order.
 *
 * Thread:    any; reads the whole log.
 * Failure:   SHOAL_EFORMAT: the text says which line of which file; SHOAL_ENOTFOUND, SHOAL_EIO,
 *            SHOAL_EINVAL (not a key). */
#ifndef SHOAL_SUPPLY_AUDIT_CHECK_H
#define SHOAL_SUPPLY_AUDIT_CHECK_H

#include "supply/audit_line.h"

struct audit_check {
    uint32_t n_files;
    uint64_t first, n; /* number of the first and of the last line */
    uint64_t n_lines, n_checkpoints;
    uint64_t n_unsigned; /* lines behind the last checkpoint */
    uint64_t n_torn;     /* lines that a killed process did not finish */
    uint64_t n_lost;     /* lines that could not be written, as the log says itself */
    char file[32];       /* where it ended, or failed */
    uint64_t line;
};

/* key: PEM file with the public key; NULL: audit.pub of the folder. each: gets every whole line; or
 * NULL. */
SHOAL_MUST_CHECK int audit_check(struct audit_check *out, const char *dir, const char *key,
                                 void (*each)(void *ctx, const struct audit_line *l,
                                              const char *text, size_t n),
                                 void *ctx, struct err *e);

#endif
