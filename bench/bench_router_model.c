/* bench_router_model.c - a decision with a router model, without a gateway around it:
 * bench_router_model ENCODER LINES [ROUNDS] prints one JSON object.
 *
 * As in a server: the text of a request is submitted to the encoder's engine, which reads it on its
 * own thread; the label and its probability then go into router_decide.  One text at a time, each
 * line of LINES once a round.  Pin it to a core (taskset) to measure one core.
 *
 *   p50_us, p99_us          from the text to the chosen model, by the clock
 *   cpu_p50_us, cpu_p99_us  CPU time of all threads of the process: not affected by other load
 *                           on the machine */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "router/router.h"
#include "shoal/shoal.h"

#define MAX_LINES 4096u
#define WARM_UP 200u

static char classifier[] = "router", home[] = "home", talk[] = "talk", all[] = "all";
static char *home_domain[] = {home}, *talk_domain[] = {talk};
static const struct router_model models[] = {
    {.name = home, .quality = 0.8, .domains = {home_domain, 1}},
    {.name = talk, .quality = 0.7, .domains = {talk_domain, 1}},
    {.name = all, .quality = 0.5},
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

static double now_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The index of the chosen model; below 0: an error. */
static int decide(struct shoal_engine *en, const char *text, size_t n, uint64_t turn,
                  struct shoal_error *e)
{
    static struct router_route route = {.classifier = classifier, .threshold = 0.5};
    struct router_candidate list[N_MODELS];
    struct router_decision d;
    struct shoal_task *task = NULL;
    const struct shoal_infer_opts o = {.size = sizeof(o),
                                       .kind = SHOAL_KIND_CLASSIFY,
                                       .text = text,
                                       .text_bytes = n,
                                       .labels = "router"};
    int rc = shoal_infer_submit(en, &o, &task, e);
    if (rc < 0)
        return rc;
    rc = shoal_task_wait(task);
    const struct shoal_result *r = shoal_task_result(task);
    struct router_request q = {.facts = {.text = text, .text_bytes = n}, .turn = turn};
    q.domain_p = (double)r->confidence;
    q.domain = q.domain_p >= route.threshold ? r->label : NULL;
    for (size_t i = 0; i < N_MODELS; i++)
        list[i] = (struct router_candidate){.model = &models[i], .state = ROUTER_READY};
    router_decide(&d, &route, &q, list, N_MODELS);
    shoal_task_free(task);
    return rc < 0 ? rc : d.chosen;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *list, size_t n, double p)
{
    qsort(list, n, sizeof(*list), by_value);
    return n ? list[(size_t)(p * (double)(n - 1))] : 0;
}

int main(int argc, char **argv)
{
    const struct shoal_engine_opts o = {
        .size = sizeof(o), .n_threads = 1, .int8 = true, .cache_dir = ""};
    const char *lines[MAX_LINES];
    size_t sizes[MAX_LINES], n_lines = 0, rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
    struct shoal_engine *en = NULL;
    struct err e = {0};
    struct buf file;
    if (argc < 3) {
        fprintf(stderr, "usage: %s ENCODER LINES [ROUNDS]\n", argv[0]);
        return 2;
    }
    buf_init(&file, (size_t)16 << 20);
    if (file_read(argv[2], &file, &e) < 0 || shoal_engine_open(&en, argv[1], &o, &e) < 0) {
        fprintf(stderr, "%s: %s\n", argv[0], e.msg);
        return 1;
    }
    char *rest = (char *)(uintptr_t)buf_str(&file);
    for (char *line; n_lines < MAX_LINES && (line = strsep(&rest, "\n"));)
        if (line[0]) {
            lines[n_lines] = line;
            sizes[n_lines++] = strlen(line);
        }
    const size_t n = rounds * n_lines;
    double *wall = calloc(n + 1, sizeof(*wall)), *cpu = calloc(n + 1, sizeof(*cpu));
    size_t counts[N_MODELS] = {0};
    for (size_t i = 0; wall && cpu && i < n + WARM_UP; i++) {
        const double w = now_us(CLOCK_MONOTONIC), c = now_us(CLOCK_PROCESS_CPUTIME_ID);
        const int chosen = decide(en, lines[i % n_lines], sizes[i % n_lines], i, &e);
        if (chosen < 0) {
            fprintf(stderr, "%s: %s\n", argv[0], e.msg);
            return 1;
        }
        if (i >= WARM_UP) {
            cpu[i - WARM_UP] = now_us(CLOCK_PROCESS_CPUTIME_ID) - c;
            wall[i - WARM_UP] = now_us(CLOCK_MONOTONIC) - w;
            counts[chosen]++;
        }
    }
    printf("{\"decisions\":%zu,\"home\":%zu,\"talk\":%zu,\"all\":%zu,\"p50_us\":%.1f,"
           "\"p99_us\":%.1f,\"cpu_p50_us\":%.1f,\"cpu_p99_us\":%.1f}\n",
           n, counts[0], counts[1], counts[2], quantile(wall, n, 0.5), quantile(wall, n, 0.99),
           quantile(cpu, n, 0.5), quantile(cpu, n, 0.99));
    free(wall);
    free(cpu);
    shoal_engine_close(en);
    buf_fini(&file);
    return 0;
}
