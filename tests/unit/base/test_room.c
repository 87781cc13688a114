/* test_room.c - arrays that grow by doubling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/room.h"

static void test_grows_at_its_capacity(void **state)
{
    (void)state;
    uint64_t *v = NULL;
    size_t cap = 0;
    for (size_t n = 0; n < 1000; n++) {
        const size_t before = cap;
        assert_true(room_make(&v, &cap, n, sizeof(*v), 3));
        assert_int_equal(cap, n == 0 ? 3 : n == before ? 2 * before : before);
        v[n] = n * n;
    }
    for (size_t n = 0; n < 1000; n++)
        assert_int_equal(v[n], n * n);
    mem_free(v);
}

static void test_keeps_the_array_without_memory(void **state)
{
    (void)state;
    uint32_t *v = NULL, cap = 0;
    assert_true(room_make32(&v, &cap, 0, sizeof(*v), 1));
    v[0] = 7;
    uint32_t *before = v;
    mem_fail_at(1);
    assert_false(room_make32(&v, &cap, 1, sizeof(*v), 1));
    mem_fail_at(0);
    assert_ptr_equal(v, before);
    assert_int_equal(cap, 1);
    assert_int_equal(v[0], 7);
    assert_false(room_make32(&v, &cap, 1, SIZE_MAX, 1)); /* twice the bytes are no size */
    assert_int_equal(cap, 1);
    mem_free(v);
}

static void test_in_an_arena(void **state)
{
    (void)state;
    struct arena a;
    uint16_t *v = NULL;
    uint32_t cap = 0;
    arena_init(&a, 1u << 16);
    for (uint32_t n = 0; n < 100; n++) {
        assert_true(room_make_in(&a, &v, &cap, n, sizeof(*v), 8));
        v[n] = (uint16_t)n;
    }
    assert_int_equal(cap, 128);
    for (uint32_t n = 0; n < 100; n++)
        assert_int_equal(v[n], n);
    uint32_t wide = 1u << 15;
    assert_false(room_make_in(&a, &v, &wide, wide, sizeof(*v), 8));
    assert_int_equal(wide, 1u << 15);
    arena_fini(&a);
}

static void test_next_has_no_capacity(void **state)
{
    (void)state;
    uint32_t *v = NULL;
    for (uint32_t n = 0; n < 70; n++) {
        uint32_t *at = room_next(&v, n, sizeof(*v));
        assert_ptr_equal(at, v + n);
        *at = n;
    }
    for (uint32_t n = 0; n < 70; n++)
        assert_int_equal(v[n], n);
    mem_fail_at(1);
    assert_non_null(room_next(&v, 70, sizeof(*v))); /* there is room up to 128 */
    assert_null(room_next(&v, 128, sizeof(*v)));
    mem_fail_at(0);
    mem_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows_at_its_capacity),
        cmocka_unit_test(test_keeps_the_array_without_memory),
        cmocka_unit_test(test_in_an_arena),
        cmocka_unit_test(test_next_has_no_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
