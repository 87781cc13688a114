/* state_file.c - see state_file.h. */
#include "base/file/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/file_lock.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/log.h"

#define MAX_MOVED_BYTES ((size_t)2 << 30) /* a queue may be 1 GiB, and has notes */

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

static int copy(const char *old, const char *file, struct err *e)
{
    struct buf b;
    buf_init(&b, MAX_MOVED_BYTES);
    int rc = file_read(old, &b, e);
    if (rc == 0)
        rc = b.rc < 0 ? err_set(e, b.rc, "out of memory") : file_replace(file, b.data, b.len, e);
    if (rc == 0 && unlink(old) < 0)
        log_warn("state", "cannot remove %s: %s", old, strerror(errno));
    buf_fini(&b);
    return rc;
}

/* Another process may have locked the file itself, or the file beside it (file_lock.h). */
static int move_unused(const char *old, const char *file, struct err *e)
{
    int beside, fd = open(old, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", old, strerror(errno));
    int rc = file_lock(&beside, old, e);
    if (rc == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
        rc = err_set(e, SHOAL_EBUSY, "another process uses it");
    if (rc == 0 && rename(old, file) < 0) /* the two folders may be on different disks */
        rc = copy(old, file, e);
    if (beside >= 0)
        close(beside);
    close(fd);
    return rc;
}

bool state_file_find(char *out, size_t cap, const char *file, const char *cache)
{
    char old[PATH_MAX];
    struct err e = {0};
    int n = cache ? snprintf(old, sizeof(old), "%s/%s", cache, file) : -1;
    bool cached = n > 0 && (size_t)n < sizeof(old);
    if (!state_file_path(out, cap, file)) {
        if (cached)
            mkdir(cache, 0700);
        return cached && snprintf(out, cap, "%s", old) < (int)cap;
    }
    state_file_folders(out);
    if (!cached || access(old, F_OK) != 0 || access(out, F_OK) == 0)
        return true;
    if (move_unused(old, out, &e) < 0)
        log_warn("state", "%s was not migrated: %s", old, e.msg);
    else
        log_info("state", "%s has moved to %s", old, out);
    return true;
}
