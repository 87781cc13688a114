/* llamacpp.h - the interface of llama.cpp's server, where it differs from OpenAI's: bodies to
 * requests, events to answers.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_LLAMA_LLAMACPP_H
#define SHOAL_GATEWAY_API_LLAMA_LLAMACPP_H

#include "flow/request.h"
#include "gateway/api/llama/lora_api.h"
#include "gateway/call/fields.h"

struct call;

extern const struct field llamacpp_completion_fields[], llamacpp_infill_fields[],
    llamacpp_template_fields[];
extern const size_t llamacpp_n_completion_fields, llamacpp_n_infill_fields,
    llamacpp_n_template_fields;

struct llamacpp_shape { /* the format of the answer */
    bool stream, return_tokens;
    bool several; /* a list of answers */
    bool drawn;   /* probabilities after sampling */
    uint32_t n_prompts;
    int64_t id_slot;           /* below 0: none */
    const char *const *fields; /* [n_fields] of the answer, as PATH/PATH; n_fields 0: all */
    uint32_t n_fields;
    struct lora_choice lora;
};

/* A body into an empty request.  lenient: unknown fields are skipped. */
SHOAL_MUST_CHECK int llamacpp_read(struct request *r, struct llamacpp_shape *shape,
                                   const cJSON *body, bool infill, bool lenient,
                                   struct fields_error *e);
SHOAL_MUST_CHECK int llamacpp_read_template(struct request *r, struct llamacpp_shape *shape,
                                            const cJSON *body, bool lenient,
                                            struct fields_error *e);

/* Handlers. */
void llamacpp_completion(struct call *c);
void llamacpp_infill(struct call *c);
void llamacpp_apply_template(struct call *c);
void llamacpp_health(struct call *c);
void llamacpp_props(struct call *c);
void llamacpp_slots(struct call *c);

#endif
