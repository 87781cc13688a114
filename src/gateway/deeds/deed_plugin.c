/* deed_plugin.c - see deed_plugin.h. */
#include "gateway/deeds/deed_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "shoal/shoal_plugin.h"

struct plugin {
    struct plugin *next;
    char *path;
    void *object;
    const struct shoal_plugin *table;
    void *state;
    bool opening, opened;
    uint32_t n_lost; /* calls that were given up and have not returned */
};

/* The plug-ins and their lock, which a thread that was given up may outlive the owner with. */
struct deed_plugins {
    pthread_mutex_t lock; /* guards all below, and the runs */
    pthread_cond_t ended; /* a run; clock: monotonic */
    struct plugin *list;
    uint32_t n_refs; /* the owner, and runs that were given up */
};

/* One call, on a thread of its own.  Freed by its caller, or by its thread if it was given up. */
struct run {
    struct shoal_plugin_call call; /* first */
    struct deed_plugins *all;
    struct plugin *plugin;
    uint64_t deadline_ns;
    char *payload;
    char key[80], why[200];
    struct buf answer;
    int rc;
    bool over, lost;
};

/* ---- what a plug-in calls ---- */

static uint32_t left_ms(const struct shoal_plugin_call *c)
{
    const struct run *r = (const struct run *)(const void *)c;
    uint64_t now = clock_ns();
    return r->deadline_ns > now ? (uint32_t)((r->deadline_ns - now + 999999) / 1000000) : 0;
}

static int answer(struct shoal_plugin_call *c, const char *text, size_t n)
{
    struct run *r = (struct run *)(void *)c;
    buf_put(&r->answer, text, n);
    return r->answer.rc;
}

static void fail(struct shoal_plugin_call *c, const char *why)
{
    struct run *r = (struct run *)(void *)c;
    snprintf(r->why, sizeof(r->why), "%s", why ? why : "");
}

/* ---- opening ---- */

static void plugin_free(struct plugin *p)
{
    if (p->object)
        dlclose(p->object);
    mem_free(p->path);
    mem_free(p);
}

/* Anyone who may write to the file could run code in this process. */
static int check_file(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_set(e, SHOAL_ENOTFOUND, "cannot open the plug-in %.100s: %s", path,
                       strerror(errno));
    if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IWGRP | S_IWOTH)) ||
        (st.st_uid != 0 && st.st_uid != geteuid()))
        return err_set(e, SHOAL_EINVAL,
                       "the plug-in %.80s must be a file that only root or the server's user may "
                       "write: chmod go-w",
                       path);
    return 0;
}

static int open_plugin(struct plugin **out, const char *path, struct err *e)
{
    struct plugin *p = NULL;
    shoal_plugin_fn fn;
    int rc = check_file(path, e);
    if (rc < 0)
        return rc;
    p = mem_zalloc(sizeof(*p));
    if (p)
        p->path = mem_strdup(path);
    if (!p || !p->path) {
        mem_free(p);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a plug-in");
    }
    p->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = p->object ? dlsym(p->object, SHOAL_PLUGIN_SYMBOL) : NULL;
    if (!symbol) {
        const char *why = dlerror();
        rc = err_set(e, SHOAL_ENOTFOUND, "%.60s is not a plug-in: %.80s", path,
                     why ? why : "no function " SHOAL_PLUGIN_SYMBOL);
        goto out;
    }
    memcpy(&fn, &symbol, sizeof(fn)); /* a pointer to data becomes one to a function */
    p->table = fn();
    if (!p->table || p->table->version != SHOAL_PLUGIN_VERSION ||
        p->table->size < sizeof(*p->table) || !p->table->run) {
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "the plug-in %.80s was built for version %u, this server has %u", path,
                     p->table ? p->table->version : 0, SHOAL_PLUGIN_VERSION);
        goto out;
    }
    *out = p;
    p = NULL;
out:
    if (p)
        plugin_free(p);
    return rc;
}

/* The lock is held. */
static int find(struct deed_plugins *d, const char *path, struct plugin **out, struct err *e)
{
    for (*out = d->list; *out; *out = (*out)->next)
        if (strcmp((*out)->path, path) == 0)
            return 0;
    int rc = open_plugin(out, path, e);
    if (rc == 0) {
        (*out)->next = d->list;
        d->list = *out;
    }
    return rc;
}

/* ---- running ---- */

static void run_free(struct run *r)
{
    buf_fini(&r->answer);
    mem_free(r->payload);
    mem_free(r);
}

/* The lock is held, and is released. */
static void unref(struct deed_plugins *d)
{
    bool last = --d->n_refs == 0;
    pthread_mutex_unlock(&d->lock);
    if (!last)
        return;
    while (d->list) {
        struct plugin *p = d->list;
        d->list = p->next;
        if (p->table->close && (p->opened || !p->table->open))
            p->table->close(p->state);
        plugin_free(p);
    }
    pthread_cond_destroy(&d->ended);
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

/* The first call opens; the others wait.  The lock is held. */
static bool is_open(struct deed_plugins *d, struct plugin *p)
{
    while (p->opening)
        pthread_cond_wait(&d->ended, &d->lock);
    if (p->opened || !p->table->open)
        return true;
    p->opening = true;
    pthread_mutex_unlock(&d->lock);
    int rc = p->table->open(&p->state);
    pthread_mutex_lock(&d->lock);
    p->opening = false;
    p->opened = rc == 0;
    pthread_cond_broadcast(&d->ended);
    return p->opened;
}

static void *work(void *arg)
{
    struct run *r = arg;
    struct deed_plugins *d = r->all;
    int rc = -1;
    pthread_mutex_lock(&d->lock);
    bool opened = is_open(d, r->plugin);
    pthread_mutex_unlock(&d->lock);
    if (opened)
        rc = r->plugin->table->run(r->plugin->state, &r->call);
    else
        fail(&r->call, "it could not be opened");
    pthread_mutex_lock(&d->lock);
    r->rc = rc;
    r->over = true;
    if (!r->lost) {
        pthread_cond_broadcast(&d->ended);
        pthread_mutex_unlock(&d->lock);
        return NULL;
    }
    r->plugin->n_lost--;
    run_free(r);
    unref(d);
    return NULL;
}

/* The lock is held, and is released; r is freed, now or by its thread. */
static int await(struct run *r, struct buf *out, struct err *e)
{
    struct deed_plugins *d = r->all;
    const char *path = r->plugin->path;
    const struct timespec until = {(time_t)(r->deadline_ns / 1000000000u),
                                   (long)(r->deadline_ns % 1000000000u)};
    int rc = 0;
    while (!r->over && clock_ns() < r->deadline_ns)
        pthread_cond_timedwait(&d->ended, &d->lock, &until);
    if (!r->over) {
        rc = err_set(e, SHOAL_EDEADLINE,
                     "the plug-in %.80s did not answer in time and was given up", path);
        r->lost = true;
        r->plugin->n_lost++;
        d->n_refs++;
        pthread_mutex_unlock(&d->lock);
        return rc;
    }
    pthread_mutex_unlock(&d->lock);
    if (r->answer.rc < 0)
        rc = err_set(e, SHOAL_ELIMIT, "the answer of the plug-in %.80s is too long", path);
    else if (r->rc != 0)
        rc = err_set(e, SHOAL_EIO, "the plug-in %.60s failed: %s", path,
                     r->why[0] ? r->why : "it does not say why");
    else
        buf_put(out, buf_str(&r->answer), r->answer.len);
    run_free(r);
    return rc < 0 ? rc : out->rc;
}

int deed_plugins_run(struct deed_plugins *d, const char *path, const char *payload,
                     size_t payload_bytes, const char *key, uint32_t timeout_ms, struct buf *out,
                     struct err *e)
{
    struct run *r = mem_zalloc(sizeof(*r));
    pthread_t thread;
    if (r)
        r->payload = mem_zalloc(payload_bytes + 1);
    if (!r || !r->payload) {
        mem_free(r);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a plug-in");
    }
    if (payload_bytes > 0)
        memcpy(r->payload, payload, payload_bytes);
    snprintf(r->key, sizeof(r->key), "%s", key);
    buf_init(&r->answer, out->max);
    r->all = d;
    r->deadline_ns = clock_ns() + timeout_ms * 1000000ull;
    r->call = (struct shoal_plugin_call){.size = sizeof(r->call),
                                         .payload = r->payload,
                                         .payload_bytes = payload_bytes,
                                         .key = r->key,
                                         .left_ms = left_ms,
                                         .answer = answer,
                                         .fail = fail};
    pthread_mutex_lock(&d->lock);
    int rc = find(d, path, &r->plugin, e);
    if (rc == 0 && r->plugin->n_lost >= DEED_PLUGIN_MAX_LOST)
        rc = err_set(e, SHOAL_EBUSY, "%u calls of the plug-in %.80s never came back",
                     DEED_PLUGIN_MAX_LOST, path);
    if (rc == 0)
        rc = thread_create(&thread, "plugin", work, r, e);
    if (rc < 0) {
        pthread_mutex_unlock(&d->lock);
        run_free(r);
        return rc;
    }
    pthread_detach(thread);
    return await(r, out, e);
}

/* ---- life ---- */

int deed_plugins_create(struct deed_plugins **out, struct err *e)
{
    struct deed_plugins *d = mem_zalloc(sizeof(*d));
    pthread_condattr_t how;
    *out = d;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "out of memory for plug-ins");
    d->n_refs = 1;
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&d->ended, &how);
    pthread_condattr_destroy(&how);
    return 0;
}

void deed_plugins_destroy(struct deed_plugins *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    unref(d);
}
