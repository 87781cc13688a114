/* encoder_specialist.h - classify, tag, embed and rerank with an encoder and its heads. */
#ifndef SHOAL_ENGINE_NATIVE_ENCODER_SPECIALIST_H
#define SHOAL_ENGINE_NATIVE_ENCODER_SPECIALIST_H

#include "format/model_file.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/specialist.h"

struct crew;
struct onnx_session;

/* Fills sp.  file and tokenizer are borrowed until the specialist is closed.  onnx: the
 * session that computes, taken over even if this fails; NULL: the native encoder computes, with
 * threads of the crew. */
SHOAL_MUST_CHECK int encoder_specialist_open(struct specialist *sp, const struct model_file *file,
                                             const struct tokenizer *tokenizer, const char *path,
                                             struct onnx_session *onnx, struct crew *crew,
                                             const struct shoal_engine_opts *o, struct err *e);

#endif
