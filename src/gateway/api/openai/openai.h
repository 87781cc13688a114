/* openai.h - OpenAI's chat and text completions: bodies to requests, events to answers.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_OPENAI_H
#define SHOAL_GATEWAY_API_OPENAI_H

#include "flow/flow.h"
#include "gateway/call/answer.h"
#include "gateway/api/openai/openai_shape.h"
#include "gateway/call/fields.h"
#include "gateway/api/thinking.h"

struct call;

extern const struct field openai_chat_fields[], openai_completion_fields[];
extern const size_t openai_n_chat_fields, openai_n_completion_fields;

/* A body into an empty request.  lenient: unknown fields are skipped. */
SHOAL_MUST_CHECK int openai_read_chat(struct request *r, struct openai_shape *shape,
                                      const cJSON *body, bool lenient, struct fields_error *e);
SHOAL_MUST_CHECK int openai_read_completion(struct request *r, struct openai_shape *shape,
                                            const cJSON *body, bool lenient,
                                            struct fields_error *e);

/* Turns the events of a generation into an answer to the call. */
struct openai_answer {
    struct answer_sink answer; /* first */
    struct openai_shape shape;
    bool recalled;                                 /* the body was recalled, not parsed */
    bool explained;                                /* the route's decision was sent */
    struct buf prefix;                             /* what every chunk of a stream starts with */
    struct thinking thinking[REQUEST_MAX_CHOICES]; /* of a stream, */
    struct buf pieces[2]; /* and what a token adds to the answer and to the thought */
};

/* Connects a to the call; `closed` disconnects it.  SHOAL_ENOMEM: nothing was done. */
SHOAL_MUST_CHECK int openai_answer_open(struct openai_answer *a, struct call *c,
                                        const struct openai_shape *shape);

/* Handlers. */
/* The chat of a call, with its model name resolved; NULL: the call is answered with an error. */
struct request *openai_chat_request(struct call *c, struct openai_shape *shape);
void openai_chat(struct call *c);
void openai_moderations(struct call *c);
void openai_completions(struct call *c);
/* Answers a repeated body from the prompt cache.  False: the body must be parsed. */
bool openai_recall(struct call *c);

#endif
