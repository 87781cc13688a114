/* fuzz_llamacpp.c - bodies of llama.cpp's interface to requests.  The first byte chooses the path,
 * and whether unknown fields are skipped. */
#include <stdint.h>
#include <stdlib.h>

#include "gateway/api/llama/llamacpp.h"
#include "support/fuzz_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_prompt(const struct request_prompt *p)
{
    if (p->n_pieces > REQUEST_MAX_PIECES || (!p->text && p->n_ids == 0 && p->n_pieces == 0))
        abort();
    if (p->n_pieces > 0 && (p->n_ids > 0 || (p->text && !p->suffix)))
        abort(); /* files beside a text to fill in, or the prompt itself */
    for (uint32_t i = 0; i < p->n_pieces; i++)
        if (!p->pieces[i].text && p->pieces[i].n_ids == 0)
            abort();
}

/* Invariants that flow relies on. */
static void check(const struct request *r, const struct llamacpp_shape *shape)
{
    const struct request_generate *g = &r->generate;
    if (request_choices(g) < 1 || request_choices(g) > REQUEST_MAX_CHOICES ||
        g->n_prompts != shape->n_prompts || g->n_stop > REQUEST_MAX_STOPS ||
        g->sampling.n_logprobs > 20 || g->sampling.n_bias + g->n_bias_texts > REQUEST_MAX_BIAS)
        abort();
    for (uint32_t i = 0; g->chat.n_messages == 0 && i < g->n_prompts; i++)
        check_prompt(&g->prompts[i]);
    for (uint32_t i = 0; i < g->n_bias_texts; i++)
        if (!g->bias_texts[i].text[0])
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct llamacpp_shape shape;
    struct request *r = NULL;
    if (size < 1)
        return 0;
    cJSON *body = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    if (body)
        r = request_create();
    if (r) {
        bool lenient = data[0] & 4;
        int rc = (data[0] & 3) == 2 ? llamacpp_read_template(r, &shape, body, lenient, &e)
                                    : llamacpp_read(r, &shape, body, data[0] & 1, lenient, &e);
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
