/* cmd_doctor.h - what 'shoal doctor --json --no-measure' prints, for other commands.
 *
 * Thread:    the main thread. */
#ifndef SHOAL_CMD_CMD_DOCTOR_H
#define SHOAL_CMD_CMD_DOCTOR_H

#include "base/buf.h"

SHOAL_MUST_CHECK int cmd_doctor_put(struct buf *b, struct err *e);

#endif
