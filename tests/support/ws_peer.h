/* ws_peer.h - a client of WebSockets for scripts: blocking, one connection.
 *
 * Include it after cmocka.h. */
#ifndef SHOAL_TESTS_WS_PEER_H
#define SHOAL_TESTS_WS_PEER_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"

struct ws_peer {
    int fd;
    struct buf in;
    size_t done; /* bytes of `in` that were taken */
};

static inline bool ws_peer_more(struct ws_peer *w)
{
    char part[4096];
    const ssize_t n = read(w->fd, part, sizeof(part));
    if (n > 0)
        buf_put(&w->in, part, (size_t)n);
    return n > 0;
}

static inline void ws_peer_write(struct ws_peer *w, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        const ssize_t k = send(w->fd, p + i, n - i, MSG_NOSIGNAL);
        assert_true(k > 0);
        i += (size_t)k;
    }
}

/* headers: each with its line break.  Returns the status; of 101 the connection stays. */
static inline int ws_peer_open(struct ws_peer *w, const char *path, const char *headers)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "sock"};
    char hello[2048];
    int status = 0;
    const char *end;
    buf_init(&w->in, 1 << 26);
    w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(w->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    snprintf(hello, sizeof(hello),
             "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n",
             path, headers);
    ws_peer_write(w, hello, strlen(hello));
    while (!(end = strstr(buf_str(&w->in), "\r\n\r\n")))
        assert_true(ws_peer_more(w));
    assert_int_equal(sscanf(buf_str(&w->in), "HTTP/1.1 %d", &status), 1);
    w->done = (size_t)(end + 4 - w->in.data);
    return status;
}

static inline void ws_peer_close(struct ws_peer *w)
{
    close(w->fd);
    buf_fini(&w->in);
}

static inline void ws_peer_say(struct ws_peer *w, uint8_t opcode, const void *text, size_t n)
{
    const char mask[4] = {1, 2, 3, 4}, *p = text;
    struct buf b;
    buf_init(&b, 1 << 26);
    buf_putc(&b, (char)(0x80 | opcode));
    buf_putc(&b, (char)(0x80 | (n < 126 ? n : n < 65536 ? 126 : 127)));
    for (int i = n < 126 ? 0 : n < 65536 ? 2 : 8; i > 0; i--)
        buf_putc(&b, (char)((uint64_t)n >> (8 * (i - 1))));
    buf_put(&b, mask, 4);
    for (size_t i = 0; i < n; i++)
        buf_putc(&b, (char)(p[i] ^ mask[i % 4]));
    ws_peer_write(w, b.data, b.len);
    buf_fini(&b);
}

/* The next frame, valid until the next call; returns its opcode, 8 also when the server is gone. */
static inline uint8_t ws_peer_hear(struct ws_peer *w, const char **text, size_t *n)
{
    for (;;) {
        const uint8_t *p = (const uint8_t *)w->in.data + w->done;
        const size_t have = w->in.len - w->done;
        size_t head = 2;
        *n = have >= 2 ? p[1] & 0x7f : 0;
        const size_t wide = *n == 126 ? 2 : *n == 127 ? 8 : 0;
        head += wide;
        if (wide > 0 && have >= head) {
            *n = 0;
            for (size_t i = 0; i < wide; i++)
                *n = *n << 8 | p[2 + i];
        }
        if (have >= 2 && have >= head && have - head >= *n) {
            *text = (const char *)p + head;
            w->done += head + *n;
            return p[0] & 15;
        }
        if (!ws_peer_more(w)) {
            *text = "";
            *n = 0;
            return 8;
        }
    }
}

#endif
