/* vectors.h - vectors in memory with an id each, and the nearest ones by dot product.
 *
 * Up to a number of vectors the search is exact. It reads 8-bit copies of all vectors, laid out for
 * the kernels, which takes a fourth of the memory traffic of floats. The error of such a score is
 * bounded, so every candidate for the nearest is then compared as floats.
 *
 * Above that number a background thread links the vectors into a graph (hnsw.h), in order of
 * arrival. A search then uses the graph for linked vectors and scans the rest: it is always
 * complete, and finds nearly all of the true nearest. Vectors of very different length do not suit
 * the graph: they are always searched exactly. The graph can be saved to a file and restored after
 * a restart.
 *
 * Thread:    any.  Searches run side by side; a change waits for them and holds up the next ones
 *            for as long as it takes to copy.
 * Ownership: create gives it to the caller, destroy takes it back.
 * Failure:   SHOAL_ENOMEM, SHOAL_EINVAL (a wrong number of dimensions); then nothing changed. */
#ifndef SHOAL_STORE_VECTORS_H
#define SHOAL_STORE_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define VECTORS_MAX_DIMS 8192u
#define VECTORS_MAX_NEAREST 1000u

struct vectors;

struct vectors_hit {
    int64_t id;
    float score; /* dot product */
};

#define VECTORS_EXACT_ROWS 100000u /* the usual limit */

/* exact_rows: up to this many the search is exact; 0: always. */
SHOAL_MUST_CHECK int vectors_create(struct vectors **out, uint32_t n_dims, size_t exact_rows,
                                    struct err *e);
void vectors_destroy(struct vectors *v);
/* Adds n vectors [n][n_dims]. Adding an existing id is a caller's error. */
SHOAL_MUST_CHECK int vectors_add(struct vectors *v, const int64_t *ids, const float *rows, size_t n,
                                 struct err *e);
/* Removes those of the ids that exist; ids are sorted. */
void vectors_remove(struct vectors *v, const int64_t *ids, size_t n);
/* Keeps only the ids of the sorted list. */
void vectors_keep(struct vectors *v, const int64_t *ids, size_t n);
size_t vectors_count(struct vectors *v);
size_t vectors_bytes(struct vectors *v);  /* memory in use */
size_t vectors_linked(struct vectors *v); /* rows that a search finds through the graph */
/* File of the graph: written when the graph is complete and has grown by a fraction, and by
 * destroy. Call it once, before the first vectors_add; nothing is linked until vectors_restore,
 * which restores what the file has of the added vectors. Without a file, or with one that is
 * damaged or belongs to other vectors, the graph is rebuilt; *why then has the reason ("": it was
 * read, or there is none). */
SHOAL_MUST_CHECK int vectors_keep_graph(struct vectors *v, const char *path, struct err *e);
void vectors_restore(struct vectors *v, struct err *why);
/* The k nearest of q [n_dims], best first, equal ones by id; *n: how many there are. */
SHOAL_MUST_CHECK int vectors_search(struct vectors *v, const float *q, uint32_t k,
                                    struct vectors_hit *hits, uint32_t *n, struct err *e);

#endif
