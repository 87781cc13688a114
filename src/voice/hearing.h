/* hearing.h - one request to a recognizer: sounds in, their words out.
 *
 * Thread:    the owner's (flow/flow.h).
 * Ownership: a hearing ends itself: `done` is called exactly once unless it was cancelled, and what
 *            it gets is valid for the call. */
#ifndef SHOAL_VOICE_HEARING_H
#define SHOAL_VOICE_HEARING_H

#include "audio/transcript.h"
#include "flow/flow.h"

#define HEARING_PAUSE 1.0 /* seconds */

struct hearing;

struct hearing_words {
    const struct failure *failure; /* NULL: heard */
    const char *text;
    size_t text_bytes;
    float confidence;                /* mean probability of a token, over the sound; 0: no words */
    uint32_t speech_from, speech_to; /* samples of the whole sound; equal: nobody speaks */
    uint32_t pause; /* the middle of the first pause of HEARING_PAUSE between words; 0: none */
    const struct transcript *parts; /* the same by windows, with their times */
};

typedef void (*hearing_fn)(void *ctx, const struct hearing_words *w);

/* Takes r, whose inputs are the windows of a sound (REQUEST_INFER, TRANSCRIBE).  `done` may be
 * called before this returns; *out is then NULL. */
void hearing_start(struct hearing **out, struct flow_owner *o, struct request *r, hearing_fn done,
                   void *ctx);
/* Fills an empty request with one window; the samples are copied.  phrases: NULL: none.  draft:
 * what was heard in a part of it, which saves time; or NULL.  Its infer.labels, the language, may
 * be set before. */
SHOAL_MUST_CHECK int hearing_window(struct request *r, const int16_t *samples, uint32_t n,
                                    const char *phrases, const char *draft);
void hearing_cancel(struct hearing *h); /* `done` is not called any more */

#endif
