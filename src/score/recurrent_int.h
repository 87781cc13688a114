/* recurrent_int.h - shared by the loader and the interpreter of a layer program; see recurrent.h.
 */
#ifndef SHOAL_SCORE_RECURRENT_INT_H
#define SHOAL_SCORE_RECURRENT_INT_H

#include "base/arena.h"
#include "kernels/kern.h"
#include "score/recurrent.h"

enum recurrent_kind {
    RECURRENT_LINEAR,
    RECURRENT_CONV1D,
    RECURRENT_LSTM,
    RECURRENT_GRU,
    RECURRENT_RELU,
    RECURRENT_TANH,
    RECURRENT_SIGMOID,
    RECURRENT_SOFTMAX,
    RECURRENT_LAYER_NORM,
    RECURRENT_PAD,
    RECURRENT_MAGNITUDE,
    RECURRENT_LAST,
    RECURRENT_MEAN,
    RECURRENT_MAX,
    RECURRENT_FLATTEN,
    RECURRENT_N_KINDS
};

enum recurrent_pad { RECURRENT_PAD_ZEROS, RECURRENT_PAD_REFLECT, RECURRENT_PAD_EDGE };

/* y = W x + bias.  Integer matrices have their columns padded to blocks of 32. */
struct recurrent_mat {
    struct kern_mat m;
    const float *bias; /* [n_rows] or NULL */
};

struct recurrent_dir { /* gates in PyTorch's order: i f g o, or r z n */
    struct recurrent_mat in, state;
};

/* Data between layers is [time][channels]. */
struct recurrent_layer {
    enum recurrent_kind kind;
    uint32_t in_time, in_channels, out_time, out_channels;
    struct recurrent_mat w; /* linear; conv1d as [out][kernel][in] */
    uint32_t kernel, stride, dilation;
    uint32_t pad_left, pad_right;
    enum recurrent_pad pad_mode;
    uint32_t hidden, n_dirs, n_gates;
    struct recurrent_dir dirs[2];
    size_t state_at; /* offset in the state, in floats, of its h, followed by c */
    float eps;
    const float *gamma, *beta;
};

struct recurrent {
    const struct kern_ops *k;
    struct arena arena; /* owns everything below */
    struct recurrent_layer *layers;
    const float *mean, *inverse_std; /* [channels] or NULL */
    struct recurrent_info info;
    size_t context_floats; /* samples kept by a stream, at the start of its state */
    size_t state_floats;
    /* offsets of parts of the scratch, in floats */
    size_t act_floats; /* size of each of two buffers, starting at 0 */
    size_t columns_at, gates_at, step_at, state_at, window_at, quants_at, scales_at, sums_at;
    size_t scratch_bytes;
};

#endif
