/* hf_folder.h - a Hugging Face folder (config.json, safetensors, tokenizer files) as a
 * struct model_file.
 *
 * Tensors have their GGUF names and point into the mapped files; where GGUF wants them transposed
 * or their rows in another order, they say so (enum model_file_order).  Settings become metadata;
 * the folder's documents are there verbatim, as strings that point into the mapped documents:
 *   huggingface.config              config.json
 *   huggingface.generation_config   generation_config.json
 *   huggingface.preprocessor        preprocessor_config.json
 *   huggingface.sentence_pooling    1_Pooling/config.json, or what modules.json names
 *   huggingface.sentence_dense.N    2_Dense/config.json and so on, N from 0; their weights are the
 *                                   tensors sentence_dense.N.weight and .bias
 *   huggingface.sentence_config     sentence_bert_config.json
 *   huggingface.sentence_settings   config_sentence_transformers.json
 *   huggingface.sentence_modules    modules.json
 *   tokenizer.huggingface.json      tokenizer.json
 *   tokenizer.huggingface.config    tokenizer_config.json
 *   tokenizer.chat_template         chat_template.jinja
 * and, without a tokenizer.json, the other files that a tokenizer is made of:
 *   tokenizer.huggingface.vocab_txt     vocab.txt
 *   tokenizer.huggingface.spiece        spiece.model, tokenizer.model or sentencepiece.bpe.model,
 *                                       an array of bytes
 *   tokenizer.huggingface.source_spm    source.spm (Marian), an array of bytes
 *   tokenizer.huggingface.vocab_json    vocab.json
 *   tokenizer.huggingface.merges_txt    merges.txt
 *
 * Thread:    as model_file.h.
 * Ownership: the model belongs to the caller: model_file_close.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT, SHOAL_EUNSUPPORTED (an architecture, a setting or a tensor
 *            by name), SHOAL_ELIMIT, SHOAL_ENOMEM; then *out is NULL. */
#ifndef SHOAL_FORMAT_HF_HF_FOLDER_H
#define SHOAL_FORMAT_HF_HF_FOLDER_H

#include "base/err.h"
#include "format/model_file.h"

SHOAL_MUST_CHECK int hf_folder_open(struct model_file **out, const char *path, struct err *e);
/* Metadata and documents only, of any model_type, for a folder whose weights have another format;
 * config.json may be missing. */
SHOAL_MUST_CHECK int hf_folder_open_documents(struct model_file **out, const char *path,
                                              struct err *e);

#endif
