/* slot_store.h - what a client's slots hold: the texts of its last requests with an id_slot, as
 * users of llama.cpp's server save and restore them.
 *
 * A slot is a name for a text that was evaluated.  Its keys and values are in the engine's pages,
 * which are found by their tokens whichever slot they came from; so a slot is saved as its text,
 * and restored by evaluating that again.
 *
 * Thread:    any; one lock inside.
 * Ownership: put copies; take gives the caller a copy (mem_free).
 * Failure:   a text that does not fit is not kept. */
#ifndef SHOAL_GATEWAY_API_SLOT_STORE_H
#define SHOAL_GATEWAY_API_SLOT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SLOT_STORE_MAX_ID 255u
#define SLOT_STORE_MAX_TEXT ((size_t)1 << 20)

struct slot_store;

SHOAL_MUST_CHECK int slot_store_create(struct slot_store **out, struct err *e);
void slot_store_destroy(struct slot_store *s); /* NULL is fine */
/* head and tail: the parts of the text; n_tokens: how many it took. */
void slot_store_put(struct slot_store *s, const char *owner, uint32_t id, const char *head,
                    size_t n_head, const char *tail, size_t n_tail, uint32_t n_tokens);
/* A NUL-terminated copy; NULL: the slot is empty, or no memory. */
char *slot_store_take(struct slot_store *s, const char *owner, uint32_t id, size_t *n,
                      uint32_t *n_tokens);
/* Empties it; returns how many tokens it had. */
uint32_t slot_store_erase(struct slot_store *s, const char *owner, uint32_t id);

#endif
