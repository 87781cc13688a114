/* llama2c_vocab.h - reader of llama2.c's tokenizer.bin, for the model converter.
 *
 * The file: int32 max_token_length, then for each token float32 score, int32 length, bytes.  It
 * does not say how many tokens there are; the model does.  Pieces have spaces; byte tokens are
 * spelled <0x0A>; the first three are unknown, begin and end of text.
 *
 * Thread:    belongs to its caller.
 * Ownership: parse copies; llama2c_vocab_fini frees.
 * Failure:   SHOAL_EFORMAT when the bytes do not hold n_vocab tokens, SHOAL_ENOMEM; then nothing is
 *            left allocated. */
#ifndef SHOAL_FORMAT_CONVERT_LLAMA2C_VOCAB_H
#define SHOAL_FORMAT_CONVERT_LLAMA2C_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct llama2c_vocab { /* as GGUF wants them: tokenizer.ggml.tokens, .scores, .token_type */
    uint32_t n;
    const char **pieces; /* [n], not NUL-terminated; a space is U+2581 */
    size_t *piece_bytes; /* [n] */
    float *scores;       /* [n] */
    int32_t *types;      /* [n] enum token_type */
    int32_t bos, eos, unk;
    char *bytes; /* storage of the pieces */
};

SHOAL_MUST_CHECK int llama2c_vocab_parse(struct llama2c_vocab *out, const void *bytes, size_t n,
                                         uint32_t n_vocab, struct err *e);
void llama2c_vocab_fini(struct llama2c_vocab *v);

#endif
