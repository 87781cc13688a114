/* score_stream_int.h - the table of streams as its files see it: score_stream.c and
 * score_stream_file.c.  Private to src/score. */
#ifndef SHOAL_SCORE_SCORE_STREAM_INT_H
#define SHOAL_SCORE_SCORE_STREAM_INT_H

#include "base/holdings.h"
#include "score/score_stream.h"

#define SCORE_STREAM_BUCKETS 1024u /* a power of two */

struct score_stream {
    struct score_stream *next; /* of its bucket */
    uint64_t client, used_ns;
    uint32_t n_columns, n_waiting; /* rows in `waiting` */
    uint64_t n_rows;               /* since it began */
    bool changed;                  /* since it was last written to a file */
    size_t state_bytes, bytes;
    char *name;
    void *state;     /* NULL: the scorer keeps none */
    double *waiting; /* [window or hop][n_columns] */
};

struct score_streams {
    const struct scorer *scorer;
    struct scorer_info info;
    struct score_streams_opts limits;
    struct score_stream *buckets[SCORE_STREAM_BUCKETS];
    uint32_t n;
    size_t bytes;
    uint64_t swept_ns;
    struct holdings holdings; /* what each client has */
};

/* Rows needed before the next score; fewer wait between calls. */
uint32_t score_streams_needed(const struct score_streams *t);
/* The stream has been idle for so long that it has ended. */
bool score_streams_is_over(const struct score_streams *t, const struct score_stream *s,
                           uint64_t now_ns);
/* A stream without rows, in the table; there must be none of this name. */
SHOAL_MUST_CHECK int score_streams_add(struct score_streams *t, uint64_t client, const char *name,
                                       uint32_t n_columns, struct score_stream **out,
                                       struct err *e);
/* No effect if there is none. */
void score_streams_remove(struct score_streams *t, uint64_t client, const char *name);

#endif
