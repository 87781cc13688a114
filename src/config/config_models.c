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
    copy.key_file = spec->key_file ? mem_strdup(spec->key_file) : NULL;
    copy.base = spec->base ? mem_strdup(spec->base) : NULL;
    c->models[c->n_models++] = copy; /* unref frees it, whole or not */
    int rc = config_routes_meet(&c->router, spec->name, e);
    if (rc < 0)
        return rc;
    if (!copy.name || !copy.path || !copy.task || (spec->labels && !copy.labels) ||
        (spec->card && !copy.card) || (spec->pack && !copy.pack) || (spec->base && !copy.base) ||
        (spec->key_file && !copy.key_file))
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

int config_add_adapter(struct config *c, const char *base, const char *name, const char *path,
                       double scale, struct err *e)
{
    char full[128];
    const struct registry_spec *of = NULL;
    for (uint32_t i = 0; i < c->n_models && !of; i++)
        if (strcmp(c->models[i].name, base) == 0)
            of = &c->models[i];
    if (!of)
        return err_set(e, SHOAL_EINVAL,
                       "the adapter '%.64s' is for the model '%.64s', which is not "
                       "configured here",
                       name, base);
    if (!name[0] || strchr(name, ':') || strchr(name, '/'))
        return err_set(e, SHOAL_EINVAL,
                       "'%.64s' cannot name an adapter: expected a word without "
                       "colons and slashes",
                       name);
    if ((size_t)snprintf(full, sizeof(full), "%s:%s", base, name) >= sizeof(full))
        return err_set(e, SHOAL_EINVAL, "the name %.64s:%.64s is too long", base, name);
    if (of->apart || of->shard[0])
        return err_set(e, SHOAL_EINVAL, "%.64s: adapters do not work with %s", base,
                       of->apart ? "isolation: process" : "shard");
    const struct registry_spec spec = {.name = full,
                                       .path = path,
                                       .task = "generate",
                                       .base = base,
                                       .adapter_scale = scale,
                                       .pinned = of->pinned};
    return config_add_model(c, &spec, e);
}

int config_add_adapter_arg(struct config *c, const char *arg, struct err *e)
{
    char left[128], *name;
    const char *eq = strchr(arg, '=');
    if (!eq || eq == arg || !eq[1] || (size_t)(eq - arg) >= sizeof(left))
        return err_set(e, SHOAL_EINVAL, "%s: expected NAME=PATH or MODEL:NAME=PATH", arg);
    snprintf(left, sizeof(left), "%.*s", (int)(eq - arg), arg);
    name = strrchr(left, ':');
    if (name)
        *name++ = '\0';
    if (!name && c->n_models == 0)
        return err_set(e, SHOAL_EINVAL,
                       "%s: no model is named to which it belongs: use -m MODEL=PATH, or "
                       "MODEL:NAME=PATH for one of the file",
                       arg);
    return config_add_adapter(c, name ? left : c->models[0].name, name ? name : left, eq + 1, 1.0,
                              e);
}
