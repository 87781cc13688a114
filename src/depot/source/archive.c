/* archive.c - see archive.h. */
#include "depot/source/archive.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/mem.h"
#include "base/rd.h"
#include "depot/source/byte_sink.h"

#define BLOCK_BYTES ((size_t)1 << 17)
#define MAX_DIRECTORY_BYTES ((uint64_t)16 << 20)
#define MAX_NAME_BYTES 1024u
#define MAX_PAX_BYTES 65536u
#define END_BYTES 22u /* of ZIP's last record, without its comment */
#define MAX_COMMENT 65535u
#define TAR_BLOCK 512u

static int damaged(const char *what, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "the archive is damaged: %s", what);
}

static int read_at(int fd, void *p, size_t n, uint64_t at, struct err *e)
{
    for (char *to = p; n > 0;) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(e, SHOAL_EIO, "cannot read the archive: %s", strerror(errno));
        if (got == 0)
            return damaged("it is too short", e);
        to += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return 0;
}

/* ---- inflating ---- */

struct unpacker { /* bytes of a file, inflated if they are compressed */
    int fd;
    uint64_t at, end; /* of the compressed bytes */
    z_stream z;
    bool inflates, over;
    unsigned char in[BLOCK_BYTES];
};

static int unpacker_open(struct unpacker **out, int fd, uint64_t at, uint64_t end, bool inflates,
                         int window_bits, struct err *e)
{
    struct unpacker *f = mem_zalloc(sizeof(*f));
    *out = NULL;
    if (!f)
        return err_set(e, SHOAL_ENOMEM, "reader of an archive");
    *f = (struct unpacker){.fd = fd, .at = at, .end = end, .inflates = inflates};
    if (inflates && inflateInit2(&f->z, window_bits) != Z_OK) {
        mem_free(f);
        return err_set(e, SHOAL_ENOMEM, "reader of an archive");
    }
    *out = f;
    return 0;
}

static void unpacker_close(struct unpacker *f)
{
    if (!f)
        return;
    if (f->inflates)
        inflateEnd(&f->z);
    mem_free(f);
}

/* Up to n bytes; *got 0: the end. */
static int unpacker_read(struct unpacker *f, void *p, size_t n, size_t *got, struct err *e)
{
    *got = 0;
    if (!f->inflates) {
        size_t most = f->end - f->at < n ? (size_t)(f->end - f->at) : n;
        int rc = read_at(f->fd, p, most, f->at, e);
        f->at += most;
        *got = rc == 0 ? most : 0;
        return rc;
    }
    f->z.next_out = p;
    f->z.avail_out = (uInt)n;
    while (f->z.avail_out == n && !f->over) {
        if (f->z.avail_in == 0 && f->at < f->end) {
            size_t most = f->end - f->at < BLOCK_BYTES ? (size_t)(f->end - f->at) : BLOCK_BYTES;
            int rc = read_at(f->fd, f->in, most, f->at, e);
            if (rc < 0)
                return rc;
            f->at += most;
            f->z.next_in = f->in;
            f->z.avail_in = (uInt)most;
        }
        int z = inflate(&f->z, Z_NO_FLUSH);
        f->over = z == Z_STREAM_END;
        if (z == Z_MEM_ERROR)
            return err_set(e, SHOAL_ENOMEM, "inflating an archive");
        if (z != Z_OK && z != Z_STREAM_END)
            return damaged(z == Z_BUF_ERROR ? "it is cut off" : "its compressed data is wrong", e);
    }
    *got = n - f->z.avail_out;
    return 0;
}

/* Gives `bytes` bytes out, without the first `skip`. */
static int give(struct unpacker *f, uint64_t bytes, uint64_t skip, const struct byte_sink *to,
                struct err *e)
{
    unsigned char *block = mem_alloc(BLOCK_BYTES);
    int rc = block ? 0 : err_set(e, SHOAL_ENOMEM, "reader of an archive");
    for (uint64_t at = 0; rc == 0 && at < bytes;) {
        size_t got = 0, most = bytes - at < BLOCK_BYTES ? (size_t)(bytes - at) : BLOCK_BYTES;
        rc = unpacker_read(f, block, most, &got, e);
        if (rc == 0 && got == 0)
            rc = damaged("a member is shorter than it says", e);
        uint64_t drop = at >= skip ? 0 : skip - at < got ? skip - at : got;
        if (rc == 0 && drop < got)
            rc = to->write(to->ctx, block + drop, got - (size_t)drop, e);
        at += got;
    }
    mem_free(block);
    return rc;
}

static int wrong_size(const char *name, uint64_t has, uint64_t wants, struct err *e)
{
    return err_set(e, SHOAL_EFORMAT, "%.200s has %llu bytes in the archive, not %llu", name,
                   (unsigned long long)has, (unsigned long long)wants);
}

static int missing(const char *name, struct err *e)
{
    return err_set(e, SHOAL_ENOTFOUND, "the archive has no member %.200s", name);
}

/* ---- ZIP ---- */

struct zip_entry {
    uint64_t offset, packed, bytes;
    uint16_t method;
};

/* Where the central directory is. */
static int find_directory(int fd, uint64_t size, uint64_t *at, uint64_t *bytes, struct err *e)
{
    size_t n = size < END_BYTES + MAX_COMMENT ? (size_t)size : END_BYTES + MAX_COMMENT;
    uint8_t *tail = mem_alloc(n ? n : 1);
    int rc = tail ? read_at(fd, tail, n, size - n, e) : err_set(e, SHOAL_ENOMEM, "archive");
    const uint8_t *end = NULL;
    for (size_t i = n >= END_BYTES ? n - END_BYTES + 1 : 0; rc == 0 && !end && i-- > 0;)
        if (memcmp(tail + i, "PK\5\6", 4) == 0)
            end = tail + i;
    if (rc == 0 && !end)
        rc = damaged("it has no directory", e);
    if (rc == 0) {
        struct rd r = rd_make(end + 12, 8);
        *bytes = rd_u32(&r);
        *at = rd_u32(&r);
        if (*at == UINT32_MAX || *bytes == UINT32_MAX)
            rc = err_set(e, SHOAL_EUNSUPPORTED, "archives of 4 GiB and more are not supported");
        else if (*at > size || *bytes > size - *at)
            rc = damaged("its directory is outside of the file", e);
        else if (*bytes > MAX_DIRECTORY_BYTES)
            rc = err_set(e, SHOAL_ELIMIT, "the directory of the archive is too large");
    }
    mem_free(tail);
    return rc;
}

/* The entry of a name in the central directory. */
static int find_entry(const uint8_t *p, size_t n, const char *name, struct zip_entry *out,
                      struct err *e)
{
    struct rd r = rd_make(p, n);
    while (!r.bad && rd_left(&r) >= 46) {
        const uint8_t *sign = rd_take(&r, 4);
        if (!sign || memcmp(sign, "PK\1\2", 4) != 0)
            break;
        (void)rd_take(&r, 4);
        uint16_t flags = rd_u16(&r);
        out->method = rd_u16(&r);
        (void)rd_take(&r, 8);
        out->packed = rd_u32(&r);
        out->bytes = rd_u32(&r);
        uint16_t n_name = rd_u16(&r), n_extra = rd_u16(&r), n_comment = rd_u16(&r);
        (void)rd_take(&r, 8);
        out->offset = rd_u32(&r);
        const uint8_t *its = rd_take(&r, n_name);
        (void)rd_take(&r, (uint64_t)n_extra + n_comment);
        if (r.bad || !its || strlen(name) != n_name || memcmp(its, name, n_name) != 0)
            continue;
        if (flags & 1)
            return err_set(e, SHOAL_EUNSUPPORTED, "%.200s is encrypted", name);
        if (out->method != 0 && out->method != 8)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "%.200s is compressed by method %u, which is not supported", name,
                           out->method);
        return 0;
    }
    return r.bad ? damaged("its directory is cut off", e) : missing(name, e);
}

static int zip_member(int fd, uint64_t size, const char *name, uint64_t bytes, uint64_t skip,
                      const struct byte_sink *to, struct err *e)
{
    uint64_t at = 0, n = 0;
    struct zip_entry x = {0};
    struct unpacker *f = NULL;
    uint8_t head[30];
    int rc = find_directory(fd, size, &at, &n, e);
    uint8_t *dir = rc == 0 ? mem_alloc((size_t)n + 1) : NULL;
    if (rc == 0)
        rc = dir ? read_at(fd, dir, (size_t)n, at, e) : err_set(e, SHOAL_ENOMEM, "archive");
    if (rc == 0)
        rc = find_entry(dir, (size_t)n, name, &x, e);
    if (rc == 0 && x.bytes != bytes)
        rc = wrong_size(name, x.bytes, bytes, e);
    if (rc == 0)
        rc = read_at(fd, head, sizeof(head), x.offset, e);
    if (rc == 0 && memcmp(head, "PK\3\4", 4) != 0)
        rc = damaged("a member is not where the directory says", e);
    if (rc == 0) {
        uint64_t begin = x.offset + sizeof(head) + (uint64_t)(head[26] | head[27] << 8) +
                         (uint64_t)(head[28] | head[29] << 8);
        if (begin > size || x.packed > size - begin || (x.method == 0 && x.packed != x.bytes))
            rc = damaged("a member is outside of the file", e);
        else
            rc = unpacker_open(&f, fd, begin, begin + x.packed, x.method == 8, -MAX_WBITS, e);
    }
    if (rc == 0)
        rc = give(f, bytes, skip, to, e);
    unpacker_close(f);
    mem_free(dir);
    return rc;
}

/* ---- tar ---- */

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* Octal digits, or base 256 with the highest bit set. */
static bool tar_number(const uint8_t *p, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    if (p[0] & 0x80) {
        for (size_t i = 0; i < n - 8; i++)
            if (p[i] != (i ? 0 : 0x80))
                return false;
        for (size_t i = n - 8; i < n; i++)
            v = v << 8 | p[i];
        *out = v;
        return v <= INT64_MAX;
    }
    size_t i = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(p[i] - '0');
    *out = v;
    return i == n || p[i] == '\0' || p[i] == ' ';
}

static bool tar_sum_ok(const uint8_t *h)
{
    uint64_t want, sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : h[i];
    return tar_number(h + 148, 8, &want) && want == sum;
}

static void tar_name(char out[MAX_NAME_BYTES], const uint8_t *h)
{
    bool ustar = memcmp(h + 257, "ustar", 5) == 0;
    int n_prefix = ustar ? (int)strnlen((const char *)h + 345, 155) : 0;
    size_t n = 0;
    if (n_prefix > 0) {
        memcpy(out, h + 345, (size_t)n_prefix);
        out[n_prefix] = '/';
        n = (size_t)n_prefix + 1;
    }
    size_t n_name = strnlen((const char *)h, 100);
    memcpy(out + n, h, n_name);
    out[n + n_name] = '\0';
}

/* The path of a pax header, "LENGTH path=VALUE\n"; "": it has none. */
static void pax_path(char out[MAX_NAME_BYTES], const char *p, size_t n)
{
    out[0] = '\0';
    for (size_t at = 0; at < n;) {
        size_t length = 0, i = at;
        while (i < n && p[i] >= '0' && p[i] <= '9' && length < MAX_PAX_BYTES)
            length = 10 * length + (size_t)(p[i++] - '0');
        if (i >= n || p[i] != ' ' || length <= i + 1 - at || length > n - at)
            return;
        size_t from = i + 1, end = at + length - 1;
        if (end - from > 5 && memcmp(p + from, "path=", 5) == 0 &&
            end - from - 5 < MAX_NAME_BYTES) {
            memcpy(out, p + from + 5, end - from - 5);
            out[end - from - 5] = '\0';
        }
        at += length;
    }
}

static int read_exactly(struct unpacker *f, void *p, size_t n, struct err *e)
{
    for (char *to = p; n > 0;) {
        size_t got;
        int rc = unpacker_read(f, to, n, &got, e);
        if (rc < 0)
            return rc;
        if (got == 0)
            return damaged("it is cut off", e);
        to += got;
        n -= got;
    }
    return 0;
}

static int pass_over(void *ctx, const void *p, size_t n, struct err *e)
{
    (void)ctx, (void)p, (void)n, (void)e;
    return 0;
}

/* A header that holds the name of the next member: pax's or GNU's. */
static int read_long_name(struct unpacker *f, char type, uint64_t size, char next[MAX_NAME_BYTES],
                          struct err *e)
{
    if (size > MAX_PAX_BYTES)
        return err_set(e, SHOAL_ELIMIT, "a name in the archive is too long");
    char *text = mem_zalloc((size_t)size + 1);
    int rc = text ? read_exactly(f, text, (size_t)size, e) : err_set(e, SHOAL_ENOMEM, "archive");
    if (rc == 0 && type == 'x')
        pax_path(next, text, (size_t)size);
    else if (rc == 0 && size < MAX_NAME_BYTES)
        memcpy(next, text, (size_t)size + 1);
    mem_free(text);
    return rc;
}

static int tar_walk(struct unpacker *f, const char *name, uint64_t bytes, uint64_t skip,
                    const struct byte_sink *to, struct err *e)
{
    static const struct byte_sink nowhere = {NULL, pass_over};
    char next[MAX_NAME_BYTES] = "", its[MAX_NAME_BYTES];
    uint8_t h[TAR_BLOCK];
    for (;;) {
        uint64_t size;
        int rc = read_exactly(f, h, sizeof(h), e);
        if (rc < 0)
            return rc;
        if (all_zero(h, sizeof(h)))
            return missing(name, e);
        if (!tar_sum_ok(h) || !tar_number(h + 124, 12, &size))
            return damaged("a header is wrong", e);
        char type = (char)h[156];
        uint64_t padding = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
        if (type == 'x' || type == 'L') {
            rc = read_long_name(f, type, size, next, e);
            if (rc == 0)
                rc = give(f, padding, 0, &nowhere, e);
        } else {
            if (next[0])
                memcpy(its, next, sizeof(its));
            else
                tar_name(its, h);
            next[0] = '\0';
            bool found = (type == '0' || type == '\0') && strcmp(its, name) == 0;
            if (found && size != bytes)
                return wrong_size(name, size, bytes, e);
            if (found)
                return give(f, bytes, skip, to, e);
            rc = give(f, size + padding, 0, &nowhere, e);
        }
        if (rc < 0)
            return rc;
    }
}

int archive_member(int fd, const char *name, uint64_t bytes, uint64_t skip,
                   const struct byte_sink *to, struct err *e)
{
    uint8_t magic[4] = {0};
    struct unpacker *f = NULL;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set(e, SHOAL_EIO, "cannot read the archive: %s", strerror(errno));
    uint64_t size = (uint64_t)st.st_size;
    int rc = size < sizeof(magic) ? damaged("it is too short", e)
                                  : read_at(fd, magic, sizeof(magic), 0, e);
    if (rc < 0)
        return rc;
    if (magic[0] == 0x1f && magic[1] == 0x8b) {
        rc = unpacker_open(&f, fd, 0, size, true, 16 + MAX_WBITS, e);
        if (rc == 0)
            rc = tar_walk(f, name, bytes, skip, to, e);
        unpacker_close(f);
        return rc;
    }
    if (memcmp(magic, "PK", 2) == 0)
        return zip_member(fd, size, name, bytes, skip, to, e);
    return err_set(e, SHOAL_EFORMAT, "this is neither a ZIP file nor a gzipped tar");
}
