/* fuzz_responses.c - bodies of /v1/responses to requests.  The first byte chooses whether there is
 * a response before it, and whether unknown fields are skipped. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/api/openai/response_store.h"
#include "gateway/api/openai/responses.h"
#include "support/fuzz_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct chat_call calls[] = {{"call_1", "add", "{}", 2}};
    static const struct chat_message said[] = {
        {.role = "user", .content = "hello", .content_bytes = 5},
        {.role = "assistant", .content = "hi", .content_bytes = 2, .calls = calls, .n_calls = 1}};
    static const struct response_entry before = {.id = "resp_1",
                                                 .json = "{}",
                                                 .json_bytes = 2,
                                                 .messages = said,
                                                 .n_messages = 2,
                                                 .n_input = 1};
    struct fields_error e = {{0}, {0}, NULL};
    struct responses_shape shape;
    struct request *r = NULL;
    if (size < 1)
        return 0;
    cJSON *body = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (body)
        r = request_create();
    if (r) {
        const struct response_entry *previous = data[0] & 1 ? &before : NULL;
        int rc = responses_read(r, &shape, body, previous, data[0] & 2, &e);
        const struct chat *chat = &r->generate.chat;
        cJSON_Delete(body); /* the request is independent of it */
        body = NULL;
        fuzz_request(r, rc, &e);
        if (rc < 0 && !e.msg[0])
            abort(); /* an error must have a message */
        if (rc == 0 && (request_choices(&r->generate) != 1 || shape.n_input == 0 ||
                        chat->n_messages != shape.n_instructions + shape.n_input +
                                                (previous ? previous->n_messages : 0)))
            abort();
        for (uint32_t i = 0; rc == 0 && i < chat->n_messages; i++)
            for (uint32_t k = 0; k < chat->messages[i].n_calls; k++)
                if (strlen(chat->messages[i].calls[k].arguments) !=
                    chat->messages[i].calls[k].arguments_bytes)
                    abort();
    }
    request_destroy(r);
    cJSON_Delete(body);
    return 0;
}
