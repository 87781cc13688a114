/* speech.h - OpenAI's /v1/audio/speech: a text in, its sound out, as it is computed.
 *
 * The text is written out and cut into sentences; each becomes four inputs of the request, the
 * parts of its sound, so that the first can be sent while the others are computed.  Nothing is
 * kept.
 *
 * Thread:    the loop's; speech_read has no state. */
#ifndef SHOAL_GATEWAY_API_OPENAI_SPEECH_H
#define SHOAL_GATEWAY_API_OPENAI_SPEECH_H

#include "audio/audio_write.h"
#include "flow/request.h"
#include "gateway/call/fields.h"

struct call;

struct speech_ask {
    enum audio_form form;
    bool sse;
    const char *voice; /* in the body; NULL: the model's own */
};

extern const struct field speech_fields[];
extern const size_t speech_n_fields;

/* A body into an empty request. */
SHOAL_MUST_CHECK int speech_read(struct request *r, struct speech_ask *ask, const cJSON *body,
                                 bool lenient, struct fields_error *e);

/* A text to say as inputs of a request; its part that is wrong is 'input'. */
SHOAL_MUST_CHECK int speech_input(struct request *r, const char *text, struct fields_error *e);
/* Whether the memory for clients has room for the sound of r; false: the call is answered. */
SHOAL_MUST_CHECK bool speech_charge(struct call *c, const struct request *r);

/* Handler. */
void speech_create(struct call *c);

#endif
