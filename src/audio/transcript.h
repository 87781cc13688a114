/* transcript.h - what was heard in a sound, written in the forms that people use.
 *
 * Thread:    one at a time.
 * Ownership: init/fini over the caller's storage; texts are copied.
 * Failure:   sticks in the buffers' rc. */
#ifndef SHOAL_AUDIO_TRANSCRIPT_H
#define SHOAL_AUDIO_TRANSCRIPT_H

#include <stdint.h>

#include "base/buf.h"

struct json_out;
struct shoal_result;

enum transcript_form { TRANSCRIPT_TEXT, TRANSCRIPT_SRT, TRANSCRIPT_VTT };

struct transcript {
    struct buf text;  /* of all parts, separated by spaces */
    struct buf parts; /* private: their times and places in the text */
    struct buf words; /* private: the same of words, where results have them */
    double seconds;   /* the end of the last part, also of silence */
    char language[8]; /* of the first text whose result has one, as "en"; "": not known */
};

void transcript_init(struct transcript *t);
void transcript_fini(struct transcript *t);
void transcript_clear(struct transcript *t);
/* A window from start to end.  speech: start and end of each piece of speech in it, counted from
 * its
 * start: the part begins with the first and ends with the last; n_speech 0: not known.  Silence (an
 * empty text) only counts as time. */
void transcript_add(struct transcript *t, double start, double end, const double *speech,
                    uint32_t n_speech, const char *text, size_t n, float confidence);
/* The same for a recognizer's result: its parts, where it has any, or the whole window. */
void transcript_add_result(struct transcript *t, double start, double end,
                           const struct shoal_result *r);
uint32_t transcript_n(const struct transcript *t);
/* Writes all of it: the text on one line, or numbered captions with their times, one for each part,
 * or for each word where there are any. */
void transcript_put(const struct transcript *t, struct buf *out, enum transcript_form form);
/* "text", "duration", "segments" and, where there are any, "words" of an object. */
void transcript_json(const struct transcript *t, struct json_out *j);

#endif
