/* ollama_manage.h - Ollama's calls that change models: create, copy, delete, pull, push and blobs.
 * They need the same rights as /admin/models (guard.h).
 *
 * Thread: the loop's; files are read and written on the pool. */
#ifndef SHOAL_GATEWAY_API_OLLAMA_MANAGE_H
#define SHOAL_GATEWAY_API_OLLAMA_MANAGE_H

#include "gateway/call/fields.h"

struct call;
struct gw;
struct config;

extern const struct field ollama_create_fields[], ollama_copy_fields[], ollama_name_fields[];
extern const size_t ollama_n_create_fields, ollama_n_copy_fields, ollama_n_name_fields;

/* Opens the store and offers its models. A model that cannot be added, or that is outside the
 * configured folders, is logged and skipped. */
SHOAL_MUST_CHECK int ollama_manage_open(struct gw *gw, const struct config *config, struct err *e);
/* The same after a change of the store by another process. Reads the disk. */
void ollama_manage_refresh(struct gw *gw, const struct config *config);

/* Handlers. */
void ollama_create(struct call *c);
void ollama_copy(struct call *c);
void ollama_delete(struct call *c);
void ollama_pull(struct call *c);
void ollama_push(struct call *c);
void ollama_blob_head(struct call *c); /* HEAD */
void ollama_blob_put(struct call *c);

#endif
