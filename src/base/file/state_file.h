/* state_file.h - where a file is that must outlive the process, if nobody says another place:
 * $STATE_DIRECTORY (systemd), $XDG_STATE_HOME/shoal or ~/.local/state/shoal.
 *
 * Thread:    any.
 * Failure:   false: there is no such folder, or the path is too long. */
#ifndef SHOAL_BASE_STATE_FILE_H
#define SHOAL_BASE_STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

bool state_file_path(char *out, size_t cap, const char *file);
/* The folders above a file, as far as they can be made: opening the file says what is wrong. */
void state_file_folders(const char *path);
/* The place of a file in the state folder, which is made.  Earlier versions kept such files in the
 * cache folder, which may be emptied at any time: if there is one of that name in `cache` and none
 * in the state folder, it moves, unless a server of such a version still uses it.  Without a state
 * folder it is in `cache`; NULL: there is none. */
bool state_file_find(char *out, size_t cap, const char *file, const char *cache);

#endif
