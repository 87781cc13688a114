/* folder_watch.c - see folder_watch.h. */
#include "gateway/server/folder_watch.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file/tree_watch.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/gw.h"
#include "knowledge/folder_sync.h"

#define LOOK_NS 500000000u    /* how often changes are looked for */
#define AGAIN_NS 30000000000u /* after a failure */
#define END_CHECKS 1000       /* of 5 ms each */
#define USUAL_MODEL "embed"
#define USUAL_TOKENS 160u
#define USUAL_OVERLAP 32u

struct folder_watch {
    struct gw_loop *gl;
    struct tree_watch *watch;
    struct folder_sync sync;
    struct executor_task begin;
    struct executor_timer timer;
    char *collection, *folder;
    bool runs, ending;
    bool failed; /* try again, whether something changes or not */
};

struct folder_watches {
    struct folder_watch *v;
    uint32_t n;
};

static void on_file(struct folder_sync *x, const struct ingest *i, const struct failure *f)
{
    if (f)
        log_warn("collections", "a document is not added: collection=%s document=%s %s",
                 x->collection, i->name, f->message);
}

static void on_done(struct folder_sync *x, const struct failure *f)
{
    struct folder_watch *w = EXECUTOR_OF(x, struct folder_watch, sync);
    w->runs = false;
    if (w->ending)
        return;
    w->failed = f != NULL;
    if (f)
        log_warn("collections", "cannot follow a folder: collection=%s folder=%s %s", x->collection,
                 x->folder, f->message);
    else if (x->n_added + x->n_removed + x->n_failed > 0)
        log_info("collections",
                 "followed a folder: collection=%s folder=%s added=%u unchanged=%u removed=%u "
                 "failed=%u",
                 x->collection, x->folder, x->n_added, x->n_unchanged, x->n_removed, x->n_failed);
    executor_timer_set(w->gl->flow.executor, &w->timer, clock_ns() + (f ? AGAIN_NS : LOOK_NS));
}

static void run(struct folder_watch *w)
{
    w->runs = true;
    w->sync.max_chunks = w->gl->config->collections_max_passages;
    folder_sync_run(&w->sync);
}

static void on_timer(struct executor_timer *t)
{
    struct folder_watch *w = EXECUTOR_OF(t, struct folder_watch, timer);
    if (tree_watch_changed(w->watch) || w->failed)
        run(w);
    else
        executor_timer_set(w->gl->flow.executor, t, clock_ns() + LOOK_NS);
}

static void on_begin(struct executor_task *t)
{
    run(EXECUTOR_OF(t, struct folder_watch, begin));
}

/* ---- lifetime ---- */

/* "NAME=FOLDER" */
static int open_one(struct folder_watch *w, struct gw *gw, const char *entry, struct err *e)
{
    const struct collection_settings usual = {USUAL_MODEL, USUAL_TOKENS, USUAL_OVERLAP};
    const char *sign = strchr(entry, '=');
    struct collection *c = NULL;
    if (!sign || !sign[1])
        return err_set(e, SHOAL_EINVAL, "collections.watch has '%.100s': use NAME=FOLDER", entry);
    w->collection = mem_strdup(entry);
    w->folder = mem_strdup(sign + 1);
    if (!w->collection || !w->folder)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    w->collection[sign - entry] = '\0';
    for (size_t n = strlen(w->folder); n > 1 && w->folder[n - 1] == '/'; n--)
        w->folder[n - 1] = '\0';
    int rc = collections_hold(gw->collections, w->collection, &c, e);
    if (rc == SHOAL_ENOTFOUND)
        rc = collections_make(gw->collections, w->collection, &usual, e);
    collections_release(gw->collections, c);
    if (rc == 0)
        rc = tree_watch_open(&w->watch, w->folder, e);
    w->gl = &gw->loops[0];
    w->begin.fn = on_begin;
    w->timer.fn = on_timer;
    w->sync = (struct folder_sync){.owner = &w->gl->flow,
                                   .collections = gw->collections,
                                   .collection = w->collection,
                                   .folder = w->folder,
                                   .file = on_file,
                                   .done = on_done};
    return rc;
}

int folder_watch_create(struct gw *gw, struct err *e)
{
    const struct yaml_in_strs *list = &gw->config->collections_watch;
    int rc = 0;
    if (list->n == 0)
        return 0;
    if (!gw->collections)
        return err_set(e, SHOAL_EINVAL, "collections.watch needs collections.dir");
    struct folder_watches *all = mem_zalloc(sizeof(*all));
    if (all)
        all->v = mem_zalloc_n(list->n, sizeof(*all->v));
    gw->folders = all;
    if (!all || !all->v)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    for (size_t i = 0; i < list->n && rc == 0; i++)
        rc = open_one(&all->v[all->n++], gw, list->v[i], e);
    for (uint32_t i = 0; i < all->n && rc == 0; i++)
        executor_post(gw->loops[0].flow.executor, &all->v[i].begin);
    return rc;
}

static bool any_runs(const struct folder_watches *all)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (all->v[i].runs)
            return true;
    return false;
}

void folder_watch_end(struct gw_loop *gl)
{
    struct folder_watches *all = gl->gw->folders;
    if (!all || gl != &gl->gw->loops[0])
        return;
    for (uint32_t i = 0; i < all->n; i++) {
        struct folder_watch *w = &all->v[i];
        w->ending = true;
        executor_timer_clear(gl->flow.executor, &w->timer);
        if (w->runs)
            folder_sync_cancel(&w->sync);
    }
    for (int i = 0; i < END_CHECKS && any_runs(all); i++) {
        const struct timespec ms = {0, 5000000};
        loop_flush(gl->loop);
        if (any_runs(all))
            nanosleep(&ms, NULL);
    }
}

void folder_watch_destroy(struct gw *gw)
{
    struct folder_watches *all = gw->folders;
    for (uint32_t i = 0; all && i < all->n; i++) {
        struct folder_watch *w = &all->v[i];
        folder_sync_fini(&w->sync);
        tree_watch_close(w->watch);
        mem_free(w->collection);
        mem_free(w->folder);
    }
    if (all)
        mem_free(all->v);
    mem_free(all);
    gw->folders = NULL;
}
