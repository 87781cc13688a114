/* stored.c - see stored.h. */
#include "cmd/local/stored.h"

#include <signal.h>
#include <stdio.h>

#include "depot/store/model_refs.h"
#include "depot/store/model_store.h"
#include "engine/cache_dir.h"

_Atomic bool stored_stop;

static void on_signal(int sig)
{
    (void)sig;
    stored_stop = true;
}

struct model_store *stored_open(const struct opts *o, uint64_t max_bytes)
{
    char dir[512];
    const struct model_store_opts so = {.dir = opts_text(o, "store"),
                                        .max_bytes = max_bytes,
                                        .memo_dir = cache_dir_default(dir, sizeof(dir))};
    struct model_store *s = NULL;
    struct err e = {0};
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (model_store_open(&s, &so, &e) < 0)
        (void)cmd_fail(o->page, "%s", e.msg);
    return s;
}

int stored_main(const struct opts_page *page, int argc, const char *const *argv,
                int (*run)(const struct opts *o, struct model_store *s))
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    struct model_store *s = stored_open(&o, 0);
    rc = s ? run(&o, s) : CMD_FAILED;
    model_store_close(s);
    opts_fini(&o);
    return rc;
}

int stored_fail(const struct opts *o, const struct err *e)
{
    (void)cmd_fail(o->page, "%s", e->msg);
    return e->code == SHOAL_ECANCELLED ? CMD_INTERRUPTED : CMD_FAILED;
}

int stored_path(const char *name, char path[PATH_MAX], struct err *e)
{
    const struct model_store_opts so = {.dir = NULL};
    const struct model_ref *ref = NULL;
    struct model_refs *refs = NULL;
    struct model_store *s = NULL;
    int rc = model_store_open(&s, &so, e);
    if (rc == 0)
        rc = model_refs_open(&refs, model_store_dir(s), e);
    if (rc == 0)
        rc = model_refs_get(refs, name, &ref, e);
    if (rc == 0 && ref->stored)
        rc = model_store_find(s, ref->sha256, path, e);
    else if (rc == 0)
        snprintf(path, PATH_MAX, "%s", ref->path);
    model_refs_close(refs);
    model_store_close(s);
    return rc;
}
