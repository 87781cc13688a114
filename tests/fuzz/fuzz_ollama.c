/* fuzz_ollama.c - bodies of Ollama's interface to requests.  The first byte chooses chat or
 * generate, and whether unknown fields are skipped. */
#include <stdint.h>
#include <stdlib.h>

#include "gateway/api/ollama/ollama.h"
#include "support/fuzz_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct ollama_shape shape;
    struct request *r = NULL;
    if (size < 1)
        return 0;
    cJSON *body = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (body)
        r = request_create();
    if (r) {
        int rc = ollama_read(r, &shape, body, NULL, data[0] & 1, data[0] & 2, &e);
        const struct request_generate *g = &r->generate;
        cJSON_Delete(body); /* the request is independent of it */
        body = NULL;
        fuzz_request(r, rc, &e);
        if (rc < 0 && !e.msg[0])
            abort(); /* an error must have a message */
        if (rc == 0 && (request_choices(g) != 1 || g->n_stop > REQUEST_MAX_STOPS ||
                        (g->chat.n_messages == 0 && !g->prompts[0].text)))
            abort();
    }
    request_destroy(r);
    cJSON_Delete(body);
    return 0;
}
