/* hit_json.h - passages and collections as JSON, the same from the server and the command line.
 *
 * Thread: pure functions. */
#ifndef SHOAL_KNOWLEDGE_HIT_JSON_H
#define SHOAL_KNOWLEDGE_HIT_JSON_H

#include "store/collection.h"
#include "wire/json_out.h"

/* {"id": ..., "document": ..., ...}; with_text: the text too. */
void hit_json_put(struct json_out *j, const struct collection_hit *h, bool with_text);
/* The members of an object. */
void hit_json_info(struct json_out *j, const char *name, const struct collection_info *info);

#endif
