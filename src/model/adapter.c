/* adapter.c - see adapter.h. */
#include "model/adapter_int.h"

#include "base/mem.h"
#include "kernels/tiles.h"

#define BLOCK_ROWS 256u /* of a result, computed at a time; whole tiles */

void adapter_destroy(struct adapter *a)
{
    if (!a)
        return;
    weights_fini(&a->weights);
    mem_free(a->sites);
    mem_free(a);
}

size_t adapter_bytes(const struct adapter *a)
{
    return a->weights.data_bytes;
}

unsigned adapter_places(const struct adapter *a)
{
    return a->places;
}

static void add_product(const struct adapter *a, const struct adapter_part *p, const float *low,
                        size_t low_ld, const struct adapter_rows *rows)
{
    const uint32_t tile_rows = a->k->layout.tile_rows, per = BLOCK_ROWS / tile_rows;
    const struct kern_act in = {.x = low + p->low_at, .ld = low_ld, .n_cols = p->rank};
    const uint32_t n_rows = a->weights.mats[p->b].n_rows;
    const uint32_t tiles = (n_rows + tile_rows - 1) / tile_rows;
    _Alignas(64) float block[ADAPTER_TOKENS * BLOCK_ROWS];
    for (uint32_t t0 = 0; t0 < tiles; t0 += per) {
        struct kern_mat b = a->weights.mats[p->b];
        const uint32_t n = t0 + per < tiles ? per : tiles - t0, r0 = t0 * tile_rows;
        b.data += t0 * b.tile_bytes;
        b.n_rows -= r0;
        const uint32_t width = b.n_rows < BLOCK_ROWS ? b.n_rows : BLOCK_ROWS;
        a->k->gemm(&b, &in, rows->n, 0, n, block, BLOCK_ROWS);
        for (uint32_t t = 0; t < rows->n; t++)
            a->k->add(rows->out[p->out] + t * rows->ld + p->out_at + r0,
                      block + (size_t)t * BLOCK_ROWS, width);
    }
}

void adapter_apply(const struct adapter *a, uint32_t layer, enum adapter_place place, float scale,
                   const struct adapter_rows *rows)
{
    const struct adapter_site *s = &a->sites[layer * ADAPTER_PLACES + place];
    _Alignas(64) float low[ADAPTER_TOKENS * ADAPTER_MAX_PARTS * ADAPTER_MAX_RANK];
    if (s->n_parts == 0)
        return;
    const struct kern_mat *m = &a->weights.mats[s->a];
    const struct kern_act in = {.x = rows->x, .ld = rows->x_ld, .n_cols = m->n_cols};
    const uint32_t height = a->k->layout.tile_rows;
    a->k->gemm(m, &in, rows->n, 0, (m->n_rows + height - 1) / height, low, s->n_low);
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct adapter_part *p = &s->parts[i];
        for (uint32_t t = 0; t < rows->n; t++)
            a->k->scale(low + (size_t)t * s->n_low + p->low_at, p->factor * scale, p->rank);
        add_product(a, p, low, s->n_low, rows);
    }
}
