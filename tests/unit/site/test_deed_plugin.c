/* test_deed_plugin.c - each plug-in has its own process: this program, started with a plug-in's
 * arguments. Whatever happens there affects only the call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "site/deeds/deed_plugin.h"
#include "site/deeds/plugin_frame.h"
#include "site/deeds/plugin_host.h"

#define LONG_MS 60000u
#define MEMORY_BYTES ((size_t)512 << 20)

static struct deed_plugins *all;
static struct err why;

static int run(const char *path, const char *payload, uint32_t ms, char *out, size_t cap)
{
    struct buf b;
    why = (struct err){0};
    buf_init(&b, cap - 1);
    int rc = deed_plugins_run(all, path, payload, strlen(payload), "key-1", ms, &b, &why);
    memset(out, 0, cap);
    memcpy(out, buf_str(&b), b.len);
    buf_fini(&b);
    return rc;
}

static int setup(void **state)
{
    (void)state;
    /* permissions of a careful installation, whatever umask the build had */
    assert_int_equal(chmod(WORDS_PLUGIN, 0755), 0);
    assert_int_equal(chmod(ODD_PLUGIN, 0755), 0);
    assert_int_equal(chmod(OLD_PLUGIN, 0755), 0);
    return deed_plugins_create(&all, MEMORY_BYTES, &why);
}

static int teardown(void **state)
{
    (void)state;
    deed_plugins_destroy(all);
    return 0;
}

static void test_the_example(void **state)
{
    char out[200];
    (void)state;
    assert_int_equal(run(WORDS_PLUGIN, "turn on the light", LONG_MS, out, sizeof(out)), 0);
    assert_string_equal(out, "{\"words\": 4, \"call\": 1}");
    assert_int_equal(run(WORDS_PLUGIN, "  two\twords ", LONG_MS, out, sizeof(out)), 0);
    assert_string_equal(out, "{\"words\": 2, \"call\": 2}"); /* the same state */
    assert_int_equal(run(WORDS_PLUGIN, "  ", LONG_MS, out, sizeof(out)), SHOAL_EIO);
    assert_non_null(strstr(why.msg, "there is no word in it"));
}

static void test_what_is_no_plugin(void **state)
{
    char out[200];
    (void)state;
    assert_int_equal(run("/no/such/plugin.so", "x", LONG_MS, out, sizeof(out)), SHOAL_ENOTFOUND);
    assert_int_equal(run(OLD_PLUGIN, "x", LONG_MS, out, sizeof(out)), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(why.msg, "was built for version 2, this server has 1"));
    assert_int_equal(chmod(ODD_PLUGIN, 0757), 0);
    assert_int_equal(run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out)), SHOAL_EINVAL);
    assert_non_null(strstr(why.msg, "chmod go-w"));
    assert_int_equal(chmod(ODD_PLUGIN, 0755), 0);
    char text[] = "/tmp/shoal-plugin-XXXXXX";
    int fd = mkstemp(text);
    assert_true(fd >= 0 && write(fd, "text", 4) == 4 && close(fd) == 0);
    assert_int_equal(run(text, "x", LONG_MS, out, sizeof(out)), SHOAL_ENOTFOUND);
    unlink(text);
}

static void test_answers(void **state)
{
    char out[200], small[16];
    (void)state;
    assert_int_equal(run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out)), 0);
    assert_string_equal(out, "key-1");
    assert_int_equal(run(ODD_PLUGIN, "fail without a word", LONG_MS, out, sizeof(out)), SHOAL_EIO);
    assert_int_equal(run(ODD_PLUGIN, "long", LONG_MS, small, sizeof(small)), SHOAL_ELIMIT);
    assert_int_equal(run(ODD_PLUGIN, "fail with odd bytes", LONG_MS, out, sizeof(out)), SHOAL_EIO);
    assert_non_null(strstr(why.msg, "bad?news ?"
                                    "?!"));
    /* it checks its deadline and returns by itself, unless it is killed first */
    int rc = run(ODD_PLUGIN, "until its time is over", 20, out, sizeof(out));
    assert_true(rc == SHOAL_EDEADLINE || rc == 0);
}

static void *call_odd(void *arg)
{
    struct buf b;
    struct err e = {0};
    buf_init(&b, 100);
    for (int i = 0; i < 50; i++) {
        buf_clear(&b);
        if (deed_plugins_run(all, ODD_PLUGIN, "x", 1, arg, LONG_MS, &b, &e) < 0 ||
            strcmp(buf_str(&b), arg) != 0)
            return (void *)1;
    }
    buf_fini(&b);
    return NULL;
}

static void test_calls_side_by_side(void **state)
{
    static char keys[4][8] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_odd, keys[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *rc;
        pthread_join(threads[i], &rc);
        assert_null(rc);
    }
}

static struct deed_plugin_counts counts(void)
{
    struct deed_plugin_counts n;
    deed_plugins_count(all, &n);
    return n;
}

/* A crash affects only its own call; the next one gets a new process. */
static void test_crashes(void **state)
{
    static const char *const ways[] = {"crash", "leave", "nonsense"};
    char out[200], first[200];
    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        assert_int_equal(run(ODD_PLUGIN, "which process", LONG_MS, first, sizeof(first)), 0);
        assert_int_equal(run(ODD_PLUGIN, ways[i], LONG_MS, out, sizeof(out)), SHOAL_EIO);
        assert_non_null(strstr(why.msg, "crashed: its process"));
        assert_int_equal(run(ODD_PLUGIN, "which process", LONG_MS, out, sizeof(out)), 0);
        assert_string_not_equal(out, first);
        assert_int_equal(counts().n_crashes, i + 1);
    }
    assert_int_equal(counts().n_running, 1);
}

static void test_memory_has_a_limit(void **state)
{
    char out[200];
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers reserve terabytes, so there is no limit */
#endif
    assert_int_equal(run(ODD_PLUGIN, "fill the memory", LONG_MS, out, sizeof(out)), SHOAL_EIO);
    assert_non_null(strstr(why.msg, "crashed"));
    assert_int_equal(run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out)), 0);
}

/* A plug-in that keeps crashing is skipped for a while, and then tried again. */
static void test_a_pause_after_many_crashes(void **state)
{
    char out[200];
    (void)state;
    for (uint32_t i = 0; i < DEED_PLUGIN_FREE_CRASHES; i++)
        assert_int_equal(run(ODD_PLUGIN, "leave", LONG_MS, out, sizeof(out)), SHOAL_EIO);
    for (int rc = SHOAL_EIO; rc != SHOAL_EBUSY;) /* unless this machine slept through the pause */
        rc = run(ODD_PLUGIN, "leave", LONG_MS, out, sizeof(out));
    assert_non_null(strstr(why.msg, "times in a row: no calls for"));
    assert_int_equal(run(WORDS_PLUGIN, "others go on", LONG_MS, out, sizeof(out)), 0);
    int rc = SHOAL_EBUSY;
    for (int i = 0; i < 60000 && rc == SHOAL_EBUSY; i++) {
        usleep(1000);
        rc = run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out));
    }
    assert_int_equal(rc, 0);
}

/* A hanging plug-in is killed while others continue. */
static void test_a_plugin_that_hangs(void **state)
{
    char out[200];
    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(run(ODD_PLUGIN, "hang", 5, out, sizeof(out)), SHOAL_EDEADLINE);
    assert_non_null(strstr(why.msg, "was killed"));
    assert_int_equal(run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out)), 0);
    assert_int_equal(counts().n_killed, 5);
    assert_int_equal(counts().n_running, 1);
}

/* A process that exits between two calls costs nothing. */
static void test_a_process_that_ends_while_idle(void **state)
{
    char out[200];
    (void)state;
    assert_int_equal(run(ODD_PLUGIN, "which process", LONG_MS, out, sizeof(out)), 0);
    const pid_t pid = (pid_t)strtol(out, NULL, 10);
    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(run(ODD_PLUGIN, "x", LONG_MS, out, sizeof(out)), 0);
    assert_int_equal(counts().n_crashes, 0);
}

static void copy_file(const char *from, const char *to)
{
    static char block[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    for (size_t n; (n = fread(block, 1, sizeof(block), in)) > 0;)
        assert_int_equal(fwrite(block, 1, n, out), n);
    assert_int_equal(fclose(in) | fclose(out) | chmod(to, 0755), 0);
}

/* A replaced file is used from the next call on; plug-ins are closed at the end. */
static void test_replaced_and_closed(void **state)
{
    char dir[] = "/tmp/shoal-plugin-XXXXXX", file[64], next[64], note[64], say[96], out[200];
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/p.so", dir);
    snprintf(next, sizeof(next), "%s/q.so", dir);
    snprintf(note, sizeof(note), "%s/note", dir);
    snprintf(say, sizeof(say), "farewell %s", note);
    copy_file(ODD_PLUGIN, file);
    assert_int_equal(run(file, say, LONG_MS, out, sizeof(out)), 0);
    copy_file(WORDS_PLUGIN, next);
    assert_int_equal(rename(next, file), 0);
    assert_int_equal(run(file, "two words", LONG_MS, out, sizeof(out)), 0);
    assert_string_equal(out, "{\"words\": 2, \"call\": 1}");
    assert_int_equal(unlink(note), 0); /* the old one was closed */
    assert_int_equal(run(ODD_PLUGIN, say, LONG_MS, out, sizeof(out)), 0);
    deed_plugins_destroy(all);
    all = NULL;
    assert_int_equal(unlink(note), 0);
    assert_int_equal(unlink(file) | rmdir(dir), 0);
}

static void test_frames(void **state)
{
    uint8_t head[PLUGIN_FRAME_HEAD_BYTES];
    struct plugin_frame_answer a = {SHOAL_EBUSY, 7, 0}, got;
    (void)state;
    plugin_frame_write(head, &a);
    assert_int_equal(plugin_frame_read(&got, head, 100), 0);
    assert_int_equal(got.code, SHOAL_EIO); /* a code that plug-ins cannot return */
    assert_int_equal(got.why_bytes, 7);
    a = (struct plugin_frame_answer){0, 0, 100};
    plugin_frame_write(head, &a);
    assert_int_equal(plugin_frame_read(&got, head, 100), 0);
    assert_int_equal(plugin_frame_read(&got, head, 99), SHOAL_EFORMAT);
    head[0] ^= 1;
    assert_int_equal(plugin_frame_read(&got, head, 100), SHOAL_EFORMAT);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], PLUGIN_HOST_COMMAND) == 0)
        _exit(plugin_host_main(PLUGIN_HOST_FD, argv[2], strtoul(argv[3], NULL, 10)));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_example, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_no_plugin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_calls_side_by_side, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_plugin_that_hangs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_crashes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_has_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_pause_after_many_crashes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_process_that_ends_while_idle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced_and_closed, setup, teardown),
        cmocka_unit_test(test_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
