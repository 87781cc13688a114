/* test_prompt_cache.c - least recently used first, time to live, purge, references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "host/prompt_cache.h"

static void make_key(uint8_t key[PROMPT_KEY_BYTES], uint32_t i)
{
    memset(key, 0, PROMPT_KEY_BYTES);
    memcpy(key + 8, &i, sizeof(i)); /* all in one bucket: chains are walked */
}

static bool has(struct prompt_cache *c, uint32_t i, uint64_t now)
{
    uint8_t key[PROMPT_KEY_BYTES];
    make_key(key, i);
    const struct prompt_entry *e = prompt_cache_get(c, key, now);
    bool there = e && e->n == 100 && e->data[0] == (char)i;
    prompt_cache_unref(e);
    return there;
}

static void put(struct prompt_cache *c, uint32_t i, uint64_t group, uint64_t now)
{
    uint8_t key[PROMPT_KEY_BYTES];
    char data[100];
    make_key(key, i);
    memset(data, (char)i, sizeof(data));
    prompt_cache_put(c, key, group, data, sizeof(data), now);
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
    assert_false(has(c, 0, 0));
    assert_true(has(c, 1, 0)); /* and is now the newest */
    put(c, 100, 1, 0);
    assert_true(has(c, 1, 0));
    assert_false(has(c, 2, 0));
    prompt_cache_stats(c, &st);
    assert_true(st.bytes <= 3000);
    prompt_cache_destroy(c);
}

static void test_time_purge_and_replacement(void **state)
{
    struct prompt_cache *c;
    struct prompt_cache_stats st;
    uint8_t key[PROMPT_KEY_BYTES];
    (void)state;
    assert_int_equal(prompt_cache_create(&c, 1 << 20, 50, NULL), 0);
    put(c, 1, 7, 0);
    put(c, 2, 8, 0);
    assert_true(has(c, 1, 50));
    assert_false(has(c, 1, 51));
    put(c, 1, 7, 60);
    put(c, 1, 7, 70);
    prompt_cache_purge(c, 7);
    assert_false(has(c, 1, 70));
    assert_true(has(c, 2, 50));
    make_key(key, 2);
    const struct prompt_entry *e = prompt_cache_get(c, key, 50);
    prompt_cache_purge(c, 8);
    assert_int_equal(e->data[99], 2); /* whoever holds it may go on reading */
    prompt_cache_stats(c, &st);
    assert_int_equal(st.entries, 0);
    assert_int_equal(st.bytes, 0);
    prompt_cache_destroy(c);
    prompt_cache_unref(e);
}

static void test_no_memory_and_too_large_store_nothing(void **state)
{
    struct prompt_cache *c;
    static char large[1000];
    uint8_t key[PROMPT_KEY_BYTES];
    (void)state;
    assert_int_equal(prompt_cache_create(&c, 2000, 0, NULL), 0);
    make_key(key, 1);
    prompt_cache_put(c, key, 0, large, sizeof(large), 0);
    assert_null(prompt_cache_get(c, key, 0));
    mem_fail_at(1);
    put(c, 2, 0, 0);
    mem_fail_at(0);
    assert_false(has(c, 2, 0));
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
        cmocka_unit_test(test_no_memory_and_too_large_store_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
