/* vectors.h - vectors in memory with an id each, and the nearest ones by dot product.
 *
 * Up to a number of vectors the search is exact.  It reads 8-bit copies of all vectors, laid out
 * for the kernels, which takes a fourth of the memory traffic of floats.  How far a score can be
 * from the true one is known, so every vector that can belong to the nearest is then compared as
 * floats.
 *
 * Above that number a thread of its own links the vectors to a graph (hnsw.h), in the order in
 * which they came.  A search then asks the graph for what is linked, and reads the rest: it is
 * always complete, and finds nearly all of the true nearest.  Vectors of very different length
 * would be found badly: they are searched exactly, whatever their number.
 * The graph can be kept in a file, from which it comes back after a restart.
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

/* exact_rows: up to so many the search is exact; 0: always. */
SHOAL_MUST_CHECK int vectors_create(struct vectors **out, uint32_t n_dims, size_t exact_rows,
                                    struct err *e);
void vectors_destroy(struct vectors *v);
/* Adds n vectors [n][n_dims].  An id that is there already is an error of the caller. */
SHOAL_MUST_CHECK int vectors_add(struct vectors *v, const int64_t *ids, const float *rows, size_t n,
                                 struct err *e);
/* Removes those of the ids that are there; ids are sorted. */
void vectors_remove(struct vectors *v, const int64_t *ids, size_t n);
/* Keeps only the ids of the sorted list. */
void vectors_keep(struct vectors *v, const int64_t *ids, size_t n);
size_t vectors_count(struct vectors *v);
size_t vectors_bytes(struct vectors *v);  /* of memory */
size_t vectors_linked(struct vectors *v); /* that a search finds by the graph */
/* Where the graph is kept: written when it is complete and has grown by a part, and by destroy.
 * Before the first vectors_add, once; nothing is linked until vectors_restore, which takes what
 * the file has of the vectors that were added.  Without a file, or with one that is damaged or of
 * other vectors, the graph is made again; *why says so then ("": it was read, or there is none). */
SHOAL_MUST_CHECK int vectors_keep_graph(struct vectors *v, const char *path, struct err *e);
void vectors_restore(struct vectors *v, struct err *why);
/* The k nearest of q [n_dims], best first, equal ones by id; *n: how many there are. */
SHOAL_MUST_CHECK int vectors_search(struct vectors *v, const float *q, uint32_t k,
                                    struct vectors_hit *hits, uint32_t *n, struct err *e);

#endif
