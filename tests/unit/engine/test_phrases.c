/* test_phrases.c - likely phrases: their tokens are helped where they are nearly the best, a phrase
 * goes on only with its own tokens, and a recognizer that was led astray goes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/native/phrases.h"
#include "format/model_open.h"
#include "text/tokenizer/tokenizer.h"

#define MODEL SHOAL_TEST_DATA "/../../models/hear.gguf"

static struct model_file *file;
static struct tokenizer *tok;
static float logits[32768];

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    if (model_open(&file, MODEL, &e) < 0 || tokenizer_create(&tok, file, &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tokenizer_destroy(tok);
    model_file_close(file);
    return 0;
}

static struct phrases *make(const char *text)
{
    struct phrases *p;
    struct err e = {0};
    if (phrases_create(&p, tok, text, strlen(text), &e) < 0)
        fail_msg("%s", e.msg);
    return p;
}

/* The i-th token of a text. */
static int32_t token(const char *text, size_t i)
{
    struct tok_ids ids;
    struct err e = {0};
    tok_ids_init(&ids, 64);
    assert_int_equal(tokenizer_encode(tok, &ids, text, strlen(text), 0, &e), 0);
    assert_true(i < ids.n);
    const int32_t id = ids.ids[i];
    tok_ids_fini(&ids);
    return id;
}

static bool is_helped(const struct phrases *p, const struct phrases_place *at, int32_t id, float x,
                      bool may_begin)
{
    memset(logits, 0, sizeof(logits));
    logits[id] = x;
    phrases_help(p, at, logits, 1.0f, may_begin);
    return logits[id] > 1.0f;
}

static void test_first(void **state)
{
    const struct phrases_place start = {.n = 0};
    struct phrases *p = make(" velux window ,\n\n Tradfri,, ");
    (void)state;
    assert_true(is_helped(p, &start, token("velux", 0), 0, true));
    assert_true(is_helped(p, &start, token("Velux", 0), 0, true));
    assert_true(is_helped(p, &start, token("tradfri", 0), 0, true));
    assert_true(is_helped(p, &start, token("TRADFRI", 0), 0, true) ==
                (token("TRADFRI", 0) == token("Tradfri", 0)));
    assert_false(is_helped(p, &start, token("velux", 0), -8, true)); /* far from the best */
    assert_false(is_helped(p, &start, token("velux", 0), 0, false));
    assert_false(is_helped(p, &start, token("velux", 1), 0, true)); /* in the middle */
    assert_false(is_helped(p, &start, token("kitchen", 0), 0, true));
    phrases_destroy(p);
}

static void test_going_on(void **state)
{
    struct phrases_place at = {.n = 0};
    struct phrases *p = make("velux window");
    (void)state;
    assert_int_equal(phrases_take(p, &at, token("velux window", 0)), PHRASES_INSIDE);
    assert_int_equal(at.n, 1);
    assert_true(is_helped(p, &at, token("velux window", 1), 0, false));
    assert_false(is_helped(p, &at, token("window", 0), 0, false));
    assert_int_equal(phrases_take(p, &at, token("velux window", 1)), PHRASES_WORD);
    assert_int_equal(phrases_take(p, &at, token("window", 0)), PHRASES_WORD);
    assert_int_equal(at.n, 0); /* complete */
    assert_int_equal(phrases_take(p, &at, token("velux window", 0)), PHRASES_INSIDE);
    assert_int_equal(phrases_take(p, &at, token("kitchen", 0)), PHRASES_OUTSIDE);
    assert_int_equal(at.n, 0);
    phrases_destroy(p);
}

static void test_limits(void **state)
{
    char *many = malloc(3 * (PHRASES_MAX + 1) + 1), longest[PHRASES_MAX_BYTES + 2];
    struct phrases *p;
    struct err e = {0};
    (void)state;
    memset(longest, 'x', sizeof(longest));
    assert_int_equal(phrases_create(&p, tok, longest, PHRASES_MAX_BYTES, &e), 0);
    phrases_destroy(p);
    assert_int_equal(phrases_create(&p, tok, longest, PHRASES_MAX_BYTES + 1, &e), SHOAL_EINVAL);
    assert_null(p);
    for (uint32_t i = 0; i <= PHRASES_MAX; i++)
        memcpy(many + 3 * i, "ab,", 3);
    assert_int_equal(phrases_create(&p, tok, many, 3 * PHRASES_MAX, &e), 0);
    phrases_destroy(p);
    assert_int_equal(phrases_create(&p, tok, many, 3 * (PHRASES_MAX + 1), &e), SHOAL_EINVAL);
    assert_int_equal(phrases_create(&p, tok, "", 0, &e), 0);
    phrases_destroy(p);
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
