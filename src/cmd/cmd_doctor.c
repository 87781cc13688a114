/* cmd_doctor.c - shoal doctor: shows the machine, what Shoal uses of it, and problems. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bytes_text.h"
#include "base/plural.h"
#include "cluster/worker/sandbox.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/cmd_doctor.h"
#include "cmd/doctor_energy.h"
#include "cmd/machine.h"
#include "engine/cache_dir.h"
#include "engine/cuda/cuda_gpu.h"
#include "engine/onnx/onnx_api.h"
#include "kernels/kern.h"
#include "shoal/shoal.h"
#include "wire/json_out.h"

cmd_fn cmd_doctor;

#define MAX_OUTPUT_BYTES ((size_t)16 << 20)
#define MAX_SETS 16u
#define MAX_ROWS 16u
#define MAX_PROBLEMS 12u
#define MIB ((size_t)1 << 20)

static const struct opts_def defs[] = {
    {"no-measure", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "do not measure bandwidth and peak (saves about two seconds)"},
    {"kernels", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "measure this kernel set instead of the best"},
    {"energy", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "measure the power of this machine, idle and busy, and print settings for servers"},
    {"seconds", 0, OPTS_REAL, "S", "10", 0.05, 3600,
     "with --energy: how long it is idle, and how long busy"},
    {"idle-watts", 0, OPTS_REAL, "W", "0", 0, 100000,
     "with --energy, without sensors: what a meter shows while the machine is idle"},
    {"busy-watts", 0, OPTS_REAL, "W", "0", 0, 100000,
     "with --energy, without sensors: what it shows while --energy keeps all cores busy"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

static const struct opts_page page = {
    .command = "doctor",
    .arguments = "",
    .summary = "Shows the machine's hardware, the engines and kernels that run on it, and how to "
               "fix problems.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal doctor\n"
                "  shoal doctor --json | jq .bandwidth\n",
};

struct cache {
    char path[4096]; /* "" if there is none */
    uint64_t n_files, bytes, free_bytes;
    bool exists, writable;
};

struct onnx {
    char version[32], path[1024]; /* "": not usable, `why` has the reason */
    struct err why;
};

struct gpu {
    struct cuda_gpu_info info;
    bool code;      /* this build has kernels */
    struct err why; /* code 0: there is a GPU */
};

struct problem {
    char what[160], fix[200];
};

struct report {
    struct machine m;
    const struct kern_ops *chosen, *compiled[MAX_SETS], *usable[MAX_SETS];
    size_t n_compiled, n_usable;
    struct {
        uint32_t threads;
        size_t bytes;
        double gb_s;
    } bandwidth[MAX_ROWS];
    struct {
        uint32_t threads;
        double gops;
    } peak[2];
    size_t n_bandwidth, n_peak;
    struct cache cache;
    struct onnx onnx;
    struct gpu gpu;
    struct sandbox_support sandbox;
    struct problem problems[MAX_PROBLEMS];
    size_t n_problems;
};

static void read_cache(struct cache *c)
{
    struct statvfs vfs;
    if (!cache_dir_default(c->path, sizeof(c->path))) {
        c->path[0] = '\0';
        return;
    }
    DIR *dir = opendir(c->path);
    c->exists = dir != NULL;
    c->writable = c->exists && access(c->path, W_OK) == 0;
    for (struct dirent *d; dir && (d = readdir(dir));) {
        struct stat st;
        if (fstatat(dirfd(dir), d->d_name, &st, 0) == 0 && S_ISREG(st.st_mode)) {
            c->n_files++;
            c->bytes += (uint64_t)st.st_size;
        }
    }
    if (dir && statvfs(c->path, &vfs) == 0)
        c->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    if (dir)
        closedir(dir);
}

static void read_onnx(struct onnx *x)
{
    struct onnx_lib *lib;
    if (onnx_lib_open(&lib, &x->why) < 0)
        return;
    snprintf(x->version, sizeof(x->version), "%s", lib->version);
    snprintf(x->path, sizeof(x->path), "%s", lib->path);
    onnx_lib_close(lib);
}

static void read_gpu(struct gpu *g)
{
    g->code = cuda_gpu_has_code();
    (void)!cuda_gpu_describe(&g->info, &g->why);
}

static void measure(struct report *r)
{
    uint32_t threads[2] = {1, r->m.n_usable};
    size_t n_counts = r->m.n_usable > 1 ? 2 : 1;
    struct machine_region region;
    struct term_progress bar;
    term_progress_init(&bar, "measuring");
    for (size_t t = 0; t < n_counts; t++) {
        r->peak[t].threads = threads[t];
        r->peak[t].gops = machine_int8_peak(r->chosen, threads[t]);
        r->n_peak = t + 1;
    }
    if (machine_region_open(&region, &r->m, 512 * MIB)) {
        for (size_t s = 0; s < MACHINE_N_SIZES; s++)
            for (size_t t = 0; t < n_counts && machine_sizes[s] * MIB <= region.n; t++) {
                term_progress_show(&bar, (double)(s * 2 + t) / (2 * MACHINE_N_SIZES), NULL);
                r->bandwidth[r->n_bandwidth].threads = threads[t];
                r->bandwidth[r->n_bandwidth].bytes = machine_sizes[s] * MIB;
                r->bandwidth[r->n_bandwidth++].gb_s =
                    machine_bandwidth(&region, machine_sizes[s] * MIB, threads[t]);
            }
        machine_region_close(&region);
    }
    term_progress_end(&bar);
}

SHOAL_PRINTF(3, 4)
static void add_problem(struct report *r, const char *fix, const char *fmt, ...)
{
    if (r->n_problems == MAX_PROBLEMS)
        return;
    struct problem *p = &r->problems[r->n_problems++];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->what, sizeof(p->what), fmt, ap);
    va_end(ap);
    snprintf(p->fix, sizeof(p->fix), "%s", fix);
}

static void find_problems(struct report *r)
{
    const struct machine *m = &r->m;
    const struct cache *c = &r->cache;
    if (r->n_usable > 0 && strcmp(r->usable[0]->name, "scalar") == 0)
        add_problem(r, "use a CPU with AVX2, AVX-512 VNNI or arm64 NEON",
                    "only the slow scalar kernels run on this CPU");
    if (strcmp(m->huge_pages, "never") == 0)
        add_problem(r, "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
                    "transparent huge pages are off: large models read memory slower");
    if (!c->path[0])
        add_problem(r, "set SHOAL_CACHE_DIR or HOME",
                    "no cache folder: weights are tiled again at every start");
    else if (c->exists && !c->writable)
        add_problem(r, "make it writable or set SHOAL_CACHE_DIR to another folder",
                    "the cache folder is not writable");
    else if (c->exists && c->free_bytes < 256 * MIB)
        add_problem(r, "free some space or set SHOAL_CACHE_DIR to another disk",
                    "only %llu MiB are free on the disk of the cache folder",
                    (unsigned long long)(c->free_bytes / MIB));
    if (r->onnx.why.code < 0 && r->onnx.why.code != SHOAL_ENOTFOUND)
        add_problem(r, "unset SHOAL_ONNXRUNTIME and run " ONNX_INSTALL_COMMAND,
                    "ONNX Runtime cannot be used: %s", r->onnx.why.msg);
    if (r->gpu.why.code < 0 && r->gpu.why.code != SHOAL_ENOTFOUND)
        add_problem(r, "models run on the CPU", "the GPU cannot be used: %s", r->gpu.why.msg);
    if (r->gpu.why.code == 0 && !r->gpu.code)
        add_problem(r, "build shoal where nvcc is installed, or set SHOAL_CUDA_CODE to its kernels",
                    "there is a GPU, but this build of shoal has no CUDA kernels");
    if (m->available_bytes && m->available_bytes < 512 * MIB)
        add_problem(r, "close other programs, or use smaller models and --kv q8",
                    "only %llu MiB of memory are available",
                    (unsigned long long)(m->available_bytes / MIB));
    if (m->cpu_quota > 0 && m->cpu_quota < m->n_usable)
        add_problem(r, "raise the limit, or set --threads to it",
                    "the control group allows %.1f of %u CPUs: threads will be throttled",
                    m->cpu_quota, m->n_usable);
    if (m->load > 0.5 * m->n_usable)
        add_problem(
            r, "measure again when the machine is idle",
            "the machine is busy (load average %.1f on %u CPUs): measured figures are too low",
            m->load, m->n_usable);
    if (strcmp(m->governor, "powersave") == 0)
        add_problem(r, "as root: cpupower frequency-set -g performance",
                    "the CPU frequency governor is powersave");
    const double hot = heat_limit(&m->heat);
    if (m->heat.celsius >= hot)
        add_problem(r, "cool it: a heat sink, a fan, free air; or use fewer --threads",
                    "the machine is at %.0f C and slows down from %.0f C on", m->heat.celsius, hot);
    if (!m->clock_synchronized)
        add_problem(r, "timedatectl set-ntp true; or install chrony",
                    "the clock is not synchronized: certificates, schedules and traces need it");
}

/* ---- output --------------------------------------------------------------------------------- */

static void json_names(struct json_out *j, const char *key, const struct kern_ops *const *sets,
                       size_t n)
{
    json_out_member_array(j, key);
    for (size_t i = 0; i < n; i++)
        json_out_str(j, sets[i]->name);
    json_out_array_end(j);
}

static void json_machine(struct json_out *j, const struct machine *m)
{
    json_out_member_str(j, "cpu", m->cpu);
    json_out_member_uint(j, "cpus", m->n_cpus);
    json_out_member_uint(j, "cpus_usable", m->n_usable);
    json_out_member_num(j, "load", m->load);
    json_out_member_array(j, "isa");
    for (size_t i = 0; i < m->n_flags; i++)
        json_out_str(j, m->flags[i]);
    json_out_array_end(j);
    json_out_member_object(j, "caches");
    for (size_t i = 0; i < m->n_caches; i++)
        json_out_member_uint(j, m->caches[i].name, m->caches[i].bytes);
    json_out_object_end(j);
    json_out_member_uint(j, "memory_bytes", m->memory_bytes);
    json_out_member_uint(j, "available_bytes", m->available_bytes);
    json_out_member_str(j, "huge_pages", m->huge_pages);
    json_out_key(j, "celsius"); /* null: unknown */
    json_out_rounded(j, m->heat.celsius > 0 ? m->heat.celsius : (double)NAN, 1);
    json_out_member_bool(j, "clock_synchronized", m->clock_synchronized);
}

static void json_measured(struct json_out *j, const struct report *r)
{
    json_out_member_array(j, "bandwidth");
    for (size_t i = 0; i < r->n_bandwidth; i++) {
        json_out_object(j);
        json_out_member_uint(j, "threads", r->bandwidth[i].threads);
        json_out_member_uint(j, "bytes", r->bandwidth[i].bytes);
        json_out_member_num(j, "gb_s", r->bandwidth[i].gb_s);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_member_array(j, "peak");
    for (size_t i = 0; i < r->n_peak; i++) {
        json_out_object(j);
        json_out_member_uint(j, "threads", r->peak[i].threads);
        json_out_member_num(j, "int8_gops", r->peak[i].gops);
        json_out_object_end(j);
    }
    json_out_array_end(j);
}

static void json_gpu(struct json_out *j, const struct gpu *g)
{
    json_out_object(j);
    json_out_member_str(j, "name", "cuda");
    json_out_member_bool(j, "kernels", g->code);
    if (g->why.code < 0) {
        json_out_member_str(j, "problem", g->why.msg);
    } else {
        char arch[16];
        snprintf(arch, sizeof(arch), "sm_%d%d", g->info.major, g->info.minor);
        json_out_member_str(j, "gpu", g->info.name);
        json_out_member_str(j, "arch", arch);
        json_out_member_uint(j, "multiprocessors", (uint64_t)g->info.n_sms);
        json_out_member_uint(j, "memory_bytes", g->info.memory_bytes);
        json_out_member_num(j, "cuda", (double)(g->info.driver / 10) / 100);
    }
    json_out_object_end(j);
}

static void json_engines(struct json_out *j, const struct report *r)
{
    json_out_member_array(j, "engines");
    json_out_object(j);
    json_out_member_str(j, "name", "native");
    json_out_member_str(j, "kernels", r->chosen->name);
    json_out_object_end(j);
    json_out_object(j);
    json_out_member_str(j, "name", "onnx");
    json_out_key(j, "version");
    r->onnx.version[0] ? json_out_str(j, r->onnx.version) : json_out_null(j);
    json_out_member_str(j, r->onnx.version[0] ? "path" : "problem",
                        r->onnx.version[0] ? r->onnx.path : r->onnx.why.msg);
    json_out_object_end(j);
    json_gpu(j, &r->gpu);
    json_out_array_end(j);
}

static void json_isolation(struct json_out *j, const struct sandbox_support *s)
{
    json_out_member_object(j, "isolation");
    json_out_member_uint(j, "landlock", (uint64_t)s->landlock_abi);
    json_out_member_bool(j, "seccomp", s->seccomp);
    json_out_object_end(j);
}

static void put_json(struct buf *b, const struct report *r)
{
    struct json_out json = json_out_make(b), *j = &json;
    json_out_object(j);
    json_out_member_str(j, "version", shoal_version());
    json_out_member_str(j, "kernels", r->chosen->name);
    json_names(j, "kernels_compiled", r->compiled, r->n_compiled);
    json_names(j, "kernels_usable", r->usable, r->n_usable);
    json_engines(j, r);
    json_isolation(j, &r->sandbox);
    json_machine(j, &r->m);
    json_measured(j, r);
    json_out_member_object(j, "cache");
    json_out_member_str(j, "path", r->cache.path);
    json_out_member_uint(j, "files", r->cache.n_files);
    json_out_member_uint(j, "bytes", r->cache.bytes);
    json_out_member_bool(j, "writable", r->cache.writable);
    json_out_object_end(j);
    json_out_member_array(j, "problems");
    for (size_t i = 0; i < r->n_problems; i++) {
        json_out_object(j);
        json_out_member_str(j, "what", r->problems[i].what);
        json_out_member_str(j, "fix", r->problems[i].fix);
        json_out_object_end(j);
    }
    json_out_array_end(j);
    json_out_object_end(j);
    buf_putc(b, '\n');
}

static void put_kernels(struct buf *b, const struct report *r)
{
    buf_printf(b, "kernels\n");
    for (size_t i = 0; i < r->n_compiled; i++) {
        bool usable = false;
        for (size_t u = 0; u < r->n_usable; u++)
            usable |= r->usable[u] == r->compiled[i];
        buf_printf(b, "  %-14s %s\n", r->compiled[i]->name,
                   r->compiled[i] == r->chosen ? "in use"
                   : usable                    ? "usable"
                                               : "not on this CPU");
    }
}

static void put_gpu(struct buf *b, const struct gpu *g)
{
    char x[32];
    buf_printf(b, "  %-14s ", "cuda");
    if (g->why.code < 0)
        buf_printf(b, "%s\n",
                   g->why.code == SHOAL_ENOTFOUND ? g->why.msg : "not usable, see below");
    else
        buf_printf(b, "%s, sm_%d%d, %s, driver for CUDA %d.%d%s\n", g->info.name, g->info.major,
                   g->info.minor, bytes_text(x, (double)g->info.memory_bytes),
                   g->info.driver / 1000, g->info.driver % 1000 / 10,
                   g->code ? ": decoders with --kernels cuda" : "; no kernels, see below");
}

static void put_engines(struct buf *b, const struct report *r)
{
    buf_printf(b, "engines\n  %-14s %s kernels\n  %-14s ", "native", r->chosen->name, "onnx");
    if (r->onnx.version[0])
        buf_printf(b, "ONNX Runtime %s, %s\n", r->onnx.version, r->onnx.path);
    else if (r->onnx.why.code == SHOAL_ENOTFOUND)
        buf_printf(b, "%s\n", r->onnx.why.msg);
    else
        buf_printf(b, "not usable, see below\n");
    put_gpu(b, &r->gpu);
}

static void put_isolation(struct buf *b, const struct sandbox_support *s)
{
    buf_printf(b, "isolation: process\n  %-14s ", "landlock");
    if (s->landlock_abi > 0)
        buf_printf(b, "version %d\n", s->landlock_abi);
    else
        buf_printf(b, "not in this kernel: workers can open all files of this user\n");
    buf_printf(b, "  %-14s %s\n", "seccomp",
               s->seccomp ? "yes" : "not in this kernel: workers can make all system calls");
}

static void put_measured(struct buf *b, const struct report *r)
{
    if (r->n_peak == 0)
        return;
    buf_printf(b, "read bandwidth, GB/s\n  %-14s", "working set");
    for (size_t i = 0; i < r->n_peak; i++)
        buf_printf(b, "%7u %s", r->peak[i].threads, i + 1 < r->n_peak ? "" : "threads\n");
    for (size_t i = 0; i < r->n_bandwidth; i++) {
        if (i == 0 || r->bandwidth[i].bytes != r->bandwidth[i - 1].bytes)
            buf_printf(b, "%s  %4zu MiB      ", i ? "\n" : "", r->bandwidth[i].bytes / MIB);
        buf_printf(b, "%7.1f ", r->bandwidth[i].gb_s);
    }
    buf_printf(b, "%s8-bit peak of %s, GOPS\n  %-14s", r->n_bandwidth ? "\n" : "", r->chosen->name,
               "");
    for (size_t i = 0; i < r->n_peak; i++)
        buf_printf(b, "%7.0f ", r->peak[i].gops);
    buf_putc(b, '\n');
}

static void put_text(struct buf *b, const struct report *r)
{
    const struct machine *m = &r->m;
    char x[32], y[32];
    buf_printf(b, "shoal %s\nmachine\n  %-14s %s, %u of %u CPUs\n", shoal_version(), "CPU", m->cpu,
               m->n_usable, m->n_cpus);
    buf_printf(b, "  %-14s", "ISA");
    for (size_t i = 0; i < m->n_flags; i++)
        buf_printf(b, " %s", m->flags[i]);
    buf_printf(b, "\n  %-14s", "caches");
    for (size_t i = 0; i < m->n_caches; i++)
        buf_printf(b, "%s %s %s", i ? "," : "", m->caches[i].name,
                   bytes_text(x, (double)m->caches[i].bytes));
    buf_printf(b, "\n  %-14s %s, %s available\n  %-14s %s\n", "memory",
               bytes_text(x, (double)m->memory_bytes), bytes_text(y, (double)m->available_bytes),
               "huge pages", m->huge_pages[0] ? m->huge_pages : "unknown");
    put_engines(b, r);
    put_isolation(b, &r->sandbox);
    put_kernels(b, r);
    put_measured(b, r);
    buf_printf(b, "tiled weights\n  %s, %llu file%s, %s%s\n",
               r->cache.path[0] ? r->cache.path : "no folder", (unsigned long long)r->cache.n_files,
               plural(r->cache.n_files), bytes_text(x, (double)r->cache.bytes),
               r->cache.exists ? "" : " (will be created by the first load)");
    if (r->n_problems == 0)
        buf_printf(b, "no problems found\n");
    for (size_t i = 0; i < r->n_problems; i++)
        buf_printf(b, "%s  %s\n    -> %s\n", i ? "" : "problems\n", r->problems[i].what,
                   r->problems[i].fix);
}

/* All but the measured speed. */
static void look(struct report *r)
{
    machine_read(&r->m);
    r->n_compiled = kern_compiled(r->compiled, MAX_SETS);
    r->n_usable = kern_usable(r->usable, MAX_SETS);
    read_cache(&r->cache);
    read_onnx(&r->onnx);
    read_gpu(&r->gpu);
    r->sandbox = sandbox_support();
    find_problems(r);
}

int cmd_doctor_put(struct buf *b, struct err *e)
{
    struct report r = {.chosen = kern_select(NULL, e)};
    if (!r.chosen)
        return e->code;
    look(&r);
    put_json(b, &r);
    return b->rc;
}

int cmd_doctor(int argc, const char *const *argv)
{
    struct opts o;
    struct report r = {0};
    struct err e = {0};
    struct buf b;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    r.chosen = kern_select(opts_text(&o, "kernels"), &e);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (!r.chosen) {
        rc = cmd_fail(&page, "%s", e.msg);
    } else if (opts_flag(&o, "energy")) {
        machine_read(&r.m);
        rc = doctor_energy(&o, r.chosen, r.m.n_usable);
    } else {
        look(&r);
        if (!opts_flag(&o, "no-measure"))
            measure(&r);
        if (opts_flag(&o, "json"))
            put_json(&b, &r);
        else
            put_text(&b, &r);
        rc = cmd_print(&page, &b);
    }
    buf_fini(&b);
    opts_fini(&o);
    return rc;
}
