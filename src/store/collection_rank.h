/* collection_rank.h - fuses two rankings, by meaning and by words, by reciprocal rank.
 *
 * Thread:    pure functions. */
#ifndef SHOAL_STORE_COLLECTION_RANK_H
#define SHOAL_STORE_COLLECTION_RANK_H

#include <stdint.h>

#include "base/buf.h"
#include "store/vectors.h"

struct collection_rank {
    int64_t id;
    double score;
    float similarity; /* NAN: found by words only */
    uint32_t by_vector, by_words;
};

/* out: room for both together; returns how many, best first. */
uint32_t collection_rank_fuse(struct collection_rank *out, const struct vectors_hit *near,
                              uint32_t n_near, const int64_t *words, uint32_t n_words);
/* A text as a query of FTS5: any of its words, quoted; nothing if it has none. */
void collection_rank_match(struct buf *out, const char *text);

#endif
