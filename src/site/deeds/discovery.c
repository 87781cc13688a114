/* discovery.c - see discovery.h. */
#include "site/deeds/discovery.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_things.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "mqtt/mqtt.h"
#include "mqtt/mqtt_topic.h"
#include "site/deeds/deeds.h"
#include "site/deeds/discovery_read.h"
#include "wire/json_out.h"

struct entity {
    struct entity *next;
    uint64_t hash; /* hash of its message: it is retained, and arrives with every connection */
    cJSON *thing;  /* in the form of the home file; NULL: removed, or unusable */
    cJSON *room;   /* its room; NULL: none */
    char id[];
};

struct discovery {
    char prefix[128], own[128];
    struct mqtt *client;
    struct deeds *deeds;
    struct home_things *home;
    const struct home_table *table;
    struct entity *entities;
    uint32_t n;
};

/* ---- the home file ---- */

/* "Living Room" to "living_room". */
static void room_id(char *out, size_t cap, const char *name)
{
    size_t n = 0;
    for (; *name && n + 1 < cap; name++) {
        char c = (char)tolower((unsigned char)*name);
        out[n++] = isalnum((unsigned char)c) ? c : '_';
    }
    out[n] = '\0';
}

static bool same_id(const cJSON *thing, const char *id)
{
    const char *has = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(thing, "id"));
    return has && strcmp(has, id) == 0;
}

static cJSON *find_thing(cJSON *list, const char *id)
{
    cJSON *one;
    cJSON_ArrayForEach(one, list) if (same_id(one, id)) return one;
    return NULL;
}

/* The home with all entities; NULL: out of memory. */
static cJSON *merge(const struct discovery *d, struct home_file *file)
{
    struct buf b;
    buf_init(&b, HOME_FILE_MAX_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    home_file_json(&j, file);
    json_out_object_end(&j);
    cJSON *root = b.rc == 0 ? cJSON_ParseWithLength(buf_str(&b), b.len) : NULL;
    buf_fini(&b);
    cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices"),
          *rooms = cJSON_GetObjectItemCaseSensitive(root, "rooms");
    for (const struct entity *e = d->entities; e && devices && rooms; e = e->next) {
        cJSON *old = find_thing(devices, e->id);
        if (old)
            cJSON_Delete(cJSON_DetachItemViaPointer(devices, old));
        const char *room = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(e->room, "id"));
        if (e->thing && room && !find_thing(rooms, room))
            cJSON_AddItemToArray(rooms, cJSON_Duplicate(e->room, true));
        if (e->thing)
            cJSON_AddItemToArray(devices, cJSON_Duplicate(e->thing, true));
    }
    return root;
}

static int update_home(struct discovery *d, struct err *e)
{
    struct home_file *old = home_things_file(d->home), *next = NULL;
    cJSON *root = merge(d, old);
    char *text = root ? cJSON_PrintUnformatted(root) : NULL;
    int rc = text ? home_file_read_text(&next, d->table, text, strlen(text), "discovery", e)
                  : err_set(e, SHOAL_ENOMEM, "the home");
    if (rc == 0)
        home_things_set_file(d->home, next);
    cJSON_free(text);
    cJSON_Delete(root);
    home_file_unref(old);
    home_file_unref(next);
    return rc;
}

/* ---- entities ---- */

static void entity_clear(struct entity *e)
{
    cJSON_Delete(e->thing);
    cJSON_Delete(e->room);
    e->thing = e->room = NULL;
}

static struct entity *find_entity(struct discovery *d, const char *id)
{
    struct entity *e = d->entities;
    while (e && strcmp(e->id, id) != 0)
        e = e->next;
    if (e || d->n == DISCOVERY_MAX_ENTITIES)
        return e;
    e = mem_zalloc(sizeof(*e) + strlen(id) + 1);
    if (!e)
        return NULL;
    memcpy(e->id, id, strlen(id) + 1);
    e->next = d->entities;
    d->entities = e;
    d->n++;
    return e;
}

static void describe(struct entity *e, const struct discovery_entity *from)
{
    char room[100] = "";
    e->thing = cJSON_CreateObject();
    cJSON_AddStringToObject(e->thing, "id", from->id);
    cJSON_AddStringToObject(e->thing, "name", from->name);
    cJSON_AddStringToObject(e->thing, "kind", from->kind);
    cJSON *abilities = cJSON_AddArrayToObject(e->thing, "abilities");
    for (uint32_t i = 0; i < from->n_ways; i++)
        cJSON_AddItemToArray(abilities, cJSON_CreateString(from->ways[i].ability));
    if (!from->room)
        return;
    room_id(room, sizeof(room), from->room);
    cJSON_AddStringToObject(e->thing, "room", room);
    e->room = cJSON_CreateObject();
    cJSON_AddStringToObject(e->room, "id", room);
    cJSON_AddStringToObject(e->room, "name", from->room);
}

static int add_ways(struct discovery *d, const struct discovery_entity *from, struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < from->n_ways && rc == 0; i++) {
        const struct discovery_way *w = &from->ways[i];
        const struct deeds_way way = {.id = from->id,
                                      .ability = w->ability,
                                      .topic = w->topic,
                                      .payload = w->payload,
                                      .state = w->state,
                                      .state_value = w->state_value,
                                      .unit = w->unit,
                                      .values = w->values,
                                      .state_values = w->state_values,
                                      .n_values = w->n_values};
        rc = deeds_add(d->deeds, &way, e);
    }
    return rc;
}

static void take(struct discovery *d, struct entity *e, const struct discovery_entity *from)
{
    struct err why = {0};
    entity_clear(e);
    int rc = from->gone ? 0 : add_ways(d, from, &why);
    if (rc == 0 && !from->gone)
        describe(e, from);
    if (rc == 0)
        rc = update_home(d, &why);
    if (rc < 0) {
        entity_clear(e);
        log_warn("deeds", "the entity '%s' of Home Assistant is not used: %s", from->id, why.msg);
    } else {
        log_info("deeds", "an entity of Home Assistant is %s id=%s", from->gone ? "gone" : "known",
                 from->id);
    }
}

static void on_config(void *ctx, const struct mqtt_message *m)
{
    struct discovery *d = ctx;
    struct discovery_entity from;
    struct arena a;
    struct err e = {0};
    size_t skip = strlen(d->prefix) + 1;
    if (strlen(m->topic) <= skip || strstr(m->topic + skip, d->own))
        return;
    arena_init(&a, (size_t)1 << 20);
    int rc = discovery_read(&from, &a, m->topic + skip, m->payload, m->n, &e);
    struct entity *one = from.id && rc != SHOAL_ENOTFOUND ? find_entity(d, from.id) : NULL;
    uint64_t hash = hash_bytes(m->payload, m->n, hash_bytes(m->topic, strlen(m->topic), 21));
    if (one && one->hash != hash) {
        one->hash = hash;
        if (rc == 0)
            take(d, one, &from);
        else
            log_warn("deeds", "'%.100s' is not used: %s", m->topic, e.msg);
    }
    arena_fini(&a);
}

/* ---- life ---- */

int discovery_create(struct discovery **out, const char *prefix, const char *own,
                     struct mqtt *client, struct deeds *deeds, struct home_things *home,
                     const struct home_table *table, struct err *e)
{
    static const char *const tails[] = {"+/+/config", "+/+/+/config"};
    struct discovery *d = mem_zalloc(sizeof(*d));
    char filter[MQTT_TOPIC_MAX_BYTES];
    int rc = 0;
    *out = NULL;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "discovery");
    snprintf(d->prefix, sizeof(d->prefix), "%s", prefix);
    snprintf(d->own, sizeof(d->own), "/%s/", own);
    d->client = client;
    d->deeds = deeds;
    d->home = home;
    d->table = table;
    if (!mqtt_topic_is_name(prefix) || strlen(prefix) >= sizeof(d->prefix))
        rc = err_set(e, SHOAL_EINVAL, "mqtt.discovery: '%.100s' cannot begin a topic", prefix);
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        snprintf(filter, sizeof(filter), "%s/%s", prefix, tails[i]);
        rc = mqtt_subscribe(client, filter, 1, MQTT_RETAINED_ALWAYS, on_config, d, e);
    }
    if (rc < 0) {
        discovery_destroy(d);
        return rc;
    }
    *out = d;
    return 0;
}

void discovery_destroy(struct discovery *d)
{
    if (!d)
        return;
    while (d->entities) {
        struct entity *e = d->entities;
        d->entities = e->next;
        entity_clear(e);
        mem_free(e);
    }
    mem_free(d);
}
