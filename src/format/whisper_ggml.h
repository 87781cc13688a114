/* whisper_ggml.h - whisper.cpp's model files (ggml-tiny.bin, ...): Whisper's sizes, its vocabulary
 * and its tensors under OpenAI's names.  They become what GGUF files of Whisper have:
 * general.architecture "whisper", a byte-level tokenizer, tensors with the names of src/model/t5.h.
 *
 * The vocabulary has the bytes of each token in the order of their merges, from which the merges
 * are derived; the control tokens, which it lacks, are added.
 *
 * Thread, ownership, failure: as gguf.h. */
#ifndef SHOAL_FORMAT_WHISPER_GGML_H
#define SHOAL_FORMAT_WHISPER_GGML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct model_file;

/* Whether a file that begins with these bytes is one. */
bool whisper_ggml_is(const void *bytes, size_t n);
SHOAL_MUST_CHECK int whisper_ggml_open(struct model_file **out, const char *path, struct err *e);
/* The same from memory, which is borrowed until the model is closed. */
SHOAL_MUST_CHECK int whisper_ggml_parse(struct model_file **out, const void *bytes, size_t n,
                                        struct err *e);

#endif
