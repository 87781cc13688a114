/* test_mqtt_topic.c - topics, filters, duplicates, and messages as bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mqtt/mqtt_code.h"
#include "mqtt/mqtt_seen.h"
#include "mqtt/mqtt_topic.h"

static void test_names_and_filters(void **state)
{
    static const struct {
        const char *text;
        bool name, filter;
    } cases[] = {
        {"a", true, true},
        {"a/b", true, true},
        {"/", true, true},
        {"", false, false},
        {"a/+/b", false, true},
        {"+", false, true},
        {"#", false, true},
        {"a/#", false, true},
        {"a/#/b", false, false},
        {"a+", false, false},
        {"a/b#", false, false},
        {"a\nb", false, false},
        {"\xff", false, false},
        {"$share/g/a/#", false, true},
        {"$share/g", true, false},
        {"$share//a", true, false},
        {"$share/+/a", false, false},
        {"gr\xc3\xbc\xc3\x9f", true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (mqtt_topic_is_name(cases[i].text) != cases[i].name)
            fail_msg("name: %s", cases[i].text);
        if (mqtt_topic_is_filter(cases[i].text) != cases[i].filter)
            fail_msg("filter: %s", cases[i].text);
    }
}

static void test_filters_match_as_the_standard_says(void **state)
{
    static const struct {
        const char *filter, *topic;
        bool matches;
    } cases[] = {
        {"a/b", "a/b", true},       {"a/b", "a/bc", false}, {"a/b", "a", false},
        {"a", "a/b", false},        {"+", "a", true},       {"+", "/a", false},
        {"/+", "/a", true},         {"+/+", "/a", true},    {"a/+/c", "a/b/c", true},
        {"a/+/c", "a/b/d", false},  {"a/+", "a/", true},    {"a/+", "a", false},
        {"#", "a/b/c", true},       {"a/#", "a", true},     {"a/#", "a/b/c", true},
        {"a/#", "ab", false},       {"#", "$SYS/x", false}, {"+/x", "$SYS/x", false},
        {"$SYS/#", "$SYS/x", true}, {"a/b/#", "a/b", true}, {"a/+/#", "a/b", true},
        {"a/+/#", "a", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (mqtt_topic_matches(cases[i].filter, cases[i].topic, NULL, NULL) != cases[i].matches)
            fail_msg("%s over %s", cases[i].filter, cases[i].topic);
}

static void test_wildcards_fill_a_pattern(void **state)
{
    struct str wild[MQTT_TOPIC_MAX_LEVELS];
    size_t n;
    char out[64], small[8];
    (void)state;
    assert_true(mqtt_topic_matches("plant/+/motor/+/#", "plant/3/motor/m7/x/y", wild, &n));
    assert_int_equal(n, 3);
    assert_true(mqtt_topic_fill(out, sizeof(out), "hall{1}.{2}:{3}{x}", wild, n));
    assert_string_equal(out, "hall3.m7:x/y{x}");
    assert_false(mqtt_topic_fill(out, sizeof(out), "{4}", wild, n));
    assert_false(mqtt_topic_fill(small, sizeof(small), "hall{1}.{2}", wild, n));
    assert_true(mqtt_topic_fill(small, sizeof(small), "hal{1}.{2}", wild, n));
    assert_string_equal(mqtt_topic_unshared("$share/g/a/b"), "a/b");
    assert_string_equal(mqtt_topic_unshared("a/b"), "a/b");
}

static void test_only_repetitions_after_a_reconnection_are_dropped(void **state)
{
    static struct mqtt_seen s;
    (void)state;
    mqtt_seen_connected(&s, 0);
    assert_false(mqtt_seen_add(&s, 42, false, 1));
    assert_false(mqtt_seen_add(&s, 42, false, 2)); /* repeated by the sender */
    mqtt_seen_connected(&s, 10);
    assert_true(mqtt_seen_add(&s, 42, false, 11)); /* redelivered by the broker */
    assert_true(mqtt_seen_add(&s, 42, false, 12));
    assert_false(mqtt_seen_add(&s, 43, false, 13));
    assert_false(mqtt_seen_add(&s, 43, false, 14));
    assert_false(mqtt_seen_add(&s, 42, false, 10 + MQTT_SEEN_NS)); /* too late to be a duplicate */
    assert_false(mqtt_seen_add(&s, 100, true, 15));
    assert_true(mqtt_seen_add(&s, 100, true, 16)); /* an id set by the sender */
    for (uint64_t i = 1; i <= 8 * MQTT_SEEN_SLOTS; i++)
        (void)mqtt_seen_add(&s, 1000 + i * 2654435761u, true, 17);
    assert_false(mqtt_seen_add(&s, 100, true, 18)); /* only the newest are remembered */
}

static void test_messages_survive_as_bytes(void **state)
{
    const struct mqtt_property props[] = {{"a", "1"}, {"empty", ""}};
    const struct mqtt_message m = {.topic = "t/x",
                                   .payload = "pay\0load",
                                   .n = 8,
                                   .qos = 1,
                                   .retain = true,
                                   .durable = true,
                                   .content_type = "application/json",
                                   .correlation = "\x00\x01",
                                   .n_correlation = 2,
                                   .expiry_s = 77,
                                   .properties = props,
                                   .n_properties = 2};
    struct mqtt_property room[MQTT_MAX_PROPERTIES];
    struct mqtt_message back;
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    mqtt_code_put(&b, &m);
    assert_int_equal(b.rc, 0);
    assert_int_equal(mqtt_code_get(&back, room, b.data, b.len), 0);
    assert_string_equal(back.topic, "t/x");
    assert_int_equal(back.n, 8);
    assert_memory_equal(back.payload, "pay\0load", 8);
    assert_int_equal(back.qos, 1);
    assert_true(back.retain);
    assert_null(back.response_topic);
    assert_string_equal(back.content_type, "application/json");
    assert_int_equal(back.n_correlation, 2);
    assert_int_equal(back.expiry_s, 77);
    assert_string_equal(mqtt_message_get(&back, "a"), "1");
    assert_string_equal(mqtt_message_get(&back, "empty"), "");
    assert_null(mqtt_message_get(&back, "b"));
    for (size_t n = 0; n < b.len; n++)
        assert_int_equal(mqtt_code_get(&back, room, b.data, n), SHOAL_EFORMAT);
    buf_putc(&b, 'x');
    assert_int_equal(mqtt_code_get(&back, room, b.data, b.len), SHOAL_EFORMAT);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_filters),
        cmocka_unit_test(test_filters_match_as_the_standard_says),
        cmocka_unit_test(test_wildcards_fill_a_pattern),
        cmocka_unit_test(test_only_repetitions_after_a_reconnection_are_dropped),
        cmocka_unit_test(test_messages_survive_as_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
