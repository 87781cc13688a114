/* nats_keeper.c - see nats_keeper.h. */
#include "cmd/cluster/nats_keeper.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/cmd.h"

#define START_MS 300u       /* long enough to see a wrong path or a port that is taken */
#define FIRST_PAUSE_MS 250u /* before it is started again, doubled each time */
#define MAX_PAUSE_MS 8000u
#define WELL_MS 30000u /* it ran for this long: the next pause is the first one again */
#define MISSING 127    /* exit code: nats-server is not installed */
#define MS_NS 1000000u

static void sleep_ms(uint32_t ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * (long)MS_NS};
    nanosleep(&t, NULL); /* a signal ends it */
}

/* ---- the keeper's process ---- */

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
    (void)signal;
    stopped = 1;
}

/* The server ends with the keeper, which ends with `shoal serve`. */
static pid_t start_server(void)
{
    const pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child;
    char *const argv[] = {"nats-server", "-c", "nats.conf", NULL};
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
        execvp(argv[0], argv);
    _exit(errno == ENOENT ? MISSING : 126);
}

/* Waits until it ends, or is to be stopped.  Its exit code. */
static int watch_server(pid_t child)
{
    int how = 0;
    while (waitpid(child, &how, 0) != child) {
        if (errno != EINTR)
            return 126;
        if (stopped)
            kill(child, SIGTERM);
    }
    return WIFEXITED(how) ? WEXITSTATUS(how) : 126;
}

static int keep(void)
{
    struct sigaction stop = {.sa_handler = on_stop}; /* without SA_RESTART: it ends waitpid */
    bool first = true;
    uint32_t pause_ms = FIRST_PAUSE_MS;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    while (!stopped) {
        const uint64_t began = clock_ns();
        const pid_t child = start_server();
        const int code = child > 0 ? watch_server(child) : 126;
        const uint64_t ran_ms = (clock_ns() - began) / MS_NS;
        if (stopped)
            break;
        if (code == MISSING || (first && ran_ms < START_MS))
            return code ? code : 1;
        first = false;
        if (ran_ms >= WELL_MS)
            pause_ms = FIRST_PAUSE_MS;
        fprintf(stderr, "nats-server has ended with code %d: it is started again\n", code);
        sleep_ms(pause_ms);
        pause_ms = pause_ms * 2 < MAX_PAUSE_MS ? pause_ms * 2 : MAX_PAUSE_MS;
    }
    return 0;
}

/* ---- the parent ---- */

bool nats_keeper_folder_ok(const char *folder)
{
    char conf[PATH_MAX];
    return (size_t)snprintf(conf, sizeof(conf), "%s/nats.conf", folder) < sizeof(conf) &&
           access(conf, R_OK) == 0;
}

int nats_keeper_start(const struct opts_page *page, const char *folder)
{
    const pid_t parent = getpid();
    int how = 0;
    if (!nats_keeper_folder_ok(folder))
        return cmd_fail(page, "%s has no nats.conf: it is not the folder of a NATS server", folder);
    const pid_t child = fork();
    if (child < 0)
        return cmd_fail(page, "cannot start nats-server: %s", strerror(errno));
    if (child == 0) {
        const bool ready = prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent;
        _exit(ready && chdir(folder) == 0 ? keep() : 126);
    }
    bool runs = true;
    for (uint32_t ms = 0; runs && ms < 2 * START_MS; ms += 20) {
        runs = waitpid(child, &how, WNOHANG) != child;
        sleep_ms(20);
    }
    if (runs)
        return CMD_OK;
    if (WIFEXITED(how) && WEXITSTATUS(how) == MISSING)
        return cmd_fail(page, "nats-server is not installed: install the package nats-server");
    return cmd_fail(page, "nats-server ended at once: see 'cd %s && nats-server -c nats.conf'",
                    folder);
}
