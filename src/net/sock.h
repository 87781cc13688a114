/* sock.h - a buffered, non-blocking byte stream over a socket, plain or TLS.
 *
 * Writes are collected in one buffer and sent with one call at the end of the loop's turn.  Input
 * that is not consumed is kept and passed again; if too much is kept, reading stops.
 *
 * Thread:    the loop's.
 * Ownership: init takes the descriptor and the TLS state, fini closes both.  A sock is embedded
 *            in its owner's struct, which must be freed with loop_later, never inside a
 *            callback.
 * Failure:   after closed() there are no more callbacks, and writes are dropped. */
#ifndef SHOAL_NET_SOCK_H
#define SHOAL_NET_SOCK_H

#include "base/buf.h"
#include "net/loop.h"

struct sock;
struct tls_conn;
struct tls_peer;

struct sock_ops {
    /* n bytes are available; returns how many were consumed. */
    size_t (*data)(struct sock *s, const char *p, size_t n);
    /* The peer sends no more, but may still read.  Call sock_finish or sock_break. */
    void (*ended)(struct sock *s);
    /* Closed by sock_finish (0) or by an error (SHOAL_EIO).  Called once. */
    void (*closed)(struct sock *s, int why);
    /* Everything written was passed to the kernel: there is room again. */
    void (*drained)(struct sock *s);
    /* TLS only: the handshake is done; protocol is the result of ALPN, or "". */
    void (*secured)(struct sock *s, const char *protocol);
    /* TLS only: the peer should use a new connection; see TLS_STALE in net/tls.h. */
    void (*stale)(struct sock *s);
};

struct sock {
    struct loop *loop;
    struct loop_io io;
    const struct sock_ops *ops;
    struct tls_conn *tls; /* NULL: plain */
    char *scratch;        /* borrowed: the loop's read buffer */
    size_t n_scratch;
    struct buf in, out;
    size_t out_at; /* bytes of out already sent */
    struct executor_task flush, again;
    bool read_off, dead, finishing, blocked, handshaking;
    bool linger, lingering, eof;
    int failure;          /* errno of the read or write that failed; 0: none */
    uint64_t progress_ns; /* when the kernel last accepted bytes */
    size_t want; /* the owner needs this many bytes at once: reading continues until they are
                  * available */
};

#define SOCK_MAX_KEPT ((size_t)64 << 10)

/* Takes the descriptor and tls (NULL: plain), also if it fails. */
SHOAL_MUST_CHECK int sock_init(struct sock *s, struct loop *l, int fd, struct tls_conn *tls,
                               const struct sock_ops *ops, char *scratch, size_t n_scratch,
                               struct err *e);
void sock_fini(struct sock *s);

/* Appends to the output; sock_put returns the buffer to append to. */
void sock_write(struct sock *s, const void *p, size_t n);
struct buf *sock_put(struct sock *s);
size_t sock_queued(const struct sock *s);
/* The peer has read nothing for this long, though there was output. */
bool sock_stalled(const struct sock *s, uint32_t ms);
/* Passes kept input to data() again in the next turn. */
void sock_again(struct sock *s);
/* Closes after everything is sent; closed() follows.  linger: waits for the peer to close first
 * and discards what it still sends, because closing with unread input would reset the connection
 * and lose our last bytes. */
void sock_finish(struct sock *s, bool linger);
/* Closes at once; closed() follows in this turn unless it was called before. */
void sock_break(struct sock *s);
/* Gives the connection away, in secured(): closed() follows, and the descriptor stays open. */
void sock_take(struct sock *s, int *fd, struct tls_conn **tls);
/* The peer's certificate; NULL: plain, or the handshake is not done. */
const struct tls_peer *sock_peer(const struct sock *s);
/* Why the connection failed, for people; "" if unknown. */
const char *sock_why(const struct sock *s);
/* Whether it failed because of the peer's certificate. */
bool sock_refused(const struct sock *s);

#endif
