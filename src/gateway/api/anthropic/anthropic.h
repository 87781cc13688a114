/* anthropic.h - Anthropic's Messages: bodies to requests, events to answers.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_ANTHROPIC_ANTHROPIC_H
#define SHOAL_GATEWAY_API_ANTHROPIC_ANTHROPIC_H

#include "flow/request.h"
#include "gateway/call/fields.h"

struct call;

extern const struct field anthropic_fields[], anthropic_count_fields[];
extern const size_t anthropic_n_fields, anthropic_n_count_fields;

/* A body of /v1/messages (count: of /v1/messages/count_tokens) into an empty request. */
SHOAL_MUST_CHECK int anthropic_read(struct request *r, bool *stream, const cJSON *body, bool count,
                                    bool lenient, struct fields_error *e);

/* Handlers. */
void anthropic_messages(struct call *c);
void anthropic_count_tokens(struct call *c);

#endif
