/* home_file_read.h - reads a home file, YAML or JSON (docs/HOME.md says every key).
 *
 * Thread:    any.
 * Ownership: gives the caller a reference.
 * Failure:   SHOAL_EFORMAT or SHOAL_ELIMIT with "file:line:column: message", SHOAL_EIO,
 *            SHOAL_ENOMEM; *out is then NULL. */
#ifndef SHOAL_APPS_HOME_HOME_FILE_READ_H
#define SHOAL_APPS_HOME_HOME_FILE_READ_H

#include "base/err.h"
#include "apps/home/site/home_file.h"

#define HOME_FILE_LANGUAGE 12u /* bytes of "de" */

/* table: knows the kinds and abilities.  name: of the file, for messages. */
SHOAL_MUST_CHECK int home_file_read_text(struct home_file **out, const struct home_table *table,
                                         const char *text, size_t n, const char *name,
                                         struct err *e);
SHOAL_MUST_CHECK int home_file_read_path(struct home_file **out, const struct home_table *table,
                                         const char *path, struct err *e);
/* The language that a home file names, "": none. Nothing else of it is read. */
SHOAL_MUST_CHECK int home_file_read_language(char out[HOME_FILE_LANGUAGE], const char *path,
                                             struct err *e);

#endif
