/* test_score_stream.c - rows in pieces score like the whole series; limits and expiry; streams
 * restored from a file continue as if nothing had happened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "score/score_stream.h"
#include "score/score_stream_file.h"

#define DATA SHOAL_TEST_DATA "/scorers/"
#define ANOMALY SHOAL_TEST_DATA "/../../models/anomaly"

enum { N_ROWS = 200, MAX_COLUMNS = 32, MAX_SCORES = N_ROWS * 8 };

struct kit {
    struct scorer *scorer;
    struct score_streams *streams;
    void *state, *scratch;
    uint32_t n_columns, n_outputs;
    double rows[N_ROWS * MAX_COLUMNS];
};

static void open_kit(struct kit *k, const char *path, const struct score_streams_opts *o)
{
    struct err e = {0};
    if (scorer_open(&k->scorer, path, NULL, &e) < 0)
        fail_msg("%s", e.msg);
    struct scorer_info info = scorer_info(k->scorer);
    k->n_columns = info.n_inputs ? info.n_inputs : 3;
    k->n_outputs = info.n_outputs;
    assert_true(k->n_columns <= MAX_COLUMNS && k->n_outputs <= 8);
    assert_int_equal(score_streams_create(&k->streams, k->scorer, o, &e), 0);
    size_t state = scorer_state_bytes(k->scorer, k->n_columns);
    k->state = state ? mem_aligned(state) : NULL;
    k->scratch = mem_aligned(scorer_scratch_bytes(k->scorer));
    for (int i = 0; i < N_ROWS * MAX_COLUMNS; i++)
        k->rows[i] = sin(i * 0.37) + (i % 13) * 0.1;
}

static void close_kit(struct kit *k)
{
    score_streams_destroy(k->streams);
    scorer_close(k->scorer);
    mem_free(k->state);
    mem_free(k->scratch);
}

static int64_t feed(struct kit *k, const char *name, uint64_t client, size_t from, size_t n,
                    uint64_t now, double *out)
{
    struct err e = {0};
    const struct score_stream_rows r = {.client = client,
                                        .name = name,
                                        .values = k->rows + from * k->n_columns,
                                        .n_rows = n,
                                        .n_columns = k->n_columns,
                                        .now_ns = now};
    return score_streams_feed(k->streams, &r, out, k->scratch, &e);
}

static void test_pieces_score_like_the_series(void **state)
{
    static const char *const models[] = {ANOMALY, DATA "voice", DATA "conv", DATA "gru",
                                         DATA "trees/missing.txt"};
    static double whole[MAX_SCORES], got[MAX_SCORES];
    static struct kit k;
    (void)state;
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        open_kit(&k, models[m], NULL);
        size_t n = scorer_n_scores(k.scorer, N_ROWS), have = 0;
        scorer_run(k.scorer, k.rows, N_ROWS, k.n_columns, whole, k.state, k.scratch);
        for (size_t at = 0, piece = 1; at < N_ROWS; at += piece, piece = piece % 7 + 1) {
            size_t left = N_ROWS - at < piece ? N_ROWS - at : piece;
            int64_t more = feed(&k, "s", 1, at, left, 1, got + have * k.n_outputs);
            assert_true(more >= 0 && (size_t)more <= score_streams_room(k.streams, left));
            have += (size_t)more;
        }
        if (have != n || memcmp(got, whole, n * k.n_outputs * sizeof(double)) != 0)
            fail_msg("%s: %zu scores, the series has %zu, or they differ", models[m], have, n);
        close_kit(&k);
    }
}

static void test_limits(void **state)
{
    static struct kit k;
    const struct score_streams_opts o = {.max_streams = 2, .idle_ns = 100};
    double out[64];
    (void)state;
    open_kit(&k, ANOMALY, &o);
    assert_int_equal(feed(&k, "a", 1, 0, 1, 10, out), 1);
    assert_int_equal(feed(&k, "a", 2, 0, 1, 10, out), 1); /* another client's */
    assert_int_equal(feed(&k, "b", 1, 0, 1, 20, out), SHOAL_EBUSY);
    k.n_columns = 2;
    assert_int_equal(feed(&k, "a", 1, 0, 1, 20, out), SHOAL_EINVAL);
    k.n_columns = 3;
    assert_int_equal(feed(&k, "a", 1, 0, 1, 90, out), 1);
    assert_int_equal(feed(&k, "b", 1, 0, 1, 150, out), 1); /* client 2's has ended */
    assert_int_equal(score_streams_count(k.streams), 2);
    close_kit(&k);
}

/* A client that has many streams makes room for those of others. */
static void test_a_client_does_not_keep_others_out(void **state)
{
    static struct kit k;
    const struct score_streams_opts o = {.max_streams = 3, .idle_ns = 1000};
    double out[64];
    (void)state;
    open_kit(&k, ANOMALY, &o);
    assert_int_equal(feed(&k, "a", 1, 0, 1, 10, out), 1);
    assert_int_equal(feed(&k, "b", 1, 0, 1, 20, out), 1);
    assert_int_equal(feed(&k, "c", 1, 0, 1, 30, out), 1);
    assert_int_equal(feed(&k, "a", 1, 0, 1, 40, out), 1);
    assert_int_equal(feed(&k, "d", 1, 0, 1, 50, out), SHOAL_EBUSY);
    assert_int_equal(feed(&k, "a", 2, 0, 1, 60, out), 1); /* in the place of b, the least used */
    assert_int_equal(feed(&k, "b", 2, 0, 1, 70, out), SHOAL_EBUSY); /* it would have most */
    assert_int_equal(feed(&k, "b", 1, 0, 1, 80, out), SHOAL_EBUSY); /* gone */
    assert_int_equal(feed(&k, "c", 1, 0, 1, 90, out), 1);
    assert_int_equal(feed(&k, "a", 3, 0, 1, 95, out), 1); /* a, then */
    assert_int_equal(score_streams_count(k.streams), 3);
    assert_int_equal(feed(&k, "a", 4, 0, 1, 96, out), SHOAL_EBUSY); /* all have one */
    close_kit(&k);
}

/* A restart: a new table, which knows only what the file says. */
static int reopen(struct kit *k, const struct buf *file, size_t n, uint64_t model, uint64_t wall_ms,
                  size_t *whole)
{
    struct err e = {0};
    score_streams_destroy(k->streams);
    assert_int_equal(score_streams_create(&k->streams, k->scorer, NULL, &e), 0);
    return score_stream_file_read(k->streams, file->data, n, model,
                                  (struct score_stream_clock){.now_ns = 5, .wall_ms = wall_ms},
                                  whole, &e);
}

static void test_a_file_continues_streams(void **state)
{
    static const char *const models[] = {ANOMALY, DATA "voice", DATA "conv", DATA "gru"};
    static double whole[MAX_SCORES], got[MAX_SCORES];
    static struct kit k;
    (void)state;
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        struct buf file;
        size_t have = 0, used;
        open_kit(&k, models[m], NULL);
        buf_init(&file, (size_t)1 << 24);
        scorer_run(k.scorer, k.rows, N_ROWS, k.n_columns, whole, k.state, k.scratch);
        size_t n = scorer_n_scores(k.scorer, N_ROWS);
        score_stream_file_begin(&file, 7);
        for (size_t at = 0, piece = 1; at < N_ROWS; at += piece, piece = piece % 31 + 3) {
            size_t left = N_ROWS - at < piece ? N_ROWS - at : piece;
            int64_t more = feed(&k, "s", 1, at, left, 1, got + have * k.n_outputs);
            assert_true(more >= 0);
            have += (size_t)more;
            score_stream_file_put(&file, k.streams, (struct score_stream_clock){.wall_ms = 100},
                                  false);
            assert_int_equal(reopen(&k, &file, file.len, 7, 200, &used), 0);
            assert_int_equal(used, file.len);
            assert_int_equal(score_streams_count(k.streams), 1);
        }
        if (have != n || memcmp(got, whole, n * k.n_outputs * sizeof(double)) != 0)
            fail_msg("%s: %zu scores, the series has %zu, or they differ", models[m], have, n);
        buf_fini(&file);
        close_kit(&k);
    }
}

static void test_a_file_that_is_not_right(void **state)
{
    static struct kit k;
    struct buf file;
    size_t whole, first;
    double out[64];
    (void)state;
    open_kit(&k, ANOMALY, NULL);
    buf_init(&file, (size_t)1 << 24);
    score_stream_file_begin(&file, 7);
    size_t head = file.len;
    assert_int_equal(feed(&k, "a", 1, 0, 1, 1, out), 1);
    score_stream_file_put(&file, k.streams, (struct score_stream_clock){.wall_ms = 100}, false);
    first = file.len;
    score_stream_file_put(&file, k.streams, (struct score_stream_clock){.wall_ms = 100}, false);
    assert_int_equal(file.len, first); /* nothing has changed */
    assert_int_equal(feed(&k, "b", 2, 0, 1, 1, out), 1);
    score_stream_file_put(&file, k.streams, (struct score_stream_clock){.wall_ms = 100}, false);
    assert_int_equal(reopen(&k, &file, file.len, 8, 100, &whole), SHOAL_EFORMAT); /* model */
    assert_int_equal(score_streams_count(k.streams), 0);
    for (size_t n = 0; n < file.len; n++) { /* a write truncated anywhere */
        assert_int_equal(reopen(&k, &file, n, 7, 100, &whole), n < head ? SHOAL_EFORMAT : 0);
        assert_int_equal(whole, n < head ? 0 : n < first ? head : first);
        assert_int_equal(score_streams_count(k.streams), n < first ? 0 : 1);
    }
    assert_int_equal(reopen(&k, &file, file.len, 7, 100 + 3600000, &whole), 0);
    assert_int_equal(score_streams_count(k.streams), 2);
    assert_int_equal(reopen(&k, &file, file.len, 7, 101 + 3600000, &whole), 0); /* an hour later */
    assert_int_equal(score_streams_count(k.streams), 0);
    file.data[first - 1] ^= 1;
    assert_int_equal(reopen(&k, &file, file.len, 7, 100, &whole), 0);
    assert_int_equal(whole, head);
    assert_int_equal(score_streams_count(k.streams), 0);
    buf_fini(&file);
    close_kit(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_score_like_the_series),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_a_client_does_not_keep_others_out),
        cmocka_unit_test(test_a_file_continues_streams),
        cmocka_unit_test(test_a_file_that_is_not_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
