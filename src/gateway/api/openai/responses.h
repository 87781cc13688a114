/* responses.h - OpenAI's /v1/responses: bodies to requests, events to answers, and stored
 * responses.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_RESPONSES_H
#define SHOAL_GATEWAY_API_RESPONSES_H

#include "flow/request.h"
#include "gateway/call/fields.h"

struct call;
struct response_entry;

extern const struct field responses_fields[];
extern const size_t responses_n_fields;

struct responses_shape { /* fields of the request that the answer repeats; texts are the request's
                          */
    bool stream, store, logprobs, parallel_calls, truncates, background;
    bool progress, timings; /* streams: of the prefill; with each piece of text */
    const char *instructions, *previous_id, *user, *effort;
    const char *metadata, *tools, *tool_choice, *format; /* as JSON */
    double temperature, top_p;
    int64_t max_output_tokens, top_logprobs;
    const char *conversation;       /* its id; NULL: none */
    const char *conversation_items; /* the input, as JSON items for it */
    uint32_t n_instructions;        /* leading messages that belong only to this call */
    uint32_t n_input;               /* messages of the input */
};

/* The id of the response that the body continues from; NULL: none. */
const char *responses_previous(const cJSON *body);
/* A body into an empty request.  previous: that response, or NULL.  lenient: unknown fields are
 * skipped. */
SHOAL_MUST_CHECK int responses_read(struct request *r, struct responses_shape *shape,
                                    const cJSON *body, const struct response_entry *previous,
                                    bool lenient, struct fields_error *e);

/* The same from the call, with the response that it continues from. NULL: it was answered. */
struct request *responses_request(struct call *c, struct responses_shape *shape);

/* Handlers. */
void responses_create(struct call *c);
void responses_get(struct call *c);
void responses_delete(struct call *c);
void responses_cancel(struct call *c);

#endif
