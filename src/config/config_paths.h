/* config_paths.h - looks for the files and folders that a configuration names.
 *
 * Thread:    any; reads the disk.
 * Failure:   SHOAL_EFORMAT with the place in the file, and what is wrong with which path. */
#ifndef SHOAL_CONFIG_CONFIG_PATHS_H
#define SHOAL_CONFIG_CONFIG_PATHS_H

#include "base/err.h"

struct config_where;

/* Files and folders that are read must be there and readable; what the server makes itself must
 * have room to be made: no file where a folder has to be. */
SHOAL_MUST_CHECK int config_paths_check(const struct config_where *w);

#endif
