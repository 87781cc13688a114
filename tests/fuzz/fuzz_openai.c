/* fuzz_openai.c - bodies of OpenAI's interface to requests.  The first byte chooses chat or text,
 * and whether unknown fields are skipped. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/api/openai/openai.h"
#include "support/fuzz_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Invariants that flow relies on. */
static void check(const struct request *r, const struct openai_shape *s)
{
    const struct request_generate *g = &r->generate;
    uint32_t n = request_choices(g);
    if (r->kind != REQUEST_GENERATE || n < 1 || n > REQUEST_MAX_CHOICES ||
        n != s->n_prompts * s->n || g->n_stop > REQUEST_MAX_STOPS ||
        g->sampling.n_bias > REQUEST_MAX_BIAS || g->sampling.n_logprobs > 20)
        abort();
    if (s->chat != (g->chat.n_messages > 0))
        abort();
    for (uint32_t i = 0; i < g->chat.n_messages; i++)
        if (!g->chat.messages[i].role ||
            strlen(g->chat.messages[i].content) != g->chat.messages[i].content_bytes)
            abort();
    for (uint32_t i = 0; !s->chat && i < g->n_prompts; i++)
        if (!g->prompts[i].text && g->prompts[i].n_ids == 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fields_error e = {{0}, {0}, NULL};
    struct openai_shape shape;
    struct request *r = NULL;
    if (size < 1)
        return 0;
    cJSON *body = cJSON_ParseWithLength((const char *)data + 1, size - 1);
    bool lenient = data[0] & 2;
    if (body)
        r = request_create();
    if (r) {
        int rc = data[0] & 1 ? openai_read_chat(r, &shape, body, lenient, &e)
                             : openai_read_completion(r, &shape, body, lenient, &e);
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
