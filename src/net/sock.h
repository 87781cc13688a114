/* sock.h - a buffered, non-blocking byte stream over a socket, plain or TLS.
 *
 * What is written gathers in one buffer and goes out with one call at the end of the loop's turn.
 * What is read and not consumed is kept and shown again; when too much is kept, reading stops.
 *
 * Thread:    the loop's.
 * Ownership: init takes the descriptor, fini closes it.  A stream is part of its user, who frees it
 *            by loop_later, never inside a callback.
 * Failure:   after closed() nothing more comes; writing goes nowhere. */
#ifndef SHOAL_NET_SOCK_H
#define SHOAL_NET_SOCK_H

#include "base/buf.h"
#include "net/loop.h"

struct sock;
struct tls_conn;
struct tls_server;

struct sock_ops {
    /* n bytes are there; returns how many of them are done with. */
    size_t (*data)(struct sock *s, const char *p, size_t n);
    /* The other side sends no more; it may still read.  Call sock_finish or sock_break. */
    void (*ended)(struct sock *s);
    /* Over: after sock_finish (0) or because it broke (SHOAL_EIO).  Called once. */
    void (*closed)(struct sock *s, int why);
    /* There is room again: everything that was written is with the kernel. */
    void (*drained)(struct sock *s);
    /* TLS only: the handshake is done; protocol is what ALPN chose, or "". */
    void (*secured)(struct sock *s, const char *protocol);
};

struct sock {
    struct loop *loop;
    struct loop_io io;
    const struct sock_ops *ops;
    struct tls_conn *tls; /* NULL: plain */
    char *scratch;        /* borrowed: the loop's read buffer */
    size_t n_scratch;
    struct buf in, out;
    size_t out_at; /* sent of out */
    struct executor_task flush, again;
    bool read_off, dead, finishing, blocked, handshaking;
    bool linger, lingering, eof;
    uint64_t progress_ns; /* when the kernel last took bytes */
    size_t want; /* the user needs so many bytes at once: reading goes on until they are there */
};

#define SOCK_MAX_KEPT ((size_t)64 << 10)

SHOAL_MUST_CHECK int sock_init(struct sock *s, struct loop *l, int fd, struct tls_server *tls,
                               const struct sock_ops *ops, char *scratch, size_t n_scratch,
                               struct err *e);
void sock_fini(struct sock *s);

/* Appends to what is sent; sock_put gives the buffer itself to append to. */
void sock_write(struct sock *s, const void *p, size_t n);
struct buf *sock_put(struct sock *s);
size_t sock_queued(const struct sock *s);
/* Shows what was kept once more, at the end of this turn. */
void sock_again(struct sock *s);
/* Closes once everything is sent: closed() follows.  linger: not before the other side has closed
 * too, and what it still sends is thrown away; a close with unread bytes would take back our last
 * words. */
void sock_finish(struct sock *s, bool linger);
/* Closes now: closed() follows in this turn unless it was called before. */
void sock_break(struct sock *s);
/* The client's certificate name, "" when it has none. */
const char *sock_peer_name(const struct sock *s);

#endif
