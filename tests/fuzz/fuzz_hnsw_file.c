/* fuzz_hnsw_file.c - the file of a vector graph: an accepted file can be searched, written and
 * read again. The checksum is corrected, so that the fuzzer gets past it. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "store/hnsw_file.h"

#define MAX_ROWS 64u
#define COLS 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const float zeros[COLS];

static const float *get(const void *ctx, uint32_t row)
{
    const uint32_t *n = ctx;
    if (row >= *n)
        abort();
    return zeros;
}

static float dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void use(struct hnsw *h, const struct hnsw_file_key *keys, const struct hnsw_rows *rows)
{
    struct hnsw_hit hits[8];
    struct hnsw *again = NULL;
    struct err e;
    struct buf out;
    uint32_t n;
    if (hnsw_search(h, zeros, 8, NULL, hits, &n, &e) < 0 || n == 0)
        abort();
    buf_init(&out, (size_t)1 << 20);
    hnsw_file_write(&out, h, keys);
    if (hnsw_create(&again, rows, &e) < 0 ||
        hnsw_file_read(again, out.data, out.len, keys, hnsw_count(h), &e) < 0 ||
        hnsw_count(again) != hnsw_count(h))
        abort();
    hnsw_destroy(again);
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hnsw_file_key keys[MAX_ROWS];
    uint32_t n = MAX_ROWS;
    const struct hnsw_rows rows = {.get = get, .ctx = &n, .dot = dot, .n_cols = COLS};
    struct hnsw *h = NULL;
    struct err e;
    struct buf file;
    uint32_t step = 1;
    if (size < 1 || hnsw_create(&h, &rows, &e) < 0)
        return 0;
    step += data[0] % 3; /* all ids, or only some: the others were deleted */
    for (uint32_t i = 0; i < MAX_ROWS; i++)
        keys[i] = (struct hnsw_file_key){.id = 1 + (int64_t)(i * step), .sum = 7};
    buf_init(&file, size + 16);
    buf_put(&file, data + 1, size - 1);
    const uint64_t sum = hash_large(data + 1, size - 1, 1);
    buf_put(&file, &sum, sizeof(sum));
    if (hnsw_file_read(h, file.data, file.len, keys, MAX_ROWS, &e) == 0) {
        n = hnsw_count(h);
        use(h, keys, &rows);
    } else if (hnsw_count(h) != 0) {
        abort();
    }
    hnsw_clear(h);
    n = MAX_ROWS;
    if (hnsw_file_read(h, data, size, keys, MAX_ROWS, &e) == 0 && hnsw_count(h) == 0)
        abort();
    buf_fini(&file);
    hnsw_destroy(h);
    return 0;
}
