/* mixer_ssd.c - the state space block of Mamba-2: one product gives a gate z, the channels x, B and
 * C, and a step dt for each head.  A short convolution goes over x, B and C; then each head fades
 * its state by exp(dt * A), adds dt * B x, and reads it with C.  The result times silu(z) is
 * normalized in groups. */
#include "model/mixer/mixer_conv.h"

#include <math.h>

static uint32_t in_dim(const struct decoder_config *c)
{
    return c->ssm_inner + mixer_conv_ssm_channels(c) + c->ssm_heads;
}

static int plan_layer(struct plan *p, const struct decoder_config *c, struct layer *l, int i)
{
    const uint32_t heads = c->ssm_heads;
    int rc = plan_linear(p, &l->qkv[0], i, "ssm_in", in_dim(c), c->dim, true);
    l->n_qkv = 1;
    if (rc == 0)
        rc = plan_taps(p, &l->mix.conv_w, i, "ssm_conv1d", mixer_conv_ssm_channels(c), c->conv_len);
    if (rc == 0)
        rc = plan_vector(p, &l->mix.conv_b, i, "ssm_conv1d", "bias", mixer_conv_ssm_channels(c),
                         false);
    if (rc == 0)
        rc = plan_vector(p, &l->mix.dt_bias, i, "ssm_dt", "bias", heads, true);
    if (rc == 0)
        rc = plan_values(p, &l->mix.decay, i, "ssm_a", NULL, heads);
    if (rc == 0)
        rc = plan_values(p, &l->mix.skip, i, "ssm_d", NULL, heads);
    if (rc == 0)
        rc = plan_values(p, &l->mix.norm, i, "ssm_norm", "weight", c->ssm_inner);
    if (rc == 0)
        rc = plan_linear(p, &l->attn_out, i, "ssm_out", c->dim, c->ssm_inner, true);
    return rc;
}

static void convolve(const struct mixer_job *j, uint32_t unit, float *state)
{
    mixer_conv_channels(j, unit, state, j->c->ssm_inner, mixer_conv_ssm_channels(j->c));
}

static void scan(const struct mixer_job *j, uint32_t head, float *state)
{
    const struct decoder_config *c = j->c;
    const uint32_t width = c->ssm_inner / c->ssm_heads, n = c->ssm_state;
    const uint32_t group = head / (c->ssm_heads / c->ssm_groups);
    for (uint32_t t = 0; t < j->n; t++) {
        const float *x = j->in + t * j->in_ld + c->ssm_inner;
        const float *b = x + c->ssm_inner + (size_t)group * n;
        const float dt =
            mixer_conv_softplus(x[mixer_conv_ssm_channels(c) + head] + j->l->dt_bias[head]);
        const float decay = (float)exp((double)(dt * j->l->decay[head]));
        float *y = j->out + t * j->out_ld + (size_t)head * width;
        x += (size_t)head * width;
        j->k->ssm_step(state, y, x, b, b + (size_t)c->ssm_groups * n, n, width, dt, decay);
        for (uint32_t i = 0; i < width; i++)
            y[i] += j->l->skip[head] * x[i];
    }
}

static void finish(const struct mixer_job *j)
{
    const uint32_t width = j->c->ssm_inner / j->c->ssm_groups;
    j->k->silu_mul(j->out, j->in, j->out, j->c->ssm_inner);
    for (uint32_t at = 0; at < j->c->ssm_inner; at += width)
        j->k->rmsnorm(j->out + at, j->out + at, j->l->norm + at, width, j->c->norm_eps);
}

const struct mixer_ops mixer_ssd = {
    .in_dim = in_dim,
    .out_dim = mixer_conv_ssm_out,
    .plan = plan_layer,
    .stages = {{mixer_conv_ssm_units, mixer_conv_ssm_floats, convolve},
               {mixer_conv_ssm_heads, mixer_conv_ssm_head_floats, scan}},
    .finish = finish,
};
