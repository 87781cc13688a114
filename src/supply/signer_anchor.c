/* signer_anchor.c - see signer_anchor.h. */
#include "supply/signer_anchor.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/file/file_read.h"
#include "base/mem.h"
#include "supply/minisign.h"
#include "supply/sign_key.h"

#define MAX_FILE ((size_t)4 << 20)

struct signer_anchor {
    EVP_PKEY *key;
    char hint[SIGN_KEY_HINT];
    X509_STORE *authorities;
    char *subject;
    bool is_minisign;
    struct minisign_key minisign;
};

const char *signer_method_name(enum signer_method m)
{
    static const char *const names[] = {"none", "key", "certificate", "minisign"};
    return names[m];
}

/* ---- opening ---- */

static int take_key(struct signer_anchor *a, const struct buf *b, const char *path, struct err *e)
{
    a->is_minisign = minisign_is(buf_str(b), b->len);
    if (a->is_minisign) {
        int rc = minisign_read_key(&a->minisign, buf_str(b), b->len, e);
        return rc < 0 ? err_wrap(e, "%s", path) : 0;
    }
    int rc = sign_key_public(&a->key, buf_str(b), b->len, path, e);
    if (rc == 0)
        sign_key_hint(a->hint, a->key);
    return rc < 0 || a->hint[0] ? rc : err_set(e, SHOAL_ENOMEM, "a public key");
}

static int take_certificates(struct signer_anchor *a, const struct buf *b, const char *path,
                             struct err *e)
{
    BIO *bio = BIO_new_mem_buf(buf_str(b), (int)b->len);
    STACK_OF(X509_INFO) *list = bio ? PEM_X509_INFO_read_bio(bio, NULL, NULL, NULL) : NULL;
    int n = list ? sk_X509_INFO_num(list) : 0, n_certificates = 0, n_lists = 0;
    bool ok = (a->authorities = X509_STORE_new()) != NULL;
    for (int i = 0; ok && i < n; i++) {
        X509_INFO *x = sk_X509_INFO_value(list, i);
        if (x->x509)
            ok = X509_STORE_add_cert(a->authorities, x->x509) == 1, n_certificates++;
        if (ok && x->crl)
            ok = X509_STORE_add_crl(a->authorities, x->crl) == 1, n_lists++;
    }
    if (ok && n_lists > 0)
        ok = X509_STORE_set_flags(a->authorities, X509_V_FLAG_CRL_CHECK) == 1;
    sk_X509_INFO_pop_free(list, X509_INFO_free);
    BIO_free(bio);
    ERR_clear_error();
    if (ok && n_certificates > 0)
        return 0;
    return err_set(e, SHOAL_EINVAL, "%s has no certificates in PEM form", path);
}

int signer_anchor_open(struct signer_anchor **out, const struct signer_anchor_opts *o,
                       struct err *e)
{
    const char *path = o->key ? o->key : o->certificates;
    struct signer_anchor *a = mem_zalloc(sizeof(*a));
    struct buf b;
    buf_init(&b, MAX_FILE);
    int rc = a ? file_read(path, &b, e) : err_set(e, SHOAL_ENOMEM, "a signer");
    if (rc == 0 && o->subject && !(a->subject = mem_strdup(o->subject)))
        rc = err_set(e, SHOAL_ENOMEM, "a signer");
    if (rc == 0)
        rc = o->key ? take_key(a, &b, path, e) : take_certificates(a, &b, path, e);
    buf_fini(&b);
    *out = rc == 0 ? a : NULL;
    if (rc < 0)
        signer_anchor_close(a);
    return rc;
}

void signer_anchor_close(struct signer_anchor *a)
{
    if (!a)
        return;
    EVP_PKEY_free(a->key);
    X509_STORE_free(a->authorities);
    mem_free(a->subject);
    mem_free(a);
}

bool signer_anchor_is_minisign(const struct signer_anchor *a)
{
    return a->is_minisign;
}

/* ---- checking ---- */

static int check_plain(EVP_PKEY *key, const struct oms_bundle *b, struct err *e)
{
    for (uint32_t i = 0; i < b->n_plain; i++)
        if (sign_key_verify_plain(key, b->plain[i].payload.p, b->plain[i].payload.n,
                                  b->plain[i].signature.p, b->plain[i].signature.n))
            return 0;
    return err_set(e, SHOAL_EFORMAT, "no signature of cosign was made with this key");
}

static int check_signature(EVP_PKEY *key, const struct oms_bundle *b, struct err *e)
{
    if (b->n_plain)
        return check_plain(key, b, e);
    struct buf text;
    buf_init(&text, OMS_MAX_BYTES + 256);
    oms_bundle_signed(&text, b);
    int rc = text.rc ? err_set(e, text.rc, "a signature")
             : sign_key_verify(key, &text, b->signature.p, b->signature.n)
                 ? 0
                 : err_set(e, SHOAL_EFORMAT,
                           "the signature does not match: its list of files was changed, or it was "
                           "made with another key");
    buf_fini(&text);
    return rc;
}

static int check_key(const struct signer_anchor *a, const struct oms_bundle *b,
                     struct signed_by *by, struct err *e)
{
    if (b->n_certificates)
        return err_set(e, SHOAL_EFORMAT,
                       "it is signed with a certificate: a public key cannot check it");
    if (b->hint[0] && strcmp(b->hint, a->hint) != 0)
        return err_set(e, SHOAL_EFORMAT, "it is signed with another key: %.16s..., not %.16s...",
                       b->hint, a->hint);
    snprintf(by->key, sizeof(by->key), "%s", a->hint);
    by->method = SIGNER_KEY;
    return check_signature(a->key, b, e);
}

static X509 *certificate(const struct oms_bytes *der)
{
    const unsigned char *p = der->p;
    X509 *c = d2i_X509(NULL, &p, (long)der->n);
    if (c && p != der->p + der->n) {
        X509_free(c);
        c = NULL;
    }
    return c;
}

static bool may_sign(X509 *c)
{
    /* UINT32_MAX: it has no such extension */
    uint32_t usage = X509_get_key_usage(c), extended = X509_get_extended_key_usage(c);
    return (usage != UINT32_MAX && (usage & KU_DIGITAL_SIGNATURE)) ||
           (extended != UINT32_MAX && (extended & XKU_CODE_SIGN));
}

static int check_chain(const struct signer_anchor *a, X509 *own, STACK_OF(X509) * others,
                       struct err *e)
{
    X509_STORE_CTX *c = X509_STORE_CTX_new();
    int rc = 0;
    if (!c || X509_STORE_CTX_init(c, a->authorities, own, others) != 1)
        rc = err_set(e, SHOAL_ENOMEM, "a certificate");
    else if (X509_verify_cert(c) != 1)
        rc = err_set(e, SHOAL_EFORMAT, "the signer's certificate is not trusted: %s",
                     X509_verify_cert_error_string(X509_STORE_CTX_get_error(c)));
    X509_STORE_CTX_free(c);
    ERR_clear_error();
    return rc;
}

static int check_own(const struct signer_anchor *a, X509 *own, struct signed_by *by, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    unsigned n = 0;
    by->method = SIGNER_CERTIFICATE;
    if (X509_NAME_get_text_by_NID(X509_get_subject_name(own), NID_commonName, by->subject,
                                  sizeof(by->subject)) < 0)
        by->subject[0] = 0;
    if (X509_digest(own, EVP_sha256(), sum, &n) == 1)
        sha256_hex(by->key, sum);
    if (!may_sign(own))
        return err_set(e, SHOAL_EFORMAT,
                       "the signer's certificate is not for signing: it needs digitalSignature or "
                       "codeSigning");
    if (a->subject && strcmp(a->subject, by->subject) != 0)
        return err_set(e, SHOAL_EFORMAT, "it is signed by '%.64s', not by '%.64s'", by->subject,
                       a->subject);
    return sign_key_check(X509_get0_pubkey(own), "the signer's certificate", e);
}

static int check_certificates(const struct signer_anchor *a, const struct oms_bundle *b,
                              struct signed_by *by, struct err *e)
{
    STACK_OF(X509) *others = sk_X509_new_null();
    X509 *own = b->n_certificates ? certificate(&b->certificates[0]) : NULL;
    int rc = own ? 0
                 : err_set(e, SHOAL_EFORMAT,
                           b->n_certificates ? "the signer's certificate cannot be read"
                                             : "it is signed with a key, without a certificate");
    for (uint32_t i = 1; rc == 0 && i < b->n_certificates; i++) {
        X509 *c = certificate(&b->certificates[i]);
        if (!c)
            rc = err_set(e, SHOAL_EFORMAT, "certificate %u of the signature cannot be read", i + 1);
        else if (!others || sk_X509_push(others, c) <= 0)
            rc = err_set(e, SHOAL_ENOMEM, "a certificate"), X509_free(c);
    }
    if (rc == 0)
        rc = check_chain(a, own, others, e);
    if (rc == 0)
        rc = check_own(a, own, by, e);
    if (rc == 0)
        rc = check_signature(X509_get0_pubkey(own), b, e);
    sk_X509_pop_free(others, X509_free);
    X509_free(own);
    ERR_clear_error();
    return rc;
}

void signer_anchor_key(const struct signer_anchor *a, char out[65])
{
    out[0] = '\0';
    if (a->is_minisign)
        minisign_id(out, a->minisign.id);
    else if (a->key)
        memcpy(out, a->hint, sizeof(a->hint));
}

int signer_anchor_check(const struct signer_anchor *a, const struct oms_bundle *b,
                        struct signed_by *by, struct err *e)
{
    *by = (struct signed_by){.method = SIGNER_NONE};
    if (a->is_minisign)
        return err_set(e, SHOAL_EFORMAT, "it is not a signature of minisign, but the key is");
    return a->key ? check_key(a, b, by, e) : check_certificates(a, b, by, e);
}

int signer_anchor_check_minisign(const struct signer_anchor *a, const struct minisign *m,
                                 const char *path, struct signed_by *by, struct err *e)
{
    *by = (struct signed_by){.method = SIGNER_MINISIGN};
    minisign_id(by->key, m->id);
    if (!a->is_minisign)
        return err_set(e, SHOAL_EFORMAT, "it is a signature of minisign, but the key is not");
    return minisign_check(m, &a->minisign, path, e);
}
