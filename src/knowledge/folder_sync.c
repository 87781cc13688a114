/* folder_sync.c - see folder_sync.h. */
#include "knowledge/folder_sync.h"

#include <string.h>

#include "base/file/file_read.h"

#define PAGE 1000u
#define MAX_NAMES_BYTES ((size_t)64 << 20)

static void next(struct folder_sync *x);

static void finish(struct folder_sync *x, const struct failure *f)
{
    buf_fini(&x->bytes);
    x->done(x, f);
}

static void fail(struct folder_sync *x, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    finish(x, &f);
}

static void offload(struct folder_sync *x, void (*work)(void *), void (*then)(void *))
{
    x->offload = (struct offload){.work = work, .then = then, .ctx = x};
    if (x->cancelled)
        fail(x, SHOAL_ECANCELLED, "cancelled");
    else if (offload_run(&x->offload, x->owner) < 0)
        fail(x, SHOAL_EBUSY, "too much work is waiting: try again later");
}

/* ---- what is gone ---- */

/* Removes documents of the folder that are no files any more. */
static int remove_page(struct folder_sync *x, struct collection *c, const char *prefix,
                       const char **after, uint32_t *n)
{
    const char **names;
    int rc = collection_docs(c, *after, PAGE, &x->gone, &names, n, &x->error);
    for (uint32_t i = 0; i < *n && rc == 0; i++) {
        *after = names[i];
        if (strncmp(names[i], prefix, strlen(prefix)) != 0) {
            *n = 0; /* they are in order: no more of ours */
            break;
        }
        if (doc_folder_find(&x->now, names[i]))
            continue;
        rc = collection_remove(c, names[i], &x->error);
        if (rc == 0)
            x->names[x->n_removed++] = names[i];
        else if (rc == SHOAL_ENOTFOUND)
            rc = 0;
    }
    return rc;
}

static void remove_gone(void *ctx)
{
    struct folder_sync *x = ctx;
    struct collection *c = NULL;
    struct collection_info info = {.n_docs = 0};
    uint32_t n = 1;
    const char *prefix = arena_printf(&x->gone, "%s/", x->folder), *after = prefix;
    x->rc = collections_hold(x->collections, x->collection, &c, &x->error);
    if (x->rc == 0)
        x->rc = collection_info(c, &info, &x->error);
    x->names = arena_zalloc_n(&x->gone, info.n_docs + 1, sizeof(*x->names));
    if (x->rc == 0 && x->gone.rc < 0)
        x->rc = err_set(&x->error, x->gone.rc, "out of memory for the names of documents");
    while (x->rc == 0 && n > 0)
        x->rc = remove_page(x, c, prefix, &after, &n);
    collections_release(x->collections, c);
}

static void on_gone(void *ctx)
{
    struct folder_sync *x = ctx;
    for (uint32_t i = 0; i < x->n_removed && x->removed; i++)
        x->removed(x, x->names[i]);
    doc_folder_fini(&x->last);
    x->last = x->now;
    doc_folder_init(&x->now);
    if (x->rc < 0)
        fail(x, x->rc, x->error.msg);
    else
        finish(x, NULL);
}

/* ---- files ---- */

static void after_file(struct folder_sync *x, const struct failure *f)
{
    const struct ingest *i = &x->ingest;
    x->n_tokens += i->n_tokens;
    if (f) {
        x->n_failed++;
        /* A file that could be read later must look changed in the next run. */
        if (f->code == SHOAL_EBUSY || f->code == SHOAL_ENOMEM || f->code == SHOAL_EIO)
            x->now.v[x->at].changed_ns = -1;
    } else {
        x->n_added += !i->unchanged;
        x->n_unchanged += i->unchanged;
        x->n_chunks += i->n_chunks;
    }
    if (x->file)
        x->file(x, i, f);
    x->at++;
    next(x);
}

static void on_added(struct ingest *i, const struct failure *f)
{
    struct folder_sync *x = EXECUTOR_OF(i, struct folder_sync, ingest);
    buf_clear(&x->bytes);
    if (x->cancelled)
        fail(x, SHOAL_ECANCELLED, "cancelled");
    else
        after_file(x, f);
}

static void on_progress(struct ingest *i, uint32_t n, uint32_t all)
{
    struct folder_sync *x = EXECUTOR_OF(i, struct folder_sync, ingest);
    if (x->progress)
        x->progress(x, x->at, x->now.n, (double)n / all, i->name);
}

static void read_file(void *ctx)
{
    struct folder_sync *x = ctx;
    x->error = (struct err){.code = 0};
    x->rc = file_read(x->now.v[x->at].path, &x->bytes, &x->error);
}

static void on_read(void *ctx)
{
    struct folder_sync *x = ctx;
    const char *path = x->now.v[x->at].path;
    x->ingest = (struct ingest){.owner = x->owner,
                                .who = x->who,
                                .collections = x->collections,
                                .collection = x->collection,
                                .name = path,
                                .format = doc_format_of(path),
                                .bytes = buf_str(&x->bytes),
                                .n_bytes = x->bytes.len,
                                .max_chunks = x->max_chunks,
                                .done = on_added,
                                .progress = on_progress};
    if (x->cancelled) {
        fail(x, SHOAL_ECANCELLED, "cancelled");
        return;
    }
    if (x->rc < 0) {
        struct failure f;
        failure_of(&f, x->rc, x->error.msg);
        buf_clear(&x->bytes);
        after_file(x, &f);
        return;
    }
    ingest_run(&x->ingest);
}

static bool is_as_before(const struct folder_sync *x, const struct doc_folder_file *f)
{
    const struct doc_folder_file *was = doc_folder_find(&x->last, f->path);
    return was && was->n_bytes == f->n_bytes && was->changed_ns == f->changed_ns;
}

static void next(struct folder_sync *x)
{
    for (; x->at < x->now.n && is_as_before(x, &x->now.v[x->at]); x->at++)
        x->n_unchanged++;
    if (x->at == x->now.n) {
        offload(x, remove_gone, on_gone);
        return;
    }
    if (x->progress)
        x->progress(x, x->at, x->now.n, 0, x->now.v[x->at].path);
    offload(x, read_file, on_read);
}

static void list_it(void *ctx)
{
    struct folder_sync *x = ctx;
    x->rc = doc_folder_read(&x->now, x->folder, &x->error);
}

static void on_listed(void *ctx)
{
    struct folder_sync *x = ctx;
    if (x->rc < 0)
        fail(x, x->rc, x->error.msg);
    else
        next(x);
}

void folder_sync_run(struct folder_sync *x)
{
    if (!x->opened) {
        doc_folder_init(&x->last);
        x->opened = true;
    } else {
        doc_folder_fini(&x->now);
        arena_fini(&x->gone);
    }
    doc_folder_init(&x->now);
    arena_init(&x->gone, MAX_NAMES_BYTES);
    buf_init(&x->bytes, DOC_MAX_BYTES);
    x->at = x->n_added = x->n_unchanged = x->n_removed = x->n_failed = 0;
    x->n_chunks = x->n_tokens = 0;
    x->names = NULL;
    offload(x, list_it, on_listed);
}

void folder_sync_cancel(struct folder_sync *x)
{
    x->cancelled = true;
    ingest_cancel(&x->ingest);
}

void folder_sync_fini(struct folder_sync *x)
{
    if (!x->opened)
        return;
    doc_folder_fini(&x->now);
    doc_folder_fini(&x->last);
    arena_fini(&x->gone);
    x->opened = false;
}
