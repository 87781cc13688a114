/* anomaly.h - scores a stream of sensor values, with one or many channels, point by point.
 *
 * The model is a folder with a config.json of model_type "shoal_anomaly", trees, and a layer
 * program, both over features of each channel (anomaly_features.h); models/anomaly.md defines it.
 * The caller owns a stream's state, which has a fixed size; the cost of a point does not grow with
 * the stream.
 *
 * A missing value (NaN or infinite) leaves its channel unchanged; a row without any value repeats
 * the last result.
 *
 * Thread:    immutable after opening; any number of threads, each with its own state and scratch.
 * Ownership: the caller closes what open and parse return (NULL is fine); nothing points into the
 *            parsed bytes.
 * Failure:   SHOAL_EFORMAT (the text names the key), SHOAL_EUNSUPPORTED, SHOAL_ELIMIT, SHOAL_EIO,
 *            SHOAL_ENOMEM; then *out is NULL.  Running cannot fail and allocates nothing. */
#ifndef SHOAL_SCORE_ANOMALY_H
#define SHOAL_SCORE_ANOMALY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ANOMALY_MODEL_TYPE "shoal_anomaly"
#define ANOMALY_MAX_CHANNELS 65536u

struct anomaly;

struct anomaly_info {
    uint32_t n_trees, warm_up, pause;
    bool int8;                       /* at least one matrix of the layer program is 8-bit */
    double level_one, level_several; /* an alarm starts when value exceeds this level */
};

struct anomaly_point {
    double value; /* compared with the level */
    double score; /* 0 to 1; above 0.5 if value is above the level */
    bool alarm;   /* stays on for info.pause points below the level; never in the first warm_up */
};

struct anomaly_bytes { /* for anomaly_parse */
    const void *config, *trees, *layers, *weights;
    size_t n_config, n_trees, n_layers, n_weights;
};

/* path: the folder, or its config.json. */
SHOAL_MUST_CHECK int anomaly_open(struct anomaly **out, const char *path, struct err *e);
SHOAL_MUST_CHECK int anomaly_parse(struct anomaly **out, const struct anomaly_bytes *b,
                                   struct err *e);
/* True if these bytes are the config of such a model. */
bool anomaly_detect(const void *bytes, size_t n);
void anomaly_close(struct anomaly *a);
struct anomaly_info anomaly_info(const struct anomaly *a);

/* Sizes in bytes of 64-byte aligned memory: the state of a stream of n_channels channels (1 to
 * ANOMALY_MAX_CHANNELS), and the scratch of a call. */
size_t anomaly_state_bytes(const struct anomaly *a, uint32_t n_channels);
size_t anomaly_scratch_bytes(const struct anomaly *a);
/* Starts a stream. */
void anomaly_reset(const struct anomaly *a, void *state, uint32_t n_channels);
/* Whether bytes from outside (a file) may be used as the state of a stream of n_channels: whatever
 * else they hold, no step reads or writes outside of them. */
bool anomaly_state_fits(const void *state, uint32_t n_channels);
/* row: [n_channels], as in the reset. */
void anomaly_step(const struct anomaly *a, void *state, const double *row,
                  struct anomaly_point *out, void *scratch);

#endif
