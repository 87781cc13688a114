/* bench_placement.c - CPU time of the placement planner: bench_placement NODES MODELS ROUNDS
 * prints one JSON object.  The cluster is made from a fixed seed: five kinds of nodes, models from
 * 20 MiB to 4 GiB. The planner has one thread, so processor time is what it takes on an idle core.
 *
 *   new_ms     plan an empty cluster
 *   again_ms   plan again when everything is in place (no steps)
 *   churn_ms   plan after a hundredth of the nodes left
 *   tight_ms   plan an empty cluster whose models need more memory than it has
 *   packed     of tight: placed bytes / min(wanted, available)
 *   slowness   of new: mean slowness of the replicas / that of the fastest nodes if all were free
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "cluster/placement/placement_check.h"

#define MIB ((uint64_t)1 << 20)

struct cluster {
    struct placement_node *nodes;
    struct placement_model *models;
    struct placement_replica *current;
    struct placement_input in;
    char (*names)[32];
};

static uint64_t seed = 1;

static uint32_t roll(uint32_t n)
{
    seed += 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash_mix(seed) % n);
}

static void *checked(void *p)
{
    if (!p) {
        fprintf(stderr, "bench_placement: out of memory\n");
        exit(1);
    }
    return p;
}

/* fill: how much of the memory is wanted. */
static void make(struct cluster *k, size_t n_nodes, size_t n_models, double fill)
{
    static const struct {
        uint64_t mib;
        double bytes_per_s, tokens_per_s;
    } kinds[] = {{1024, 4e9, 60},
                 {2048, 8e9, 100},
                 {4096, 12e9, 160},
                 {16384, 40e9, 400},
                 {65536, 200e9, 900}};
    static const char *const zones[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    static const char *const labels[] = {"gpu", "line", "lab"};
    uint64_t there = 0, wanted = 0;
    seed = n_nodes * 31 + n_models;
    k->nodes = checked(calloc(n_nodes + 1, sizeof(*k->nodes)));
    k->models = checked(calloc(n_models + 1, sizeof(*k->models)));
    k->current = checked(calloc(n_nodes * 64 + 1, sizeof(*k->current)));
    k->names = checked(calloc(n_nodes + n_models + 1, sizeof(*k->names)));
    for (size_t i = 0; i < n_nodes; i++) {
        uint32_t kind = roll(16) ? roll(4) : 4;
        double speed = 0.8 + 0.4 * roll(1000) / 1000;
        struct placement_node *n = &k->nodes[i];
        snprintf(k->names[i], sizeof(k->names[i]), "node-%05zu", i);
        *n = (struct placement_node){.name = k->names[i], .memory_bytes = kinds[kind].mib * MIB};
        n->zone = zones[roll(8)]; /* one roll per statement: the same cluster with every compiler */
        n->labels.v = labels + roll(2);
        n->labels.n = roll(3);
        n->cost = 0.5 + 0.5 * roll(3);
        n->load = 0.1 * roll(4);
        for (int s = 0; s < PLACEMENT_N_KINDS; s++)
            n->speed[s] = (struct placement_speed){kinds[kind].bytes_per_s * speed,
                                                   kinds[kind].tokens_per_s * speed};
        there += n->memory_bytes;
    }
    for (size_t i = 0; i < n_models; i++) {
        struct placement_model *m = &k->models[i];
        char *name = k->names[n_nodes + i];
        snprintf(name, sizeof(*k->names), "model-%03zu", i);
        *m = (struct placement_model){.name = name};
        uint32_t most = roll(10) ? 1000 : 4000;
        m->memory_bytes = (20 + roll(most)) * MIB;
        m->spread = roll(2);
        m->labels = (struct placement_strs){labels, roll(10) == 0};
        m->priority = (int32_t)roll(3);
    }
    for (size_t i = 0; wanted < (uint64_t)((double)there * fill) && n_models > 0; i++) {
        struct placement_model *m = &k->models[i % n_models];
        if (m->min_replicas < n_nodes)
            m->min_replicas++;
        wanted += m->memory_bytes;
        if (i > n_nodes * 40)
            break;
    }
    k->in = (struct placement_input){.nodes = k->nodes,
                                     .n_nodes = n_nodes,
                                     .models = k->models,
                                     .n_models = n_models,
                                     .current = k->current,
                                     .policy = placement_policy_default(),
                                     .now_ms = 1000000000};
}

static void drop(struct cluster *k)
{
    free(k->nodes);
    free(k->models);
    free(k->current);
    free(k->names);
}

static double cpu_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static struct placement_plan *plan(struct cluster *k, double *ms)
{
    struct placement_plan *p;
    struct err e = {0};
    double start = cpu_ms();
    if (placement_plan(&p, &k->in, &e) < 0) {
        fprintf(stderr, "bench_placement: %s\n", e.msg);
        exit(1);
    }
    *ms = cpu_ms() - start;
    if (placement_check(&k->in, p, &e) < 0) {
        fprintf(stderr, "bench_placement: %s\n", e.msg);
        exit(1);
    }
    return p;
}

static void carry_out(struct cluster *k, const struct placement_plan *p)
{
    for (size_t i = 0; i < p->n_places && i < k->in.n_nodes * 64; i++)
        k->current[k->in.n_current++] = (struct placement_replica){
            .node = k->nodes[p->places[i].node].name, .model = k->models[p->places[i].model].name};
}

static int by_slowness(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds per token of all replicas, relative to giving each model the fastest nodes exclusively.
 */
static double slowness(const struct cluster *k, const struct placement_plan *p)
{
    double got = 0, best = 0;
    double *all = checked(calloc(k->in.n_nodes + 1, sizeof(*all)));
    size_t *n = checked(calloc(k->in.n_models + 1, sizeof(*n)));
    double *mean = checked(calloc(k->in.n_models + 1, sizeof(*mean)));
    for (size_t m = 0; m < k->in.n_models; m++)
        for (size_t i = 0; i < k->in.n_nodes; i++)
            mean[m] += placement_rate(&k->nodes[i], &k->models[m]) / (double)k->in.n_nodes;
    for (size_t i = 0; i < p->n_places; i++) {
        const struct placement_place *at = &p->places[i];
        got += mean[at->model] / placement_rate(&k->nodes[at->node], &k->models[at->model]);
        n[at->model]++;
    }
    for (size_t m = 0; m < k->in.n_models; m++) {
        for (size_t i = 0; i < k->in.n_nodes; i++)
            all[i] = mean[m] / placement_rate(&k->nodes[i], &k->models[m]);
        qsort(all, k->in.n_nodes, sizeof(*all), by_slowness);
        for (size_t i = 0; i < n[m]; i++)
            best += all[i];
    }
    free(all);
    free(n);
    free(mean);
    return best > 0 ? got / best : 1;
}

static bool can_have(const struct placement_node *n, const struct placement_model *m)
{
    bool labelled = m->labels.n == 0;
    for (uint32_t i = 0; i < n->labels.n && !labelled; i++)
        labelled = strcmp(n->labels.v[i], m->labels.v[0]) == 0;
    return labelled && n->memory_bytes >= m->memory_bytes;
}

/* No plan can place more: a node holds at most its memory or one replica of each model it may run,
 * and a model has at most one replica on each node that may run it. */
static double packed(const struct cluster *k, const struct placement_plan *p)
{
    double there = 0, wanted = 0, placed = 0;
    uint32_t *n = checked(calloc(k->in.n_models + 1, sizeof(*n)));
    for (size_t i = 0; i < k->in.n_nodes; i++) {
        double all = 0, memory = (double)k->nodes[i].memory_bytes;
        for (size_t m = 0; m < k->in.n_models; m++)
            if (can_have(&k->nodes[i], &k->models[m])) {
                all += (double)k->models[m].memory_bytes;
                n[m]++;
            }
        there += all < memory ? all : memory;
    }
    for (size_t m = 0; m < k->in.n_models; m++) {
        uint32_t most = n[m] < k->models[m].min_replicas ? n[m] : k->models[m].min_replicas;
        wanted += (double)k->models[m].memory_bytes * most;
    }
    for (size_t i = 0; i < p->n_places; i++)
        placed += (double)k->models[p->places[i].model].memory_bytes;
    free(n);
    return placed / (wanted < there ? wanted : there);
}

int main(int argc, char **argv)
{
    size_t n_nodes = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    size_t n_models = argc > 2 ? strtoul(argv[2], NULL, 10) : 200;
    unsigned long rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
    if (n_nodes == 0 || n_models == 0 || rounds == 0) {
        fprintf(stderr, "usage: bench_placement [NODES [MODELS [ROUNDS]]]\n");
        return 2;
    }
    struct cluster k, tight;
    struct placement_plan *first = NULL;
    double ms;
    make(&k, n_nodes, n_models, 0.7);
    make(&tight, n_nodes, n_models, 1.3);
    printf("{\"nodes\":%zu,\"models\":%zu,\"new_ms\":[", n_nodes, n_models);
    for (unsigned long i = 0; i < rounds; i++) {
        placement_destroy(first);
        first = plan(&k, &ms);
        printf("%s%.3f", i ? "," : "", ms);
    }
    carry_out(&k, first);
    size_t n_again = 0, n_churn = 0;
    printf("],\"again_ms\":[");
    for (unsigned long i = 0; i < rounds; i++) {
        struct placement_plan *p = plan(&k, &ms);
        n_again = p->n_steps;
        printf("%s%.3f", i ? "," : "", ms);
        placement_destroy(p);
    }
    size_t n_left = n_nodes / 100 ? n_nodes / 100 : 1, n_lost = 0;
    for (size_t i = 0; i < first->n_places; i++)
        n_lost += first->places[i].node >= n_nodes - n_left;
    k.in.n_nodes -= n_left;
    printf("],\"churn_ms\":[");
    for (unsigned long i = 0; i < rounds; i++) {
        struct placement_plan *p = plan(&k, &ms);
        n_churn = p->n_loads;
        printf("%s%.3f", i ? "," : "", ms);
        placement_destroy(p);
    }
    k.in.n_nodes += n_left;
    struct placement_plan *full = NULL;
    printf("],\"tight_ms\":[");
    for (unsigned long i = 0; i < rounds; i++) {
        placement_destroy(full);
        full = plan(&tight, &ms);
        printf("%s%.3f", i ? "," : "", ms);
    }
    printf("],\"replicas\":%zu,\"again_steps\":%zu,\"lost\":%zu,\"churn_loads\":%zu,\"gaps\":%zu,"
           "\"slowness\":%.4f,\"packed\":%.4f}\n",
           first->n_places, n_again, n_lost, n_churn, first->n_gaps, slowness(&k, first),
           packed(&tight, full));
    placement_destroy(first);
    placement_destroy(full);
    drop(&k);
    drop(&tight);
    return 0;
}
