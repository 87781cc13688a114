/* mem.h - heap allocation; all other code allocates through these functions.
 *
 * Thread:    any.
 * Ownership: memory from mem_* is freed with mem_free (NULL is fine).
 * Failure:   NULL; nothing aborts.  Tests make the n-th call fail (mem_fail_at) and count calls. */
#ifndef SHOAL_BASE_MEM_H
#define SHOAL_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t n);
void *mem_zalloc(size_t n);
void *mem_zalloc_n(size_t count, size_t size); /* NULL when the product overflows */
void *mem_realloc(void *p, size_t n);
void mem_free(void *p);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);

/* Zeroed and 64-byte aligned; freed with mem_free. */
void *mem_aligned(size_t n);

/* Zeroed, page-aligned memory directly from the kernel, with 2 MiB pages if it is large.  Freed
 * with mem_pages_free, which needs the same length. */
void *mem_pages(size_t n);
/* The same, but only the first n_large bytes use large pages.  Memory that is reserved for the
 * worst case and rarely used in full should not, since each touched byte would cost 2 MiB. */
void *mem_pages_partly(size_t n, size_t n_large);
void mem_pages_free(void *p, size_t n);

/* For servers: blocks of 256 KiB and more are mapped one by one from now on, so that they grow
 * without a copy and go back to the system when they are freed. Otherwise large blocks of many
 * sizes leave holes, and the process keeps twice the memory in use. */
void mem_map_large(void);

/* Returns false if a * b overflows. */
static inline bool mem_mul(size_t *out, size_t a, size_t b)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool mem_add(size_t *out, size_t a, size_t b)
{
    return !__builtin_add_overflow(a, b, out);
}

/* For tests: calls of mem_alloc/zalloc/realloc/pages in this process so far, and a switch that
 * makes the n-th call from now fail once (0: off). */
uint64_t mem_calls(void);
void mem_fail_at(uint64_t n);

#endif
