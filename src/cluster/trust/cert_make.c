/* cert_make.c - see cert_make.h. */
#include "cluster/trust/cert_make.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/buf.h"
#include "cluster/trust/cert.h"
#include "cluster/trust/roles.h"

#define SERIAL_BYTES 16
#define SKEW_S 3600 /* a certificate is valid an hour before it was made: clocks differ */
#define DAY_S 86400L

static int failed(struct err *e, const char *what)
{
    char text[160] = "unknown reason";
    unsigned long n = ERR_peek_last_error();
    if (n)
        ERR_error_string_n(n, text, sizeof(text));
    ERR_clear_error();
    return err_set(e, SHOAL_EINTERNAL, "cannot make %s: %s", what, text);
}

int cert_make_key(EVP_PKEY **out, struct err *e)
{
    *out = EVP_EC_gen("P-256");
    return *out ? 0 : failed(e, "a private key");
}

static bool set_serial(X509 *cert)
{
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and never shorter */
    BIGNUM *n = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
    BN_free(n);
    return ok;
}

static bool set_name(X509_NAME *name, const char *organization, const char *common)
{
    return (!organization ||
            X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
                                       (const unsigned char *)organization, -1, -1, 0) == 1) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common, -1,
                                      -1, 0) == 1;
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = x && X509_add_ext(cert, x, -1) == 1;
    X509_EXTENSION_free(x);
    return ok;
}

/* Dates, serial number and key; the end is never after the issuer's. */
static bool begin(X509 *cert, EVP_PKEY *key, unsigned days, X509 *issuer)
{
    time_t now = time(NULL), end = now + (time_t)days * DAY_S;
    struct tm tm;
    if (issuer && ASN1_TIME_to_tm(X509_get0_notAfter(issuer), &tm) == 1 && timegm(&tm) < end)
        end = timegm(&tm);
    return X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
           ASN1_TIME_set(X509_getm_notBefore(cert), now - SKEW_S) &&
           ASN1_TIME_set(X509_getm_notAfter(cert), end) && X509_set_pubkey(cert, key) == 1;
}

int cert_make_ca(X509 **out, EVP_PKEY *key, const char *name, unsigned days,
                 const struct cert_signer *by, struct err *e)
{
    X509 *cert = X509_new(), *issuer = by ? by->cert : cert;
    *out = NULL;
    /* One CA may be below another: the new one, while both are in use. */
    bool ok = cert && begin(cert, key, days, by ? by->cert : NULL) &&
              set_name(X509_get_subject_name(cert), "Shoal", name) &&
              X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
              add_extension(cert, issuer, NID_basic_constraints, "critical,CA:TRUE,pathlen:1") &&
              add_extension(cert, issuer, NID_key_usage, "critical,keyCertSign,cRLSign") &&
              add_extension(cert, issuer, NID_subject_key_identifier, "hash") &&
              add_extension(cert, issuer, NID_authority_key_identifier, "keyid:always") &&
              X509_sign(cert, by ? by->key : key, EVP_sha256()) > 0;
    if (!ok) {
        X509_free(cert);
        return failed(e, "the CA's certificate");
    }
    *out = cert;
    return 0;
}

static bool is_host(const char *host)
{
    for (const char *p = host; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '-' && *p != '.')
            return false;
    return host[0] && host[0] != '.' && host[0] != '-' && strlen(host) < 254;
}

static int put_names(struct buf *b, const struct cert_request *r, struct err *e)
{
    /* Most powerful first: nats-server uses the first name that it has a user for. */
    static const enum role order[] = {ROLE_ADMIN, ROLE_CONTROLLER, ROLE_GATEWAY, ROLE_NODE,
                                      ROLE_BROKER};
    unsigned char address[16];
    char role[32];
    buf_printf(b, "DNS:%s", r->name);
    for (size_t i = 0; i < r->n_hosts; i++) {
        const char *host = r->hosts[i];
        bool ip = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
        if (!ip && !is_host(host))
            return err_set(e, SHOAL_EINVAL, "'%s' is neither a host name nor an address", host);
        if (ip || strcmp(host, r->name) != 0)
            buf_printf(b, ",%s:%s", ip ? "IP" : "DNS", host);
    }
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (r->roles & order[i]) {
            roles_text(role, sizeof(role), order[i]);
            buf_printf(b, ",URI:" CERT_ROLE_URI "%s", role);
        }
    return b->rc < 0 ? err_set(e, b->rc, "too many hosts for one certificate") : 0;
}

int cert_make_member(X509 **out, EVP_PKEY *key, const struct cert_request *r,
                     const struct cert_signer *by, struct err *e)
{
    struct buf names;
    X509 *cert = NULL;
    *out = NULL;
    buf_init(&names, 4096);
    int rc = put_names(&names, r, e);
    if (rc == 0) {
        cert = X509_new();
        bool ok = cert && begin(cert, key, r->days, by->cert) &&
                  set_name(X509_get_subject_name(cert), NULL, r->name) &&
                  X509_set_issuer_name(cert, X509_get_subject_name(by->cert)) == 1 &&
                  add_extension(cert, by->cert, NID_basic_constraints, "critical,CA:FALSE") &&
                  add_extension(cert, by->cert, NID_key_usage, "critical,digitalSignature") &&
                  add_extension(cert, by->cert, NID_ext_key_usage, "serverAuth,clientAuth") &&
                  add_extension(cert, by->cert, NID_subject_key_identifier, "hash") &&
                  add_extension(cert, by->cert, NID_authority_key_identifier, "keyid:always") &&
                  add_extension(cert, by->cert, NID_subject_alt_name, buf_str(&names)) &&
                  X509_sign(cert, by->key, EVP_sha256()) > 0;
        if (!ok)
            rc = failed(e, "the certificate");
    }
    buf_fini(&names);
    if (rc < 0) {
        X509_free(cert);
        return rc;
    }
    *out = cert;
    return 0;
}

static bool add_revoked(X509_CRL *crl, const ASN1_INTEGER *serial, const ASN1_TIME *when)
{
    X509_REVOKED *r = X509_REVOKED_new();
    bool ok = r && X509_REVOKED_set_serialNumber(r, (ASN1_INTEGER *)(uintptr_t)serial) == 1 &&
              X509_REVOKED_set_revocationDate(r, (ASN1_TIME *)(uintptr_t)when) == 1 &&
              X509_CRL_add0_revoked(crl, r) == 1;
    if (!ok)
        X509_REVOKED_free(r);
    return ok;
}

static bool add_number(X509_CRL *crl, X509_CRL *before)
{
    ASN1_INTEGER *was = before ? X509_CRL_get_ext_d2i(before, NID_crl_number, NULL, NULL) : NULL;
    ASN1_INTEGER *number = ASN1_INTEGER_new();
    bool ok = number && ASN1_INTEGER_set(number, was ? ASN1_INTEGER_get(was) + 1 : 1) == 1 &&
              X509_CRL_add1_ext_i2d(crl, NID_crl_number, number, 0, 0) == 1;
    ASN1_INTEGER_free(was);
    ASN1_INTEGER_free(number);
    return ok;
}

int cert_make_crl(X509_CRL **out, const struct cert_signer *by, X509_CRL *before,
                  const ASN1_INTEGER *const *serials, size_t n, struct err *e)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = X509_time_adj_ex(NULL, 0, -SKEW_S, NULL);
    STACK_OF(X509_REVOKED) *old = before ? X509_CRL_get_REVOKED(before) : NULL;
    *out = NULL;
    /* It does not expire before the CA: members must not stop because the CA's machine is off. */
    bool ok = crl && now && X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1 &&
              X509_CRL_set_issuer_name(crl, X509_get_subject_name(by->cert)) == 1 &&
              X509_CRL_set1_lastUpdate(crl, now) == 1 &&
              X509_CRL_set1_nextUpdate(crl, X509_get0_notAfter(by->cert)) == 1 &&
              add_number(crl, before);
    for (int i = 0; ok && old && i < sk_X509_REVOKED_num(old); i++) {
        const X509_REVOKED *r = sk_X509_REVOKED_value(old, i);
        ok = add_revoked(crl, X509_REVOKED_get0_serialNumber(r),
                         X509_REVOKED_get0_revocationDate(r));
    }
    for (size_t i = 0; ok && i < n; i++)
        ok = add_revoked(crl, serials[i], now);
    ok = ok && X509_CRL_sort(crl) == 1 && X509_CRL_sign(crl, by->key, EVP_sha256()) > 0;
    ASN1_TIME_free(now);
    if (!ok) {
        X509_CRL_free(crl);
        return failed(e, "the revocation list");
    }
    *out = crl;
    return 0;
}
