/* gemm_drive.h - the outer loops of the arm64 products.
 *
 * Included last by each set's file, which must define: layout; PANEL_TYPE, a struct, and
 * panel_fill(); panel_tile(), one tile times NT = 2, 4 or 8 tokens of a panel; vector_tiles(), NS
 * tiles times one token; gemm_wide() for KERN_Q8W; PANEL_TOKENS: 4 or 8; PANEL_PAD: whether a panel
 * may hold fewer than NT tokens. */

/* How many of the `left` remaining tokens go into the next panel. */
static ALWAYS_INLINE uint32_t panel_take(uint32_t left)
{
    if (left >= PANEL_TOKENS)
        return PANEL_TOKENS;
    return PANEL_PAD ? left : left >= 4 ? 4 : 2;
}

static ALWAYS_INLINE void vector_range(const struct kern_mat *w, const struct kern_act *a,
                                       uint32_t t, uint32_t tile0, uint32_t tile1, float *out,
                                       size_t out_ld, enum kern_fmt fmt,
                                       const struct tiles_map *map)
{
    uint32_t tile = tile0;
    for (; tile + 2 <= tile1; tile += 2)
        vector_tiles(fmt, w, map, a, t, tile, 2, out + t * out_ld);
    if (tile < tile1)
        vector_tiles(fmt, w, map, a, t, tile, 1, out + t * out_ld);
}

static ALWAYS_INLINE void panel_range(const struct kern_mat *w, const struct kern_act *a,
                                      uint32_t n_tokens, uint32_t tile0, uint32_t tile1, float *out,
                                      size_t out_ld, enum kern_fmt fmt, const struct tiles_map *map)
{
    PANEL_TYPE panel;
    const uint32_t blocks = w->n_cols / 32;
    for (uint32_t b = 0; b < blocks; b += panel.n_blocks)
        for (uint32_t t = 0; t < n_tokens; t += panel.n_tokens) {
            panel.b0 = b;
            panel.n_blocks = blocks - b < PANEL_BLOCKS ? blocks - b : PANEL_BLOCKS;
            panel.n_tokens = panel_take(n_tokens - t);
            panel.first = b == 0;
            panel.last = b + panel.n_blocks == blocks;
            panel_fill(&panel, fmt, a, t);
            float *o = out + t * out_ld;
            uint32_t tile = tile0;
            if (PANEL_TOKENS == 8 && panel.n_tokens > 4)
                for (; tile < tile1; tile++)
                    panel_tile(fmt, w, map, &panel, tile, PANEL_TOKENS, o, out_ld);
            else if (panel.n_tokens > 2)
                for (; tile < tile1; tile++)
                    panel_tile(fmt, w, map, &panel, tile, 4, o, out_ld);
            else
                for (; tile < tile1; tile++)
                    panel_tile(fmt, w, map, &panel, tile, 2, o, out_ld);
        }
}

static ALWAYS_INLINE void gemm_fmt(const struct kern_mat *w, const struct kern_act *a,
                                   uint32_t n_tokens, uint32_t tile0, uint32_t tile1, float *out,
                                   size_t out_ld, enum kern_fmt fmt)
{
    const struct tiles_map map = tiles_map(&layout, fmt, w->n_cols);
    uint32_t in_panels = n_tokens == 1 ? 0 : PANEL_PAD ? n_tokens : n_tokens & ~1u;
    while (tile0 < tile1) {
        uint32_t end = in_panels && tile1 - tile0 > PANEL_TILES ? tile0 + PANEL_TILES : tile1;
        if (in_panels)
            panel_range(w, a, in_panels, tile0, end, out, out_ld, fmt, &map);
        if (in_panels < n_tokens)
            vector_range(w, a, in_panels, tile0, end, out, out_ld, fmt, &map);
        tile0 = end;
    }
}

#include "kernels/gemm_formats.h"

static void gemm(const struct kern_mat *w, const struct kern_act *a, uint32_t n_tokens,
                 uint32_t tile0, uint32_t tile1, float *out, size_t out_ld)
{
    static void (*const by_fmt[KERN_N_FMTS])(const struct kern_mat *, const struct kern_act *,
                                             uint32_t, uint32_t, uint32_t, float *, size_t) = {
        [KERN_F32] = ops_fgemm,   [KERN_F16] = ops_fgemm,     [KERN_BF16] = ops_fgemm,
        [KERN_Q8] = gemm_KERN_Q8, [KERN_Q4] = gemm_KERN_Q4,   [KERN_Q4M] = gemm_KERN_Q4M,
        [KERN_Q5] = gemm_KERN_Q5, [KERN_Q5M] = gemm_KERN_Q5M, [KERN_Q6] = gemm_KERN_Q6,
        [KERN_Q8W] = gemm_wide,
    };
    by_fmt[w->fmt](w, a, n_tokens, tile0, tile1, out, out_ld);
}
