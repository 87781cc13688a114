/* test_deed_call.c - calls of flows to servers and programs: what is sent, what comes back, and
 * what is tried again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/thread/executor_queue.h"
#include "pipeline/pipeline_call.h"
#include "site/deeds/deed_call.h"
#include "site/deeds/deed_command.h"
#include "support/http_peer.h"

#define MINUTE_NS 60000000000ull
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct executor_queue queue;
static struct flow_owner owner;
static struct deed_calls *calls;

struct result {
    uint32_t n;
    int code;
    char message[512];
};

static void on_done(struct pipeline_call *c, int code, const char *message)
{
    struct result *r = c->ctx;
    r->n++;
    r->code = code;
    snprintf(r->message, sizeof(r->message), "%s", message ? message : "");
}

/* The call's code; its answer is in c->answer, which the caller frees. */
static struct result run(struct pipeline_call *c)
{
    struct result r = {0};
    c->owner = &owner;
    c->done = on_done;
    c->ctx = &r;
    if (c->deadline_ns == 0)
        c->deadline_ns = clock_ns() + MINUTE_NS;
    buf_init(&c->answer, 4096);
    snprintf(c->key, sizeof(c->key), "key-7");
    struct pipeline_outside *o = deed_calls_outside(calls);
    o->ops->run(o, c);
    for (int i = 0; i < 300 && r.n == 0; i++)
        executor_queue_turn(&queue, 1000);
    assert_int_equal(r.n, 1);
    return r;
}

static void test_calls_of_servers(void **state)
{
    static struct http_peer peer;
    struct graph_call how = {.via = GRAPH_HTTP, .server = peer.server, .method = "POST"};
    char url[128];
    (void)state;
    http_peer_begin(&peer);
    peer.answer = "{\"x\": 1}";
    snprintf(url, sizeof(url), "%s/a/b?c=d", peer.server);
    struct pipeline_call c = {.how = &how, .url = url, .payload = "{\"y\":2}", .payload_bytes = 7};
    struct result r = run(&c);
    assert_int_equal(r.code, 0);
    assert_int_equal(c.status, 200);
    assert_string_equal(buf_str(&c.answer), "{\"x\": 1}");
    buf_fini(&c.answer);
    assert_string_equal(peer.list[0].line, "POST /a/b?c=d HTTP/1.1");
    assert_string_equal(peer.list[0].body, "{\"y\":2}");
    assert_string_equal(http_peer_header(&peer.list[0], "Idempotency-Key"), "key-7");
    assert_string_equal(http_peer_header(&peer.list[0], "Content-Type"), "application/json");
    how.method = "GET"; /* has no body */
    r = run(&c);
    assert_int_equal(r.code, 0);
    buf_fini(&c.answer);
    assert_string_equal(peer.list[1].line, "GET /a/b?c=d HTTP/1.1");
    assert_string_equal(peer.list[1].body, "");
    c.payload = NULL;
    c.payload_bytes = 0;
    how.method = "PUT";
    r = run(&c);
    assert_int_equal(r.code, 0);
    buf_fini(&c.answer);
    assert_string_equal(peer.list[2].body, "");
    http_peer_end(&peer);
}

/* For each status whether the call is repeated, and how often. */
static void test_what_is_tried_again(void **state)
{
    static const struct {
        int statuses[3];
        uint32_t n, retry, n_requests;
        int code;
    } rows[] = {{{200}, 1, 3, 1, 0},
                {{299}, 1, 3, 1, 0},
                {{300}, 1, 3, 1, SHOAL_EIO},
                {{404}, 1, 3, 1, SHOAL_EIO},
                {{499}, 1, 3, 1, SHOAL_EIO},
                {{500}, 1, 0, 1, SHOAL_EIO},
                {{500}, 1, 1, 2, SHOAL_EIO},
                {{503, 429, 201}, 3, 2, 3, 0},
                {{503, 429, 201}, 3, 1, 2, SHOAL_EIO},
                {{503, 400, 201}, 3, 2, 2, SHOAL_EIO}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        static struct http_peer peer;
        const struct graph_call how = {
            .via = GRAPH_HTTP, .server = peer.server, .method = "POST", .retry = rows[i].retry};
        http_peer_begin(&peer);
        for (uint32_t k = 0; k < rows[i].n; k++)
            http_peer_status(&peer, rows[i].statuses[k]);
        struct pipeline_call c = {.how = &how, .url = peer.server};
        const struct result r = run(&c);
        assert_int_equal(r.code, rows[i].code);
        assert_int_equal(peer.n, rows[i].n_requests);
        assert_int_equal(c.status, rows[i].n >= rows[i].n_requests
                                       ? rows[i].statuses[rows[i].n_requests - 1]
                                       : rows[i].statuses[rows[i].n - 1]);
        if (r.code < 0)
            assert_non_null(strstr(r.message, "answered with status"));
        for (uint32_t k = 0; k < peer.n; k++)
            assert_string_equal(http_peer_header(&peer.list[k], "Idempotency-Key"), "key-7");
        buf_fini(&c.answer);
        http_peer_end(&peer);
    }
}

static void test_a_server_that_is_not_there(void **state)
{
    static struct http_peer peer;
    struct graph_call how = {
        .via = GRAPH_HTTP, .server = peer.server, .method = "GET", .retry = 1000};
    (void)state;
    http_peer_begin(&peer);
    http_peer_end(&peer); /* its port is free now */
    struct pipeline_call c = {
        .how = &how, .url = peer.server, .deadline_ns = clock_ns() + 200000000u};
    struct result r = run(&c); /* until the deadline, not a thousand times */
    assert_true(r.code < 0);
    buf_fini(&c.answer);
    how.via = GRAPH_MQTT;
    c = (struct pipeline_call){.how = &how, .topic = "t", .payload = "x", .payload_bytes = 1};
    r = run(&c);
    assert_int_equal(r.code, SHOAL_EINVAL);
    assert_non_null(strstr(r.message, "mqtt.broker"));
    buf_fini(&c.answer);
}

static void test_programs(void **state)
{
    static const struct {
        const char *script, *want, *message;
        int code;
    } rows[] = {{"echo hello", "hello\n", "", 0},
                {"cat; echo $PATH; echo \"$HOME.$LC_ALL\"", "/usr/bin:/bin\n.C.UTF-8\n", "", 0},
                {"echo no >&2", "", "", 0},
                {"exit 3", "", "/bin/sh ended with 3", SHOAL_EIO},
                {"kill -9 $$", "", "/bin/sh was killed by signal 9", SHOAL_EIO},
                {"trap '' TERM; kill -TERM $$; echo stays", "stays\n", "", 0},
                {"yes", NULL, "/bin/sh writes too much", SHOAL_ELIMIT}};
    (void)state;
    const struct graph_call how = {.via = GRAPH_COMMAND};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char script[128];
        snprintf(script, sizeof(script), "%s", rows[i].script);
        char *argv[] = {"/bin/sh", "-c", script, NULL};
        struct pipeline_call c = {.how = &how, .argv = argv};
        const struct result r = run(&c);
        assert_int_equal(r.code, rows[i].code);
        assert_string_equal(r.message, rows[i].message);
        if (rows[i].want)
            assert_string_equal(buf_str(&c.answer), rows[i].want);
        buf_fini(&c.answer);
    }
    char *nobody[] = {"/nonexistent/program", NULL};
    struct pipeline_call c = {.how = &how, .argv = nobody};
    const struct result r = run(&c);
    assert_int_equal(r.code, SHOAL_ENOTFOUND);
    buf_fini(&c.answer);
}

/* A program that fails is started again; its earlier output does not count. */
static void test_a_program_is_repeated(void **state)
{
    char dir[] = "/tmp/shoal-call-XXXXXX", script[256], file[64];
    const struct graph_call how = {.via = GRAPH_COMMAND, .retry = 1};
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/seen", dir);
    snprintf(script, sizeof(script), "echo run; test -e %s || { touch %s; exit 1; }", file, file);
    char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct pipeline_call c = {.how = &how, .argv = argv};
    const struct result r = run(&c);
    assert_int_equal(r.code, 0);
    assert_string_equal(buf_str(&c.answer), "run\n");
    buf_fini(&c.answer);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* With all that it has started. */
static void test_a_program_that_takes_too_long_is_ended(void **state)
{
    char *argv[] = {"/bin/sh", "-c", "sleep 1000 & wait", NULL};
    struct err e = {0};
    struct buf out;
    (void)state;
    assert_int_equal(deed_command_run(argv, 30, &e), SHOAL_EDEADLINE);
    assert_string_equal(e.msg, "/bin/sh took longer than 30 ms");
    buf_init(&out, 64);
    assert_int_equal(deed_command_read(argv, 30, &out, &e), SHOAL_EDEADLINE);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
}

/* As many as may run wait for a program each; one more is refused. */
static void test_too_many_at_a_time(void **state)
{
    static struct result results[DEED_CALL_MAX_RUNNING + 1];
    static struct pipeline_call list[DEED_CALL_MAX_RUNNING + 1];
    const struct graph_call how = {.via = GRAPH_COMMAND};
    char dir[] = "/tmp/shoal-call-XXXXXX", script[128], file[64];
    char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct pipeline_outside *o = deed_calls_outside(calls);
    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/go", dir);
    snprintf(script, sizeof(script), "while ! test -e %s; do sleep 0.02; done", file);
    for (uint32_t i = 0; i <= DEED_CALL_MAX_RUNNING; i++) {
        list[i] = (struct pipeline_call){.owner = &owner,
                                         .how = &how,
                                         .argv = argv,
                                         .done = on_done,
                                         .ctx = &results[i],
                                         .deadline_ns = clock_ns() + MINUTE_NS};
        buf_init(&list[i].answer, 64);
        o->ops->run(o, &list[i]);
    }
    assert_int_equal(results[DEED_CALL_MAX_RUNNING].code, SHOAL_EBUSY);
    fclose(fopen(file, "w"));
    for (uint32_t i = 0; i <= DEED_CALL_MAX_RUNNING; i++) {
        while (results[i].n == 0)
            executor_queue_turn(&queue, 1000);
        assert_int_equal(results[i].code, i < DEED_CALL_MAX_RUNNING ? 0 : SHOAL_EBUSY);
        buf_fini(&list[i].answer);
    }
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(dir), 0);
}

static int setup(void **state)
{
    struct err e;
    (void)state;
    static const struct flow flow = {0};
    assert_int_equal(executor_queue_init(&queue, &e), 0);
    flow_owner_init(&owner, &flow, &queue.executor);
    return deed_calls_create(&calls, NULL, NULL, 0, &e);
}

static int teardown(void **state)
{
    struct err e;
    struct deed_calls *bad;
    (void)state;
    deed_calls_destroy(calls);
    deed_calls_destroy(NULL);
    assert_int_equal(deed_calls_create(&bad, NULL, "/nonexistent/ca.pem", 0, &e), SHOAL_EINVAL);
    assert_null(bad);
    flow_owner_fini(&owner);
    executor_queue_fini(&queue);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_of_servers),
        cmocka_unit_test(test_what_is_tried_again),
        cmocka_unit_test(test_a_server_that_is_not_there),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_a_program_is_repeated),
        cmocka_unit_test(test_a_program_that_takes_too_long_is_ended),
        cmocka_unit_test(test_too_many_at_a_time),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
