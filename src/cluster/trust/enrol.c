/* enrol.c - see enrol.h. */
#include "cluster/trust/enrol.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/control/desired_code.h"
#include "cluster/trust/cert.h"
#include "shoal/control/v1/control.pb-c.h"
#include "wire/pb.h"

#define FORMAT 1u
#define PROOF 32u
#define EXPORT_LABEL "EXPORTER-shoal-enrol"

struct enrol_door {
    struct enrol_door_opts o;
    SSL_CTX *tls;
    bool used;
    uint32_t n_bad;
};

void enrol_files_init(struct enrol_files *f)
{
    struct buf *all[] = {&f->cert, &f->ca, &f->crl, &f->config};
    for (size_t i = 0; i < 4; i++)
        buf_init(all[i], ENROL_MAX_BYTES);
}

void enrol_files_fini(struct enrol_files *f)
{
    struct buf *all[] = {&f->cert, &f->ca, &f->crl, &f->config};
    for (size_t i = 0; i < 4; i++)
        buf_fini(all[i]);
}

/* ---- the connection ---- */

static int failed(struct err *e, const char *what)
{
    char text[160];
    const unsigned long code = ERR_get_error();
    ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return err_set(e, SHOAL_EIO, "%s%s%s", what, code ? ": " : "", code ? text : "");
}

/* A connection that must be over by a certain time, however slowly the other side sends. */
struct line {
    SSL *tls;
    int fd;
    uint64_t until_ns;
};

static int open_line(struct line *l, SSL_CTX *ctx, int fd, struct err *e)
{
    const int flags = fcntl(fd, F_GETFL);
    *l = (struct line){SSL_new(ctx), fd, clock_ns() + ENROL_WAIT_S * UINT64_C(1000000000)};
    if (!l->tls || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        SSL_set_fd(l->tls, fd) != 1)
        return failed(e, "the connection cannot be prepared");
    return 0;
}

/* After a call of OpenSSL that returned rc: waits until it can go on.  False: it cannot. */
static bool wait_for(const struct line *l, int rc)
{
    const int why = SSL_get_error(l->tls, rc);
    const uint64_t now = clock_ns();
    struct pollfd p = {.fd = l->fd, .events = why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN};
    if ((why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) || now >= l->until_ns)
        return false;
    return poll(&p, 1, (int)((l->until_ns - now) / 1000000) + 1) > 0;
}

static int shake_hands(const struct line *l, int (*fn)(SSL *s), struct err *e)
{
    int rc;
    while ((rc = fn(l->tls)) != 1)
        if (!wait_for(l, rc))
            return failed(e, "no TLS connection");
    return 0;
}

static bool write_bytes(const struct line *l, const void *bytes, size_t n)
{
    int rc;
    while ((rc = SSL_write(l->tls, bytes, (int)n)) <= 0)
        if (!wait_for(l, rc))
            return false;
    return rc == (int)n;
}

static bool read_bytes(const struct line *l, uint8_t *out, size_t n)
{
    for (size_t had = 0; had < n;) {
        const int got = SSL_read(l->tls, out + had, (int)(n - had));
        if (got <= 0 && !wait_for(l, got))
            return false;
        had += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* A message is its length, four bytes with the highest first, and its bytes. */
static int write_message(const struct line *l, const struct buf *b, struct err *e)
{
    const uint32_t n = (uint32_t)b->len;
    const uint8_t head[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    if (!write_bytes(l, head, sizeof(head)) || !write_bytes(l, b->data, n))
        return failed(e, "the other side does not read");
    return 0;
}

static int read_message(const struct line *l, struct buf *out, struct err *e)
{
    uint8_t head[4], *bytes;
    if (!read_bytes(l, head, sizeof(head)))
        return failed(e, "the other side has ended the connection");
    const uint32_t n =
        (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
    if (n == 0 || n > ENROL_MAX_BYTES)
        return err_set(e, SHOAL_EFORMAT, "the other side sends something else");
    bytes = mem_zalloc(n);
    if (!bytes)
        return err_set(e, SHOAL_ENOMEM, "message");
    const bool all = read_bytes(l, bytes, n);
    if (all)
        buf_put(out, bytes, n);
    mem_free(bytes);
    return all && out->rc == 0 ? 0 : failed(e, "the other side has ended the connection");
}

/* ---- proofs ---- */

struct piece {
    const void *p;
    size_t n;
};

/* With the secret, over the label, this connection, and the pieces with their lengths. */
static int prove(uint8_t out[PROOF], SSL *s, const struct join_token *t, const char *label,
                 const struct piece *pieces, size_t n, struct err *e)
{
    uint8_t channel[32];
    struct buf b;
    unsigned len = 0;
    if (SSL_export_keying_material(s, channel, sizeof(channel), EXPORT_LABEL, strlen(EXPORT_LABEL),
                                   NULL, 0, 0) != 1)
        return failed(e, "the connection has no key");
    buf_init(&b, 8 * ENROL_MAX_BYTES);
    buf_put(&b, label, strlen(label) + 1);
    buf_put(&b, channel, sizeof(channel));
    for (size_t i = 0; i < n; i++) {
        const uint64_t size = pieces[i].n;
        buf_put(&b, &size, sizeof(size));
        buf_put(&b, pieces[i].p, pieces[i].n);
    }
    const bool ok = b.rc == 0 && HMAC(EVP_sha256(), t->secret, sizeof(t->secret),
                                      (const unsigned char *)b.data, b.len, out, &len);
    buf_fini(&b);
    return ok && len == PROOF ? 0 : failed(e, "no proof can be made");
}

static int prove_request(uint8_t out[PROOF], SSL *s, const struct join_token *t,
                         const struct enrol_request *r, struct err *e)
{
    unsigned char *der = NULL;
    const int n = i2d_PUBKEY(r->key, &der);
    const struct piece pieces[] = {
        {r->name, strlen(r->name)}, {r->host, strlen(r->host)}, {der, n > 0 ? (size_t)n : 0}};
    int rc = n > 0 ? prove(out, s, t, "shoal enrol request 1", pieces, 3, e)
                   : failed(e, "the public key");
    OPENSSL_free(der);
    return rc;
}

static int prove_answer(uint8_t out[PROOF], SSL *s, const struct join_token *t,
                        const struct enrol_files *f, struct err *e)
{
    const struct piece pieces[] = {{f->cert.data, f->cert.len},
                                   {f->ca.data, f->ca.len},
                                   {f->crl.data, f->crl.len},
                                   {f->config.data, f->config.len}};
    return prove(out, s, t, "shoal enrol answer 1", pieces, 4, e);
}

/* ---- messages ---- */

static int put_request(struct buf *b, const struct enrol_request *r, uint8_t proof[PROOF],
                       struct err *e)
{
    Shoal__Control__V1__EnrolRequest m = SHOAL__CONTROL__V1__ENROL_REQUEST__INIT;
    unsigned char *der = NULL;
    const int n = i2d_PUBKEY(r->key, &der);
    if (n <= 0)
        return failed(e, "the public key");
    m.format = FORMAT;
    m.name = pb_text(r->name);
    m.host = pb_text(r->host);
    m.public_key = pb_bytes(der, (size_t)n);
    m.proof = pb_bytes(proof, PROOF);
    int rc = pb_put(b, &m.base);
    OPENSSL_free(der);
    return rc < 0 ? err_set(e, rc, "request") : 0;
}

/* P-256, as all keys of members. */
static EVP_PKEY *read_key(const ProtobufCBinaryData *d)
{
    const unsigned char *p = d->data;
    EVP_PKEY *key = d->len > 0 && d->len < 512 ? d2i_PUBKEY(NULL, &p, (long)d->len) : NULL;
    const bool good = key && p == d->data + d->len && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
                      EVP_PKEY_get_bits(key) == 256;
    ERR_clear_error();
    if (good)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

int enrol_parse_request(struct enrol_request *out, uint8_t proof[PROOF], const void *bytes,
                        size_t n, struct err *e)
{
    Shoal__Control__V1__EnrolRequest *m =
        n <= ENROL_MAX_BYTES ? shoal__control__v1__enrol_request__unpack(pb_heap(), n, bytes)
                             : NULL;
    int rc = 0;
    *out = (struct enrol_request){.key = NULL};
    if (!m || m->format != FORMAT || desired_code_unknown(m) || m->proof.len != PROOF ||
        !cert_is_name(m->name) || strlen(m->host) >= sizeof(out->host) ||
        !(out->key = read_key(&m->public_key))) {
        rc = err_set(e, SHOAL_EFORMAT, "the request is not one to join a shoal");
    } else {
        snprintf(out->name, sizeof(out->name), "%s", m->name);
        snprintf(out->host, sizeof(out->host), "%s", m->host);
        memcpy(proof, m->proof.data, PROOF);
    }
    if (m)
        shoal__control__v1__enrol_request__free_unpacked(m, pb_heap());
    return rc;
}

static int put_answer(struct buf *b, struct enrol_files *f, const char *error, uint8_t proof[PROOF])
{
    Shoal__Control__V1__EnrolAnswer m = SHOAL__CONTROL__V1__ENROL_ANSWER__INIT;
    m.format = FORMAT;
    m.error = pb_text(error);
    if (f) {
        m.cert = pb_text(buf_str(&f->cert));
        m.ca = pb_text(buf_str(&f->ca));
        m.crl = pb_text(buf_str(&f->crl));
        m.config = pb_text(buf_str(&f->config));
    }
    m.proof = pb_bytes(proof, PROOF);
    return pb_put(b, &m.base);
}

int enrol_parse_answer(struct enrol_files *out, uint8_t proof[PROOF], const void *bytes, size_t n,
                       struct err *e)
{
    Shoal__Control__V1__EnrolAnswer *m =
        n <= ENROL_MAX_BYTES ? shoal__control__v1__enrol_answer__unpack(pb_heap(), n, bytes) : NULL;
    int rc = 0;
    if (!m || m->format != FORMAT || desired_code_unknown(m) || m->proof.len != PROOF) {
        rc = err_set(e, SHOAL_EFORMAT, "the answer is not that of a shoal");
    } else if (m->error[0]) {
        rc = err_set(e, SHOAL_EINVAL, "refused: %.300s", m->error);
    } else {
        buf_puts(&out->cert, m->cert);
        buf_puts(&out->ca, m->ca);
        buf_puts(&out->crl, m->crl);
        buf_puts(&out->config, m->config);
        memcpy(proof, m->proof.data, PROOF);
    }
    if (m)
        shoal__control__v1__enrol_answer__free_unpacked(m, pb_heap());
    return rc;
}

/* ---- the door ---- */

int enrol_door_open(struct enrol_door **out, const struct enrol_door_opts *o, struct err *e)
{
    struct enrol_door *d = mem_zalloc(sizeof(*d));
    *out = NULL;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "door");
    d->o = *o;
    d->tls = SSL_CTX_new(TLS_server_method());
    bool ok = d->tls && SSL_CTX_set_min_proto_version(d->tls, TLS1_3_VERSION) == 1 &&
              SSL_CTX_use_certificate(d->tls, o->cert) == 1 &&
              SSL_CTX_use_PrivateKey(d->tls, o->key) == 1 && X509_up_ref(o->ca) == 1;
    if (ok && SSL_CTX_add_extra_chain_cert(d->tls, o->ca) != 1) {
        X509_free(o->ca);
        ok = false;
    }
    if (!ok) {
        enrol_door_close(d);
        return failed(e, "the door cannot be opened");
    }
    SSL_CTX_set_session_cache_mode(d->tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(d->tls, 0); /* nobody comes twice */
    *out = d;
    return 0;
}

void enrol_door_close(struct enrol_door *d)
{
    if (!d)
        return;
    SSL_CTX_free(d->tls);
    OPENSSL_cleanse(&d->o.token, sizeof(d->o.token));
    mem_free(d);
}

bool enrol_door_is_shut(const struct enrol_door *d)
{
    return d->used || d->n_bad >= ENROL_MAX_BAD || clock_ns() >= d->o.until_ns;
}

/* Why it admits nobody; NULL: it does. */
static const char *shut_because(const struct enrol_door *d)
{
    return d->used                       ? "the token was used already"
           : d->n_bad >= ENROL_MAX_BAD   ? "too many wrong tokens: make another one"
           : clock_ns() >= d->o.until_ns ? "the token has expired"
                                         : NULL;
}

/* Whether the request was made with the token, on this connection. */
static int check_request(struct enrol_door *d, SSL *s, struct enrol_request *r, const struct buf *b,
                         struct err *e)
{
    uint8_t given[PROOF], want[PROOF];
    int rc = enrol_parse_request(r, given, b->data, b->len, e);
    if (rc == 0)
        rc = prove_request(want, s, &d->o.token, r, e);
    if (rc == 0 && CRYPTO_memcmp(given, want, PROOF) != 0) {
        d->n_bad++;
        rc = err_set(e, SHOAL_EINVAL, "the token is not the one of this shoal");
    }
    if (rc == 0 && shut_because(d))
        rc = err_set(e, SHOAL_EINVAL, "%s", shut_because(d));
    return rc;
}

static int answer(struct enrol_door *d, const struct line *l, struct err *e)
{
    struct enrol_request r = {.key = NULL};
    struct enrol_files f;
    struct buf in, out;
    uint8_t proof[PROOF] = {0};
    enrol_files_init(&f);
    buf_init(&in, ENROL_MAX_BYTES);
    buf_init(&out, ENROL_MAX_BYTES);
    int rc = read_message(l, &in, e);
    const bool heard = rc == 0;
    if (rc == 0)
        rc = check_request(d, l->tls, &r, &in, e);
    if (rc == 0)
        rc = d->o.admit(d->o.ctx, &r, &f, e);
    if (rc == 0)
        rc = prove_answer(proof, l->tls, &d->o.token, &f, e);
    if (rc == 0)
        d->used = true; /* whatever becomes of the answer: its certificate exists */
    if (heard && put_answer(&out, rc == 0 ? &f : NULL, rc < 0 ? e->msg : "", proof) == 0) {
        struct err unread = {0};
        const int sent = write_message(l, &out, &unread);
        if (rc == 0 && sent < 0)
            rc = err_set(e, sent, "%s", unread.msg);
    }
    EVP_PKEY_free(r.key);
    enrol_files_fini(&f);
    buf_fini(&in);
    buf_fini(&out);
    return rc;
}

int enrol_door_serve(struct enrol_door *d, int fd, struct err *e)
{
    struct line l;
    int rc = open_line(&l, d->tls, fd, e);
    if (rc == 0)
        rc = shake_hands(&l, SSL_accept, e);
    if (rc == 0)
        rc = answer(d, &l, e);
    if (rc == 0)
        SSL_shutdown(l.tls);
    SSL_free(l.tls);
    ERR_clear_error();
    return rc;
}

/* ---- the machine that joins ---- */

static bool has_fingerprint(X509 *cert, const struct join_token *t)
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    return X509_digest(cert, EVP_sha256(), sum, &n) == 1 && n >= JOIN_TOKEN_CA &&
           CRYPTO_memcmp(sum, t->ca, JOIN_TOKEN_CA) == 0;
}

/* The door shows a certificate that the CA of the token has signed. */
static int check_door(SSL *s, const struct join_token *t, struct err *e)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(s);
    X509 *leaf = SSL_get0_peer_certificate(s);
    bool good = false;
    for (int i = 0; chain && leaf && i < sk_X509_num(chain); i++) {
        X509 *ca = sk_X509_value(chain, i);
        good |= has_fingerprint(ca, t) && X509_check_ca(ca) == 1 &&
                X509_verify(leaf, X509_get0_pubkey(ca)) == 1;
    }
    ERR_clear_error();
    return good ? 0
                : err_set(e, SHOAL_EINVAL,
                          "what answers there is not the shoal of this token: its CA is another");
}

static int ask(const struct line *l, const struct join_token *t, const struct enrol_request *r,
               struct enrol_files *out, struct err *e)
{
    uint8_t proof[PROOF], want[PROOF];
    struct buf b;
    buf_init(&b, ENROL_MAX_BYTES);
    int rc = prove_request(proof, l->tls, t, r, e);
    if (rc == 0)
        rc = put_request(&b, r, proof, e);
    if (rc == 0)
        rc = write_message(l, &b, e);
    buf_clear(&b);
    if (rc == 0)
        rc = read_message(l, &b, e);
    if (rc == 0)
        rc = enrol_parse_answer(out, proof, b.data, b.len, e);
    if (rc == 0)
        rc = prove_answer(want, l->tls, t, out, e);
    if (rc == 0 && CRYPTO_memcmp(proof, want, PROOF) != 0)
        rc = err_set(e, SHOAL_EINVAL, "the answer does not come from who made the token");
    buf_fini(&b);
    return rc;
}

int enrol_join(int fd, const struct join_token *t, const struct enrol_request *r,
               struct enrol_files *out, struct err *e)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    struct line l = {.tls = NULL};
    int rc = ctx && SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1
                 ? open_line(&l, ctx, fd, e)
                 : failed(e, "TLS");
    /* the CA is not known yet: check_door compares it with the token */
    if (rc == 0)
        rc = shake_hands(&l, SSL_connect, e);
    if (rc == 0)
        rc = check_door(l.tls, t, e);
    if (rc == 0)
        rc = ask(&l, t, r, out, e);
    SSL_free(l.tls);
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return rc;
}
