/* file_open.h - opens regular files only.
 *
 * A FIFO, a device, a socket or a folder in place of a model or a configuration is refused at once:
 * opening a FIFO would block until somebody writes to it.
 *
 * Thread:    any.
 * Ownership: the descriptor is the caller's: close().
 * Failure:   -1 with errno; a file that is not regular: EINVAL. */
#ifndef SHOAL_BASE_FILE_FILE_OPEN_H
#define SHOAL_BASE_FILE_FILE_OPEN_H

struct stat;

/* For reading, close-on-exec.  st: NULL, or receives its attributes. */
int file_open_regular(const char *path, struct stat *st);
/* The text for errno after a failure: "not a regular file", or the system's. */
const char *file_open_reason(int error);

#endif
