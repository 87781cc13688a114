/* score_stream.h - streams of rows that a scorer follows: their states, by name, between calls.
 *
 * A stream begins with its first rows and ends after a while without rows. Any number of rows may
 * be added at a time: those that do not fill a hop or a window wait for the next ones.
 *
 * Thread:    belongs to its caller, the engine's thread.
 * Ownership: create/destroy; the scorer is borrowed and outlives the table.
 * Failure:   SHOAL_EBUSY (too many streams; none is dropped for a new one before its time, but for
 *            one of another client that has fewer), SHOAL_EINVAL (the number of columns changed), SHOAL_ENOMEM. */
#ifndef SHOAL_SCORE_SCORE_STREAM_H
#define SHOAL_SCORE_SCORE_STREAM_H

#include "score/scorer.h"

#define SCORE_STREAM_MAX_NAME 128u

struct score_streams;

struct score_streams_opts { /* zero: defaults */
    uint32_t max_streams;   /* 0: 4096 */
    size_t max_bytes;       /* of all states; 0: 256 MiB */
    uint64_t idle_ns;       /* an unused stream ends after this time; 0: one hour */
};

struct score_stream_rows {
    uint64_t client;  /* streams of different clients are separate */
    const char *name; /* at most SCORE_STREAM_MAX_NAME bytes */
    const double *values;
    size_t n_rows;
    uint32_t n_columns;
    uint64_t now_ns;
};

SHOAL_MUST_CHECK int score_streams_create(struct score_streams **out, const struct scorer *s,
                                          const struct score_streams_opts *o, struct err *e);
void score_streams_destroy(struct score_streams *t);
/* The most scores that n_rows may yield: room for the output of feed. */
size_t score_streams_room(const struct score_streams *t, size_t n_rows);
/* out: [score_streams_room][n_outputs]; returns the number of scores, or a negative code. */
SHOAL_MUST_CHECK int64_t score_streams_feed(struct score_streams *t,
                                            const struct score_stream_rows *r, double *out,
                                            void *scratch, struct err *e);
uint32_t score_streams_count(const struct score_streams *t);
size_t score_streams_bytes(const struct score_streams *t); /* of all states */
/* Whether a score depends on rows of earlier calls at all. */
bool score_streams_remember(const struct score_streams *t);

#endif
