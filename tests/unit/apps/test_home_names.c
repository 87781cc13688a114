/* The names of a home as phrases for a recognizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "apps/home/site/home_names.h"

static void test_names(void **state)
{
    (void)state;
    static const char *const rooms[] = {"kitchen", "cucina"},
                             *const lamp[] = {"lamp", "tv", "a, b"},
                             *const other[] = {"lamp", "two\nlines"}, *const anna[] = {"anna"};
    struct home_thing things[] = {
        {.type = HOME_THING_DEVICE, .names = {lamp, 3}},
        {.type = HOME_THING_DEVICE, .names = {other, 2}},
        {.type = HOME_THING_ROOM, .names = {rooms, 2}, .floor = "upstairs"},
        {.type = HOME_THING_PERSON, .names = {anna, 1}},
    };
    const struct home_file f = {.things = things, .n_things = 4};
    struct buf b;
    buf_init(&b, 1000);
    buf_puts(&b, "lamp\n"); /* of somebody else: each list is its own */
    home_names_put(&b, &f);
    assert_string_equal(buf_str(&b), "lamp\nkitchen\ncucina\nupstairs\nanna\nlamp\n");
    buf_clear(&b);
    home_names_put(&b, NULL);
    assert_int_equal(b.len, 0);
    buf_fini(&b);
}

static void test_most(void **state)
{
    (void)state;
    static char text[HOME_NAMES_MOST + 10][8];
    static const char *names[HOME_NAMES_MOST + 10];
    for (uint32_t i = 0; i < HOME_NAMES_MOST + 10; i++) {
        memcpy(text[i], "n0000", 6);
        for (uint32_t k = 4, v = i; k > 0; k--, v /= 10)
            text[i][k] = (char)('0' + v % 10);
        names[i] = text[i];
    }
    struct home_thing thing = {.type = HOME_THING_SCENE, .names = {names, HOME_NAMES_MOST + 10}};
    const struct home_file f = {.things = &thing, .n_things = 1};
    struct buf b;
    buf_init(&b, 100000);
    home_names_put(&b, &f);
    assert_int_equal(b.len, HOME_NAMES_MOST * 6);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_most)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
