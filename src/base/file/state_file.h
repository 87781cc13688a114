/* state_file.h - the default place of a file that must outlive the process: $STATE_DIRECTORY
 * (systemd), $XDG_STATE_HOME/shoal or ~/.local/state/shoal.
 *
 * Thread:    any.
 * Failure:   false: there is no such folder, or the path is too long. */
#ifndef SHOAL_BASE_STATE_FILE_H
#define SHOAL_BASE_STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

bool state_file_path(char *out, size_t cap, const char *file);
/* Creates the folders above a file, as far as possible: opening the file reports what is wrong. */
void state_file_folders(const char *path);
/* The path of a file in the state folder, which is created. Earlier versions kept such files in the
 * cache folder, which may be emptied at any time: a file of that name in `cache` is moved if there
 * is none in the state folder, unless a server of such a version still uses it. Without a state
 * folder the file is in `cache`; NULL: none. */
bool state_file_find(char *out, size_t cap, const char *file, const char *cache);

#endif
