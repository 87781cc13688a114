/* test_prompt_cache.c - least recently used first, time to live, purge, rename, references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "host/prompt_cache.h"

static struct prompt_key make_key(uint32_t i, uint8_t model)
{
    struct prompt_key key = {.model = {model}};
    memcpy(key.question + 8, &i, sizeof(i)); /* all in one bucket: chains are walked */
    return key;
}

static bool has(struct prompt_cache *c, uint32_t i, uint8_t model, uint64_t now)
{
    const struct prompt_key key = make_key(i, model);
    const struct prompt_entry *e = prompt_cache_get(c, &key, now);
    bool there = e && e->n == 100 && e->data[0] == (char)i;
    prompt_cache_unref(e);
    return there;
}

static void put(struct prompt_cache *c, uint32_t i, uint8_t model, uint64_t now)
{
    const struct prompt_key key = make_key(i, model);
    char data[100];
    memset(data, (char)i, sizeof(data));
    prompt_cache_put(c, &key, data, sizeof(data), now);
}

static void test_the_least_recently_used_goes_first(void **state)
{
    struct prompt_cache *c;
    struct prompt_cache_stats st;
    (void)state;
    assert_int_equal(prompt_cache_create(&c, 3000, 0, NULL), 0);
    uint32_t n = 0;
    do {
        put(c, n++, 1, 0);
        prompt_cache_stats(c, &st);
    } while (st.evicted == 0 && n < 100);
    assert_in_range(n, 5, 50);
    assert_false(has(c, 0, 1, 0));
    assert_true(has(c, 1, 1, 0)); /* and is now the newest */
    put(c, 100, 1, 0);
    assert_true(has(c, 1, 1, 0));
    assert_false(has(c, 2, 1, 0));
    prompt_cache_stats(c, &st);
    assert_true(st.bytes <= 3000);
    prompt_cache_destroy(c);
}

static void test_time_purge_and_replacement(void **state)
{
    struct prompt_cache *c;
    struct prompt_cache_stats st;
    (void)state;
    assert_int_equal(prompt_cache_create(&c, 1 << 20, 50, NULL), 0);
    put(c, 1, 7, 0);
    put(c, 2, 8, 0);
    assert_true(has(c, 1, 7, 50));
    assert_false(has(c, 1, 7, 51));
    put(c, 1, 7, 60);
    put(c, 1, 7, 70);
    prompt_cache_purge(c, make_key(0, 7).model);
    assert_false(has(c, 1, 7, 70));
    assert_true(has(c, 2, 8, 50));
    const struct prompt_key key = make_key(2, 8);
    const struct prompt_entry *e = prompt_cache_get(c, &key, 50);
    prompt_cache_purge(c, make_key(0, 8).model);
    assert_int_equal(e->data[99], 2); /* its holder may continue reading */
    prompt_cache_stats(c, &st);
    assert_int_equal(st.entries, 0);
    assert_int_equal(st.bytes, 0);
    prompt_cache_destroy(c);
    prompt_cache_unref(e);
}

static void test_a_renamed_model_keeps_its_answers(void **state)
{
    struct prompt_cache *c;
    struct prompt_cache_stats st;
    (void)state;
    assert_int_equal(prompt_cache_create(&c, 1 << 20, 0, NULL), 0);
    put(c, 1, 7, 0);
    put(c, 2, 7, 0);
    put(c, 3, 9, 0);
    put(c, 2, 8, 0); /* already present under the new name */
    prompt_cache_rename(c, make_key(0, 7).model, make_key(0, 8).model);
    assert_true(has(c, 1, 8, 0) && has(c, 2, 8, 0) && has(c, 3, 9, 0));
    assert_false(has(c, 1, 7, 0) || has(c, 2, 7, 0) || has(c, 3, 8, 0));
    prompt_cache_stats(c, &st);
    assert_int_equal(st.entries, 3);
    prompt_cache_destroy(c);
}

static void test_no_memory_and_too_large_store_nothing(void **state)
{
    struct prompt_cache *c;
    static char large[1000];
    (void)state;
    assert_int_equal(prompt_cache_create(&c, 2000, 0, NULL), 0);
    const struct prompt_key key = make_key(1, 0);
    prompt_cache_put(c, &key, large, sizeof(large), 0);
    assert_null(prompt_cache_get(c, &key, 0));
    mem_fail_at(1);
    put(c, 2, 0, 0);
    mem_fail_at(0);
    assert_false(has(c, 2, 0, 0));
    prompt_cache_destroy(c);
    struct err e = {0};
    mem_fail_at(1);
    assert_int_equal(prompt_cache_create(&c, 2000, 0, &e), SHOAL_ENOMEM);
    mem_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_recently_used_goes_first),
        cmocka_unit_test(test_time_purge_and_replacement),
        cmocka_unit_test(test_a_renamed_model_keeps_its_answers),
        cmocka_unit_test(test_no_memory_and_too_large_store_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
