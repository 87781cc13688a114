/* duel.c - see duel.h.  Programs are started with fork and execvp, without a shell. */
#include "duel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define MAX_ANSWER_BYTES ((size_t)64 << 20)
#define QUIT_SECONDS 2.0

static uint64_t after(double seconds)
{
    return clock_ns() + (uint64_t)(seconds * 1e9);
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- start and end ---- */

int duel_init(struct duel *d, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    *d = (struct duel){.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    sigaddset(&set, SIGPIPE); /* writing to a dead program returns EPIPE instead */
    for (size_t i = 0; i < 2; i++)
        d->prog[i] = (struct duel_prog){.pid_fd = -1, .in = -1, .out = -1, .err = -1};
    if (d->signal_fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return err_set(e, SHOAL_EIO, "signals: %s", strerror(errno));
    return 0;
}

void duel_fini(struct duel *d)
{
    duel_quiet(d);
    for (size_t i = 0; i < 2; i++) {
        duel_kill(&d->prog[i]);
        buf_fini(&d->prog[i].got);
    }
    close_fd(&d->signal_fd);
}

/* In the child: resets signals, pins it to the given cores, and makes it die with its parent. */
static void become_child(const struct duel *d, bool pinned, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(127);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (pinned && sched_setaffinity(0, sizeof(d->cpus), &d->cpus) < 0)
        _exit(126);
}

/* In the child.  If exec fails, writes errno to `report`, which a successful exec closes. */
static void run_program(const struct duel_prog *p, int in, int out, int err, int report)
{
    if (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0)
        execvp(p->argv[0], (char *const *)(uintptr_t)p->argv);
    int why = errno;
    if (write(report, &why, sizeof(why)) < 0)
        _exit(126);
    _exit(127);
}

static int start(struct duel *d, struct duel_prog *p, bool pinned, struct err *e)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1}, why = 0;
    const pid_t self = getpid();
    if (pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
        pipe2(report, O_CLOEXEC) == 0) {
        p->pid = fork();
        if (p->pid == 0) {
            become_child(d, pinned, self);
            run_program(p, in[0], out[1], err[1], report[1]);
        }
        why = p->pid < 0 ? errno : 0;
    } else {
        p->pid = -1;
        why = errno;
    }
    close_fd(&in[0]);
    close_fd(&out[1]);
    close_fd(&err[1]);
    close_fd(&report[1]);
    p->in = in[1], p->out = out[0], p->err = err[0];
    p->stopped = false, p->said[0] = '\0';
    buf_fini(&p->got);
    buf_init(&p->got, MAX_ANSWER_BYTES);
    if (p->pid > 0 && read(report[0], &why, sizeof(why)) != (ssize_t)sizeof(why))
        why = 0;
    close_fd(&report[0]);
    if (p->pid > 0)
        p->pid_fd = pidfd_open(p->pid, 0);
    if (p->pid > 0 && p->pid_fd < 0 && !why)
        why = errno;
    if (p->pid < 0)
        p->pid = 0;
    if (why) {
        duel_kill(p);
        return err_set(e, SHOAL_EIO, "cannot start %s: %s", p->argv[0], strerror(why));
    }
    fcntl(p->out, F_SETFL, O_NONBLOCK);
    fcntl(p->err, F_SETFL, O_NONBLOCK);
    return 0;
}

/* Waits until the kernel reports the stop: before that, threads may still run. */
static void stop(struct duel_prog *p)
{
    siginfo_t info;
    if (!p->pid || p->stopped || kill(p->pid, SIGSTOP) < 0)
        return;
    if (waitid(P_PID, (id_t)p->pid, &info, WSTOPPED | WEXITED | WNOWAIT) == 0 &&
        info.si_code == CLD_STOPPED)
        waitid(P_PID, (id_t)p->pid, &info, WSTOPPED);
    p->stopped = true;
}

static void go_on(struct duel_prog *p)
{
    if (p->pid && p->stopped)
        kill(p->pid, SIGCONT);
    p->stopped = false;
}

static void stop_others(struct duel *d, const struct duel_prog *p)
{
    for (size_t i = 0; i < 2; i++)
        if (p != &d->prog[i])
            stop(&d->prog[i]);
}

int duel_start(struct duel *d, struct duel_prog *p, struct err *e)
{
    duel_kill(p);
    stop_others(d, p);
    return start(d, p, d->pinned, e);
}

/* Appends the program's stderr to p->said, as one line. */
static void read_errors(struct duel_prog *p)
{
    char chunk[256];
    for (ssize_t n; p->err >= 0 && (n = read(p->err, chunk, sizeof(chunk))) != 0;) {
        if (n < 0)
            return;
        size_t have = strlen(p->said), room = sizeof(p->said) - 1, k = (size_t)n;
        size_t drop = have + k > room ? have + k - room : 0;
        memmove(p->said, p->said + drop, have - drop);
        have -= drop;
        for (size_t i = 0; i < k; i++)
            p->said[have + i] = chunk[i] == '\n' || chunk[i] == '\0' ? ' ' : chunk[i];
        p->said[have + k] = '\0';
    }
    close_fd(&p->err);
}

/* Ends the program and waits; returns the status of waitpid. */
static int end(struct duel_prog *p, double grace_s)
{
    int status = 0;
    struct pollfd f = {.fd = p->pid_fd, .events = POLLIN};
    if (p->pid) {
        go_on(p);
        if (poll(&f, 1, (int)(grace_s * 1000)) <= 0)
            kill(p->pid, SIGKILL);
        waitpid(p->pid, &status, 0);
        read_errors(p);
    }
    p->pid = 0;
    close_fd(&p->pid_fd);
    close_fd(&p->in);
    close_fd(&p->out);
    close_fd(&p->err);
    return status;
}

void duel_kill(struct duel_prog *p)
{
    end(p, 0);
}

static int ended(struct duel_prog *p, struct err *e)
{
    const int status = end(p, 1.0);
    const char *said = p->said + strspn(p->said, " ");
    if (WIFSIGNALED(status))
        return err_set(e, SHOAL_EIO, "%s: killed by signal %d%s%.200s", p->name, WTERMSIG(status),
                       *said ? ": " : "", said);
    return err_set(e, SHOAL_EIO, "%s: exited with code %d%s%.200s", p->name, WEXITSTATUS(status),
                   *said ? ": " : "", said);
}

/* ---- requests and replies ---- */

/* Waits until something can be read, but no longer than `until`. */
static int wait_readable(struct duel *d, struct pollfd *f, nfds_t n, uint64_t until, struct err *e)
{
    const uint64_t last = d->until && d->until < until ? d->until : until;
    struct signalfd_siginfo info;
    int ready;
    f[n - 1] = (struct pollfd){.fd = d->signal_fd, .events = POLLIN};
    do { /* retry if the driver itself was stopped and continued */
        const uint64_t now = clock_ns(), ms = last > now ? (last - now) / 1000000 + 1 : 0;
        ready = poll(f, n, ms > INT_MAX ? INT_MAX : (int)ms);
    } while (ready < 0 && errno == EINTR);
    if (ready > 0 && f[n - 1].revents && read(d->signal_fd, &info, sizeof(info)) > 0) {
        d->signal = (int)info.ssi_signo;
        return err_set(e, SHOAL_ECANCELLED, "interrupted");
    }
    if (ready > 0)
        return 0;
    if (d->until && last == d->until)
        return err_set(e, SHOAL_ECANCELLED, "the time limit is reached");
    return err_set(e, SHOAL_EDEADLINE, "timeout");
}

int duel_sleep(struct duel *d, double seconds, struct err *e)
{
    struct pollfd f[1];
    int rc = wait_readable(d, f, 1, after(seconds), e);
    return rc == SHOAL_EDEADLINE ? 0 : rc;
}

/* Reads into p->got up to the end of a line or, if whole, to the end of the output. */
static int receive(struct duel *d, struct duel_prog *p, bool whole, uint64_t until, struct err *e)
{
    for (;;) {
        if (!whole && p->got.len && memchr(p->got.data, '\n', p->got.len))
            return 0;
        struct pollfd f[3] = {{.fd = p->out, .events = POLLIN}, {.fd = p->err, .events = POLLIN}};
        int rc = wait_readable(d, f, 3, until, e);
        if (rc < 0)
            return rc;
        if (f[1].revents)
            read_errors(p);
        char *at = f[0].revents ? buf_room(&p->got, 4096) : NULL;
        if (f[0].revents && !at)
            return err_set(e, SHOAL_ELIMIT, "%s: the reply is too long", p->name);
        ssize_t n = at ? read(p->out, at, 4096) : -1;
        if (n > 0)
            buf_used(&p->got, (size_t)n);
        else if (n == 0)
            return whole ? 0 : ended(p, e);
    }
}

static int send_line(struct duel_prog *p, cJSON *request, struct err *e)
{
    char *text = request ? cJSON_PrintUnformatted(request) : NULL;
    struct buf b;
    buf_init(&b, MAX_ANSWER_BYTES);
    buf_puts(&b, text ? text : "");
    buf_putc(&b, '\n');
    int rc = text ? b.rc : SHOAL_ENOMEM;
    if (rc < 0)
        err_set(e, rc, "%s: out of memory", p->name);
    else if (write(p->in, b.data, b.len) != (ssize_t)b.len) /* a line fits into a pipe */
        rc = ended(p, e);
    cJSON_free(text);
    buf_fini(&b);
    return rc;
}

/* Parses and removes the first line of p->got. */
static int parse_line(struct duel_prog *p, const char *op, cJSON **reply, struct err *e)
{
    const size_t n = (size_t)((char *)memchr(p->got.data, '\n', p->got.len) - p->got.data) + 1;
    cJSON *v = cJSON_ParseWithLength(p->got.data, n);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(v, "error");
    int rc = 0;
    if (!cJSON_IsObject(v))
        rc = err_set(e, SHOAL_EFORMAT, "%s: %s: the reply is not JSON: %.80s", p->name, op,
                     p->got.data);
    else if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(v, "ok")))
        rc = err_set(e, SHOAL_EINVAL, "%s: %s: %s", p->name, op,
                     cJSON_IsString(error) ? error->valuestring : "error without a message");
    memmove(p->got.data, p->got.data + n, p->got.len - n + 1);
    p->got.len -= n;
    if (rc == 0 && reply)
        *reply = v;
    else
        cJSON_Delete(v);
    return rc;
}

int duel_ask(struct duel *d, struct duel_prog *p, cJSON *request, double limit_s, cJSON **reply,
             struct err *e)
{
    char op[32];
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "op"));
    snprintf(op, sizeof(op), "%s", name ? name : "?");
    if (reply)
        *reply = NULL;
    stop_others(d, p);
    go_on(p);
    int rc = p->pid ? 0 : err_set(e, SHOAL_EIO, "%s: not running", p->name);
    if (rc == 0)
        rc = send_line(p, request, e);
    cJSON_Delete(request);
    if (rc == 0)
        rc = receive(d, p, false, after(limit_s), e);
    if (rc == SHOAL_EDEADLINE)
        err_set(e, rc, "%s: no answer to %s in %.3g s", p->name, op, limit_s);
    if (rc == 0)
        rc = parse_line(p, op, reply, e);
    if (rc < 0 && rc != SHOAL_EINVAL) /* a late reply would be taken for that of the next request */
        duel_kill(p);
    return rc;
}

void duel_quit(struct duel *d, struct duel_prog *p)
{
    struct err e = {0};
    if (p->pid && !d->signal) {
        cJSON *quit = cJSON_CreateObject();
        cJSON_AddStringToObject(quit, "op", "quit");
        if (duel_ask(d, p, quit, QUIT_SECONDS, NULL, &e) == 0)
            end(p, QUIT_SECONDS);
    }
    duel_kill(p);
}

double duel_cpu_ms(const struct duel_prog *p)
{
    char path[320];
    double ns = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
    DIR *dir = opendir(path);
    for (const struct dirent *t; dir && (t = readdir(dir));) {
        char text[128] = "";
        snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)p->pid, t->d_name);
        FILE *f = t->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (f && fgets(text, sizeof(text), f))
            ns += strtod(text, NULL);
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return ns * 1e-6;
}

/* ---- busy processes and helper programs ---- */

static void spin(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

int duel_busy(struct duel *d, size_t n, struct err *e)
{
    const pid_t self = getpid();
    while (d->n_busy < n && d->n_busy < DUEL_MAX_BUSY) {
        pid_t pid = fork();
        if (pid < 0) {
            duel_quiet(d);
            return err_set(e, SHOAL_EIO, "cannot start a busy process: %s", strerror(errno));
        }
        if (pid == 0) {
            become_child(d, d->pinned, self);
            close_range(0, ~0u, 0); /* it must not hold the programs' pipes open */
            spin();
        }
        d->busy[d->n_busy++] = pid;
    }
    return n ? duel_sleep(d, 0.3, e) : 0;
}

void duel_quiet(struct duel *d)
{
    for (size_t i = 0; i < d->n_busy; i++) {
        kill(d->busy[i], SIGKILL);
        waitpid(d->busy[i], NULL, 0);
    }
    d->n_busy = 0;
}

int duel_output(struct duel *d, const char *const *argv, bool pinned, double limit_s,
                struct buf *out, struct err *e)
{
    struct duel_prog p = {.name = argv[0], .pid_fd = -1, .in = -1, .out = -1, .err = -1};
    for (size_t i = 0; i + 1 < DUEL_MAX_ARGS && argv[i]; i++)
        p.argv[i] = argv[i];
    stop_others(d, &p);
    int rc = start(d, &p, pinned && d->pinned, e), status = 0;
    close_fd(&p.in);
    if (rc == 0)
        rc = receive(d, &p, true, after(limit_s), e);
    if (rc == SHOAL_EDEADLINE)
        err_set(e, rc, "%s: not done after %.3g s", p.name, limit_s);
    if (rc == 0)
        status = end(&p, QUIT_SECONDS);
    if (rc == 0 && status != 0)
        rc = err_set(e, SHOAL_EIO, "%s: failed (%s %d). %.200s", p.name,
                     WIFSIGNALED(status) ? "signal" : "code",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), p.said);
    if (rc == 0 && out)
        buf_put(out, p.got.data, p.got.len);
    duel_kill(&p);
    buf_fini(&p.got);
    return rc;
}
