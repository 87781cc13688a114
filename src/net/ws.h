/* ws.h - WebSocket (RFC 6455), the server's side: messages in and out over an HTTP/1.1 connection
 * that was upgraded.
 *
 * Thread:    the loop's.
 * Ownership: a ws belongs to its connection; it is gone after closed().
 * Failure:   a client that breaks the rules is told the code of the specification and closed. */
#ifndef SHOAL_NET_WS_H
#define SHOAL_NET_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_req;
struct ws;

struct ws_ops {
    void (*message)(struct ws *w, const char *p, size_t n, bool text); /* whole; NUL behind it */
    void (*drained)(struct ws *w); /* everything that was sent is on its way */
    void (*closed)(struct ws *w);  /* once; w is gone afterwards */
};

/* Answers the upgrade, inside the handler; the request is gone afterwards.  NULL: it is no proper
 * upgrade (or memory is out), the handler answers it. */
struct ws *ws_accept(struct http_req *r, const struct ws_ops *ops, void *user, size_t max_message);
void *ws_user(const struct ws *w);
void ws_send(struct ws *w, const char *text, size_t n);
void ws_close(struct ws *w, uint16_t code);
size_t ws_queued(const struct ws *w);

/* ---- frames: bytes to messages, without a connection ---- */

enum ws_op { WS_CONTINUE = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

struct ws_frame {
    enum ws_op op;
    bool last;          /* of its message */
    size_t head, bytes; /* of the frame: bytes of head, of payload */
    uint8_t mask[4];
};

/* 1: *f is the frame at p, whose head is there; 0: more is needed; else a close code (1002, 1009).
 */
int ws_parse(struct ws_frame *f, const char *p, size_t n, size_t max_bytes);
bool ws_utf8(const char *p, size_t n);

#endif
