/* workers.c - see workers.h. */
#include "cluster/worker/workers.h"

#include <errno.h>
#include <stdatomic.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/cond.h"
#include "base/thread/thread.h"
#include "cluster/worker/ring.h"
#include "cluster/worker/worker_pb.h"

#define MS_NS 1000000u
#define DEFAULT_SILENT_MS 5000u
#define DEFAULT_RING_BYTES ((size_t)256 << 10)
#define TICK_MS 100
#define MAX_WORKERS 256u
#define TAIL_BYTES 512u
#define LINE_BYTES 1024u
#define CONTROL_FD 3 /* in the worker */
#define MAX_VARIABLES 8u

extern char **environ;

struct conn_node {
    struct conn_node *next;
    struct workers_conn conn;
};

struct port { /* one per event loop */
    struct executor *executor;
    struct executor_task *task;
    struct conn_node *first, **end; /* connections to be picked up */
    bool posted;
};

struct worker {
    struct worker *next;
    uint64_t serial, family;
    char name[128]; /* of the model */
    pid_t pid;
    int control, err_fd; /* -1: closed */
    uint64_t heard_ns;
    enum registry_state state; /* as it said last */
    bool gone;                 /* ended and reaped: why has the reason */
    bool wanted;               /* open waits for it */
    bool closing;              /* closed by us: not an accident */
    int code;
    struct registry_apart_info info;
    char error[256], why[400];
    char tail[TAIL_BYTES]; /* the end of its stderr output */
    size_t n_tail;
    struct conn_node *conns[WORKERS_MAX_LOOPS]; /* until it is ready */
};

struct workers {
    struct registry_apart apart;
    struct workers_opts opts;
    uint64_t silent_ns;
    struct registry *registry;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct worker *list;
    struct port ports[WORKERS_MAX_LOOPS];
    uint32_t n_ports;
    int wake_fd;
    bool stop, said_missing;
    _Atomic bool leaving; /* see workers_release */
    pthread_t thread;
    bool has_thread;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void workers_conn_close(struct workers_conn *c)
{
    close_fd(&c->sock);
    close_fd(&c->ring_fd);
    close_fd(&c->wake_fd);
}

static void conn_free(struct conn_node *c)
{
    if (!c)
        return;
    workers_conn_close(&c->conn);
    mem_free(c);
}

static void worker_free(struct worker *k)
{
    for (uint32_t i = 0; i < WORKERS_MAX_LOOPS; i++)
        conn_free(k->conns[i]);
    close_fd(&k->control);
    close_fd(&k->err_fd);
    mem_free(k);
}

static void wake(struct workers *w)
{
    const uint64_t one = 1;
    (void)!write(w->wake_fd, &one, sizeof(one)); /* nonblocking: full is awake */
}

/* ---- starting ---- */

/* Sends one message with descriptors. */
static int send_fds(int to, const void *p, size_t n, const int *fds, uint32_t n_fds)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } c;
    struct iovec io = {(void *)(uintptr_t)p, n};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
    memset(&c, 0, sizeof(c));
    if (n_fds > 0) {
        c.head.cmsg_level = SOL_SOCKET;
        c.head.cmsg_type = SCM_RIGHTS;
        c.head.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(&c.head), fds, n_fds * sizeof(int));
        m.msg_control = c.room;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    }
    return sendmsg(to, &m, MSG_NOSIGNAL) == (ssize_t)n ? 0 : SHOAL_EIO;
}

static int system_error(struct err *e, const char *what)
{
    return err_set(e, SHOAL_EIO, "cannot start a worker: %s: %s", what, strerror(errno));
}

/* A connection for loop i: our end is kept until the worker is ready, the other end is sent. */
static int make_link(struct workers *w, struct worker *k, uint32_t i, struct err *e)
{
    struct conn_node *c = mem_zalloc(sizeof(*c));
    int pair[2] = {-1, -1};
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a worker");
    c->conn = (struct workers_conn){
        .serial = k->serial, .family = k->family, .sock = -1, .ring_fd = -1, .wake_fd = -1};
    snprintf(c->conn.name, sizeof(c->conn.name), "%s", k->name);
    k->conns[i] = c;
    int rc = ring_memory(&c->conn.ring_fd, w->opts.ring_bytes, e);
    if (rc == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        rc = system_error(e, "socketpair");
    c->conn.sock = pair[0];
    if (rc == 0 && (c->conn.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        rc = system_error(e, "eventfd");
    const int fds[] = {pair[1], c->conn.ring_fd, c->conn.wake_fd};
    if (rc == 0 && send_fds(k->control, "L", 1, fds, 3) < 0)
        rc = system_error(e, "sendmsg");
    close_fd(&pair[1]);
    return rc;
}

/* What a worker needs of the environment: where ONNX Runtime is, and how sanitizers report. The
 * rest, such as keys and passwords, is the server's. */
static void put_environment(char *out[MAX_VARIABLES + 1])
{
    static const char *const kept[MAX_VARIABLES] = {
        "HOME",         "XDG_DATA_HOME", "SHOAL_ONNXRUNTIME", "LD_LIBRARY_PATH",
        "ASAN_OPTIONS", "LSAN_OPTIONS",  "TSAN_OPTIONS",      "UBSAN_OPTIONS"};
    uint32_t n = 0;
    for (char **v = environ; *v; v++)
        for (size_t i = 0; i < MAX_VARIABLES; i++) {
            const size_t k = strlen(kept[i]);
            if (strncmp(*v, kept[i], k) == 0 && (*v)[k] == '=' && n < MAX_VARIABLES)
                out[n++] = *v;
        }
    out[n] = NULL;
}

static int spawn(struct workers *w, struct worker *k, int control, int err_fd, struct err *e)
{
    char *environment[MAX_VARIABLES + 1];
    char *const argv[] = {(char *)(uintptr_t) "shoal", (char *)(uintptr_t) "worker", NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none, all;
    put_environment(environment);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&fa);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    int rc = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&fa, err_fd, 2);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&fa, control, CONTROL_FD);
    if (rc == 0)
        rc = posix_spawn(&k->pid, w->opts.program ? w->opts.program : "/proc/self/exe", &fa, &attr,
                         argv, environment);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    return rc == 0 ? 0 : err_set(e, SHOAL_EIO, "cannot start a worker: %s", strerror(rc));
}

/* Descriptors above those that the worker gets: dup2 onto itself would keep CLOEXEC. */
static int lift(int fd)
{
    int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, CONTROL_FD + 1) : -1;
    if (fd >= 0)
        close(fd);
    return high;
}

static int send_start(struct workers *w, struct worker *k, const struct worker_start *s,
                      struct err *e)
{
    struct buf b;
    buf_init(&b, WORKER_PB_MAX_BYTES);
    int rc = worker_pb_put_start(&b, s);
    if (rc < 0)
        rc = err_set(e, rc, "the start of a worker is too large");
    else if (send_fds(k->control, b.data, b.len, NULL, 0) < 0)
        rc = system_error(e, "sendmsg");
    buf_fini(&b);
    for (uint32_t i = 0; i < s->n_links && rc == 0; i++)
        rc = make_link(w, k, i, e);
    return rc;
}

static int start(struct workers *w, struct worker *k, const struct worker_start *s, struct err *e)
{
    int pair[2] = {-1, -1}, out[2] = {-1, -1}, rc = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        pipe2(out, O_CLOEXEC) < 0)
        rc = system_error(e, "socketpair");
    k->control = pair[0];
    k->err_fd = out[0];
    pair[1] = lift(pair[1]);
    out[1] = lift(out[1]);
    if (rc == 0 && (pair[1] < 0 || out[1] < 0 || fcntl(k->err_fd, F_SETFL, O_NONBLOCK) < 0))
        rc = system_error(e, "fcntl");
    if (rc == 0)
        rc = spawn(w, k, pair[1], out[1], e);
    close_fd(&pair[1]);
    close_fd(&out[1]);
    if (rc == 0)
        rc = send_start(w, k, s, e);
    return rc;
}

/* ---- watching ---- */

/* Gives the loops their connections.  The lock is held. */
static void hand_out(struct workers *w, struct worker *k)
{
    for (uint32_t i = 0; i < w->n_ports; i++) {
        struct port *p = &w->ports[i];
        struct conn_node *c = k->conns[i];
        k->conns[i] = NULL;
        if (!c || !p->executor) {
            conn_free(c);
            continue;
        }
        *p->end = c;
        p->end = &c->next;
        if (!p->posted) {
            p->posted = true;
            executor_post(p->executor, p->task);
        }
    }
}

/* The lock is held. */
static void hear(struct workers *w, struct worker *k, const struct worker_state *s)
{
    k->heard_ns = clock_ns();
    k->info = s->info;
    if (s->missing[0] && !w->said_missing) {
        w->said_missing = true;
        log_warn("worker", "this kernel confines workers only in part: %s", s->missing);
    }
    if (s->state == REGISTRY_FAILED && k->state == REGISTRY_LOADING) {
        k->code = s->code;
        snprintf(k->error, sizeof(k->error), "%s", s->error);
    }
    if (s->state == REGISTRY_READY && k->state == REGISTRY_LOADING)
        hand_out(w, k);
    if (k->state == REGISTRY_LOADING && s->state != k->state) {
        k->state = s->state;
        pthread_cond_broadcast(&w->changed);
    }
}

/* Reads pending messages. False: the worker has ended, or must end. */
static bool read_control(struct workers *w, struct worker *k, struct worker_state *last,
                         struct arena *a)
{
    uint8_t bytes[WORKER_PB_MAX_BYTES];
    for (int i = 0; i < 64; i++) { /* a flooding worker does not block this loop */
        ssize_t n = recv(k->control, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0)
            return false;
        arena_reset(a, 4096);
        if (worker_pb_read_state(last, a, bytes, (size_t)n) < 0) {
            snprintf(k->why, sizeof(k->why), "it sent a damaged message");
            return false;
        }
        pthread_mutex_lock(&w->lock);
        hear(w, k, last);
        pthread_mutex_unlock(&w->lock);
    }
    return true;
}

/* Forwards the worker's stderr to ours, and keeps its end. False: there is no more for now. */
static bool read_stderr(struct worker *k)
{
    char line[LINE_BYTES];
    ssize_t n = k->err_fd >= 0 ? read(k->err_fd, line, sizeof(line)) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_fd(&k->err_fd);
        return false;
    }
    for (ssize_t i = 0; i < n; i++) /* nothing that could disturb a terminal */
        if ((unsigned char)line[i] < 0x20 && line[i] != '\n' && line[i] != '\t')
            line[i] = '?';
    (void)!write(STDERR_FILENO, line, (size_t)n);
    size_t keep = (size_t)n < TAIL_BYTES ? TAIL_BYTES - (size_t)n : 0;
    keep = k->n_tail < keep ? k->n_tail : keep;
    memmove(k->tail, k->tail + k->n_tail - keep, keep);
    size_t fresh = TAIL_BYTES - keep < (size_t)n ? TAIL_BYTES - keep : (size_t)n;
    memcpy(k->tail + keep, line + (size_t)n - fresh, fresh);
    k->n_tail = keep + fresh;
    return true;
}

/* How it ended, with its last words. */
static void say_why(struct worker *k, int status)
{
    char how[160];
    if (k->why[0])
        snprintf(how, sizeof(how), "%.150s", k->why);
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "it was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof(how), "it ended with code %d", WEXITSTATUS(status));
    size_t from = 0, n = k->n_tail;
    while (n > 0 && k->tail[n - 1] == '\n')
        n--;
    for (size_t i = 0; i < n; i++) /* the last two lines, or as much as there is */
        if (k->tail[i] == '\n') {
            size_t more = 0;
            for (size_t j = i + 1; j < n; j++)
                more += k->tail[j] == '\n';
            from = more >= 1 ? i + 1 : from;
            k->tail[i] = ' ';
        }
    from = n - from > 180 ? n - 180 : from;
    snprintf(k->why, sizeof(k->why), "the worker process is gone: %s%s%.*s", how,
             n > from ? "; its last output: " : "", (int)(n - from), k->tail + from);
}

/* Kills the worker if it is running, and notifies everything that waits for it or depends on it. */
static void bury(struct workers *w, struct worker *k)
{
    int status = 0;
    kill(k->pid, SIGKILL); /* one that has already ended keeps its status */
    while (waitpid(k->pid, &status, 0) < 0 && errno == EINTR)
        ;
    while (read_stderr(k)) /* to its last words */
        ;
    say_why(k, status);
    pthread_mutex_lock(&w->lock);
    bool tell = k->state == REGISTRY_READY && !k->closing && !atomic_load(&w->leaving);
    k->gone = true;
    close_fd(&k->control);
    close_fd(&k->err_fd);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (tell)
        registry_apart_lost(w->registry, k->serial, k->why);
}

static void remove_worker(struct workers *w, struct worker *k)
{
    struct worker **at = &w->list;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    worker_free(k);
}

/* Frees workers that have exited, unless open still waits for one. */
static void forget_gone(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    struct worker *next;
    for (struct worker *k = w->list; k; k = next) {
        next = k->next;
        if (k->gone && !k->wanted)
            remove_worker(w, k);
    }
    pthread_mutex_unlock(&w->lock);
}

/* Looks after one worker.  Only this thread ends and frees workers. */
static void look_after(struct workers *w, struct worker *k, const struct pollfd *p, struct arena *a)
{
    struct worker_state s = {.state = REGISTRY_UNLOADED};
    bool alive = true;
    if (p[1].revents)
        read_stderr(k);
    if (p[0].revents)
        alive = read_control(w, k, &s, a);
    if (alive && clock_ns() - k->heard_ns > w->silent_ns) {
        alive = false;
        snprintf(k->why, sizeof(k->why), "it was silent for %u ms and was killed",
                 (unsigned)(w->silent_ns / MS_NS));
    }
    if (!alive)
        bury(w, k);
    else if (s.state == REGISTRY_LOADING)
        registry_apart_progress(w->registry, k->serial, s.progress);
    else if (s.state == REGISTRY_READY)
        registry_apart_speed(w->registry, k->serial, s.prefill_ns, s.token_ns);
}

static void *watch_main(void *arg)
{
    struct workers *w = arg;
    struct pollfd fds[1 + 2 * MAX_WORKERS];
    struct worker *list[MAX_WORKERS];
    struct arena a;
    bool stop = false;
    arena_init(&a, (size_t)1 << 20);
    while (!stop) {
        uint64_t count;
        nfds_t n = 0;
        forget_gone(w);
        pthread_mutex_lock(&w->lock);
        stop = w->stop;
        for (struct worker *k = w->list; k && n < MAX_WORKERS; k = k->next)
            if (!k->gone)
                list[n++] = k;
        pthread_mutex_unlock(&w->lock);
        fds[0] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
        for (nfds_t i = 0; i < n; i++) { /* -1 is ignored */
            fds[1 + 2 * i] = (struct pollfd){.fd = list[i]->control, .events = POLLIN};
            fds[2 + 2 * i] = (struct pollfd){.fd = list[i]->err_fd, .events = POLLIN};
        }
        if (stop || poll(fds, 1 + 2 * n, n > 0 ? TICK_MS : -1) < 0)
            continue; /* interrupted: again */
        if (fds[0].revents)
            (void)!read(w->wake_fd, &count, sizeof(count));
        for (nfds_t i = 0; i < n; i++)
            look_after(w, list[i], &fds[1 + 2 * i], &a);
    }
    arena_fini(&a);
    return NULL;
}

/* ---- for the registry ---- */

/* Until the worker has loaded its model, or has failed to.  The lock is held. */
static void wait_loaded(struct workers *w, struct worker *k, const _Atomic bool *stop)
{
    while (k->state == REGISTRY_LOADING && !k->gone && !*stop) {
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        ts.tv_nsec += TICK_MS * 1000000L;
        ts.tv_sec += ts.tv_nsec / 1000000000L;
        ts.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&w->changed, &w->lock, &ts);
    }
}

/* Ends a worker and waits until it is gone.  The lock is held. */
static void end_worker(struct workers *w, struct worker *k)
{
    k->closing = true;
    if (!k->gone)
        shutdown(k->control, SHUT_RDWR); /* the watching thread sees it and does the rest */
    wake(w);
    while (!k->gone)
        pthread_cond_wait(&w->changed, &w->lock);
}

static int open_worker(void *ctx, const struct registry_slot *s, const char *name,
                       size_t memory_bytes, const char *cache_dir, const _Atomic bool *stop,
                       struct registry_apart_info *out, struct err *e)
{
    struct workers *w = ctx;
    struct worker *k = mem_zalloc(sizeof(*k));
    if (!k)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a worker");
    *k = (struct worker){.serial = s->serial,
                         .family = s->family,
                         .control = -1,
                         .err_fd = -1,
                         .heard_ns = clock_ns(),
                         .state = REGISTRY_LOADING,
                         .wanted = true};
    snprintf(k->name, sizeof(k->name), "%s", name);
    struct worker_start start_with = {.name = name,
                                      .path = s->path,
                                      .cache_dir = cache_dir,
                                      .spec = s->spec,
                                      .memory_bytes = memory_bytes,
                                      .n_links = w->n_ports,
                                      .parent = (uint32_t)getpid()};
    log_settings(&start_with.log_level, &start_with.log_format);
    int rc = start(w, k, &start_with, e);
    if (rc < 0 && k->pid == 0) {
        worker_free(k);
        return rc;
    }
    pthread_mutex_lock(&w->lock);
    k->next = w->list;
    w->list = k;
    wake(w);
    if (rc == 0)
        wait_loaded(w, k, stop);
    *out = k->info;
    out->crashed = k->gone || rc == SHOAL_EIO; /* EIO: it ended before it was told what to do */
    if (rc == 0 && k->state == REGISTRY_FAILED)
        rc = err_set(e, k->code, "%s", k->error);
    else if (rc == 0 && k->gone)
        rc = err_set(e, SHOAL_EIO, "%s", k->why);
    else if (rc == 0 && k->state == REGISTRY_LOADING)
        rc = err_set(e, SHOAL_ECANCELLED, "the server is stopping");
    if (rc < 0)
        end_worker(w, k);
    k->wanted = false;
    wake(w);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static void close_worker(void *ctx, uint64_t serial)
{
    struct workers *w = ctx;
    pthread_mutex_lock(&w->lock);
    struct worker *k = w->list;
    while (k && (k->serial != serial || k->gone))
        k = k->next;
    if (k) {
        k->wanted = true;
        end_worker(w, k);
        k->wanted = false;
        wake(w);
    }
    pthread_mutex_unlock(&w->lock);
}

/* ---- for the loops ---- */

int workers_join(struct workers *w, struct executor *x, struct executor_task *task,
                 uint32_t *out_loop, struct err *e)
{
    if (w->n_ports == WORKERS_MAX_LOOPS)
        return err_set(e, SHOAL_ELIMIT, "more than %u event loops", WORKERS_MAX_LOOPS);
    *out_loop = w->n_ports;
    struct port *p = &w->ports[w->n_ports++];
    *p = (struct port){.executor = x, .task = task};
    p->end = &p->first;
    return 0;
}

bool workers_take(struct workers *w, uint32_t loop, struct workers_conn *out)
{
    struct port *p = &w->ports[loop];
    pthread_mutex_lock(&w->lock);
    struct conn_node *c = p->first;
    if (c) {
        p->first = c->next;
        if (!p->first)
            p->end = &p->first;
        *out = c->conn;
    } else {
        p->posted = false;
    }
    pthread_mutex_unlock(&w->lock);
    mem_free(c);
    return c != NULL;
}

void workers_leave(struct workers *w, uint32_t loop)
{
    struct workers_conn conn;
    pthread_mutex_lock(&w->lock);
    w->ports[loop].executor = NULL;
    pthread_mutex_unlock(&w->lock);
    while (workers_take(w, loop, &conn)) {
        workers_conn_close(&conn);
    }
}

/* ---- lifetime ---- */

void workers_release(struct workers *w)
{
    if (w)
        atomic_store(&w->leaving, true);
}

const struct registry_apart *workers_apart(struct workers *w)
{
    return &w->apart;
}

void workers_set_registry(struct workers *w, struct registry *r)
{
    w->registry = r;
}

int workers_create(struct workers **out, const struct workers_opts *o, struct err *e)
{
    struct workers *w = mem_zalloc(sizeof(*w));
    *out = NULL;
    if (!w)
        return err_set(e, SHOAL_ENOMEM, "out of memory for workers");
    w->apart = (struct registry_apart){w, open_worker, close_worker};
    w->opts = *o;
    if (w->opts.ring_bytes == 0)
        w->opts.ring_bytes = DEFAULT_RING_BYTES;
    w->silent_ns = (uint64_t)(o->silent_ms ? o->silent_ms : DEFAULT_SILENT_MS) * MS_NS;
    pthread_mutex_init(&w->lock, NULL);
    cond_init(&w->changed);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = w->wake_fd >= 0 ? thread_create(&w->thread, "workers", watch_main, w, e)
                             : system_error(e, "eventfd");
    w->has_thread = rc == 0;
    if (rc < 0) {
        workers_destroy(w);
        return rc;
    }
    *out = w;
    return 0;
}

void workers_destroy(struct workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread) {
        wake(w);
        pthread_join(w->thread, NULL);
    }
    while (w->list) { /* the registry has closed its own; these were just starting */
        if (!w->list->gone) {
            kill(w->list->pid, SIGKILL);
            waitpid(w->list->pid, NULL, 0);
        }
        remove_worker(w, w->list);
    }
    close_fd(&w->wake_fd);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    mem_free(w);
}
