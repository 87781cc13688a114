/* mem.c - see mem.h. */
#include "base/mem.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_BYTES 1024u

/* Both are plain counters that order no other memory, so relaxed is enough. */
static _Atomic uint64_t calls;
static _Atomic uint64_t fail_countdown;

static bool must_fail(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(&fail_countdown, &left, left - 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return left == 1;
    }
    return false;
}

void *mem_alloc(size_t n)
{
    return must_fail() ? NULL : malloc(n ? n : 1);
}

void *mem_zalloc(size_t n)
{
    if (must_fail())
        return NULL;
    if (n > SMALL_BYTES)
        return calloc(1, n);
    void *p = malloc(n ? n : 1); /* glibc's calloc bypasses the per-thread cache */
    return p ? memset(p, 0, n) : NULL;
}

void *mem_zalloc_n(size_t count, size_t size)
{
    size_t n;
    return mem_mul(&n, count, size) ? mem_zalloc(n) : NULL;
}

void *mem_aligned(size_t n)
{
    void *p = must_fail() ? NULL : aligned_alloc(64, (n + 63) / 64 * 64);
    if (p)
        memset(p, 0, n);
    return p;
}

void *mem_realloc(void *p, size_t n)
{
    return must_fail() ? NULL : realloc(p, n ? n : 1);
}

void mem_free(void *p)
{
    free(p);
}

char *mem_strndup(const char *s, size_t n)
{
    char *d = mem_alloc(n + 1);
    if (d) {
        memcpy(d, s, n);
        d[n] = '\0';
    }
    return d;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

void *mem_pages(size_t n)
{
    return mem_pages_partly(n, n);
}

void *mem_pages_partly(size_t n, size_t n_large)
{
    const size_t most = (size_t)64 << 10; /* largest base page size of any kernel */
    if (must_fail() || n == 0)
        return NULL;
    uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    /* Only hints: if the kernel refuses, we lose speed or memory, not correctness. */
    if (n_large < n) {
        n_large = n_large / most * most;
        (void)madvise(p + n_large, n - n_large, MADV_NOHUGEPAGE);
    }
    if (n_large >= ((size_t)4 << 20))
        (void)madvise(p, n_large, MADV_HUGEPAGE);
    return p;
}

void mem_pages_free(void *p, size_t n)
{
    if (p)
        munmap(p, n);
}

uint64_t mem_calls(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

void mem_fail_at(uint64_t n)
{
    atomic_store_explicit(&fail_countdown, n, memory_order_relaxed);
}

void mem_map_large(void)
{
#ifdef __GLIBC__
    /* also stops the threshold from growing, as it does by default */
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 20);
#endif
}
