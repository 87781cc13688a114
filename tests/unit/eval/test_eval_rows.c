/* Tests of eval/eval_rows.h: data sets with one JSON object per line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "eval/eval_rows.h"

static char path[] = "/tmp/shoal_eval_rows_XXXXXX";

static void write_file(const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fputs(text, f) < 0, 0);
    assert_int_equal(fclose(f), 0);
}

static void test_rows_keep_file_and_line(void **state)
{
    (void)state;
    static const char *const keys[] = {"sentence", "text", NULL};
    struct eval_rows rows = {0};
    struct err e = {0};
    const char *text;
    write_file("{\"text\":\"one\"}\n\n{\"text\":\"b\",\"sentence\":\"two\"}\r\n{\"text\":3}");
    assert_int_equal(eval_rows_read(&rows, path, &e), 0);
    assert_int_equal(rows.n, 3);
    assert_int_equal(rows.rows[1].line, 3); /* the empty line counts */
    assert_int_equal(eval_rows_text(&rows.rows[0], keys, &text, &e), 0);
    assert_string_equal(text, "one");
    assert_int_equal(eval_rows_text(&rows.rows[1], keys, &text, &e), 0);
    assert_string_equal(text, "two"); /* the first key wins */
    assert_int_equal(eval_rows_text(&rows.rows[2], keys, &text, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, path));
    assert_non_null(strstr(e.msg, ":4: no text under \"sentence\""));

    write_file("{\"text\":\"more\"}\n");
    assert_int_equal(eval_rows_read(&rows, path, &e), 0); /* appended */
    assert_int_equal(rows.n, 4);
    eval_rows_cut(&rows, 2);
    assert_int_equal(rows.n, 2);
    eval_rows_cut(&rows, 9);
    assert_int_equal(rows.n, 2);
    eval_rows_fini(&rows);
    assert_int_equal(rows.n, 0);
}

static void test_bad_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "has no rows"},
        {"\n\n", "has no rows"},
        {"{\"text\":\"a\"}\n[1]\n", ":2: not a JSON object"},
        {"{\"text\":\n", ":1: not a JSON object"},
        {"\"text\"\n", ":1: not a JSON object"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct eval_rows rows = {0};
        struct err e = {0};
        write_file(cases[i].text);
        assert_int_equal(eval_rows_read(&rows, path, &e), SHOAL_EFORMAT);
        assert_non_null(strstr(e.msg, cases[i].message));
        eval_rows_fini(&rows);
    }
    struct eval_rows rows = {0};
    struct err e = {0};
    assert_int_equal(eval_rows_read(&rows, "/no/such/file.jsonl", &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "/no/such/file.jsonl"));
    eval_rows_fini(&rows);
}

static int setup(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_keep_file_and_line),
        cmocka_unit_test(test_bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
