/* deed_command.h - runs a program without a shell, for at most a time.
 *
 * The program gets its arguments as they are, an almost empty environment and /dev/null as its
 * input, errors and, unless it is read, its output; it is killed, with what it started, when its
 * time is over.
 *
 * Thread:  any that may block.
 * Failure: SHOAL_ENOTFOUND: it cannot be started; SHOAL_EDEADLINE; SHOAL_EIO with its exit status.
 */
#ifndef SHOAL_GATEWAY_DEEDS_DEED_COMMAND_H
#define SHOAL_GATEWAY_DEEDS_DEED_COMMAND_H

#include <stdint.h>

#include "base/err.h"

struct buf;

/* argv[0]: an absolute path; NULL behind the last. */
SHOAL_MUST_CHECK int deed_command_run(char *const *argv, uint32_t timeout_ms, struct err *e);
/* The same; what it writes is appended to out.  SHOAL_ELIMIT: more than out may hold, and it is
 * killed. */
SHOAL_MUST_CHECK int deed_command_read(char *const *argv, uint32_t timeout_ms, struct buf *out,
                                       struct err *e);

#endif
