/* transcriber.h - a specialist that writes down what is said in a sound: a speech recognizer of
 * src/model/t5.h, Moonshine or Whisper.
 *
 * A job is one sound of at most as many seconds as the engine was opened for (30); who has more
 * cuts it at a pause (src/audio/windows.h).  The jobs of a batch are decoded together.
 *
 * Guards: what the file's detector of speech (src/score/vad.h; metadata keys shoal.vad.config and
 * shoal.vad.weights) calls no speech has no text, long pauses at both ends are not heard; a text
 * that begins to repeat itself is cut where the repetition starts; no more tokens are written than
 * can be said in the time; digital silence has no text.  Whisper itself also says when nobody
 * speaks; a text of its that repeats itself, or that it is not sure of, is tried again, drawn at
 * higher and higher temperatures.
 *
 * The language ("labels" of the options) is told or heard; Whisper's texts have parts with times.
 */
#ifndef SHOAL_ENGINE_NATIVE_TRANSCRIBER_H
#define SHOAL_ENGINE_NATIVE_TRANSCRIBER_H

#include "engine/specialist.h"

struct crew;
struct model_file;
struct tokenizer;

/* Borrows file and t, which outlive the specialist. */
SHOAL_MUST_CHECK int transcriber_open(struct specialist *sp, const struct model_file *file,
                                      const struct tokenizer *t, const char *path,
                                      struct crew *crew, const struct shoal_engine_opts *o,
                                      struct err *e);

/* The length of `tokens` without the repetition at its end, n if there is none: the last 1 to 8
 * tokens, said so often one after the other that nobody says it. Exported for tests. */
uint32_t transcriber_unrepeated(const int32_t *tokens, uint32_t n);

#endif
