/* fuzz_specialists.c - bodies of requests to specialists and to the built-in flow.  The first byte
 * chooses the endpoint, and whether unknown fields are skipped. */
#include <stdint.h>
#include <stdlib.h>

#include "gateway/api/own/process.h"
#include "gateway/api/own/specialists.h"
#include "support/fuzz_request.h"

#define PROCESS (SPECIALIST_SCORE + 1u) /* corpus files predate the bodies added below */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_body(struct request *r, unsigned which, const cJSON *body, bool lenient,
                     struct fields_error *e)
{
    struct specialist_shape shape;
    bool stream;
    if (which == PROCESS)
        return process_read(r, &stream, body, lenient, e);
    which -= which > PROCESS;
    return specialists_read(r, &shape, (enum specialist_body)which, body, lenient, e);
}

/* Invariants that flow relies on. */
static void check(const struct request *r)
{
    const struct request_infer *q = &r->infer;
    if (r->kind == REQUEST_ASK) {
        if (!r->ask.text)
            abort();
        return;
    }
    if (q->n_inputs < 1 || q->n_inputs > REQUEST_MAX_INPUTS)
        abort();
    for (uint32_t i = 0; i < q->n_inputs; i++)
        if (q->kind == SHOAL_KIND_SCORE ? q->inputs[i].n_values == 0
            : q->inputs[i].ids          ? q->inputs[i].n_ids == 0
            : q->inputs[i].image        ? q->inputs[i].image_bytes == 0 || q->inputs[i].text
                                        : q->inputs[i].text_bytes == 0)
            abort();
    if (q->kind == SHOAL_KIND_RERANK && !q->query)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct request *r = NULL;
    if (size < 1)
        return 0;
    cJSON *body = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (body)
        r = request_create();
    if (r) {
        int rc =
            read_body(r, (data[0] & 127) % (SPECIALIST_N_BODIES + 1u), body, data[0] & 128, &e);
        cJSON_Delete(body); /* the request is independent of it */
        body = NULL;
        fuzz_request(r, rc, &e);
        if (rc == 0)
            check(r);
        else if (!e.msg[0])
            abort(); /* an error must have a message */
    }
    request_destroy(r);
    cJSON_Delete(body);
    return 0;
}
