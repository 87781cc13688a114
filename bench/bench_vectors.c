/* bench_vectors.c - the exact search of store/vectors.h over a file of vectors, for
 * bench/vectors.js.
 *
 * bench_vectors ROWS QUERIES DIMS K [indexed]: files of float32, row by row.  Prints one JSON
 * object: the time to add all rows (indexed: until all are in the graph), and for each query its
 * time and the ids of the k nearest rows. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "kernels/kern.h"
#include "store/vectors.h"

static int run(struct vectors *v, const struct buf *rows, const struct buf *queries, uint32_t dims,
               uint32_t k, bool indexed, struct err *e)
{
    size_t n = rows->len / sizeof(float) / dims, n_q = queries->len / sizeof(float) / dims;
    const float *q = (const float *)(const void *)queries->data;
    struct vectors_hit hits[VECTORS_MAX_NEAREST];
    int64_t *ids = mem_zalloc_n(n + 1, sizeof(*ids));
    uint32_t found;
    if (!ids)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        ids[i] = (int64_t)i;
    uint64_t start = clock_ns();
    int rc = vectors_add(v, ids, (const float *)(const void *)rows->data, n, e);
    while (indexed && rc == 0 && vectors_linked(v) < n)
        usleep(1000);
    printf("{\"kernels\":\"%s\",\"rows\":%zu,\"add_ms\":%.1f,\"bytes\":%zu,\"queries\":[",
           kern_select(NULL, e)->name, n, (double)(clock_ns() - start) / 1e6, vectors_bytes(v));
    for (size_t i = 0; i < n_q && rc == 0; i++) {
        start = clock_ns();
        rc = vectors_search(v, q + i * dims, k, hits, &found, e);
        printf("%s{\"us\":%.1f,\"ids\":[", i ? "," : "", (double)(clock_ns() - start) / 1e3);
        for (uint32_t j = 0; j < found && rc == 0; j++)
            printf("%s%lld", j ? "," : "", (long long)hits[j].id);
        printf("]}");
    }
    printf("]}\n");
    mem_free(ids);
    return rc;
}

int main(int argc, char **argv)
{
    struct buf rows, queries;
    struct vectors *v = NULL;
    struct err e = {0};
    uint32_t dims = argc >= 5 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    uint32_t k = argc >= 5 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0;
    if (dims == 0 || k == 0) {
        fprintf(stderr, "usage: %s ROWS QUERIES DIMS K [indexed]\n", argv[0]);
        return 2;
    }
    buf_init(&rows, (size_t)8 << 30);
    buf_init(&queries, (size_t)1 << 30);
    int rc = file_read(argv[1], &rows, &e);
    if (rc == 0)
        rc = file_read(argv[2], &queries, &e);
    if (rc == 0)
        rc = vectors_create(&v, dims, argc > 5 ? 1 : 0, &e);
    if (rc == 0)
        rc = run(v, &rows, &queries, dims, k, argc > 5, &e);
    if (rc < 0)
        fprintf(stderr, "%s: %s\n", argv[0], e.msg);
    vectors_destroy(v);
    buf_fini(&rows);
    buf_fini(&queries);
    return rc < 0;
}
