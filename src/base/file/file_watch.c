/* file_watch.c - see file_watch.h. */
#include "base/file/file_watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

struct file_watch {
    int fd;
    char path[PATH_MAX];
    struct stat seen;
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int file_watch_open(struct file_watch **out, const char *path, struct err *e)
{
    struct file_watch *w = mem_zalloc(sizeof(*w));
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *out = NULL;
    if (!w)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a watch");
    snprintf(w->path, sizeof(w->path), "%s", path);
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - path) : 1,
             slash ? path : ".");
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    /* Not IN_MODIFY: a file that is still being written would be read. */
    if (w->fd < 0 || inotify_add_watch(w->fd, folder,
                                       IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE) < 0) {
        int rc = err_set(e, SHOAL_EIO, "cannot watch %s: %s", folder, strerror(errno));
        file_watch_close(w);
        return rc;
    }
    file_watch_seen(w);
    *out = w;
    return 0;
}

void file_watch_close(struct file_watch *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    mem_free(w);
}

int file_watch_fd(const struct file_watch *w)
{
    return w->fd;
}

void file_watch_seen(struct file_watch *w)
{
    if (stat(w->path, &w->seen) < 0)
        memset(&w->seen, 0, sizeof(w->seen));
}

bool file_watch_changed(struct file_watch *w)
{
    char events[4096];
    struct stat st;
    while (read(w->fd, events, sizeof(events)) > 0)
        ;
    if (stat(w->path, &st) < 0 || is_same(&st, &w->seen))
        return false;
    w->seen = st;
    return true;
}
