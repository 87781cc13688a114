/* test_sounds.c - the sounds of words in the pack's voice: dictionary, endings, guesses, and data
 * that is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "format/model_open.h"
#include "text/speech/phonemes.h"

#define MODEL SHOAL_TEST_DATA "/../../models/voice.gguf"

static struct model_file *file;
static struct sounds *sounds;
static struct str data;

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    if (model_open(&file, MODEL, &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(model_file_get_str(file, "shoal.sounds", &data));
    assert_int_equal(sounds_create(&sounds, data.p, data.n, &e), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sounds_destroy(sounds);
    model_file_close(file);
    return 0;
}

static void check(void (*say)(const struct sounds *s, const char *word, size_t n, struct buf *out),
                  const char *word, const char *want)
{
    struct buf b;
    buf_init(&b, 4096);
    say(sounds, word, strlen(word), &b);
    assert_string_equal(buf_str(&b), want);
    buf_fini(&b);
}

static void test_dictionary(void **state)
{
    struct buf b;
    (void)state;
    check(sounds_say, "hello", "həlˈoʊ");
    check(sounds_say, "kitchen", "kˈɪtʃən");
    check(sounds_say, "the", "ðə");
    check(sounds_say, "zurich", "zˈʊɹɪk");
    check(sounds_say, "water", "wˈɔːɾɚ");
    check(sounds_say, "don't", "dˈoʊnt");
    buf_init(&b, 4096);
    assert_false(sounds_find(sounds, "tradfri", 7, &b));
    assert_false(sounds_find(sounds, "", 0, &b));
    assert_false(sounds_find(sounds, "zzzzzz", 6, &b));
    assert_false(sounds_find(sounds, "'", 1, &b));
    assert_int_equal(b.len, 0);
    buf_fini(&b);
}

static void test_endings(void **state)
{
    (void)state;
    check(sounds_say, "dimmers", "dˈɪmɚz");
    check(sounds_say, "hello's", "həlˈoʊz");
    check(sounds_say, "thermostat's", "θˈɜːməstˌæts");
}

/* Words that the model did not see when it was counted: it is right on more than half of such. */
static void test_guesses(void **state)
{
    (void)state;
    check(sounds_guess, "bat", "bˈæt");
    check(sounds_guess, "smartlight", "smˈɑːɹtlˌaɪt");
    check(sounds_guess, "", "");
    check(sounds_guess, "123", "");
    char many[3000];
    struct buf b;
    memset(many, 'q', sizeof(many));
    buf_init(&b, 4096);
    sounds_guess(sounds, many, sizeof(many), &b);
    assert_int_equal(b.rc, 0);
    buf_fini(&b);
}

static void test_ids(void **state)
{
    struct phonemes p;
    struct err e = {0};
    uint16_t ids[64];
    struct buf b;
    (void)state;
    assert_int_equal(phonemes_read(&p, file, &e), 0);
    buf_init(&b, 4096);
    phonemes_of_text(sounds, "hello, the cat.", 15, &b);
    assert_string_equal(buf_str(&b), "həlˈoʊ, ðə kˈæt.");
    buf_clear(&b);
    phonemes_of_text(sounds, "the alarm, bathe alarms the hour the use", 40, &b);
    assert_string_equal(buf_str(&b), "ðɪ ɐlˈɑːɹm, bˈeɪð ɐlˈɑːɹmz ðɪ ˈaʊɚ ðə jˈuːs");
    const uint32_t n = phonemes_ids(&p, "həlˈoʊ.", strlen("həlˈoʊ."), ids, 64);
    static const uint16_t want[] = {1, 0, 20, 0, 59, 0, 24, 0, 120, 0, 27, 0, 100, 0, 10, 0, 2};
    assert_int_equal(n, sizeof(want) / sizeof(want[0]));
    assert_memory_equal(ids, want, sizeof(want));
    assert_int_equal(phonemes_ids(&p, "həlˈoʊ.", strlen("həlˈoʊ."), ids, 3), n);
    buf_fini(&b);
}

static void test_damage(void **state)
{
    static const size_t lengths[] = {0, 3, 12, 17, 100, 5000, 100000};
    struct sounds *s;
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        assert_int_equal(sounds_create(&s, data.p, lengths[i], &e), SHOAL_EFORMAT);
    assert_int_equal(sounds_create(&s, data.p, data.n - 1, &e), SHOAL_EFORMAT);
    assert_null(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dictionary), cmocka_unit_test(test_endings),
        cmocka_unit_test(test_guesses),    cmocka_unit_test(test_ids),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
