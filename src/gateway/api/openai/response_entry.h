/* response_entry.h - a stored response: what response_store.h keeps and response_file.h writes. */
#ifndef SHOAL_GATEWAY_API_RESPONSE_ENTRY_H
#define SHOAL_GATEWAY_API_RESPONSE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "flow/request.h"

#define RESPONSE_STORE_ID_BYTES 64u

/* A conversation is one too, without messages: its JSON holds its items (conversations.h). */
struct response_entry {
    char id[RESPONSE_STORE_ID_BYTES], owner[RESPONSE_STORE_ID_BYTES];
    const char *json; /* the answer as it was sent */
    size_t json_bytes;
    /* [n_messages]: all so far, with the answer.  Their roles are constants. */
    const struct chat_message *messages;
    uint32_t n_messages, n_input; /* n_input: messages of this call's input, before the last one */
    bool running;                 /* it is not complete: not in the file */
};

/* The id of a conversation begins like this, that of a response does not. */
#define RESPONSE_ENTRY_CONVERSATION "conv_"
static inline bool response_entry_is_conversation(const char *id)
{
    return strncmp(id, RESPONSE_ENTRY_CONVERSATION, sizeof(RESPONSE_ENTRY_CONVERSATION) - 1) == 0;
}

#endif
