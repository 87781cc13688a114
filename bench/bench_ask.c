/* bench_ask.c - measures how fast the included models load and answer a command; prints one JSON
 * line.
 *
 * bench_ask MODELS_DIR N THREADS TEXT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "apps/home/ask/ask_pack.h"
#include "eval/quality.h"

struct one {
    uint64_t start, plan, first;
};

static void event(void *ctx, const struct ask_request *r, const struct ask_event *ev)
{
    struct one *o = ctx;
    (void)r;
    if (ev->kind == ASK_EVENT_PLAN)
        o->plan = clock_ns();
    else if (ev->kind == ASK_EVENT_TEXT && !o->first)
        o->first = clock_ns();
}

/* CPU time of the process: other load on the machine does not affect it. */
static double cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void put(const char *name, double *ms, size_t n, const char *end)
{
    printf("\"%s\":{\"p50\":%.3f,\"p95\":%.3f,\"p99\":%.3f,\"max\":%.3f}%s", name,
           quality_quantile(ms, n, 0.5), quality_quantile(ms, n, 0.95),
           quality_quantile(ms, n, 0.99), quality_quantile(ms, n, 1.0), end);
}

int main(int argc, char **argv)
{
    struct ask_pack p;
    struct err e = {0};
    struct rusage u;
    if (argc != 5) {
        fprintf(stderr, "usage: bench_ask MODELS_DIR N THREADS TEXT\n");
        return 2;
    }
    size_t n = strtoul(argv[2], NULL, 10);
    struct ask_pack_opts o = {.dir = argv[1], .n_threads = (uint32_t)strtoul(argv[3], NULL, 10)};
    double *plan = mem_zalloc_n(n, sizeof(*plan)), *first = mem_zalloc_n(n, sizeof(*first));
    double *whole = mem_zalloc_n(n, sizeof(*whole)), *cpu = mem_zalloc_n(n, sizeof(*cpu));
    uint64_t t0 = clock_ns();
    if (n == 0 || !plan || !first || !whole || !cpu || ask_pack_open(&p, &o, &e) < 0) {
        fprintf(stderr, "bench_ask: %s\n", e.msg);
        return 1;
    }
    double ready = (double)(clock_ns() - t0) / 1e6;
    for (size_t i = 0; i < n; i++) {
        struct one one = {.start = clock_ns()};
        struct ask_request *r;
        double cpu_from = cpu_ms();
        struct ask_opts ao = {
            .text = argv[4], .text_bytes = strlen(argv[4]), .event = event, .event_ctx = &one};
        if (ask_submit(p.ask, &ao, &r, &e) < 0 || ask_wait(r) < 0) {
            fprintf(stderr, "bench_ask: %s\n", e.msg);
            return 1;
        }
        whole[i] = (double)(clock_ns() - one.start) / 1e6;
        cpu[i] = cpu_ms() - cpu_from;
        plan[i] = (double)(one.plan - one.start) / 1e6;
        first[i] = (double)(one.first - one.start) / 1e6;
        ask_free(r);
    }
    getrusage(RUSAGE_SELF, &u);
    printf("{\"ready_ms\":%.3f,\"rss_mib\":%.1f,\"n\":%zu,", ready, (double)u.ru_maxrss / 1024.0,
           n);
    put("action_ms", plan, n, ",");
    put("first_word_ms", first, n, ",");
    put("reply_ms", whole, n, ",");
    put("reply_cpu_ms", cpu, n, "}\n");
    ask_pack_close(&p);
    mem_free(plan);
    mem_free(first);
    mem_free(whole);
    mem_free(cpu);
    return 0;
}
