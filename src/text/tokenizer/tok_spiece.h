/* tok_spiece.h - SentencePiece's model file (spiece.model, tokenizer.model), a protobuf message.
 *
 * Thread:    belongs to the call that loads.
 * Ownership: texts are borrowed from the bytes; tok_spiece_fini frees the list.
 * Failure:   SHOAL_EFORMAT says what and at which byte; SHOAL_EUNSUPPORTED names a kind of model
 *            that is not known; then nothing is left allocated. */
#ifndef SHOAL_TEXT_TOKENIZER_TOK_SPIECE_H
#define SHOAL_TEXT_TOKENIZER_TOK_SPIECE_H

#include "format/model_file.h"

enum tok_spiece_type {
    TOK_SPIECE_NORMAL = 1,
    TOK_SPIECE_UNKNOWN = 2,
    TOK_SPIECE_CONTROL = 3,
    TOK_SPIECE_USER_DEFINED = 4,
    TOK_SPIECE_UNUSED = 5,
    TOK_SPIECE_BYTE = 6,
};

struct tok_spiece_piece {
    struct str text;
    float score;
    uint32_t type;
};

struct tok_spiece {
    struct tok_spiece_piece *pieces;
    uint32_t n_pieces;
    struct str charsmap; /* n 0: none */
    int32_t unk, bos, eos, pad;
    bool bpe, byte_fallback, dummy_prefix, remove_extra, escape;
};

SHOAL_MUST_CHECK int tok_spiece_read(struct tok_spiece *m, const void *bytes, size_t n,
                                     struct err *e);
void tok_spiece_fini(struct tok_spiece *m);

#endif
