/* grpc_frame.c - see grpc_frame.h. */
#include "net/grpc_frame.h"

#include <string.h>
#include <strings.h>

#include <zlib.h>

#include "base/mem.h"
#include "net/coding.h"

#define GZIP_WINDOW (15 + 16) /* zlib's largest window, and 16 for the gzip format */
#define LEAST_BYTES 1024u     /* a smaller message fits into a packet anyway */
/* if the first bytes of a long message hardly shrink (vectors), it is sent uncompressed */
#define PROBE_BYTES 16384u

static void *z_alloc(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return mem_zalloc_n(n, size);
}

static void z_free(void *ctx, void *p)
{
    (void)ctx;
    mem_free(p);
}

int grpc_frame_next(struct grpc_frame *f, const uint8_t *p, size_t n, size_t max)
{
    if (n > 0 && p[0] > 1)
        return SHOAL_EFORMAT;
    if (n < GRPC_HEAD_BYTES)
        return 0;
    size_t bytes = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    if (bytes > max)
        return SHOAL_ELIMIT;
    if (bytes > n - GRPC_HEAD_BYTES)
        return 0;
    *f = (struct grpc_frame){p + GRPC_HEAD_BYTES, bytes, GRPC_HEAD_BYTES + bytes, p[0] == 1};
    return 1;
}

int grpc_frame_unpack(struct grpc_frame *f, struct buf *plain, size_t max)
{
    if (!f->packed)
        return 0;
    int rc = coding_decode(plain, CODING_GZIP, f->p, f->n, max);
    if (rc < 0)
        return rc;
    f->p = (const uint8_t *)buf_str(plain);
    f->n = plain->len;
    f->packed = false;
    return 0;
}

/* Level 1: this runs on an event loop. */
bool grpc_zip(struct buf *out, const void *p, size_t n)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)p, .zalloc = z_alloc, .zfree = z_free};
    if (n < LEAST_BYTES || n > UINT32_MAX ||
        deflateInit2(&z, 1, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t most = n - n / 8, probe = n < 2 * PROBE_BYTES ? n : PROBE_BYTES;
    uint8_t *to = mem_alloc(most);
    int rc = Z_MEM_ERROR;
    if (to) {
        z.next_out = to;
        z.avail_out = (uInt)most;
        z.avail_in = (uInt)probe;
        rc = probe < n ? deflate(&z, Z_SYNC_FLUSH) : Z_OK;
        if (rc == Z_OK && (probe == n || z.total_out < probe - probe / 8)) {
            z.avail_in = (uInt)(n - z.total_in);
            rc = deflate(&z, Z_FINISH);
        }
    }
    deflateEnd(&z);
    if (rc == Z_STREAM_END)
        buf_put(out, to, z.total_out);
    mem_free(to);
    return rc == Z_STREAM_END && out->rc == 0;
}

void grpc_frame_head(char head[GRPC_HEAD_BYTES], size_t n, bool packed)
{
    head[0] = packed;
    for (unsigned i = 0; i < 4; i++)
        head[1 + i] = (char)(n >> (24 - 8 * i));
}

bool grpc_accepts_gzip(const char *list)
{
    for (const char *p = list; p && *p;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t");
        if (n == 4 && strncasecmp(p, "gzip", 4) == 0)
            return true;
        p += n;
    }
    return false;
}
