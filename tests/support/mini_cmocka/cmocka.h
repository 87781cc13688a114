/* cmocka.h - the few parts of cmocka that test_kernels uses, for builds where the real one is not
 * installed: programs for another CPU that run under an emulator.  The first failure of a test ends
 * it; the program's status is the number of failed tests. */
#ifndef MINI_CMOCKA_H
#define MINI_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static jmp_buf mini_cmocka_out;

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
};
#define cmocka_unit_test(f) ((struct CMUnitTest){#f, f})
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        printf("ERROR: ");                                                                         \
        printf(__VA_ARGS__);                                                                       \
        printf("\n%s:%d\n", __FILE__, __LINE__);                                                   \
        longjmp(mini_cmocka_out, 1);                                                               \
    } while (0)
#define assert_true(x)                                                                             \
    do {                                                                                           \
        if (!(x))                                                                                  \
            fail_msg("%s", #x);                                                                    \
    } while (0)
#define assert_null(p) assert_true((p) == NULL)
#define assert_non_null(p) assert_true((p) != NULL)
#define assert_int_equal(a, b) assert_true((a) == (b))
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)
#define assert_string_equal(a, b)                                                                  \
    do {                                                                                           \
        if (strcmp(a, b) != 0)                                                                     \
            fail_msg("\"%s\" is not \"%s\"", a, b);                                                \
    } while (0)
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    mini_cmocka_run(tests, sizeof(tests) / sizeof((tests)[0]))

static int mini_cmocka_run(const struct CMUnitTest *tests, size_t n)
{
    volatile int failed = 0;
    for (volatile size_t i = 0; i < n; i++) {
        void *state = NULL;
        if (setjmp(mini_cmocka_out) == 0) {
            tests[i].test(&state);
            printf("[       OK ] %s\n", tests[i].name);
        } else {
            printf("[  FAILED  ] %s\n", tests[i].name);
            failed++;
        }
        fflush(stdout);
    }
    return failed;
}

#endif
