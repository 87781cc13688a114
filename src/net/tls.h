/* tls.h - TLS 1.3 (to servers of others also 1.2) on a socket: the accepting side and the
 * connecting side, each with or without a certificate of the peer.
 *
 * With `reload`, the files are checked when a handshake begins, and once a second while
 * connections are in use. If one of them changed, all are read again; files that do not match (a
 * partial replacement) are ignored until they change again. Sessions of the old files are not
 * resumed. Open connections continue, unless the peer's certificate is now revoked or expired: see
 * tls_conn_check.
 *
 * Thread:    a tls_server or tls_client may be used by several threads after open; a tls_conn
 *            belongs to one.
 * Ownership: open/close, create/destroy; a tls_conn borrows the descriptor.
 * Failure:   open names the invalid file; reads and writes return SHOAL_EBUSY if the socket would
 *            block. After SHOAL_EIO, tls_conn_why says why. */
#ifndef SHOAL_NET_TLS_H
#define SHOAL_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct tls_server;
struct tls_client;
struct tls_conn;

struct tls_opts {
    const char *cert; /* PEM: the certificate and its chain; clients may have none */
    const char *key;  /* PEM: the private key */
    const char *ca;   /* PEM: the CAs of peers.  Server: NULL: clients need no certificate.
                       * Client: NULL: those of the system */
    const char *crl;  /* PEM: a revocation list of each CA; NULL: nothing is revoked */
    bool reload;
    bool foreign; /* client: for third-party servers: HTTP/1.1, and TLS 1.2 is enough */
    bool shard;   /* client: speaks TLS_SHARD in place of HTTP/2 */
};

/* The protocol of nodes that compute one model together (cluster/shard), as ALPN names it. */
#define TLS_SHARD "shoal-shard/1"

/* Data of a verified peer certificate; all are "" if it has none. */
struct tls_peer {
    char name[128];  /* common name */
    char uris[512];  /* alternative names of type URI, separated by spaces */
    char serial[48]; /* in hexadecimal */
};

struct x509_st; /* X509 of OpenSSL */
/* out must be zeroed.  For tests: a connection does it by itself. */
void tls_peer_read(struct tls_peer *out, struct x509_st *cert);

SHOAL_MUST_CHECK int tls_server_open(struct tls_server **out, const struct tls_opts *o,
                                     struct err *e);
void tls_server_close(struct tls_server *t); /* NULL is fine; open connections stay valid */
/* Refuses a certificate of our own that is expired or not valid yet. */
SHOAL_MUST_CHECK int tls_client_open(struct tls_client **out, const struct tls_opts *o,
                                     struct err *e);
void tls_client_close(struct tls_client *t); /* NULL is fine; open connections stay valid */

SHOAL_MUST_CHECK int tls_conn_accept(struct tls_conn **out, struct tls_server *t, int fd,
                                     struct err *e);
/* host: a name or an address that the peer's certificate must have; NULL: any certificate of the CA
 * will do.  Offers HTTP/2 only, or HTTP/1.1 only if the client is `foreign`. */
SHOAL_MUST_CHECK int tls_conn_connect(struct tls_conn **out, struct tls_client *t, int fd,
                                      const char *host, struct err *e);
void tls_conn_destroy(struct tls_conn *c);                   /* NULL is fine */
SHOAL_MUST_CHECK int tls_conn_handshake(struct tls_conn *c); /* 0, EBUSY, EIO */
ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n);
/* Whether bytes of the peer are held here, decrypted or not: epoll does not report those. */
bool tls_conn_pending(const struct tls_conn *c);
ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n);
void tls_conn_bye(struct tls_conn *c); /* sends close_notify */
enum tls_verdict {
    TLS_GOOD,
    TLS_STALE, /* its CA is no longer trusted: finish running work, start nothing */
    TLS_BAD,   /* revoked or expired: close the connection */
};
/* Whether the peer's certificate is still valid; only with `reload`, otherwise always. Cheap: does
 * work once a second. Returns TLS_STALE once. */
SHOAL_MUST_CHECK enum tls_verdict tls_conn_check(struct tls_conn *c, uint64_t now_ns);
/* Whether we refused the peer's certificate, or it did not send a required one. */
bool tls_conn_refused(const struct tls_conn *c);
bool tls_conn_wants_write(const struct tls_conn *c);
const char *tls_conn_protocol(const struct tls_conn *c); /* "h2", "http/1.1" or "" */
const struct tls_peer *tls_conn_peer(const struct tls_conn *c);
const char *tls_conn_why(const struct tls_conn *c); /* "" if there is nothing to say */

#endif
