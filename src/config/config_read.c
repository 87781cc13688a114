/* config_read.c - see config_read.h. */
#include "config/config_read.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/nearest.h"

#define MAX_PATH_BYTES 320u
#define MAX_LABEL_BYTES 96u
#define MAX_VALUE_BYTES ((size_t)64 << 10) /* limit of a stored setting */
#define MAX_IN_MAP 64u
#define MAX_DEPTH 8u
#define MAX_SETTINGS 65536u

struct reader {
    struct config_settings *set;
    void *into;
};

/* A map while it is read. */
struct place {
    const struct config_key *parent; /* the map or list; NULL: the top */
    const char *path;                /* of this map in the file: "models[reply]"; "": the top */
    void *into;
    uint32_t depth;
};

/* ---- settings ---- */

void config_settings_fini(struct config_settings *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        mem_free(s->v[i].path);
        mem_free(s->v[i].value);
    }
    mem_free(s->v);
    *s = (struct config_settings){0};
}

const struct config_setting *config_settings_find(const struct config_settings *s, const char *path)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].path, path) == 0)
            return &s->v[i];
    return NULL;
}

static int keep(struct config_settings *s, const struct config_key *k, const char *path,
                const char *value, const yaml_node_t *at)
{
    if (s->n == s->n_room) {
        uint32_t room = s->n_room ? 2 * s->n_room : 32;
        if (room > MAX_SETTINGS)
            return SHOAL_ELIMIT;
        struct config_setting *v = mem_realloc(s->v, room * sizeof(*v));
        if (!v)
            return SHOAL_ENOMEM;
        s->v = v;
        s->n_room = room;
    }
    struct config_setting x = {mem_strdup(path), mem_strdup(value), k,
                               (uint32_t)at->start_mark.line + 1,
                               (uint32_t)at->start_mark.column + 1};
    if (!x.path || !x.value) {
        mem_free(x.path);
        mem_free(x.value);
        return SHOAL_ENOMEM;
    }
    s->v[s->n++] = x;
    return 0;
}

/* A list's texts with ", " between them. */
static void put_value(struct buf *b, struct yaml_in *r, const yaml_node_t *v)
{
    if (v->type == YAML_SCALAR_NODE)
        buf_puts(b, yaml_in_scalar(v));
    for (yaml_node_item_t *i = v->type == YAML_SEQUENCE_NODE ? v->data.sequence.items.start : NULL;
         i && i < v->data.sequence.items.top; i++) {
        const yaml_node_t *item = yaml_document_get_node(r->doc, *i);
        const char *text = item ? yaml_in_scalar(item) : NULL;
        buf_printf(b, "%s%s", b->len ? ", " : "", text ? text : "");
    }
}

static int keep_value(struct yaml_in *r, const struct config_key *k, const char *path,
                      const yaml_node_t *v)
{
    struct reader *rd = r->ctx;
    struct buf b;
    buf_init(&b, MAX_VALUE_BYTES);
    put_value(&b, r, v);
    int rc =
        b.rc == SHOAL_ENOMEM ? b.rc : keep(rd->set, k, path, b.rc < 0 ? "(long)" : buf_str(&b), v);
    buf_fini(&b);
    if (rc == SHOAL_ELIMIT)
        return yaml_in_fail(r, v, "more than %u values", MAX_SETTINGS / 2);
    return rc < 0 ? err_set(r->e, rc, "%s: %s", r->name, err_text(rc)) : 0;
}

/* ---- values ---- */

static enum yaml_in_kind kind_of(enum config_type t)
{
    switch (t) {
    case CONFIG_BYTES:
        return YAML_IN_BYTES;
    case CONFIG_MS:
        return YAML_IN_MS;
    case CONFIG_U32:
        return YAML_IN_U32;
    case CONFIG_I32:
        return YAML_IN_I32;
    case CONFIG_NUM: /* its row has the range */
        return YAML_IN_SIGNED;
    case CONFIG_SHARE:
        return YAML_IN_SHARE;
    case CONFIG_BOOL:
        return YAML_IN_BOOL;
    case CONFIG_STRS:
        return YAML_IN_STRS;
    default:
        return YAML_IN_STR;
    }
}

static double number_at(const struct config_key *k, const void *at)
{
    switch (k->type) {
    case CONFIG_BYTES:
        return (double)*(const size_t *)at;
    case CONFIG_MS:
    case CONFIG_U32:
        return *(const uint32_t *)at;
    case CONFIG_I32:
        return *(const int32_t *)at;
    case CONFIG_NUM:
    case CONFIG_SHARE:
        return *(const double *)at;
    case CONFIG_STRS:
        return ((const struct yaml_in_strs *)at)->n;
    default:
        return k->min;
    }
}

static int check_range(struct yaml_in *r, const struct config_key *k, const yaml_node_t *v,
                       const void *at)
{
    double x = number_at(k, at);
    const char *unit = k->type == CONFIG_MS ? " ms" : k->type == CONFIG_BYTES ? " bytes" : "";
    if ((k->min == 0 && k->max == 0) || (x >= k->min && x <= k->max))
        return 0;
    if (k->type == CONFIG_STRS)
        return yaml_in_fail(r, v, "%s has more than %.0f entries", config_key_leaf(k), k->max);
    return yaml_in_fail(r, v, "%s must be from %.15g to %.15g%s", config_key_leaf(k), k->min,
                        k->max, unit);
}

/* "opcua", "opc_ua", "OPC-UA", "opc.tcp://..." */
static bool is_opc_ua(const char *text)
{
    return strncasecmp(text, "opc", 3) == 0 && (!text[3] || strchr("uU_-.", text[3]));
}

/* The place of OPC UA: whoever looks for it is told, and what to use instead. */
static int no_opc_ua(struct yaml_in *r, const yaml_node_t *at)
{
    return yaml_in_fail(r, at,
                        "OPC UA is not built in; a gateway that speaks Modbus TCP ('modbus') or "
                        "MQTT ('mqtt') brings its tags here (docs/SENSORS.md)");
}

static int read_choice(struct yaml_in *r, const struct config_key *k, const yaml_node_t *v,
                       uint32_t *out)
{
    const char *text = yaml_in_scalar(v), *word;
    size_t n;
    char known[160] = "";
    for (uint32_t i = 0; (word = config_key_choice(k, i, &n)); i++) {
        if (text && strlen(text) == n && memcmp(text, word, n) == 0) {
            *out = i;
            return 0;
        }
        size_t at = strlen(known);
        snprintf(known + at, sizeof(known) - at, "%s%.*s", i ? ", " : "", (int)n, word);
    }
    if (text && is_opc_ua(text))
        return no_opc_ua(r, v);
    return yaml_in_fail(r, v, "%s must be one of: %s", config_key_leaf(k), known);
}

static int read_leaf(struct yaml_in *r, const struct config_key *k, yaml_node_t *v, void *into)
{
    const struct yaml_in_key plain = {config_key_leaf(k), kind_of(k->type), k->offset, NULL};
    void *at = (char *)into + k->offset;
    if (k->type == CONFIG_CHOICE)
        return read_choice(r, k, v, at);
    int rc = yaml_in_value(r, &plain, v, into);
    return rc < 0 ? rc : check_range(r, k, v, at);
}

/* ---- defaults ---- */

static int set_default(const struct config_key *k, void *into, struct err *e)
{
    yaml_node_t v = {.type = YAML_SCALAR_NODE};
    struct yaml_in r = {.name = k->path, .e = e};
    if (!k->fallback)
        return 0;
    /* libyaml's struct is not const, but it is not modified */
    v.data.scalar.value = (yaml_char_t *)(uintptr_t)k->fallback;
    v.data.scalar.length = strlen(k->fallback);
    return read_leaf(&r, k, &v, into);
}

/* Of the keys in parent, and in the maps of parent: they fill the same struct. */
static int set_defaults(const struct config_key *parent, void *into, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < config_n_keys && rc == 0; i++) {
        const struct config_key *k = &config_keys[i];
        if (!config_key_in(k, parent))
            continue;
        if (k->type == CONFIG_MAP)
            rc = set_defaults(k, into, e);
        else if (k->type != CONFIG_ITEMS)
            rc = set_default(k, into, e);
    }
    return rc;
}

int config_read_defaults(void *into, struct err *e)
{
    return set_defaults(NULL, into, e);
}

static void free_in(const struct config_key *parent, void *into)
{
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *k = &config_keys[i];
        void *at = (char *)into + k->offset;
        if (!config_key_in(k, parent))
            continue;
        if (k->type == CONFIG_MAP)
            free_in(k, into);
        else if (k->type == CONFIG_STR) {
            mem_free(*(char **)at);
            *(char **)at = NULL;
        } else if (k->type == CONFIG_STRS)
            yaml_in_strs_fini(at);
    }
}

void config_read_free(void *into)
{
    free_in(NULL, into);
}

/* ---- maps and lists ---- */

static const struct config_key *find_in(const struct config_key *parent, const char *name)
{
    for (size_t i = 0; i < config_n_keys; i++)
        if (config_key_in(&config_keys[i], parent) &&
            strcmp(config_key_leaf(&config_keys[i]), name) == 0)
            return &config_keys[i];
    return NULL;
}

static int unknown_key(struct yaml_in *r, const yaml_node_t *at, const struct place *p,
                       const char *typed)
{
    const char *names[MAX_IN_MAP + 1] = {0};
    size_t n = 0;
    if (!p->parent && is_opc_ua(typed))
        return no_opc_ua(r, at);
    for (size_t i = 0; i < config_n_keys && n < MAX_IN_MAP; i++)
        if (config_key_in(&config_keys[i], p->parent))
            names[n++] = config_key_leaf(&config_keys[i]);
    const char *near = nearest_word(typed, names);
    return yaml_in_fail(r, at, "unknown key '%.40s'%s%s%s%s%s", typed, p->parent ? " in " : "",
                        p->parent ? config_key_leaf(p->parent) : "", near ? " (did you mean '" : "",
                        near ? near : "", near ? "'?)" : "");
}

static int read_map(struct yaml_in *r, const yaml_node_t *map, const struct place *p);
static int read_one(struct yaml_in *r, const struct config_key *k, yaml_node_t *v,
                    const struct place *p);

/* What an entry is called in paths: its name, or its number. */
static void label_of(struct yaml_in *r, const struct config_key *list, const yaml_node_t *item,
                     uint32_t index, char *out, size_t n_out)
{
    snprintf(out, n_out, "%u", index + 1);
    if (list->short_form && item->type == YAML_SCALAR_NODE)
        snprintf(out, n_out, "%s", yaml_in_scalar(item));
    const yaml_node_t *name = yaml_in_find(r, item, "name");
    if (name && yaml_in_scalar(name))
        snprintf(out, n_out, "%s", yaml_in_scalar(name));
}

/* from: the item's own settings begin here. */
static int check_needed(struct yaml_in *r, const yaml_node_t *item, const struct config_key *list,
                        const char *path, uint32_t from)
{
    const struct reader *rd = r->ctx;
    const struct config_settings own = {rd->set->v + from, rd->set->n - from, 0};
    char full[MAX_PATH_BYTES];
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *k = &config_keys[i];
        if (!config_key_in(k, list) || !k->needed)
            continue;
        if (snprintf(full, sizeof(full), "%s.%s", path, config_key_leaf(k)) >= (int)sizeof(full))
            return yaml_in_fail(r, item, "the name is too long");
        const struct config_setting *s = config_settings_find(&own, full);
        if (!s || !s->value[0])
            return yaml_in_fail(r, item, "an entry of %s needs %s", config_key_leaf(list),
                                config_key_leaf(k));
    }
    return 0;
}

static int read_item(struct yaml_in *r, const struct config_key *list, yaml_node_t *v,
                     uint32_t index, const struct place *p)
{
    const struct reader *rd = r->ctx;
    char label[MAX_LABEL_BYTES], path[MAX_PATH_BYTES];
    uint32_t from = rd->set->n;
    label_of(r, list, v, index, label, sizeof(label));
    snprintf(path, sizeof(path), "%s%s%s[%s]", p->path, p->path[0] ? "." : "",
             config_key_leaf(list), label);
    void *item = mem_zalloc(list->offset);
    if (!item)
        return err_set(r->e, SHOAL_ENOMEM, "%s", r->name);
    const struct place in = {list, path, item, p->depth + 1};
    int rc = set_defaults(list, item, r->e);
    if (rc == 0)
        rc = list->short_form && v->type == YAML_SCALAR_NODE
                 ? read_one(r, find_in(list, "name"), v, &in)
                 : read_map(r, v, &in);
    if (rc == 0)
        rc = check_needed(r, v, list, path, from);
    if (rc == 0)
        rc = list->take(r, v, item, p->into);
    if (list->drop)
        list->drop(item);
    free_in(list, item);
    mem_free(item);
    return rc;
}

static int read_items(struct yaml_in *r, const struct config_key *list, yaml_node_t *v,
                      const struct place *p)
{
    if (v->type != YAML_SEQUENCE_NODE)
        return read_item(r, list, v, 0, p);
    const yaml_node_item_t *first = v->data.sequence.items.start;
    int rc = 0;
    if (list->max > 0 && (double)(v->data.sequence.items.top - first) > list->max)
        return yaml_in_fail(r, v, "more than %.0f %s", list->max, config_key_leaf(list));
    for (const yaml_node_item_t *i = first; rc == 0 && i < v->data.sequence.items.top; i++)
        rc = read_item(r, list, yaml_document_get_node(r->doc, (int)*i), (uint32_t)(i - first), p);
    return rc;
}

static int read_one(struct yaml_in *r, const struct config_key *k, yaml_node_t *v,
                    const struct place *p)
{
    char path[MAX_PATH_BYTES];
    if (p->depth >= MAX_DEPTH)
        return yaml_in_fail(r, v, "too deep");
    snprintf(path, sizeof(path), "%s%s%s", p->path, p->path[0] ? "." : "", config_key_leaf(k));
    if (k->type == CONFIG_ITEMS)
        return read_items(r, k, v, p);
    if (k->type == CONFIG_MAP) {
        const struct place in = {k, path, p->into, p->depth + 1};
        return read_map(r, v, &in);
    }
    int rc = read_leaf(r, k, v, p->into);
    return rc < 0 ? rc : keep_value(r, k, path, v);
}

static int read_map(struct yaml_in *r, const yaml_node_t *map, const struct place *p)
{
    const struct config_key *seen[MAX_IN_MAP];
    size_t n_seen = 0;
    if (map->type != YAML_MAPPING_NODE)
        return yaml_in_fail(r, map, "%s must be a map of keys and values",
                            p->parent ? config_key_leaf(p->parent) : "the file");
    for (yaml_node_pair_t *i = map->data.mapping.pairs.start; i < map->data.mapping.pairs.top;
         i++) {
        const yaml_node_t *key = yaml_document_get_node(r->doc, i->key);
        yaml_node_t *value = yaml_document_get_node(r->doc, i->value);
        const char *name = key ? yaml_in_scalar(key) : NULL;
        if (!name || !value)
            return yaml_in_fail(r, map, "a key that is not a word");
        const struct config_key *k = find_in(p->parent, name);
        if (!k)
            return unknown_key(r, key, p, name);
        for (size_t s = 0; s < n_seen; s++)
            if (seen[s] == k)
                return yaml_in_fail(r, key, "'%s' is given twice", name);
        if (n_seen < MAX_IN_MAP)
            seen[n_seen++] = k;
        int rc = read_one(r, k, value, p);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_top(struct yaml_in *r, yaml_node_t *root, const char *name)
{
    const struct reader *rd = r->ctx;
    const struct place p = {NULL, name, rd->into, 0};
    return read_map(r, root, &p);
}

int config_read(void *into, struct config_settings *set, const char *text, size_t n,
                const char *name, struct err *e)
{
    struct reader rd = {set, into};
    return yaml_in_document(text, n, name, read_top, &rd, e);
}
