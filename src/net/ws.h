/* ws.h - WebSocket (RFC 6455), server side: messages over an upgraded HTTP/1.1 connection.
 *
 * Thread:    the loop's.
 * Ownership: a ws belongs to its connection and is freed after closed().
 * Failure:   a client that violates the protocol gets the specified close code and is disconnected.
 */
#ifndef SHOAL_NET_WS_H
#define SHOAL_NET_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_req;
struct peer;
struct ws;

#define WS_CHECKED_BYTES ((size_t)64 << 10)

struct ws_ops {
    /* Complete, NUL-terminated. A text longer than WS_CHECKED_BYTES may not be UTF-8: check it with
     * ws_utf8, on a thread that has the time. */
    void (*message)(struct ws *w, const char *p, size_t n, bool text);
    void (*drained)(struct ws *w); /* everything sent was passed to the socket */
    void (*closed)(struct ws *w);  /* called once; w is freed afterwards */
    void (*drain)(struct ws *w); /* the server stops: finish running work, then ws_close(w, 1001) */
    bool (*busy)(struct ws *w);  /* whether there is work in progress for this client */
};

/* Accepts the upgrade, inside the handler; the request is freed afterwards.  NULL: not a valid
 * upgrade (or out of memory); the handler must respond. */
struct ws *ws_accept(struct http_req *r, const struct ws_ops *ops, void *user, size_t max_message);
void *ws_user(const struct ws *w);
void ws_send(struct ws *w, const char *text, size_t n);
void ws_close(struct ws *w, uint16_t code);
size_t ws_queued(const struct ws *w);
/* The memory account of the client's address; borrowed. */
struct peer *ws_account(const struct ws *w);
/* Inside message(): its text, to be freed by the caller (mem_free); NULL: out of memory. There is
 * no further message until ws_go_on. */
char *ws_take(struct ws *w);
void ws_go_on(struct ws *w);
/* The last piece of work for this client has ended. */
void ws_rest(struct ws *w);

/* ---- frames: bytes to messages, without a connection ---- */

enum ws_op { WS_CONTINUE = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

bool ws_utf8(const char *p, size_t n);

#endif
