/* engine_turns.h - two programs that handle the same request in turn, at one thread count after the
 * other.
 *
 * Thread:    one.
 * Ownership: turns_at_threads fills sides; free them with turns_sides_fini.
 * Failure:   as in duel.h.  A failure of one program becomes a note and ends its part of the
 *            measurement, so turns_note, turns_run and turns_at_threads fail only with
 *            SHOAL_ECANCELLED. */
#ifndef SHOAL_BENCH_ENGINE_TURNS_H
#define SHOAL_BENCH_ENGINE_TURNS_H

#include "engine.h"

struct turns_job { /* one timed request */
    bool prompt;
    uint32_t n, seqs; /* steps or tokens; seqs 0: not part of the request */
};

struct turns_samples { /* samples of one program */
    double rate[ENGINE_MAX_ROUNDS], best[ENGINE_MAX_ROUNDS];
    size_t n;
    bool out;     /* has failed: no more requests in this measurement */
    double below; /* upper bound of its rate in tokens/s if it timed out; 0: none */
    char note[320];
};

struct turns_figure { /* one program at one number of threads */
    double value, median, best, spread;
    uint32_t threads; /* 0: no figure */
};

struct turns_sides { /* both programs at every number of threads */
    struct turns_figure best[2], one[2];
    cJSON *all[2];
    double below[2];
    cJSON *notes;
};

cJSON *turns_request(const char *op);
double turns_field(const cJSON *reply, const char *key); /* NAN if it is not a number */

/* Sets what both must have loaded from now on: see struct engine_run. */
void turns_hold(struct engine_run *b, const char *file, uint32_t ctx, uint32_t seqs);
SHOAL_MUST_CHECK int turns_load(struct engine_run *b, size_t side, double *ms, struct err *e);
/* Makes sure the program runs and has the file loaded; restarts it if it died or was killed. */
SHOAL_MUST_CHECK int turns_ready(struct engine_run *b, size_t side, struct err *e);
/* Also sets the number of threads and warms up. */
SHOAL_MUST_CHECK int turns_prepare(struct engine_run *b, size_t side, uint32_t threads,
                                   const struct turns_job *warm, struct err *e);
/* Runs one round; returns its rate and that of its fastest step. */
SHOAL_MUST_CHECK int turns_ask(struct engine_run *b, size_t side, const struct turns_job *j,
                               double *rate, double *best, struct err *e);

void turns_begin(const struct engine_run *b, struct turns_samples s[2]);
/* Records rc and e as a failure of one program at job j (NULL: none). */
SHOAL_MUST_CHECK int turns_note(struct engine_run *b, struct turns_samples *s,
                                const struct turns_job *j, int rc, const struct err *e);
/* Runs all rounds, with the order swapped each time. */
SHOAL_MUST_CHECK int turns_run(struct engine_run *b, const struct turns_job job[2],
                               struct turns_samples s[2], struct err *e);
void turns_put_notes(cJSON *notes, const struct turns_samples s[2], uint32_t threads);

SHOAL_MUST_CHECK int turns_at_threads(struct engine_run *b, const struct turns_job *warm,
                                      const struct turns_job *job, struct turns_sides *r,
                                      struct err *e);
void turns_sides_fini(struct turns_sides *r);

#endif
