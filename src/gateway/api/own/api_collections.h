/* api_collections.h - /v1/collections: documents in, passages and cited answers out.
 *
 * Changes need an admin key, or the unix socket of a server without keys.
 *
 * Thread: the loop's; files are the pool's. */
#ifndef SHOAL_GATEWAY_API_OWN_API_COLLECTIONS_H
#define SHOAL_GATEWAY_API_OWN_API_COLLECTIONS_H

#include "gateway/call/call.h"

void api_collections_list(struct call *c);
void api_collections_make(struct call *c);
void api_collections_show(struct call *c);
void api_collections_drop(struct call *c);
/* NAME/documents, NAME/remove, NAME/query, NAME/answer */
void api_collections_post(struct call *c);

extern const struct field api_collections_make_fields[], api_collections_post_fields[];
extern const size_t api_n_collections_make_fields, api_n_collections_post_fields;

#endif
