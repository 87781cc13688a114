/* machine.c - see machine.h. */
#include "cmd/machine.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/clock_sync.h"
#include "base/mem.h"
#include "base/membw.h"
#include "base/sys_file.h"
#include "base/thread/thread.h"
#include "kernels/peak.h"

#define BANDWIDTH_BUDGET_MS 50u
#define PEAK_BUDGET_NS 80000000u
#define MAX_PEAK_THREADS 256u

static void take_flags(struct machine *m, const char *list)
{
    static const char *const known[] = {
        "avx",      "avx2",     "fma",         "f16c",     "avx_vnni", "avx512f", "avx512bw",
        "avx512vl", "avx512dq", "avx512_vnni", "amx_int8", "asimd",    "asimdhp", "asimddp",
        "i8mm",     "bf16",     "sve",         "sve2",     "svei8mm",  "sme"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t n = strlen(known[i]);
        for (const char *p = list; (p = strstr(p, known[i])); p += n)
            if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0' || p[n] == '\n')) {
                if (m->n_flags < MACHINE_MAX_FLAGS)
                    m->flags[m->n_flags++] = known[i];
                break;
            }
    }
}

static void read_cpuinfo(struct machine *m)
{
    static const char *const names[] = {"model name", "Model", "Hardware", "CPU implementer"};
    char line[8192];
    size_t best = sizeof(names) / sizeof(names[0]);
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof(line), f)) {
        char *value = strstr(line, ": ");
        if (!value)
            continue;
        value += 2;
        value[strcspn(value, "\n")] = '\0';
        for (size_t i = 0; i < best; i++)
            if (strncmp(line, names[i], strlen(names[i])) == 0) {
                snprintf(m->cpu, sizeof(m->cpu), "%.90s", value);
                best = i;
            }
        if (m->n_flags == 0 &&
            (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0))
            take_flags(m, value);
    }
    if (f)
        fclose(f);
    if (best == 3) { /* arm64 reports no name: use the implementer instead */
        char id[64];
        if (sys_file_line(id, sizeof(id),
                          "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1"))
            snprintf(m->cpu, sizeof(m->cpu), "arm64 CPU, MIDR %s", id);
    }
    if (!m->cpu[0])
        snprintf(m->cpu, sizeof(m->cpu), "unknown CPU");
}

static void read_caches(struct machine *m)
{
    for (int i = 0; i < 8 && m->n_caches < MACHINE_MAX_CACHES; i++) {
        char path[96], level[16], type[32], size[32];
        const char *base = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof(path), "%s%d/level", base, i);
        if (!sys_file_line(level, sizeof(level), "%s", path))
            break;
        snprintf(path, sizeof(path), "%s%d/type", base, i);
        if (!sys_file_line(type, sizeof(type), "%s", path) || strcmp(type, "Instruction") == 0)
            continue;
        snprintf(path, sizeof(path), "%s%d/size", base, i);
        if (!sys_file_line(size, sizeof(size), "%s", path))
            continue;
        char *end;
        uint64_t n = strtoull(size, &end, 10);
        n *= *end == 'K' ? 1024u : *end == 'M' ? 1048576u : 1u;
        snprintf(m->caches[m->n_caches].name, sizeof(m->caches[0].name), "L%.1s%s", level,
                 strcmp(type, "Data") == 0 ? "d" : "");
        m->caches[m->n_caches++].bytes = n;
    }
}

static void read_memory(struct machine *m)
{
    char line[160];
    unsigned long long kb;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "MemTotal: %llu kB", &kb) == 1)
            m->memory_bytes = kb * 1024;
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
            m->available_bytes = kb * 1024;
    }
    if (f)
        fclose(f);
    if (sys_file_line(line, sizeof(line), "/sys/kernel/mm/transparent_hugepage/enabled")) {
        const char *open = strchr(line, '[');
        if (open)
            snprintf(m->huge_pages, sizeof(m->huge_pages), "%.*s", (int)strcspn(open + 1, "]"),
                     open + 1);
    }
}

static void read_limits(struct machine *m)
{
    char line[128];
    double quota, period;
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    m->n_cpus = online > 0 ? (uint32_t)online : 1;
    m->n_usable =
        sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : m->n_cpus;
    if (sys_file_line(line, sizeof(line), "/sys/fs/cgroup/cpu.max") &&
        sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0)
        m->cpu_quota = quota / period;
    if (getloadavg(&m->load, 1) != 1)
        m->load = 0;
    if (!sys_file_line(m->governor, sizeof(m->governor),
                       "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
        m->governor[0] = '\0';
}

void machine_read(struct machine *m)
{
    memset(m, 0, sizeof(*m));
    heat_read(&m->heat, sys_file_root());
    m->clock_synchronized = clock_is_synchronized();
    read_cpuinfo(m);
    read_caches(m);
    read_memory(m);
    read_limits(m);
}

const size_t machine_sizes[MACHINE_N_SIZES] = {4, 16, 64, 128, 192, 256, 512};

/* ---- measuring ------------------------------------------------------------------------------ */

bool machine_region_open(struct machine_region *r, const struct machine *m, size_t max_bytes)
{
    r->p = NULL;
    for (r->n = max_bytes; r->n >= (size_t)4 << 20; r->n /= 2) {
        if (m->available_bytes && r->n > m->available_bytes / 4)
            continue;
        r->p = mem_pages(r->n);
        if (r->p) {
            memset(r->p, 1, r->n); /* allocate real pages, not the shared zero page */
            return true;
        }
    }
    return false;
}

void machine_region_close(struct machine_region *r)
{
    mem_pages_free(r->p, r->n);
    r->p = NULL;
}

double machine_bandwidth(const struct machine_region *r, size_t n, uint32_t n_threads)
{
    return membw_read(r->p, n < r->n ? n : r->n, n_threads, BANDWIDTH_BUDGET_MS);
}

struct peak_member {
    const struct kern_ops *k;
    pthread_t thread;
    double best;
};

static void *peak_main(void *arg)
{
    struct peak_member *m = arg;
    uint64_t end = clock_ns() + PEAK_BUDGET_NS;
    for (int i = 0; i < 3 || clock_ns() < end; i++) {
        uint64_t t0 = clock_ns(), ops = peak_int8_run(m->k), ns = clock_ns() - t0;
        double gops = (double)ops / (double)(ns ? ns : 1);
        m->best = gops > m->best ? gops : m->best;
    }
    return NULL;
}

double machine_int8_peak(const struct kern_ops *k, uint32_t n_threads)
{
    struct peak_member members[MAX_PEAK_THREADS];
    uint32_t started = 1;
    double sum = 0;
    n_threads = n_threads < MAX_PEAK_THREADS ? n_threads : MAX_PEAK_THREADS;
    for (uint32_t i = 0; i < n_threads; i++)
        members[i] = (struct peak_member){.k = k};
    while (started < n_threads && thread_create_numbered(&members[started].thread, "peak", started,
                                                         peak_main, &members[started], NULL) == 0)
        started++;
    peak_main(&members[0]);
    for (uint32_t i = 0; i < started; i++) {
        if (i > 0)
            pthread_join(members[i].thread, NULL);
        sum += members[i].best;
    }
    return sum;
}
