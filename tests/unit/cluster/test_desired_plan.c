/* test_desired_plan.c - cluster/control/desired_plan.h: the desired state through the planner and
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/control/desired.h"
#include "cluster/control/desired_plan.h"
#include "cluster/placement/placement.h"
#include "shoal/shoal.h"

enum { N_NODES = 3 };
static const uint8_t sum_a[SHA256_BYTES] = {1}, sum_b[SHA256_BYTES] = {2};

static struct desired *state_of(uint32_t replicas)
{
    const char *labels[] = {"gpu"};
    struct desired_model m = {.name = "reply",
                              .kinds = SHOAL_KIND_GENERATE,
                              .memory_bytes = 100,
                              .replicas_min = replicas,
                              .replicas_max = replicas};
    struct desired *d;
    assert_int_equal(desired_create(&d, NULL), 0);
    memcpy(m.sha256, sum_a, SHA256_BYTES);
    assert_int_equal(desired_put_model(d, &m), 0);
    m = (struct desired_model){.name = "labels",
                               .kinds = SHOAL_KIND_CLASSIFY,
                               .memory_bytes = 10,
                               .replicas_min = 1,
                               .replicas_max = 1,
                               .labels = {labels, 1},
                               .apart = "big"};
    memcpy(m.sha256, sum_a, SHA256_BYTES);
    assert_int_equal(desired_put_model(d, &m), 0);
    return d;
}

/* The assignments, as ready replicas. */
static size_t current_of(struct placement_replica *list, const struct desired *d, struct arena *a)
{
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        const struct desired_assignment *x = &d->assignments[i];
        char hex[2 * SHA256_BYTES + 1];
        sha256_hex(hex, x->sha256);
        list[i] = (struct placement_replica){.node = x->node,
                                             .model = x->model,
                                             .sha256 = arena_printf(a, "%s", hex),
                                             .since_ms = x->since_ms};
    }
    return d->n_assignments;
}

/* Plans, and carries out the first wave. */
static void plan(struct desired *d, uint64_t now_ms)
{
    struct placement_replica current[16];
    static const char *const gpu[] = {"gpu"};
    struct placement_node nodes[N_NODES] = {
        {.name = "n1", .memory_bytes = 1000},
        {.name = "n2", .memory_bytes = 1000, .labels = {gpu, 1}},
        {.name = "n3", .memory_bytes = 1000}};
    struct placement_model *models;
    struct placement_plan *p;
    struct err e = {0};
    struct arena a;
    arena_init(&a, 1 << 20);
    if (desired_plan_models(&models, d, &a, &e) < 0)
        fail_msg("%s", e.msg);
    struct placement_input in = {.nodes = nodes,
                                 .n_nodes = N_NODES,
                                 .models = models,
                                 .n_models = d->n_models,
                                 .current = current,
                                 .n_current = current_of(current, d, &a),
                                 .policy = d->policy.placement,
                                 .now_ms = now_ms};
    if (placement_plan(&p, &in, &e) < 0 || desired_plan_apply(d, &in, p, now_ms, &e) < 0 ||
        desired_check(d, &e) < 0)
        fail_msg("%s", e.msg);
    placement_destroy(p);
    arena_fini(&a);
}

static void test_models_keep_their_rules(void **state)
{
    (void)state;
    struct desired *d = state_of(2);
    struct placement_model *m;
    struct arena a;
    arena_init(&a, 1 << 20);
    assert_int_equal(desired_plan_models(&m, d, &a, NULL), 0);
    assert_int_equal(m[0].kind, PLACEMENT_DECODER);
    assert_int_equal(m[0].min_replicas, 2);
    assert_int_equal(strlen(m[0].sha256), 64);
    assert_null(m[0].apart);
    assert_int_equal(m[1].kind, PLACEMENT_ENCODER);
    assert_string_equal(m[1].apart, "big");
    assert_int_equal(m[1].labels.n, 1);
    arena_fini(&a);
    desired_destroy(d);
}

static void test_a_plan_becomes_assignments(void **state)
{
    (void)state;
    struct desired *d = state_of(2);
    plan(d, 1000);
    assert_int_equal(d->n_assignments, 3);
    assert_non_null(desired_find_assignment(d, "n2", "labels", sum_a)); /* the one with a gpu */
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        assert_int_equal(d->assignments[i].duty, DESIRED_SERVE);
        assert_int_equal(d->assignments[i].since_ms, 1000);
    }
    /* Planned again: unchanged replicas keep their time; a third one is added. */
    desired_find_model(d, "reply")->replicas_min = 3;
    desired_find_model(d, "reply")->replicas_max = 3;
    plan(d, 2000);
    assert_int_equal(d->n_assignments, 4);
    unsigned n_new = 0;
    for (uint32_t i = 0; i < d->n_assignments; i++)
        n_new += d->assignments[i].since_ms == 2000;
    assert_int_equal(n_new, 1);
    desired_destroy(d);
}

static void test_another_version_is_replaced_in_waves(void **state)
{
    (void)state;
    struct desired *d = state_of(1);
    struct desired_assignment old = {.node = "n3", .model = "reply", .duty = DESIRED_SERVE};
    memcpy(old.sha256, sum_b, SHA256_BYTES);
    assert_int_equal(desired_put_assignment(d, &old), 0);
    plan(d, 1000); /* first the new one is loaded... */
    assert_int_equal(d->n_assignments, 3);
    assert_int_equal(desired_find_assignment(d, "n3", "reply", sum_b)->duty, DESIRED_SERVE);
    plan(d, 2000); /* ...then the old one leaves */
    assert_int_equal(d->n_assignments, 3);
    assert_int_equal(desired_find_assignment(d, "n3", "reply", sum_b)->duty, DESIRED_LEAVE);
    assert_int_equal(desired_find_assignment(d, "n3", "reply", sum_b)->since_ms, 2000);
    desired_destroy(d);
}

static void test_what_leaves_may_come_back(void **state)
{
    (void)state;
    struct desired *d = state_of(3);
    struct desired_assignment old = {.node = "n1", .model = "reply", .duty = DESIRED_LEAVE};
    memcpy(old.sha256, sum_a, SHA256_BYTES);
    assert_int_equal(desired_put_assignment(d, &old), 0);
    struct placement_step step = {.action = PLACEMENT_LOAD,
                                  .replica = PLACEMENT_NONE,
                                  .node_name = "n1",
                                  .model_name = "reply"};
    const struct placement_plan p = {.steps = &step, .n_steps = 1};
    const struct placement_input in = {.n_nodes = 0};
    assert_int_equal(desired_plan_apply(d, &in, &p, 5000, NULL), 0);
    assert_int_equal(d->n_assignments, 1);
    assert_int_equal(d->assignments[0].duty, DESIRED_SERVE);
    step.wave = 1; /* later waves are not carried out */
    step.node_name = "n2";
    assert_int_equal(desired_plan_apply(d, &in, &p, 6000, NULL), 0);
    assert_int_equal(d->n_assignments, 1);
    desired_destroy(d);
}

static void test_a_rollout_is_under_way_until_it_ends(void **state)
{
    (void)state;
    struct desired *d = state_of(1);
    struct desired_rollout r = {
        .id = "r1", .model = "reply", .kind = DESIRED_STRONG, .state = DESIRED_STAGING};
    assert_int_equal(desired_put_rollout(d, &r), 0);
    assert_true(desired_plan_in_rollout(d, "reply"));
    assert_false(desired_plan_in_rollout(d, "labels"));
    desired_find_rollout(d, "r1")->state = DESIRED_UNDONE;
    assert_false(desired_plan_in_rollout(d, "reply"));
    desired_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_keep_their_rules),
        cmocka_unit_test(test_a_plan_becomes_assignments),
        cmocka_unit_test(test_another_version_is_replaced_in_waves),
        cmocka_unit_test(test_what_leaves_may_come_back),
        cmocka_unit_test(test_a_rollout_is_under_way_until_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
