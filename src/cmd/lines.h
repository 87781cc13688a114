/* lines.h - lines from a descriptor, with Ctrl-C beside it.
 *
 * Thread:    the main thread.
 * Ownership: init/fini over the caller's storage; a line is borrowed until the next call. */
#ifndef SHOAL_CMD_LINES_H
#define SHOAL_CMD_LINES_H

#include "base/buf.h"
#include "base/err.h"

enum lines_got { LINES_LINE, LINES_END, LINES_INTERRUPT };

struct lines {
    int fd;
    struct buf in; /* read, not yet given out */
    size_t used;   /* of in: the line given out last */
};

void lines_init(struct lines *l, int fd);
void lines_fini(struct lines *l);
/* The next line without its newline, NUL-terminated; the last one may lack a newline.  Returns an
 * enum lines_got or a negative code. */
SHOAL_MUST_CHECK int lines_next(struct lines *l, int interrupt_fd, char **line, size_t *n,
                                struct err *e);

#endif
