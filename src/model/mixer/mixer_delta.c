/* mixer_delta.c - the gated delta rule of Qwen3.5's linear attention.  Products give queries, keys
 * and values, a gate z, and two numbers for each value head.  A short convolution goes over
 * queries, keys and values; then each head fades its state, corrects what it knows of its key
 * towards the value by beta, and reads it with the query.  The result is normalized by head and
 * multiplied by silu(z).  ssm_state is the width of a key, ssm_groups the number of key heads,
 * ssm_heads that of value heads, which take the keys in turns. */
#include "model/mixer/mixer_conv.h"

#include <math.h>

static uint32_t in_dim(const struct decoder_config *c)
{
    return mixer_conv_ssm_channels(c) + c->ssm_inner + 2 * c->ssm_heads;
}

static int plan_layer(struct plan *p, const struct decoder_config *c, struct layer *l, int i)
{
    const uint32_t all = mixer_conv_ssm_channels(c), heads = c->ssm_heads;
    const struct {
        const char *name;
        uint32_t n;
    } inputs[] = {
        {"attn_qkv", all}, {"attn_gate", c->ssm_inner}, {"ssm_beta", heads}, {"ssm_alpha", heads}};
    int rc = 0;
    uint32_t at = 0;
    for (l->n_qkv = 0; rc == 0 && l->n_qkv < 4; l->n_qkv++) {
        struct linear *to = &l->qkv[l->n_qkv];
        rc = plan_linear(p, to, i, inputs[l->n_qkv].name, inputs[l->n_qkv].n, c->dim, true);
        to->out_at = at;
        at += inputs[l->n_qkv].n;
    }
    if (rc == 0)
        rc = plan_taps(p, &l->mix.conv_w, i, "ssm_conv1d", all, c->conv_len);
    if (rc == 0)
        rc = plan_vector(p, &l->mix.dt_bias, i, "ssm_dt", "bias", heads, true);
    if (rc == 0)
        rc = plan_values(p, &l->mix.decay, i, "ssm_a", NULL, heads);
    if (rc == 0)
        rc = plan_values(p, &l->mix.norm, i, "ssm_norm", "weight", c->ssm_inner / heads);
    if (rc == 0)
        rc = plan_linear(p, &l->attn_out, i, "ssm_out", c->dim, c->ssm_inner, true);
    return rc;
}

static void convolve(const struct mixer_job *j, uint32_t unit, float *state)
{
    mixer_conv_channels(j, unit, state, 0, mixer_conv_ssm_channels(j->c));
}

/* y = x of length 1, times a factor. */
static void unit_length(const struct mixer_job *j, float *y, const float *x, float factor)
{
    const uint32_t n = j->c->ssm_state;
    const float one = 1.0f / sqrtf(j->k->dot(x, x, n) + 1e-6f);
    for (uint32_t i = 0; i < n; i++)
        y[i] = x[i] * one * factor;
}

static void recur(const struct mixer_job *j, uint32_t head, float *state)
{
    const struct decoder_config *c = j->c;
    const uint32_t width = c->ssm_inner / c->ssm_heads, n = c->ssm_state;
    const uint32_t keys = n * c->ssm_groups;
    float q[MIXER_MAX_KEY], k[MIXER_MAX_KEY], beta;
    for (uint32_t t = 0; t < j->n; t++) {
        const float *in = j->in + t * j->in_ld;
        const float *numbers = in + mixer_conv_ssm_channels(c) + c->ssm_inner;
        const float *from = in + (size_t)(head % c->ssm_groups) * n;
        unit_length(j, q, from, 1.0f / sqrtf((float)n));
        unit_length(j, k, from + keys, 1.0f);
        j->k->sigmoid(&beta, numbers + head, 1);
        const float dt = mixer_conv_softplus(numbers[c->ssm_heads + head] + j->l->dt_bias[head]);
        const float decay = (float)exp((double)(dt * j->l->decay[head]));
        j->k->delta_step(state, j->out + t * j->out_ld + (size_t)head * width,
                         in + 2 * (size_t)keys + (size_t)head * width, k, q, n, width, beta, decay);
    }
}

static void finish(const struct mixer_job *j)
{
    const uint32_t width = j->c->ssm_inner / j->c->ssm_heads;
    for (uint32_t at = 0; at < j->c->ssm_inner; at += width)
        j->k->rmsnorm(j->out + at, j->out + at, j->l->norm, width, j->c->norm_eps);
    j->k->silu_mul(j->out, j->in + mixer_conv_ssm_channels(j->c), j->out, j->c->ssm_inner);
}

const struct mixer_ops mixer_delta = {
    .in_dim = in_dim,
    .out_dim = mixer_conv_ssm_out,
    .plan = plan_layer,
    .stages = {{mixer_conv_ssm_units, mixer_conv_ssm_floats, convolve},
               {mixer_conv_ssm_heads, mixer_conv_ssm_head_floats, recur}},
    .finish = finish,
};
