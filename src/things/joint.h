/* joint.h - the detector over all channels of a machine: whether they relate to each other as
 * usual.
 *
 * A row holds the distance of each channel from its usual level, in usual deviations.  The distance
 * of a row from the usual rows (Mahalanobis: by the correlations that were learned, drawn towards
 * independence) is taken for the row itself and for a moving mean of about 16 rows.  The third
 * statistic is the mean over the channels of how far each has been off for a longer time (up to
 * 256 rows, less after a short recording), so a small change of many channels is found before any
 * single one looks unusual.
 *
 * Thread:    belongs to its caller.
 * Ownership: create/destroy.
 * Failure:   SHOAL_ENOMEM, SHOAL_ELIMIT; steps cannot fail and allocate nothing. */
#ifndef SHOAL_THINGS_JOINT_H
#define SHOAL_THINGS_JOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "things/tail.h"

#define JOINT_MAX_CHANNELS 64u

enum joint_stat { JOINT_ROW, JOINT_MEAN, JOINT_LONG, JOINT_N_STATS };

struct joint_facts {
    double rows;                /* rows it was learned from */
    double window;              /* rows of the long mean */
    double most_row, most_mean; /* largest recent distances (tail_record) */
    struct tail tails[JOINT_N_STATS];
};

struct joint;

SHOAL_MUST_CHECK int joint_create(struct joint **out, uint32_t n_channels, struct err *e);
void joint_destroy(struct joint *j);
uint32_t joint_channels(const struct joint *j);
bool joint_ready(const struct joint *j); /* learned */
/* rows: [n_rows][n_channels], in order of time. */
SHOAL_MUST_CHECK int joint_learn(struct joint *j, const double *rows, size_t n_rows, struct err *e);
/* A copy with the same knowledge that has seen no rows. */
SHOAL_MUST_CHECK int joint_copy(struct joint **out, const struct joint *j, struct err *e);
/* row: [n_channels], NaN: missing. Returns the expected false alarms in n_steps rows at this level;
 * *worst: the channel that contributes most. */
double joint_step(struct joint *j, const double *row, double n_steps, uint32_t *worst);

/* The learned state, for a file: the inverse of the correlations [n][n], and this. */
const double *joint_inverse(const struct joint *j);
const struct joint_facts *joint_facts(const struct joint *j);
void joint_set(struct joint *j, const double *inverse, const struct joint_facts *f);

#endif
