/* node_measure.c - see node_measure.h. */
#include "cluster/machine/node_measure.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/membw.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "cluster/machine/node_gpu.h"
#include "cluster/machine/speed_history.h"
#include "cluster/messages/node_state.h"
#include "host/pack.h"
#include "shoal/shoal.h"
#include "shoal/shoal_version.h"

#define MS_NS 1000000u
#define BANDWIDTH_MS 100u
#define REGION_BYTES ((size_t)256 << 20)
#define MIN_REGION_BYTES ((size_t)8 << 20)
#define PROBE_TOKENS 64u
#define PROBE_NS (900ull * MS_NS)
#define DELAY_MS 3000u
#define AGAIN_MS 60000u
#define MAX_AGAIN_MS 3600000u
#define IDLE_CHECKS 10 /* one after the other, before the probe */
#define MAX_PROBES 5u

struct node_measure {
    struct node_measure_opts opts;
    char *cache_dir;
    pthread_t thread;
    bool threaded;
    char key[17];         /* of this machine and program */
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    bool stop;
    struct speed_history bandwidth, probe;
    struct node_gpu gpu;
};

/* False: it must stop. */
static bool pause_ms(struct node_measure *m, uint32_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t at = (uint64_t)until.tv_nsec + (uint64_t)ms * MS_NS;
    until.tv_sec += (time_t)(at / 1000000000u);
    until.tv_nsec = (long)(at % 1000000000u);
    pthread_mutex_lock(&m->lock);
    while (!m->stop && pthread_cond_timedwait(&m->wake, &m->lock, &until) == 0)
        ;
    bool go_on = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return go_on;
}

/* Waits until no request has run for this many tenths of a second. */
static bool wait_idle(struct node_measure *m, int checks)
{
    for (int quiet = 0; quiet < checks;) {
        if (!pause_ms(m, 100))
            return false;
        quiet = m->opts.busy(m->opts.ctx) ? 0 : quiet + 1;
    }
    return true;
}

/* ---- kept results ---- */

static void make_key(struct node_measure *m, const struct pack_model *probe)
{
    char hex[2 * SHA256_BYTES + 1] = "";
    struct utsname u = {0};
    struct buf info, all;
    uname(&u);
    if (probe && probe->n_files > 0)
        sha256_hex(hex, probe->files[0].sha256);
    buf_init(&info, 4 << 20);
    buf_init(&all, 4 << 20);
    buf_printf(&all, "%s %s %ld %ld %s", SHOAL_VERSION, u.machine, sysconf(_SC_NPROCESSORS_ONLN),
               sysconf(_SC_PHYS_PAGES), hex);
    if (file_read("/proc/cpuinfo", &info, NULL) == 0)
        for (const char *p = buf_str(&info); p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
            if (strncmp(p, "model name", 10) == 0 || strncmp(p, "CPU part", 8) == 0)
                buf_put(&all, p, strcspn(p, "\n"));
    hash_hex(m->key, hash_bytes(buf_str(&all), all.len, 1));
    m->key[16] = '\0';
    buf_fini(&info);
    buf_fini(&all);
}

static bool cache_path(const struct node_measure *m, char out[PATH_MAX])
{
    return m->cache_dir && snprintf(out, PATH_MAX, "%s/machine", m->cache_dir) < PATH_MAX;
}

/* The line of the file that begins with the word, or NULL. */
static const char *line_of(const char *text, const char *word)
{
    for (const char *p = text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
        if (strncmp(p, word, strlen(word)) == 0)
            return p + strlen(word);
    return NULL;
}

static void load(struct node_measure *m)
{
    char path[PATH_MAX], first[64];
    struct buf b;
    buf_init(&b, 4096);
    snprintf(first, sizeof(first), "shoal machine 2 %s\n", m->key);
    if (cache_path(m, path) && file_read(path, &b, NULL) == 0 &&
        strncmp(buf_str(&b), first, strlen(first)) == 0) {
        const char *bandwidth = line_of(buf_str(&b), "bandwidth");
        const char *probe = line_of(buf_str(&b), "probe");
        pthread_mutex_lock(&m->lock);
        speed_history_read(&m->bandwidth, bandwidth ? bandwidth : "");
        speed_history_read(&m->probe, probe ? probe : "");
        pthread_mutex_unlock(&m->lock);
    }
    buf_fini(&b);
}

/* Results that cannot be kept are measured again. */
static void save(const struct node_measure *m)
{
    char path[PATH_MAX], temp[PATH_MAX + 32];
    struct buf b;
    if (!cache_path(m, path))
        return;
    buf_init(&b, 4096);
    buf_printf(&b, "shoal machine 2 %s\nbandwidth", m->key);
    speed_history_write(&m->bandwidth, &b);
    buf_printf(&b, "\nprobe");
    speed_history_write(&m->probe, &b);
    buf_printf(&b, "\n");
    snprintf(temp, sizeof(temp), "%s.%d.tmp", path, (int)getpid());
    mkdir(m->cache_dir, 0755);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    bool ok = fd >= 0 && b.rc == 0 && write(fd, b.data, b.len) == (ssize_t)b.len;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    if (fd >= 0 && (!ok || rename(temp, path) < 0))
        unlink(temp);
    buf_fini(&b);
}

/* ---- measuring ---- */

static double measure_bandwidth(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_AVPHYS_PAGES);
    size_t n = (size_t)(pages > 0 ? pages : 0) * (size_t)sysconf(_SC_PAGESIZE) / 16;
    n = n > REGION_BYTES ? REGION_BYTES : n < MIN_REGION_BYTES ? MIN_REGION_BYTES : n;
    uint8_t *p = mem_pages(n);
    if (!p)
        return 0;
    memset(p, 1, n);
    double gb_s = membw_read(p, n, cores > 0 ? (uint32_t)cores : 1, BANDWIDTH_MS);
    mem_pages_free(p, n);
    return gb_s * 1e9;
}

struct probe_run {
    _Atomic bool done;
    _Atomic uint32_t tokens;
    _Atomic uint64_t first_ns, last_ns;
};

static void on_token(void *ctx, const struct shoal_event *e)
{
    struct probe_run *p = ctx;
    if (e->kind == SHOAL_EVENT_TOKEN) {
        uint64_t now = clock_ns();
        if (p->tokens++ == 0)
            p->first_ns = now;
        p->last_ns = now;
    } else {
        p->done = true;
    }
}

/* Tokens per second; 0: a request arrived, or it failed. */
static double run_probe(struct node_measure *m, struct shoal_engine *engine)
{
    const int32_t prompt[] = {1, 2, 3, 4};
    struct probe_run p = {.done = false};
    struct shoal_task *task = NULL;
    const struct shoal_task_opts o = {.size = sizeof(o),
                                      .tokens = prompt,
                                      .n_tokens = 4,
                                      .max_tokens = PROBE_TOKENS,
                                      .ignore_end = true,
                                      .priority = -1,
                                      .event = on_token,
                                      .event_ctx = &p};
    uint64_t until = clock_ns() + PROBE_NS;
    bool disturbed = false;
    if (shoal_task_submit(engine, &o, &task, NULL) < 0)
        return 0;
    while (!p.done && !disturbed && clock_ns() < until) {
        disturbed = m->opts.busy(m->opts.ctx);
        disturbed |= !pause_ms(m, 5);
    }
    shoal_task_cancel(task);
    (void)shoal_task_wait(task);
    shoal_task_free(task);
    uint64_t ns = p.last_ns - p.first_ns;
    return disturbed || p.tokens < 2 || ns == 0 ? 0 : (double)(p.tokens - 1) * 1e9 / (double)ns;
}

static double measure_probe(struct node_measure *m, const struct pack_model *model)
{
    const struct shoal_engine_opts o = {.size = sizeof(o), .n_ctx = 128, .max_tasks = 1};
    struct shoal_engine *engine = NULL;
    struct shoal_error e = {0};
    double best = 0;
    for (uint32_t i = 0; best == 0 && i < MAX_PROBES && wait_idle(m, IDLE_CHECKS); i++) {
        if (!engine && shoal_engine_open(&engine, model->open, &o, &e) < 0) {
            log_warn("node", "the speed of this node could not be measured: %s", e.msg);
            break;
        }
        best = run_probe(m, engine);
    }
    shoal_engine_close(engine);
    return best;
}

static void publish(struct node_measure *m, struct speed_history *to, double value)
{
    pthread_mutex_lock(&m->lock);
    speed_history_add(to, value);
    pthread_mutex_unlock(&m->lock);
    save(m);
}

/* Once, when idle; false: it must stop. */
static bool measure(struct node_measure *m, const struct pack_model *probe)
{
    const struct node_measure_opts *o = &m->opts;
    if (!wait_idle(m, 1))
        return false;
    publish(m, &m->bandwidth, o->bandwidth ? o->bandwidth(o->ctx) : measure_bandwidth());
    if (o->probe || probe)
        publish(m, &m->probe, o->probe ? o->probe(o->ctx) : measure_probe(m, probe));
    log_info("node",
             "this machine reads %.1f GB/s (recently up to %.0f %% less); probe: %.0f tokens/s "
             "(up to %.0f %% less); GPU: %s",
             speed_history_best(&m->bandwidth) / 1e9, 100 * speed_history_spread(&m->bandwidth),
             speed_history_best(&m->probe), 100 * speed_history_spread(&m->probe),
             m->gpu.n ? m->gpu.name : "none");
    return true;
}

static void *measure_main(void *arg)
{
    struct node_measure *m = arg;
    struct pack *pack = NULL;
    struct node_gpu gpu;
    const struct pack_model *probe =
        pack_open(&pack, NULL, NULL) == 0 ? pack_find(pack, "reply-draft") : NULL;
    uint32_t again = m->opts.again_ms ? m->opts.again_ms : AGAIN_MS;
    make_key(m, probe);
    load(m);
    node_gpu_read(&gpu);
    pthread_mutex_lock(&m->lock);
    m->gpu = gpu;
    pthread_mutex_unlock(&m->lock);
    bool go_on = pause_ms(m, m->opts.delay_ms ? m->opts.delay_ms : DELAY_MS);
    while (go_on && measure(m, probe)) {
        go_on = pause_ms(m, again);
        again = again < MAX_AGAIN_MS / 2 ? again * 2 : MAX_AGAIN_MS;
    }
    pack_close(pack);
    return NULL;
}

/* ---- lifetime ---- */

int node_measure_open(struct node_measure **out, const struct node_measure_opts *o, struct err *e)
{
    struct node_measure *m = mem_zalloc(sizeof(*m));
    *out = NULL;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "measuring the machine");
    m->opts = *o;
    pthread_mutex_init(&m->lock, NULL);
    cond_init(&m->wake);
    int rc = 0;
    if (o->cache_dir && !(m->cache_dir = mem_strdup(o->cache_dir)))
        rc = err_set(e, SHOAL_ENOMEM, "measuring the machine");
    if (rc == 0)
        rc = thread_create(&m->thread, "measure", measure_main, m, e);
    m->threaded = rc == 0;
    if (rc < 0) {
        node_measure_close(m);
        return rc;
    }
    *out = m;
    return 0;
}

void node_measure_close(struct node_measure *m)
{
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_broadcast(&m->wake);
    pthread_mutex_unlock(&m->lock);
    if (m->threaded)
        pthread_join(m->thread, NULL);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    mem_free(m->cache_dir);
    mem_free(m);
}

void node_measure_fill(struct node_measure *m, struct node_state *s)
{
    pthread_mutex_lock(&m->lock);
    s->bandwidth = speed_history_best(&m->bandwidth);
    s->probe_tokens = speed_history_best(&m->probe);
    s->gpu = m->gpu.name; /* written once, before n is */
    s->n_gpus = m->gpu.n;
    s->gpu_bytes = m->gpu.memory_bytes;
    pthread_mutex_unlock(&m->lock);
    if (s->n_gpus == 0)
        s->gpu = "";
}
