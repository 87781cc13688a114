/* graph_json.h - values as JSON.
 *
 * Thread: pure functions. */
#ifndef SHOAL_PIPELINE_GRAPH_GRAPH_JSON_H
#define SHOAL_PIPELINE_GRAPH_GRAPH_JSON_H

#include "base/value.h"
#include "wire/json_out.h"

/* One value.  Deeper than 64 levels: null. */
void graph_json_put(struct json_out *j, const struct value *v);

#endif
