/* tls.c - see tls.h. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/log.h"
#include "base/mem.h"

#define SESSION_S 3600L /* a session is resumed for an hour at most */
#define CHECK_NS 1000000000u

enum { FILE_CERT, FILE_KEY, FILE_CA, FILE_CRL, N_FILES };

struct stamp { /* changes when a file does */
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified;
};

struct side { /* what servers and clients have in common; each has its own */
    bool client, reload, foreign, shard;
    char *paths[N_FILES]; /* NULL: not used */
    pthread_mutex_t lock; /* guards everything below */
    struct stamp seen[N_FILES];
    SSL_CTX *ctx;
    uint32_t generation;   /* of ctx */
    uint64_t next_look_ns; /* when an open connection looks for changed files again */
    uint32_t n_refs;       /* its owner and its connections */
};

struct tls_server {
    struct side *side;
};

struct tls_client {
    struct side *side;
};

struct tls_conn {
    SSL *ssl;
    struct side *side;
    uint32_t generation; /* generation that the peer's certificate was checked with */
    uint64_t next_check_ns;
    bool wants_write, refused;
    char protocol[16];
    struct tls_peer peer;
    char why[256];
};

/* ---- files ---- */

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
    static const unsigned char ours[] = "\x02h2\x08http/1.1\x0d" TLS_SHARD;
    unsigned char *pick = NULL;
    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&pick, n_out, ours, sizeof(ours) - 1, in, n_in) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = pick;
    return SSL_TLSEXT_ERR_OK;
}

static void common_name(char *out, size_t cap, X509 *cert)
{
    X509_NAME *subject = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    unsigned char *text = NULL;
    out[0] = '\0';
    if (at < 0)
        return;
    int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    /* A name with a NUL would be cut, and might match another peer's. */
    if (n > 0 && (size_t)n < cap && !memchr(text, '\0', (size_t)n)) {
        memcpy(out, text, (size_t)n);
        out[n] = '\0';
    }
    OPENSSL_free(text);
}

static void date_text(char *out, size_t cap, const ASN1_TIME *t)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1 || strftime(out, cap, "%Y-%m-%d %H:%M UTC", &tm) == 0)
        snprintf(out, cap, "an unreadable date");
}

/* Checks the dates of a certificate; false: valid. */
static bool is_out_of_date(char *out, size_t cap, X509 *cert)
{
    char name[128], date[40];
    common_name(name, sizeof(name), cert);
    if (X509_cmp_current_time(X509_get0_notAfter(cert)) <= 0) {
        date_text(date, sizeof(date), X509_get0_notAfter(cert));
        snprintf(out, cap, "the certificate of %s expired on %s", name, date);
        return true;
    }
    if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0) {
        date_text(date, sizeof(date), X509_get0_notBefore(cert));
        snprintf(out, cap, "the certificate of %s is not valid before %s: compare the clocks", name,
                 date);
        return true;
    }
    return false;
}

static bool is_unknown_issuer(int why)
{
    return why == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
           why == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
           why == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
           why == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
           why == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

/* Notes why a certificate is refused; OpenSSL has decided already, but for one case.  While a CA is
 * replaced, a chain may end with the new one before its revocation list has arrived: as far as we
 * know, it has revoked nobody. */
static int on_verify(int ok, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_conn *c = ssl ? SSL_get_app_data(ssl) : NULL;
    X509 *cert = X509_STORE_CTX_get_current_cert(store);
    int why = X509_STORE_CTX_get_error(store);
    char name[128] = "the peer";
    if (!ok && why == X509_V_ERR_UNABLE_TO_GET_CRL) {
        X509_STORE_CTX_set_error(store, X509_V_OK);
        return 1;
    }
    if (ok || !c)
        return ok;
    c->refused = true;
    if (!cert || c->why[0])
        return ok;
    if ((why == X509_V_ERR_CERT_HAS_EXPIRED || why == X509_V_ERR_CERT_NOT_YET_VALID) &&
        is_out_of_date(c->why, sizeof(c->why), cert))
        return ok;
    common_name(name, sizeof(name), cert);
    if (why == X509_V_ERR_CERT_REVOKED)
        snprintf(c->why, sizeof(c->why), "the certificate of %s is revoked", name);
    else if (is_unknown_issuer(why) || why == X509_V_ERR_CERT_SIGNATURE_FAILURE)
        snprintf(c->why, sizeof(c->why), "the certificate of %s is not signed by our CA", name);
    else
        snprintf(c->why, sizeof(c->why), "the certificate of %s is refused: %s", name,
                 X509_verify_cert_error_string(why));
    return ok;
}

static int use_identity(SSL_CTX *ctx, const struct side *s, struct err *e)
{
    const char *cert = s->paths[FILE_CERT], *key = s->paths[FILE_KEY];
    char why[256];
    if (!cert)
        return 0;
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return fail(e, SHOAL_EFORMAT, "certificate", cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        return fail(e, SHOAL_EFORMAT, "private key", key);
    if (SSL_CTX_check_private_key(ctx) != 1)
        return fail(e, SHOAL_EFORMAT, "the private key does not belong to the certificate", cert);
    if (s->client && is_out_of_date(why, sizeof(why), SSL_CTX_get0_certificate(ctx)))
        return err_set(e, SHOAL_EINVAL, "%s: %s", cert, why);
    return 0;
}

static int use_trust(SSL_CTX *ctx, const struct side *s, struct err *e)
{
    const char *ca = s->paths[FILE_CA], *crl = s->paths[FILE_CRL];
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    if (ca && SSL_CTX_load_verify_locations(ctx, ca, NULL) != 1)
        return fail(e, SHOAL_EFORMAT, "certificates of peers", ca);
    if (!ca && s->client && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return fail(e, SHOAL_EIO, "the system's certificates", "");
    if (ca && !s->client)
        SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(ca));
    if (ca || s->client)
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, on_verify);
    if (crl) {
        X509_LOOKUP *from = X509_STORE_add_lookup(store, X509_LOOKUP_file());
        if (!from || X509_load_crl_file(from, crl, X509_FILETYPE_PEM) < 1)
            return fail(e, SHOAL_EFORMAT, "revocation list", crl);
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    }
    ERR_clear_error();
    return 0;
}

static int build(SSL_CTX **out, const struct side *s, struct err *e)
{
    SSL_CTX *ctx = SSL_CTX_new(s->client ? TLS_client_method() : TLS_server_method());
    *out = NULL;
    if (!ctx)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the TLS context");
    SSL_CTX_set_min_proto_version(ctx, s->foreign ? TLS1_2_VERSION : TLS1_3_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1); /* one read for a record, not one for its head and one for it */
    SSL_CTX_set_timeout(ctx, SESSION_S);
    if (s->foreign) {
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x08http/1.1", 9);
    } else if (s->shard) {
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x0d" TLS_SHARD, 14);
    } else if (s->client) {
        SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)"\x02h2", 3);
    } else {
        SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
        SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"shoal", 5);
    }
    int rc = use_identity(ctx, s, e);
    if (rc == 0)
        rc = use_trust(ctx, s, e);
    if (rc < 0) {
        SSL_CTX_free(ctx);
        return rc;
    }
    *out = ctx;
    return 0;
}

static bool look_at_files(struct side *s)
{
    bool changed = false;
    for (int i = 0; i < N_FILES; i++) {
        struct stat st;
        struct stamp now = {0};
        if (!s->paths[i])
            continue;
        if (stat(s->paths[i], &st) == 0)
            now = (struct stamp){st.st_dev, st.st_ino, st.st_size, st.st_mtim};
        struct stamp *was = &s->seen[i];
        changed |= now.device != was->device || now.inode != was->inode ||
                   now.bytes != was->bytes || now.modified.tv_sec != was->modified.tv_sec ||
                   now.modified.tv_nsec != was->modified.tv_nsec;
        *was = now;
    }
    return changed;
}

static void side_unref(struct side *s)
{
    pthread_mutex_lock(&s->lock);
    bool last = --s->n_refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    SSL_CTX_free(s->ctx);
    for (int i = 0; i < N_FILES; i++)
        mem_free(s->paths[i]);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static int side_create(struct side **out, bool client, const struct tls_opts *o, struct err *e)
{
    const char *paths[N_FILES] = {o->cert, o->key, o->ca, o->crl};
    struct side *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the TLS context");
    *s = (struct side){.client = client,
                       .reload = o->reload,
                       .foreign = client && o->foreign,
                       .shard = client && o->shard,
                       .n_refs = 1};
    pthread_mutex_init(&s->lock, NULL);
    int rc = 0;
    if ((o->cert == NULL) != (o->key == NULL) || (!o->cert && !client))
        rc = err_set(e, SHOAL_EINVAL, "TLS needs a certificate and its private key");
    for (int i = 0; rc == 0 && i < N_FILES; i++)
        if (paths[i] && !(s->paths[i] = mem_strdup(paths[i])))
            rc = err_set(e, SHOAL_ENOMEM, "out of memory for the TLS context");
    if (rc == 0) {
        (void)look_at_files(s); /* before they are read: a change while we read is seen later */
        rc = build(&s->ctx, s, e);
    }
    if (rc < 0) {
        side_unref(s);
        return rc;
    }
    *out = s;
    return 0;
}

/* Reads changed files again.  The lock is held. */
static void side_refresh(struct side *s)
{
    struct err e = {0};
    SSL_CTX *next;
    if (!s->reload || !look_at_files(s))
        return;
    if (build(&next, s, &e) < 0) {
        log_warn("tls", "cannot use the changed certificates yet: %s", e.msg);
        return;
    }
    SSL_CTX_free(s->ctx);
    s->ctx = next;
    s->generation++;
    log_info("tls", "certificates read again cert=%s",
             s->paths[FILE_CERT] ? s->paths[FILE_CERT] : "");
}

int tls_server_open(struct tls_server **out, const struct tls_opts *o, struct err *e)
{
    struct tls_server *t = mem_zalloc(sizeof(*t));
    *out = NULL;
    int rc = t ? side_create(&t->side, false, o, e)
               : err_set(e, SHOAL_ENOMEM, "out of memory for the TLS context");
    if (rc < 0) {
        mem_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void tls_server_close(struct tls_server *t)
{
    if (!t)
        return;
    side_unref(t->side);
    mem_free(t);
}

int tls_client_open(struct tls_client **out, const struct tls_opts *o, struct err *e)
{
    struct tls_client *t = mem_zalloc(sizeof(*t));
    *out = NULL;
    int rc = t ? side_create(&t->side, true, o, e)
               : err_set(e, SHOAL_ENOMEM, "out of memory for the TLS context");
    if (rc < 0) {
        mem_free(t);
        return rc;
    }
    *out = t;
    return 0;
}

void tls_client_close(struct tls_client *t)
{
    if (!t)
        return;
    side_unref(t->side);
    mem_free(t);
}

/* ---- connections ---- */

static int conn_create(struct tls_conn **out, struct side *s, int fd, struct err *e)
{
    struct tls_conn *c = mem_zalloc(sizeof(*c));
    *out = NULL;
    if (!c)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a TLS connection");
    pthread_mutex_lock(&s->lock);
    side_refresh(s);
    c->ssl = SSL_new(s->ctx); /* holds the context from here on */
    c->generation = s->generation;
    c->side = s;
    s->n_refs++;
    pthread_mutex_unlock(&s->lock);
    if (!c->ssl || SSL_set_fd(c->ssl, fd) != 1) {
        tls_conn_destroy(c);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a TLS connection");
    }
    SSL_set_app_data(c->ssl, c);
    *out = c;
    return 0;
}

int tls_conn_accept(struct tls_conn **out, struct tls_server *t, int fd, struct err *e)
{
    int rc = conn_create(out, t->side, fd, e);
    if (rc == 0)
        SSL_set_accept_state((*out)->ssl);
    return rc;
}

int tls_conn_connect(struct tls_conn **out, struct tls_client *t, int fd, const char *host,
                     struct err *e)
{
    int rc = conn_create(out, t->side, fd, e);
    if (rc < 0)
        return rc;
    struct tls_conn *c = *out;
    unsigned char address[16];
    bool is_address =
        host && (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1);
    SSL_set_connect_state(c->ssl);
    c->wants_write = true; /* the client begins */
    if ((is_address && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), host) != 1) ||
        (host && !is_address &&
         (SSL_set1_host(c->ssl, host) != 1 || SSL_set_tlsext_host_name(c->ssl, host) != 1))) {
        tls_conn_destroy(c);
        *out = NULL;
        ERR_clear_error();
        return err_set(e, SHOAL_EINVAL, "%s is not a host name for TLS", host);
    }
    return 0;
}

void tls_conn_destroy(struct tls_conn *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    side_unref(c->side);
    mem_free(c);
}

/* Alerts of a peer that refuses our certificate, in words. */
static const char *refusal(int reason)
{
    switch (reason) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "it expired, or a clock is wrong";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        return "it is revoked";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "another CA signed it";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "we sent none";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        return "it does not match the peer";
    default:
        return NULL;
    }
}

/* Result of a failed call: EBUSY, 0 (end of input) or EIO. */
static int outcome(struct tls_conn *c, int ret)
{
    int why = SSL_get_error(c->ssl, ret), os = errno;
    c->wants_write = why == SSL_ERROR_WANT_WRITE;
    if (why == SSL_ERROR_SSL && !c->why[0]) {
        unsigned long n = ERR_peek_error();
        c->refused |= ERR_GET_REASON(n) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE;
        const char *text = ERR_reason_error_string(n), *refused = refusal(ERR_GET_REASON(n));
        if (refused)
            snprintf(c->why, sizeof(c->why), "the peer refused our certificate: %s", refused);
        else
            snprintf(c->why, sizeof(c->why), "TLS: %s", text ? text : "unknown error");
    } else if (why == SSL_ERROR_SYSCALL && !c->why[0] && os) {
        snprintf(c->why, sizeof(c->why), "%s", strerror(os));
    }
    ERR_clear_error(); /* the error queue belongs to the thread, not to the connection */
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return SHOAL_EBUSY;
    return why == SSL_ERROR_ZERO_RETURN ? 0 : SHOAL_EIO;
}

/* Names that could be read as two are left out. */
static void read_uris(char *out, size_t cap, X509 *cert)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    size_t at = 0;
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_URI)
            continue;
        const char *p = (const char *)ASN1_STRING_get0_data(name->d.uniformResourceIdentifier);
        size_t n = (size_t)ASN1_STRING_length(name->d.uniformResourceIdentifier), k = 0;
        while (k < n && p[k] > ' ' && p[k] < 127)
            k++;
        if (k == 0 || k < n || at + n + 2 > cap)
            continue;
        if (at > 0)
            out[at++] = ' ';
        memcpy(out + at, p, n);
        at += n;
    }
    out[at] = '\0';
    GENERAL_NAMES_free(names);
}

void tls_peer_read(struct tls_peer *out, X509 *cert)
{
    const ASN1_INTEGER *serial = X509_get0_serialNumber(cert);
    const unsigned char *p = ASN1_STRING_get0_data(serial);
    int n = ASN1_STRING_length(serial);
    common_name(out->name, sizeof(out->name), cert);
    read_uris(out->uris, sizeof(out->uris), cert);
    for (int i = 0; i < n && (size_t)i * 2 + 3 <= sizeof(out->serial); i++)
        snprintf(out->serial + i * 2, 3, "%02X", p[i]);
}

int tls_conn_handshake(struct tls_conn *c)
{
    const unsigned char *p = NULL;
    unsigned n = 0;
    errno = 0;
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
    if (cert && SSL_get_verify_mode(c->ssl) != SSL_VERIFY_NONE)
        tls_peer_read(&c->peer, cert);
    return 0;
}

ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n)
{
    errno = 0;
    int ret = SSL_read(c->ssl, p, n < INT_MAX ? (int)n : INT_MAX);
    return ret > 0 ? ret : outcome(c, ret);
}

bool tls_conn_pending(const struct tls_conn *c)
{
    return SSL_has_pending(c->ssl);
}

ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n)
{
    errno = 0;
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

/* Checks the peer's certificate against the files of today.  The lock is held. */
static enum tls_verdict check_again(struct tls_conn *c)
{
    X509 *cert = SSL_get0_peer_certificate(c->ssl);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    enum tls_verdict v = TLS_BAD;
    if (ctx && X509_STORE_CTX_init(ctx, SSL_CTX_get_cert_store(c->side->ctx), cert,
                                   SSL_get_peer_cert_chain(c->ssl)) == 1) {
        X509_STORE_CTX_set_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx(), c->ssl);
        X509_STORE_CTX_set_default(ctx, c->side->client ? "ssl_server" : "ssl_client");
        X509_STORE_CTX_set_verify_cb(ctx, on_verify);
        v = X509_verify_cert(ctx) == 1                         ? TLS_GOOD
            : is_unknown_issuer(X509_STORE_CTX_get_error(ctx)) ? TLS_STALE
                                                               : TLS_BAD;
    }
    if (v == TLS_STALE) {
        c->refused = false;
        c->why[0] = '\0';
    }
    X509_STORE_CTX_free(ctx);
    ERR_clear_error();
    return v;
}

enum tls_verdict tls_conn_check(struct tls_conn *c, uint64_t now_ns)
{
    struct side *s = c->side;
    if (!s->reload || now_ns < c->next_check_ns || !c->peer.serial[0])
        return TLS_GOOD;
    c->next_check_ns = now_ns + CHECK_NS;
    X509 *cert = SSL_get0_peer_certificate(c->ssl);
    if (cert && is_out_of_date(c->why, sizeof(c->why), cert)) {
        c->refused = true;
        return TLS_BAD;
    }
    pthread_mutex_lock(&s->lock);
    if (now_ns >= s->next_look_ns) {
        s->next_look_ns = now_ns + CHECK_NS;
        side_refresh(s);
    }
    enum tls_verdict v = c->generation == s->generation ? TLS_GOOD : check_again(c);
    c->generation = s->generation;
    pthread_mutex_unlock(&s->lock);
    return v;
}

bool tls_conn_refused(const struct tls_conn *c)
{
    return c->refused;
}

bool tls_conn_wants_write(const struct tls_conn *c)
{
    return c->wants_write;
}

const char *tls_conn_protocol(const struct tls_conn *c)
{
    return c->protocol;
}

const struct tls_peer *tls_conn_peer(const struct tls_conn *c)
{
    return &c->peer;
}

const char *tls_conn_why(const struct tls_conn *c)
{
    return c->why;
}
