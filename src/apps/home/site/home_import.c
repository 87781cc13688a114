/* home_import.c - see home_import.h. */
#include "apps/home/site/home_import.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "apps/home/site/home_file.h"

static const char *text_of(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return s && *s ? s : NULL;
}

static int parse(cJSON **out, const struct home_import_text *in, const char *list, const char *name,
                 const cJSON **items, struct err *e)
{
    *items = NULL;
    if (!in->text)
        return 0;
    if (in->n > HOME_IMPORT_MAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "%s has %zu bytes; the maximum is %zu", name, in->n,
                       HOME_IMPORT_MAX_BYTES);
    *out = cJSON_ParseWithLength(in->text, in->n);
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(*out, "data");
    *items = cJSON_GetObjectItemCaseSensitive(data, list);
    if (!cJSON_IsArray(*items))
        return err_set(e, SHOAL_EFORMAT,
                       "%s is not such a registry: it has no list data.%s; take the file from the "
                       "folder .storage of Home Assistant",
                       name, list);
    return 0;
}

static const cJSON *find(const cJSON *list, const char *id)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, list)
    {
        const char *s = text_of(v, "id");
        if (id && s && strcmp(s, id) == 0)
            return v;
    }
    return NULL;
}

/* ---- YAML ----------------------------------------------------------------------------------- */

/* A text in quotes: JSON's are YAML's.  Line breaks and ';' cannot be in a name. */
static void put_text(struct buf *b, const char *s)
{
    struct json_out j = json_out_make(b);
    char name[80 + 1];
    size_t n = 0;
    for (; *s && n < sizeof(name) - 1; s++)
        name[n++] = (unsigned char)*s < ' ' || *s == ';' ? ' ' : *s;
    while (n > 0 && ((unsigned char)name[n - 1] & 0xc0) == 0x80 && *s) /* a cut character */
        n--;
    if (*s && n > 0 && ((unsigned char)name[n - 1] & 0x80))
        n--;
    name[n] = '\0';
    json_out_str(&j, name);
}

static void put_aliases(struct buf *b, const cJSON *list)
{
    const cJSON *v;
    uint32_t n = 0;
    cJSON_ArrayForEach(v, list)
    {
        const char *s = cJSON_GetStringValue(v);
        if (!s || !s[strspn(s, " \t\r\n;")] || n == 31)
            continue;
        buf_puts(b, n++ ? ", " : ", aliases: [");
        put_text(b, s);
    }
    if (n)
        buf_putc(b, ']');
}

/* Letters that an id may have; others become '_'. */
static void put_id(struct buf *b, const char *s)
{
    char id[120 + 1];
    size_t n = 0;
    for (; *s && n < sizeof(id) - 1; s++)
        id[n++] = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
                          (*s >= '0' && *s <= '9') || strchr("_.-:/", *s)
                      ? *s
                      : '_';
    id[n] = '\0';
    struct json_out j = json_out_make(b);
    json_out_str(&j, id);
}

/* ---- entities ------------------------------------------------------------------------------- */

static const struct {
    const char *domain; /* of Home Assistant */
    enum home_thing_type type;
    const char *kind; /* NULL: none */
} domains[] = {
    {"light", HOME_THING_DEVICE, "light"},
    {"switch", HOME_THING_DEVICE, "switch"},
    {"input_boolean", HOME_THING_DEVICE, "switch"},
    {"fan", HOME_THING_DEVICE, "fan"},
    {"cover", HOME_THING_DEVICE, "cover"},
    {"lock", HOME_THING_DEVICE, "lock"},
    {"climate", HOME_THING_DEVICE, "climate"},
    {"water_heater", HOME_THING_DEVICE, "heater"},
    {"humidifier", HOME_THING_DEVICE, "appliance"},
    {"media_player", HOME_THING_DEVICE, "media"},
    {"vacuum", HOME_THING_DEVICE, "vacuum"},
    {"lawn_mower", HOME_THING_DEVICE, "vacuum"},
    {"alarm_control_panel", HOME_THING_DEVICE, "alarm"},
    {"camera", HOME_THING_DEVICE, "camera"},
    {"valve", HOME_THING_DEVICE, "valve"},
    {"siren", HOME_THING_DEVICE, "switch"},
    {"sensor", HOME_THING_SENSOR, NULL},
    {"binary_sensor", HOME_THING_SENSOR, NULL},
    {"person", HOME_THING_PERSON, NULL},
    {"scene", HOME_THING_SCENE, NULL},
};

/* Covers that are doors: opening them gives access. */
static const char *kind_of(size_t domain, const cJSON *entity)
{
    const char *class = text_of(entity, "device_class");
    if (!class)
        class = text_of(entity, "original_device_class");
    if (strcmp(domains[domain].domain, "cover") == 0 && class &&
        (strcmp(class, "garage") == 0 || strcmp(class, "gate") == 0 || strcmp(class, "door") == 0))
        return "door";
    if (strcmp(domains[domain].domain, "cover") == 0 && class && strcmp(class, "window") == 0)
        return "window";
    return domains[domain].kind;
}

/* The row of an entity's domain; false: not used in a home file. */
static bool domain_of(const cJSON *entity, size_t *out)
{
    const char *id = text_of(entity, "entity_id");
    size_t n = id ? strcspn(id, ".") : 0;
    if (!id || !id[n] || !id[n + 1] || text_of(entity, "disabled_by") ||
        text_of(entity, "hidden_by") || text_of(entity, "entity_category"))
        return false;
    for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++)
        if (strlen(domains[i].domain) == n && memcmp(domains[i].domain, id, n) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* An entity's name: the user's, else the device's and its own. */
static void put_name(struct buf *b, const cJSON *entity, const cJSON *device)
{
    const char *name = text_of(entity, "name"), *of = text_of(device, "name_by_user");
    const char *own = text_of(entity, "original_name");
    char both[160];
    if (!of)
        of = text_of(device, "name");
    if (!name && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entity, "has_entity_name")) && of) {
        snprintf(both, sizeof(both), "%.70s%s%.70s", of, own ? " " : "", own ? own : "");
        name = both;
    }
    if (!name)
        name = own ? own : of;
    if (!name || !name[strspn(name, " \t\r\n;")])
        return; /* the id provides the name instead */
    buf_puts(b, ", name: ");
    put_text(b, name);
}

static void put_entity(struct buf *b, const cJSON *entity, size_t domain, const cJSON *areas,
                       const cJSON *devices)
{
    const cJSON *device = find(devices, text_of(entity, "device_id"));
    const char *area = text_of(entity, "area_id"), *unit = text_of(entity, "unit_of_measurement");
    enum home_thing_type type = domains[domain].type;
    const char *kind = kind_of(domain, entity);
    if (!area)
        area = text_of(device, "area_id");
    buf_puts(b, "  - {id: ");
    put_id(b, text_of(entity, "entity_id"));
    put_name(b, entity, device);
    put_aliases(b, cJSON_GetObjectItemCaseSensitive(entity, "aliases"));
    if (kind)
        buf_printf(b, ", kind: %s", kind);
    if (type != HOME_THING_PERSON && find(areas, area)) {
        buf_puts(b, ", room: ");
        put_id(b, area);
    }
    if (type == HOME_THING_SENSOR && unit) {
        buf_puts(b, ", unit: ");
        put_text(b, unit);
    }
    buf_puts(b, "}\n");
}

static void put_rooms(struct buf *b, const cJSON *areas, struct home_import_report *report)
{
    const cJSON *v;
    cJSON_ArrayForEach(v, areas)
    {
        const char *id = text_of(v, "id"), *name = text_of(v, "name");
        if (!id)
            continue;
        buf_puts(b, report->rooms++ ? "  - {id: " : "rooms:\n  - {id: ");
        put_id(b, id);
        if (name && name[strspn(name, " \t\r\n;")]) {
            buf_puts(b, ", name: ");
            put_text(b, name);
        }
        put_aliases(b, cJSON_GetObjectItemCaseSensitive(v, "aliases"));
        buf_puts(b, "}\n");
    }
}

int home_import_write(const struct home_import *in, struct buf *out,
                      struct home_import_report *report, struct err *e)
{
    cJSON *docs[3] = {NULL};
    const cJSON *areas, *devices, *entities, *v;
    size_t domain;
    *report = (struct home_import_report){0};
    int rc = parse(&docs[0], &in->areas, "areas", "core.area_registry", &areas, e);
    if (rc == 0)
        rc = parse(&docs[1], &in->devices, "devices", "core.device_registry", &devices, e);
    if (rc == 0 && !in->entities.text)
        rc = err_set(e, SHOAL_EINVAL, "core.entity_registry is missing");
    if (rc == 0)
        rc = parse(&docs[2], &in->entities, "entities", "core.entity_registry", &entities, e);
    if (rc == 0) {
        buf_puts(out, "# from the registries of Home Assistant\n");
        put_rooms(out, areas, report);
        for (enum home_thing_type t = HOME_THING_DEVICE; t < HOME_THING_COUNT; t++) {
            bool any = false;
            cJSON_ArrayForEach(v, entities)
            {
                if (!domain_of(v, &domain) || domains[domain].type != t)
                    continue;
                if (!any)
                    buf_printf(out, "%s:\n", home_file_list_name(t));
                any = true;
                put_entity(out, v, domain, areas, devices);
                report->things++;
            }
        }
        report->skipped = (uint32_t)cJSON_GetArraySize(entities) - report->things;
        if (out->rc < 0)
            rc = err_set(e, out->rc, "out of memory");
    }
    for (size_t i = 0; i < 3; i++)
        cJSON_Delete(docs[i]);
    return rc;
}
