/* multipart.h - reads a body of multipart/form-data (RFC 7578): the fields and files of a form.
 *
 * Thread:    no state.
 * Ownership: parts point into the body.
 * Failure:   SHOAL_EFORMAT with a reason. */
#ifndef SHOAL_WIRE_MULTIPART_H
#define SHOAL_WIRE_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

#define MULTIPART_MAX_BOUNDARY 70u

struct multipart {
    char mark[MULTIPART_MAX_BOUNDARY + 5]; /* CR, LF, two dashes, the boundary */
    size_t mark_bytes;
    const char *at, *end;
};

struct multipart_part {
    struct str name, file_name; /* file_name.p is NULL: a field */
    struct str content;
};

/* type: the Content-Type of the body, or NULL. */
SHOAL_MUST_CHECK int multipart_open(struct multipart *m, const char *type, const char *body,
                                    size_t n, struct err *e);
/* The next part: 1, 0 after the last, or an error. */
SHOAL_MUST_CHECK int multipart_next(struct multipart *m, struct multipart_part *out, struct err *e);

#endif
