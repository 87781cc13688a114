/* openai.h - OpenAI's chat and text completions: bodies to requests, events to answers.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_OPENAI_H
#define SHOAL_GATEWAY_API_OPENAI_H

#include <math.h>

#include "flow/flow.h"
#include "gateway/answer.h"
#include "gateway/api/openai/openai_shape.h"
#include "gateway/fields.h"

struct call;

extern const struct field openai_chat_fields[], openai_completion_fields[];
extern const size_t openai_n_chat_fields, openai_n_completion_fields;

/* A body into an empty request.  lenient: unknown fields are skipped. */
SHOAL_MUST_CHECK int openai_read_chat(struct request *r, struct openai_shape *shape,
                                      const cJSON *body, bool lenient, struct fields_error *e);
SHOAL_MUST_CHECK int openai_read_completion(struct request *r, struct openai_shape *shape,
                                            const cJSON *body, bool lenient,
                                            struct fields_error *e);
/* Parts of bodies that other interfaces share. */
SHOAL_MUST_CHECK int openai_read_messages(struct request *r, const cJSON *messages, bool lenient,
                                          struct fields_error *e);
/* Message i, into *m, which is zero.  Errors name messages[i]. */
SHOAL_MUST_CHECK int openai_read_message(struct request *r, struct chat_message *m, const cJSON *v,
                                         int i, bool lenient, struct fields_error *e);
/* A content of message i: a text, or parts that are texts. */
SHOAL_MUST_CHECK int openai_read_content(struct request *r, struct chat_message *m,
                                         const cJSON *content, int i, struct fields_error *e);
SHOAL_MUST_CHECK int openai_read_bias(struct request *r, const cJSON *bias, struct fields_error *e);
SHOAL_MUST_CHECK int openai_read_template_vars(struct request *r, const cJSON *vars,
                                               struct fields_error *e);
/* Sets the prompts; generate.n is set.  may_mix: texts and token ids in one list are one prompt. */
SHOAL_MUST_CHECK int openai_read_prompt(struct request *r, const cJSON *prompt, bool may_mix,
                                        struct fields_error *e);
SHOAL_MUST_CHECK int openai_read_stop(struct request *r, const cJSON *stop, struct fields_error *e);
/* Adds a variable of the chat template; a client's variable of the same name wins. name: a
 * constant. */
void openai_add_var(struct request *r, const char *name, struct value v);
/* effort: a level of reasoning; NULL or "": none given. */
void openai_read_effort(struct request *r, const char *effort);
/* The answer continues the last message if that is the assistant's. */
void openai_prefill(struct request *r);
/* The role for the template, a constant; NULL: message i has an unknown role. */
const char *openai_role(const char *given, uint32_t i, struct fields_error *e);

/* -100 forbids a token. */
static inline struct shoal_bias openai_bias(int32_t token, double v)
{
    return (struct shoal_bias){token, v <= -100.0 ? -INFINITY : (float)v};
}

/* Turns the events of a generation into an answer to the call. */
struct openai_answer {
    struct answer_sink answer; /* first */
    struct openai_shape shape;
    bool recalled;     /* the body was recalled, not parsed */
    bool explained;    /* the route's decision was sent */
    struct buf prefix; /* what every chunk of a stream starts with */
};

/* Connects a to the call; `closed` disconnects it.  SHOAL_ENOMEM: nothing was done. */
SHOAL_MUST_CHECK int openai_answer_open(struct openai_answer *a, struct call *c,
                                        const struct openai_shape *shape);

/* Handlers. */
/* The chat of a call, with its model name resolved; NULL: the call is answered with an error. */
struct request *openai_chat_request(struct call *c, struct openai_shape *shape);
void openai_chat(struct call *c);
void openai_completions(struct call *c);
/* Answers a repeated body from the prompt cache.  False: the body must be parsed. */
bool openai_recall(struct call *c);

#endif
