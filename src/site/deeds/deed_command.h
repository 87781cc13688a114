/* deed_command.h - runs a program without a shell, for at most a time.
 *
 * The program gets its arguments unchanged, an almost empty environment and /dev/null for stdin,
 * stderr and, unless it is read, stdout; it is killed with its children when its time is up.
 *
 * Thread:  any that may block.
 * Failure: SHOAL_ENOTFOUND: it cannot be started; SHOAL_EDEADLINE; SHOAL_EIO with its exit status.
 */
#ifndef SHOAL_SITE_DEEDS_DEED_COMMAND_H
#define SHOAL_SITE_DEEDS_DEED_COMMAND_H

#include <stdint.h>

#include "base/err.h"

struct buf;

/* argv[0]: an absolute path; NULL-terminated. */
SHOAL_MUST_CHECK int deed_command_run(char *const *argv, uint32_t timeout_ms, struct err *e);
/* The same; its output is appended to out. SHOAL_ELIMIT: more than out may hold, and it is
 * killed. */
SHOAL_MUST_CHECK int deed_command_read(char *const *argv, uint32_t timeout_ms, struct buf *out,
                                       struct err *e);

#endif
