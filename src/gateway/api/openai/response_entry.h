/* response_entry.h - a stored response: what response_store.h keeps and response_file.h writes. */
#ifndef SHOAL_GATEWAY_API_RESPONSE_ENTRY_H
#define SHOAL_GATEWAY_API_RESPONSE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/request.h"

#define RESPONSE_STORE_ID_BYTES 64u

struct response_entry {
    char id[RESPONSE_STORE_ID_BYTES], owner[RESPONSE_STORE_ID_BYTES];
    const char *json; /* the answer as it was sent */
    size_t json_bytes;
    /* [n_messages]: all so far, with the answer.  Their roles are constants. */
    const struct chat_message *messages;
    uint32_t n_messages, n_input; /* n_input: messages of this call's input, before the last one */
    bool running;                 /* it is not complete: not in the file */
};

#endif
