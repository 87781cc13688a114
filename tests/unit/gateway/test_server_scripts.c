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
 *     == head METHOD PATH [HEADERS]  the same, of which the head of the answer is shown
 *     == shape METHOD PATH      of the answer its members and their types, of lists the first of each
 *     == form METHOD PATH       a form: lines of NAME=VALUE, and of NAME@FILE for its content
 *     == wyoming [TYPE]         events to the server's port for Wyoming, a line each; behind one, a
 *                               sound of the folder of test data as its payload; its events until
 *                               one of the type, or the answer to a ping that is sent last
 *     == ws PATH [HEADERS]      a WebSocket: a line is a message; "sound FILE" sends a sound of the
 *                               folder of test data, "append FILE" one as an event of the realtime
 *                               API, "wait TEXT" takes messages until one has the text; at the end
 *                               the connection is closed.  Pieces of an answer are shown as one
 *     == out                    the status of the answer and its body; of sounds and other long
 *                               ones the size and a hash
 * $wyoming in files is a free port.
 * $id in a request is the id with which the last answer began that has one, $item the first of the
 * last list.
 * A body of @FILE is that file of the folder of test data; $long in it is a text of 70,000 letters.
 * What differs from run to run is written as T.  SHOAL_GOLDEN=1 writes the answers into the scripts
 * of the source tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "config/config.h"
#include "gateway/server/gateway.h"
#include "net/http_ask.h"
#include "support/mqtt_broker.h"
#include "support/script.h"
#include "support/watchdog.h"
#include "support/ws_peer.h"
#include "wire/wyoming.h"

#define MAX_NODES 4u
#define PATIENCE_NS 180000000000u
#define LONG_BYTES 100000u
#define N_LONG 70000u /* letters: such a body is parsed by another thread */

static char dir[64], last_id[128], last_item[128];
static uint16_t wyoming_port;
static struct mqtt_broker broker;
static bool has_broker;

static const struct script_differs differs[] = {
    {"_bucket\\{[^}]*\\} |_sum\\{[^}]*\\} |_seconds\\{[^}]*\\} |_bytes\\{[^}]*\\} ", "[0-9.e+-]+",
     "\n"},                                                       /* of metrics */
    {"5xx\"\\} |not_loaded\"\\} |/readyz\"\\} ", "[0-9]+", "\n"}, /* until models are loaded */
    {"_sum |_seconds |_bytes |_total\\{[^}]*\\} ", "[0-9.e+-]{5,}", "\n"},
    {"\"created\":|\"expires\":|\"since\":|\"size\":|duration\":|_per_second\":", "[0-9.e+-]+", ""},
    {"_at\":|_s\":|_ms\":|\"ms\":|_us\":|_ns\":|_time\":", "[0-9.e+-]+", ""},
    {"\"node\":\"", "n[12]", "\""}, /* either has the model */
    {"\"id\":|\"alarm\":", "[0-9]{9,}", ""},
    {"\"token\":\"", "[0-9a-f]{16,}", "\""},
    {"\"known\":", "[a-z]+", ""}, /* whether its speed was measured yet */
    {"\"merged\":|\"indexed\":|\"duplicates\":", "[0-9]+",
     ""}, /* readings of one millisecond; how far it is */
    {"\"id\":\"", "[a-z]+[-_][A-Za-z0-9_-]{16,}", "\""},
    {"resp_|msg_|req_|fc_|call_|conv_|def_", "[0-9a-f]{12,}", ""},
    {"_at\":\"|time\":\"|\"due\":\"|created\":\"|updated\":\"", "20[0-9TZ:.+-]+", "\""},
    {"digest\":\"", "[a-z0-9_:]{12,}", "\""},
    {"version\":", "[a-z0-9_:\"]{4,}", ""}, /* null until the file is hashed */
    {"kernels\":\"|isa\":\"", "[a-z0-9-]+", "\""},
    {"\"cached_tokens\":|\"cache\":|\"cache_n\":|\"prompt_n\":", "[0-9]+",
     ""},                                                       /* by whoever answers */
    {"system_fingerprint\":|model_sha\":", "[a-z0-9_\"]+", ""}, /* the file is hashed meanwhile */
    {"x-request-id: |traceparent: 00-[0-9a-f]{32}-|date: |dur=|etag: ", "[^\r;]+", ""}, /* heads */
    {"content-length: ", "[0-9]{3,}", ""},
    {"\"fits\":", "[a-z]+", ""}, /* of this machine */
    {"\"reason\":\"", "it needs[^\"]+", "\""},
    {"\"pid\":|\"cpus\":|\"cores\":|\"threads\":|\"seed\":", "[0-9]+", ""},
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

/* The text behind `head`, up to the quotation mark. */
static void remember(char out[128], const char *at, const char *head)
{
    if (at)
        snprintf(out, 128, "%.*s", (int)strcspn(at + strlen(head), "\""), at + strlen(head));
}

static void remember_id(const char *answer)
{
    static const char head[] = "{\"id\":\"", item[] = "\"first_id\":\"";
    if (strncmp(answer, head, strlen(head)) == 0)
        remember(last_id, answer, head);
    remember(last_item, strstr(answer, item), item);
}

/* One request; returns the status, with the body in *out. */
static int send_one(const char *line, const char *type, const struct buf *body, struct buf *out)
{
    char method[16], path[256], headers[512] = "";
    struct err e = {0};
    int status = 0;
    struct buf more;
    assert_true(sscanf(line, "%15s %255s %511[^\n]", method, path, headers) >= 2);
    buf_init(&more, 4096);
    buf_puts(&more, headers);
    script_replace(&more, "; ", "\r\n");
    const struct http_ask a = {.server = "unix:sock",
                               .method = method,
                               .path = path,
                               .header = more.len > 0 ? buf_str(&more) : NULL,
                               .content_type = type,
                               .content = buf_str(body),
                               .content_bytes = body->len,
                               .timeout_ms = 60000};
    buf_init(out, 1 << 24);
    if (http_ask(&a, &status, out, &e) < 0)
        fail_msg("%s: %s", line, e.msg);
    buf_fini(&more);
    return status;
}

static void put_file(struct buf *out, const char *name)
{
    char path[512];
    struct err e = {0};
    snprintf(path, sizeof(path), "%s/%s", SHOAL_TEST_DATA, name);
    if (file_read(path, out, &e) < 0)
        fail_msg("%s", e.msg);
}

static void put_body(struct buf *out, const char *text, size_t n)
{
    static char many[N_LONG + 1];
    memset(many, 'x', N_LONG);
    buf_put(out, text, n);
    script_replace(out, "$id", last_id);
    script_replace(out, "$long", many);
    script_replace(out, "$/", SHOAL_TEST_DATA "/");
}

static int ask(const char *head, const char *text, size_t n, struct buf *out)
{
    struct buf line, body;
    buf_init(&line, 4096);
    buf_init(&body, 1 << 24);
    buf_puts(&line, head);
    script_replace(&line, "$id", last_id);
    script_replace(&line, "$item", last_item);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    if (n > 1 && text[0] == '@') {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)n - 1, text + 1);
        put_file(&body, name);
    } else {
        put_body(&body, text, n);
    }
    const int status = send_one(buf_str(&line), "application/json", &body, out);
    if (!memchr(buf_str(out), '\0', out->len)) {
        remember_id(buf_str(out));
        drop_versions(out);
    }
    buf_fini(&line);
    buf_fini(&body);
    return status;
}

static void put_shape(struct buf *out, const cJSON *v)
{
    const char *comma = "";
    if (cJSON_IsObject(v)) {
        buf_putc(out, '{');
        for (const cJSON *m = v->child; m; m = m->next, comma = ", ") {
            const bool speed = strstr(m->string, "_per_s"); /* null until it is measured */
            buf_printf(out, "%s%s: ", comma, m->string);
            if (speed && (cJSON_IsNull(m) || cJSON_IsNumber(m)))
                buf_puts(out, "speed");
            else
                put_shape(out, m);
        }
        buf_putc(out, '}');
    } else if (cJSON_IsArray(v)) {
        buf_putc(out, '[');
        if (v->child)
            put_shape(out, v->child);
        buf_putc(out, ']');
    } else {
        buf_puts(out, cJSON_IsString(v) ? "text" : cJSON_IsNumber(v) ? "number" : "");
        buf_puts(out, cJSON_IsBool(v) ? "bool" : cJSON_IsNull(v) ? "null" : "");
    }
}

static void put_shape_of(const char *head, const struct script_block *b, struct buf *out)
{
    struct buf body;
    const int status = ask(head, b->body, b->n, &body);
    cJSON *v = cJSON_Parse(buf_str(&body));
    assert_non_null(v);
    buf_init(out, 1 << 20);
    buf_printf(out, "%d\n", status);
    put_shape(out, v);
    buf_putc(out, '\n');
    cJSON_Delete(v);
    buf_fini(&body);
}

static int send_form(const char *head, const struct script_block *b, struct buf *out)
{
    struct buf body;
    buf_init(&body, 1 << 24);
    for (const char *p = b->body; p < b->body + b->n; p += strcspn(p, "\n") + 1) {
        char line[512];
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
        char *value = strpbrk(line, "=@");
        assert_non_null(value);
        const bool is_file = *value == '@';
        *value++ = '\0';
        buf_printf(&body, "--edge\r\ncontent-disposition: form-data; name=\"%s\"%s\r\n\r\n", line,
                   is_file ? "; filename=\"sound\"" : "");
        if (is_file)
            put_file(&body, value);
        else
            buf_puts(&body, value);
        buf_puts(&body, "\r\n");
    }
    buf_puts(&body, "--edge--\r\n");
    const int status = send_one(head, "multipart/form-data; boundary=edge", &body, out);
    buf_fini(&body);
    return status;
}

static void put_events(struct buf *to, const struct script_block *b)
{
    for (const char *p = b->body; p < b->body + b->n; p += strcspn(p, "\n") + 1) {
        char line[512];
        struct buf sound;
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
        char *file = strstr(line, "} ");
        buf_init(&sound, 1 << 20);
        if (file) {
            put_file(&sound, file + 2);
            file[0] = '\0'; /* the brace comes after the length */
            buf_printf(to, "%s,\"payload_length\":%zu}\n", line, sound.len - 44);
            buf_put(to, sound.data + 44, sound.len - 44); /* without the head of a WAV file */
        } else {
            buf_printf(to, "%s\n", line);
        }
        buf_fini(&sound);
    }
    buf_puts(to, "{\"type\":\"ping\",\"data\":{\"text\":\"the end\"}}\n");
}

/* Shows an event; of a sound that comes in pieces the whole.  Whether it is the last. */
static bool put_event(struct buf *out, const struct wyoming_event *ev, const char *last,
                      struct buf *sound)
{
    char *data = ev->data ? cJSON_PrintUnformatted(ev->data) : NULL;
    const bool answered = strcmp(ev->type, "pong") == 0 && data && strstr(data, "the end");
    buf_put(sound, ev->payload, ev->payload_bytes);
    if (ev->payload_bytes == 0 && sound->len > 0) {
        buf_printf(out, "%zu bytes of sound, %08x\n", sound->len,
                   (unsigned)hash_bytes(sound->data, sound->len, 0));
        buf_clear(sound);
    }
    if (ev->payload_bytes == 0 && !answered)
        buf_printf(out, "%s %s\n", ev->type, data ? data : "");
    cJSON_free(data);
    return last ? strcmp(ev->type, last) == 0 : answered;
}

static void put_wyoming(const char *last, const struct script_block *b, struct buf *out)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(wyoming_port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct buf to, from, sound;
    struct err e = {0};
    bool over = false;
    buf_init(&to, 1 << 24);
    buf_init(&from, 1 << 24);
    buf_init(&sound, 1 << 24);
    buf_init(out, 1 << 24);
    put_events(&to, b);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    for (size_t i = 0; i < to.len;) {
        const ssize_t n = write(fd, to.data + i, to.len - i);
        assert_true(n > 0);
        i += (size_t)n;
    }
    for (size_t done = 0; !over;) {
        char part[4096];
        struct wyoming_event ev;
        size_t want;
        const int64_t n = wyoming_next(&ev, from.data + done, from.len - done, &want, &e);
        if (n < 0)
            fail_msg("%s", e.msg);
        if (n == 0) {
            const ssize_t got = read(fd, part, sizeof(part));
            if (got <= 0)
                buf_puts(out, "closed\n");
            over = got <= 0;
            buf_put(&from, part, got > 0 ? (size_t)got : 0);
            continue;
        }
        over = put_event(out, &ev, last, &sound);
        wyoming_free(&ev);
        done += (size_t)n;
    }
    close(fd);
    buf_fini(&to);
    buf_fini(&from);
    buf_fini(&sound);
    script_hide(out, differs, sizeof(differs) / sizeof(differs[0]));
}

/* ---- WebSockets ---- */

struct heard {
    struct ws_peer peer;
    struct buf *out;
    struct buf pieces; /* of an answer, whose sizes differ from run to run */
    char type[96];     /* theirs; "": sound */
    bool closed;
};

static void put_pieces(struct heard *h)
{
    if (h->pieces.len > 1000)
        buf_printf(h->out, "%s: %zu bytes, %08x\n", h->type, h->pieces.len,
                   (unsigned)hash_bytes(h->pieces.data, h->pieces.len, 0));
    else if (h->pieces.len > 0)
        buf_printf(h->out, "%s: %s\n", h->type, buf_str(&h->pieces));
    buf_clear(&h->pieces);
}

static void take_piece(struct heard *h, const char *type, const char *p, size_t n)
{
    if (strcmp(type, h->type) != 0)
        put_pieces(h);
    snprintf(h->type, sizeof(h->type), "%s", type);
    buf_put(&h->pieces, p, n);
}

/* One message; whether it has the text. */
static bool hear_one(struct heard *h, const char *want)
{
    const char *p;
    size_t n;
    const uint8_t opcode = ws_peer_hear(&h->peer, &p, &n);
    if (opcode == 2) {
        take_piece(h, "sound", p, n);
        return false;
    }
    if (opcode == 8) {
        put_pieces(h);
        buf_printf(h->out, "closed %d\n", n >= 2 ? (uint8_t)p[0] << 8 | (uint8_t)p[1] : 0);
        h->closed = true;
        return true;
    }
    cJSON *j = cJSON_ParseWithLength(p, n);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(j, "type"));
    const char *delta = cJSON_GetStringValue(cJSON_GetObjectItem(j, "delta"));
    if (type && delta)
        take_piece(h, type, delta, strlen(delta));
    else if (!type || strcmp(type, "partial") != 0) { /* how often somebody listens is by chance */
        put_pieces(h);
        buf_printf(h->out, "%.*s\n", (int)n, p);
    }
    cJSON_Delete(j);
    return want && memmem(p, n, want, strlen(want));
}

static void say_line(struct heard *h, const char *line)
{
    struct buf sound, event;
    if (strncmp(line, "wait ", 5) == 0) {
        while (!h->closed && !hear_one(h, line + 5))
            ;
        return;
    }
    const bool append = strncmp(line, "append ", 7) == 0;
    if (!append && strncmp(line, "sound ", 6) != 0) {
        ws_peer_say(&h->peer, 1, line, strlen(line));
        return;
    }
    buf_init(&sound, 1 << 24);
    put_file(&sound, strchr(line, ' ') + 1);
    for (size_t at = 44; at < sound.len; at += 8192) {
        const size_t n = sound.len - at < 8192 ? sound.len - at : 8192;
        buf_init(&event, 1 << 20);
        buf_puts(&event, "{\"type\":\"input_audio_buffer.append\",\"audio\":\"");
        char *room = buf_room(&event, 4 * n);
        if (append) {
            buf_used(&event,
                     (size_t)EVP_EncodeBlock((unsigned char *)room,
                                             (const unsigned char *)sound.data + at, (int)n));
            buf_puts(&event, "\"}");
        }
        ws_peer_say(&h->peer, append ? 1 : 2, append ? event.data : sound.data + at,
                    append ? event.len : n);
        buf_fini(&event);
    }
    buf_fini(&sound);
}

static void put_ws(const char *head, const struct script_block *b, struct buf *out)
{
    static const struct script_differs own[] = {
        {"event_|item_|sess_|resp_|call_|rt_", "[0-9a-f]{8,}", ""},
        {"_ms\":|at_s\":|end\":|start\":|confidence\":|hearings\":", "[0-9.]+", ""}};
    struct heard h = {.out = out};
    struct buf headers;
    char path[256], line[1024];
    const size_t n = strcspn(head, " ");
    snprintf(path, sizeof(path), "%.*s", (int)n, head);
    buf_init(&headers, 1024);
    buf_puts(&headers, head[n] ? head + n + 1 : "");
    script_replace(&headers, "; ", "\r\n");
    if (headers.len > 0)
        buf_puts(&headers, "\r\n");
    buf_init(out, 1 << 20);
    buf_init(&h.pieces, 1 << 24);
    const int status = ws_peer_open(&h.peer, path, buf_str(&headers));
    buf_printf(out, "%d\n", status);
    h.closed = status != 101;
    for (const char *p = b->body; !h.closed && p < b->body + b->n; p += strcspn(p, "\n") + 1) {
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
        say_line(&h, line);
    }
    if (!h.closed)
        ws_peer_say(&h.peer, 8, "\x03\xe8", 2);
    while (!h.closed)
        hear_one(&h, NULL);
    ws_peer_close(&h.peer);
    buf_fini(&h.pieces);
    buf_fini(&headers);
    script_hide(out, differs, sizeof(differs) / sizeof(differs[0]));
    script_hide(out, own, sizeof(own) / sizeof(own[0]));
}

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    close(fd);
    return ntohs(at.sin_port);
}

/* One request; its answer's head in *out, without the carriage returns. */
static void put_head(const char *line, const char *text, size_t n, struct buf *out)
{
    char method[16], path[256], headers[512] = "", part[4096];
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "sock"};
    struct buf ask_text, answer_text;
    ssize_t got;
    assert_true(sscanf(line, "%15s %255s %511[^\n]", method, path, headers) >= 2);
    struct buf body;
    buf_init(&body, 1 << 20);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    buf_put(&body, text, n);
    script_replace(&body, "$/", SHOAL_TEST_DATA "/");
    buf_init(&ask_text, 1 << 20);
    buf_init(&answer_text, 1 << 24);
    buf_printf(&ask_text, "%s %s HTTP/1.1\r\nhost: x\r\nconnection: close\r\n", method, path);
    buf_printf(&ask_text, "content-type: application/json\r\ncontent-length: %zu\r\n%s%s\r\n",
               body.len, headers, headers[0] ? "\r\n" : "");
    script_replace(&ask_text, "; ", "\r\n");
    buf_put(&ask_text, buf_str(&body), body.len);
    buf_fini(&body);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(write(fd, buf_str(&ask_text), ask_text.len), ask_text.len);
    while ((got = read(fd, part, sizeof(part))) > 0)
        buf_put(&answer_text, part, (size_t)got);
    assert_int_equal(got, 0);
    close(fd);
    const char *end = strstr(buf_str(&answer_text), "\r\n\r\n");
    assert_non_null(end);
    buf_init(out, 1 << 16);
    buf_put(out, buf_str(&answer_text), (size_t)(end + 2 - buf_str(&answer_text)));
    script_hide(out, differs, sizeof(differs) / sizeof(differs[0]));
    script_replace(out, "\r", "");
    buf_fini(&ask_text);
    buf_fini(&answer_text);
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
    const bool waits = strncmp(head, "until ", 6) == 0, form = strncmp(head, "form ", 5) == 0;
    snprintf(until, sizeof(until), "%s", waits ? head + 6 : head);
    if (waits) { /* the text is behind method and path */
        char *at = strchr(strchr(until, ' ') + 1, ' ');
        assert_non_null(at);
        snprintf(want, sizeof(want), "%s", at + 1);
        *at = '\0';
    }
    int status = form ? send_form(head + 5, b, &body) : ask(until, b->body, b->n, &body);
    const uint64_t late = clock_ns() + PATIENCE_NS;
    while (waits && !strstr(buf_str(&body), want)) {
        if (clock_ns() > late)
            fail_msg("%s: after minutes still %s", head, buf_str(&body));
        usleep(1000);
        buf_fini(&body);
        status = ask(until, b->body, b->n, &body);
    }
    buf_init(out, 1 << 24);
    if (body.len > LONG_BYTES || memchr(buf_str(&body), '\0', body.len))
        buf_printf(out, "%d\n%zu bytes, %08x", status, body.len,
                   (unsigned)hash_bytes(body.data, body.len, 0));
    else
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
            wyoming_port = free_port();
            snprintf(port, sizeof(port), "%u", wyoming_port);
            script_replace(&file, "$wyoming", port);
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
        else if (strncmp(b.head, "head ", 5) == 0)
            put_head(b.head + 5, b.body, b.n, &out);
        else if (strncmp(b.head, "shape ", 6) == 0)
            put_shape_of(b.head + 6, &b, &out);
        else if (strncmp(b.head, "ws ", 3) == 0)
            put_ws(b.head + 3, &b, &out);
        else if (strncmp(b.head, "wyoming", 7) == 0)
            put_wyoming(b.head[7] ? b.head + 8 : NULL, &b, &out);
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

static const char *script = "*"; /* all of them */

static void test_scripts(void **state)
{
    char pattern[512];
    (void)state;
    snprintf(pattern, sizeof(pattern), SHOAL_TEST_DATA "/server/%s.txt", script);
    script_run_all(pattern, dir, run_script);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scripts)};
    script = argc > 1 ? argv[1] : script;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    if (setenv("SHOAL_MODELS", SHOAL_TEST_DATA "/../../models", 1) != 0 ||
        setenv("SHOAL_CACHE_DIR", "", 1) != 0 || setenv("SHOAL_STORE", "store", 1) != 0 ||
        setenv("XDG_STATE_HOME", "state", 1) != 0)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
