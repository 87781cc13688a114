/* test_http_ask.c - one request to a server: answers of all kinds, memory that runs out. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "net/http_answer.h"
#include "net/http_ask.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* ---- the answer ---- */

static int read_answer(const char *p, size_t n, size_t step, int *status, struct buf *body)
{
    struct http_answer a;
    int rc = 0;
    http_answer_init(&a, body);
    for (size_t at = 0; rc == 0 && at < n; at += step)
        rc = http_answer_feed(&a, p + at, n - at < step ? n - at : step);
    if (rc == 0)
        rc = http_answer_feed(&a, NULL, 0);
    *status = a.status;
    return rc;
}

static void test_answers_whole_and_in_pieces(void **state)
{
    static const struct {
        const char *bytes;
        int code, status;
        const char *body;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 0, 200, "{}"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 500", 0, 200, "{}"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 0,
         200, "abc"},
        {"HTTP/1.0 404 Not Found\r\n\r\nuntil it ends", 0, 404, "until it ends"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 1\r\n\r\nx", 0, 503,
         "x"},
        {"HTTP/1.1 204 No Content\r\n\r\n", 0, 204, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n12345678901234567890", 0, 200,
         "12345678901234567890"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n123456789012345678901", SHOAL_ELIMIT, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", SHOAL_EFORMAT, 0, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", SHOAL_EFORMAT, 0, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", SHOAL_EFORMAT, 0, ""},
        {"HTTP/1.1 100 Continue\r\n\r\n", SHOAL_EFORMAT, 0, ""},
        {"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", SHOAL_EFORMAT, 0,
         ""},
        {"HTTP/1.1 200 OK\r\n", SHOAL_EFORMAT, 0, ""},
        {"SSH-2.0-x\r\n", SHOAL_EFORMAT, 0, ""},
        {"", SHOAL_EFORMAT, 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < N(cases); i++)
        for (size_t k = 0; k < 2; k++) {
            struct buf body;
            int status;
            buf_init(&body, 20);
            int rc =
                read_answer(cases[i].bytes, strlen(cases[i].bytes), k ? 4096 : 1, &status, &body);
            if (rc != cases[i].code || (rc == 0 && (status != cases[i].status ||
                                                    strcmp(buf_str(&body), cases[i].body) != 0)))
                fail_msg("%s: %d, status %d, body '%s'", cases[i].bytes, rc, status,
                         buf_str(&body));
            buf_fini(&body);
        }
}

static void test_a_head_without_end_is_cut_off(void **state)
{
    struct http_answer a;
    struct buf body;
    char block[1000];
    int rc;
    size_t n = 0;
    (void)state;
    buf_init(&body, 100);
    http_answer_init(&a, &body);
    memset(block, 'x', sizeof(block));
    rc = http_answer_feed(&a, "HTTP/1.1 200 OK\r\nA: ", 20);
    for (; rc == 0 && n < 1000; n++)
        rc = http_answer_feed(&a, block, sizeof(block));
    assert_int_equal(rc, SHOAL_ELIMIT);
    assert_in_range(n, 60, 70);
    buf_fini(&body);
}

/* ---- a server, which answers every connection with the same bytes ---- */

struct server {
    pthread_t thread;
    int fd;
    char dir[32], address[64];
    const char *answer;
    char request[512]; /* the last */
};

static void *serve(void *arg)
{
    struct server *s = arg;
    for (int fd; (fd = accept(s->fd, NULL, NULL)) >= 0; close(fd)) {
        ssize_t n = recv(fd, s->request, sizeof(s->request) - 1, 0);
        s->request[n > 0 ? n : 0] = '\0';
        if (n > 0 && send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL) < 0)
            perror("send");
    }
    return NULL;
}

static void start(struct server *s, const char *answer)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    *s = (struct server){.answer = answer, .dir = "/tmp/test-ask-XXXXXX"};
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->address, sizeof(s->address), "unix:%s/s", s->dir);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", s->address + 5);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (const struct sockaddr *)(const void *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    unlink(s->address + 5);
    rmdir(s->dir);
}

static void test_a_request_and_its_answer(void **state)
{
    struct server s;
    struct buf body;
    struct err e = {0};
    int status;
    (void)state;
    start(&s, "HTTP/1.1 201 Made\r\nContent-Length: 4\r\n\r\ntrue");
    struct http_ask a = {.server = s.address,
                         .method = "POST",
                         .path = "/admin/models",
                         .key = "k1",
                         .content_type = "application/json",
                         .content = "{\"a\":1}",
                         .content_bytes = 7,
                         .timeout_ms = 10000};
    buf_init(&body, 1000);
    if (http_ask(&a, &status, &body, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(status, 201);
    assert_string_equal(buf_str(&body), "true");
    assert_non_null(strstr(s.request, "POST /admin/models HTTP/1.1\r\n"));
    assert_non_null(strstr(s.request, "Authorization: Bearer k1\r\n"));
    assert_non_null(strstr(s.request, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(s.request, "Content-Length: 7\r\n\r\n{\"a\":1}"));
    a.key = "a\r\nb";
    assert_int_equal(http_ask(&a, &status, &body, &e), SHOAL_EINVAL);
    buf_fini(&body);
    stop(&s);
    a.key = NULL;
    assert_int_equal(http_ask(&a, &status, &body, &e), SHOAL_ENOTFOUND);
}

/* A server that accepts no more connections: the timeout expires while connecting. */
static void test_a_connection_that_comes_too_late(void **state)
{
    enum { N_FULL = 8 };
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    struct buf body;
    struct err e = {0};
    char address[64];
    int status, full[N_FULL], fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    for (int i = 0; i < N_FULL; i++) { /* nobody accepts them */
        full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(full[i], (struct sockaddr *)&a, n);
    }
    snprintf(address, sizeof(address), "http://127.0.0.1:%u", ntohs(a.sin_port));
    const struct http_ask ask = {.server = address, .method = "GET", .path = "/", .timeout_ms = 50};
    buf_init(&body, 1000);
    assert_int_equal(http_ask(&ask, &status, &body, &e), SHOAL_EDEADLINE);
    assert_non_null(strstr(e.msg, address));
    buf_fini(&body);
    for (int i = 0; i < N_FULL; i++)
        close(full[i]);
    close(fd);
}

static void test_every_allocation_may_fail(void **state)
{
    struct server s;
    struct err e = {0};
    int status, rc = -1;
    uint64_t n = 0;
    char answer[3000];
    (void)state;
    snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\n\r\n%02500d", 7);
    start(&s, answer);
    struct http_ask a = {.server = s.address,
                         .method = "POST",
                         .path = "/x",
                         .content_type = "application/json",
                         .content = "{}",
                         .content_bytes = 2,
                         .timeout_ms = 10000};
    while (rc < 0) {
        struct buf body;
        buf_init(&body, 10000);
        e = (struct err){0};
        mem_fail_at(++n);
        rc = http_ask(&a, &status, &body, &e);
        mem_fail_at(0);
        if (rc < 0 && (rc != SHOAL_ENOMEM || e.code != rc || e.msg[0] == '\0' || status != 0))
            fail_msg("allocation %d: %d, status %d, '%s'", (int)n, rc, status, e.msg);
        if (rc == 0 && (status != 200 || body.len != 2500))
            fail_msg("status %d, %zu bytes", status, body.len);
        buf_fini(&body);
        assert_true(n < 100);
    }
    assert_true(n > 2); /* the request and the body at least */
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_whole_and_in_pieces),
        cmocka_unit_test(test_a_head_without_end_is_cut_off),
        cmocka_unit_test(test_a_request_and_its_answer),
        cmocka_unit_test(test_a_connection_that_comes_too_late),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
