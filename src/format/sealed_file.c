/* sealed_file.c - see sealed_file.h. */
#include "format/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include "base/ascii.h"
#include "base/file/file_open.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rd.h"
#include "base/thread/thread.h"

#define MAGIC "SHOALENC"
#define VERSION 1u
#define KEY_BYTES FILE_KEY_BYTES
#define NONCE_BYTES 12u
#define SALT_AT 24u
#define SALT_BYTES 32u
#define BOUND_BYTES 56u /* of the header, which the wrapped key's tag covers */
#define NONCE_AT BOUND_BYTES
#define WRAPPED_AT (NONCE_AT + NONCE_BYTES)
#define TAG_AT (WRAPPED_AT + KEY_BYTES)
#define MIN_LOG_N 10u
#define MAX_LOG_N 20u /* 1 GiB: a header must not take all memory */
#define MIN_LOG_CHUNK 6u
#define MAX_LOG_CHUNK 24u
#define MAX_KEY_FILE 4096u
#define MIN_PASSPHRASE 8u
#define MAX_THREADS 8u
#define CHUNKS_PER_THREAD 4u /* fewer are not worth a thread */

/* ---- AES-256-GCM ---- */

struct gcm {
    EVP_CIPHER_CTX *ctx;
    bool seal;
};

static bool gcm_init(struct gcm *g, const uint8_t key[KEY_BYTES], bool seal)
{
    g->ctx = EVP_CIPHER_CTX_new();
    g->seal = seal;
    return g->ctx &&
           EVP_CipherInit_ex(g->ctx, EVP_aes_256_gcm(), NULL, key, NULL, seal ? 1 : 0) == 1;
}

/* Encrypts to out and tag, or decrypts what has this tag.  bound: bytes that the tag covers too. */
static bool gcm_run(const struct gcm *g, const uint8_t *nonce, const void *bound, size_t n_bound,
                    const uint8_t *in, uint8_t *out, size_t n, uint8_t tag[SEALED_TAG_BYTES])
{
    int k;
    bool ok = EVP_CipherInit_ex(g->ctx, NULL, NULL, NULL, nonce, g->seal ? 1 : 0) == 1;
    if (ok && n_bound)
        ok = EVP_CipherUpdate(g->ctx, NULL, &k, bound, (int)n_bound) == 1;
    if (ok && n)
        ok = EVP_CipherUpdate(g->ctx, out, &k, in, (int)n) == 1;
    if (ok && !g->seal)
        ok = EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_SET_TAG, SEALED_TAG_BYTES, tag) == 1;
    ok = ok && EVP_CipherFinal_ex(g->ctx, out + n, &k) == 1;
    return ok && (!g->seal ||
                  EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_GET_TAG, SEALED_TAG_BYTES, tag) == 1);
}

static void chunk_nonce(uint8_t out[NONCE_BYTES], uint64_t index)
{
    memset(out, 0, NONCE_BYTES);
    memcpy(out, &index, sizeof(index));
}

/* ---- the header ---- */

bool sealed_is(const void *bytes, size_t n)
{
    return n >= sizeof(MAGIC) - 1 && memcmp(bytes, MAGIC, sizeof(MAGIC) - 1) == 0;
}

static uint64_t n_chunks(const struct sealed_head *h)
{
    return h->n_bytes / h->chunk + (h->n_bytes % h->chunk != 0);
}

int sealed_head_read(struct sealed_head *out, const void *bytes, size_t n, uint64_t file_bytes,
                     struct err *e)
{
    struct rd r = rd_make(bytes, n);
    *out = (struct sealed_head){0};
    if (!sealed_is(bytes, n))
        return err_set(e, SHOAL_EFORMAT, "not an encrypted model");
    (void)rd_take(&r, sizeof(MAGIC) - 1);
    const uint8_t *small = rd_take(&r, 4);
    const uint32_t head = rd_u32(&r);
    out->n_bytes = rd_u64(&r);
    if (r.bad || n < SEALED_HEAD_BYTES)
        return err_set(e, SHOAL_EFORMAT, "an encrypted model that ends in its header");
    if (small[0] != VERSION || (small[1] != SEALED_PASSPHRASE && small[1] != SEALED_KEY_FILE))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "encrypted in a way that is not known (version %u, key of kind %u); a newer "
                       "Shoal may read it",
                       small[0], small[1]);
    const bool scrypt = small[1] == SEALED_PASSPHRASE;
    if (head != SEALED_HEAD_BYTES || small[3] < MIN_LOG_CHUNK || small[3] > MAX_LOG_CHUNK ||
        (scrypt ? small[2] < MIN_LOG_N || small[2] > MAX_LOG_N : small[2] != 0))
        return err_set(e, SHOAL_EFORMAT, "its header is damaged");
    out->wrap = (enum sealed_wrap)small[1];
    out->log_n = small[2];
    out->chunk = (size_t)1 << small[3];
    uint64_t want;
    if (out->n_bytes == 0 ||
        __builtin_add_overflow(out->n_bytes, SEALED_HEAD_BYTES + n_chunks(out) * SEALED_TAG_BYTES,
                               &want) ||
        want != file_bytes)
        return err_set(e, SHOAL_EFORMAT,
                       "the file has %llu bytes, which is not what its header says: it was cut, "
                       "or its header changed",
                       (unsigned long long)file_bytes);
    return 0;
}

static int read_head(struct sealed_head *h, uint8_t head[SEALED_HEAD_BYTES], int fd,
                     const struct stat *st, struct err *e)
{
    ssize_t n = pread(fd, head, SEALED_HEAD_BYTES, 0);
    return sealed_head_read(h, head, n > 0 ? (size_t)n : 0, (uint64_t)st->st_size, e);
}

int sealed_check(const char *path, struct err *e)
{
    uint8_t head[SEALED_HEAD_BYTES] = {0};
    struct sealed_head h;
    struct stat st;
    struct err why = {0};
    int fd = file_open_regular(path, &st);
    if (fd < 0)
        return 0;
    int rc = read_head(&h, head, fd, &st, &why);
    close(fd);
    if (!sealed_is(head, sizeof(head)))
        return 0;
    return rc < 0 ? err_set(e, rc, "%s: %.200s", path, why.msg) : 1;
}

/* ---- keys ---- */

/* What a key file holds. */
struct secret {
    uint8_t bytes[MAX_KEY_FILE];
    size_t n;
};

static int read_secret(struct secret *s, const char *path, struct err *e)
{
    struct stat st;
    int fd = file_open_regular(path, &st), rc = 0;
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open the key file %s: %s", path,
                       file_open_reason(errno));
    ssize_t n = read(fd, s->bytes, sizeof(s->bytes));
    if (st.st_mode & 077)
        rc = err_set(e, SHOAL_EINVAL, "others may read the key file %s: chmod 600 it", path);
    else if (n <= 0 || (size_t)n != (size_t)st.st_size)
        rc = err_set(e, SHOAL_EINVAL, "the key file %s is empty, or larger than %u bytes", path,
                     MAX_KEY_FILE);
    close(fd);
    s->n = n > 0 ? (size_t)n : 0;
    return rc;
}

static void trim(struct secret *s)
{
    while (s->n > 0 && (s->bytes[s->n - 1] == '\n' || s->bytes[s->n - 1] == '\r'))
        s->n--;
}

static bool from_hex(struct secret *s)
{
    for (size_t i = 0; i < KEY_BYTES; i++) {
        int hi = ascii_hex((char)s->bytes[2 * i]), lo = ascii_hex((char)s->bytes[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        s->bytes[i] = (uint8_t)(hi << 4 | lo);
    }
    s->n = KEY_BYTES;
    return true;
}

static int from_key(uint8_t out[KEY_BYTES], struct secret *s, const uint8_t *salt, const char *path,
                    struct err *e)
{
    unsigned n = 0;
    if (s->n != KEY_BYTES)
        trim(s);
    if (s->n != KEY_BYTES && !(s->n == (size_t)2 * KEY_BYTES && from_hex(s)))
        return err_set(e, SHOAL_EINVAL,
                       "%s is not a key: a key is 64 hex digits or 32 bytes; make one with "
                       "'openssl rand -hex 32'",
                       path);
    return HMAC(EVP_sha256(), s->bytes, KEY_BYTES, salt, SALT_BYTES, out, &n) && n == KEY_BYTES
               ? 0
               : err_set(e, SHOAL_EINTERNAL, "no HMAC in the library");
}

static int from_passphrase(uint8_t out[KEY_BYTES], struct secret *s, const uint8_t *salt,
                           uint32_t log_n, const char *path, struct err *e)
{
    const uint64_t n = (uint64_t)1 << log_n;
    trim(s);
    if (s->n < MIN_PASSPHRASE)
        return err_set(e, SHOAL_EINVAL, "the passphrase in %s has less than %u bytes", path,
                       MIN_PASSPHRASE);
    if (EVP_PBE_scrypt((const char *)s->bytes, s->n, salt, SALT_BYTES, n, 8, 1,
                       2 * 1024 * n + (1 << 20), out, KEY_BYTES) == 1)
        return 0;
    return err_set(e, SHOAL_ENOMEM, "the passphrase needs %llu MiB of memory to be checked",
                   (unsigned long long)(n >> 10));
}

/* What opens a file: what a key file holds, or a key. */
struct opener {
    const char *key_file; /* NULL: key */
    const uint8_t *key;
};

static const char *opener_name(const struct opener *by)
{
    return by->key_file ? by->key_file : "the model's key";
}

/* The key that wraps the file's. */
static int user_key(uint8_t out[KEY_BYTES], const struct sealed_head *h, const uint8_t *salt,
                    const struct opener *by, struct err *e)
{
    const char *name = opener_name(by);
    struct secret *s = mem_zalloc(sizeof(*s));
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "a key");
    int rc = by->key_file ? read_secret(s, by->key_file, e) : 0;
    if (!by->key_file) {
        memcpy(s->bytes, by->key, KEY_BYTES);
        s->n = KEY_BYTES;
    }
    if (rc == 0)
        rc = h->wrap == SEALED_KEY_FILE ? from_key(out, s, salt, name, e)
                                        : from_passphrase(out, s, salt, h->log_n, name, e);
    OPENSSL_cleanse(s, sizeof(*s));
    mem_free(s);
    return rc;
}

/* Encrypts the file's key into the header, or decrypts it. */
static int wrap_key(uint8_t key[KEY_BYTES], uint8_t *head, const struct sealed_head *h,
                    const struct opener *by, bool seal, struct err *e)
{
    uint8_t outer[KEY_BYTES];
    struct gcm g = {NULL, seal};
    int rc = user_key(outer, h, head + SALT_AT, by, e);
    if (rc < 0)
        return rc;
    if (!gcm_init(&g, outer, seal) ||
        !gcm_run(&g, head + NONCE_AT, head, BOUND_BYTES, seal ? key : head + WRAPPED_AT,
                 seal ? head + WRAPPED_AT : key, KEY_BYTES, head + TAG_AT))
        rc = err_set(e, SHOAL_EINVAL,
                     "%s does not open it: it was encrypted with another %s, or its header was "
                     "changed",
                     opener_name(by), h->wrap == SEALED_KEY_FILE ? "key" : "passphrase");
    EVP_CIPHER_CTX_free(g.ctx);
    OPENSSL_cleanse(outer, sizeof(outer));
    return rc;
}

/* ---- a file that is opened ---- */

struct sealed {
    struct sealed_head head;
    uint8_t key[KEY_BYTES];
    int fd;
    struct stat st;
};

static void close_sealed(struct sealed *s)
{
    if (s->fd >= 0)
        close(s->fd);
    OPENSSL_cleanse(s->key, sizeof(s->key));
    s->fd = -1;
}

static int open_sealed(struct sealed *s, const char *path, const struct opener *by, struct err *e)
{
    uint8_t head[SEALED_HEAD_BYTES];
    s->fd = file_open_regular(path, &s->st);
    if (s->fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %s", path, file_open_reason(errno));
    int rc = read_head(&s->head, head, s->fd, &s->st, e);
    if (rc == 0)
        rc = wrap_key(s->key, head, &s->head, by, false, e);
    if (rc == 0)
        return 0;
    close_sealed(s);
    return err_wrap(e, "%s", path);
}

static size_t chunk_bytes(const struct sealed_head *h, uint64_t i)
{
    const uint64_t left = h->n_bytes - i * h->chunk;
    return left < h->chunk ? (size_t)left : h->chunk;
}

/* Reads and decrypts chunk i.  buf: room for a chunk and its tag. */
static bool read_chunk(const struct sealed *s, const struct gcm *g, uint64_t i, uint8_t *buf,
                       uint8_t *out)
{
    uint8_t nonce[NONCE_BYTES];
    const size_t n = chunk_bytes(&s->head, i);
    const uint64_t at = SEALED_HEAD_BYTES + i * (s->head.chunk + SEALED_TAG_BYTES);
    if (pread(s->fd, buf, n + SEALED_TAG_BYTES, (off_t)at) != (ssize_t)(n + SEALED_TAG_BYTES))
        return false;
    chunk_nonce(nonce, i);
    return gcm_run(g, nonce, NULL, 0, buf, out, n, buf + n);
}

static int damaged(const char *path, const struct sealed_head *h, uint64_t i, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT,
                   "%s: bytes %llu to %llu of the model were changed since it was encrypted", path,
                   (unsigned long long)(i * h->chunk),
                   (unsigned long long)(i * h->chunk + chunk_bytes(h, i)));
}

/* ---- into memory ---- */

/* A range of chunks, and which of them are there already. */
struct opening {
    const struct sealed *s;
    uint8_t *out, *done; /* done: NULL, or a byte for each chunk */
    uint64_t end;
    _Atomic uint64_t next, bad; /* bad: the index of a chunk that failed, and 1 */
};

/* Without memory it leaves the chunks to the other threads. */
static void *open_chunks(void *arg)
{
    struct opening *o = arg;
    struct gcm g = {NULL, false};
    const size_t chunk = o->s->head.chunk;
    uint8_t *buf = mem_alloc(chunk + SEALED_TAG_BYTES);
    const bool ok = buf && gcm_init(&g, o->s->key, false);
    for (uint64_t i; ok && !atomic_load(&o->bad) && (i = atomic_fetch_add(&o->next, 1)) < o->end;) {
        if (o->done && o->done[i])
            continue;
        if (!read_chunk(o->s, &g, i, buf, o->out + i * chunk))
            atomic_store(&o->bad, i + 1);
        else if (o->done)
            o->done[i] = 1;
    }
    EVP_CIPHER_CTX_free(g.ctx);
    mem_free(buf);
    return NULL;
}

/* This thread works too: without others it takes longer. */
static void open_all(struct opening *o)
{
    pthread_t others[MAX_THREADS];
    struct err none;
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t work = (o->end - o->next) / CHUNKS_PER_THREAD;
    uint32_t n = 0;
    while (n + 1 < (uint64_t)cpus && n < work && n + 1 < MAX_THREADS &&
           thread_create_numbered(&others[n], "decrypt", n, open_chunks, o, &none) == 0)
        n++;
    open_chunks(o);
    while (n > 0)
        pthread_join(others[--n], NULL);
}

static int fill(struct opening *o, const char *path, struct err *e)
{
    open_all(o);
    if (o->bad)
        return damaged(path, &o->s->head, o->bad - 1, e);
    return o->next < o->end ? err_set(e, SHOAL_ENOMEM, "%s: out of memory to decrypt it", path) : 0;
}

/* What is made of the file is encrypted by a key that follows from the file's, and belongs to
 * exactly this file. */
static int derive(struct file_secret *out, const struct sealed *s, struct err *e)
{
    static const char use[] = "shoal: made of a model";
    const uint64_t id[] = {s->st.st_dev,
                           s->st.st_ino,
                           (uint64_t)s->st.st_size,
                           (uint64_t)s->st.st_mtim.tv_sec,
                           (uint64_t)s->st.st_mtim.tv_nsec,
                           (uint64_t)s->st.st_ctim.tv_sec,
                           (uint64_t)s->st.st_ctim.tv_nsec};
    unsigned n = 0;
    out->source = hash_bytes(id, sizeof(id), 0);
    return HMAC(EVP_sha256(), s->key, KEY_BYTES, (const uint8_t *)use, sizeof(use) - 1, out->key,
                &n) &&
                   n == KEY_BYTES
               ? 0
               : err_set(e, SHOAL_EINTERNAL, "no HMAC in the library");
}

struct parts {
    struct file_rest rest; /* first */
    struct sealed s;
    char *path;
    uint8_t *bytes, *done;
};

static int parts_fill(struct file_rest *r, size_t at, size_t n, struct err *e)
{
    struct parts *p = (struct parts *)r;
    const size_t chunk = p->s.head.chunk;
    struct opening o = {.s = &p->s, .out = p->bytes, .done = p->done, .next = at / chunk};
    o.end = n ? (at + n - 1) / chunk + 1 : o.next;
    while (o.next < o.end && p->done[o.next]) /* mostly: nothing to do */
        o.next++;
    return o.next < o.end ? fill(&o, p->path, e) : 0;
}

static void parts_close(struct file_rest *r)
{
    struct parts *p = (struct parts *)r;
    close_sealed(&p->s);
    mem_free(p->path);
    mem_free(p->done);
    mem_free(p);
}

int sealed_open_parts(struct file_map *out, const char *path, const char *key_file, struct err *e)
{
    const struct opener by = {.key_file = key_file};
    struct sealed s;
    *out = (struct file_map){0};
    int rc = open_sealed(&s, path, &by, e);
    if (rc < 0)
        return rc;
    struct parts *p = mem_zalloc(sizeof(*p));
    if (!p) {
        close_sealed(&s);
        return err_set(e, SHOAL_ENOMEM, "%s", path);
    }
    *p = (struct parts){.rest = {parts_fill, parts_close},
                        .s = s,
                        .path = mem_strdup(path),
                        .done = mem_zalloc_n((size_t)n_chunks(&s.head), 1)};
    OPENSSL_cleanse(s.key, sizeof(s.key));
    rc = p->path && p->done ? file_map_secret(out, &p->bytes, p->s.head.n_bytes, e)
                            : err_set(e, SHOAL_ENOMEM, "%s", path);
    if (rc == 0)
        rc = derive(&out->secret, &p->s, e);
    out->rest = &p->rest;
    if (rc < 0) {
        file_map_close(out);
        return rc;
    }
    return 0;
}

int sealed_open(struct file_map *out, const char *path, const char *key_file, struct err *e)
{
    int rc = sealed_open_parts(out, path, key_file, e);
    if (rc < 0)
        return rc;
    if ((rc = file_map_need(out, 0, out->n_bytes, e)) < 0) {
        file_map_close(out);
        return rc;
    }
    out->rest->close(out->rest);
    out->rest = NULL;
    file_map_filled(out);
    return 0;
}

int sealed_get(const char *path, const uint8_t key[FILE_KEY_BYTES], uint8_t *out, size_t n,
               struct err *e)
{
    const struct opener by = {.key = key};
    struct sealed s;
    int rc = open_sealed(&s, path, &by, e);
    if (rc < 0)
        return rc;
    struct opening o = {.s = &s, .out = out, .end = n_chunks(&s.head)};
    (void)posix_fadvise(s.fd, 0, 0, POSIX_FADV_WILLNEED); /* reads on while chunks are decrypted */
    rc = s.head.n_bytes == n ? fill(&o, path, e)
                             : err_set(e, SHOAL_EFORMAT, "%s has another size", path);
    close_sealed(&s);
    return rc;
}

/* ---- from file to file ---- */

struct target {
    char path[PATH_MAX];
    int fd;
};

static int target_open(struct target *t, const char *out, struct err *e)
{
    int n = snprintf(t->path, sizeof(t->path), "%s.new", out);
    t->fd = n > 0 && (size_t)n < sizeof(t->path)
                ? open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)
                : -1;
    return t->fd < 0 ? err_set(e, SHOAL_EIO, "cannot write %s.new: %s", out, strerror(errno)) : 0;
}

static int target_put(const struct target *t, const void *bytes, size_t n, struct err *e)
{
    const uint8_t *p = bytes;
    while (n > 0) {
        ssize_t k = write(t->fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_set(e, SHOAL_EIO, "cannot write %s: %s", t->path, strerror(errno));
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* Gives the file its name, or removes it. */
static int target_end(struct target *t, const char *out, int rc, struct err *e)
{
    if (t->fd < 0)
        return rc;
    if (rc == 0 && (fsync(t->fd) < 0 || rename(t->path, out) < 0))
        rc = err_set(e, SHOAL_EIO, "cannot write %s: %s", out, strerror(errno));
    close(t->fd);
    if (rc < 0)
        unlink(t->path);
    return rc;
}

/* A header with a new key, and the key. */
static int make_head(uint8_t head[SEALED_HEAD_BYTES], struct sealed_head *h, struct sealed *s,
                     const struct sealed_opts *o, const struct opener *by, struct err *e)
{
    const uint8_t small[] = {VERSION, (uint8_t)o->wrap, (uint8_t)h->log_n,
                             (uint8_t)(o->log_chunk ? o->log_chunk : 18)};
    const uint32_t n = SEALED_HEAD_BYTES;
    memset(head, 0, SEALED_HEAD_BYTES);
    memcpy(head, MAGIC, sizeof(MAGIC) - 1);
    memcpy(head + 8, small, sizeof(small));
    memcpy(head + 12, &n, sizeof(n));
    memcpy(head + 16, &h->n_bytes, sizeof(h->n_bytes));
    h->chunk = (size_t)1 << small[3];
    if (RAND_bytes(head + SALT_AT, SALT_BYTES) != 1 ||
        RAND_bytes(head + NONCE_AT, NONCE_BYTES) != 1 || RAND_priv_bytes(s->key, KEY_BYTES) != 1)
        return err_set(e, SHOAL_EIO, "no random numbers for a key");
    return wrap_key(s->key, head, h, by, true, e);
}

static int encrypt_chunks(const struct sealed *s, const uint8_t *in, const struct target *t,
                          struct err *e)
{
    struct gcm g = {NULL, true};
    uint8_t nonce[NONCE_BYTES], *buf = mem_alloc(s->head.chunk + SEALED_TAG_BYTES);
    int rc = buf && gcm_init(&g, s->key, true) ? 0 : err_set(e, SHOAL_ENOMEM, "a chunk");
    for (uint64_t i = 0; rc == 0 && i < n_chunks(&s->head); i++) {
        const size_t n = chunk_bytes(&s->head, i);
        chunk_nonce(nonce, i);
        if (!gcm_run(&g, nonce, NULL, 0, in + i * s->head.chunk, buf, n, buf + n))
            rc = err_set(e, SHOAL_EINTERNAL, "cannot encrypt");
        else
            rc = target_put(t, buf, n + SEALED_TAG_BYTES, e);
    }
    EVP_CIPHER_CTX_free(g.ctx);
    mem_free(buf);
    return rc;
}

/* Everything but the last step, which gives the file its name. */
static int encrypt(struct target *t, const uint8_t *bytes, size_t n, const char *out,
                   const struct sealed_opts *o, const struct opener *by, struct err *e)
{
    uint8_t head[SEALED_HEAD_BYTES];
    struct sealed s = {.fd = -1, .head = {.wrap = o->wrap, .n_bytes = n}};
    if (o->wrap == SEALED_PASSPHRASE)
        s.head.log_n = o->log_n ? o->log_n : 17;
    int rc = make_head(head, &s.head, &s, o, by, e);
    if (rc == 0)
        rc = target_open(t, out, e);
    if (rc == 0)
        rc = target_put(t, head, sizeof(head), e);
    if (rc == 0)
        rc = encrypt_chunks(&s, bytes, t, e);
    close_sealed(&s);
    return rc;
}

int sealed_encrypt(const char *path, const char *out, const struct sealed_opts *o, struct err *e)
{
    const struct opener by = {.key_file = o->key_file};
    struct target t = {.fd = -1};
    struct file_map in;
    int rc = file_map_open(&in, path, e);
    if (rc < 0)
        return rc;
    rc = sealed_is(in.bytes, in.n_bytes) ? err_set(e, SHOAL_EINVAL, "%s is encrypted already", path)
                                         : encrypt(&t, in.bytes, in.n_bytes, out, o, &by, e);
    if (rc == 0 && file_map_changed(&in))
        rc = err_set(e, SHOAL_EIO, "%s was changed while it was encrypted", path);
    rc = target_end(&t, out, rc, e);
    file_map_close(&in);
    return rc;
}

int sealed_put(const char *path, const uint8_t key[FILE_KEY_BYTES], const uint8_t *bytes, size_t n,
               struct err *e)
{
    const struct opener by = {.key = key};
    const struct sealed_opts o = {.wrap = SEALED_KEY_FILE};
    struct target t = {.fd = -1};
    int rc = encrypt(&t, bytes, n, path, &o, &by, e);
    return target_end(&t, path, rc, e);
}

int sealed_decrypt(const char *path, const char *out, const char *key_file, struct err *e)
{
    const struct opener by = {.key_file = key_file};
    struct target t = {.fd = -1};
    struct gcm g = {NULL, false};
    struct sealed s;
    int rc = open_sealed(&s, path, &by, e);
    if (rc < 0)
        return rc;
    uint8_t *buf = mem_alloc(2 * s.head.chunk + SEALED_TAG_BYTES);
    if (!buf || !gcm_init(&g, s.key, false))
        rc = err_set(e, SHOAL_ENOMEM, "a chunk");
    if (rc == 0)
        rc = target_open(&t, out, e);
    for (uint64_t i = 0; rc == 0 && i < n_chunks(&s.head); i++) {
        uint8_t *plain = buf + s.head.chunk + SEALED_TAG_BYTES;
        rc = read_chunk(&s, &g, i, buf, plain) ? target_put(&t, plain, chunk_bytes(&s.head, i), e)
                                               : damaged(path, &s.head, i, e);
    }
    rc = target_end(&t, out, rc, e);
    EVP_CIPHER_CTX_free(g.ctx);
    if (buf)
        OPENSSL_cleanse(buf, 2 * s.head.chunk + SEALED_TAG_BYTES);
    mem_free(buf);
    close_sealed(&s);
    return rc;
}
