/* test_webhooks.c - alarms on their way to another server: what it gets, what is tried again, what
 * is given up, and what a restart still knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "config/config.h"
#include "site/things/plant.h"
#include "site/things/webhooks.h"
#include "support/http_peer.h"

struct kit {
    struct things_sensor_opts sensors[2];
    struct config config;
    struct config_webhooks hooks;
    struct plant *plant;
    struct webhooks *webhooks;
    struct http_peer peer;
    char dir[64], file[96], secret[96], queue[256], url[96];
};

static void kit_init(struct kit *k)
{
    static char path[] = "/hook?a=b";
    *k = (struct kit){.dir = "/tmp/shoal-hooks-XXXXXX"};
    http_peer_begin(&k->peer);
    for (int i = 0; i < 2; i++)
        k->sensors[i] = things_sensor_defaults();
    k->sensors[0].name = "vibration";
    k->sensors[0].limit_high = 7;
    k->sensors[1].name = "noise";
    k->sensors[1].limit_high = 7;
    k->config.things.sensors = k->sensors;
    k->config.things.n_sensors = 2;
    assert_non_null(mkdtemp(k->dir));
    snprintf(k->file, sizeof(k->file), "%s/open.json", k->dir);
    snprintf(k->secret, sizeof(k->secret), "%s/secret", k->dir);
    snprintf(k->url, sizeof(k->url), "%s%s", k->peer.server, path);
    k->hooks.n = 1;
    k->hooks.v[0] = (struct config_webhook){.url = k->url,
                                            .server = k->peer.server,
                                            .path = path,
                                            .timeout_ms = 30000,
                                            .keep_ms = 3600000,
                                            .queue_bytes = 1 << 20};
}

static void write_secret(struct kit *k, const char *text)
{
    FILE *f = fopen(k->secret, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    k->hooks.v[0].secret_file = k->secret;
}

static int start(struct kit *k, bool sends)
{
    struct err e = {0};
    assert_int_equal(plant_create(&k->plant, &k->config, k->file, &e), 0);
    int rc = webhooks_create(&k->webhooks, &k->hooks, k->file, k->plant, &e);
    if (rc == 0)
        rc = plant_start(k->plant, &e);
    return rc == 0 && sends ? webhooks_start(k->webhooks, &e) : rc;
}

static void stop(struct kit *k)
{
    plant_stop(k->plant);
    webhooks_destroy(k->webhooks);
    plant_destroy(k->plant);
}

static void kit_fini(struct kit *k)
{
    char command[128];
    http_peer_end(&k->peer);
    snprintf(command, sizeof(command), "rm -rf %s", k->dir);
    assert_int_equal(system(command), 0);
}

static void put(struct kit *k, const char *sensor, double value)
{
    const struct reading r = {.sensor = plant_find(k->plant, sensor), .value = value};
    plant_reading(k->plant, &r);
}

static const char *metrics(struct kit *k)
{
    static char text[2048];
    struct buf b;
    buf_init(&b, 1 << 16);
    webhooks_metrics(k->webhooks, &b);
    snprintf(text, sizeof(text), "%s", buf_str(&b));
    buf_fini(&b);
    return text;
}

/* Until the first webhook has counted this. */
static void wait_count(struct kit *k, const char *result, unsigned n)
{
    char line[128];
    snprintf(line, sizeof(line), "{webhook=\"1\",result=\"%s\"} %u\n", result, n);
    while (!strstr(metrics(k), line))
        usleep(1000);
}

static void check_signature(const struct http_peer_request *r, const char *secret)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    char text[10240], hex[160] = "sha256=";
    snprintf(text, sizeof(text), "%s.%s", http_peer_header(r, "X-Shoal-Time"), r->body);
    assert_non_null(HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text,
                         strlen(text), sum, &n));
    for (unsigned int i = 0; i < n; i++)
        snprintf(hex + 7 + 2 * i, 3, "%02x", sum[i]);
    assert_string_equal(http_peer_header(r, "X-Shoal-Signature"), hex);
}

static void test_an_alarm_arrives(void **state)
{
    static struct kit k;
    (void)state;
    kit_init(&k);
    write_secret(&k, "sesame\r\n\n");
    assert_int_equal(start(&k, true), 0);
    put(&k, "vibration", 11);
    http_peer_wait(&k.peer, 1);
    wait_count(&k, "delivered", 1);
    const struct http_peer_request *r = &k.peer.list[0];
    assert_string_equal(r->line, "POST /hook?a=b HTTP/1.1");
    assert_string_equal(http_peer_header(r, "Content-Type"), "application/json");
    assert_non_null(strstr(r->body, "\"change\":\"raised\",\"kind\":\"limit\""));
    assert_true(r->body[0] == '{' && r->body[strlen(r->body) - 1] == '}');
    assert_true(strlen(http_peer_header(r, "Idempotency-Key")) >= 18);
    assert_null(strchr(http_peer_header(r, "Idempotency-Key"), 'm')); /* it was on disk */
    check_signature(r, "sesame");
    assert_string_equal(metrics(&k),
                        "# HELP shoal_webhook_events_total Events of alarms, by webhook.\n"
                        "# TYPE shoal_webhook_events_total counter\n"
                        "shoal_webhook_events_total{webhook=\"1\",result=\"delivered\"} 1\n"
                        "shoal_webhook_events_total{webhook=\"1\",result=\"refused\"} 0\n"
                        "shoal_webhook_events_total{webhook=\"1\",result=\"expired\"} 0\n"
                        "shoal_webhook_events_total{webhook=\"1\",result=\"lost\"} 0\n"
                        "# HELP shoal_webhook_waiting Events that wait to be delivered.\n"
                        "# TYPE shoal_webhook_waiting gauge\n"
                        "shoal_webhook_waiting{webhook=\"1\"} 0\n");
    stop(&k);
    kit_fini(&k);
}

/* The same event until it is accepted, then the next, in order. */
static void test_an_event_is_tried_again(void **state)
{
    static struct kit k;
    char key[64], body[8192];
    (void)state;
    kit_init(&k);
    http_peer_status(&k.peer, 500);
    http_peer_status(&k.peer, 429);
    http_peer_status(&k.peer, 204);
    assert_int_equal(start(&k, true), 0);
    put(&k, "vibration", 11);
    put(&k, "noise", 11);
    http_peer_wait(&k.peer, 4);
    wait_count(&k, "delivered", 2);
    snprintf(key, sizeof(key), "%s", http_peer_header(&k.peer.list[0], "Idempotency-Key"));
    snprintf(body, sizeof(body), "%s", k.peer.list[0].body);
    assert_non_null(strstr(body, "vibration"));
    for (int i = 1; i < 3; i++) {
        assert_string_equal(http_peer_header(&k.peer.list[i], "Idempotency-Key"), key);
        assert_string_equal(k.peer.list[i].body, body);
        assert_string_equal(http_peer_header(&k.peer.list[i], "X-Shoal-Signature"), "");
    }
    assert_non_null(strstr(k.peer.list[3].body, "noise"));
    assert_string_not_equal(http_peer_header(&k.peer.list[3], "Idempotency-Key"), key);
    stop(&k);
    kit_fini(&k);
}

/* What each status means: taken, never again, or later. */
static void test_statuses(void **state)
{
    static const struct {
        int status;
        bool over; /* else it is tried again */
    } rows[] = {{200, true},  {299, true},  {300, false}, {400, true},  {499, true},
                {408, false}, {425, false}, {429, false}, {500, false}, {399, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct kit k;
        kit_init(&k);
        http_peer_status(&k.peer, rows[i].status);
        assert_int_equal(start(&k, true), 0);
        put(&k, "vibration", 11);
        http_peer_wait(&k.peer, 1);
        stop(&k); /* the answer was read by then */
        assert_int_equal(start(&k, false), 0);
        const char *waits = rows[i].over ? "{webhook=\"1\"} 0\n" : "{webhook=\"1\"} 1\n";
        assert_non_null(strstr(metrics(&k), waits));
        stop(&k);
        kit_fini(&k);
    }
}

/* An event that could not be delivered is there after a restart, under its key; so is its alarm. */
static void test_a_restart_keeps_events(void **state)
{
    static struct kit k;
    char key[64];
    (void)state;
    kit_init(&k);
    http_peer_status(&k.peer, 503);
    http_peer_status(&k.peer, 200);
    assert_int_equal(start(&k, true), 0);
    put(&k, "vibration", 11);
    http_peer_wait(&k.peer, 1);
    stop(&k);
    snprintf(key, sizeof(key), "%s", http_peer_header(&k.peer.list[0], "Idempotency-Key"));
    assert_int_equal(unlink(k.file), 0); /* as after a crash: the event is older than the file */
    assert_int_equal(start(&k, false), 0);
    assert_int_equal(plant_open_alarms(k.plant), 1);
    assert_non_null(strstr(metrics(&k), "shoal_webhook_waiting{webhook=\"1\"} 1\n"));
    struct err e;
    assert_int_equal(webhooks_start(k.webhooks, &e), 0);
    wait_count(&k, "delivered", 1);
    assert_string_equal(http_peer_header(&k.peer.list[1], "Idempotency-Key"), key);
    assert_string_equal(k.peer.list[1].body, k.peer.list[0].body);
    stop(&k);
    assert_int_equal(start(&k, true), 0); /* and is not sent again */
    assert_non_null(strstr(metrics(&k), "shoal_webhook_waiting{webhook=\"1\"} 0\n"));
    stop(&k);
    kit_fini(&k);
}

static void test_too_late(void **state)
{
    static struct kit k;
    (void)state;
    kit_init(&k);
    k.hooks.v[0].keep_ms = 1;
    assert_int_equal(start(&k, false), 0);
    put(&k, "vibration", 11);
    usleep(20000); /* longer than the event is kept */
    struct err e;
    assert_int_equal(webhooks_start(k.webhooks, &e), 0);
    wait_count(&k, "expired", 1);
    assert_int_equal(k.peer.n, 0);
    stop(&k);
    kit_fini(&k);
}

/* Each webhook gets what is severe enough for it; a queue that is full loses events. */
static void test_severity_and_a_full_queue(void **state)
{
    static struct kit k;
    (void)state;
    kit_init(&k);
    k.hooks.n = 3;
    k.hooks.v[1] = k.hooks.v[2] = k.hooks.v[0];
    k.hooks.v[0].severity = ALARM_CRITICAL;
    k.hooks.v[1].severity = ALARM_CRITICAL + 1;
    k.hooks.v[1].url = "http://127.0.0.1:1/b";
    k.hooks.v[2].url = "http://127.0.0.1:1/c";
    k.hooks.v[2].queue_bytes = 1;
    assert_int_equal(start(&k, false), 0);
    put(&k, "vibration", 11);
    const char *m = metrics(&k);
    assert_non_null(strstr(m, "shoal_webhook_waiting{webhook=\"1\"} 1\n"));
    assert_non_null(strstr(m, "shoal_webhook_waiting{webhook=\"2\"} 0\n"));
    assert_non_null(strstr(m, "shoal_webhook_waiting{webhook=\"3\"} 0\n"));
    assert_non_null(strstr(m, "{webhook=\"2\",result=\"lost\"} 0\n"));
    assert_non_null(strstr(m, "{webhook=\"3\",result=\"lost\"} 1\n"));
    stop(&k);
    kit_fini(&k);
}

static void test_what_cannot_be_opened(void **state)
{
    static struct kit k;
    static char long_file[5000];
    char name[64];
    struct err e = {0};
    (void)state;
    kit_init(&k);
    assert_int_equal(plant_create(&k.plant, &k.config, NULL, &e), 0);
    assert_int_equal(webhooks_create(&k.webhooks, &k.hooks, NULL, k.plant, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "alarms.file"));
    assert_int_equal(webhooks_create(&k.webhooks, &k.hooks, k.file, NULL, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "sensors"));
    memset(long_file, 'x', sizeof(long_file) - 1);
    assert_int_equal(webhooks_create(&k.webhooks, &k.hooks, long_file, k.plant, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "too long"));
    k.hooks.v[0].secret_file = k.secret;
    assert_true(webhooks_create(&k.webhooks, &k.hooks, k.file, k.plant, &e) < 0); /* no file */
    write_secret(&k, "\n");
    assert_int_equal(webhooks_create(&k.webhooks, &k.hooks, k.file, k.plant, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "empty or too long"));
    assert_null(k.webhooks);
    k.hooks.n = 0;
    assert_int_equal(webhooks_create(&k.webhooks, &k.hooks, NULL, NULL, &e), 0);
    assert_null(k.webhooks);
    assert_int_equal(webhooks_start(NULL, &e), 0);
    webhooks_destroy(NULL);
    assert_string_equal(metrics(&k), "");
    plant_destroy(k.plant);
    assert_true(webhooks_queue_file(name, sizeof(name), "f", "http://a"));
    assert_int_equal(strlen(name), strlen("f.webhook-") + 16);
    assert_false(webhooks_queue_file(name, strlen("f.webhook-") + 16, "f", "http://a"));
    assert_true(webhooks_queue_file(name, strlen("f.webhook-") + 17, "f", "http://a"));
    kit_fini(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_alarm_arrives),
        cmocka_unit_test(test_an_event_is_tried_again),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_a_restart_keeps_events),
        cmocka_unit_test(test_too_late),
        cmocka_unit_test(test_severity_and_a_full_queue),
        cmocka_unit_test(test_what_cannot_be_opened),
    };
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
