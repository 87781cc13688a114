/* prompt_read.h - messages, texts and their settings, in the form in which OpenAI's bodies have
 * them and several interfaces repeat it.
 *
 * Thread: no state. */
#ifndef SHOAL_GATEWAY_API_PROMPT_READ_H
#define SHOAL_GATEWAY_API_PROMPT_READ_H

#include <math.h>

#include <cjson/cJSON.h>

#include "flow/request.h"
#include "gateway/call/fields.h"

SHOAL_MUST_CHECK int prompt_read_messages(struct request *r, const cJSON *messages, bool lenient,
                                          struct fields_error *e);
/* Message i, into *m, which is zero.  Errors name messages[i]. */
SHOAL_MUST_CHECK int prompt_read_message(struct request *r, struct chat_message *m, const cJSON *v,
                                         int i, bool lenient, struct fields_error *e);
/* A content of message i: a text, or parts that are texts. */
SHOAL_MUST_CHECK int prompt_read_content(struct request *r, struct chat_message *m,
                                         const cJSON *content, int i, struct fields_error *e);
SHOAL_MUST_CHECK int prompt_read_bias(struct request *r, const cJSON *bias, struct fields_error *e);
SHOAL_MUST_CHECK int prompt_read_vars(struct request *r, const cJSON *vars, struct fields_error *e);
/* Sets the prompts; generate.n is set.  may_mix: texts and token ids in one list are one prompt. */
SHOAL_MUST_CHECK int prompt_read_texts(struct request *r, const cJSON *prompt, bool may_mix,
                                       struct fields_error *e);
SHOAL_MUST_CHECK int prompt_read_stop(struct request *r, const cJSON *stop, struct fields_error *e);
/* Adds a variable of the chat template; a client's variable of the same name wins. name: a
 * constant. */
void prompt_add_var(struct request *r, const char *name, struct value v);
/* effort: a level of reasoning; NULL or "": none given. */
void prompt_read_effort(struct request *r, const char *effort);
/* The answer continues the last message if that is the assistant's. */
void prompt_prefill(struct request *r);
/* The role for the template, a constant; NULL: message i has an unknown role. */
const char *prompt_role(const char *given, uint32_t i, struct fields_error *e);

/* -100 forbids a token. */
static inline struct shoal_bias prompt_bias(int32_t token, double v)
{
    return (struct shoal_bias){token, v <= -100.0 ? -INFINITY : (float)v};
}

#endif
