/* chunk.h - splits a document into overlapping passages of a bounded number of tokens.
 *
 * A passage stays within its section, and ends at the end of a sentence where one is near.
 *
 * Thread:    belongs to its caller.
 * Ownership: chunk_cut gives the list to the caller, who frees it with mem_free; its texts are
 *            borrowed from the document.
 * Failure:   SHOAL_ENOMEM; SHOAL_ELIMIT: more passages than max. */
#ifndef SHOAL_STORE_CHUNK_H
#define SHOAL_STORE_CHUNK_H

#include "store/doc/doc.h"

struct chunk {
    const char *heading, *ref, *text; /* not NUL-terminated */
    size_t heading_bytes, ref_bytes, text_bytes;
    uint32_t page, n_tokens;
};

struct chunk_opts {
    uint32_t max_tokens; /* 0: 160 */
    uint32_t overlap;    /* tokens; less than half of max_tokens */
    uint32_t max_chunks; /* 0: a million */
    /* Tokens of one word, as counted by the embedding model; NULL: chunk_guess. */
    uint32_t (*count)(void *ctx, const char *word, size_t n);
    void *ctx;
};

SHOAL_MUST_CHECK int chunk_cut(struct chunk **out, uint32_t *n, const struct doc *d,
                               const struct chunk_opts *o, struct err *e);
/* A conservative estimate without a tokenizer: a token per four letters or two digits, and per
 * other character. */
uint32_t chunk_guess(const char *word, size_t n);

#endif
