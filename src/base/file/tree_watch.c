/* tree_watch.c - see tree_watch.h. */
#include "base/file/tree_watch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/mem.h"

#define MAX_DEPTH 32u
#define EVENTS                                                                                     \
    (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |       \
     IN_MOVE_SELF)

struct tree_watch {
    int fd;
    char *folder;
};

/* Watching a folder a second time changes nothing, so that all of them can be added again. */
static int add(struct tree_watch *w, const char *path, uint32_t depth, struct err *e)
{
    char below[PATH_MAX];
    if (inotify_add_watch(w->fd, path, EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW) < 0) {
        if (depth > 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
            return 0; /* gone meanwhile, or not for us */
        return err_set(e, SHOAL_EIO, "cannot watch %s: %s", path,
                       errno == ENOSPC ? "no watches are left, raise fs.inotify.max_user_watches"
                                       : strerror(errno));
    }
    DIR *dir = depth < MAX_DEPTH ? opendir(path) : NULL;
    int rc = 0;
    for (struct dirent *d; rc == 0 && dir && (d = readdir(dir));)
        if (d->d_name[0] != '.' && (d->d_type == DT_DIR || d->d_type == DT_UNKNOWN) &&
            snprintf(below, sizeof(below), "%s/%s", path, d->d_name) < (int)sizeof(below))
            rc = add(w, below, depth + 1, e);
    if (dir)
        closedir(dir);
    return rc;
}

int tree_watch_open(struct tree_watch **out, const char *folder, struct err *e)
{
    struct tree_watch *w = mem_zalloc(sizeof(*w));
    int rc;
    *out = NULL;
    if (!w)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a watch");
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    w->folder = mem_strdup(folder);
    if (w->fd < 0)
        rc = err_set(e, SHOAL_EIO, "cannot watch %s: %s", folder, strerror(errno));
    else if (!w->folder)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for a watch");
    else
        rc = add(w, folder, 0, e);
    if (rc < 0) {
        tree_watch_close(w);
        return rc;
    }
    *out = w;
    return 0;
}

void tree_watch_close(struct tree_watch *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    mem_free(w->folder);
    mem_free(w);
}

int tree_watch_fd(const struct tree_watch *w)
{
    return w->fd;
}

bool tree_watch_changed(struct tree_watch *w)
{
    char bytes[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool changed = false, folders = false;
    ssize_t n;
    while ((n = read(w->fd, bytes, sizeof(bytes))) > 0) {
        changed = true;
        for (char *p = bytes; p < bytes + n;) {
            const struct inotify_event *e = (const struct inotify_event *)(void *)p;
            folders |= e->mask & (IN_ISDIR | IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF);
            p += sizeof(*e) + e->len;
        }
    }
    if (folders) /* new ones must be watched; a failure shows with the next reading */
        (void)!add(w, w->folder, 0, NULL);
    return changed;
}
