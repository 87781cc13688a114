/* scrub.h - takes secrets and personal data out of texts of the server's own (logs, settings,
 * figures), so that they can be given to others.
 *
 * Gone are: what pii.h finds by rules; values behind names such as password, token, key; words that
 * look like keys; paths, queries and users of URLs; names of home folders.  Names of people that
 * nothing marks as such stay: who gives a text away reads it first.
 *
 * What is put in has no quote or backslash, and what is taken out neither.
 *
 * Thread:    pure.
 * Failure:   those of the buffer. */
#ifndef SHOAL_PRIVACY_SCRUB_H
#define SHOAL_PRIVACY_SCRUB_H

#include "base/buf.h"

#define SCRUB_MARK "(hidden)"

void scrub_text(struct buf *out, const char *text, size_t n);
/* The same for JSON and for Prometheus' text: only in quoted strings, so that numbers stay. */
void scrub_quoted(struct buf *out, const char *text, size_t n);
/* Whether nothing in it would be taken out. */
bool scrub_is_clean(const char *text, size_t n);

#endif
