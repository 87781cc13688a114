/* test_desired.c - cluster/control/desired*.h: building, checking, encoding, and the snapshot file.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "cluster/control/desired_file.h"

static const uint8_t sum_a[SHA256_BYTES] = {1, 2, 3}, sum_b[SHA256_BYTES] = {4, 5, 6};

static int fill(struct desired *d)
{
    const char *pins[] = {"n1", "n2"}, *zones[] = {"home"}, *labels[] = {"gpu", "site=hall-3"};
    struct desired_model m = {.name = "reply",
                              .source = "https://models.example/reply.gguf",
                              .kinds = 1,
                              .memory_bytes = 123456789,
                              .replicas_min = 1,
                              .replicas_max = 3,
                              .standby = 1,
                              .pins = {pins, 2},
                              .zones = {zones, 1},
                              .labels = {labels, 2},
                              .not_labels = {labels, 1},
                              .apart = "big",
                              .max_per_zone = 2,
                              .per_node = 4,
                              .spread = true,
                              .priority = -7,
                              .replicas_want = 2,
                              .weight_bytes = 99,
                              .want_tokens_per_s = 12.5};
    struct desired_assignment a = {.node = "n1",
                                   .model = "reply",
                                   .duty = DESIRED_SERVE,
                                   .epoch = 4,
                                   .until = 9,
                                   .since_ms = 1700000000123,
                                   .copies = 3};
    struct desired_step steps[] = {{1700000000000, DESIRED_PENDING, 0, "begun by admin"},
                                   {1700000001000, DESIRED_RUNNING, 50, "50 of 1000"}};
    struct desired_rollout r = {.id = "r1",
                                .model = "reply",
                                .kind = DESIRED_CANARY,
                                .source = "file",
                                .memory_bytes = 5,
                                .share = 50,
                                .state = DESIRED_RUNNING,
                                .epoch = 5,
                                .old_epoch = 6,
                                .failed = true,
                                .judge = {50, 10, 150, 20, true, 901, 1, 12345, 67},
                                .steps = steps,
                                .n_steps = 2};
    int rc;
    memcpy(m.sha256, sum_a, sizeof(sum_a));
    memcpy(a.sha256, sum_a, sizeof(sum_a));
    memcpy(r.from, sum_a, sizeof(sum_a));
    memcpy(r.to, sum_b, sizeof(sum_b));
    d->version = 12;
    d->fence = 34;
    d->epoch = 56;
    if ((rc = desired_put_model(d, &m)) < 0)
        return rc;
    m = (struct desired_model){.name = "other", .replicas_max = 1};
    if ((rc = desired_put_model(d, &m)) < 0 || (rc = desired_put_assignment(d, &a)) < 0)
        return rc;
    a.node = "n2";
    if ((rc = desired_put_assignment(d, &a)) < 0 || (rc = desired_put_rollout(d, &r)) < 0)
        return rc;
    return desired_set_drained(d, "n9", true);
}

static struct desired *filled(void)
{
    struct desired *d;
    assert_int_equal(desired_create(&d, NULL), 0);
    assert_int_equal(fill(d), 0);
    return d;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct desired *d = filled(), *r = NULL;
    struct err e = {0};
    struct buf b;
    buf_init(&b, 1 << 20);
    if (desired_code_put(&b, d, &e) < 0 || desired_code_get(&r, b.data, b.len, &e) < 0)
        fail_msg("%s", e.msg);
    assert_memory_equal(r->id, d->id, DESIRED_ID_BYTES);
    assert_int_equal(r->version, 12);
    assert_int_equal(r->fence, 34);
    assert_int_equal(r->epoch, 56);
    assert_int_equal(r->n_models, 2);
    const struct desired_model *m = desired_find_model(r, "reply");
    assert_string_equal(m->source, "https://models.example/reply.gguf");
    assert_memory_equal(m->sha256, sum_a, SHA256_BYTES);
    assert_int_equal(m->memory_bytes, 123456789);
    assert_int_equal(m->pins.n, 2);
    assert_string_equal(m->pins.items[1], "n2");
    assert_string_equal(m->zones.items[0], "home");
    assert_string_equal(m->apart, "big");
    assert_string_equal(m->labels.items[1], "site=hall-3");
    assert_string_equal(m->not_labels.items[0], "gpu");
    assert_true(m->spread);
    assert_int_equal(m->priority, -7);
    assert_int_equal(m->max_per_zone, 2);
    assert_int_equal(m->per_node, 4);
    assert_int_equal(m->weight_bytes, 99);
    assert_int_equal(m->replicas_want, 2);
    assert_true(m->want_tokens_per_s == 12.5);
    const struct desired_assignment *a = desired_find_assignment(r, "n2", "reply", sum_a);
    assert_non_null(a);
    assert_int_equal(a->duty, DESIRED_SERVE);
    assert_int_equal(a->epoch, 4);
    assert_int_equal(a->until, 9);
    assert_int_equal(a->since_ms, 1700000000123);
    assert_int_equal(a->copies, 3);
    assert_null(desired_find_assignment(r, "n2", "reply", sum_b));
    const struct desired_rollout *o = desired_find_rollout(r, "r1");
    assert_int_equal(o->kind, DESIRED_CANARY);
    assert_memory_equal(o->to, sum_b, SHA256_BYTES);
    assert_int_equal(o->n_steps, 2);
    assert_string_equal(o->steps[1].text, "50 of 1000");
    assert_true(o->epoch == 5 && o->old_epoch == 6 && o->failed);
    assert_true(o->judge.requests == 50 && o->judge.errors == 10 && o->judge.p95 == 150);
    assert_true(o->judge.score == 20 && o->judge.labelled && o->judge.score_from == 901 &&
                o->judge.score_to == 1 && o->judge.base_requests == 12345 &&
                o->judge.base_errors == 67);
    assert_true(desired_is_drained(r, "n9"));
    assert_false(desired_is_drained(r, "n1"));
    assert_int_equal(r->policy.silent_beats, 8);
    assert_memory_equal(&r->policy.placement, &d->policy.placement, sizeof(d->policy.placement));
    buf_fini(&b);
    desired_destroy(r);
    desired_destroy(d);
}

static void test_changes(void **state)
{
    (void)state;
    struct desired *d = filled();
    struct desired_model m = {.name = "reply", .replicas_max = 9};
    assert_int_equal(desired_put_model(d, &m), 0); /* replaced, not added */
    assert_int_equal(d->n_models, 2);
    assert_int_equal(desired_find_model(d, "reply")->replicas_max, 9);
    assert_int_equal(desired_set_drained(d, "n9", true), 0);
    assert_int_equal(d->drained.n, 1);
    assert_int_equal(desired_set_drained(d, "n9", false), 0);
    assert_int_equal(d->drained.n, 0);
    struct desired_rollout *r = desired_find_rollout(d, "r1");
    for (uint32_t i = 0; i < DESIRED_MAX_STEPS + 3; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%u", i);
        struct desired_step s = {i, DESIRED_PAUSED, 100, text};
        assert_int_equal(desired_put_step(d, r, &s), 0);
    }
    assert_int_equal(r->n_steps, DESIRED_MAX_STEPS);
    assert_string_equal(r->steps[0].text, "3"); /* the oldest was dropped */
    assert_int_equal(r->state, DESIRED_PAUSED);
    assert_int_equal(r->share, 100);
    for (uint32_t i = 0; i < 100; i++) {
        char node[16];
        snprintf(node, sizeof(node), "x%u", i);
        struct desired_assignment a = {.node = node, .model = "reply", .duty = DESIRED_STAGE};
        assert_int_equal(desired_put_assignment(d, &a), 0);
    }
    assert_int_equal(d->n_assignments, 102);
    desired_remove_assignment(d, desired_find_assignment(d, "n1", "reply", sum_a));
    assert_int_equal(d->n_assignments, 101);
    assert_int_equal(desired_check(d, NULL), 0);
    desired_remove_model(d, "reply"); /* with its assignments and rollouts */
    assert_int_equal(d->n_models, 1);
    assert_int_equal(d->n_assignments, 0);
    assert_null(desired_find_rollout(d, "r1"));
    desired_destroy(d);
}

/* Each breaks one rule of a valid state. */
static void no_name(struct desired *d)
{
    d->models[0].name = "";
}
static void wildcard(struct desired *d)
{
    d->models[0].name = "a>b";
}
static void twice(struct desired *d)
{
    d->models[1].name = d->models[0].name;
}
static void replicas(struct desired *d)
{
    d->models[0].replicas_min = 4;
}
static void no_model(struct desired *d)
{
    d->assignments[0].model = "nope";
}
static void same_assignment(struct desired *d)
{
    d->assignments[1].node = d->assignments[0].node;
}
static void duty(struct desired *d)
{
    d->assignments[0].duty = (enum desired_duty)7;
}
static void share(struct desired *d)
{
    d->rollouts[0].share = 1001;
}
static void rollout_judge(struct desired *d)
{
    d->rollouts[0].judge.errors = 1001;
}
static void rollout_model(struct desired *d)
{
    d->rollouts[0].model = "nope";
}
static void beat(struct desired *d)
{
    d->policy.heartbeat_ms = 0;
}
static void weight(struct desired *d)
{
    d->policy.placement.cost_weight = NAN;
}
static void tokens(struct desired *d)
{
    d->models[0].want_tokens_per_s = -1;
}
static void pin(struct desired *d)
{
    d->models[0].pins.items[0] = "a b";
}

static void test_bad_states_are_not_written(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(struct desired *d);
        const char *says;
    } cases[] = {
        {no_name, "name that is not allowed"},
        {wildcard, "name that is not allowed"},
        {twice, "two models are named reply"},
        {replicas, "at least 4 replicas and at most 3"},
        {no_model, "is assigned nope"},
        {same_assignment, "assigned reply twice"},
        {duty, "unknown duty 7"},
        {share, "1001 thousandths"},
        {rollout_judge, "a judge threshold"},
        {rollout_model, "names the model nope"},
        {beat, "heartbeat every 0 ms"},
        {pin, "pins"},
        {weight, "a weight of"},
        {tokens, "-1 tokens per second"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct desired *d = filled();
        struct err e = {0};
        struct buf b;
        buf_init(&b, 1 << 20);
        cases[i].spoil(d);
        assert_int_equal(desired_code_put(&b, d, &e), SHOAL_EINVAL);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("case %zu: '%s' does not say '%s'", i, e.msg, cases[i].says);
        assert_int_equal(b.len, 0);
        buf_fini(&b);
        desired_destroy(d);
    }
}

/* The last value that each field may have, and the first that it may not. */
static void test_limits_of_fields(void **state)
{
    enum { MODEL, ROLLOUT, STEP, ASSIGNMENT, POLICY };
    static const struct {
        int of;
        size_t field;
        uint32_t fine, bad;
    } numbers[] = {
        {MODEL, offsetof(struct desired_model, replicas_min), 3, 4},
        {ROLLOUT, offsetof(struct desired_rollout, share), 1000, 1001},
        {ROLLOUT, offsetof(struct desired_rollout, kind), DESIRED_ROLLING, DESIRED_ROLLING - 1},
        {ROLLOUT, offsetof(struct desired_rollout, kind), DESIRED_EVENTUAL, DESIRED_EVENTUAL + 1},
        {ROLLOUT, offsetof(struct desired_rollout, state), DESIRED_PENDING, DESIRED_PENDING - 1},
        {ROLLOUT, offsetof(struct desired_rollout, state), DESIRED_FAILED, DESIRED_FAILED + 1},
        {ROLLOUT, offsetof(struct desired_rollout, judge.errors), 1000, 1001},
        {ROLLOUT, offsetof(struct desired_rollout, judge.score), 1000, 1001},
        {ROLLOUT, offsetof(struct desired_rollout, judge.score_from), 1001, 1002},
        {ROLLOUT, offsetof(struct desired_rollout, judge.score_to), 1001, 1002},
        {STEP, offsetof(struct desired_step, state), DESIRED_PENDING, DESIRED_PENDING - 1},
        {STEP, offsetof(struct desired_step, state), DESIRED_FAILED, DESIRED_FAILED + 1},
        {STEP, offsetof(struct desired_step, share), 1000, 1001},
        {ASSIGNMENT, offsetof(struct desired_assignment, duty), DESIRED_SERVE, DESIRED_SERVE - 1},
        {ASSIGNMENT, offsetof(struct desired_assignment, duty), DESIRED_LEAVE, DESIRED_LEAVE + 1},
        {POLICY, offsetof(struct desired_policy, heartbeat_ms), 20, 19},
        {POLICY, offsetof(struct desired_policy, heartbeat_ms), 60000, 60001},
        {POLICY, offsetof(struct desired_policy, silent_beats), 1, 0},
        {POLICY, offsetof(struct desired_policy, silent_beats), 1000, 1001},
    };
    static const struct {
        int of;
        size_t field;
        double fine, bad;
    } reals[] = {
        {MODEL, offsetof(struct desired_model, want_tokens_per_s), 0, -0.1},
        {MODEL, offsetof(struct desired_model, want_tokens_per_s), 9e14, 1e15},
        {MODEL, offsetof(struct desired_model, want_tokens_per_s), 1, NAN},
        {POLICY, offsetof(struct desired_policy, placement.zone_weight), 0, -0.1},
        {POLICY, offsetof(struct desired_policy, placement.cost_weight), 9e8, 1e9},
        {POLICY, offsetof(struct desired_policy, placement.battery_weight), 1, NAN},
        {POLICY, offsetof(struct desired_policy, placement.pack_weight), 1, INFINITY},
        {POLICY, offsetof(struct desired_policy, placement.min_gain), 0, -1},
        {POLICY, offsetof(struct desired_policy, placement.battery_min), 0, -1},
        {POLICY, offsetof(struct desired_policy, placement.battery_margin), 0, -1},
    };
    struct desired *d = filled();
    struct err e = {0};
    (void)state;
    char *const places[] = {[MODEL] = (char *)&d->models[0],
                            [ROLLOUT] = (char *)&d->rollouts[0],
                            [STEP] = (char *)&d->rollouts[0].steps[1],
                            [ASSIGNMENT] = (char *)&d->assignments[1],
                            [POLICY] = (char *)&d->policy};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char *at = places[numbers[i].of] + numbers[i].field;
        uint32_t was;
        memcpy(&was, at, sizeof(was));
        memcpy(at, &numbers[i].fine, sizeof(was));
        if (desired_check(d, &e) != 0)
            fail_msg("number %zu, %u: %s", i, numbers[i].fine, e.msg);
        memcpy(at, &numbers[i].bad, sizeof(was));
        if (desired_check(d, &e) != SHOAL_EINVAL)
            fail_msg("number %zu: %u is accepted", i, numbers[i].bad);
        memcpy(at, &was, sizeof(was));
    }
    for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
        char *at = places[reals[i].of] + reals[i].field;
        double was;
        memcpy(&was, at, sizeof(was));
        memcpy(at, &reals[i].fine, sizeof(was));
        if (desired_check(d, &e) != 0)
            fail_msg("real %zu, %g: %s", i, reals[i].fine, e.msg);
        memcpy(at, &reals[i].bad, sizeof(was));
        if (desired_check(d, &e) != SHOAL_EINVAL)
            fail_msg("real %zu: %g is accepted", i, reals[i].bad);
        memcpy(at, &was, sizeof(was));
    }
    char word[DESIRED_MAX_NAME + 2];
    memset(word, 'a', sizeof(word));
    word[DESIRED_MAX_NAME] = '\0';
    d->models[0].apart = word;
    assert_int_equal(desired_check(d, &e), 0);
    word[DESIRED_MAX_NAME] = 'a';
    word[DESIRED_MAX_NAME + 1] = '\0';
    assert_int_equal(desired_check(d, &e), SHOAL_EINVAL);
    d->models[0].apart = "";
    assert_int_equal(desired_check(d, &e), 0);
    d->drained.items[0] = "no*name";
    assert_int_equal(desired_check(d, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "a drained node"));
    desired_destroy(d);
}

static void test_strange_bytes_are_refused(void **state)
{
    (void)state;
    struct desired *d = filled(), *r;
    struct err e = {0};
    struct buf b;
    buf_init(&b, 1 << 20);
    assert_int_equal(desired_code_put(&b, d, NULL), 0);
    size_t n = b.len;
    for (size_t k = 0; k < n; k++) /* truncated anywhere */
        assert_int_equal(desired_code_get(&r, b.data, k, NULL), SHOAL_EFORMAT);
    buf_put(&b, "\xf8\x07\x01", 3); /* field 127 */
    assert_int_equal(desired_code_get(&r, b.data, b.len, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "newer program"));
    b.len = n;
    buf_put(&b, "\x18\x0c", 2); /* the version, a second time */
    assert_int_equal(desired_code_get(&r, b.data, b.len, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "not encoded as"));
    b.data[1] = 2; /* format 2 */
    assert_int_equal(desired_code_get(&r, b.data, n, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "format 2, this one knows 1"));
    assert_null(r);
    buf_fini(&b);
    desired_destroy(d);
}

static void test_snapshot(void **state)
{
    (void)state;
    char dir[] = "/tmp/shoal-desired-XXXXXX", path[64], all[4096];
    struct desired *d = filled(), *r;
    struct err e = {0};
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/state", dir);
    assert_int_equal(desired_file_read(&r, path, &e), SHOAL_ENOTFOUND);
    d->revision = 77;
    if (desired_file_write(path, d, &e) < 0)
        fail_msg("%s", e.msg);
    d->version = 13;
    assert_int_equal(desired_file_write(path, d, &e), 0); /* over the old one */
    assert_int_equal(desired_file_read(&r, path, &e), 0);
    assert_int_equal(r->revision, 77);
    assert_int_equal(r->version, 13);
    desired_destroy(r);
    FILE *f = fopen(path, "r");
    size_t n = fread(all, 1, sizeof(all), f);
    fclose(f);
    assert_in_range(n, 100, sizeof(all) - 1);
    for (size_t i = 0; i < n; i++) { /* any changed byte, any truncation */
        all[i] ^= 0x10;
        assert_int_equal(desired_file_parse(&r, all, n, NULL), SHOAL_EFORMAT);
        all[i] ^= 0x10;
        assert_int_equal(desired_file_parse(&r, all, i, NULL), SHOAL_EFORMAT);
    }
    assert_int_equal(desired_file_parse(&r, all, n, NULL), 0);
    desired_destroy(r);
    assert_int_equal(desired_file_write("/nowhere/at/all", d, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "/nowhere/at/all"));
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* no other file was left */
    desired_destroy(d);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct desired *d = filled(), *r = NULL;
    struct buf b;
    buf_init(&b, 1 << 20);
    assert_int_equal(desired_code_put(&b, d, NULL), 0);
    bool done = false;
    for (uint64_t n = 1; !done && n < 1000; n++) {
        mem_fail_at(n);
        int rc = desired_code_get(&r, b.data, b.len, NULL);
        mem_fail_at(0);
        /* protobuf-c reports out of memory and bad bytes alike */
        assert_true(rc == 0 || rc == SHOAL_ENOMEM || rc == SHOAL_EFORMAT);
        done = rc == 0;
        assert_true(done == (r != NULL));
    }
    assert_true(done);
    desired_destroy(r);
    for (uint64_t n = 1, rc = 1; rc && n < 1000; n++) {
        struct desired *x;
        mem_fail_at(n);
        rc = (uint64_t)desired_create(&x, NULL);
        if (rc == 0) {
            rc = (uint64_t)fill(x);
            desired_destroy(x);
        }
        mem_fail_at(0);
    }
    buf_fini(&b);
    desired_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_bad_states_are_not_written),
        cmocka_unit_test(test_limits_of_fields),
        cmocka_unit_test(test_strange_bytes_are_refused),
        cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
