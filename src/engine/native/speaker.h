/* speaker.h - a specialist that says a text: a voice of src/model/voice, with the dictionary and
 * the rules of pronunciation that its file holds (metadata key shoal.sounds).
 *
 * A job is one piece of a text (src/text/speech/speech_text.h cuts longer ones), or one part of its
 * sound: so the first part can be heard while the rest is computed.  The frames of the last text
 * are kept; parts of the same text one after the other cost no more than the whole. */
#ifndef SHOAL_ENGINE_NATIVE_SPEAKER_H
#define SHOAL_ENGINE_NATIVE_SPEAKER_H

#include "engine/specialist.h"

struct crew;
struct model_file;

/* Borrows file, which outlives the specialist. */
SHOAL_MUST_CHECK int speaker_open(struct specialist *sp, const struct model_file *file,
                                  const char *path, struct crew *crew,
                                  const struct shoal_engine_opts *o, struct err *e);

#endif
