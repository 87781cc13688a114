/* hf_folder.h - a Hugging Face folder (config.json, safetensors, tokenizer files) shown as a GGUF.
 *
 * Tensors appear under their GGUF names and point into the mapped files; where GGUF wants them
 * transposed or their rows in another order, they say so (gguf_order).  Settings become GGUF
 * metadata; the folder's JSON documents are there verbatim as strings:
 *   huggingface.config              config.json
 *   huggingface.generation_config   generation_config.json
 *   huggingface.preprocessor        preprocessor_config.json
 *   huggingface.sentence_pooling    1_Pooling/config.json
 *   huggingface.sentence_config     sentence_bert_config.json
 *   huggingface.sentence_modules    modules.json
 *   tokenizer.huggingface.json      tokenizer.json
 *   tokenizer.huggingface.config    tokenizer_config.json
 *   tokenizer.chat_template         chat_template.jinja
 * and without a tokenizer.json what else a tokenizer is made of:
 *   tokenizer.huggingface.vocab_txt     vocab.txt
 *   tokenizer.huggingface.spiece        spiece.model, tokenizer.model or sentencepiece.bpe.model,
 *                                       an array of bytes
 *   tokenizer.huggingface.vocab_json    vocab.json
 *   tokenizer.huggingface.merges_txt    merges.txt
 *
 * Thread:    as gguf.h.
 * Ownership: the view belongs to the caller: gguf_close.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT, SHOAL_EUNSUPPORTED (an architecture, a setting or a tensor
 *            by name), SHOAL_ELIMIT, SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_FORMAT_HF_HF_FOLDER_H
#define SHOAL_FORMAT_HF_HF_FOLDER_H

#include "base/err.h"
#include "format/gguf.h"

SHOAL_MUST_CHECK int hf_folder_open(struct gguf **out, const char *path, struct err *e);
/* The folder without its weights, for one whose weights are of another format: metadata and
 * documents only, of any model_type; config.json may be missing. */
SHOAL_MUST_CHECK int hf_folder_open_documents(struct gguf **out, const char *path, struct err *e);

#endif
