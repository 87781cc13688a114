/* test_request.c - a request's memory, and failures as codecs see them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/fair.h"
#include "flow/failure.h"
#include "flow/request.h"

static void test_texts_are_copied_and_repaired(void **state)
{
    static const struct {
        const char *why, *given, *want;
    } cases[] = {
        {"plain", "abc", "abc"},
        {"valid characters", "a\xc3\xa4\xf0\x9f\x98\x80", "a\xc3\xa4\xf0\x9f\x98\x80"},
        {"a stray byte",
         "a\xff"
         "b",
         "a\xef\xbf\xbd"
         "b"},
        {"a cut character", "a\xe2\x82", "a\xef\xbf\xbd\xef\xbf\xbd"},
        {"empty", "", ""},
    };
    struct request *r = request_create();
    (void)state;
    assert_non_null(r);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char given[32];
        size_t n = strlen(cases[i].given), n_out = 99;
        memcpy(given, cases[i].given, n + 1);
        const char *got = request_copy_utf8(r, given, n, &n_out);
        memset(given, 'x', sizeof(given)); /* nothing points into the input */
        assert_string_equal(got, cases[i].want);
        assert_int_equal(n_out, strlen(cases[i].want));
    }
    assert_int_equal(request_rc(r), 0);
    request_destroy(r);
}

static void test_a_request_is_used_again(void **state)
{
    struct request *r = request_create();
    (void)state;
    assert_non_null(r);
    r->model = request_copy(r, "m", 1);
    r->deadline_ns = 5;
    assert_non_null(arena_bytes(&r->arena, 1 << 20));
    assert_null(arena_bytes(&r->arena, REQUEST_MAX_BYTES));
    assert_int_equal(request_rc(r), SHOAL_ELIMIT);
    assert_string_equal(request_copy(r, "x", 1), ""); /* and request_rc reports it */
    request_reset(r);
    assert_int_equal(request_rc(r), 0);
    assert_null(r->model);
    assert_int_equal(r->deadline_ns, 0);
    assert_true(r->arena.used_bytes <= 16384); /* the large pieces are freed */
    uint64_t before = mem_calls();
    assert_string_equal(request_copy(r, "again", 5), "again");
    assert_int_equal(mem_calls(), before); /* in memory that it kept */
    request_destroy(r);
}

static void test_the_earlier_deadline_counts(void **state)
{
    struct request *r = request_create();
    (void)state;
    assert_non_null(r);
    r->received_ns = 1000;
    request_set_budget(r, 0);
    assert_int_equal(r->deadline_ns, 0);
    request_set_budget(r, 2);
    assert_int_equal(r->deadline_ns, 2001000);
    request_set_budget(r, 3);
    assert_int_equal(r->deadline_ns, 2001000);
    request_set_budget(r, 0.5);
    assert_int_equal(r->deadline_ns, 501000);
    request_destroy(r);
}

static void test_errors_become_failures(void **state)
{
    static const struct {
        int code;
        enum failure_kind kind;
        const char *reason;
        uint32_t retry;
    } cases[] = {
        {SHOAL_EINVAL, FAILURE_INVALID, NULL, 0},
        {SHOAL_EUNSUPPORTED, FAILURE_INVALID, NULL, 0},
        {SHOAL_ELIMIT, FAILURE_INVALID, "limit_exceeded", 0},
        {SHOAL_ENOTFOUND, FAILURE_NOT_FOUND, "model_not_found", 0},
        {SHOAL_EBUSY, FAILURE_BUSY, "overloaded", 1},
        {SHOAL_EDEADLINE, FAILURE_DEADLINE, "deadline", 0},
        {SHOAL_ENOMEM, FAILURE_UNAVAILABLE, NULL, 0},
        {SHOAL_EIO, FAILURE_INTERNAL, NULL, 0},
    };
    struct failure f;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        failure_of(&f, cases[i].code, "why");
        assert_int_equal(f.kind, cases[i].kind);
        assert_int_equal(f.code, cases[i].code);
        assert_int_equal(f.retry_after_s, cases[i].retry);
        assert_string_equal(f.message, "why");
        if (cases[i].reason)
            assert_string_equal(f.reason, cases[i].reason);
        else
            assert_null(f.reason);
    }
    failure_of_model(&f, SHOAL_ELIMIT, "why"); /* the limit of a model is its context */
    assert_string_equal(f.reason, "context_length_exceeded");
    failure_of_model(&f, SHOAL_EBUSY, "why");
    assert_string_equal(f.reason, "overloaded");
    failure_late(&f, true, false, "never");
    assert_string_equal(f.reason, "deadline_unreachable");
    assert_int_equal(f.retry_after_s, 0);
    failure_late(&f, true, true, "later");
    assert_string_equal(f.reason, "deadline");
    assert_int_equal(f.retry_after_s, 1);
}

/* Whatever they say: what belongs to one client stays together. */
static void test_requests_of_a_client_stay_together(void **state)
{
    static struct request a, b;
    (void)state;
    a = b = (struct request){.from = 7};
    a.kind = b.kind = REQUEST_ASK;
    a.ask.text = "one";
    b.ask.text = "two";
    assert_int_equal(request_stay_key(&a), request_stay_key(&b));
    b.from = 9; /* another address */
    assert_int_not_equal(request_stay_key(&a), request_stay_key(&b));
    snprintf(a.client.name, sizeof(a.client.name), "app"); /* one key, from anywhere */
    snprintf(b.client.name, sizeof(b.client.name), "app");
    assert_int_equal(request_stay_key(&a), request_stay_key(&b));
    snprintf(b.client.name, sizeof(b.client.name), "other");
    assert_int_not_equal(request_stay_key(&a), request_stay_key(&b));
    snprintf(a.session, sizeof(a.session), "s");
    snprintf(b.session, sizeof(b.session), "s");
    assert_int_equal(request_stay_key(&a), request_stay_key(&b));
}

/* Clients as engines see them: the same name is the same client, and priorities add up. */
static void test_who_asks(void **state)
{
    static const struct {
        int32_t client, own, want;
    } rows[] = {
        {5, -2, 3}, {0, 0, 0}, {-5, -7, -12}, {INT32_MAX, 1, INT32_MAX}, {INT32_MIN, -1, INT32_MIN},
    };
    struct request r = {.client = {.weight = 2.5f}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        r.client.priority = rows[i].client;
        r.priority = rows[i].own;
        assert_int_equal(request_who(&r).priority, rows[i].want);
    }
    assert_int_equal(request_who(&r).client, 0); /* no particular one */
    assert_true(request_who(&r).weight == 2.5f);
    snprintf(r.client.name, sizeof(r.client.name), "anna");
    const uint64_t anna = request_who(&r).client;
    assert_true(anna != 0 && anna == request_who(&r).client);
    snprintf(r.client.name, sizeof(r.client.name), "ben");
    assert_true(request_who(&r).client != anna && request_who(&r).client != 0);
    memset(r.client.name, 'x', sizeof(r.client.name)); /* without an end */
    assert_true(request_who(&r).client != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts_are_copied_and_repaired),
                                       cmocka_unit_test(test_a_request_is_used_again),
                                       cmocka_unit_test(test_the_earlier_deadline_counts),
                                       cmocka_unit_test(test_requests_of_a_client_stay_together),
                                       cmocka_unit_test(test_errors_become_failures),
                                       cmocka_unit_test(test_who_asks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
