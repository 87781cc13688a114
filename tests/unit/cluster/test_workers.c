/* test_workers.c - worker processes: this program is the server and, started as `shoal worker`,
 * also the worker, which does what the name of its model says. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor_queue.h"
#include "base/log.h"
#include "cluster/messages/event_pb.h"
#include "cluster/messages/request_pb.h"
#include "cluster/worker/ring.h"
#include "cluster/worker/worker_frame.h"
#include "cluster/worker/worker_pb.h"
#include "cluster/worker/workers.h"
#include "host/registry.h"
#include "support/recorder.h"
#include "support/watchdog.h"
#include "support/worker_site.h"

#define CONTROL_FD 3
#define PATH SHOAL_TEST_DATA "/refs/qwen3.gguf"
#define OTHER_PATH SHOAL_TEST_DATA "/refs/qwen2.gguf"

/* ---- the worker ---- */

struct loop_end { /* the worker's end of a connection to an event loop */
    int sock, wake_fd;
    struct ring ring;
};

static struct loop_end ends[WORKERS_MAX_LOOPS];
static struct worker_start started;

static void tell(const struct worker_state *s)
{
    struct worker_state full = *s;
    struct buf b;
    buf_init(&b, WORKER_PB_MAX_BYTES);
    full.error = s->error ? s->error : "";
    full.missing = s->missing ? s->missing : "";
    if (worker_pb_put_state(&b, &full) < 0 || send(CONTROL_FD, b.data, b.len, 0) < 0)
        exit(9);
    buf_fini(&b);
}

static void take_end(struct loop_end *end)
{
    char room[CMSG_SPACE(3 * sizeof(int))], byte;
    struct iovec io = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    int fds[3];
    struct err e;
    if (recvmsg(CONTROL_FD, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
        exit(9);
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fds));
    *end = (struct loop_end){.sock = fds[0], .wake_fd = fds[2]};
    if (ring_open(&end->ring, fds[1], &e) < 0)
        exit(9);
}

/* What the worker finds when it begins, for the test to read. */
static void write_facts(void)
{
    char path[256], in[64] = "", out[64] = "";
    struct stat st;
    sigset_t blocked;
    snprintf(path, sizeof(path), "%s/%s", getenv("HOME"), started.name);
    FILE *f = fopen(path, "a");
    if (!f || readlink("/proc/self/fd/0", in, sizeof(in) - 1) < 0 ||
        readlink("/proc/self/fd/1", out, sizeof(out) - 1) < 0 || fstat(2, &st) < 0 ||
        sigprocmask(SIG_BLOCK, NULL, &blocked) < 0)
        exit(9);
    fprintf(f, "%s %s %s %u %zu %u %u in=%s out=%s err=%s own=%d blocked=%d pipe=%d pid=%d\n",
            started.path, started.cache_dir, started.parent == (uint32_t)getppid() ? "child" : "?",
            started.n_links, started.memory_bytes, started.spec.n_ctx, started.spec.n_threads, in,
            out, S_ISFIFO(st.st_mode) ? "pipe" : "?", getsid(0) == getpid(),
            sigismember(&blocked, SIGUSR1), signal(SIGPIPE, SIG_DFL) == SIG_DFL, (int)getpid());
    fclose(f);
}

/* No worker of this name was started before. */
static bool is_first(void)
{
    char path[256], line[1024];
    int n = 0;
    snprintf(path, sizeof(path), "%s/%s", getenv("HOME"), started.name);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        n++;
    if (f)
        fclose(f);
    return n == 1;
}

/* Answers a request with the bytes of its prompt, as tokens. */
static void echo(struct loop_end *end, const struct worker_frame *f)
{
    struct request *r = request_create();
    struct buf events, out;
    struct err e;
    bool wake;
    const uint64_t one = 1;
    if (!r || request_pb_read(r, f->p, f->n, clock_ns(), &e) < 0 || r->model || r->version)
        exit(9);
    buf_init(&events, 1 << 16);
    buf_init(&out, 1 << 16);
    const struct sink_start s = {.model = "worker's", .version = "worker's"};
    event_pb_put_start(&events, &s);
    if (r->kind == REQUEST_GENERATE) {
        const struct request_prompt *p = r->generate.prompts;
        const struct sink_done d = {.finish = SHOAL_FINISH_STOP,
                                    .prompt_tokens = 3,
                                    .generated_tokens = (uint32_t)p->text_bytes,
                                    .queue_ns = 5,
                                    .first_token_ns = 10,
                                    .total_ns = 100,
                                    .last = true,
                                    .usage = {3, 0, (uint32_t)p->text_bytes}};
        for (size_t i = 0; i < p->text_bytes; i++) {
            const struct sink_token t = {.token = p->text[i], .text = p->text + i, .text_bytes = 1};
            event_pb_put_token(&events, &t);
        }
        event_pb_put_done(&events, &d);
    } else {
        const struct shoal_result got = {.kind = SHOAL_KIND_CLASSIFY,
                                         .label = r->infer.labels ? r->infer.labels : "none",
                                         .confidence = 0.5f,
                                         .n_tokens = 4,
                                         .batch = 2,
                                         .queue_ns = 7,
                                         .total_ns = 9};
        for (uint32_t i = 0; i < r->infer.n_inputs; i++) {
            const struct sink_result x = {i, &got, i + 1 == r->infer.n_inputs};
            event_pb_put_result(&events, &x);
        }
    }
    worker_frame_put(&out, WORKER_FRAME_EVENTS, f->id, events.data, events.len);
    worker_frame_put(&out, WORKER_FRAME_CLOSED, f->id, NULL, 0);
    if (ring_write(&end->ring, out.data, out.len, &wake) != out.len)
        exit(9);
    if (wake)
        (void)!write(end->wake_fd, &one, sizeof(one));
    buf_fini(&events);
    buf_fini(&out);
    request_destroy(r);
}

/* Serves until the server closes the socket. */
static int serve(void)
{
    const struct worker_state ready = {.state = REGISTRY_READY,
                                       .info = {.kinds = SHOAL_KIND_GENERATE | SHOAL_KIND_CLASSIFY,
                                                .images = true,
                                                .n_ctx = 77,
                                                .bytes = 1234,
                                                .load_ms = 5.5},
                                       .prefill_ns = 1000,
                                       .token_ns = 2000};
    struct buf in;
    buf_init(&in, 1 << 20);
    for (;;) {
        struct pollfd fds[2] = {{.fd = CONTROL_FD, .events = POLLIN},
                                {.fd = ends[0].sock, .events = POLLIN}};
        struct worker_frame f;
        tell(&ready);
        if (poll(fds, started.n_links > 0 ? 2 : 1, 50) < 0 || fds[0].revents)
            return 0;
        if (!fds[1].revents)
            continue;
        char *room = buf_room(&in, 1 << 16);
        ssize_t n = recv(ends[0].sock, room, 1 << 16, MSG_DONTWAIT);
        if (n == 0)
            return 0;
        buf_used(&in, n > 0 ? (size_t)n : 0);
        while (worker_frame_next(&f, in.data, in.len) > 0) {
            if (f.kind == WORKER_FRAME_RUN && strcmp(started.name, "dies") == 0 && is_first())
                raise(SIGKILL);
            if (f.kind == WORKER_FRAME_RUN)
                echo(&ends[0], &f);
            memmove(in.data, in.data + f.bytes, in.len - f.bytes);
            in.len -= f.bytes;
        }
    }
}

static int play_worker(void)
{
    static uint8_t bytes[WORKER_PB_MAX_BYTES];
    struct arena a;
    arena_init(&a, 1 << 16);
    ssize_t n = recv(CONTROL_FD, bytes, sizeof(bytes), 0);
    if (n <= 0 || worker_pb_read_start(&started, &a, bytes, (size_t)n) < 0)
        return 9;
    for (uint32_t i = 0; i < started.n_links; i++)
        take_end(&ends[i]);
    const struct worker_state loading = {.state = REGISTRY_LOADING, .progress = 400};
    const char *role = started.name;
    write_facts();
    tell(&loading);
    if (strcmp(role, "fails") == 0) {
        const struct worker_state failed = {
            .state = REGISTRY_FAILED, .code = SHOAL_EFORMAT, .error = "no such tensor"};
        tell(&failed);
        (void)!read(CONTROL_FD, bytes, 1);
        return 0;
    }
    if (strcmp(role, "exits") == 0) {
        for (int i = 0; i < 100; i++)
            fprintf(stderr, "line %d of many\n", i);
        fprintf(stderr, "the last but one\nthe\x07last one\n\n");
        return 3;
    }
    if (strcmp(role, "quiet") == 0)
        return 4;
    if (strcmp(role, "short") == 0) {
        fprintf(stderr, "one line");
        return 5;
    }
    if (strcmp(role, "long") == 0) {
        for (int i = 0; i < 3000; i++)
            fputc('a' + i % 26, stderr);
        return 6;
    }
    if (strcmp(role, "crashes") == 0)
        raise(SIGKILL);
    if (strcmp(role, "damaged") == 0)
        (void)!send(CONTROL_FD, "\xff\xff\xff", 3, 0);
    if (strcmp(role, "silent") == 0 || strcmp(role, "damaged") == 0)
        for (;;)
            pause();
    if (strcmp(role, "loads") == 0)
        for (char path[256];
             snprintf(path, sizeof(path), "%s/go", getenv("HOME")) > 0 && access(path, F_OK) < 0;) {
            struct pollfd p = {.fd = CONTROL_FD, .events = POLLIN};
            tell(&loading);
            if (poll(&p, 1, 20) > 0)
                return 0;
        }
    return serve();
}

/* ---- the server ---- */

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-workers-XXXXXX");
    return mkdtemp(dir) ? setenv("HOME", dir, 1) : -1;
}

static int remove_dir(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* What workers of this name wrote about themselves, and how many there were. */
static uint32_t facts_of(const char *name, char *out, size_t cap)
{
    char path[128];
    uint32_t n_lines = 0;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, cap - 1, f) : 0;
    if (f)
        fclose(f);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        n_lines += out[i] == '\n';
    return n_lines;
}

/* Opens one worker without a registry's policy; returns what open does. */
static int open_one(const char *name, uint32_t silent_ms, bool stopped,
                    struct registry_apart_info *info, struct err *e)
{
    const struct workers_opts o = {.silent_ms = silent_ms};
    const struct registry_opts ro = {.lent_only = true};
    struct registry_slot slot = {
        .serial = 7, .path = (char *)(uintptr_t)PATH, .spec = {.n_ctx = 64, .n_threads = 2}};
    struct workers *w;
    struct registry *r;
    const _Atomic bool stop = stopped;
    sigset_t usr1;
    *e = (struct err){0};
    assert_int_equal(workers_create(&w, &o, e), 0);
    assert_int_equal(registry_create(&r, &ro, e), 0);
    workers_set_registry(w, r);
    const struct registry_apart *a = workers_apart(w);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL); /* the worker must not inherit it */
    signal(SIGPIPE, SIG_IGN);
    int rc = a->open(a->ctx, &slot, name, 4321, "/nowhere", &stop, info, e);
    sigprocmask(SIG_UNBLOCK, &usr1, NULL);
    if (rc == 0)
        a->close(a->ctx, 7);
    a->close(a->ctx, 8); /* there is no such worker */
    workers_destroy(w);
    registry_destroy(r);
    return rc;
}

static void test_how_a_worker_begins(void **state)
{
    struct registry_apart_info info = {0};
    struct err e;
    char got[1024];
    (void)state;
    assert_int_equal(open_one("good", 60000, false, &info, &e), 0);
    assert_true(info.images);
    assert_int_equal(info.kinds, SHOAL_KIND_GENERATE | SHOAL_KIND_CLASSIFY);
    assert_int_equal(info.n_ctx, 77);
    assert_int_equal(info.bytes, 1234);
    assert_true(info.load_ms > 5.4 && info.load_ms < 5.6);
    assert_false(info.crashed);
    assert_int_equal(facts_of("good", got, sizeof(got)), 1);
    char *pid = strstr(got, " pid=");
    assert_non_null(pid);
    *pid = '\0';
    assert_string_equal(got, PATH " /nowhere child 0 4321 64 2 in=/dev/null out=/dev/null err=pipe "
                                  "own=1 blocked=0 pipe=1");
}

/* Why a worker did not load its model. */
static void test_how_a_worker_ends(void **state)
{
    static const struct {
        const char *name;
        bool crashed;
        int code;
        const char *why;
        uint32_t silent_ms;
        bool stopped;
    } rows[] = {
        {"fails", false, SHOAL_EFORMAT, "no such tensor", 60000, false},
        {"exits", true, SHOAL_EIO,
         "the worker process is gone: it ended with code 3; its last output: the last but one "
         "the?last one",
         60000, false},
        {"quiet", true, SHOAL_EIO, "the worker process is gone: it ended with code 4", 60000,
         false},
        {"short", true, SHOAL_EIO,
         "the worker process is gone: it ended with code 5; its last output: one line", 60000,
         false},
        {"crashes", true, SHOAL_EIO,
         "the worker process is gone: it was killed by signal 9 (Killed)", 60000, false},
        {"damaged", true, SHOAL_EIO, "the worker process is gone: it sent a damaged message", 60000,
         false},
        {"silent", true, SHOAL_EIO,
         "the worker process is gone: it was silent for 40 ms and was killed", 40, false},
        {"loads", false, SHOAL_ECANCELLED, "the server is stopping", 60000, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct registry_apart_info info = {0};
        struct err e;
        int rc = open_one(rows[i].name, rows[i].silent_ms, rows[i].stopped, &info, &e);
        if (rc != rows[i].code || strcmp(e.msg, rows[i].why) != 0)
            fail_msg("%s: %d, %s", rows[i].name, rc, e.msg);
        assert_int_equal(info.crashed, rows[i].crashed);
    }
    /* Of a long line its end: the last bytes that it wrote. */
    struct registry_apart_info info;
    struct err e;
    assert_int_equal(open_one("long", 60000, false, &info, &e), SHOAL_EIO);
    const char *end = strstr(e.msg, "; its last output: ");
    assert_non_null(end);
    end += strlen("; its last output: ");
    size_t n = strlen(end);
    assert_in_range(n, 100, 200);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(end[n - 1 - i], 'a' + (2999 - (int)i) % 26);
}

/* A program that is not there. */
static void test_no_program(void **state)
{
    const struct workers_opts o = {.program = "/nowhere/shoal"};
    struct registry_slot slot = {.serial = 7, .path = (char *)(uintptr_t)PATH};
    struct registry_apart_info info;
    struct workers *w;
    struct err e = {0};
    const _Atomic bool stop = false;
    (void)state;
    assert_int_equal(workers_create(&w, &o, &e), 0);
    const struct registry_apart *a = workers_apart(w);
    assert_int_equal(a->open(a->ctx, &slot, "good", 0, "", &stop, &info, &e), SHOAL_EIO);
    assert_string_equal(e.msg, "cannot start a worker: No such file or directory");
    workers_destroy(w);
}

static void on_task(struct executor_task *t)
{
    (void)t;
}

static void test_as_many_loops_as_fit(void **state)
{
    const struct workers_opts o = {0};
    struct executor_queue q;
    struct executor_task task = {.fn = on_task};
    struct workers *w;
    struct err e = {0};
    uint32_t at = 99;
    (void)state;
    assert_int_equal(executor_queue_init(&q, &e), 0);
    assert_int_equal(workers_create(&w, &o, &e), 0);
    for (uint32_t i = 0; i < WORKERS_MAX_LOOPS; i++) {
        assert_int_equal(workers_join(w, &q.executor, &task, &at, &e), 0);
        assert_int_equal(at, i);
    }
    assert_int_equal(workers_join(w, &q.executor, &task, &at, &e), SHOAL_ELIMIT);
    workers_destroy(w);
    executor_queue_fini(&q);
}

/* A worker that is killed before it has read what it should do: it counts as one that crashed,
 * which is started again, and not as a model that cannot be loaded. */
static void test_a_worker_that_ends_at_once(void **state)
{
    const struct workers_opts o = {.program = "/bin/false"};
    struct registry_slot slot = {.serial = 7, .path = (char *)(uintptr_t)PATH};
    struct executor_queue q;
    struct executor_task task = {.fn = on_task};
    struct workers *w;
    struct err e = {0};
    const _Atomic bool stop = false;
    uint32_t at;
    (void)state;
    assert_int_equal(executor_queue_init(&q, &e), 0);
    assert_int_equal(workers_create(&w, &o, &e), 0);
    for (uint32_t i = 0; i < WORKERS_MAX_LOOPS; i++) /* more is sent than can be before it ends */
        assert_int_equal(workers_join(w, &q.executor, &task, &at, &e), 0);
    const struct registry_apart *a = workers_apart(w);
    for (int i = 0; i < 10; i++) {
        struct registry_apart_info info = {.crashed = false};
        assert_int_equal(a->open(a->ctx, &slot, "good", 0, "", &stop, &info, &e), SHOAL_EIO);
        assert_true(info.crashed);
    }
    workers_destroy(w);
    executor_queue_fini(&q);
}

/* ---- with a registry and a loop ---- */

static int open_site(void **state)
{
    worker_site_open(NULL, 0);
    return make_dir(state);
}

static int close_site(void **state)
{
    worker_site_close();
    return remove_dir(state);
}

static void add(const char *name, const char *path)
{
    const struct registry_spec spec = {
        .name = name, .path = path, .apart = true, .pinned = true, .labels = "animals"};
    worker_site_add(&spec);
}

static struct recorder rec;

/* A request goes to the worker and its answer comes back under the names of this process. */
static void test_requests(void **state)
{
    (void)state;
    const struct registry_spec here = {.name = "here", .path = OTHER_PATH};
    assert_int_equal(registry_add(worker_site.registry, &here, NULL), 0);
    add("good", PATH);
    assert_false(worker_site_send(&rec, "here", REQUEST_GENERATE));
    assert_false(worker_site_send(&rec, "unknown", REQUEST_GENERATE));
    assert_false(worker_site_send(&rec, "good", REQUEST_ASK));
    assert_true(worker_site_send(&rec, "good", REQUEST_GENERATE)); /* waits for the model */
    worker_site_until_closed(&rec);
    assert_int_equal(rec.n_fails, 0);
    assert_string_equal(rec.text[0], "hello");
    assert_string_equal(rec.model, "good");
    assert_true(strcmp(rec.version, "worker's") != 0);
    assert_int_equal(rec.start.cache, SINK_CACHE_OFF);
    assert_int_equal(rec.usage.generated_tokens, 5);
    struct worker_site_seen s = worker_site_seen("good");
    assert_int_equal(s.requests, 1);
    assert_int_equal(s.errors, 0);
    assert_int_equal(s.prompt_tokens, 3);
    assert_int_equal(s.generated_tokens, 5);
    assert_int_equal(s.in_flight, 0);
    assert_int_equal(s.n_ctx, 77);

    assert_true(worker_site_send(&rec, "good", REQUEST_INFER));
    worker_site_until_closed(&rec);
    assert_int_equal(rec.n_results, 2);
    assert_string_equal(rec.labels[0], "animals"); /* the label set of this name */
    s = worker_site_seen("good");
    assert_int_equal(s.requests, 2);
    assert_int_equal(s.prompt_tokens, 3 + 2 * 4);
    assert_int_equal(s.n_restarts, 0);
    WAIT_UNTIL(worker_site_seen("good").prefill_ns > 0); /* it says so several times a second */
    assert_int_equal(worker_site_seen("good").prefill_ns, 1000);
    assert_int_equal(worker_site.counts.n_requests, 2);
}

/* A worker of another kind of models, or a wrong version. */
static void test_refused(void **state)
{
    static const uint8_t other[32] = {1};
    (void)state;
    add("good", PATH);
    WAIT_UNTIL(worker_site_is_ready("good"));
    struct request *r = worker_site_request("good", REQUEST_GENERATE);
    r->version = other;
    recorder_init(&rec);
    assert_true(worker_site.owner.apart->ops->run(worker_site.owner.apart, &worker_site.owner, r,
                                                  &rec.sink));
    worker_site_until_closed(&rec);
    assert_int_equal(rec.n_fails, 1);
    assert_int_equal(rec.n_starts, 0);
    assert_int_equal(worker_site_seen("good").requests, 0);
}

/* A worker that dies of a request is started again, and the request gets its answer. */
static void test_a_worker_that_dies(void **state)
{
    char got[4096];
    (void)state;
    add("dies", PATH);
    assert_true(worker_site_send(&rec, "dies", REQUEST_GENERATE));
    worker_site_until_closed(&rec);
    assert_int_equal(rec.n_fails, 0);
    assert_string_equal(rec.text[0], "hello");
    struct worker_site_seen s = worker_site_seen("dies");
    assert_int_equal(s.n_restarts, 1);
    assert_int_equal(s.requests, 1);
    assert_int_equal(s.errors, 0);
    assert_int_equal(s.in_flight, 0);
    assert_string_equal(s.error, "");
    assert_int_equal(facts_of("dies", got, sizeof(got)), 2);
    assert_int_equal(worker_site.counts.n_requests, 1);
    assert_int_equal(worker_site.counts.n_retried, 1);
    assert_true(worker_site_send(&rec, "dies", REQUEST_GENERATE));
    worker_site_until_closed(&rec);
    assert_string_equal(rec.text[0], "hello");
    assert_int_equal(worker_site_seen("dies").n_restarts, 1);
}

/* Cancelled while the model loads, and while it answers. */
static void test_cancelled(void **state)
{
    (void)state;
    add("loads", OTHER_PATH);
    assert_true(worker_site_send(&rec, "loads", REQUEST_GENERATE));
    loop_turn(worker_site.loop, 0);
    assert_int_equal(rec.n_closed, 0);
    flow_cancel(&rec.sink);
    char path[80];
    snprintf(path, sizeof(path), "%s/go", dir);
    FILE *go = fopen(path, "w");
    assert_non_null(go);
    fclose(go);
    worker_site_until_closed(&rec);
    assert_int_equal(rec.n_starts + rec.n_fails, 0);
    add("good", PATH);
    WAIT_UNTIL(worker_site_is_ready("good"));
    assert_true(worker_site_send(&rec, "good", REQUEST_GENERATE));
    flow_cancel(&rec.sink);
    worker_site_until_closed(&rec);
    assert_int_equal(rec.n_fails + rec.n_last, 0);
    struct worker_site_seen s = worker_site_seen("good");
    assert_int_equal(s.cancelled, 1);
    assert_int_equal(s.in_flight, 0);
}

/* The server stops: workers that end with it are not lost, and none of them is left. */
static void test_stops(void **state)
{
    char got[1024];
    (void)state;
    add("good", PATH);
    WAIT_UNTIL(worker_site_is_ready("good"));
    FILE *log = tmpfile();
    int was = dup(STDERR_FILENO);
    fflush(stderr);
    assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
    worker_site_stop();
    assert_true(dup2(was, STDERR_FILENO) >= 0);
    close(was);
    ssize_t n = pread(fileno(log), got, sizeof(got) - 1, 0);
    got[n > 0 ? n : 0] = '\0';
    fclose(log);
    assert_null(strstr(got, "gone"));
    assert_int_equal(facts_of("good", got, sizeof(got)), 1);
}

/* A server that stops gives its workers free: one that is killed with it is neither reported nor
 * started again. */
static void test_killed_with_the_server(void **state)
{
    char got[1024];
    const char *said;
    int pid = 0;
    (void)state;
    add("good", PATH);
    WAIT_UNTIL(worker_site_is_ready("good"));
    assert_int_equal(facts_of("good", got, sizeof(got)), 1);
    said = strstr(got, " pid=");
    assert_non_null(said);
    pid = atoi(said + 5);
    assert_true(pid > 1);
    workers_release(worker_site.workers);
    kill(pid, SIGKILL);
    WAIT_UNTIL(kill(pid, 0) < 0); /* it was waited for */
    add("next", OTHER_PATH);      /* which the same thread starts after it has dealt with the end */
    WAIT_UNTIL(worker_site_is_ready("next"));
    const struct worker_site_seen s = worker_site_seen("good");
    assert_int_equal(s.n_restarts, 0);
    assert_string_equal(s.error, "");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_site, close_site)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_how_a_worker_begins, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_how_a_worker_ends, make_dir, remove_dir),
        cmocka_unit_test(test_no_program),
        cmocka_unit_test(test_as_many_loops_as_fit),
        cmocka_unit_test(test_a_worker_that_ends_at_once),
        TEST(test_requests),
        TEST(test_refused),
        TEST(test_a_worker_that_dies),
        TEST(test_cancelled),
        TEST(test_stops),
        TEST(test_killed_with_the_server),
    };
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return play_worker();
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
