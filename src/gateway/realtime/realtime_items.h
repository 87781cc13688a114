/* realtime_items.h - the conversation of a /v1/realtime session: its items in OpenAI's form, and as
 * messages of a chat.
 *
 * Thread:    belongs to its caller.
 * Ownership: init/fini; items belong to the conversation.
 * Failure:   a sentence, or NULL; the oldest items go when it becomes too long. */
#ifndef SHOAL_GATEWAY_REALTIME_REALTIME_ITEMS_H
#define SHOAL_GATEWAY_REALTIME_REALTIME_ITEMS_H

#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#define REALTIME_MAX_ITEMS 256
#define REALTIME_MAX_ITEM_BYTES ((size_t)64 << 10)

struct realtime_items {
    cJSON *list; /* an array; NULL: none yet */
    uint64_t n_made;
    uint32_t salt; /* so that ids of two sessions differ */
};

void realtime_items_init(struct realtime_items *x);
void realtime_items_fini(struct realtime_items *x);
/* A copy of what a client sends, checked, with an id; behind: an id, or NULL: at the end. */
const char *realtime_items_add(struct realtime_items *x, const cJSON *item, const char *behind,
                               const cJSON **out);
/* What a user said or an assistant answered; part: the type of its content, with `key` for the
 * text.
 * NULL: out of memory. */
const cJSON *realtime_items_say(struct realtime_items *x, const char *id, const char *role,
                                const char *part, const char *key, const char *text);
const cJSON *realtime_items_call(struct realtime_items *x, const char *id, const char *call_id,
                                 const char *name, const char *arguments);
const cJSON *realtime_items_find(const struct realtime_items *x, const char *id);
/* The id of the item in front of this one, or NULL. */
const char *realtime_items_before(const struct realtime_items *x, const cJSON *item);
void realtime_items_remove(struct realtime_items *x, const cJSON *item);
/* A new id: "item_...", in out. */
void realtime_items_id(struct realtime_items *x, char *out, size_t cap);
/* The conversation as messages; NULL: out of memory. */
cJSON *realtime_items_messages(const struct realtime_items *x, const char *instructions);
/* The last words of the user, or "". */
const char *realtime_items_last_user(const struct realtime_items *x);

#endif
