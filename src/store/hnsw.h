/* hnsw.h - a graph index for nearest-neighbour search over rows of floats: a hierarchical navigable
 * small world (Malkov and Yashunin, arXiv 1603.09320).
 *
 * The rows are stored elsewhere and numbered from 0; they join the graph in that order. Near means
 * a large dot product, so rows should have about the same length. Results are approximate: a wider
 * search finds more of the true nearest. The graph depends only on rows, keys and order.
 *
 * A row joins in two steps: hnsw_plan finds its neighbours and only reads, hnsw_apply changes the
 * graph and is quick.  So searches can run beside the first one.
 *
 * Thread:    any number of readers (plan, search), or one writer (apply, clear).
 * Ownership: create gives it to the caller, destroy takes it back.
 * Failure:   SHOAL_ENOMEM; then nothing changed. */
#ifndef SHOAL_STORE_HNSW_H
#define SHOAL_STORE_HNSW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HNSW_LINKS 16u        /* links of a row on each upper level; also the initial number */
#define HNSW_GROUND_LINKS 32u /* links of a row on the ground level */
#define HNSW_MAX_LEVEL 15u

struct hnsw;

struct hnsw_rows {
    const float *(*get)(const void *ctx, uint32_t row);
    const void *ctx;
    float (*dot)(const float *a, const float *b, uint32_t n);
    uint32_t n_cols;
    /* Optional: 8-bit copies of the rows, value = code * *scale. A search navigates with them,
     * which takes a fourth of the memory traffic, and compares its results as floats. */
    const int8_t *(*code)(const void *ctx, uint32_t row, float *scale);
    int32_t (*dot_i8)(const int8_t *a, const int8_t *b, uint32_t n); /* n: of n_cols */
};

/* The 8-bit copy of x [n]; returns the scale. */
float hnsw_encode(int8_t *code, const float *x, uint32_t n);

struct hnsw_hit {
    uint32_t row;
    float score; /* dot product */
};

struct hnsw_change { /* the new links of a row on a level */
    uint32_t row, level, n;
    uint32_t to[HNSW_GROUND_LINKS];
};

struct hnsw_plan {
    uint32_t level; /* level of the joining row */
    uint32_t n;
    struct hnsw_change list[(HNSW_MAX_LEVEL + 1) * (HNSW_LINKS + 1)];
};

SHOAL_MUST_CHECK int hnsw_create(struct hnsw **out, const struct hnsw_rows *rows, struct err *e);
void hnsw_destroy(struct hnsw *h);
void hnsw_clear(struct hnsw *h);
/* Rows 0 to count - 1 are in it. */
uint32_t hnsw_count(const struct hnsw *h);
size_t hnsw_bytes(const struct hnsw *h);

/* The highest level of a row with this key. */
uint32_t hnsw_level(uint64_t key);
/* The links of a row on a level that it has: how many, then to which rows. */
const uint32_t *hnsw_links(const struct hnsw *h, uint32_t row, uint32_t level);
/* Plans how row hnsw_count joins; key: determines its level, like a random number. */
SHOAL_MUST_CHECK int hnsw_plan(const struct hnsw *h, uint64_t key, struct hnsw_plan *p,
                               struct err *e);
SHOAL_MUST_CHECK int hnsw_apply(struct hnsw *h, const struct hnsw_plan *p, struct err *e);

/* At most `breadth` rows near q, best first, equal ones by row.  wanted: NULL, or whether a row may
 * be a hit; others still lead to hits. */
SHOAL_MUST_CHECK int hnsw_search(const struct hnsw *h, const float *q, uint32_t breadth,
                                 bool (*wanted)(const void *ctx, uint32_t row),
                                 struct hnsw_hit *hits, uint32_t *n, struct err *e);

#endif
