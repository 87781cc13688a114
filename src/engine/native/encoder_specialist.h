/* encoder_specialist.h - classify, tag, embed and rerank with an encoder and its heads. */
#ifndef SHOAL_ENGINE_NATIVE_ENCODER_SPECIALIST_H
#define SHOAL_ENGINE_NATIVE_ENCODER_SPECIALIST_H

#include "model/encoder.h"
#include "format/gguf.h"
#include "model/heads.h"
#include "text/tokenizer/tokenizer.h"
#include "engine/specialist.h"

struct onnx_session;

/* Fills sp.  g and tokenizer are borrowed until the specialist is closed.  onnx: runs there, and is
 * taken over, also when this fails; NULL: natively. */
SHOAL_MUST_CHECK int encoder_specialist_open(struct specialist *sp, const struct gguf *g,
                                             const struct tokenizer *tokenizer, const char *path,
                                             struct onnx_session *onnx,
                                             const struct shoal_engine_opts *o, struct err *e);

/* A native encoder with its heads, as engine options say; what was opened is the caller's even
 * after a failure. */
SHOAL_MUST_CHECK int encoder_core_open(struct encoder **encoder, struct heads **heads,
                                       const struct gguf *g, const struct tokenizer *tokenizer,
                                       const char *path, const struct shoal_engine_opts *o,
                                       struct err *e);
void encoder_core_info(const struct encoder *encoder, const struct gguf *g,
                       struct shoal_engine_info *out);

#endif
