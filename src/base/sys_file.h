/* sys_file.h - small files of the kernel: one line below /sys.
 *
 * $SHOAL_SYS_DIR names another folder than /sys: for a container that sees the machine's files
 * elsewhere, and for tests with files of their own.
 *
 * Thread:    any.
 * Failure:   a file that is missing or not a number is false. */
#ifndef SHOAL_BASE_SYS_FILE_H
#define SHOAL_BASE_SYS_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

const char *sys_file_root(void);
/* The first line of the file that the format names, without its newline. */
SHOAL_PRINTF(3, 4) bool sys_file_line(char *out, size_t cap, const char *path, ...);
/* The number in that line. */
SHOAL_PRINTF(2, 3) bool sys_file_number(double *out, const char *path, ...);

#endif
