/* recurrent.h - small recurrent and convolutional scorers: a program of layers over safetensors.
 *
 * The program is a config.json with model_type "shoal_scorer" beside the weights; docs/SCORERS.md
 * tells the format.  Samples come in windows of [window][channels]; a stream is scored every `hop`
 * samples, with what it remembers kept by the caller.
 *
 * Thread:    immutable after opening; any number of threads, each with state and scratch of its
 * own. Ownership: open and parse give, close takes back (NULL is fine); nothing points into the
 * parsed bytes.  Names live as long as the scorer. Failure:   SHOAL_EFORMAT (layer and tensor in
 * the text), SHOAL_EUNSUPPORTED (a layer by name), SHOAL_ELIMIT, SHOAL_EIO, SHOAL_ENOMEM; then *out
 * is NULL.  Running cannot fail. */
#ifndef SHOAL_SCORE_RECURRENT_H
#define SHOAL_SCORE_RECURRENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct recurrent;

struct recurrent_opts {  /* NULL or all zero: as the files say */
    bool int8;           /* weights in 8 bits and activations too, whatever the file has */
    const char *kernels; /* a kernel set by name, NULL: the best */
};

struct recurrent_info {
    uint32_t channels, window, hop;  /* samples of a window, and new ones from score to score */
    bool stateful;                   /* a window's score depends on the windows before */
    bool int8;                       /* at least one matrix */
    uint32_t n_layers, n_outputs;    /* outputs of one score */
    const char *const *output_names; /* [n_outputs] */
    const char *const *input_names;  /* [channels] or NULL */
    bool has_threshold;
    double threshold; /* of the first output, from which on it is an alarm */
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

/* What the calls below need: floats of a stream's memory, bytes of 64-byte aligned scratch. */
size_t recurrent_state_floats(const struct recurrent *r);
size_t recurrent_scratch_bytes(const struct recurrent *r);

/* A stream begins: nothing was heard before, all samples so far are zero. */
void recurrent_reset(const struct recurrent *r, float *state);
/* The next samples x: [hop][channels] of a stream; out: [n_outputs].  NaN counts as the mean. */
void recurrent_step(const struct recurrent *r, float *state, const float *x, float *out,
                    void *scratch);
/* How many scores a series of n samples has: one per hop for a stateful scorer, which starts from
 * a reset state, else one per whole window. */
size_t recurrent_n_scores(const struct recurrent *r, size_t n_samples);
/* x: [n_samples][channels]; out: [recurrent_n_scores][n_outputs]. */
void recurrent_series(const struct recurrent *r, const float *x, size_t n_samples, float *out,
                      void *scratch);

#endif
