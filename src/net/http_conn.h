/* http_conn.h - one accepted connection and the protocol it speaks; private to src/net.
 *
 * Thread: the loop's.  Freed by loop_later, after its stream is dead. */
#ifndef SHOAL_NET_HTTP_CONN_H
#define SHOAL_NET_HTTP_CONN_H

#include "net/http.h"
#include "net/loop.h"
#include "net/peers.h"
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
    /* Bytes that the protocol holds besides the socket's buffers. NULL: none. */
    size_t (*held)(const struct http_conn *c);
    /* Asks the client to use another connection, and serves requests sent before it learns of that.
     * NULL: as drain. */
    void (*retire)(struct http_conn *c);
};

struct http_conn {
    struct http_server *server;
    struct sock sock;
    const struct http_proto *proto;
    void *state; /* of the protocol */
    struct executor_timer timer;
    struct executor_task free;
    struct http_conn *prev, *next;
    struct http_conn *waits_before,
        *waits_after; /* links of the server's list of waiting connections */
    bool waits;
    struct peer *account; /* account of the client's address */
    size_t counted;       /* bytes taken from it */
    enum http_via via;
    bool secure, draining;
    char peer[56];
};

struct http_server {
    struct loop *loop;
    struct http_limits limits;
    http_handler handler;
    void *ctx;
    bool (*early)(void *ctx, const char *path);                         /* or NULL */
    bool (*admit)(void *ctx, struct http_req *r);                       /* or NULL */
    void (*refuse)(struct http_req *r, const struct http_refusal *why); /* or NULL */
    http_shard_fn shard;                                                /* or NULL */
    void *shard_ctx;
    struct http_listener *listeners;
    struct tls_server *tls;
    struct http_conn *conns;
    struct http_conn *longest_wait, *last_wait; /* connections that wait for their client */
    /* part of stats.conns: freed at the end of the turn */
    uint32_t n_closed;
    struct peers *peers, *own_peers; /* own: unless shared with other servers */
    struct http_stats stats;
    bool leaving, draining;
    uint64_t next_report_ns; /* when refused certificates may be logged again */
    uint32_t n_unreported;
    char date[40]; /* value of the Date header for second date_s */
    uint64_t date_s;
    size_t n_scratch;
    char *scratch; /* shared buffer for all reads */
};

/* Switches the connection to another protocol and clears the timer. */
void http_conn_switch(struct http_conn *c, const struct http_proto *proto, void *state);
void http_conn_timer(struct http_conn *c, uint32_t ms); /* 0: none */
/* Whether the connection waits for its client (for a request, or the rest of one) and is otherwise
 * idle. When there are too many connections, the one that has waited longest is closed. */
void http_conn_wait(struct http_conn *c, bool waits);
/* Charges the connection's current memory to its client's address. PEERS_OK: allowed; otherwise
 * free it or close. The first HTTP_CONN_FREE_BYTES are free: `connections` bounds them. */
#define HTTP_CONN_FREE_BYTES ((size_t)16 << 10)
/* Memory of a buffer: of a large one, which is mapped, the part that was written. */
static inline size_t http_conn_bytes(const struct buf *b)
{
    return b->cap < (size_t)256 << 10 || b->len == 0 ? b->cap : b->len;
}
enum peers_verdict http_conn_count(struct http_conn *c);
/* The refusal that matches this verdict. */
const struct http_refusal *http_conn_full(enum peers_verdict v);
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
const char *http_server_date(struct http_server *s);

/* Starts the protocol; false: out of memory, the socket is closed. */
bool http1_start(struct http_conn *c);
bool http2_start(struct http_conn *c);
/* HTTP/1.1: hands over the connection and its remaining input after the caller has answered a
 * request with Upgrade with status 101. */
struct http_conn *http1_upgrade(struct http_req *r);

/* Answers a request that never reaches the handler, completely. */
void http_refuse(struct http_server *s, struct http_req *r, const struct http_refusal *why);

#endif
