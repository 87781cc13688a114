/* doc_folder.c - see doc_folder.h. */
#include "store/doc/doc_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/room.h"
#include "store/doc/doc.h"

#define MAX_BYTES ((size_t)256 << 20)

struct walk {
    struct doc_folder *f;
    struct doc_folder_file *v;
    uint32_t n, cap;
    struct err *e;
};

void doc_folder_init(struct doc_folder *f)
{
    *f = (struct doc_folder){.n = 0};
    arena_init(&f->arena, MAX_BYTES);
}

void doc_folder_fini(struct doc_folder *f)
{
    arena_fini(&f->arena);
    mem_free(f->v);
    f->v = NULL;
    f->n = 0;
}

bool doc_folder_takes(const char *name)
{
    static const char *const texts[] = {".txt", ".text", ".rst", ".adoc"};
    const char *dot = strrchr(name, '.');
    if (doc_format_of(name) != DOC_TEXT)
        return true;
    for (size_t i = 0; dot && i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcasecmp(dot, texts[i]) == 0)
            return true;
    return false;
}

static int add(struct walk *w, const char *path, const struct stat *st)
{
    if (w->n == DOC_FOLDER_MAX_FILES)
        return err_set(w->e, SHOAL_ELIMIT, "the folder has more than %u documents",
                       DOC_FOLDER_MAX_FILES);
    if (!room_make32(&w->v, &w->cap, w->n, sizeof(*w->v), 64))
        return err_set(w->e, SHOAL_ENOMEM, "out of memory for the list of documents");
    w->v[w->n++] = (struct doc_folder_file){.path = path,
                                            .n_bytes = (uint64_t)st->st_size,
                                            .changed_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 +
                                                          st->st_mtim.tv_nsec};
    return 0;
}

static int walk(struct walk *w, int fd, const char *path, uint32_t depth);

static int visit(struct walk *w, int fd, const char *folder, const char *name, uint32_t depth)
{
    struct stat st;
    if (name[0] == '.' || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* hidden, or gone meanwhile */
    const char *path = arena_printf(&w->f->arena, "%s/%s", folder, name);
    if (w->f->arena.rc < 0)
        return err_set(w->e, w->f->arena.rc, "out of memory for the list of documents");
    if (S_ISREG(st.st_mode))
        return doc_folder_takes(name) ? add(w, path, &st) : 0;
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (depth == DOC_FOLDER_MAX_DEPTH)
        return err_set(w->e, SHOAL_ELIMIT, "%s: more than %u folders in each other", path,
                       DOC_FOLDER_MAX_DEPTH);
    int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0 && errno == ENOENT)
        return 0;
    return below < 0 ? err_set(w->e, SHOAL_EIO, "cannot read %s: %s", path, strerror(errno))
                     : walk(w, below, path, depth + 1);
}

/* Takes fd. */
static int walk(struct walk *w, int fd, const char *path, uint32_t depth)
{
    DIR *dir = fdopendir(fd);
    int rc = 0;
    if (!dir) {
        close(fd);
        return err_set(w->e, SHOAL_EIO, "cannot read %s: %s", path, strerror(errno));
    }
    for (struct dirent *d; rc == 0 && (d = readdir(dir));)
        rc = visit(w, dirfd(dir), path, d->d_name, depth);
    closedir(dir);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct doc_folder_file *)a)->path,
                  ((const struct doc_folder_file *)b)->path);
}

int doc_folder_read(struct doc_folder *f, const char *folder, struct err *e)
{
    struct walk w = {.f = f, .e = e};
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(e, errno == ENOENT ? SHOAL_ENOTFOUND : SHOAL_EIO,
                       "cannot read the folder %s: %s", folder, strerror(errno));
    int rc = walk(&w, fd, folder, 0);
    if (rc < 0) {
        mem_free(w.v);
        return rc;
    }
    if (w.n > 0)
        qsort(w.v, w.n, sizeof(*w.v), by_path);
    mem_free(f->v);
    f->v = w.v;
    f->n = w.n;
    return 0;
}

const struct doc_folder_file *doc_folder_find(const struct doc_folder *f, const char *path)
{
    const struct doc_folder_file key = {.path = path};
    return f->n > 0 ? bsearch(&key, f->v, f->n, sizeof(*f->v), by_path) : NULL;
}
