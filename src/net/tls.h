/* tls.h - TLS 1.3 for accepted connections, optionally with client certificates.
 *
 * Thread:    a tls_server may be used by several threads after open; a tls_conn belongs to one.
 * Ownership: open/close, create/destroy; a tls_conn borrows the descriptor.
 * Failure:   open says which file is wrong; reads and writes return SHOAL_EBUSY if the socket would
 *            block. */
#ifndef SHOAL_NET_TLS_H
#define SHOAL_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct tls_server;
struct tls_conn;

struct tls_opts {
    const char *cert; /* PEM: the certificate and its chain */
    const char *key;  /* PEM: the private key */
    const char *ca;   /* PEM: CA for client certificates; NULL: clients need none */
};

SHOAL_MUST_CHECK int tls_server_open(struct tls_server **out, const struct tls_opts *o,
                                     struct err *e);
void tls_server_close(struct tls_server *t); /* open connections stay valid */

SHOAL_MUST_CHECK int tls_conn_create(struct tls_conn **out, struct tls_server *t, int fd,
                                     struct err *e);
void tls_conn_destroy(struct tls_conn *c);
SHOAL_MUST_CHECK int tls_conn_handshake(struct tls_conn *c); /* 0, EBUSY, EIO */
ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n);
ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n);
void tls_conn_bye(struct tls_conn *c); /* sends close_notify */
bool tls_conn_wants_write(const struct tls_conn *c);
const char *tls_conn_protocol(const struct tls_conn *c); /* "h2", "http/1.1" or "" */
const char *tls_conn_peer(const struct tls_conn *c);     /* common name of the client, or "" */

#endif
