/* bench_sealed.c - how long a plain and an encrypted model take to load, in turn, each in a process
 * of its own: to the end of opening, and to the first token.  The model is MODEL with its layers
 * repeated until it has MIB.  Both have their tiled weights in the cache folder, the encrypted one
 * encrypted.
 *   warm    the files are in memory
 *   cold    they come from the disk (posix_fadvise)
 *
 * usage: bench_sealed MODEL [MIB [ROUNDS]] */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/gguf_write.h"
#include "format/model_open.h"
#include "format/sealed_file.h"
#include "shoal/shoal.h"

enum { MAX_ROUNDS = 64, PATHS = 256 };
static char folder[64], paths[2][PATHS], key[PATHS], caches[2][PATHS]; /* plain, encrypted */

static void fail(const char *text)
{
    fprintf(stderr, "bench_sealed: %s\n", text);
    exit(1);
}

/* ---- the model ---- */

static bool block_of(const struct model_file_tensor *t, unsigned *block, int *rest)
{
    return sscanf(t->name.p, "blk.%u.%n", block, rest) == 1;
}

static void put_tensors(const struct model_file *m, struct gguf_write *w, uint32_t times, bool data,
                        unsigned blocks)
{
    struct err e = {0};
    for (uint32_t k = 0; k < times; k++)
        for (size_t i = 0; i < m->n_tensors; i++) {
            const struct model_file_tensor *t = &m->tensors[i];
            char name[256];
            unsigned block;
            int rest = 0;
            const bool layer = block_of(t, &block, &rest);
            if (!layer && k > 0)
                continue;
            int n = layer ? snprintf(name, sizeof(name), "blk.%u.%.*s", block + k * blocks,
                                     (int)t->name.n - rest, t->name.p + rest)
                          : snprintf(name, sizeof(name), "%.*s", (int)t->name.n, t->name.p);
            if (!data)
                gguf_write_tensor(w, name, (size_t)n, t->type, t->n_dims, t->dims);
            else if (gguf_write_data(w, t->data, t->n_bytes, &e) < 0)
                fail(e.msg);
        }
}

static void grow(const char *from, const char *to, uint64_t bytes)
{
    struct model_file *m;
    struct gguf_write *w;
    struct err e = {0};
    struct str arch;
    char count[128];
    uint64_t blocks = 0;
    if (model_open(&m, from, &e) < 0 || gguf_write_create(&w, to, &e) < 0)
        fail(e.msg);
    if (!model_file_get_str(m, "general.architecture", &arch))
        fail("no architecture");
    snprintf(count, sizeof(count), "%.*s.block_count", (int)arch.n, arch.p);
    if (!model_file_get_u64(m, count, &blocks))
        fail("no layers");
    const uint32_t times = (uint32_t)(bytes / m->n_bytes) + 1;
    gguf_write_copy(w, m);
    gguf_write_u32(w, count, (uint32_t)blocks * times);
    put_tensors(m, w, times, false, (unsigned)blocks);
    if (gguf_write_begin(w, &e) < 0)
        fail(e.msg);
    put_tensors(m, w, times, true, (unsigned)blocks);
    if (gguf_write_finish(w, &e) < 0)
        fail(e.msg);
    gguf_write_destroy(w);
    model_file_close(m);
}

/* ---- one load ---- */

struct cost { /* ms */
    double open_wall, open_cpu, first_wall, first_cpu;
};

static double cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static struct cost load(int which)
{
    struct shoal_error e;
    struct shoal_engine *en;
    struct shoal_task *task;
    struct cost c;
    const int32_t prompt[] = {1, 400, 500, 600};
    struct shoal_engine_opts o = {
        .size = sizeof(o), .cache_dir = caches[which], .n_ctx = 64, .key_file = which ? key : NULL};
    const double cpu = cpu_ms();
    const uint64_t from = clock_ns();
    if (shoal_engine_open(&en, paths[which], &o, &e) < 0)
        fail(e.msg);
    c.open_wall = (double)(clock_ns() - from) / 1e6;
    c.open_cpu = cpu_ms() - cpu;
    struct shoal_task_opts t = {
        .size = sizeof(t), .tokens = prompt, .n_tokens = 4, .max_tokens = 1};
    if (shoal_task_submit(en, &t, &task, &e) < 0)
        fail(e.msg);
    if (shoal_task_wait(task) < 0)
        fail("no token");
    c.first_wall = (double)(clock_ns() - from) / 1e6;
    c.first_cpu = cpu_ms() - cpu;
    shoal_task_free(task);
    shoal_engine_close(en);
    return c;
}

static struct cost load_apart(int which)
{
    struct cost c = {0};
    int ends[2], status;
    if (pipe(ends) < 0)
        fail("no pipe");
    const pid_t child = fork();
    if (child == 0) {
        c = load(which);
        _exit(write(ends[1], &c, sizeof(c)) == (ssize_t)sizeof(c) ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &c, sizeof(c)) != (ssize_t)sizeof(c) || waitpid(child, &status, 0) < 0)
        fail("a load failed");
    close(ends[0]);
    return c;
}

static void forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
}

static void each_file(const char *dir, void (*what)(const char *path))
{
    char path[4 * PATHS];
    DIR *d = opendir(dir);
    for (struct dirent *f; d && (f = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", dir, f->d_name);
        if (f->d_name[0] != '.')
            what(path);
    }
    if (d)
        closedir(d);
}

static void chill(int which)
{
    forget(paths[which]);
    each_file(caches[which], forget);
}

/* ---- the table ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const struct cost *all, size_t at, int n)
{
    double v[MAX_ROUNDS];
    for (int i = 0; i < n; i++)
        memcpy(&v[i], (const char *)&all[i] + at, sizeof(v[i]));
    qsort(v, (size_t)n, sizeof(v[0]), ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void compare(const char *name, bool cold, int rounds)
{
    static struct cost got[2][MAX_ROUNDS];
    static const struct {
        const char *name;
        size_t at;
    } rows[] = {{"open, wall", offsetof(struct cost, open_wall)},
                {"open, processor", offsetof(struct cost, open_cpu)},
                {"first token, wall", offsetof(struct cost, first_wall)},
                {"first token, processor", offsetof(struct cost, first_cpu)}};
    for (int r = 0; r < rounds; r++)
        for (int k = 0; k < 2; k++) {
            const int which = (r % 2) ^ k; /* each goes first as often */
            if (cold)
                chill(which);
            got[which][r] = load_apart(which);
        }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const double plain = median(got[0], rows[i].at, rounds),
                     sealed = median(got[1], rows[i].at, rounds);
        printf("%-5s %-24s %9.1f %9.1f %7.2f\n", name, rows[i].name, plain, sealed, sealed / plain);
    }
}

static void drop(const char *path)
{
    unlink(path);
}

int main(int argc, char **argv)
{
    struct err e = {0};
    const int mib = argc > 2 ? atoi(argv[2]) : 128, rounds = argc > 3 ? atoi(argv[3]) : 9;
    if (argc < 2 || mib < 1 || rounds < 1 || rounds > MAX_ROUNDS)
        fail("usage: bench_sealed MODEL [MIB [ROUNDS]]");
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/bench-sealed-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        fail("no folder");
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], PATHS, "%s/%s", folder, i ? "model.enc" : "model.gguf");
        snprintf(caches[i], PATHS, "%s/%s", folder, i ? "sealed" : "tiles");
    }
    snprintf(key, PATHS, "%s/key", folder);
    int fd = open(key, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "an example key, of 32 bytes.....", 32) != 32 || close(fd) < 0)
        fail("cannot write a key");
    grow(argv[1], paths[0], (uint64_t)mib << 20);
    const struct sealed_opts by_key = {.wrap = SEALED_KEY_FILE, .key_file = key};
    if (sealed_encrypt(paths[0], paths[1], &by_key, &e) < 0)
        fail(e.msg);
    for (int i = 0; i < 4; i++) { /* makes the tiles; the note of plain ones needs settled times */
        (void)load_apart(i % 2);
        sleep(i == 1 ? 3 : 0);
    }
    printf("%d MiB; medians of %d, ms\n%-30s %9s %9s %7s\n", mib, rounds, "", "plain", "encrypted",
           "times");
    compare("warm", false, rounds);
    compare("cold", true, rounds);
    for (int i = 0; i < 2; i++) {
        each_file(caches[i], drop);
        rmdir(caches[i]);
        unlink(paths[i]);
    }
    unlink(key);
    rmdir(folder);
    return 0;
}
