/* response_file.h - stored responses as lines of a file, so that conversations go on after a
 * restart.
 *
 * Thread:    pure.
 * Ownership: reading allocates from the caller's arena. */
#ifndef SHOAL_GATEWAY_API_RESPONSE_FILE_H
#define SHOAL_GATEWAY_API_RESPONSE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct response_entry;

/* Appends one line; until_s: when it expires, in seconds since 1970. */
void response_file_put(struct buf *out, const struct response_entry *e, int64_t until_s);
/* Reads a line without its end.  False: it is damaged, or of another version; or no memory. */
bool response_file_read(struct response_entry *e, int64_t *until_s, const char *line, size_t n,
                        struct arena *a);

#endif
