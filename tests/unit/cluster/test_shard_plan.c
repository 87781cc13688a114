/* test_shard_plan.c - which nodes compute which layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/shard/shard_plan.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* 1.1 B at Q8_0: 22 layers. */
static const struct shard_plan_model big = {.n_layers = 22,
                                            .dim = 2048,
                                            .layer_bytes = 44 * MIB,
                                            .head_bytes = 65 * MIB,
                                            .kv_bytes = 8 * MIB,
                                            .scratch_bytes = 20 * MIB};

static const struct shard_want automatic = {SHARD_AUTO, 1, SHARD_PLAN_MAX_PARTS, false};

static struct shard_plan_node machine(const char *name, uint64_t memory, double rate)
{
    return (struct shard_plan_node){
        .name = name, .memory_bytes = memory, .rate = rate, .rtt_s = 0.001, .link_rate = 110e6};
}

/* Consecutive layers, all of them, the engine's last; and everything fits. */
static void check(const struct shard_plan *p, const struct shard_plan_model *m,
                  const struct shard_plan_node *nodes)
{
    uint32_t at = 0;
    assert_true(p->fits && p->n_parts >= 1 && p->n_parts <= SHARD_PLAN_MAX_PARTS);
    assert_int_equal(p->parts[p->n_parts - 1].node, 0);
    for (uint32_t i = 0; i < p->n_parts; i++) {
        const struct shard_plan_part *part = &p->parts[i];
        const uint64_t n = part->end - part->first;
        const uint64_t head = i + 1 == p->n_parts ? m->head_bytes : 0;
        assert_int_equal(part->first, at);
        assert_true(part->end > part->first);
        if (nodes[part->node].memory_bytes)
            assert_true(n * (m->layer_bytes + m->kv_bytes) + m->scratch_bytes + head <=
                        nodes[part->node].memory_bytes);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(p->parts[j].node, part->node);
        at = part->end;
    }
    assert_int_equal(at, m->n_layers);
    assert_true(p->token_s > 0 && p->first_s > p->token_s && p->rate_8 > 0);
}

static void test_stays_whole_where_it_fits(void **state)
{
    (void)state;
    const struct shard_plan_node nodes[] = {machine("a", 4 * GIB, 10e9),
                                            machine("b", 4 * GIB, 10e9)};
    struct shard_plan p;
    assert_int_equal(shard_plan_choose(&p, &big, nodes, 2, automatic, 0, NULL), 0);
    check(&p, &big, nodes);
    assert_int_equal(p.n_parts, 1);
    assert_int_equal(p.bytes, 0);
}

static void test_a_much_faster_node_is_used(void **state)
{
    (void)state;
    struct shard_plan_node nodes[] = {machine("a", 4 * GIB, 4e9), machine("b", 4 * GIB, 40e9)};
    struct shard_plan p;
    assert_int_equal(shard_plan_choose(&p, &big, nodes, 2, automatic, 0, NULL), 0);
    check(&p, &big, nodes);
    assert_int_equal(p.n_parts, 2);
    assert_int_equal(p.parts[0].node, 1);
    assert_true(p.parts[0].end > 15);
    nodes[1].rtt_s = 0.5; /* and is not, when it is far away */
    assert_int_equal(shard_plan_choose(&p, &big, nodes, 2, automatic, 0, NULL), 0);
    assert_int_equal(p.n_parts, 1);
}

static void test_spreads_what_no_node_can_hold(void **state)
{
    (void)state;
    const struct shard_plan_node nodes[] = {
        machine("a", 700 * MIB, 10e9), machine("b", 400 * MIB, 10e9), machine("c", 500 * MIB, 5e9)};
    struct shard_plan p;
    assert_int_equal(shard_plan_choose(&p, &big, nodes, 3, automatic, 0, NULL), 0);
    check(&p, &big, nodes);
    assert_int_equal(p.n_parts, 3); /* 11 + 7 + 9 layers: any two are too few */
    struct err e = {0};
    assert_int_equal(shard_plan_choose(&p, &big, nodes, 2, automatic, 0, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "22 layers do not fit"));
}

static void test_keeps_the_engines_layers_when_a_node_is_lost(void **state)
{
    (void)state;
    const struct shard_plan_node nodes[] = {machine("a", 0, 10e9), machine("b", 2 * GIB, 10e9),
                                            machine("c", 2 * GIB, 9e9)};
    const struct shard_want two = {SHARD_LAYERS, 2, 2, false};
    struct shard_plan p;
    assert_int_equal(shard_plan_choose(&p, &big, nodes, 3, two, 9, NULL), 0);
    check(&p, &big, nodes);
    assert_int_equal(p.parts[1].first, 9);
    assert_int_equal(p.parts[0].end, 9);
    assert_int_equal(shard_plan_choose(&p, &big, nodes, 1, automatic, 9, NULL), SHOAL_ELIMIT);
}

static void test_as_many_nodes_as_asked_for(void **state)
{
    (void)state;
    struct shard_plan_node nodes[8];
    struct shard_plan p;
    for (uint32_t i = 0; i < 8; i++)
        nodes[i] = machine("x", 4 * GIB, 1e10 - 1e9 * i);
    for (uint32_t n = 2; n <= 8; n++) {
        const struct shard_want want = {SHARD_LAYERS, n, n, false};
        assert_int_equal(shard_plan_choose(&p, &big, nodes, 8, want, 0, NULL), 0);
        check(&p, &big, nodes);
        assert_int_equal(p.n_parts, n);
    }
    const struct shard_plan_model tiny = {
        .n_layers = 2, .dim = 8, .layer_bytes = 1, .head_bytes = 1};
    assert_false(shard_plan_with(&p, &tiny, nodes, 8, 3));
}

static void test_figures_follow_links_and_machines(void **state)
{
    (void)state;
    struct shard_plan_node nodes[] = {machine("a", 4 * GIB, 10e9), machine("b", 4 * GIB, 10e9)};
    struct shard_plan near, far, thin;
    assert_true(shard_plan_with(&near, &big, nodes, 2, 2));
    nodes[1].rtt_s = 0.020;
    assert_true(shard_plan_with(&far, &big, nodes, 2, 2));
    nodes[1].rtt_s = 0.001;
    nodes[1].link_rate = 1e6;
    assert_true(shard_plan_with(&thin, &big, nodes, 2, 2));
    assert_true(far.token_s > near.token_s + 0.018 && far.token_s < near.token_s + 0.020);
    assert_true(thin.token_s > near.token_s + 0.008); /* 8 KiB at 1 MB/s */
    assert_true(near.wire < far.wire);
    assert_int_equal(near.bytes, 2048 * 4 + 4);
    /* reading 1033 MiB at 10 GB/s, and a round trip */
    assert_true(near.token_s > 0.108 && near.token_s < 0.111);
}

static void test_settings(void **state)
{
    (void)state;
    struct shard_want w;
    assert_int_equal(shard_want_read(&w, "none", NULL), 0);
    assert_int_equal(w.mode, SHARD_NONE);
    assert_int_equal(shard_want_read(&w, "auto", NULL), 0);
    assert_true(w.mode == SHARD_AUTO && w.min == 1 && w.max == SHARD_PLAN_MAX_PARTS);
    assert_int_equal(shard_want_read(&w, "layers:3", NULL), 0);
    assert_true(w.mode == SHARD_LAYERS && w.min == 3 && w.max == 3);
    assert_int_equal(shard_want_read(&w, "layers:2..4", NULL), 0);
    assert_true(w.min == 2 && w.max == 4);
    assert_int_equal(shard_want_read(&w, "rows:2..8", NULL), 0);
    assert_true(w.mode == SHARD_ROWS && w.min == 2 && w.max == 8);
    assert_int_equal(shard_want_read(&w, "rows:3", NULL), 0);
    assert_true(w.min == 3 && w.max == 3);
    assert_true(!w.q8);
    assert_int_equal(shard_want_read(&w, "layers:2..4 q8", NULL), 0);
    assert_true(w.mode == SHARD_LAYERS && w.max == 4 && w.q8);
    static const char *const bad[] = {
        "none q8",   " q8",          "rows:2 q9",  "rows:2  q8",   "rows",       "rows:9",
        "rows:3..2", "rowslayers:2", "",           "layers",       "layers:",    "layers:1",
        "layers:9",  "layers:4..2",  "layers:2..", "layers:2..4x", "layers:-2",  "layers:2...4",
        "rows:1",    "Auto",         "none ",      "layers:22",    "layers:0..4"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (shard_want_read(&w, bad[i], NULL) != SHOAL_EINVAL)
            fail_msg("\"%s\" is taken", bad[i]);
}

static struct shard_plan_model by_rows(void)
{
    struct shard_plan_model m = big;
    m.rows = true;
    m.ffn_dim = 5632;
    return m;
}

/* Shares of all layers add up and fit, the engine's node is last. */
static void check_rows(const struct shard_plan *p, const struct shard_plan_model *m,
                       const struct shard_plan_node *nodes)
{
    const double all = (double)(m->n_layers * (m->layer_bytes + m->kv_bytes));
    double sum = 0;
    assert_true(p->rows && p->fits && p->n_parts >= 2);
    assert_int_equal(p->parts[p->n_parts - 1].node, 0);
    for (uint32_t i = 0; i < p->n_parts; i++) {
        const struct shard_plan_part *part = &p->parts[i];
        const uint64_t head = i + 1 == p->n_parts ? m->head_bytes : 0;
        assert_true(part->share > 0 && part->first == 0 && part->end == m->n_layers);
        if (nodes[part->node].memory_bytes)
            assert_true(part->share * all + (double)(m->scratch_bytes + head) <=
                        (double)nodes[part->node].memory_bytes);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(p->parts[j].node, part->node);
        sum += part->share;
    }
    assert_true(sum > 0.999999 && sum < 1.000001);
    assert_true(p->token_s > 0 && p->first_s > p->token_s && p->rate_8 > 0);
}

static void test_rows_by_speed_and_memory(void **state)
{
    (void)state;
    const struct shard_plan_model m = by_rows();
    struct shard_plan_node nodes[] = {machine("a", 0, 10e9), machine("b", 0, 30e9),
                                      machine("c", 300 * MIB, 10e9)};
    const struct shard_want two = {SHARD_ROWS, 2, 2, false}, three = {SHARD_ROWS, 3, 3, false};
    struct shard_plan p, again;
    struct err e = {0};
    nodes[1].rtt_s = nodes[2].rtt_s = 0.0001;
    nodes[1].link_rate = nodes[2].link_rate = 1e9;
    assert_int_equal(shard_plan_choose(&p, &m, nodes, 3, two, 0, NULL), 0);
    check_rows(&p, &m, nodes);
    assert_true(p.parts[0].node == 1 && p.parts[0].share > 0.749 && p.parts[0].share < 0.751);
    /* 968 MiB at 40 GB/s together, the head at 10, and 88 gathers of 50 us and some bytes */
    assert_true(p.token_s > 0.0365 && p.token_s < 0.0385);
    assert_int_equal(p.bytes, (3 * 2048 + 5632) * 22 * 4);
    assert_int_equal(shard_plan_choose(&p, &m, nodes, 3, three, 0, NULL), 0);
    check_rows(&p, &m, nodes); /* the third is full before its speed is used */
    /* after a loss the engine's node keeps its share */
    const struct shard_want any = {SHARD_ROWS, 2, SHARD_PLAN_MAX_PARTS, false};
    const double own = p.parts[2].share;
    assert_int_equal(shard_plan_rows(&again, &m, nodes, 2, any, own, NULL), 0);
    assert_true(again.n_parts == 2 && again.parts[1].share == own &&
                again.parts[0].share > 1 - own - 1e-9);
    /* what is far away is slower by a round trip for each gather */
    struct shard_plan far;
    nodes[1].rtt_s = 0.0101;
    assert_true(shard_plan_rows_with(&p, &m, nodes, 2, 2, 0));
    nodes[1].rtt_s = 0.0001;
    assert_true(shard_plan_rows_with(&far, &m, nodes, 2, 2, 0));
    assert_true(p.token_s > far.token_s + 0.43 && p.token_s < far.token_s + 0.45);
    nodes[0].memory_bytes = nodes[1].memory_bytes = 300 * MIB;
    assert_int_equal(shard_plan_choose(&p, &m, nodes, 3, three, 0, &e), SHOAL_ELIMIT);
    assert_int_equal(shard_plan_choose(&p, &big, nodes, 3, two, 0, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "write layers:2"));
}

static void test_rows_of_any_machines(void **state)
{
    (void)state;
    const struct shard_plan_model m = by_rows();
    uint32_t n_found = 0;
    srand(11);
    for (int round = 0; round < 500; round++) {
        struct shard_plan_node nodes[12];
        struct shard_plan p;
        const uint32_t n = 1 + (uint32_t)rand() % 12;
        for (uint32_t i = 0; i < n; i++)
            nodes[i] = machine("x", (100 + (uint64_t)rand() % 1500) * MIB, 1e9 * (1 + rand() % 30));
        for (uint32_t k = 1; k <= SHARD_PLAN_MAX_PARTS + 1; k++)
            if (shard_plan_rows_with(&p, &m, nodes, n, k, 0)) {
                assert_true(k >= 2 && k <= n);
                check_rows(&p, &m, nodes);
                n_found++;
            }
    }
    assert_true(n_found > 300);
}

/* Any machines at all: plans are sound, and the chosen one is not beaten by another count. */
static void test_any_machines(void **state)
{
    (void)state;
    srand(7);
    uint32_t n_found = 0;
    for (int round = 0; round < 500; round++) {
        struct shard_plan_node nodes[12];
        struct shard_plan best, p;
        const uint32_t n = 1 + (uint32_t)rand() % 12;
        for (uint32_t i = 0; i < n; i++) {
            nodes[i] = machine("x", (100 + (uint64_t)rand() % 1500) * MIB, 1e9 * (1 + rand() % 30));
            nodes[i].rtt_s = 0.0001 * (1 + rand() % 200);
            nodes[i].link_rate = 1e6 * (1 + rand() % 1000);
        }
        const bool found = shard_plan_choose(&best, &big, nodes, n, automatic, 0, NULL) == 0;
        n_found += found;
        if (found)
            check(&best, &big, nodes);
        for (uint32_t k = 1; k <= SHARD_PLAN_MAX_PARTS; k++) {
            if (!shard_plan_with(&p, &big, nodes, n, k))
                continue;
            check(&p, &big, nodes);
            assert_true(found);
            assert_true(shard_plan_request_s(&p) > (1 - SHARD_PLAN_GAIN) * (1 - SHARD_PLAN_GAIN) *
                                                       shard_plan_request_s(&best));
        }
    }
    assert_true(n_found > 100);
}

/* 10,000 nodes: the time is printed, not asserted. */
static void test_many_nodes(void **state)
{
    (void)state;
    const uint32_t n = 10000;
    struct shard_plan_node *nodes = calloc(n, sizeof(*nodes));
    struct shard_plan p;
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = machine("x", (300 + i % 200) * MIB, 1e9 * (1 + i % 17));
    const uint64_t t0 = clock_ns();
    assert_int_equal(shard_plan_choose(&p, &big, nodes, n, automatic, 0, NULL), 0);
    printf("%u nodes: %.1f ms\n", n, (double)(clock_ns() - t0) / 1e6);
    check(&p, &big, nodes);
    free(nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stays_whole_where_it_fits),
        cmocka_unit_test(test_a_much_faster_node_is_used),
        cmocka_unit_test(test_spreads_what_no_node_can_hold),
        cmocka_unit_test(test_keeps_the_engines_layers_when_a_node_is_lost),
        cmocka_unit_test(test_as_many_nodes_as_asked_for),
        cmocka_unit_test(test_figures_follow_links_and_machines),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_any_machines),
        cmocka_unit_test(test_rows_by_speed_and_memory),
        cmocka_unit_test(test_rows_of_any_machines),
        cmocka_unit_test(test_many_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
