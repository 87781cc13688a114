/* deed_command.c - see deed_command.h. */
#include "site/deeds/deed_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

#define LOOK_NS 5000000L /* between two looks at a program that runs */

/* out: the descriptor that becomes its output; -1: /dev/null. */
static int start(pid_t *pid, char *const *argv, int out)
{
    char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (out < 0)
        posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    else
        posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    int rc = posix_spawn(pid, argv[0], &files, &attr, argv, environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return rc;
}

/* Reads the output so far. fd -1: nothing is read. */
static int take_output(int fd, struct buf *out)
{
    char block[4096];
    ssize_t n;
    while (fd >= 0 && (n = read(fd, block, sizeof(block))) > 0)
        buf_put(out, block, (size_t)n);
    return fd >= 0 ? out->rc : 0;
}

static int end_early(pid_t pid)
{
    int status = 0;
    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static int watch(pid_t pid, int fd, struct buf *out, const char *name, uint32_t timeout_ms,
                 struct err *e)
{
    uint64_t until = clock_ns() + timeout_ms * 1000000ull;
    struct timespec look = {0, LOOK_NS};
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        if (take_output(fd, out) < 0) {
            (void)end_early(pid);
            return err_set(e, out->rc, "%s writes too much", name);
        }
        if (clock_ns() >= until) {
            (void)end_early(pid);
            return err_set(e, SHOAL_EDEADLINE, "%s took longer than %u ms", name, timeout_ms);
        }
        nanosleep(&look, NULL);
    }
    if (got < 0)
        return err_set(e, SHOAL_EIO, "%s: %s", name, strerror(errno));
    if (take_output(fd, out) < 0)
        return err_set(e, out->rc, "%s writes too much", name);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, SHOAL_EIO,
                   WIFEXITED(status) ? "%s ended with %d" : "%s was killed by signal %d", name,
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int deed_command_read(char *const *argv, uint32_t timeout_ms, struct buf *out, struct err *e)
{
    int pipes[2] = {-1, -1};
    pid_t pid;
    if (out && pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_set(e, SHOAL_EIO, "a pipe for %s: %s", argv[0], strerror(errno));
    if (out) /* the program writes as it is used to */
        (void)fcntl(pipes[1], F_SETFL, 0);
    int rc = start(&pid, argv, pipes[1]);
    if (pipes[1] >= 0)
        close(pipes[1]);
    rc = rc != 0 ? err_set(e, SHOAL_ENOTFOUND, "cannot start %s: %s", argv[0], strerror(rc))
                 : watch(pid, pipes[0], out, argv[0], timeout_ms, e);
    if (pipes[0] >= 0)
        close(pipes[0]);
    return rc;
}

int deed_command_run(char *const *argv, uint32_t timeout_ms, struct err *e)
{
    return deed_command_read(argv, timeout_ms, NULL, e);
}
