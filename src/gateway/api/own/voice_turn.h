/* voice_turn.h - POST /v1/voice: a recorded turn in, what was said, done and answered out.
 *
 * The body is a sound of any format, or a form with the field "file".  The sound is recognized with
 * the names of the home as likely phrases, and its words are asked as /v1/process does
 * (gateway/api/own/process.h); the recognizer's confidence goes with them.  docs/VOICE.md
 *
 * Thread:    the loop's; voice_turn_read has no state. */
#ifndef SHOAL_GATEWAY_API_OWN_VOICE_TURN_H
#define SHOAL_GATEWAY_API_OWN_VOICE_TURN_H

#include "base/buf.h"
#include "base/str.h"
#include "flow/request.h"
#include "gateway/call/fields.h"

struct call;
struct gw_loop;

struct voice_ask { /* options of a turn; texts are copied */
    char room[128], session[64], model[128], recognizer[128];
    bool stream, no_reply, explain, unbiased;
};

/* One option by its name. */
SHOAL_MUST_CHECK int voice_turn_option(struct voice_ask *ask, const char *name, struct str value,
                                       bool lenient, struct fields_error *e);
/* A form with options and the sound.  *sound points into the body. */
SHOAL_MUST_CHECK int voice_turn_read(struct voice_ask *ask, struct str *sound, const char *type,
                                     const char *body, size_t n, bool lenient,
                                     struct fields_error *e);
/* The names of the loop's home, for a recognizer. */
void voice_turn_phrases(struct buf *b, struct gw_loop *gl);
void voice_turn_post(struct call *c);

#endif
