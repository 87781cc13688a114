/* delta_block.h - one record of a patch: how some bytes of the new file follow from the old one.
 *
 * A patch (little-endian):
 *    0  "SHOALDLT", u32 version (1), u32 0
 *   16  SHA-256 of the old file, SHA-256 of the new one, u64 bytes of the old, u64 of the new
 *   96  records, in the order of the new file's bytes:
 *       u8 kind, u8 type in the old file, u8 type in the new one, u8 0, u32 bytes that follow it,
 *       u64 offset in the old file, u64 bytes there, u64 bytes that it makes
 *
 *   COPY      the bytes of the old file
 *   ZSTD      a zstd frame; the old bytes are its prefix, as in zstd --patch-from
 *   DIFF      a zstd frame of differences to the old values.  If the types differ, to the old
 *             values in the new type (quant_to_f32, quant_from_f32).  Values of 16 and 32 bits are
 *             subtracted as such, others as bytes; then the first bytes of all values or blocks
 *             come first, then the second ones
 *
 * Thread:    a struct delta_work belongs to its caller.
 * Ownership: delta_work_fini frees its buffers (a zeroed one is fine).
 * Failure:   SHOAL_EFORMAT: damaged, SHOAL_ENOMEM. */
#ifndef SHOAL_DEPOT_DELTA_DELTA_BLOCK_H
#define SHOAL_DEPOT_DELTA_DELTA_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/sha256.h"

#define DELTA_HEAD_BYTES 96u
#define DELTA_RECORD_BYTES 32u
#define DELTA_MAX_NEW ((uint64_t)8 << 20)  /* bytes that a record makes, unless it copies */
#define DELTA_MAX_OLD ((uint64_t)64 << 20) /* bytes that it makes them of */

struct delta_head {
    uint8_t old_sum[SHA256_BYTES], new_sum[SHA256_BYTES];
    uint64_t old_bytes, new_bytes;
};

enum delta_kind { DELTA_COPY = 1, DELTA_ZSTD = 2, DELTA_DIFF = 3 };

struct delta_record {
    enum delta_kind kind;
    uint8_t from, to; /* enum quant_type, of DIFF */
    uint32_t packed;
    uint64_t old_at, old_n, new_n;
};

bool delta_is(const void *p, size_t n); /* whether it begins like a patch */
void delta_head_write(uint8_t out[DELTA_HEAD_BYTES], const struct delta_head *h);
SHOAL_MUST_CHECK int delta_head_read(struct delta_head *out, const void *p, size_t n,
                                     struct err *e);
void delta_record_write(uint8_t out[DELTA_RECORD_BYTES], const struct delta_record *r);
/* left: bytes of the new file that are not made yet.  What it accepts can be made of an old file of
 * that size in bounded memory. */
SHOAL_MUST_CHECK int delta_record_read(struct delta_record *out, const void *p,
                                       const struct delta_head *h, uint64_t left, struct err *e);

struct delta_work {
    void *cctx, *dctx; /* zstd's */
    uint8_t *guess, *planes;
    float *values;
    size_t guess_cap, planes_cap, values_cap;
};

void delta_work_fini(struct delta_work *w);
/* Packs the new bytes of r (kind, types, sizes are set) into out, which has room for delta_bound;
 * returns how many.  0: not possible, or no memory. */
size_t delta_bound(size_t new_n);
size_t delta_pack(struct delta_work *w, const struct delta_record *r, const uint8_t *old,
                  const uint8_t *new_bytes, uint8_t *out);
/* Makes r->new_n bytes of r, which is not COPY. */
SHOAL_MUST_CHECK int delta_unpack(struct delta_work *w, const struct delta_record *r,
                                  const uint8_t *old, const uint8_t *packed, uint8_t *out,
                                  struct err *e);

#endif
