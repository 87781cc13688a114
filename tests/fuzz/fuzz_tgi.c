/* fuzz_tgi.c - bodies of Text Generation Inference to requests.  The first byte chooses the path,
 * and whether unknown fields are skipped. */
#include <stdint.h>
#include <stdlib.h>

#include "gateway/api/hf/tgi.h"
#include "support/fuzz_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Invariants that flow relies on. */
static void check(const struct request *r, const struct tgi_shape *shape)
{
    const struct request_generate *g = &r->generate;
    if (request_choices(g) != 1 || !g->prompts[0].text || g->max_tokens == 0 ||
        g->n_stop > REQUEST_MAX_STOPS || g->sampling.n_logprobs > 5 ||
        g->sampling.logprobs != (shape->stream || shape->details))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct tgi_shape shape;
    struct request *r = NULL;
    if (size < 1)
        return 0;
    cJSON *body = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (body)
        r = request_create();
    if (r) {
        bool lenient = data[0] & 4;
        int rc = tgi_read(r, &shape, body, data[0] & 1, lenient, &e);
        cJSON_Delete(body); /* the request is independent of it */
        body = NULL;
        fuzz_request(r, rc, &e);
        if (rc == 0)
            check(r, &shape);
        else if (!e.msg[0])
            abort(); /* an error must have a message */
    }
    request_destroy(r);
    cJSON_Delete(body);
    return 0;
}
