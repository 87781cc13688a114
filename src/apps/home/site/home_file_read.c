/* home_file_read.c - see home_file_read.h. */
#include "apps/home/site/home_file_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file_map.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/strmap.h"
#include "apps/home/table/home_words.h"
#include "wire/yaml_in.h"

#define MAX_NAMES 32u
#define MAX_LIMITS 16u
#define MAX_ID_BYTES 120u
#define MAX_TONGUES 16u
#define SIZE_OF(a) (sizeof(a) / sizeof((a)[0]))

struct item { /* one entry of a list, while it is read */
    char *id, *name, *kind, *room, *floor, *risk, *unit;
    struct yaml_in_strs aliases, abilities;
    yaml_node_t *limits, *sets, *names;
};

struct home_file_reader {
    struct home_file *file;
    const struct home_table *table;
    struct item item;
    enum home_thing_type type; /* of the list that is read */
    yaml_node_t *starts;
    struct { /* references to other things are resolved when all are known */
        struct home_thing *thing;
        yaml_node_t *room, *sets;
        const char *room_id;
    } later[HOME_FILE_MAX_THINGS];
};

static struct home_file_reader *reader_of(struct yaml_in *r)
{
    return r->ctx;
}

static void item_fini(struct item *x)
{
    char *const texts[] = {x->id, x->name, x->kind, x->room, x->floor, x->risk, x->unit};
    for (size_t i = 0; i < SIZE_OF(texts); i++)
        mem_free(texts[i]);
    yaml_in_strs_fini(&x->aliases);
    yaml_in_strs_fini(&x->abilities);
    *x = (struct item){0};
}

static const char *copy(struct home_file_reader *x, const char *s)
{
    return arena_printf(&x->file->arena, "%s", s);
}

/* ---- parts of a thing ----------------------------------------------------------------------- */

static int read_limits(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    (void)name;
    reader_of(r)->item.limits = v;
    return 0;
}

static int read_sets(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    (void)name;
    reader_of(r)->item.sets = v;
    return 0;
}

static int read_tongues(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    (void)name;
    reader_of(r)->item.names = v;
    return 0;
}

static int read_number(struct yaml_in *r, yaml_node_t *v, const char *name, double *out)
{
    const char *text = yaml_in_scalar(v);
    char *end = NULL;
    double d = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !isfinite(d) || fabs(d) > 1e12)
        return yaml_in_fail(r, v, "%s must be a number", name);
    *out = d;
    return 0;
}

struct limit_keys {
    struct home_thing_limit limit;
    char *unit;
};

static int read_min(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    struct limit_keys *k = r->ctx;
    return read_number(r, v, name, &k->limit.min);
}

static int read_max(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    struct limit_keys *k = r->ctx;
    return read_number(r, v, name, &k->limit.max);
}

static int check_ability(struct yaml_in *r, const yaml_node_t *at, const char *ability)
{
    const struct home_table *t = reader_of(r)->table;
    if (home_table_ability(t, ability))
        return 0;
    const char *known[64 + 1];
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_actions && n < 64; i++)
        if (t->action[i].effect)
            known[n++] = t->action[i].effect->ability;
    known[n] = NULL;
    const char *near = nearest_word(ability, known);
    return near ? yaml_in_fail(r, at, "unknown ability '%.40s' (did you mean '%s'?)", ability, near)
                : yaml_in_fail(r, at, "unknown ability '%.40s'", ability);
}

/* "temperature: {unit: bar}" is a mistake, and would make every value one. A unit that the table
 * does not know is the owner's. */
static int check_unit(struct yaml_in *r, const yaml_node_t *at, const char *ability,
                      const char *unit)
{
    const struct home_table *t = reader_of(r)->table;
    const struct home_quantity *q = home_table_quantity(t, ability);
    const struct home_unit *u = unit ? home_table_unit(t, unit) : NULL;
    for (uint32_t i = 0; q && u && i < q->n_units; i++)
        if (strcmp(u->of, q->units[i]->of) == 0)
            return 0;
    return q && u ? yaml_in_fail(r, at, "%s is not measured in '%.40s'", ability, unit) : 0;
}

/* "brightness: {min: 10, max: 100, unit: percent}" for each ability. */
static int make_limits(struct yaml_in *r, yaml_node_t *map, struct home_thing *thing)
{
    static const struct yaml_in_key table[] = {
        {"min", YAML_IN_CUSTOM, 0, read_min},
        {"max", YAML_IN_CUSTOM, 0, read_max},
        {"unit", YAML_IN_STR, offsetof(struct limit_keys, unit), NULL}};
    struct home_file_reader *x = reader_of(r);
    if (map->type != YAML_MAPPING_NODE)
        return yaml_in_fail(r, map, "limits must be a map of abilities");
    size_t n = (size_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start);
    if (n > MAX_LIMITS)
        return yaml_in_fail(r, map, "more than %u limits", MAX_LIMITS);
    struct home_thing_limit *list = arena_zalloc_n(&x->file->arena, n + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        const yaml_node_pair_t *p = &map->data.mapping.pairs.start[i];
        yaml_node_t *key = yaml_document_get_node(r->doc, p->key);
        yaml_node_t *value = yaml_document_get_node(r->doc, p->value);
        const char *ability = key ? yaml_in_scalar(key) : NULL;
        struct limit_keys k = {.limit = {.min = -INFINITY, .max = INFINITY}};
        if (!ability || !value)
            return yaml_in_fail(r, map, "a limit needs an ability and its min and max");
        /* a machine has settings of its own: "pressure" */
        int rc = home_file_able(thing, "setting") ? 0 : check_ability(r, key, ability);
        r->ctx = &k;
        if (rc == 0)
            rc = yaml_in_map(r, value, table, SIZE_OF(table), &k, ability);
        r->ctx = x;
        if (rc == 0 && (!isfinite(k.limit.min) || !isfinite(k.limit.max)))
            rc = yaml_in_fail(r, value, "a limit needs min and max");
        if (rc == 0 && k.limit.min > k.limit.max)
            rc = yaml_in_fail(r, value, "min is above max");
        if (rc == 0)
            rc = check_unit(r, value, ability, k.unit);
        k.limit.ability = copy(x, ability);
        k.limit.unit = k.unit ? copy(x, k.unit) : NULL;
        mem_free(k.unit);
        if (rc < 0)
            return rc;
        list[i] = k.limit;
    }
    thing->limits = list;
    thing->n_limits = (uint32_t)n;
    return 0;
}

/* One of: letters, digits and _ . - : / */
static bool is_id(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > MAX_ID_BYTES)
        return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') ||
              strchr("_.-:/", *s)))
            return false;
    return true;
}

/* "light.kitchen_lamp" without a name is "kitchen lamp". */
static const char *name_of_id(struct home_file_reader *x, const char *id)
{
    const char *dot = strchr(id, '.');
    char *s = arena_copy(&x->file->arena, dot && dot[1] ? dot + 1 : id,
                         strlen(dot && dot[1] ? dot + 1 : id) + 1);
    for (char *p = s; p && *p; p++)
        if (*p == '_')
            *p = ' ';
    return s ? s : "";
}

/* Two to eleven letters of ASCII and dashes: it becomes part of a name. */
static bool is_language(const char *s)
{
    const size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz-");
    return n >= 2 && n < HOME_FILE_LANGUAGE && !s[n];
}

/* A name as it is compared: lower case, one space between words. */
static int put_name(struct yaml_in *r, const yaml_node_t *at, const char *s, const char **out)
{
    struct home_file_reader *x = reader_of(r);
    struct home_words words = home_words_split(&x->file->arena, s);
    if (words.n == 0 || strlen(s) > HOME_FILE_MAX_NAME_BYTES || strpbrk(s, ";\n\r\t"))
        return yaml_in_fail(r, at,
                            "a name of '%s' must be 1 to %u bytes, without ';' and line breaks",
                            x->item.id, HOME_FILE_MAX_NAME_BYTES);
    *out = home_words_lower(&x->file->arena, home_words_join(&x->file->arena, &words, 0, words.n));
    return 0;
}

static int too_many_names(struct yaml_in *r, const yaml_node_t *at)
{
    return yaml_in_fail(r, at, "'%s' has more than %u names", reader_of(r)->item.id, MAX_NAMES);
}

/* "names: {de: [Licht, Lampe]}": one name, or several of which replies use the first. */
static int make_tongue(struct yaml_in *r, yaml_node_t *key, yaml_node_t *v,
                       struct home_thing_names *out)
{
    struct home_file_reader *x = reader_of(r);
    const char *language = yaml_in_scalar(key), *one = yaml_in_scalar(v);
    const yaml_node_item_t *items = one ? NULL : v->data.sequence.items.start;
    if (!language || !is_language(language))
        return yaml_in_fail(r, key, "names has a map of languages, such as {de: [Licht, Lampe]}");
    if (!one && (v->type != YAML_SEQUENCE_NODE || items == v->data.sequence.items.top))
        return yaml_in_fail(r, v, "the names in '%s' must be a list of texts", language);
    const size_t n = one ? 1 : (size_t)(v->data.sequence.items.top - items);
    const char **written = arena_zalloc_n(&x->file->arena, n, sizeof(*written));
    const char **lower = arena_zalloc_n(&x->file->arena, n, sizeof(*lower));
    if (n > MAX_NAMES)
        return too_many_names(r, v);
    for (size_t i = 0; written && lower && i < n; i++) {
        const char *s = one ? one : yaml_in_scalar(yaml_document_get_node(r->doc, items[i]));
        if (!s)
            return yaml_in_fail(r, v, "the names in '%s' must be a list of texts", language);
        written[i] = copy(x, s);
        int rc = put_name(r, v, s, &lower[i]);
        if (rc < 0)
            return rc;
    }
    const uint32_t kept = written && lower ? (uint32_t)n : 0;
    *out = (struct home_thing_names){copy(x, language), {written, kept}, {lower, kept}};
    return 0;
}

static int make_tongues(struct yaml_in *r, yaml_node_t *map, struct home_thing *thing)
{
    struct home_file_reader *x = reader_of(r);
    if (map->type != YAML_MAPPING_NODE)
        return yaml_in_fail(r, map, "names has a map of languages, such as {de: [Licht, Lampe]}");
    const yaml_node_pair_t *pairs = map->data.mapping.pairs.start;
    const size_t n = (size_t)(map->data.mapping.pairs.top - pairs);
    if (n > MAX_TONGUES)
        return yaml_in_fail(r, map, "names has more than %u languages", MAX_TONGUES);
    struct home_thing_names *list = arena_zalloc_n(&x->file->arena, n + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        int rc = make_tongue(r, yaml_document_get_node(r->doc, pairs[i].key),
                             yaml_document_get_node(r->doc, pairs[i].value), &list[i]);
        if (rc < 0)
            return rc;
    }
    thing->tongues = list;
    thing->n_tongues = list ? (uint32_t)n : 0;
    return 0;
}

static int make_names(struct yaml_in *r, yaml_node_t *at, struct home_thing *thing)
{
    struct home_file_reader *x = reader_of(r);
    const struct item *k = &x->item;
    uint32_t n = k->aliases.n + 1;
    if (n > MAX_NAMES)
        return too_many_names(r, at);
    const char **w = arena_zalloc_n(&x->file->arena, n, sizeof(*w));
    thing->name = k->name ? copy(x, k->name) : name_of_id(x, k->id);
    for (uint32_t i = 0; w && i < n; i++) {
        int rc = put_name(r, at, i ? k->aliases.v[i - 1] : thing->name, &w[i]);
        if (rc < 0)
            return rc;
    }
    thing->names = (struct home_list){w, w ? n : 0};
    return k->names ? make_tongues(r, k->names, thing) : 0;
}

static int make_abilities(struct yaml_in *r, yaml_node_t *at, struct home_thing *thing)
{
    struct home_file_reader *x = reader_of(r);
    const struct item *k = &x->item;
    const struct home_kind *kind = k->kind ? home_table_kind(x->table, k->kind) : NULL;
    if (k->kind && x->table->n_kinds > 0 && !kind) {
        const char *known[64 + 1];
        uint32_t n = 0;
        for (; n < x->table->n_kinds && n < 64; n++)
            known[n] = x->table->kinds[n].name;
        known[n] = NULL;
        const char *near = nearest_word(k->kind, known);
        return near
                   ? yaml_in_fail(r, at, "unknown kind '%.40s' (did you mean '%s'?)", k->kind, near)
                   : yaml_in_fail(r, at,
                                  "unknown kind '%.40s'; 'shoal home check --help' lists them",
                                  k->kind);
    }
    if (k->abilities.n == 0) {
        thing->abilities = kind ? kind->abilities : (struct home_list){0};
        return 0;
    }
    const char **w = arena_zalloc_n(&x->file->arena, k->abilities.n, sizeof(*w));
    for (uint32_t i = 0; w && i < k->abilities.n; i++) {
        int rc = check_ability(r, at, k->abilities.v[i]);
        if (rc < 0)
            return rc;
        w[i] = copy(x, k->abilities.v[i]);
    }
    thing->abilities = (struct home_list){w, w ? k->abilities.n : 0};
    return 0;
}

/* An "oven" of the kind "heater" is an oven, a thing without a kind is what its name says. A
 * "garage door" of the kind "cover" is a cover, and as dangerous as a door. */
static void find_kinds(const struct home_table *t, struct home_thing *thing)
{
    const struct home_kind *kind = home_table_kind(t, thing->kind), *found = NULL;
    for (uint32_t i = 0; i < thing->names.n && !found; i++)
        found = home_table_kind_named(t, thing->names.w[i]);
    bool special = found && (!kind || home_table_kind_is(found, kind->name));
    thing->is = special ? found : kind;
    thing->also = special ? NULL : found;
}

static int make_risk(struct yaml_in *r, yaml_node_t *at, struct home_thing *thing)
{
    const char *risk = reader_of(r)->item.risk;
    if (!risk)
        return 0;
    for (enum home_risk k = 0; k < HOME_RISK_COUNT; k++)
        if (strcmp(home_table_risk_name(k), risk) == 0) {
            thing->risk = k;
            thing->has_risk = true;
            return 0;
        }
    return yaml_in_fail(r, at, "risk must be harmless, disturbing or dangerous, not '%.40s'", risk);
}

/* ---- things --------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct item, member)
#define NAMES                                                                                      \
    {"id", YAML_IN_STR, AT(id), NULL}, {"name", YAML_IN_STR, AT(name), NULL},                      \
        {"aliases", YAML_IN_STRS, AT(aliases), NULL},                                              \
    {                                                                                              \
        "names", YAML_IN_CUSTOM, 0, read_tongues                                                   \
    }
static const struct yaml_in_key room_keys[] = {NAMES, {"floor", YAML_IN_STR, AT(floor), NULL}};
static const struct yaml_in_key person_keys[] = {NAMES};
static const struct yaml_in_key device_keys[] = {NAMES,
                                                 {"room", YAML_IN_STR, AT(room), NULL},
                                                 {"kind", YAML_IN_STR, AT(kind), NULL},
                                                 {"abilities", YAML_IN_STRS, AT(abilities), NULL},
                                                 {"limits", YAML_IN_CUSTOM, 0, read_limits},
                                                 {"risk", YAML_IN_STR, AT(risk), NULL}};
static const struct yaml_in_key sensor_keys[] = {NAMES,
                                                 {"room", YAML_IN_STR, AT(room), NULL},
                                                 {"kind", YAML_IN_STR, AT(kind), NULL},
                                                 {"unit", YAML_IN_STR, AT(unit), NULL}};
static const struct yaml_in_key scene_keys[] = {NAMES,
                                                {"room", YAML_IN_STR, AT(room), NULL},
                                                {"risk", YAML_IN_STR, AT(risk), NULL},
                                                {"sets", YAML_IN_CUSTOM, 0, read_sets}};

static const struct {
    const struct yaml_in_key *keys;
    size_t n;
} keys_of[] = {[HOME_THING_ROOM] = {room_keys, SIZE_OF(room_keys)},
               [HOME_THING_DEVICE] = {device_keys, SIZE_OF(device_keys)},
               [HOME_THING_MACHINE] = {device_keys, SIZE_OF(device_keys)},
               [HOME_THING_SENSOR] = {sensor_keys, SIZE_OF(sensor_keys)},
               [HOME_THING_PERSON] = {person_keys, SIZE_OF(person_keys)},
               [HOME_THING_SCENE] = {scene_keys, SIZE_OF(scene_keys)}};

static int make_thing(struct yaml_in *r, yaml_node_t *at, enum home_thing_type type)
{
    struct home_file_reader *x = reader_of(r);
    const struct item *k = &x->item;
    if (!k->id || !is_id(k->id))
        return yaml_in_fail(r, at,
                            "a %s needs an id of 1 to %u letters, digits or _.-:/ such as "
                            "light.kitchen",
                            home_file_type_name(type), MAX_ID_BYTES);
    if (home_file_thing(x->file, k->id))
        return yaml_in_fail(r, at, "the id '%s' is used twice", k->id);
    if (x->file->n_things == HOME_FILE_MAX_THINGS)
        return yaml_in_fail(r, at, "more than %u things", HOME_FILE_MAX_THINGS);
    uint32_t i = x->file->n_things;
    struct home_thing *thing = &x->file->things[i];
    *thing = (struct home_thing){.type = type, .id = copy(x, k->id)};
    thing->kind = k->kind ? copy(x, k->kind) : "";
    thing->unit = k->unit ? copy(x, k->unit) : NULL;
    thing->floor = k->floor ? home_words_lower(&x->file->arena, k->floor) : NULL;
    int rc = make_names(r, at, thing);
    bool acts = type == HOME_THING_DEVICE || type == HOME_THING_MACHINE;
    if (rc == 0 && acts)
        find_kinds(x->table, thing);
    if (rc == 0 && acts)
        rc = make_abilities(r, at, thing);
    if (rc == 0)
        rc = make_risk(r, at, thing);
    if (rc == 0 && k->limits)
        rc = make_limits(r, k->limits, thing);
    if (rc < 0)
        return rc;
    if (strmap_put(&x->file->ids, thing->id, strlen(thing->id), i) < 0)
        return err_set(r->e, SHOAL_ENOMEM, "%s", r->name);
    x->later[i].thing = thing;
    x->later[i].room = at;
    x->later[i].room_id = k->room ? copy(x, k->room) : NULL;
    x->later[i].sets = k->sets;
    x->file->n_things++;
    return 0;
}

static int read_thing(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    struct home_file_reader *x = reader_of(r);
    int rc = yaml_in_map(r, v, keys_of[x->type].keys, keys_of[x->type].n, &x->item, name);
    if (rc == 0)
        rc = make_thing(r, v, x->type);
    item_fini(&x->item);
    return rc;
}

/* name: of the list, which says the type of its things. */
static int read_list(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    struct home_file_reader *x = reader_of(r);
    if (v->type != YAML_SEQUENCE_NODE)
        return yaml_in_fail(r, v, "%s must be a list", name);
    for (x->type = 0; strcmp(home_file_list_name(x->type), name) != 0;)
        x->type++;
    return yaml_in_each(r, v, home_file_type_name(x->type), read_thing);
}

/* ---- references to other things
 * ---------------------------------------------------------------- */

struct set_keys {
    char *id, *ability, *to;
};

static int make_set(struct yaml_in *r, yaml_node_t *v, const char *name, struct home_thing_set *out)
{
    static const struct yaml_in_key table[] = {
        {"id", YAML_IN_STR, offsetof(struct set_keys, id), NULL},
        {"ability", YAML_IN_STR, offsetof(struct set_keys, ability), NULL},
        {"to", YAML_IN_STR, offsetof(struct set_keys, to), NULL}};
    struct home_file_reader *x = reader_of(r);
    struct set_keys k = {0};
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), &k, name);
    if (rc == 0 && (!k.id || !k.ability || !k.to))
        rc = yaml_in_fail(r, v, "an entry of %s needs id, ability and to", name);
    out->thing = rc == 0 ? home_file_thing(x->file, k.id) : NULL;
    if (rc == 0 && !out->thing)
        rc = yaml_in_fail(r, v, "there is no thing with the id '%.60s'", k.id);
    if (rc == 0 && !home_file_able(out->thing, k.ability))
        rc = yaml_in_fail(r, v, "'%s' has no ability '%.40s'", out->thing->id, k.ability);
    if (rc == 0) {
        char *end;
        out->number = strtod(k.to, &end);
        out->text = end == k.to || *end || !isfinite(out->number) ? copy(x, k.to) : NULL;
        out->ability = copy(x, k.ability);
    }
    mem_free(k.id);
    mem_free(k.ability);
    mem_free(k.to);
    return rc;
}

/* A list of at most `most` such entries; name: what the file calls it. */
static int make_sets(struct yaml_in *r, yaml_node_t *list, const char *name, uint32_t most,
                     const struct home_thing_set **out, uint32_t *n_out)
{
    struct home_file_reader *x = reader_of(r);
    if (list->type != YAML_SEQUENCE_NODE)
        return yaml_in_fail(r, list, "%s must be a list of {id, ability, to}", name);
    size_t n = (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
    if (n > most)
        return yaml_in_fail(r, list, "%s has more than %u entries", name, most);
    struct home_thing_set *sets = arena_zalloc_n(&x->file->arena, n + 1, sizeof(*sets));
    for (size_t i = 0; sets && i < n; i++) {
        yaml_node_t *v = yaml_document_get_node(r->doc, list->data.sequence.items.start[i]);
        int rc = make_set(r, v, name, &sets[i]);
        if (rc < 0)
            return rc;
    }
    *out = sets;
    *n_out = sets ? (uint32_t)n : 0;
    return 0;
}

static int link_things(struct yaml_in *r)
{
    struct home_file_reader *x = reader_of(r);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < x->file->n_things; i++) {
        const char *id = x->later[i].room_id;
        const struct home_thing *room = id ? home_file_thing(x->file, id) : NULL;
        if (id && (!room || room->type != HOME_THING_ROOM))
            return yaml_in_fail(r, x->later[i].room,
                                "'%s' is in the room '%.60s', which is not listed",
                                x->later[i].thing->id, id);
        x->later[i].thing->room = room;
        if (x->later[i].sets)
            rc = make_sets(r, x->later[i].sets, "sets", HOME_FILE_MAX_SETS,
                           &x->later[i].thing->sets, &x->later[i].thing->n_sets);
    }
    if (rc == 0 && x->starts)
        rc = make_sets(r, x->starts, "starts", HOME_FILE_MAX_THINGS, &x->file->starts,
                       &x->file->n_starts);
    return rc;
}

static int read_starts(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    (void)name;
    reader_of(r)->starts = v;
    return 0;
}

struct place {
    char *latitude, *longitude;
};

static bool degrees(const char *text, double most, double *out)
{
    char *end = NULL;
    *out = text ? strtod(text, &end) : 0;
    return text && end != text && !*end && fabs(*out) <= most;
}

static int read_place(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {
        {"latitude", YAML_IN_STR, offsetof(struct place, latitude), NULL},
        {"longitude", YAML_IN_STR, offsetof(struct place, longitude), NULL}};
    struct home_file *f = reader_of(r)->file;
    struct place p = {0};

    int rc = yaml_in_map(r, v, table, SIZE_OF(table), &p, name);
    if (rc == 0 &&
        (!degrees(p.latitude, 90, &f->place[0]) || !degrees(p.longitude, 180, &f->place[1])))
        rc = yaml_in_fail(r, v,
                          "location needs latitude (-90 to 90) and longitude (-180 to 180) in "
                          "degrees");
    f->has_place = rc == 0;
    mem_free(p.latitude);
    mem_free(p.longitude);
    return rc;
}

/* The table was chosen by the language, unless one was named. */
static int check_language(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    const char *said = yaml_in_scalar(v), *has = reader_of(r)->table->language;
    if (!said || !is_language(said))
        return yaml_in_fail(r, v, "%s must be a language such as 'de'", name);
    if (strcmp(said, has) != 0)
        return yaml_in_fail(r, v, "the home is in '%s', but the table of words in '%s'%s", said,
                            has, ": restart to change the language");
    return 0;
}

struct top {
    char *name;
    bool open;
};

static int read_top(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    static const struct yaml_in_key table[] = {
        {"name", YAML_IN_STR, offsetof(struct top, name), NULL},
        {"open", YAML_IN_BOOL, offsetof(struct top, open), NULL},
        {"language", YAML_IN_CUSTOM, 0, check_language},
        {"location", YAML_IN_CUSTOM, 0, read_place},
        {"rooms", YAML_IN_CUSTOM, 0, read_list},
        {"devices", YAML_IN_CUSTOM, 0, read_list},
        {"machines", YAML_IN_CUSTOM, 0, read_list},
        {"sensors", YAML_IN_CUSTOM, 0, read_list},
        {"people", YAML_IN_CUSTOM, 0, read_list},
        {"scenes", YAML_IN_CUSTOM, 0, read_list},
        {"starts", YAML_IN_CUSTOM, 0, read_starts}};
    struct home_file_reader *x = reader_of(r);
    struct top top = {0};
    int rc = yaml_in_map(r, v, table, SIZE_OF(table), &top, name);
    if (rc == 0)
        rc = link_things(r);
    x->file->name = top.name ? copy(x, top.name) : "home";
    x->file->open = top.open;
    mem_free(top.name);
    return rc;
}

int home_file_read_text(struct home_file **out, const struct home_table *table, const char *text,
                        size_t n, const char *name, struct err *e)
{
    *out = NULL;
    if (n > HOME_FILE_MAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "%s has %zu bytes; the maximum is %zu", name, n,
                       HOME_FILE_MAX_BYTES);
    struct home_file_reader *x = mem_zalloc(sizeof(*x));
    struct home_file *f = mem_zalloc(sizeof(*f));
    if (!x || !f) {
        mem_free(x);
        mem_free(f);
        return err_set(e, SHOAL_ENOMEM, "%s", name);
    }
    atomic_init(&f->refs, 1);
    arena_init(&f->arena, HOME_FILE_ARENA_BYTES);
    f->name = "home";
    f->language = table->language;
    f->things = arena_zalloc_n(&f->arena, HOME_FILE_MAX_THINGS, sizeof(*f->things));
    x->file = f;
    x->table = table;
    bool room = f->arena.rc == 0 && strmap_init(&f->ids, 64) == 0;
    int rc = room ? yaml_in_document(text, n, name, read_top, x, e)
                  : err_set(e, SHOAL_ENOMEM, "%s: out of memory", name);
    item_fini(&x->item);
    if (rc == 0 && (f->arena.rc < 0 || home_file_collect_words(f) < 0))
        rc = err_set(e, SHOAL_ENOMEM, "%s: out of memory", name);
    mem_free(x);
    for (const struct home_table *t = table->next; rc == 0 && t; t = t->next)
        if (home_file_add(f, t) < 0)
            rc = err_set(e, SHOAL_ENOMEM, "%s: out of memory", name);
    if (rc < 0) {
        home_file_unref(f);
        return rc;
    }
    *out = f;
    return 0;
}

int home_file_read_path(struct home_file **out, const struct home_table *table, const char *path,
                        struct err *e)
{
    struct file_map m;
    *out = NULL;
    int rc = file_map_open(&m, path, e);
    if (rc < 0)
        return rc;
    rc = home_file_read_text(out, table, (const char *)m.bytes, m.n_bytes, path, e);
    file_map_close(&m);
    return rc;
}

static int find_language(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    char *out = r->ctx;
    (void)name;
    if (v->type != YAML_MAPPING_NODE)
        return 0; /* reading the file will say so */
    for (yaml_node_pair_t *p = v->data.mapping.pairs.start; p < v->data.mapping.pairs.top; p++) {
        const char *key = yaml_in_scalar(yaml_document_get_node(r->doc, p->key));
        const char *text = yaml_in_scalar(yaml_document_get_node(r->doc, p->value));
        if (key && strcmp(key, "language") == 0 && text && is_language(text))
            memcpy(out, text, strlen(text) + 1);
    }
    return 0;
}

int home_file_read_language(char out[HOME_FILE_LANGUAGE], const char *path, struct err *e)
{
    struct file_map m;
    *out = '\0';
    int rc = file_map_open(&m, path, e);
    if (rc < 0)
        return rc;
    if (m.n_bytes <= HOME_FILE_MAX_BYTES)
        rc = yaml_in_document((const char *)m.bytes, m.n_bytes, path, find_language, out, e);
    file_map_close(&m);
    return rc;
}
