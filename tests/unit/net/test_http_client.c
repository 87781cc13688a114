/* test_http_client.c - the HTTP/2 client against our own server on the same loop, and against
 * peers that refuse, break off, fall silent or disconnect. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/listen.h"
#include "net/loop.h"

#define MIB ((size_t)1 << 20)
#define LONG_S 60 /* only ends a test that hangs */

struct site {
    struct loop *loop;
    struct http_server *http;
    struct http_client *client;
    char address[200];
    struct http_req *held;   /* of /hold */
    struct http_req *stream; /* of /flood: written as the client reads */
    size_t flood_left, most_queued;
    int cancelled;
};

/* ---- the server ---- */

static void on_cancelled(struct http_req *r)
{
    struct site *s = r->user;
    s->cancelled++;
    if (s->held == r)
        s->held = NULL;
    if (s->stream == r)
        s->stream = NULL;
}

static void flood(struct http_req *r)
{
    static char block[16384];
    struct site *s = r->user;
    memset(block, 'f', sizeof(block));
    do {
        size_t n = s->flood_left < sizeof(block) ? s->flood_left : sizeof(block);
        s->flood_left -= n;
        http_write(r, block, n);
    } while (s->flood_left > 0 && http_queued(r) < 65536);
    if (s->flood_left == 0) {
        s->stream = NULL;
        http_end(r);
    }
}

static void echo_arrived(struct http_req *r)
{
    size_t n = r->body_bytes;
    bool over = !r->more;
    http_write(r, r->body, n);
    http_take(r, n);
    if (over)
        http_end(r);
}

static void handler(void *ctx, struct http_req *r)
{
    static const struct http_header trailers[] = {{"grpc-status", "0"}, {"x-end", "yes"}};
    static const struct http_header headers[] = {{"x-from", "the server"}};
    struct site *s = ctx;
    r->user = s;
    r->cancelled = on_cancelled;
    if (strcmp(r->path, "/hold") == 0) {
        s->held = r;
        http_begin(r, 200, NULL, 0, -1);
        http_write(r, "first", 5);
    } else if (strcmp(r->path, "/flood") == 0) {
        s->stream = r;
        r->drained = flood;
        http_begin(r, 200, NULL, 0, -1);
        flood(r);
    } else if (strcmp(r->path, "/early-echo") == 0) {
        r->arrived = echo_arrived;
        http_begin(r, 200, NULL, 0, -1);
        if (r->body_bytes > 0)
            echo_arrived(r);
    } else if (strcmp(r->path, "/echo") == 0) {
        http_begin(r, 200, headers, 1, -1);
        http_write(r, r->body, r->body_bytes);
        http_end_trailers(r, trailers, 2);
    } else {
        http_begin(r, 404, NULL, 0, 0);
        http_end(r);
    }
}

static bool early(void *ctx, const char *path)
{
    (void)ctx;
    return strncmp(path, "/early", 6) == 0;
}

static void open_loop(struct site *s)
{
    *s = (struct site){.flood_left = 0};
    assert_int_equal(loop_create(&s->loop, NULL), 0);
}

static void serve(struct site *s, const char *address, uint32_t max_streams)
{
    struct http_limits limits = http_default_limits;
    struct err e = {0};
    int fd = -1;
    if (max_streams)
        limits.max_streams = max_streams;
    limits.max_body_bytes = 64 * MIB;
    if (http_server_create(&s->http, s->loop, &limits, handler, s, &e) < 0 ||
        listen_open(&fd, address, LISTEN_ALONE, &e) < 0)
        fail_msg("%s", e.msg);
    http_server_set_early(s->http, early);
    listen_address(fd, s->address, sizeof(s->address));
    assert_int_equal(http_server_listen(s->http, fd, NULL, &e), 0);
}

static void connect_to(struct site *s, const struct http_client_opts *o)
{
    struct http_client_opts opts = o ? *o : (struct http_client_opts){.connect_ms = 30000};
    struct err e = {0};
    opts.address = s->address;
    if (!opts.ping_ms)
        opts.ping_ms = opts.ping_timeout_ms = 60000;
    if (http_client_create(&s->client, s->loop, &opts, &e) < 0)
        fail_msg("%s", e.msg);
}

static void open_site(struct site *s)
{
    open_loop(s);
    serve(s, "127.0.0.1:0", 0);
    connect_to(s, NULL);
}

static void close_site(struct site *s)
{
    http_client_destroy(s->client);
    loop_flush(s->loop);
    http_server_destroy(s->http);
    loop_destroy(s->loop);
}

/* ---- the calls ---- */

struct asked {
    struct http_call call;
    struct site *site;
    int status, n_heads, n_ended, n_failed, code;
    size_t n_trailers;
    char first_header[64], last_trailer[64], message[300];
    struct buf got;
    size_t pause_at; /* pauses when this many bytes have arrived */
    bool cancel_in_data, cancel_in_head, destroy_in_data;
    int n_data;
};

static void on_head(struct http_call *k, int status, const struct http_header *headers, size_t n)
{
    struct asked *a = LOOP_OF(k, struct asked, call);
    a->n_heads++;
    a->status = status;
    for (size_t i = 0; i < n; i++)
        if (strcmp(headers[i].name, "x-from") == 0)
            snprintf(a->first_header, sizeof(a->first_header), "%s", headers[i].value);
    if (a->cancel_in_head)
        http_call_cancel(k);
}

static void on_data(struct http_call *k, const char *p, size_t n)
{
    struct asked *a = LOOP_OF(k, struct asked, call);
    assert_false(k->paused);
    a->n_data++;
    buf_put(&a->got, p, n);
    if (a->pause_at && a->got.len >= a->pause_at) {
        a->pause_at = 0;
        http_call_pause(k);
    }
    if (a->cancel_in_data)
        http_call_cancel(k);
    if (a->destroy_in_data) {
        http_client_destroy(a->site->client);
        a->site->client = NULL;
    }
}

static void on_ended(struct http_call *k, const struct http_header *trailers, size_t n)
{
    struct asked *a = LOOP_OF(k, struct asked, call);
    a->n_ended++;
    a->n_trailers = n;
    if (n > 0)
        snprintf(a->last_trailer, sizeof(a->last_trailer), "%s: %s", trailers[n - 1].name,
                 trailers[n - 1].value);
    memset(k, 0x5a, sizeof(*k)); /* it is ours again: nobody else may read it */
    k->client = NULL;
}

static void on_failed(struct http_call *k, int code, const char *message)
{
    struct asked *a = LOOP_OF(k, struct asked, call);
    a->n_failed++;
    a->code = code;
    snprintf(a->message, sizeof(a->message), "%s", message);
    memset(k, 0x5a, sizeof(*k));
    k->client = NULL;
}

static const struct http_call_ops ops = {
    .head = on_head, .data = on_data, .ended = on_ended, .failed = on_failed};

static void prepare(struct asked *a, struct site *s)
{
    *a = (struct asked){.call.ops = &ops, .site = s};
    buf_init(&a->got, 256 * MIB);
}

static int start(struct asked *a, const char *path, const char *body, size_t n, bool end)
{
    static const struct http_header headers[] = {{"te", "trailers"}, {"x-test", "1"}};
    return http_call_start(a->site->client, &a->call, "POST", path, headers, 2, body, n, end);
}

static bool is_over(const struct asked *a)
{
    return a->n_ended + a->n_failed > 0;
}

/* Runs the loop until all calls have ended. */
static void wait_for(struct site *s, struct asked *a, size_t n)
{
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    for (size_t i = 0; i < n;) {
        if (is_over(&a[i])) {
            i++;
            continue;
        }
        loop_turn(s->loop, 100);
        if (clock_ns() > until)
            fail_msg("call %zu is not over: %zu bytes", i, a[i].got.len);
    }
}

static void turn_until(struct site *s, const bool *flag, const int *count, int want)
{
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    while (!(flag && *flag) && !(count && *count >= want)) {
        loop_turn(s->loop, 100);
        assert_true(clock_ns() < until);
    }
}

static void forget(struct asked *a)
{
    buf_fini(&a->got);
}

static void expect_echo(const struct asked *a, const char *body, size_t n)
{
    if (a->n_ended != 1 || a->n_failed != 0)
        fail_msg("ended %d, failed %d: %s", a->n_ended, a->n_failed, a->message);
    assert_int_equal(a->n_heads, 1);
    assert_int_equal(a->status, 200);
    assert_string_equal(a->first_header, "the server");
    assert_string_equal(a->last_trailer, "x-end: yes");
    assert_int_equal(a->n_trailers, 2);
    assert_int_equal(a->got.len, n);
    assert_memory_equal(buf_str(&a->got), body, n);
}

/* ---- normal calls ---- */

/* IPv6: containers often lack it. */
static bool has_ipv6(void)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)(void *)&addr, sizeof(addr)) == 0;
    if (fd >= 0)
        close(fd);
    if (!has)
        print_message("no IPv6 on this machine\n");
    return has;
}

static void test_a_call_gets_head_body_and_trailers(void **state)
{
    char folder[] = "/tmp/test_http_client.XXXXXX", path[200];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "unix:%s/socket", folder);
    const char *const addresses[] = {"127.0.0.1:0", path, "[::1]:0"};
    for (size_t i = 0; i < (has_ipv6() ? 3 : 2); i++) {
        struct site s;
        struct asked a;
        struct http_client_state st;
        open_loop(&s);
        serve(&s, addresses[i], 0);
        connect_to(&s, NULL);
        for (int again = 0; again < 2; again++) {
            prepare(&a, &s);
            assert_int_equal(start(&a, "/echo", "hello", 5, true), 0);
            assert_int_equal(is_over(&a), false);
            wait_for(&s, &a, 1);
            expect_echo(&a, "hello", 5);
            forget(&a);
        }
        http_client_state(s.client, &st);
        assert_true(st.connected);
        assert_int_equal(st.n_calls, 0);
        assert_string_equal(st.error, "");
        assert_null(st.peer);
        struct http_stats stats;
        http_server_stats(s.http, &stats);
        assert_int_equal(stats.accepted, 1); /* one connection for both */
        close_site(&s);
    }
    unlink(path + 5);
    rmdir(folder);
}

static void test_a_name_is_looked_up_beside_the_loop(void **state)
{
    struct site s;
    struct asked a;
    (void)state;
    open_loop(&s);
    serve(&s, "127.0.0.1:0", 0);
    char port[16];
    snprintf(port, sizeof(port), "%s", strrchr(s.address, ':') + 1);
    snprintf(s.address, sizeof(s.address), "localhost:%s", port);
    connect_to(&s, NULL);
    prepare(&a, &s);
    assert_int_equal(start(&a, "/echo", "x", 1, true), 0);
    wait_for(&s, &a, 1);
    expect_echo(&a, "x", 1);
    forget(&a);
    close_site(&s);
}

static void test_a_lookup_is_abandoned_when_the_client_goes(void **state)
{
    struct site s;
    struct asked a;
    (void)state;
    open_loop(&s);
    snprintf(s.address, sizeof(s.address), "does-not-exist.invalid:1");
    connect_to(&s, NULL);
    prepare(&a, &s);
    assert_int_equal(start(&a, "/echo", "x", 1, true), 0);
    loop_turn(s.loop, 0);
    close_site(&s);
    assert_int_equal(a.n_failed, 1);
    assert_int_equal(a.code, SHOAL_ECANCELLED);
}

static void test_an_unknown_name_fails_the_call(void **state)
{
    struct site s;
    struct asked a;
    (void)state;
    open_loop(&s);
    snprintf(s.address, sizeof(s.address), "does-not-exist.invalid:1");
    connect_to(&s, NULL);
    prepare(&a, &s);
    assert_int_equal(start(&a, "/echo", "x", 1, true), 0);
    wait_for(&s, &a, 1);
    assert_int_equal(a.code, SHOAL_EIO);
    assert_non_null(strstr(a.message, "does-not-exist.invalid"));
    close_site(&s);
}

/* More calls than the server allows streams: the rest waits. */
static void test_many_calls_share_the_connection(void **state)
{
    enum { N = 300 };
    static struct asked a[N];
    struct site s;
    char body[32];
    (void)state;
    open_loop(&s);
    serve(&s, "127.0.0.1:0", 7);
    connect_to(&s, NULL);
    for (int i = 0; i < N; i++) {
        prepare(&a[i], &s);
        int n = snprintf(body, sizeof(body), "this is call %d", i);
        assert_int_equal(start(&a[i], "/echo", body, (size_t)n, true), 0);
    }
    wait_for(&s, a, N);
    for (int i = 0; i < N; i++) {
        int n = snprintf(body, sizeof(body), "this is call %d", i);
        expect_echo(&a[i], body, (size_t)n);
        forget(&a[i]);
    }
    struct http_stats stats;
    http_server_stats(s.http, &stats);
    assert_int_equal(stats.accepted, 1);
    assert_int_equal(stats.requests, N);
    close_site(&s);
}

static void test_large_bodies_go_both_ways(void **state)
{
    struct site s;
    struct asked a[3];
    (void)state;
    open_site(&s);
    char *body = mem_alloc(5 * MIB);
    for (size_t i = 0; i < 5 * MIB; i++)
        body[i] = (char)(i * 2654435761u >> 13);
    for (int i = 0; i < 3; i++) {
        prepare(&a[i], &s);
        assert_int_equal(start(&a[i], "/echo", body, 5 * MIB, true), 0);
    }
    wait_for(&s, a, 3);
    for (int i = 0; i < 3; i++) {
        expect_echo(&a[i], body, 5 * MIB);
        forget(&a[i]);
    }
    mem_free(body);
    close_site(&s);
}

static void test_a_body_can_be_written_in_pieces(void **state)
{
    struct site s;
    struct asked a;
    (void)state;
    open_site(&s);
    prepare(&a, &s);
    assert_int_equal(start(&a, "/early-echo", NULL, 0, false), 0);
    for (size_t i = 1; i <= 20; i++) {
        assert_int_equal(http_call_write(&a.call, "0123456789", 10, i == 20), 0);
        uint64_t until = clock_ns() + LONG_S * 1000000000ull;
        while (a.got.len < i * 10 && clock_ns() < until)
            loop_turn(s.loop, 100);
        assert_int_equal(a.got.len, i * 10);
    }
    wait_for(&s, &a, 1);
    assert_int_equal(a.n_ended, 1);
    forget(&a);
    close_site(&s);
}

/* ---- back-pressure ---- */

static void test_a_paused_call_holds_the_server_back_and_nobody_else(void **state)
{
    struct site s;
    struct asked a, b;
    (void)state;
    open_site(&s);
    prepare(&a, &s);
    a.pause_at = 1;
    s.flood_left = 40 * MIB;
    assert_int_equal(start(&a, "/flood", NULL, 0, true), 0);
    for (int i = 0; i < 3; i++) { /* others continue meanwhile */
        prepare(&b, &s);
        assert_int_equal(start(&b, "/echo", "b", 1, true), 0);
        wait_for(&s, &b, 1);
        expect_echo(&b, "b", 1);
        forget(&b);
    }
    size_t left = s.flood_left, got = a.got.len;
    assert_true(left > 39 * MIB);
    assert_true(got > 0 && a.call.held.len <= 256 << 10);
    http_call_resume(&a.call);
    wait_for(&s, &a, 1);
    assert_int_equal(a.n_ended, 1);
    assert_int_equal(a.got.len, 40 * MIB);
    forget(&a);
    close_site(&s);
}

static void test_a_response_that_is_complete_waits_for_a_paused_caller(void **state)
{
    struct site s;
    struct asked a;
    (void)state;
    open_site(&s);
    prepare(&a, &s);
    assert_int_equal(start(&a, "/echo", "late", 4, true), 0);
    http_call_pause(&a.call);
    turn_until(&s, &a.call.complete, NULL, 0);
    assert_int_equal(a.got.len, 0);
    http_server_destroy(s.http); /* the connection is no longer needed */
    s.http = NULL;
    for (int i = 0; i < 5; i++)
        loop_turn(s.loop, 10);
    assert_false(is_over(&a));
    http_call_resume(&a.call);
    wait_for(&s, &a, 1);
    expect_echo(&a, "late", 4);
    forget(&a);
    close_site(&s);
}

static void test_queued_bytes_are_bounded(void **state)
{
    struct site s;
    struct asked a;
    static char block[100000];
    (void)state;
    open_loop(&s);
    serve(&s, "127.0.0.1:0", 0);
    connect_to(
        &s, &(struct http_client_opts){.connect_ms = 30000, .max_queued_bytes = sizeof(block) * 2});
    prepare(&a, &s);
    assert_int_equal(start(&a, "/echo", block, sizeof(block), false), 0);
    assert_int_equal(http_call_write(&a.call, block, sizeof(block), false), 0);
    assert_int_equal(http_call_write(&a.call, block, 1, false), SHOAL_EBUSY);
    struct asked b;
    prepare(&b, &s);
    assert_int_equal(start(&b, "/echo", block, 1, true), SHOAL_EBUSY);
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    while (http_call_queued(&a.call) > 0 && clock_ns() < until)
        loop_turn(s.loop, 100);
    assert_int_equal(http_call_write(&a.call, block, 1, true), 0);
    assert_int_equal(http_call_write(&a.call, block, 1, true), SHOAL_EINVAL);
    wait_for(&s, &a, 1);
    assert_int_equal(a.got.len, sizeof(block) * 2 + 1);
    forget(&a);
    close_site(&s);
}

static void test_calls_are_bounded(void **state)
{
    struct site s;
    struct asked a[3];
    (void)state;
    open_loop(&s);
    serve(&s, "127.0.0.1:0", 0);
    connect_to(&s, &(struct http_client_opts){.connect_ms = 30000, .max_calls = 2});
    for (int i = 0; i < 3; i++) {
        prepare(&a[i], &s);
        assert_int_equal(start(&a[i], "/echo", "x", 1, true), i < 2 ? 0 : SHOAL_EBUSY);
    }
    wait_for(&s, a, 2);
    assert_int_equal(start(&a[2], "/echo", "x", 1, true), 0);
    wait_for(&s, a, 3);
    for (int i = 0; i < 3; i++)
        forget(&a[i]);
    close_site(&s);
}

/* ---- cancel ---- */

static void test_cancel_resets_the_stream_and_is_silent(void **state)
{
    struct site s;
    struct asked a[3];
    (void)state;
    open_site(&s);
    for (int i = 0; i < 3; i++)
        prepare(&a[i], &s);
    a[1].cancel_in_data = true;
    a[2].cancel_in_head = true;
    assert_int_equal(start(&a[0], "/hold", NULL, 0, true), 0);
    assert_int_equal(start(&a[1], "/hold", NULL, 0, true), 0);
    assert_int_equal(start(&a[2], "/hold", NULL, 0, true), 0);
    turn_until(&s, NULL, &a[0].n_data, 1);
    http_call_cancel(&a[0].call);
    http_call_cancel(&a[0].call); /* twice is fine */
    turn_until(&s, NULL, &s.cancelled, 3);
    for (int i = 0; i < 3; i++) {
        assert_false(is_over(&a[i]));
        forget(&a[i]);
    }
    prepare(&a[0], &s); /* before it was sent */
    assert_int_equal(start(&a[0], "/echo", "x", 1, true), 0);
    http_call_cancel(&a[0].call);
    prepare(&a[1], &s); /* the connection is still usable */
    assert_int_equal(start(&a[1], "/echo", "y", 1, true), 0);
    wait_for(&s, &a[1], 1);
    expect_echo(&a[1], "y", 1);
    assert_false(is_over(&a[0]));
    forget(&a[1]);
    struct http_stats stats;
    http_server_stats(s.http, &stats);
    assert_int_equal(stats.accepted, 1);
    assert_int_equal(stats.requests, 4);
    close_site(&s);
}

static void test_the_client_may_be_destroyed_in_a_callback(void **state)
{
    struct site s;
    struct asked a[3];
    (void)state;
    open_site(&s);
    for (int i = 0; i < 3; i++) {
        prepare(&a[i], &s);
        a[i].destroy_in_data = i == 1;
        assert_int_equal(start(&a[i], "/hold", NULL, 0, true), 0);
    }
    wait_for(&s, a, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i].n_failed, 1);
        assert_int_equal(a[i].code, SHOAL_ECANCELLED);
        forget(&a[i]);
    }
    close_site(&s);
}

/* ---- peers that fail ---- */

static void test_a_peer_that_dies_fails_every_call_at_once(void **state)
{
    struct site s;
    struct asked a[4];
    (void)state;
    open_site(&s);
    for (int i = 0; i < 4; i++) {
        prepare(&a[i], &s);
        assert_int_equal(start(&a[i], "/hold", NULL, 0, true), 0);
    }
    turn_until(&s, NULL, &a[3].n_data, 1);
    http_server_destroy(s.http); /* in the middle of the response */
    s.http = NULL;
    wait_for(&s, a, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(a[i].n_failed, 1);
        assert_int_equal(a[i].code, SHOAL_EIO);
        assert_non_null(strstr(a[i].message, s.address));
        assert_memory_equal(buf_str(&a[i].got), "first", 5);
        forget(&a[i]);
    }
    struct http_client_state st;
    http_client_state(s.client, &st);
    assert_false(st.connected);
    assert_string_equal(st.error, a[0].message);

    prepare(&a[0], &s); /* nobody listens any more */
    assert_int_equal(start(&a[0], "/echo", "x", 1, true), 0);
    wait_for(&s, a, 1);
    assert_int_equal(a[0].code, SHOAL_EIO);
    assert_non_null(strstr(a[0].message, "refused"));

    char address[200];
    memcpy(address, s.address, sizeof(address));
    serve(&s, address, 0); /* up again: the next call reconnects */
    prepare(&a[0], &s);
    assert_int_equal(start(&a[0], "/echo", "x", 1, true), 0);
    wait_for(&s, a, 1);
    expect_echo(&a[0], "x", 1);
    forget(&a[0]);
    close_site(&s);
}

static void test_nobody_listens(void **state)
{
    static const char *const addresses[] = {"127.0.0.1:1", "unix:/tmp/no/such/socket"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct site s;
        struct asked a[2];
        open_loop(&s);
        snprintf(s.address, sizeof(s.address), "%s", addresses[i]);
        connect_to(&s, NULL);
        for (int j = 0; j < 2; j++) {
            prepare(&a[j], &s);
            assert_int_equal(start(&a[j], "/echo", "x", 1, true), 0);
        }
        wait_for(&s, a, 2);
        for (int j = 0; j < 2; j++) {
            assert_int_equal(a[j].code, SHOAL_EIO);
            assert_non_null(strstr(a[j].message, addresses[i]));
        }
        close_site(&s);
    }
}

/* A listener whose connections the test handles by hand. */
static int listen_by_hand(struct site *s)
{
    int fd = -1;
    open_loop(s);
    assert_int_equal(listen_open(&fd, "127.0.0.1:0", LISTEN_ALONE, NULL), 0);
    listen_address(fd, s->address, sizeof(s->address));
    return fd;
}

static void test_a_silent_peer_is_noticed(void **state)
{
    struct site s;
    struct asked a;
    (void)state;
    int fd = listen_by_hand(&s); /* the kernel accepts, nobody answers */
    connect_to(
        &s, &(struct http_client_opts){.connect_ms = 60000, .ping_ms = 20, .ping_timeout_ms = 100});
    prepare(&a, &s);
    assert_int_equal(start(&a, "/echo", "x", 1, true), 0);
    wait_for(&s, &a, 1);
    assert_int_equal(a.code, SHOAL_EIO);
    assert_non_null(strstr(a.message, "silent"));
    close(fd);
    close_site(&s);
}

static void test_pings_measure_the_round_trip(void **state)
{
    struct site s;
    struct asked a;
    struct http_client_state st;
    (void)state;
    open_loop(&s);
    serve(&s, "127.0.0.1:0", 0);
    connect_to(&s, &(struct http_client_opts){
                       .connect_ms = 60000, .ping_ms = 10, .ping_timeout_ms = 50000});
    prepare(&a, &s);
    assert_int_equal(start(&a, "/hold", NULL, 0, true), 0);
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    for (uint64_t n = 0, last = 0; n < 3;) { /* every ping is answered */
        loop_turn(s.loop, 100);
        http_client_state(s.client, &st);
        n += st.rtt_ns != last;
        last = st.rtt_ns;
        assert_true(clock_ns() < until);
    }
    assert_true(st.connected);
    assert_false(is_over(&a));
    close_site(&s);
    forget(&a);
}

static void test_a_connection_that_does_not_open_times_out(void **state)
{
    struct site s;
    struct asked a;
    int fill[64], n = 0;
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t n_addr = sizeof(addr);
    (void)state;
    open_loop(&s);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)&addr, &n_addr), 0);
    for (; n < 8; n++) { /* a full backlog: the kernel ignores further ones */
        fill[n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fill[n], (struct sockaddr *)(void *)&addr, sizeof(addr));
    }
    listen_address(fd, s.address, sizeof(s.address));
    connect_to(&s, &(struct http_client_opts){.connect_ms = 100});
    prepare(&a, &s);
    assert_int_equal(start(&a, "/echo", "x", 1, true), 0);
    wait_for(&s, &a, 1);
    assert_int_equal(a.code, SHOAL_EIO);
    assert_non_null(strstr(a.message, "within 100 ms"));
    while (n > 0)
        close(fill[--n]);
    close(fd);
    close_site(&s);
}

/* The running call ends normally; new ones use a new connection. */
static void test_after_goaway_new_calls_use_another_connection(void **state)
{
    struct site s;
    struct asked a, b;
    (void)state;
    open_site(&s);
    prepare(&a, &s);
    assert_int_equal(start(&a, "/hold", NULL, 0, true), 0);
    turn_until(&s, NULL, &a.n_data, 1);
    struct http_server *old = s.http;
    http_server_drain(old);
    for (int i = 0; i < 10; i++)
        loop_turn(s.loop, 10);
    assert_false(is_over(&a));
    struct http_req *held = s.held;
    char address[200];
    memcpy(address, s.address, sizeof(address));
    serve(&s, address, 0);
    prepare(&b, &s);
    assert_int_equal(start(&b, "/echo", "new", 3, true), 0);
    wait_for(&s, &b, 1);
    expect_echo(&b, "new", 3);
    http_write(held, "second", 6);
    http_end(held);
    wait_for(&s, &a, 1);
    assert_int_equal(a.n_ended, 1);
    assert_string_equal(buf_str(&a.got), "firstsecond");
    struct http_stats stats;
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    do { /* the old connection is closed once it is idle */
        loop_turn(s.loop, 100);
        http_server_stats(old, &stats);
    } while (stats.conns > 0 && clock_ns() < until);
    assert_int_equal(stats.conns, 0);
    http_server_destroy(old);
    forget(&a);
    forget(&b);
    close_site(&s);
}

/* ---- peers that send nonsense ---- */

struct frame {
    const char *bytes;
    size_t n;
};
#define BYTES(s) s, sizeof(s) - 1

/* Accepts the client's connection and reads the first bytes. */
static int accept_by_hand(struct site *s, int fd)
{
    char got[4096];
    uint64_t until = clock_ns() + LONG_S * 1000000000ull;
    int peer = -1;
    while (clock_ns() < until) {
        loop_turn(s->loop, 10);
        if (peer < 0)
            peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
        if (peer >= 0 && recv(peer, got, sizeof(got), 0) > 0)
            return peer;
    }
    fail_msg("the client does not connect");
    return -1;
}

static void test_hostile_bytes_fail_the_call(void **state)
{
    static const struct {
        const char *why;
        bool settings; /* sends SETTINGS first, so that the call starts */
        struct frame say;
        int code;
        const char *text;
    } cases[] = {
        {"HTTP/1.1", false, {BYTES("HTTP/1.1 400 Bad Request\r\n\r\n")}, SHOAL_EIO, ""},
        {"a frame of the wrong kind first", false, {BYTES("\0\0\0\0\0\0\0\0\1")}, SHOAL_EIO, ""},
        {"garbage",
         false,
         {BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")},
         SHOAL_EIO,
         ""},
        {"a response without status", true, {BYTES("\0\0\2\1\5\0\0\0\1\x10\x01")}, SHOAL_EIO, ""},
        {"data before the head", true, {BYTES("\0\0\1\0\0\0\0\0\1x")}, SHOAL_EIO, ""},
        {"reset", true, {BYTES("\0\0\4\3\0\0\0\0\1\0\0\0\x0b")}, SHOAL_EIO, "ENHANCE_YOUR_CALM"},
        {"refused", true, {BYTES("\0\0\4\3\0\0\0\0\1\0\0\0\7")}, SHOAL_EBUSY, "process"},
        {"goaway before the call",
         true,
         {BYTES("\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0")},
         SHOAL_EBUSY,
         "process"},
        {"push", true, {BYTES("\0\0\x05\5\4\0\0\0\1\0\0\0\2\x88")}, SHOAL_EIO, "unexpected push"},
        {"a window that overflows",
         true,
         {BYTES("\0\0\4\x08\0\0\0\0\0\x7f\xff\xff\xff")},
         SHOAL_EIO,
         ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct site s;
        struct asked a;
        int fd = listen_by_hand(&s);
        connect_to(&s, NULL);
        prepare(&a, &s);
        assert_int_equal(start(&a, "/echo", "x", 1, false), 0);
        int peer = accept_by_hand(&s, fd);
        if (cases[i].settings) {
            assert_int_equal(send(peer, BYTES("\0\0\0\4\0\0\0\0\0"), MSG_NOSIGNAL), 9);
            uint64_t until = clock_ns() + LONG_S * 1000000000ull;
            while (a.call.id < 0 && clock_ns() < until)
                loop_turn(s.loop, 10);
            loop_turn(s.loop, 0);
            assert_int_equal(a.call.id, 1);
        }
        assert_int_equal(send(peer, cases[i].say.bytes, cases[i].say.n, MSG_NOSIGNAL),
                         cases[i].say.n);
        uint64_t end = clock_ns() + LONG_S * 1000000000ull;
        while (!is_over(&a) && clock_ns() < end)
            loop_turn(s.loop, 10);
        if (a.n_failed != 1 || a.code != cases[i].code || !strstr(a.message, cases[i].text))
            fail_msg("%s: %d %s", cases[i].why, a.code, a.message);
        close(peer);
        close(fd);
        close_site(&s);
        forget(&a);
    }
}

static void big_headers(void *ctx, struct http_req *r)
{
    static char value[2000];
    struct http_header headers[30];
    (void)ctx;
    memset(value, 'v', sizeof(value) - 1);
    for (int i = 0; i < 30; i++)
        headers[i] = (struct http_header){"x-large", value};
    http_begin(r, 200, headers, 30, 0);
    http_end(r);
}

static void test_headers_are_bounded(void **state)
{
    struct site s;
    struct asked a;
    int fd = -1;
    (void)state;
    open_loop(&s);
    assert_int_equal(http_server_create(&s.http, s.loop, NULL, big_headers, &s, NULL), 0);
    assert_int_equal(listen_open(&fd, "127.0.0.1:0", LISTEN_ALONE, NULL), 0);
    listen_address(fd, s.address, sizeof(s.address));
    assert_int_equal(http_server_listen(s.http, fd, NULL, NULL), 0);
    connect_to(&s, NULL);
    prepare(&a, &s);
    assert_int_equal(start(&a, "/", NULL, 0, true), 0);
    wait_for(&s, &a, 1);
    assert_int_equal(a.code, SHOAL_ELIMIT);
    assert_non_null(strstr(a.message, "too many headers"));
    forget(&a);
    close_site(&s);
}

/* Whatever allocation fails, the call ends or fails, and nothing leaks. */
static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 300; n++) {
        struct site s;
        struct asked a;
        open_loop(&s);
        serve(&s, "127.0.0.1:0", 0);
        uint64_t before = mem_calls();
        mem_fail_at(n);
        struct http_client_opts o = {.address = s.address, .ping_ms = 60000, .connect_ms = 200};
        prepare(&a, &s);
        if (http_client_create(&s.client, s.loop, &o, NULL) == 0 &&
            start(&a, "/echo", "body", 4, true) == 0)
            wait_for(&s, &a, 1);
        mem_fail_at(0);
        bool done = mem_calls() - before < n;
        close_site(&s);
        forget(&a);
        if (done)
            return;
    }
    fail_msg("there is always one more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_gets_head_body_and_trailers),
        cmocka_unit_test(test_a_name_is_looked_up_beside_the_loop),
        cmocka_unit_test(test_a_lookup_is_abandoned_when_the_client_goes),
        cmocka_unit_test(test_an_unknown_name_fails_the_call),
        cmocka_unit_test(test_many_calls_share_the_connection),
        cmocka_unit_test(test_large_bodies_go_both_ways),
        cmocka_unit_test(test_a_body_can_be_written_in_pieces),
        cmocka_unit_test(test_a_paused_call_holds_the_server_back_and_nobody_else),
        cmocka_unit_test(test_a_response_that_is_complete_waits_for_a_paused_caller),
        cmocka_unit_test(test_queued_bytes_are_bounded),
        cmocka_unit_test(test_calls_are_bounded),
        cmocka_unit_test(test_cancel_resets_the_stream_and_is_silent),
        cmocka_unit_test(test_the_client_may_be_destroyed_in_a_callback),
        cmocka_unit_test(test_a_peer_that_dies_fails_every_call_at_once),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_a_silent_peer_is_noticed),
        cmocka_unit_test(test_pings_measure_the_round_trip),
        cmocka_unit_test(test_a_connection_that_does_not_open_times_out),
        cmocka_unit_test(test_after_goaway_new_calls_use_another_connection),
        cmocka_unit_test(test_hostile_bytes_fail_the_call),
        cmocka_unit_test(test_headers_are_bounded),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
