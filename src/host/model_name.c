/* model_name.c - see model_name.h. */
#include "host/model_name.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/pack.h"

static int from_pack(struct model_name *m, const struct pack *p, const char *name, struct err *e)
{
    char names[256];
    const struct pack_model *found = pack_find(p, name);
    if (!found) {
        pack_names(p, names, sizeof(names));
        return err_set(e, SHOAL_ENOTFOUND, "%s is neither a file nor one of the models in %s: %s",
                       name, p->dir, names);
    }
    int rc = pack_verify(found, e);
    if (rc < 0)
        return rc;
    m->path = mem_strdup(found->open);
    m->int8 = found->int8;
    m->labels = found->labels ? mem_strdup(found->labels) : NULL;
    return m->path && (m->labels || !found->labels)
               ? 0
               : err_set(e, SHOAL_ENOMEM, "out of memory for the model name");
}

int model_name_find(struct model_name *m, const char *dir, const char *name, struct err *e)
{
    struct pack *p;
    *m = (struct model_name){0};
    /* Treat it as a path even if nothing is there: opening it then reports the error. */
    if (access(name, F_OK) == 0 || strchr(name, '/') || strchr(name, '.')) {
        m->path = mem_strdup(name);
        return m->path ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for the model name");
    }
    int rc = pack_open(&p, dir, e);
    if (rc < 0)
        return rc == SHOAL_ENOTFOUND ? err_wrap(e, "%s is not a file", name) : rc;
    rc = from_pack(m, p, name, e);
    pack_close(p);
    if (rc < 0)
        model_name_fini(m);
    return rc;
}

int model_name_included(struct model_name *m, const char *name, struct err *e)
{
    struct pack *p;
    *m = (struct model_name){0};
    int rc = pack_open(&p, NULL, e);
    if (rc < 0)
        return rc == SHOAL_ENOTFOUND ? err_wrap(e, "no model given (use -m MODEL)") : rc;
    rc = pack_find(p, name)
             ? from_pack(m, p, name, e)
             : err_set(e, SHOAL_ENOTFOUND, "no model given, and %s has none named %s: use -m MODEL",
                       p->dir, name);
    pack_close(p);
    if (rc < 0)
        model_name_fini(m);
    return rc;
}

void model_name_fini(struct model_name *m)
{
    mem_free(m->path);
    mem_free(m->labels);
    *m = (struct model_name){0};
}
