/* test_model_suggest.c - which models fit a machine, and how fast they are expected to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "depot/model_suggest.h"
#include "depot/source/recipe.h"

#define MIB ((uint64_t)1 << 20)

static struct recipe_file files[] = {{.name = "a.gguf", .bytes = 60 * MIB},
                                     {.name = "b.gguf", .bytes = 40 * MIB}};
static struct recipe_archive archives[] = {{.bytes = 50 * MIB}, {.bytes = 45 * MIB}};

static struct recipe make(const char *task)
{
    return (struct recipe){.name = "tiny",
                           .task = task,
                           .archives = archives,
                           .files = files,
                           .n_archives = 2,
                           .n_files = 2};
}

static void test_sums(void **state)
{
    (void)state;
    struct recipe r = make("generate");
    struct model_suggestion s =
        model_suggest(&r, &(struct model_room){.memory_bytes = 1024 * MIB}, false);
    assert_int_equal(s.bytes, 100 * MIB);
    assert_int_equal(s.download_bytes, 95 * MIB);
    assert_true(s.memory_bytes > s.bytes);
    assert_int_equal(s.misfit, MODEL_FITS);
    assert_true(s.tokens_per_second == 0); /* the bandwidth is not known */
}

static void test_speed(void **state)
{
    (void)state;
    struct model_room room = {.bytes_per_second = 100.0 * (double)MIB * 50};
    struct recipe r = make("generate");
    assert_true(model_suggest(&r, &room, false).tokens_per_second == 40); /* 0.8 of 50 */
    r = make("embed");
    assert_true(model_suggest(&r, &room, false).tokens_per_second == 0);
}

static void test_misfits(void **state)
{
    (void)state;
    struct recipe r = make("generate");
    struct model_room room = {.memory_bytes = 150 * MIB, .disk_bytes = 1024 * MIB};
    char why[112];
    struct model_suggestion s = model_suggest(&r, &room, false);
    assert_int_equal(s.misfit, MODEL_LACKS_MEMORY);
    model_suggest_reason(why, &s, &room);
    assert_non_null(strstr(why, "of memory, and there are 150.0 MiB"));

    room = (struct model_room){.memory_bytes = 1024 * MIB, .disk_bytes = 194 * MIB};
    s = model_suggest(&r, &room, false);
    assert_int_equal(s.misfit, MODEL_LACKS_DISK);
    model_suggest_reason(why, &s, &room);
    assert_string_equal(why, "needs about 195.0 MiB on the disk, and there are 194.0 MiB");
    s = model_suggest(&r, &room, true); /* it is here: nothing is fetched */
    assert_int_equal(s.misfit, MODEL_FITS);
    model_suggest_reason(why, &s, &room);
    assert_string_equal(why, "");
    room.disk_bytes = 195 * MIB;
    assert_int_equal(model_suggest(&r, &room, false).misfit, MODEL_FITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_speed),
                                       cmocka_unit_test(test_misfits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
