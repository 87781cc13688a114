/* test_plan_words.c - names that point, and what may follow what in a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/native/plan_words.h"

/* A small language: its words by number. */
enum { PAD, END, OFF, AT, W0, W1, W2, T1, T2, N_WORDS };

static const struct plan_pointer pointers[N_WORDS] = {
    [W0] = {'w', 0}, [W1] = {'w', 1}, [W2] = {'w', 2}, [T1] = {'t', 1}, [T2] = {'t', 2}};
static const bool all_read[N_WORDS] = {[W0] = true, [W1] = true, [W2] = true, [T1] = true};

static void test_names(void **state)
{
    static const struct {
        const char *name;
        char kind;
        uint32_t number;
    } rows[] = {{"<w0>", 'w', 0},     {"<w12>", 'w', 12}, {"<t907>", 't', 907}, {"<w1234>", 0, 0},
                {"<w>", 0, 0},        {"w0>", 0, 0},      {"<w0", 0, 0},        {"<w0)", 0, 0},
                {"(w00>", 0, 0},      {"<off>", 0, 0},    {"<w1x>", 0, 0},      {"<wx1>", 0, 0},
                {"<to_value>", 0, 0}, {"", 0, 0},         {"<99>", '9', 9},     {"<w9/>", 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct plan_pointer p =
            plan_pointer_of((struct str){rows[i].name, strlen(rows[i].name)});
        assert_int_equal(p.kind, rows[i].kind);
        assert_int_equal(p.number, rows[i].number);
    }
}

/* For each plan so far all words that may follow. */
static void test_what_may_follow(void **state)
{
    static const struct {
        int32_t plan[8];
        uint32_t n;
        bool next[N_WORDS];
    } rows[] = {
        /* not empty, and no span without a word in front of it */
        {{0}, 0, {[OFF] = true, [AT] = true, [T1] = true}},
        {{OFF},
         1,
         {[END] = true,
          [OFF] = true,
          [AT] = true,
          [T1] = true,
          [W0] = true,
          [W1] = true,
          [W2] = true}},
        /* a span that has begun must end, at the same word or a later one */
        {{AT, W0}, 2, {[W0] = true, [W1] = true, [W2] = true}},
        {{AT, W1}, 2, {[W1] = true, [W2] = true}},
        {{AT, W2}, 2, {[W2] = true}},
        /* a complete one is not followed by another */
        {{AT, W0, W2}, 3, {[END] = true, [OFF] = true, [AT] = true, [T1] = true}},
        {{AT, W1, W1}, 3, {[END] = true, [OFF] = true, [AT] = true, [T1] = true}},
        /* nor does it count behind another word */
        {{AT, W1, W1, AT},
         4,
         {[END] = true,
          [OFF] = true,
          [AT] = true,
          [T1] = true,
          [W0] = true,
          [W1] = true,
          [W2] = true}},
        {{AT, W1, W1, AT, W2}, 5, {[W2] = true}},
        {{OFF, T1},
         2,
         {[END] = true,
          [OFF] = true,
          [AT] = true,
          [T1] = true,
          [W0] = true,
          [W1] = true,
          [W2] = true}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (uint32_t word = 0; word < N_WORDS; word++) {
            const struct plan_so_far plan = {pointers, all_read, END, rows[i].plan, rows[i].n};
            if (plan_may_follow(&plan, word) != rows[i].next[word])
                fail_msg("row %zu, word %u", i, word);
        }
}

/* What the text does not have is not pointed to, not even by the end of a span. */
static void test_only_what_was_read(void **state)
{
    static const bool read[N_WORDS] = {[W1] = true};
    static const int32_t open[] = {AT, W1};
    const struct plan_so_far plan = {pointers, read, END, open, 2};
    const struct plan_so_far begun = {pointers, read, END, open, 1};
    (void)state;
    assert_true(plan_may_follow(&plan, W1));
    assert_false(plan_may_follow(&plan, W2));
    assert_true(plan_may_follow(&begun, W1));
    assert_false(plan_may_follow(&begun, W0));
    assert_false(plan_may_follow(&begun, T1));
    assert_true(plan_may_follow(&begun, OFF));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_what_may_follow),
                                       cmocka_unit_test(test_only_what_was_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
