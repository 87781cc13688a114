/* fuzz_score_stream.c - the file that keeps streams of a scorer over a restart: as it is, and as
 * one record whose hash is right.  A parsed file can be used for scoring, and is written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "score/score_stream.h"
#include "score/score_stream_file.h"

enum { MAX_COLUMNS = 4, MODEL = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct scorer *scorer;
static void *scratch;

static void open_once(void)
{
    struct err e;
    if (scorer)
        return;
    if (scorer_open(&scorer, SHOAL_TEST_DATA "/../../models/anomaly", NULL, &e) < 0)
        abort();
    scratch = mem_aligned(scorer_scratch_bytes(scorer));
    if (!scratch)
        abort();
}

/* A row for a stream of this name, whatever columns it has. */
static void feed(struct score_streams *t, const char *name)
{
    static const double row[MAX_COLUMNS] = {1, 2, 3, 4};
    double out[8];
    struct err e;
    for (uint32_t n = 1; n <= MAX_COLUMNS; n++) {
        const struct score_stream_rows r = {
            .name = name, .values = row, .n_rows = 1, .n_columns = n, .now_ns = 20};
        (void)!score_streams_feed(t, &r, out, scratch, &e);
    }
}

static void check(struct score_streams *t, struct score_stream_clock c)
{
    struct score_streams *again;
    struct buf file;
    size_t whole;
    struct err e;
    feed(t, "s");
    buf_init(&file, (size_t)1 << 28);
    score_stream_file_begin(&file, MODEL);
    score_stream_file_put(&file, t, c, true);
    if (score_streams_create(&again, scorer, NULL, &e) < 0)
        abort();
    if (score_stream_file_read(again, buf_str(&file), file.len, MODEL, c, &whole, &e) < 0 ||
        whole != file.len || score_streams_count(again) > score_streams_count(t))
        abort();
    score_streams_destroy(again);
    buf_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct score_stream_clock c = {.now_ns = 10, .wall_ms = 1000};
    struct score_streams *t;
    size_t whole;
    struct err e;
    open_once();
    for (int framed = 0; framed < 2; framed++) {
        if (score_streams_create(&t, scorer, NULL, &e) < 0)
            abort();
        int rc = framed ? score_stream_file_read(t, data, size, MODEL, c, &whole, &e)
                        : score_stream_file_take(t, data, size, c, &e);
        if (framed && whole > size)
            abort();
        if (rc == 0)
            check(t, c);
        score_streams_destroy(t);
    }
    return 0;
}
