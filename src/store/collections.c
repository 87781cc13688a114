/* collections.c - see collections.h. */
#include "store/collections.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/order.h"

#define ENDING ".db"

struct entry {
    char name[COLLECTION_MAX_NAME + 1];
    struct collection *c;
    uint32_t holds;
    bool gone; /* deleted: closed with the last hold */
};

struct collections {
    char dir[PATH_MAX];
    uint32_t exact_passages;
    pthread_mutex_t lock; /* guards the list */
    struct entry *list[2 * COLLECTIONS_MAX];
    uint32_t n;
};

bool collections_default_dir(char *out, size_t cap)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"SHOAL_COLLECTIONS", ""},
                  {"STATE_DIRECTORY", "/collections"},
                  {"XDG_STATE_HOME", "/shoal/collections"},
                  {"HOME", "/.local/state/shoal/collections"}};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *v = getenv(places[i].variable);
        if (!v || !v[0])
            continue;
        int n = snprintf(out, cap, "%s%s", v, places[i].below);
        return n > 0 && (size_t)n < cap;
    }
    return false;
}

int collections_open(struct collections **out, const char *dir, uint32_t exact_passages,
                     struct err *e)
{
    *out = NULL;
    if (strlen(dir) + COLLECTION_MAX_NAME + sizeof(ENDING "-wal") >= PATH_MAX)
        return err_set(e, SHOAL_EINVAL, "the path of the folder of collections is too long");
    struct collections *cs = mem_zalloc(sizeof(*cs));
    if (!cs)
        return err_set(e, SHOAL_ENOMEM, "out of memory for collections");
    snprintf(cs->dir, sizeof(cs->dir), "%s", dir);
    cs->exact_passages = exact_passages;
    pthread_mutex_init(&cs->lock, NULL);
    *out = cs;
    return 0;
}

void collections_close(struct collections *cs)
{
    if (!cs)
        return;
    for (uint32_t i = 0; i < cs->n; i++) {
        collection_close(cs->list[i]->c);
        mem_free(cs->list[i]);
    }
    pthread_mutex_destroy(&cs->lock);
    mem_free(cs);
}

static int path_of(const struct collections *cs, const char *name, char *out, size_t cap,
                   struct err *e)
{
    if (!collection_name_ok(name))
        return err_set(
            e, SHOAL_EINVAL,
            "'%.80s' cannot be the name of a collection: use 1 to %u of a-z, A-Z, 0-9, - "
            "and _",
            name, COLLECTION_MAX_NAME);
    int n = snprintf(out, cap, "%s/%s" ENDING, cs->dir, name);
    return n > 0 && (size_t)n < cap ? 0 : err_set(e, SHOAL_EINVAL, "the path is too long");
}

/* mkdir -p, accessible only to the owner. */
static int make_dirs(const char *dir, struct err *e)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", dir);
    for (char *p = path + 1;; p++) {
        char was = *p;
        if (was != '/' && was != '\0')
            continue;
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_set(e, SHOAL_EIO, "cannot create the folder %s: %s", path, strerror(errno));
        *p = was;
        if (!was)
            return 0;
    }
}

int collections_make(struct collections *cs, const char *name, const struct collection_settings *s,
                     struct err *e)
{
    char path[PATH_MAX];
    struct arena a;
    const char **names;
    uint32_t n;
    int rc = path_of(cs, name, path, sizeof(path), e);
    if (rc == 0)
        rc = make_dirs(cs->dir, e);
    if (rc == 0 && access(path, F_OK) == 0)
        return err_set(e, SHOAL_EINVAL, "the collection '%s' already exists", name);
    arena_init(&a, (size_t)1 << 20);
    if (rc == 0)
        rc = collections_list(cs, &a, &names, &n, e);
    if (rc == 0 && n >= COLLECTIONS_MAX)
        rc = err_set(e, SHOAL_ELIMIT, "there are %u collections already: delete one", n);
    arena_fini(&a);
    return rc < 0 ? rc : collection_make(path, s, e);
}

/* The list is locked. */
static struct entry *find(struct collections *cs, const char *name)
{
    for (uint32_t i = 0; i < cs->n; i++)
        if (!cs->list[i]->gone && strcmp(cs->list[i]->name, name) == 0)
            return cs->list[i];
    return NULL;
}

static int open_entry(struct collections *cs, const char *name, struct entry **out, struct err *e)
{
    char path[PATH_MAX];
    int rc = path_of(cs, name, path, sizeof(path), e);
    if (rc < 0)
        return rc;
    if (access(path, F_OK) != 0)
        return err_set(e, SHOAL_ENOTFOUND, "there is no collection '%s' in %s", name, cs->dir);
    if (cs->n == sizeof(cs->list) / sizeof(cs->list[0]))
        return err_set(e, SHOAL_ELIMIT, "too many collections are open");
    struct entry *x = mem_zalloc(sizeof(*x));
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a collection");
    rc = collection_open(&x->c, path, cs->exact_passages, e);
    if (rc < 0) {
        mem_free(x);
        return rc;
    }
    snprintf(x->name, sizeof(x->name), "%s", name);
    cs->list[cs->n++] = x;
    *out = x;
    return 0;
}

int collections_hold(struct collections *cs, const char *name, struct collection **out,
                     struct err *e)
{
    *out = NULL;
    pthread_mutex_lock(&cs->lock);
    struct entry *x = find(cs, name);
    int rc = x ? 0 : open_entry(cs, name, &x, e);
    if (rc == 0) {
        x->holds++;
        *out = x->c;
    }
    pthread_mutex_unlock(&cs->lock);
    return rc;
}

static void drop(struct collections *cs, uint32_t i)
{
    collection_close(cs->list[i]->c);
    mem_free(cs->list[i]);
    cs->list[i] = cs->list[--cs->n];
}

void collections_release(struct collections *cs, struct collection *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&cs->lock);
    for (uint32_t i = 0; i < cs->n; i++)
        if (cs->list[i]->c == c) {
            struct entry *x = cs->list[i];
            x->holds--;
            if (x->gone && x->holds == 0)
                drop(cs, i);
            break;
        }
    pthread_mutex_unlock(&cs->lock);
}

int collections_delete(struct collections *cs, const char *name, struct err *e)
{
    static const char *const parts[] = {"", "-wal", "-shm", COLLECTION_GRAPH};
    char path[PATH_MAX], part[PATH_MAX + 8];
    int rc = path_of(cs, name, path, sizeof(path), e);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&cs->lock);
    if (unlink(path) < 0)
        rc = errno == ENOENT ? err_set(e, SHOAL_ENOTFOUND, "there is no collection '%s'", name)
                             : err_set(e, SHOAL_EIO, "cannot remove %s: %s", path, strerror(errno));
    for (size_t i = 1; i < sizeof(parts) / sizeof(parts[0]) && rc == 0; i++) {
        snprintf(part, sizeof(part), "%s%s", path, parts[i]);
        unlink(part);
    }
    for (uint32_t i = 0; i < cs->n && rc == 0; i++) {
        struct entry *x = cs->list[i];
        if (x->gone || strcmp(x->name, name) != 0)
            continue;
        x->gone = true;
        if (x->holds == 0)
            drop(cs, i);
        break;
    }
    pthread_mutex_unlock(&cs->lock);
    return rc;
}

int collections_list(struct collections *cs, struct arena *a, const char ***names, uint32_t *n,
                     struct err *e)
{
    *n = 0;
    *names = arena_zalloc_n(a, 2 * COLLECTIONS_MAX, sizeof(char *));
    if (!*names)
        return err_set(e, SHOAL_ENOMEM, "out of memory for names");
    DIR *d = opendir(cs->dir);
    if (!d)
        return errno == ENOENT
                   ? 0
                   : err_set(e, SHOAL_EIO, "cannot read %s: %s", cs->dir, strerror(errno));
    for (struct dirent *x; (x = readdir(d)) && *n < 2 * COLLECTIONS_MAX;) {
        size_t len = strlen(x->d_name), end = strlen(ENDING);
        if (len <= end || strcmp(x->d_name + len - end, ENDING) != 0)
            continue;
        char *name = arena_copy(a, x->d_name, len + 1);
        if (!name)
            break;
        name[len - end] = '\0';
        if (collection_name_ok(name))
            (*names)[(*n)++] = name;
    }
    closedir(d);
    qsort(*names, *n, sizeof(char *), order_text);
    return a->rc < 0 ? err_set(e, a->rc, "out of memory for names") : 0;
}
