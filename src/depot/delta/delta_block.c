/* delta_block.c - see delta_block.h. */
#include "depot/delta/delta_block.h"

#include <string.h>

#include <zstd.h>

#include "base/mem.h"
#include "base/rd.h"
#include "kernels/quants/quant.h"

#define MAGIC "SHOALDLT"
#define VERSION 1u
#define LEVEL 9
#define WINDOW_LOG 27 /* what every decoder accepts */

/* ---- the format ---- */

void delta_head_write(uint8_t out[DELTA_HEAD_BYTES], const struct delta_head *h)
{
    const uint32_t version[2] = {VERSION, 0};
    memcpy(out, MAGIC, 8);
    memcpy(out + 8, version, 8);
    memcpy(out + 16, h->old_sum, SHA256_BYTES);
    memcpy(out + 48, h->new_sum, SHA256_BYTES);
    memcpy(out + 80, &h->old_bytes, 8);
    memcpy(out + 88, &h->new_bytes, 8);
}

bool delta_is(const void *p, size_t n)
{
    return n >= 8 && memcmp(p, MAGIC, 8) == 0;
}

int delta_head_read(struct delta_head *out, const void *p, size_t n, struct err *e)
{
    struct rd r = rd_make(p, n);
    const uint8_t *magic = rd_take(&r, 8);
    *out = (struct delta_head){0};
    if (!magic || memcmp(magic, MAGIC, 8) != 0)
        return err_set(e, SHOAL_EFORMAT, "not a patch of 'shoal model delta'");
    const uint32_t version = rd_u32(&r);
    (void)rd_u32(&r);
    const uint8_t *sums = rd_take(&r, (size_t)2 * SHA256_BYTES);
    out->old_bytes = rd_u64(&r);
    out->new_bytes = rd_u64(&r);
    if (r.bad)
        return err_set(e, SHOAL_EFORMAT, "a patch that ends in its header: fetch it again");
    if (version != VERSION)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "a patch of version %u, which is not known; a newer Shoal may read it",
                       version);
    memcpy(out->old_sum, sums, SHA256_BYTES);
    memcpy(out->new_sum, sums + SHA256_BYTES, SHA256_BYTES);
    return 0;
}

void delta_record_write(uint8_t out[DELTA_RECORD_BYTES], const struct delta_record *r)
{
    const uint8_t small[4] = {(uint8_t)r->kind, r->from, r->to, 0};
    memcpy(out, small, 4);
    memcpy(out + 4, &r->packed, 4);
    memcpy(out + 8, &r->old_at, 8);
    memcpy(out + 16, &r->old_n, 8);
    memcpy(out + 24, &r->new_n, 8);
}

/* Whole blocks of both types, with as many values. */
static bool types_fit(const struct delta_record *r)
{
    const struct quant_info *from = quant_info(r->from), *to = quant_info(r->to);
    if (!from || !to || !from->supported || !to->supported || r->old_n % from->block_bytes ||
        r->new_n % to->block_bytes)
        return false;
    return r->old_n / from->block_bytes * from->block == r->new_n / to->block_bytes * to->block;
}

static bool record_fits(const struct delta_record *r)
{
    if (r->kind == DELTA_COPY)
        return r->packed == 0 && r->old_n == r->new_n;
    if (r->new_n > DELTA_MAX_NEW || r->old_n > DELTA_MAX_OLD || r->packed > delta_bound(r->new_n))
        return false;
    return r->kind == DELTA_ZSTD || (r->kind == DELTA_DIFF && types_fit(r));
}

int delta_record_read(struct delta_record *out, const void *p, const struct delta_head *h,
                      uint64_t left, struct err *e)
{
    struct rd r = rd_make(p, DELTA_RECORD_BYTES);
    const uint8_t *small = rd_take(&r, 4);
    *out = (struct delta_record){
        .kind = (enum delta_kind)small[0], .from = small[1], .to = small[2], .packed = rd_u32(&r)};
    out->old_at = rd_u64(&r);
    out->old_n = rd_u64(&r);
    out->new_n = rd_u64(&r);
    if (out->new_n == 0 || out->new_n > left || out->old_at > h->old_bytes ||
        out->old_n > h->old_bytes - out->old_at || !record_fits(out))
        return err_set(e, SHOAL_EFORMAT, "the patch is damaged: fetch it again");
    return 0;
}

/* ---- differences ---- */

static bool room(void **p, size_t *cap, size_t n)
{
    if (*cap >= n)
        return true;
    void *bigger = mem_realloc(*p, n);
    if (!bigger)
        return false;
    *p = bigger;
    *cap = n;
    return true;
}

static unsigned width_of(uint8_t type)
{
    return type == QUANT_F32 ? 4 : type == QUANT_F16 || type == QUANT_BF16 ? 2 : 1;
}

/* The old bytes, or the old values in the new type; NULL: not possible. */
static const uint8_t *guess(struct delta_work *w, const struct delta_record *r, const uint8_t *old)
{
    if (r->from == r->to)
        return old;
    const size_t n = r->old_n / quant_info(r->from)->block_bytes * quant_info(r->from)->block;
    if (!room((void **)&w->guess, &w->guess_cap, r->new_n) ||
        !room((void **)&w->values, &w->values_cap, n * sizeof(float)))
        return NULL;
    quant_to_f32((enum quant_type)r->from, old, w->values, n);
    return quant_from_f32((enum quant_type)r->to, w->values, w->guess, n, NULL) ? w->guess : NULL;
}

/* Small differences of either sign become small numbers, so that their upper bytes are zero. */
static uint32_t fold(uint32_t d, unsigned bits)
{
    const uint32_t sign = d >> (bits - 1) & 1;
    return (d << 1) ^ (sign ? UINT32_MAX : 0);
}

static uint32_t unfold(uint32_t z)
{
    return z >> 1 ^ (z & 1 ? UINT32_MAX : 0);
}

static uint32_t load(const uint8_t *p, unsigned width)
{
    uint32_t v = 0;
    memcpy(&v, p, width);
    return v;
}

/* All of new_bytes as differences in planes; or, from planes, back to the bytes. */
static void to_planes(uint8_t *out, const uint8_t *was, const uint8_t *is, size_t n, uint8_t type)
{
    const unsigned width = width_of(type);
    const size_t unit = width > 1 ? width : quant_info(type)->block_bytes, count = n / unit;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *a = was + i * unit, *b = is + i * unit;
        if (width == 1) {
            for (size_t k = 0; k < unit; k++)
                out[k * count + i] = (uint8_t)(b[k] - a[k]);
            continue;
        }
        const uint32_t d = fold(load(b, width) - load(a, width), width * 8);
        for (size_t k = 0; k < width; k++)
            out[k * count + i] = (uint8_t)(d >> 8 * k);
    }
}

static void from_planes(uint8_t *out, const uint8_t *was, const uint8_t *planes, size_t n,
                        uint8_t type)
{
    const unsigned width = width_of(type);
    const size_t unit = width > 1 ? width : quant_info(type)->block_bytes, count = n / unit;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *a = was + i * unit;
        if (width == 1) {
            for (size_t k = 0; k < unit; k++)
                out[i * unit + k] = (uint8_t)(planes[k * count + i] + a[k]);
            continue;
        }
        uint32_t d = 0;
        for (size_t k = 0; k < width; k++)
            d |= (uint32_t)planes[k * count + i] << 8 * k;
        d = load(a, width) + unfold(d);
        memcpy(out + i * unit, &d, width);
    }
}

/* ---- zstd ---- */

size_t delta_bound(size_t new_n)
{
    return ZSTD_compressBound(new_n);
}

static size_t squeeze(struct delta_work *w, const uint8_t *prefix, size_t n_prefix,
                      const uint8_t *in, size_t n, uint8_t *out)
{
    if (!w->cctx && !(w->cctx = ZSTD_createCCtx()))
        return 0;
    (void)ZSTD_CCtx_reset(w->cctx, ZSTD_reset_session_and_parameters);
    (void)ZSTD_CCtx_setParameter(w->cctx, ZSTD_c_compressionLevel, LEVEL);
    if (n_prefix > 0) {
        (void)ZSTD_CCtx_setParameter(w->cctx, ZSTD_c_windowLog, WINDOW_LOG);
        (void)ZSTD_CCtx_setParameter(w->cctx, ZSTD_c_enableLongDistanceMatching, 1);
        (void)ZSTD_CCtx_refPrefix(w->cctx, prefix, n_prefix);
    }
    const size_t got = ZSTD_compress2(w->cctx, out, delta_bound(n), in, n);
    return ZSTD_isError(got) ? 0 : got;
}

static bool unsqueeze(struct delta_work *w, const uint8_t *prefix, size_t n_prefix,
                      const uint8_t *in, size_t n, uint8_t *out, size_t want)
{
    if (!w->dctx && !(w->dctx = ZSTD_createDCtx()))
        return false;
    (void)ZSTD_DCtx_reset(w->dctx, ZSTD_reset_session_and_parameters);
    if (n_prefix > 0)
        (void)ZSTD_DCtx_refPrefix(w->dctx, prefix, n_prefix);
    return ZSTD_decompressDCtx(w->dctx, out, want, in, n) == want;
}

/* ---- records ---- */

void delta_work_fini(struct delta_work *w)
{
    (void)ZSTD_freeCCtx(w->cctx);
    (void)ZSTD_freeDCtx(w->dctx);
    mem_free(w->guess);
    mem_free(w->planes);
    mem_free(w->values);
    *w = (struct delta_work){0};
}

size_t delta_pack(struct delta_work *w, const struct delta_record *r, const uint8_t *old,
                  const uint8_t *new_bytes, uint8_t *out)
{
    if (r->kind == DELTA_ZSTD)
        return squeeze(w, old, r->old_n, new_bytes, r->new_n, out);
    const uint8_t *was = guess(w, r, old);
    if (!was || !room((void **)&w->planes, &w->planes_cap, r->new_n))
        return 0;
    to_planes(w->planes, was, new_bytes, r->new_n, r->to);
    return squeeze(w, NULL, 0, w->planes, r->new_n, out);
}

int delta_unpack(struct delta_work *w, const struct delta_record *r, const uint8_t *old,
                 const uint8_t *packed, uint8_t *out, struct err *e)
{
    const bool diff = r->kind == DELTA_DIFF;
    if (diff && !room((void **)&w->planes, &w->planes_cap, r->new_n))
        return err_set(e, SHOAL_ENOMEM, "a part of a patch");
    if (!unsqueeze(w, old, diff ? 0 : r->old_n, packed, r->packed, diff ? w->planes : out,
                   r->new_n))
        return err_set(e, SHOAL_EFORMAT, "the patch is damaged: fetch it again");
    if (!diff)
        return 0;
    const uint8_t *was = guess(w, r, old);
    if (!was)
        return err_set(e, SHOAL_EFORMAT, "the patch is damaged: fetch it again");
    from_planes(out, was, w->planes, r->new_n, r->to);
    return 0;
}
