/* products.c - see products.h. */
#include "model/products.h"

#include <string.h>

#include "kernels/tiles.h"

/* A chunk should take long compared to claiming it, and short compared to a time slice. */
#define CHUNK_BYTES (256u << 10)
#define TILE_TOKENS 16u /* groups of tokens consist of whole tiles */
#define GROUP_LEAST 32u /* fewer tokens are not worth unpacking the weights for */

void products_divide(struct crew_phase *p, uint32_t n_members, uint32_t n_tokens, size_t bytes,
                     uint32_t units)
{
    size_t n = bytes / CHUNK_BYTES;
    p->n_groups = 1;
    if (n_members == 1) {
        n = 1;
    } else if (n_tokens > PRODUCTS_FEW) { /* chunks prepare their inputs first: few large ones */
        if (n_tokens >= n_members * GROUP_LEAST)
            p->n_groups = n_members;
        n = n_members * 4u / p->n_groups;
    } else {
        n = (n + n_members - 1) / n_members; /* the same number for each member */
        n = (n < 1 ? 1 : n > 32 ? 32 : n) * n_members;
    }
    p->n_chunks = (n > units ? units : (uint32_t)n) * p->n_groups;
}

/* The share of chunk c: tokens t .. t + n - 1, and part `part` of `parts` of the rows. */
struct share {
    uint32_t t, n, part, parts;
};

static struct share share_of(const struct crew_phase *p, uint32_t c)
{
    const uint32_t groups = p->n_groups ? p->n_groups : 1, parts = p->n_chunks / groups;
    const uint32_t g = c / parts, whole = (p->n_items + TILE_TOKENS - 1) / TILE_TOKENS;
    const uint32_t from = whole * g / groups * TILE_TOKENS;
    const uint32_t to = whole * (g + 1) / groups * TILE_TOKENS;
    return (struct share){from, (to < p->n_items ? to : p->n_items) - from, c % parts, parts};
}

uint32_t products_stage_rows(uint32_t n_members, uint32_t most_rows)
{
    /* a chunk covers at most its member's share of the rows plus one tile or unit */
    return n_members > 1 ? most_rows / n_members + KERN_WIDE : 0;
}

size_t products_bytes(const struct products_with *w, const struct linear *l)
{
    if (l->mat == NO_MAT)
        return 0;
    const struct kern_mat *m = &w->weights->mats[l->mat];
    return m->tile_bytes * tiles_count(&w->k->layout, m->n_rows);
}

uint32_t products_tiles(const struct products_with *w, const struct linear *l)
{
    return l->mat == NO_MAT ? 0 : tiles_count(&w->k->layout, w->weights->mats[l->mat].n_rows);
}

/* The part of linear i that a share covers: tiles *t0 to *t1, *rows rows, starting at row *at of
 * the chunk.  Returns false if it is empty. */
static bool part_of(const struct products_with *w, const struct products *b, const struct share *s,
                    uint32_t i, uint32_t *t0, uint32_t *t1, uint32_t *rows, uint32_t *at)
{
    uint32_t total = 0, base = 0, tile_rows = w->k->layout.tile_rows;
    for (uint32_t j = 0; j < b->n_linears; j++) {
        base += j < i ? products_tiles(w, &b->l[j]) : 0;
        total += products_tiles(w, &b->l[j]);
    }
    uint32_t from = (uint32_t)((uint64_t)total * s->part / s->parts);
    uint32_t to = (uint32_t)((uint64_t)total * (s->part + 1) / s->parts);
    uint32_t tiles = products_tiles(w, &b->l[i]), n_rows = w->weights->mats[b->l[i].mat].n_rows;
    *t0 = from > base ? from - base : 0;
    *t1 = to > base ? to - base : 0;
    *t1 = *t1 < tiles ? *t1 : tiles;
    if (*t0 >= *t1)
        return false;
    uint32_t end = *t1 * tile_rows < n_rows ? *t1 * tile_rows : n_rows;
    *rows = end - *t0 * tile_rows;
    *at = (base + *t0 - from) * tile_rows;
    return true;
}

void products_run(const struct products_with *w, const struct products *b,
                  const struct crew_phase *p, uint32_t c, uint32_t member)
{
    const struct share s = share_of(p, c);
    const struct kern_act a = kern_act_from(b->a, s.t);
    uint32_t t0, t1, rows, at;
    for (uint32_t i = 0; i < b->n_linears; i++)
        if (part_of(w, b, &s, i, &t0, &t1, &rows, &at)) {
            float *out = p->commit
                             ? w->stage[member] + at
                             : b->out + s.t * b->ld + b->l[i].out_at + t0 * w->k->layout.tile_rows;
            plan_linear_product(w->k, w->weights, &b->l[i], &a, s.n, t0, t1, out,
                                p->commit ? w->stage_rows : b->ld);
        }
}

void products_commit(const struct products_with *w, const struct products *b,
                     const struct crew_phase *p, uint32_t c, uint32_t member)
{
    const struct share s = share_of(p, c);
    uint32_t t0, t1, rows, at;
    for (uint32_t i = 0; i < b->n_linears; i++)
        if (part_of(w, b, &s, i, &t0, &t1, &rows, &at))
            for (uint32_t t = 0; t < s.n; t++)
                memcpy(b->out + t * b->ld + b->l[i].out_at + t0 * w->k->layout.tile_rows,
                       w->stage[member] + (size_t)t * w->stage_rows + at, rows * sizeof(float));
}

#define AHEAD_BYTES 512u /* per stream and step */

/* Prefetches tiles t0 to t1 - 1, from the start of each stream that gemm will read for one token.
 */
static bool tiles_ahead(const struct products_with *w, uint32_t mat, uint32_t t0, uint32_t t1,
                        uint32_t step)
{
    const struct kern_mat *m = &w->weights->mats[mat];
    const uint32_t streams = w->k->streams ? w->k->streams : 1;
    const size_t each = (t1 - t0) / streams * m->tile_bytes, from = (size_t)step * AHEAD_BYTES;
    const uint8_t *at = m->data + t0 * m->tile_bytes + from;
    if (from >= each)
        return false;
    for (uint32_t r = 0; r < streams; r++, at += each)
        for (uint32_t line = 0; line < AHEAD_BYTES; line += 64)
            __builtin_prefetch(at + line, 0, 2);
    return true;
}

bool products_ahead(const struct products_with *w, const struct products *b,
                    const struct crew_phase *p, uint32_t c, uint32_t step)
{
    const struct share s = share_of(p, c);
    uint32_t t0, t1, rows, at;
    for (uint32_t i = 0; i < b->n_linears; i++)
        if (part_of(w, b, &s, i, &t0, &t1, &rows, &at))
            return tiles_ahead(w, b->l[i].mat, t0, t1, step);
    return false;
}

/* The share's rows r0 to r1 of the hidden layer, as units u0 to u1. */
static void ffn_range(const struct products_ffn *f, const struct share *s, uint32_t *u0,
                      uint32_t *u1, uint32_t *r0, uint32_t *r1)
{
    const uint32_t n = f->hidden->n_cols, units = products_ffn_units(f);
    const uint32_t unit = linear_input_unit(f->form);
    *u0 = (uint32_t)((uint64_t)units * s->part / s->parts);
    *u1 = (uint32_t)((uint64_t)units * (s->part + 1) / s->parts);
    *r0 = *u0 * unit;
    *r1 = *u1 * unit < n ? *u1 * unit : n;
}

static void activate(const struct kern_ops *k, const struct products_ffn *f, bool gated, float *h,
                     const float *up, uint32_t n)
{
    if (gated && f->act == PRODUCTS_ACT_SILU)
        k->silu_mul(h, h, up, n);
    else if (gated)
        k->gelu_mul(h, h, up, n);
    else if (f->act == PRODUCTS_ACT_SILU)
        k->silu(h, h, n);
    else if (f->act == PRODUCTS_ACT_RELU)
        k->relu(h, h, n);
    else if (f->act == PRODUCTS_ACT_GELU_ERF)
        k->gelu_erf(h, h, n);
    else
        k->gelu(h, h, n);
}

/* Computes gate, up and activation for whole blocks of the down product's input. */
void products_ffn_run(const struct products_with *w, const struct products_ffn *f,
                      const struct crew_phase *p, uint32_t c, uint32_t member)
{
    const bool gated = f->gate->mat != NO_MAT;
    const struct share s = share_of(p, c);
    const struct kern_act in = kern_act_from(f->in, s.t), hidden = kern_act_from(f->hidden, s.t);
    uint32_t u0, u1, r0, r1, rows = w->k->layout.tile_rows;
    ffn_range(f, &s, &u0, &u1, &r0, &r1);
    uint32_t t0 = r0 / rows, t1 = (r1 + rows - 1) / rows;
    size_t ld = p->commit ? w->stage_rows : f->hidden->n_cols;
    float *h = p->commit ? w->stage[member] : f->h + s.t * ld + r0;
    float *up = !gated ? h : p->commit ? h + PRODUCTS_FEW * ld : f->h_up + s.t * ld + r0;
    plan_linear_product(w->k, w->weights, f->up, &in, s.n, t0, t1, up, ld);
    if (gated)
        plan_linear_product(w->k, w->weights, f->gate, &in, s.n, t0, t1, h, ld);
    for (uint32_t t = 0; t < s.n; t++, h += ld, up += ld) {
        activate(w->k, f, gated, h, up, r1 - r0);
        if (!p->commit)
            plan_linear_round(w->k, &hidden, f->form, t, u0, u1);
    }
}

void products_ffn_commit(const struct products_with *w, const struct products_ffn *f,
                         const struct crew_phase *p, uint32_t c, uint32_t member)
{
    const struct share s = share_of(p, c);
    uint32_t u0, u1, r0, r1;
    ffn_range(f, &s, &u0, &u1, &r0, &r1);
    for (uint32_t t = 0; t < s.n; t++) {
        memcpy(f->h + (size_t)t * f->hidden->n_cols + r0,
               w->stage[member] + (size_t)t * w->stage_rows, (r1 - r0) * sizeof(float));
        plan_linear_round(w->k, f->hidden, f->form, t, u0, u1);
    }
}

void products_ffn_activate(const struct products_with *w, const struct products_ffn *f, uint32_t t,
                           uint32_t r0, uint32_t r1)
{
    const size_t at = (size_t)t * f->hidden->n_cols + r0;
    const bool gated = f->gate->mat != NO_MAT;
    float *h = f->h + at;
    activate(w->k, f, gated, h, gated ? f->h_up + at : h, r1 - r0);
}

void products_ffn_finish(const struct products_with *w, const struct products_ffn *f, uint32_t t)
{
    products_ffn_activate(w, f, t, 0, f->hidden->n_cols);
    plan_linear_round_all(w->k, f->hidden, f->form, t);
}

bool products_ffn_ahead(const struct products_with *w, const struct products_ffn *f,
                        const struct crew_phase *p, uint32_t c, uint32_t step)
{
    const struct share s = share_of(p, c);
    uint32_t u0, u1, r0, r1, rows = w->k->layout.tile_rows;
    ffn_range(f, &s, &u0, &u1, &r0, &r1);
    return tiles_ahead(w, f->up->mat, r0 / rows, (r1 + rows - 1) / rows, step);
}
