/* tgi.h - /generate and /generate_stream in the format of Hugging Face's Text Generation Inference:
 * bodies to requests, events to answers.
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_HF_TGI_H
#define SHOAL_GATEWAY_API_HF_TGI_H

#include "flow/request.h"
#include "gateway/call/fields.h"

struct call;

extern const struct field tgi_fields[];
extern const size_t tgi_n_fields;

struct tgi_shape {                    /* the format of the answer */
    bool stream, details, full, list; /* full: include the prompt */
};

/* A body into an empty request.  lenient: unknown fields are skipped. */
SHOAL_MUST_CHECK int tgi_read(struct request *r, struct tgi_shape *shape, const cJSON *body,
                              bool stream, bool lenient, struct fields_error *e);

/* Handlers. */
void tgi_generate(struct call *c);
void tgi_generate_stream(struct call *c);
/* POST /: older clients call it; the answer is a list of one. */
void tgi_root(struct call *c);
/* Writes /info of the default generating model into c->out. False: none. */
bool tgi_put_info(struct call *c);

#endif
