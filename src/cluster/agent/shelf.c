/* shelf.c - see shelf.h. */
#include "cluster/agent/shelf.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread/thread.h"
#include "engine/cache_dir.h"
#include "host/identity.h"

#define MAX_MODELS 4096u
#define MAX_DEPTH 3 /* nesting of folders */
#define AGAIN_NS 3000000000u

struct entry {
    uint8_t sum[SHA256_BYTES];
    char *path;
};

struct shelf {
    char **places;
    size_t n_places;
    char *memo_dir;
    pthread_t thread;
    bool threaded;
    _Atomic bool stop;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    struct entry *list;
    uint32_t n, cap;
    uint64_t asked_ns, began_ns, ended_ns; /* a look that began after the question answers it */
};

/* ---- looking ---- */

static void keep(struct shelf *s, const uint8_t *sum, const char *path)
{
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n; i++)
        if (memcmp(s->list[i].sum, sum, SHA256_BYTES) == 0) {
            bool same = strcmp(s->list[i].path, path) == 0;
            pthread_mutex_unlock(&s->lock);
            if (!same)
                log_debug("shelf", "the same model twice: %s and %s", s->list[i].path, path);
            return;
        }
    if (s->n == s->cap && s->n < MAX_MODELS) {
        uint32_t cap = s->cap ? 2 * s->cap : 16;
        void *p = mem_realloc(s->list, cap * sizeof(*s->list));
        if (p) {
            s->list = p;
            s->cap = cap;
        }
    }
    char *copy = s->n < s->cap ? mem_strdup(path) : NULL;
    if (copy) {
        memcpy(s->list[s->n].sum, sum, SHA256_BYTES);
        s->list[s->n++].path = copy;
    }
    pthread_mutex_unlock(&s->lock);
}

static void look_at_model(struct shelf *s, const char *path)
{
    struct identity_list *l = NULL;
    struct identity id;
    struct err e = {0};
    if (identity_list(&l, path, &e) == 0) {
        id = identity_known(l, s->memo_dir, NULL);
        if (id.kind == IDENTITY_CONTENT || identity_read(&id, l, s->memo_dir, &s->stop, &e) == 0)
            keep(s, id.sum, path);
    }
    identity_list_free(l);
}

static bool has_file(const char *dir, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
           access(path, R_OK) == 0;
}

/* What the registry can open: single files by their ending, folders with a config.json. */
static bool is_model_file(const char *name)
{
    static const char *const endings[] = {".gguf", ".onnx", ".bin", ".json", ".safetensors"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (str_ends_with(name, endings[i]))
            return true;
    return false;
}

static void look_in(struct shelf *s, const char *path, int depth)
{
    struct stat st;
    if (s->stop || stat(path, &st) < 0)
        return;
    if (S_ISREG(st.st_mode)) {
        look_at_model(s, path);
        return;
    }
    if (!S_ISDIR(st.st_mode))
        return;
    if (has_file(path, "config.json")) {
        look_at_model(s, path);
        return;
    }
    DIR *d = depth < MAX_DEPTH ? opendir(path) : NULL;
    char inner[PATH_MAX];
    for (const struct dirent *x; d && !s->stop && (x = readdir(d));) {
        if (x->d_name[0] == '.' ||
            snprintf(inner, sizeof(inner), "%s/%s", path, x->d_name) >= (int)sizeof(inner))
            continue;
        if (is_model_file(x->d_name) || (stat(inner, &st) == 0 && S_ISDIR(st.st_mode)))
            look_in(s, inner, depth + 1);
    }
    if (d)
        closedir(d);
}

/* Removes files that no longer exist. */
static void forget_gone(struct shelf *s)
{
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n;) {
        if (access(s->list[i].path, R_OK) == 0) {
            i++;
            continue;
        }
        mem_free(s->list[i].path);
        s->list[i] = s->list[--s->n];
    }
    pthread_mutex_unlock(&s->lock);
}

static void *run(void *arg)
{
    struct shelf *s = arg;
    /* lowers this thread's priority below that of requests */
    (void)setpriority(PRIO_PROCESS, 0, 10);
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        s->began_ns = clock_ns();
        pthread_mutex_unlock(&s->lock);
        forget_gone(s);
        for (size_t i = 0; i < s->n_places; i++)
            look_in(s, s->places[i], 0);
        pthread_mutex_lock(&s->lock);
        s->ended_ns = clock_ns();
        while (!s->stop && s->asked_ns <= s->began_ns)
            pthread_cond_wait(&s->wake, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- asking ---- */

enum shelf_found shelf_find(struct shelf *s, const uint8_t sha256[SHA256_BYTES], char *path,
                            size_t cap)
{
    enum shelf_found found = SHELF_NOWHERE;
    uint64_t now = clock_ns();
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n && found != SHELF_HERE; i++)
        if (memcmp(s->list[i].sum, sha256, SHA256_BYTES) == 0 &&
            (size_t)snprintf(path, cap, "%s", s->list[i].path) < cap)
            found = SHELF_HERE;
    if (found != SHELF_HERE && s->ended_ns < s->began_ns) {
        found = SHELF_LOOKING; /* right now */
    } else if (found != SHELF_HERE && (s->ended_ns == 0 || now - s->ended_ns > AGAIN_NS)) {
        found = SHELF_LOOKING;
        s->asked_ns = now;
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* ---- lifetime ---- */

static int copy_opts(struct shelf *s, const struct shelf_opts *o)
{
    char dir[PATH_MAX];
    const char *memo = cache_dir_wanted(o->cache_dir, dir, sizeof(dir));
    s->places = mem_zalloc_n(o->n_places + 1, sizeof(*s->places));
    if (!s->places || (memo && !(s->memo_dir = mem_strdup(memo))))
        return SHOAL_ENOMEM;
    for (size_t i = 0; i < o->n_places; i++)
        if (!(s->places[s->n_places++] = mem_strdup(o->places[i])))
            return SHOAL_ENOMEM;
    return 0;
}

int shelf_open(struct shelf **out, const struct shelf_opts *o, struct err *e)
{
    struct shelf *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "list of models");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->asked_ns = 1;
    int rc = copy_opts(s, o) < 0 ? err_set(e, SHOAL_ENOMEM, "list of models")
                                 : thread_create(&s->thread, "shelf", run, s, e);
    s->threaded = rc == 0;
    if (rc < 0) {
        shelf_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void shelf_close(struct shelf *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->threaded)
        pthread_join(s->thread, NULL);
    for (uint32_t i = 0; i < s->n; i++)
        mem_free(s->list[i].path);
    for (size_t i = 0; i < s->n_places; i++)
        mem_free(s->places[i]);
    mem_free(s->list);
    mem_free(s->places);
    mem_free(s->memo_dir);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}
