/* fuzz_anthropic.c - bodies of Anthropic's interface to requests.  The first byte chooses messages
 * or count_tokens, and whether unknown fields are skipped. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/api/anthropic/anthropic.h"
#include "support/fuzz_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The calls and tools of a request must be complete. */
static void check(const struct chat *c)
{
    size_t n = 0;
    for (uint32_t i = 0; i < c->n_messages; i++) {
        const struct chat_message *m = &c->messages[i];
        n += strlen(m->role) + strlen(m->content);
        for (uint32_t k = 0; k < m->n_calls; k++)
            if (strlen(m->calls[k].arguments) != m->calls[k].arguments_bytes || !m->calls[k].id ||
                !m->calls[k].name)
                abort();
    }
    for (uint32_t i = 0; i < c->n_tools; i++)
        if (!c->tools[i].name[0] ||
            (c->tools[i].parameters.kind != VALUE_NULL && c->tools[i].parameters.kind != VALUE_MAP))
            abort();
    if (n == 0 || c->n_messages == 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = NULL;
    bool stream;
    if (size < 1)
        return 0;
    cJSON *body = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (body)
        r = request_create();
    if (r) {
        int rc = anthropic_read(r, &stream, body, data[0] & 1, data[0] & 2, &e);
        cJSON_Delete(body); /* the request is independent of it */
        body = NULL;
        fuzz_request(r, rc, &e);
        if (rc < 0 && !e.msg[0])
            abort(); /* an error must have a message */
        if (rc == 0)
            check(&r->generate.chat);
    }
    request_destroy(r);
    cJSON_Delete(body);
    return 0;
}
