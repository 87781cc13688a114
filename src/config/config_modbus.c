/* config_modbus.c - see config_modbus.h. */
#include "config/config_modbus.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/room.h"
#include "config/config_things.h"
#include "config/config_where.h"
#include "things/things.h"

uint32_t config_modbus_width(const struct config_modbus_tag *t)
{
    switch (t->type) {
    case CONFIG_MODBUS_INT32:
    case CONFIG_MODBUS_UINT32:
    case CONFIG_MODBUS_FLOAT32:
        return 2;
    case CONFIG_MODBUS_FLOAT64:
        return 4;
    default:
        return 1;
    }
}

int config_modbus_take_tag(struct yaml_in *r, yaml_node_t *at, void *item, void *parent)
{
    struct config_modbus_tag *k = item;
    struct config_modbus *m = parent;
    bool bits = k->table == CONFIG_MODBUS_COIL || k->table == CONFIG_MODBUS_DISCRETE;
    if (bits)
        k->type = CONFIG_MODBUS_BOOL;
    if (strchr(k->name, '.'))
        return yaml_in_fail(r, at, "the name of a tag has no dot");
    if (k->scale == 0)
        return yaml_in_fail(r, at, "scale must not be 0");
    if (k->address + config_modbus_width(k) > 65536)
        return yaml_in_fail(r, at, "the registers of %.60s end after 65535", k->name);
    for (uint32_t i = 0; i < m->n_tags; i++)
        if (strcmp(m->tags[i].name, k->name) == 0)
            return yaml_in_fail(r, at, "two tags are named '%.60s'", k->name);
    struct config_modbus_tag *t = room_next(&m->tags, m->n_tags, sizeof(*t));
    if (!t)
        return err_set(r->e, SHOAL_ENOMEM, "%s", r->name);
    *t = *k;
    *k = (struct config_modbus_tag){0};
    m->n_tags++;
    return 0;
}

/* "HOST:PORT", "[::1]:502" */
static bool is_host(const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end;
    if (!colon || colon == text)
        return false;
    long port = strtol(colon + 1, &end, 10);
    return end > colon + 1 && !*end && port > 0 && port < 65536;
}

int config_modbus_take(struct yaml_in *r, yaml_node_t *at, void *item, struct config_modbuses *c)
{
    struct config_modbus *k = item;
    if (!is_host(k->host))
        return yaml_in_fail(r, at, "address must be HOST:PORT, such as 10.0.0.7:502");
    if (strstr(k->host, "://"))
        return yaml_in_fail(r, at, "address is HOST:PORT of a Modbus TCP server, without a scheme");
    if (strchr(k->name, '.'))
        return yaml_in_fail(r, at, "the name of a controller has no dot");
    if (k->n_tags == 0)
        return yaml_in_fail(r, at, "%.60s has no tags", k->name);
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->v[i].name, k->name) == 0)
            return yaml_in_fail(r, at, "two controllers are named '%.60s'", k->name);
    struct config_modbus *m = room_next(&c->v, c->n, sizeof(*m));
    if (!m)
        return err_set(r->e, SHOAL_ENOMEM, "%s", r->name);
    *m = *k;
    *k = (struct config_modbus){0};
    c->n++;
    return 0;
}

void config_modbus_drop(void *item)
{
    struct config_modbus *m = item;
    for (uint32_t i = 0; i < m->n_tags; i++) {
        mem_free(m->tags[i].name);
        mem_free(m->tags[i].sensor);
    }
    mem_free(m->tags);
    m->tags = NULL;
    m->n_tags = 0;
}

void config_modbus_fini(struct config_modbuses *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        config_modbus_drop(&c->v[i]);
        mem_free(c->v[i].name);
        mem_free(c->v[i].host);
    }
    mem_free(c->v);
}

static bool has_sensor(const struct config_things *things, const char *name)
{
    for (uint32_t i = 0; i < things->n_sensors; i++)
        if (strcmp(things->sensors[i].name, name) == 0)
            return true;
    return false;
}

int config_modbus_finish(const struct config_modbuses *c, const struct config_things *things,
                         const struct config_where *w)
{
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = 0; k < c->v[i].n_tags; k++) {
            const struct config_modbus_tag *t = &c->v[i].tags[k];
            if (t->sensor && !has_sensor(things, t->sensor))
                return config_where_fail(w, "modbus[].tags[].sensor", t->sensor,
                                         "the tag %.60s.%.60s is of the sensor '%.60s', which "
                                         "sensors does not have",
                                         c->v[i].name, t->name, t->sensor);
        }
    return 0;
}

const struct config_modbus_tag *config_modbus_find(const struct config_modbuses *c,
                                                   const char *name, uint32_t *at)
{
    const char *dot = strchr(name, '.');
    for (uint32_t i = 0; dot && i < c->n; i++) {
        const struct config_modbus *m = &c->v[i];
        if (strncmp(m->name, name, (size_t)(dot - name)) != 0 || m->name[dot - name])
            continue;
        for (uint32_t k = 0; k < m->n_tags; k++)
            if (strcmp(m->tags[k].name, dot + 1) == 0) {
                *at = i;
                return &m->tags[k];
            }
    }
    return NULL;
}
