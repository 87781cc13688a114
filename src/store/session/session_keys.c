/* session_keys.c - see session_keys.h. */
#include "store/session/session_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/ascii.h"
#include "base/mem.h"

#define FORM 1u
#define NONCE_BYTES 12u
#define TAG_BYTES 16u
#define MAX_FILE_BYTES ((size_t)1 << 20)
#define MAX_KEYS 4096u
#define TENANT_BYTES 64u

struct entry {
    char tenant[TENANT_BYTES];
    uint8_t key[SESSION_KEYS_BYTES];
};

struct session_keys {
    struct entry *list;
    uint32_t n;
    int32_t master; /* index of "*"; -1: none */
};

/* ---- the file ---- */

static bool read_hex(uint8_t *out, const char *p, size_t n)
{
    if (n != 2 * SESSION_KEYS_BYTES)
        return false;
    for (size_t i = 0; i < SESSION_KEYS_BYTES; i++) {
        int hi = ascii_hex(p[2 * i]), lo = ascii_hex(p[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        out[i] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}

/* Ignores blank lines and lines that begin with #. */
static int read_line(struct session_keys *k, const char *p, size_t n, const char *name, size_t line,
                     struct err *e)
{
    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\r' || p[n - 1] == '\t'))
        n--;
    if (n == 0 || *p == '#')
        return 0;
    const char *blank = memchr(p, ' ', n);
    size_t at = blank ? (size_t)(blank - p) : 0, key = at;
    while (key < n && p[key] == ' ')
        key++;
    if (k->n == MAX_KEYS)
        return err_set(e, SHOAL_ELIMIT, "%s: more than %u keys", name, MAX_KEYS);
    struct entry *x = &k->list[k->n];
    if (at == 0 || at >= sizeof(x->tenant) || !read_hex(x->key, p + key, n - key))
        return err_set(e, SHOAL_EFORMAT,
                       "%s:%zu: a line is a tenant, a blank and a key of 64 hex digits (openssl "
                       "rand -hex 32)",
                       name, line);
    memcpy(x->tenant, p, at);
    x->tenant[at] = '\0';
    for (uint32_t i = 0; i < k->n; i++)
        if (strcmp(k->list[i].tenant, x->tenant) == 0)
            return err_set(e, SHOAL_EFORMAT, "%s:%zu: '%s' has a key already", name, line,
                           x->tenant);
    if (strcmp(x->tenant, "*") == 0)
        k->master = (int32_t)k->n;
    k->n++;
    return 0;
}

int session_keys_parse(struct session_keys **out, const char *text, size_t n, const char *name,
                       struct err *e)
{
    struct session_keys *k = mem_zalloc(sizeof(*k));
    size_t lines = 1, line = 0;
    int rc = 0;
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    if (k) {
        k->master = -1;
        k->list = mem_zalloc_n(lines < MAX_KEYS ? lines : MAX_KEYS, sizeof(*k->list));
    }
    if (!k || !k->list) {
        session_keys_close(k);
        return err_set(e, SHOAL_ENOMEM, "out of memory for keys");
    }
    for (size_t at = 0; at < n && rc == 0;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;
        rc = read_line(k, text + at, len, name, ++line, e);
        at += len + 1;
    }
    if (rc == 0 && k->n == 0)
        rc = err_set(e, SHOAL_EFORMAT, "%s has no keys", name);
    if (rc < 0) {
        session_keys_close(k);
        return rc;
    }
    *out = k;
    return 0;
}

/* The first process writes the file; the others read it. */
static int make_file(const char *path, struct err *e)
{
    uint8_t key[SESSION_KEYS_BYTES];
    char text[2 * SESSION_KEYS_BYTES + 4] = "* ", temp[4096];
    if (RAND_bytes(key, sizeof(key)) != 1)
        return err_set(e, SHOAL_EIO, "no random numbers for a key");
    for (size_t i = 0; i < sizeof(key); i++)
        snprintf(text + 2 + 2 * i, 3, "%02x", key[i]);
    text[2 + 2 * sizeof(key)] = '\n';
    int n = snprintf(temp, sizeof(temp), "%s.%d", path, (int)getpid());
    int fd = n > 0 && (size_t)n < sizeof(temp)
                 ? open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                 : -1;
    bool ok = fd >= 0 && write(fd, text, 3 + 2 * sizeof(key)) == (ssize_t)(3 + 2 * sizeof(key)) &&
              fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    if (ok && link(temp, path) < 0 && errno != EEXIST)
        ok = false;
    int rc =
        ok ? 0 : err_set(e, SHOAL_EIO, "cannot create the key file %s: %s", path, strerror(errno));
    if (fd >= 0)
        unlink(temp);
    OPENSSL_cleanse(key, sizeof(key));
    OPENSSL_cleanse(text, sizeof(text));
    return rc;
}

int session_keys_open(struct session_keys **out, const char *path, struct err *e)
{
    struct buf text;
    struct stat st;
    int rc = 0;
    *out = NULL;
    if (access(path, F_OK) != 0)
        rc = make_file(path, e);
    int fd = rc == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (rc == 0 && (fd < 0 || fstat(fd, &st) < 0))
        rc = err_set(e, SHOAL_EIO, "cannot open the key file %s: %s", path, strerror(errno));
    if (rc == 0 && (st.st_mode & 077))
        rc = err_set(e, SHOAL_EINVAL, "others may read the key file %s: chmod 600 it", path);
    buf_init(&text, MAX_FILE_BYTES);
    for (ssize_t n = 1; rc == 0 && n > 0;) {
        char *room = buf_room(&text, 4096);
        n = room ? read(fd, room, 4096) : -1;
        if (n < 0)
            rc = err_set(e, SHOAL_EIO, "cannot read the key file %s", path);
        else
            buf_used(&text, (size_t)n);
    }
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        rc = session_keys_parse(out, buf_str(&text), text.len, path, e);
    if (text.data)
        OPENSSL_cleanse(text.data, text.len);
    buf_fini(&text);
    return rc;
}

void session_keys_close(struct session_keys *k)
{
    if (!k)
        return;
    if (k->list)
        OPENSSL_cleanse(k->list, k->n * sizeof(*k->list));
    mem_free(k->list);
    mem_free(k);
}

/* ---- encryption ---- */

/* The tenant's own key, or one derived from that of "*": HKDF with one block of SHA-256. */
static int key_of(const struct session_keys *k, const char *tenant, uint8_t out[SESSION_KEYS_BYTES],
                  struct err *e)
{
    static const uint8_t salt[] = "shoal session key";
    uint8_t inner[SESSION_KEYS_BYTES], info[TENANT_BYTES + 1];
    unsigned n = 0;
    for (uint32_t i = 0; i < k->n; i++)
        if (strcmp(k->list[i].tenant, tenant) == 0 && (int32_t)i != k->master) {
            memcpy(out, k->list[i].key, SESSION_KEYS_BYTES);
            return 0;
        }
    size_t len = strlen(tenant);
    if (k->master < 0 || len >= TENANT_BYTES)
        return err_set(e, SHOAL_EINVAL,
                       "the key file of sessions has no key for '%.60s', and none for '*'", tenant);
    memcpy(info, tenant, len);
    info[len] = 1; /* number of the block */
    bool ok = HMAC(EVP_sha256(), salt, sizeof(salt) - 1, k->list[k->master].key, SESSION_KEYS_BYTES,
                   inner, &n) &&
              HMAC(EVP_sha256(), inner, sizeof(inner), info, len + 1, out, &n);
    OPENSSL_cleanse(inner, sizeof(inner));
    return ok ? 0 : err_set(e, SHOAL_EINTERNAL, "cannot derive a key");
}

/* Bound to the tenant and the conversation. */
static bool begin(EVP_CIPHER_CTX *c, const uint8_t *key, const uint8_t *nonce, const char *tenant,
                  const char *id, bool seal)
{
    int n;
    return EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, NULL, NULL, seal) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_IVLEN, NONCE_BYTES, NULL) == 1 &&
           EVP_CipherInit_ex(c, NULL, NULL, key, nonce, seal) == 1 &&
           EVP_CipherUpdate(c, NULL, &n, (const uint8_t *)tenant, (int)strlen(tenant) + 1) == 1 &&
           EVP_CipherUpdate(c, NULL, &n, (const uint8_t *)id, (int)strlen(id) + 1) == 1;
}

int session_keys_seal(const struct session_keys *k, const char *tenant, const char *id,
                      const void *p, size_t n, struct buf *out, struct err *e)
{
    uint8_t key[SESSION_KEYS_BYTES];
    int rc = key_of(k, tenant, key, e), len = 0, end = 0;
    if (rc < 0)
        return rc;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    uint8_t *to = n < INT32_MAX / 2 ? (uint8_t *)buf_room(out, n + SESSION_KEYS_OVERHEAD) : NULL;
    bool ok = c && to;
    if (ok)
        to[0] = FORM;
    ok = ok && RAND_bytes(to + 1, NONCE_BYTES) == 1 && begin(c, key, to + 1, tenant, id, true) &&
         EVP_CipherUpdate(c, to + 1 + NONCE_BYTES, &len, p, (int)n) == 1 &&
         EVP_CipherFinal_ex(c, to + 1 + NONCE_BYTES + len, &end) == 1 && (size_t)(len + end) == n &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, to + 1 + NONCE_BYTES + n) == 1;
    if (ok)
        buf_used(out, n + SESSION_KEYS_OVERHEAD);
    EVP_CIPHER_CTX_free(c);
    OPENSSL_cleanse(key, sizeof(key));
    return ok ? 0 : err_set(e, out->rc < 0 ? out->rc : SHOAL_EINTERNAL, "cannot encrypt");
}

int session_keys_unseal(const struct session_keys *k, const char *tenant, const char *id,
                        const void *p, size_t n, struct buf *out, struct err *e)
{
    uint8_t key[SESSION_KEYS_BYTES];
    const uint8_t *from = p;
    int len = 0, end = 0;
    if (n < SESSION_KEYS_OVERHEAD || from[0] != FORM || n > INT32_MAX / 2)
        return err_set(e, SHOAL_EFORMAT, "a conversation is stored in another format");
    int rc = key_of(k, tenant, key, e);
    if (rc < 0)
        return rc;
    size_t text = n - SESSION_KEYS_OVERHEAD;
    uint8_t tag[TAG_BYTES];
    memcpy(tag, from + n - TAG_BYTES, TAG_BYTES);
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    uint8_t *to = (uint8_t *)buf_room(out, text + 1);
    bool ok = c && to && begin(c, key, from + 1, tenant, id, false) &&
              EVP_CipherUpdate(c, to, &len, from + 1 + NONCE_BYTES, (int)text) == 1 &&
              EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1 &&
              EVP_CipherFinal_ex(c, to + len, &end) == 1 && (size_t)(len + end) == text;
    if (ok)
        buf_used(out, text);
    EVP_CIPHER_CTX_free(c);
    OPENSSL_cleanse(key, sizeof(key));
    return ok ? 0
              : err_set(e, out->rc < 0 ? out->rc : SHOAL_EFORMAT,
                        "cannot decrypt a stored conversation: the key file is different, or the "
                        "data was modified");
}
