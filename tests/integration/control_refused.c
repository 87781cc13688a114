/* control_refused.c - a NATS server that refuses this member's password for a while: libnats
 * gives up such a connection, and the bus opens a new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <nats/nats.h>

#include "base/thread/executor_queue.h"
#include "cluster/control/bucket.h"
#include "cluster/control/bus.h"
#include "cluster/control/event_log.h"
#include "support/nats_site.h"

static struct nats_site site;
static char url[64];

/* Restarts the server, which accepts only this password. */
static void restart_with(const char *password)
{
    char path[128];
    nats_site_kill(&site, 0);
    nats_site_configure(&site, 0);
    snprintf(path, sizeof(path), "%s/0.conf", site.dir);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fprintf(f, "authorization { user: member, password: \"%s\" }\n", password);
    fclose(f);
    nats_site_restart(&site, 0);
}

static void open_bus(struct bus **b, struct executor *x)
{
    const char *const urls[] = {url};
    struct err e = {0};
    struct bus_opts o = {.cluster = "test", .urls = urls, .n_urls = 1, .reconnect_ms = 50};
    if (bus_open(b, &o, x, NULL, NULL, &e) < 0)
        fail_msg("%s", e.msg);
}

static void wait_up(struct bus *b)
{
    struct err e = {0};
    if (bus_wait(b, 60000, &e) < 0)
        fail_msg("%s", e.msg);
}

static void wait_given_up(struct bus *b)
{
    double end = nats_site_now() + 60;
    while (!natsConnection_IsClosed(bus_connection(b)) && nats_site_now() < end)
        nats_site_pause(20);
    assert_true(natsConnection_IsClosed(bus_connection(b)));
}

static unsigned n_heard;

static void on_message(void *ctx, const char *subject, const void *bytes, size_t n)
{
    (void)ctx;
    (void)bytes;
    (void)n;
    assert_string_equal(subject, "shoal.test.hb.n1");
    n_heard++;
}

/* Publishes until a message arrives. */
static void assert_hears(struct bus *b, struct executor_queue *q)
{
    unsigned before = n_heard;
    struct err e = {0};
    for (double end = nats_site_now() + 60; n_heard == before && nats_site_now() < end;) {
        (void)!bus_publish(b, "hb.n1", "beat", 4, &e);
        nats_site_pause(20);
        while (executor_queue_run(q))
            ;
    }
    assert_true(n_heard > before);
}

/* Writes once the server is ready for it. */
static void put(struct bucket *k, const char *value, uint64_t *revision)
{
    struct err e = {0};
    int rc = -1;
    for (double end = nats_site_now() + 60; rc < 0 && nats_site_now() < end;) {
        rc = bucket_create(k, 1, 1, &e);
        if (rc == 0)
            rc = bucket_put(k, "key", value, strlen(value), *revision, value, revision, &e);
        if (rc < 0)
            nats_site_pause(50);
    }
    if (rc != 0)
        fail_msg("%d: %s", rc, e.msg);
}

static void assert_value(struct bucket *k, const char *value)
{
    struct buf got;
    struct err e = {0};
    uint64_t revision = 0;
    int rc = -1;
    buf_init(&got, 4096);
    for (double end = nats_site_now() + 60; rc < 0 && nats_site_now() < end;)
        if ((rc = bucket_get(k, "key", &got, &revision, &e)) < 0)
            nats_site_pause(50);
    if (rc < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(buf_str(&got), value);
    buf_fini(&got);
}

static void wait_stored(struct event_log *l)
{
    struct event_log_status s = {.n_waiting = 1};
    for (double end = nats_site_now() + 60; s.n_waiting > 0 && nats_site_now() < end;) {
        nats_site_pause(20);
        event_log_get_status(l, &s);
    }
    assert_int_equal(s.n_waiting, 0);
    assert_int_equal(s.n_dropped, 0);
}

static void test_a_bus_that_was_refused_comes_back(void **state)
{
    struct executor_queue q;
    struct bus *b, *late;
    struct bus_sub *ended;
    struct bucket *k;
    struct event_log *l;
    struct err e = {0};
    uint64_t revision = 0;
    (void)state;
    restart_with("one");
    assert_int_equal(executor_queue_init(&q, &e), 0);
    open_bus(&b, &q.executor);
    wait_up(b);
    const struct event_log_opts lo = {.bus = b, .name = "n1", .replicas = 1};
    const struct event_log_entry entry = {.kind = EVENT_LOG_NODE_JOINED, .node = "n1"};
    assert_int_equal(bus_subscribe(b, "hb.*", on_message, NULL, NULL, &e), 0);
    assert_int_equal(bus_subscribe(b, "gone", on_message, NULL, &ended, &e), 0);
    bus_unsubscribe(ended);
    assert_int_equal(bucket_open(&k, b, "values", 2000, &e), 0);
    assert_int_equal(event_log_open(&l, &lo, &e), 0);
    assert_hears(b, &q);
    put(k, "first", &revision);
    event_log_add(l, &entry);
    wait_stored(l);
    for (int i = 0; i < 2; i++) {
        restart_with("two");
        wait_given_up(b);
        open_bus(&late, NULL); /* with this prefix */
        wait_given_up(late);
        assert_int_equal(bus_publish(b, "hb.n1", "x", 1, &e), SHOAL_EBUSY);
        event_log_add(l, &entry);
        restart_with("one");
        wait_up(b);
        wait_up(late);
        bus_close(late);
        assert_hears(b, &q);
        assert_value(k, i == 0 ? "first" : "again");
        put(k, "again", &revision);
        wait_stored(l);
    }
    restart_with("two");
    wait_given_up(b);
    event_log_close(l); /* while it is refused */
    bucket_close(k);
    bus_close(b);
    while (executor_queue_run(&q))
        ;
    executor_queue_fini(&q);
}

static int start(void **state)
{
    (void)state;
    nats_site_begin(&site, 1);
    snprintf(url, sizeof(url), "nats://member:one@127.0.0.1:%u", site.port[0]);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    nats_site_end(&site);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_bus_that_was_refused_comes_back)};
    return cmocka_run_group_tests(tests, start, stop);
}
