/* many.cu - the operations of a layer for many tokens, each a kernel of its own.
 *
 * A product multiplies tiles of 16 rows, 8 tokens and one block of 32 columns with one instruction
 * of the tensor cores, which is exact in integers, and then adds the tile to its float sums: so the
 * sums have the order of kern.h.  Included by kernels.cu after one.cu. */
#include "many.h"

#ifndef MANY_THREADS
#define MANY_THREADS 256 /* of most kernels */
#define MANY_WIDE_WARPS 4
#define MANY_THIN_WARPS 4
#endif
#define MANY_WARPS (MANY_THREADS / 32)
#define MANY_STAGES 3 /* of a product: parts of some blocks of columns on their way */
#define MANY_WIDE_PART 4
#define MANY_THIN_PART 8
#define MANY_THIN_SUMS 1152 /* bytes: 128 sums, and a tile of them */
#define MANY_SHIFT 12582912 /* 1.5 * 2^23: sums of integers are added to the bits of this float */

#ifdef __CUDACC__
#define MANY_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#endif

#if defined(STEP_EMULATED) || __CUDA_ARCH__ >= 800

STEP_FN unsigned char *many_memory(void)
{
#ifdef STEP_EMULATED
    return step_emulated_shared();
#else
    return step_shared_memory;
#endif
}

/* Lets the next kernel come early, and waits for the one before. */
STEP_FN void many_begin(void)
{
#if !defined(STEP_EMULATED) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- inputs --------------------------------------------------------------------------------- */

/* A block has some columns of one token; the factor of the norm is computed by each. */
MANY_KERNEL(MANY_THREADS) shoal_many_input(STEP_PARAM struct many_input in)
{
    float *x = (float *)(void *)many_memory();
    const uint32_t t = blockIdx.x / in.parts, lane = threadIdx.x & 31, n = in.n_cols;
    many_begin();
    const float *from = in.from + (uint64_t)(in.which ? in.which[t] : t) * in.ld;
    float f = 1.0f;
    if (in.norm) {
        STEP_ROLLED
        for (uint32_t c = threadIdx.x; c < n; c += MANY_THREADS)
            x[c] = from[c];
        __syncthreads();
        f = step_norm_factor(x, n, in.eps, 0).y; /* every warp for itself */
    }
    STEP_ROLLED
    for (uint32_t c = blockIdx.x % in.parts * MANY_THREADS + threadIdx.x; c < n;
         c += in.parts * MANY_THREADS) {
        const float v = in.norm ? __fmul_rn(__fmul_rn(x[c], f), in.norm[c]) : from[c];
        const float amax = step_absmax(v);
        float inv = amax > 0.0f ? __fdiv_rn(127.0f, amax) : 0.0f;
        if (!(inv <= 3.0e38f)) /* amax is so small that 127/amax overflows, or it is NaN */
            inv = 0.0f;
        in.xq[(uint64_t)t * in.ldq + c] =
            (int8_t)__float2int_rn(step_min(step_max(__fmul_rn(v, inv), -127.0f), 127.0f));
        if (lane == 0)
            in.scale[(uint64_t)t * in.lds + c / 32] = inv > 0.0f ? __fdiv_rn(amax, 127.0f) : 0.0f;
    }
}

/* ---- products ------------------------------------------------------------------------------- */

/* d = a x b + MANY_SHIFT's bits: 16 rows, 8 tokens, 32 columns.  Lane (g, c) = (lane / 4, lane % 4)
 * has columns 4 c .. and 16 + 4 c .. of rows g and g + 8 in a, of token g in b, and in d tokens 2 c
 * and 2 c + 1 of rows g and g + 8. */
STEP_FN void many_mma(int32_t *d, const uint32_t *a, const uint32_t *b)
{
    const int32_t c = 0x4b400000;
#ifdef STEP_EMULATED
    step_emulated_mma(d, a, b, c);
#else
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c));
#endif
}

/* The float of an integer sum, from many_mma's bits; exact. */
STEP_FN float many_float(int32_t d)
{
    return __fsub_rn(__uint_as_float((uint32_t)d), (float)MANY_SHIFT);
}

/* Nibbles as bytes from -8 to 7. */
STEP_FN uint32_t many_signed(uint32_t nibbles)
{
    return ((nibbles & 0x0f0f0f0fu) + 0x78787878u) ^ 0x80808080u;
}

/* 8 bytes, as step_copy16. */
STEP_FN void many_copy8(void *to, const void *from)
{
#if STEP_ASYNC
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
#else
    *(uint2 *)to = *(const uint2 *)from;
#endif
}

STEP_FN void many_copies_end(void)
{
#if STEP_ASYNC
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for all but the last MANY_STAGES - 2 groups of copies. */
STEP_FN void many_copies_wait(void)
{
#if STEP_ASYNC
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

/* What is known of a product when it is compiled. */
struct many_shape {
    uint32_t fmt, warps, mi, ni; /* each of the warps that share a tile: mi x 16 rows, ni x 8 tokens */
    uint32_t part;               /* blocks of columns: 4 or 8 */
};

/* A part in shared memory: weights, inputs, scales of both.  Rows have 16 bytes more than they
 * need, against bank conflicts. */
struct many_stage {
    unsigned char *w, *x;
    unsigned short *sw; /* [row][part] */
    float *sa;          /* [token][part] */
    uint32_t w_ld, x_ld;
};

STEP_FN struct many_stage many_stage_at(unsigned char *base, const struct many_shape k, uint32_t i)
{
    const uint32_t rows = k.warps * 16 * k.mi, tokens = 8 * k.ni;
    struct many_stage s;
    s.w_ld = k.part * (k.fmt == STEP_Q8 ? 32 : 16) + 16;
    s.x_ld = k.part * 32 + 16;
    base += i * (rows * (s.w_ld + 2 * k.part) + tokens * (s.x_ld + 4 * k.part));
    s.w = base;
    s.x = s.w + rows * s.w_ld;
    s.sa = (float *)(void *)(s.x + tokens * s.x_ld);
    s.sw = (unsigned short *)(void *)(s.sa + k.part * tokens);
    return s;
}

/* Starts copying part n; rows and tokens past the end repeat the last one. */
STEP_FN void many_stage_copy(const struct many_product *p, const struct many_shape k,
                             const struct many_stage *s, uint32_t n, uint32_t row0, uint32_t token0)
{
    const uint32_t rows = k.warps * 16 * k.mi, tokens = 8 * k.ni, threads = k.warps * 32;
    const uint32_t me = threadIdx.x % threads;
    const uint32_t each = k.part * (k.fmt == STEP_Q8 ? 2 : 1); /* pieces of 16 bytes of a row */
    const uint32_t row_pieces = p->w.n_blocks * (k.fmt == STEP_Q8 ? 2 : 1);
    STEP_UNROLL(4)
    for (uint32_t i = me; i < rows * each; i += threads) {
        const uint32_t r = i / each, c = i % each;
        const uint32_t row = row0 + r < p->n_rows ? row0 + r : p->n_rows - 1;
        if (n * each + c < row_pieces)
            step_copy16(s->w + r * s->w_ld + c * 16, p->w.data + (uint64_t)row * p->w.row_bytes +
                                                         p->w.quants + (n * each + c) * 16);
    }
    STEP_UNROLL(4)
    for (uint32_t i = me; i < tokens * k.part * 2; i += threads) {
        const uint32_t t = i / (k.part * 2), c = i % (k.part * 2);
        const uint32_t token = token0 + t < p->n_tokens ? token0 + t : p->n_tokens - 1;
        if (n * k.part * 2 + c < p->n_cols / 16)
            step_copy16(s->x + t * s->x_ld + c * 16,
                        p->xq + (uint64_t)token * p->ldq + (n * k.part * 2 + c) * 16);
    }
    STEP_UNROLL(4)
    for (uint32_t r = me; r < rows; r += threads) {
        const uint32_t row = row0 + r < p->n_rows ? row0 + r : p->n_rows - 1;
        const uint8_t *from = p->w.data + (uint64_t)row * p->w.row_bytes + n * k.part * 2;
        if (k.part == 8)
            step_copy16(s->sw + r * k.part, from);
        else
            many_copy8(s->sw + r * k.part, from);
    }
    STEP_UNROLL(4)
    for (uint32_t i = me; i < tokens * k.part / 4; i += threads) {
        const uint32_t t = i / (k.part / 4), c = i % (k.part / 4);
        const uint32_t token = token0 + t < p->n_tokens ? token0 + t : p->n_tokens - 1;
        step_copy16(s->sa + t * k.part + c * 4,
                    p->scale + (uint64_t)token * p->lds + n * k.part + c * 4);
    }
}

STEP_FN uint32_t many_word(const unsigned char *at)
{
    return *(const uint32_t *)(const void *)at;
}

/* Rows g and g + 8 from `at`, columns of block kb of the part. */
STEP_FN void many_weights(uint32_t *a, const unsigned char *at, uint32_t ld, uint32_t fmt,
                          uint32_t kb)
{
    const uint32_t lane = threadIdx.x & 31;
    const unsigned char *w = at + lane / 4 * ld + lane % 4 * 4;
    if (fmt == STEP_Q8) {
        a[0] = many_word(w + kb * 32);
        a[1] = many_word(w + 8 * ld + kb * 32);
        a[2] = many_word(w + kb * 32 + 16);
        a[3] = many_word(w + 8 * ld + kb * 32 + 16);
    } else {
        const uint32_t low = many_word(w + kb * 16), high = many_word(w + 8 * ld + kb * 16);
        a[0] = many_signed(low);
        a[1] = many_signed(high);
        a[2] = many_signed(low >> 4);
        a[3] = many_signed(high >> 4);
    }
}

#define MANY_MOST_MI 2
#define MANY_MOST_NI 4

/* Results from a tile of sums in shared memory, [token][row]. */
STEP_FN void many_emit(const struct many_product *p, const float *sums, uint32_t rows,
                       uint32_t tokens, uint32_t row0, uint32_t token0, uint32_t threads)
{
    const uint32_t unit = p->end == MANY_GATED ? 2 : 1, n = rows / unit;
    STEP_ROLLED
    for (uint32_t i = threadIdx.x; i < tokens * n; i += threads) {
        const uint32_t t = i / n, k = i - t * n, row = row0 + k * unit;
        if (row >= p->n_rows || token0 + t >= p->n_tokens)
            continue;
        const float *from = sums + t * (rows + 4) + k * unit;
        float *to = p->out + (uint64_t)(token0 + t) * p->ld + row / unit;
        float v = one_finish(&p->w, row, from[0]);
        if (p->end == MANY_GATED)
            v = __fmul_rn(p->gelu ? step_gelu(v) : step_gate(v, v),
                          one_finish(&p->w, row + 1, from[1]));
        *to = p->end == MANY_ADD ? __fadd_rn(*to, v) : v;
    }
}

STEP_FN void many_tile(const struct many_product *p, const struct many_shape k)
{
    const uint32_t rows = k.warps * 16 * k.mi, tokens = 8 * k.ni, n_blocks = p->w.n_blocks;
    const uint32_t row0 = blockIdx.x % p->row_tiles * rows;
    const uint32_t token0 = blockIdx.x / p->row_tiles * tokens;
    const uint32_t lane = threadIdx.x & 31, mine = threadIdx.x / 32 * 16 * k.mi;
    const uint32_t parts = (n_blocks + k.part - 1) / k.part;
    unsigned char *memory = many_memory();
    float acc[MANY_MOST_MI][MANY_MOST_NI][4];
    STEP_UNROLL(2)
    for (uint32_t i = 0; i < k.mi; i++)
        STEP_UNROLL(4)
    for (uint32_t j = 0; j < k.ni; j++)
        acc[i][j][0] = acc[i][j][1] = acc[i][j][2] = acc[i][j][3] = 0.0f;
    STEP_ROLLED
    for (uint32_t n = 0; n < MANY_STAGES - 1; n++) {
        const struct many_stage s = many_stage_at(memory, k, n);
        if (n < parts)
            many_stage_copy(p, k, &s, n, row0, token0);
        many_copies_end();
    }
    STEP_ROLLED
    for (uint32_t n = 0; n < parts; n++) {
        many_copies_wait();
        __syncthreads();
        const uint32_t next = n + MANY_STAGES - 1;
        const struct many_stage to = many_stage_at(memory, k, next % MANY_STAGES);
        if (next < parts)
            many_stage_copy(p, k, &to, next, row0, token0);
        many_copies_end();
        const struct many_stage s = many_stage_at(memory, k, n % MANY_STAGES);
        const uint32_t left = n_blocks - n * k.part, here = left < k.part ? left : k.part;
        STEP_UNROLL_TWO
        for (uint32_t kb = 0; kb < here; kb++) {
            uint32_t a[MANY_MOST_MI][4], b[MANY_MOST_NI][2];
            float sw[MANY_MOST_MI][2], sa[MANY_MOST_NI][2];
            STEP_UNROLL(2)
            for (uint32_t i = 0; i < k.mi; i++) {
                const uint32_t r = mine + 16 * i;
                many_weights(a[i], s.w + r * s.w_ld, s.w_ld, k.fmt, kb);
                sw[i][0] = step_half(s.sw[(r + lane / 4) * k.part + kb]);
                sw[i][1] = step_half(s.sw[(r + 8 + lane / 4) * k.part + kb]);
            }
            STEP_UNROLL(4)
            for (uint32_t j = 0; j < k.ni; j++) {
                const unsigned char *x = s.x + (8 * j + lane / 4) * s.x_ld + lane % 4 * 4;
                const float *scale = s.sa + (8 * j + lane % 4 * 2) * k.part + kb;
                b[j][0] = many_word(x + kb * 32);
                b[j][1] = many_word(x + kb * 32 + 16);
                sa[j][0] = scale[0];
                sa[j][1] = scale[k.part];
            }
            STEP_UNROLL(2)
            for (uint32_t i = 0; i < k.mi; i++)
                STEP_UNROLL(4)
            for (uint32_t j = 0; j < k.ni; j++) {
                int32_t d[4];
                many_mma(d, a[i], b[j]);
                STEP_UNROLL(4)
                for (uint32_t u = 0; u < 4; u++)
                    acc[i][j][u] = __fmaf_rn(many_float(d[u]),
                                             __fmul_rn(sw[i][u / 2], sa[j][u % 2]), acc[i][j][u]);
            }
        }
    }
    float *sums = (float *)(void *)memory;
    step_copied();
    __syncthreads(); /* the stages are free */
    STEP_UNROLL(2)
    for (uint32_t i = 0; i < k.mi; i++)
        STEP_UNROLL(4)
    for (uint32_t j = 0; j < k.ni; j++)
        STEP_UNROLL(4)
    for (uint32_t u = 0; u < 4; u++)
        sums[(8 * j + lane % 4 * 2 + u % 2) * (rows + 4) + mine + 16 * i + lane / 4 + u / 2 * 8] =
            acc[i][j][u];
    __syncthreads();
    many_emit(p, sums, rows, tokens, row0, token0, k.warps * 32);
}

MANY_KERNEL(32 * MANY_WIDE_WARPS) shoal_many_product(STEP_PARAM struct many_product p)
{
    const struct many_shape q8 = {STEP_Q8, MANY_WIDE_WARPS, 2, 4, MANY_WIDE_PART};
    const struct many_shape q4 = {STEP_Q4, MANY_WIDE_WARPS, 2, 4, MANY_WIDE_PART};
    many_begin();
    if (p.w.fmt == STEP_Q8)
        many_tile(&p, q8);
    else
        many_tile(&p, q4);
}

/* The terms of a part's blocks, d x s: exact sums and the products of their scales. */
struct many_terms {
    float d[MANY_THIN_PART][4], s[MANY_THIN_PART][4];
};

STEP_FN void many_thin_terms(struct many_terms *out, const struct many_stage *s, uint32_t fmt)
{
    const uint32_t lane = threadIdx.x & 31;
    STEP_UNROLL(8)
    for (uint32_t kb = 0; kb < MANY_THIN_PART; kb++) {
        const unsigned char *x = s->x + lane / 4 * s->x_ld + lane % 4 * 4 + kb * 32;
        const float *scale = s->sa + lane % 4 * 2 * MANY_THIN_PART + kb;
        const uint32_t b[2] = {many_word(x), many_word(x + 16)};
        const float sw[2] = {step_half(s->sw[lane / 4 * MANY_THIN_PART + kb]),
                             step_half(s->sw[(8 + lane / 4) * MANY_THIN_PART + kb])};
        uint32_t a[4];
        int32_t d[4];
        many_weights(a, s->w, s->w_ld, fmt, kb);
        many_mma(d, a, b);
        STEP_UNROLL(4)
        for (uint32_t u = 0; u < 4; u++) {
            out->d[kb][u] = many_float(d[u]);
            out->s[kb][u] = __fmul_rn(sw[u / 2], scale[u % 2 * MANY_THIN_PART]);
        }
    }
}

/* A tile of 16 rows and 8 tokens: the warps take turns with the parts of its columns.  They load
 * and multiply at the same time, and add one after the other, since the order of the sums is that
 * of the columns. */
STEP_FN void many_thin_tile(const struct many_product *p, uint32_t fmt)
{
    const struct many_shape k = {fmt, 1, 1, 1, MANY_THIN_PART};
    const uint32_t row0 = blockIdx.x % p->row_tiles * 16, token0 = blockIdx.x / p->row_tiles * 8;
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const uint32_t parts = (p->w.n_blocks + MANY_THIN_PART - 1) / MANY_THIN_PART;
    float *mine = (float *)(void *)many_memory() + lane * 4; /* this lane's sums, of all warps */
    float *tile = (float *)(void *)many_memory() + 128;
    unsigned char *memory = many_memory() + MANY_THIN_SUMS;
    STEP_ROLLED
    for (uint32_t n = 0; n < MANY_STAGES - 1; n++) {
        const struct many_stage s = many_stage_at(memory, k, n * MANY_THIN_WARPS + warp);
        if (n * MANY_THIN_WARPS + warp < parts)
            many_stage_copy(p, k, &s, n * MANY_THIN_WARPS + warp, row0, token0);
        many_copies_end();
    }
    if (warp == 0)
        mine[0] = mine[1] = mine[2] = mine[3] = 0.0f;
    STEP_ROLLED
    for (uint32_t first = 0, turn = 0; first < parts; first += MANY_THIN_WARPS, turn++) {
        const uint32_t n = first + warp, next = n + (MANY_STAGES - 1) * MANY_THIN_WARPS;
        many_copies_wait();
        __syncthreads();
        const struct many_stage to = many_stage_at(
            memory, k, (turn + MANY_STAGES - 1) % MANY_STAGES * MANY_THIN_WARPS + warp);
        if (next < parts)
            many_stage_copy(p, k, &to, next, row0, token0);
        many_copies_end();
        const struct many_stage s =
            many_stage_at(memory, k, turn % MANY_STAGES * MANY_THIN_WARPS + warp);
        const uint32_t left = n < parts ? p->w.n_blocks - n * MANY_THIN_PART : 0;
        struct many_terms x;
        many_thin_terms(&x, &s, fmt);
        STEP_ROLLED
        for (uint32_t w = 0; w < MANY_THIN_WARPS && first + w < parts; w++) {
            if (w == warp) {
                STEP_UNROLL(4)
                for (uint32_t u = 0; u < 4; u++) {
                    float sum = mine[u];
                    STEP_UNROLL(8)
                    for (uint32_t kb = 0; kb < MANY_THIN_PART; kb++)
                        if (kb < left)
                            sum = __fmaf_rn(x.d[kb][u], x.s[kb][u], sum);
                    mine[u] = sum;
                }
            }
            __syncthreads();
        }
    }
    step_copied();
    if (warp == 0) {
        STEP_UNROLL(4)
        for (uint32_t u = 0; u < 4; u++)
            tile[(lane % 4 * 2 + u % 2) * (16 + 4) + lane / 4 + u / 2 * 8] = mine[u];
    }
    __syncthreads();
    many_emit(p, tile, 16, 8, row0, token0, MANY_THIN_WARPS * 32);
}

MANY_KERNEL(32 * MANY_THIN_WARPS) shoal_many_product_thin(STEP_PARAM struct many_product p)
{
    many_begin();
    if (p.w.fmt == STEP_Q8)
        many_thin_tile(&p, STEP_Q8);
    else
        many_thin_tile(&p, STEP_Q4);
}

/* ---- attention ------------------------------------------------------------------------------ */

/* A warp has one head of one token. */
MANY_KERNEL(MANY_THREADS) shoal_many_turn(STEP_PARAM struct many_heads h)
{
    const struct step_model *m = &h.m;
    const uint32_t hd = m->head_dim, all = m->n_heads + 2 * m->n_kv_heads;
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const uint32_t i = blockIdx.x * MANY_WARPS + warp, t = i / all, k = i - t * all;
    many_begin();
    if (t >= h.p.n_tokens)
        return;
    const struct step_token *token = h.p.tokens + t;
    float *x = (float *)(void *)many_memory() + warp * hd;
    float *from = h.qkv + ((uint64_t)t * all + k) * hd;
    STEP_ROLLED
    for (uint32_t d = lane; d < hd; d += 32)
        x[d] = from[d];
    __syncwarp();
    if (k < m->n_heads + m->n_kv_heads)
        step_prepare_head(m, h.rope + (uint64_t)token->pos * 2 * m->rope_dim, x,
                          k < m->n_heads ? h.q_norm : h.k_norm);
    if (k < m->n_heads) {
        STEP_ROLLED
        for (uint32_t d = lane; d < hd; d += 32)
            from[d] = x[d];
        return;
    }
    const uint32_t values = k >= m->n_heads + m->n_kv_heads;
    const uint32_t head = k - m->n_heads - values * m->n_kv_heads;
    uint8_t *kv = m->kv + ((uint64_t)h.layer * m->n_kv_heads + head) * m->kv_head_bytes +
                  (uint64_t)h.p.pages[token->pages_at + token->pos / 16] * m->kv_page_bytes;
    step_store_head(m, kv, (uint8_t *)0, token->pos % 16, x, values);
}

/* Some tokens of a run and one KV head. */
struct many_unit {
    uint32_t t0, n, pos0, group, kv_head, rows, end, window;
    const uint32_t *pages;
    const uint8_t *kv;
};

STEP_FN uint32_t many_hi(const struct many_unit *u, uint32_t row)
{
    return u->pos0 + row / u->group + 1;
}

STEP_FN uint32_t many_lo(const struct many_unit *u, uint32_t row)
{
    const uint32_t hi = many_hi(u, row);
    return u->window && hi > u->window ? hi - u->window : 0;
}

/* Scores of one key for nr rows from the first; dims in ascending order. */
STEP_FN void many_scores(const struct step_model *m, const struct many_unit *u, const float *q,
                         uint32_t key, float *score, uint32_t ld, const uint32_t nr)
{
    const uint32_t hd = m->head_dim, at = key % 16;
    const uint8_t *page = u->kv + (uint64_t)u->pages[key / 16] * m->kv_page_bytes;
    float s[MANY_ROWS], k[8], next[8];
    STEP_UNROLL(16)
    for (uint32_t r = 0; r < nr; r++)
        s[r] = 0.0f;
    STEP_UNROLL(8)
    for (uint32_t j = 0; j < 8; j++)
        next[j] = step_key(m, page, j * 16 + at);
    STEP_ROLLED
    for (uint32_t d = 0; d < hd; d += 8) {
        STEP_UNROLL(8)
        for (uint32_t j = 0; j < 8; j++)
            k[j] = next[j];
        STEP_UNROLL(8)
        for (uint32_t j = 0; j < 8; j++) /* the next ones while these are multiplied */
            if (d + 8 < hd)
                next[j] = step_key(m, page, (d + 8 + j) * 16 + at);
        STEP_UNROLL(16)
        for (uint32_t r = 0; r < nr; r++) {
            const float *row = q + r * hd + d;
            STEP_UNROLL(8)
            for (uint32_t j = 0; j < 8; j++)
                s[r] = __fmaf_rn(row[j], k[j], s[r]);
        }
    }
    STEP_UNROLL(16)
    for (uint32_t r = 0; r < nr; r++) {
        float v = __fmul_rn(s[r], m->attn_scale);
        if (m->kv_q8)
            v = __fmul_rn(v, ((const float *)(const void *)(page + 32 * hd))[at]);
        score[r * ld + key] = v;
    }
}

/* Column d of the values of a page. */
STEP_FN void many_column(float *v, const struct step_model *m, const struct many_unit *u,
                         uint32_t page_at, uint32_t d)
{
    const uint8_t *page = u->kv + (uint64_t)u->pages[page_at] * m->kv_page_bytes;
    STEP_UNROLL(16)
    for (uint32_t i = 0; i < 16; i++)
        v[i] = step_key(m, page, (16 + i) * m->head_dim + d);
}

/* Adds column v of a page to four rows from r0.  some: not all keys belong to all rows. */
STEP_FN void many_values(const struct step_model *m, const struct many_unit *u, uint32_t page_at,
                         const float *v, const float *score, uint32_t ld, uint32_t r0,
                         const uint32_t some, float *o)
{
    const uint8_t *page = u->kv + (uint64_t)u->pages[page_at] * m->kv_page_bytes;
    const float *scales = (const float *)(const void *)(page + 32 * m->head_dim) + 16;
    STEP_UNROLL(4)
    for (uint32_t r = 0; r < 4; r++) {
        const float *s = score + (r0 + r) * ld + page_at * 16;
        const uint32_t lo = some ? many_lo(u, r0 + r) : 0;
        const uint32_t hi = some ? many_hi(u, r0 + r) : UINT32_MAX;
        STEP_UNROLL(16)
        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t t = page_at * 16 + i;
            const float w = m->kv_q8 ? __fmul_rn(s[i], scales[i]) : s[i];
            if (t >= lo && t < hi)
                o[r] = __fmaf_rn(w, v[i], o[r]);
        }
    }
}

MANY_KERNEL(MANY_THREADS) shoal_many_attend(STEP_PARAM struct many_heads h)
{
    const struct step_model *m = &h.m;
    const uint32_t hd = m->head_dim, group = m->n_heads / m->n_kv_heads, ld = h.score_ld;
    const uint32_t lane = threadIdx.x & 31, all = m->n_heads + 2 * m->n_kv_heads;
    float *q = (float *)(void *)many_memory(), *inv = q + MANY_ROWS * hd, *score = inv + MANY_ROWS;
    struct many_unit u;
    many_begin();
    /* the last tokens first: they take longest */
    const uint32_t tile = h.p.n_tiles - 1 - blockIdx.x / m->n_kv_heads;
    u.kv_head = blockIdx.x % m->n_kv_heads;
    u.t0 = h.p.tiles[2 * tile];
    u.n = h.p.tiles[2 * tile + 1];
    u.pos0 = h.p.tokens[u.t0].pos;
    u.group = group;
    u.rows = u.n * group;
    u.end = u.pos0 + u.n;
    u.window = h.window;
    u.pages = h.p.pages + h.p.tokens[u.t0].pages_at;
    u.kv = m->kv + ((uint64_t)h.layer * m->n_kv_heads + u.kv_head) * m->kv_head_bytes;
    STEP_ROLLED
    for (uint32_t i = threadIdx.x; i < MANY_ROWS * hd; i += MANY_THREADS) {
        const uint32_t r = i / hd, d = i - r * hd;
        q[i] =
            r < u.rows
                ? h.qkv[((uint64_t)(u.t0 + r / group) * all + u.kv_head * group + r % group) * hd +
                        d]
                : 0.0f;
    }
    __syncthreads();
    const uint32_t low = many_lo(&u, 0) / 16; /* page */
    STEP_ROLLED
    for (uint32_t t = low * 16 + threadIdx.x; t < u.end; t += MANY_THREADS)
        if (u.rows > 8)
            many_scores(m, &u, q, t, score, ld, 16);
        else if (u.rows > 4)
            many_scores(m, &u, q, t, score, ld, 8);
        else
            many_scores(m, &u, q, t, score, ld, 4);
    __syncthreads();
    STEP_ROLLED
    for (uint32_t r = threadIdx.x / 32; r < u.rows; r += MANY_WARPS) {
        const float k = step_weights(score + r * ld, 0, many_lo(&u, r), many_hi(&u, r));
        if (lane == 0)
            inv[r] = k;
    }
    __syncthreads();
    const uint32_t sets = (u.rows + 3) / 4, lo_all = many_lo(&u, u.rows - 1);
    STEP_ROLLED
    for (uint32_t i = threadIdx.x; i < sets * hd; i += MANY_THREADS) {
        const uint32_t r0 = i / hd * 4, d = i % hd;
        float o[4] = {0.0f, 0.0f, 0.0f, 0.0f}, v[16], next[16];
        many_column(next, m, &u, low, d);
        STEP_ROLLED
        for (uint32_t p = low; p * 16 < u.end; p++) {
            STEP_UNROLL(16)
            for (uint32_t j = 0; j < 16; j++)
                v[j] = next[j];
            if ((p + 1) * 16 < u.end) /* the next page while this one is added */
                many_column(next, m, &u, p + 1, d);
            if (p * 16 < lo_all || p * 16 + 16 > u.pos0 + 1)
                many_values(m, &u, p, v, score, ld, r0, 1, o);
            else
                many_values(m, &u, p, v, score, ld, r0, 0, o);
        }
        STEP_UNROLL(4)
        for (uint32_t r = 0; r < 4; r++)
            if (r0 + r < u.rows)
                h.att[((uint64_t)(u.t0 + (r0 + r) / group) * m->n_heads + u.kv_head * group +
                       (r0 + r) % group) *
                          hd +
                      d] = __fmul_rn(o[r], inv[r0 + r]);
    }
}

#endif
