/* config_yaml.c - the YAML file: one table of keys, values with units, errors with their line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "gateway/config.h"

enum kind { KIND_BYTES, KIND_MS, KIND_U32, KIND_I32, KIND_NUM, KIND_BOOL, KIND_STR, KIND_CUSTOM };

struct reader {
    yaml_document_t *doc;
    const char *name;
    struct gw_config *config;
    struct err *e;
};

struct key {
    const char *name;
    enum kind kind;
    size_t offset; /* in the struct that is filled */
    int (*custom)(struct reader *r, yaml_node_t *v, const char *name);
};

#define SIZE_OF(a) (sizeof(a) / sizeof((a)[0]))
#define AT(member) offsetof(struct gw_config, member)

static int fail(struct reader *r, const yaml_node_t *at, const char *fmt, ...) SHOAL_PRINTF(3, 4);

static int fail(struct reader *r, const yaml_node_t *at, const char *fmt, ...)
{
    char msg[240];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    return err_set(r->e, SHOAL_EFORMAT, "%s:%zu: %s", r->name, at->start_mark.line + 1, msg);
}

static const char *scalar(const yaml_node_t *v)
{
    return v->type == YAML_SCALAR_NODE ? (const char *)v->data.scalar.value : NULL;
}

struct unit {
    const char *name;
    double factor;
};

static int read_number(struct reader *r, yaml_node_t *v, const char *key, const struct unit *units,
                       double max, double *out)
{
    const char *text = scalar(v);
    char *end = NULL;
    double d = text ? strtod(text, &end) : 0;
    if (!text || end == text)
        return fail(r, v, "%s must be a number, not '%.40s'", key, text ? text : "a list or map");
    while (*end == ' ')
        end++;
    const struct unit *u = units;
    while (u->name && strcmp(u->name, end) != 0)
        u++;
    if (!u->name)
        return fail(r, v, "%s: '%.20s' is not a unit here (known: %s, %s, %s)", key, end,
                    units[1].name ? units[1].name : "none", units[1].name ? units[2].name : "",
                    units[1].name ? units[3].name : "");
    d *= u->factor;
    if (!(d >= 0) || d > max)
        return fail(r, v, "%s is %.40s, it must be from 0 to %.15g", key, text, max);
    *out = d;
    return 0;
}

static int read_bool(struct reader *r, yaml_node_t *v, const char *key, bool *out)
{
    const char *text = scalar(v);
    if (text && (strcmp(text, "true") == 0 || strcmp(text, "yes") == 0))
        *out = true;
    else if (text && (strcmp(text, "false") == 0 || strcmp(text, "no") == 0))
        *out = false;
    else
        return fail(r, v, "%s must be true or false", key);
    return 0;
}

static int read_str(struct reader *r, yaml_node_t *v, const char *key, char **out)
{
    const char *text = scalar(v);
    if (!text)
        return fail(r, v, "%s must be a text", key);
    char *copy = mem_strdup(text);
    if (!copy)
        return err_set(r->e, SHOAL_ENOMEM, "configuration");
    mem_free(*out);
    *out = copy;
    return 0;
}

static int read_value(struct reader *r, const struct key *k, yaml_node_t *v, void *into)
{
    static const struct unit plain[] = {{"", 1}, {NULL, 0}};
    static const struct unit bytes[] = {{"", 1},         {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                        {"GiB", 0x1p30}, {"kB", 1e3},     {"MB", 1e6},
                                        {"GB", 1e9},     {NULL, 0}};
    static const struct unit times[] = {{"", 1},      {"ms", 1},      {"s", 1000},
                                        {"m", 60000}, {"h", 3600000}, {NULL, 0}};
    void *at = (char *)into + k->offset;
    double d = 0;
    int rc;
    switch (k->kind) {
    case KIND_BYTES:
        rc = read_number(r, v, k->name, bytes, 0x1p50, &d);
        *(size_t *)at = (size_t)d;
        return rc;
    case KIND_MS:
        rc = read_number(r, v, k->name, times, 2147483647.0, &d);
        *(uint32_t *)at = (uint32_t)d;
        return rc;
    case KIND_U32:
        rc = read_number(r, v, k->name, plain, 2147483647.0, &d);
        if (rc == 0 && d != floor(d))
            return fail(r, v, "%s must be a whole number", k->name);
        *(uint32_t *)at = (uint32_t)d;
        return rc;
    case KIND_I32: {
        const char *text = scalar(v);
        char *end = NULL;
        long n = text ? strtol(text, &end, 10) : 0;
        if (!text || end == text || *end || n < -1000 || n > 1000)
            return fail(r, v, "%s must be a whole number from -1000 to 1000", k->name);
        *(int32_t *)at = (int32_t)n;
        return 0;
    }
    case KIND_NUM:
        return read_number(r, v, k->name, plain, 1e9, at);
    case KIND_BOOL:
        return read_bool(r, v, k->name, at);
    case KIND_STR:
        return read_str(r, v, k->name, at);
    case KIND_CUSTOM:
        return k->custom(r, v, k->name);
    }
    return SHOAL_EINTERNAL;
}

static int unknown_key(struct reader *r, yaml_node_t *at, const char *typed,
                       const struct key *table, size_t n, const char *where)
{
    const char *names[40];
    size_t k = 0;
    for (; k < n && k < SIZE_OF(names) - 1; k++)
        names[k] = table[k].name;
    names[k] = NULL;
    const char *near = nearest_word(typed, names);
    if (near)
        return fail(r, at, "unknown key '%.40s'%s%s (did you mean '%s'?)", typed,
                    where[0] ? " in " : "", where, near);
    return fail(r, at, "unknown key '%.40s'%s%s", typed, where[0] ? " in " : "", where);
}

static int read_map(struct reader *r, yaml_node_t *map, const struct key *table, size_t n,
                    void *into, const char *where)
{
    uint64_t seen = 0;
    if (map->type != YAML_MAPPING_NODE)
        return fail(r, map, "%s must be a map of keys and values", where[0] ? where : "the file");
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        yaml_node_t *key = yaml_document_get_node(r->doc, p->key);
        yaml_node_t *value = yaml_document_get_node(r->doc, p->value);
        const char *name = key ? scalar(key) : NULL;
        if (!name || !value)
            return fail(r, map, "a key that is not a word");
        size_t i = 0;
        while (i < n && strcmp(table[i].name, name) != 0)
            i++;
        if (i == n)
            return unknown_key(r, key, name, table, n, where);
        if (seen >> i & 1)
            return fail(r, key, "'%s' is given twice", name);
        seen |= (uint64_t)1 << i;
        int rc = read_value(r, &table[i], value, into);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Calls fn for each item; a single value counts as a list of one. */
static int each_item(struct reader *r, yaml_node_t *list, const char *name,
                     int (*fn)(struct reader *r, yaml_node_t *v, const char *name))
{
    if (list->type != YAML_SEQUENCE_NODE)
        return fn(r, list, name);
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top;
         i++) {
        int rc = fn(r, yaml_document_get_node(r->doc, *i), name);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- lists ---- */

static int add_listen(struct reader *r, yaml_node_t *v, const char *name)
{
    const char *text = scalar(v);
    if (!text)
        return fail(r, v, "%s must hold addresses", name);
    return config_add_listen(r->config, text, r->e);
}

static int read_listen(struct reader *r, yaml_node_t *v, const char *name)
{
    return each_item(r, v, name, add_listen);
}

static int add_origin(struct reader *r, yaml_node_t *v, const char *name)
{
    struct gw_config *c = r->config;
    if (c->n_origins == CONFIG_MAX_ORIGINS)
        return fail(r, v, "%s has more than %u origins", name, CONFIG_MAX_ORIGINS);
    int rc = read_str(r, v, name, &c->origins[c->n_origins]);
    c->n_origins += rc == 0;
    return rc;
}

static int read_cors(struct reader *r, yaml_node_t *v, const char *name)
{
    return each_item(r, v, name, add_origin);
}

static int add_host(struct reader *r, yaml_node_t *v, const char *name)
{
    struct gw_config *c = r->config;
    if (c->n_hosts == CONFIG_MAX_HOSTS)
        return fail(r, v, "%s has more than %u names", name, CONFIG_MAX_HOSTS);
    int rc = read_str(r, v, name, &c->hosts[c->n_hosts]);
    c->n_hosts += rc == 0;
    return rc;
}

static int read_hosts(struct reader *r, yaml_node_t *v, const char *name)
{
    return each_item(r, v, name, add_host);
}

static int add_model_dir(struct reader *r, yaml_node_t *v, const char *name)
{
    struct gw_config *c = r->config;
    if (c->n_model_dirs == CONFIG_MAX_MODEL_DIRS)
        return fail(r, v, "%s has more than %u folders", name, CONFIG_MAX_MODEL_DIRS);
    int rc = read_str(r, v, name, &c->model_dirs[c->n_model_dirs]);
    c->n_model_dirs += rc == 0;
    return rc;
}

static int read_model_dirs(struct reader *r, yaml_node_t *v, const char *name)
{
    return each_item(r, v, name, add_model_dir);
}

struct model_keys {
    struct registry_spec spec;
    char *name, *path, *task, *labels, *kv;
    bool lazy;
};

static int add_model(struct reader *r, yaml_node_t *v, const char *name)
{
#define M(member) offsetof(struct model_keys, member)
    static const struct key table[] = {{"name", KIND_STR, M(name), NULL},
                                       {"path", KIND_STR, M(path), NULL},
                                       {"task", KIND_STR, M(task), NULL},
                                       {"labels", KIND_STR, M(labels), NULL},
                                       {"context", KIND_U32, M(spec.n_ctx), NULL},
                                       {"parallel", KIND_U32, M(spec.max_tasks), NULL},
                                       {"queue", KIND_U32, M(spec.max_queue), NULL},
                                       {"threads", KIND_U32, M(spec.n_threads), NULL},
                                       {"kv_bytes", KIND_BYTES, M(spec.kv_bytes), NULL},
                                       {"kv", KIND_STR, M(kv), NULL},
                                       {"lazy", KIND_BOOL, M(lazy), NULL},
                                       {"priority", KIND_I32, M(spec.priority), NULL}};
#undef M
    struct model_keys k = {.lazy = false};
    int rc = read_map(r, v, table, SIZE_OF(table), &k, name);
    if (rc == 0 && k.kv && strcmp(k.kv, "f16") != 0 && strcmp(k.kv, "q8") != 0)
        rc = fail(r, v, "kv must be f16 or q8");
    if (rc == 0 && (!k.path || !k.path[0] || !k.name || !k.name[0]))
        rc = fail(r, v, "a model needs a name and a path");
    if (rc == 0) {
        struct err inner = {0};
        k.spec.name = k.name;
        k.spec.path = k.path;
        k.spec.task = k.task;
        k.spec.labels = k.labels;
        k.spec.kv_q8 = k.kv && strcmp(k.kv, "q8") == 0;
        k.spec.pinned = !k.lazy;
        if (config_add_model(r->config, &k.spec, &inner) < 0)
            rc = fail(r, v, "%.200s", inner.msg);
    }
    mem_free(k.name);
    mem_free(k.path);
    mem_free(k.task);
    mem_free(k.labels);
    mem_free(k.kv);
    return rc;
}

static int read_models(struct reader *r, yaml_node_t *v, const char *name)
{
    return each_item(r, v, name, add_model);
}

struct key_keys {
    struct admission_key key;
    char *sha256;
};

static int add_key(struct reader *r, yaml_node_t *v, const char *name)
{
#define K(member) offsetof(struct key_keys, member)
    static const struct key table[] = {{"name", KIND_STR, K(key.name), NULL},
                                       {"sha256", KIND_STR, K(sha256), NULL},
                                       {"rate", KIND_NUM, K(key.rate), NULL},
                                       {"burst", KIND_NUM, K(key.burst), NULL},
                                       {"in_flight", KIND_U32, K(key.max_in_flight), NULL},
                                       {"admin", KIND_BOOL, K(key.admin), NULL},
                                       {"priority", KIND_I32, K(key.priority), NULL}};
#undef K
    struct gw_config *c = r->config;
    struct key_keys k = {.sha256 = NULL};
    int rc = read_map(r, v, table, SIZE_OF(table), &k, name);
    if (rc == 0 && (!k.key.name || !k.sha256 || strlen(k.sha256) != 64 ||
                    strspn(k.sha256, "0123456789abcdefABCDEF") != 64))
        rc = fail(r, v,
                  "a key needs a name and sha256, the 64 hex digits of its hash (printf %%s "
                  "KEY | sha256sum)");
    if (rc == 0 && c->n_keys == CONFIG_MAX_KEYS)
        rc = fail(r, v, "more than %u keys", CONFIG_MAX_KEYS);
    if (rc == 0) {
        memcpy(k.key.sha256, k.sha256, 65);
        if (k.key.rate > 0 && k.key.burst < 1)
            k.key.burst = k.key.rate > 1 ? k.key.rate : 1;
        c->keys[c->n_keys++] = k.key;
        k.key.name = NULL;
    }
    mem_free(k.key.name);
    mem_free(k.sha256);
    return rc;
}

static int read_keys(struct reader *r, yaml_node_t *v, const char *name)
{
    return each_item(r, v, name, add_key);
}

/* ---- maps ---- */

static int read_tls(struct reader *r, yaml_node_t *v, const char *name)
{
    static const struct key table[] = {{"cert", KIND_STR, AT(tls_cert), NULL},
                                       {"key", KIND_STR, AT(tls_key), NULL},
                                       {"client_ca", KIND_STR, AT(tls_client_ca), NULL}};
    int rc = read_map(r, v, table, SIZE_OF(table), r->config, name);
    if (rc == 0 && (!r->config->tls_cert || !r->config->tls_key))
        rc = fail(r, v, "tls needs cert and key");
    return rc;
}

static int read_limits(struct reader *r, yaml_node_t *v, const char *name)
{
    static const struct key table[] = {{"body", KIND_BYTES, AT(limits.max_body_bytes), NULL},
                                       {"headers", KIND_BYTES, AT(limits.max_header_bytes), NULL},
                                       {"connections", KIND_U32, AT(limits.max_conns), NULL},
                                       {"streams", KIND_U32, AT(limits.max_streams), NULL},
                                       {"in_flight", KIND_U32, AT(max_in_flight), NULL},
                                       {"request_timeout", KIND_MS, AT(limits.request_ms), NULL},
                                       {"idle_timeout", KIND_MS, AT(limits.idle_ms), NULL},
                                       {"write_timeout", KIND_MS, AT(limits.write_ms), NULL}};
    return read_map(r, v, table, SIZE_OF(table), r->config, name);
}

static int read_deadline(struct reader *r, yaml_node_t *v, const char *name)
{
    static const struct key table[] = {{"default", KIND_MS, AT(default_deadline_ms), NULL},
                                       {"max", KIND_MS, AT(max_deadline_ms), NULL}};
    return read_map(r, v, table, SIZE_OF(table), r->config, name);
}

static int read_cache(struct reader *r, yaml_node_t *v, const char *name)
{
    static const struct key table[] = {{"bytes", KIND_BYTES, AT(cache_bytes), NULL},
                                       {"ttl", KIND_MS, AT(cache_ttl_ms), NULL},
                                       {"weights_dir", KIND_STR, AT(cache_dir), NULL}};
    return read_map(r, v, table, SIZE_OF(table), r->config, name);
}

static const struct key top[] = {{"listen", KIND_CUSTOM, 0, read_listen},
                                 {"threads", KIND_U32, AT(threads), NULL},
                                 {"tls", KIND_CUSTOM, 0, read_tls},
                                 {"models", KIND_CUSTOM, 0, read_models},
                                 {"model_dirs", KIND_CUSTOM, 0, read_model_dirs},
                                 {"table", KIND_STR, AT(table), NULL},
                                 {"memory", KIND_BYTES, AT(memory_bytes), NULL},
                                 {"idle_unload", KIND_MS, AT(idle_unload_ms), NULL},
                                 {"load_wait", KIND_MS, AT(load_wait_ms), NULL},
                                 {"keys", KIND_CUSTOM, 0, read_keys},
                                 {"cors", KIND_CUSTOM, 0, read_cors},
                                 {"hosts", KIND_CUSTOM, 0, read_hosts},
                                 {"limits", KIND_CUSTOM, 0, read_limits},
                                 {"deadline", KIND_CUSTOM, 0, read_deadline},
                                 {"drain", KIND_MS, AT(drain_ms), NULL},
                                 {"cache", KIND_CUSTOM, 0, read_cache},
                                 {"log_requests", KIND_BOOL, AT(log_requests), NULL}};

int config_parse(struct gw_config *c, const char *text, size_t n, const char *name, struct err *e)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    struct reader r = {&doc, name, c, e};
    if (!yaml_parser_initialize(&parser))
        return err_set(e, SHOAL_ENOMEM, "configuration");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    int rc;
    if (!yaml_parser_load(&parser, &doc)) {
        rc = err_set(e, parser.error == YAML_MEMORY_ERROR ? SHOAL_ENOMEM : SHOAL_EFORMAT,
                     "%s:%zu: %s", name, parser.problem_mark.line + 1,
                     parser.problem ? parser.problem : "not YAML");
    } else {
        yaml_node_t *root = yaml_document_get_root_node(&doc);
        rc = root ? read_map(&r, root, top, SIZE_OF(top), c, "") : 0;
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    return rc;
}
