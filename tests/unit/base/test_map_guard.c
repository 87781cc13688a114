/* test_map_guard.c - files that shrink or change under a mapping, and paths that are not regular
 * files. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file/file_map.h"
#include "base/file/map_guard.h"

static char path[64];

static void make_file(size_t n)
{
    snprintf(path, sizeof(path), "/tmp/shoal-guard-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    char block[4096];
    memset(block, 'x', sizeof(block));
    for (; n > 0; n -= sizeof(block))
        assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    close(fd);
}

static void test_truncated_file(void **state)
{
    (void)state;
    struct file_map m, other;
    struct err e = {0};
    char copy[16];
    make_file(16 * 4096);
    assert_int_equal(file_map_open(&m, path, &e), 0);
    assert_int_equal(file_map_open(&other, "/proc/self/exe", &e), 0);
    assert_false(file_map_changed(&m));
    assert_int_equal(truncate(path, 4096), 0);
    assert_true(file_map_changed(&m));
    volatile const uint8_t *bytes = m.bytes;
    assert_int_equal(bytes[100], 'x');
    assert_int_equal(bytes[15 * 4096 + 7], 0); /* SIGBUS, without the guard */
    assert_int_equal(bytes[3 * 4096], 0);
    assert_true(map_guard_is_broken(m.guard));
    file_map_trim(&m, m.n_bytes);
    assert_int_equal(bytes[15 * 4096 + 7], 0);
    assert_false(file_map_changed(&other));
    assert_false(map_guard_is_broken(other.guard));
    file_map_read(&m, 8 * 4096, copy, sizeof(copy));
    assert_int_equal(copy[0], 0);
    file_map_close(&m);
    file_map_close(&other);
    unlink(path);
    make_file(8192); /* the entry is free again and reset */
    assert_int_equal(file_map_open(&m, path, &e), 0);
    assert_false(file_map_changed(&m));
    assert_int_equal(truncate(path, 0), 0);
    file_map_read(&m, 0, copy, sizeof(copy)); /* a short read also reveals it */
    assert_true(map_guard_is_broken(m.guard));
    file_map_close(&m);
    unlink(path);
}

static void test_overwritten_and_replaced_file(void **state)
{
    (void)state;
    struct file_map m;
    struct err e = {0};
    char old[64];
    make_file(8192);
    const struct timespec past[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
    assert_int_equal(file_map_open(&m, path, &e), 0);
    snprintf(old, sizeof(old), "%s", path);
    make_file(8192);
    assert_int_equal(rename(path, old), 0); /* a different file: ours is unchanged */
    assert_false(file_map_changed(&m));
    assert_int_equal(m.bytes[0], 'x');
    file_map_close(&m);
    assert_int_equal(utimensat(AT_FDCWD, old, past, 0), 0);
    assert_int_equal(file_map_open(&m, old, &e), 0);
    int fd = open(old, O_WRONLY);
    assert_int_equal(pwrite(fd, "y", 1, 5000), 1);
    close(fd);
    assert_true(file_map_changed(&m));
    file_map_close(&m);
    unlink(old);
}

static void not_ours(int signal)
{
    (void)signal;
    _exit(7);
}

/* A fault outside guarded mappings goes to the previous handler. */
static void test_other_faults(void **state)
{
    (void)state;
    for (int handler = 0; handler < 2; handler++) {
        make_file(8192);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct file_map m;
            (void)signal(SIGBUS, handler ? not_ours : SIG_DFL);
            int fd = open(path, O_RDONLY);
            volatile const uint8_t *bare = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
            /* a separate process, so that this guard is its first */
            if (file_map_open(&m, path, NULL) < 0 || truncate(path, 0) < 0)
                _exit(1);
            _exit(bare[4096] == 0 ? 2 : 3);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (handler)
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        else
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
        unlink(path);
    }
}

static void test_no_regular_files(void **state)
{
    (void)state;
    struct file_map m;
    struct err e = {0};
    char fifo[64] = "/tmp/shoal-fifo-XXXXXX";
    assert_non_null(mkdtemp(fifo));
    assert_int_equal(file_map_open(&m, fifo, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "not a regular file"));
    assert_int_equal(rmdir(fifo), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    (void)alarm(60); /* opening it would wait for a writer forever */
    assert_int_equal(file_map_open(&m, fifo, &e), SHOAL_EIO);
    (void)alarm(0);
    assert_non_null(strstr(e.msg, "not a regular file"));
    unlink(fifo);
    assert_int_equal(file_map_open(&m, "/dev/zero", &e), SHOAL_EIO);
    assert_int_equal(file_map_open(&m, "/nowhere/at/all", &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_faults), /* first: it needs a process without guards */
        cmocka_unit_test(test_truncated_file),
        cmocka_unit_test(test_overwritten_and_replaced_file),
        cmocka_unit_test(test_no_regular_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
