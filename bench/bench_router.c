/* bench_router.c - a routing simulator around the real code: bench_router [REQUESTS [LINES]] prints
 * one JSON object for each policy under each load.
 *
 * Requests go to simulated replicas of four models on five different nodes.  All decisions are
 * made by product code: router_decide, and for each replica the cost model of the engine
 * (engine/cost.h), which learns from what the simulated replica does.  Remote nodes report their
 * state every 200 ms, as heartbeats do; the length of an answer and the noise of a machine are
 * known only afterwards.
 *
 * LINES: a file with a recorded text in each line; every second request of the command kind takes
 * its length from there.  All policies get the same requests, from a fixed seed.
 *
 *   sla        share of requests answered within their budget, in percent
 *   quality    mean quality of the models that answered
 *   useful     the same, with 0 for answers that came late
 *   oracle     knows lengths, noise and queues: picks the best quality that will be in time
 *   p50, p99   of a decision, in microseconds: router_decide alone */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "engine/cost.h"
#include "router/router.h"

#define MS 1e6
#define MAX_REPLICAS 16u
#define MAX_PARALLEL 8u
#define MAX_INFLIGHT 4096u
#define MAX_LINES 65536u
#define HEARTBEAT_NS (200 * MS)

static char tiny[] = "tiny", small[] = "small", medium[] = "medium", large[] = "large";
static struct router_model models[] = {{.name = tiny, .quality = 0.55, .cost = 1},
                                       {.name = small, .quality = 0.70, .cost = 2},
                                       {.name = medium, .quality = 0.82, .cost = 5},
                                       {.name = large, .quality = 0.90, .cost = 12}};

struct task {
    double begin, end;
    uint32_t prompt, tokens, max_tokens;
    double token_ns, prefill_ns, predicted;
    uint32_t batch;
};

struct replica {
    const char *node;
    uint32_t model, parallel;
    double prefill, token, rtt; /* true costs */
    struct cost cost;
    double free_at[MAX_PARALLEL];
    struct task in_flight[MAX_INFLIGHT];
    uint32_t n;
    struct router_speed told; /* at its last heartbeat */
    double told_at;
};

static const struct {
    const char *node;
    uint32_t model, parallel;
    double prefill_us, token_us, rtt_ms;
} site[] = {
    {NULL, 0, 8, 15, 350, 0},       {NULL, 1, 4, 60, 1600, 0},    {"pi", 0, 4, 90, 2200, 2.5},
    {"pi2", 0, 4, 90, 2300, 3.0},   {"pc", 1, 8, 25, 700, 0.8},   {"pc", 2, 6, 90, 2600, 0.8},
    {"pc2", 2, 6, 110, 3000, 0.9},  {"server", 2, 8, 12, 500, 1}, {"server", 3, 8, 40, 1500, 1},
    {"server2", 3, 8, 45, 1700, 1},
};
#define N_REPLICAS (sizeof(site) / sizeof(site[0]))

struct request {
    double at, budget;
    uint32_t prompt, tokens, max_tokens;
    double noise;
    uint64_t session;
};

/* ---- requests ---- */

static uint64_t seed;

static double uniform(void)
{
    seed += 0x9e3779b97f4a7c15u;
    return (double)(hash_mix(seed) >> 11) / 0x1p53;
}

static double normal(void)
{
    double u = uniform(), v = uniform();
    return sqrt(-2 * log(u + 1e-12)) * cos(6.283185307179586 * v);
}

static uint32_t between(uint32_t lo, uint32_t hi)
{
    return lo + (uint32_t)(uniform() * (hi - lo + 1));
}

static const struct load {
    const char *name;
    double gap_ms;   /* mean time between two requests, outside of bursts */
    double patience; /* factor on the budgets below */
} loads[] = {{"light load", 12, 1}, {"usual load", 8, 0.6}, {"heavy load", 6, 0.6}};

/* Commands, conversations and summaries, as a home or a workshop sends them, some in bursts. */
static void make_requests(struct request *list, uint32_t n, const struct load *load,
                          const uint32_t *lengths, uint32_t n_lengths)
{
    double at = 0;
    seed = 14;
    for (uint32_t i = 0; i < n; i++) {
        struct request *r = &list[i];
        double kind = uniform(), gap = uniform() < 0.2 ? 2 * MS : load->gap_ms * MS;
        at += -log(uniform() + 1e-12) * gap;
        r->at = at;
        r->session = between(1, 500);
        r->noise = exp(0.08 * normal());
        if (kind < 0.6) { /* a command: a short answer, needed at once */
            bool recorded = n_lengths > 0 && i % 2 == 0;
            r->prompt = recorded ? lengths[between(0, n_lengths - 1)] + 8 : between(12, 60);
            r->max_tokens = 24;
            r->tokens = between(6, 24);
            r->budget = load->patience * (40 + 260 * uniform()) * MS;
        } else if (kind < 0.93) { /* a conversation */
            double length = 60 * exp(0.5 * normal());
            r->prompt = between(60, 500);
            r->max_tokens = 160;
            r->tokens = length < 8 ? 8 : length > 160 ? 160 : (uint32_t)length;
            r->budget = load->patience * (500 + 2500 * uniform()) * MS;
        } else { /* a summary */
            r->prompt = between(400, 1800);
            r->max_tokens = 120;
            r->tokens = between(60, 120);
            r->budget = (2000 + 4000 * uniform()) * MS;
        }
    }
}

/* ---- replicas ---- */

static struct replica world[N_REPLICAS];

static void reset_world(void)
{
    memset(world, 0, sizeof(world));
    for (size_t i = 0; i < N_REPLICAS; i++) {
        struct replica *p = &world[i];
        p->node = site[i].node;
        p->model = site[i].model;
        p->parallel = site[i].parallel;
        p->prefill = site[i].prefill_us * 1e3;
        p->token = site[i].token_us * 1e3;
        p->rtt = site[i].rtt_ms * MS;
        p->told_at = -1e18;
    }
}

/* When it would begin, and how long it would take. */
static double place(const struct replica *p, const struct request *r, double now, uint32_t *slot,
                    struct task *t)
{
    uint32_t best = 0, busy = 0;
    double begin = now + p->rtt / 2;
    for (uint32_t i = 0; i < p->parallel; i++) {
        busy += p->free_at[i] > begin;
        if (p->free_at[i] < p->free_at[best])
            best = i;
    }
    *slot = best;
    if (p->free_at[best] > begin)
        begin = p->free_at[best];
    /* a fuller batch is slower for each of its members */
    double batch = 1 + 0.1 * busy;
    *t = (struct task){.begin = begin,
                       .prompt = r->prompt,
                       .tokens = r->tokens,
                       .max_tokens = r->max_tokens,
                       .token_ns = p->token * batch * r->noise,
                       .prefill_ns = p->prefill * r->noise,
                       .batch = busy < p->parallel ? busy + 1 : p->parallel};
    t->end = begin + t->prompt * t->prefill_ns + t->tokens * t->token_ns;
    return t->end + p->rtt / 2 - now;
}

/* The cost model learns from finished requests. */
static void learn(struct replica *p, double now)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct task *t = &p->in_flight[i];
        uint64_t at = (uint64_t)t->end + 1;
        if (t->end > now) {
            p->in_flight[n++] = *t;
            continue;
        }
        cost_saw_step(
            &p->cost, at,
            (struct cost_time){.ns = (uint64_t)(t->prompt * t->prefill_ns), .ran_ns = COST_RAN}, 0,
            t->prompt);
        cost_saw_step(&p->cost, at,
                      (struct cost_time){.ns = (uint64_t)t->token_ns, .ran_ns = COST_RAN}, t->batch,
                      0);
        cost_saw_answer(&p->cost, at, t->tokens, t->tokens < t->max_tokens);
        cost_saw_total(&p->cost, at, t->predicted, (uint64_t)(t->end - t->begin));
    }
    p->n = n;
}

static struct router_speed tell(struct replica *p, double now)
{
    struct cost_load l = {.max_active = p->parallel};
    for (uint32_t i = 0; i < p->n; i++) {
        const struct task *t = &p->in_flight[i];
        double left = t->begin > now ? 1 : (t->end - now) / (t->end - t->begin);
        l.n_active += t->begin <= now;
        l.n_waiting += t->begin > now;
        uint64_t tokens = (uint64_t)(left * cost_expected_tokens(&p->cost, t->max_tokens, false));
        l.decode_tokens += tokens;
        if (t->begin > now) {
            l.prompt_tokens += t->prompt;
            l.waiting_decode += tokens;
        }
    }
    const struct cost_telemetry t = cost_tell(&p->cost, &l, (uint64_t)now + 1);
    return (struct router_speed){.prefill_ns = t.prefill_ns,
                                 .token_ns = t.token_ns,
                                 .queue_ns = t.queue_ns,
                                 .rtt_ns = p->rtt,
                                 .answer_tokens = t.answer_tokens,
                                 .error = t.error,
                                 .in_flight = t.in_flight,
                                 .parallel = t.parallel};
}

/* What a gateway knows about the replica. */
static struct router_speed seen(struct replica *p, double now)
{
    if (!p->node)
        return tell(p, now);
    if (now - p->told_at >= HEARTBEAT_NS) {
        p->told = tell(p, now);
        p->told_at = now;
    }
    struct router_speed s = p->told;
    router_speed_unseen(&s, p->n);
    return s;
}

/* ---- policies ---- */

struct outcome {
    double sla, quality, useful;
    uint32_t degraded;
};

static uint32_t *times; /* of decisions, in nanoseconds */

static uint64_t clock_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint32_t ask_router(const struct router_route *route, const struct request *r, uint32_t i,
                           struct router_estimate *estimate, bool *degraded)
{
    struct router_candidate c[N_REPLICAS];
    static struct router_decision d;
    const struct router_request q = {
        .facts = {.path = "/v1/chat/completions", .client = "", .language = "", .kind = "generate"},
        .work = {.prompt_tokens = r->prompt, .max_tokens = r->max_tokens},
        .budget_ns = r->budget,
        .key = r->session,
        .turn = i};
    for (size_t k = 0; k < N_REPLICAS; k++)
        c[k] = (struct router_candidate){.model = &models[world[k].model],
                                         .node = world[k].node,
                                         .speed = seen(&world[k], r->at)};
    uint64_t t0 = clock_now();
    router_decide(&d, route, &q, c, N_REPLICAS);
    times[i] = (uint32_t)(clock_now() - t0);
    if (d.chosen < 0) {
        fprintf(stderr, "bench_router: no choice\n");
        exit(1);
    }
    *estimate = d.estimates[d.chosen];
    *degraded = d.degraded;
    return (uint32_t)d.chosen;
}

/* Knows everything: the best quality in time, ties to the soonest; if none is in time, the soonest.
 */
static uint32_t ask_oracle(const struct request *r)
{
    uint32_t best = 0, slot;
    double best_quality = -1, best_ns = 0;
    struct task t;
    for (uint32_t k = 0; k < N_REPLICAS; k++) {
        double ns = place(&world[k], r, r->at, &slot, &t);
        double quality = ns <= r->budget ? models[world[k].model].quality : 0;
        if (quality > best_quality || (quality == best_quality && ns < best_ns)) {
            best = k;
            best_quality = quality;
            best_ns = ns;
        }
    }
    return best;
}

/* route NULL: the oracle. */
static struct outcome simulate(const struct router_route *route, const struct request *list,
                               uint32_t n)
{
    struct outcome o = {0};
    reset_world();
    for (uint32_t i = 0; i < n; i++) {
        const struct request *r = &list[i];
        struct router_estimate estimate = {.total_ns = 0};
        bool degraded = false;
        uint32_t slot;
        struct task t;
        for (size_t k = 0; k < N_REPLICAS; k++)
            learn(&world[k], r->at);
        uint32_t k = route ? ask_router(route, r, i, &estimate, &degraded) : ask_oracle(r);
        struct replica *p = &world[k];
        double ns = place(p, r, r->at, &slot, &t);
        t.predicted = estimate.prefill_ns + estimate.decode_ns;
        if (p->n == MAX_INFLIGHT) {
            fprintf(stderr, "bench_router: a queue is too long\n");
            exit(1);
        }
        p->in_flight[p->n++] = t;
        p->free_at[slot] = t.end;
        bool in_time = ns <= r->budget;
        o.sla += in_time;
        o.quality += models[p->model].quality;
        o.useful += in_time ? models[p->model].quality : 0;
        o.degraded += degraded;
    }
    o.sla *= 100.0 / n;
    o.quality /= n;
    o.useful /= n;
    return o;
}

static int by_time(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void print(const char *load, const char *name, const struct outcome *o, uint32_t n,
                  bool timed)
{
    printf("{\"load\":\"%s\",\"policy\":\"%s\",\"requests\":%u,\"sla\":%.3f,\"quality\":%.4f,"
           "\"useful\":%.4f,"
           "\"degraded\":%u",
           load, name, n, o->sla, o->quality, o->useful, o->degraded);
    if (timed) {
        qsort(times, n, sizeof(*times), by_time);
        printf(",\"p50_us\":%.3f,\"p99_us\":%.3f", times[n / 2] / 1e3,
               times[(size_t)n * 99 / 100] / 1e3);
    }
    printf("}\n");
}

static uint32_t read_lengths(const char *path, uint32_t *out)
{
    FILE *f = path ? fopen(path, "r") : NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t got;
    uint32_t n = 0;
    while (f && n < MAX_LINES && (got = getline(&line, &room, f)) >= 0)
        if (got > 1)
            out[n++] = (uint32_t)got / 4 + 1;
    free(line);
    if (f)
        fclose(f);
    return n;
}

int main(int argc, char **argv)
{
    static const char *const policies[] = {"sla",     "round_robin", "least_loaded",
                                           "latency", "cheapest",    "hash"};
    static uint32_t lengths[MAX_LINES];
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100000;
    uint32_t n_lengths = read_lengths(argc > 2 ? argv[2] : NULL, lengths);
    struct request *list = n > 0 ? calloc(n, sizeof(*list)) : NULL;
    times = n > 0 ? calloc(n, sizeof(*times)) : NULL;
    if (!list || !times || (argc > 2 && n_lengths == 0)) {
        fprintf(stderr, "usage: bench_router [REQUESTS [LINES]]\n");
        return 2;
    }
    for (size_t l = 0; l < sizeof(loads) / sizeof(loads[0]); l++) {
        make_requests(list, n, &loads[l], lengths, n_lengths);
        struct outcome o = simulate(NULL, list, n);
        print(loads[l].name, "oracle", &o, n, false);
        for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
            static char name[] = "bench";
            struct router_route route = {.name = name, .models = models, .n_models = 4};
            struct err e = {0};
            if (router_policy_add(&route.policy, policies[i], &e) < 0)
                return 1;
            o = simulate(&route, list, n);
            print(loads[l].name, policies[i], &o, n, true);
        }
    }
    free(list);
    free(times);
    return 0;
}
