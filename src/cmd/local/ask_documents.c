/* ask_documents.c - see ask_documents.h. */
#include "cmd/local/ask_documents.h"

#include <limits.h>

#include "host/model_name.h"
#include "host/registry.h"

/* Opens the model that the vectors of a collection were made with. */
static int lend_model(struct ask_documents *d, struct local *l, const char *model,
                      const char *models, struct err *e)
{
    struct shoal_engine_opts eo = {.size = sizeof(eo)};
    struct shoal_engine **engine = &d->engines[d->n_engines];
    struct model_name name = {0};
    enum registry_state state;
    if (registry_state(l->flow.registry, model, &state))
        return 0; /* that of another collection */
    int rc = model_name_find(&name, models, model, e);
    eo.int8 = name.int8;
    if (rc == 0)
        rc = shoal_engine_open(engine, name.path, &eo, e);
    if (rc == 0) {
        d->n_engines++;
        rc = local_lend(l, model, NULL, *engine, e);
    }
    if (rc == 0)
        local_identify(l, model, name.path);
    model_name_fini(&name);
    return rc;
}

static int open_one(struct ask_documents *d, struct local *l, const char *name, const char *models,
                    struct err *e)
{
    struct collection_info info = {.model = ""};
    struct collection *c = NULL;
    int rc = collections_hold(d->collections, name, &c, e);
    if (rc == 0)
        rc = collection_info(c, &info, e);
    collections_release(d->collections, c);
    return rc < 0 ? rc : lend_model(d, l, info.model, models, e);
}

int ask_documents_open(struct ask_documents *d, struct local *l, const char *const *names, size_t n,
                       const char *models, struct err *e)
{
    char dir[PATH_MAX];
    *d = (struct ask_documents){.n_engines = 0};
    int rc = collections_default_dir(dir, sizeof(dir))
                 ? collections_open(&d->collections, dir, 0, e)
                 : 0;
    if (rc == 0)
        rc = documents_app_init(&d->app, l->flow.app, d->collections, names, (uint32_t)n, e);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = open_one(d, l, names[i], models, e);
    if (rc == 0)
        l->flow.app = &d->app.app;
    return rc;
}

void ask_documents_close(struct ask_documents *d)
{
    for (uint32_t i = 0; i < d->n_engines; i++)
        shoal_engine_close(d->engines[i]);
    collections_close(d->collections);
    *d = (struct ask_documents){.n_engines = 0};
}
