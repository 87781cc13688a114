/* encoder_places.c - how attention knows the places of tokens: biases of distances (MPNet), vectors
 * of distances against queries and keys (DeBERTa), rotation and local layers (ModernBERT).
 *
 * Tables by distance have 2 * n_ctx - 1 entries; the one of distance 0 is at n_ctx - 1. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/tiles.h"
#include "model/encoder_int.h"
#include "model/t5.h"

#define OUTSIDE (-1e30f) /* added to the score of a key that is not seen */

static size_t n_distances(const struct encoder *d)
{
    return 2 * (size_t)d->c.n_ctx - 1;
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* Distances on each side that have vectors of their own. */
static uint32_t span(const struct encoder_config *c)
{
    return c->n_buckets ? c->n_buckets : c->max_distance;
}

static int plan_distances(struct plan *p, struct encoder *d)
{
    struct encoder_places_data *s = &d->places;
    const uint32_t dim = d->c.dim;
    int rc = plan_table(p, &s->rel, "rel_embd.weight", &s->n_rel, dim, true);
    if (rc == 0 && s->n_rel != 2 * span(&d->c))
        return err_set(p->e, SHOAL_EFORMAT, "tensor rel_embd.weight has %u rows, expected %u",
                       s->n_rel, 2 * span(&d->c));
    if (rc == 0)
        rc = plan_vector(p, &s->rel_norm.w, -1, "rel_embd_norm", "weight", dim, false);
    if (rc == 0)
        rc = plan_vector(p, &s->rel_norm.b, -1, "rel_embd_norm", "bias", dim, false);
    for (uint32_t i = 0; rc == 0 && i < d->c.n_blocks; i++) {
        rc = plan_linear(p, &d->layers[i].pos_k, (int)i, "attn_pos_k", dim, dim, false);
        if (rc == 0)
            rc = plan_linear(p, &d->layers[i].pos_q, (int)i, "attn_pos_q", dim, dim, false);
    }
    return rc;
}

int encoder_places_plan(struct plan *p, struct encoder *d)
{
    uint32_t n_rows;
    int rc;
    switch (d->c.places) {
    case ENCODER_PLACES_BUCKETS:
        rc = plan_table(p, &d->places.buckets, "rel_attn_bias.weight", &n_rows, d->c.n_heads, true);
        return rc == 0 && n_rows != d->c.n_buckets
                   ? err_set(p->e, SHOAL_EFORMAT,
                             "tensor rel_attn_bias.weight has %u rows, expected %u", n_rows,
                             d->c.n_buckets)
                   : rc;
    case ENCODER_PLACES_DISENTANGLED:
        return plan_distances(p, d);
    default:
        return 0;
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Divides the memory of the tables; base NULL: only counts. */
static size_t lay_out(struct encoder *d, uint8_t *base)
{
    const struct encoder_config *c = &d->c;
    struct encoder_places_data *s = &d->places;
    struct carve at = {.base = base};
    const size_t f = sizeof(float), turn = 2 * (size_t)c->head_dim * c->n_ctx * f;
    const size_t rel = (size_t)s->n_rel * c->dim * f;
    if (c->places == ENCODER_PLACES_BUCKETS || c->places == ENCODER_PLACES_ROTATED)
        s->bias = plan_carve_take(
            &at, n_distances(d) * (c->places == ENCODER_PLACES_BUCKETS ? c->n_heads : 1) * f);
    if (c->places == ENCODER_PLACES_ROTATED)
        for (int i = 0; i < 2; i++)
            s->rotation[i] = plan_carve_take(&at, turn);
    if (c->places == ENCODER_PLACES_DISENTANGLED) {
        s->row_of = plan_carve_take(&at, n_distances(d) * sizeof(uint32_t));
        for (uint32_t i = 0; i < c->n_blocks; i++) {
            d->layers[i].rel_k = c->c2p ? plan_carve_take(&at, rel) : NULL;
            d->layers[i].rel_q = c->p2c ? plan_carve_take(&at, rel) : NULL;
        }
    }
    return at.bytes;
}

size_t encoder_places_bytes(struct encoder *d)
{
    if (d->places.owned || d->c.places == ENCODER_PLACES_NONE)
        return d->places.owned_bytes;
    return lay_out(d, NULL); /* no table is there yet: their addresses may change */
}

void encoder_places_fini(struct encoder *d)
{
    if (d->places.owned)
        mem_pages_free(d->places.owned, d->places.owned_bytes);
    d->places.owned = NULL;
}

/* ---- tables -------------------------------------------------------------------------------- */

static void make_biases(struct encoder *d)
{
    const struct encoder_config *c = &d->c;
    const size_t n = n_distances(d);
    for (size_t i = 0; i < n; i++) {
        const int64_t away = (int64_t)i - (int64_t)c->n_ctx + 1; /* of the key from the query */
        const float *of = d->places.buckets +
                          (size_t)t5_bucket(away, true, c->n_buckets, c->max_distance) * c->n_heads;
        for (uint32_t h = 0; h < c->n_heads; h++)
            d->places.bias[h * n + i] = of[h];
    }
}

static void make_rotations(struct encoder *d)
{
    const uint32_t rot = d->c.head_dim, half = rot / 2;
    for (int local = 0; local < 2; local++)
        for (uint32_t pos = 0; pos < d->c.n_ctx; pos++) {
            float *cs = d->places.rotation[local] + (size_t)pos * 2 * rot;
            const double base = (double)(local ? d->c.rope_base_local : d->c.rope_base);
            for (uint32_t i = 0; i < half; i++) {
                const float turn = (float)pow(base, -2.0 * i / rot);
                const double angle = (double)((float)pos * turn);
                cs[i] = cs[i + half] = (float)cos(angle);
                cs[rot + i + half] = (float)sin(angle);
                cs[rot + i] = -cs[rot + i + half];
            }
        }
}

static void make_window(struct encoder *d)
{
    for (size_t i = 0; i < n_distances(d); i++) {
        const int64_t away = (int64_t)i - (int64_t)d->c.n_ctx + 1;
        const bool seen = away >= -(int64_t)d->c.window && away <= (int64_t)d->c.window;
        d->places.bias[i] = seen ? 0.0f : OUTSIDE;
    }
}

/* DeBERTa's bucket of a distance: near ones have their own, far ones grow logarithmically.  Rounded
 * like the reference, in floats. */
static int64_t bucket(const struct encoder_config *c, int64_t away)
{
    const int64_t mid = c->n_buckets / 2, far = away < 0 ? -away : away;
    if (!c->n_buckets || far <= mid)
        return away;
    float part = logf((float)far / (float)mid) /
                 logf((float)((double)(c->max_distance - 1) / (double)mid)) * (float)(mid - 1);
    const int64_t at = (int64_t)ceilf(part) + mid;
    return away < 0 ? -at : at;
}

static void make_rows(struct encoder *d)
{
    const int64_t half = span(&d->c), last = 2 * half - 1;
    for (size_t i = 0; i < n_distances(d); i++) {
        const int64_t row = bucket(&d->c, (int64_t)i - (int64_t)d->c.n_ctx + 1) + half;
        d->places.row_of[i] = (uint32_t)(row < 0 ? 0 : row > last ? last : row);
    }
}

/* The vectors of distances through the matrix of a layer's keys or queries. */
static void project(const struct encoder *d, const struct linear *own, const struct linear *shared,
                    const struct kern_act *rel, float *out)
{
    struct linear l = own->mat != NO_MAT ? *own : *shared;
    const enum linear_input in = plan_linear_wants(&d->weights, &l, LINEAR_INPUT_FLOATS);
    for (uint32_t i = 0; i < d->places.n_rel; i++)
        plan_linear_round_all(d->k, rel, in, i);
    plan_linear_product(d->k, &d->weights, &l, rel, d->places.n_rel, 0,
                        tiles_count(&d->k->layout, d->weights.mats[l.mat].n_rows), out, d->c.dim);
}

static int make_distances(struct encoder *d, struct err *e)
{
    const struct encoder_places_data *s = &d->places;
    struct kern_act rel;
    struct carve at = {.base = NULL};
    uint8_t *memory = NULL;
    float *x = NULL;
    for (int round = 0; round < 2; round++) {
        at.bytes = 0;
        x = plan_carve_take(&at, (size_t)s->n_rel * d->c.dim * sizeof(float));
        plan_carve_act(&at, &rel, x, s->n_rel, d->c.dim);
        if (round == 0 && !(memory = at.base = mem_pages(at.bytes)))
            return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes for distances", at.bytes);
    }
    memcpy(x, s->rel, (size_t)s->n_rel * d->c.dim * sizeof(float));
    for (uint32_t i = 0; s->rel_norm.w && i < s->n_rel; i++)
        d->k->layernorm(x + (size_t)i * d->c.dim, x + (size_t)i * d->c.dim, s->rel_norm.w,
                        s->rel_norm.b, d->c.dim, d->c.norm_eps);
    for (uint32_t i = 0; i < d->c.n_blocks; i++) {
        const struct encoder_layer *l = &d->layers[i];
        if (d->c.p2c)
            project(d, &l->pos_q, &l->qkv[0], &rel, l->rel_q);
        if (d->c.c2p)
            project(d, &l->pos_k, &l->qkv[1], &rel, l->rel_k);
    }
    make_rows(d);
    mem_pages_free(memory, at.bytes);
    return 0;
}

int encoder_places_make(struct encoder *d, struct err *e)
{
    struct encoder_places_data *s = &d->places;
    if (d->c.places == ENCODER_PLACES_NONE)
        return 0;
    s->owned_bytes = lay_out(d, NULL);
    if (!(s->owned = mem_pages(s->owned_bytes)))
        return err_set(e, SHOAL_ENOMEM, "cannot reserve %zu bytes for positions", s->owned_bytes);
    lay_out(d, s->owned);
    if (d->c.places == ENCODER_PLACES_DISENTANGLED)
        return make_distances(d, e);
    if (d->c.places == ENCODER_PLACES_BUCKETS) {
        make_biases(d);
        return 0;
    }
    make_rotations(d);
    make_window(d);
    return 0;
}

/* ---- a pass -------------------------------------------------------------------------------- */

void encoder_places_rotate(const struct encoder *d, const struct encoder_layer *l, uint32_t t)
{
    const uint32_t hd = d->c.head_dim, at = t - d->seq_first[d->seq_of[t]];
    const float *cs = d->places.rotation[l->local] + (size_t)at * 2 * hd;
    /* queries and keys are next to each other */
    d->k->rope(d->qkv + (size_t)t * 3 * d->c.dim, 2 * d->c.n_heads, hd, hd, cs, true);
}

/* Adds to bias [r1 - r0][n_keys] what queries r0 to r1 and the keys say of their distances.
 * Neighbouring distances often share a row: its product is computed once. */
static void disentangle(const struct encoder *d, const struct encoder_layer *l, uint32_t head,
                        const struct kern_attn_full *job, uint32_t r0, uint32_t r1, float *bias)
{
    const uint32_t *row_of = d->places.row_of + d->c.n_ctx - 1, hd = d->c.head_dim;
    const size_t dim = d->c.dim, n = job->n_keys, at = (size_t)head * hd;
    float value = 0;
    memset(bias, 0, (r1 - r0) * n * sizeof(float));
    for (uint32_t r = r0; l->rel_k && r < r1; r++)
        for (uint32_t j = 0, last = UINT32_MAX; j < n; j++) {
            const uint32_t row = row_of[(ptrdiff_t)r - (ptrdiff_t)j];
            if (row != last)
                value = d->k->dot(job->q + r * job->q_ld, l->rel_k + row * dim + at, hd);
            last = row;
            bias[(r - r0) * n + j] = value * job->scale;
        }
    for (uint32_t j = 0; l->rel_q && j < n; j++)
        for (uint32_t r = r0, last = UINT32_MAX; r < r1; r++) {
            const uint32_t row = row_of[(ptrdiff_t)r - (ptrdiff_t)j];
            if (row != last)
                value = d->k->dot(job->k + j * job->kv_ld, l->rel_q + row * dim + at, hd);
            last = row;
            bias[(r - r0) * n + j] += value * job->scale;
        }
}

static void attend_disentangled(const struct encoder *d, const struct encoder_layer *l,
                                uint32_t head, struct kern_attn_full job, uint32_t r0, uint32_t r1,
                                float *bias)
{
    const float kinds = 1.0f + (d->c.c2p ? 1.0f : 0.0f) + (d->c.p2c ? 1.0f : 0.0f);
    job.scale = 1.0f / sqrtf((float)d->c.head_dim * kinds);
    disentangle(d, l, head, &job, r0, r1, bias);
    job.q += r0 * job.q_ld;
    job.out += r0 * job.out_ld;
    job.bias = bias;
    job.bias_ld = (ptrdiff_t)job.n_keys;
    d->k->attend_full(&job, 0, r1 - r0);
}

/* Only the keys that one of the queries sees.  They start at a multiple of 16, the lanes of sums.
 */
static void attend_local(const struct encoder *d, struct kern_attn_full job, uint32_t r0,
                         uint32_t r1)
{
    const uint32_t first = r0 > d->c.window ? (r0 - d->c.window) / 16 * 16 : 0;
    const uint32_t end = job.n_keys - r1 > d->c.window ? r1 + d->c.window : job.n_keys;
    job.k += first * job.kv_ld;
    job.v += first * job.kv_ld;
    job.n_keys = end - first;
    job.bias = d->places.bias + d->c.n_ctx - 1 + first;
    job.bias_ld = -1;
    d->k->attend_full(&job, r0, r1);
}

void encoder_places_attend(const struct encoder *d, const struct encoder_layer *l, uint32_t head,
                           const struct kern_attn_full *job, uint32_t r0, uint32_t r1, float *bias)
{
    struct kern_attn_full with = *job;
    if (d->c.places == ENCODER_PLACES_BUCKETS) {
        with.bias = d->places.bias + head * n_distances(d) + d->c.n_ctx - 1;
        with.bias_ld = -1;
    }
    if (d->c.places != ENCODER_PLACES_DISENTANGLED && !l->local) {
        d->k->attend_full(&with, r0, r1);
        return;
    }
    for (uint32_t r = r0; r < r1; r += ENCODER_ROWS_PER_JOB) {
        const uint32_t to = r1 - r < ENCODER_ROWS_PER_JOB ? r1 : r + ENCODER_ROWS_PER_JOB;
        if (l->local)
            attend_local(d, with, r, to);
        else
            attend_disentangled(d, l, head, with, r, to, bias);
    }
}
