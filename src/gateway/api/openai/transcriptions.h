/* transcriptions.h - OpenAI's /v1/audio/transcriptions: a form with a sound in, its words out; and
 * /v1/audio/translations: its words in English.
 *
 * gateway/api/sound.h decodes it.
 *
 * Thread:    the loop's; transcriptions_read has no state. */
#ifndef SHOAL_GATEWAY_API_OPENAI_TRANSCRIPTIONS_H
#define SHOAL_GATEWAY_API_OPENAI_TRANSCRIPTIONS_H

#include "audio/transcript.h"
#include "base/str.h"
#include "flow/request.h"
#include "gateway/call/fields.h"

struct call;

enum transcriptions_form {
    TRANSCRIPTIONS_JSON,
    TRANSCRIPTIONS_VERBOSE,
    TRANSCRIPTIONS_TEXT,
    TRANSCRIPTIONS_SRT,
    TRANSCRIPTIONS_VTT
};

struct transcriptions_ask { /* what the form says; texts point into the body */
    enum transcriptions_form form;
    bool stream, translates, words;
    const char *model;    /* in the request's arena; NULL: the default */
    const char *prompt;   /* there too; NULL: none */
    const char *language; /* there too, as shoal_infer_opts.labels; NULL: as it is heard */
    struct str sound;
};

/* The form into an empty request, without its sound.  lenient: unknown fields are skipped. */
SHOAL_MUST_CHECK int transcriptions_read(struct request *r, struct transcriptions_ask *ask,
                                         const char *type, const char *body, size_t n,
                                         bool translates, bool lenient, struct fields_error *e);
/* Handlers. */
void transcriptions_create(struct call *c);
void transcriptions_translate(struct call *c);

#endif
