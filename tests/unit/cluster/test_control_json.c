/* test_control_json.c - the desired state and events of a shoal as JSON, whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/control/control_json.h"
#include "cluster/control/desired.h"
#include "cluster/control/event_log.h"
#include "wire/json_out.h"

#define SUM_A "0102030000000000000000000000000000000000000000000000000000000000"
#define SUM_B "0405060000000000000000000000000000000000000000000000000000000000"

static const uint8_t sum_a[SHA256_BYTES] = {1, 2, 3}, sum_b[SHA256_BYTES] = {4, 5, 6};

static void test_times(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1700000000123, "2023-11-14T22:13:20.123Z"},
        {1700000000007, "2023-11-14T22:13:20.007Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {253402300800000, "?"},
        {UINT64_MAX, "?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[32];
        control_json_time(text, rows[i].ms);
        assert_string_equal(text, rows[i].text);
    }
}

static void test_desired(void **state)
{
    const char *pins[] = {"n1", "n2"}, *labels[] = {"gpu"};
    struct desired_step steps[] = {{1700000000000, DESIRED_PENDING, 0, "begun"},
                                   {1700000001000, DESIRED_RUNNING, 50, "50 of 1000"}};
    struct desired_model m = {.name = "reply",
                              .source = "file",
                              .kinds = 3,
                              .memory_bytes = 1001,
                              .weight_bytes = 1002,
                              .replicas_min = 1,
                              .replicas_max = 4,
                              .replicas_want = 2,
                              .standby = 5,
                              .priority = -7,
                              .pins = {pins, 2},
                              .not_labels = {labels, 1},
                              .apart = "big",
                              .max_per_zone = 6,
                              .per_node = 3,
                              .spread = true,
                              .want_tokens_per_s = 12.5,
                              .budget_ms = 300,
                              .idle_ms = 400};
    struct desired_assignment a = {.node = "n1",
                                   .model = "reply",
                                   .duty = DESIRED_SERVE,
                                   .epoch = 4,
                                   .until = 9,
                                   .since_ms = 1700000000123,
                                   .copies = 2};
    struct desired_rollout r = {
        .id = "r1",
        .model = "reply",
        .kind = DESIRED_CANARY,
        .source = "file2",
        .memory_bytes = 55,
        .share = 50,
        .state = DESIRED_RUNNING,
        .epoch = 8,
        .judge = {.requests = 20, .errors = 10, .p95 = 150, .labelled = true, .score_from = 901},
        .steps = steps,
        .n_steps = 2};
    struct desired *d;
    struct buf b;
    (void)state;
    memcpy(m.sha256, sum_a, sizeof(sum_a));
    memcpy(a.sha256, sum_a, sizeof(sum_a));
    memcpy(r.from, sum_a, sizeof(sum_a));
    memcpy(r.to, sum_b, sizeof(sum_b));
    assert_int_equal(desired_create(&d, NULL), 0);
    assert_int_equal(desired_put_model(d, &m), 0);
    assert_int_equal(desired_put_assignment(d, &a), 0);
    assert_int_equal(desired_put_rollout(d, &r), 0);
    assert_int_equal(desired_set_drained(d, "n9", true), 0);
    memset(d->id, 0xab, sizeof(d->id));
    d->revision = 11;
    d->version = 12;
    d->fence = 34;
    d->epoch = 56;
    d->policy.heartbeat_ms = 201;
    d->policy.silent_beats = 5;
    d->policy.placement.zone_weight = 0.25;
    d->policy.placement.cost_weight = 0.5;
    d->policy.placement.battery_weight = 0.75;
    d->policy.placement.pack_weight = 1.25;
    d->policy.placement.min_gain = 1.5;
    d->policy.placement.battery_min = 0.125;
    d->policy.placement.battery_margin = 0.0625;
    d->policy.placement.cooldown_ms = 777;
    d->policy.placement.max_moves = 3;
    buf_init(&b, 1 << 16);
    struct json_out j = json_out_make(&b);
    control_json_desired(&j, d);
    char id[2 * DESIRED_ID_BYTES + 1];
    for (size_t i = 0; i < DESIRED_ID_BYTES; i++)
        memcpy(id + 2 * i, "ab", 3);
    char want[4096];
    snprintf(
        want, sizeof(want),
        "{\"id\":\"%s\",\"revision\":11,\"version\":12,\"fence\":34,\"epoch\":56,"
        "\"models\":[{\"name\":\"reply\",\"sha256\":\"" SUM_A "\",\"source\":\"file\",\"kinds\":3,"
        "\"memory_bytes\":1001,\"weight_bytes\":1002,\"replicas_min\":1,\"replicas_max\":4,"
        "\"replicas_want\":2,\"standby\":5,\"priority\":-7,\"pins\":[\"n1\",\"n2\"],\"zones\":[],"
        "\"labels\":[],\"not_labels\":[\"gpu\"],\"apart\":\"big\",\"max_per_zone\":6,\"per_node\":"
        "3,"
        "\"spread\":true,\"want_tokens_per_s\":12.5,\"budget_ms\":300,\"idle_ms\":400}],"
        "\"assignments\":[{\"node\":\"n1\",\"model\":\"reply\",\"sha256\":\"" SUM_A
        "\",\"duty\":\"serve\",\"epoch\":4,\"until\":9,\"since\":\"2023-11-14T22:13:20.123Z\","
        "\"replicas\":2}],"
        "\"rollouts\":[{\"id\":\"r1\",\"model\":\"reply\",\"kind\":\"canary\",\"from\":\"" SUM_A
        "\",\"to\":\"" SUM_B "\",\"source\":\"file2\",\"memory_bytes\":55,\"share\":50,"
        "\"state\":\"running\",\"epoch\":8,\"judge\":{\"requests\":20,\"errors\":0.01,"
        "\"p95_percent\":150,\"labelled\":true,\"score_from\":0.9,\"score_to\":null},"
        "\"history\":[{\"time\":\"2023-11-14T22:13:20.000Z\",\"state\":\"pending\",\"share\":0,"
        "\"text\":\"begun\"},{\"time\":\"2023-11-14T22:13:21.000Z\",\"state\":\"running\","
        "\"share\":50,\"text\":\"50 of 1000\"}]}],\"drained\":[\"n9\"],"
        "\"policy\":{\"heartbeat_ms\":201,\"silent_beats\":5,\"zone_weight\":0.25,"
        "\"cost_weight\":0.5,\"battery_weight\":0.75,\"pack_weight\":1.25,\"min_gain\":1.5,"
        "\"battery_min\":0.125,\"battery_margin\":0.0625,\"cooldown_ms\":777,\"max_moves\":3}}",
        id);
    assert_string_equal(buf_str(&b), want);
    buf_fini(&b);
    desired_destroy(d);
}

static void test_events(void **state)
{
    struct event_log_entry e = {.sequence = 5,
                                .at_ms = 1700000000123,
                                .sender = "c1",
                                .node = "n1",
                                .model = "reply",
                                .has_sha256 = true,
                                .fence = 34,
                                .text = "loaded"};
    struct buf b;
    char want[512];
    (void)state;
    memcpy(e.sha256, sum_b, sizeof(sum_b));
    buf_init(&b, 1 << 16);
    struct json_out j = json_out_make(&b);
    control_json_event(&j, &e);
    snprintf(want, sizeof(want),
             "{\"sequence\":5,\"time\":\"2023-11-14T22:13:20.123Z\",\"kind\":\"%s\",\"sender\":"
             "\"c1\",\"node\":\"n1\",\"model\":\"reply\",\"sha256\":\"" SUM_B
             "\",\"fence\":34,\"text\":\"loaded\"}",
             event_log_kind_text(e.kind));
    assert_string_equal(buf_str(&b), want);
    e = (struct event_log_entry){.sender = "c1", .node = "", .model = "", .text = ""};
    buf_clear(&b);
    j = json_out_make(&b);
    control_json_event(&j, &e);
    snprintf(want, sizeof(want),
             "{\"sequence\":0,\"time\":\"1970-01-01T00:00:00.000Z\",\"kind\":\"%s\",\"sender\":"
             "\"c1\",\"text\":\"\"}",
             event_log_kind_text(e.kind));
    assert_string_equal(buf_str(&b), want);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_desired),
        cmocka_unit_test(test_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
