/* config_deeds.c - see config_deeds.h. */
#include "config/config_deeds.h"

#include <string.h>

#include "base/mem.h"
#include "base/room.h"
#include "config/config_modbus.h"
#include "config/config_url.h"
#include "config/config_where.h"
#include "config/deed_text.h"
#include "mqtt/mqtt_topic.h"
#include "mqtt/payload.h"

static const char *check_way(struct config_deed *k)
{
    switch (k->via) {
    case CONFIG_DEED_MQTT:
        if (!k->topic || strpbrk(k->topic, "+#") || !deed_text_ok(k->topic))
            return "via: mqtt needs a topic; words in braces are id, ability, value, unit, action";
        break;
    case CONFIG_DEED_HTTP:
        if (!k->url || !deed_text_ok(k->url))
            return "via: http needs a url";
        return config_url_split(k->url, &k->server, &k->path);
    case CONFIG_DEED_MODBUS:
        if (!k->tag)
            return "via: modbus needs a tag, such as press.setpoint";
        break;
    default:
        if (k->command.n == 0 || k->command.v[0][0] != '/' || strchr(k->command.v[0], '{'))
            return "via: command needs a list whose first entry is the absolute path of a program";
        for (uint32_t i = 0; i < k->command.n; i++)
            if (!deed_text_ok(k->command.v[i]))
                return "words in braces are id, ability, value, unit, action";
    }
    return NULL;
}

static const char *check_state(const struct config_deed *k)
{
    char filter[MQTT_TOPIC_MAX_BYTES];
    if (!k->state)
        return k->state_value ? "state_value needs state" : NULL;
    if (!deed_text_filter(filter, sizeof(filter), k->state))
        return "state must be a topic in which {id} and {ability} are whole levels";
    if (!strstr(k->state, "{id}") && (k->things.n != 1 || strchr(k->things.v[0], '*')))
        return "state needs {id}, or things must be one id";
    if (!strstr(k->state, "{ability}") && !k->ability)
        return "state needs {ability}, or the entry an ability";
    if (k->state_value && !payload_path_ok(k->state_value))
        return "state_value must be a path such as state.power";
    return NULL;
}

int config_deeds_take(struct yaml_in *r, yaml_node_t *at, void *item, struct config_deeds *c)
{
    struct config_deed *k = item;
    const char *wrong = check_way(k);
    if (!wrong)
        wrong = check_state(k);
    if (!wrong && !deed_text_ok(k->payload))
        wrong = "words in braces are id, ability, value, unit, action";
    for (uint32_t i = 0; !wrong && i < k->values.n; i++)
        if (!strchr(k->values.v[i], '='))
            wrong = "values must be a list such as [\"on=ON\", \"off=OFF\"]";
    for (uint32_t i = 0; !wrong && i < k->state_values.n; i++)
        if (!strchr(k->state_values.v[i], '='))
            wrong = "state_values must be a list such as [\"locked=LOCKED\"]";
    if (!wrong && !room_next(&c->v, c->n, sizeof(*c->v)))
        wrong = "out of memory";
    if (wrong) {
        mem_free(k->server);
        mem_free(k->path);
        return yaml_in_fail(r, at, "%s", wrong);
    }
    c->v[c->n++] = *k;
    *k = (struct config_deed){0};
    return 0;
}

static int check_tag(const struct config_deed *k, const struct config_modbuses *modbus,
                     const struct config_where *w)
{
    uint32_t at;
    const struct config_modbus_tag *t = config_modbus_find(modbus, k->tag, &at);
    if (!t)
        return config_where_fail(w, "deeds[].tag", k->tag,
                                 "there is no tag %.100s; modbus has controllers with tags, as in "
                                 "press.setpoint",
                                 k->tag);
    if (t->table != CONFIG_MODBUS_COIL && t->table != CONFIG_MODBUS_HOLDING)
        return config_where_fail(
            w, "deeds[].tag", k->tag,
            "the tag %.100s can only be read; coils and holding registers can be set", k->tag);
    return 0;
}

int config_deeds_finish(const struct config_deeds *c, const struct config_modbuses *modbus,
                        const struct config_where *w)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct config_deed *k = &c->v[i];
        int rc = k->via == CONFIG_DEED_MODBUS ? check_tag(k, modbus, w) : 0;
        if (rc < 0)
            return rc;
        if (k->via == CONFIG_DEED_COMMAND && !yaml_in_strs_has(&c->commands, k->command.v[0]))
            return config_where_fail(w, "deeds[].command", k->command.v[0],
                                     "add %.100s to deeds_allow.commands to run it",
                                     k->command.v[0]);
        if (k->via == CONFIG_DEED_HTTP && !config_url_allowed(&c->hosts, k->server))
            return config_where_fail(w, "deeds[].url", k->url,
                                     "add %.100s to deeds_allow.hosts to call it",
                                     config_url_host(k->server));
    }
    return 0;
}

void config_deeds_fini(struct config_deeds *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct config_deed *k = &c->v[i];
        char *texts[] = {k->ability, k->topic, k->payload,     k->url,  k->server,
                         k->path,    k->state, k->state_value, k->unit, k->tag};
        for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
            mem_free(texts[t]);
        yaml_in_strs_fini(&k->things);
        yaml_in_strs_fini(&k->command);
        yaml_in_strs_fini(&k->values);
        yaml_in_strs_fini(&k->state_values);
    }
    mem_free(c->v);
}
