/* profile_report.h - what `shoal profile` shows of the recorded passes: sums by kernel and layer,
 * a flame graph, a trace for Chrome and Perfetto.
 *
 * Thread:    the main thread.
 * Ownership: borrows the profiles. */
#ifndef SHOAL_CMD_MEASURE_PROFILE_REPORT_H
#define SHOAL_CMD_MEASURE_PROFILE_REPORT_H

#include "base/buf.h"
#include "model/decoder_profile.h"

#define PROFILE_MAX_ROWS 32u

struct profile_row {
    const char *name;
    uint64_t n, wall_ns, busy_ns; /* busy: of all threads */
    uint64_t bytes, products;
    double limit_ns; /* what the machine needs at least; 0: unknown */
};

/* Passes of one kind: the prompt's, or those of single tokens. */
struct profile_shape {
    const char *name; /* "prompt", "decode" */
    const struct decoder_profile *f;
    uint32_t n_tokens, n_layers;
    uint64_t from_ns, whole_ns; /* measured around all passes */
    double gb_s, gops;          /* the machine's limits; 0: unknown */
    /* filled by profile_sum */
    struct profile_row rows[PROFILE_MAX_ROWS];
    uint32_t n_rows;
    uint64_t sum_ns; /* of all rows */
    /* Events of each member that count: one that was descheduled may still add to them. */
    uint32_t n_events[CREW_MAX_MEMBERS];
};

void profile_sum(struct profile_shape *s);
void profile_put_table(struct buf *b, const struct profile_shape *s);
void profile_put_json(struct buf *b, const struct profile_shape *s, uint32_t n_shapes);
void profile_put_svg(struct buf *b, const struct profile_shape *s, uint32_t n_shapes,
                     const char *title);
void profile_put_chrome(struct buf *b, const struct profile_shape *s, uint32_t n_shapes);

#endif
