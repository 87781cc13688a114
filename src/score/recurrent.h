/* recurrent.h - small recurrent and convolutional scorers: a program of layers over safetensors.
 *
 * The program is a config.json with model_type "shoal_scorer" next to the weights; docs/SCORERS.md
 * describes the format.  Samples come in windows of [window][channels]; a stream is scored every
 * `hop` samples, and the caller keeps its state.
 *
 * Thread:    immutable after opening; any number of threads, each with its own state and scratch.
 * Ownership: the caller closes what open and parse return (NULL is fine); nothing points into the
 *            parsed bytes.  Names live as long as the scorer.
 * Failure:   SHOAL_EFORMAT (the text names layer and tensor), SHOAL_EUNSUPPORTED (names the layer),
 *            SHOAL_ELIMIT, SHOAL_EIO, SHOAL_ENOMEM; then *out is NULL.  Running cannot fail. */
#ifndef SHOAL_SCORE_RECURRENT_H
#define SHOAL_SCORE_RECURRENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct recurrent;

struct recurrent_opts {  /* NULL or all zero: as in the files */
    bool int8;           /* 8-bit weights and activations, whatever the file has */
    const char *kernels; /* name of a kernel set; NULL: the best */
};

struct recurrent_info {
    uint32_t channels, window, hop;  /* samples per window, and new ones per score */
    bool stateful;                   /* a score depends on the previous windows */
    bool int8;                       /* at least one matrix is 8-bit */
    uint32_t n_layers, n_outputs;    /* n_outputs: values per score */
    const char *const *output_names; /* [n_outputs] */
    const char *const *input_names;  /* [channels] or NULL */
    bool has_threshold;
    double threshold; /* the first output is an alarm from this value on */
};

/* path: a folder with config.json and the weights, or the config file itself. */
SHOAL_MUST_CHECK int recurrent_open(struct recurrent **out, const char *path,
                                    const struct recurrent_opts *o, struct err *e);
/* config: JSON; weights: a whole safetensors file. */
SHOAL_MUST_CHECK int recurrent_parse(struct recurrent **out, const void *config, size_t n_config,
                                     const void *weights, size_t n_weights,
                                     const struct recurrent_opts *o, struct err *e);
void recurrent_close(struct recurrent *r);
struct recurrent_info recurrent_info(const struct recurrent *r);

/* Floats of a stream's state, and bytes of 64-byte aligned scratch, that the calls below need. */
size_t recurrent_state_floats(const struct recurrent *r);
size_t recurrent_scratch_bytes(const struct recurrent *r);

/* Starts a stream: all previous samples count as zero. */
void recurrent_reset(const struct recurrent *r, float *state);
/* Adds the next samples x: [hop][channels] of a stream; out: [n_outputs].  NaN counts as the mean.
 */
void recurrent_step(const struct recurrent *r, float *state, const float *x, float *out,
                    void *scratch);
/* Number of scores for n samples: one per hop if stateful (starting from a reset state), otherwise
 * one per whole window. */
size_t recurrent_n_scores(const struct recurrent *r, size_t n_samples);
/* x: [n_samples][channels]; out: [recurrent_n_scores][n_outputs]. */
void recurrent_series(const struct recurrent *r, const float *x, size_t n_samples, float *out,
                      void *scratch);

#endif
