/* voice_flow.c - the flow, run backwards: each coupling takes from one half of every frame what a
 * small network says about the other half; see voice_int.h.
 *
 * Frames are divided into chunks.  A chunk computes the frames around it that its convolutions see,
 * fewer from layer to layer, so that chunks need nothing of each other. */
#include <string.h>

#include "model/voice/voice_int.h"

struct span {
    int64_t from, to;
};

/* Rows of frames outside of the sound are zero, as if the convolutions were padded. */
static void clear_outside(float *rows, struct span s, uint32_t n_frames, uint32_t width)
{
    for (int64_t f = s.from; f < s.to; f++)
        if (f < 0 || f >= n_frames)
            memset(rows + (size_t)(f - s.from) * width, 0, width * sizeof(*rows));
}

/* tanh of the first half times sigmoid of the second. */
static void gate(const struct voice *v, float *both, float *out, uint32_t n)
{
    const uint32_t dim = v->c.dim;
    for (uint32_t i = 0; i < n; i++, both += 2 * (size_t)dim, out += dim) {
        v->k->tanh(out, both, dim);
        v->k->sigmoid(both + dim, both + dim, dim);
        for (uint32_t c = 0; c < dim; c++)
            out[c] *= both[dim + c];
    }
}

/* Layer j of a coupling: h holds the frames of `is`, and is left with those of `gets`. */
static void layer(const struct voice *v, const struct voice_coupling *c, uint32_t j,
                  struct voice_member *m, struct span is, struct span gets, struct span own)
{
    const uint32_t dim = v->c.dim, n = (uint32_t)(gets.to - gets.from);
    const bool last = j + 1 == v->n_wn;
    float *h = m->a, *both = m->b, *gated = m->c, *sum = m->d;
    voice_conv_run(v, &c->in[j], m, h, dim, n, both, (size_t)2 * dim);
    gate(v, both, gated, n);
    const uint32_t width = last ? dim : 2 * dim;
    voice_conv_run(v, &c->skip[j], m, gated, dim, n, both, width);
    const float *inside = h + (size_t)(gets.from - is.from) * dim;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t f = gets.from + i;
        const float *row = both + (size_t)i * width;
        if (f >= own.from && f < own.to)
            v->k->add(sum + (size_t)(f - own.from) * dim, last ? row : row + dim, dim);
        if (last)
            continue;
        memmove(h + (size_t)i * dim, inside + (size_t)i * dim, dim * sizeof(*h));
        v->k->add(h + (size_t)i * dim, row, dim);
    }
    if (!last)
        clear_outside(h, gets, v->n_frames, dim);
}

static void couple(struct voice *v, uint32_t index, struct span own, struct voice_member *m)
{
    const struct voice_coupling *c = &v->couplings[index];
    const uint32_t dim = v->c.dim, half = dim / 2, n_own = (uint32_t)(own.to - own.from);
    const uint32_t given = index % 2 ? 0 : half, changed = index % 2 ? half : 0;
    const int64_t reach = v->flow_kernel / 2, all = reach * v->n_wn;
    struct span is = {own.from - all, own.to + all};
    for (int64_t f = is.from; f < is.to; f++) /* frames outside are cleared below */
        if (f >= 0 && f < v->n_frames)
            memcpy(m->b + (size_t)(f - is.from) * half, v->frames + (size_t)f * dim + given,
                   half * sizeof(float));
    clear_outside(m->b, is, v->n_frames, half);
    voice_conv_run(v, &c->pre, m, m->b, half, (uint32_t)(is.to - is.from), m->a, dim);
    clear_outside(m->a, is, v->n_frames, dim);
    memset(m->d, 0, (size_t)n_own * dim * sizeof(float));
    for (uint32_t j = 0; j < v->n_wn; j++) {
        const struct span gets = {is.from + reach, is.to - reach};
        layer(v, c, j, m, is, gets, own);
        is = gets;
    }
    voice_conv_run(v, &c->post, m, m->d, dim, n_own, m->b, half);
    for (uint32_t i = 0; i < n_own; i++) {
        float *to = v->frames + ((size_t)own.from + i) * dim + changed;
        for (uint32_t k = 0; k < half; k++)
            to[k] -= m->b[(size_t)i * half + k];
    }
}

static void couple_chunk(void *ctx, const struct crew_phase *p, uint32_t chunk, uint32_t member)
{
    struct voice *v = ctx;
    const struct span own = {voice_part(p, chunk), voice_part(p, chunk + 1)};
    couple(v, p->arg, own, &v->members[member]);
}

void voice_flow_run(struct voice *v)
{
    const uint32_t members = crew_lane_size(v->lane);
    uint32_t chunks = (v->n_frames + VOICE_FLOW_CHUNK - 1) / VOICE_FLOW_CHUNK;
    chunks = (chunks + members - 1) / members * members; /* the same work for each */
    chunks = chunks < v->n_frames ? chunks : v->n_frames;
    for (uint32_t i = 0; i < v->n_flows; i++)
        v->phases[i] = (struct crew_phase){
            .chunk = couple_chunk, .arg = i, .n_items = v->n_frames, .n_chunks = chunks};
    voice_phases_run(v, v->n_flows);
}
