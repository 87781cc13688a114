/* test_transcriber.c - the recognizer of the pack as an engine: real speech comes out right and
 * with the same bits on every kernel set, silence is empty, repetitions are cut, and what cannot be
 * heard is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audio/audio_read.h"
#include "base/err.h"
#include "engine/native/transcriber.h"
#include "kernels/kern.h"
#include "shoal/shoal.h"

#define MODEL SHOAL_TEST_DATA "/../../models/hear.gguf"
#define JFK                                                                                        \
    "And so, my fellow Americans, ask not what your country can do for you, ask what you can do "  \
    "for your country."
#define AMIABLE "He might even have been made amiable himself."
#define MOST (31u * 16000)

static struct shoal_engine *engine;
static int16_t sound[MOST];

static struct shoal_engine *open_with(const char *kernels, uint32_t n_threads)
{
    struct shoal_engine_opts o = {
        .size = sizeof(o), .kernels = kernels, .n_threads = n_threads, .cache_dir = ""};
    struct shoal_engine *en;
    struct shoal_error e;
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static int setup(void **state)
{
    (void)state;
    engine = open_with(NULL, 2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shoal_engine_close(engine);
    return 0;
}

static uint32_t load(const char *name)
{
    char path[512];
    struct audio *a;
    struct err e = {0};
    snprintf(path, sizeof(path), SHOAL_TEST_DATA "/audio/%s", name);
    if (audio_open_file(&a, path, &e) < 0)
        fail_msg("%s", e.msg);
    const int64_t n = audio_read(a, sound, MOST, &e);
    audio_close(a);
    assert_true(n > 0);
    return (uint32_t)n;
}

static struct shoal_task *submit_draft(struct shoal_engine *en, uint32_t n, const char *draft,
                                       const char *phrases)
{
    struct shoal_infer_opts o = {.size = sizeof(o),
                                 .kind = SHOAL_KIND_TRANSCRIBE,
                                 .samples = sound,
                                 .n_samples = n,
                                 .document = draft,
                                 .document_bytes = draft ? strlen(draft) : 0,
                                 .prompt = phrases};
    struct shoal_task *t;
    struct shoal_error e;
    if (shoal_infer_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

static struct shoal_task *submit(struct shoal_engine *en, uint32_t n)
{
    return submit_draft(en, n, NULL, NULL);
}

/* The confidence, for bits to compare. */
static float expect(struct shoal_task *t, const char *want)
{
    const int rc = shoal_task_wait(t);
    const struct shoal_result *r = shoal_task_result(t);
    const float confidence = r->confidence;
    if (rc < 0)
        fail_msg("%s", r->message);
    assert_string_equal(r->text, want);
    assert_int_equal(r->text_bytes, strlen(want));
    shoal_task_free(t);
    return confidence;
}

static void test_speech(void **state)
{
    (void)state;
    const float sure = expect(submit(engine, load("jfk.flac")), JFK);
    assert_true(sure > 0.8f && sure < 1.0f);
    expect(submit(engine, load("amiable.wav")), AMIABLE);
    expect(submit(engine, load("amiable.mp3")), AMIABLE);
    expect(submit(engine, load("amiable.opus")), AMIABLE);
}

/* Alone, in a batch, on every kernel set, with one or three threads: the same bits. */
static void test_same_bits(void **state)
{
    const struct kern_ops *sets[16];
    const size_t n_sets = kern_usable(sets, 16);
    struct shoal_task *batch[6];
    (void)state;
    const uint32_t n = load("amiable.wav");
    const float want = expect(submit(engine, n), AMIABLE);
    for (int i = 0; i < 6; i++)
        batch[i] = submit(engine, i % 2 ? n : n - 16000);
    for (int i = 0; i < 6; i++)
        if (i % 2) {
            assert_true(expect(batch[i], AMIABLE) == want);
        } else {
            assert_int_equal(shoal_task_wait(batch[i]), 0);
            shoal_task_free(batch[i]);
        }
    struct shoal_task *first = submit(engine, 12000); /* less for the slow sets */
    assert_int_equal(shoal_task_wait(first), 0);
    assert_int_equal(shoal_task_result(first)->n_tokens, 50); /* with half a second of silence */
    for (size_t i = 0; i < n_sets; i++) {
        struct shoal_engine *en = open_with(sets[i]->name, i % 2 ? 1 : 3);
        const struct shoal_result *r = shoal_task_result(first);
        assert_true(r->text_bytes > 0);
        assert_true(expect(submit(en, 12000), r->text) == r->confidence);
        shoal_engine_close(en);
    }
    shoal_task_free(first);
    first = submit(engine, 17000); /* long enough to be heard as it is */
    assert_int_equal(shoal_task_wait(first), 0);
    assert_int_equal(shoal_task_result(first)->n_tokens, 42);
    shoal_task_free(first);
}

/* How the text may begin changes nothing but the time: right, wrong from some word on, too long,
 * empty, of bytes that nobody says; alone and together, with one or three threads; with phrases. */
static void test_drafts(void **state)
{
    static const char *const drafts[] = {
        AMIABLE,
        "He might even have",
        "He might even have been made amiable himself, and more of it.",
        "He must",
        "Nothing of that.",
        "He might even have been made enable himself.",
        "",
        "\xff\xfe\x01"};
    enum { N = sizeof(drafts) / sizeof(drafts[0]) };
    static const char phrases[] = "four of clubs, amiable goat, even steven";
    struct shoal_task *batch[N];
    (void)state;
    const uint32_t n = load("amiable.wav");
    const float want = expect(submit(engine, n), AMIABLE);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        struct shoal_engine *en = open_with(NULL, threads);
        for (int i = 0; i < N; i++) {
            assert_true(expect(submit_draft(en, n, drafts[i], NULL), AMIABLE) == want);
            assert_true(expect(submit_draft(en, n, drafts[i], phrases), AMIABLE) ==
                        expect(submit_draft(en, n, NULL, phrases), AMIABLE));
        }
        for (int i = 0; i < N; i++)
            batch[i] = submit_draft(en, n, drafts[i], NULL);
        for (int i = 0; i < N; i++)
            assert_true(expect(batch[i], AMIABLE) == want);
        shoal_engine_close(en);
    }
}

static void test_silence(void **state)
{
    (void)state;
    memset(sound, 0, sizeof(sound));
    sound[100] = 8;
    assert_true(expect(submit(engine, 16000), "") == 0);
    assert_true(expect(submit(engine, 29 * 16000), "") == 0);
    load("jfk.flac");
    expect(submit(engine, 1), ""); /* shorter than a frame */
    expect(submit(engine, 700), "");
}

/* What is no speech has no text, and long pauses around speech change nothing. */
static void test_no_speech(void **state)
{
    uint32_t seed = 1;
    (void)state;
    for (uint32_t i = 0; i < 3 * 16000; i++) /* noise */
        sound[i] = (int16_t)((int32_t)((seed = seed * 1664525u + 1013904223u) >> 20) - 2048);
    assert_true(expect(submit(engine, 3 * 16000), "") == 0);
    const uint32_t n = load("amiable.wav"), before = 3 * 16000;
    memmove(sound + before, sound, n * sizeof(*sound));
    for (uint32_t i = 0; i < before + n + 2 * 16000; i++)
        if (i < before || i >= before + n)
            sound[i] = (int16_t)((seed = seed * 1664525u + 1013904223u) >> 28);
    struct shoal_task *t = submit(engine, before + n + 2 * 16000);
    assert_int_equal(shoal_task_wait(t), 0);
    const struct shoal_result *r = shoal_task_result(t);
    assert_true(r->n_values >= 2);
    assert_true(r->values[0] > 2.9 && r->values[0] < 3.5);
    assert_true(r->values[r->n_values - 1] > 5.5 && r->values[r->n_values - 1] < 6.6);
    assert_true(r->n_tokens < 41 * 5); /* frames: not the long pauses */
    expect(t, AMIABLE);
}

/* A likely phrase is written right; others change nothing, also where their words begin alike. */
static void test_phrases(void **state)
{
    const uint32_t n = load("cards.flac");
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_TRANSCRIBE, .samples = sound, .n_samples = n};
    struct shoal_task *t;
    (void)state;
    const float plain =
        expect(submit(engine, n), "Eight of spades, four of cloves, seven of hearts.");
    o.prompt = "Four of Clubs";
    assert_int_equal(shoal_infer_submit(engine, &o, &t, NULL), 0);
    const float helped = expect(t, "Eight of spades, four of clubs, seven of hearts.");
    assert_true(helped < plain); /* the model's own opinion */
    o.prompt = "eighty lamps, spadework\nclovis, seventh heater";
    assert_int_equal(shoal_infer_submit(engine, &o, &t, NULL), 0);
    assert_true(expect(t, "Eight of spades, four of cloves, seven of hearts.") == plain);
}

static void test_refused(void **state)
{
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_TRANSCRIBE, .samples = sound, .n_samples = MOST};
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct shoal_task *t;
    struct shoal_error e;
    (void)state;
    assert_int_equal(shoal_infer_submit(engine, &o, &t, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "the sound has 31.0 seconds"));
    o.n_samples = 0;
    assert_int_equal(shoal_infer_submit(engine, &o, &t, &e), SHOAL_EINVAL);
    o.n_samples = 100;
    o.samples = NULL;
    assert_int_equal(shoal_infer_submit(engine, &o, &t, &e), SHOAL_EINVAL);
    o = (struct shoal_infer_opts){
        .size = sizeof(o), .kind = SHOAL_KIND_CLASSIFY, .text = "x", .text_bytes = 1};
    assert_int_equal(shoal_infer_submit(engine, &o, &t, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "it can: transcribe"));
    shoal_engine_info(engine, &info);
    assert_string_equal(info.arch, "moonshine");
    assert_int_equal(info.kinds, SHOAL_KIND_TRANSCRIBE);
}

static uint32_t kept(const int32_t *tokens, uint32_t n)
{
    return transcriber_unrepeated(tokens, n);
}

static void test_repetition(void **state)
{
    int32_t t[64];
    (void)state;
    for (int i = 0; i < 64; i++)
        t[i] = i;
    assert_int_equal(kept(t, 64), 64);
    assert_int_equal(kept(t, 0), 0);
    for (int i = 10; i < 17; i++)
        t[i] = 7;
    assert_int_equal(kept(t, 17), 17); /* seven times is said */
    t[17] = 7;
    assert_int_equal(kept(t, 18), 11); /* eight times is not */
    for (int i = 20; i < 40; i++)
        t[i] = 100 + i % 5;
    assert_int_equal(kept(t, 39), 39);
    assert_int_equal(kept(t, 40), 25); /* four times the same five tokens */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speech),    cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_drafts),    cmocka_unit_test(test_silence),
        cmocka_unit_test(test_no_speech), cmocka_unit_test(test_phrases),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_repetition),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
