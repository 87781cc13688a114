/* test_kept_answer.c - kept answers survive a round trip; damaged bytes are rejected. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "host/kept_answer.h"

static const struct shoal_logprob top[3] = {{7, -0.5f}, {8, -1.5f}, {9, -INFINITY}};
static const struct kept_token tokens[] = {
    {0, 7, -0.5f, top, 3, "Hello", 5, false},
    {1, 8, -1.25f, NULL, 0, "", 0, false},
    {1, 2, 0.0f, top, 1, "\xc3\xa9", 2, false},
    {0, -1, 0.0f, NULL, 0, "a\0b", 3, false},
};
static const struct kept_choice choices[2] = {{SHOAL_FINISH_STOP, 11, 2, 1, 2, 3},
                                              {SHOAL_FINISH_LENGTH, 12, 2, UINT64_MAX, 5, 6}};

#define N_TOKENS (sizeof(tokens) / sizeof(tokens[0]))

static void encode(struct buf *out)
{
    struct buf all;
    buf_init(&all, 4096);
    buf_init(out, 4096);
    for (size_t i = 0; i < N_TOKENS; i++)
        kept_answer_put_token(&all, &tokens[i]);
    assert_int_equal(kept_answer_put(out, choices, 2, &all), 0);
    buf_fini(&all);
}

static void test_an_answer_comes_back(void **state)
{
    struct kept_answer a;
    struct kept_token t;
    struct buf b;
    size_t n = 0;
    (void)state;
    encode(&b);
    assert_int_equal(kept_answer_open(&a, b.data, b.len, NULL), 0);
    assert_int_equal(a.n_choices, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct kept_choice c = kept_answer_choice(&a, i);
        assert_int_equal(c.finish, choices[i].finish);
        assert_int_equal(c.prompt_tokens, choices[i].prompt_tokens);
        assert_int_equal(c.generated_tokens, choices[i].generated_tokens);
        assert_true(c.queue_ns == choices[i].queue_ns);
        assert_true(c.first_token_ns == choices[i].first_token_ns);
        assert_true(c.total_ns == choices[i].total_ns);
    }
    for (; kept_answer_next(&a, &t); n++) {
        assert_int_equal(t.choice, tokens[n].choice);
        assert_int_equal(t.token, tokens[n].token);
        assert_true(t.logprob == tokens[n].logprob);
        assert_int_equal(t.n_top, tokens[n].n_top);
        for (uint32_t i = 0; i < t.n_top; i++)
            assert_true(t.top[i].token == top[i].token && t.top[i].logprob == top[i].logprob);
        assert_int_equal(t.text_bytes, tokens[n].text_bytes);
        assert_memory_equal(t.text, tokens[n].text, t.text_bytes);
    }
    assert_int_equal(n, N_TOKENS);
    buf_fini(&b);
}

/* Other machines read these bytes: they may only change together with the version. */
static void test_the_bytes_are_those_of_the_header(void **state)
{
    static const uint8_t want[] = {
        'S', 'K', 'A', '1', 1, 0, 0, 0,    30,   0,    0,    0,                   /* head */
        1,   0,   0,   0,   5, 0, 0, 0,    1,    0,    0,    0,                   /* choice */
        2,   0,   0,   0,   0, 0, 0, 0,    0,    1,    0,    0,    0, 0, 0, 0,    /* times */
        3,   0,   0,   0,   0, 0, 0, 0x80,                                        /* total */
        0,   0,   0,   0,   9, 0, 0, 0,    0,    0,    0x80, 0xbf,                /* token */
        2,   0,   0,   0,   1, 0, 0, 0,    0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0xc0, /* top */
        'h', 'i'};
    const struct shoal_logprob alternative = {INT32_MAX, -2.0f};
    const struct kept_choice end = {SHOAL_FINISH_STOP, 5, 1, 2, 256, UINT64_C(0x8000000000000003)};
    struct buf all, b;
    (void)state;
    buf_init(&all, 4096);
    buf_init(&b, 4096);
    kept_answer_put_token(&all, &(struct kept_token){0, 9, -1.0f, &alternative, 1, "hi", 2, false});
    assert_int_equal(kept_answer_put(&b, &end, 1, &all), 0);
    assert_int_equal(b.len, sizeof(want));
    assert_memory_equal(b.data, want, sizeof(want));
    buf_fini(&all);
    buf_fini(&b);
}

/* Copies to memory of exactly that size, so that ASan catches a read past it. */
static int open_copy(const void *p, size_t n)
{
    struct kept_answer a;
    struct err e = {0};
    char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    memcpy(copy, p, n);
    int rc = kept_answer_open(&a, copy, n, &e);
    if (rc == 0) {
        struct kept_token t;
        while (kept_answer_next(&a, &t))
            assert_in_range(t.choice, 0, a.n_choices - 1);
    } else {
        assert_true(rc == SHOAL_EFORMAT && e.msg[0]);
    }
    free(copy);
    return rc;
}

static void test_damaged_bytes_are_refused(void **state)
{
    static const struct {
        const char *why;
        size_t at;
        uint32_t value;
    } cases[] = {
        {"another version", 0, 0x32414b53},
        {"no choices", 4, 0},
        {"more choices than bytes", 4, 100},
        {"too many choices", 4, UINT32_MAX},
        {"another length", 8, 7},
        {"a choice that failed", 12, SHOAL_FINISH_ERROR},
        {"a choice without an end", 12, SHOAL_FINISH_NONE},
        {"an unknown end", 48, 77},
        {"a token of no choice", 84, 2},
        {"a negative token", 88, (uint32_t)-2},
        {"NaN", 92, 0x7fc00000},
        {"text behind the end", 96, UINT32_MAX},
        {"too many alternatives", 100, 21},
        {"an alternative without a token", 104, (uint32_t)-1},
        {"an alternative of NaN", 108, 0x7fc00000},
    };
    struct buf b;
    (void)state;
    encode(&b);
    assert_int_equal(open_copy(b.data, b.len), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char copy[512];
        memcpy(copy, b.data, b.len);
        memcpy(copy + cases[i].at, &cases[i].value, 4);
        if (open_copy(copy, b.len) == 0)
            fail_msg("%s: it was taken", cases[i].why);
    }
    for (size_t n = 0; n < b.len; n++)
        assert_int_equal(open_copy(b.data, n), SHOAL_EFORMAT);
    buf_putc(&b, 'x');
    assert_int_equal(open_copy(b.data, b.len), SHOAL_EFORMAT);
    buf_fini(&b);
}

static void test_what_was_cut_off_is_not_kept(void **state)
{
    struct kept_choice cut[2] = {choices[0], choices[1]};
    struct buf all, b;
    (void)state;
    buf_init(&all, 60);
    buf_init(&b, 4096);
    cut[1].finish = SHOAL_FINISH_ERROR;
    assert_int_equal(kept_answer_put(&b, cut, 2, &all), SHOAL_EINVAL);
    assert_int_equal(kept_answer_put(&b, cut, 0, &all), SHOAL_EINVAL);
    assert_int_equal(kept_answer_put(&b, cut, KEPT_ANSWER_MAX_CHOICES + 1, &all), SHOAL_EINVAL);
    for (size_t i = 0; i < N_TOKENS; i++)
        kept_answer_put_token(&all, &tokens[i]); /* more than fits */
    assert_int_equal(kept_answer_put(&b, choices, 2, &all), SHOAL_ELIMIT);
    buf_fini(&all);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_comes_back),
        cmocka_unit_test(test_the_bytes_are_those_of_the_header),
        cmocka_unit_test(test_damaged_bytes_are_refused),
        cmocka_unit_test(test_what_was_cut_off_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
