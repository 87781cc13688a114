/* test_net.c - the event loop, and HTTP over it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/http.h"
#include "net/listen.h"
#include "net/loop.h"

static struct loop *open_loop(void)
{
    struct loop *l;
    struct err e = {0};
    if (loop_create(&l, &e) < 0)
        fail_msg("%s", e.msg);
    return l;
}

/* ---- loop ---- */

struct seen {
    char order[64];
    size_t n;
    struct loop *loop;
};

struct timer {
    struct executor_timer t;
    struct seen *seen;
    char name;
};

static void on_timer(struct executor_timer *t)
{
    struct timer *x = LOOP_OF(t, struct timer, t);
    x->seen->order[x->seen->n++] = x->name;
}

static void test_timers_fire_in_order_and_not_when_cleared(void **state)
{
    (void)state;
    struct seen seen = {.n = 0};
    struct loop *l = open_loop();
    struct timer t[6];
    static const unsigned ms[6] = {40, 10, 25, 10, 20, 60};
    uint64_t now = loop_now(l);
    for (int i = 0; i < 6; i++) {
        t[i] = (struct timer){.t.fn = on_timer, .seen = &seen, .name = (char)('a' + i)};
        loop_timer_set(l, &t[i].t, now + ms[i] * 1000000u);
    }
    loop_timer_clear(l, &t[3].t);
    loop_timer_clear(l, &t[3].t);                     /* twice is fine */
    loop_timer_set(l, &t[5].t, now + 1000000u);       /* moved earlier */
    loop_timer_set(l, &t[2].t, now + 20000000000000); /* and beyond one turn of the wheel */
    for (int i = 0; seen.n < 4 && i < 60000; i++)
        loop_turn(l, 5);
    assert_memory_equal(seen.order, "fbea", 4);
    loop_turn(l, 0);
    assert_int_equal(seen.n, 4);
    loop_destroy(l);
}

struct posted {
    struct executor_task task;
    struct seen *seen;
    uint32_t value;
};

static void on_post(struct executor_task *t)
{
    struct posted *p = LOOP_OF(t, struct posted, task);
    p->seen->n += p->value;
    if (p->seen->n == 1000u * 999u / 2u)
        loop_stop(p->seen->loop);
}

static void *poster(void *arg)
{
    struct posted *p = arg;
    for (int i = 0; i < 1000; i++)
        loop_post(p[i].seen->loop, &p[i].task);
    return NULL;
}

static void test_posts_from_another_thread_all_arrive(void **state)
{
    (void)state;
    static struct posted p[1000];
    struct seen seen = {.loop = open_loop()};
    pthread_t thread;
    for (uint32_t i = 0; i < 1000; i++)
        p[i] = (struct posted){.task.fn = on_post, .seen = &seen, .value = i};
    assert_int_equal(pthread_create(&thread, NULL, poster, p), 0);
    loop_run(seen.loop);
    pthread_join(thread, NULL);
    assert_int_equal(seen.n, 1000u * 999u / 2u);
    loop_destroy(seen.loop);
}

struct later {
    struct executor_task task;
    struct seen *seen;
    char name;
    struct later *also;
};

static void on_later(struct executor_task *t)
{
    struct later *x = LOOP_OF(t, struct later, task);
    x->seen->order[x->seen->n++] = x->name;
    if (x->also)
        loop_later(x->seen->loop, &x->also->task);
}

static void test_later_runs_once_in_order_and_can_be_taken_back(void **state)
{
    (void)state;
    struct seen seen = {.loop = open_loop()};
    struct later c = {{.fn = on_later}, &seen, 'c', NULL}, b = {{.fn = on_later}, &seen, 'b', NULL},
                 a = {{.fn = on_later}, &seen, 'a', &c}, d = {{.fn = on_later}, &seen, 'd', NULL};
    loop_later(seen.loop, &a.task);
    loop_later(seen.loop, &d.task);
    loop_later(seen.loop, &a.task);
    loop_forget(seen.loop, &d.task);
    loop_forget(seen.loop, &d.task);
    loop_later(seen.loop, &b.task);
    loop_turn(seen.loop, 0);
    assert_int_equal(seen.n, 3);
    assert_memory_equal(seen.order, "abc", 3);
    loop_destroy(seen.loop);
}

/* ---- HTTP ---- */

struct site {
    struct loop *loop;
    struct http_server *http;
    struct http_req *held;   /* of /hold: not answered yet */
    int cancelled, drained;  /* how often */
    int n_admitted, n_large; /* calls of admit; requests of /large */
    int client;
    struct buf got;
};

static void on_cancelled(struct http_req *r)
{
    struct site *s = r->user;
    s->cancelled++;
    s->held = NULL;
}

static void on_drained(struct http_req *r)
{
    struct site *s = r->user;
    s->drained++;
}

static void handler(void *ctx, struct http_req *r)
{
    struct site *s = ctx;
    char text[512];
    r->user = s;
    r->cancelled = on_cancelled;
    r->drained = on_drained;
    if (strcmp(r->path, "/hold") == 0) {
        s->held = r;
        return;
    }
    if (strcmp(r->path, "/large") == 0) {
        static char block[100000];
        s->n_large++;
        http_begin(r, 200, NULL, 0, sizeof(block));
        http_write(r, block, sizeof(block));
        http_end(r);
        return;
    }
    char who[16] = "-";
    (void)http_query(r, "who", who, sizeof(who));
    const char *h = http_header(r, "x-test");
    int n = snprintf(text, sizeof(text), "%s %s [%s] %s %zu", r->method, r->path, who, h ? h : "-",
                     r->body_bytes);
    http_begin(r, 200, NULL, 0, strcmp(r->path, "/stream") == 0 ? -1 : n);
    http_write(r, text, (size_t)n);
    http_end(r);
}

/* Refuses bodies for /no at their headers. */
static bool admit(void *ctx, struct http_req *r)
{
    struct site *s = ctx;
    s->n_admitted++;
    r->user = s;
    r->cancelled = on_cancelled;
    if (strcmp(r->path, "/no") != 0)
        return true;
    http_begin(r, 401, NULL, 0, 2);
    http_write(r, "no", 2);
    http_end(r);
    return false;
}

static int open_site_with(struct site *s, const struct http_limits *limits)
{
    int fd[2];
    struct err e = {0};
    *s = (struct site){.client = -1};
    buf_init(&s->got, 256 << 20);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) < 0)
        return SHOAL_EIO;
    s->client = fd[0];
    int rc = loop_create(&s->loop, &e);
    if (rc == 0)
        rc = http_server_create(&s->http, s->loop, limits, handler, s, &e);
    if (rc < 0) {
        close(fd[1]);
        return rc;
    }
    http_server_set_admit(s->http, admit);
    return http_server_adopt(s->http, fd[1], &e);
}

static int open_site(struct site *s)
{
    return open_site_with(s, NULL);
}

static void close_site(struct site *s)
{
    http_server_destroy(s->http);
    loop_destroy(s->loop);
    if (s->client >= 0)
        close(s->client);
    buf_fini(&s->got);
}

/* Runs the loop until it is idle; collects the client's input. */
static void pump(struct site *s)
{
    for (int idle = 0; idle < 3;) {
        char block[65536];
        loop_turn(s->loop, 0);
        ssize_t n = s->client >= 0 ? recv(s->client, block, sizeof(block), 0) : -1;
        if (n > 0)
            buf_put(&s->got, block, (size_t)n);
        idle = n > 0 ? 0 : idle + 1;
    }
}

static void say(struct site *s, const char *text)
{
    if (send(s->client, text, strlen(text), MSG_NOSIGNAL) < 0)
        return; /* the server may have closed */
    pump(s);
}

static void test_requests_reach_the_handler(void **state)
{
    static const struct {
        const char *why, *request, *want;
    } cases[] = {
        {"plain", "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "\r\n\r\nGET /a [-] - 0"},
        {"query", "GET /a?x=1&who=a%20b+c HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a [a b c] - 0"},
        {"header names in any case", "GET /a HTTP/1.1\r\nHost: x\r\nX-TeSt:  v \r\n\r\n",
         "GET /a [-] v 0"},
        {"an empty value", "GET /a HTTP/1.1\r\nHost: x\r\nX-Test:\r\n\r\n", "GET /a [-]  0"},
        {"body", "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd", "POST /b [-] - 4"},
        {"unknown length", "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n",
         "\r\n\r\n13\r\nGET /stream [-] - 0\r\n0\r\n\r\n"},
        {"an absolute address", "GET http://x/a?who=b HTTP/1.1\r\nHost: x\r\n\r\n",
         "GET /a [b] - 0"},
        {"a trailer is no header",
         "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Test: "
         "evil\r\n\r\n",
         "POST /c [-] - 1"},
        {"an upgrade that nobody wants is ignored",
         "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
         "GET /a [-] - 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct site s;
        assert_int_equal(open_site(&s), 0);
        say(&s, cases[i].request);
        if (!strstr(buf_str(&s.got), cases[i].want))
            fail_msg("%s: %s", cases[i].why, buf_str(&s.got));
        close_site(&s);
    }
}

/* Requests that one server reads in one way and another in a different one. Each is sent in one
 * piece, and byte by byte. */
static void test_ambiguous_requests_are_refused(void **state)
{
    static const struct {
        const char *why, *request;
    } cases[] = {
        {"a folded Transfer-Encoding", "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n "
                                       "chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
        {"one that is folded in its value",
         "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chun\r\n\tked\r\n\r\n"},
        {"a folded value", "GET /a HTTP/1.1\r\nHost: x\r\nX-Test: a\r\n b\r\n\r\n"},
        {"chunks of 1.0",
         "POST /b HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
        {"a header without a name", "GET /a HTTP/1.1\r\nHost: x\r\n: v\r\n\r\n"},
        {"the first one", "GET /a HTTP/1.1\r\n: v\r\nHost: x\r\n\r\n"},
        {"nor a value", "GET /a HTTP/1.1\r\nHost: x\r\n:\r\n\r\n"},
        {"two lengths",
         "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
        {"a length and chunks",
         "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
         "1\r\na\r\n0\r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const char *request = cases[i / 2].request;
        struct site s;
        assert_int_equal(open_site(&s), 0);
        for (size_t k = 0; i % 2 == 1 && k < strlen(request); k++)
            say(&s, (const char[]){request[k], '\0'});
        if (i % 2 == 0)
            say(&s, request);
        if (strncmp(buf_str(&s.got), "HTTP/1.1 400", 12) != 0)
            fail_msg("%s: %s", cases[i / 2].why, buf_str(&s.got));
        close_site(&s);
    }
}

/* A client that only sends no more is answered. */
static void test_a_half_closed_client_is_answered(void **state)
{
    static const char *const requests[] = {
        "POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab",
        "POST /hold HTTP/1.0\r\nContent-Length: 2\r\n\r\nab"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct http_stats st;
        struct site s;
        assert_int_equal(open_site(&s), 0);
        say(&s, requests[i]);
        shutdown(s.client, SHUT_WR);
        pump(&s);
        assert_non_null(s.held);
        assert_int_equal(s.cancelled, 0);
        assert_string_equal(buf_str(&s.got), i == 0 ? "HTTP/1.1 102 Processing\r\n\r\n" : "");
        http_begin(s.held, 200, NULL, 0, 4);
        http_write(s.held, "done", 4);
        http_end(s.held);
        pump(&s);
        assert_non_null(strstr(buf_str(&s.got), "\r\n\r\ndone"));
        http_server_stats(s.http, &st);
        assert_int_equal(st.conns, 0);
        close_site(&s);
    }
}

static void test_a_client_that_leaves_cancels(void **state)
{
    struct site s;
    (void)state;
    assert_int_equal(open_site(&s), 0);
    say(&s, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_non_null(s.held);
    assert_int_equal(s.cancelled, 0);
    close(s.client);
    s.client = -1;
    pump(&s);
    assert_int_equal(s.cancelled, 1);
    close_site(&s);
    assert_int_equal(s.cancelled, 1);
}

static void test_pipelined_requests_wait_for_the_answer_before(void **state)
{
    struct site s;
    (void)state;
    assert_int_equal(open_site(&s), 0);
    say(&s, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(s.got.len, 0);
    http_begin(s.held, 200, NULL, 0, 1);
    http_write(s.held, "h", 1);
    http_end(s.held);
    pump(&s);
    const char *first = strstr(buf_str(&s.got), "\r\n\r\nh"),
               *second = strstr(s.got.data, "GET /a");
    assert_true(first && second && first < second);
    close_site(&s);
}

/* A client that sends many requests and reads nothing occupies the kernel's buffers and one
 * answer. */
static void test_pipelined_requests_wait_for_the_reader(void **state)
{
    static const char request[] = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
    const int n = 1000;
    struct site s;
    struct buf all;
    (void)state;
    buf_init(&all, 1 << 20);
    for (int i = 0; i < n; i++)
        buf_puts(&all, request);
    assert_int_equal(open_site(&s), 0);
    int client = s.client;
    s.client = -1; /* reads nothing */
    assert_int_equal(send(client, all.data, all.len, MSG_NOSIGNAL), (int)all.len);
    for (int i = 0; i < 100; i++)
        pump(&s);
    assert_in_range(s.n_large, 1, 50);
    s.client = client;
    for (int i = 0; i < 4000 && s.n_large < n; i++)
        pump(&s);
    assert_int_equal(s.n_large, n);
    pump(&s);
    assert_true(s.got.len > (size_t)n * 100000);
    buf_fini(&all);
    close_site(&s);
}

/* One turn of the loop handles a bounded number of requests per connection. */
static void test_a_turn_is_shared(void **state)
{
    static const char request[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    struct http_stats st;
    struct site s;
    struct buf all;
    (void)state;
    buf_init(&all, 1 << 20);
    for (int i = 0; i < 100; i++)
        buf_puts(&all, request);
    assert_int_equal(open_site(&s), 0);
    assert_int_equal(send(s.client, all.data, all.len, MSG_NOSIGNAL), (int)all.len);
    uint64_t before = 0;
    for (int i = 0; i < 200 && before < 100; i++) {
        loop_turn(s.loop, 0);
        http_server_stats(s.http, &st);
        assert_in_range(st.requests - before, 0, 8);
        before = st.requests;
    }
    assert_int_equal(before, 100);
    shutdown(s.client, SHUT_WR);
    pump(&s);
    http_server_stats(s.http, &st);
    assert_int_equal(st.conns, 0);
    buf_fini(&all);
    close_site(&s);
}

/* A client that has sent everything and closed its side still gets every answer. */
static void test_pipelined_requests_are_answered_after_the_end(void **state)
{
    static const char request[] = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
    struct site s;
    (void)state;
    assert_int_equal(open_site(&s), 0);
    for (int i = 0; i < 20; i++)
        assert_true(send(s.client, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0);
    shutdown(s.client, SHUT_WR);
    for (int i = 0; i < 100; i++)
        pump(&s);
    assert_int_equal(s.n_large, 20);
    assert_true(s.got.len > (size_t)20 * 100000);
    close_site(&s);
}

static void test_bodies_are_admitted_by_their_headers(void **state)
{
    struct site s;
    (void)state;
    assert_int_equal(open_site(&s), 0);
    say(&s, "POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
    assert_int_equal(s.n_admitted, 0); /* the whole body arrived: the handler decides */
    assert_non_null(strstr(buf_str(&s.got), "POST /no [-] - 2"));
    say(&s, "POST /yes HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    assert_int_equal(s.n_admitted, 1);
    assert_non_null(strstr(buf_str(&s.got), "100 Continue"));
    say(&s, "ab");
    say(&s, "cd");
    assert_non_null(strstr(buf_str(&s.got), "POST /yes [-] - 4"));
    buf_clear(&s.got);
    say(&s, "POST /no HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    assert_int_equal(s.n_admitted, 2);
    assert_non_null(strstr(buf_str(&s.got), "HTTP/1.1 401"));
    assert_non_null(strstr(buf_str(&s.got), "connection: close"));
    assert_null(strstr(buf_str(&s.got), "100 Continue"));
    close_site(&s);
    assert_int_equal(s.cancelled, 0);

    assert_int_equal(open_site(&s), 0);
    say(&s, "POST /yes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    assert_int_equal(s.n_admitted, 1);
    assert_int_equal(s.cancelled, 0);
    close_site(&s); /* in the middle of the body */
    assert_int_equal(s.cancelled, 1);
}

/* A body that exceeds the clients' budget is rejected, and its memory is freed. */
static void test_bodies_above_the_budget_are_refused(void **state)
{
    struct http_limits lim = http_default_limits;
    static char block[65536];
    struct site s;
    (void)state;
    lim.max_held_bytes = 1 << 20;
    assert_int_equal(open_site_with(&s, &lim), 0);
    say(&s, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n");
    for (int i = 0; i < 64 && s.got.len == 0; i++) {
        if (send(s.client, block, sizeof(block), MSG_NOSIGNAL) < 0)
            break;
        pump(&s);
    }
    assert_non_null(strstr(buf_str(&s.got), "HTTP/1.1 503"));
    assert_int_equal(s.cancelled, 1);
    close_site(&s);

    assert_int_equal(open_site_with(&s, &lim), 0);
    for (int round = 0; round < 5; round++) { /* the same slot is reused */
        buf_clear(&s.got);
        say(&s, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 327680\r\n\r\n");
        for (int i = 0; i < 5; i++) {
            assert_int_equal(send(s.client, block, sizeof(block), MSG_NOSIGNAL), sizeof(block));
            pump(&s);
        }
        assert_non_null(strstr(buf_str(&s.got), "POST /a [-] - 327680"));
    }
    close_site(&s);
}

/* With too many connections, the one that has waited longest is closed. */
static void test_waiting_connections_make_room(void **state)
{
    struct http_limits lim = http_default_limits;
    struct err e = {0};
    struct http_stats st;
    struct site s;
    int fd[8], listener = -1;
    char name[64];
    (void)state;
    lim.max_conns = 3;
    assert_int_equal(open_site_with(&s, &lim), 0);
    say(&s, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"); /* busy: it stays */
    assert_int_equal(listen_open(&listener, "127.0.0.1:0", LISTEN_ALONE, &e), 0);
    struct sockaddr_storage ss;
    socklen_t n = sizeof(ss);
    assert_int_equal(getsockname(listener, (struct sockaddr *)(void *)&ss, &n), 0);
    assert_int_equal(http_server_listen(s.http, listener, NULL, &e), 0);
    for (int i = 0; i < 8; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fd[i], (struct sockaddr *)(void *)&ss, n), 0);
        pump(&s);
    }
    http_server_stats(s.http, &st);
    assert_int_equal(st.conns, 3);
    assert_int_equal(st.refused, 0);
    for (int i = 0; i < 8; i++) {
        int open = recv(fd[i], name, sizeof(name), MSG_DONTWAIT) < 0;
        assert_int_equal(open, i >= 6); /* the newest two, and the busy one */
        close(fd[i]);
    }
    assert_non_null(s.held);
    assert_int_equal(s.cancelled, 0);
    close_site(&s);
}

static void test_a_slow_reader_is_known_and_told_when_there_is_room(void **state)
{
    struct site s;
    static char block[1 << 20];
    (void)state;
    assert_int_equal(open_site(&s), 0);
    int client = s.client;
    say(&s, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    s.client = -1; /* reads nothing for a while */
    http_begin(s.held, 200, NULL, 0, -1);
    for (int i = 0; i < 4; i++)
        http_write(s.held, block, sizeof(block));
    pump(&s);
    assert_true(http_queued(s.held) > sizeof(block));
    assert_int_equal(s.drained, 0);
    s.client = client;
    for (int i = 0; i < 2000 && s.drained == 0; i++)
        pump(&s);
    assert_int_equal(s.drained, 1);
    assert_int_equal(http_queued(s.held), 0);
    assert_true(s.got.len > 4 * sizeof(block));
    http_end(s.held);
    close_site(&s);
}

/* The write timeout starts when there is something to write, not with the last byte before it. */
static void test_a_late_answer_is_not_a_slow_reader(void **state)
{
    struct http_limits lim = http_default_limits;
    struct site s;
    (void)state;
    lim.write_ms = 20;
    assert_int_equal(open_site_with(&s, &lim), 0);
    say(&s, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    usleep(50000); /* write_ms expires when the answer arrives, in the same turn */
    http_begin(s.held, 200, NULL, 0, 4);
    http_write(s.held, "late", 4);
    pump(&s);
    assert_int_equal(s.cancelled, 0);
    assert_non_null(strstr(buf_str(&s.got), "late"));
    http_end(s.held);
    close_site(&s);
}

/* ---- HTTP/2 by hand: settings with a window of 0, and a request ---- */

static const char h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                 "\0\0\6\4\0\0\0\0\0" /* SETTINGS, one entry: */
                                 "\0\4\0\0\0\0";      /* INITIAL_WINDOW_SIZE 0 */
/* HEADERS of stream 1 that ends: GET, http, /large, x (literals of static names) */
static const char h2_request[] = "\0\0\x0d\1\5\0\0\0\1"
                                 "\x82\x86\x44\6/large\x41\1x";
static const char h2_ping[] = "\0\0\x08\6\0\0\0\0\0abcdefgh";

/* Whoever opens no window is not waited for longer than a client that does not read, whatever else
 * it sends. */
static void test_http2_without_a_window_ends(void **state)
{
    struct http_limits lim = http_default_limits;
    (void)state;
    lim.write_ms = 40;
    for (int pings = 0; pings < 2; pings++) {
        struct http_stats st;
        struct site s;
        assert_int_equal(open_site_with(&s, &lim), 0);
        assert_true(send(s.client, h2_preface, sizeof(h2_preface) - 1, MSG_NOSIGNAL) > 0);
        assert_true(send(s.client, h2_request, sizeof(h2_request) - 1, MSG_NOSIGNAL) > 0);
        pump(&s);
        assert_int_equal(s.n_large, 1);
        st.conns = 1;
        for (int i = 0; i < 60000 && st.conns > 0; i++) {
            if (pings)
                (void)send(s.client, h2_ping, sizeof(h2_ping) - 1, MSG_NOSIGNAL);
            loop_turn(s.loop, 1);
            http_server_stats(s.http, &st);
        }
        assert_int_equal(st.conns, 0);
        close_site(&s);
    }
}

/* Whatever allocation fails: an answer, or a closed connection; nothing leaks, nothing crashes. */
static void test_every_allocation_may_fail(void **state)
{
    static const char request[] =
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /stream HTTP/1.1\r\nHost: "
        "x\r\n\r\n";
    static const char frames[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
                                 "\0\0\6\1\5\0\0\0\1\x82\x84\x86\x41\1x";
    (void)state;
    for (int h2 = 0; h2 < 2; h2++)
        for (uint64_t n = 1; n < 200; n++) {
            struct site s;
            uint64_t before = mem_calls();
            mem_fail_at(n);
            if (open_site(&s) == 0) {
                if (send(s.client, h2 ? frames : request,
                         (h2 ? sizeof(frames) : sizeof(request)) - 1, MSG_NOSIGNAL) > 0)
                    pump(&s);
            }
            close_site(&s);
            mem_fail_at(0);
            if (mem_calls() - before < n)
                break; /* no allocation failed any more */
            assert_true(n < 199);
        }
}

static void test_addresses(void **state)
{
    static const struct {
        const char *address;
        int code;
    } cases[] = {{"127.0.0.1:0", 0},
                 {"[::1]", SHOAL_EINVAL},
                 {"nonsense", SHOAL_EINVAL},
                 {"127.0.0.1:", SHOAL_EINVAL},
                 {"unix:", SHOAL_EINVAL},
                 {"300.1.1.1:80", SHOAL_EINVAL},
                 {"127.0.0.1:http", SHOAL_EINVAL}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        int fd = -1;
        int rc = listen_open(&fd, cases[i].address, LISTEN_ALONE, &e);
        if (rc != cases[i].code)
            fail_msg("%s: %d %s", cases[i].address, rc, e.msg);
        if (fd >= 0)
            close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_fire_in_order_and_not_when_cleared),
        cmocka_unit_test(test_posts_from_another_thread_all_arrive),
        cmocka_unit_test(test_later_runs_once_in_order_and_can_be_taken_back),
        cmocka_unit_test(test_requests_reach_the_handler),
        cmocka_unit_test(test_ambiguous_requests_are_refused),
        cmocka_unit_test(test_a_half_closed_client_is_answered),
        cmocka_unit_test(test_http2_without_a_window_ends),
        cmocka_unit_test(test_a_client_that_leaves_cancels),
        cmocka_unit_test(test_pipelined_requests_wait_for_the_answer_before),
        cmocka_unit_test(test_pipelined_requests_wait_for_the_reader),
        cmocka_unit_test(test_a_turn_is_shared),
        cmocka_unit_test(test_pipelined_requests_are_answered_after_the_end),
        cmocka_unit_test(test_bodies_are_admitted_by_their_headers),
        cmocka_unit_test(test_bodies_above_the_budget_are_refused),
        cmocka_unit_test(test_waiting_connections_make_room),
        cmocka_unit_test(test_a_slow_reader_is_known_and_told_when_there_is_room),
        cmocka_unit_test(test_a_late_answer_is_not_a_slow_reader),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
