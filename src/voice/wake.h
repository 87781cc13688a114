/* wake.h - a wake word: hears one word, always, for little work.
 *
 * The detector is a layer program (docs/SCORERS.md) over log_mel.h: LOG_MEL_BANDS channels in, the
 * probability that the word just ended out; its output's name is the word, its threshold the
 * decision.  training/voice/wake.py makes one.
 *
 * Thread:    a wake is immutable after open, for any number of threads; an ear belongs to one.
 * Ownership: create/destroy pairs; the wake outlives its ears.
 * Failure:   as recurrent_open; SHOAL_EFORMAT also for a program with other inputs and outputs. */
#ifndef SHOAL_VOICE_WAKE_H
#define SHOAL_VOICE_WAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct wake;
struct wake_ear;

/* path: a folder with config.json and its weights. */
SHOAL_MUST_CHECK int wake_open(struct wake **out, const char *path, struct err *e);
/* A name with a slash is a folder; otherwise it is the word of the pack (host/pack.h), and another
 * word is refused.  NULL: that of the pack. */
SHOAL_MUST_CHECK int wake_open_named(struct wake **out, const char *name, struct err *e);
void wake_close(struct wake *w); /* NULL is fine */
const char *wake_word(const struct wake *w);

SHOAL_MUST_CHECK int wake_ear_create(struct wake_ear **out, const struct wake *w, struct err *e);
void wake_ear_destroy(struct wake_ear *x); /* NULL is fine */
/* Forgets what it has heard. */
void wake_ear_reset(struct wake_ear *x);
/* The next n samples of 16 kHz.  Returns how many of them end with the word, or -1: it was not
 * said.  Behind a word the rest of the samples is not heard. */
int64_t wake_ear_feed(struct wake_ear *x, const int16_t *samples, uint32_t n);
/* How sure the detector was at most since the last reset or word. */
float wake_ear_peak(const struct wake_ear *x);
const char *wake_ear_word(const struct wake_ear *x);

#endif
