/* enrol.h - one machine joins a shoal with a token (join_token.h), over one TLS connection.
 *
 * The machine that joins makes its key; the key never leaves it. It connects to the door of the
 * shoal, which shows a certificate of the shoal's CA, whose fingerprint is in the token. Then it
 * sends its name and public key with a proof: an HMAC with the token's secret over all of that and
 * over a value that belongs to this connection alone. So whoever hears, relays or repeats it gains
 * nothing, and a member of the shoal that pretends to be the door learns nothing. The door answers
 * with the certificate and a proof of the same kind.
 *
 * A door admits one machine, for as long as its token lasts, and closes after ENROL_MAX_BAD wrong
 * proofs.  Proofs are compared in constant time.
 *
 * Thread:    the caller's; both sides block, for at most ENROL_WAIT_S in all, however slowly the
 *            other one sends. The process ignores SIGPIPE.
 * Ownership: open gives, close takes back (NULL is fine). The socket stays the caller's.
 * Failure:   SHOAL_EINVAL: refused, with the reason; SHOAL_EIO, SHOAL_EFORMAT: the connection. */
#ifndef SHOAL_CLUSTER_TRUST_ENROL_H
#define SHOAL_CLUSTER_TRUST_ENROL_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cluster/trust/join_token.h"

#define ENROL_SERVICE "_shoal-join._tcp" /* of DNS-SD */
#define ENROL_MAX_BAD 10u
#define ENROL_WAIT_S 10
#define ENROL_MAX_BYTES (64u << 10) /* of a message */

struct enrol_request {
    char name[64], host[256]; /* host "": where it comes from */
    EVP_PKEY *key;            /* public */
};

struct enrol_files {
    struct buf cert, ca, crl, config;
};
void enrol_files_init(struct enrol_files *f);
void enrol_files_fini(struct enrol_files *f);

struct enrol_door;
struct enrol_door_opts {
    X509 *cert, *ca; /* of the door, and of the CA; ca_make_door */
    EVP_PKEY *key;
    struct join_token token;
    uint64_t until_ns; /* clock_ns() */
    /* Makes the member; its failure is told to the machine that asks. */
    int (*admit)(void *ctx, const struct enrol_request *r, struct enrol_files *out, struct err *e);
    void *ctx;
};
SHOAL_MUST_CHECK int enrol_door_open(struct enrol_door **out, const struct enrol_door_opts *o,
                                     struct err *e);
void enrol_door_close(struct enrol_door *d);
/* Handles one connection.  0: a machine was admitted. */
SHOAL_MUST_CHECK int enrol_door_serve(struct enrol_door *d, int fd, struct err *e);
/* It admits nobody any more: the token was used, has expired, or was guessed at too often. */
bool enrol_door_is_shut(const struct enrol_door *d);

/* The other side.  r->key: with its private half. */
SHOAL_MUST_CHECK int enrol_join(int fd, const struct join_token *t, const struct enrol_request *r,
                                struct enrol_files *out, struct err *e);

/* The messages, for tests: what the door makes of a request, without a connection. SHOAL_EFORMAT.
 */
SHOAL_MUST_CHECK int enrol_parse_request(struct enrol_request *out, uint8_t proof[32],
                                         const void *bytes, size_t n, struct err *e);
SHOAL_MUST_CHECK int enrol_parse_answer(struct enrol_files *out, uint8_t proof[32],
                                        const void *bytes, size_t n, struct err *e);

#endif
