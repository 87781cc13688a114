/* config_yaml.c - the YAML file of shoal serve: the table of its keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gateway/config.h"
#include "wire/yaml_in.h"

#define SIZE_OF(a) (sizeof(a) / sizeof((a)[0]))
#define AT(member) offsetof(struct gw_config, member)

/* ---- lists ---- */

static int add_listen(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    const char *text = yaml_in_scalar(v);
    if (!text)
        return yaml_in_fail(r, v, "%s must hold addresses", name);
    return config_add_listen(r->ctx, text, r->e);
}

static int read_listen(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_listen);
}

static int add_origin(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    struct gw_config *c = r->ctx;
    if (c->n_origins == CONFIG_MAX_ORIGINS)
        return yaml_in_fail(r, v, "%s has more than %u origins", name, CONFIG_MAX_ORIGINS);
    int rc = yaml_in_str(r, v, name, &c->origins[c->n_origins]);
    c->n_origins += rc == 0;
    return rc;
}

static int read_cors(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_origin);
}

static int add_host(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    struct gw_config *c = r->ctx;
    if (c->n_hosts == CONFIG_MAX_HOSTS)
        return yaml_in_fail(r, v, "%s has more than %u names", name, CONFIG_MAX_HOSTS);
    int rc = yaml_in_str(r, v, name, &c->hosts[c->n_hosts]);
    c->n_hosts += rc == 0;
    return rc;
}

static int read_hosts(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_host);
}

static int add_model_dir(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    struct gw_config *c = r->ctx;
    if (c->n_model_dirs == CONFIG_MAX_MODEL_DIRS)
        return yaml_in_fail(r, v, "%s has more than %u folders", name, CONFIG_MAX_MODEL_DIRS);
    int rc = yaml_in_str(r, v, name, &c->model_dirs[c->n_model_dirs]);
    c->n_model_dirs += rc == 0;
    return rc;
}

static int read_model_dirs(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_model_dir);
}

struct model_keys {
    struct registry_spec spec;
    char *name, *path, *task, *labels, *kv, *isolation, *cpus;
    uint32_t nice;
    bool lazy;
};

/* "0-3,6" to bits; false: it is not such a list. */
static bool read_cpus(const char *text, uint64_t *bits, size_t n_bits)
{
    const char *p = text;
    while (*p) {
        char *end;
        unsigned long from = strtoul(p, &end, 10), to = from;
        if (end == p || *p < '0' || *p > '9')
            return false;
        if (*end == '-') {
            p = end + 1;
            to = strtoul(p, &end, 10);
            if (end == p || *p < '0' || *p > '9')
                return false;
        }
        if (to < from || to >= n_bits || (*end && (*end != ',' || !end[1])))
            return false;
        for (unsigned long i = from; i <= to; i++)
            bits[i / 64] |= 1ull << (i % 64);
        p = *end ? end + 1 : end;
    }
    return p != text;
}

/* The keys of a model that runs in a process of its own. */
static int check_isolation(struct yaml_in *r, yaml_node_t *v, struct model_keys *k)
{
    struct registry_apart_opts *o = &k->spec.apart_opts;
    if (k->isolation && strcmp(k->isolation, "none") != 0 && strcmp(k->isolation, "process") != 0)
        return yaml_in_fail(r, v, "isolation must be none or process");
    k->spec.apart = k->isolation && strcmp(k->isolation, "process") == 0;
    if (!k->spec.apart && (o->memory_bytes || k->nice || k->cpus))
        return yaml_in_fail(r, v, "isolation_memory, nice and cpus need isolation: process");
    if (k->nice > 19)
        return yaml_in_fail(r, v, "nice must be from 0 to 19");
    o->nice = (int32_t)k->nice;
    if (k->cpus && !read_cpus(k->cpus, o->cpus, sizeof(o->cpus) * 8))
        return yaml_in_fail(r, v, "cpus must be a list such as 2-3 or 0,2,4-7");
    return 0;
}

static int add_model(struct yaml_in *r, yaml_node_t *v, const char *name)
{
#define M(member) offsetof(struct model_keys, member)
    static const struct yaml_in_key table[] = {
        {"name", YAML_IN_STR, M(name), NULL},
        {"path", YAML_IN_STR, M(path), NULL},
        {"task", YAML_IN_STR, M(task), NULL},
        {"labels", YAML_IN_STR, M(labels), NULL},
        {"context", YAML_IN_U32, M(spec.n_ctx), NULL},
        {"parallel", YAML_IN_U32, M(spec.max_tasks), NULL},
        {"queue", YAML_IN_U32, M(spec.max_queue), NULL},
        {"threads", YAML_IN_U32, M(spec.n_threads), NULL},
        {"kv_bytes", YAML_IN_BYTES, M(spec.kv_bytes), NULL},
        {"kv", YAML_IN_STR, M(kv), NULL},
        {"lazy", YAML_IN_BOOL, M(lazy), NULL},
        {"priority", YAML_IN_I32, M(spec.priority), NULL},
        {"isolation", YAML_IN_STR, M(isolation), NULL},
        {"isolation_memory", YAML_IN_BYTES, M(spec.apart_opts.memory_bytes), NULL},
        {"nice", YAML_IN_U32, M(nice), NULL},
        {"cpus", YAML_IN_STR, M(cpus), NULL}};
#undef M
    struct model_keys k = {.lazy = false};
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), &k, name);
    if (rc == 0 && k.kv && strcmp(k.kv, "f16") != 0 && strcmp(k.kv, "q8") != 0)
        rc = yaml_in_fail(r, v, "kv must be f16 or q8");
    if (rc == 0)
        rc = check_isolation(r, v, &k);
    if (rc == 0 && (!k.path || !k.path[0] || !k.name || !k.name[0]))
        rc = yaml_in_fail(r, v, "a model needs a name and a path");
    if (rc == 0) {
        struct err inner = {0};
        k.spec.name = k.name;
        k.spec.path = k.path;
        k.spec.task = k.task;
        k.spec.labels = k.labels;
        k.spec.kv_q8 = k.kv && strcmp(k.kv, "q8") == 0;
        k.spec.pinned = !k.lazy;
        if (config_add_model(r->ctx, &k.spec, &inner) < 0)
            rc = yaml_in_fail(r, v, "%.200s", inner.msg);
    }
    mem_free(k.name);
    mem_free(k.path);
    mem_free(k.task);
    mem_free(k.labels);
    mem_free(k.kv);
    mem_free(k.isolation);
    mem_free(k.cpus);
    return rc;
}

static int read_models(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_model);
}

struct key_keys {
    struct admission_key key;
    char *sha256;
};

static int add_key(struct yaml_in *r, yaml_node_t *v, const char *name)
{
#define K(member) offsetof(struct key_keys, member)
    static const struct yaml_in_key table[] = {
        {"name", YAML_IN_STR, K(key.name), NULL},
        {"sha256", YAML_IN_STR, K(sha256), NULL},
        {"rate", YAML_IN_NUM, K(key.rate), NULL},
        {"burst", YAML_IN_NUM, K(key.burst), NULL},
        {"in_flight", YAML_IN_U32, K(key.max_in_flight), NULL},
        {"admin", YAML_IN_BOOL, K(key.admin), NULL},
        {"priority", YAML_IN_I32, K(key.priority), NULL}};
#undef K
    struct gw_config *c = r->ctx;
    struct key_keys k = {.sha256 = NULL};
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), &k, name);
    if (rc == 0 && (!k.key.name || !k.sha256 || strlen(k.sha256) != 64 ||
                    strspn(k.sha256, "0123456789abcdefABCDEF") != 64))
        rc =
            yaml_in_fail(r, v,
                         "a key needs a name and sha256, the 64 hex digits of its hash (printf %%s "
                         "KEY | sha256sum)");
    if (rc == 0 && c->n_keys == CONFIG_MAX_KEYS)
        rc = yaml_in_fail(r, v, "more than %u keys", CONFIG_MAX_KEYS);
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

static int read_keys(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_key);
}

/* ---- maps ---- */

static int read_tls(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {{"cert", YAML_IN_STR, AT(tls_cert), NULL},
                                               {"key", YAML_IN_STR, AT(tls_key), NULL},
                                               {"client_ca", YAML_IN_STR, AT(tls_client_ca), NULL}};
    const struct gw_config *c = r->ctx;
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), r->ctx, name);
    if (rc == 0 && (!c->tls_cert || !c->tls_key))
        rc = yaml_in_fail(r, v, "tls needs cert and key");
    return rc;
}

static int read_limits(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {
        {"body", YAML_IN_BYTES, AT(limits.max_body_bytes), NULL},
        {"headers", YAML_IN_BYTES, AT(limits.max_header_bytes), NULL},
        {"connections", YAML_IN_U32, AT(limits.max_conns), NULL},
        {"streams", YAML_IN_U32, AT(limits.max_streams), NULL},
        {"in_flight", YAML_IN_U32, AT(max_in_flight), NULL},
        {"request_timeout", YAML_IN_MS, AT(limits.request_ms), NULL},
        {"idle_timeout", YAML_IN_MS, AT(limits.idle_ms), NULL},
        {"write_timeout", YAML_IN_MS, AT(limits.write_ms), NULL},
        {"buffers", YAML_IN_BYTES, AT(limits.max_held_bytes), NULL},
        {"client_buffers", YAML_IN_BYTES, AT(limits.max_peer_held_bytes), NULL},
        {"resets", YAML_IN_U32, AT(limits.max_resets), NULL},
        {"values", YAML_IN_U32, AT(max_values), NULL}};
    return yaml_in_map(r, v, table, SIZE_OF(table), r->ctx, name);
}

static int read_deadline(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {
        {"default", YAML_IN_MS, AT(default_deadline_ms), NULL},
        {"max", YAML_IN_MS, AT(max_deadline_ms), NULL}};
    return yaml_in_map(r, v, table, SIZE_OF(table), r->ctx, name);
}

static int read_cache(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {{"bytes", YAML_IN_BYTES, AT(cache_bytes), NULL},
                                               {"ttl", YAML_IN_MS, AT(cache_ttl_ms), NULL},
                                               {"weights_dir", YAML_IN_STR, AT(cache_dir), NULL}};
    return yaml_in_map(r, v, table, SIZE_OF(table), r->ctx, name);
}

static int read_cluster(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {
        {"name", YAML_IN_STR, AT(cluster.name), NULL},
        {"zone", YAML_IN_STR, AT(cluster.zone), NULL},
        {"advertise", YAML_IN_STR, AT(cluster.advertise), NULL},
        {"shoal", YAML_IN_STR, AT(cluster.shoal), NULL},
        {"nats", YAML_IN_STRS, AT(cluster.nats), NULL},
        {"forget", YAML_IN_MS, AT(cluster.forget_ms), NULL},
        {"listen", YAML_IN_STRS, AT(cluster.listen), NULL},
        {"nodes", YAML_IN_STRS, AT(cluster.nodes), NULL},
        {"certs", YAML_IN_STR, AT(cluster.certs), NULL},
        {"insecure", YAML_IN_BOOL, AT(cluster.insecure), NULL},
        {"wait", YAML_IN_MS, AT(cluster.wait_ms), NULL},
        {"heartbeat", YAML_IN_MS, AT(cluster.heartbeat_ms), NULL},
        {"silent", YAML_IN_MS, AT(cluster.silent_ms), NULL}};
    return yaml_in_map(r, v, table, SIZE_OF(table), r->ctx, name);
}

static const struct yaml_in_key top[] = {{"listen", YAML_IN_CUSTOM, 0, read_listen},
                                         {"threads", YAML_IN_U32, AT(threads), NULL},
                                         {"tls", YAML_IN_CUSTOM, 0, read_tls},
                                         {"models", YAML_IN_CUSTOM, 0, read_models},
                                         {"model_dirs", YAML_IN_CUSTOM, 0, read_model_dirs},
                                         {"table", YAML_IN_STR, AT(table), NULL},
                                         {"memory", YAML_IN_BYTES, AT(memory_bytes), NULL},
                                         {"idle_unload", YAML_IN_MS, AT(idle_unload_ms), NULL},
                                         {"load_wait", YAML_IN_MS, AT(load_wait_ms), NULL},
                                         {"keys", YAML_IN_CUSTOM, 0, read_keys},
                                         {"cors", YAML_IN_CUSTOM, 0, read_cors},
                                         {"hosts", YAML_IN_CUSTOM, 0, read_hosts},
                                         {"limits", YAML_IN_CUSTOM, 0, read_limits},
                                         {"deadline", YAML_IN_CUSTOM, 0, read_deadline},
                                         {"drain", YAML_IN_MS, AT(drain_ms), NULL},
                                         {"cache", YAML_IN_CUSTOM, 0, read_cache},
                                         {"cluster", YAML_IN_CUSTOM, 0, read_cluster},
                                         {"log_requests", YAML_IN_BOOL, AT(log_requests), NULL}};

int config_parse(struct gw_config *c, const char *text, size_t n, const char *name, struct err *e)
{
    return yaml_in_parse(text, n, name, top, SIZE_OF(top), c, c, e);
}
