/* test_controller.c - cluster/controller/: decisions from heartbeats, with nodes that do what they
 * are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cluster/control/desired.h"
#include "cluster/controller/controller_decide.h"
#include "cluster/controller/controller_memory.h"
#include "cluster/controller/controller_view.h"
#include "cluster/messages/node_state.h"
#include "shoal/shoal.h"

enum { N_NODES = 3, MAX_HELD = 8, SECOND = 1000 };
#define MIB ((uint64_t)1 << 20)

static const uint8_t sum_a[SHA256_BYTES] = {1}, sum_b[SHA256_BYTES] = {2};

static struct {
    struct desired *d;
    struct controller_memory memory;
    struct node_model held[N_NODES][MAX_HELD];
    uint32_t n_held[N_NODES];
    bool away[N_NODES], breaks[N_NODES]; /* breaks: cannot load anything */
    double cpu;
    uint32_t n_cores;
    const char *wanted;
    uint64_t now_ms;
    struct controller_outcome last;
    uint32_t n_failed_notes;
} w;

static const char *const names[N_NODES] = {"n1", "n2", "n3"};

static int setup(void **state)
{
    (void)state;
    memset(&w, 0, sizeof(w));
    w.now_ms = 1000 * SECOND;
    w.cpu = -1;
    controller_outcome_init(&w.last);
    return desired_create(&w.d, NULL);
}

static int teardown(void **state)
{
    (void)state;
    controller_outcome_fini(&w.last);
    controller_memory_fini(&w.memory);
    desired_destroy(w.d);
    return 0;
}

static struct desired_model *deploy(uint32_t min, uint32_t max)
{
    struct desired_model m = {.name = "reply",
                              .source = "",
                              .apart = "",
                              .memory_bytes = 100 * MIB,
                              .replicas_min = min,
                              .replicas_max = max,
                              .replicas_want = min};
    memcpy(m.sha256, sum_a, SHA256_BYTES);
    assert_int_equal(desired_put_model(w.d, &m), 0);
    return desired_find_model(w.d, "reply");
}

static void hear(struct controller_view *v, uint32_t i)
{
    struct node_state s = {.id = "run",
                           .name = names[i],
                           .address = "unix:x",
                           .program_version = "",
                           .isa = "",
                           .zone = "",
                           .models = w.held[i],
                           .n_models = w.n_held[i],
                           .memory_bytes = 1000 * MIB,
                           .n_cores = w.n_cores,
                           .battery_percent = 100,
                           .cpu = w.cpu,
                           .wanted = &w.wanted,
                           .n_wanted = w.wanted && i == 0};
    enum controller_news news;
    struct err e = {0};
    struct buf b;
    buf_init(&b, NODE_STATE_MAX_BYTES);
    assert_int_equal(node_state_put(&b, &s), 0);
    if (controller_view_hear(v, b.data, b.len, 1, &news, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(news, CONTROLLER_JOINED);
    buf_fini(&b);
}

/* One decision from the nodes' current reports; true: the state changed. */
static bool decide(void)
{
    struct controller_view *v;
    struct controller_snapshot *s;
    struct err e = {0};
    assert_int_equal(controller_view_create(&v, &e), 0);
    for (uint32_t i = 0; i < N_NODES; i++)
        if (!w.away[i])
            hear(v, i);
    assert_int_equal(controller_view_take(v, &s, &e), 0);
    assert_int_equal(controller_snapshot_read(s, &e), 0);
    s->now_ms = s->clock_ms = w.now_ms;
    controller_outcome_fini(&w.last);
    controller_outcome_init(&w.last);
    if (controller_decide(w.d, s, &w.memory, &w.last, &e) < 0)
        fail_msg("%s", e.msg);
    if (desired_check(w.d, &e) < 0)
        fail_msg("%s", e.msg);
    for (uint32_t i = 0; i < w.last.n_notes; i++)
        w.n_failed_notes += w.last.notes[i].kind == EVENT_LOG_MODEL_FAILED;
    controller_snapshot_free(s);
    controller_view_destroy(v);
    return w.last.changed;
}

static struct node_model *held(uint32_t node, const uint8_t *sum)
{
    for (uint32_t i = 0; i < w.n_held[node]; i++)
        if (memcmp(w.held[node][i].sum, sum, SHA256_BYTES) == 0)
            return &w.held[node][i];
    return NULL;
}

/* A node follows its assignments: it loads new models at once, or later if slow. */
static void obey(bool slow)
{
    for (uint32_t n = 0; n < N_NODES; n++) {
        for (uint32_t i = 0; i < w.n_held[n];) {
            struct node_model *m = &w.held[n][i];
            const struct desired_assignment *a =
                desired_find_assignment(w.d, names[n], m->name, m->sum);
            if (m->duty && !w.away[n] && (!a || a->duty == DESIRED_LEAVE))
                *m = w.held[n][--w.n_held[n]];
            else
                i++;
        }
        for (uint32_t i = 0; !w.away[n] && i < w.d->n_assignments; i++) {
            const struct desired_assignment *a = &w.d->assignments[i];
            const uint8_t *sum = memcmp(a->sha256, sum_a, SHA256_BYTES) == 0 ? sum_a : sum_b;
            if (strcmp(a->node, names[n]) != 0 || a->duty == DESIRED_LEAVE)
                continue;
            struct node_model *m = held(n, sum);
            if (!m) {
                assert_true(w.n_held[n] < MAX_HELD);
                m = &w.held[n][w.n_held[n]++];
                *m = (struct node_model){.name = "reply",
                                         .sum = sum,
                                         .kinds = SHOAL_KIND_GENERATE,
                                         .error = "",
                                         .bytes = 120 * MIB};
            }
            if (m->duty == 0 && m->bytes == 0)
                continue; /* the node's own model */
            m->duty = a->duty;
            m->replicas = a->copies;
            m->state = w.breaks[n] ? REGISTRY_FAILED : slow ? REGISTRY_LOADING : REGISTRY_READY;
            m->error = w.breaks[n] ? "the file is damaged" : "";
        }
    }
}

/* Decides and obeys until nothing changes, one second per round. */
static void settle(void)
{
    uint32_t n = 0;
    do {
        obey(false);
        w.now_ms += SECOND;
        assert_true(n++ < 20);
    } while (decide());
}

static uint32_t n_assigned(enum desired_duty duty)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w.d->n_assignments; i++)
        n += w.d->assignments[i].duty == duty;
    return n;
}

static const struct desired_assignment *on(uint32_t node)
{
    return desired_find_assignment(w.d, names[node], "reply", sum_a);
}

static uint32_t n_copies(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w.d->n_assignments; i++)
        if (w.d->assignments[i].duty == DESIRED_SERVE)
            n += desired_copies(&w.d->assignments[i]);
    return n;
}

/* ---- several replicas of a model on a node ---- */

static void test_copies_fill_what_nodes_cannot(void **state)
{
    (void)state;
    struct desired_model *m = deploy(5, 5);
    settle();
    assert_int_equal(n_copies(), 3); /* one for each node */
    m->per_node = 2;
    settle();
    assert_int_equal(n_copies(), 5);
    for (uint32_t i = 0; i < N_NODES; i++)
        assert_true(desired_copies(on(i)) <= 2);
    for (int i = 0; i < 5; i++) { /* repeatedly: nothing moves */
        w.now_ms += 600 * SECOND;
        assert_false(decide());
    }
    m->per_node = 9; /* 120 MiB each: 800 of 1000 MiB are for models */
    m->replicas_min = m->replicas_max = m->replicas_want = 40;
    settle();
    assert_int_equal(n_copies(), 18);
    w.n_cores = 2;
    settle();
    assert_int_equal(n_copies(), 6); /* not more than it has cores */
    m->replicas_min = m->replicas_max = m->replicas_want = 2;
    settle();
    assert_int_equal(n_copies(), 2);
    assert_int_equal(w.d->n_assignments, 2);
}

static void test_copies_give_way_to_a_new_node(void **state)
{
    (void)state;
    w.away[1] = w.away[2] = true;
    deploy(2, 2)->per_node = 2;
    settle();
    assert_int_equal(desired_copies(on(0)), 2);
    w.away[1] = false;
    assert_true(decide());
    obey(true); /* the new node loads it: the copies serve until it is ready */
    w.now_ms += SECOND;
    decide();
    assert_non_null(on(1));
    assert_int_equal(desired_copies(on(0)), 2);
    settle();
    assert_int_equal(desired_copies(on(0)), 1);
    assert_int_equal(n_copies(), 2);
}

/* Copies are not kept from another model. */
static void test_copies_give_way_to_another_model(void **state)
{
    (void)state;
    w.away[1] = w.away[2] = true;
    struct desired_model *m = deploy(1, 6);
    m->per_node = 6;
    m->replicas_want = 6;
    settle();
    uint32_t before = n_copies();
    struct desired_model other = {.name = "large",
                                  .source = "",
                                  .apart = "",
                                  .memory_bytes = 600 * MIB,
                                  .replicas_min = 1,
                                  .replicas_max = 1,
                                  .replicas_want = 1};
    memcpy(other.sha256, sum_b, SHA256_BYTES);
    assert_int_equal(desired_put_model(w.d, &other), 0);
    assert_int_equal(before, 6);
    assert_true(decide()); /* first the copies leave, then it is loaded */
    assert_null(desired_find_assignment(w.d, names[0], "large", sum_b));
    assert_int_equal(desired_copies(on(0)), 1);
    obey(false);
    w.now_ms += SECOND;
    assert_true(decide());
    assert_non_null(desired_find_assignment(w.d, names[0], "large", sum_b));
    assert_int_equal(desired_copies(on(0)), 1);
}

/* ---- placing ---- */

static void test_replicas_are_placed_and_stay(void **state)
{
    (void)state;
    deploy(2, 2);
    assert_true(decide());
    assert_int_equal(n_assigned(DESIRED_SERVE), 2);
    assert_int_equal(w.last.n_notes > 0, true);
    assert_int_equal(w.last.notes[0].kind, EVENT_LOG_PLACEMENT);
    settle();
    assert_int_equal(w.d->n_assignments, 2);
    for (int i = 0; i < 5; i++) { /* repeatedly: nothing moves */
        w.now_ms += 600 * SECOND;
        assert_false(decide());
    }
    /* A new controller knows nothing, and changes nothing. */
    controller_memory_fini(&w.memory);
    assert_false(decide());
}

static void test_what_nodes_measure_is_taken_over(void **state)
{
    (void)state;
    struct desired_model *m = deploy(1, 1);
    settle();
    assert_int_equal(m->memory_bytes, 120 * MIB);
    assert_int_equal(m->kinds, SHOAL_KIND_GENERATE);
}

static void test_a_lost_replica_is_replaced(void **state)
{
    (void)state;
    deploy(2, 2);
    settle();
    uint32_t lost = on(0) ? 0 : 1;
    w.away[lost] = true;
    assert_true(decide());
    assert_int_equal(n_assigned(DESIRED_SERVE), 3); /* its own assignment is kept for a while */
    settle();
    assert_non_null(on(lost));
    w.now_ms += 61 * SECOND;
    assert_true(decide());
    assert_null(on(lost));
    assert_int_equal(n_assigned(DESIRED_SERVE), 2);
}

static void test_who_comes_back_in_time_is_one_too_many(void **state)
{
    (void)state;
    deploy(2, 2);
    settle();
    uint32_t lost = on(0) ? 0 : 1;
    w.away[lost] = true;
    settle();
    assert_int_equal(n_assigned(DESIRED_SERVE), 3);
    w.away[lost] = false;
    settle();
    assert_int_equal(w.d->n_assignments, 2);
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_NODES; i++)
        n += w.n_held[i];
    assert_int_equal(n, 2);
}

/* ---- draining ---- */

static void test_a_drained_node_serves_until_another_is_ready(void **state)
{
    (void)state;
    deploy(2, 3); /* the planner alone would keep only one */
    w.d->models[0].replicas_want = 2;
    settle();
    uint32_t from = on(0) ? 0 : 1;
    assert_int_equal(desired_set_drained(w.d, names[from], true), 0);
    assert_true(decide());
    for (int i = 0; i < 3; i++) { /* the replacement is slow */
        obey(true);
        for (uint32_t n = 0; n < N_NODES; n++) /* ready ones stay ready */
            for (uint32_t k = 0; k < w.n_held[n]; k++)
                if (on(n) && on(n)->since_ms < w.now_ms)
                    w.held[n][k].state = REGISTRY_READY;
        w.now_ms += 0;
        decide();
        assert_int_equal(on(from)->duty, DESIRED_SERVE);
    }
    obey(false);
    w.now_ms += SECOND;
    assert_true(decide());
    assert_int_equal(on(from)->duty, DESIRED_LEAVE);
    assert_true(w.n_held[from] > 0);
    w.now_ms += SECOND;
    decide(); /* it has not released it yet */
    assert_non_null(on(from));
    settle();
    assert_null(on(from));
    assert_int_equal(w.n_held[from], 0);
    assert_int_equal(n_assigned(DESIRED_SERVE), 2);
}

/* ---- failures ---- */

static void test_a_load_that_fails_goes_elsewhere(void **state)
{
    (void)state;
    deploy(1, 1);
    decide();
    uint32_t bad = on(0) ? 0 : on(1) ? 1 : 2;
    w.breaks[bad] = true;
    settle();
    assert_null(on(bad));
    assert_int_equal(n_assigned(DESIRED_SERVE), 1);
    assert_int_equal(w.n_failed_notes, 1);
}

static void test_a_failed_load_is_tried_again_later(void **state)
{
    (void)state;
    deploy(1, 1);
    for (uint32_t i = 0; i < N_NODES; i++)
        w.breaks[i] = true;
    settle();
    assert_int_equal(w.d->n_assignments, 0);
    assert_int_equal(w.n_failed_notes, N_NODES); /* each node once */
    assert_true(w.last.n_gaps > 0);
    assert_true(w.last.gap[0] != '\0');
    decide();
    assert_int_equal(w.d->n_assignments, 0);
    for (uint32_t i = 0; i < N_NODES; i++)
        w.breaks[i] = false;
    w.now_ms += 60 * SECOND;
    settle();
    assert_int_equal(n_assigned(DESIRED_SERVE), 1);
    assert_int_equal(w.memory.n_failures < N_NODES, true); /* success: the failure is forgotten */
}

/* ---- models configured on the nodes ---- */

static void own(uint32_t node, const uint8_t *sum)
{
    w.held[node][w.n_held[node]++] = (struct node_model){
        .name = "reply", .sum = sum, .error = "", .state = REGISTRY_READY, .bytes = 0};
}

static void test_configured_models_count_and_stay(void **state)
{
    (void)state;
    deploy(2, 2);
    own(1, sum_a);
    settle();
    assert_int_equal(n_assigned(DESIRED_SERVE), 1);
    assert_null(on(1));
    own(0, sum_a); /* one more than wanted: the assigned one leaves, the configured ones stay */
    own(2, sum_a);
    settle();
    assert_int_equal(n_assigned(DESIRED_LEAVE), 0);
}

static void test_other_bytes_of_the_same_name_do_not_count(void **state)
{
    (void)state;
    deploy(1, 1);
    own(1, sum_b);
    settle();
    assert_int_equal(n_assigned(DESIRED_SERVE), 1);
}

static void test_what_a_node_holds_beside_the_plan_takes_memory(void **state)
{
    (void)state;
    deploy(1, 1)->memory_bytes = 500 * MIB;
    for (uint32_t i = 0; i < 2; i++) { /* 800 MiB for models, 400 of them in use */
        own(i, sum_b);
        w.held[i][0].name = "other";
        w.held[i][0].bytes = 400 * MIB;
    }
    decide();
    assert_non_null(on(2));
}

/* ---- scaling ---- */

static void test_load_brings_replicas_and_idleness_takes_them(void **state)
{
    (void)state;
    struct desired_model *m = deploy(0, 3);
    m->replicas_want = 1;
    m->idle_ms = 30 * SECOND;
    settle();
    assert_int_equal(n_assigned(DESIRED_SERVE), 1);
    for (uint32_t n = 0; n < N_NODES; n++)
        for (uint32_t i = 0; i < w.n_held[n]; i++)
            w.held[n][i].in_flight = 9;
    w.now_ms += SECOND;
    assert_true(decide());
    assert_int_equal(m->replicas_want, 2); /* at most twice as many at once */
    bool told = false;
    for (uint32_t i = 0; i < w.last.n_notes; i++)
        told |= strstr(w.last.notes[i].text, "2 replicas instead of 1") != NULL;
    assert_true(told);
    settle();
    for (uint32_t n = 0; n < N_NODES; n++)
        for (uint32_t i = 0; i < w.n_held[n]; i++)
            w.held[n][i].in_flight = 0;
    w.now_ms += 31 * SECOND;
    settle();
    assert_int_equal(m->replicas_want, 0);
    assert_int_equal(w.d->n_assignments, 0);
    /* A request waits at a gateway. */
    w.wanted = "reply";
    assert_true(decide());
    assert_int_equal(m->replicas_want, 1);
    assert_int_equal(n_assigned(DESIRED_SERVE), 1);
    settle();
    assert_int_equal(n_assigned(DESIRED_SERVE), 1);
}

static void test_slow_answers_bring_replicas(void **state)
{
    (void)state;
    struct desired_model *m = deploy(1, 3);
    m->budget_ms = 1000;
    settle();
    for (uint32_t n = 0; n < N_NODES; n++)
        for (uint32_t i = 0; i < w.n_held[n]; i++)
            w.held[n][i].recent_p95_us = 900000; /* 80 % of the budget is the target */
    w.now_ms += SECOND;
    assert_true(decide());
    assert_int_equal(m->replicas_want, 2);
}

static void test_busy_processors_bring_replicas(void **state)
{
    (void)state;
    struct desired_model *m = deploy(1, 3);
    settle();
    w.cpu = 0.95;
    w.now_ms += SECOND;
    assert_true(decide());
    assert_int_equal(m->replicas_want, 2);
    w.cpu = 0.68; /* near the target: nothing changes */
    w.now_ms += 60 * SECOND;
    settle();
    assert_int_equal(m->replicas_want, 2);
}

static void test_counts_are_kept_between_the_limits(void **state)
{
    (void)state;
    struct desired_model *m = deploy(2, 2);
    m->replicas_want = 9;
    settle();
    assert_int_equal(m->replicas_want, 2);
    assert_int_equal(n_assigned(DESIRED_SERVE), 2);
}

/* ---- the view ---- */

static void test_a_view_tells_what_changed(void **state)
{
    (void)state;
    struct node_model m = {.name = "reply", .sum = sum_a, .error = "", .state = REGISTRY_LOADING};
    struct node_state s = {.id = "1",
                           .name = "n1",
                           .address = "a:1",
                           .program_version = "",
                           .isa = "",
                           .zone = "",
                           .models = &m,
                           .n_models = 1};
    struct controller_view *v;
    struct err e = {0};
    static const struct {
        const char *why;
        enum controller_news news;
    } cases[] = {{"new", CONTROLLER_JOINED},
                 {"the same", CONTROLLER_NOTHING},
                 {"load alone", CONTROLLER_NOTHING},
                 {"a model is ready", CONTROLLER_CHANGED},
                 {"another run", CONTROLLER_RESTARTED}};
    assert_int_equal(controller_view_create(&v, &e), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum controller_news news;
        struct buf b;
        m.in_flight = i >= 2 ? 7 : 0;
        m.state = i >= 3 ? REGISTRY_READY : REGISTRY_LOADING;
        s.id = i >= 4 ? "2" : "1";
        buf_init(&b, NODE_STATE_MAX_BYTES);
        assert_int_equal(node_state_put(&b, &s), 0);
        assert_int_equal(controller_view_hear(v, b.data, b.len, 100 + i, &news, NULL, &e), 0);
        if (news != cases[i].news)
            fail_msg("%s: %d", cases[i].why, news);
        buf_fini(&b);
    }
    enum controller_news news;
    assert_true(controller_view_hear(v, "\xff\xff", 2, 200, &news, NULL, &e) < 0);
    assert_int_equal(controller_view_count(v), 1);
    assert_null(controller_view_expire(v, 104));
    controller_view_refresh(v, 300);
    assert_null(controller_view_expire(v, 300));
    assert_string_equal(controller_view_expire(v, 301), "n1");
    assert_int_equal(controller_view_count(v), 0);
    controller_view_destroy(v);
}

/* Two processes with one certificate are told apart from one that was restarted. */
static void test_twins(void **state)
{
    static const struct {
        const char *id;
        uint64_t ms;
        enum controller_news news;
    } beats[] = {{"a", 0, CONTROLLER_JOINED},      {"b", 200, CONTROLLER_RESTARTED},
                 {"a", 300, CONTROLLER_RESTARTED}, /* was on its way: it may have ended */
                 {"b", 400, CONTROLLER_RESTARTED}, {"b", 1600, CONTROLLER_NOTHING},
                 {"a", 1700, CONTROLLER_TWINS},    {"b", 1800, CONTROLLER_NOTHING},
                 {"a", 1900, CONTROLLER_NOTHING}, /* said once */
                 {"a", 9000, CONTROLLER_RESTARTED} /* the other has ended */};
    struct controller_view *v;
    struct err e = {0};
    (void)state;
    assert_int_equal(controller_view_create(&v, &e), 0);
    for (size_t i = 0; i < sizeof(beats) / sizeof(beats[0]); i++) {
        const struct node_state s = {.id = beats[i].id, .name = "n1", .address = "a:1"};
        enum controller_news news;
        const char *name = "";
        struct buf b;
        buf_init(&b, NODE_STATE_MAX_BYTES);
        assert_int_equal(node_state_put(&b, &s), 0);
        assert_int_equal(
            controller_view_hear(v, b.data, b.len, 1 + beats[i].ms * 1000000u, &news, &name, &e),
            0);
        assert_string_equal(name, "n1");
        if (news != beats[i].news)
            fail_msg("heartbeat %zu: %d", i, news);
        buf_fini(&b);
    }
    controller_view_destroy(v);
}

static void hear_epoch(struct controller_view *v, const char *name, const char *address,
                       uint64_t epoch)
{
    const struct node_state s = {.id = "1",
                                 .name = name,
                                 .address = address,
                                 .program_version = "",
                                 .isa = "",
                                 .zone = "",
                                 .oldest_epoch = epoch};
    enum controller_news news;
    struct err e = {0};
    struct buf b;
    buf_init(&b, NODE_STATE_MAX_BYTES);
    assert_int_equal(node_state_put(&b, &s), 0);
    assert_int_equal(controller_view_hear(v, b.data, b.len, clock_ns(), &news, NULL, &e), 0);
    buf_fini(&b);
}

static uint64_t oldest_epoch(const struct controller_view *v)
{
    struct controller_snapshot *s;
    struct err e = {0};
    assert_int_equal(controller_view_take(v, &s, &e), 0);
    assert_int_equal(controller_snapshot_read(s, &e), 0);
    uint64_t epoch = s->oldest_epoch;
    controller_snapshot_free(s);
    return epoch;
}

static void test_a_view_knows_the_oldest_request(void **state)
{
    (void)state;
    struct controller_view *v;
    struct err e = {0};
    assert_int_equal(controller_view_create(&v, &e), 0);
    hear_epoch(v, "n1", "a:1", 0);
    assert_int_equal(oldest_epoch(v), 0);
    hear_epoch(v, "n1", "a:1", 4);
    hear_epoch(v, "gw1", "", 3); /* a gateway has no address, but still counts */
    hear_epoch(v, "gw2", "", 2);
    assert_int_equal(oldest_epoch(v), 2);
    hear_epoch(v, "gw2", "", 5);
    assert_int_equal(oldest_epoch(v), 3);
    while (controller_view_expire(v, UINT64_MAX)) /* silent, but perhaps only slow */
        ;
    assert_int_equal(controller_view_count(v), 0);
    assert_int_equal(oldest_epoch(v), 3);
    controller_view_destroy(v);
}

int main(void)
{
#define WITH_WORLD(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_replicas_are_placed_and_stay),
        WITH_WORLD(test_copies_fill_what_nodes_cannot),
        WITH_WORLD(test_copies_give_way_to_a_new_node),
        WITH_WORLD(test_copies_give_way_to_another_model),
        WITH_WORLD(test_what_nodes_measure_is_taken_over),
        WITH_WORLD(test_a_lost_replica_is_replaced),
        WITH_WORLD(test_who_comes_back_in_time_is_one_too_many),
        WITH_WORLD(test_a_drained_node_serves_until_another_is_ready),
        WITH_WORLD(test_a_load_that_fails_goes_elsewhere),
        WITH_WORLD(test_a_failed_load_is_tried_again_later),
        WITH_WORLD(test_configured_models_count_and_stay),
        WITH_WORLD(test_other_bytes_of_the_same_name_do_not_count),
        WITH_WORLD(test_what_a_node_holds_beside_the_plan_takes_memory),
        WITH_WORLD(test_load_brings_replicas_and_idleness_takes_them),
        WITH_WORLD(test_slow_answers_bring_replicas),
        WITH_WORLD(test_busy_processors_bring_replicas),
        WITH_WORLD(test_counts_are_kept_between_the_limits),
        cmocka_unit_test(test_a_view_tells_what_changed),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_a_view_knows_the_oldest_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
