/* test_transcript.c - what was heard, as text, captions and JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "audio/language.h"
#include "audio/transcript.h"
#include "shoal/shoal_infer.h"
#include "wire/json_out.h"

static struct transcript heard;
static struct buf out;

static int setup(void **state)
{
    static const double speech[] = {1, 5, 7.5, 3723.0625};
    (void)state;
    transcript_init(&heard);
    buf_init(&out, 1 << 20);
    transcript_add(&heard, 0, 1.5, NULL, 0, " One. ", 6, 0.5f);
    transcript_add(&heard, 1.5, 3, NULL, 0, "", 0, 0);
    transcript_add(&heard, 2, 3730, speech, 4, "Two \"three\"", 11, 1.0f);
    transcript_add(&heard, 3725.0625, 4000, NULL, 0, "  ", 2, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    transcript_fini(&heard);
    buf_fini(&out);
    return 0;
}

static void test_forms(void **state)
{
    (void)state;
    transcript_put(&heard, &out, TRANSCRIPT_TEXT);
    assert_string_equal(buf_str(&out), "One. Two \"three\"\n");
    buf_clear(&out);
    transcript_put(&heard, &out, TRANSCRIPT_SRT);
    assert_string_equal(buf_str(&out), "1\n00:00:00,000 --> 00:00:01,500\nOne.\n\n"
                                       "2\n00:00:03,000 --> 01:02:05,063\nTwo \"three\"\n\n");
    buf_clear(&out);
    transcript_put(&heard, &out, TRANSCRIPT_VTT);
    assert_string_equal(buf_str(&out), "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nOne.\n\n"
                                       "00:00:03.000 --> 01:02:05.063\nTwo \"three\"\n\n");
}

static void test_json(void **state)
{
    struct json_out j = json_out_make(&out);
    (void)state;
    json_out_object(&j);
    transcript_json(&heard, &j);
    json_out_object_end(&j);
    assert_string_equal(buf_str(&out),
                        "{\"duration\":4000,\"text\":\"One. Two \\\"three\\\"\",\"segments\":["
                        "{\"id\":0,\"start\":0,\"end\":1.5,\"text\":\"One.\",\"avg_logprob\":"
                        "-0.6931471805599453},"
                        "{\"id\":1,\"start\":3,\"end\":3725.0625,\"text\":\"Two \\\"three\\\"\","
                        "\"avg_logprob\":0}]}");
    transcript_clear(&heard);
    assert_int_equal(transcript_n(&heard), 0);
}

/* The parts of a result have times of their own; those that do not fit its text are left out. */
static void test_parts(void **state)
{
    const double times[] = {0.5, 1, 1.5, 2, 2, 3};
    const struct shoal_span spans[] = {
        {.start = 0, .end = 4}, {.start = 4, .end = 9}, {.start = 9, .end = 99}};
    struct shoal_result r = {.text = "One. Two.",
                             .text_bytes = 9,
                             .label = "de",
                             .confidence = 0.5f,
                             .values = times,
                             .n_values = 6,
                             .spans = spans,
                             .n_spans = 3};
    (void)state;
    transcript_clear(&heard);
    transcript_add_result(&heard, 10, 20, &r);
    assert_string_equal(heard.language, "de");
    assert_int_equal(transcript_n(&heard), 2);
    r.n_spans = 0; /* not divided */
    transcript_add_result(&heard, 20, 30, &r);
    transcript_put(&heard, &out, TRANSCRIPT_SRT);
    assert_string_equal(buf_str(&out), "1\n00:00:10,500 --> 00:00:11,000\nOne.\n\n"
                                       "2\n00:00:11,500 --> 00:00:12,000\nTwo.\n\n"
                                       "3\n00:00:20,500 --> 00:00:23,000\nOne. Two.\n\n");
    assert_string_equal(language_name("de"), "german");
    assert_string_equal(language_name("xx"), "xx");
    assert_string_equal(language_name(""), "unknown");
}

/* Words follow the parts; those outside of every part are left out. */
static void test_words(void **state)
{
    const double times[] = {0.5, 2, 0.5, 1, 1.25, 2.0004, 2, 3};
    const struct shoal_span spans[] = {{.start = 0, .end = 9},
                                       {.start = 1, .end = 5, .label = "word"},
                                       {.start = 6, .end = 9, .label = "word"},
                                       {.start = 6, .end = 10, .label = "word"}};
    const struct shoal_result r = {.text = " One. Two",
                                   .text_bytes = 9,
                                   .confidence = 1,
                                   .values = times,
                                   .n_values = 8,
                                   .spans = spans,
                                   .n_spans = 4};
    struct json_out j = json_out_make(&out);
    (void)state;
    transcript_clear(&heard);
    transcript_add_result(&heard, 10, 20, &r);
    transcript_add_result(&heard, 20, 30, &r);
    json_out_object(&j);
    transcript_json(&heard, &j);
    json_out_object_end(&j);
    assert_string_equal(strstr(buf_str(&out), "\"words\""),
                        "\"words\":[{\"word\":\"One.\",\"start\":10.5,\"end\":11},"
                        "{\"word\":\"Two\",\"start\":11.25,\"end\":12},"
                        "{\"word\":\"One.\",\"start\":20.5,\"end\":21},"
                        "{\"word\":\"Two\",\"start\":21.25,\"end\":22}]}");
    buf_clear(&out);
    transcript_put(&heard, &out, TRANSCRIPT_VTT);
    assert_memory_equal(buf_str(&out), "WEBVTT\n\n00:00:10.500 --> 00:00:11.000\nOne.\n\n", 44);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json, setup, teardown),
        cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_words, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
