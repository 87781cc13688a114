/* machine.h - properties of this machine from /proc and /sys, and measured speed.
 *
 * Thread:    the main thread; measuring starts its own threads and joins them.
 * Ownership: plain values. */
#ifndef SHOAL_CMD_MACHINE_H
#define SHOAL_CMD_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/heat.h"
#include "kernels/kern.h"

#define MACHINE_MAX_CACHES 4u
#define MACHINE_MAX_FLAGS 24u

struct machine {
    char cpu[96];
    uint32_t n_cpus, n_usable; /* in the machine; usable by this process */
    double cpu_quota;          /* CPUs that the control group allows; 0: no limit */
    double load;               /* average of the last minute */
    char governor[32];         /* "" if unknown */
    struct {
        char name[8]; /* "L1d", "L2" */
        uint64_t bytes;
    } caches[MACHINE_MAX_CACHES];
    size_t n_caches;
    const char *flags[MACHINE_MAX_FLAGS]; /* CPU flags that matter to kernels */
    size_t n_flags;
    uint64_t memory_bytes, available_bytes;
    char huge_pages[16]; /* always, madvise, never, or "" */
    struct heat heat;
    bool clock_synchronized; /* by NTP, as the kernel knows */
};

void machine_read(struct machine *m);

/* Memory region for measuring bandwidth; as large as memory allows. */
struct machine_region {
    uint8_t *p;
    size_t n;
};
bool machine_region_open(struct machine_region *r, const struct machine *m, size_t max_bytes);
void machine_region_close(struct machine_region *r);
/* Working set sizes for measuring bandwidth, in MiB: dense where a model may or may not fit into
 * a large cache. */
#define MACHINE_N_SIZES 7u
extern const size_t machine_sizes[MACHINE_N_SIZES];
/* 10^9 bytes per second over the first n bytes of the region. */
double machine_bandwidth(const struct machine_region *r, size_t n, uint32_t n_threads);
/* 10^9 8-bit operations per second with the set's own instruction. */
double machine_int8_peak(const struct kern_ops *k, uint32_t n_threads);

#endif
