/* mixer_shortconv.c - LFM2's short convolution: out = C * conv(B * x), with B, C and x from one
 * product.  Its state is the last conv_len - 1 values of B * x. */
#include "model/mixer/mixer_conv.h"

static uint32_t in_dim(const struct decoder_config *c)
{
    return 3 * c->dim;
}

static uint32_t out_dim(const struct decoder_config *c)
{
    return c->dim;
}

static uint32_t n_units(const struct decoder_config *c)
{
    return mixer_conv_units(c->dim);
}

static uint32_t unit_floats(const struct decoder_config *c)
{
    return (c->conv_len - 1) * MIXER_CHANNELS;
}

static int plan_layer(struct plan *p, const struct decoder_config *c, struct layer *l, int i)
{
    int rc = plan_linear(p, &l->qkv[0], i, "shortconv.in_proj", 3 * c->dim, c->dim, true);
    l->n_qkv = 1;
    if (rc == 0)
        rc = plan_taps(p, &l->mix.conv_w, i, "shortconv.conv", c->dim, c->conv_len);
    if (rc == 0)
        rc = plan_vector(p, &l->mix.conv_b, i, "shortconv.conv", "bias", c->dim, false);
    if (rc == 0)
        rc = plan_linear(p, &l->attn_out, i, "shortconv.out_proj", c->dim, c->dim, true);
    return rc;
}

static void convolve(const struct mixer_job *j, uint32_t unit, float *state)
{
    const uint32_t dim = j->c->dim, at = unit * MIXER_CHANNELS;
    const uint32_t n = dim - at < MIXER_CHANNELS ? dim - at : MIXER_CHANNELS;
    const float *bias = j->l->conv_b ? j->l->conv_b + at : NULL;
    for (uint32_t t = 0; t < j->n; t++) {
        float *b = j->in + t * j->in_ld + at, *y = j->out + t * j->out_ld + at;
        j->k->mul(b, b, b + 2 * (size_t)dim, n);
        mixer_conv_step(j, j->l->conv_w + at, dim, bias, state, y, b, n);
        j->k->mul(y, y, b + dim, n);
    }
}

const struct mixer_ops mixer_shortconv = {
    .in_dim = in_dim,
    .out_dim = out_dim,
    .plan = plan_layer,
    .stages = {{n_units, unit_floats, convolve}},
};
