/* cuda_pass.c - see cuda_pass.h. */
#include "engine/cuda/cuda_pass.h"

#include <string.h>

#include "model/decoder_parts.h"

static size_t round16(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* Where each part begins.  Pages are last: then everything has its place by the number of tokens
 * alone, and passes with as many can share a recording (cuda_graphs.h). */
struct parts {
    size_t wanted, tiles, embedded, pages;
};

static struct parts parts_of(uint32_t n_tokens, uint32_t dim)
{
    struct parts at = {.wanted = round16(n_tokens * sizeof(struct step_token))};
    at.tiles = at.wanted + round16((size_t)n_tokens * 4);
    at.embedded = at.tiles + round16((size_t)n_tokens * 8);
    at.pages = at.embedded + round16((size_t)n_tokens * dim * sizeof(float));
    return at;
}

static uint32_t tokens_of(const struct decoder_run *runs, uint32_t n_runs)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_runs; i++)
        n += runs[i].n;
    return n;
}

size_t cuda_pass_bytes(uint32_t max_tokens, size_t max_pages, uint32_t dim)
{
    return parts_of(max_tokens, dim).pages + max_pages * 4;
}

static uint32_t tiles_of(uint32_t *tiles, uint32_t t0, uint32_t n, uint32_t tile)
{
    uint32_t k = 0;
    for (uint32_t t = 0; t < n; t += tile, k++) {
        tiles[2 * k] = t0 + t;
        tiles[2 * k + 1] = n - t < tile ? n - t : tile;
    }
    return k;
}

size_t cuda_pass_write(struct step_pass *p, uint8_t *in, uint8_t *in_gpu, const struct decoder *d,
                       const struct decoder_run *runs, uint32_t n_runs, uint32_t tile, float *work)
{
    const uint32_t dim = decoder_config(d)->dim;
    const uint32_t n = tokens_of(runs, n_runs);
    uint32_t t = 0, n_pages = 0, rows = 0, n_tiles = 0;
    const struct parts at = parts_of(n, dim);
    struct step_token *tokens = (struct step_token *)(void *)in;
    uint32_t *pages = (uint32_t *)(void *)(in + at.pages);
    uint32_t *wanted = (uint32_t *)(void *)(in + at.wanted);
    uint32_t *tiles = (uint32_t *)(void *)(in + at.tiles);
    float *x = (float *)(void *)(in + at.embedded);
    for (uint32_t i = 0; i < n_runs; i++) {
        const struct decoder_run *r = &runs[i];
        const uint32_t of_run = (r->pos0 + r->n + KERN_PAGE - 1) / KERN_PAGE;
        n_tiles += tiles_of(tiles + 2 * n_tiles, t, r->n, tile);
        for (uint32_t j = 0; j < r->n; j++, t++, x += dim) {
            const bool wants = j >= r->n - r->n_logits_last;
            if (wants)
                wanted[rows] = t;
            tokens[t] = (struct step_token){.pos = r->pos0 + j,
                                            .run = i,
                                            .pages_at = n_pages,
                                            .logit_row = wants ? rows++ : STEP_NO_ROW};
            decoder_embed(d, (uint32_t)r->tokens[j], r->pos0 + j, x, work, work + dim);
        }
        memcpy(pages + n_pages, r->pages, of_run * sizeof(*pages));
        n_pages += of_run;
    }
    *p = (struct step_pass){.n_tokens = n,
                            .tokens = (const struct step_token *)(void *)in_gpu,
                            .pages = (const uint32_t *)(void *)(in_gpu + at.pages),
                            .embedded = (const float *)(void *)(in_gpu + at.embedded),
                            .wanted = (const uint32_t *)(void *)(in_gpu + at.wanted),
                            .tiles = (const uint32_t *)(void *)(in_gpu + at.tiles),
                            .n_wanted = rows,
                            .n_tiles = n_tiles};
    return at.pages + (size_t)n_pages * 4;
}
