/* energy_json.h - the energy of a request in its usage: {"joules": 0.42, "estimated": false}.
 *
 * Thread:    pure. */
#ifndef SHOAL_GATEWAY_API_ENERGY_JSON_H
#define SHOAL_GATEWAY_API_ENERGY_JSON_H

#include "flow/sink.h"
#include "wire/json_out.h"

/* The member "energy"; nothing if it is not known. */
static inline void energy_json(struct json_out *j, const struct sink_energy *e)
{
    if (!e->known)
        return;
    json_out_key(j, "energy");
    json_out_object(j);
    json_out_key(j, "joules");
    json_out_rounded(j, e->joules, 6);
    json_out_key(j, "estimated");
    json_out_bool(j, e->estimated);
    json_out_object_end(j);
}

#endif
