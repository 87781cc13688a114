/* http_conn.h - one accepted connection and the protocol it speaks; private to src/net.
 *
 * Thread: the loop's.  Freed by loop_later, after its stream is dead. */
#ifndef SHOAL_NET_HTTP_CONN_H
#define SHOAL_NET_HTTP_CONN_H

#include "net/http.h"
#include "net/loop.h"
#include "net/sock.h"

struct http_conn;

struct http_proto {
    size_t (*data)(struct http_conn *c, const char *p, size_t n);
    void (*eof)(struct http_conn *c);     /* the client sends no more: finish or close */
    void (*drained)(struct http_conn *c); /* everything was sent */
    void (*drain)(struct http_conn *c);   /* close after the current requests */
    void (*timeout)(struct http_conn *c); /* the connection's timer fired */
    void (*destroy)(struct http_conn *c); /* cancels running requests, frees state; the socket is
                                           * closed */
};

struct http_conn {
    struct http_server *server;
    struct sock sock;
    const struct http_proto *proto;
    void *state; /* of the protocol */
    struct executor_timer timer;
    struct executor_task free;
    struct http_conn *prev, *next;
    enum http_via via;
    bool secure, draining;
    char peer[56];
};

struct http_server {
    struct loop *loop;
    struct http_limits limits;
    http_handler handler;
    void *ctx;
    bool (*early)(const char *path);                                    /* or NULL */
    void (*refuse)(struct http_req *r, const struct http_refusal *why); /* or NULL */
    struct http_listener *listeners;
    struct tls_server *tls;
    struct http_conn *conns;
    struct http_stats stats;
    bool draining;
    char date[40]; /* value of the Date header for second date_s */
    uint64_t date_s;
    size_t n_scratch;
    char *scratch; /* shared buffer for all reads */
};

/* Switches the connection to another protocol and clears the timer. */
void http_conn_switch(struct http_conn *c, const struct http_proto *proto, void *state);
void http_conn_timer(struct http_conn *c, uint32_t ms); /* 0: none */
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
const char *http_server_date(struct http_server *s);

/* Starts the protocol; false: out of memory, the socket is closed. */
bool http1_start(struct http_conn *c);
bool http2_start(struct http_conn *c);
/* HTTP/1.1: hands over the connection and its remaining input after the caller has answered a
 * request with Upgrade with status 101. */
struct http_conn *http1_upgrade(struct http_req *r);

/* Answers a request that never reaches the handler, to its end. */
void http_refuse(struct http_server *s, struct http_req *r, const struct http_refusal *why);

#endif
