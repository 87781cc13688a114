/* linear_head.h - fits a linear classifier on vectors: logistic regression over classes, by Adam.
 *
 * Rare classes weigh as much as frequent ones.  The same input gives the same result.
 *
 * Thread:    pure functions.
 * Ownership: fit gives the weights to the caller; fini frees them.
 * Failure:   SHOAL_ENOMEM; SHOAL_EINVAL: fewer than two classes, too many, or a class without
 *            rows. */
#ifndef SHOAL_EVAL_LINEAR_HEAD_H
#define SHOAL_EVAL_LINEAR_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define LINEAR_HEAD_MAX_CLASSES 256u

struct linear_head {
    uint32_t n_classes, dim;
    float *weight; /* [n_classes][dim] */
    float *bias;   /* [n_classes] */
    double temperature;
};

struct linear_head_rows { /* borrowed */
    const float *x;       /* [n][dim] */
    const uint32_t *y;    /* [n]: class */
    size_t n;
};

/* temperature is 1 until linear_head_calibrate. */
SHOAL_MUST_CHECK int linear_head_fit(struct linear_head *h, const struct linear_head_rows *rows,
                                     uint32_t dim, uint32_t n_classes, uint32_t epochs,
                                     struct err *e);
void linear_head_fini(struct linear_head *h);
/* The temperature that maximizes the likelihood of held-out rows; below 1 only if enough of them
 * are answered wrongly. */
SHOAL_MUST_CHECK int linear_head_calibrate(struct linear_head *h,
                                           const struct linear_head_rows *rows, struct err *e);
/* The likeliest class and its probability. */
uint32_t linear_head_best(const struct linear_head *h, const float *x, double *p);

/* The confidence threshold between rows answered correctly (right: [n] of them) and rows of no
 * class (none). Without the latter: keeps 19 of 20 right ones. Sorts both. */
double linear_head_threshold(double *right, size_t n_right, double *none, size_t n_none);

#endif
