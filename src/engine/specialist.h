/* specialist.h - a model that computes inferences: one table of functions per kind of model.
 *
 * The engine queues jobs, and its thread runs the best ones together (batcher.c).  A specialist
 * prepares a job on its submitter's thread (tokens, room for the result) and computes several jobs
 * in one call.
 *
 * Thread:    prepare and label* from any thread, run from the engine's.
 * Ownership: a job's input belongs to the specialist until drop. */
#ifndef SHOAL_ENGINE_SPECIALIST_H
#define SHOAL_ENGINE_SPECIALIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/job.h"
#include "shoal/shoal.h"

struct crew_lane;
struct weights;

struct specialist_ops {
    const char *engine; /* "native", "onnx" */
    /* Checks the job, sets input and cost.  After a failure drop is still called. */
    int (*prepare)(const void *self, struct job *j, struct err *e);
    /* Computes all jobs: each result gets its answer or a code. A job that is complete before the
     * others may be returned early with batcher_finish. */
    void (*run)(void *self, struct job *const *jobs, uint32_t n);
    void (*drop)(struct job *j); /* frees input; may be called after close */
    /* The next three may be NULL. */
    const char *(*label_set)(const void *self, enum shoal_kind kind, uint32_t i);
    const char *(*label)(const void *self, enum shoal_kind kind, const char *set, uint32_t i);
    const char *(*input)(const void *self, uint32_t i); /* name of value i, or NULL */
    void (*info)(const void *self, struct shoal_engine_info *info);
    void (*close)(void *self);
};

struct specialist {
    const struct specialist_ops *ops;
    void *self;
    unsigned kinds;    /* enum shoal_kind */
    uint32_t max_cost; /* of jobs that run together; a single job may exceed it */
    uint32_t max_jobs;
    bool images;            /* it reads images, not texts */
    struct crew_lane *lane; /* lane of self, for its urgency; NULL: it computes without a crew */
    const struct weights *weights; /* weights of self, for engine_files.h; NULL: not our format */
};

#endif
