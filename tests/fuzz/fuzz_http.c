/* fuzz_http.c - bytes of a connection: HTTP/1.1, HTTP/2 after its preface, WebSocket. The first
 * byte says how they are split and whether answers come at once. In HTTP/2 a request for a path
 * with an 'e' is answered while its body arrives. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http.h"
#include "net/loop.h"
#include "net/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct site {
    struct loop *loop;
    struct http_server *http;
    struct http_req *held;
    bool hold;
};

static void on_cancelled(struct http_req *r)
{
    struct site *s = r->user;
    s->held = NULL;
}

static void answer(struct http_req *r)
{
    http_begin(r, 200, NULL, 0, r->body_bytes % 2 ? -1 : (int64_t)r->body_bytes);
    http_write(r, r->body, r->body_bytes);
    http_end(r);
}

static void on_message(struct ws *w, const char *p, size_t n, bool text)
{
    if (text)
        ws_send(w, p, n);
    else
        ws_close(w, 1003);
}

static void nothing(struct ws *w)
{
    (void)w;
}

static void on_drain(struct ws *w)
{
    ws_close(w, 1001);
}

static bool on_busy(struct ws *w)
{
    (void)w;
    return false;
}

/* Admits most bodies. */
static bool admit(void *ctx, struct http_req *r)
{
    (void)ctx;
    if (!strchr(r->path, 'x'))
        return true;
    http_begin(r, 401, NULL, 0, 0);
    http_end(r);
    return false;
}

static bool early(void *ctx, const char *path)
{
    (void)ctx;
    return strchr(path, 'e') != NULL;
}

/* Echoes all but the last byte; 'q' ends it. */
static void on_arrived(struct http_req *r)
{
    size_t n = r->body_bytes > 0 && r->more ? r->body_bytes - 1 : r->body_bytes;
    bool quit = memchr(r->body, 'q', r->body_bytes) != NULL;
    http_write(r, r->body, n);
    if (quit || !r->more)
        http_end(r);
    else
        http_take(r, n);
}

static void handler(void *ctx, struct http_req *r)
{
    static const struct ws_ops echo = {on_message, nothing, nothing, on_drain, on_busy};
    struct site *s = ctx;
    char value[8];
    if (ws_accept(r, &echo, NULL, 1000))
        return;
    (void)http_query(r, "a", value, sizeof(value));
    if (r->more) {
        r->arrived = on_arrived;
        http_begin(r, 200, NULL, 0, -1);
        return;
    }
    if (s->hold && !s->held) {
        r->user = s;
        r->cancelled = on_cancelled;
        s->held = r;
    } else {
        answer(r);
    }
}

static void turn(struct site *s, int client)
{
    char block[4096];
    for (int i = 0; i < 3; i++) {
        loop_turn(s->loop, 0);
        while (recv(client, block, sizeof(block), 0) > 0)
            ;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct site s = {.held = NULL};
    struct http_limits lim = http_default_limits;
    int fd[2];
    if (size < 1 || size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) < 0)
        return 0;
    size_t step = data[0] & 63 ? data[0] & 63u : size;
    s.hold = data[0] & 128;
    lim.max_body_bytes = 2000;
    lim.max_header_bytes = 2000;
    data++, size--;
    if (loop_create(&s.loop, NULL) < 0)
        return 0;
    if (http_server_create(&s.http, s.loop, &lim, handler, &s, NULL) == 0 &&
        http_server_adopt(s.http, fd[1], NULL) == 0) {
        http_server_set_early(s.http, early);
        http_server_set_admit(s.http, admit);
        for (size_t at = 0; at < size; at += step) {
            size_t n = size - at < step ? size - at : step;
            if (send(fd[0], data + at, n, MSG_NOSIGNAL) < 0)
                break;
            turn(&s, fd[0]);
        }
        if (s.held) {
            struct http_req *r = s.held;
            s.held = NULL;
            answer(r);
            turn(&s, fd[0]);
        }
    }
    close(fd[0]);
    loop_turn(s.loop, 0);
    http_server_destroy(s.http);
    loop_destroy(s.loop);
    return 0;
}
