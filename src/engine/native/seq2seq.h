/* seq2seq.h - summarizes with a sequence-to-sequence model. */
#ifndef SHOAL_ENGINE_NATIVE_SEQ2SEQ_H
#define SHOAL_ENGINE_NATIVE_SEQ2SEQ_H

#include "format/model_file.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/specialist.h"

struct crew;

/* Fills sp.  file and t are borrowed until the specialist is closed.  It computes with threads of
 * the crew. */
SHOAL_MUST_CHECK int seq2seq_open(struct specialist *sp, const struct model_file *file,
                                  const struct tokenizer *t, const char *path, struct crew *crew,
                                  const struct shoal_engine_opts *o, struct err *e);

#endif
