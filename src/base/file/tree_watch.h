/* tree_watch.h - notices that something changed in a folder or below it.
 *
 * Thread:    belongs to its caller.
 * Ownership: open gives, close takes back (NULL is fine).
 * Failure:   SHOAL_EIO: the folder is not there, or the system has no watches left (the text names
 *            the setting to raise). */
#ifndef SHOAL_BASE_FILE_TREE_WATCH_H
#define SHOAL_BASE_FILE_TREE_WATCH_H

#include <stdbool.h>

#include "base/err.h"

struct tree_watch;

SHOAL_MUST_CHECK int tree_watch_open(struct tree_watch **out, const char *folder, struct err *e);
void tree_watch_close(struct tree_watch *w);
/* Readable when something happened. */
int tree_watch_fd(const struct tree_watch *w);
/* Reads the events without waiting. True: something changed since the last call. */
bool tree_watch_changed(struct tree_watch *w);

#endif
