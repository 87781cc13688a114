/* worker_main.c - see worker_main.h. */
#include "cluster/worker/worker_main.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/thread/executor_queue.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "cluster/messages/event_pb.h"
#include "cluster/messages/request_pb.h"
#include "cluster/worker/ring.h"
#include "cluster/worker/sandbox.h"
#include "cluster/worker/worker_frame.h"
#include "cluster/worker/worker_pb.h"
#include "cluster/worker/workers.h"
#include "engine/cache_dir.h"
#include "engine/estimate.h"
#include "engine/onnx/onnx_api.h"
#include "flow/flow_run.h"

#define BEAT_NS 250000000u
#define READ_BYTES ((size_t)64 << 10)
#define MAX_OUT_BYTES ((size_t)512 << 20)

struct port { /* to one event loop of the server */
    struct worker *worker;
    int sock, wake_fd;
    struct ring ring;
    struct buf in, out; /* out: data that did not fit into the ring */
    struct answer *answers;
};

/* A request that this process works on; lives in the request's arena. */
struct answer {
    struct sink sink; /* first */
    struct port *port;
    struct answer *prev, *next;
    uint64_t id;
    struct buf events;
    bool paused;
};

struct worker {
    int control;
    struct arena arena; /* holds the Start message, and the cache folder's name */
    struct worker_start start;
    struct executor_queue queue;
    struct registry *registry;
    struct flow flow;
    struct flow_owner owner;
    struct port ports[WORKERS_MAX_LOOPS];
    uint32_t n_ports;
    /* loading, on its own thread */
    pthread_t loader;
    struct shoal_engine *engine;
    int rc;
    struct err error;
    _Atomic uint32_t progress;
    struct executor_task loaded;
    struct executor_timer beat;
    enum registry_state state;
    bool over; /* the server is gone, or no longer needs this process */
    int exit_code;
    char missing[256];
};

/* ---- state ---- */

static void send_state(struct worker *w)
{
    struct worker_state s = {.state = w->state,
                             .progress = atomic_load(&w->progress),
                             .code = w->rc,
                             .error = w->error.msg,
                             .missing = w->missing};
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct buf b;
    if (w->state == REGISTRY_READY) {
        shoal_engine_info(w->engine, &info);
        s.info = (struct registry_apart_info){.kinds = info.kinds,
                                              .images = info.images != 0,
                                              .n_ctx = info.n_ctx,
                                              .bytes = info.weights_bytes + info.scratch_bytes +
                                                       info.kv_bytes,
                                              .load_ms = info.load_ms};
        estimate_speed(w->engine, &s.prefill_ns, &s.token_ns);
    }
    buf_init(&b, WORKER_PB_MAX_BYTES);
    if (worker_pb_put_state(&b, &s) == 0)
        (void)!send(w->control, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    buf_fini(&b);
}

static void on_beat(struct executor_timer *t)
{
    struct worker *w = EXECUTOR_OF(t, struct worker, beat);
    send_state(w);
    executor_timer_set(&w->queue.executor, t, clock_ns() + BEAT_NS);
}

/* ---- loading ---- */

static bool on_progress(void *ctx, double part)
{
    struct worker *w = ctx;
    atomic_store(&w->progress, (uint32_t)(part * 1000.0));
    return false;
}

static void *load_main(void *arg)
{
    struct worker *w = arg;
    const struct registry_spec *s = &w->start.spec;
    const struct shoal_engine_opts o = {
        .size = sizeof(o),
        .n_ctx = s->n_ctx,
        .max_tasks = s->max_tasks,
        .max_queue = s->max_queue,
        .n_threads = s->n_threads,
        .kv_bytes = s->kv_bytes,
        .kv_q8 = s->kv_q8,
        .stream_save_ms = s->stream_save_ms ? s->stream_save_ms : REGISTRY_STREAM_SAVE_MS,
        .stream_ttl_ms = s->stream_ttl_ms,
        .max_streams = s->max_streams,
        .int8 = s->int8,
        .memory_bytes = w->start.memory_bytes,
        .cache_dir = w->start.cache_dir,
        .key_file = s->key_file,
        .progress = on_progress,
        .progress_ctx = w};
    w->rc = shoal_engine_open(&w->engine, w->start.path, &o, &w->error);
    executor_post(&w->queue.executor, &w->loaded);
    return NULL;
}

static void on_loaded(struct executor_task *t)
{
    struct worker *w = EXECUTOR_OF(t, struct worker, loaded);
    pthread_join(w->loader, NULL);
    if (w->rc == 0)
        w->rc = registry_lend(w->registry, w->start.name, NULL, w->engine, &w->error);
    w->state = w->rc == 0 ? REGISTRY_READY : REGISTRY_FAILED;
    send_state(w);
}

/* ---- events ---- */

static void fail_nomem(struct worker *w)
{
    log_error("worker", "out of memory for events");
    w->over = true;
    w->exit_code = 1;
}

static void push(struct port *p)
{
    const uint64_t one = 1;
    bool wake = false;
    if (p->out.rc < 0)
        fail_nomem(p->worker);
    if (p->out.rc < 0 || p->out.len == 0)
        return;
    size_t n = ring_write(&p->ring, p->out.data, p->out.len, &wake);
    memmove(p->out.data, p->out.data + n, p->out.len - n);
    p->out.len -= n;
    if (wake)
        (void)!write(p->wake_fd, &one, sizeof(one));
}

static struct answer *answer_of(struct sink *s)
{
    return (struct answer *)(void *)s; /* its first member */
}

static void send_events(struct answer *a)
{
    if (a->events.rc < 0)
        fail_nomem(a->port->worker);
    if (a->events.rc < 0 || a->events.len == 0)
        return;
    worker_frame_put(&a->port->out, WORKER_FRAME_EVENTS, a->id, a->events.data, a->events.len);
    buf_clear(&a->events);
    push(a->port);
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    event_pb_put_start(&answer_of(s)->events, e);
}

static void on_prompt(struct sink *s, const struct sink_prompt *e)
{
    event_pb_put_prompt(&answer_of(s)->events, e);
}

static void on_token(struct sink *s, const struct sink_token *e)
{
    event_pb_put_token(&answer_of(s)->events, e);
}

static void on_result(struct sink *s, const struct sink_result *e)
{
    event_pb_put_result(&answer_of(s)->events, e);
}

static void on_done(struct sink *s, const struct sink_done *e)
{
    event_pb_put_done(&answer_of(s)->events, e);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    event_pb_put_failure(&answer_of(s)->events, f);
}

static void on_flush(struct sink *s)
{
    send_events(answer_of(s));
}

static bool on_full(struct sink *s)
{
    const struct answer *a = answer_of(s);
    return a->paused || a->port->out.len > 0;
}

static void on_closed(struct sink *s)
{
    struct answer *a = answer_of(s);
    struct port *p = a->port;
    send_events(a);
    worker_frame_put(&p->out, WORKER_FRAME_CLOSED, a->id, NULL, 0);
    push(p);
    if (a->prev)
        a->prev->next = a->next;
    else
        p->answers = a->next;
    if (a->next)
        a->next->prev = a->prev;
    buf_fini(&a->events);
}

/* ---- requests ---- */

static void refuse(struct port *p, uint64_t id, int code, const char *msg)
{
    struct failure f;
    struct buf b;
    failure_of(&f, code, msg);
    buf_init(&b, WORKER_FRAME_MAX_BYTES);
    event_pb_put_failure(&b, &f);
    worker_frame_put(&p->out, WORKER_FRAME_EVENTS, id, b.data, b.len);
    worker_frame_put(&p->out, WORKER_FRAME_CLOSED, id, NULL, 0);
    buf_fini(&b);
    push(p);
}

static void begin(struct port *p, const struct worker_frame *f)
{
    static const struct sink_ops ops = {.start = on_start,
                                        .prompt = on_prompt,
                                        .token = on_token,
                                        .result = on_result,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .flush = on_flush,
                                        .full = on_full};
    struct flow_owner *o = &p->worker->owner;
    struct err e = {0};
    struct request *r = flow_take_request(o);
    int rc = r ? request_pb_read(r, f->p, f->n, clock_ns(), &e)
               : err_set(&e, SHOAL_ENOMEM, "out of memory");
    struct answer *a = rc == 0 ? arena_zalloc(&r->arena, sizeof(*a)) : NULL;
    if (!a) {
        refuse(p, f->id, rc < 0 ? rc : SHOAL_ENOMEM, rc < 0 ? e.msg : "out of memory");
        if (r)
            flow_give_request(o, r);
        return;
    }
    a->sink.ops = &ops;
    a->port = p;
    a->id = f->id;
    buf_init(&a->events, WORKER_FRAME_MAX_BYTES);
    a->next = p->answers;
    if (a->next)
        a->next->prev = a;
    p->answers = a;
    flow_run_here(o, r, &a->sink);
}

static void resume_all(struct port *p)
{
    struct answer *next;
    for (struct answer *a = p->answers; a && p->out.len == 0; a = next) {
        next = a->next; /* stays: answers close in turns of the queue */
        flow_resume(&a->sink);
    }
}

static void take(struct port *p, const struct worker_frame *f)
{
    struct answer *a = p->answers;
    if (f->kind == WORKER_FRAME_RUN) {
        begin(p, f);
        return;
    }
    if (f->kind == WORKER_FRAME_ROOM) {
        push(p);
        resume_all(p);
        return;
    }
    while (a && a->id != f->id)
        a = a->next;
    if (!a)
        return; /* it has ended in the meantime */
    if (f->kind == WORKER_FRAME_CANCEL) {
        flow_cancel(&a->sink);
    } else if (f->kind == WORKER_FRAME_PAUSE) {
        a->paused = true;
    } else if (f->kind == WORKER_FRAME_RESUME) {
        a->paused = false;
        flow_resume(&a->sink);
    }
}

static void read_port(struct port *p)
{
    struct worker_frame f;
    size_t at = 0;
    char *room = buf_room(&p->in, READ_BYTES);
    ssize_t n = room ? recv(p->sock, room, READ_BYTES, MSG_DONTWAIT) : -1;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        p->worker->over = true;
    if (n <= 0)
        return;
    buf_used(&p->in, (size_t)n);
    int rc;
    while ((rc = worker_frame_next(&f, p->in.data + at, p->in.len - at)) > 0) {
        take(p, &f);
        at += f.bytes;
    }
    if (rc < 0)
        p->worker->over = true;
    memmove(p->in.data, p->in.data + at, p->in.len - at);
    p->in.len -= at;
}

/* ---- start ---- */

/* One message of the control socket, with at most three descriptors. */
static ssize_t receive(int from, void *p, size_t cap, int fds[3], uint32_t *n_fds)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } c;
    struct iovec io = {p, cap};
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = c.room, .msg_controllen = sizeof(c.room)};
    ssize_t n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    *n_fds = 0;
    if (h && h->cmsg_type == SCM_RIGHTS) {
        *n_fds = (uint32_t)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(h), *n_fds * sizeof(int));
    }
    return n;
}

static int receive_start(struct worker *w, struct err *e)
{
    uint8_t bytes[WORKER_PB_MAX_BYTES];
    int fds[3];
    uint32_t n_fds;
    ssize_t n = receive(w->control, bytes, sizeof(bytes), fds, &n_fds);
    if (n <= 0 || worker_pb_read_start(&w->start, &w->arena, bytes, (size_t)n) < 0 ||
        w->start.n_links > WORKERS_MAX_LOOPS)
        return err_set(e, SHOAL_EFORMAT, "this command is started by 'shoal serve', not by hand");
    for (uint32_t i = 0; i < w->start.n_links; i++) {
        struct port *p = &w->ports[i];
        n = receive(w->control, bytes, sizeof(bytes), fds, &n_fds);
        if (n <= 0 || n_fds != 3)
            return err_set(e, SHOAL_EIO, "the server sent no connection");
        *p = (struct port){.worker = w, .sock = fds[0], .wake_fd = fds[2]};
        buf_init(&p->in, WORKER_FRAME_MAX_BYTES + WORKER_FRAME_HEAD_BYTES + READ_BYTES);
        buf_init(&p->out, MAX_OUT_BYTES);
        int rc = ring_open(&p->ring, fds[1], e);
        if (rc < 0)
            return rc;
        close(fds[1]);
        w->n_ports++;
    }
    return 0;
}

/* Whether the model runs with the ONNX Runtime, whose library is outside the sandbox. */
static bool needs_onnx(const char *path)
{
    DIR *d = opendir(path);
    bool found = str_ends_with(path, ".onnx");
    for (struct dirent *i; d && !found && (i = readdir(d));)
        found = str_ends_with(i->d_name, ".onnx");
    if (d)
        closedir(d);
    return found;
}

/* The worker's own folder in the cache: only workers of the same model read it. "": none. */
static const char *own_cache(struct worker *w)
{
    char dir[PATH_MAX], real[PATH_MAX], hex[17];
    const char *cache = cache_dir_wanted(w->start.cache_dir, dir, sizeof(dir));
    const char *path = realpath(w->start.path, real) ? real : w->start.path;
    if (!cache)
        return "";
    hash_hex(hex, hash_bytes(path, strlen(path), 0));
    hex[16] = '\0';
    const char *own = arena_printf(&w->arena, "%s/worker-%s", cache, hex);
    (void)mkdir(cache, 0700); /* not its parents: without them there is no folder */
    return own[0] && (mkdir(own, 0700) == 0 || errno == EEXIST) ? own : "";
}

static int confine(struct worker *w, struct err *e)
{
    struct onnx_lib *lib;
    struct err why;
    w->start.cache_dir = own_cache(w);
    if (needs_onnx(w->start.path) && onnx_lib_open(&lib, &why) < 0) /* it stays open */
        log_warn("worker", "%s", why.msg);
    const char *cache = w->start.cache_dir[0] ? w->start.cache_dir : NULL;
    const struct sandbox_opts o = {w->start.path, cache, w->start.spec.key_file,
                                   w->start.spec.apart_opts};
    return sandbox_enter(&o, w->missing, sizeof(w->missing), e);
}

static void serve(struct worker *w)
{
    struct pollfd fds[2 + WORKERS_MAX_LOOPS];
    nfds_t n = 2 + w->n_ports;
    fds[0] = (struct pollfd){.fd = w->queue.fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = w->control, .events = POLLIN};
    for (uint32_t i = 0; i < w->n_ports; i++)
        fds[2 + i] = (struct pollfd){.fd = w->ports[i].sock, .events = POLLIN};
    while (!w->over) {
        if (executor_queue_run(&w->queue)) {
            if (poll(fds, n, 0) <= 0)
                continue;
        } else if (poll(fds, n, executor_queue_wait_ms(&w->queue)) < 0) {
            continue; /* interrupted */
        }
        w->over |= fds[1].revents != 0; /* the server closed the socket: it is gone */
        for (uint32_t i = 0; i < w->n_ports; i++)
            if (fds[2 + i].revents)
                read_port(&w->ports[i]);
    }
}

int worker_main(int control_fd)
{
    const struct registry_opts ro = {.lent_only = true};
    struct worker *w = mem_zalloc(sizeof(*w));
    struct err e = {0};
    if (!w)
        return 1;
    (void)close_range((unsigned)control_fd + 1, ~0u, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    /* Ctrl-C and service managers signal a whole group: the server ends its workers itself, when
     * their requests are done. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    mem_map_large();
    w->control = control_fd;
    w->state = REGISTRY_LOADING;
    w->loaded.fn = on_loaded;
    w->beat.fn = on_beat;
    arena_init(&w->arena, (size_t)1 << 20);
    int rc = receive_start(w, &e);
    if (rc == 0 && getppid() != (pid_t)w->start.parent)
        rc = err_set(&e, SHOAL_EIO, "the server died while this worker started");
    if (rc == 0) {
        log_setup(w->start.log_level, w->start.log_format);
        rc = confine(w, &e);
    }
    if (rc == 0)
        rc = executor_queue_init(&w->queue, &e);
    if (rc == 0)
        rc = registry_create(&w->registry, &ro, &e);
    if (rc == 0) {
        w->flow.registry = w->registry;
        flow_owner_init(&w->owner, &w->flow, &w->queue.executor);
        w->owner.next_seed = clock_ns(); /* the server sends seeds */
        rc = thread_create(&w->loader, "load", load_main, w, &e);
    }
    if (rc < 0) {
        w->state = REGISTRY_FAILED;
        w->rc = rc;
        w->error = e;
        if (w->start.path)
            send_state(w);
        fprintf(stderr, "shoal worker: %s\n", e.msg);
        return 1;
    }
    on_beat(&w->beat);
    serve(w);
    return w->exit_code;
}
