/* tls.c - see tls.h. */
#include "net/tls.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/mem.h"

struct tls_server {
    SSL_CTX *ctx;
};

struct tls_conn {
    SSL *ssl;
    bool wants_write;
    char protocol[16], peer[128];
};

static int fail(struct err *e, int code, const char *what, const char *path)
{
    char text[160] = "unknown reason";
    unsigned long n = ERR_peek_last_error();
    if (n)
        ERR_error_string_n(n, text, sizeof(text));
    ERR_clear_error();
    return err_set(e, code, "%s%s%s: %s", what, path[0] ? " " : "", path, text);
}

/* Chooses our first protocol that the client supports; a client without ALPN gets HTTP/1.1. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                           const unsigned char *in, unsigned int n_in, void *arg)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *pick = NULL;
    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&pick, n_out, ours, sizeof(ours) - 1, in, n_in) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = pick;
    return SSL_TLSEXT_ERR_OK;
}

int tls_server_open(struct tls_server **out, const struct tls_opts *o, struct err *e)
{
    struct tls_server *t = mem_zalloc(sizeof(*t));
    int rc = 0;
    *out = NULL;
    if (t)
        t->ctx = SSL_CTX_new(TLS_server_method());
    if (!t || !t->ctx) {
        mem_free(t);
        return err_set(e, SHOAL_ENOMEM, "out of memory for the TLS context");
    }
    SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION);
    SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(t->ctx, choose_protocol, NULL);
    SSL_CTX_set_session_id_context(t->ctx, (const unsigned char *)"shoal", 5);
    if (SSL_CTX_use_certificate_chain_file(t->ctx, o->cert) != 1)
        rc = fail(e, SHOAL_EFORMAT, "certificate", o->cert);
    else if (SSL_CTX_use_PrivateKey_file(t->ctx, o->key, SSL_FILETYPE_PEM) != 1)
        rc = fail(e, SHOAL_EFORMAT, "private key", o->key);
    else if (SSL_CTX_check_private_key(t->ctx) != 1)
        rc = fail(e, SHOAL_EFORMAT, "the private key does not belong to the certificate", o->cert);
    if (rc == 0 && o->ca) {
        if (SSL_CTX_load_verify_locations(t->ctx, o->ca, NULL) != 1)
            rc = fail(e, SHOAL_EFORMAT, "certificates of clients", o->ca);
        SSL_CTX_set_client_CA_list(t->ctx, SSL_load_client_CA_file(o->ca));
        SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    if (rc < 0) {
        tls_server_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void tls_server_close(struct tls_server *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    mem_free(t);
}

int tls_conn_create(struct tls_conn **out, struct tls_server *t, int fd, struct err *e)
{
    struct tls_conn *c = mem_zalloc(sizeof(*c));
    *out = NULL;
    if (c)
        c->ssl = SSL_new(t->ctx);
    if (!c || !c->ssl || SSL_set_fd(c->ssl, fd) != 1) {
        tls_conn_destroy(c);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a TLS connection");
    }
    SSL_set_accept_state(c->ssl);
    *out = c;
    return 0;
}

void tls_conn_destroy(struct tls_conn *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    mem_free(c);
}

/* Result of a failed call: EBUSY, 0 (end of input) or EIO. */
static int outcome(struct tls_conn *c, int ret)
{
    int why = SSL_get_error(c->ssl, ret);
    c->wants_write = why == SSL_ERROR_WANT_WRITE;
    ERR_clear_error(); /* the error queue belongs to the thread, not to the connection */
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return SHOAL_EBUSY;
    return why == SSL_ERROR_ZERO_RETURN ? 0 : SHOAL_EIO;
}

int tls_conn_handshake(struct tls_conn *c)
{
    const unsigned char *p = NULL;
    unsigned n = 0;
    int ret = SSL_do_handshake(c->ssl);
    if (ret != 1) {
        int rc = outcome(c, ret);
        return rc == 0 ? SHOAL_EIO : rc;
    }
    c->wants_write = false;
    SSL_get0_alpn_selected(c->ssl, &p, &n);
    if (n < sizeof(c->protocol) && n > 0)
        memcpy(c->protocol, p, n);
    X509 *cert = SSL_get0_peer_certificate(c->ssl);
    if (cert)
        X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, c->peer,
                                  sizeof(c->peer));
    return 0;
}

ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n)
{
    int ret = SSL_read(c->ssl, p, n < INT_MAX ? (int)n : INT_MAX);
    return ret > 0 ? ret : outcome(c, ret);
}

ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n)
{
    int ret = SSL_write(c->ssl, p, n < INT_MAX ? (int)n : INT_MAX);
    if (ret > 0)
        return ret;
    int rc = outcome(c, ret);
    return rc == 0 ? SHOAL_EIO : rc;
}

void tls_conn_bye(struct tls_conn *c)
{
    (void)SSL_shutdown(c->ssl); /* called once: we do not wait for the peer's close_notify */
    ERR_clear_error();
}

bool tls_conn_wants_write(const struct tls_conn *c)
{
    return c->wants_write;
}

const char *tls_conn_protocol(const struct tls_conn *c)
{
    return c->protocol;
}

const char *tls_conn_peer(const struct tls_conn *c)
{
    return c->peer;
}
