/* test_sandbox.c - what a confined process can still do, and what it cannot. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/worker/sandbox.h"

#define MODEL SHOAL_TEST_DATA "/refs/qwen3.gguf"
#define OTHER SHOAL_TEST_DATA "/refs/qwen2.gguf"

static char dir[64], cache[80], onnx[80], beside[80], folder[80], link_to[96];

static void touch(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-sandbox-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(cache, sizeof(cache), "%s/cache", dir);
    snprintf(onnx, sizeof(onnx), "%s/m.onnx", dir);
    snprintf(beside, sizeof(beside), "%s/tokenizer.json", dir);
    snprintf(folder, sizeof(folder), "%s/folder", dir);
    snprintf(link_to, sizeof(link_to), "%s/weights", folder);
    assert_int_equal(mkdir(cache, 0700) + mkdir(folder, 0700), 0);
    touch(onnx);
    touch(beside);
    assert_int_equal(symlink(OTHER, link_to), 0);
    return 0;
}

static int remove_dir(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* Runs fn in a process of its own behind the sandbox; returns its result, or -1. */
static int confined(const struct sandbox_opts *o, int (*fn)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char missing[256];
        struct err e;
        if (sandbox_enter(o, missing, sizeof(missing), &e) < 0)
            _exit(99);
        _exit(fn());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool refused(long rc)
{
    return rc < 0 && (errno == EPERM || errno == EACCES);
}

/* 0, or the number of the first line that is not as it should be. */
#define NEED(x)                                                                                    \
    do {                                                                                           \
        if (!(x))                                                                                  \
            return __LINE__ % 90 + 1;                                                              \
    } while (0)

static void *no_thread(void *p)
{
    return p;
}

static int try_calls(void)
{
    pthread_t t;
    struct rlimit r;
    struct timespec now;
    void *p;
    NEED(refused(socket(AF_INET, SOCK_STREAM, 0)));
    NEED(refused(socket(AF_UNIX, SOCK_STREAM, 0)));
    NEED(refused(fork()));
    NEED(refused(kill(getppid(), 0)));
    NEED(refused(execl("/bin/true", "true", (char *)NULL)));
    NEED(refused(setuid(getuid())));
    NEED(refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)));
    NEED(prctl(PR_SET_NAME, "confined", 0, 0, 0) == 0);
    NEED(refused(fcntl(2, F_SETFL, 0)));
    NEED(fcntl(2, F_GETFL) >= 0);
    NEED(getrlimit(RLIMIT_CORE, &r) == 0 && r.rlim_cur == 0 && r.rlim_max == 0);
    NEED(refused(setrlimit(RLIMIT_CORE, &r)));
    NEED(getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur == 512 && r.rlim_max == 512);
#ifndef __SANITIZE_ADDRESS__ /* which needs more */
    NEED(getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur == (rlim_t)1 << 30);
    p = mmap(NULL, (size_t)2 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(p == MAP_FAILED);
#endif
    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(p != MAP_FAILED);
    NEED(pthread_create(&t, NULL, no_thread, NULL) == 0 && pthread_join(t, NULL) == 0);
    NEED(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    NEED(getpriority(PRIO_PROCESS, 0) == 3);
    return 0;
}

static int try_cpus(void)
{
    cpu_set_t set;
    NEED(sched_getaffinity(0, sizeof(set), &set) == 0);
    NEED(CPU_COUNT(&set) == 1 && CPU_ISSET(0, &set));
    return 0;
}

static bool can_read(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool can_write(const char *in, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", in, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = write(fd, "x", 1) == 1;
    close(fd);
    return ok && unlink(path) == 0;
}

static int try_files(void)
{
    NEED(can_read(MODEL) && !can_read(OTHER) && !can_read("/etc/passwd") && !can_read(beside));
    NEED(can_read("/proc/meminfo") && can_read("/proc/cpuinfo"));
    NEED(can_read("/sys/devices/system/cpu/online") && !can_read("/proc/self/maps"));
    NEED(can_write(cache, "tiles") && !can_write(dir, "tiles"));
    NEED(open(MODEL, O_RDWR | O_CLOEXEC) < 0);
    return 0;
}

static int try_no_cache(void)
{
    NEED(can_read(MODEL) && !can_write(cache, "tiles"));
    return 0;
}

static int try_onnx(void)
{
    NEED(can_read(onnx) && can_read(beside) && !can_read(MODEL) && !can_write(dir, "x"));
    return 0;
}

static int try_folder(void)
{
    NEED(can_read(link_to) && !can_read(MODEL) && !can_read(beside) && !can_write(folder, "x"));
    return 0;
}

static void test_calls(void **state)
{
    struct sandbox_opts o = {.model = MODEL, .limits = {.nice = 3}};
    const struct sandbox_opts one = {.model = MODEL, .limits = {.cpus = {1}}};
    (void)state;
    if (!sandbox_support().seccomp)
        skip();
#ifndef __SANITIZE_ADDRESS__
    o.limits.memory_bytes = (size_t)1 << 30;
#endif
    assert_int_equal(confined(&o, try_calls), 0);
    assert_int_equal(confined(&one, try_cpus), 0);
}

static void test_files(void **state)
{
    const struct sandbox_opts o = {.model = MODEL, .cache_dir = cache};
    const struct sandbox_opts bare = {.model = MODEL};
    const struct sandbox_opts an_onnx = {.model = onnx};
    const struct sandbox_opts a_folder = {.model = folder};
    (void)state;
    if (sandbox_support().landlock_abi < 3)
        skip();
    assert_int_equal(confined(&o, try_files), 0);
    assert_int_equal(confined(&bare, try_no_cache), 0);
    assert_int_equal(confined(&an_onnx, try_onnx), 0);
    assert_int_equal(confined(&a_folder, try_folder), 0);
}

/* What is missing is said, and settings that cannot be applied are an error. */
static void test_what_is_missing(void **state)
{
    struct sandbox_opts o = {.model = MODEL};
    int status = 0;
    (void)state;
    const struct sandbox_support has = sandbox_support();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char missing[256] = "x";
        struct err e;
        int rc = sandbox_enter(&o, missing, sizeof(missing), &e);
        bool says_files = strstr(missing, "Landlock") != NULL;
        bool says_calls = strstr(missing, "seccomp") != NULL;
        _exit(rc != 0 ? 1 : says_files != (has.landlock_abi < 3) ? 2 : says_calls == has.seccomp);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
    o.limits.cpus[15] = (uint64_t)1 << 63; /* no machine has that many */
    assert_int_equal(confined(&o, try_cpus), 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_files, make_dir, remove_dir),
        cmocka_unit_test(test_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
