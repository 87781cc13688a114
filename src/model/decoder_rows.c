/* decoder_rows.c - see decoder_rows.h. */
#include "model/decoder_rows.h"

#include <math.h>

#define UNIT 16u /* rows of a tile: other cuts leave tiles partly empty */

/* Rows that stay together: tiles, unless there are too few of them. */
static uint32_t unit_of(uint32_t all, uint32_t n_parts)
{
    return all >= UNIT * n_parts ? UNIT : 1;
}

/* Cuts `all` by shares at multiples of unit, with at least `least` units for each part. */
static bool cut(uint32_t *cuts, uint32_t all, uint32_t unit, uint32_t least, const double *shares,
                uint32_t n_parts)
{
    const uint32_t units = (all + unit - 1) / unit;
    double sum = 0, at = 0;
    if (units < least * n_parts)
        return false;
    for (uint32_t i = 0; i < n_parts; i++)
        sum += shares[i];
    cuts[0] = 0;
    for (uint32_t i = 0, before = 0; i < n_parts; i++) {
        at += shares[i];
        uint32_t to = (uint32_t)lround(units * at / sum);
        const uint32_t low = before + least, high = units - least * (n_parts - 1 - i);
        to = to < low ? low : to > high ? high : to;
        before = i + 1 == n_parts ? units : to;
        cuts[i + 1] = before * unit < all ? before * unit : all;
    }
    return true;
}

/* Cuts three widths among n_parts. */
static int cut_all(struct decoder_rows *out, const struct decoder_rows_of *of, const double *shares,
                   uint32_t n_parts, struct err *e)
{
    bool ok = n_parts >= 1 && n_parts <= DECODER_ROWS_MAX;
    for (uint32_t i = 0; ok && i < n_parts; i++)
        ok = shares[i] > 0 && isfinite(shares[i]);
    ok = ok && cut(out->heads, of->n_kv_heads, 1, 0, shares, n_parts) &&
         cut(out->ffn, of->ffn_dim, unit_of(of->ffn_dim, n_parts), 1, shares, n_parts) &&
         cut(out->dim, of->dim, unit_of(of->dim, n_parts), 1, shares, n_parts);
    return ok ? 0
              : err_set(e, SHOAL_EINVAL,
                        "a model of %u and %u rows cannot be divided by rows among %u", of->ffn_dim,
                        of->dim, n_parts);
}

int decoder_rows_cut(struct decoder_rows *out, const struct decoder_rows_of *of,
                     const double *shares, uint32_t n_parts, struct err *e)
{
    *out = (struct decoder_rows){.n_parts = n_parts};
    if (n_parts < 2)
        return err_set(e, SHOAL_EINVAL, "a model is divided by rows among 2 to %u",
                       DECODER_ROWS_MAX);
    return cut_all(out, of, shares, n_parts, e);
}

int decoder_rows_recut(struct decoder_rows *out, const struct decoder_rows *now,
                       const double *shares, uint32_t n_parts, struct err *e)
{
    const uint32_t last = now->n_parts - 1;
    const struct decoder_rows_of of = {now->heads[last], now->ffn[last], now->dim[last]};
    *out = (struct decoder_rows){.n_parts = n_parts, .index = n_parts - 1};
    if (n_parts < 2 || n_parts > DECODER_ROWS_MAX)
        return err_set(e, SHOAL_EINVAL, "a model is divided by rows among 2 to %u",
                       DECODER_ROWS_MAX);
    out->heads[n_parts] = now->heads[now->n_parts];
    out->ffn[n_parts] = now->ffn[now->n_parts];
    out->dim[n_parts] = now->dim[now->n_parts];
    return cut_all(out, &of, shares, n_parts - 1, e);
}
