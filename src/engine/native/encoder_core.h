/* encoder_core.h - a native encoder with its heads, opened as the engine's options say. */
#ifndef SHOAL_ENGINE_NATIVE_ENCODER_CORE_H
#define SHOAL_ENGINE_NATIVE_ENCODER_CORE_H

#include "format/model_file.h"
#include "model/encoder.h"
#include "model/heads.h"
#include "shoal/shoal.h"
#include "text/tokenizer/tokenizer.h"

/* tokenizer NULL: of a model that sees images.  Opened objects belong to the caller even after a
 * failure. */
SHOAL_MUST_CHECK int encoder_core_open(struct encoder **encoder, struct heads **heads,
                                       const struct model_file *file,
                                       const struct tokenizer *tokenizer, const char *path,
                                       struct crew *crew, const struct shoal_engine_opts *o,
                                       struct err *e);
void encoder_core_info(const struct encoder *encoder, const struct model_file *file,
                       struct shoal_engine_info *out);

#endif
