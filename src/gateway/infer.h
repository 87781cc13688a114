/* infer.h - a call to a specialist: one task per input, one answer when all are done.
 *
 * Thread:    the loop's; long inputs are submitted on a thread of the pool.
 * Ownership: infer_create gives it to the handler, infer_run takes it; it frees itself. */
#ifndef SHOAL_GATEWAY_INFER_H
#define SHOAL_GATEWAY_INFER_H

#include "gateway/acquire.h"
#include "gateway/pool.h"

#define INFER_MAX_INPUTS 256u

struct infer {
    struct call *call;
    struct shoal_infer_opts opts; /* what all inputs share */
    struct infer_input {
        const char *text; /* points into the call's JSON */
        size_t text_bytes;
        double *values; /* SCORE: owned */
        uint32_t n_values;
        struct shoal_task *task;
        const struct shoal_result *result; /* in `put` */
    } * inputs;
    uint32_t n;
    struct registry_model *model; /* in `put` */
    /* Writes the answer into the call's out. */
    void (*put)(struct infer *f);
    /* the handler's */
    uint32_t top;
    bool base64, with_documents, single;

    /* private */
    struct acquire acquire;
    struct pool_task pool_task;
    struct loop_task wake;
    pthread_mutex_t lock; /* guards n_left, submitted */
    uint32_t n_left;
    bool submitted;
    int rc;
    struct err error;
};

/* NULL: no memory, and the call is answered. */
struct infer *infer_create(struct call *c, uint32_t n, void (*put)(struct infer *f));
void infer_free(struct infer *f); /* of one that was never run */
void infer_run(struct infer *f, const char *model);
uint64_t infer_tokens(const struct infer *f);

#endif
