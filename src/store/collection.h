/* collection.h - documents split into passages, in one SQLite file: searched by meaning and by
 * words.
 *
 * The file has the text, the words (FTS5) and the vectors; the vectors are in memory too, from the
 * first search on.  Another process may change the file: the next search sees it.
 *
 * Thread:    any.  Searches run beside changes; changes wait for each other.
 * Ownership: open/close; hits lie in the caller's arena.
 * Failure:   SHOAL_E* with a text; a change that fails has changed nothing. */
#ifndef SHOAL_STORE_COLLECTION_H
#define SHOAL_STORE_COLLECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct chunk;
struct collection;

#define COLLECTION_MAX_NAME 63u
#define COLLECTION_MAX_DOC_NAME 400u
#define COLLECTION_MAX_HITS 100u
#define COLLECTION_MAX_QUERY_BYTES 8192u
#define COLLECTION_GRAPH "-graph" /* suffix of the path: file of the vector index */

struct collection_settings {
    const char *model;            /* the embedding model; at most 127 bytes */
    uint32_t max_tokens, overlap; /* of passages */
};

struct collection_info {
    char model[128], version[64]; /* version: of the model, "" until the first document */
    uint32_t max_tokens, overlap, n_dims;
    uint64_t n_docs, n_chunks, text_bytes, file_bytes, memory_bytes;
    uint64_t n_indexed; /* passages in the index; a search scans the others */
};

struct collection_doc {
    const char *name;  /* a second document of this name replaces the first */
    const char *title; /* or "" */
    uint64_t hash;     /* of its bytes */
    uint64_t n_bytes;
};

struct collection_hit {
    int64_t id; /* id of the passage; never reused after removal */
    const char *doc, *title, *heading, *ref, *text;
    uint32_t page;
    double score;       /* fused; the highest first */
    float similarity;   /* of the vectors; NAN: not compared */
    uint32_t by_vector; /* rank by meaning, from 1; 0: not ranked */
    uint32_t by_words;  /* rank by words */
};

struct collection_query {
    const float *vector; /* NULL: words only */
    uint32_t n_dims;
    const char *version; /* version of the model that made the vector; NULL or "": unknown */
    const char *text;    /* NULL: meaning only */
    uint32_t n_results;  /* at most COLLECTION_MAX_HITS */
};

/* Whether a name may be one: 1 to 63 letters, digits, - or _, not first - or _. */
bool collection_name_ok(const char *name);
/* path: of the file. SHOAL_EINVAL: it already exists. */
SHOAL_MUST_CHECK int collection_make(const char *path, const struct collection_settings *s,
                                     struct err *e);
/* exact_passages: up to this many, a search by meaning is exact; beyond, it uses an index
 * (vectors.h); 0: always exact. */
SHOAL_MUST_CHECK int collection_open(struct collection **out, const char *path,
                                     uint32_t exact_passages, struct err *e);
void collection_close(struct collection *c);
SHOAL_MUST_CHECK int collection_info(struct collection *c, struct collection_info *out,
                                     struct err *e);
/* 1: a document of this name and hash exists; 0: not. */
SHOAL_MUST_CHECK int collection_has(struct collection *c, const char *name, uint64_t hash,
                                    struct err *e);
/* Adds or replaces a document: its n passages with their vectors [n][n_dims], made by this version
 * of the model.  max_chunks: of the whole collection, 0: no limit. */
SHOAL_MUST_CHECK int collection_put(struct collection *c, const struct collection_doc *d,
                                    const struct chunk *chunks, uint32_t n, const float *vectors,
                                    uint32_t n_dims, const char *version, uint64_t max_chunks,
                                    struct err *e);
/* SHOAL_ENOTFOUND: none. */
SHOAL_MUST_CHECK int collection_remove(struct collection *c, const char *doc, struct err *e);
/* SHOAL_EINVAL: the vector and the passages come from different versions of the model. */
SHOAL_MUST_CHECK int collection_search(struct collection *c, const struct collection_query *q,
                                       struct arena *a, struct collection_hit **hits, uint32_t *n,
                                       struct err *e);
/* How many passages have a word, up to COLLECTION_MAX_COUNT. */
#define COLLECTION_MAX_COUNT 10000u
SHOAL_MUST_CHECK int collection_count(struct collection *c, const char *word, uint64_t *out,
                                      struct err *e);
/* Names of documents in order, starting after `after`; at most max. */
SHOAL_MUST_CHECK int collection_docs(struct collection *c, const char *after, uint32_t max,
                                     struct arena *a, const char ***names, uint32_t *n,
                                     struct err *e);

#endif
