/* step_emulator.h - compiles engine/cuda/step.cu with the C compiler and runs it here: every thread
 * of every block is a fiber, barriers and shuffles switch between them.
 *
 * Include it in one file of a test.  It finds wrong sums, wrong indices and missing threads at a
 * barrier; it cannot find races that need real parallelism, which is what compute-sanitizer is for
 * (make test-cuda). */
#ifndef SHOAL_TESTS_STEP_EMULATOR_H
#define SHOAL_TESTS_STEP_EMULATOR_H

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "kernels/quants/quant.h"

/* The sanitizers do not follow a program that switches stacks: tests skip then. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEP_EMULATOR_RUNS 0
#else
#define STEP_EMULATOR_RUNS 1
#endif

#ifndef STEP_THREADS
#define STEP_THREADS 96 /* as on the GPU, no power of two */
#endif
#define STEP_PIECES (8 * STEP_THREADS)
#define STEP_EMULATED 1
#define STEP_FN static inline __attribute__((unused))
#define STEP_KERNEL static void
#define ONE_KERNEL static void
#define ONE_THREADS STEP_THREADS
#define MANY_KERNEL(threads) static void
#define MANY_THREADS STEP_THREADS
#define MANY_WIDE_WARPS (STEP_THREADS / 32)
#define MANY_THIN_WARPS (STEP_THREADS / 32)
#define STEP_PARAM const
#define STEP_UNROLL(n)
#define STEP_ROLLED
#define STEP_UNROLL_TWO

typedef struct {
    float x, y;
} float2;
typedef struct {
    float x, y, z, w;
} float4;
typedef struct {
    uint32_t x, y;
} uint2;
typedef struct {
    uint32_t x, y, z, w;
} uint4;
struct step_emulated_index {
    uint32_t x;
};

/* ---- fibers ---- */

enum { STEP_EMULATED_STACK = 128 << 10, STEP_EMULATED_WARPS = 64, STEP_EMULATED_BLOCKS = 512 };

struct step_meeting { /* of some fibers */
    uint32_t n, come, times;
};

struct step_fiber {
    jmp_buf at;
    ucontext_t start;
    void *stack;
    uint32_t block, thread, started, done;
    struct step_meeting *waits;
    uint32_t waits_for;
};

static struct {
    struct step_fiber *fibers;
    uint32_t n, now;
    uint64_t pauses;
    struct step_meeting grid, *blocks, *warps; /* warps: [block][warp] */
    uint32_t *lanes;                           /* [block][thread]: values of a shuffle */
    unsigned char **shared;
    jmp_buf back;
    ucontext_t home;
    void (*run)(void *ctx);
    void *ctx;
} step_emulated;

static struct step_emulated_index threadIdx, blockIdx, gridDim;

static inline void step_emulated_yield(void)
{
    struct step_fiber *f = &step_emulated.fibers[step_emulated.now];
    if (_setjmp(f->at) == 0)
        _longjmp(step_emulated.back, 1);
}

/* Lets the others run; too often without any end is a wait for something that nobody does. */
static inline void step_emulated_pause(void)
{
    if (++step_emulated.pauses > 50u * 1000 * 1000)
        abort();
    step_emulated_yield();
}

static inline void step_emulated_meet(struct step_meeting *m)
{
    struct step_fiber *f = &step_emulated.fibers[step_emulated.now];
    if (++m->come == m->n) {
        m->come = 0;
        m->times++;
        return;
    }
    f->waits = m;
    f->waits_for = m->times + 1;
    step_emulated_yield();
}

static void step_emulated_begin(void)
{
    step_emulated.run(step_emulated.ctx);
    step_emulated.fibers[step_emulated.now].done = 1;
    _longjmp(step_emulated.back, 1);
}

/* Runs the fiber until it waits or ends. */
static inline void step_emulated_resume(struct step_fiber *f)
{
    threadIdx.x = f->thread;
    blockIdx.x = f->block;
    if (_setjmp(step_emulated.back) != 0)
        return;
    if (f->started)
        _longjmp(f->at, 1);
    f->started = 1;
    setcontext(&f->start);
}

/* Runs `run` as n_blocks blocks; false: the threads wait for each other forever. */
static inline int step_emulate(uint32_t n_blocks, size_t shared_bytes, void (*run)(void *ctx),
                               void *ctx)
{
    const uint32_t n = n_blocks * STEP_THREADS, warps = STEP_THREADS / 32;
    int ok = 1;
    step_emulated.fibers = calloc(n, sizeof(*step_emulated.fibers));
    step_emulated.blocks = calloc(n_blocks, sizeof(struct step_meeting));
    step_emulated.warps = calloc((size_t)n_blocks * warps, sizeof(struct step_meeting));
    step_emulated.lanes = calloc(n, sizeof(uint32_t));
    step_emulated.shared = calloc(n_blocks, sizeof(void *));
    step_emulated.grid = (struct step_meeting){.n = n};
    step_emulated.n = n;
    step_emulated.pauses = 0;
    step_emulated.run = run;
    step_emulated.ctx = ctx;
    gridDim.x = n_blocks;
    for (uint32_t b = 0; b < n_blocks; b++) {
        step_emulated.shared[b] = aligned_alloc(128, (shared_bytes + 127) / 128 * 128);
        memset(step_emulated.shared[b], 0xee, shared_bytes);
        step_emulated.blocks[b].n = STEP_THREADS;
    }
    for (uint32_t w = 0; w < n_blocks * warps; w++)
        step_emulated.warps[w].n = 32;
    for (volatile uint32_t i = 0; i < n;
         i++) { /* getcontext returns twice, for all a compiler knows */
        struct step_fiber *f = &step_emulated.fibers[i];
        f->block = i / STEP_THREADS;
        f->thread = i % STEP_THREADS;
        f->stack = malloc(STEP_EMULATED_STACK);
        getcontext(&f->start);
        f->start.uc_stack.ss_sp = f->stack;
        f->start.uc_stack.ss_size = STEP_EMULATED_STACK;
        f->start.uc_link = &step_emulated.home;
        makecontext(&f->start, step_emulated_begin, 0);
    }
    for (uint32_t left = n; left > 0;) {
        uint32_t moved = 0;
        for (uint32_t i = 0; i < n; i++) {
            struct step_fiber *f = &step_emulated.fibers[i];
            if (f->done || (f->waits && f->waits->times < f->waits_for))
                continue;
            f->waits = NULL;
            step_emulated.now = i;
            step_emulated_resume(f);
            left -= step_emulated.fibers[i].done;
            moved++;
        }
        if (moved == 0) {
            ok = 0;
            break;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        free(step_emulated.fibers[i].stack);
    for (uint32_t b = 0; b < n_blocks; b++)
        free(step_emulated.shared[b]);
    free(step_emulated.fibers);
    free(step_emulated.blocks);
    free(step_emulated.warps);
    free(step_emulated.lanes);
    free(step_emulated.shared);
    return ok;
}

/* ---- what the kernel calls ---- */

static inline unsigned char *step_emulated_shared(void)
{
    return step_emulated.shared[blockIdx.x];
}

/* The same place in the shared memory of another block. */
static inline float *step_emulated_remote(float *at, uint32_t block)
{
    return (float *)(step_emulated.shared[block] +
                     ((unsigned char *)at - step_emulated.shared[blockIdx.x]));
}

static inline void step_emulated_barrier(void)
{
    step_emulated_meet(&step_emulated.grid);
}

static inline void __syncthreads(void)
{
    step_emulated_meet(&step_emulated.blocks[blockIdx.x]);
}

static inline void __syncwarp(void)
{
    step_emulated_meet(&step_emulated.warps[blockIdx.x * (STEP_THREADS / 32) + threadIdx.x / 32]);
}

static inline uint32_t step_emulated_swap(uint32_t v, int with)
{
    uint32_t *lanes = step_emulated.lanes + blockIdx.x * STEP_THREADS;
    lanes[threadIdx.x] = v;
    __syncwarp();
    v = lanes[threadIdx.x ^ (uint32_t)with];
    __syncwarp();
    return v;
}

static inline float step_emulated_swap_float(float v, int with)
{
    uint32_t u;
    memcpy(&u, &v, 4);
    u = step_emulated_swap(u, with);
    memcpy(&v, &u, 4);
    return v;
}

static inline int32_t step_emulated_swap_int(int32_t v, int with)
{
    return (int32_t)step_emulated_swap((uint32_t)v, with);
}

/* m16n8k32 of the tensor cores, see many_mma. */
static inline void step_emulated_mma(int32_t *d, const uint32_t *a, const uint32_t *b, int32_t c)
{
    static uint32_t all[STEP_EMULATED_BLOCKS][STEP_THREADS][6];
    uint32_t(*warp)[6] = all[blockIdx.x % STEP_EMULATED_BLOCKS] + threadIdx.x / 32 * 32;
    const uint32_t lane = threadIdx.x & 31;
    memcpy(warp[lane], a, 4 * sizeof(*a));
    memcpy(warp[lane] + 4, b, 2 * sizeof(*b));
    __syncwarp();
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t row = lane / 4, token = lane % 4 * 2 + i % 2;
        d[i] = c;
        for (uint32_t k = 0; k < 32; k++) {
            const uint32_t w = warp[row * 4 + k % 16 / 4][i / 2 + k / 16 * 2];
            const uint32_t x = warp[token * 4 + k % 16 / 4][4 + k / 16];
            d[i] += (int8_t)(w >> (k % 4 * 8)) * (int8_t)(x >> (k % 4 * 8));
        }
    }
    __syncwarp();
}

#define __shfl_xor_sync(mask, v, with)                                                             \
    _Generic((v), float : step_emulated_swap_float, int32_t : step_emulated_swap_int)(v, with)
#define __ldg(p) (*(p))
#define __ldcg(p) (*(p))
#define __fmul_rn(a, b) ((a) * (b))
#define __fadd_rn(a, b) ((a) + (b))
#define __fsub_rn(a, b) ((a) - (b))
#define __fdiv_rn(a, b) ((a) / (b))
#define __fsqrt_rn(a) sqrtf(a)
#define __fmaf_rn(a, b, c) fmaf(a, b, c)
#define __float2int_rn(a) ((int32_t)lrintf(a))
#define __half2float(h) quant_f16_to_f32(h)
#define __ushort_as_half(u) (u)
#define __float2half_rn(f) quant_f32_to_f16(f)
#define __half_as_ushort(h) (h)

static inline uint4 step_stream16(const void *p)
{
    uint4 v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline float __uint_as_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t __float_as_uint(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline uint32_t __umulhi(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

static inline int32_t __dp4a(int32_t a, int32_t b, int32_t c)
{
    for (int i = 0; i < 32; i += 8)
        c += (int8_t)((uint32_t)a >> i) * (int8_t)((uint32_t)b >> i);
    return c;
}

#include "engine/cuda/kernels.cu"

#endif
