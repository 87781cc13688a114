/* model_file.h - opens a model, whatever it comes as: a GGUF file or a Hugging Face folder. */
#ifndef SHOAL_FORMAT_MODEL_FILE_H
#define SHOAL_FORMAT_MODEL_FILE_H

#include "base/err.h"
#include "format/gguf.h"

/* As gguf_open; gguf_close takes it back. */
SHOAL_MUST_CHECK int model_open(struct gguf **out, const char *path, struct err *e);

#endif
