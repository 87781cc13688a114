/* extract.h - extractive summaries: splits a text into sentences, those of a dialogue
 * with their speakers, computes features of each, and chooses some (models/summary.md).
 *
 * Thread:    immutable after opening; a document belongs to its caller.
 * Ownership: the caller closes the extractor and destroys documents (NULL is fine); a document
 *            borrows the extractor, not the text.
 * Failure:   SHOAL_EIO, SHOAL_EFORMAT (the text says what is wrong in the file), SHOAL_ENOMEM. */
#ifndef SHOAL_SCORE_EXTRACT_H
#define SHOAL_SCORE_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define EXTRACT_FEATURES 12u

struct extract;

/* True if a file is an extractor: its first bytes name the model type. */
bool extract_detect(const char *path);
SHOAL_MUST_CHECK int extract_open(struct extract **out, const char *path, struct err *e);
SHOAL_MUST_CHECK int extract_parse(struct extract **out, const char *json, size_t n, struct err *e);
void extract_close(struct extract *x);
/* The folder of the encoder that computes the sentence embeddings, relative to the file. */
const char *extract_encoder(const struct extract *x);

struct extract_sentence {
    const char *text; /* words joined by one space, in a dialogue after "NAME:"; NUL-terminated */
    size_t n;
    size_t label;        /* bytes of "NAME:" */
    uint32_t turn;       /* of a dialogue, counted from 0 */
    uint32_t start, end; /* byte range in the document; the first of a turn has its name */
    uint32_t start_char, end_char; /* character range */
    double features[EXTRACT_FEATURES];
    double score;
};

struct extract_doc {
    struct extract_sentence *sentences;
    uint32_t n;
    bool dialogue;
    struct arena arena;
};

/* title may be NULL. */
SHOAL_MUST_CHECK int extract_doc_create(struct extract_doc **out, const struct extract *x,
                                        const char *text, size_t n, const char *title,
                                        size_t n_title, struct err *e);
void extract_doc_destroy(struct extract_doc *d);
/* Writes sentence s after the n bytes of a summary whose last sentence is `before` (NULL: none);
 * returns the new length.  A speaker is named once a turn.  Needs room for s->n + 1 bytes. */
size_t extract_append(char *summary, size_t n, const struct extract_sentence *before,
                      const struct extract_sentence *s);
/* Number of sentences chosen when k are requested (0: the model's default). */
uint32_t extract_count(const struct extract *x, const struct extract_doc *d, uint32_t k);
/* vectors: [n][dim], each of length 1; mean: dim floats of scratch.  Fills the scores; chosen gets
 * extract_count indices in text order. */
void extract_choose(const struct extract *x, struct extract_doc *d, const float *vectors,
                    uint32_t dim, uint32_t k, float *mean, uint32_t *chosen);

#endif
