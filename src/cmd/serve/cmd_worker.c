/* cmd_worker.c - shoal worker: a process with one model, started by the server for a model with
 * `isolation: process`.  Not in the list of commands. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/worker/sandbox.h"
#include "cluster/worker/worker_main.h"
#include "cmd/cmd.h"

cmd_fn cmd_worker;

#define CONTROL_FD 3

/* One line: "NAME: ok" or "NAME: the error". */
static void say(const char *name, bool ok)
{
    printf("%s: %s\n", name, ok ? "ok" : strerror(errno));
    fflush(stdout);
}

static bool try_open(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Enters the sandbox of a model and tries what must not work there, and what must: for tests. */
static int probe(const char *model, const char *cache)
{
    /* on the first CPU, as with `cpus: 0` */
    const struct sandbox_opts o = {
        .model = model, .cache_dir = cache, .limits = {.cpus = {1}, .nice = 1}};
    char missing[256], file[4096];
    struct err e = {0};
    struct stat st;
    cpu_set_t all;
    if (sandbox_enter(&o, missing, sizeof(missing), &e) < 0) {
        fprintf(stderr, "shoal worker: %s\n", e.msg);
        return CMD_FAILED;
    }
    printf("missing: %s\n", missing);
    say("read model", try_open(model, O_RDONLY));
    snprintf(file, sizeof(file), "%s/probe.tmp", cache);
    say("write cache", try_open(file, O_RDWR | O_CREAT | O_TRUNC) && unlink(file) == 0);
    say("stat model", stat(model, &st) == 0 && st.st_size > 0);
    say("stat cache", stat(cache, &st) == 0 && S_ISDIR(st.st_mode));
    say("access model", access(model, R_OK) == 0);
    say("fstat", fstat(1, &st) == 0);
    say("write model", try_open(model, O_WRONLY));
    say("open /etc/passwd", try_open("/etc/passwd", O_RDONLY));
    say("open /proc/self/mem", try_open("/proc/self/mem", O_RDWR));
    say("write /tmp", try_open("/tmp/shoal-probe.tmp", O_WRONLY | O_CREAT));
    say("stat /etc/passwd", stat("/etc/passwd", &st) == 0);
    say("lstat /etc/passwd", lstat("/etc/passwd", &st) == 0);
    say("access /etc/passwd", access("/etc/passwd", F_OK) == 0);
    say("statx /etc/passwd",
        syscall(SYS_statx, AT_FDCWD, "/etc/passwd", 0, STATX_SIZE, &(struct statx){0}) == 0);
    say("name /etc/passwd", try_open("/etc/passwd", O_PATH));
    say("readlink /proc/self/exe", readlink("/proc/self/exe", file, sizeof(file)) > 0);
    memset(&all, 0xff, sizeof(all));
    say("all cpus", sched_setaffinity(0, sizeof(all), &all) == 0);
    say("priority -20", setpriority(PRIO_PROCESS, 0, -20) == 0);
    say("priority 0", setpriority(PRIO_PROCESS, 0, 0) == 0);
    say("chroot", chroot("/") == 0);
    say("chown", fchown(1, 0, 0) == 0);
    say("socket", socket(AF_INET, SOCK_STREAM, 0) >= 0);
    say("unix socket", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    say("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    say("kill", kill(getppid(), 0) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    say("fork", pid > 0);
    execl("/bin/true", "true", (char *)NULL);
    say("exec", false);
    _exit(CMD_OK); /* immediately: a sanitizer's exit handler would try to start a process */
}

int cmd_worker(int argc, const char *const *argv)
{
    if (argc == 3 && strcmp(argv[0], "--probe") == 0)
        return probe(argv[1], argv[2]);
    if (argc > 0) {
        fputs("shoal worker: 'shoal serve' starts this for models with 'isolation: process'\n",
              stderr);
        return CMD_USAGE;
    }
    _exit(worker_main(CONTROL_FD) == 0 ? CMD_OK : CMD_FAILED);
}
