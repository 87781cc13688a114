/* config_models.c - adds models to a configuration, for the file's table and for flags; see
 * config.h. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "config/config.h"
#include "config/config_routes.h"

int config_add_model_dir(struct config *c, const char *folder, struct err *e)
{
    if (c->model_dirs.n == CONFIG_MAX_MODEL_DIRS)
        return err_set(e, SHOAL_ELIMIT, "more than %u folders of models", CONFIG_MAX_MODEL_DIRS);
    return yaml_in_strs_add(&c->model_dirs, &folder, 1, e);
}

int config_add_model(struct config *c, const struct registry_spec *spec, struct err *e)
{
    if (!spec->name || !spec->name[0] || !spec->path || !spec->path[0])
        return err_set(e, SHOAL_EINVAL, "a model needs a name and a path");
    for (uint32_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, spec->name) == 0)
            return err_set(e, SHOAL_EINVAL, "two models are named %s", spec->name);
    if (c->n_models == CONFIG_MAX_MODELS)
        return err_set(e, SHOAL_ELIMIT, "more than %u models", CONFIG_MAX_MODELS);
    struct registry_spec copy = *spec;
    copy.name = mem_strdup(spec->name);
    copy.path = mem_strdup(spec->path);
    copy.task = mem_strdup(spec->task ? spec->task : "");
    copy.labels = spec->labels ? mem_strdup(spec->labels) : NULL;
    copy.card = spec->card ? mem_strdup(spec->card) : NULL;
    copy.pack = spec->pack ? mem_strdup(spec->pack) : NULL;
    c->models[c->n_models++] = copy; /* unref frees it, whole or not */
    int rc = config_routes_meet(&c->router, spec->name, e);
    if (rc < 0)
        return rc;
    if (!copy.name || !copy.path || !copy.task || (spec->labels && !copy.labels) ||
        (spec->card && !copy.card) || (spec->pack && !copy.pack))
        return err_set(e, SHOAL_ENOMEM, "configuration");
    return 0;
}

int config_add_model_arg(struct config *c, const char *arg, struct err *e)
{
    char name[128];
    const char *eq = strchr(arg, '='), *slash = strrchr(arg, '/');
    /* a path may contain '=' too, after a slash */
    bool named = eq && (!strchr(arg, '/') || eq < strchr(arg, '/'));
    const char *from = named ? arg : slash ? slash + 1 : arg;
    const char *end = named ? eq : strrchr(from, '.') ? strrchr(from, '.') : from + strlen(from);
    if (end == from || (size_t)(end - from) >= sizeof(name))
        return err_set(e, SHOAL_EINVAL, "%s: expected NAME=PATH", arg);
    snprintf(name, sizeof(name), "%.*s", (int)(end - from), from);
    struct registry_spec spec = {.name = name, .path = named ? eq + 1 : arg, .pinned = true};
    return config_add_model(c, &spec, e);
}
