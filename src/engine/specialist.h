/* specialist.h - what computes inferences behind an engine: one table of functions per way.
 *
 * The engine queues jobs and its thread takes the best ones together (batcher.c); a specialist
 * prepares a job on its submitter's thread (tokens, room for the result) and computes some of them
 * in one go.  Private to src/runtime.
 *
 * Thread:    prepare and label* from any thread, run from the engine's.
 * Ownership: a job's input belongs to the specialist until drop; what a result points to is the
 *            job's or the specialist's and lives until the task is freed. */
#ifndef SHOAL_ENGINE_SPECIALIST_H
#define SHOAL_ENGINE_SPECIALIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "shoal/shoal.h"

struct job {
    struct shoal_infer_opts o; /* as submitted; texts and values are copies */
    char *text, *document, *labels;
    double *values;
    const struct specialist_ops *ops;
    struct shoal_task *task;
    uint32_t cost;  /* tokens or rows: what prepare says */
    uint32_t place; /* in the batch under way */
    void *input;    /* the specialist's own */
    struct shoal_result result;
};

struct specialist_ops {
    const char *engine; /* "native", "onnx" */
    /* Checks the job, sets input and cost.  After a failure drop is still called. */
    int (*prepare)(const void *self, struct job *j, struct err *e);
    /* Computes all; each job's result has its answer or a code.  One whose result is there before
     * the others' may be given back at once: job_finish. */
    void (*run)(void *self, struct job *const *jobs, uint32_t n);
    void (*drop)(struct job *j); /* frees input; may come after close */
    /* What these give may be missing: NULL. */
    const char *(*label_set)(const void *self, enum shoal_kind kind, uint32_t i);
    const char *(*label)(const void *self, enum shoal_kind kind, const char *set, uint32_t i);
    const char *(*input)(const void *self, uint32_t i); /* name of a value; NULL: none have */
    void (*info)(const void *self, struct shoal_engine_info *info);
    void (*close)(void *self);
};

struct specialist {
    const struct specialist_ops *ops;
    void *self;
    unsigned kinds;    /* enum shoal_kind */
    uint32_t max_cost; /* of jobs that run together; one job may have more */
    uint32_t max_jobs;
};

/* In run: the result is there; the job must not be touched afterwards. */
void job_finish(struct job *j);
/* 0 or the reason to give a job up in the middle of its work. */
int job_gave_up(const struct job *j);
/* Sets the result's code and its text, which must be a literal or live with the job. */
void job_fail(struct job *j, int code, const char *message);

#endif
