/* test_chunk.c - passages: their length, overlap, sentences, and words that are too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/doc_check.h"

static uint32_t one(void *ctx, const char *word, size_t n)
{
    (void)ctx;
    (void)word;
    (void)n;
    return 1;
}

static struct chunk *cut(struct doc *d, const char *text, uint32_t max, uint32_t overlap,
                         uint32_t *n)
{
    const struct chunk_opts o = {.max_tokens = max, .overlap = overlap, .count = one};
    struct chunk *list;
    struct err e = {0};
    doc_init(d);
    assert_int_equal(doc_read(d, DOC_TEXT, text, strlen(text), "x", &e), 0);
    assert_int_equal(chunk_cut(&list, n, d, &o, &e), 0);
    return list;
}

static void is(const struct chunk *c, const char *text)
{
    if (strlen(text) != c->text_bytes || memcmp(text, c->text, c->text_bytes) != 0)
        fail_msg("got '%.*s', want '%s'", (int)c->text_bytes, c->text, text);
}

static void test_sentences_stay_whole(void **state)
{
    struct doc d;
    uint32_t n;
    struct chunk *c = cut(&d, "One two three four. Five six. Seven eight nine ten.", 7, 2, &n);
    (void)state;
    assert_int_equal(n, 2);
    is(&c[0], "One two three four. Five six.");
    is(&c[1], "Five six. Seven eight nine ten.");
    assert_int_equal(c[1].n_tokens, 6);
    mem_free(c);
    doc_fini(&d);
}

static void test_without_sentences_words_overlap(void **state)
{
    struct doc d;
    uint32_t n;
    struct chunk *c = cut(&d, "a b c d e f g h", 4, 1, &n);
    (void)state;
    assert_int_equal(n, 3);
    is(&c[0], "a b c d");
    is(&c[1], "d e f g");
    is(&c[2], "g h");
    mem_free(c);
    doc_fini(&d);
}

static void test_a_long_word_is_cut_at_a_character(void **state)
{
    struct doc d;
    uint32_t n;
    char text[1201] = "";
    for (int i = 0; i < 400; i++)
        memcpy(text + 3 * i, "\xe6\x97\xa5", 3);
    struct chunk *c = cut(&d, text, 1, 0, &n);
    (void)state;
    assert_true(n >= 4);
    doc_check(&d);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(c[i].text_bytes % 3, 0);
    mem_free(c);
    doc_fini(&d);
}

static void test_bad_options_and_limits(void **state)
{
    struct doc d;
    struct chunk *list;
    struct err e = {0};
    uint32_t n;
    struct chunk_opts o = {.max_tokens = 4, .overlap = 2, .count = one};
    (void)state;
    doc_init(&d);
    assert_int_equal(doc_read(&d, DOC_TEXT, "a b c d e f g h", 15, "x", &e), 0);
    assert_int_equal(chunk_cut(&list, &n, &d, &o, &e), SHOAL_EINVAL);
    o.overlap = 0;
    o.max_chunks = 1;
    assert_int_equal(chunk_cut(&list, &n, &d, &o, &e), SHOAL_ELIMIT);
    assert_null(list);
    doc_fini(&d);
}

static void test_guess(void **state)
{
    (void)state;
    assert_int_equal(chunk_guess("word", 4), 1);
    assert_int_equal(chunk_guess("internationalization", 20), 5);
    assert_int_equal(chunk_guess("1234", 4), 2);
    assert_int_equal(chunk_guess("(x)", 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences_stay_whole),
        cmocka_unit_test(test_without_sentences_words_overlap),
        cmocka_unit_test(test_a_long_word_is_cut_at_a_character),
        cmocka_unit_test(test_bad_options_and_limits),
        cmocka_unit_test(test_guess),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
