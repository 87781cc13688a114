/* anomaly.h - scores a stream of sensor values, one channel or many, point by point.
 *
 * A folder with a config.json of model_type "shoal_anomaly", trees and a layer program, both over
 * features of each channel (anomaly_features.h); models/anomaly.md is the definition.  A stream's
 * memory is the caller's and of fixed size; a point costs the same however many came before.
 *
 * A value that is missing (NaN or infinite) leaves its channel as it was; a row without any value
 * repeats the last answer.
 *
 * Thread:    immutable after opening; any number of threads, each with state and scratch of its
 * own.
 * Ownership: open and parse give, close takes back (NULL is fine); nothing points into parsed
 * bytes.
 * Failure:   SHOAL_EFORMAT (the key in the text), SHOAL_EUNSUPPORTED, SHOAL_ELIMIT, SHOAL_EIO,
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
    bool int8;                       /* at least one matrix of the layer program */
    double level_one, level_several; /* of value, from which on there is an alarm */
};

struct anomaly_point {
    double value; /* compared with the level */
    double score; /* 0 to 1; above 0.5 where value is above the level */
    bool alarm;   /* on, or paused for at most info.pause points; never in the first info.warm_up */
};

struct anomaly_bytes { /* for anomaly_parse */
    const void *config, *trees, *layers, *weights;
    size_t n_config, n_trees, n_layers, n_weights;
};

/* path: the folder, or its config.json. */
SHOAL_MUST_CHECK int anomaly_open(struct anomaly **out, const char *path, struct err *e);
SHOAL_MUST_CHECK int anomaly_parse(struct anomaly **out, const struct anomaly_bytes *b,
                                   struct err *e);
/* Whether these bytes are the config of such a model. */
bool anomaly_detect(const void *bytes, size_t n);
void anomaly_close(struct anomaly *a);
struct anomaly_info anomaly_info(const struct anomaly *a);

/* Bytes of 64-byte aligned memory: a stream of so many channels (1 to ANOMALY_MAX_CHANNELS)
 * keeps the state, a call works in the scratch. */
size_t anomaly_state_bytes(const struct anomaly *a, uint32_t n_channels);
size_t anomaly_scratch_bytes(const struct anomaly *a);
/* A stream begins. */
void anomaly_reset(const struct anomaly *a, void *state, uint32_t n_channels);
/* row: [n_channels] of the reset. */
void anomaly_step(const struct anomaly *a, void *state, const double *row,
                  struct anomaly_point *out, void *scratch);

#endif
