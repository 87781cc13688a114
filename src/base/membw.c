/* membw.c - see membw.h.  The same loop is compiled for several vector widths: for data in a cache,
 * narrow loads would be the bottleneck instead of the memory. */
#include "base/membw.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sched.h>

#include "base/clock.h"
#include "base/thread/thread.h"

typedef uint64_t vec __attribute__((vector_size(64), may_alias));
typedef uint64_t (*read_fn)(const void *p, size_t n);

/* Several distant streams keep more cache lines in flight than one; prefetching keeps one stream's
 * misses from stalling the others. */
#define STREAMS 8u
#define TURN 4u /* consecutive lines read from one stream */
#define AHEAD_LINES 16u
/* Streams a power of two apart would map to the same cache sets and memory banks all the way.
 * Leaving out this much of a slice shifts them against each other. */
#define SHIFT_BYTES (STREAMS * (4096u + 5 * 64u))
#define READ_BODY(p, n)                                                                            \
    const size_t part = (n) / sizeof(vec) / STREAMS;                                               \
    const vec *from = (const vec *)(p);                                                            \
    vec sums[TURN] = {{0}};                                                                        \
    for (size_t i = 0; i + TURN <= part; i += TURN)                                                \
        for (size_t s = 0; s < STREAMS; s++)                                                       \
            for (size_t k = 0; k < TURN; k++) {                                                    \
                const vec *at = from + s * part + i + k;                                           \
                __builtin_prefetch(at + AHEAD_LINES, 0, 3);                                        \
                sums[k] ^= *at;                                                                    \
            }                                                                                      \
    const vec x = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];                                           \
    return x[0] ^ x[1] ^ x[2] ^ x[3] ^ x[4] ^ x[5] ^ x[6] ^ x[7]

static uint64_t read_plain(const void *p, size_t n)
{
    READ_BODY(p, n);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t read_avx2(const void *p, size_t n)
{
    READ_BODY(p, n);
}

__attribute__((target("avx512f"))) static uint64_t read_avx512(const void *p, size_t n)
{
    READ_BODY(p, n);
}

static read_fn choose(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return read_avx512;
    return __builtin_cpu_supports("avx2") ? read_avx2 : read_plain;
}
#else
static read_fn choose(void)
{
    return read_plain;
}
#endif

struct pass {
    read_fn read;
    uint32_t n_threads;
    /* `opened` starts a pass, `finished` counts the members that are done.  Release/acquire order
     * makes the first member's clock readings enclose all reads. */
    _Atomic uint32_t opened, finished;
    _Atomic bool quit;
    _Atomic uint64_t sink; /* keeps the compiler from removing the reads */
};

struct member {
    struct pass *pass;
    const uint8_t *p;
    size_t n;
    pthread_t thread;
};

static void read_slice(struct member *m)
{
    uint64_t x = m->pass->read(m->p, m->n);
    atomic_fetch_xor_explicit(&m->pass->sink, x, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->pass->finished, 1, memory_order_release);
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    for (uint32_t seen = 0;;) {
        uint32_t now;
        while ((now = atomic_load_explicit(&m->pass->opened, memory_order_acquire)) == seen) {
            if (atomic_load_explicit(&m->pass->quit, memory_order_relaxed))
                return NULL;
            sched_yield();
        }
        seen = now;
        read_slice(m);
    }
}

static double one_pass(struct member *members, uint32_t n_threads)
{
    struct pass *pass = members[0].pass;
    atomic_store_explicit(&pass->finished, 0, memory_order_relaxed);
    uint64_t t0 = clock_ns();
    atomic_fetch_add_explicit(&pass->opened, 1, memory_order_release);
    read_slice(&members[0]);
    while (atomic_load_explicit(&pass->finished, memory_order_acquire) < n_threads)
        sched_yield();
    uint64_t ns = clock_ns() - t0;
    return ns ? (double)ns : 1;
}

double membw_read(const void *p, size_t n, uint32_t n_threads, uint32_t budget_ms)
{
    struct pass pass = {.read = choose(), .n_threads = n_threads};
    struct member members[MEMBW_MAX_THREADS];
    uint32_t started = 1;
    n_threads = n_threads < 1 ? 1 : n_threads > MEMBW_MAX_THREADS ? MEMBW_MAX_THREADS : n_threads;
    size_t slice = n / n_threads / 4096 * 4096;
    slice -= slice > 16 * SHIFT_BYTES ? SHIFT_BYTES : 0;
    for (uint32_t i = 0; i < n_threads; i++)
        members[i] =
            (struct member){.pass = &pass, .p = (const uint8_t *)p + i * slice, .n = slice};
    while (started < n_threads && thread_create_numbered(&members[started].thread, "membw", started,
                                                         member_main, &members[started], NULL) == 0)
        started++;
    double best = 0;
    if (started == n_threads && slice > 0) {
        uint64_t t0 = clock_ns(), budget = (uint64_t)budget_ms * 1000000u;
        /* On a busy machine three passes of a large set may take seconds; then do fewer. */
        for (uint32_t i = 0; i == 0 || clock_ns() - t0 < (i < 3 ? 4 * budget : budget); i++) {
            double gb_s = (double)slice * n_threads / one_pass(members, n_threads);
            best = gb_s > best ? gb_s : best;
        }
    }
    atomic_store_explicit(&pass.quit, true, memory_order_relaxed);
    while (started > 1)
        pthread_join(members[--started].thread, NULL);
    return best;
}
