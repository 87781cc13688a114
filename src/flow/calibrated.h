/* calibrated.h - applies a model's calibration to the confidences of a classification.
 *
 * Thread:    any.
 * Ownership: the result lives in the arena; names are borrowed from the original.
 * Failure:   without memory, or without a calibration, the original. */
#ifndef SHOAL_FLOW_CALIBRATED_H
#define SHOAL_FLOW_CALIBRATED_H

#include "base/arena.h"
#include "ensemble/confidence.h"
#include "shoal/shoal.h"

const struct shoal_result *calibrated_result(struct arena *a, const struct shoal_result *r,
                                             const struct confidence_calibration *c);

#endif
