/* test_speaker.c - the voice of the pack as an engine: parts are the whole, rate and volume, texts
 * with nothing to say, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "shoal/shoal.h"

#define MODEL SHOAL_TEST_DATA "/../../models/voice.gguf"
#define TEXT "The lamp is on, at 7:05."

static struct shoal_engine *engine;

static int setup(void **state)
{
    struct shoal_engine_opts o = {.size = sizeof(o), .n_threads = 2, .cache_dir = ""};
    struct shoal_error e;
    (void)state;
    if (shoal_engine_open(&engine, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shoal_engine_close(engine);
    return 0;
}

static struct shoal_infer_opts options(const char *text)
{
    return (struct shoal_infer_opts){.size = sizeof(struct shoal_infer_opts),
                                     .kind = SHOAL_KIND_SPEAK,
                                     .text = text,
                                     .text_bytes = strlen(text)};
}

static struct shoal_task *say(const struct shoal_infer_opts *o)
{
    struct shoal_task *t;
    struct shoal_error e;
    if (shoal_infer_submit(engine, o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(shoal_task_wait(t), 0);
    return t;
}

static void refused(const struct shoal_infer_opts *o, int code, const char *why)
{
    struct shoal_task *t;
    struct shoal_error e = {0};
    assert_int_equal(shoal_infer_submit(engine, o, &t, &e), code);
    assert_null(t);
    if (!strstr(e.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", e.msg, why);
}

static void test_parts_are_the_whole(void **state)
{
    struct shoal_infer_opts o = options(TEXT);
    struct shoal_task *whole = say(&o);
    const struct shoal_result *w = shoal_task_result(whole);
    uint32_t at = 0;
    (void)state;
    assert_int_equal(w->sample_rate, 22050);
    assert_true(w->n_samples > 22050 && w->n_samples < 22050 * 6);
    for (o.part = 1; o.part <= SHOAL_SPEAK_PARTS; o.part++) {
        struct shoal_task *t = say(&o);
        const struct shoal_result *r = shoal_task_result(t);
        assert_true(at + r->n_samples <= w->n_samples);
        assert_memory_equal(r->samples, w->samples + at, r->n_samples * sizeof(int16_t));
        assert_true(o.part > 1 || r->n_samples < 22050 / 2); /* it is soon there */
        at += r->n_samples;
        shoal_task_free(t);
    }
    assert_int_equal(at, w->n_samples);
    shoal_task_free(whole);
}

static int peak(const struct shoal_result *r)
{
    int most = 0;
    for (uint32_t i = 0; i < r->n_samples; i++)
        most = abs(r->samples[i]) > most ? abs(r->samples[i]) : most;
    return most;
}

static void test_speed_volume_seed(void **state)
{
    struct shoal_infer_opts o = options(TEXT);
    struct shoal_task *usual = say(&o);
    const struct shoal_result *u = shoal_task_result(usual);
    (void)state;
    o.speed = 2;
    struct shoal_task *t = say(&o);
    assert_true(shoal_task_result(t)->n_samples < u->n_samples * 3 / 4);
    shoal_task_free(t);
    o.speed = 0;
    o.volume = 0.5f;
    t = say(&o);
    assert_int_equal(shoal_task_result(t)->n_samples, u->n_samples);
    assert_true(abs(peak(shoal_task_result(t)) - peak(u) / 2) <= 1);
    shoal_task_free(t);
    o.volume = 4; /* clips, does not wrap around */
    t = say(&o);
    for (uint32_t i = 0; i < u->n_samples; i++)
        if ((shoal_task_result(t)->samples[i] < 0) != (u->samples[i] < 0) && u->samples[i])
            fail_msg("sample %u changes its sign", i);
    shoal_task_free(t);
    o.volume = 0;
    o.seed = 1;
    t = say(&o);
    assert_true(shoal_task_result(t)->n_samples != u->n_samples ||
                memcmp(shoal_task_result(t)->samples, u->samples, u->n_samples * 2) != 0);
    shoal_task_free(t);
    shoal_task_free(usual);
}

static void test_nothing_to_say(void **state)
{
    static const char *const texts[] = {"",    "   ",     "\x01\x02", "\xf0\x9f\x98\x80",
                                        "...", "\xff\xfe"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct shoal_infer_opts o = options(texts[i]);
        struct shoal_task *t = say(&o);
        assert_int_equal(shoal_task_result(t)->n_samples, 0);
        shoal_task_free(t);
    }
}

static void test_refusals(void **state)
{
    struct shoal_infer_opts o = options(TEXT);
    char *many = malloc(1 << 20);
    (void)state;
    o.speed = 5;
    refused(&o, SHOAL_EINVAL, "speed");
    o.speed = 0.1f;
    refused(&o, SHOAL_EINVAL, "speed");
    o.speed = NAN;
    refused(&o, SHOAL_EINVAL, "speed");
    o.speed = -INFINITY;
    refused(&o, SHOAL_EINVAL, "speed");
    o.speed = 1;
    o.volume = NAN;
    refused(&o, SHOAL_EINVAL, "volume");
    o.volume = 5;
    refused(&o, SHOAL_EINVAL, "volume");
    o.volume = 1;
    o.part = SHOAL_SPEAK_PARTS + 1;
    refused(&o, SHOAL_EINVAL, "parts");
    o.part = 0;
    o.labels = "alloy";
    refused(&o, SHOAL_EINVAL, "joe");
    o.labels = "joe";
    o.kind = SHOAL_KIND_TRANSCRIBE;
    refused(&o, SHOAL_EUNSUPPORTED, "speak");
    memset(many, 'a', 1 << 20);
    o = options(TEXT);
    o.text = many;
    o.text_bytes = 1 << 20;
    refused(&o, SHOAL_ELIMIT, "cut it");
    memset(many, '9', 5000);
    o.text_bytes = 5000;
    refused(&o, SHOAL_ELIMIT, "cut it");
    free(many);
}

static void test_info(void **state)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    (void)state;
    shoal_engine_info(engine, &info);
    assert_int_equal(info.kinds, SHOAL_KIND_SPEAK);
    assert_string_equal(info.arch, "vits");
    assert_string_equal(shoal_label(engine, SHOAL_KIND_SPEAK, NULL, 0), "joe");
    assert_null(shoal_label(engine, SHOAL_KIND_SPEAK, NULL, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_the_whole),
        cmocka_unit_test(test_speed_volume_seed),
        cmocka_unit_test(test_nothing_to_say),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_info),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
