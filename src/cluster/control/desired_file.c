/* desired_file.c - see desired_file.h. */
#include "cluster/control/desired_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/mem.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"

#define MAGIC "SHOALDS1"
#define HEAD_BYTES 24u
#define MAX_FILE_BYTES (HEAD_BYTES + DESIRED_CODE_MAX_BYTES + SHA256_BYTES)

static void put_u64(struct buf *b, uint64_t v)
{
    uint8_t raw[8];
    for (int i = 0; i < 8; i++)
        raw[i] = (uint8_t)(v >> (8 * i));
    buf_put(b, raw, sizeof(raw));
}

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static int checksum(uint8_t out[SHA256_BYTES], const void *p, size_t n, struct err *e)
{
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, p, n);
    return sha256_end(&s, out) ? 0 : err_set(e, SHOAL_ENOMEM, "checksum of the snapshot");
}

static int encode(struct buf *out, const struct desired *d, struct err *e)
{
    struct buf state;
    uint8_t sum[SHA256_BYTES];
    buf_init(&state, DESIRED_CODE_MAX_BYTES);
    int rc = desired_code_put(&state, d, e);
    if (rc == 0) {
        buf_puts(out, MAGIC);
        put_u64(out, d->revision);
        put_u64(out, state.len);
        buf_put(out, buf_str(&state), state.len);
        rc = out->rc < 0 ? err_set(e, out->rc, "snapshot") : checksum(sum, out->data, out->len, e);
    }
    if (rc == 0) {
        buf_put(out, sum, sizeof(sum));
        if (out->rc < 0)
            rc = err_set(e, out->rc, "snapshot");
    }
    buf_fini(&state);
    return rc;
}

int desired_file_write(const char *path, const struct desired *d, struct err *e)
{
    struct buf b;
    buf_init(&b, MAX_FILE_BYTES);
    int rc = encode(&b, d, e);
    if (rc == 0)
        rc = file_replace(path, b.data, b.len, e);
    buf_fini(&b);
    return rc;
}

int desired_file_parse(struct desired **out, const void *bytes, size_t n, struct err *e)
{
    const uint8_t *p = bytes;
    uint8_t sum[SHA256_BYTES];
    int rc;
    *out = NULL;
    if (n < HEAD_BYTES + SHA256_BYTES || n > MAX_FILE_BYTES || memcmp(p, MAGIC, 8) != 0 ||
        get_u64(p + 16) != n - HEAD_BYTES - SHA256_BYTES)
        return err_set(e, SHOAL_EFORMAT, "not a snapshot of the desired state, or cut off");
    if ((rc = checksum(sum, p, n - SHA256_BYTES, e)) < 0)
        return rc;
    if (memcmp(sum, p + n - SHA256_BYTES, SHA256_BYTES) != 0)
        return err_set(e, SHOAL_EFORMAT, "the snapshot is damaged: its checksum differs");
    rc = desired_code_get(out, p + HEAD_BYTES, n - HEAD_BYTES - SHA256_BYTES, e);
    if (rc == 0)
        (*out)->revision = get_u64(p + 8);
    return rc;
}

int desired_file_read(struct desired **out, const char *path, struct err *e)
{
    struct buf b;
    *out = NULL;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return err_set(e, SHOAL_ENOTFOUND, "there is no snapshot %s", path);
    buf_init(&b, MAX_FILE_BYTES);
    int rc = file_read(path, &b, e);
    if (rc == 0 && (rc = desired_file_parse(out, buf_str(&b), b.len, e)) < 0)
        err_wrap(e, "%s", path);
    buf_fini(&b);
    return rc;
}
