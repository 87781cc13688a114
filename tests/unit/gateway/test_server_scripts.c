/* test_server_scripts.c - a whole server in this process, by the scripts of tests/data/server:
 * requests in, answers out.  A script is text of blocks that begin with "== ":
 *     == file NAME              a file of the current folder; $/ is the folder of test data,
 *                               ~ the current one
 *     == start NAME             starts the server with this configuration, and waits for its
 *                               models, which are the included ones by default; at unix:sock
 *     == reload NAME            gives the running server another configuration
 *     == node NAME              another member of the shoal, without an address for clients
 *     == end                    ends the member that was started last
 *     == broker                 a broker for MQTT; $port in files is its port
 *     == publish TOPIC [NAME=VALUE...]  a message with this payload, which the server has handled
 *                               when the script goes on; response=TOPIC, others are user properties
 *     == message TOPIC TEXT     the next message of the server on the topic that has the text
 *     == METHOD PATH [HEADERS]  a request with its body; headers are joined by "; "
 *     == until METHOD PATH TEXT the request is sent until the answer contains the text
 *     == out                    the status of the answer and its body
 * $id in a request is the id with which the last answer began that has one.
 * What differs from run to run is written as T.  SHOAL_GOLDEN=1 writes the answers into the scripts
 * of the source tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "config/config.h"
#include "gateway/gateway.h"
#include "net/http_ask.h"
#include "support/mqtt_broker.h"
#include "support/script.h"
#include "support/watchdog.h"

#define MAX_NODES 4u

static char dir[64], last_id[128];
static struct mqtt_broker broker;
static bool has_broker;

static const struct script_differs differs[] = {
    {"_bucket\\{[^}]*\\} |_sum\\{[^}]*\\} |_seconds\\{[^}]*\\} |_bytes\\{[^}]*\\} ", "[0-9.e+-]+",
     "\n"},                                                       /* of metrics */
    {"5xx\"\\} |not_loaded\"\\} |/readyz\"\\} ", "[0-9]+", "\n"}, /* until models are loaded */
    {"_sum |_seconds |_bytes |_total\\{[^}]*\\} ", "[0-9.e+-]{5,}", "\n"},
    {"\"created\":|\"expires\":|\"since\":|\"size\":|duration\":|_per_second\":", "[0-9.e+-]+", ""},
    {"_at\":|_s\":|_ms\":|_us\":|_ns\":|_time\":", "[0-9.e+-]+", ""},
    {"\"node\":\"", "n[12]", "\""}, /* either has the model */
    {"\"id\":|\"alarm\":", "[0-9]{9,}", ""},
    {"\"token\":\"", "[0-9a-f]{16,}", "\""},
    {"\"known\":", "[a-z]+", ""}, /* whether its speed was measured yet */
    {"\"merged\":|\"indexed\":|\"duplicates\":", "[0-9]+",
     ""}, /* readings of one millisecond; how far it is */
    {"\"id\":\"", "[a-z]+[-_][A-Za-z0-9_-]{16,}", "\""},
    {"resp_|msg_|req_|fc_", "[0-9a-f]{12,}", ""},
    {"_at\":\"|time\":\"|\"due\":\"|created\":\"|updated\":\"", "20[0-9TZ:.+-]+", "\""},
    {"version\":\"|digest\":\"", "[a-z0-9_:]{12,}", "\""},
    {"kernels\":\"|isa\":\"", "[a-z0-9-]+", "\""},
    {"\"cached_tokens\":|\"cache_n\":|\"prompt_n\":", "[0-9]+", ""}, /* by whoever answers */
    {"system_fingerprint\":|model_sha\":", "[a-z0-9_\"]+", ""}, /* the file is hashed meanwhile */
    {"\"pid\":|\"cores\":|\"threads\":|\"seed\":", "[0-9]+", ""},
    {"memory_[a-z]+\":|bytes\":", "[0-9]+", ""},
};

/* The version of a collection's model is there once its file is hashed, at any time. */
static void drop_versions(struct buf *b)
{
    static const char before[] = "\"model\":\"embed\"", head[] = ",\"version\":\"";
    struct buf out;
    buf_init(&out, (size_t)1 << 24);
    const char *p = buf_str(b);
    for (const char *at; (at = strstr(p, before)); p = at) {
        at += strlen(before);
        buf_put(&out, p, (size_t)(at - p));
        if (strncmp(at, head, strlen(head)) == 0)
            at = strchr(at + strlen(head), '"') + 1;
    }
    buf_puts(&out, p);
    buf_clear(b);
    buf_put(b, buf_str(&out), out.len);
    buf_fini(&out);
}

static void remember_id(const char *answer)
{
    static const char head[] = "{\"id\":\"";
    const size_t n = sizeof(head) - 1;
    if (strncmp(answer, head, n) == 0)
        snprintf(last_id, sizeof(last_id), "%.*s", (int)strcspn(answer + n, "\""), answer + n);
}

/* One request; returns the status, with the body in *out. */
static int ask(const char *head, const char *text, size_t n, struct buf *out)
{
    char method[16], path[256], headers[512] = "";
    struct err e = {0};
    int status = 0;
    struct buf line, more, body;
    buf_init(&line, 4096);
    buf_init(&more, 4096);
    buf_init(&body, 1 << 24);
    buf_puts(&line, head);
    script_replace(&line, "$id", last_id);
    assert_true(sscanf(buf_str(&line), "%15s %255s %511[^\n]", method, path, headers) >= 2);
    buf_fini(&line);
    buf_puts(&more, headers);
    script_replace(&more, "; ", "\r\n");
    while (n > 0 && text[n - 1] == '\n')
        n--;
    buf_put(&body, text, n);
    script_replace(&body, "$id", last_id);
    const struct http_ask a = {.server = "unix:sock",
                               .method = method,
                               .path = path,
                               .header = more.len > 0 ? buf_str(&more) : NULL,
                               .content_type = "application/json",
                               .content = buf_str(&body),
                               .content_bytes = body.len,
                               .timeout_ms = 60000};
    buf_init(out, 1 << 24);
    if (http_ask(&a, &status, out, &e) < 0)
        fail_msg("%s: %s", head, e.msg);
    remember_id(buf_str(out));
    drop_versions(out);
    buf_fini(&more);
    buf_fini(&body);
    return status;
}

static struct config *read_config(const char *file, bool has_clients)
{
    struct config *c;
    struct err e = {0};
    assert_int_equal(config_create(&c, &e), 0);
    if (config_load(c, file, &e) < 0 ||
        (c->n_models == 0 && c->cluster.nodes.n == 0 && config_add_pack(c, NULL, true, &e) < 0) ||
        (has_clients && config_add_listen(c, "unix:sock", &e) < 0))
        fail_msg("%s: %s", file, e.msg);
    return c;
}

static struct gateway *start_member(const char *file, bool has_clients)
{
    struct config *c = read_config(file, has_clients);
    struct gateway *g = NULL;
    struct err e = {0};
    if (gateway_start(&g, c, &e) < 0)
        fail_msg("%s: %s", file, e.msg);
    config_unref(c);
    return g;
}

/* Until all models have loaded. */
static void wait_ready(void)
{
    for (int status = 0; status != 200;) {
        struct buf out;
        status = ask("GET /readyz", "", 0, &out);
        buf_fini(&out);
        usleep(1000);
    }
}

static void stop(struct gateway *g)
{
    gateway_drain(g);
    gateway_destroy(g);
    unlink("sock");
}

/* The answer as scripts show it. */
static void answer(const char *head, const struct script_block *b, struct buf *out)
{
    struct buf body;
    char want[256] = "", until[512];
    const bool waits = strncmp(head, "until ", 6) == 0;
    snprintf(until, sizeof(until), "%s", waits ? head + 6 : head);
    if (waits) { /* the text is behind method and path */
        char *at = strchr(strchr(until, ' ') + 1, ' ');
        assert_non_null(at);
        snprintf(want, sizeof(want), "%s", at + 1);
        *at = '\0';
    }
    int status = ask(until, b->body, b->n, &body);
    for (int i = 0; waits && !strstr(buf_str(&body), want); i++) {
        if (i == 60000)
            fail_msg("%s: after a minute still %s", head, buf_str(&body));
        usleep(1000);
        buf_fini(&body);
        status = ask(until, b->body, b->n, &body);
    }
    buf_init(out, 1 << 24);
    buf_printf(out, "%d\n%s", status, buf_str(&body));
    if (out->data[out->len - 1] != '\n')
        buf_putc(out, '\n');
    buf_fini(&body);
    script_replace(out, SHOAL_TEST_DATA, "$");
    script_replace(out, dir, "~");
    script_hide(out, differs, sizeof(differs) / sizeof(differs[0]));
}

static size_t put_text(uint8_t *out, const char *text, size_t n)
{
    out[0] = (uint8_t)(n >> 8);
    out[1] = (uint8_t)n;
    memcpy(out + 2, text, n);
    return n + 2;
}

static void publish(const char *head, const struct script_block *b)
{
    uint8_t properties[128];
    char words[512], *save = NULL;
    size_t n = 0, bytes = b->n;
    snprintf(words, sizeof(words), "%s", head);
    const char *topic = strtok_r(words, " ", &save);
    for (char *w; (w = strtok_r(NULL, " ", &save));) {
        char *value = strchr(w, '=');
        assert_non_null(value);
        const bool response = strncmp(w, "response=", 9) == 0;
        properties[n++] = response ? 8 : 0x26; /* the latter has a name and a value */
        if (!response)
            n += put_text(properties + n, w, (size_t)(value - w));
        n += put_text(properties + n, value + 1, strlen(value + 1));
    }
    while (bytes > 0 && b->body[bytes - 1] == '\n')
        bytes--;
    mqtt_broker_publish(&broker, topic, properties, n, b->body, bytes);
}

static void put_message(const char *head, struct buf *out)
{
    char topic[256];
    const size_t n = strcspn(head, " ");
    snprintf(topic, sizeof(topic), "%.*s", (int)n, head);
    const struct mqtt_broker_message m =
        mqtt_broker_take(&broker, topic, head[n] ? head + n + 1 : "");
    buf_init(out, 1 << 16);
    buf_printf(out, "qos %u%s\n%s\n", m.qos, m.retain ? ", retained" : "", m.payload);
    script_replace(out, dir, "~");
    script_hide(out, differs, sizeof(differs) / sizeof(differs[0]));
}

static size_t run_script(const char *name, const char *text, struct buf *golden)
{
    size_t n_wrong = 0;
    struct script_block b, next;
    struct gateway *g = NULL, *nodes[MAX_NODES];
    uint32_t n_nodes = 0;
    const char *p = text;
    while (script_next(&p, &b)) {
        struct buf out;
        if (strcmp(b.head, "out") == 0)
            continue;
        if (golden)
            buf_printf(golden, "== %s\n%.*s", b.head, (int)b.n, b.body);
        if (strncmp(b.head, "file ", 5) == 0) {
            struct buf file;
            buf_init(&file, 1 << 20);
            buf_put(&file, b.body, b.n);
            script_replace(&file, "$/", SHOAL_TEST_DATA "/");
            script_replace(&file, "~", dir);
            char port[16];
            snprintf(port, sizeof(port), "%u", broker.port);
            script_replace(&file, "$port", port);
            script_write(b.head + 5, buf_str(&file), file.len);
            buf_fini(&file);
            continue;
        }
        if (strncmp(b.head, "start ", 6) == 0) {
            if (g)
                stop(g);
            g = start_member(b.head + 6, true);
            wait_ready();
            continue;
        }
        if (strncmp(b.head, "reload ", 7) == 0) {
            struct config *c = read_config(b.head + 7, true);
            struct err e = {0};
            if (gateway_check(c, &e) < 0 || gateway_reload(g, c, &e) < 0)
                fail_msg("%s: %s", b.head, e.msg);
            config_unref(c);
            wait_ready();
            continue;
        }
        if (strncmp(b.head, "node ", 5) == 0) {
            assert_true(n_nodes < MAX_NODES);
            nodes[n_nodes++] = start_member(b.head + 5, false);
            continue;
        }
        if (strcmp(b.head, "broker") == 0) {
            mqtt_broker_begin(&broker);
            has_broker = true;
            continue;
        }
        if (strncmp(b.head, "publish ", 8) == 0) {
            publish(b.head + 8, &b);
            continue;
        }
        if (strcmp(b.head, "end") == 0) {
            assert_true(n_nodes > 0);
            gateway_drain(nodes[--n_nodes]);
            gateway_destroy(nodes[n_nodes]);
            continue;
        }
        if (strncmp(b.head, "message ", 8) == 0)
            put_message(b.head + 8, &out);
        else
            answer(b.head, &b, &out);
        if (golden) {
            buf_printf(golden, "== out\n%s", buf_str(&out));
            buf_fini(&out);
            continue;
        }
        const bool has_out = script_next(&p, &next) && strcmp(next.head, "out") == 0;
        if (!has_out || next.n != out.len || memcmp(buf_str(&out), next.body, next.n) != 0) {
            fprintf(stderr, "%s: %s is answered with\n%s\n", name, b.head, buf_str(&out));
            n_wrong++;
        }
        buf_fini(&out);
    }
    assert_string_equal(p, ""); /* all of it was read */
    if (g)
        stop(g);
    if (has_broker)
        mqtt_broker_end(&broker);
    has_broker = false;
    while (n_nodes > 0)
        gateway_destroy(nodes[--n_nodes]);
    return n_wrong;
}

static void test_scripts(void **state)
{
    (void)state;
    script_run_all(SHOAL_TEST_DATA "/server/*.txt", dir, run_script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scripts)};
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    if (setenv("SHOAL_MODELS", SHOAL_TEST_DATA "/../../models", 1) != 0 ||
        setenv("SHOAL_CACHE_DIR", "", 1) != 0 || setenv("SHOAL_STORE", "store", 1) != 0 ||
        setenv("XDG_STATE_HOME", "state", 1) != 0)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
