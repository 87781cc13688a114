/* ear.h - live sound to turns: where somebody begins to speak, when to hear the sound so far, and
 * when the turn is over.
 *
 * The ear measures loudness itself; what was speech and what was said come from a recognizer, which
 * the caller asks when the ear wants it.  A turn ends after a pause: a short one behind words that
 * may be complete, a longer one behind half a sentence.  What came before the speech is kept for a
 * moment (pre-roll), so that no first sound is lost.
 *
 * Thread:    belongs to its caller.
 * Ownership: init/fini over the caller's storage.
 * Failure:   SHOAL_ENOMEM of ear_feed. */
#ifndef SHOAL_VOICE_EAR_H
#define SHOAL_VOICE_EAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define EAR_RATE 16000u
#define EAR_MOST (28u * EAR_RATE) /* samples of a turn: what a recognizer hears at a time */

enum ear_next {
    EAR_WAIT, /* for more sound, or for what is being heard */
    EAR_HEAR, /* have the sound so far recognized: ear_begin, and ear_heard when it was */
    EAR_TURN, /* the turn is over: its words are those of the last ear_heard */
};

struct ear_heard { /* what a recognizer heard in the first n samples of the sound */
    uint32_t n;
    uint32_t speech_from, speech_to; /* samples; equal: nobody speaks */
    bool words;                      /* there is a text */
    bool unfinished;                 /* it is half a sentence */
};

struct ear {
    int16_t *sound; /* of the turn, with the pre-roll */
    uint32_t n, cap;
    uint64_t before; /* samples of the stream in front of sound[0] */
    bool finished;   /* the client says that nothing follows */
    bool hears;      /* a recognizer is at it */
    struct ear_heard last;
    /* private: loudness, in frames */
    float floor;        /* of the background */
    uint32_t n_framed;  /* samples that were measured */
    uint32_t loud_to;   /* the end of the last loud frame */
    uint32_t asked;     /* samples when it was heard last */
    float peak;         /* loudest frame of the turn */
    uint32_t n_clipped; /* samples at full scale */
};

void ear_init(struct ear *x);
void ear_fini(struct ear *x);
/* Takes as many samples as the turn has room for; returns how many.  Fewer: see ear_next first. */
SHOAL_MUST_CHECK int64_t ear_feed(struct ear *x, const int16_t *samples, uint32_t n);
/* Nothing follows; ear_next ends the turn as soon as all of it was heard. */
void ear_finish(struct ear *x);
enum ear_next ear_next(const struct ear *x);
/* The sound so far is being recognized; returns its samples. */
uint32_t ear_begin(struct ear *x);
void ear_heard(struct ear *x, const struct ear_heard *h);
/* It could not be recognized: it is tried again with more sound. */
void ear_missed(struct ear *x);
/* After EAR_TURN: the next turn begins; what was said meanwhile is part of it. */
void ear_next_turn(struct ear *x);
/* Forgets all of the sound, however the turn stands. */
void ear_drop(struct ear *x);

#endif
