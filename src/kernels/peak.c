/* peak.c - see peak.h.  Compiled for the baseline machine: the instructions are inline assembly,
 * and only the loop of a set that the dispatcher found usable is run. */
#include "kernels/peak.h"

#include <string.h>

#include "kernels/tiles.h"

#define ROUNDS 20000u

#if defined(__x86_64__)
/* Twelve independent chains hide the latency of all these instructions. */
#define TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define CLOBBERS                                                                                   \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc"

static uint64_t run_avx512(void)
{
    uint32_t n = ROUNDS;
#define STEP(i) "vpdpbusd %%zmm15, %%zmm14, %%zmm" #i "\n\t"
    __asm__ volatile("vpxorq %%zmm14, %%zmm14, %%zmm14\n\tvpxorq %%zmm15, %%zmm15, %%zmm15\n\t"
                     "1:\n\t" TWELVE(STEP) "decl %0\n\tjnz 1b\n\tvzeroupper"
                     : "+r"(n)
                     :
                     : CLOBBERS);
#undef STEP
    return (uint64_t)ROUNDS * 12 * 128;
}

static uint64_t run_avxvnni(void)
{
    uint32_t n = ROUNDS;
#define STEP(i) "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" #i "\n\t"
    __asm__ volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n\tvpxor %%ymm15, %%ymm15, %%ymm15\n\t"
                     "1:\n\t" TWELVE(STEP) "decl %0\n\tjnz 1b\n\tvzeroupper"
                     : "+r"(n)
                     :
                     : CLOBBERS);
#undef STEP
    return (uint64_t)ROUNDS * 12 * 64;
}

static uint64_t run_avx2(void)
{
    uint32_t n = ROUNDS;
    /* bytes to words, words to sums: three instructions for 32 multiply-adds */
#define STEP(i)                                                                                    \
    "vpmaddubsw %%ymm15, %%ymm14, %%ymm12\n\tvpmaddwd %%ymm13, %%ymm12, %%ymm12\n\t"               \
    "vpaddd %%ymm12, %%ymm" #i ", %%ymm" #i "\n\t"
    __asm__ volatile("vpxor %%ymm13, %%ymm13, %%ymm13\n\tvpxor %%ymm14, %%ymm14, %%ymm14\n\t"
                     "vpxor %%ymm15, %%ymm15, %%ymm15\n\t"
                     "1:\n\t" TWELVE(STEP) "decl %0\n\tjnz 1b\n\tvzeroupper"
                     : "+r"(n)
                     :
                     : CLOBBERS);
#undef STEP
    return (uint64_t)ROUNDS * 12 * 64;
}

static const struct {
    const char *name;
    uint64_t (*run)(void);
} loops[] = {
    /* The tile unit itself is far faster, but its results must be scaled in the vector units. */
    {"avx512-amx", run_avx512},
    {"avx512-vnni", run_avx512},
    {"avx-vnni", run_avxvnni},
    {"avx2", run_avx2}};
#define N_LOOPS (sizeof(loops) / sizeof(loops[0]))

#elif defined(__aarch64__)
/* Sixteen independent chains fill four pipes of four cycles' latency.  Instructions are given as
 * numbers because the assembler rejects mnemonics above its baseline. */
#define SIXTEEN(X)                                                                                 \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define CLOBBERS                                                                                   \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21",      \
        "v22", "v23", "v24", "v25", "v26", "v30", "v31", "cc"

static uint64_t run_dotprod(void)
{
    uint32_t n = ROUNDS;
#define STEP(i) ".inst 0x4e9f97c0 + " #i "\n\t" /* sdot v<i>.4s, v30.16b, v31.16b */
    __asm__ volatile("movi v30.16b, #0\n\tmovi v31.16b, #0\n\t"
                     "1:\n\t" SIXTEEN(STEP) "subs %w0, %w0, #1\n\tb.ne 1b"
                     : "+r"(n)
                     :
                     : CLOBBERS);
#undef STEP
    return (uint64_t)ROUNDS * 16 * 32;
}

static uint64_t run_i8mm(void)
{
    uint32_t n = ROUNDS;
#define STEP(i) ".inst 0x4e9fa7c0 + " #i "\n\t" /* smmla v<i>.4s, v30.16b, v31.16b */
    __asm__ volatile("movi v30.16b, #0\n\tmovi v31.16b, #0\n\t"
                     "1:\n\t" SIXTEEN(STEP) "subs %w0, %w0, #1\n\tb.ne 1b"
                     : "+r"(n)
                     :
                     : CLOBBERS);
#undef STEP
    return (uint64_t)ROUNDS * 16 * 64;
}

static uint64_t run_neon(void)
{
    uint32_t n = ROUNDS;
    /* 16 products into words, added in pairs: three instructions for 16 multiply-adds */
#define STEP(i)                                                                                    \
    "smull v24.8h, v30.8b, v31.8b\n\tsmlal2 v24.8h, v30.16b, v31.16b\n\t"                          \
    "sadalp v" #i ".4s, v24.8h\n\t"
    __asm__ volatile("movi v30.16b, #0\n\tmovi v31.16b, #0\n\t"
                     "1:\n\t" SIXTEEN(STEP) "subs %w0, %w0, #1\n\tb.ne 1b"
                     : "+r"(n)
                     :
                     : CLOBBERS);
#undef STEP
    return (uint64_t)ROUNDS * 16 * 32;
}

static const struct {
    const char *name;
    uint64_t (*run)(void);
} loops[] = {{"i8mm", run_i8mm}, {"dotprod", run_dotprod}, {"neon", run_neon}};
#define N_LOOPS (sizeof(loops) / sizeof(loops[0]))

#else
static const struct {
    const char *name;
    uint64_t (*run)(void);
} loops[] = {{"", NULL}};
#define N_LOOPS 0u
#endif

/* The set's own product: 16 tokens, one tile of 256 columns. */
static uint64_t run_product(const struct kern_ops *k)
{
    enum { COLS = 256, TOKENS = 16, MAX_ROWS = 32, BLOCKS = COLS / 32 };
    _Alignas(64) uint8_t weights[MAX_ROWS * COLS + MAX_ROWS * BLOCKS * 2 + 256];
    _Alignas(64) int8_t q[TOKENS * COLS];
    float scale[TOKENS * BLOCKS], out[TOKENS * MAX_ROWS];
    int32_t sums[TOKENS * COLS / 16];
    uint32_t rows = k->layout.tile_rows;
    size_t tile = tiles_bytes(&k->layout, KERN_Q8, COLS);
    if (rows > MAX_ROWS || tile > sizeof(weights))
        return 0;
    memset(weights, 0, sizeof(weights));
    memset(q, 1, sizeof(q));
    memset(sums, 0, sizeof(sums));
    for (size_t i = 0; i < TOKENS * BLOCKS; i++)
        scale[i] = 1;
    struct kern_mat w = {KERN_Q8, rows, COLS, 1.0f, tile, weights, NULL};
    struct kern_act a = {.q = q, .scale = scale, .sums = sums, .n_cols = COLS};
    for (int i = 0; i < 20; i++)
        k->gemm(&w, &a, TOKENS, 0, 1, out, MAX_ROWS);
    return (uint64_t)20 * 2 * rows * COLS * TOKENS;
}

uint64_t peak_int8_run(const struct kern_ops *k)
{
    for (size_t i = 0; i < N_LOOPS; i++)
        if (strcmp(loops[i].name, k->name) == 0)
            return loops[i].run();
    return run_product(k);
}
