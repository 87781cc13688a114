/* mixer_conv.c - see mixer_conv.h. */
#include "model/mixer/mixer_conv.h"

#include <math.h>
#include <string.h>

void mixer_conv_step(const struct mixer_job *j, const float *w, size_t ld, const float *bias,
                     float *past, float *y, const float *x, uint32_t n)
{
    const uint32_t len = j->c->conv_len;
    float own[MIXER_CHANNELS];
    memcpy(own, x, n * sizeof(float));
    if (bias)
        memcpy(y, bias, n * sizeof(float));
    else
        memset(y, 0, n * sizeof(float));
    for (uint32_t i = 0; i + 1 < len; i++)
        j->k->mul_add(y, w + i * ld, past + (size_t)i * MIXER_CHANNELS, n);
    j->k->mul_add(y, w + (len - 1) * ld, own, n);
    memmove(past, past + MIXER_CHANNELS, (size_t)(len - 2) * MIXER_CHANNELS * sizeof(float));
    memcpy(past + (size_t)(len - 2) * MIXER_CHANNELS, own, n * sizeof(float));
}

void mixer_conv_channels(const struct mixer_job *j, uint32_t unit, float *state, uint32_t first,
                         uint32_t n)
{
    const uint32_t at = unit * MIXER_CHANNELS;
    const uint32_t wide = n - at < MIXER_CHANNELS ? n - at : MIXER_CHANNELS;
    const float *bias = j->l->conv_b ? j->l->conv_b + at : NULL;
    for (uint32_t t = 0; t < j->n; t++) {
        float *x = j->in + t * j->in_ld + first + at;
        mixer_conv_step(j, j->l->conv_w + at, n, bias, state, x, x, wide);
        j->k->silu(x, x, wide);
    }
}

float mixer_conv_softplus(float x)
{
    return x > 20.0f ? x : (float)log1p(exp((double)x));
}

uint32_t mixer_conv_ssm_out(const struct decoder_config *c)
{
    return c->ssm_inner;
}

uint32_t mixer_conv_ssm_units(const struct decoder_config *c)
{
    return mixer_conv_units(mixer_conv_ssm_channels(c));
}

uint32_t mixer_conv_ssm_floats(const struct decoder_config *c)
{
    return (c->conv_len - 1) * MIXER_CHANNELS;
}

uint32_t mixer_conv_ssm_heads(const struct decoder_config *c)
{
    return c->ssm_heads;
}

uint32_t mixer_conv_ssm_head_floats(const struct decoder_config *c)
{
    return c->ssm_state * (c->ssm_inner / c->ssm_heads);
}
