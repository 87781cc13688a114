/* home_phrases.h - for commands that hear: the names of a home as likely phrases.
 *
 * Thread:    the command's.
 * Failure:   SHOAL_E* with the file's name. */
#ifndef SHOAL_CMD_LOCAL_HOME_PHRASES_H
#define SHOAL_CMD_LOCAL_HOME_PHRASES_H

#include "base/buf.h"

/* Appends the names of the home file, and `more` if there are more; path NULL: only those. */
SHOAL_MUST_CHECK int home_phrases_put(struct buf *b, const char *path, const char *more,
                                      struct err *e);

#endif
