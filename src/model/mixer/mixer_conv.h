/* mixer_conv.h - shared by the recurrent blocks: short convolutions and the numbers of state
 * spaces.
 *
 * Thread:    pure functions over the caller's memory.
 * Ownership: borrows everything.  Private to src/model/mixer. */
#ifndef SHOAL_MODEL_MIXER_MIXER_CONV_H
#define SHOAL_MODEL_MIXER_MIXER_CONV_H

#include "model/decoder.h"
#include "model/decoder_parts.h"
#include "model/mixer/mixer.h"

#define MIXER_CHANNELS 64u /* of a unit of a convolution */

/* Units of MIXER_CHANNELS in n channels. */
static inline uint32_t mixer_conv_units(uint32_t n)
{
    return (n + MIXER_CHANNELS - 1) / MIXER_CHANNELS;
}
/* y [n] = the convolution of x [n] and the inputs before it, which `past` holds, oldest first:
 * [conv_len - 1][MIXER_CHANNELS]; x becomes the newest of them.  w: the first of these channels in
 * weights [conv_len][ld].  y may be x. */
void mixer_conv_step(const struct mixer_job *j, const float *w, size_t ld, const float *bias,
                     float *past, float *y, const float *x, uint32_t n);
/* A unit of the convolution with SiLU over n channels of `in` from column `first` on, in place. */
void mixer_conv_channels(const struct mixer_job *j, uint32_t unit, float *state, uint32_t first,
                         uint32_t n);
/* Channels that the convolution of a state space goes over. */
static inline uint32_t mixer_conv_ssm_channels(const struct decoder_config *c)
{
    return c->ssm_inner + 2 * c->ssm_groups * c->ssm_state;
}
/* For mixer_ops of a state space: its output, and units and state of its two stages. */
uint32_t mixer_conv_ssm_out(const struct decoder_config *c);
uint32_t mixer_conv_ssm_units(const struct decoder_config *c);
uint32_t mixer_conv_ssm_floats(const struct decoder_config *c);
uint32_t mixer_conv_ssm_heads(const struct decoder_config *c);
uint32_t mixer_conv_ssm_head_floats(const struct decoder_config *c);
/* log(1 + e^x); in double, so that its rounding to a float is the same everywhere. */
float mixer_conv_softplus(float x);

#endif
