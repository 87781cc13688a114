/* test_gateway_threads.c - the loop does not free a request that another thread still has
 * locked.
 *
 * An engine or pool thread posts the end of a request while it holds the request's lock, then
 * unlocks it; the loop frees the request. Here the poster stays inside executor_post for a
 * while: a loop that does not wait for the lock frees the request too early. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "support/gw_site.h"

#define HOLD_MS 40
#define MAX_TURNS 60000 /* of a millisecond: only ends a test that hangs */

static struct {
    pthread_t loop;
    _Atomic bool armed, too_early;
    _Atomic uint32_t n_jobs; /* of the loop, as its thread sees it between turns */
    _Atomic uint32_t n_posts, n_ends;
} watch;

/* The loop's executor with a slow post. */
static struct executor slow, *real;

static void slow_post(struct executor *x, struct executor_task *task)
{
    (void)x;
    executor_post(real, task);
    if (!atomic_load(&watch.armed) || pthread_equal(pthread_self(), watch.loop))
        return;
    atomic_fetch_add(&watch.n_posts, 1);
    for (int i = 0; i < HOLD_MS; i++) {
        usleep(1000);
        if (atomic_load(&watch.n_jobs) == 0)
            atomic_store(&watch.too_early, true);
    }
    atomic_fetch_add(&watch.n_ends, 1);
}

static void slow_later(struct executor *x, struct executor_task *task)
{
    (void)x;
    executor_later(real, task);
}

static void slow_timer_set(struct executor *x, struct executor_timer *t, uint64_t at_ns)
{
    (void)x;
    executor_timer_set(real, t, at_ns);
}

static void slow_timer_clear(struct executor *x, struct executor_timer *t)
{
    (void)x;
    executor_timer_clear(real, t);
}

/* Sends one request on a separate connection and returns the client's end. */
static int send_request(struct gw_loop *gl, const char *path, const char *body)
{
    static char request[64 << 10];
    int fd[2];
    int n = snprintf(
        request, sizeof(request),
        "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s", path,
        strlen(body), body);
    assert_in_range(n, 1, sizeof(request) - 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(http_server_adopt(gl->http, fd[1], NULL), 0);
    assert_int_equal(send(fd[0], request, (size_t)n, MSG_NOSIGNAL), n);
    return fd[0];
}

/* Reads the response until the server closes. */
static void check_response(struct gw_loop *gl, int fd, const char *path)
{
    static char got[64 << 10];
    size_t have = 0;
    for (int i = 0; i < MAX_TURNS; i++) {
        loop_turn(gl->loop, 1);
        ssize_t k = recv(fd, got + have, sizeof(got) - 1 - have, 0);
        have += k > 0 ? (size_t)k : 0;
        if (k == 0)
            break;
    }
    got[have] = '\0';
    if (strncmp(got, "HTTP/1.1 200", 12) != 0)
        fail_msg("%s: %.300s", path, got);
}

/* One request, until its job is over and no thread is in executor_post any more. False if no
 * other thread posted: the engine was done before the loop looked, which is rare and tests
 * nothing. */
static bool run_once(struct gw *gw, const char *path, const char *body, bool goes_away)
{
    struct gw_loop *gl = &gw->loops[0];
    atomic_store(&watch.n_jobs, 1); /* so that no thread sees the end before the beginning */
    atomic_store(&watch.n_posts, 0);
    atomic_store(&watch.n_ends, 0);
    atomic_store(&watch.armed, true);
    int fd = send_request(gl, path, body);
    char byte;
    for (int i = 0; i < MAX_TURNS && gl->flow.n_jobs == 0 && watch.n_posts == 0; i++) {
        loop_turn(gl->loop, 1);
        if (recv(fd, &byte, 1, MSG_PEEK) == 1)
            break;
    }
    if (goes_away)
        close(fd);
    for (int i = 0; i < MAX_TURNS && (gl->flow.n_jobs > 0 || watch.n_ends < watch.n_posts); i++) {
        loop_turn(gl->loop, 1);
        atomic_store(&watch.n_jobs, gl->flow.n_jobs);
    }
    if (!goes_away) {
        check_response(gl, fd, path);
        close(fd);
    }
    atomic_store(&watch.armed, false);
    assert_int_equal(gl->flow.n_jobs, 0);
    if (watch.too_early)
        fail_msg("%s: freed while another thread was about to unlock it", path);
    return watch.n_posts > 0;
}

static void run(struct gw *gw, const char *path, const char *body, bool goes_away)
{
    for (int i = 0; i < 100; i++)
        if (run_once(gw, path, body, goes_away))
            return;
    fail_msg("%s: no other thread ever posted", path);
}

/* More input than is tokenized on the loop. */
static void make_long(char *out, size_t cap)
{
    size_t n = (size_t)snprintf(out, cap, "{\"input\":[");
    for (int i = 0; i < 24; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s\"%0200d\"", i ? "," : "", i);
    snprintf(out + n, cap - n, "]}");
}

static void test_nothing_is_freed_while_its_lock_is_held(void **state)
{
    static const struct registry_spec specs[] = {
        {.name = "m", .path = SHOAL_TEST_DATA "/refs/qwen3.gguf", .n_ctx = 256, .pinned = true},
        {.name = "intent", .path = SHOAL_TEST_DATA "/../../models/encoder", .pinned = true},
        {.name = "reader", .path = SHOAL_TEST_DATA "/../../models/reader.gguf", .pinned = true}};
    static struct gw gw;
    static char many[8192];
    struct err e = {0};
    (void)state;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    watch.loop = pthread_self();
    if (gw_site_open(&gw, 0) < 0 || registry_add(gw.registry, &specs[0], &e) < 0 ||
        registry_add(gw.registry, &specs[1], &e) < 0 ||
        registry_add(gw.registry, &specs[2], &e) < 0)
        fail_msg("%s", e.msg);
    for (int i = 0; i < MAX_TURNS && !registry_ready(gw.registry); i++)
        loop_turn(gw.loops[0].loop, 1);
    assert_true(registry_ready(gw.registry));
    static const struct executor_ops ops = {slow_post, slow_later, slow_timer_set,
                                            slow_timer_clear};
    slow.ops = &ops;
    real = gw.loops[0].flow.executor;
    gw.loops[0].flow.executor = &slow;
    make_long(many, sizeof(many));
    for (int away = 0; away < 2; away++) { /* and the same if the client does not wait */
        run(&gw, "/v1/classify", "{\"input\":\"turn off the lights\"}", away);
        run(&gw, "/v1/classify", "{\"input\":[\"turn off the lights\",\"call Anna\"]}", away);
        run(&gw, "/v1/embeddings", many, away);
        run(&gw, "/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":2}", away);
        run(&gw, "/v1/completions", "{\"prompt\":[\"a\",\"b\"],\"max_tokens\":2,\"stream\":true}",
            away);
        run(&gw, "/v1/process", "{\"text\":\"turn off the lights\",\"reply\":false}", away);
    }
    gw_site_close(&gw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_freed_while_its_lock_is_held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
