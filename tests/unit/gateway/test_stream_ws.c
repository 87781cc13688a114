/* test_stream_ws.c - several requests at a time over one WebSocket: messages in, messages out, with
 * a real model and the client's end of the connection in the test's hands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/gw.h"
#include "net/ws.h"
#include "support/gw_site.h"

#define BIG (WS_CHECKED_BYTES + 1000)

static struct gw gw;
static int fd; /* the client's end */
static struct buf in;

static const char hello[] = "GET /v1/stream HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

static bool is_ready(void)
{
    enum registry_state s;
    return registry_state(gw.registry, "m", &s) && s == REGISTRY_READY;
}

static int open_site(void **state)
{
    const struct registry_spec spec = {
        .name = "m", .path = SHOAL_TEST_DATA "/refs/qwen3.gguf", .pinned = true, .n_threads = 1};
    int pair[2];
    (void)state;
    assert_int_equal(gw_site_open(&gw, 0), 0);
    assert_int_equal(registry_add(gw.registry, &spec, NULL), 0);
    for (int i = 0; i < 60000 && !is_ready(); i++)
        loop_turn(gw.loops[0].loop, 1);
    assert_true(is_ready());
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    fd = pair[0];
    buf_init(&in, 1 << 26);
    assert_int_equal(http_server_adopt(gw.loops[0].http, pair[1], NULL), 0);
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    close(fd);
    loop_turn(gw.loops[0].loop, 0);
    gw_site_close(&gw);
    buf_fini(&in);
    return 0;
}

/* One turn, and what came. */
static void turn(void)
{
    loop_turn(gw.loops[0].loop, 1);
    char *room = buf_room(&in, 1 << 16);
    ssize_t n = recv(fd, room, 1 << 16, 0);
    if (n > 0)
        buf_used(&in, (size_t)n);
}

static void upgrade(void)
{
    assert_int_equal(send(fd, hello, sizeof(hello) - 1, 0), sizeof(hello) - 1);
    const char *end = NULL;
    for (int i = 0; i < 60000 && !(end = strstr(buf_str(&in), "\r\n\r\n")); i++)
        turn();
    assert_non_null(end);
    assert_int_equal(strncmp(in.data, "HTTP/1.1 101 ", 13), 0);
    assert_non_null(strstr(in.data, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    size_t n = (size_t)(end + 4 - in.data);
    memmove(in.data, in.data + n, in.len - n + 1);
    in.len -= n;
}

/* Sends a masked frame. */
static void say_frame(uint8_t opcode, const char *text, size_t n)
{
    struct buf b;
    const char mask[4] = {1, 2, 3, 4};
    buf_init(&b, 1 << 26);
    buf_putc(&b, (char)(0x80 | opcode));
    if (n < 126) {
        buf_putc(&b, (char)(0x80 | n));
    } else if (n < 65536) {
        buf_putc(&b, (char)(0x80 | 126));
        buf_putc(&b, (char)(n >> 8));
        buf_putc(&b, (char)n);
    } else {
        buf_putc(&b, (char)(0x80 | 127));
        for (int i = 7; i >= 0; i--)
            buf_putc(&b, (char)((uint64_t)n >> (8 * i)));
    }
    buf_put(&b, mask, 4);
    for (size_t i = 0; i < n; i++)
        buf_putc(&b, (char)(text[i] ^ mask[i % 4]));
    for (size_t at = 0; at < b.len;) {
        ssize_t k = send(fd, b.data + at, b.len - at, MSG_NOSIGNAL);
        at += k > 0 ? (size_t)k : 0;
        if (k < 0)
            turn();
    }
    buf_fini(&b);
}

static void say(const char *text)
{
    say_frame(1, text, strlen(text));
}

/* The next message; a closing frame is "closed CODE". */
static const char *heard(void)
{
    static char text[1 << 16];
    for (int i = 0; i < 60000; i++) {
        const uint8_t *p = (const uint8_t *)in.data;
        size_t head = 2, n = in.len >= 2 ? p[1] & 0x7f : 0;
        if (in.len >= 4 && n == 126) {
            head = 4;
            n = (size_t)p[2] << 8 | p[3];
        }
        if (in.len < head || in.len < head + n || (n == 126 && in.len < 4)) {
            turn();
            continue;
        }
        assert_true(n < sizeof(text) && (p[1] & 0x80) == 0);
        if ((p[0] & 15) == 8)
            snprintf(text, sizeof(text), "closed %u",
                     n >= 2 ? (unsigned)p[head] << 8 | p[head + 1] : 0u);
        else
            snprintf(text, sizeof(text), "%.*s", (int)n, (const char *)p + head);
        memmove(in.data, in.data + head + n, in.len - head - n);
        in.len -= head + n;
        return text;
    }
    fail_msg("nothing was heard");
    return "";
}

static void check_says(const char *message, const char *answer)
{
    say(message);
    assert_string_equal(heard(), answer);
}

static void test_wrong_messages(void **state)
{
    static const char no_id[] =
        "a message must be a JSON object with an \\\"id\\\" of 1 to 63 bytes\"}";
    char want[256], long_id[128];
    (void)state;
    upgrade();
    snprintf(want, sizeof(want), "{\"id\":\"\",\"status\":400,\"error\":\"%s", no_id);
    check_says("not json", want);
    check_says("[]", want);
    check_says("{\"body\":{}}", want);
    check_says("{\"id\":7,\"body\":{}}", want);
    check_says("{\"id\":\"\",\"body\":{}}", want);
    snprintf(long_id, sizeof(long_id), "{\"id\":\"%064d\",\"body\":{}}", 0);
    check_says(long_id, want);
    say_frame(2, "{\"id\":\"1\",\"body\":{}}", 20); /* bytes are no message */
    assert_string_equal(heard(), want);
    check_says("{\"id\":\"1\"}", "{\"id\":\"1\",\"status\":400,\"error\":\"\\\"body\\\" must be an "
                                 "object, or \\\"cancel\\\" true\"}");
    check_says("{\"id\":\"1\",\"path\":\"v1\",\"body\":{}}",
               "{\"id\":\"1\",\"status\":400,\"error\":\"\\\"path\\\" must be a path of this "
               "server\"}");
    check_says("{\"id\":\"1\",\"cancel\":true}", "{\"id\":\"1\",\"status\":400,\"error\":\"no "
                                                 "request with this id is running\"}");
    check_says("{\"id\":\"1\",\"body\":{\"a\":\"\\u0000\"}}",
               "{\"id\":\"1\",\"status\":400,\"error\":\"the message contains NUL (\\\\u0000), "
               "which is not allowed in a request\"}");
}

static void test_answers(void **state)
{
    (void)state;
    upgrade();
    check_says(
        "{\"id\":\"a\",\"path\":\"/tokenize\",\"body\":{\"model\":\"m\",\"content\":\"hello\"}}",
        "{\"id\":\"a\",\"status\":200,\"body\":{\"tokens\":[258,108,108,111],\"count\":4}}");
    say("{\"id\":\"b\",\"path\":\"/nosuch\",\"body\":{}}");
    assert_non_null(strstr(heard(), "{\"id\":\"b\",\"status\":404,\"body\":{\"error\":{"));
    say("{\"id\":\"c\",\"body\":{}}"); /* a conversation by default */
    assert_non_null(strstr(heard(), "messages"));
    say("{\"id\":\"d\",\"path\":\"/v1/completions\",\"body\":{\"model\":\"m\",\"prompt\":\"a\","
        "\"max_tokens\":3,\"logit_bias\":{\"258\":100},\"stream\":true}}");
    uint32_t n_events = 0;
    const char *last;
    while (strncmp(last = heard(), "{\"id\":\"d\",\"event\":{", 18) == 0)
        n_events++;
    assert_true(n_events > 0);
    assert_string_equal(last, "{\"id\":\"d\",\"status\":200,\"done\":true}");
}

/* Several at a time, by their ids; cancelled ones say no more. */
static void test_many(void **state)
{
    static const char slow[] =
        "{\"id\":\"%s\",\"path\":\"/v1/completions\",\"body\":{\"model\":\"m\",\"prompt\":\"a\","
        "\"max_tokens\":2000,\"logit_bias\":{\"258\":100},\"stream\":true}}";
    char text[256];
    uint32_t n_refused = 0;
    (void)state;
    upgrade();
    snprintf(text, sizeof(text), slow, "one");
    say(text);
    assert_non_null(strstr(heard(), "{\"id\":\"one\",\"event\":"));
    say(text);
    const char *got;
    while (strstr(got = heard(), "\"event\":")) {
    }
    assert_string_equal(
        got, "{\"id\":\"one\",\"status\":400,\"error\":\"a request with this id is running\"}");
    say("{\"id\":\"one\",\"cancel\":true}");
    while (strstr(got = heard(), "\"event\":")) {
    }
    assert_string_equal(got, "{\"id\":\"one\",\"cancelled\":true}");
    check_says("{\"id\":\"one\",\"cancel\":true}", "{\"id\":\"one\",\"status\":400,\"error\":\"no "
                                                   "request with this id is running\"}");
    for (int i = 0; i < 66; i++) { /* more than a connection may have */
        char id[8];
        snprintf(id, sizeof(id), "%d", i);
        snprintf(text, sizeof(text), slow, id);
        say(text);
    }
    while (n_refused < 2) {
        got = heard();
        n_refused += strstr(got, "too many requests on this connection") != NULL;
    }
    assert_true(gw.loops[0].flow.n_jobs > 0);
    close(fd); /* all of them end with the connection */
    for (int i = 0; i < 60000 && gw.loops[0].flow.n_jobs > 0; i++)
        loop_turn(gw.loops[0].loop, 1);
    assert_int_equal(gw.loops[0].flow.n_jobs, 0);
    fd = -1;
}

/* Large messages are read on the pool. */
static void test_large_messages(void **state)
{
    struct buf b;
    (void)state;
    upgrade();
    buf_init(&b, 1 << 26);
    buf_puts(&b, "{\"id\":\"big\",\"path\":\"/nosuch\",\"body\":{\"content\":\"");
    for (size_t i = 0; i < BIG; i++)
        buf_putc(&b, ' ');
    buf_puts(&b, "\"}}");
    say_frame(1, b.data, b.len);
    say("{\"id\":\"next\",\"path\":\"/nosuch\",\"body\":{}}"); /* waits for it */
    assert_non_null(strstr(heard(), "{\"id\":\"big\",\"status\":404"));
    assert_non_null(strstr(heard(), "{\"id\":\"next\",\"status\":404"));
    b.data[b.len - 4] = (char)0xff; /* not UTF-8 */
    say_frame(1, b.data, b.len);
    assert_string_equal(heard(), "closed 1007");
    buf_fini(&b);
}

static void test_not_a_websocket(void **state)
{
    static const char plain[] = "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n";
    (void)state;
    assert_int_equal(send(fd, plain, sizeof(plain) - 1, 0), sizeof(plain) - 1);
    for (int i = 0; i < 60000 && !strstr(buf_str(&in), "}"); i++)
        turn();
    assert_int_equal(strncmp(in.data, "HTTP/1.1 426 ", 13), 0);
    assert_non_null(strstr(in.data, "this path needs WebSocket version 13 over HTTP/1.1"));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_site, close_site)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_wrong_messages), TEST(test_answers),         TEST(test_many),
        TEST(test_large_messages), TEST(test_not_a_websocket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
