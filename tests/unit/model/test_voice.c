/* test_voice.c - the voice of the pack against ONNX Runtime's results of the file that it was made
 * of (tools/make_voice_refs.py), block by block; the same bits on every kernel set, with any number
 * of threads and in any parts; what cannot be said is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "format/model_open.h"
#include "kernels/quants/quant_half.h"
#include "model/voice/voice.h"
#include "model/voice/voice_math.h"

#define MODEL SHOAL_TEST_DATA "/../../models/voice.gguf"
#define REFS SHOAL_TEST_DATA "/voice/refs.bin"

enum { DIM = 192, HOP = 256, MAX_IDS = 64, SEED = 7 };

struct text { /* of the reference */
    uint32_t n, n_frames;
    float noise, duration_noise;
    uint16_t ids[MAX_IDS];
    float *stats, *log_durations, *frames, *samples;
};

static struct model_file *file;
static struct text texts[2];

static void must_read(void *to, size_t n, FILE *f)
{
    assert_int_equal(fread(to, 1, n, f), n);
}

static float *halves(size_t n, FILE *f)
{
    float *x = malloc(n * sizeof(*x));
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        must_read(&h, sizeof(h), f);
        x[i] = quant_f16_to_f32(h);
    }
    return x;
}

static int setup(void **state)
{
    struct err e = {0};
    FILE *f = fopen(REFS, "rb");
    uint32_t n_texts;
    (void)state;
    assert_non_null(f);
    must_read(&n_texts, sizeof(n_texts), f);
    assert_int_equal(n_texts, 2);
    for (uint32_t i = 0; i < n_texts; i++) {
        struct text *t = &texts[i];
        must_read(&t->n, 4, f);
        must_read(&t->n_frames, 4, f);
        must_read(&t->noise, 4, f);
        must_read(&t->duration_noise, 4, f);
        assert_true(t->n <= MAX_IDS);
        must_read(t->ids, t->n * sizeof(*t->ids), f);
        t->stats = halves((size_t)t->n * 2 * DIM, f);
        t->log_durations = halves(t->n, f);
        t->frames = halves((size_t)t->n_frames * DIM, f);
        t->samples = halves((size_t)t->n_frames * HOP, f);
    }
    fclose(f);
    const char *path = getenv("SHOAL_TEST_VOICE"); /* another encoding of the same voice */
    if (model_open(&file, path ? path : MODEL, &e) < 0)
        fail_msg("%s", e.msg);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        free(texts[i].stats);
        free(texts[i].log_durations);
        free(texts[i].frames);
        free(texts[i].samples);
    }
    model_file_close(file);
    return 0;
}

static struct voice *open_with(const char *kernels, uint32_t n_threads)
{
    struct voice_opts o = {.n_threads = n_threads, .cache_dir = NULL};
    struct voice *v;
    struct err e = {0};
    if (kernels)
        o.kernels = kern_select(kernels, &e);
    if (voice_create(&v, file, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return v;
}

static struct voice_say say_of(const struct text *t)
{
    return (struct voice_say){
        .length = 1, .noise = t->noise, .duration_noise = t->duration_noise, .seed = SEED};
}

static uint32_t read_text(struct voice *v, const struct text *t)
{
    const struct voice_say say = say_of(t);
    struct err e = {0};
    uint32_t n_frames;
    if (voice_read(v, t->ids, t->n, &say, &n_frames, &e) < 0)
        fail_msg("%s", e.msg);
    return n_frames;
}

/* Error of `got` as a part of the signal: square root of the ratio of powers. */
static double error_of(const float *got, const float *want, size_t n)
{
    double wrong = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)want[i];
        wrong += d * d;
        power += (double)want[i] * (double)want[i];
    }
    return sqrt(wrong / power);
}

static void near_the_reference(const char *what, const float *got, const float *want, size_t n,
                               double most)
{
    const double is = error_of(got, want, n);
    if (getenv("SHOAL_TEST_VOICE"))
        printf("%s: %.5f\n", what, is);
    if (!(is <= most))
        fail_msg("%s: error %.5f, at most %.5f", what, is, most);
}

static void test_blocks(void **state)
{
    struct voice *v = open_with(NULL, 2);
    float *samples = malloc(100u * HOP * sizeof(*samples));
    struct err e = {0};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        const struct text *t = &texts[i];
        const uint32_t n_frames = read_text(v, t);
        const struct voice_trace got = voice_trace(v);
        near_the_reference("text encoder", got.stats, t->stats, (size_t)t->n * 2 * DIM, 0.02);
        near_the_reference("durations", got.log_durations, t->log_durations, t->n, 0.02);
        assert_int_equal(n_frames, t->n_frames);
        near_the_reference("frames", got.frames, t->frames, (size_t)n_frames * DIM, 0.06);
        /* of the reference's frames: the decoder makes other phases of frames that differ a little
         */
        assert_int_equal(voice_set_frames(v, t->frames, n_frames, &e), 0);
        voice_sound(v, 0, n_frames, samples);
        near_the_reference("samples", samples, t->samples, (size_t)n_frames * HOP, 0.005);
    }
    free(samples);
    voice_destroy(v);
}

/* Samples of the second text, from `v`, in parts of `part` frames. */
static float *sound_of(struct voice *v, uint32_t part, uint32_t *n_frames)
{
    *n_frames = read_text(v, &texts[1]);
    float *x = malloc((size_t)*n_frames * HOP * sizeof(*x));
    for (uint32_t at = 0; at < *n_frames; at += part)
        voice_sound(v, at, at + part < *n_frames ? at + part : *n_frames, x + (size_t)at * HOP);
    return x;
}

static void test_parts_are_the_whole(void **state)
{
    static const uint32_t parts[] = {1, 3, 8, 29};
    struct voice *v = open_with(NULL, 2);
    uint32_t n, n_part;
    float *whole = sound_of(v, 1000, &n);
    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        float *x = sound_of(v, parts[i], &n_part);
        assert_int_equal(n_part, n);
        assert_memory_equal(x, whole, (size_t)n * HOP * sizeof(*x));
        free(x);
    }
    free(whole);
    voice_destroy(v);
}

static void test_the_same_bits_everywhere(void **state)
{
    const struct kern_ops *sets[16];
    const size_t n_sets = kern_usable(sets, 16);
    struct voice *v = open_with("scalar", 1);
    uint32_t n, n_other;
    float *want = sound_of(v, 1000, &n);
    (void)state;
    voice_destroy(v);
    for (size_t i = 0; i < n_sets; i++) {
        v = open_with(sets[i]->name, 1 + (uint32_t)i % 3);
        float *x = sound_of(v, 1000, &n_other);
        assert_int_equal(n_other, n);
        if (memcmp(x, want, (size_t)n * HOP * sizeof(*x)) != 0)
            fail_msg("%s differs from scalar", sets[i]->name);
        free(x);
        voice_destroy(v);
    }
    free(want);
}

static void test_length_and_seed(void **state)
{
    struct voice *v = open_with(NULL, 2);
    const struct text *t = &texts[1];
    struct voice_say say = say_of(t);
    struct err e = {0};
    uint32_t slow, fast;
    (void)state;
    say.length = 2;
    assert_int_equal(voice_read(v, t->ids, t->n, &say, &slow, &e), 0);
    say.length = 0.5f;
    assert_int_equal(voice_read(v, t->ids, t->n, &say, &fast, &e), 0);
    assert_true(slow > t->n_frames + t->n_frames / 2 && fast < t->n_frames - t->n_frames / 5);
    say.length = 1;
    say.seed++;
    assert_int_equal(voice_read(v, t->ids, t->n, &say, &slow, &e), 0);
    assert_true(slow != t->n_frames ||
                memcmp(voice_trace(v).frames, t->frames, DIM * sizeof(float)) != 0);
    voice_destroy(v);
}

static void test_refusals(void **state)
{
    static uint16_t many[VOICE_MAX_IDS + 1];
    struct voice *v = open_with(NULL, 1);
    struct voice_say say = say_of(&texts[0]);
    struct err e = {0};
    uint32_t n;
    (void)state;
    assert_int_equal(voice_read(v, many, 0, &say, &n, &e), SHOAL_ELIMIT);
    assert_int_equal(voice_read(v, many, VOICE_MAX_IDS + 1, &say, &n, &e), SHOAL_ELIMIT);
    many[3] = (uint16_t)voice_config(v)->n_symbols;
    assert_int_equal(voice_read(v, many, 5, &say, &n, &e), SHOAL_EINVAL);
    many[3] = 20;
    say.length = 1000;
    for (uint32_t i = 0; i < VOICE_MAX_IDS; i++)
        many[i] = 20;
    assert_int_equal(voice_read(v, many, VOICE_MAX_IDS, &say, &n, &e), SHOAL_ELIMIT);
    assert_int_equal(n, 0);
    voice_destroy(v);
}

static void test_math(void **state)
{
    (void)state;
    for (double x = -20; x < 20; x += 0.37) {
        assert_true(fabs(voice_exp(x) / exp(x) - 1) < 1e-14);
        assert_true(fabs(voice_log(exp(x)) - x) < 1e-13);
        assert_true(fabs(voice_softplus(x) - log1p(exp(x))) < 1e-12);
    }
    assert_true(voice_exp(-1000) == 0 && isfinite(voice_exp(1000)) && isnan(voice_exp(NAN)));
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        const double x = (double)voice_normal(1, 2, i);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / 100000) < 0.02 && fabs(squares / 100000 - 1) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_parts_are_the_whole),
        cmocka_unit_test(test_the_same_bits_everywhere),
        cmocka_unit_test(test_length_and_seed),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_math),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
