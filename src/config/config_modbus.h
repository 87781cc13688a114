/* config_modbus.h - controllers that are read and set over Modbus TCP: entries of `modbus`.
 *
 * Thread:    while a configuration is read; constant afterwards.
 * Ownership: strings of an entry move into the configuration.
 * Failure:   as config_key.h. */
#ifndef SHOAL_CONFIG_CONFIG_MODBUS_H
#define SHOAL_CONFIG_CONFIG_MODBUS_H

#include <stdint.h>

#include "wire/yaml_in.h"

struct config_where;
struct config_things;

#define CONFIG_MAX_MODBUS 32u
#define CONFIG_MAX_TAGS 1024u

enum config_modbus_table {
    CONFIG_MODBUS_COIL,
    CONFIG_MODBUS_DISCRETE,
    CONFIG_MODBUS_INPUT,
    CONFIG_MODBUS_HOLDING
};
#define CONFIG_MODBUS_TABLES "coil|discrete|input|holding"

enum config_modbus_type {
    CONFIG_MODBUS_INT16,
    CONFIG_MODBUS_UINT16,
    CONFIG_MODBUS_INT32,
    CONFIG_MODBUS_UINT32,
    CONFIG_MODBUS_FLOAT32,
    CONFIG_MODBUS_FLOAT64,
    CONFIG_MODBUS_BOOL
};
#define CONFIG_MODBUS_TYPES "int16|uint16|int32|uint32|float32|float64|bool"

/* How the bytes A (the highest), B, C and D of a value lie in two registers. */
enum config_modbus_order {
    CONFIG_MODBUS_ABCD,
    CONFIG_MODBUS_CDAB,
    CONFIG_MODBUS_BADC,
    CONFIG_MODBUS_DCBA
};
#define CONFIG_MODBUS_ORDERS "abcd|cdab|badc|dcba"

struct config_modbus_tag {
    char *name;   /* unique in its controller */
    char *sensor; /* the sensor that it is a reading of; NULL: it is only set */
    uint32_t table, type, order, address;
    double scale, offset; /* value = scale * number in the registers + offset */
};

struct config_modbus { /* an entry of modbus */
    char *name, *host;
    uint32_t unit, every_ms, timeout_ms;
    struct config_modbus_tag *tags;
    uint32_t n_tags;
};

struct config_modbuses {
    struct config_modbus *v;
    uint32_t n;
};

int config_modbus_take_tag(struct yaml_in *r, yaml_node_t *at, void *item, void *parent);
int config_modbus_take(struct yaml_in *r, yaml_node_t *at, void *item, struct config_modbuses *c);
void config_modbus_drop(void *item); /* an entry that was not taken: its tags */
void config_modbus_fini(struct config_modbuses *c);
/* After the whole file was read: the sensors of tags must exist. */
SHOAL_MUST_CHECK int config_modbus_finish(const struct config_modbuses *c,
                                          const struct config_things *things,
                                          const struct config_where *w);
/* The registers, or coils, of a tag. */
uint32_t config_modbus_width(const struct config_modbus_tag *t);
/* "CONTROLLER.TAG"; NULL: there is none.  *at: the controller. */
const struct config_modbus_tag *config_modbus_find(const struct config_modbuses *c,
                                                   const char *name, uint32_t *at);

#endif
