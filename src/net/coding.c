/* coding.c - see coding.h. */
#include "net/coding.h"

#include <stdint.h>
#include <strings.h>

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"

#define GZIP_WINDOW (15 + 16) /* zlib's largest window, and 16 for the gzip format */
#define ZSTD_WINDOW 23 /* 8 MiB, which RFC 8878 asks every decoder to have; more is refused */
#define BLOCK_BYTES 16384u

enum coding coding_of(const char *header)
{
    static const struct {
        const char *name;
        enum coding coding;
    } names[] = {{"", CODING_NONE},       {"identity", CODING_NONE}, {"gzip", CODING_GZIP},
                 {"x-gzip", CODING_GZIP}, {"br", CODING_BROTLI},     {"zstd", CODING_ZSTD}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(header ? header : "", names[i].name) == 0)
            return names[i].coding;
    return CODING_UNKNOWN;
}

/* Appends a block; false: the message is too large, or there is no memory. */
static bool put(struct buf *out, const uint8_t *block, size_t n, size_t max, int *rc)
{
    if (n > max - out->len) {
        *rc = SHOAL_ELIMIT;
        return false;
    }
    buf_put(out, block, n);
    *rc = out->rc;
    return *rc == 0;
}

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

static int decode_gzip(struct buf *out, const uint8_t *p, size_t n, size_t max)
{
    uint8_t block[BLOCK_BYTES];
    z_stream z = {
        .next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)n, .zalloc = z_alloc, .zfree = z_free};
    int rc = 0, state = Z_OK;
    if (n > UINT32_MAX)
        return SHOAL_ELIMIT;
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return SHOAL_ENOMEM;
    while (state == Z_OK) {
        z.next_out = block;
        z.avail_out = sizeof(block);
        state = inflate(&z, Z_NO_FLUSH);
        if (!put(out, block, sizeof(block) - z.avail_out, max, &rc))
            break;
    }
    inflateEnd(&z);
    if (rc == 0 && state == Z_MEM_ERROR)
        return SHOAL_ENOMEM;
    return rc < 0 || (state == Z_STREAM_END && z.avail_in == 0) ? rc : SHOAL_EFORMAT;
}

static void *b_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return mem_alloc(n);
}

static int decode_brotli(struct buf *out, const uint8_t *p, size_t n, size_t max)
{
    uint8_t block[BLOCK_BYTES];
    BrotliDecoderState *s = BrotliDecoderCreateInstance(b_alloc, z_free, NULL);
    BrotliDecoderResult state = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    int rc = 0;
    if (!s)
        return SHOAL_ENOMEM;
    while (state == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) {
        uint8_t *to = block;
        size_t room = sizeof(block);
        state = BrotliDecoderDecompressStream(s, &n, &p, &room, &to, NULL);
        if (!put(out, block, sizeof(block) - room, max, &rc))
            break;
    }
    const bool memory = state == BROTLI_DECODER_RESULT_ERROR &&
                        BrotliDecoderGetErrorCode(s) <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES;
    BrotliDecoderDestroyInstance(s);
    if (rc == 0 && memory)
        return SHOAL_ENOMEM;
    return rc < 0 || (state == BROTLI_DECODER_RESULT_SUCCESS && n == 0) ? rc : SHOAL_EFORMAT;
}

static int decode_zstd(struct buf *out, const uint8_t *p, size_t n, size_t max)
{
    uint8_t block[BLOCK_BYTES];
    ZSTD_DStream *s = ZSTD_createDStream();
    ZSTD_inBuffer in = {p, n, 0};
    size_t state = 1; /* 0: at the end of a frame; another may follow */
    bool full = true;
    int rc = 0;
    if (!s)
        return SHOAL_ENOMEM;
    ZSTD_DCtx_setParameter(s, ZSTD_d_windowLogMax, ZSTD_WINDOW);
    while ((in.pos < in.size || full) && !ZSTD_isError(state)) {
        ZSTD_outBuffer to = {block, sizeof(block), 0};
        if (in.pos == in.size && state == 0)
            break;
        state = ZSTD_decompressStream(s, &to, &in);
        full = to.pos == to.size;
        if (!put(out, block, to.pos, max, &rc))
            break;
    }
    ZSTD_freeDStream(s);
    return rc < 0 || state == 0 ? rc : SHOAL_EFORMAT;
}

int coding_decode(struct buf *out, enum coding c, const void *p, size_t n, size_t max)
{
    switch (c) {
    case CODING_GZIP:
        return decode_gzip(out, p, n, max);
    case CODING_BROTLI:
        return decode_brotli(out, p, n, max);
    case CODING_ZSTD:
        return decode_zstd(out, p, n, max);
    default:
        return SHOAL_EFORMAT;
    }
}
