/* onnx_encoder.h - an encoder in an .onnx file: token ids in, hidden states, pooled vectors or
 * logits out, whichever the file has.
 *
 * Inputs are found by name: input_ids, attention_mask, token_type_ids, position_ids; a file with
 * any other input is refused. Outputs: last_hidden_state or token_embeddings, logits (of the
 * sequence or of each token, by their shape), sentence_embedding, pooler_output. A trial run at
 * opening shows what a file really returns.
 *
 * Sequences are run one by one unless max_batch is larger. Files with dynamic INT8 quantization use
 * one scale for everything in a run, so another sequence, or its padding, would change the result.
 *
 * Thread:    belongs to one thread.
 * Ownership: open gives, close takes back (NULL is fine); results are borrowed until the next pass.
 * Failure:   as onnx_session.h; SHOAL_EUNSUPPORTED (inputs or outputs of another kind of model). */
#ifndef SHOAL_ENGINE_ONNX_ONNX_ENCODER_H
#define SHOAL_ENGINE_ONNX_ONNX_ENCODER_H

#include "base/err.h"
#include "model/encoder.h"

enum onnx_encoder_output {
    ONNX_ENCODER_HIDDEN,       /* each token: the last layer's vector */
    ONNX_ENCODER_TOKEN_LOGITS, /* each token: its classes */
    ONNX_ENCODER_LOGITS,       /* each sequence: its classes */
    ONNX_ENCODER_SENTENCE,     /* each sequence: its embedding, pooled by the model */
    ONNX_ENCODER_POOLED,       /* each sequence: BERT's pooler */
    ONNX_ENCODER_N_OUTPUTS
};

struct onnx_encoder_opts { /* all zero means defaults */
    uint32_t n_threads;    /* of open; 0: number of cores */
    uint32_t max_tokens;   /* longest sequence; 0: 512 */
    uint32_t max_batch;    /* sequences per run, padded to the longest; 0: 1 */
};

struct onnx_encoder_info {
    const char *library;                   /* "onnxruntime 1.24.3" */
    uint32_t n_threads, max_tokens;        /* max_tokens: less when the file has a fixed length */
    uint32_t dims[ONNX_ENCODER_N_OUTPUTS]; /* floats per token or sequence; 0: no such output */
    uint64_t file_bytes;
};

struct onnx_encoder;

SHOAL_MUST_CHECK int onnx_encoder_open(struct onnx_encoder **out, const char *path,
                                       const struct onnx_encoder_opts *o, struct err *e);
/* The same with an open session, which it takes over even if it fails. */
struct onnx_session;
SHOAL_MUST_CHECK int onnx_encoder_from_session(struct onnx_encoder **out, struct onnx_session *s,
                                               const struct onnx_encoder_opts *o, struct err *e);
void onnx_encoder_close(struct onnx_encoder *enc);
const struct onnx_encoder_info *onnx_encoder_info(const struct onnx_encoder *enc);

SHOAL_MUST_CHECK int onnx_encoder_forward(struct onnx_encoder *enc, const struct encoder_seq *seqs,
                                          uint32_t n_seqs, struct err *e);
/* Of the last pass: the vector of a token (HIDDEN, TOKEN_LOGITS; those of a sequence follow each
 * other) or of a sequence (the others; token is ignored).  NULL if the file does not have it. */
const float *onnx_encoder_get(const struct onnx_encoder *enc, enum onnx_encoder_output output,
                              uint32_t seq, uint32_t token);

#endif
