/* config.c - see config.h: defaults, flags, models.json. */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_open.h"
#include "base/mem.h"
#include "config/config_routes.h"
#include "config/config_where.h"
#include "depot/place_kind.h"
#include "host/pack.h"

#define MAX_FILE_BYTES ((size_t)4 << 20)
#define MAX_CARD_BYTES ((size_t)256 << 10)

int config_create(struct config **out, struct err *e)
{
    struct config *c = mem_zalloc(sizeof(*c));
    *out = NULL;
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "configuration");
    atomic_init(&c->refs, 1);
    c->limits = http_default_limits; /* some have no key */
    int rc = config_read_defaults(c, e);
    if (rc < 0) {
        config_unref(c);
        return rc;
    }
    *out = c;
    return 0;
}

struct config *config_ref(struct config *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void config_unref(struct config *c)
{
    /* acq_rel: the thread that frees sees the writes of the others */
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < c->n_keys; i++)
        mem_free(c->keys[i].name);
    for (uint32_t i = 0; i < c->n_models; i++) {
        mem_free((char *)(uintptr_t)c->models[i].name);
        mem_free((char *)(uintptr_t)c->models[i].path);
        mem_free((char *)(uintptr_t)c->models[i].task);
        mem_free((char *)(uintptr_t)c->models[i].labels);
        mem_free((char *)(uintptr_t)c->models[i].card);
        mem_free((char *)(uintptr_t)c->models[i].pack);
        mem_free((char *)(uintptr_t)c->models[i].base);
        mem_free((char *)(uintptr_t)c->models[i].key_file);
    }
    router_table_fini(&c->router);
    config_things_fini(&c->things);
    config_modbus_fini(&c->modbus);
    config_deeds_fini(&c->deeds);
    config_flows_fini(&c->flows);
    config_webhooks_fini(&c->webhooks);
    config_trust_fini(&c->trust);
    config_settings_fini(&c->set);
    mem_free(c->file);
    config_read_free(c);
    mem_free(c);
}

void config_clear_listen(struct config *c)
{
    yaml_in_strs_fini(&c->listen);
}

int config_add_listen(struct config *c, const char *address, struct err *e)
{
    if (c->listen.n == CONFIG_MAX_LISTEN)
        return err_set(e, SHOAL_ELIMIT, "more than %u addresses to listen on", CONFIG_MAX_LISTEN);
    return yaml_in_strs_add(&c->listen, &address, 1, e);
}

/* The folder that path is in, as written. */
static bool folder_of(const char *path, char out[PATH_MAX])
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n >= PATH_MAX)
        return false;
    snprintf(out, PATH_MAX, "%.*s", n > 0 ? (int)n : 1, n > 0 ? path : ".");
    return true;
}

/* Whether path, which is resolved, is in dir, which is not. */
static bool is_inside(const char *path, const char *dir)
{
    char real[PATH_MAX];
    if (!realpath(dir, real))
        return false;
    size_t n = strcmp(real, "/") == 0 ? 0 : strlen(real);
    return strncmp(path, real, n) == 0 && path[n] == '/';
}

/* As realpath, for a file that may not exist yet in a folder that does. */
static bool resolve(const char *path, char out[PATH_MAX])
{
    char folder[PATH_MAX], real[PATH_MAX];
    if (realpath(path, out))
        return true;
    if (errno != ENOENT || !folder_of(path, folder) || !realpath(folder, real))
        return false;
    struct stat st;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || lstat(path, &st) == 0)
        return false; /* lstat: a symbolic link to nowhere */
    return snprintf(out, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < PATH_MAX;
}

int config_confine(const struct config *c, const char *path, char **resolved, struct err *e)
{
    char real[PATH_MAX], folder[PATH_MAX];
    bool inside = false;
    *resolved = NULL;
    if (resolve(path, real)) {
        for (uint32_t i = 0; i < c->model_dirs.n; i++)
            inside |= is_inside(real, c->model_dirs.v[i]);
        for (uint32_t i = 0; c->model_dirs.n == 0 && !inside && i < c->n_models; i++)
            inside = (folder_of(c->models[i].path, folder) && is_inside(real, folder)) ||
                     (c->models[i].pack && is_inside(real, c->models[i].pack));
    }
    if (!inside)
        return err_set(e, SHOAL_EINVAL,
                       "%.300s is not in a folder that models may be added from: add its folder to "
                       "'model_dirs' in the configuration",
                       path);
    *resolved = mem_strdup(real);
    return *resolved ? 0 : err_set(e, SHOAL_ENOMEM, "path of a model");
}

static int read_file(const char *path, struct buf *out, struct err *e)
{
    char block[16384];
    int fd = file_open_regular(path, NULL), rc = 0;
    if (fd < 0)
        return err_set(e, errno == ENOENT ? SHOAL_ENOTFOUND : SHOAL_EIO, "cannot open %s: %s", path,
                       file_open_reason(errno));
    for (;;) {
        ssize_t n = read(fd, block, sizeof(block));
        if (n < 0)
            rc = err_set(e, SHOAL_EIO, "cannot read %s: %s", path, strerror(errno));
        if (n <= 0)
            break;
        buf_put(out, block, (size_t)n);
    }
    close(fd);
    if (rc == 0 && out->rc < 0)
        rc = err_set(e, out->rc, "%s: %s", path, err_text(out->rc));
    return rc;
}

static int add_pack_model(struct config *c, const struct pack *p, const struct pack_model *m,
                          bool pinned, struct err *e)
{
    struct buf card;
    struct err none = {0};
    buf_init(&card, MAX_CARD_BYTES);
    bool has_card = m->card && read_file(m->card, &card, &none) == 0; /* the card is optional */
    struct registry_spec spec = {.name = m->name,
                                 .path = m->open,
                                 .task = m->task,
                                 .labels = m->labels,
                                 .card = has_card ? buf_str(&card) : NULL,
                                 .pack = p->dir,
                                 .int8 = m->int8,
                                 /* draft models are loaded on first use */
                                 .pinned = pinned && strstr(m->name, "-draft") == NULL};
    int rc = config_add_model(c, &spec, e);
    buf_fini(&card);
    return rc;
}

static bool has_model(const struct config *c, const char *name)
{
    for (uint32_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, name) == 0)
            return true;
    return false;
}

int config_add_pack(struct config *c, const char *folder, bool pinned, struct err *e)
{
    struct pack *p = NULL;
    int rc = pack_open(&p, folder, e);
    for (uint32_t i = 0; rc == 0 && i < p->n_models; i++)
        if (!has_model(c, p->models[i].name))
            rc = add_pack_model(c, p, &p->models[i], pinned, e);
    pack_close(p);
    return rc;
}

/* HOST:PORT or HOST:PORT/DB. */
static bool is_redis_place(const char *p)
{
    const char *colon = strrchr(p, ':');
    const size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    if (!colon || colon == p || digits == 0)
        return false;
    p = colon + 1 + digits;
    return *p == '\0' || (*p == '/' && p[1] && p[1 + strspn(p + 1, "0123456789")] == '\0');
}

static int check_sessions(const struct config *c, const struct config_where *w)
{
    const char *p = c->sessions_store;
    if (!p || strcmp(p, "off") == 0 || (strncmp(p, "sqlite:", 7) == 0 && p[7]) ||
        (strncmp(p, "redis://", 8) == 0 && is_redis_place(p + 8)))
        return 0;
    return config_where_fail(w, "sessions.store", NULL,
                             "'%.100s' is not a session store: use sqlite:PATH, redis://HOST:PORT, "
                             "redis://HOST:PORT/DB, or off",
                             p);
}

int config_parse(struct config *c, const char *text, size_t n, const char *name, struct err *e)
{
    const struct config_where at = {name, &c->set, e};
    int rc = config_read(c, &c->set, text, n, name, e);
    if (rc == 0)
        rc = config_routes_finish(&c->router, &c->privacy, &at);
    if (rc == 0)
        rc = config_deeds_finish(&c->deeds, &c->modbus, &at);
    if (rc == 0)
        rc = config_modbus_finish(&c->modbus, &c->things, &at);
    if (rc == 0)
        rc = config_flows_finish(&c->flows, &c->router, &at);
    if (rc == 0)
        rc = config_webhooks_finish(&c->webhooks, &at);
    if (rc == 0)
        rc = check_sessions(c, &at);
    if (rc == 0)
        rc = config_tracing_check(&c->tracing, &c->set, name, e);
    for (uint32_t i = 0; rc == 0 && i < c->store_sources.n; i++)
        if (place_kind_find(c->store_sources.v[i]) < 0 &&
            strcmp(c->store_sources.v[i], "none") != 0)
            rc = config_where_fail(
                &at, "store.sources", NULL,
                "store.sources has '%.40s': use recipes, hub, oci, url, path or none",
                c->store_sources.v[i]);
    if (rc == 0 && !c->tls_cert != !c->tls_key)
        rc = config_where_fail(&at, c->tls_cert ? "tls.cert" : "tls.key", NULL,
                               "tls needs cert and key");
    return rc;
}

unsigned config_store_sources(const struct config *c)
{
    unsigned bits = 0;
    for (uint32_t i = 0; i < c->store_sources.n; i++) {
        int kind = place_kind_find(c->store_sources.v[i]);
        bits |= 1u << (kind < 0 ? PLACE_KIND_N : kind); /* none: a bit that no place has */
    }
    return bits ? bits : 1u << PLACE_KIND_RECIPE | 1u << PLACE_KIND_HUB;
}

int config_load(struct config *c, const char *path, struct err *e)
{
    struct buf text;
    buf_init(&text, MAX_FILE_BYTES);
    int rc = read_file(path, &text, e);
    mem_free(c->file);
    if (!(c->file = mem_strdup(path)) && rc == 0)
        rc = err_set(e, SHOAL_ENOMEM, "configuration");
    if (rc == 0)
        rc = config_parse(c, buf_str(&text), text.len, path, e);
    buf_fini(&text);
    return rc;
}
