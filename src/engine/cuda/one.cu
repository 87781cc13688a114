/* one.cu - the step of one token as one kernel, for the common decoders: RMS norm, gated hidden
 * layer, weights in integers, keys and values in F16.  step.cu computes everything else.
 *
 * What makes it faster than step.cu:
 *   - every warp streams its own rows: copies of whole rows into a ring in shared memory run ahead
 *     through products and layers, and never wait for a barrier;
 *   - there is no barrier: a result travels as (value, tag) in one 64-bit word, and who needs it
 *     looks at the word until it has the tag of this exchange;
 *   - the code of a layer is small, so that it stays in the instruction cache.
 *
 * Why a word is never overwritten too early: every block has rows in every product and reads the
 * whole result of the product before, and each of the five results of a layer has its own words.
 * Included by kernels.cu after step.cu, whose arithmetic it shares. */
#include "one.h"

#ifndef ONE_THREADS
#define ONE_THREADS 512
#endif
#define ONE_WARPS (ONE_THREADS / 32)
#ifndef ONE_COPIES
#define ONE_COPIES                                                                                 \
    2 /* of every word: fewer blocks look at the same one; at most ONE_MOST_COPIES                 \
       */
#endif
#ifndef ONE_PAUSE
#define ONE_PAUSE 200 /* nanoseconds between two looks: 5 % faster than without */
#endif
#define ONE_SEGMENT 64 /* blocks of a long row that are copied together */
#define ONE_TAKEN 4    /* words that a thread looks at together */

#ifdef __CUDACC__
#define ONE_KERNEL extern "C" __global__ void __launch_bounds__(ONE_THREADS, 1)
#endif

/* ---- words ---------------------------------------------------------------------------------- */

STEP_FN uint64_t one_word(float v, uint32_t tag)
{
    return (uint64_t)tag << 32 | __float_as_uint(v);
}

/* A row's result: the sum times its matrix's factor, plus its bias. */
STEP_FN float one_finish(const struct one_mat *w, uint32_t row, float acc)
{
    if (w->plain)
        return acc;
    const uint32_t i = w->unit == 2 ? row & 1 : (uint32_t)(row >= w->from[0]) + (row >= w->from[1]);
    const float v = __fmul_rn(acc, i == 0 ? w->mul[0] : i == 1 ? w->mul[1] : w->mul[2]);
    return w->bias ? __fadd_rn(v, w->bias[row]) : v;
}

#if defined(STEP_EMULATED) || __CUDA_ARCH__ >= 900

STEP_FN uint64_t one_look(const uint64_t *at)
{
#ifdef STEP_EMULATED
    return *at;
#else
    uint64_t v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
    return v;
#endif
}

/* Writes all copies; n: words of one. */
STEP_FN void one_send(uint64_t *at, float v, uint32_t tag, uint32_t n)
{
    const uint64_t word = one_word(v, tag);
    STEP_UNROLL(2)
    for (uint32_t i = 0; i < ONE_COPIES; i++)
#ifdef STEP_EMULATED
        at[i * n] = word;
#else
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at + i * n), "l"(word) : "memory");
#endif
}

/* Waits for a word of this exchange. */
STEP_FN float one_take(const uint64_t *at, uint32_t tag)
{
    uint64_t w = one_look(at);
    STEP_ROLLED
    while ((uint32_t)(w >> 32) != tag) {
        step_pause();
#if ONE_PAUSE && !defined(STEP_EMULATED)
        __nanosleep(ONE_PAUSE);
#endif
        w = one_look(at);
    }
    return __uint_as_float((uint32_t)w);
}

/* The same for `wide` words, ONE_THREADS apart; those from number n on do not exist. */
STEP_FN void one_take_some(float *v, const uint64_t *at, uint32_t n, uint32_t tag,
                           const uint32_t wide)
{
    uint64_t w[ONE_TAKEN];
    STEP_UNROLL(4)
    for (uint32_t k = 0; k < wide; k++)
        w[k] = k * ONE_THREADS < n ? one_look(at + k * ONE_THREADS) : one_word(0.0f, tag);
    STEP_UNROLL(4)
    for (uint32_t k = 0; k < wide; k++)
        v[k] = (uint32_t)(w[k] >> 32) == tag ? __uint_as_float((uint32_t)w[k])
                                             : one_take(at + k * ONE_THREADS, tag);
}

/* ---- copies that tell when they are done ---------------------------------------------------- */

STEP_FN void one_ready_init(uint64_t *ready)
{
#ifdef STEP_EMULATED
    *ready = 0;
#else
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((uint32_t)__cvta_generic_to_shared(ready))
        : "memory");
#endif
}

/* By one thread: `ready` will change its parity when that many bytes are there. */
STEP_FN void one_expect(uint64_t *ready, uint32_t bytes)
{
#ifdef STEP_EMULATED
    (void)bytes;
    *ready += 1;
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(ready)),
                 "r"(bytes)
                 : "memory");
#endif
}

/* By one thread: starts copying bytes, a multiple of 16. */
STEP_FN void one_copy(void *to, const void *from, uint32_t bytes, uint64_t *ready)
{
#ifdef STEP_EMULATED
    (void)ready;
    memcpy(to, from, bytes);
#else
    const uint32_t bar = (uint32_t)__cvta_generic_to_shared(ready);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
#endif
}

/* Waits for the copy whose number has this parity. */
STEP_FN void one_ready(uint64_t *ready, uint32_t parity)
{
#ifdef STEP_EMULATED
    STEP_ROLLED
    while ((*ready & 1) == parity)
        step_pause();
#else
    uint32_t done = 0;
    STEP_ROLLED
    while (!done)
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"((uint32_t)__cvta_generic_to_shared(ready)), "r"(parity)
                     : "memory");
#endif
}

/* ---- what a block has ----------------------------------------------------------------------- */

/* A warp's stream of weights: what it copies next, and its ring. */
struct one_feed {
    uint32_t layer, phase, row, end; /* the next rows to copy */
    uint32_t seg;                    /* and which part of a long row */
    uint32_t last;                   /* layer after the last product */
    uint32_t ahead;                  /* chunks on their way or not computed yet */
    uint32_t to, from, parity;       /* stages: to copy into, to compute; parity of `from` */
    uint8_t *ring;
    uint64_t *ready;
};

struct one_block {
    const struct step_model *m;
    const struct one_model *o;
    const struct one_layer *layers;
    float *x, *norm;
    int8_t *xq; /* these three twice: a fast warp writes one while a slow one reads the other */
    float *scale;
    int32_t *sums;
    uint32_t turn; /* which of them the last input is in */
    uint32_t with_sums;
    float *rope, *head, *score, *weight;
    uint8_t *tiles;
    uint64_t *words, *sent; /* this block's copy; the first one */
    float2 *terms;
    uint32_t tag, pos; /* tag: of this layer's first exchange */
    uint32_t number;   /* of this warp in the grid */
    struct one_feed feed;
};

STEP_FN uint32_t one_first(const struct one_mat *w, uint32_t number)
{
    return (number * w->each + (number < w->more ? number : w->more)) * w->unit;
}

STEP_FN uint32_t one_rows(const struct one_mat *w, uint32_t number)
{
    return (w->each + (number < w->more)) * w->unit;
}

/* By one thread: whole rows, or the scales and quants of a part of one. */
STEP_FN void one_copy_chunk(const struct one_block *b, const struct one_mat *w, uint32_t n)
{
    const struct one_feed *f = &b->feed;
    uint8_t *to = f->ring + f->to * b->o->stage_bytes;
    uint64_t *ready = f->ready + f->to;
    const uint8_t *from = w->data + (uint64_t)f->row * w->row_bytes;
    if (w->segs == 1) {
        one_expect(ready, n * w->row_bytes);
        one_copy(to, from, n * w->row_bytes, ready);
        return;
    }
    const uint32_t first = f->seg * ONE_SEGMENT, left = w->n_blocks - first;
    const uint32_t blocks = left < ONE_SEGMENT ? left : ONE_SEGMENT;
    const uint32_t scales = (blocks * w->scale_bytes + 15) / 16 * 16, mins = w->mins ? scales : 0;
    const uint32_t quants = (blocks * w->quant_bytes + 15) / 16 * 16;
    one_expect(ready, scales + mins + quants);
    one_copy(to, from + first * w->scale_bytes, scales, ready);
    if (mins)
        one_copy(to + w->seg_mins, from + w->mins + first * w->scale_bytes, mins, ready);
    one_copy(to + w->seg_quants, from + w->quants + first * w->quant_bytes, quants, ready);
}

/* Starts copies until the ring is full or there is nothing left. */
STEP_FN void one_fill(struct one_block *b)
{
    struct one_feed *f = &b->feed;
    STEP_ROLLED
    while (f->ahead < b->o->stages && f->layer < f->last) {
        const struct one_mat *w = &b->layers[f->layer].mats[f->phase];
        if (f->row == f->end) { /* this product is done: the next one, if the warp has rows */
            if (f->layer < b->m->n_layers && ++f->phase < ONE_PHASES)
                w++;
            else {
                f->layer++;
                f->phase = 0;
                if (f->layer == f->last)
                    return;
                w = b->layers[f->layer].mats;
            }
            f->row = one_first(w, b->number);
            f->end = f->row + one_rows(w, b->number);
            continue;
        }
        const uint32_t left = f->end - f->row, n = left < w->chunk ? left : w->chunk;
        if ((threadIdx.x & 31) == 0)
            one_copy_chunk(b, w, n);
        if (w->segs == 1) {
            f->row += n;
        } else if (++f->seg == w->segs) {
            f->seg = 0;
            f->row++;
        }
        f->ahead++;
        f->to = f->to + 1 == b->o->stages ? 0 : f->to + 1;
    }
}

/* ---- inputs of products --------------------------------------------------------------------- */

/* Columns c + k * ONE_THREADS + lane, k < wide, become integers, as far as they are under n; the
 * blocks of a warp do not wait for each other. */
STEP_FN void one_round(const struct one_block *b, uint32_t c, uint32_t n, const float *v,
                       const uint32_t wide)
{
    const uint32_t lane = threadIdx.x & 31, at = b->turn * b->m->shared.ld + c;
    float amax[ONE_TAKEN], inv[ONE_TAKEN];
    int32_t q[ONE_TAKEN];
    STEP_UNROLL(4)
    for (uint32_t k = 0; k < wide; k++)
        amax[k] = step_absmax(v[k]);
    STEP_UNROLL(4)
    for (uint32_t k = 0; k < wide; k++) {
        inv[k] = amax[k] > 0.0f ? __fdiv_rn(127.0f, amax[k]) : 0.0f;
        if (!(inv[k] <= 3.0e38f)) /* amax is so small that 127/amax overflows, or it is NaN */
            inv[k] = 0.0f;
        q[k] = __float2int_rn(step_min(step_max(__fmul_rn(v[k], inv[k]), -127.0f), 127.0f));
        if (c + k * ONE_THREADS < n)
            b->xq[at + k * ONE_THREADS + lane] = (int8_t)q[k];
    }
    if (b->with_sums) {
        STEP_UNROLL(4)
        for (uint32_t k = 0; k < wide; k++) {
            int32_t s = q[k];
            for (int half = 8; half >= 1; half /= 2)
                s += __shfl_xor_sync(STEP_ALL, s, half);
            if ((lane & 15) == 0 && c + k * ONE_THREADS < n)
                b->sums[(at + k * ONE_THREADS + lane) / 16] = s;
        }
    }
    float scale = 0.0f; /* lane k has that of block k */
    STEP_UNROLL(4)
    for (uint32_t k = 0; k < wide; k++)
        if (lane == k)
            scale = inv[k] > 0.0f ? amax[k] : 0.0f;
    if (lane < wide && c + lane * ONE_THREADS < n)
        b->scale[(at + lane * ONE_THREADS) / 32] = __fdiv_rn(scale, 127.0f);
}

/* Columns from c0 on that other blocks sent. */
STEP_FN void one_input_part(const struct one_block *b, enum one_buffer from, uint32_t n,
                            uint32_t c0, const uint32_t wide)
{
    float v[ONE_TAKEN];
    const uint32_t c = c0 + threadIdx.x;
    if (c >= n)
        return;
    one_take_some(v, b->words + b->o->at[from] + c, n - c, b->tag + from, wide);
    one_round(b, c & ~31u, n, v, wide);
}

/* n columns that other blocks sent. */
STEP_FN void one_input(struct one_block *b, enum one_buffer from, uint32_t n)
{
    b->turn ^= 1;
    STEP_ROLLED
    for (uint32_t c = 0; c < n; c += ONE_TAKEN * ONE_THREADS) {
        if (n - c > 2 * ONE_THREADS)
            one_input_part(b, from, n, c, 4);
        else
            one_input_part(b, from, n, c, 2);
    }
    __syncthreads();
}

/* Starts reading the weights of the next norm. */
STEP_FN void one_norm_ahead(const struct one_block *b, const float *w)
{
    STEP_ROLLED
    for (uint32_t i = threadIdx.x * 4; i < b->m->dim; i += ONE_THREADS * 4)
        step_copy16(b->norm + i, w + i);
}

/* Adds columns from c0 on that other blocks sent to the residual stream. */
STEP_FN void one_join_part(const struct one_block *b, uint32_t from, uint32_t tag, uint32_t c0,
                           const uint32_t wide)
{
    float v[ONE_TAKEN];
    const uint32_t n = b->m->dim, c = c0 + threadIdx.x;
    if (c >= n)
        return;
    one_take_some(v, b->words + b->o->at[from] + c, n - c, tag, wide);
    STEP_UNROLL(4)
    for (uint32_t k = 0; k < wide; k++)
        if (k * ONE_THREADS < n - c)
            b->x[c + k * ONE_THREADS] = __fadd_rn(b->x[c + k * ONE_THREADS], v[k]);
}

/* Rounds columns from c0 on of the residual stream after its norm. */
STEP_FN void one_norm_part(const struct one_block *b, float f, uint32_t c0, const uint32_t wide)
{
    float v[ONE_TAKEN];
    const uint32_t n = b->m->dim, c = c0 + threadIdx.x;
    if (c >= n)
        return;
    STEP_UNROLL(4)
    for (uint32_t k = 0; k < wide; k++) {
        const uint32_t at = c + k * ONE_THREADS;
        v[k] = at < n ? __fmul_rn(__fmul_rn(b->x[at], f), b->norm[at]) : 0.0f;
    }
    one_round(b, c & ~31u, n, v, wide);
}

/* Adds what other blocks sent to the residual stream (from < ONE_BUFFERS), which after a norm
 * becomes the input of the next product. */
STEP_FN void one_norm_input(struct one_block *b, uint32_t from, uint32_t tag)
{
    const uint32_t n = b->m->dim;
    b->turn ^= 1;
    STEP_ROLLED
    for (uint32_t c = 0; from < ONE_BUFFERS && c < n; c += ONE_TAKEN * ONE_THREADS) {
        if (n - c > 2 * ONE_THREADS)
            one_join_part(b, from, tag, c, 4);
        else
            one_join_part(b, from, tag, c, 2);
    }
    step_copied();
    __syncthreads();
    const float f = step_norm_factor(b->x, n, b->m->norm_eps, 0).y; /* every warp for itself */
    STEP_ROLLED
    for (uint32_t c = 0; c < n; c += ONE_TAKEN * ONE_THREADS) {
        if (n - c > 2 * ONE_THREADS)
            one_norm_part(b, f, c, 4);
        else if (n - c > ONE_THREADS)
            one_norm_part(b, f, c, 2);
        else
            one_norm_part(b, f, c, 1);
    }
    __syncthreads();
}

/* ---- products ------------------------------------------------------------------------------- */

/* Half `half` of a block, j blocks into the input's memory. */
STEP_FN int32_t one_dot(const struct one_block *b, uint4 q, uint32_t j, uint32_t half)
{
    return step_dot16(q, *((const uint4 *)(const void *)b->xq + 2 * j + half));
}

/* The terms of block j of (a part of) a row in shared memory, which begins with block `first`. */
STEP_FN void one_block_terms(const struct one_block *b, const struct one_mat *w, const uint8_t *row,
                             uint32_t first, uint32_t j, float2 *to)
{
    const uint32_t in = b->turn * (b->m->shared.ld / 32) + first + j;
    const float sa = b->scale[in];
    const unsigned short *scales = (const unsigned short *)(const void *)row;
    if (w->fmt == STEP_Q8) {
        /* which half comes first depends on the lane, against bank conflicts */
        const uint32_t h = (threadIdx.x >> 2) & 1;
        const uint4 *q = (const uint4 *)(const void *)(row + w->seg_quants) + 2 * j;
        const int32_t s = one_dot(b, q[h], in, h) + one_dot(b, q[h ^ 1], in, h ^ 1);
        to[j] = step_pair((float)s, __fmul_rn(step_half(scales[j]), sa));
        return;
    }
    const uint32_t wide = w->fmt == STEP_Q6 ? 6 : w->fmt >= STEP_Q5 ? 5 : 4; /* words of a block */
    const uint32_t *at = (const uint32_t *)(const void *)(row + w->seg_quants) + wide * j;
    uint4 low, high, q;
    q.x = at[0];
    q.y = at[1];
    q.z = at[2];
    q.w = at[3];
    low = step_nibbles(q, 0);
    high = step_nibbles(q, 4);
    if (w->fmt >= STEP_Q5) {
        uint2 bits;
        bits.x = at[4];
        bits.y = w->fmt == STEP_Q6 ? at[5] : 0;
        low = step_high(w->fmt, low, bits, 0);
        high = step_high(w->fmt, high, bits, 1);
    }
    const int32_t s0 = one_dot(b, low, in, 0), s1 = one_dot(b, high, in, 1);
    const int32_t a0 = b->sums[2 * in], a1 = b->sums[2 * in + 1];
    if (w->fmt == STEP_Q6) {
        to[2 * j] = step_pair((float)(s0 - 32 * a0), __fmul_rn(step_half(scales[2 * j]), sa));
        to[2 * j + 1] =
            step_pair((float)(s1 - 32 * a1), __fmul_rn(step_half(scales[2 * j + 1]), sa));
        return;
    }
    const float k = __fmul_rn(step_half(scales[j]), sa);
    if (step_has_min(w->fmt)) {
        const unsigned short *mins = (const unsigned short *)(const void *)(row + w->seg_mins);
        to[2 * j] = step_pair((float)(s0 + s1), k);
        to[2 * j + 1] = step_pair(step_half(mins[j]), __fmul_rn(sa, (float)(a0 + a1)));
    } else {
        to[j] = step_pair((float)(s0 + s1 - (w->fmt == STEP_Q4 ? 8 : 16) * (a0 + a1)), k);
    }
}

/* Results of rows row + lane, lane < n: to the words `to`, or to logits. */
STEP_FN void one_emit(const struct one_block *b, const struct one_mat *w, uint32_t row, uint32_t n,
                      float acc, uint32_t to, float *logits)
{
    const uint32_t lane = threadIdx.x & 31;
    float v = lane < n ? one_finish(w, row + lane, acc) : 0.0f;
    if (w->unit == 2) { /* gate and up */
        const float up = __shfl_xor_sync(STEP_ALL, v, 1);
        v = __fmul_rn(b->m->gelu ? step_gelu(v) : step_gate(v, v), up);
        if (lane < n && (lane & 1) == 0)
            one_send(b->sent + b->o->at[to] + (row + lane) / 2, v, b->tag + to, b->o->n_words);
    } else if (lane < n) {
        if (logits)
            logits[row + lane] = v;
        else
            one_send(b->sent + b->o->at[to] + row + lane, v, b->tag + to, b->o->n_words);
    }
}

/* fmt: of the matrix, if it is known when this is compiled. */
STEP_FN void one_product(struct one_block *b, const struct one_mat *mat, const uint32_t fmt,
                         uint32_t to, float *logits)
{
    struct one_mat copy = *mat; /* in registers: the rest of the memory may change */
    if (fmt)
        copy.fmt = fmt;
    const struct one_mat *w = &copy;
    const uint32_t lane = threadIdx.x & 31, segs = w->segs, each = w->each_terms;
    uint32_t row = one_first(w, b->number), seg = 0;
    const uint32_t end = row + one_rows(w, b->number);
    struct one_feed *f = &b->feed;
    float acc = 0.0f;
    STEP_ROLLED
    while (row < end) {
        const uint32_t n = end - row < w->chunk ? end - row : w->chunk, first = seg * ONE_SEGMENT;
        const uint32_t left = w->n_blocks - first;
        const uint32_t blocks = segs > 1 && left > ONE_SEGMENT ? ONE_SEGMENT : left;
        const uint32_t stride = (blocks * each) | 1;
        const uint8_t *chunk = f->ring + f->from * b->o->stage_bytes;
        one_ready(f->ready + f->from, f->parity);
        STEP_ROLLED
        for (uint32_t i = lane; i < n * blocks; i += 32) {
            const uint32_t k = n == 1 ? 0 : blocks == 1 ? i : __umulhi(i, w->magic);
            one_block_terms(b, w, chunk + k * w->row_bytes, first, i - k * blocks,
                            b->terms + k * stride);
        }
        __syncwarp();
        if (lane < n)
            acc = step_chain(b->terms + lane * stride, blocks * each, acc);
        if (++seg == segs) {
            one_emit(b, w, row, n, acc, to, logits);
            acc = 0.0f;
            seg = 0;
            row += n;
        }
        f->ahead--;
        if (++f->from == b->o->stages) {
            f->from = 0;
            f->parity ^= 1;
        }
        __syncwarp(); /* all have read the chunk and the terms */
        one_fill(b);
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

/* A block has one head at a time.  Keys and values of earlier tokens come through shared memory as
 * tiles, the half of a page each: first the keys of all pages, then the values.  Tile i is at place
 * i % n_tiles, a power of two; as many as fit are copied before the query is there. */
struct one_head {
    uint32_t head, kv_head, n_pages, tile_bytes;
    const uint8_t *kv;
    const uint32_t *pages;
};

STEP_FN void one_tile(const struct one_block *b, const struct one_head *h, uint32_t first,
                      uint32_t end)
{
    const uint32_t lane = threadIdx.x & 31;
    STEP_ROLLED
    for (uint32_t tile = first + threadIdx.x / 32; tile < end;
         tile += ONE_WARPS) { /* a warp each */
        const uint32_t values = tile >= h->n_pages;
        const uint32_t page = h->pages[values ? tile - h->n_pages : tile];
        const uint8_t *from = h->kv + (uint64_t)page * b->m->kv_page_bytes + values * h->tile_bytes;
        uint8_t *to = b->tiles + (tile & (b->o->n_tiles - 1)) * h->tile_bytes;
        STEP_ROLLED
        for (uint32_t i = lane * 16; i < h->tile_bytes; i += 512)
            step_copy16(to + i, from + i);
    }
}

/* Query, key and value of a head, a warp each: to shared memory; key and value as halves behind
 * them, and into the page by the first head of a group. */
STEP_FN void one_own(const struct one_block *b, const struct one_layer *l, const struct one_head *h)
{
    const struct step_model *m = b->m;
    const uint32_t which = threadIdx.x / 32, lane = threadIdx.x & 31, hd = m->head_dim;
    if (which > 2)
        return;
    const uint32_t heads = which == 0   ? h->head
                           : which == 1 ? m->n_heads + h->kv_head
                                        : m->n_heads + m->n_kv_heads + h->kv_head;
    float *x = b->head + which * hd;
    STEP_ROLLED
    for (uint32_t i = lane; i < hd; i += 32)
        x[i] = one_take(b->words + b->o->at[ONE_TO_ATTENTION] + heads * hd + i,
                        b->tag + ONE_TO_ATTENTION);
    __syncwarp();
    if (which < 2)
        step_prepare_head(m, b->rope, x, which ? l->k_norm : l->q_norm);
    if (which == 0)
        return;
    unsigned short *half = (unsigned short *)(b->head + 3 * hd) + (which - 1) * hd;
    unsigned short *page =
        (unsigned short *)(h->kv + (uint64_t)h->pages[b->pos / 16] * m->kv_page_bytes);
    const uint32_t at = b->pos % 16;
    STEP_ROLLED
    for (uint32_t i = lane; i < hd; i += 32) {
        const unsigned short v = __half_as_ushort(__float2half_rn(x[i]));
        half[i] = v;
        if (h->head % (m->n_heads / m->n_kv_heads) == 0)
            page[which == 1 ? i * 16 + at : 16 * hd + at * hd + i] = v;
    }
}

/* The score of one key; dims in ascending order, `step` apart. */
STEP_FN float one_score(const float *q, const unsigned short *k, uint32_t step, uint32_t hd)
{
    float s = 0.0f;
    STEP_UNROLL_TWO
    for (uint32_t d = 0; d < hd; d += 8) {
        const float4 q0 = *(const float4 *)(const void *)(q + d);
        const float4 q1 = *(const float4 *)(const void *)(q + d + 4);
        float kv[8];
        STEP_UNROLL(8)
        for (uint32_t u = 0; u < 8; u++)
            kv[u] = step_half(k[(d + u) * step]);
        s = __fmaf_rn(q0.x, kv[0], s);
        s = __fmaf_rn(q0.y, kv[1], s);
        s = __fmaf_rn(q0.z, kv[2], s);
        s = __fmaf_rn(q0.w, kv[3], s);
        s = __fmaf_rn(q1.x, kv[4], s);
        s = __fmaf_rn(q1.y, kv[5], s);
        s = __fmaf_rn(q1.z, kv[6], s);
        s = __fmaf_rn(q1.w, kv[7], s);
    }
    return s;
}

/* Column d of the values of 16 keys, added in order. */
STEP_FN float one_values(const unsigned short *v, const float *s, uint32_t n, uint32_t hd, float o)
{
    float w[16], k[16];
    STEP_UNROLL(16)
    for (uint32_t i = 0; i < 16; i++) {
        w[i] = s[i];
        k[i] = step_half(v[i * hd]);
    }
    STEP_UNROLL(16)
    for (uint32_t i = 0; i < 16; i++)
        if (i < n)
            o = __fmaf_rn(w[i], k[i], o);
    return o;
}

/* Tiles [first, end) are there; their places are free again after the next call. */
STEP_FN uint32_t one_tiles_here(const struct one_block *b, const struct one_head *h, uint32_t first,
                                uint32_t end, uint32_t copied)
{
    const uint32_t all = 2 * h->n_pages, room = first + b->o->n_tiles;
    step_copied();
    __syncthreads(); /* copies are there, and nobody reads tiles before `first` any more */
    const uint32_t to = room < all ? room : all;
    (void)end;
    if (copied < to)
        one_tile(b, h, copied, to);
    return copied < to ? to : copied;
}

STEP_FN void one_head_attends(const struct one_block *b, const struct one_layer *l,
                              const struct one_head *h, uint32_t copied)
{
    const struct step_model *m = b->m;
    const uint32_t hd = m->head_dim, pos = b->pos, lane = threadIdx.x & 31,
                   some = b->o->n_tiles / 2;
    const unsigned short *own = (const unsigned short *)(b->head + 3 * hd);
    one_own(b, l, h);
    STEP_ROLLED
    for (uint32_t p = 0; p < h->n_pages; p += some) { /* keys */
        const uint32_t end = p + some < h->n_pages ? p + some : h->n_pages;
        copied = one_tiles_here(b, h, p, end, copied);
        STEP_ROLLED
        for (uint32_t t = p * 16 + threadIdx.x; t < end * 16 && t <= pos; t += ONE_THREADS) {
            const uint8_t *tile = b->tiles + (t / 16 & (b->o->n_tiles - 1)) * h->tile_bytes;
            const uint32_t mine = t == pos;
            const float s = one_score(b->head, mine ? own : (const unsigned short *)tile + t % 16,
                                      mine ? 1 : 16, hd);
            b->score[t] = __fmul_rn(s, m->attn_scale);
        }
    }
    __syncthreads();
    float max = b->score[0];
    STEP_ROLLED
    for (uint32_t t = lane; t <= pos; t += 32)
        max = step_max(max, b->score[t]);
    max = step_warp_max(max);
    STEP_ROLLED
    for (uint32_t t = threadIdx.x; t <= pos; t += ONE_THREADS)
        b->weight[t] = step_exp(__fsub_rn(b->score[t], max));
    __syncthreads();
    float o = 0.0f;
    float *inv = b->head + 4 * hd;
    if (threadIdx.x / 32 == ONE_WARPS - 1) { /* meanwhile: key t is added to partial sum t % 16 */
        float sum = 0.0f;
        STEP_ROLLED
        for (uint32_t t = lane & 15; t <= pos; t += 16)
            sum = __fadd_rn(sum, b->weight[t]);
        sum = step_sum16(sum);
        if (lane == 0)
            *inv = __fdiv_rn(1.0f, sum);
    }
    STEP_ROLLED
    for (uint32_t p = 0; p < h->n_pages; p += some) { /* values */
        const uint32_t end = p + some < h->n_pages ? p + some : h->n_pages;
        copied = one_tiles_here(b, h, h->n_pages + p, h->n_pages + end, copied);
        STEP_ROLLED
        for (uint32_t k = p; threadIdx.x < hd && k < end; k++) {
            const uint8_t *tile =
                b->tiles + ((h->n_pages + k) & (b->o->n_tiles - 1)) * h->tile_bytes;
            const uint32_t left = pos - k * 16;
            o = one_values((const unsigned short *)tile + threadIdx.x, b->weight + k * 16,
                           left < 16 ? left : 16, hd, o);
        }
    }
    if (threadIdx.x < hd) {
        o = __fmaf_rn(b->weight[pos], step_half(own[hd + threadIdx.x]), o);
        one_send(b->sent + b->o->at[ONE_TO_OUT] + h->head * hd + threadIdx.x, __fmul_rn(o, *inv),
                 b->tag + ONE_TO_OUT, b->o->n_words);
    }
    __syncthreads();
}

STEP_FN void one_attend(const struct one_block *b, const struct one_layer *l, uint32_t layer,
                        const uint32_t *pages)
{
    const struct step_model *m = b->m;
    STEP_ROLLED
    for (uint32_t i = blockIdx.x; i < m->n_heads; i += gridDim.x) {
        struct one_head h;
        h.head = i;
        h.kv_head = i / (m->n_heads / m->n_kv_heads);
        h.n_pages = b->pos / 16 + 1;
        h.tile_bytes = 32 * m->head_dim;
        h.kv = m->kv + ((uint64_t)layer * m->n_kv_heads + h.kv_head) * m->kv_head_bytes;
        h.pages = pages;
        const uint32_t fit = b->o->n_tiles < 2 * h.n_pages ? b->o->n_tiles : 2 * h.n_pages;
        one_tile(b, &h, 0, fit);
        one_head_attends(b, l, &h, fit);
    }
}

/* ---- the step ------------------------------------------------------------------------------- */

STEP_FN void one_begin(struct one_block *b, const struct step_model *m, const struct one_model *o,
                       const struct step_pass *p, unsigned char *memory)
{
    const struct one_shared *s = &o->shared;
    const uint32_t warp = threadIdx.x / 32, n = (m->n_layers + 1) * (uint32_t)sizeof(*o->layers);
    const struct step_token *token = p->tokens;
    b->m = m;
    b->o = o;
    b->layers = (const struct one_layer *)(memory + s->layers);
    b->x = (float *)(memory + s->x);
    b->norm = (float *)(memory + s->norm);
    b->xq = (int8_t *)(memory + s->xq);
    b->scale = (float *)(memory + s->scale);
    b->sums = (int32_t *)(memory + s->sums);
    b->rope = (float *)(memory + s->rope);
    b->head = (float *)(memory + s->head);
    b->score = (float *)(memory + s->score);
    b->weight = (float *)(memory + s->weight);
    b->tiles = memory + s->tiles;
    b->sent = o->words;
    b->words = o->words + blockIdx.x % ONE_COPIES * o->n_words;
    b->terms = (float2 *)(memory + s->terms + warp * o->term_bytes);
    b->pos = token->pos;
    b->turn = 0;
    b->number = warp * gridDim.x + blockIdx.x;
    STEP_ROLLED
    for (uint32_t i = threadIdx.x; i < n / 16; i += ONE_THREADS)
        step_copy16((uint4 *)(memory + s->layers) + i, (const uint4 *)o->layers + i);
    STEP_ROLLED
    for (uint32_t i = threadIdx.x; i < m->dim; i += ONE_THREADS)
        b->x[i] = p->embedded[i];
    STEP_ROLLED
    for (uint32_t i = threadIdx.x; i < 2 * m->rope_dim; i += ONE_THREADS)
        b->rope[i] = m->rope[0][(uint64_t)b->pos * 2 * m->rope_dim + i];
    uint64_t *ready = (uint64_t *)(memory + s->ready);
    if (threadIdx.x < ONE_WARPS * o->stages)
        one_ready_init(ready + threadIdx.x);
    step_copied();
#ifndef STEP_EMULATED
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    struct one_feed *f = &b->feed;
    f->layer = f->phase = f->seg = f->ahead = f->to = f->from = f->parity = 0;
    f->last = m->n_layers + (token->logit_row != STEP_NO_ROW);
    f->row = one_first(b->layers[0].mats, b->number);
    f->end = f->row + one_rows(b->layers[0].mats, b->number);
    f->ring = memory + s->ring + warp * o->stages * o->stage_bytes;
    f->ready = ready + warp * o->stages;
    one_fill(b);
}

#define ONE_LAP(i) STEP_LAP(blockIdx.x == 0 ? (i) : 16 + (i))
#ifdef STEP_PROFILE
#undef STEP_LAP
#define STEP_LAP(i)                                                                                \
    do {                                                                                           \
        const long long step_now = clock64();                                                      \
        if (threadIdx.x == 0 && (blockIdx.x == 0 || blockIdx.x + 1 == gridDim.x))                  \
            ((long long *)m->scores)[i] += step_now - step_from;                                   \
        step_from = clock64();                                                                     \
    } while (0)
#endif

/* fmt: of all matrices, or 0: any. */
STEP_FN void one_step(const struct step_model *m, const struct one_model *o,
                      const struct step_pass *p, uint32_t tag, const uint32_t fmt)
{
#ifdef STEP_EMULATED
    unsigned char *memory = step_emulated_shared();
#else
    unsigned char *memory = step_shared_memory;
#endif
    struct one_block b;
    STEP_CLOCK
    b.tag = tag;
    b.with_sums = fmt == STEP_Q8 ? 0 : o->sums;
    one_begin(&b, m, o, p, memory);
    one_norm_ahead(&b, b.layers[0].attn_norm);
    ONE_LAP(0);
    const uint32_t row = p->tokens->logit_row;
    /* one place for each operation: a layer's code has to fit into the instruction cache */
    STEP_ROLLED
    for (uint32_t layer = 0, phase = ONE_QKV; layer < b.feed.last;) {
        const struct one_layer *l = &b.layers[layer];
        const uint32_t is_norm = phase == ONE_QKV || phase == ONE_FFN;
        if (is_norm) {
            one_norm_input(&b,
                           phase == ONE_FFN ? ONE_TO_FFN
                           : layer          ? ONE_TO_QKV
                                            : ONE_BUFFERS,
                           phase == ONE_FFN ? b.tag + ONE_TO_FFN
                                            : b.tag - ONE_BUFFERS + ONE_TO_QKV);
            if (layer < m->n_layers)
                one_norm_ahead(&b, phase == ONE_QKV          ? l->ffn_norm
                                   : layer + 1 < m->n_layers ? l[1].attn_norm
                                                             : m->final_norm_w);
        } else {
            one_input(&b, phase == ONE_OUT ? ONE_TO_OUT : ONE_TO_DOWN,
                      phase == ONE_OUT ? m->n_heads * m->head_dim : m->ffn_dim);
        }
        ONE_LAP(1 + 2 * phase);
        one_product(&b, &l->mats[phase], fmt,
                    phase == ONE_QKV   ? ONE_TO_ATTENTION
                    : phase == ONE_OUT ? ONE_TO_FFN
                    : phase == ONE_FFN ? ONE_TO_DOWN
                                       : ONE_TO_QKV,
                    layer < m->n_layers ? (float *)0 : p->logits + (uint64_t)row * m->n_vocab);
        ONE_LAP(layer < m->n_layers ? 2 + 2 * phase : 10);
        if (phase == ONE_QKV && layer < m->n_layers)
            one_attend(&b, l, layer, p->pages + p->tokens->pages_at);
        ONE_LAP(9);
        if (++phase == ONE_PHASES || layer == m->n_layers) {
            phase = ONE_QKV;
            layer++;
            b.tag += ONE_BUFFERS;
        }
    }
    step_copied();
}

/* tag: of the first exchange; every step has others. */
ONE_KERNEL shoal_one(STEP_PARAM struct step_model m, STEP_PARAM struct one_model o,
                     STEP_PARAM struct step_pass p, STEP_PARAM uint32_t tag)
{
    one_step(&m, &o, &p, tag, 0);
}

/* The same for matrices of 8 bits: less code. */
ONE_KERNEL shoal_one_q8(STEP_PARAM struct step_model m, STEP_PARAM struct one_model o,
                        STEP_PARAM struct step_pass p, STEP_PARAM uint32_t tag)
{
    one_step(&m, &o, &p, tag, STEP_Q8);
}

#endif
