/* shard_rows.c - see shard_rows.h. */
#include "cluster/shard/shard_rows.h"

#include <string.h>

#include "engine/native/layer_part.h"

static uint32_t width(const struct shard_gather *s, uint32_t part)
{
    return s->g->cuts[part + 1] - s->g->cuts[part];
}

struct shard_gather shard_gather_begin(const struct decoder_gather *g, uint64_t chain,
                                       uint64_t step, uint32_t n_parts, uint32_t own)
{
    struct shard_gather s = {
        .g = g, .chain = chain, .step = step, .n_parts = n_parts, .own = own, .got = 1u << own};
    for (uint32_t i = 0; i < n_parts; i++)
        if (width(&s, i) == 0)
            s.got |= 1u << i;
    return s;
}

/* The own columns as rows of a message. */
static void pack(struct buf *packed, const struct shard_gather *s, uint32_t n_cols)
{
    float *x = s->g->data + s->g->cuts[s->own];
    buf_clear(packed);
    for (uint32_t t = 0; t < s->g->n_tokens; t++, x += s->g->ld) {
        const size_t at = packed->len;
        shard_row_put(packed, s->q8, x, n_cols);
        if (s->q8 && packed->rc == 0)
            shard_row_get(x, true, (const uint8_t *)packed->data + at, n_cols);
    }
}

void shard_gather_put(struct buf *out, struct buf *packed, const struct shard_gather *s,
                      uint64_t compute_ns)
{
    struct shard_slice m = {.chain = s->chain,
                            .step = s->step,
                            .compute_ns = compute_ns,
                            .gather = s->g->number,
                            .part = s->own,
                            .n_tokens = s->g->n_tokens,
                            .n_cols = width(s, s->own),
                            .q8 = s->q8};
    if (m.n_cols == 0)
        return;
    pack(packed, s, m.n_cols);
    m.data = (const uint8_t *)packed->data;
    if (packed->rc < 0)
        out->rc = packed->rc;
    else
        shard_slice_put(out, &m);
}

int shard_gather_take(struct shard_gather *s, const struct shard_frame *f,
                      struct shard_slice *slice, struct err *e)
{
    int rc = shard_slice_read(slice, f, e);
    if (rc < 0)
        return rc;
    if (slice->chain != s->chain || slice->step != s->step || slice->gather != s->g->number ||
        slice->part >= s->n_parts || s->got >> slice->part & 1 ||
        slice->n_tokens != s->g->n_tokens || slice->n_cols != width(s, slice->part) ||
        slice->q8 != s->q8)
        return err_set(e, SHOAL_EFORMAT, "a slice of another step");
    const size_t bytes = shard_row_bytes(slice->q8, slice->n_cols);
    for (uint32_t t = 0; t < slice->n_tokens; t++) {
        float *to = s->g->data + t * s->g->ld + s->g->cuts[slice->part];
        shard_row_get(to, slice->q8, slice->data + t * bytes, slice->n_cols);
        if (!layer_part_finite(to, slice->n_cols))
            return err_set(e, SHOAL_EFORMAT, "it sent values that are not numbers");
    }
    s->got |= 1u << slice->part;
    return 0;
}
