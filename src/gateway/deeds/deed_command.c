/* deed_command.c - see deed_command.h. */
#include "gateway/deeds/deed_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_NS 5000000L /* between two looks at a program that runs */

static int start(pid_t *pid, char *const *argv)
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
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
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

int deed_command_run(char *const *argv, uint32_t timeout_ms, struct err *e)
{
    uint64_t until = clock_ns() + timeout_ms * 1000000ull;
    struct timespec look = {0, LOOK_NS};
    pid_t pid, got;
    int status = 0, rc = start(&pid, argv);
    if (rc != 0)
        return err_set(e, SHOAL_ENOTFOUND, "cannot start %s: %s", argv[0], strerror(rc));
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        if (clock_ns() >= until) {
            kill(-pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                continue;
            return err_set(e, SHOAL_EDEADLINE, "%s took longer than %u ms", argv[0], timeout_ms);
        }
        nanosleep(&look, NULL);
    }
    if (got < 0)
        return err_set(e, SHOAL_EIO, "%s: %s", argv[0], strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, SHOAL_EIO,
                   WIFEXITED(status) ? "%s ended with %d" : "%s was ended by signal %d", argv[0],
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}
