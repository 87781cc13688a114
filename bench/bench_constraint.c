/* bench_constraint.c - what a constraint adds to decoding: the same model with and without a JSON
 * Schema, in turn.
 *
 * usage: bench_constraint MODEL.gguf [--rounds N] [--tokens N] [--only plain|cold|warm] [--temp X]
 *
 * A round is three answers to the same prompt, one after the other: cold, under a schema that the
 * engine has not seen; warm, under one that it has; plain, without a schema and with as many tokens
 * as the warm one had.  Prints one line of JSON for each schema: the median tokens per second of
 * each, and what the schema adds, in time and in processor time.  Times are from submit to the
 * last event, so a cold answer's time includes compiling.
 *
 * --only makes all answers of one kind, for instruction counts: run it under callgrind with two
 * numbers of rounds and divide the difference by the difference of the printed tokens
 * (bench/constraint.js does). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "shoal/shoal.h"

#define MAX_ROUNDS 1000u

enum mode { COLD, WARM, PLAIN, N_MODES };
static const char *const mode_names[] = {"cold", "warm", "plain"};

/* %u: a number that makes each schema unique. */
static const struct {
    const char *name, *schema;
} shapes[] = {
    {"person",
     "{\"title\":\"%u\",\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
     "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":120},\"email\":{\"type\":\"string\","
     "\"format\":\"email\"},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
     "\"required\":[\"name\",\"age\",\"email\",\"tags\"]}"},
    {"order",
     "{\"title\":\"%u\",\"type\":\"object\",\"properties\":{\"order_id\":{\"type\":\"integer\"},"
     "\"status\":{\"enum\":[\"accepted\",\"shipped\",\"delivered\",\"returned\"]},"
     "\"customer_reference\":{\"type\":\"string\",\"maxLength\":12},\"express_delivery\":"
     "{\"type\":\"boolean\"},\"delivery_date\":{\"type\":\"string\",\"format\":\"date\"},"
     "\"total_amount\":{\"type\":\"number\"}},\"required\":[\"order_id\",\"status\","
     "\"customer_reference\",\"express_delivery\",\"delivery_date\",\"total_amount\"]}"},
    /* nothing is forced here: measures only the cost of choosing among allowed tokens */
    {"text", "{\"title\":\"%u\",\"type\":\"string\",\"minLength\":2000}"},
};

struct options {
    const char *model;
    uint32_t rounds, tokens;
    int only; /* enum mode, or -1 */
    float temperature;
};

struct answer {
    uint32_t n;
    uint64_t wall_ns, cpu_ns;
};

struct samples {
    double wall[N_MODES][MAX_ROUNDS], cpu[N_MODES][MAX_ROUNDS]; /* ns per token */
    uint64_t tokens;
    uint32_t n;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct answer *a = ctx;
    if (ev->kind == SHOAL_EVENT_TOKEN && ev->token >= 0)
        a->n++;
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_constraint: %s: %s\n", what, why);
    exit(1);
}

/* schema NULL: a plain answer of max tokens. */
static struct answer ask(struct shoal_engine *en, const struct options *o, const char *schema,
                         uint32_t max)
{
    static const int32_t prompt[] = {1, 300, 412, 517, 699, 743, 801, 977};
    struct answer a = {0};
    struct shoal_task *t;
    struct err e = {0};
    const struct shoal_task_opts q = {.size = sizeof(q),
                                      .tokens = prompt,
                                      .n_tokens = sizeof(prompt) / sizeof(prompt[0]),
                                      .max_tokens = max,
                                      .ignore_end = true,
                                      .sampling = {.temperature = o->temperature, .seed = 7},
                                      .event = on_event,
                                      .event_ctx = &a,
                                      .constraint =
                                          schema ? SHOAL_CONSTRAINT_SCHEMA : SHOAL_CONSTRAINT_NONE,
                                      .constraint_text = schema,
                                      .constraint_bytes = schema ? strlen(schema) : 0};
    const uint64_t wall = clock_ns(), cpu = cpu_ns();
    if (shoal_task_submit(en, &q, &t, &e) < 0)
        die("submit", e.msg);
    if (shoal_task_wait(t) < 0)
        die("answer", "failed");
    a.wall_ns = clock_ns() - wall;
    a.cpu_ns = cpu_ns() - cpu;
    shoal_task_free(t);
    return a;
}

static void keep(struct samples *s, enum mode mode, const struct answer *a)
{
    s->wall[mode][s->n] = (double)a->wall_ns / a->n;
    s->cpu[mode][s->n] = (double)a->cpu_ns / a->n;
    s->tokens += a->n;
}

static void one_round(struct shoal_engine *en, const struct options *o, const char *format,
                      uint32_t number, struct samples *s)
{
    char cold[2048], warm[2048];
    struct answer a;
    uint32_t n = o->tokens;
    snprintf(cold, sizeof(cold), format, number + 1);
    snprintf(warm, sizeof(warm), format, 0u);
    if (o->only < 0 || o->only == COLD) {
        a = ask(en, o, cold, o->tokens);
        keep(s, COLD, &a);
    }
    if (o->only < 0 || o->only == WARM) {
        a = ask(en, o, warm, o->tokens);
        keep(s, WARM, &a);
        n = a.n;
    }
    if (o->only < 0 || o->only == PLAIN) {
        a = ask(en, o, NULL, n);
        keep(s, PLAIN, &a);
    }
    s->n++;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *v, uint32_t n)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, v, n * sizeof(*v));
    qsort(sorted, n, sizeof(*sorted), by_value);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static void print_samples(const char *name, const struct options *o, const struct samples *s)
{
    printf("{\"schema\":\"%s\",\"rounds\":%u,\"tokens\":%llu", name, s->n,
           (unsigned long long)s->tokens);
    for (int mode = 0; mode < N_MODES; mode++)
        if (o->only < 0 || o->only == mode)
            printf(",\"%s_tok_s\":%.1f", mode_names[mode], 1e9 / median(s->wall[mode], s->n));
    for (int mode = 0; mode < PLAIN && o->only < 0; mode++)
        printf(",\"%s_adds\":%.3f,\"%s_adds_cpu\":%.3f", mode_names[mode],
               median(s->wall[mode], s->n) / median(s->wall[PLAIN], s->n) - 1, mode_names[mode],
               median(s->cpu[mode], s->n) / median(s->cpu[PLAIN], s->n) - 1);
    printf("}\n");
    fflush(stdout);
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_constraint MODEL.gguf [--rounds N] [--tokens N] "
                    "[--only plain|cold|warm] [--temp X]\n");
    return 2;
}

static int read_options(struct options *o, int argc, char **argv)
{
    *o = (struct options){
        .model = argc > 1 ? argv[1] : NULL, .rounds = 15, .tokens = 64, .only = -1};
    if (argc < 2 || argc % 2 != 0)
        return -1;
    for (int i = 2; i < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--rounds") == 0)
            o->rounds = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--tokens") == 0)
            o->tokens = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--temp") == 0)
            o->temperature = strtof(value, NULL);
        else if (strcmp(argv[i], "--only") == 0)
            for (int k = 0; k < N_MODES; k++)
                o->only = strcmp(value, mode_names[k]) == 0 ? k : o->only;
        else
            return -1;
    }
    return o->rounds > 0 && o->rounds <= MAX_ROUNDS && o->tokens > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    static struct samples s;
    struct options o;
    struct shoal_engine *en;
    struct err e = {0};
    if (read_options(&o, argc, argv) < 0)
        return usage();
    const struct shoal_engine_opts open = {.size = sizeof(open), .n_threads = 1, .max_tasks = 1};
    if (shoal_engine_open(&en, o.model, &open, &e) < 0)
        die(o.model, e.msg);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        char warm[2048];
        s = (struct samples){.n = 0};
        snprintf(warm, sizeof(warm), shapes[i].schema, 0u);
        if (o.only != PLAIN) /* the vocabulary's tree, and the sets of the warm schema */
            ask(en, &o, warm, o.tokens);
        for (uint32_t k = 0; k < o.rounds; k++)
            one_round(en, &o, shapes[i].schema, k, &s);
        print_samples(shapes[i].name, &o, &s);
    }
    shoal_engine_close(en);
    return 0;
}
