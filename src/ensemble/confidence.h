/* confidence.h - calibrated confidences of classifications.
 *
 * Answers with a confidence of 0.9 should be right in 90 of 100 cases. Dividing its logits by one
 * number, the temperature, gets most models close to that and never changes their answers.
 * Probabilities are enough for it: p^(1/T), scaled to a sum of 1, is what the divided logits would
 * give.
 *
 * Thread: pure functions. */
#ifndef SHOAL_ENSEMBLE_CONFIDENCE_H
#define SHOAL_ENSEMBLE_CONFIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIDENCE_BINS 12u
#define CONFIDENCE_MIN_TEMPERATURE 0.05
#define CONFIDENCE_MAX_TEMPERATURE 20.0

/* Calibration of one model, learned on labelled texts. */
struct confidence_calibration {
    double temperature; /* 0: not fitted */
    /* Distribution of the confidences of the labelled texts, after scaling; their sum is 1. rows 0:
     * unknown. */
    double shares[CONFIDENCE_BINS];
    uint64_t rows;
};

/* The upper bound of bin i; the last is 1. */
double confidence_bound(uint32_t i);
/* The bin of a confidence; NaN is in the first. */
uint32_t confidence_bin(double confidence);

/* p: [n] probabilities of labels that exclude each other, scaled in place. */
void confidence_scale(float *p, uint32_t n, double temperature);
/* The confidence of an answer whose best label has the scaled probability `best`. is_best: that
 * label is the answer; otherwise the model answered "out of scope" because the best was below the
 * threshold. */
static inline float confidence_of_answer(float best, bool is_best)
{
    return is_best ? best : 1.0f - best;
}

struct confidence_row {
    const float *p; /* [n] of all labels */
    uint32_t n;
    uint32_t right; /* index of the true label */
};

/* The temperature with the least negative log-likelihood of the true labels.  1 without rows. */
double confidence_fit(const struct confidence_row *rows, size_t n);
/* The mean negative log-likelihood of the true labels at a temperature. */
double confidence_loss(const struct confidence_row *rows, size_t n, double temperature);

#endif
