/* test_kv_pages.c - a page is found by its own tokens and by all tokens before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/decode/kv_pages.h"

enum { PAGE = 2 }; /* tokens */

static struct kv_pages *open_pages(uint32_t n)
{
    struct kv_pages *kv;
    struct err e = {0};
    assert_int_equal(kv_pages_create(&kv, n, PAGE, &e), 0);
    assert_int_equal(kv_pages_free(kv), n);
    return kv;
}

static uint32_t put(struct kv_pages *kv, uint32_t parent, int32_t a, int32_t b)
{
    const int32_t tokens[PAGE] = {a, b};
    uint32_t page = kv_pages_take(kv);
    assert_int_not_equal(page, KV_NO_PAGE);
    return kv_pages_publish(kv, 0, page, parent, tokens);
}

static uint32_t find(struct kv_pages *kv, uint32_t parent, int32_t a, int32_t b)
{
    const int32_t tokens[PAGE] = {a, b};
    return kv_pages_find(kv, 0, parent, tokens);
}

static void test_a_page_is_found_behind_its_parent_only(void **state)
{
    struct kv_pages *kv = open_pages(4);
    (void)state;
    uint32_t one = put(kv, KV_NO_PAGE, 1, 2), two = put(kv, KV_NO_PAGE, 5, 6);
    uint32_t child = put(kv, one, 3, 4);
    assert_int_equal(find(kv, one, 3, 4), child);
    assert_int_equal(find(kv, two, 3, 4), KV_NO_PAGE);
    assert_int_equal(find(kv, KV_NO_PAGE, 3, 4), KV_NO_PAGE);
    assert_int_equal(find(kv, one, 3, 5), KV_NO_PAGE);
    kv_pages_destroy(kv);
}

/* The keys of a page depend on all tokens before it: once its parent holds other tokens, it must
 * not be found, or an answer would be computed from the keys of another prompt. */
static void test_a_page_is_not_found_behind_a_parent_with_new_tokens(void **state)
{
    struct kv_pages *kv = open_pages(2);
    (void)state;
    uint32_t parent = put(kv, KV_NO_PAGE, 1, 2), child = put(kv, parent, 3, 4);
    kv_pages_release(kv, parent); /* the oldest free page: the next one taken */
    kv_pages_release(kv, child);
    assert_int_equal(put(kv, KV_NO_PAGE, 8, 9), parent);
    assert_int_equal(find(kv, KV_NO_PAGE, 1, 2), KV_NO_PAGE);
    assert_int_equal(find(kv, parent, 3, 4), KV_NO_PAGE);
    assert_int_equal(put(kv, parent, 3, 4), child); /* the last free page, filled anew */
    assert_int_equal(find(kv, parent, 3, 4), child);
    kv_pages_destroy(kv);
}

static void test_scopes_never_meet(void **state)
{
    const int32_t first[PAGE] = {1, 2}, second[PAGE] = {3, 4};
    struct kv_pages *kv = open_pages(6);
    (void)state;
    uint32_t a = kv_pages_publish(kv, 7, kv_pages_take(kv), KV_NO_PAGE, first);
    uint32_t b = kv_pages_publish(kv, 7, kv_pages_take(kv), a, second);
    assert_int_equal(kv_pages_find(kv, 7, KV_NO_PAGE, first), a);
    assert_int_equal(kv_pages_find(kv, 7, a, second), b);
    assert_int_equal(kv_pages_find(kv, 8, KV_NO_PAGE, first), KV_NO_PAGE);
    assert_int_equal(kv_pages_find(kv, 0, KV_NO_PAGE, first), KV_NO_PAGE);
    /* equal tokens of another scope are other pages, also behind the first */
    uint32_t c = kv_pages_publish(kv, 8, kv_pages_take(kv), KV_NO_PAGE, first);
    assert_int_not_equal(c, a);
    assert_int_equal(kv_pages_find(kv, 8, c, second), KV_NO_PAGE);
    kv_pages_destroy(kv);
}

static void test_equal_pages_become_one(void **state)
{
    struct kv_pages *kv = open_pages(3);
    (void)state;
    uint32_t first = put(kv, KV_NO_PAGE, 1, 2);
    assert_int_equal(put(kv, KV_NO_PAGE, 1, 2), first);
    assert_int_equal(kv_pages_free(kv), 2); /* the copy was given back */
    kv_pages_release(kv, first);
    assert_int_equal(kv_pages_free(kv), 2); /* the other one still has it */
    kv_pages_release(kv, first);
    assert_int_equal(kv_pages_free(kv), 3);
    assert_int_equal(find(kv, KV_NO_PAGE, 1, 2), first); /* free, but still there */
    assert_int_equal(kv_pages_free(kv), 2);
    kv_pages_destroy(kv);
}

static void test_the_page_that_is_free_longest_is_taken_first(void **state)
{
    struct kv_pages *kv = open_pages(3);
    uint32_t page[3];
    (void)state;
    for (int32_t i = 0; i < 3; i++)
        page[i] = put(kv, KV_NO_PAGE, i, i);
    assert_int_equal(kv_pages_take(kv), KV_NO_PAGE);
    kv_pages_release(kv, page[1]);
    kv_pages_release(kv, page[2]);
    kv_pages_release(kv, page[0]);
    assert_int_equal(find(kv, KV_NO_PAGE, 2, 2), page[2]); /* in use again */
    assert_int_equal(kv_pages_take(kv), page[1]);
    assert_int_equal(kv_pages_take(kv), page[0]);
    assert_int_equal(kv_pages_take(kv), KV_NO_PAGE);
    assert_int_equal(find(kv, KV_NO_PAGE, 0, 0), KV_NO_PAGE);
    kv_pages_destroy(kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page_is_found_behind_its_parent_only),
        cmocka_unit_test(test_a_page_is_not_found_behind_a_parent_with_new_tokens),
        cmocka_unit_test(test_scopes_never_meet),
        cmocka_unit_test(test_equal_pages_become_one),
        cmocka_unit_test(test_the_page_that_is_free_longest_is_taken_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
