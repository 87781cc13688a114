/* Tests of base/lines.h and base/file_read.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file/file_read.h"
#include "base/file/lines.h"

static void test_lines_of_a_pipe(void **state)
{
    (void)state;
    static const char text[] = "first\nwith return\r\n\nlast without end";
    static const char *const want[] = {"first", "with return", "", "last without end"};
    int fds[2];
    struct lines lines;
    struct err e = {0};
    char *line;
    size_t n;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], text, sizeof(text) - 1), sizeof(text) - 1);
    close(fds[1]);
    lines_init(&lines, fds[0]);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(lines_next(&lines, -1, &line, &n, &e), LINES_LINE);
        assert_string_equal(line, want[i]);
        assert_int_equal(n, strlen(want[i]));
    }
    assert_int_equal(lines_next(&lines, -1, &line, &n, &e), LINES_END);
    lines_fini(&lines);
    close(fds[0]);
}

static void test_the_second_descriptor_interrupts(void **state)
{
    (void)state;
    int fds[2], interrupt[2];
    struct lines lines;
    struct err e = {0};
    char *line, byte;
    size_t n;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(interrupt), 0);
    lines_init(&lines, fds[0]);
    assert_int_equal(write(fds[1], "half ", 5), 5);
    assert_int_equal(write(interrupt[1], "!", 1), 1);
    assert_int_equal(lines_next(&lines, interrupt[0], &line, &n, &e), LINES_INTERRUPT);
    assert_int_equal(read(interrupt[0], &byte, 1), 1);
    assert_int_equal(write(fds[1], "line\n", 5), 5);
    assert_int_equal(lines_next(&lines, interrupt[0], &line, &n, &e), LINES_LINE);
    assert_string_equal(line, "half line"); /* earlier reads are kept */
    lines_fini(&lines);
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        close(interrupt[i]);
    }
}

static void test_a_whole_file(void **state)
{
    (void)state;
    char path[] = "/tmp/shoal_file_read_XXXXXX", block[1000];
    struct buf b;
    struct err e = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 200; i++)
        assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    close(fd);
    buf_init(&b, 1 << 20);
    assert_int_equal(file_read(path, &b, &e), 0);
    assert_int_equal(b.len, 200000);
    assert_int_equal(b.data[199999], 'x');
    buf_fini(&b);
    buf_init(&b, 1000);
    assert_true(file_read(path, &b, &e) < 0); /* larger than the buffer may become */
    assert_non_null(strstr(e.msg, path));
    buf_fini(&b);
    unlink(path);
    buf_init(&b, 1000);
    assert_int_equal(file_read(path, &b, &e), SHOAL_EIO);
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_a_pipe),
        cmocka_unit_test(test_the_second_descriptor_interrupts),
        cmocka_unit_test(test_a_whole_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
