/* package_tools.h - asks pip and npm of this machine which index of packages they use, with their
 * configuration files.
 *
 * Thread:    any; waits for the program.
 * Failure:   false: it is not installed, or says nothing that is a URL. */
#ifndef SHOAL_CMD_STORE_PACKAGE_TOOLS_H
#define SHOAL_CMD_STORE_PACKAGE_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

bool package_tools_index(bool npm, char *out, size_t cap);

#endif
