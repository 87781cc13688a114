/* step.cu - the whole step of a decoder as one kernel: no launch between two products.
 *
 * The blocks share the rows of every product.  Between two products they meet at a barrier, and
 * each block reads the whole result and computes residual, norm and rounding for itself.  The
 * weights of the next product do not depend on that, so their first pieces are on their way into
 * registers before the barrier.
 *
 * Every sum has the order of kern.h, so the bits are those of the CPU: integer products are exact;
 * their threads write (sum, scale) pairs to shared memory, and one thread a row adds them up in
 * ascending order of columns.  Compiled with -fmad=false: only what is written as fma is fused.
 *
 * The language is the part of C that nvcc also accepts: tests compile this file with the C compiler
 * and run it on an emulator of blocks and threads. */
#include "step.h"

/* 8 pieces a thread.  With 512 threads the compiler has too few registers and puts the scales of
 * held pieces into local memory, for which each of them waits: a quarter slower. */
#ifndef STEP_THREADS
#define STEP_THREADS 384
#endif
#define STEP_HELD (STEP_PIECES / STEP_THREADS) /* by each thread */
#ifdef __CUDACC__
#include <cuda_fp16.h>
#define STEP_FN static __device__ __forceinline__
#define STEP_KERNEL extern "C" __global__ void __launch_bounds__(STEP_THREADS, 1)
#define STEP_PARAM const __grid_constant__
extern __shared__ __align__(128) unsigned char step_shared_memory[];
#define STEP_UNROLL(n) _Pragma("unroll")
#define STEP_ROLLED _Pragma("unroll 1")
#define STEP_UNROLL_TWO _Pragma("unroll 2")

/* Weights are read once a step: they pass the first cache by, but may stay in the second. */
static __device__ __forceinline__ uint4 step_stream16(const void *p)
{
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
#endif

/* For finding out where time goes: cycles of the first block by kind of work, in `scores`. */
#ifdef STEP_PROFILE
#define STEP_CLOCK long long step_from = clock64();
#define STEP_LAP(i)                                                                                \
    do {                                                                                           \
        const long long step_now = clock64();                                                      \
        if (threadIdx.x == 0 && blockIdx.x == 0)                                                   \
            ((long long *)m->scores)[i] += step_now - step_from;                                   \
        step_from = step_now;                                                                      \
    } while (0)
#else
#define STEP_CLOCK
#define STEP_LAP(i) ((void)0)
#endif
#define STEP_WARPS (STEP_THREADS / 32)
#define STEP_ALL 0xffffffffu

/* ---- arithmetic of kern.h ------------------------------------------------------------------ */

STEP_FN float step_max(float a, float b)
{
    return a > b ? a : b;
}

STEP_FN float step_min(float a, float b)
{
    return a < b ? a : b;
}

STEP_FN float2 step_pair(float a, float b)
{
    float2 r;
    r.x = a;
    r.y = b;
    return r;
}

/* ops_exp of ops_body.h */
STEP_FN float step_exp(float x)
{
    x = step_min(step_max(x, -87.0f), 88.0f);
    float n = rintf(__fmul_rn(x, 1.44269504088896341f));
    float r = __fmaf_rn(n, -0.693359375f, x);
    r = __fmaf_rn(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = __fmaf_rn(p, r, 1.3981999507e-3f);
    p = __fmaf_rn(p, r, 8.3334519073e-3f);
    p = __fmaf_rn(p, r, 4.1665795894e-2f);
    p = __fmaf_rn(p, r, 1.6666665459e-1f);
    p = __fmaf_rn(p, r, 5.0000001201e-1f);
    p = __fadd_rn(__fmaf_rn(p, __fmul_rn(r, r), r), 1.0f);
    return __fmul_rn(p, __uint_as_float((uint32_t)((int32_t)n + 127) << 23));
}

STEP_FN float step_gate(float x, float k)
{
    return __fdiv_rn(x, __fadd_rn(1.0f, step_exp(__fsub_rn(0.0f, k))));
}

STEP_FN float step_gelu(float x)
{
    float cube = __fmul_rn(__fmul_rn(x, x), x);
    float u = __fmul_rn(__fmaf_rn(cube, 0.044715f, x), 1.5957691216057308f);
    return step_gate(x, u);
}

STEP_FN float step_half(uint32_t h)
{
    return __half2float(__ushort_as_half((unsigned short)h));
}

/* The 16 partial sums of a vector, one a lane, added in the order of kern.h; all 16 lanes get it.
 * Addition commutes, so both lanes of a pair compute the same bits. */
STEP_FN float step_sum16(float part)
{
    for (int half = 8; half >= 1; half /= 2)
        part = __fadd_rn(part, __shfl_xor_sync(STEP_ALL, part, half));
    return part;
}

STEP_FN float step_warp_max(float v)
{
    for (int half = 16; half >= 1; half /= 2)
        v = step_max(v, __shfl_xor_sync(STEP_ALL, v, half));
    return v;
}

/* Between two looks at what another block writes. */
STEP_FN void step_pause(void)
{
#ifdef STEP_EMULATED
    step_emulated_pause();
#endif
}

/* ---- barrier over all blocks ---------------------------------------------------------------- */

STEP_FN void step_barrier(const struct step_model *m)
{
#ifdef STEP_EMULATED
    (void)m;
    step_emulated_barrier();
#else
#if __CUDA_ARCH__ >= 900
    if (m->cluster) {
        asm volatile(
            "barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::
                : "memory");
        return;
    }
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        /* The top bit flips when all have come, whatever the counter was before. */
        const uint32_t mine = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        __threadfence();
        const uint32_t old = atomicAdd(m->barrier, mine);
        while (((old ^ *(volatile uint32_t *)m->barrier) & 0x80000000u) == 0)
            ;
        __threadfence();
    }
    __syncthreads();
#endif
}

/* ---- exchange between blocks --------------------------------------------------------------- */

/* A value that some block sent before the last barrier. */
STEP_FN float step_take(const struct step_model *m, const float *from)
{
    return m->cluster ? *from : __ldcg(from);
}

/* Sends a value to where every block takes it from. */
STEP_FN void step_send(const struct step_model *m, float *to, float v)
{
#if defined(STEP_EMULATED)
    for (uint32_t i = 0; m->cluster && i < gridDim.x; i++)
        *step_emulated_remote(to, i) = v;
#elif __CUDA_ARCH__ >= 900
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    for (uint32_t i = 0; m->cluster && i < gridDim.x; i++) {
        uint32_t there;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(i));
        asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(v) : "memory");
    }
#endif
    if (!m->cluster)
        *to = v;
}

/* ---- copies into shared memory that nobody waits for yet ------------------------------------ */

#if !defined(STEP_EMULATED) && __CUDA_ARCH__ >= 800
#define STEP_ASYNC 1
#else
#define STEP_ASYNC 0
#endif

/* Starts copying 16 bytes; what other blocks wrote before a barrier is seen. */
STEP_FN void step_copy16(void *to, const void *from)
{
#if STEP_ASYNC
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
#else
    *(uint4 *)to = __ldcg((const uint4 *)from);
#endif
}

/* Waits for this thread's copies; the others see them after the next __syncthreads. */
STEP_FN void step_copied(void)
{
#if STEP_ASYNC
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* Starts copying a layer's description. */
STEP_FN void step_copy_layer(struct step_layer *to, const struct step_layer *from)
{
    for (uint32_t i = threadIdx.x; i < sizeof(*to) / 16; i += STEP_THREADS)
        step_copy16((uint4 *)to + i, (const uint4 *)from + i);
}

/* ---- a block's memory ---------------------------------------------------------------------- */

struct step_block {
    float *x;  /* [tokens][dim]: the residual stream */
    float *xf; /* [tokens][ld]: input of the next product as floats */
    int8_t *xq;
    float *scale;  /* [tokens][ld / 32] */
    int32_t *sums; /* [tokens][ld / 16] */
    float2 *work;
    uint32_t ld, work_pairs;
};

STEP_FN struct step_block step_block_of(const struct step_model *m, unsigned char *base)
{
    struct step_block b;
    b.x = (float *)(base + m->shared.x);
    b.xf = (float *)(base + m->shared.xf);
    b.xq = (int8_t *)(base + m->shared.xq);
    b.scale = (float *)(base + m->shared.scale);
    b.sums = (int32_t *)(base + m->shared.sums);
    b.work = (float2 *)(base + m->shared.work);
    b.ld = m->shared.ld;
    b.work_pairs = m->shared.work_bytes / 8;
    return b;
}

/* ---- inputs of products -------------------------------------------------------------------- */

#define STEP_INPUTS 4 /* blocks of 32 columns that a warp rounds at once */

/* The largest of the absolute values of a warp. */
STEP_FN float step_absmax(float v)
{
#if !defined(STEP_EMULATED) && __CUDA_ARCH__ >= 800
    /* floats without a sign are ordered as their bits */
    return __uint_as_float(__reduce_max_sync(STEP_ALL, __float_as_uint(v) & 0x7fffffffu));
#else
    return step_warp_max(fabsf(v));
#endif
}

/* Stores values v[k] of columns at[k] + lane of token t; called by whole warps, at is a multiple of
 * 32.  Columns from n on do not exist. */
STEP_FN void step_put_inputs(const struct step_model *m, const struct step_block *b, uint32_t t,
                             const uint32_t *at, uint32_t n, const float *v)
{
    const uint32_t lane = threadIdx.x & 31;
    float amax[STEP_INPUTS];
    if (m->any_float)
        STEP_UNROLL(4)
    for (int k = 0; k < STEP_INPUTS; k++)
        if (at[k] + lane < n)
            b->xf[t * b->ld + at[k] + lane] = v[k];
    if (!m->any_int)
        return;
    STEP_UNROLL(4)
    for (int k = 0; k < STEP_INPUTS; k++)
        amax[k] = step_absmax(v[k]);
    STEP_UNROLL(4)
    for (int k = 0; k < STEP_INPUTS; k++) {
        const uint32_t c = at[k] + lane;
        float inv = amax[k] > 0.0f ? __fdiv_rn(127.0f, amax[k]) : 0.0f;
        if (!(inv <= 3.0e38f)) /* amax is so small that 127/amax overflows, or it is NaN */
            inv = 0.0f;
        const float r = step_min(step_max(__fmul_rn(v[k], inv), -127.0f), 127.0f);
        const int32_t q = __float2int_rn(r);
        int32_t s = q;
        if (m->any_sums) /* by the whole warp */
            for (int half = 8; half >= 1; half /= 2)
                s += __shfl_xor_sync(STEP_ALL, s, half);
        if (at[k] + 32 > n)
            continue;
        b->xq[t * b->ld + c] = (int8_t)q;
        if (lane == 0)
            b->scale[t * (b->ld / 32) + at[k] / 32] =
                inv > 0.0f ? __fdiv_rn(amax[k], 127.0f) : 0.0f;
        if (m->any_sums && (lane & 15) == 0)
            b->sums[t * (b->ld / 16) + c / 16] = s;
    }
}

/* The factor of an RMS norm, or (mean, factor) of a layer norm, of n values; called by 16 lanes
 * (the other half of the warp may do the same for other values). */
STEP_FN float2 step_norm_factor(const float *x, uint32_t n, float eps, uint32_t layer_norm)
{
    const uint32_t lane = threadIdx.x & 15;
    float mean = 0.0f, ss = 0.0f;
    if (layer_norm) {
        float sum = 0.0f;
        STEP_ROLLED
        for (uint32_t i = lane; i < n; i += 16)
            sum = __fadd_rn(sum, x[i]);
        mean = __fdiv_rn(step_sum16(sum), (float)n);
        STEP_ROLLED
        for (uint32_t i = lane; i < n; i += 16) {
            const float d = __fsub_rn(x[i], mean);
            ss = __fmaf_rn(d, d, ss);
        }
    } else {
        uint32_t i = lane;
        STEP_ROLLED
        for (; i + 112 < n; i += 128) { /* loads first: only the sum is a chain */
            float v[8];
            STEP_UNROLL(8)
            for (uint32_t k = 0; k < 8; k++)
                v[k] = x[i + 16 * k];
            STEP_UNROLL(8)
            for (int k = 0; k < 8; k++)
                ss = __fmaf_rn(v[k], v[k], ss);
        }
        STEP_ROLLED
        for (; i < n; i += 16)
            ss = __fmaf_rn(x[i], x[i], ss);
    }
    const float var = __fadd_rn(__fdiv_rn(step_sum16(ss), (float)n), eps);
    float2 r;
    r.x = mean;
    r.y = __fdiv_rn(1.0f, __fsqrt_rn(var));
    return r;
}

/* Norms of decoders always have weights. */
STEP_FN float step_normalized(float x, float2 f, uint32_t layer_norm, float w, float bias)
{
    if (layer_norm)
        return __fmaf_rn(__fmul_rn(__fsub_rn(x, f.x), f.y), w, bias);
    return __fmul_rn(__fmul_rn(x, f.y), w);
}

/* Factors of nt rows of n values into work. */
STEP_FN void step_norm_factors(float2 *to, const float *x, uint32_t nt, uint32_t n, float eps,
                               uint32_t layer_norm)
{
    for (uint32_t i = threadIdx.x / 32; i < (nt + 1) / 2; i += STEP_WARPS) {
        const uint32_t t = 2 * i + ((threadIdx.x & 31) >= 16);
        const float2 f = step_norm_factor(x + (t < nt ? t : 2 * i) * n, n, eps, layer_norm);
        if ((threadIdx.x & 15) == 0 && t < nt)
            to[t] = f;
    }
    __syncthreads();
}

/* Norm weights of the first columns of a warp, which can be read before the barrier. */
struct step_ahead {
    float w[STEP_INPUTS];
};

STEP_FN void step_read_ahead(struct step_ahead *a, const float *w, uint32_t n)
{
    STEP_UNROLL(4)
    for (int k = 0; k < STEP_INPUTS; k++) {
        const uint32_t c = (threadIdx.x / 32 + (uint32_t)k * STEP_WARPS) * 32 + (threadIdx.x & 31);
        a->w[k] = c < n ? __ldg(w + c) : 0.0f;
    }
}

/* The input of the next product, n columns of each token: what other blocks sent, or (from == NULL)
 * the residual stream after a norm. */
STEP_FN void step_input(const struct step_model *m, const struct step_block *b, uint32_t nt,
                        const float *from, uint32_t n, const float *w, const float *bias,
                        const struct step_ahead *ahead)
{
    const uint32_t lane = threadIdx.x & 31;
    float2 f = step_pair(0.0f, 0.0f);
    if (!from && nt == 1) /* every warp for itself: that is faster than to wait for one */
        f = step_norm_factor(b->x, n, m->norm_eps, m->layer_norm);
    else if (!from)
        step_norm_factors(b->work, b->x, nt, n, m->norm_eps, m->layer_norm);
    for (uint32_t c0 = threadIdx.x / 32 * 32; c0 < n; c0 += STEP_INPUTS * STEP_THREADS)
        for (uint32_t t = 0; t < nt; t++) {
            uint32_t at[STEP_INPUTS];
            float v[STEP_INPUTS];
            STEP_UNROLL(4)
            for (uint32_t k = 0; k < STEP_INPUTS; k++) {
                at[k] = c0 + k * STEP_THREADS;
                const uint32_t c = at[k] + lane;
                v[k] = 0.0f;
                if (c >= n)
                    continue;
                if (from) {
                    v[k] = step_take(m, from + t * n + c);
                } else {
                    const float own = c0 < STEP_THREADS ? ahead->w[k] : w[c];
                    v[k] = step_normalized(b->x[t * n + c], nt == 1 ? f : b->work[t], m->layer_norm,
                                           own, bias ? bias[c] : 0.0f);
                }
            }
            step_put_inputs(m, b, t, at, n, v);
        }
    __syncthreads();
}

/* Adds what other blocks sent to the residual stream, after a norm if it has one. */
STEP_FN void step_join(const struct step_model *m, const struct step_block *b, uint32_t nt,
                       const float *from, const float *post_norm)
{
    const uint32_t n = m->dim;
    float *o = (float *)(b->work + STEP_MAX_TOKENS);
    if (post_norm) {
        for (uint32_t i = threadIdx.x; i < nt * n; i += STEP_THREADS)
            o[i] = step_take(m, from + i);
        __syncthreads();
        step_norm_factors(b->work, o, nt, n, m->norm_eps, 0);
    }
    for (uint32_t i = threadIdx.x; i < nt * n; i += STEP_THREADS) {
        const uint32_t t = nt == 1 || !post_norm ? 0 : i / n;
        const float v = post_norm ? __fmul_rn(__fmul_rn(o[i], b->work[t].y), post_norm[i - t * n])
                                  : step_take(m, from + i);
        b->x[i] = __fadd_rn(b->x[i], v);
    }
    __syncthreads();
}

/* ---- products ------------------------------------------------------------------------------ */

STEP_FN void step_rows_shape(struct step_rows *w, const struct step_mat *mat)
{
    w->fmt = mat->fmt;
    w->n_cols = mat->n_cols;
    w->row_bytes = mat->row_bytes;
    w->mins = mat->mins;
    w->quants = mat->quants;
    w->pieces = mat->pieces;
    w->magic = mat->magic;
}

STEP_FN struct step_rows step_rows_of(const struct step_mat *mats, uint32_t n_mats)
{
    struct step_rows w;
    uint32_t all = 0, start = 0, seg = 0;
    for (uint32_t j = 0; j < n_mats; j++)
        all += mats[j].n_rows;
    const uint32_t r0 = (uint32_t)((uint64_t)all * blockIdx.x / gridDim.x);
    const uint32_t r1 = (uint32_t)((uint64_t)all * (blockIdx.x + 1) / gridDim.x);
    step_rows_shape(&w, mats);
    w.base = mats[0].data;
    w.jump[0] = w.jump[1] = 0;
    w.from[0] = w.from[1] = UINT32_MAX;
    w.n = r1 - r0;
    w.first = r0;
    w.pairs = 0;
    w.mats = mats;
    w.n_mats = n_mats;
    for (uint32_t j = 0; j < n_mats; j++) {
        const uint32_t end = start + mats[j].n_rows;
        const uint32_t lo = r0 > start ? r0 : start, hi = r1 < end ? r1 : end;
        if (lo < hi) {
            const uint8_t *at = mats[j].data + (uint64_t)(lo - start) * w.row_bytes;
            const uint8_t *here = at - (uint64_t)(lo - r0) * w.row_bytes; /* as if row 0 */
            if (seg == 0) {
                w.base = here;
            } else if (seg == 1) {
                w.jump[0] = (int64_t)(here - w.base);
                w.from[0] = lo - r0;
            } else {
                w.jump[1] = (int64_t)(here - w.base) - w.jump[0];
                w.from[1] = lo - r0;
            }
            seg++;
        }
        start = end;
    }
    return w;
}

STEP_FN const uint8_t *step_row(const struct step_rows *w, uint32_t k)
{
    if (w->pairs)
        return w->base + (uint64_t)(k >> 1) * w->row_bytes + (k & 1 ? w->jump[0] : 0);
    return w->base + (uint64_t)k * w->row_bytes + (k >= w->from[0] ? w->jump[0] : 0) +
           (k >= w->from[1] ? w->jump[1] : 0);
}

STEP_FN uint32_t step_is_float(uint32_t fmt)
{
    return fmt <= STEP_BF16;
}

STEP_FN uint32_t step_has_min(uint32_t fmt)
{
    return fmt == STEP_Q4M || fmt == STEP_Q5M;
}

/* Terms of a row's sum: one a block, two with a min or with two scales. */
STEP_FN uint32_t step_terms(const struct step_rows *w)
{
    return w->n_cols / 32 * (step_has_min(w->fmt) || w->fmt == STEP_Q6 ? 2 : 1);
}

/* Rows whose pieces the threads hold, and whose terms fit into work. */
STEP_FN uint32_t step_chunk(const struct step_block *b, const struct step_rows *w, uint32_t nt)
{
    if (step_is_float(w->fmt) || nt == 0) /* never held; not wanted */
        return 0;
    uint32_t rows = STEP_PIECES / w->pieces;
    const uint32_t fit = b->work_pairs / (nt * (step_terms(w) | 1));
    rows = rows < fit ? rows : fit;
    rows = w->pairs ? rows & ~1u : rows;
    return rows < w->n ? rows : w->n;
}

struct step_held { /* F16: scale and min */
    uint4 q[STEP_HELD];
    unsigned short scale[STEP_HELD], min[STEP_HELD];
};

STEP_FN uint32_t step_row_of_piece(uint32_t pieces, uint32_t magic, uint32_t i)
{
    return pieces == 1 ? i : __umulhi(i, magic);
}

/* Formats whose pieces are 16 bytes and are held; the others are read when they are needed. */
STEP_FN uint32_t step_is_held(uint32_t fmt)
{
    return fmt == STEP_Q8 || fmt == STEP_Q4 || fmt == STEP_Q4M;
}

/* Starts reading `rows` rows from row k0.  Nothing here may use what is read: even an instruction
 * that is not executed would wait for it. */
STEP_FN void step_fetch(const struct step_rows *rows_of, uint32_t k0, uint32_t rows,
                        struct step_held *h)
{
    const struct step_rows w = *rows_of; /* in registers */
    const uint32_t items = rows * w.pieces;
    if (!step_is_held(w.fmt))
        return;
    STEP_UNROLL(8)
    for (int u = 0; u < STEP_HELD; u++) {
        const uint32_t i = (uint32_t)u * STEP_THREADS + threadIdx.x;
        if (i < items) {
            const uint32_t k = step_row_of_piece(w.pieces, w.magic, i), j = i - k * w.pieces;
            const uint8_t *row = step_row(&w, k0 + k);
            const uint32_t block = w.fmt == STEP_Q8 ? j >> 1 : j;
            h->q[u] = step_stream16((const uint4 *)(row + w.quants) + j);
            h->scale[u] = __ldg((const unsigned short *)row + block);
        }
    }
    if (w.fmt != STEP_Q4M)
        return;
    STEP_UNROLL(8)
    for (int u = 0; u < STEP_HELD; u++) {
        const uint32_t i = (uint32_t)u * STEP_THREADS + threadIdx.x;
        if (i < items) {
            const uint32_t k = step_row_of_piece(w.pieces, w.magic, i), j = i - k * w.pieces;
            h->min[u] = __ldg((const unsigned short *)(step_row(&w, k0 + k) + w.mins) + j);
        }
    }
}

STEP_FN int32_t step_dot16(uint4 w, uint4 a)
{
    int32_t s = __dp4a((int)w.x, (int)a.x, 0);
    s = __dp4a((int)w.y, (int)a.y, s);
    s = __dp4a((int)w.z, (int)a.z, s);
    return __dp4a((int)w.w, (int)a.w, s);
}

STEP_FN uint4 step_nibbles(uint4 w, int shift)
{
    w.x = w.x >> shift & 0x0f0f0f0fu;
    w.y = w.y >> shift & 0x0f0f0f0fu;
    w.z = w.z >> shift & 0x0f0f0f0fu;
    w.w = w.w >> shift & 0x0f0f0f0fu;
    return w;
}

/* Four bits, one to each byte. */
STEP_FN uint32_t step_spread(uint32_t bits, int to)
{
    return ((bits & 1) | (bits & 2) << 7 | (bits & 4) << 14 | (bits & 8) << 21) << to;
}

/* Columns 16 * half .. of a block of 5 or 6 bits: its nibbles with the high bits added. */
STEP_FN uint4 step_high(uint32_t fmt, uint4 low, uint2 h, int half)
{
    if (fmt == STEP_Q6) {
        /* byte c of high has the bits of columns c, c + 8, c + 16, c + 24 */
        const int s = 4 * half;
        low.x |= (h.x >> s & 0x03030303u) << 4;
        low.y |= (h.y >> s & 0x03030303u) << 4;
        low.z |= (h.x >> (s + 2) & 0x03030303u) << 4;
        low.w |= (h.y >> (s + 2) & 0x03030303u) << 4;
    } else {
        h.x >>= 16 * half;
        low.x |= step_spread(h.x, 4);
        low.y |= step_spread(h.x >> 4, 4);
        low.z |= step_spread(h.x >> 8, 4);
        low.w |= step_spread(h.x >> 12, 4);
    }
    return low;
}

/* The terms of one piece, to where its row keeps them (those of token t: t * stride further). */
STEP_FN void step_piece_q8(const struct step_block *b, uint32_t nt, uint4 q, uint32_t scale,
                           uint32_t j, float2 *to, uint32_t stride, uint32_t valid)
{
    const float sw = step_half(scale);
    for (uint32_t t0 = 0; t0 < nt; t0 += 4) { /* four tokens at a time, independent of each other */
        int32_t s[4];
        float sa[4];
        STEP_UNROLL(4)
        for (uint32_t v = 0; v < 4; v++) {
            const uint32_t t = t0 + v < nt ? t0 + v : t0;
            s[v] = step_dot16(q, *((const uint4 *)(b->xq + t * b->ld) + j));
            sa[v] = b->scale[t * (b->ld / 32) + (j >> 1)];
        }
        STEP_UNROLL(4)
        for (uint32_t v = 0; v < 4; v++)
            s[v] += __shfl_xor_sync(STEP_ALL, s[v], 1); /* a block is two pieces */
        STEP_UNROLL(4)
        for (uint32_t v = 0; v < 4; v++)
            if (valid && (j & 1) == 0 && t0 + v < nt)
                to[(t0 + v) * stride + (j >> 1)] = step_pair((float)s[v], __fmul_rn(sw, sa[v]));
    }
}

STEP_FN void step_piece_q4(const struct step_block *b, uint32_t fmt, uint32_t nt, uint4 q,
                           uint32_t scale, uint32_t min, uint32_t j, float2 *to, uint32_t stride)
{
    const uint4 low = step_nibbles(q, 0), high = step_nibbles(q, 4);
    for (uint32_t t = 0; t < nt; t++) {
        const uint4 *a = (const uint4 *)(b->xq + t * b->ld) + 2 * j;
        const int32_t *sums = b->sums + t * (b->ld / 16) + 2 * j;
        const float sa = b->scale[t * (b->ld / 32) + j];
        const int32_t sum = sums[0] + sums[1];
        const int32_t s = step_dot16(low, a[0]) + step_dot16(high, a[1]);
        const float k = __fmul_rn(step_half(scale), sa);
        if (fmt == STEP_Q4) {
            to[t * stride + j] = step_pair((float)(s - 8 * sum), k);
        } else {
            to[t * stride + 2 * j] = step_pair((float)s, k);
            to[t * stride + 2 * j + 1] = step_pair(step_half(min), __fmul_rn(sa, (float)sum));
        }
    }
}

/* 5 and 6 bits: read here, 20 or 24 bytes a block. */
STEP_FN void step_piece_q56(const struct step_block *b, const struct step_rows *w, uint32_t nt,
                            const uint8_t *row, uint32_t j, float2 *to, uint32_t stride)
{
    const uint32_t bytes = w->fmt == STEP_Q6 ? 24 : 20;
    const uint8_t *at = row + w->quants + j * bytes;
    uint4 q;
    q.x = __ldg((const uint32_t *)at);
    q.y = __ldg((const uint32_t *)at + 1);
    q.z = __ldg((const uint32_t *)at + 2);
    q.w = __ldg((const uint32_t *)at + 3);
    uint2 h;
    h.x = __ldg((const uint32_t *)at + 4);
    h.y = w->fmt == STEP_Q6 ? __ldg((const uint32_t *)at + 5) : 0;
    const uint4 low = step_high(w->fmt, step_nibbles(q, 0), h, 0);
    const uint4 high = step_high(w->fmt, step_nibbles(q, 4), h, 1);
    for (uint32_t t = 0; t < nt; t++) {
        const uint4 *a = (const uint4 *)(b->xq + t * b->ld) + 2 * j;
        const int32_t *sums = b->sums + t * (b->ld / 16) + 2 * j;
        const float sa = b->scale[t * (b->ld / 32) + j];
        const int32_t s0 = step_dot16(low, a[0]), s1 = step_dot16(high, a[1]);
        float2 *e = to + t * stride;
        if (w->fmt == STEP_Q6) {
            const unsigned short *scale = (const unsigned short *)row + 2 * j;
            e[2 * j] =
                step_pair((float)(s0 - 32 * sums[0]), __fmul_rn(step_half(__ldg(scale)), sa));
            e[2 * j + 1] =
                step_pair((float)(s1 - 32 * sums[1]), __fmul_rn(step_half(__ldg(scale + 1)), sa));
            continue;
        }
        const float k = __fmul_rn(step_half(__ldg((const unsigned short *)row + j)), sa);
        const int32_t sum = sums[0] + sums[1];
        if (w->fmt == STEP_Q5) {
            e[j] = step_pair((float)(s0 + s1 - 16 * sum), k);
        } else {
            const float min = step_half(__ldg((const unsigned short *)(row + w->mins) + j));
            e[2 * j] = step_pair((float)(s0 + s1), k);
            e[2 * j + 1] = step_pair(min, __fmul_rn(sa, (float)sum));
        }
    }
}

/* The same for one token: independent of each other, STEP_TOGETHER pieces at a time. */
#define STEP_TOGETHER 4

STEP_FN void step_make_terms_q8(const struct step_block *b, uint32_t pieces, uint32_t magic,
                                uint32_t items, uint32_t stride, const struct step_held *h)
{
    STEP_UNROLL(2)
    for (int g = 0; g < STEP_HELD; g += STEP_TOGETHER) {
        int32_t sum[STEP_TOGETHER];
        float scale[STEP_TOGETHER];
        if ((uint32_t)g * STEP_THREADS >= items)
            break;
        STEP_UNROLL(4)
        for (int u = 0; u < STEP_TOGETHER; u++) { /* past the end: any piece of the input */
            const uint32_t i = (uint32_t)(g + u) * STEP_THREADS + threadIdx.x;
            const uint32_t j = i - step_row_of_piece(pieces, magic, i) * pieces;
            sum[u] = step_dot16(h->q[g + u], ((const uint4 *)b->xq)[j]);
            scale[u] = __fmul_rn(step_half(h->scale[g + u]), b->scale[j >> 1]);
        }
        STEP_UNROLL(4)
        for (int u = 0; u < STEP_TOGETHER; u++)
            sum[u] += __shfl_xor_sync(STEP_ALL, sum[u], 1); /* a block is two pieces */
        STEP_UNROLL(4)
        for (int u = 0; u < STEP_TOGETHER; u++) {
            const uint32_t i = (uint32_t)(g + u) * STEP_THREADS + threadIdx.x;
            const uint32_t k = step_row_of_piece(pieces, magic, i), j = i - k * pieces;
            if (i < items && (j & 1) == 0)
                b->work[k * stride + (j >> 1)] = step_pair((float)sum[u], scale[u]);
        }
    }
}

STEP_FN void step_make_terms_q4(const struct step_block *b, uint32_t pieces, uint32_t magic,
                                uint32_t items, uint32_t stride, const struct step_held *h)
{
    STEP_UNROLL(2)
    for (int g = 0; g < STEP_HELD; g += STEP_TOGETHER) {
        float2 e[STEP_TOGETHER];
        if ((uint32_t)g * STEP_THREADS >= items)
            break;
        STEP_UNROLL(4)
        for (int u = 0; u < STEP_TOGETHER; u++) {
            const uint32_t i = (uint32_t)(g + u) * STEP_THREADS + threadIdx.x;
            const uint32_t j = i - step_row_of_piece(pieces, magic, i) * pieces;
            const uint4 *a = (const uint4 *)b->xq + 2 * j;
            const int32_t s = step_dot16(step_nibbles(h->q[g + u], 0), a[0]) +
                              step_dot16(step_nibbles(h->q[g + u], 4), a[1]);
            e[u] = step_pair((float)(s - 8 * (b->sums[2 * j] + b->sums[2 * j + 1])),
                             __fmul_rn(step_half(h->scale[g + u]), b->scale[j]));
        }
        STEP_UNROLL(4)
        for (int u = 0; u < STEP_TOGETHER; u++) {
            const uint32_t i = (uint32_t)(g + u) * STEP_THREADS + threadIdx.x;
            const uint32_t k = step_row_of_piece(pieces, magic, i);
            if (i < items)
                b->work[k * stride + (i - k * pieces)] = e[u];
        }
    }
}

/* Terms of `rows` rows from row k0, to work: [row][token][stride]. */
STEP_FN void step_make_terms(const struct step_block *b, const struct step_rows *w, uint32_t nt,
                             uint32_t k0, uint32_t rows, const struct step_held *h)
{
    const uint32_t pieces = w->pieces, magic = w->magic, fmt = w->fmt;
    const uint32_t items = rows * pieces, stride = step_terms(w) | 1;
    if (fmt == STEP_Q8 && nt == 1) {
        step_make_terms_q8(b, pieces, magic, items, stride, h);
    } else if (fmt == STEP_Q4 && nt == 1) {
        step_make_terms_q4(b, pieces, magic, items, stride, h);
    } else if (fmt == STEP_Q8) {
        STEP_UNROLL(8)
        for (int u = 0; u < STEP_HELD; u++) {
            const uint32_t i = (uint32_t)u * STEP_THREADS + threadIdx.x;
            if ((uint32_t)u * STEP_THREADS >= items)
                break;
            const uint32_t k = step_row_of_piece(pieces, magic, i), j = i - k * pieces;
            step_piece_q8(b, nt, h->q[u], h->scale[u], j, b->work + k * nt * stride, stride,
                          i < items);
        }
    } else if (step_is_held(fmt)) {
        STEP_UNROLL(8)
        for (int u = 0; u < STEP_HELD; u++) {
            const uint32_t i = (uint32_t)u * STEP_THREADS + threadIdx.x;
            if (i < items) {
                const uint32_t k = step_row_of_piece(pieces, magic, i), j = i - k * pieces;
                step_piece_q4(b, fmt, nt, h->q[u], h->scale[u], h->min[u], j,
                              b->work + k * nt * stride, stride);
            }
        }
    } else {
        for (uint32_t i = threadIdx.x; i < items; i += STEP_THREADS) {
            const uint32_t k = step_row_of_piece(pieces, magic, i), j = i - k * pieces;
            step_piece_q56(b, w, nt, step_row(w, k0 + k), j, b->work + k * nt * stride, stride);
        }
    }
}

/* acc and a row's terms, added in order. */
STEP_FN float step_chain(const float2 *e, uint32_t n, float acc)
{
    uint32_t i = 0;
    STEP_ROLLED
    for (; i + 8 <= n; i += 8) {
        float2 v[8];
        STEP_UNROLL(8)
        for (uint32_t u = 0; u < 8; u++)
            v[u] = e[i + u];
        STEP_UNROLL(8)
        for (int u = 0; u < 8; u++)
            acc = __fmaf_rn(v[u].x, v[u].y, acc);
    }
    STEP_ROLLED
    for (; i < n; i++)
        acc = __fmaf_rn(e[i].x, e[i].y, acc);
    return acc;
}

/* What becomes of a product's results. */
enum step_end { STEP_STORE, STEP_ACTIVATE, STEP_ACTIVATE_WITH };
struct step_out {
    enum step_end end;
    float *to; /* [tokens][ld] */
    uint32_t ld;
    uint32_t gelu;
    const uint32_t *rows; /* logits: the row of each token; NULL: a result for all blocks */
    const struct step_model *m;
};

/* Row k of the block, as the matrix has it: times its factor, plus its bias. */
STEP_FN float step_finish_row(const struct step_rows *w, uint32_t k, float acc)
{
    uint32_t r = w->first + (w->pairs ? k >> 1 : k), j = w->pairs ? k & 1 : 0;
    while (!w->pairs && j + 1 < w->n_mats && r >= w->mats[j].n_rows)
        r -= w->mats[j++].n_rows;
    const struct step_mat *mat = &w->mats[j];
    const float v = __fmul_rn(acc, mat->mul);
    return mat->bias ? __fadd_rn(v, mat->bias[r]) : v;
}

STEP_FN float step_act(const struct step_out *o, float gate)
{
    return o->gelu ? step_gelu(gate) : step_gate(gate, gate);
}

/* Stores a result; pairs: the product of an activated gate and v. */
STEP_FN void step_emit(const struct step_out *o, uint32_t t, uint32_t column, uint32_t pairs,
                       float gate, float v)
{
    float *to = o->to + (uint64_t)(o->rows ? o->rows[t] : t) * o->ld + column;
    if (o->end == STEP_ACTIVATE_WITH) /* the gate was stored here */
        gate = *to;
    if (o->end == STEP_ACTIVATE)
        v = step_act(o, v);
    else if (o->end == STEP_ACTIVATE_WITH || pairs)
        v = __fmul_rn(step_act(o, gate), v);
    if (o->rows)
        *to = v;
    else
        step_send(o->m, to, v);
}

STEP_FN void step_add_up(const struct step_block *b, const struct step_rows *w, uint32_t nt,
                         uint32_t k0, uint32_t rows, const struct step_out *o)
{
    const uint32_t n = step_terms(w), stride = n | 1, each = w->pairs ? 2 : 1;
    for (uint32_t i = threadIdx.x; i < rows / each * nt; i += STEP_THREADS) {
        const uint32_t k = (nt == 1 ? i : i / nt) * each, t = nt == 1 ? 0 : i % nt;
        const float2 *e = b->work + (k * nt + t) * stride;
        float v = 0.0f, gate = 0.0f;
        for (uint32_t half = 0; half < each; half++, e += nt * stride) {
            gate = v;
            v = step_finish_row(w, k0 + k + half, step_chain(e, n, 0.0f));
        }
        step_emit(o, t, w->first + (k0 + k) / each, w->pairs, gate, v);
    }
}

/* The products of a layer, in order; a part is one matrix where one product cannot cover all. */
enum step_phase { STEP_QKV, STEP_OUT, STEP_FFN, STEP_DOWN, STEP_OUTPUT };
struct step_at {
    enum step_phase phase;
    uint32_t layer, part;
};

STEP_FN uint32_t step_parts(const struct step_model *m, const struct step_layer *l,
                            enum step_phase phase)
{
    if (phase == STEP_QKV)
        return l->qkv_alike ? 1 : l->n_qkv;
    return phase == STEP_FFN && m->gated && !l->ffn_alike ? 2 : 1;
}

STEP_FN struct step_at step_after(const struct step_model *m, const struct step_layer *l,
                                  struct step_at at)
{
    if (++at.part < step_parts(m, l, at.phase))
        return at;
    at.part = 0;
    if (at.phase < STEP_DOWN) {
        at.phase = (enum step_phase)(at.phase + 1);
    } else {
        at.phase = ++at.layer < m->n_layers ? STEP_QKV : STEP_OUTPUT;
    }
    return at;
}

STEP_FN struct step_rows step_rows_at(const struct step_model *m, const struct step_layer *l,
                                      struct step_at at)
{
    const struct step_mat *mats = at.phase == STEP_QKV       ? l->qkv + at.part
                                  : at.phase == STEP_OUT     ? &l->out
                                  : at.phase == STEP_DOWN    ? &l->down
                                  : at.phase == STEP_OUTPUT  ? &m->output
                                  : m->gated && at.part == 0 ? &l->gate
                                                             : &l->up;
    struct step_rows w = step_rows_of(mats, at.phase == STEP_QKV && l->qkv_alike ? l->n_qkv : 1);
    if (at.phase == STEP_FFN && m->gated && l->ffn_alike) { /* rows of gate and up in turns */
        w.jump[0] = (int64_t)(l->up.data - l->gate.data);
        w.n *= 2;
        w.pairs = 1;
    }
    return w;
}

/* What one thread does while others add up: the rows of the product after the next. */
struct step_later {
    const struct step_model *m;
    const struct step_layer *layers; /* two, see step_head */
    struct step_at at;
    struct step_rows *to;
};

STEP_FN void step_do_later(const struct step_later *a)
{
    if (threadIdx.x == STEP_THREADS - 1)
        *a->to = step_rows_at(a->m, &a->layers[a->at.layer & 1], a->at);
}

/* Integer weights.  held: whether h has the first chunk already.  Fetches the first chunk of next,
 * which may have no rows. */
STEP_FN void step_product_int(const struct step_block *b, const struct step_rows *w, uint32_t nt,
                              const struct step_out *o, struct step_held *h, uint32_t held,
                              const struct step_rows *next, uint32_t next_nt,
                              const struct step_later *later)
{
    const uint32_t rows = step_chunk(b, w, nt);
    uint32_t k0 = 0, here = held ? rows : 0; /* the first round may only fetch */
    do {
        const uint32_t k1 = k0 + here, left = w->n - k1;
        if (here)
            step_make_terms(b, w, nt, k0, here, h);
        const uint32_t more = left < rows ? left : rows;
        const struct step_rows *from = more ? w : next;
        step_fetch(from, more ? k1 : 0, more ? more : step_chunk(b, next, next_nt), h);
        __syncthreads();
        step_add_up(b, w, nt, k0, here, o);
        if (k0 == 0)
            step_do_later(later);
        __syncthreads();
        k0 = k1;
        here = more;
    } while (here);
}

/* ---- products with float weights ------------------------------------------------------------ */

STEP_FN float step_weight(uint32_t fmt, const unsigned char *p, uint32_t i)
{
    return fmt == STEP_F32   ? ((const float *)p)[i]
           : fmt == STEP_F16 ? step_half(((const unsigned short *)p)[i])
                             : __uint_as_float((uint32_t)((const unsigned short *)p)[i] << 16);
}

/* One column after the other: a thread a row and token; all threads bring the weights into shared
 * memory first. */
STEP_FN void step_product_float(const struct step_block *b, const struct step_rows *w, uint32_t nt,
                                const struct step_out *o)
{
    const uint32_t size = w->fmt == STEP_F32 ? 4 : 2, each = w->pairs ? 2 : 1;
    uint32_t most = STEP_THREADS / nt * each;
    most = most < 512 ? most : 512;
    const uint32_t rows = w->n < most ? w->n : most;
    unsigned char *stage = (unsigned char *)b->work;
    for (uint32_t k0 = 0; k0 < w->n; k0 += rows) {
        const uint32_t here = w->n - k0 < rows ? w->n - k0 : rows;
        /* columns of a stage: whole lines of 64 bytes, 16 more a row against bank conflicts */
        uint32_t lines = (b->work_pairs * 8 / here - 16) / 64;
        const uint32_t all = w->row_bytes / 64;
        lines = lines < all ? lines : all;
        const uint32_t cols = lines * 64 / size, ld = lines * 64 + 16;
        const uint32_t k = threadIdx.x / nt * each, t = threadIdx.x % nt;
        const uint32_t mine = k < here && threadIdx.x < here / each * nt;
        float acc[2] = {0.0f, 0.0f};
        for (uint32_t c0 = 0; c0 < w->n_cols; c0 += cols) {
            const uint32_t left = all - c0 * size / 64, now = left < lines ? left : lines;
            for (uint32_t i = threadIdx.x; i < here * now * 4; i += STEP_THREADS) {
                const uint32_t r = i / (now * 4), j = i - r * (now * 4);
                *(uint4 *)(stage + r * ld + j * 16) =
                    step_stream16((const uint4 *)(step_row(w, k0 + r) + c0 * size) + j);
            }
            __syncthreads();
            const uint32_t n = w->n_cols - c0 < cols ? w->n_cols - c0 : cols;
            const float *x = b->xf + t * b->ld + c0;
            for (uint32_t p = 0; mine && p < each; p++) {
                const unsigned char *row = stage + (k + p) * ld;
                uint32_t c = 0;
                float a = acc[p];
                for (; c + 8 <= n; c += 8) {
                    float wv[8], xv[8];
                    STEP_UNROLL(8)
                    for (uint32_t u = 0; u < 8; u++) {
                        wv[u] = step_weight(w->fmt, row, c + u);
                        xv[u] = x[c + u];
                    }
                    STEP_UNROLL(8)
                    for (int u = 0; u < 8; u++)
                        a = __fmaf_rn(wv[u], xv[u], a);
                }
                for (; c < n; c++)
                    a = __fmaf_rn(step_weight(w->fmt, row, c), x[c], a);
                acc[p] = a;
            }
            __syncthreads();
        }
        if (mine) {
            float v = step_finish_row(w, k0 + k, acc[0]), gate = v;
            if (w->pairs)
                v = step_finish_row(w, k0 + k + 1, acc[1]);
            step_emit(o, t, w->first + (k0 + k) / each, w->pairs, gate, v);
        }
    }
}

/* *held: whether h has the first chunk of w; afterwards, whether it has that of next. */
STEP_FN void step_product(const struct step_block *b, const struct step_rows *w, uint32_t nt,
                          const struct step_out *o, struct step_held *h, uint32_t *held,
                          const struct step_rows *next, uint32_t next_nt,
                          const struct step_later *later)
{
    if (step_is_float(w->fmt)) {
        step_do_later(later);
        step_product_float(b, w, nt, o);
        *held = 0;
    } else {
        step_product_int(b, w, nt, o, h, *held, next, next_nt, later);
        *held = step_is_held(next->fmt);
    }
}

/* ---- attention ----------------------------------------------------------------------------- */

/* Consecutive tokens of one sequence, and one KV head: the work of one block. */
struct step_unit {
    uint32_t t0, n, kv_head; /* token t0 of the group, n tokens */
    uint32_t pos0;           /* of token t0 */
    const uint32_t *pages;
};

/* Norm and rotation of one head in shared memory, by one warp; cs: of its position. */
STEP_FN void step_prepare_head(const struct step_model *m, const float *cs, float *x,
                               const float *norm)
{
    const uint32_t lane = threadIdx.x & 31, hd = m->head_dim, rot = m->rope_dim;
    if (norm) {
        const float2 f = step_norm_factor(x, hd, m->norm_eps, 0);
        __syncwarp();
        STEP_ROLLED
        for (uint32_t i = lane; i < hd; i += 32)
            x[i] = __fmul_rn(__fmul_rn(x[i], f.y), norm[i]);
        __syncwarp();
    }
    if (rot) {
        STEP_ROLLED
        for (uint32_t i = lane; i < rot / 2; i += 32) {
            const uint32_t a = m->rope_neox ? i : 2 * i, b = m->rope_neox ? i + rot / 2 : a + 1;
            const float xa = x[a], xb = x[b];
            x[a] = __fadd_rn(__fmul_rn(xa, cs[a]), __fmul_rn(xb, cs[rot + a]));
            x[b] = __fadd_rn(__fmul_rn(xb, cs[b]), __fmul_rn(xa, cs[rot + b]));
        }
        __syncwarp();
    }
}

/* One token's key (values == 0) or value of one head into its page and a copy of that (or NULL), by
 * one warp. */
STEP_FN void step_store_head(const struct step_model *m, uint8_t *page, uint8_t *copy, uint32_t at,
                             const float *x, uint32_t values)
{
    const uint32_t lane = threadIdx.x & 31, hd = m->head_dim;
    const uint32_t to = values ? 16 * hd + at * hd : at, step = values ? 1 : 16;
    float max = 0.0f, inv = 0.0f;
    if (m->kv_q8) {
        for (uint32_t i = lane; i < hd; i += 32)
            max = step_max(max, fabsf(x[i]));
        max = step_warp_max(max);
        inv = max > 1e-30f ? __fdiv_rn(127.0f, max) : 0.0f;
    }
    for (uint8_t *p = page; p; p = p == page ? copy : (uint8_t *)0) {
        for (uint32_t i = lane; i < hd; i += 32)
            if (m->kv_q8)
                ((int8_t *)p)[to + i * step] = (int8_t)__float2int_rn(
                    step_min(step_max(__fmul_rn(x[i], inv), -127.0f), 127.0f));
            else
                ((unsigned short *)p)[to + i * step] = __half_as_ushort(__float2half_rn(x[i]));
        if (m->kv_q8 && lane == 0)
            ((float *)(p + 32 * hd))[(values ? 16 : 0) + at] =
                max > 1e-30f ? __fdiv_rn(max, 127.0f) : 0.0f;
    }
}

/* Element `at` of a page in shared memory. */
STEP_FN float step_key(const struct step_model *m, const uint8_t *page, uint32_t at)
{
    return m->kv_q8 ? (float)((const int8_t *)page)[at]
                    : step_half(((const unsigned short *)page)[at]);
}

/* Starts bringing n pages from page p of the unit's KV head into shared memory. */
STEP_FN void step_stage(const struct step_model *m, const uint8_t *kv, const uint32_t *pages,
                        uint32_t p, uint32_t n, uint8_t *to)
{
    const uint32_t each = (uint32_t)m->kv_head_bytes / 16;
    for (uint32_t i = threadIdx.x; i < n * each; i += STEP_THREADS) {
        const uint32_t k = i / each;
        const uint4 *from = (const uint4 *)(kv + (uint64_t)pages[p + k] * m->kv_page_bytes);
        step_copy16((uint4 *)to + i, from + (i - k * each));
    }
}

STEP_FN void step_staged(void)
{
    step_copied();
    __syncthreads();
}

#define STEP_SCORE_ROWS 4

/* Scores of nr rows (up to four) from row r against one key; dims in ascending order.  own: queries
 * of a unit, see step_attend_unit. */
STEP_FN void step_scores(const struct step_model *m, const float *own, uint32_t group, uint32_t r,
                         uint32_t nr, const uint8_t *page, uint32_t at, float *out, uint32_t out_ld)
{
    const uint32_t hd = m->head_dim;
    float s[STEP_SCORE_ROWS];
    const float *q[STEP_SCORE_ROWS];
    STEP_UNROLL(4)
    for (uint32_t i = 0; i < STEP_SCORE_ROWS; i++) {
        const uint32_t row = i < nr ? r + i : r;
        s[i] = 0.0f;
        q[i] = own + (row / group * (group + 2) + row % group) * hd;
    }
    for (uint32_t d = 0; d < hd; d += 8) {
        float k[8];
        STEP_UNROLL(8)
        for (uint32_t u = 0; u < 8; u++)
            k[u] = d + u < hd ? step_key(m, page, (d + u) * 16 + at) : 0.0f;
        STEP_UNROLL(4)
        for (uint32_t i = 0; i < STEP_SCORE_ROWS; i++)
            if (i < nr) {
                STEP_UNROLL(8)
                for (uint32_t u = 0; u < 8; u++)
                    if (d + u < hd)
                        s[i] = __fmaf_rn(q[i][d + u], k[u], s[i]);
            }
    }
    STEP_UNROLL(4)
    for (uint32_t i = 0; i < STEP_SCORE_ROWS; i++)
        if (i < nr) {
            float v = __fmul_rn(s[i], m->attn_scale);
            if (m->kv_q8)
                v = __fmul_rn(v, ((const float *)(page + 32 * hd))[at]);
            out[i * out_ld] = v;
        }
}

/* Scores lo .. hi - 1 of a row become weights; returns 1 / their sum.  One warp; key t is added to
 * partial sum t % 16. */
STEP_FN float step_weights(float *s, uint32_t first, uint32_t lo, uint32_t hi)
{
    const uint32_t lane = threadIdx.x & 31;
    float max = s[lo - first];
    for (uint32_t t = lo + lane; t < hi; t += 32)
        max = step_max(max, s[t - first]);
    max = step_warp_max(max);
    for (uint32_t t = lo + lane; t < hi; t += 32)
        s[t - first] = step_exp(__fsub_rn(s[t - first], max));
    __syncwarp();
    float sum = 0.0f;
    const uint32_t mine = lo / 16 * 16 + (lane & 15);
    for (uint32_t t = mine < lo ? mine + 16 : mine; t < hi; t += 16)
        sum = __fadd_rn(sum, s[t - first]);
    return __fdiv_rn(1.0f, step_sum16(sum));
}

/* Adds keys lo .. hi - 1 to column d of a row, in ascending order; pages begin at key `at`. */
STEP_FN float step_values(const struct step_model *m, const uint8_t *pages, uint32_t at,
                          const float *s, uint32_t lo, uint32_t hi, uint32_t d, float o)
{
    const uint32_t hd = m->head_dim;
    for (uint32_t p = (lo - at) / 16; at + p * 16 < hi; p++) {
        const uint8_t *page = pages + p * (uint32_t)m->kv_head_bytes;
        const uint32_t t = at + p * 16;
        float w[16], v[16];
        STEP_UNROLL(16)
        for (uint32_t i = 0; i < 16; i++) { /* loads first: only the sum is a chain */
            w[i] = s[t + i];
            if (m->kv_q8)
                w[i] = __fmul_rn(w[i], ((const float *)(page + 32 * hd))[16 + i]);
            v[i] = step_key(m, page, (16 + i) * hd + d);
        }
        STEP_UNROLL(16)
        for (uint32_t i = 0; i < 16; i++)
            if (t + i >= lo && t + i < hi)
                o = __fmaf_rn(w[i], v[i], o);
    }
    return o;
}

/* How a unit divides the work memory. */
struct step_room {
    float *own;     /* [n][group + 2][head_dim]: queries, key, value */
    float *inv;     /* [rows] */
    float *score;   /* [at_once][ld] */
    uint8_t *stage; /* [fit] pages */
    uint32_t rows, at_once, ld, first, n_pages, fit; /* first: key, the first of a page */
};

STEP_FN struct step_room step_room_of(const struct step_model *m, const struct step_block *b,
                                      const struct step_layer *l, const struct step_unit *u)
{
    struct step_room r;
    const uint32_t hd = m->head_dim, group = m->n_heads / m->n_kv_heads, end = u->pos0 + u->n;
    const uint32_t low = l->window && u->pos0 + 1 > l->window ? u->pos0 + 1 - l->window : 0;
    const uint32_t own = (u->n * (group + 2) * hd + 3) / 4 * 4; /* pages need 16 bytes' alignment */
    r.rows = u->n * group;
    r.own = (float *)b->work;
    r.inv = r.own + own;
    r.score = r.inv + (r.rows + 3) / 4 * 4;
    r.first = low / 16 * 16;
    r.ld = (end - r.first + 15) / 16 * 16;
    r.n_pages = r.ld / 16;
    /* as many rows at a time as there is room for scores; pages get the rest */
    uint32_t room = (b->work_pairs * 2 - (uint32_t)(r.score - (float *)b->work)) & ~3u;
    r.at_once = room / 2 / r.ld < r.rows ? room / 2 / r.ld : r.rows;
    r.stage = (uint8_t *)(r.score + r.at_once * r.ld);
    room -= r.at_once * r.ld;
    if (r.at_once == 0) { /* a long context: scores in the memory of the GPU */
        r.score = m->scores + (uint64_t)blockIdx.x * m->score_ld;
        r.at_once = 1;
    }
    r.fit = room * 4 / (uint32_t)m->kv_head_bytes;
    r.fit = r.fit < r.n_pages ? r.fit : r.n_pages;
    return r;
}

/* Whether all pages are in shared memory at once.  Those of a block's first unit are then copied
 * before the barrier; its new keys and values go into the copy as well. */
STEP_FN uint32_t step_fits(const struct step_room *r)
{
    return r->fit == r->n_pages && r->at_once == r->rows;
}

/* ahead: only starts copying, before the barrier. */
STEP_FN void step_attend_unit(const struct step_model *m, const struct step_block *b,
                              const struct step_layer *l, uint32_t layer, const struct step_unit *u,
                              const float *qkv, float *att, uint32_t ahead, uint32_t is_first)
{
    const uint32_t hd = m->head_dim, group = m->n_heads / m->n_kv_heads, warp = threadIdx.x / 32;
    const uint32_t lane = threadIdx.x & 31, heads = m->n_heads * hd;
    const uint32_t width = heads + 2 * m->n_kv_heads * hd, page_bytes = (uint32_t)m->kv_head_bytes;
    uint8_t *kv = m->kv + ((uint64_t)layer * m->n_kv_heads + u->kv_head) * m->kv_head_bytes;
    const struct step_room room = step_room_of(m, b, l, u);
    const uint32_t staged = is_first && step_fits(&room);
    float *own = room.own, *inv = room.inv, *score = room.score;
    uint8_t *stage = room.stage;
    const uint32_t first = room.first, ld = room.ld, n_pages = room.n_pages, fit = room.fit;
    const uint32_t rows = room.rows, at_once = room.at_once, end = u->pos0 + u->n;
    if (ahead) {
        if (staged)
            step_stage(m, kv, u->pages, first / 16, n_pages, stage);
        return;
    }
    if (staged)
        step_staged();
    for (uint32_t i = warp; i < u->n * (group + 2); i += STEP_WARPS) {
        const uint32_t t = i / (group + 2), h = i - t * (group + 2), pos = u->pos0 + t;
        const uint32_t from = h < group    ? (u->kv_head * group + h) * hd
                              : h == group ? heads + u->kv_head * hd
                                           : heads + (m->n_kv_heads + u->kv_head) * hd;
        float *x = own + i * hd;
        for (uint32_t j = lane; j < hd; j += 32)
            x[j] = step_take(m, qkv + (u->t0 + t) * width + from + j);
        __syncwarp();
        if (h <= group)
            step_prepare_head(m, m->rope[l->local_rope] + (uint64_t)pos * 2 * m->rope_dim, x,
                              h < group ? l->q_norm : l->k_norm);
        if (h >= group)
            step_store_head(m, kv + (uint64_t)u->pages[pos / 16] * m->kv_page_bytes,
                            staged ? stage + (pos - first) / 16 * page_bytes : (uint8_t *)0,
                            pos % 16, x, h > group);
    }
    __syncthreads();
    for (uint32_t r0 = 0; r0 < rows; r0 += at_once) {
        const uint32_t nr = rows - r0 < at_once ? rows - r0 : at_once;
        const uint32_t sets = (nr + STEP_SCORE_ROWS - 1) / STEP_SCORE_ROWS;
        for (uint32_t p = 0; p < n_pages; p += fit) {
            const uint32_t n = n_pages - p < fit ? n_pages - p : fit, keys = n * 16;
            if (!staged) {
                step_stage(m, kv, u->pages, first / 16 + p, n, stage);
                step_staged();
            }
            for (uint32_t i = threadIdx.x; i < sets * keys; i += STEP_THREADS) {
                const uint32_t set = i / keys, k = i - set * keys, r = set * STEP_SCORE_ROWS;
                const uint32_t left = nr - r;
                if (first + p * 16 + k < end)
                    step_scores(
                        m, own, group, r0 + r, left < STEP_SCORE_ROWS ? left : STEP_SCORE_ROWS,
                        stage + k / 16 * page_bytes, k % 16, score + r * ld + p * 16 + k, ld);
            }
            __syncthreads();
        }
        for (uint32_t r = warp; r < nr; r += STEP_WARPS) {
            const uint32_t hi = u->pos0 + (r0 + r) / group + 1;
            const uint32_t lo = l->window && hi > l->window ? hi - l->window : 0;
            const float k = step_weights(score + r * ld, first, lo, hi);
            if (lane == 0)
                inv[r0 + r] = k;
        }
        __syncthreads();
        /* a thread has the same column of the same row for all pages; many rows take turns */
        for (uint32_t i0 = 0; i0 < nr * hd; i0 += STEP_THREADS) {
            const uint32_t i = i0 + threadIdx.x, r = i / hd, d = i - r * hd, tok = (r0 + r) / group;
            const uint32_t hi = u->pos0 + tok + 1;
            const uint32_t lo = l->window && hi > l->window ? hi - l->window : 0;
            float o = 0.0f;
            for (uint32_t p = 0; p < n_pages; p += fit) {
                const uint32_t n = n_pages - p < fit ? n_pages - p : fit;
                const uint32_t from = first + p * 16, to = from + n * 16;
                if (fit < n_pages) { /* otherwise they are still there */
                    step_stage(m, kv, u->pages, first / 16 + p, n, stage);
                    step_staged();
                }
                if (i < nr * hd && (lo > from ? lo : from) < (hi < to ? hi : to))
                    o = step_values(m, stage, from, score + r * ld - first, lo > from ? lo : from,
                                    hi < to ? hi : to, d, o);
                if (fit < n_pages)
                    __syncthreads();
            }
            if (i < nr * hd)
                step_send(m,
                          att + (u->t0 + tok) * heads +
                              (u->kv_head * group + (r0 + r) % group) * hd + d,
                          __fmul_rn(o, inv[r0 + r]));
        }
        __syncthreads();
    }
}

STEP_FN void step_attend(const struct step_model *m, const struct step_block *b,
                         const struct step_layer *l, uint32_t layer, const struct step_pass *p,
                         uint32_t g0, uint32_t nt, const float *qkv, float *att, uint32_t ahead)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < nt;) { /* runs of the group */
        const struct step_token *k = &p->tokens[g0 + t];
        uint32_t end = t + 1;
        while (end < nt && p->tokens[g0 + end].run == k->run)
            end++;
        for (uint32_t h = 0; h < m->n_kv_heads; h++, n++)
            if (n % gridDim.x == blockIdx.x) {
                struct step_unit u;
                u.t0 = t;
                u.n = end - t;
                u.kv_head = h;
                u.pos0 = k->pos;
                u.pages = p->pages + k->pages_at;
                step_attend_unit(m, b, l, layer, &u, qkv, att, ahead, n == blockIdx.x);
            }
        t = end;
    }
}

/* ---- the step ------------------------------------------------------------------------------ */

/* Where the results go. */
STEP_FN struct step_out step_out_at(const struct step_model *m, const struct step_layer *l,
                                    struct step_at at, float *exchange, float *logits,
                                    const uint32_t *rows)
{
    struct step_out o;
    o.m = m;
    o.end = STEP_STORE;
    o.gelu = m->gelu;
    o.rows = (const uint32_t *)0;
    o.to = exchange;
    o.ld = m->dim;
    if (at.phase == STEP_QKV) {
        o.ld = (m->n_heads + 2 * m->n_kv_heads) * m->head_dim;
        for (uint32_t j = 0; j < at.part; j++)
            o.to += l->qkv[j].n_rows;
    } else if (at.phase == STEP_FFN) {
        o.ld = m->ffn_dim;
        o.end = !m->gated ? STEP_ACTIVATE : at.part ? STEP_ACTIVATE_WITH : STEP_STORE;
    } else if (at.phase == STEP_OUTPUT) {
        o.to = logits;
        o.ld = m->n_vocab;
        o.rows = rows;
    }
    return o;
}

/* The weights of the norm before a product. */
STEP_FN const float *step_norm_at(const struct step_model *m, const struct step_layer *l,
                                  struct step_at at)
{
    return at.phase == STEP_OUTPUT               ? m->final_norm_w
           : at.phase == STEP_QKV || m->parallel ? l->attn_norm_w
                                                 : l->ffn_norm_w;
}

/* Moves the tokens that want logits to the front; returns how many. */
STEP_FN uint32_t step_gather(const struct step_model *m, const struct step_block *b,
                             const struct step_token *tokens, uint32_t nt, uint32_t *rows)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < nt; t++) {
        const uint32_t row = tokens[t].logit_row;
        if (row == STEP_NO_ROW)
            continue;
        for (uint32_t i = threadIdx.x; n != t && i < m->dim; i += STEP_THREADS)
            b->x[n * m->dim + i] = b->x[t * m->dim + i];
        if (threadIdx.x == 0)
            rows[n] = row;
        n++;
    }
    __syncthreads();
    return n;
}

STEP_KERNEL shoal_step(STEP_PARAM struct step_model model, STEP_PARAM struct step_pass pass)
{
#ifdef STEP_EMULATED
    unsigned char *memory = step_emulated_shared();
#else
    unsigned char *memory = step_shared_memory;
#endif
    struct step_head *head = (struct step_head *)memory;
    struct step_layer *layers = head->layers;
    uint32_t *logit_rows = head->logit_rows;
    const struct step_model *m = &model;
    const struct step_pass *p = &pass;
    const struct step_block b = step_block_of(m, memory);
    const uint32_t dim = m->dim, heads = m->n_heads * m->head_dim;
    float *const exchange = m->cluster ? (float *)(memory + m->shared.exchange) : m->exchange;
    const uint32_t far = m->tokens * m->exchange_ld; /* from one part of it to the other */
    struct step_held held;
    struct step_ahead ahead;
    STEP_CLOCK
    if (m->cluster) /* nobody may send to a block that has not begun */
        step_barrier(m);

    for (uint32_t g0 = 0; g0 < p->n_tokens; g0 += m->tokens) {
        uint32_t nt = p->n_tokens - g0 < m->tokens ? p->n_tokens - g0 : m->tokens;
        uint32_t has = 0; /* held has the first chunk of the next product */
        struct step_at at = {STEP_QKV, 0, 0};
        uint32_t wanted = 0; /* rows of logits */
        uint32_t slot = 0;   /* where head has the rows of this product */
        uint32_t turn = 0;   /* the part of the exchange that is read now */
        for (uint32_t t = 0; t < nt; t++)
            wanted += p->tokens[g0 + t].logit_row != STEP_NO_ROW;
        step_copy_layer(&layers[0], &m->layers[0]);
        step_copied();
        for (uint32_t i = threadIdx.x; i < nt * dim; i += STEP_THREADS)
            b.x[i] = p->embedded[(uint64_t)g0 * dim + i];
        __syncthreads();
        if (threadIdx.x < 2) /* of the first two products; the others while there is time */
            head->rows[threadIdx.x] =
                step_rows_at(m, &layers[0], threadIdx.x ? step_after(m, &layers[0], at) : at);
        step_read_ahead(&ahead, layers[0].attn_norm_w, dim);
        for (;; slot = slot == 2 ? 0 : slot + 1) {
            const struct step_layer *l = &layers[at.layer & 1];
            const uint32_t whole = at.part == 0; /* the other parts have the same input */
            const uint32_t first = at.phase == STEP_QKV || at.phase == STEP_OUTPUT;
            if (at.phase == STEP_OUT && at.layer + 1 < m->n_layers) /* nobody needs the last one */
                step_copy_layer(&layers[(at.layer + 1) & 1], &m->layers[at.layer + 1]);
            if (at.phase == STEP_FFN)
                step_copied();
            const float *in = exchange + turn * far;
            /* the end of the product before */
            if (whole && ((first && at.layer > 0) || (at.phase == STEP_FFN && !m->parallel)))
                step_join(m, &b, nt, in,
                          first ? layers[(at.layer - 1) & 1].post_ffn_norm : l->post_attn_norm);
            if (at.phase == STEP_OUTPUT &&
                !(nt = step_gather(m, &b, p->tokens + g0, nt, logit_rows)))
                break;
            const struct step_at after = step_after(m, l, at);
            const struct step_later later = {m, layers,
                                             step_after(m, &layers[after.layer & 1], after),
                                             &head->rows[slot == 0 ? 2 : slot - 1]};
            const uint32_t next_slot = slot == 2 ? 0 : slot + 1;
            if (whole) {
                const float *from =
                    at.phase == STEP_OUT || at.phase == STEP_DOWN ? in : (const float *)0;
                const float *bias = at.phase == STEP_OUTPUT               ? m->final_norm_b
                                    : at.phase == STEP_QKV || m->parallel ? l->attn_norm_b
                                                                          : l->ffn_norm_b;
                step_input(m, &b, nt, from,
                           at.phase == STEP_OUT    ? heads
                           : at.phase == STEP_DOWN ? m->ffn_dim
                                                   : dim,
                           step_norm_at(m, l, at), bias, &ahead);
                if (at.phase == STEP_FFN && m->parallel) /* it had the same input as attention */
                    step_join(m, &b, nt, in, (const float *)0);
            } else {
                __syncthreads();
            }
            STEP_LAP(first ? 0 : at.phase == STEP_FFN ? 1 : 2);
            const struct step_out o =
                step_out_at(m, l, at, exchange + (turn ^ 1) * far, p->logits, logit_rows);
            const uint32_t last = at.phase == STEP_OUTPUT;
            step_product(&b, &head->rows[slot], nt, &o, &held, &has, &head->rows[next_slot],
                         last                         ? 0
                         : after.phase == STEP_OUTPUT ? wanted
                                                      : nt,
                         &later);
            STEP_LAP(3 + at.phase);
            if (last)
                break;
            if (after.phase != STEP_OUT && after.phase != STEP_DOWN)
                step_read_ahead(&ahead, step_norm_at(m, &layers[after.layer & 1], after), dim);
            STEP_LAP(8);
            const uint32_t attends = after.phase == STEP_OUT;
            for (uint32_t ahead_of = attends;; ahead_of = 0) {
                if (attends)
                    step_attend(m, &b, l, at.layer, p, g0, nt, exchange + turn * far,
                                exchange + (turn ^ 1) * far, ahead_of);
                STEP_LAP(9);
                if (after.part == 0) {
                    step_barrier(m);
                    turn ^= 1;
                } else {
                    __syncthreads();
                }
                STEP_LAP(10);
                if (!ahead_of)
                    break;
            }
            at = after;
        }
        __syncthreads();
    }
}
