/* cluster_start.c - see cluster_start.h. */
#include "cmd/cluster/cluster_start.h"

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

#include "cluster/trust/cert.h"
#include "cmd/cmd.h"

#define START_MS 300u

/* Starts nats-server in its folder.  The kernel ends it with us, however we end. */
static int start_nats(const struct opts_page *page, const char *folder)
{
    char conf[PATH_MAX];
    pid_t parent = getpid();
    if ((size_t)snprintf(conf, sizeof(conf), "%s/nats.conf", folder) >= sizeof(conf) ||
        access(conf, R_OK) < 0)
        return cmd_fail(page, "%s has no nats.conf: it is not the folder of a NATS server", folder);
    pid_t child = fork();
    if (child < 0)
        return cmd_fail(page, "cannot start nats-server: %s", strerror(errno));
    if (child == 0) {
        char *const argv[] = {"nats-server", "-c", "nats.conf", NULL};
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent && chdir(folder) == 0)
            execvp(argv[0], argv);
        _exit(errno == ENOENT ? 127 : 126);
    }
    struct timespec wait = {0, START_MS * 1000000l};
    nanosleep(&wait, NULL); /* long enough to see a wrong path or a port that is taken */
    int how = 0;
    if (waitpid(child, &how, WNOHANG) != child)
        return CMD_OK;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 127)
        return cmd_fail(page, "nats-server is not installed: install the package nats-server");
    return cmd_fail(page, "nats-server ended at once: see 'cd %s && nats-server -c nats.conf'",
                    folder);
}

/* Reports missing files before anything is started. */
static int check_folder(const struct opts_page *page, const char *folder)
{
    char config[PATH_MAX];
    struct cert_files files;
    struct cert_info info;
    struct err e = {0};
    if ((size_t)snprintf(config, sizeof(config), "%s/shoal.yaml", folder) >= sizeof(config) ||
        access(config, R_OK) < 0)
        return cmd_fail(page,
                        "%s has no shoal.yaml: 'shoal cluster init --member NAME=HOST' writes the "
                        "folder of a member",
                        folder);
    if (cert_files_in(&files, folder, &e) < 0 || cert_check(&info, &files, &e) < 0)
        return cmd_fail(page, "%s", e.msg);
    return CMD_OK;
}

int cluster_start(const struct opts_page *page, const char *folder, const char *nats)
{
    char *const argv[] = {"shoal", "serve", "--config", "shoal.yaml", NULL};
    int rc = check_folder(page, folder);
    if (rc == CMD_OK && nats)
        rc = start_nats(page, nats);
    if (rc != CMD_OK)
        return rc;
    if (chdir(folder) < 0)
        return cmd_fail(page, "cannot enter %s: %s", folder, strerror(errno));
    execv("/proc/self/exe", argv);
    return cmd_fail(page, "cannot start 'shoal serve': %s", strerror(errno));
}
