/* lines.h - lines from a file descriptor, with a second descriptor that interrupts.
 *
 * Thread:    belongs to its caller.
 * Ownership: init/fini over the caller's storage; a line is borrowed until the next call. */
#ifndef SHOAL_BASE_FILE_LINES_H
#define SHOAL_BASE_FILE_LINES_H

#include "base/buf.h"
#include "base/err.h"

enum lines_got { LINES_LINE, LINES_END, LINES_INTERRUPT };

struct lines {
    int fd;
    const char *name; /* name of the file, for errors; NULL after init */
    struct buf in;    /* read, not yet returned */
    size_t used;      /* bytes of `in` taken by the last returned line */
    bool ended;
};

void lines_init(struct lines *l, int fd);
void lines_fini(struct lines *l);
/* The next line without its newline, NUL-terminated; the last one may lack a newline.  Returns an
 * enum lines_got or a negative code.  LINES_INTERRUPT: interrupt_fd (-1: none) became readable,
 * which the caller must read. */
SHOAL_MUST_CHECK int lines_next(struct lines *l, int interrupt_fd, char **line, size_t *n,
                                struct err *e);
/* Whether lines_next would return without waiting; reads the available bytes. */
bool lines_ready(struct lines *l);

#endif
