/* test_rollout.c - updates of models over fabricated clusters: nodes that fetch, load, fail, die
 * and come back, gateways that learn about epochs late, requests that take a while.
 *
 * What must hold: users always find enough replicas; with `strong` an epoch means one version, for
 * every request and all its steps; a version that cannot be loaded changes nothing; every rollout
 * ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "cluster/messages/node_state.h"
#include "cluster/rollout/rollout.h"
#include "cluster/rollout/rollout_admin.h"
#include "cluster/rollout/rollout_judge.h"

#define MAX_NODES 7
#define MAX_REQUESTS 24
#define TICK_MS 250u
#define HOUR_MS UINT64_C(3600000)
#define MAX_EPOCHS 16

static const uint8_t sum_old[SHA256_BYTES] = {1}, sum_new[SHA256_BYTES] = {2};
#define OLD 0
#define NEW 1

/* A version on a node, as the node's agent and registry have it. */
struct loaded {
    bool here;
    uint32_t loading; /* ticks until it is ready */
    bool bad;
    uint32_t duty;
    uint64_t epoch, until;
    uint32_t in_flight;
    uint64_t requests, errors;
};

struct node {
    char name[16];
    bool alive;
    struct desired *seen; /* the state that it follows; NULL: none yet */
    struct loaded v[2];
    uint64_t epoch, epoch_end;
    struct node_model models[2]; /* as reported */
};

struct running {
    bool on;
    int node, version;
    uint64_t epoch;
    uint32_t left;
};

static struct world {
    uint32_t n;
    struct node nodes[MAX_NODES];
    struct desired *d;
    struct running requests[MAX_REQUESTS];
    uint64_t gateway_epoch;
    uint64_t held_epoch;        /* of a flow between two of its steps; 0: none */
    int version_of[MAX_EPOCHS]; /* the version that an epoch got, plus 1; strong */
    bool strong;
    uint64_t now_ms, seed;
    uint64_t term_ms; /* of the controller; 0: it is always the same one */
    uint32_t n_refused, n_served[2];
    uint32_t fail_nodes;  /* bits: nodes on which the new version cannot be loaded */
    uint32_t error_every; /* one in this many requests of the new version fails; 0: none */
    uint32_t slow;        /* the new version's p95 in percent of the old one's; 0: 100 */
    uint64_t memory_free;
    char told[8][256];
    uint32_t n_told;
} w;

static uint32_t draw(uint32_t n)
{
    w.seed = w.seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w.seed >> 33) % n;
}

/* ---- the nodes ---- */

static const uint8_t *sum_of(int version)
{
    return version == NEW ? sum_new : sum_old;
}

/* One tick of an agent. */
static void follow(struct node *n)
{
    if (!n->seen)
        return;
    n->epoch = n->seen->epoch;
    n->epoch_end = rollout_epoch_end(n->seen);
    for (int i = 0; i < 2; i++) {
        struct loaded *v = &n->v[i];
        const struct desired_assignment *a =
            desired_find_assignment(n->seen, n->name, "m", sum_of(i));
        if (a && !v->here)
            *v = (struct loaded){.here = true, .loading = 1 + draw(4)};
        if (a) {
            v->duty = a->duty;
            v->epoch = a->epoch;
            v->until = a->until;
        }
        if (!a && v->here)
            v->duty = DESIRED_LEAVE;
        if (v->loading > 0 && --v->loading == 0)
            v->bad = i == NEW && (w.fail_nodes >> (n - w.nodes) & 1);
        if (v->here && v->duty == DESIRED_LEAVE && v->in_flight == 0)
            *v = (struct loaded){0};
    }
}

static bool usable(const struct node *n, int version, uint64_t epoch)
{
    const struct loaded *v = &n->v[version];
    return n->alive && n->seen && v->here && v->loading == 0 && !v->bad &&
           v->duty == DESIRED_SERVE && epoch < n->epoch_end && epoch >= v->epoch &&
           (v->until == 0 || epoch < v->until);
}

static uint32_t n_serving(uint64_t epoch)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w.n; i++)
        n += usable(&w.nodes[i], OLD, epoch) || usable(&w.nodes[i], NEW, epoch);
    return n;
}

static void report(struct node_state *out, struct node *n)
{
    uint32_t k = 0;
    for (int i = 0; i < 2; i++) {
        const struct loaded *v = &n->v[i];
        if (!v->here)
            continue;
        n->models[k++] =
            (struct node_model){.name = "m",
                                .sum = sum_of(i),
                                .state = v->bad       ? REGISTRY_FAILED
                                         : v->loading ? REGISTRY_LOADING
                                                      : REGISTRY_READY,
                                .error = v->bad ? "has the SHA-256 ff instead of 02" : "",
                                .duty = v->duty,
                                .epoch = v->epoch,
                                .until = v->until,
                                .in_flight = v->in_flight,
                                .requests = v->requests,
                                .errors = v->errors,
                                .p95_us = i == NEW && w.slow ? 10 * w.slow : 1000};
    }
    *out = (struct node_state){.name = n->name,
                               .models = n->models,
                               .n_models = k,
                               .memory_free = w.memory_free,
                               .epoch = n->epoch,
                               .epoch_end = n->epoch_end};
}

static void kill_node(struct node *n)
{
    n->alive = false;
    desired_destroy(n->seen);
    n->seen = NULL;
    memset(n->v, 0, sizeof(n->v));
    n->epoch = n->epoch_end = 0;
}

/* A copy of the state, as NATS would deliver it. */
static struct desired *copy_state(const struct desired *d)
{
    struct desired *to = NULL;
    struct err e = {0};
    struct buf b;
    buf_init(&b, 1 << 20);
    if (desired_code_put(&b, d, &e) < 0 || desired_code_get(&to, b.data, b.len, &e) < 0)
        fail_msg("%s", e.msg);
    buf_fini(&b);
    return to;
}

/* ---- requests ---- */

static void check_version(uint64_t epoch, int version)
{
    assert_in_range(epoch, 0, MAX_EPOCHS - 1);
    if (!w.strong)
        return;
    if (w.version_of[epoch] && w.version_of[epoch] != version + 1)
        fail_msg("epoch %d got both versions", (int)epoch);
    w.version_of[epoch] = version + 1;
}

/* One step of a request on some node; pinned: the version that it started with, or -1. */
static bool serve(struct running *q, int pinned)
{
    uint32_t first = draw(w.n);
    int canary = rollout_of(w.d, "m") && draw(1000) < rollout_share(w.d, "m", sum_new);
    for (uint32_t i = 0; i < w.n; i++) {
        struct node *n = &w.nodes[(first + i) % w.n];
        for (int k = 0; k < 2; k++) {
            int v = k ^ canary;
            bool fits = pinned < 0 ? usable(n, v, q->epoch)
                                   : n->alive && v == pinned && n->v[v].here &&
                                         n->v[v].loading == 0 && !n->v[v].bad;
            if (!fits)
                continue;
            q->node = (int)(n - w.nodes);
            q->version = v;
            n->v[v].in_flight++;
            n->v[v].requests++;
            n->v[v].errors += v == NEW && w.error_every && n->v[v].requests % w.error_every == 0;
            check_version(q->epoch, v);
            w.n_served[v]++;
            return true;
        }
    }
    return false;
}

static void run_requests(void)
{
    for (uint32_t i = 0; i < MAX_REQUESTS; i++) {
        struct running *q = &w.requests[i];
        if (q->on && !w.nodes[q->node].alive) { /* its node died: it continues elsewhere */
            q->on = serve(q, q->version);
            continue;
        }
        if (q->on && --q->left == 0) {
            w.nodes[q->node].v[q->version].in_flight--;
            bool flow = draw(3) == 0; /* a second step, with the same stamp */
            q->on = false;
            if (flow && serve(q, -1)) {
                q->on = true;
                q->left = 1 + draw(6);
            }
        } else if (!q->on && draw(2)) {
            *q = (struct running){.on = true, .epoch = w.gateway_epoch, .left = 1 + draw(6)};
            if (!serve(q, -1)) {
                q->on = false;
                w.n_refused++;
            }
        }
    }
    /* requests that died with their node are no longer in flight there */
    for (uint32_t i = 0; i < w.n; i++)
        if (!w.nodes[i].alive)
            for (int k = 0; k < 2; k++)
                w.nodes[i].v[k].in_flight = 0;
}

/* ---- the world ---- */

static void on_told(void *ctx, const struct desired_rollout *r, const char *text)
{
    (void)ctx;
    (void)r;
    snprintf(w.told[w.n_told++ % 8], sizeof(w.told[0]), "%s", text);
}

static void open_world(uint32_t n, uint64_t seed)
{
    struct err e = {0};
    struct desired_model m = {
        .name = "m", .replicas_min = 1, .replicas_max = n, .memory_bytes = 100, .source = "old"};
    w = (struct world){.n = n, .seed = seed, .now_ms = 10 * HOUR_MS, .memory_free = 1000};
    assert_int_equal(desired_create(&w.d, &e), 0);
    memcpy(m.sha256, sum_old, SHA256_BYTES);
    assert_int_equal(desired_put_model(w.d, &m), 0);
    for (uint32_t i = 0; i < n; i++) {
        struct node *k = &w.nodes[i];
        snprintf(k->name, sizeof(k->name), "n%u", i);
        struct desired_assignment a = {.node = k->name, .model = "m", .duty = DESIRED_SERVE};
        memcpy(a.sha256, sum_old, SHA256_BYTES);
        assert_int_equal(desired_put_assignment(w.d, &a), 0);
        k->alive = true;
        k->v[OLD] = (struct loaded){.here = true, .duty = DESIRED_SERVE};
    }
    for (uint32_t i = 0; i < n; i++)
        w.nodes[i].seen = copy_state(w.d);
}

static void close_world(void)
{
    for (uint32_t i = 0; i < w.n; i++)
        desired_destroy(w.nodes[i].seen);
    desired_destroy(w.d);
}

static struct desired_rollout *start(enum desired_rollout_kind kind)
{
    struct rollout_start o = {.model = "m", .kind = kind, .source = "new", .by = "test"};
    const struct desired_rollout *r;
    struct err e = {0};
    memcpy(o.to, sum_new, SHA256_BYTES);
    o.judge.requests = 40;
    w.strong = kind == DESIRED_STRONG;
    if (rollout_admin_start(w.d, &o, w.now_ms, &r, &e) < 0)
        fail_msg("%s", e.msg);
    return &w.d->rollouts[r - w.d->rollouts];
}

static void decide(void)
{
    struct node_state states[MAX_NODES];
    struct err e = {0};
    uint32_t n = 0;
    bool changed = false;
    for (uint32_t i = 0; i < w.n; i++)
        if (w.nodes[i].alive && w.nodes[i].seen)
            report(&states[n++], &w.nodes[i]);
    const struct rollout_input in = {states, n, w.held_epoch, w.now_ms, w.term_ms};
    if (rollout_step(w.d, &in, &changed, on_told, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    if (desired_check(w.d, &e) < 0)
        fail_msg("%s", e.msg);
    w.d->version += changed;
}

/* lag: each tick, a state reaches a node with a chance of 1 in lag. */
static void tick(uint32_t lag)
{
    w.now_ms += TICK_MS;
    for (uint32_t i = 0; i < w.n; i++) {
        struct node *n = &w.nodes[i];
        if (n->alive && (!n->seen || n->seen->version != w.d->version) && draw(lag) == 0) {
            desired_destroy(n->seen);
            n->seen = copy_state(w.d);
        }
        if (n->alive)
            follow(n);
    }
    if (draw(lag) == 0) { /* a gateway learns the epoch from nodes */
        const struct node *n = &w.nodes[draw(w.n)];
        if (n->alive && n->epoch > w.gateway_epoch)
            w.gateway_epoch = n->epoch;
    }
    run_requests();
    decide();
}

static const struct desired_rollout *last(void)
{
    return &w.d->rollouts[w.d->n_rollouts - 1];
}

/* Runs until it has finished. min: replicas that must serve all the time. */
static void run_until_over(uint32_t min, uint32_t lag)
{
    for (int i = 0; i < 4000 && rollout_active(last()); i++) {
        tick(lag);
        if (n_serving(w.gateway_epoch) < min)
            fail_msg("%u nodes serve, %u must", n_serving(w.gateway_epoch), min);
    }
    if (rollout_active(last()))
        fail_msg("still %s after 1000 s", desired_rollout_state_text(last()->state));
}

/* Every node has one version, and no trace of the other. */
static void check_end(int version)
{
    for (int i = 0; i < 40; i++)
        tick(1);
    assert_memory_equal(w.d->models[0].sha256, sum_of(version), SHA256_BYTES);
    assert_string_equal(w.d->models[0].source, version == NEW ? "new" : "old");
    assert_int_equal(w.d->n_assignments, w.n);
    for (uint32_t i = 0; i < w.n; i++) {
        const struct desired_assignment *a =
            desired_find_assignment(w.d, w.nodes[i].name, "m", sum_of(version));
        assert_non_null(a);
        assert_int_equal(a->duty, DESIRED_SERVE);
        assert_int_equal(a->until, 0);
        assert_true(usable(&w.nodes[i], version, w.d->epoch));
        assert_false(w.nodes[i].v[!version].here);
    }
}

/* ---- tests ---- */

static const enum desired_rollout_kind kinds[] = {DESIRED_ROLLING, DESIRED_CANARY, DESIRED_STRONG,
                                                  DESIRED_EVENTUAL};

static void test_every_kind_ends_with_the_new_version(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t n = 1; n <= 5; n += 2)
            for (uint32_t lag = 1; lag <= 4; lag += 3) {
                open_world(n, 7 * k + n);
                start(kinds[k]);
                run_until_over(n, lag); /* never fewer than before */
                assert_int_equal(last()->state, DESIRED_DONE);
                assert_int_equal(w.n_refused, 0);
                assert_true(w.n_served[NEW] > 0);
                check_end(NEW);
                close_world();
            }
}

static void test_rolling_changes_one_node_at_a_time(void **state)
{
    (void)state;
    open_world(5, 3);
    start(DESIRED_ROLLING);
    while (rollout_active(last())) {
        uint32_t staging = 0;
        tick(2);
        for (uint32_t i = 0; i < w.d->n_assignments; i++) {
            const struct desired_assignment *a = &w.d->assignments[i];
            staging += a->duty == DESIRED_STAGE && memcmp(a->sha256, sum_new, SHA256_BYTES) == 0;
        }
        assert_in_range(staging, 0, 1);
    }
    close_world();
}

/* A flow that started before the switch requests its next model long after it. */
static void test_strong_keeps_the_old_version_for_a_flow(void **state)
{
    (void)state;
    open_world(3, 5);
    start(DESIRED_STRONG);
    w.held_epoch = 1;
    for (int i = 0; i < 400 && w.d->epoch == 0; i++)
        tick(1);
    assert_in_range(w.d->epoch, 2, MAX_EPOCHS);
    for (int i = 0; i < 200; i++) { /* 50 s */
        tick(1);
        assert_true(rollout_active(last()));
        for (uint32_t k = 0; k < w.n; k++)
            assert_true(usable(&w.nodes[k], OLD, w.held_epoch));
    }
    w.held_epoch = w.d->epoch; /* it has finished; others started after the switch */
    run_until_over(3, 1);
    assert_int_equal(last()->state, DESIRED_DONE);
    check_end(NEW);
    close_world();
}

/* A flow that never ends blocks nothing forever. */
static void test_strong_does_not_wait_for_ever(void **state)
{
    (void)state;
    open_world(3, 5);
    start(DESIRED_STRONG);
    w.held_epoch = 1;
    run_until_over(3, 1);
    assert_int_equal(last()->state, DESIRED_DONE);
    close_world();
}

/* Another member becomes the controller after the switch, and its clock is wrong by an hour:
 * nothing hangs until then, and the old version stays as long as it would have. */
static void test_clocks_of_controllers_differ(void **state)
{
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        open_world(3, 5);
        start(DESIRED_STRONG);
        for (int i = 0; i < 400 && w.d->epoch == 0; i++)
            tick(1);
        assert_true(w.d->epoch > 0);
        w.now_ms = ahead ? w.now_ms + HOUR_MS : w.now_ms - HOUR_MS;
        w.term_ms = w.now_ms;
        for (uint32_t i = 0; i < 2500 / TICK_MS; i++) {
            tick(1);
            for (uint32_t k = 0; k < w.n; k++)
                assert_true(usable(&w.nodes[k], OLD, 1)); /* gateways may not know yet */
        }
        run_until_over(3, 1);
        assert_int_equal(last()->state, DESIRED_DONE);
        assert_true(w.now_ms - w.term_ms < 60000);
        close_world();
    }
}

static void test_what_cannot_be_loaded_changes_nothing(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 4; k++) {
        open_world(4, 11 + k);
        w.fail_nodes = 15;
        start(kinds[k]);
        run_until_over(4, 2);
        assert_int_equal(last()->state, DESIRED_FAILED);
        assert_non_null(strstr(last()->steps[last()->n_steps - 1].text, "has the SHA-256"));
        assert_non_null(strstr(last()->steps[last()->n_steps - 1].text, "on node n"));
        assert_int_equal(w.n_served[NEW], 0); /* users did not notice */
        assert_int_equal(w.n_refused, 0);
        assert_int_equal(w.d->epoch, 0);
        check_end(OLD);
        close_world();
    }
}

/* It works on some nodes and not on the last one. */
static void test_a_late_failure_is_undone(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        open_world(4, 21 + k);
        w.fail_nodes = 8;
        start(kinds[k]);
        run_until_over(4, 2);
        assert_int_equal(last()->state, DESIRED_FAILED);
        assert_int_equal(w.n_refused, 0);
        check_end(OLD);
        close_world();
    }
}

static void test_a_worse_canary_goes_by_itself(void **state)
{
    const struct {
        uint32_t error_every, slow;
        const char *why;
    } worse[] = {{4, 0, "requests failed"}, {0, 300, "the p95 is"}};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        open_world(4, 31 + i);
        w.error_every = worse[i].error_every;
        w.slow = worse[i].slow;
        start(DESIRED_CANARY);
        run_until_over(4, 2);
        assert_int_equal(last()->state, DESIRED_FAILED);
        assert_non_null(strstr(last()->steps[last()->n_steps - 1].text, worse[i].why));
        assert_int_equal(w.n_refused, 0);
        check_end(OLD);
        close_world();
    }
}

/* A share of the nodes is rounded up: fewer would not carry that share of the requests. */
static void test_a_canary_gets_enough_nodes(void **state)
{
    static const struct {
        uint32_t n_nodes, share, want;
    } cases[] = {
        {1, 100, 1}, {4, 100, 1}, {4, 250, 1}, {4, 251, 2}, {4, 500, 2},
        {5, 300, 2}, {7, 500, 4}, {7, 900, 7}, {3, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t n = 0;
        open_world(cases[i].n_nodes, 51);
        start(DESIRED_CANARY);
        w.d->rollouts[0].share = cases[i].share;
        w.d->rollouts[0].judge.requests = 1000000; /* never enough for a verdict */
        for (int k = 0; k < 400 && last()->state != DESIRED_RUNNING; k++)
            tick(2);
        assert_int_equal(last()->state, DESIRED_RUNNING);
        for (uint32_t k = 0; k < w.d->n_assignments; k++)
            n += memcmp(w.d->assignments[k].sha256, sum_new, SHA256_BYTES) == 0;
        if (n != cases[i].want)
            fail_msg("%u of %u nodes serve %u per mille", n, cases[i].n_nodes, cases[i].share);
        close_world();
    }
}

static void test_judge(void **state)
{
    struct desired_judge j = {.requests = 100, .errors = 10, .p95 = 150, .score = 20};
    struct rollout_figures from = {1000, 20, 1000}, to = {99, 0, 1000};
    char text[256];
    (void)state;
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_WAIT);
    to.requests = 100;
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_GOOD);
    to.errors = 3; /* 3 % against 2 % and 1 % */
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_GOOD);
    to.errors = 4;
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_BAD);
    to.requests = 10; /* too early to accept it, not to reject it */
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_BAD);
    to = (struct rollout_figures){100, 0, 1501};
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_BAD);
    assert_string_equal(text, "the p95 is 1.5 ms; the old version: 1.0 ms");
    j.p95 = 0;
    j.labelled = true;
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_WAIT);
    j.score_from = 901;
    j.score_to = 881;
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_GOOD);
    j.score_to = 880;
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_BAD);
    /* earlier errors of the old version do not excuse the new one */
    j.score_from = j.score_to = 0;
    j.labelled = false;
    j.base_requests = 500;
    j.base_errors = 20;
    to = (struct rollout_figures){100, 2, 0};
    assert_int_equal(rollout_judge(&j, &from, &to, text, sizeof(text)), ROLLOUT_BAD);
}

static void act(enum rollout_action action, int want)
{
    const struct desired_rollout *r;
    struct err e = {0};
    int rc = rollout_admin_act(w.d, "m", action, "test", w.now_ms, &r, &e);
    if (rc != want)
        fail_msg("%d instead of %d: %s", rc, want, e.msg);
    w.d->version++;
}

static void ticks(int n)
{
    for (int i = 0; i < n; i++)
        tick(2);
}

static void test_pause_promote_undo(void **state)
{
    (void)state;
    open_world(4, 41);
    act(ROLLOUT_PAUSE, SHOAL_ENOTFOUND);
    start(DESIRED_CANARY);
    w.d->rollouts[0].judge.requests = 1000000; /* never enough for a verdict */
    ticks(40);
    assert_int_equal(last()->state, DESIRED_RUNNING);
    assert_int_equal(rollout_share(w.d, "m", sum_new), 100);
    assert_int_equal(rollout_share(w.d, "m", sum_old), 0);
    act(ROLLOUT_PAUSE, 0);
    act(ROLLOUT_PAUSE, SHOAL_EINVAL);
    uint64_t version = w.d->version;
    ticks(40);
    assert_int_equal(w.d->version, version);
    assert_int_equal(rollout_share(w.d, "m", sum_new), 100); /* unchanged */
    act(ROLLOUT_PROMOTE, 0);                                 /* resumed */
    assert_int_equal(last()->state, DESIRED_RUNNING);
    act(ROLLOUT_PROMOTE, 0); /* whatever the judge says */
    run_until_over(4, 2);
    assert_int_equal(last()->state, DESIRED_DONE);
    check_end(NEW);
    act(ROLLOUT_PAUSE, SHOAL_EINVAL);
    act(ROLLOUT_UNDO, 0); /* a second rollout, backwards */
    assert_int_equal(w.d->n_rollouts, 2);
    assert_string_equal(last()->id, "m-2");
    run_until_over(4, 2);
    assert_int_equal(last()->state, DESIRED_DONE);
    check_end(OLD);
    close_world();
}

static void test_undo_at_any_time(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 4; k++)
        for (int when = 0; when < 60; when += 3) {
            open_world(3, 51 + (uint32_t)when);
            start(kinds[k]);
            ticks(when);
            if (!rollout_active(last())) {
                close_world();
                break;
            }
            act(ROLLOUT_UNDO, 0);
            act(ROLLOUT_UNDO, SHOAL_EINVAL);
            run_until_over(3, 2);
            assert_int_equal(last()->state, DESIRED_UNDONE);
            assert_int_equal(w.n_refused, 0);
            check_end(OLD);
            close_world();
        }
}

static void test_without_room_for_both(void **state)
{
    (void)state;
    open_world(3, 61);
    w.memory_free = 50; /* the model takes 100 */
    start(DESIRED_ROLLING);
    run_until_over(2, 2); /* one at a time must leave first */
    assert_int_equal(last()->state, DESIRED_DONE);
    check_end(NEW);
    close_world();

    open_world(1, 62);
    w.memory_free = 50;
    start(DESIRED_ROLLING);
    run_until_over(1, 2);
    assert_int_equal(last()->state, DESIRED_FAILED); /* nobody else could serve */
    check_end(OLD);
    close_world();

    open_world(3, 63);
    w.memory_free = 50;
    start(DESIRED_STRONG);
    run_until_over(3, 2);
    assert_int_equal(last()->state, DESIRED_FAILED);
    check_end(OLD);
    close_world();
}

/* A node that gave up the old version for the new one dies before the new one is ready. */
static void test_a_node_lost_while_it_stages_serves_when_it_is_back(void **state)
{
    (void)state;
    open_world(3, 64);
    w.memory_free = 50;
    start(DESIRED_ROLLING);
    struct node *lost = NULL;
    for (int i = 0; i < 4000 && !lost; i++) {
        tick(1);
        for (uint32_t n = 0; n < w.n; n++) {
            const char *name = w.nodes[n].name;
            const struct desired_assignment *a = desired_find_assignment(w.d, name, "m", sum_new);
            if (a && a->duty == DESIRED_STAGE && !desired_find_assignment(w.d, name, "m", sum_old))
                lost = &w.nodes[n];
        }
    }
    assert_non_null(lost);
    kill_node(lost);
    run_until_over(1, 1);
    assert_int_equal(last()->state, DESIRED_DONE);
    lost->alive = true;
    check_end(NEW);
    close_world();
}

/* The planner leaves the model alone until the rollout ends: it must not wait for nodes. */
static void test_a_rollout_that_lost_all_its_nodes_ends(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 4; k++)
        for (int before = 0; before < 6; before++) {
            open_world(2, 65 + k);
            start(kinds[k]);
            for (int i = 0; i < before; i++)
                tick(1);
            assert_int_equal(desired_set_assignments(w.d, NULL, 0), 0);
            run_until_over(0, 1);
            const bool undone = last()->state == DESIRED_FAILED;
            if (last()->state != DESIRED_DONE && !(undone && kinds[k] == DESIRED_CANARY))
                fail_msg("%s", desired_rollout_state_text(last()->state));
            assert_memory_equal(w.d->models[0].sha256, sum_of(undone ? OLD : NEW), SHA256_BYTES);
            close_world();
        }
}

/* An update that is undone must not wait for nodes either, and an epoch has one version. */
static void test_an_undo_that_lost_all_its_nodes_ends(void **state)
{
    (void)state;
    open_world(2, 69);
    start(DESIRED_STRONG);
    for (int i = 0; i < 400 && (last()->epoch == 0 || w.d->epoch < last()->epoch); i++)
        tick(1);
    const uint64_t epoch = w.d->epoch;
    act(ROLLOUT_UNDO, 0);
    assert_int_equal(desired_set_assignments(w.d, NULL, 0), 0);
    run_until_over(0, 1);
    assert_int_equal(last()->state, DESIRED_UNDONE);
    assert_memory_equal(w.d->models[0].sha256, sum_old, SHA256_BYTES);
    assert_true(w.d->epoch > epoch);
    close_world();
}

static void test_one_at_a_time_per_model(void **state)
{
    struct rollout_start o = {.model = "m", .kind = DESIRED_ROLLING};
    const struct desired_rollout *r;
    struct err e = {0};
    (void)state;
    open_world(2, 71);
    start(DESIRED_ROLLING);
    memset(o.to, 9, sizeof(o.to));
    assert_int_equal(rollout_admin_start(w.d, &o, 1, &r, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "m-1"));
    o.model = "nope";
    assert_int_equal(rollout_admin_start(w.d, &o, 1, &r, &e), SHOAL_ENOTFOUND);
    run_until_over(2, 1);
    o.model = "m";
    memcpy(o.to, sum_new, SHA256_BYTES);
    assert_int_equal(rollout_admin_start(w.d, &o, 1, &r, &e), SHOAL_EINVAL); /* it already has it */
    close_world();
}

static struct desired_rollout *start_as(const struct rollout_start *o, int want)
{
    const struct desired_rollout *r;
    struct err e = {0};
    assert_int_equal(rollout_admin_start(w.d, o, 5, &r, &e), want);
    assert_true((r != NULL) == (want == 0));
    return r ? &w.d->rollouts[r - w.d->rollouts] : NULL;
}

static void test_what_a_start_says(void **state)
{
    struct rollout_start o = {.model = "m", .kind = DESIRED_CANARY, .to = {2}, .by = "anna"};
    (void)state;
    open_world(2, 81);
    const struct desired_rollout *r = start_as(&o, 0);
    assert_int_equal(r->share, 100);
    assert_int_equal(r->judge.requests, 50);
    assert_int_equal(r->judge.errors, 10);
    assert_int_equal(r->judge.p95, 150);
    assert_int_equal(r->judge.score, 20);
    assert_string_equal(r->source, "");
    assert_string_equal(r->id, "m-1");
    assert_int_equal(r->state, DESIRED_PENDING);
    assert_memory_equal(r->from, sum_old, SHA256_BYTES);
    assert_memory_equal(r->to, sum_new, SHA256_BYTES);
    assert_int_equal(r->n_steps, 1);
    assert_string_equal(r->steps[0].text, "started by anna");
    assert_int_equal(r->steps[0].at_ms, 5);
    close_world();
    open_world(2, 82);
    o = (struct rollout_start){.model = "m",
                               .kind = DESIRED_CANARY,
                               .to = {2},
                               .source = "there",
                               .share = 1000,
                               .memory_bytes = 7,
                               .any_p95 = true,
                               .judge = {.requests = 1, .errors = 2, .p95 = 3, .score = 4}};
    (void)start_as(&o, SHOAL_EINVAL); /* all of it is no canary */
    o.share = 999;
    r = start_as(&o, 0);
    assert_int_equal(r->share, 999);
    assert_int_equal(r->judge.requests, 1);
    assert_int_equal(r->judge.errors, 2);
    assert_int_equal(r->judge.p95, 0); /* not judged */
    assert_int_equal(r->judge.score, 4);
    assert_int_equal(r->memory_bytes, 7);
    assert_string_equal(r->source, "there");
    assert_string_equal(r->steps[0].text, "started");
    close_world();
    open_world(2, 83);
    o.kind = DESIRED_ROLLING; /* has no share and no judge */
    r = start_as(&o, 0);
    assert_int_equal(r->share, 0);
    assert_int_equal(r->judge.requests, 0);
    close_world();
}

static void test_scores(void **state)
{
    struct err e = {0};
    (void)state;
    open_world(2, 84);
    assert_int_equal(rollout_admin_score(w.d, "m", 1, 1, 9, &e), SHOAL_ENOTFOUND);
    struct desired_rollout *r = start(DESIRED_CANARY);
    assert_int_equal(rollout_admin_score(w.d, "m", 1001, 1, 9, &e), SHOAL_EINVAL);
    assert_int_equal(rollout_admin_score(w.d, "m", 1, 1001, 9, &e), SHOAL_EINVAL);
    assert_int_equal(r->judge.score_from, 0);
    assert_int_equal(rollout_admin_score(w.d, "m", 1000, 0, 9, &e), 0);
    assert_int_equal(rollout_admin_score(w.d, "m-1", 905, 1000, 10, &e), 0);
    assert_int_equal(r->judge.score_from, 906); /* 0: there is none */
    assert_int_equal(r->judge.score_to, 1001);
    assert_string_equal(r->steps[r->n_steps - 1].text,
                        "scored: 100.0 % right, the old version 90.5 %");
    assert_int_equal(r->steps[r->n_steps - 1].at_ms, 10);
    assert_int_equal(r->state, DESIRED_PENDING);
    r->state = DESIRED_DONE;
    assert_int_equal(rollout_admin_score(w.d, "m", 1, 1, 9, &e), SHOAL_ENOTFOUND);
    close_world();
}

/* The oldest that is over makes room; the numbers of a model count on. */
static void test_many_rollouts(void **state)
{
    struct rollout_start o = {.model = "m", .kind = DESIRED_ROLLING, .to = {2}};
    char id[32];
    (void)state;
    open_world(2, 85);
    for (uint32_t i = 1; i <= DESIRED_MAX_ROLLOUTS + 2; i++) {
        struct desired_rollout *r = start_as(&o, 0);
        snprintf(id, sizeof(id), "m-%u", i);
        assert_string_equal(r->id, id);
        assert_ptr_equal(rollout_admin_find(w.d, "m"), r);
        r->state = i == 1 ? DESIRED_UNDONE : DESIRED_DONE;
        assert_ptr_equal(rollout_admin_find(w.d, "m"), r); /* the last one */
    }
    assert_int_equal(w.d->n_rollouts, DESIRED_MAX_ROLLOUTS);
    assert_string_equal(w.d->rollouts[0].id, "m-3");
    for (uint32_t i = 0; i < w.d->n_rollouts; i++)
        w.d->rollouts[i].model = "other", w.d->rollouts[i].state = DESIRED_RUNNING;
    (void)start_as(&o, SHOAL_EINVAL);
    assert_null(rollout_admin_find(w.d, "m"));
    close_world();
}

/* Nodes die and come back at random; in the end all are up. */
static void test_random_faults(void **state)
{
    uint32_t n_done = 0, n_back = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        open_world(2 + (uint32_t)(seed % 6), seed);
        start(kinds[seed % 4]);
        bool bad = seed % 7 == 0, undone = seed % 5 == 0;
        w.fail_nodes = bad ? 1u << draw(w.n) : 0;
        for (int i = 0; i < 400; i++) {
            struct node *n = &w.nodes[draw(w.n)];
            uint32_t alive = 0;
            for (uint32_t k = 0; k < w.n; k++)
                alive += w.nodes[k].alive;
            if (n->alive && alive > 1 && draw(20) == 0)
                kill_node(n);
            else if (!n->alive && draw(6) == 0)
                n->alive = true; /* it knows nothing, and has nothing */
            if (undone && i == 30 && rollout_active(last()) && last()->state != DESIRED_UNDOING)
                act(ROLLOUT_UNDO, 0);
            tick(3);
        }
        for (uint32_t k = 0; k < w.n; k++)
            w.nodes[k].alive = true;
        w.fail_nodes = kinds[seed % 4] == DESIRED_EVENTUAL ? 0 : w.fail_nodes;
        run_until_over(0, 2);
        ticks(60);
        int version = memcmp(w.d->models[0].sha256, sum_new, SHA256_BYTES) == 0 ? NEW : OLD;
        assert_int_equal(version, last()->state == DESIRED_DONE ? NEW : OLD);
        for (uint32_t k = 0; k < w.n; k++) /* nodes that can load it serve; nothing else changes */
            assert_true(usable(&w.nodes[k], version, w.d->epoch) || w.nodes[k].v[NEW].bad);
        for (uint32_t i = 0; i < w.d->n_assignments; i++)
            assert_memory_equal(w.d->assignments[i].sha256, sum_of(version), SHA256_BYTES);
        n_done += version == NEW;
        n_back += version == OLD;
        close_world();
    }
    assert_true(n_done > 100 && n_back > 50); /* both were tried */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_ends_with_the_new_version),
        cmocka_unit_test(test_rolling_changes_one_node_at_a_time),
        cmocka_unit_test(test_strong_keeps_the_old_version_for_a_flow),
        cmocka_unit_test(test_strong_does_not_wait_for_ever),
        cmocka_unit_test(test_clocks_of_controllers_differ),
        cmocka_unit_test(test_what_cannot_be_loaded_changes_nothing),
        cmocka_unit_test(test_a_late_failure_is_undone),
        cmocka_unit_test(test_a_worse_canary_goes_by_itself),
        cmocka_unit_test(test_a_canary_gets_enough_nodes),
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_pause_promote_undo),
        cmocka_unit_test(test_undo_at_any_time),
        cmocka_unit_test(test_without_room_for_both),
        cmocka_unit_test(test_a_node_lost_while_it_stages_serves_when_it_is_back),
        cmocka_unit_test(test_a_rollout_that_lost_all_its_nodes_ends),
        cmocka_unit_test(test_an_undo_that_lost_all_its_nodes_ends),
        cmocka_unit_test(test_one_at_a_time_per_model),
        cmocka_unit_test(test_what_a_start_says),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_many_rollouts),
        cmocka_unit_test(test_random_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
