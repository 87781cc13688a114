/* test_whisper_rules.c - how Whisper is asked and what it may write, and a whole engine of a small
 * random model: the same text and confidence on every kernel set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/native/whisper_rules.h"
#include "format/model_open.h"
#include "kernels/kern.h"
#include "shoal/shoal.h"
#include "text/tokenizer/tokenizer.h"

#define MODEL SHOAL_TEST_DATA "/whisper/whisper.bin"
#define N_TEXT 264 /* tokens */
#define MOST 4096

static struct model_file *file;
static struct tokenizer *tokenizer;
static struct whisper_rules *rules;
static uint32_t n_vocab;

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    if (model_open(&file, MODEL, &e) < 0 || tokenizer_create(&tokenizer, file, &e) < 0)
        fail_msg("%s", e.msg);
    n_vocab = tokenizer_info(tokenizer)->n_vocab;
    assert_true(n_vocab <= MOST);
    return whisper_rules_create(&rules, tokenizer, n_vocab, &e);
}

static int teardown(void **state)
{
    (void)state;
    whisper_rules_destroy(rules);
    tokenizer_destroy(tokenizer);
    model_file_close(file);
    return 0;
}

/* The merges come from the order of the tokens. */
static void test_vocabulary(void **state)
{
    struct tok_ids ids;
    (void)state;
    tok_ids_init(&ids, 64);
    assert_int_equal(tokenizer_encode(tokenizer, &ids, " the boat", 9, 0, NULL), 0);
    assert_int_equal(ids.n, 5); /* " the", " b", "o", "a", "t": no merge makes "oat" */
    assert_int_equal(ids.ids[0], 256 + 2);
    assert_int_equal(ids.ids[1], 256 + 6);
    tok_ids_fini(&ids);
    assert_int_equal(rules->end, N_TEXT);
    assert_int_equal(rules->n_languages, 99);
    assert_string_equal(rules->name[0], "en");
    assert_string_equal(rules->name[98], "su");
    assert_int_equal(rules->first_time, (int32_t)n_vocab - 1501);
}

static void asked(const char *wanted, uint32_t language, bool translates)
{
    uint32_t l = 7;
    bool t = !translates;
    assert_int_equal(whisper_rules_asked(rules, wanted, &l, &t, NULL), 0);
    assert_int_equal(l, language);
    assert_int_equal(t, translates);
}

static void refused(const char *wanted, const char *why)
{
    struct err e = {0};
    uint32_t l;
    bool t;
    assert_int_equal(whisper_rules_asked(rules, wanted, &l, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, why));
}

static void test_asked(void **state)
{
    (void)state;
    asked(NULL, UINT32_MAX, false);
    asked("", UINT32_MAX, false);
    asked("de", 2, false);
    asked("de>en", 2, true);
    asked(">en", UINT32_MAX, true);
    refused("xx", "does not hear the language 'xx'; it hears: en zh de");
    refused("de>fr", "always into English");
    rules->n_languages = 0; /* as of a model of English only */
    asked("en", UINT32_MAX, false);
    refused("de", "it hears: en");
    refused(">en", "does not translate");
    rules->n_languages = 99;
}

/* The best token behind n others, where all are alike but `high`. */
static int32_t next(const int32_t *tokens, uint32_t n, double seconds, int32_t high)
{
    static float x[MOST], tmp[MOST + 16];
    for (uint32_t i = 0; i < n_vocab; i++)
        x[i] = 0.0f;
    x[high] = 20.0f;
    whisper_rules_apply(rules, &kern_scalar, x, tokens, n, seconds, tmp);
    return (int32_t)kern_scalar.argmax(x, n_vocab);
}

static void test_times(void **state)
{
    const int32_t t0 = rules->first_time;
    const int32_t one[] = {t0 + 10}, text[] = {t0 + 10, 65}, ended[] = {t0 + 10, 65, t0 + 40},
                  pair[] = {t0 + 10, 65, t0 + 40, t0 + 40};
    (void)state;
    assert_int_equal(next(NULL, 0, 5, 65), t0);           /* a time comes first */
    assert_int_equal(next(NULL, 0, 5, t0 + 50), t0 + 50); /* at most one second late */
    assert_int_equal(next(NULL, 0, 5, t0 + 60), t0);
    assert_int_equal(next(one, 1, 5, 65), 65);
    assert_int_equal(next(one, 1, 5, rules->end), rules->end); /* nobody speaks */
    assert_true(next(one, 1, 5, t0 + 20) < t0);                /* no two times without text */
    assert_int_equal(next(text, 2, 5, t0 + 40), t0 + 40);
    assert_int_not_equal(next(text, 2, 5, t0 + 10), t0 + 10);   /* a part has a length */
    assert_int_not_equal(next(text, 2, 5, t0 + 252), t0 + 252); /* behind the end of the sound */
    assert_int_equal(next(ended, 3, 5, t0 + 40), t0 + 40);
    assert_int_equal(next(ended, 3, 5, rules->end), rules->end);
    assert_true(next(ended, 3, 5, 65) >= rules->end); /* the next part begins with a time */
    assert_int_equal(next(pair, 4, 5, 65), 65);
}

static void test_marks(void **state)
{
    const int32_t one[] = {rules->first_time}, two[] = {rules->first_time, 65};
    const int32_t bracket = tokenizer_find(tokenizer, "[", 1);
    struct tok_ids ids;
    (void)state;
    tok_ids_init(&ids, 8);
    assert_int_equal(tokenizer_encode(tokenizer, &ids, " ", 1, 0, NULL), 0);
    assert_int_not_equal(next(two, 2, 5, bracket), bracket);
    assert_int_not_equal(next(two, 2, 5, N_TEXT + 1), N_TEXT + 1);
    assert_int_not_equal(next(one, 1, 5, ids.ids[0]), ids.ids[0]); /* not as the beginning */
    assert_int_equal(next(two, 2, 5, ids.ids[0]), ids.ids[0]);
    tok_ids_fini(&ids);
}

/* Random weights are never sure: every attempt is made. */
static void hear(const char *kernels, uint32_t n_threads, const char *language, char text[4096],
                 float *sure)
{
    static int16_t sound[2 * 16000];
    struct shoal_engine_opts o = {
        .size = sizeof(o), .kernels = kernels, .n_threads = n_threads, .cache_dir = ""};
    struct shoal_infer_opts in = {.size = sizeof(in),
                                  .kind = SHOAL_KIND_TRANSCRIBE,
                                  .samples = sound,
                                  .n_samples = 2 * 16000,
                                  .labels = language};
    struct shoal_engine *en;
    struct shoal_task *t;
    struct shoal_error e;
    for (int32_t i = 0; i < 2 * 16000; i++)
        sound[i] = (int16_t)(i * (i / 64) % 8000 - 4000);
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0 || shoal_infer_submit(en, &in, &t, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(shoal_task_wait(t), 0);
    const struct shoal_result *r = shoal_task_result(t);
    assert_true(r->text_bytes < 4096);
    memcpy(text, r->text, r->text_bytes + 1);
    *sure = r->confidence;
    assert_string_equal(r->label, language ? language : r->label);
    assert_int_equal(r->n_values, 2 * r->n_spans);
    for (uint32_t i = 0; i < r->n_spans; i++) {
        assert_true(r->spans[i].end <= r->text_bytes);
        assert_true(r->values[2 * i] <= r->values[2 * i + 1] && r->values[2 * i + 1] <= 2.0);
    }
    shoal_task_free(t);
    in.labels = "klingon";
    assert_int_equal(shoal_infer_submit(en, &in, &t, &e), SHOAL_EINVAL);
    shoal_engine_close(en);
}

static void test_same_bits(void **state)
{
    const struct kern_ops *sets[16];
    const size_t n = kern_usable(sets, 16);
    char want[4096], got[4096];
    float sure, other;
    (void)state;
    hear("scalar", 1, "de", want, &sure);
    for (size_t i = 0; i < n; i++) {
        hear(sets[i]->name, i % 2 ? 1 : 3, "de", got, &other);
        assert_string_equal(got, want);
        assert_true(other == sure);
    }
    hear(NULL, 2, NULL, got, &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabulary), cmocka_unit_test(test_asked),
        cmocka_unit_test(test_times),      cmocka_unit_test(test_marks),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
