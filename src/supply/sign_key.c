/* sign_key.c - see sign_key.h. */
#include "supply/sign_key.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "base/file/file_read.h"
#include "host/sha256.h"

#define MAX_PEM ((size_t)1 << 20)

const char *sign_key_reason(char *out, size_t cap)
{
    unsigned long n = ERR_peek_last_error();
    const char *text = n ? ERR_reason_error_string(n) : NULL;
    snprintf(out, cap, "%s", text ? text : "unknown reason");
    ERR_clear_error();
    return out;
}

static const EVP_MD *digest_of(EVP_PKEY *key)
{
    switch (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC ? EVP_PKEY_get_bits(key) : 0) {
    case 256:
        return EVP_sha256();
    case 384:
        return EVP_sha384();
    case 521:
        return EVP_sha512();
    default:
        return NULL;
    }
}

static bool is_nist(EVP_PKEY *key)
{
    char name[32] = "";
    size_t n = 0;
    return EVP_PKEY_get_group_name(key, name, sizeof(name), &n) == 1 &&
           (strcmp(name, "prime256v1") == 0 || strcmp(name, "secp384r1") == 0 ||
            strcmp(name, "secp521r1") == 0);
}

static bool is_ed25519(EVP_PKEY *key)
{
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519;
}

int sign_key_check(EVP_PKEY *key, const char *what, struct err *e)
{
    if (key && digest_of(key) && is_nist(key))
        return 0;
    return err_set(e, SHOAL_EINVAL,
                   "%s: models are signed with an elliptic curve (P-256, P-384 or P-521); make a "
                   "key with 'openssl ecparam -name prime256v1 -genkey -noout -out KEY.pem'",
                   what);
}

/* An encrypted key would make OpenSSL ask at the terminal. */
static int no_passphrase(char *out, int cap, int writing, void *ctx)
{
    (void)out, (void)cap, (void)writing;
    *(bool *)ctx = true;
    return -1;
}

int sign_key_private(EVP_PKEY **out, const char *path, struct err *e)
{
    struct buf b;
    char why[128];
    bool encrypted = false;
    *out = NULL;
    buf_init(&b, MAX_PEM);
    int rc = file_read(path, &b, e);
    BIO *bio = rc == 0 ? BIO_new_mem_buf(buf_str(&b), (int)b.len) : NULL;
    if (bio)
        *out = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &encrypted);
    if (rc == 0 && encrypted)
        rc = err_set(e, SHOAL_EINVAL,
                     "%s is encrypted; decrypt it first: 'openssl pkey -in %s -out KEY.pem'", path,
                     path);
    else if (rc == 0 && !*out)
        rc = err_set(e, SHOAL_EINVAL, "%s has no private key in PEM form: %s", path,
                     sign_key_reason(why, sizeof(why)));
    if (rc == 0)
        rc = sign_key_check(*out, path, e);
    if (rc < 0) {
        EVP_PKEY_free(*out);
        *out = NULL;
    }
    ERR_clear_error();
    BIO_free(bio);
    OPENSSL_cleanse(b.data, b.data ? b.len : 0);
    buf_fini(&b);
    return rc;
}

int sign_key_public(EVP_PKEY **out, const void *pem, size_t n, const char *path, struct err *e)
{
    char why[128];
    BIO *bio = n > 0 && n <= MAX_PEM ? BIO_new_mem_buf(pem, (int)n) : NULL;
    *out = bio ? PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    if (!*out)
        return err_set(e, SHOAL_EINVAL,
                       "%s has no public key in PEM form: %s; write one with 'openssl pkey -in "
                       "KEY.pem -pubout -out KEY.pub'",
                       path, sign_key_reason(why, sizeof(why)));
    int rc = is_ed25519(*out) ? 0 : sign_key_check(*out, path, e); /* cosign may have such keys */
    if (rc < 0) {
        EVP_PKEY_free(*out);
        *out = NULL;
    }
    return rc;
}

void sign_key_hint(char out[SIGN_KEY_HINT], EVP_PKEY *key)
{
    uint8_t sum[SHA256_BYTES];
    struct sha256 s;
    char *pem = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    long n = bio && PEM_write_bio_PUBKEY(bio, key) == 1 ? BIO_get_mem_data(bio, &pem) : 0;
    sha256_begin(&s);
    sha256_add(&s, pem, n > 0 ? (size_t)n : 0);
    out[0] = 0;
    if (sha256_end(&s, sum) && n > 0)
        sha256_hex(out, sum);
    BIO_free(bio);
}

static int sign_with(struct buf *sig, EVP_PKEY *key, const EVP_MD *digest, const void *bytes,
                     size_t n_bytes, struct err *e)
{
    char why[128];
    size_t n = (size_t)EVP_PKEY_get_size(key);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    char *to = buf_room(sig, n);
    bool ok = c && to && EVP_DigestSignInit(c, NULL, digest, NULL, key) == 1 &&
              EVP_DigestSign(c, (unsigned char *)to, &n, bytes, n_bytes) == 1;
    if (ok)
        buf_used(sig, n);
    EVP_MD_CTX_free(c);
    return ok ? 0
              : err_set(e, SHOAL_EINTERNAL, "cannot sign: %s", sign_key_reason(why, sizeof(why)));
}

int sign_key_sign(struct buf *sig, EVP_PKEY *key, const struct buf *bytes, struct err *e)
{
    return sign_with(sig, key, digest_of(key), buf_str(bytes), bytes->len, e);
}

int sign_key_sign_plain(struct buf *sig, EVP_PKEY *key, const void *bytes, size_t n, struct err *e)
{
    return sign_with(sig, key, is_ed25519(key) ? NULL : EVP_sha256(), bytes, n, e);
}

static bool verify_with(EVP_PKEY *key, const EVP_MD *digest, const void *bytes, size_t n,
                        const void *sig, size_t n_sig)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c && EVP_DigestVerifyInit(c, NULL, digest, NULL, key) == 1 &&
              EVP_DigestVerify(c, sig, n_sig, bytes, n) == 1;
    EVP_MD_CTX_free(c);
    ERR_clear_error();
    return ok;
}

bool sign_key_verify(EVP_PKEY *key, const struct buf *bytes, const void *sig, size_t n_sig)
{
    const EVP_MD *digest = digest_of(key); /* NULL: Ed25519, which this format does not have */
    return digest && verify_with(key, digest, buf_str(bytes), bytes->len, sig, n_sig);
}

bool sign_key_verify_plain(EVP_PKEY *key, const void *bytes, size_t n, const void *sig,
                           size_t n_sig)
{
    return verify_with(key, is_ed25519(key) ? NULL : EVP_sha256(), bytes, n, sig, n_sig);
}
