/* cert.c - see cert.h. */
#include "cluster/trust/cert.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "cluster/trust/roles.h"
#include "net/tls.h"

bool cert_is_name(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n >= CERT_NAME_BYTES || name[0] == '-' || name[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(islower((unsigned char)name[i]) || isdigit((unsigned char)name[i]) || name[i] == '-'))
            return false;
    return true;
}

void cert_date(char *out, size_t cap, int64_t at_s)
{
    time_t t = (time_t)at_s;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || strftime(out, cap, "%Y-%m-%d %H:%M UTC", &tm) == 0)
        snprintf(out, cap, "an unreadable date");
}

int cert_files_in(struct cert_files *out, const char *folder, struct err *e)
{
    const struct {
        char *to;
        const char *name;
    } files[] = {
        {out->cert, "cert.pem"}, {out->key, "key.pem"}, {out->ca, "ca.pem"}, {out->crl, "crl.pem"}};
    for (size_t i = 0; i < 4; i++) {
        int n = snprintf(files[i].to, CERT_PATH_BYTES, "%s/%s", folder, files[i].name);
        if (n < 0 || (size_t)n >= CERT_PATH_BYTES)
            return err_set(e, SHOAL_EINVAL, "the path %.100s... is too long", folder);
        if (access(files[i].to, R_OK) < 0)
            return err_set(e, SHOAL_EIO,
                           "cannot read %s: %s; copy the folder that 'shoal ca issue' wrote",
                           files[i].to, strerror(errno));
    }
    return 0;
}

/* Roles among URIs that are separated by blanks.  Unknown ones are of a newer version. */
static unsigned roles_of(const char *uris)
{
    static const size_t n_prefix = sizeof(CERT_ROLE_URI) - 1;
    unsigned roles = 0, role;
    char word[32];
    for (const char *p = uris; *p;) {
        size_t n = strcspn(p, " ");
        if (n > n_prefix && n - n_prefix < sizeof(word) &&
            memcmp(p, CERT_ROLE_URI, n_prefix) == 0) {
            memcpy(word, p + n_prefix, n - n_prefix);
            word[n - n_prefix] = '\0';
            if (!strchr(word, ',') && roles_parse(&role, word, NULL) == 0)
                roles |= role;
        }
        p += n + (p[n] == ' ');
    }
    return roles;
}

int cert_identity(struct cert_identity *out, const struct tls_peer *peer, struct err *e)
{
    *out = (struct cert_identity){.roles = 0};
    if (!peer || !peer->serial[0])
        return err_set(e, SHOAL_EINVAL,
                       "the peer sent no certificate: members of a shoal need one");
    if (!cert_is_name(peer->name))
        return err_set(e, SHOAL_EINVAL,
                       "the certificate with serial number %s names no member of a shoal",
                       peer->serial);
    out->roles = roles_of(peer->uris);
    memcpy(out->name, peer->name, strlen(peer->name) + 1);
    if (!out->roles)
        return err_set(
            e, SHOAL_EINVAL,
            "the certificate of %s has no role: run shoal ca issue %s --force --role ...",
            out->name, out->name);
    return 0;
}

/* ---- files ---- */

static int64_t seconds_of(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void append(char *out, size_t cap, const char *p, size_t n)
{
    size_t at = strlen(out);
    for (size_t i = 0; i < n; i++)
        if (p[i] <= ' ' || p[i] == 127)
            return; /* a blank would make two of it */
    if (n == 0 || at + n + 2 > cap)
        return;
    if (at > 0)
        out[at++] = ' ';
    memcpy(out + at, p, n);
    out[at + n] = '\0';
}

static void address_text(char *out, size_t cap, const ASN1_OCTET_STRING *ip)
{
    const unsigned char *p = ASN1_STRING_get0_data(ip);
    int n = ASN1_STRING_length(ip);
    out[0] = '\0';
    if (n == 4)
        snprintf(out, cap, "%u.%u.%u.%u", p[0], p[1], p[2], p[3]);
    for (int i = 0; n == 16 && i < 16; i += 2)
        snprintf(out + strlen(out), cap - strlen(out), "%s%x", i ? ":" : "", p[i] << 8 | p[i + 1]);
}

static void read_names(struct cert_info *out, X509 *cert)
{
    char uris[512] = "", ip[64];
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_IPADD) {
            address_text(ip, sizeof(ip), name->d.iPAddress);
            append(out->hosts, sizeof(out->hosts), ip, strlen(ip));
        }
        if (name->type != GEN_URI && name->type != GEN_DNS)
            continue;
        const char *p = (const char *)ASN1_STRING_get0_data(name->d.ia5);
        size_t n = (size_t)ASN1_STRING_length(name->d.ia5);
        if (name->type == GEN_URI)
            append(uris, sizeof(uris), p, n);
        else if (strlen(out->id.name) != n || memcmp(out->id.name, p, n) != 0)
            append(out->hosts, sizeof(out->hosts), p, n);
    }
    GENERAL_NAMES_free(names);
    out->id.roles = roles_of(uris);
}

static void read_common_name(char *out, size_t cap, const X509_NAME *name)
{
    int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    unsigned char *text = NULL;
    out[0] = '\0';
    if (at < 0)
        return;
    int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    for (int i = 0; i < n && (size_t)i + 1 < cap; i++) {
        out[i] = (char)(text[i] < ' ' || text[i] == 127 ? '?' : text[i]); /* for terminals */
        out[i + 1] = '\0';
    }
    OPENSSL_free(text);
}

static void hex(char *out, size_t cap, const unsigned char *p, size_t n)
{
    out[0] = '\0';
    for (size_t i = 0; i < n && i * 2 + 3 <= cap; i++)
        snprintf(out + i * 2, 3, "%02X", p[i]);
}

void cert_describe(struct cert_info *out, X509 *cert)
{
    const ASN1_INTEGER *serial = X509_get0_serialNumber(cert);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    *out = (struct cert_info){.not_before_s = seconds_of(X509_get0_notBefore(cert)),
                              .not_after_s = seconds_of(X509_get0_notAfter(cert))};
    read_common_name(out->id.name, sizeof(out->id.name), X509_get_subject_name(cert));
    read_common_name(out->issuer, sizeof(out->issuer), X509_get_issuer_name(cert));
    read_names(out, cert);
    hex(out->serial, sizeof(out->serial), ASN1_STRING_get0_data(serial),
        (size_t)ASN1_STRING_length(serial));
    if (X509_digest(cert, EVP_sha256(), digest, &n) == 1)
        hex(out->sha256, sizeof(out->sha256), digest, n);
}

int cert_load(X509 **out, const char *path, struct err *e)
{
    BIO *in = BIO_new_file(path, "r");
    *out = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
    int why = errno;
    bool opened = in != NULL;
    BIO_free(in);
    ERR_clear_error();
    if (*out)
        return 0;
    return opened ? err_set(e, SHOAL_EFORMAT, "%s is not a certificate in PEM form", path)
                  : err_set(e, SHOAL_EIO, "cannot open %s: %s", path, strerror(why));
}

int cert_read(struct cert_info *out, const char *path, struct err *e)
{
    X509 *cert;
    int rc = cert_load(&cert, path, e);
    if (rc == 0)
        cert_describe(out, cert);
    X509_free(cert);
    return rc;
}

/* ---- checks ---- */

/* The certificates after the first one of a file, for building the chain. */
static STACK_OF(X509) * load_chain(const char *path)
{
    STACK_OF(X509) *chain = sk_X509_new_null();
    BIO *in = BIO_new_file(path, "r");
    X509 *cert = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
    X509_free(cert);
    while (chain && in && (cert = PEM_read_bio_X509(in, NULL, NULL, NULL)))
        if (sk_X509_push(chain, cert) <= 0)
            X509_free(cert);
    BIO_free(in);
    ERR_clear_error();
    return chain;
}

static int has_key(X509 *cert, const char *path, const char *name, struct err *e)
{
    BIO *in = BIO_new_file(path, "r");
    EVP_PKEY *key = in ? PEM_read_bio_PrivateKey(in, NULL, NULL, NULL) : NULL;
    int rc = 0;
    if (!key)
        rc = err_set(e, SHOAL_EFORMAT, "%s is not a private key in PEM form", path);
    else if (X509_check_private_key(cert, key) != 1)
        rc = err_set(
            e, SHOAL_EINVAL,
            "%s does not belong to the certificate of %s: copy cert.pem and key.pem together", path,
            name);
    EVP_PKEY_free(key);
    BIO_free(in);
    ERR_clear_error();
    return rc;
}

static int explain(int why, const struct cert_info *c, const struct cert_files *f, struct err *e)
{
    const char *name = c->id.name;
    char date[40];
    switch (why) {
    case X509_V_OK:
        return 0;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        cert_date(date, sizeof(date), c->not_after_s);
        return err_set(
            e, SHOAL_EINVAL,
            "certificate of %s expired on %s: run shoal ca issue %s --force, and copy it "
            "here",
            name, date, name);
    case X509_V_ERR_CERT_NOT_YET_VALID:
        cert_date(date, sizeof(date), c->not_before_s);
        return err_set(e, SHOAL_EINVAL,
                       "certificate of %s is not valid before %s: set this machine's clock", name,
                       date);
    case X509_V_ERR_CERT_REVOKED:
        return err_set(e, SHOAL_EINVAL,
                       "certificate of %s is revoked: if it may be a member again, run shoal ca "
                       "issue %s --force",
                       name, name);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return err_set(e, SHOAL_EINVAL,
                       "certificate of %s is signed by %s, which is not in %s: issue it with this "
                       "shoal's CA",
                       name, c->issuer, f->ca);
    default:
        return err_set(e, SHOAL_EINVAL, "certificate of %s is refused: %s", name,
                       X509_verify_cert_error_string(why));
    }
}

/* As in net/tls.c: a CA whose revocation list has not arrived yet has revoked no certificates. */
static int on_verify(int ok, X509_STORE_CTX *ctx)
{
    if (ok || X509_STORE_CTX_get_error(ctx) != X509_V_ERR_UNABLE_TO_GET_CRL)
        return ok;
    X509_STORE_CTX_set_error(ctx, X509_V_OK);
    return 1;
}

static int verify(X509 *cert, const struct cert_info *c, const struct cert_files *f, struct err *e)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    STACK_OF(X509) *chain = load_chain(f->cert);
    X509_LOOKUP *from = store ? X509_STORE_add_lookup(store, X509_LOOKUP_file()) : NULL;
    int rc = 0;
    if (!from || !ctx || !chain)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for certificates");
    else if (X509_load_cert_file(from, f->ca, X509_FILETYPE_PEM) < 1)
        rc = err_set(e, SHOAL_EFORMAT, "%s holds no certificate of a CA", f->ca);
    else if (X509_load_crl_file(from, f->crl, X509_FILETYPE_PEM) < 1)
        rc = err_set(e, SHOAL_EFORMAT, "%s is not a revocation list", f->crl);
    if (rc == 0) {
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
        X509_STORE_set_verify_cb(store, on_verify);
        if (X509_STORE_CTX_init(ctx, store, cert, chain) != 1)
            rc = err_set(e, SHOAL_ENOMEM, "out of memory for certificates");
        else if (X509_verify_cert(ctx) != 1)
            rc = explain(X509_STORE_CTX_get_error(ctx), c, f, e);
    }
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    sk_X509_pop_free(chain, X509_free);
    ERR_clear_error();
    return rc;
}

int cert_check(struct cert_info *out, const struct cert_files *f, struct err *e)
{
    X509 *cert;
    int rc = cert_load(&cert, f->cert, e);
    if (rc < 0)
        return rc;
    cert_describe(out, cert);
    rc = verify(cert, out, f, e);
    if (rc == 0)
        rc = has_key(cert, f->key, out->id.name, e);
    if (rc == 0 && !cert_is_name(out->id.name))
        rc = err_set(e, SHOAL_EINVAL, "%s names no member of a shoal", f->cert);
    if (rc == 0 && !out->id.roles)
        rc = err_set(e, SHOAL_EINVAL,
                     "the certificate of %s has no role: run shoal ca issue %s --force --role ...",
                     out->id.name, out->id.name);
    X509_free(cert);
    return rc;
}
