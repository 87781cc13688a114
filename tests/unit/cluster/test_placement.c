/* test_placement.c - cluster/placement: plans for small clusters in detail, and for random ones by
 * their properties. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cluster/placement/placement_check.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define MAX_NODES 64u
#define MAX_MODELS 16u
#define MAX_CURRENT 2048u
#define EXPECTED_PLANS 0xe69283bcb4d48279u

/* ---- a cluster on the test's side ---- */

struct cluster {
    struct placement_node nodes[MAX_NODES];
    struct placement_model models[MAX_MODELS];
    struct placement_replica current[MAX_CURRENT];
    struct placement_input in;
};

static struct cluster *cluster_make(size_t n_nodes, size_t n_models)
{
    struct cluster *k = calloc(1, sizeof(*k));
    assert_non_null(k);
    k->in = (struct placement_input){.nodes = k->nodes,
                                     .n_nodes = n_nodes,
                                     .models = k->models,
                                     .n_models = n_models,
                                     .current = k->current,
                                     .policy = placement_policy_default(),
                                     .now_ms = 100000000};
    return k;
}

static struct placement_node board(const char *name, const char *zone, uint64_t bytes, double speed)
{
    struct placement_node n = {.name = name, .zone = zone, .memory_bytes = bytes, .cost = 1};
    for (int i = 0; i < PLACEMENT_N_KINDS; i++)
        n.speed[i].bytes_per_s = speed;
    return n;
}

static struct placement_model small(const char *name, uint64_t bytes, uint32_t min)
{
    return (struct placement_model){.name = name, .memory_bytes = bytes, .min_replicas = min};
}

/* Plans and checks the plan. */
static struct placement_plan *plan(const struct cluster *k)
{
    struct placement_plan *p;
    struct err e = {0};
    if (placement_plan(&p, &k->in, &e) < 0)
        fail_msg("%s", e.msg);
    if (placement_check(&k->in, p, &e) < 0) {
        for (size_t i = 0; i < p->n_steps; i++)
            print_message("%u %s %s on %s: %s\n", p->steps[i].wave,
                          p->steps[i].action == PLACEMENT_LOAD ? "load" : "unload",
                          p->steps[i].model_name, p->steps[i].node_name, p->steps[i].reason);
        fail_msg("%s", e.msg);
    }
    return p;
}

/* The plan was carried out: everything is ready. */
static void carry_out(struct cluster *k, const struct placement_plan *p)
{
    assert_true(p->n_places <= MAX_CURRENT);
    for (size_t i = 0; i < p->n_places; i++)
        k->current[i] = (struct placement_replica){.node = k->nodes[p->places[i].node].name,
                                                   .model = k->models[p->places[i].model].name};
    k->in.n_current = p->n_places;
}

static bool has_step(const struct placement_plan *p, enum placement_action action,
                     const char *model, const char *node, const char *reason)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct placement_step *s = &p->steps[i];
        if (s->action == action && strcmp(s->model_name, model) == 0 &&
            (!node || strcmp(s->node_name, node) == 0) && (!reason || strstr(s->reason, reason)))
            return true;
    }
    return false;
}

static void expect_step(const struct placement_plan *p, enum placement_action action,
                        const char *model, const char *node, const char *reason)
{
    if (has_step(p, action, model, node, reason))
        return;
    for (size_t i = 0; i < p->n_steps; i++)
        print_message("%u %s %s on %s: %s\n", p->steps[i].wave,
                      p->steps[i].action == PLACEMENT_LOAD ? "load" : "unload",
                      p->steps[i].model_name, p->steps[i].node_name, p->steps[i].reason);
    fail_msg("no %s of %s on %s: %s", action == PLACEMENT_LOAD ? "load" : "unload", model,
             node ? node : "any node", reason ? reason : "any reason");
}

static const struct placement_strs gpu = {(const char *const[]){"gpu"}, 1};

/* ---- small clusters ---- */

static void test_new_models_go_to_the_fastest_nodes(void **state)
{
    struct cluster *k = cluster_make(3, 2);
    (void)state;
    k->nodes[0] = board("slow", "a", 4 * GIB, 1e9);
    k->nodes[1] = board("fast", "a", 4 * GIB, 8e9);
    k->nodes[2] = board("mid", "a", 4 * GIB, 4e9);
    k->models[0] = small("chat", GIB, 1);
    k->models[1] = small("big", 5 * GIB, 1);
    struct placement_plan *p = plan(k);
    assert_int_equal(p->n_steps, 1);
    expect_step(p, PLACEMENT_LOAD, "chat", "fast", "new model: replica 1 of 1");
    assert_int_equal(p->n_gaps, 1);
    assert_int_equal(p->gaps[0].model, 1);
    assert_int_equal(p->gaps[0].n_missing, 1);
    assert_string_equal(p->gaps[0].reason, "0 of 1 replicas: needs 5.0 GiB, largest node has 4.0 "
                                           "GiB; nodes: 3 too small");
    placement_destroy(p);
    free(k);
}

static void test_a_lost_node_is_replaced_and_nothing_else_moves(void **state)
{
    struct cluster *k = cluster_make(3, 1);
    (void)state;
    k->nodes[0] = board("hub-1", "a", 4 * GIB, 4e9);
    k->nodes[1] = board("hub-3", "b", 4 * GIB, 4e9);
    k->nodes[2] = board("hub-4", "c", 4 * GIB, 4e9);
    k->models[0] = small("chat", GIB, 2);
    k->models[0].spread = true;
    k->current[0] = (struct placement_replica){.node = "hub-1", .model = "chat"};
    k->current[1] = (struct placement_replica){.node = "hub-2", .model = "chat"};
    k->in.n_current = 2;
    struct placement_plan *p = plan(k);
    assert_int_equal(p->n_steps, 1);
    expect_step(p, PLACEMENT_LOAD, "chat", "hub-3", "node hub-2 left");
    placement_destroy(p);
    k->models[0].min_replicas = 3;
    k->in.n_current = 1;
    k->in.n_nodes = 2;
    p = plan(k);
    expect_step(p, PLACEMENT_LOAD, "chat", "hub-3", "zone b has no replica; 3 wanted, 1 there");
    assert_string_equal(p->gaps[0].reason,
                        "2 of 3 replicas: needs 1.0 GiB; nodes: 2 have it already");
    placement_destroy(p);
    free(k);
}

static void test_a_drained_node_becomes_empty_after_the_load(void **state)
{
    struct cluster *k = cluster_make(2, 1);
    (void)state;
    k->nodes[0] = board("a", NULL, 2 * GIB, 4e9);
    k->nodes[1] = board("b", NULL, 2 * GIB, 2e9);
    k->nodes[0].drained = true;
    k->models[0] = small("chat", GIB, 1);
    k->current[0] = (struct placement_replica){.node = "a", .model = "chat"};
    k->in.n_current = 1;
    struct placement_plan *p = plan(k);
    assert_int_equal(p->n_steps, 2);
    assert_int_equal(p->steps[0].action, PLACEMENT_LOAD);
    assert_int_equal(p->steps[0].pair, 1);
    assert_int_equal(p->steps[1].pair, 0);
    assert_true(p->steps[1].wave > p->steps[0].wave);
    expect_step(p, PLACEMENT_LOAD, "chat", "b", "node a is drained");
    expect_step(p, PLACEMENT_UNLOAD, "chat", "a", "moved to b: node a is drained");
    placement_destroy(p);
    /* While it loads there, nothing happens; then the old one leaves. */
    k->current[1] =
        (struct placement_replica){.node = "b", .model = "chat", .state = PLACEMENT_LOADING};
    k->in.n_current = 2;
    p = plan(k);
    assert_int_equal(p->n_steps, 0);
    placement_destroy(p);
    k->current[1].state = PLACEMENT_READY;
    p = plan(k);
    assert_int_equal(p->n_steps, 1);
    expect_step(p, PLACEMENT_UNLOAD, "chat", "a", "node a is drained");
    placement_destroy(p);
    /* No other node: it stays, and the plan says so. */
    k->in.n_nodes = k->in.n_current = 1;
    p = plan(k);
    assert_int_equal(p->n_steps, 0);
    assert_string_equal(p->gaps[0].reason, "stays on a (node a is drained): needs 1.0 GiB; nodes: "
                                           "1 drained");
    placement_destroy(p);
    free(k);
}

static void test_a_move_needs_a_gain_and_a_cool_down(void **state)
{
    struct cluster *k = cluster_make(2, 1);
    (void)state;
    k->nodes[0] = board("old", NULL, 2 * GIB, 1e9);
    k->nodes[1] = board("new", NULL, 2 * GIB, 3.1e9);
    k->models[0] = small("chat", GIB, 1);
    k->current[0] =
        (struct placement_replica){.node = "old", .model = "chat", .since_ms = k->in.now_ms - 1000};
    k->in.n_current = 1;
    struct placement_plan *p = plan(k);
    assert_int_equal(p->n_steps, 0); /* assigned a second ago */
    placement_destroy(p);
    k->in.now_ms += k->in.policy.cooldown_ms;
    p = plan(k);
    assert_int_equal(p->n_steps, 2);
    assert_int_equal(p->n_moves, 1);
    expect_step(p, PLACEMENT_LOAD, "chat", "new", "faster node: 3.1x");
    placement_destroy(p);
    k->in.policy.max_moves = 0;
    p = plan(k);
    assert_int_equal(p->n_steps, 0);
    placement_destroy(p);
    k->in.policy.max_moves = 1;
    k->nodes[1] = board("new", NULL, 2 * GIB, 1.1e9); /* too little gain */
    p = plan(k);
    assert_int_equal(p->n_steps, 0);
    placement_destroy(p);
    free(k);
}

static void test_constraints(void **state)
{
    struct cluster *k = cluster_make(4, 4);
    (void)state;
    k->nodes[0] = board("a", "x", 8 * GIB, 9e9);
    k->nodes[1] = board("b", "x", 8 * GIB, 1e9);
    k->nodes[2] = board("c", "y", 8 * GIB, 1e9);
    k->nodes[3] = board("d", "y", 8 * GIB, 1e9);
    k->nodes[1].labels = gpu;
    k->models[0] = small("needs-gpu", GIB, 1);
    k->models[0].labels = gpu;
    k->models[1] = small("in-y", GIB, 2);
    k->models[1].zones = (struct placement_strs){(const char *const[]){"y"}, 1};
    k->models[2] = small("one-per-zone", GIB, 3);
    k->models[2].max_per_zone = 1;
    k->models[3] = small("pinned", GIB, 1);
    k->models[3].pins = (struct placement_strs){(const char *const[]){"d", "gone"}, 2};
    struct placement_plan *p = plan(k);
    expect_step(p, PLACEMENT_LOAD, "needs-gpu", "b", NULL);
    expect_step(p, PLACEMENT_LOAD, "in-y", "c", NULL);
    expect_step(p, PLACEMENT_LOAD, "in-y", "d", NULL);
    expect_step(p, PLACEMENT_LOAD, "pinned", "d", "pinned to d");
    assert_int_equal(p->n_gaps, 2);
    assert_string_equal(p->gaps[0].reason, "2 of 3 replicas: needs 1.0 GiB; nodes: 2 have it "
                                           "already, 2 in zones that have enough of it");
    assert_string_equal(p->gaps[1].reason, "pinned to gone, which is not there");
    carry_out(k, p);
    placement_destroy(p);
    k->nodes[1].labels.n = 0; /* the label is removed: the model stays until another node has it */
    p = plan(k);
    assert_string_equal(p->gaps[0].reason, "stays on b (node b lacks label gpu): needs 1.0 GiB; "
                                           "nodes: 4 lack a label");
    placement_destroy(p);
    k->nodes[2].labels = gpu;
    p = plan(k);
    expect_step(p, PLACEMENT_LOAD, "needs-gpu", "c", "node b lacks label gpu");
    placement_destroy(p);
    free(k);
}

static void test_models_that_stay_apart(void **state)
{
    struct cluster *k = cluster_make(2, 2);
    (void)state;
    k->nodes[0] = board("a", "x", 8 * GIB, 9e9);
    k->nodes[1] = board("b", "x", 8 * GIB, 1e9);
    k->models[0] = small("one", GIB, 1);
    k->models[1] = small("two", GIB, 2);
    k->models[0].apart = k->models[1].apart = "rivals";
    struct placement_plan *p = plan(k);
    assert_int_equal(p->n_places, 2);
    assert_true(p->places[0].node != p->places[1].node);
    assert_int_equal(p->n_gaps, 1);
    assert_non_null(strstr(p->gaps[0].reason, "1 have a model that it must not share a node with"));
    placement_destroy(p);
    /* They share a node already: the less important one leaves. */
    k->models[1].min_replicas = 1;
    k->models[0].priority = 1;
    k->current[0] = (struct placement_replica){.node = "a", .model = "one"};
    k->current[1] = (struct placement_replica){.node = "a", .model = "two"};
    k->in.n_current = 2;
    p = plan(k);
    expect_step(p, PLACEMENT_LOAD, "two", "b", "must not share node a with one");
    placement_destroy(p);
    free(k);
}

static void test_room_is_made_for_a_large_model(void **state)
{
    struct cluster *k = cluster_make(2, 2);
    (void)state;
    k->nodes[0] = board("a", NULL, 3 * GIB, 4e9);
    k->nodes[1] = board("b", NULL, 2 * GIB, 4e9);
    k->models[0] = small("little", GIB, 1);
    k->models[1] = small("large", 3 * GIB, 0);
    struct placement_plan *p;
    k->current[0] = (struct placement_replica){.node = "a", .model = "little"};
    k->in.n_current = 1;
    k->models[1].min_replicas = 1;
    p = plan(k);
    assert_int_equal(p->n_gaps, 0);
    expect_step(p, PLACEMENT_LOAD, "little", "b", "makes room on a for large");
    expect_step(p, PLACEMENT_LOAD, "large", "a", "new model");
    placement_destroy(p);
    /* Above its minimum a model gives way; at its minimum it does not. */
    k->in.n_nodes = 1;
    k->models[0].min_replicas = 0;
    k->models[0].want_replicas = 1;
    p = plan(k);
    expect_step(p, PLACEMENT_UNLOAD, "little", "a", "makes room on a for large");
    placement_destroy(p);
    k->models[0].min_replicas = 1;
    p = plan(k);
    assert_int_equal(p->n_steps, 0);
    assert_string_equal(p->gaps[0].reason, "0 of 1 replicas: needs 3.0 GiB, largest free 2.0 GiB "
                                           "on a; nodes: 1 full");
    placement_destroy(p);
    free(k);
}

/* x is on a and must leave it for the label that b has; y fills b. They can swap only through c, as
 * fast as c_bandwidth says. */
static struct cluster *two_full_nodes(double bandwidth, double c_bandwidth)
{
    struct cluster *k = cluster_make(3, 2);
    k->nodes[0] = board("a", NULL, 2 * GIB, bandwidth);
    k->nodes[1] = board("b", NULL, 2 * GIB, bandwidth);
    k->nodes[2] = board("c", NULL, 2 * GIB, c_bandwidth);
    k->nodes[1].labels = gpu;
    k->models[0] = small("x", 2 * GIB, 1);
    k->models[0].labels = gpu;
    k->models[1] = small("y", 2 * GIB, 1);
    k->current[0] = (struct placement_replica){.node = "a", .model = "x"};
    k->current[1] = (struct placement_replica){.node = "b", .model = "y"};
    k->in.n_current = 2;
    return k;
}

static void test_two_full_nodes_exchange_models(void **state)
{
    struct cluster *k = two_full_nodes(4e9, 4e9);
    (void)state;
    struct placement_plan *p = plan(k);
    assert_int_equal(p->n_gaps, 0);
    expect_step(p, PLACEMENT_LOAD, "y", "c", "makes room on b for x");
    expect_step(p, PLACEMENT_LOAD, "x", "b", "node a lacks label gpu");
    placement_destroy(p);
    free(k);
}

/* y goes to c and back: c is too slow to stay there. */
static void test_an_exchange_through_a_third_node(void **state)
{
    struct cluster *k = two_full_nodes(40e9, 1e9);
    (void)state;
    struct placement_plan *p = plan(k);
    static const char *const want[] = {"load y c",   "unload y b", "load x b",
                                       "unload x a", "load y a",   "unload y c"};
    assert_int_equal(p->n_steps, 6);
    for (size_t i = 0; i < 6; i++) {
        char got[64];
        snprintf(got, sizeof(got), "%s %s %s",
                 p->steps[i].action == PLACEMENT_LOAD ? "load" : "unload", p->steps[i].model_name,
                 p->steps[i].node_name);
        assert_string_equal(got, want[i]);
        assert_int_equal(p->steps[i].wave, i);
    }
    assert_int_equal(p->steps[1].replica, 1);
    assert_int_equal(p->steps[5].replica, PLACEMENT_NONE); /* the plan itself loaded it */
    placement_destroy(p);
    free(k);
}

static void test_counts_tokens_and_standby(void **state)
{
    struct cluster *k = cluster_make(6, 1);
    static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    (void)state;
    for (int i = 0; i < 6; i++)
        k->nodes[i] = board(names[i], NULL, 2 * GIB, (double)(10 * GIB)); /* 10 tokens/s each */
    k->models[0] = small("m", GIB, 1);
    k->models[0].max_replicas = 4;
    k->models[0].want_tokens_per_s = 25;
    struct placement_plan *p = plan(k);
    assert_int_equal(p->n_loads, 3);
    carry_out(k, p);
    placement_destroy(p);
    k->models[0].standby = 1;
    p = plan(k);
    assert_int_equal(p->n_loads, 1);
    expect_step(p, PLACEMENT_LOAD, "m", NULL, "tokens/s");
    placement_destroy(p);
    k->models[0].want_tokens_per_s = 100;
    p = plan(k);
    assert_non_null(
        strstr(p->gaps[0].reason, "100 tokens/s wanted, 4 replicas give 40 and that is the most"));
    carry_out(k, p);
    placement_destroy(p);
    k->models[0].want_tokens_per_s = 0;
    k->models[0].want_replicas = 2;
    p = plan(k); /* 2 and one standby */
    assert_int_equal(p->n_unloads, 2);
    expect_step(p, PLACEMENT_UNLOAD, "m", NULL, "replicas there, 3 wanted");
    placement_destroy(p);
    k->models[0] = (struct placement_model){.name = "other", .memory_bytes = GIB};
    p = plan(k);
    assert_int_equal(p->n_unloads, 5);
    expect_step(p, PLACEMENT_UNLOAD, "m", "n0", "not wanted any more");
    placement_destroy(p);
    free(k);
}

static void test_versions_replace_each_other(void **state)
{
    struct cluster *k = cluster_make(2, 1);
    (void)state;
    k->nodes[0] = board("a", NULL, 2 * GIB, 4e9);
    k->nodes[1] = board("b", NULL, 2 * GIB, 4e9);
    k->models[0] = small("m", GIB, 1);
    k->models[0].sha256 = "new";
    k->current[0] = (struct placement_replica){.node = "a", .model = "m", .sha256 = "old"};
    k->in.n_current = 1;
    struct placement_plan *p = plan(k);
    expect_step(p, PLACEMENT_LOAD, "m", "b", NULL);
    expect_step(p, PLACEMENT_UNLOAD, "m", "a", "another version is wanted");
    assert_true(p->steps[1].wave > p->steps[0].wave);
    placement_destroy(p);
    /* No other node: the old replica may leave only if another one answers. */
    k->in.n_nodes = 1;
    p = plan(k);
    assert_int_equal(p->n_steps, 0);
    assert_int_equal(p->n_gaps, 1);
    placement_destroy(p);
    k->models[0].min_replicas = 0;
    k->models[0].want_replicas = 1;
    p = plan(k);
    expect_step(p, PLACEMENT_UNLOAD, "m", "a", "another version is wanted");
    expect_step(p, PLACEMENT_LOAD, "m", "a", NULL);
    placement_destroy(p);
    free(k);
}

static void test_batteries_costs_and_failures(void **state)
{
    struct cluster *k = cluster_make(3, 1);
    (void)state;
    k->nodes[0] = board("a", NULL, 2 * GIB, 4e9);
    k->nodes[1] = board("b", NULL, 2 * GIB, 4e9);
    k->nodes[2] = board("c", NULL, 2 * GIB, 4e9);
    k->nodes[0].on_battery = true;
    k->nodes[0].battery = 0.5;
    k->nodes[1].cost = 5;
    k->models[0] = small("m", GIB, 1);
    struct placement_plan *p = plan(k);
    expect_step(p, PLACEMENT_LOAD, "m", "c", NULL);
    placement_destroy(p);
    k->current[0] = (struct placement_replica){.node = "a", .model = "m"};
    k->current[1] =
        (struct placement_replica){.node = "c", .model = "m", .state = PLACEMENT_FAILED};
    k->in.n_current = 2;
    k->nodes[0].battery = 0.2; /* low: it keeps its models */
    k->in.policy.max_moves = 0;
    p = plan(k);
    assert_int_equal(p->n_steps, 0);
    placement_destroy(p);
    k->nodes[0].battery = 0.1; /* too low; c could not load it */
    p = plan(k);
    expect_step(p, PLACEMENT_LOAD, "m", "b", "battery of a is at 10 %");
    placement_destroy(p);
    k->in.n_nodes = 1; /* only a, and even a may not get it back */
    k->nodes[0].battery = 0.2;
    k->in.n_current = 0;
    p = plan(k);
    assert_string_equal(p->gaps[0].reason, "0 of 1 replicas: needs 1.0 GiB; nodes: 1 with a low "
                                           "battery");
    placement_destroy(p);
    free(k);
}

/* Replicas leave a node below battery_min, and new ones come from battery_min + battery_margin on.
 */
static void test_a_battery_at_its_limits(void **state)
{
    static const struct {
        double charge;
        bool leaves, gets;
    } cases[] = {
        {0.249, true, false}, {0.25, false, false}, {0.499, false, false},
        {0.5, false, true},   {0.501, false, true}, {1, false, true},
    };
    struct cluster *k = cluster_make(2, 1);
    (void)state;
    k->nodes[0] = board("a", NULL, 2 * GIB, 4e9);
    k->nodes[1] = board("b", NULL, 2 * GIB, 4e9);
    k->nodes[0].on_battery = true;
    k->models[0] = small("m", GIB, 1);
    k->current[0] = (struct placement_replica){.node = "a", .model = "m"};
    k->in.policy.battery_min = k->in.policy.battery_margin = 0.25;
    k->in.policy.max_moves = 0; /* none that is only better */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        k->nodes[0].battery = cases[i].charge;
        k->in.n_nodes = 1;
        k->in.n_current = 0;
        struct placement_plan *p = plan(k);
        if ((p->n_steps > 0) != cases[i].gets)
            fail_msg("at %g it gets %zu", cases[i].charge, (size_t)p->n_steps);
        placement_destroy(p);
        k->in.n_nodes = 2;
        k->in.n_current = 1;
        p = plan(k);
        if ((p->n_steps > 0) != cases[i].leaves)
            fail_msg("at %g %zu leave", cases[i].charge, (size_t)p->n_steps);
        placement_destroy(p);
    }
    free(k);
}

static void test_less_memory_than_before(void **state)
{
    struct cluster *k = cluster_make(2, 3);
    (void)state;
    k->nodes[0] = board("a", NULL, 2 * GIB, 4e9);
    k->nodes[1] = board("b", NULL, GIB, 4e9);
    k->models[0] = small("first", GIB, 1);
    k->models[1] = small("second", GIB, 1);
    k->models[2] = small("third", GIB, 0);
    k->models[0].priority = 5;
    for (size_t i = 0; i < 3; i++)
        k->current[i] = (struct placement_replica){.node = "a", .model = k->models[i].name};
    k->models[2].want_replicas = 1;
    k->models[2].priority = 4;
    k->in.n_current = 3;
    struct placement_plan *p = plan(k);
    expect_step(p, PLACEMENT_LOAD, "second", "b", "node a has less memory now");
    assert_int_equal(p->n_steps, 2);
    placement_destroy(p);
    free(k);
}

static void test_wrong_input_is_named(void **state)
{
    const struct placement_strs twice = {(const char *const[]){"a", "b"}, 2};
    struct cluster *k = cluster_make(2, 2);
    struct placement_plan *p;
    struct err e = {0};
    (void)state;
#define REFUSED(words)                                                                             \
    do {                                                                                           \
        assert_int_equal(placement_plan(&p, &k->in, &e), SHOAL_EINVAL);                            \
        assert_null(p);                                                                            \
        if (!strstr(e.msg, words))                                                                 \
            fail_msg("%s", e.msg);                                                                 \
        k->nodes[0] = board("a", NULL, GIB, 1e9);                                                  \
        k->nodes[1] = board("b", NULL, GIB, 1e9);                                                  \
        k->models[0] = small("m", MIB, 1);                                                         \
        k->models[1] = small("n", MIB, 1);                                                         \
        k->in.policy = placement_policy_default();                                                 \
        k->in.n_current = 0;                                                                       \
    } while (0)
    REFUSED("a node has no name");
    k->nodes[1].name = "a";
    REFUSED("two nodes are named a");
    k->nodes[1].load = -1;
    REFUSED("node b: load and cost");
    k->nodes[1].speed[1].tokens_per_s = 0.0 / 0.0;
    REFUSED("node b: a speed");
    k->models[1].name = "m";
    REFUSED("two models are named m");
    k->models[1].memory_bytes = 0;
    REFUSED("model n: its memory");
    k->models[1].min_replicas = 3;
    k->models[1].max_replicas = 2;
    REFUSED("model n: min_replicas 3 is above max_replicas 2");
    k->models[1].max_replicas = 1;
    k->models[1].pins = twice;
    REFUSED("model n: pinned to 2 nodes, but max_replicas is 1");
    k->in.policy.min_gain = -1;
    REFUSED("placement policy");
    k->current[0] = k->current[1] = (struct placement_replica){.node = "a", .model = "m"};
    k->in.n_current = 2;
    REFUSED("model m is twice on node a");
    k->current[0].model = NULL;
    k->in.n_current = 1;
    REFUSED("no node or no model");
    k->nodes[1].memory_bytes = UINT64_MAX;
    assert_int_equal(placement_valid_node(&k->nodes[1], &e), SHOAL_EINVAL);
    assert_int_equal(placement_valid_node(&k->nodes[0], &e), 0);
    REFUSED("node b: 18446744073709551615 bytes");
    k->models[1].memory_bytes = UINT64_MAX;
    REFUSED("model n: its memory");
    /* A node that claims to hold more than is possible gets nothing, and nothing overflows. */
    for (size_t i = 0; i < 1000; i++)
        k->current[i] =
            (struct placement_replica){.node = "a", .model = "z", .memory_bytes = UINT64_MAX};
    k->in.n_current = 1000;
    p = plan(k);
    assert_int_equal(p->n_unloads, 1000);
    placement_destroy(p);
    free(k);
}

/* ---- random clusters ---- */

static uint64_t seed;

static uint32_t roll(uint32_t n)
{
    seed += 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash_mix(seed) % n);
}

static const char *const zones[] = {"a", "b", "c", "d"};
static const char *const words[] = {"gpu", "fast-disk", "hall-1", "hall-2"};
static char names[MAX_NODES + MAX_MODELS][16];

/* One roll per statement: the order in which arguments are evaluated differs between compilers. */
static struct placement_node random_node(size_t i)
{
    const char *zone = zones[roll(4)];
    uint64_t bytes = (1 + roll(16)) * 512 * MIB;
    double speed = 1e9 * (1 + roll(20));
    struct placement_node n = board(names[i], zone, bytes, speed);
    n.labels.v = words + roll(2);
    n.labels.n = roll(3);
    if (roll(4) == 0)
        n.load = 0.1 * roll(9);
    if (roll(3) == 0)
        n.cost = 0.5 * roll(6);
    n.on_battery = roll(8) == 0;
    n.battery = 0.1 * roll(11);
    n.drained = roll(16) == 0;
    return n;
}

static struct placement_model random_model(size_t i, size_t n_nodes)
{
    static const char *pins[MAX_MODELS];
    uint64_t bytes = (1 + roll(24)) * 100 * MIB;
    uint32_t min = roll(4);
    struct placement_model m = small(names[MAX_NODES + i], bytes, min);
    m.want_replicas = roll(5);
    m.standby = roll(4) == 0;
    if (roll(3) == 0)
        m.want_tokens_per_s = 10 * roll(20);
    if (roll(2))
        m.max_replicas = 4 + roll(8);
    m.spread = roll(2);
    if (roll(4) == 0)
        m.max_per_zone = 1 + roll(2);
    m.labels = (struct placement_strs){words, roll(6) == 0};
    m.not_labels = (struct placement_strs){words + 1, roll(6) == 0};
    m.zones.v = zones;
    if (roll(5) == 0)
        m.zones.n = 1 + roll(3);
    if (roll(5) == 0)
        m.apart = roll(2) ? "red" : "blue";
    m.priority = (int32_t)roll(4);
    if (roll(6) == 0) {
        pins[i] = names[roll((uint32_t)n_nodes + 1)];
        m.pins = (struct placement_strs){&pins[i], 1};
    }
    return m;
}

static struct cluster *random_cluster(uint64_t number)
{
    seed = number * 1000003u;
    size_t n_nodes = 1 + roll(40);
    size_t n_models = 1 + roll(MAX_MODELS);
    struct cluster *k = cluster_make(n_nodes, n_models);
    for (size_t i = 0; i < MAX_NODES; i++)
        snprintf(names[i], sizeof(names[i]), "node-%02zu", i);
    for (size_t i = 0; i < MAX_MODELS; i++)
        snprintf(names[MAX_NODES + i], sizeof(names[i]), "model-%02zu", i);
    for (size_t i = 0; i < n_nodes; i++)
        k->nodes[i] = random_node(i);
    for (size_t i = 0; i < n_models; i++)
        k->models[i] = random_model(i, n_nodes);
    k->in.policy.max_moves = 1000000;
    return k;
}

/* One change of a node or of the desired state. */
static void disturb(struct cluster *k)
{
    size_t i = roll((uint32_t)k->in.n_nodes);
    switch (roll(7)) {
    case 0: /* it leaves */
        if (k->in.n_nodes > 1)
            k->nodes[i] = k->nodes[--k->in.n_nodes];
        break;
    case 1: /* another joins */
        if (k->in.n_nodes < MAX_NODES) {
            k->nodes[k->in.n_nodes] = random_node(41 + k->in.n_nodes % 20);
            for (size_t j = 0; j < k->in.n_nodes; j++)
                if (k->nodes[j].name == k->nodes[k->in.n_nodes].name)
                    return;
            k->in.n_nodes++;
        }
        break;
    case 2:
        k->nodes[i].drained = !k->nodes[i].drained;
        break;
    case 3:
        for (int j = 0; j < PLACEMENT_N_KINDS; j++)
            k->nodes[i].speed[j].bytes_per_s *= 0.25 * (1 + roll(12));
        break;
    case 4:
        k->nodes[i].memory_bytes = (1 + roll(16)) * 512 * MIB;
        break;
    case 5: {
        struct placement_model *m = &k->models[roll((uint32_t)k->in.n_models)];
        m->min_replicas = roll(m->max_replicas ? m->max_replicas + 1 : 5);
        break;
    }
    case 6:
        k->nodes[i].battery = 0.1 * roll(11);
        break;
    }
}

/* Whatever happens, no plan breaks a rule, and a plan that was carried out is followed by an
 * empty one. */
static void test_random_clusters_settle(void **state)
{
    (void)state;
    uint32_t n_steps = 0, n_gaps = 0, n_unsettled = 0, n_plans = 0;
    for (uint64_t c = 0; c < 400; c++) {
        struct cluster *k = random_cluster(c);
        for (int round = 0; round < 12; round++) {
            struct placement_plan *p = plan(k);
            n_steps += (uint32_t)p->n_steps;
            n_gaps += (uint32_t)p->n_gaps;
            n_plans++;
            carry_out(k, p);
            k->in.now_ms += 10 * k->in.policy.cooldown_ms;
            struct placement_plan *again = plan(k);
            if (again->n_steps > 0) {
                n_unsettled++;
                if (n_unsettled == 1)
                    for (size_t i = 0; i < again->n_steps; i++)
                        print_message("cluster %u round %d: %s %s on %s: %s\n", (unsigned)c, round,
                                      again->steps[i].action == PLACEMENT_LOAD ? "load" : "unload",
                                      again->steps[i].model_name, again->steps[i].node_name,
                                      again->steps[i].reason);
            }
            placement_destroy(again);
            placement_destroy(p);
            disturb(k);
        }
        free(k);
    }
    print_message("%u plans, %u steps, %u gaps, %u unsettled\n", n_plans, n_steps, n_gaps,
                  n_unsettled);
    assert_int_equal(n_unsettled, 0);
    assert_true(n_steps > 10000 && n_gaps > 1000);
}

/* The plan does not depend on the order of the arrays. */
static void test_order_of_the_input_does_not_matter(void **state)
{
    (void)state;
    for (uint64_t c = 0; c < 100; c++) {
        struct cluster *k = random_cluster(c + 5000);
        struct placement_plan *p = plan(k);
        carry_out(k, p);
        placement_destroy(p);
        disturb(k);
        disturb(k);
        p = plan(k);
        for (size_t i = k->in.n_nodes - 1; i > 0; i--) {
            size_t j = roll((uint32_t)i + 1);
            struct placement_node t = k->nodes[i];
            k->nodes[i] = k->nodes[j];
            k->nodes[j] = t;
        }
        for (size_t i = k->in.n_models - 1; i > 0; i--) {
            size_t j = roll((uint32_t)i + 1);
            struct placement_model t = k->models[i];
            k->models[i] = k->models[j];
            k->models[j] = t;
        }
        for (size_t i = k->in.n_current; i-- > 1;) {
            size_t j = roll((uint32_t)i + 1);
            struct placement_replica t = k->current[i];
            k->current[i] = k->current[j];
            k->current[j] = t;
        }
        struct placement_plan *q = plan(k);
        assert_int_equal(p->n_steps, q->n_steps);
        for (size_t i = 0; i < p->n_steps; i++) {
            assert_int_equal(p->steps[i].action, q->steps[i].action);
            assert_int_equal(p->steps[i].wave, q->steps[i].wave);
            assert_string_equal(p->steps[i].node_name, q->steps[i].node_name);
            assert_string_equal(p->steps[i].model_name, q->steps[i].model_name);
            assert_string_equal(p->steps[i].reason, q->steps[i].reason);
        }
        assert_int_equal(p->n_gaps, q->n_gaps);
        for (size_t i = 0; i < p->n_gaps; i++)
            assert_string_equal(p->gaps[i].reason, q->gaps[i].reason);
        placement_destroy(p);
        placement_destroy(q);
        free(k);
    }
}

/* Every compiler and processor makes these plans: the hash of all steps and gaps. A change of the
 * planner changes it too; the new value is correct if x86_64 and arm64 agree on it. */
static void test_plans_are_the_same_on_every_machine(void **state)
{
    uint64_t hash = 0;
    (void)state;
    for (uint64_t c = 0; c < 100; c++) {
        struct cluster *k = random_cluster(c + 20000);
        for (int round = 0; round < 4; round++) {
            struct placement_plan *p = plan(k);
            for (size_t i = 0; i < p->n_steps; i++) {
                const struct placement_step *s = &p->steps[i];
                hash = hash_bytes(s->node_name, strlen(s->node_name), hash + s->action);
                hash = hash_bytes(s->model_name, strlen(s->model_name), hash + s->wave);
                hash = hash_bytes(s->reason, strlen(s->reason), hash + s->pair);
            }
            for (size_t i = 0; i < p->n_gaps; i++) {
                const struct placement_gap *g = &p->gaps[i];
                hash = hash_bytes(g->reason, strlen(g->reason), hash + g->model + g->n_missing);
            }
            hash += p->n_loads * 3 + p->n_unloads * 5 + p->n_moves * 7;
            carry_out(k, p);
            placement_destroy(p);
            disturb(k);
        }
        free(k);
    }
    if (hash != EXPECTED_PLANS)
        fail_msg("the hash of the plans is 0x%016llx", (unsigned long long)hash);
}

/* A cluster with room: a lost node's models are loaded elsewhere, and nothing else moves. */
static void test_one_node_moves_few_replicas(void **state)
{
    (void)state;
    for (uint64_t c = 0; c < 200; c++) {
        seed = c * 77 + 1;
        struct cluster *k = cluster_make(30, 10);
        for (size_t i = 0; i < 30; i++) {
            snprintf(names[i], sizeof(names[i]), "node-%02zu", i);
            k->nodes[i] = board(names[i], zones[i % 3], 4 * GIB, 1e9 * (4 + roll(4)));
        }
        for (size_t i = 0; i < 10; i++) {
            snprintf(names[MAX_NODES + i], sizeof(names[i]), "model-%02zu", i);
            uint64_t bytes = (1 + roll(10)) * 100 * MIB;
            k->models[i] = small(names[MAX_NODES + i], bytes, 1 + roll(6));
            k->models[i].spread = true;
        }
        struct placement_plan *p = plan(k);
        assert_int_equal(p->n_gaps, 0);
        carry_out(k, p);
        placement_destroy(p);
        size_t gone = roll(30), n_lost = 0;
        for (size_t i = 0; i < k->in.n_current; i++)
            n_lost += k->current[i].node == k->nodes[gone].name;
        k->nodes[gone] = k->nodes[--k->in.n_nodes];
        k->in.now_ms += 10 * k->in.policy.cooldown_ms;
        p = plan(k);
        assert_int_equal(p->n_loads - p->n_moves, n_lost);
        if (p->n_moves > 2)
            fail_msg("cluster %u: %u moves for %zu lost replicas", (unsigned)c, p->n_moves, n_lost);
        placement_destroy(p);
        free(k);
    }
}

/* Replicas that are loading, failed, of another version or unwanted: no plan breaks a rule. */
static void test_random_states_break_no_rule(void **state)
{
    uint32_t n_unloads = 0;
    (void)state;
    for (uint64_t c = 0; c < 300; c++) {
        struct cluster *k = random_cluster(c + 9000);
        for (size_t i = 0; i < k->in.n_models; i++)
            k->models[i].sha256 = "new";
        for (int round = 0; round < 8; round++) {
            struct placement_plan *p = plan(k);
            carry_out(k, p);
            n_unloads += p->n_unloads;
            placement_destroy(p);
            for (size_t i = 0; i < k->in.n_current; i++) {
                struct placement_replica *r = &k->current[i];
                uint32_t what = roll(10);
                r->sha256 = what == 0 ? "old" : "new";
                r->memory_bytes = what == 0 ? (1 + roll(20)) * 100 * MIB : 0;
                r->state = what == 1   ? PLACEMENT_LOADING
                           : what == 2 ? PLACEMENT_FAILED
                                       : PLACEMENT_READY;
                r->since_ms = what == 3 ? k->in.now_ms : 0;
                if (what == 4) {
                    r->model = "forgotten";
                    r->memory_bytes = 50 * MIB;
                }
            }
            disturb(k);
        }
        free(k);
    }
    assert_true(n_unloads > 1000);
}

/* Fills all memory except gaps that are smaller than any model. */
static void test_memory_is_packed_well(void **state)
{
    double worst = 1;
    (void)state;
    for (uint64_t c = 0; c < 50; c++) {
        double there = 0, placed = 0;
        seed = c * 91 + 7;
        struct cluster *k = cluster_make(40, 16);
        for (size_t i = 0; i < 40; i++) {
            snprintf(names[i], sizeof(names[i]), "node-%02zu", i);
            uint64_t bytes = (2 + roll(6)) * GIB;
            k->nodes[i] = board(names[i], "z", bytes, 1e9 * (1 + roll(8)));
            there += (double)k->nodes[i].memory_bytes;
        }
        for (size_t i = 0; i < 16; i++) {
            snprintf(names[MAX_NODES + i], sizeof(names[i]), "model-%02zu", i);
            k->models[i] = small(names[MAX_NODES + i], (100 + roll(1500)) * MIB, 40);
        }
        struct placement_plan *p = plan(k);
        for (size_t i = 0; i < p->n_places; i++)
            placed += (double)k->models[p->places[i].model].memory_bytes;
        worst = placed / there < worst ? placed / there : worst;
        placement_destroy(p);
        free(k);
    }
    print_message("at least %.1f %% of the memory is used\n", worst * 100);
    assert_true(worst > 0.93);
}

static void test_failed_allocations_are_errors(void **state)
{
    struct cluster *k = random_cluster(3);
    (void)state;
    uint64_t n = 1;
    for (; n < 1000; n++) {
        struct placement_plan *p;
        struct err e = {0};
        uint64_t before = mem_calls();
        mem_fail_at(n);
        int rc = placement_plan(&p, &k->in, &e);
        mem_fail_at(0);
        bool failed = mem_calls() - before >= n;
        assert_int_equal(rc, failed ? SHOAL_ENOMEM : 0);
        assert_true(failed == !p);
        placement_destroy(p);
        if (!failed)
            break;
    }
    assert_in_range(n, 10, 999);
    free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_models_go_to_the_fastest_nodes),
        cmocka_unit_test(test_a_lost_node_is_replaced_and_nothing_else_moves),
        cmocka_unit_test(test_a_drained_node_becomes_empty_after_the_load),
        cmocka_unit_test(test_a_move_needs_a_gain_and_a_cool_down),
        cmocka_unit_test(test_constraints),
        cmocka_unit_test(test_models_that_stay_apart),
        cmocka_unit_test(test_room_is_made_for_a_large_model),
        cmocka_unit_test(test_two_full_nodes_exchange_models),
        cmocka_unit_test(test_an_exchange_through_a_third_node),
        cmocka_unit_test(test_counts_tokens_and_standby),
        cmocka_unit_test(test_versions_replace_each_other),
        cmocka_unit_test(test_batteries_costs_and_failures),
        cmocka_unit_test(test_a_battery_at_its_limits),
        cmocka_unit_test(test_less_memory_than_before),
        cmocka_unit_test(test_wrong_input_is_named),
        cmocka_unit_test(test_random_clusters_settle),
        cmocka_unit_test(test_random_states_break_no_rule),
        cmocka_unit_test(test_order_of_the_input_does_not_matter),
        cmocka_unit_test(test_plans_are_the_same_on_every_machine),
        cmocka_unit_test(test_one_node_moves_few_replicas),
        cmocka_unit_test(test_memory_is_packed_well),
        cmocka_unit_test(test_failed_allocations_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
