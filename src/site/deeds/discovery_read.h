/* discovery_read.h - Home Assistant's discovery messages: an entity as a thing of the home and the
 * ways to set it.
 *
 * Supported: light, switch, fan, cover and lock, with long and abbreviated keys, "~", and
 * templates of the form {{ value_json.NAME }}. Everything else is ignored.
 *
 * Thread:    pure.
 * Ownership: what is read lives in the arena.
 * Failure:   SHOAL_EFORMAT with what is missing; SHOAL_ENOTFOUND: an unsupported kind of entity. */
#ifndef SHOAL_SITE_DEEDS_DISCOVERY_READ_H
#define SHOAL_SITE_DEEDS_DISCOVERY_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define DISCOVERY_MAX_WAYS 2u
#define DISCOVERY_MAX_BYTES ((size_t)64 << 10)

struct discovery_way {
    const char *ability;
    const char *topic, *payload;
    const char *values[2], *state_values[2]; /* "on=ON" */
    uint32_t n_values;
    const char *state, *state_value; /* NULL: none */
    const char *unit;
};

struct discovery_entity {
    const char *id, *name, *kind, *room; /* room: its display name; NULL: none */
    bool gone;                           /* the entity was removed */
    struct discovery_way ways[DISCOVERY_MAX_WAYS];
    uint32_t n_ways;
};

/* topic: after the prefix: "light/hall/config" or "light/node/hall/config". */
SHOAL_MUST_CHECK int discovery_read(struct discovery_entity *out, struct arena *a,
                                    const char *topic, const void *payload, size_t n,
                                    struct err *e);

#endif
