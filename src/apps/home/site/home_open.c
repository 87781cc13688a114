/* home_open.c - see home_open.h. */
#include "apps/home/site/home_open.h"

#include "apps/home/site/home_file_read.h"
#include "host/pack.h"

#define DEMO "demo-home" /* its name in the manifest */

int home_open_file(struct home_file **out, const struct home_table *t,
                   const struct home_open_opts *o, struct err *e)
{
    struct pack *pack = NULL;
    *out = NULL;
    if (o->path)
        return home_file_read_path(out, t, o->path, e);
    int rc = pack_open(&pack, o->models, e);
    const struct pack_table *demo = rc == 0 ? pack_find_table(pack, DEMO) : NULL;
    if (rc == 0 && !demo)
        rc = err_set(e, SHOAL_ENOTFOUND, "%s has no demo home", pack->dir);
    if (rc == 0)
        rc = pack_verify_table(demo, e);
    if (rc == 0)
        rc = home_file_read_path(out, t, demo->file.path, e);
    pack_close(pack);
    return rc;
}

int home_open(struct home_things **out, const struct home_table *t, const struct home_open_opts *o,
              struct err *e)
{
    struct home_file *f;
    *out = NULL;
    int rc = home_open_file(&f, t, o, e);
    if (rc == 0)
        rc = home_things_create(out, f, o->state_path, e);
    home_file_unref(f);
    return rc;
}
