/* recurrent.c - runs a layer program; see recurrent.h. */
#include "score/recurrent.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/tiles.h"
#include "score/recurrent_int.h"

struct run {
    const struct recurrent *r;
    const struct kern_ops *k;
    float *scratch;
};

void recurrent_close(struct recurrent *r)
{
    if (!r)
        return;
    arena_fini(&r->arena);
    mem_free(r);
}

struct recurrent_info recurrent_info(const struct recurrent *r)
{
    return r->info;
}

size_t recurrent_state_floats(const struct recurrent *r)
{
    return r->state_floats;
}

size_t recurrent_scratch_bytes(const struct recurrent *r)
{
    return r->scratch_bytes;
}

/* ---- products ----------------------------------------------------------------------------- */

/* out[t][row] = W x[t] + bias for n_tokens consecutive inputs of n_cols values. */
static void product(const struct run *u, const struct recurrent_mat *w, const float *x,
                    uint32_t n_cols, uint32_t n_tokens, float *out)
{
    const struct recurrent *r = u->r;
    struct kern_act a = {.x = x, .ld = n_cols, .n_cols = n_cols};
    if (!kern_fmt_is_float(w->m.fmt)) {
        const uint32_t padded = w->m.n_cols;
        float *wide = u->scratch + r->columns_at;
        a.n_cols = padded;
        if (padded != n_cols) {
            /* A convolution's columns are already in place: widen them from the last one on. */
            for (uint32_t t = n_tokens; t-- > 0;) {
                memmove(wide + (size_t)t * padded, x + (size_t)t * n_cols, n_cols * sizeof(*x));
                memset(wide + (size_t)t * padded + n_cols, 0, (padded - n_cols) * sizeof(*x));
            }
            a.x = wide;
            a.ld = padded;
        }
        a.q = (int8_t *)(void *)(u->scratch + r->quants_at);
        a.scale = u->scratch + r->scales_at;
        a.sums = (int32_t *)(void *)(u->scratch + r->sums_at);
        for (uint32_t t = 0; t < n_tokens; t++)
            u->k->quantize(&a, t, 0, padded / 32);
    }
    u->k->gemm(&w->m, &a, n_tokens, 0, tiles_count(&u->k->layout, w->m.n_rows), out, w->m.n_rows);
    for (uint32_t t = 0; w->bias && t < n_tokens; t++)
        u->k->add(out + (size_t)t * w->m.n_rows, w->bias, w->m.n_rows);
}

/* ---- layers ------------------------------------------------------------------------------- */

static void run_conv1d(const struct run *u, const struct recurrent_layer *l, const float *x,
                       float *out)
{
    const uint32_t c = l->in_channels, n_cols = l->kernel * c;
    float *columns = u->scratch + u->r->columns_at;
    for (uint32_t t = 0; t < l->out_time; t++)
        for (uint32_t k = 0; k < l->kernel; k++) {
            float *to = columns + (size_t)t * n_cols + (size_t)k * c;
            int64_t from = (int64_t)t * l->stride + (int64_t)k * l->dilation - l->pad_left;
            if (from < 0 || from >= l->in_time)
                memset(to, 0, c * sizeof(*to));
            else
                memcpy(to, x + (size_t)from * c, c * sizeof(*to));
        }
    product(u, &l->w, columns, n_cols, l->out_time, out);
}

static void lstm_cell(const struct run *u, float *g, float *h, float *c, uint32_t n)
{
    u->k->sigmoid(g, g, 2 * n); /* input and forget gates */
    u->k->tanh(g + 2 * n, g + 2 * n, n);
    u->k->sigmoid(g + 3 * n, g + 3 * n, n);
    for (uint32_t i = 0; i < n; i++)
        c[i] = g[n + i] * c[i] + g[i] * g[2 * n + i];
    u->k->tanh(h, c, n);
    for (uint32_t i = 0; i < n; i++)
        h[i] *= g[3 * n + i];
}

/* g: W x + b of all gates; s: U h + b of all gates; the candidate's part of s is gated before it is
 * added. */
static void gru_cell(const struct run *u, float *g, const float *s, float *h, uint32_t n)
{
    u->k->add(g, s, 2 * n);
    u->k->sigmoid(g, g, 2 * n); /* reset and update gates */
    for (uint32_t i = 0; i < n; i++)
        g[2 * n + i] += g[i] * s[2 * n + i];
    u->k->tanh(g + 2 * n, g + 2 * n, n);
    for (uint32_t i = 0; i < n; i++)
        h[i] = (1 - g[n + i]) * g[2 * n + i] + g[n + i] * h[i];
}

static void run_recurrent(const struct run *u, const struct recurrent_layer *l, const float *x,
                          float *state, float *out)
{
    const uint32_t n = l->hidden, width = l->n_gates * n;
    float *gates = u->scratch + u->r->gates_at, *step = u->scratch + u->r->step_at;
    for (uint32_t d = 0; d < l->n_dirs; d++) {
        float *h = state + l->state_at + (size_t)d * 2 * n, *c = h + n;
        product(u, &l->dirs[d].in, x, l->in_channels, l->in_time, gates);
        for (uint32_t i = 0; i < l->in_time; i++) {
            const uint32_t t = d == 0 ? i : l->in_time - 1 - i;
            float *g = gates + (size_t)t * width;
            product(u, &l->dirs[d].state, h, n, 1, step);
            if (l->kind == RECURRENT_LSTM) {
                u->k->add(g, step, width);
                lstm_cell(u, g, h, c, n);
            } else {
                gru_cell(u, g, step, h, n);
            }
            memcpy(out + (size_t)t * l->out_channels + (size_t)d * n, h, n * sizeof(*h));
        }
    }
}

static void run_pad(const struct recurrent_layer *l, const float *x, float *out)
{
    const uint32_t c = l->in_channels;
    const int64_t last = (int64_t)l->in_time - 1;
    for (uint32_t t = 0; t < l->out_time; t++) {
        int64_t from = (int64_t)t - l->pad_left;
        bool outside = from < 0 || from > last;
        if (outside && l->pad_mode == RECURRENT_PAD_ZEROS) {
            memset(out + (size_t)t * c, 0, c * sizeof(*out));
            continue;
        }
        if (outside && l->pad_mode == RECURRENT_PAD_EDGE)
            from = from < 0 ? 0 : last;
        if (outside &&
            l->pad_mode == RECURRENT_PAD_REFLECT) /* the loader checked that one pass is enough */
            from = from < 0 ? -from : 2 * last - from;
        memcpy(out + (size_t)t * c, x + (size_t)from * c, c * sizeof(*out));
    }
}

/* Real parts in the first half of the channels, imaginary ones in the second. */
static void run_magnitude(const struct recurrent_layer *l, const float *x, float *out)
{
    const uint32_t n = l->out_channels;
    for (uint32_t t = 0; t < l->in_time; t++)
        for (uint32_t i = 0; i < n; i++) {
            float re = x[(size_t)t * 2 * n + i], im = x[(size_t)t * 2 * n + n + i];
            out[(size_t)t * n + i] = sqrtf(re * re + im * im);
        }
}

static void run_pooling(const struct run *u, const struct recurrent_layer *l, const float *x,
                        float *out)
{
    const uint32_t c = l->in_channels, n = l->in_time;
    memcpy(out, l->kind == RECURRENT_LAST ? x + (size_t)(n - 1) * c : x, c * sizeof(*out));
    if (l->kind == RECURRENT_LAST)
        return;
    for (uint32_t t = 1; t < n; t++)
        for (uint32_t i = 0; i < c; i++) {
            float v = x[(size_t)t * c + i];
            if (l->kind == RECURRENT_MEAN)
                out[i] += v;
            else
                out[i] = v > out[i] ? v : out[i];
        }
    if (l->kind == RECURRENT_MEAN)
        u->k->scale(out, 1.0f / (float)n, c);
}

static void run_softmax(const struct run *u, const struct recurrent_layer *l, float *x)
{
    for (uint32_t t = 0; t < l->in_time; t++) {
        float *row = x + (size_t)t * l->in_channels;
        float sum = u->k->softmax_exp(row, row, l->in_channels, u->k->max(row, l->in_channels));
        u->k->scale(row, 1.0f / sum, l->in_channels);
    }
}

static void run_norm(const struct run *u, const struct recurrent_layer *l, const float *x,
                     float *out)
{
    for (uint32_t t = 0; t < l->in_time; t++)
        u->k->layernorm(out + (size_t)t * l->in_channels, x + (size_t)t * l->in_channels, l->gamma,
                        l->beta, l->in_channels, l->eps);
}

/* Returns where the result is: y, or x if the layer works in place. */
static float *run_layer(const struct run *u, const struct recurrent_layer *l, float *x, float *y,
                        float *state)
{
    const uint32_t n = l->in_time * l->in_channels;
    switch (l->kind) {
    case RECURRENT_LINEAR:
        product(u, &l->w, x, l->in_channels, l->in_time, y);
        return y;
    case RECURRENT_CONV1D:
        run_conv1d(u, l, x, y);
        return y;
    case RECURRENT_LSTM:
    case RECURRENT_GRU:
        run_recurrent(u, l, x, state, y);
        return y;
    case RECURRENT_RELU:
        u->k->relu(x, x, n);
        return x;
    case RECURRENT_TANH:
        u->k->tanh(x, x, n);
        return x;
    case RECURRENT_SIGMOID:
        u->k->sigmoid(x, x, n);
        return x;
    case RECURRENT_SOFTMAX:
        run_softmax(u, l, x);
        return x;
    case RECURRENT_LAYER_NORM:
        run_norm(u, l, x, y);
        return y;
    case RECURRENT_PAD:
        run_pad(l, x, y);
        return y;
    case RECURRENT_MAGNITUDE:
        run_magnitude(l, x, y);
        return y;
    case RECURRENT_LAST:
    case RECURRENT_MEAN:
    case RECURRENT_MAX:
        run_pooling(u, l, x, y);
        return y;
    case RECURRENT_FLATTEN:
    case RECURRENT_N_KINDS:
        break;
    }
    return x;
}

/* ---- windows ------------------------------------------------------------------------------ */

/* x: [window][channels]; memory: holds h and c of the layers at their state_at. */
static void run_window(const struct recurrent *r, const float *x, float *memory, float *out,
                       void *scratch)
{
    struct run u = {r, r->k, scratch};
    float *cur = u.scratch, *other = cur + r->act_floats;
    const uint32_t c = r->info.channels;
    for (uint32_t t = 0; t < r->info.window; t++)
        for (uint32_t i = 0; i < c; i++) {
            float v = x[(size_t)t * c + i];
            if (r->mean)
                v = (v - r->mean[i]) * r->inverse_std[i];
            cur[(size_t)t * c + i] = isfinite(v) ? v : 0;
        }
    for (uint32_t i = 0; i < r->info.n_layers; i++) {
        float *result = run_layer(&u, &r->layers[i], cur, other, memory);
        other = result == cur ? other : cur;
        cur = result;
    }
    memcpy(out, cur, r->info.n_outputs * sizeof(*out));
}

static void forget(const struct recurrent *r, float *memory)
{
    memset(memory + r->context_floats, 0, (r->state_floats - r->context_floats) * sizeof(*memory));
}

void recurrent_reset(const struct recurrent *r, float *state)
{
    memset(state, 0, r->state_floats * sizeof(*state));
}

void recurrent_step(const struct recurrent *r, float *state, const float *x, float *out,
                    void *scratch)
{
    const size_t context = r->context_floats, fresh = (size_t)r->info.hop * r->info.channels;
    float *window = (float *)scratch + r->window_at;
    memcpy(window, state, context * sizeof(*window));
    memcpy(window + context, x, fresh * sizeof(*window));
    memcpy(state, window + fresh, context * sizeof(*window));
    if (!r->info.stateful)
        forget(r, state);
    run_window(r, window, state, out, scratch);
}

size_t recurrent_n_scores(const struct recurrent *r, size_t n_samples)
{
    if (r->info.stateful)
        return n_samples / r->info.hop;
    return n_samples < r->info.window ? 0 : (n_samples - r->info.window) / r->info.hop + 1;
}

void recurrent_series(const struct recurrent *r, const float *x, size_t n_samples, float *out,
                      void *scratch)
{
    float *state = (float *)scratch + r->state_at;
    const size_t n = recurrent_n_scores(r, n_samples),
                 step = (size_t)r->info.hop * r->info.channels;
    recurrent_reset(r, state);
    for (size_t i = 0; i < n; i++, x += step, out += r->info.n_outputs) {
        if (r->info.stateful) {
            recurrent_step(r, state, x, out, scratch);
        } else {
            forget(r, state);
            run_window(r, x, state, out, scratch);
        }
    }
}
