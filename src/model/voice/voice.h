/* voice.h - a voice: phonemes in, samples out (VITS, the architecture of Piper's voices).
 *
 * Two steps.  voice_read turns the phonemes of a sentence into frames: text encoder, durations,
 * flow.  voice_sound turns frames into samples, any part of them at a time; a part has the same
 * bits, whichever parts are asked for, so that the first can be heard while the rest is computed.
 *
 * Randomness is counter-based: the samples are a function of (file, phonemes, voice_say).
 *
 * Thread:    one thread at a time; it computes with the crew.
 * Ownership: borrows the model file until voice_destroy. */
#ifndef SHOAL_MODEL_VOICE_VOICE_H
#define SHOAL_MODEL_VOICE_VOICE_H

#include "base/thread/crew.h"
#include "format/model_file.h"
#include "kernels/kern.h"

#define VOICE_MAX_IDS 1024u
#define VOICE_MAX_FRAMES 6000u /* more than a minute */

struct voice;
struct weights;

struct voice_opts {
    const struct kern_ops *kernels; /* NULL: the best */
    struct crew *crew;
    uint32_t n_threads; /* 0: all cores */
    const char *cache_dir;
    bool (*progress)(void *ctx, double part);
    void *progress_ctx;
};

struct voice_config { /* of the file */
    uint32_t dim, n_layers, n_heads, head_dim, ffn_dim, window, n_symbols;
    uint32_t hop;  /* samples of a frame */
    uint32_t rate; /* samples a second */
    float noise, length, duration_noise;
    char name[32];
};

struct voice_sizes {
    size_t weights, scratch;
};

struct voice_say {
    float length;                /* of the phonemes; 1: as the voice was trained */
    float noise, duration_noise; /* of the file: voice_config */
    uint64_t seed;
};

bool voice_knows(const struct model_file *file);
/* path: of the file, for the cache of tiled weights. */
SHOAL_MUST_CHECK int voice_create(struct voice **out, const struct model_file *file,
                                  const char *path, const struct voice_opts *o, struct err *e);
void voice_destroy(struct voice *v); /* NULL is fine */

const struct voice_config *voice_config(const struct voice *v);
struct voice_sizes voice_sizes(const struct voice *v);
const struct kern_ops *voice_kernels(const struct voice *v);
struct crew_lane *voice_lane(const struct voice *v);
const struct weights *voice_weights(const struct voice *v);

/* The frames of n phonemes, 1 to VOICE_MAX_IDS, each below n_symbols.  SHOAL_ELIMIT: too many
 * frames; SHOAL_ENOTFINITE: the weights are damaged. */
SHOAL_MUST_CHECK int voice_read(struct voice *v, const uint16_t *ids, uint32_t n,
                                const struct voice_say *say, uint32_t *n_frames, struct err *e);
/* Frames [n][dim] of the caller, copied, instead of those of a text. */
SHOAL_MUST_CHECK int voice_set_frames(struct voice *v, const float *frames, uint32_t n,
                                      struct err *e);
/* Samples of frames from..to-1 of what was read last, -1 to 1: (to - from) * hop of them. */
void voice_sound(struct voice *v, uint32_t from, uint32_t to, float *out);

/* What voice_read left, for tests: the text's means and log deviations [n][2 * dim], the frames
 * of each phoneme [n], and the frames [n_frames][dim]. */
struct voice_trace {
    const float *stats;
    const float *log_durations;
    const uint32_t *durations;
    const float *frames;
};
struct voice_trace voice_trace(const struct voice *v);

#endif
