/* discovery_read.c - see discovery_read.h. */
#include "site/deeds/discovery_read.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/str.h"
#include "mqtt/mqtt_topic.h"
#include "mqtt/payload.h"
#include "wire/json_scan.h"

#define MAX_VALUES 4096u

struct reader {
    struct arena *a;
    const cJSON *json;
    const char *base; /* value of "~" */
};

static const char *text(const cJSON *o, const char *key, const char *brief)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!v)
        v = cJSON_GetObjectItemCaseSensitive(o, brief);
    return cJSON_GetStringValue(v);
}

/* A topic, with "~" at its beginning or end replaced; NULL: none. */
static const char *topic_of(struct reader *r, const char *key, const char *brief)
{
    const char *t = text(r->json, key, brief);
    size_t n = t ? strlen(t) : 0;
    if (n == 0)
        return NULL;
    const char *full = t[0] == '~'       ? arena_printf(r->a, "%s%s", r->base, t + 1)
                       : t[n - 1] == '~' ? arena_printf(r->a, "%.*s%s", (int)n - 1, t, r->base)
                                         : arena_printf(r->a, "%s", t);
    return mqtt_topic_is_name(full) && !strpbrk(full, "{}") ? full : NULL;
}

/* The path of "{{ value_json.a.b }}"; NULL: another template, or none. */
static const char *path_of(struct reader *r, const char *key, const char *brief)
{
    const char *t = text(r->json, key, brief), *p = t;
    if (!p || strncmp(p, "{{", 2) != 0)
        return NULL;
    p += 2 + strspn(p + 2, " ");
    if (strncmp(p, "value_json.", 11) != 0)
        return NULL;
    size_t n = strcspn(p + 11, " |}");
    const char *path = arena_printf(r->a, "%.*s", (int)n, p + 11);
    return n > 0 && payload_path_ok(path) ? path : NULL;
}

static const char *pair(struct reader *r, const char *ours, const char *key, const char *brief,
                        const char *fallback)
{
    const char *theirs = key ? text(r->json, key, brief) : NULL;
    return arena_printf(r->a, "%s=%.100s", ours, theirs ? theirs : fallback);
}

static void read_power(struct reader *r, struct discovery_way *w, bool json)
{
    w->ability = "power";
    w->n_values = 2;
    w->values[0] = pair(r, "on", json ? NULL : "payload_on", "pl_on", "ON");
    w->values[1] = pair(r, "off", json ? NULL : "payload_off", "pl_off", "OFF");
    const char *on = text(r->json, "state_on", "stat_on"),
               *off = text(r->json, "state_off", "stat_off");
    w->state_values[0] = on && !json ? arena_printf(r->a, "on=%.100s", on) : w->values[0];
    w->state_values[1] = off && !json ? arena_printf(r->a, "off=%.100s", off) : w->values[1];
    w->payload = json ? "{\"state\": \"{value}\"}" : "{value}";
    w->state_value = json ? "state" : path_of(r, "value_template", "val_tpl");
    if (!w->state_value)
        w->state_value = path_of(r, "state_value_template", "stat_val_tpl");
}

static void read_cover(struct reader *r, struct discovery_way *w)
{
    w->ability = "open";
    w->n_values = 2;
    w->values[0] = pair(r, "open", "payload_open", "pl_open", "OPEN");
    w->values[1] = pair(r, "closed", "payload_close", "pl_cls", "CLOSE");
    w->state_values[0] = pair(r, "open", "state_open", "stat_open", "open");
    w->state_values[1] = pair(r, "closed", "state_closed", "stat_clsd", "closed");
    w->payload = "{value}";
    w->state_value = path_of(r, "value_template", "val_tpl");
}

static void read_lock(struct reader *r, struct discovery_way *w)
{
    w->ability = "lock";
    w->n_values = 2;
    w->values[0] = pair(r, "locked", "payload_lock", "pl_lock", "LOCK");
    w->values[1] = pair(r, "unlocked", "payload_unlock", "pl_unlk", "UNLOCK");
    w->state_values[0] = pair(r, "locked", "state_locked", "stat_locked", "LOCKED");
    w->state_values[1] = pair(r, "unlocked", "state_unlocked", "stat_unlocked", "UNLOCKED");
    w->payload = "{value}";
    w->state_value = path_of(r, "value_template", "val_tpl");
}

/* A light whose brightness is in percent. */
static void read_brightness(struct reader *r, struct discovery_entity *out, bool json)
{
    const cJSON *scale = cJSON_GetObjectItemCaseSensitive(r->json, "brightness_scale");
    if (!scale)
        scale = cJSON_GetObjectItemCaseSensitive(r->json, "bri_scl");
    const char *topic =
        json ? out->ways[0].topic : topic_of(r, "brightness_command_topic", "bri_cmd_t");
    if (!cJSON_IsNumber(scale) || scale->valuedouble != 100 || !topic)
        return;
    struct discovery_way *w = &out->ways[out->n_ways++];
    w->ability = "brightness";
    w->unit = "percent";
    w->topic = topic;
    w->payload = json ? "{\"brightness\": {value}}" : "{value}";
    w->state = json ? out->ways[0].state : topic_of(r, "brightness_state_topic", "bri_stat_t");
    w->state_value = json ? "brightness" : path_of(r, "brightness_value_template", "bri_val_tpl");
}

/* A cover that can be half open, in percent, as Home Assistant counts: 100 is open. */
static void read_position(struct reader *r, struct discovery_entity *out)
{
    const char *topic = topic_of(r, "set_position_topic", "set_pos_t");
    const cJSON *open = cJSON_GetObjectItemCaseSensitive(r->json, "position_open"),
                *closed = cJSON_GetObjectItemCaseSensitive(r->json, "position_closed");
    bool usual = (!open || open->valuedouble == 100) && (!closed || closed->valuedouble == 0);
    if (!topic || !usual)
        return;
    struct discovery_way *w = &out->ways[out->n_ways++];
    w->ability = "position";
    w->unit = "percent";
    w->topic = topic;
    w->payload = "{value}";
    w->state = topic_of(r, "position_topic", "pos_t");
    w->state_value = path_of(r, "position_template", "pos_tpl");
}

/* Level i of a topic; n 0: none. */
static struct str level(const char *topic, int i)
{
    while (i-- > 0) {
        topic += strcspn(topic, "/");
        topic += *topic == '/';
    }
    return (struct str){topic, strcspn(topic, "/")};
}

static int read_entity(struct discovery_entity *out, struct reader *r, struct str kind,
                       struct err *e)
{
    bool json =
        text(r->json, "schema", "schema") && strcmp(text(r->json, "schema", "schema"), "json") == 0;
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(r->json, "device");
    if (!device)
        device = cJSON_GetObjectItemCaseSensitive(r->json, "dev");
    const char *name = text(r->json, "name", "name"), *of = text(device, "name", "name"),
               *room = text(device, "suggested_area", "sa"), *base = text(r->json, "~", "~");
    r->base = base ? base : "";
    struct discovery_way *w = &out->ways[0];
    w->topic = topic_of(r, "command_topic", "cmd_t");
    w->state = topic_of(r, "state_topic", "stat_t");
    if (!w->topic)
        return err_set(e, SHOAL_EFORMAT, "it has no command_topic");
    if (name || of)
        out->name = arena_printf(r->a, "%.80s", name ? name : of);
    if (room && room[0])
        out->room = arena_printf(r->a, "%.80s", room);
    out->n_ways = 1;
    if (str_is(kind, "cover"))
        read_cover(r, w);
    else if (str_is(kind, "lock"))
        read_lock(r, w);
    else
        read_power(r, w, json);
    if (str_is(kind, "light"))
        read_brightness(r, out, json);
    if (str_is(kind, "cover"))
        read_position(r, out);
    return r->a->rc < 0 ? err_set(e, r->a->rc, "out of memory") : 0;
}

int discovery_read(struct discovery_entity *out, struct arena *a, const char *topic,
                   const void *payload, size_t n, struct err *e)
{
    struct str kind = level(topic, 0), object = level(topic, 1), more = level(topic, 2);
    struct json_scan scan;
    *out = (struct discovery_entity){0};
    if (str_is(level(topic, 3), "config"))
        object = (struct str){object.p, object.n + 1 + more.n}; /* "node/object" */
    else if (!str_is(more, "config"))
        return err_set(e, SHOAL_ENOTFOUND, "it is not a discovery topic");
    static const char *const kinds[] = {"light", "switch", "fan", "cover", "lock"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (str_is(kind, kinds[i]))
            out->kind = kinds[i];
    if (!out->kind)
        return err_set(e, SHOAL_ENOTFOUND, "an unsupported kind of entity");
    char *id = arena_copy(a, arena_printf(a, "%s.%.*s", out->kind, (int)object.n, object.p),
                          strlen(out->kind) + 2 + object.n);
    if (!id || a->rc < 0)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    for (char *p = id; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", *p))
            *p = '_'; /* also "/": an id is one level of a topic */
    out->id = id;
    out->name = id + strlen(out->kind) + 1;
    if (object.n == 0 || object.n > 100)
        return err_set(e, SHOAL_EFORMAT, "its name is empty or too long");
    if (n == 0) {
        out->gone = true;
        return 0;
    }
    if (n > DISCOVERY_MAX_BYTES || json_scan(&scan, payload, n, MAX_VALUES, NULL) < 0)
        return err_set(e, SHOAL_EFORMAT, "it is too large, or contains NUL");
    cJSON *json = cJSON_ParseWithLength(payload, n);
    struct reader r = {a, json, ""};
    int rc = cJSON_IsObject(json) ? read_entity(out, &r, kind, e)
                                  : err_set(e, SHOAL_EFORMAT, "it is not a JSON object");
    cJSON_Delete(json);
    return rc;
}
