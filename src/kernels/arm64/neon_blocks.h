/* neon_blocks.h - shared by the arm64 products: unpacks bits to bytes, converts sums to floats.
 *
 * Included by exactly one .c file per set, after v16_neon.h, ops_body.h and tiles.h; all static.
 *
 * Every weight is unpacked to a signed byte.  Bytes of some formats are off by a constant
 * (neon_shift); the correction goes into the initial value of the integer sum, together with the
 * bits of 1.5 * 2^23.  A sum below 2^22 in size then reads as the float 1.5 * 2^23 + sum, and one
 * subtraction, which runs on every vector pipe, replaces a conversion, which runs only on some. */
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

#define NEON_MAGIC 0x4b400000 /* as a float: 12582912 */

/* The correction for unpacked bytes: bytes + shift = q - offset. */
static ALWAYS_INLINE int neon_shift(enum kern_fmt fmt)
{
    return fmt == KERN_Q4    ? -8
           : fmt == KERN_Q5M ? 16 /* 5 bits are unpacked as q - 16 */
           : fmt == KERN_Q6  ? -32
                             : 0;
}

static ALWAYS_INLINE bool is_5bit(enum kern_fmt fmt)
{
    return fmt == KERN_Q5 || fmt == KERN_Q5M;
}

static ALWAYS_INLINE int32x4_t start_of(enum kern_fmt fmt, int32_t sum)
{
    return vdupq_n_s32(NEON_MAGIC + neon_shift(fmt) * sum);
}

static ALWAYS_INLINE float32x4_t to_float(int32x4_t sum)
{
    return vsubq_f32(vreinterpretq_f32_s32(sum), vdupq_n_f32(12582912.0f));
}

/* Nibbles: the low ones are the first half of a block (pass 0), the high ones the second half. */
static ALWAYS_INLINE int8x16_t nibbles(uint8x16_t raw, int pass)
{
    return vreinterpretq_s8_u8(pass ? vshrq_n_u8(raw, 4) : vandq_u8(raw, vdupq_n_u8(15)));
}

/* Nibbles with a fifth bit, as q - 16.  clear: bytes with the complement of the bits; a lane uses
 * bit lane % 8 of byte from[lane].  A clear bit gives 0xf.: the nibble minus 16. */
static ALWAYS_INLINE int8x16_t with_fifth_bit(uint8x16_t raw, int pass, uint8x16_t clear,
                                              uint8x16_t from)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    uint8x16_t m = vtstq_u8(vqtbl1q_u8(clear, from), bit);
    return vreinterpretq_s8_u8(pass ? vsriq_n_u8(m, raw, 4) : vbslq_u8(vdupq_n_u8(0xf0), m, raw));
}

/* Nibbles with the 2-bit field k of high above them. */
static ALWAYS_INLINE int8x16_t with_two_bits(uint8x16_t raw, int pass, uint8x16_t high, int k)
{
    uint8x16_t t = k == 0   ? vshlq_n_u8(high, 4)
                   : k == 1 ? vshlq_n_u8(high, 2)
                   : k == 3 ? vshrq_n_u8(high, 2)
                            : high;
    t = vandq_u8(t, vdupq_n_u8(0x30));
    return vreinterpretq_s8_u8(pass ? vsriq_n_u8(t, raw, 4) : vbslq_u8(vdupq_n_u8(15), raw, t));
}

/* lanes 0..7: byte n, lanes 8..15: byte n + 1 of a table */
static ALWAYS_INLINE uint8x16_t two_bytes(int n)
{
    return vcombine_u8(vdup_n_u8((uint8_t)n), vdup_n_u8((uint8_t)(n + 1)));
}

static ALWAYS_INLINE float32x4_t half4(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

/* Stores n <= 4 floats at the end of a matrix's rows. */
static ALWAYS_INLINE float32x4_t load_rows(const float *p, uint32_t n)
{
    float t[4] = {0};
    if (n >= 4)
        return vld1q_f32(p);
    memcpy(t, p, n * sizeof(float));
    return vld1q_f32(t);
}

static ALWAYS_INLINE void store_rows(float *p, float32x4_t v, uint32_t n)
{
    float t[4];
    if (n >= 4) {
        vst1q_f32(p, v);
        return;
    }
    vst1q_f32(t, v);
    memcpy(p, t, n * sizeof(float));
}

static ALWAYS_INLINE uint32_t rows_left(const struct kern_mat *w, uint32_t row)
{
    return row < w->n_rows ? w->n_rows - row : 0;
}

/* KERN_Q8W: initial value of the sums of four rows. */
static ALWAYS_INLINE float32x4_t wide_start(const struct kern_mat *w, uint32_t row)
{
    return w->bias ? vld1q_f32(w->bias + row) : vdupq_n_f32(0.0f);
}

/* Pointers to the current block of a tile. */
struct neon_block {
    const uint8_t *q;
    const uint16_t *scales, *mins;
};

static ALWAYS_INLINE struct neon_block block_at(enum kern_fmt fmt, const struct kern_mat *w,
                                                const struct tiles_map *map, uint32_t tile,
                                                uint32_t b)
{
    const uint8_t *base = w->data + tile * w->tile_bytes;
    const size_t quant_bytes = 16 * (fmt == KERN_Q8   ? 32
                                     : is_5bit(fmt)   ? 20
                                     : fmt == KERN_Q6 ? 24
                                                      : 16);
    return (struct neon_block){
        base + map->quants + b * quant_bytes,
        (const uint16_t *)(const void *)(base + (size_t)b * (fmt == KERN_Q6 ? 64 : 32)),
        (const uint16_t *)(const void *)(base + map->mins + (size_t)b * 32)};
}

/* A single token reads the weights once, in order: prefetch 8 blocks ahead. */
static ALWAYS_INLINE void prefetch_block(enum kern_fmt fmt, const uint8_t *q)
{
    const uint32_t bytes = 16 * (fmt == KERN_Q8   ? 32
                                 : is_5bit(fmt)   ? 20
                                 : fmt == KERN_Q6 ? 24
                                                  : 16);
    UNROLL for (uint32_t line = 0; line < bytes; line += 64)
        __builtin_prefetch(q + 8 * bytes + line);
}

/* Activations of several tokens are copied into a panel: PANEL_BLOCKS blocks of up to PANEL_TOKENS
 * tokens, in the order the products read them.  A panel is multiplied with PANEL_TILES tiles, whose
 * weights stay in L2 for the next tokens.  Sums that continue in the next panel are kept, exactly,
 * in out. */
#define PANEL_BLOCKS 32
#define PANEL_TILES 16
