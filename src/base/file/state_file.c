/* state_file.c - see state_file.h. */
#include "base/file/state_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool state_file_path(char *out, size_t cap, const char *file)
{
    const char *state = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    int n = state && state[0] ? snprintf(out, cap, "%s/%s", state, file)
            : xdg && xdg[0]   ? snprintf(out, cap, "%s/shoal/%s", xdg, file)
            : home && home[0] ? snprintf(out, cap, "%s/.local/state/shoal/%s", home, file)
                              : -1;
    return n > 0 && (size_t)n < cap;
}

void state_file_folders(const char *path)
{
    char part[PATH_MAX];
    for (size_t i = 1; i < sizeof(part) && path[0] && path[i]; i++)
        if (path[i] == '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            mkdir(part, 0700);
        }
}
