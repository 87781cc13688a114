/* job.h - the inference of a task: its input, copied, and its result.
 *
 * Thread:    created on the submitter's thread, run on the engine's.
 * Ownership: belongs to its task. Memory that the result points to belongs to the job or the
 *            specialist and lives until the task is freed. */
#ifndef SHOAL_ENGINE_JOB_H
#define SHOAL_ENGINE_JOB_H

#include <stdint.h>

#include "shoal/shoal.h"

struct err;
struct shoal_task;

struct job {
    struct shoal_infer_opts o; /* as submitted; texts and values are copies, an image is there until
                                  prepare returns */
    char *text, *document, *labels, *prompt, *stream;
    double *values;
    int16_t *samples;
    struct shoal_task *task;
    uint32_t cost;               /* tokens or rows, set by prepare */
    uint32_t place;              /* index in the current batch */
    void *input;                 /* the specialist's own */
    void (*drop)(struct job *j); /* frees input; NULL: none */
    struct shoal_result result;
};

/* NULL: out of memory. */
struct job *job_create(const struct shoal_infer_opts *o);
void job_destroy(struct job *j); /* NULL is fine */
/* For a text that may not be cut: SHOAL_ELIMIT. */
int job_too_long(uint32_t max_tokens, struct err *e);
/* Sets the result's code and its text, which must be a literal or live with the job. */
void job_fail(struct job *j, int code, const char *message);

#endif
