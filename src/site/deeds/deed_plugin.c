/* deed_plugin.c - see deed_plugin.h. */
#include "site/deeds/deed_plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "site/deeds/plugin_frame.h"
#include "site/deeds/plugin_host.h"

#define FIRST_WAIT_NS 200000000ull /* initial backoff of a crashing plug-in */
#define MAX_WAIT_NS 30000000000ull
#define CLOSE_NS 1000000000ull /* for `close` of a plug-in, when the server ends */
#define LOOK_NS 2000000L

/* A process of a plug-in.  While a call uses it, it is in no list. */
struct process {
    struct process *next;
    pid_t pid;
    int fd;
    struct stat file; /* when it was started */
};

struct plugin {
    struct plugin *next;
    char *path;
    struct process *idle; /* used last first */
    uint32_t n_idle;
    uint32_t n_crashes; /* consecutive crashes */
    uint64_t not_before_ns;
};

struct deed_plugins {
    pthread_mutex_t lock; /* guards all below */
    struct plugin *list;
    struct deed_plugin_counts counts;
    size_t memory_bytes;
};

/* ---- processes ---- */

/* Anyone who may write to the file could run code with the rights of the server. */
static int check_file(struct stat *st, const char *path, struct err *e)
{
    if (stat(path, st) < 0)
        return err_set(e, SHOAL_ENOTFOUND, "cannot open the plug-in %.100s: %s", path,
                       strerror(errno));
    if (!S_ISREG(st->st_mode) || (st->st_mode & (S_IWGRP | S_IWOTH)) ||
        (st->st_uid != 0 && st->st_uid != geteuid()))
        return err_set(e, SHOAL_EINVAL,
                       "the plug-in %.80s must be a file that only root or the server's user may "
                       "write: chmod go-w",
                       path);
    return 0;
}

static int spawn(pid_t *pid, int fd, const char *path, size_t memory_bytes)
{
    char limit[24];
    char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    char *const argv[] = {"shoal", PLUGIN_HOST_COMMAND, (char *)(uintptr_t)path, limit, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    snprintf(limit, sizeof(limit), "%zu", memory_bytes);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fd, PLUGIN_HOST_FD);
    posix_spawn_file_actions_addclosefrom_np(&files, PLUGIN_HOST_FD + 1);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    /* its own group, so that its children are killed with it */
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    int rc = posix_spawn(pid, "/proc/self/exe", &files, &attr, argv, environment);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static int start_process(struct deed_plugins *d, const char *path, const struct stat *file,
                         struct process **out, struct err *e)
{
    int pair[2];
    struct process *p = mem_zalloc(sizeof(*p));
    *out = NULL;
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a plug-in");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        mem_free(p);
        return err_set(e, SHOAL_EIO, "a socket for the plug-in %.80s: %s", path, strerror(errno));
    }
    int rc = spawn(&p->pid, pair[1], path, d->memory_bytes);
    close(pair[1]);
    if (rc != 0) {
        close(pair[0]);
        mem_free(p);
        return err_set(e, SHOAL_EIO, "cannot start a process for the plug-in %.80s: %s", path,
                       strerror(rc));
    }
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    p->fd = pair[0];
    p->file = *file;
    pthread_mutex_lock(&d->lock);
    d->counts.n_starts++;
    d->counts.n_running++;
    pthread_mutex_unlock(&d->lock);
    *out = p;
    return 0;
}

static int reap(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* Frees it, without the lock.  Returns how it ended. */
static int end_process(struct deed_plugins *d, struct process *p)
{
    kill(-p->pid, SIGKILL);
    int status = reap(p->pid);
    close(p->fd);
    mem_free(p);
    pthread_mutex_lock(&d->lock);
    d->counts.n_running--;
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* For a moment; it stays to be reaped. */
static void await_end(const struct process *p)
{
    const uint64_t until = clock_ns() + CLOSE_NS;
    const struct timespec look = {0, LOOK_NS};
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    while (clock_ns() < until &&
           waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
        nanosleep(&look, NULL);
}

/* Lets it close its plug-in. */
static void close_process(struct deed_plugins *d, struct process *p)
{
    shutdown(p->fd, SHUT_RDWR);
    await_end(p);
    (void)end_process(d, p);
}

/* An idle process must not send anything. */
static bool is_sound(const struct process *p)
{
    char byte;
    return recv(p->fd, &byte, 1, MSG_PEEK) < 0 && (errno == EAGAIN || errno == EINTR);
}

/* ---- which process ---- */

/* The lock is held. */
static struct plugin *find(struct deed_plugins *d, const char *path)
{
    struct plugin *p = d->list;
    while (p && strcmp(p->path, path) != 0)
        p = p->next;
    if (p)
        return p;
    p = mem_zalloc(sizeof(*p));
    if (p && !(p->path = mem_strdup(path))) {
        mem_free(p);
        return NULL;
    }
    if (p) {
        p->next = d->list;
        d->list = p;
    }
    return p;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The lock is held. Moves unusable ones into `bad`. */
static struct process *take_idle(struct plugin *p, const struct stat *file, struct process **bad)
{
    struct process *good = NULL;
    while (p->idle && !good) {
        struct process *x = p->idle;
        p->idle = x->next;
        p->n_idle--;
        if (same_file(&x->file, file) && is_sound(x)) {
            good = x;
        } else {
            x->next = *bad;
            *bad = x;
        }
    }
    return good;
}

/* An idle process, or a new one. */
static int take_process(struct deed_plugins *d, const char *path, struct plugin **plugin,
                        struct process **out, struct err *e)
{
    struct stat file;
    struct process *bad = NULL;
    uint64_t now = clock_ns(), wait = 0;
    uint32_t n_crashes = 0;
    int rc = check_file(&file, path, e);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&d->lock);
    struct plugin *p = *plugin = find(d, path);
    *out = p ? take_idle(p, &file, &bad) : NULL;
    if (p && !*out && p->not_before_ns > now) {
        wait = p->not_before_ns - now;
        n_crashes = p->n_crashes;
    }
    pthread_mutex_unlock(&d->lock);
    while (bad) { /* its file was replaced, or it ended by itself */
        struct process *next = bad->next;
        close_process(d, bad);
        bad = next;
    }
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a plug-in");
    if (*out)
        return 0;
    if (wait > 0)
        return err_set(e, SHOAL_EBUSY,
                       "the plug-in %.80s crashed %u times in a row: no calls for %llu ms", path,
                       n_crashes, (unsigned long long)(wait / 1000000u) + 1);
    return start_process(d, path, &file, out, e);
}

/* It answered. */
static void give_back(struct deed_plugins *d, struct plugin *p, struct process *process)
{
    pthread_mutex_lock(&d->lock);
    const bool room = p->n_idle < DEED_PLUGIN_MAX_IDLE;
    p->n_crashes = 0;
    p->not_before_ns = 0;
    if (room) {
        process->next = p->idle;
        p->idle = process;
        p->n_idle++;
    }
    pthread_mutex_unlock(&d->lock);
    if (!room)
        close_process(d, process);
}

static uint64_t wait_after(uint32_t n_crashes)
{
    if (n_crashes < DEED_PLUGIN_FREE_CRASHES)
        return 0;
    const uint32_t more = n_crashes - DEED_PLUGIN_FREE_CRASHES;
    const uint64_t wait = FIRST_WAIT_NS << (more < 16 ? more : 16);
    return wait < MAX_WAIT_NS ? wait : MAX_WAIT_NS;
}

/* It ended during a call, or sent an invalid answer. */
static int report_crash(struct deed_plugins *d, struct plugin *p, struct process *process,
                        const char *what, struct err *e)
{
    char how[64];
    if (!what) /* the socket is closed: it has ended, or is about to */
        await_end(process);
    const int status = end_process(d, process);
    snprintf(how, sizeof(how), WIFSIGNALED(status) ? "was killed by signal %d" : "ended with %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    what = what ? what : how;
    pthread_mutex_lock(&d->lock);
    d->counts.n_crashes++;
    const uint64_t wait = wait_after(++p->n_crashes);
    p->not_before_ns = clock_ns() + wait;
    pthread_mutex_unlock(&d->lock);
    log_error("plugin", "path=%s: its process %s in a call; the next one is started in %llu ms",
              p->path, what, (unsigned long long)(wait / 1000000u));
    return err_set(e, SHOAL_EIO, "the plug-in %.80s crashed: its process %s", p->path, what);
}

static int report_late(struct deed_plugins *d, struct plugin *p, struct process *process,
                       struct err *e)
{
    (void)end_process(d, process);
    pthread_mutex_lock(&d->lock);
    d->counts.n_killed++;
    pthread_mutex_unlock(&d->lock);
    log_warn("plugin", "path=%s did not answer in time: its process was killed", p->path);
    return err_set(e, SHOAL_EDEADLINE, "the plug-in %.80s did not answer in time and was killed",
                   p->path);
}

/* ---- a call ---- */

enum talk { TALK_OK, TALK_LATE, TALK_CLOSED };

static enum talk wait_for(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        const uint64_t now = clock_ns();
        const uint64_t ms = deadline_ns > now ? (deadline_ns - now + 999999u) / 1000000u : 0;
        int n = poll(&p, 1, ms > 3600000u ? 3600000 : (int)ms);
        if (n > 0)
            return TALK_OK;
        if (n == 0 && clock_ns() >= deadline_ns)
            return TALK_LATE;
        if (n < 0 && errno != EINTR)
            return TALK_CLOSED;
    }
}

static enum talk say(int fd, const void *from, size_t n, uint64_t deadline_ns)
{
    for (const char *at = from; n > 0;) {
        ssize_t put = send(fd, at, n, MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            return TALK_CLOSED;
        if (put < 0) {
            enum talk t = wait_for(fd, POLLOUT, deadline_ns);
            if (t != TALK_OK)
                return t;
            continue;
        }
        at += put;
        n -= (size_t)put;
    }
    return TALK_OK;
}

static enum talk hear(int fd, void *to, size_t n, uint64_t deadline_ns)
{
    for (char *at = to; n > 0;) {
        ssize_t got = recv(fd, at, n, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return TALK_CLOSED;
        if (got < 0) {
            enum talk t = wait_for(fd, POLLIN, deadline_ns);
            if (t != TALK_OK)
                return t;
            continue;
        }
        at += got;
        n -= (size_t)got;
    }
    return TALK_OK;
}

static enum talk hear_text(int fd, struct buf *out, size_t n, uint64_t deadline_ns)
{
    char block[16384];
    enum talk t = TALK_OK;
    for (size_t part; t == TALK_OK && n > 0; n -= part) {
        part = n < sizeof(block) ? n : sizeof(block);
        t = hear(fd, block, part, deadline_ns);
        if (t == TALK_OK)
            buf_put(out, block, part);
    }
    return t;
}

struct heard {
    struct plugin_frame_answer answer;
    char why[PLUGIN_FRAME_WHY_BYTES];
    bool nonsense;
};

static enum talk hear_answer(struct heard *h, int fd, struct buf *out, uint64_t deadline_ns)
{
    uint8_t head[PLUGIN_FRAME_HEAD_BYTES];
    enum talk t = hear(fd, head, sizeof(head), deadline_ns);
    if (t != TALK_OK)
        return t;
    if (plugin_frame_read(&h->answer, head, out->max > out->len ? out->max - out->len : 0) < 0) {
        h->nonsense = true;
        return TALK_OK;
    }
    t = hear(fd, h->why, h->answer.why_bytes, deadline_ns);
    h->why[h->answer.why_bytes] = '\0';
    plugin_frame_clean(h->why, h->answer.why_bytes);
    return t == TALK_OK ? hear_text(fd, out, h->answer.text_bytes, deadline_ns) : t;
}

int deed_plugins_run(struct deed_plugins *d, const char *path, const char *payload,
                     size_t payload_bytes, const char *key, uint32_t timeout_ms, struct buf *out,
                     struct err *e)
{
    const uint64_t deadline_ns = clock_ns() + timeout_ms * 1000000ull;
    struct plugin *p = NULL;
    struct process *process = NULL;
    struct heard h = {.nonsense = false};
    if (payload_bytes > PLUGIN_FRAME_MAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "%zu bytes are too many for a plug-in", payload_bytes);
    int rc = take_process(d, path, &p, &process, e);
    if (rc < 0)
        return rc;
    struct plugin_frame_question q = {.payload_bytes = (uint32_t)payload_bytes,
                                      .timeout_ms = timeout_ms,
                                      .max_answer_bytes =
                                          out->max > out->len ? out->max - out->len : 0};
    snprintf(q.key, sizeof(q.key), "%s", key);
    enum talk t = say(process->fd, &q, sizeof(q), deadline_ns);
    if (t == TALK_OK)
        t = say(process->fd, payload, payload_bytes, deadline_ns);
    if (t == TALK_OK)
        t = hear_answer(&h, process->fd, out, deadline_ns);
    if (t == TALK_LATE)
        return report_late(d, p, process, e);
    if (t == TALK_CLOSED || h.nonsense)
        return report_crash(d, p, process, h.nonsense ? "sent an invalid answer" : NULL, e);
    rc = h.answer.code;
    if (rc == SHOAL_ENOTFOUND || rc == SHOAL_EUNSUPPORTED)
        (void)end_process(d, process); /* a replaced file is tried again */
    else
        give_back(d, p, process);
    if (rc == SHOAL_ELIMIT)
        return err_set(e, rc, "the answer of the plug-in %.80s is too long", path);
    if (rc < 0)
        return err_set(e, rc, "the plug-in %.60s failed: %s", path,
                       h.why[0] ? h.why : "no reason given");
    return out->rc;
}

/* ---- life ---- */

int deed_plugins_create(struct deed_plugins **out, size_t memory_bytes, struct err *e)
{
    struct deed_plugins *d = mem_zalloc(sizeof(*d));
    *out = d;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "out of memory for plug-ins");
    d->memory_bytes = memory_bytes;
    pthread_mutex_init(&d->lock, NULL);
    return 0;
}

void deed_plugins_destroy(struct deed_plugins *d)
{
    if (!d)
        return;
    while (d->list) {
        struct plugin *p = d->list;
        d->list = p->next;
        while (p->idle) {
            struct process *process = p->idle;
            p->idle = process->next;
            close_process(d, process);
        }
        mem_free(p->path);
        mem_free(p);
    }
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

void deed_plugins_count(struct deed_plugins *d, struct deed_plugin_counts *out)
{
    pthread_mutex_lock(&d->lock);
    *out = d->counts;
    pthread_mutex_unlock(&d->lock);
}
