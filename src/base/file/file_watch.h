/* file_watch.h - detects that a file was replaced or written.
 *
 * The folder is watched, not the file: editors write a new file and rename it, and mounted
 * configurations are symbolic links that are swapped.
 *
 * Thread:    belongs to its caller.
 * Ownership: open gives the watch to the caller, close takes it back (NULL is fine).
 * Failure:   SHOAL_EIO if the system has no watches left; the caller continues without a watch. */
#ifndef SHOAL_BASE_FILE_FILE_WATCH_H
#define SHOAL_BASE_FILE_FILE_WATCH_H

#include <stdbool.h>

#include "base/err.h"

struct file_watch;

SHOAL_MUST_CHECK int file_watch_open(struct file_watch **out, const char *path, struct err *e);
void file_watch_close(struct file_watch *w);
/* Readable when something happened in the folder. */
int file_watch_fd(const struct file_watch *w);
/* Reads the events. True: the file differs from the last call, or from the last file_watch_seen. A
 * missing file counts as unchanged: it is being replaced. */
bool file_watch_changed(struct file_watch *w);
/* The caller has just read the file. */
void file_watch_seen(struct file_watch *w);

#endif
