/* model_open.h - opens a model in any supported format: a GGUF file, a Hugging Face folder or a
 * file of whisper.cpp. */
#ifndef SHOAL_FORMAT_MODEL_OPEN_H
#define SHOAL_FORMAT_MODEL_OPEN_H

#include "format/model_file.h"

/* As gguf_open and hf_folder_open; model_file_close takes it back. */
SHOAL_MUST_CHECK int model_open(struct model_file **out, const char *path, struct err *e);
/* The same for a file that may be encrypted; key_file: its key, or NULL. */
SHOAL_MUST_CHECK int model_open_with(struct model_file **out, const char *path,
                                     const char *key_file, struct err *e);
/* The same, but of an encrypted file the matrices of layers are not there yet: whoever reads them
 * asks model_file_need or model_file_fill. */
SHOAL_MUST_CHECK int model_open_parts(struct model_file **out, const char *path,
                                      const char *key_file, struct err *e);

/* Whether it is a readable file of whisper.cpp. */
bool model_open_is_whisper(const char *path);

#endif
