/* test_slot_store.c - slots of llama.cpp's clients: owners, replacement, and who makes room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/api/llama/slot_store.h"

static void expect(struct slot_store *s, const char *owner, uint32_t id, const char *want)
{
    uint32_t n_tokens = 0;
    size_t n = 0;
    char *text = slot_store_take(s, owner, id, &n, &n_tokens);
    if (!want) {
        assert_null(text);
        return;
    }
    assert_non_null(text);
    assert_string_equal(text, want);
    assert_int_equal(n, strlen(want));
    assert_int_equal(n_tokens, 7);
    mem_free(text);
}

static void test_slots(void **state)
{
    struct slot_store *s;
    struct err e = {0};
    (void)state;
    assert_int_equal(slot_store_create(&s, &e), 0);
    expect(s, "a", 0, NULL);
    slot_store_put(s, "a", 0, "hello ", 6, "world", 5, 7);
    slot_store_put(s, "b", 0, "other", 5, "", 0, 7);
    expect(s, "a", 0, "hello world");
    expect(s, "b", 0, "other");
    expect(s, "a", 1, NULL);
    slot_store_put(s, "a", 0, "new", 3, "", 0, 7);
    expect(s, "a", 0, "new");
    assert_int_equal(slot_store_erase(s, "a", 0), 7);
    assert_int_equal(slot_store_erase(s, "a", 0), 0);
    expect(s, "a", 0, NULL);
    expect(s, "b", 0, "other");
    for (uint32_t i = 0; i < 256; i++) /* all there are */
        slot_store_put(s, "c", i, "x", 1, "", 0, 7);
    expect(s, "b", 0, "other"); /* one client does not push out another */
    expect(s, "c", 0, NULL);
    expect(s, "c", 1, "x");
    expect(s, "c", 255, "x");
    slot_store_put(s, "a", 3, "more", 4, "", 0, 7); /* the one that has most makes room */
    expect(s, "a", 3, "more");
    expect(s, "b", 0, "other");
    expect(s, "c", 1, NULL);
    expect(s, "c", 2, "x");
    char *large = mem_zalloc(SLOT_STORE_MAX_TEXT + 2);
    assert_non_null(large);
    slot_store_put(s, "c", 2, large, SLOT_STORE_MAX_TEXT + 1, "", 0, 7);
    expect(s, "c", 2, "x"); /* it does not fit: the one before stays */
    mem_free(large);
    slot_store_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slots)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
