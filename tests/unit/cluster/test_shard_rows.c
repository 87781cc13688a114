/* test_shard_rows.c - slices of results between parts by rows: what is sent arrives in its place,
 * and nonsense does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/shard/shard_rows.h"

#define N_TOKENS 3u
#define N_COLS 10u

static const uint32_t cuts[] = {0, 4, 4, 10}; /* the second part has nothing */

static struct decoder_gather gather_over(float *data)
{
    struct decoder_gather g = {.data = data, .ld = N_COLS, .n_tokens = N_TOKENS, .number = 7};
    memcpy(g.cuts, cuts, sizeof(cuts));
    return g;
}

static void fill(float *data, uint32_t part)
{
    for (uint32_t i = 0; i < N_TOKENS * N_COLS; i++)
        data[i] = i % N_COLS >= cuts[part] && i % N_COLS < cuts[part + 1] ? (float)i : -1.0f;
}

/* The frame that a part would send. */
static struct shard_frame frame_of(struct buf *b, uint32_t part, uint64_t chain, uint64_t step)
{
    float data[N_TOKENS * N_COLS];
    struct shard_frame f;
    fill(data, part);
    const struct decoder_gather g = gather_over(data);
    const struct shard_gather s = shard_gather_begin(&g, chain, step, 3, part);
    buf_clear(b);
    shard_gather_put(b, &s, 5);
    assert_int_equal(shard_frame_next(&f, (const uint8_t *)b->data, b->len, NULL), 1);
    return f;
}

static void test_columns_come_to_their_place(void **state)
{
    (void)state;
    float data[N_TOKENS * N_COLS];
    struct shard_slice slice;
    struct buf b;
    buf_init(&b, 4096);
    fill(data, 2);
    const struct decoder_gather g = gather_over(data);
    struct shard_gather s = shard_gather_begin(&g, 11, 22, 3, 2);
    assert_false(shard_gather_done(&s));
    const struct shard_frame f = frame_of(&b, 0, 11, 22);
    assert_int_equal(shard_gather_take(&s, &f, &slice, NULL), 0);
    assert_true(slice.part == 0 && slice.compute_ns == 5);
    assert_true(shard_gather_done(&s)); /* nothing comes from the part without columns */
    for (uint32_t i = 0; i < N_TOKENS * N_COLS; i++)
        assert_true(data[i] == (float)i);
    assert_int_equal(shard_gather_take(&s, &f, &slice, NULL), SHOAL_EFORMAT); /* twice */
    buf_fini(&b);
}

static void test_a_part_without_columns_sends_nothing(void **state)
{
    (void)state;
    float data[N_TOKENS * N_COLS] = {0};
    const struct decoder_gather g = gather_over(data);
    const struct shard_gather s = shard_gather_begin(&g, 1, 2, 3, 1);
    struct buf b;
    buf_init(&b, 4096);
    shard_gather_put(&b, &s, 0);
    assert_int_equal(b.len, 0);
    buf_fini(&b);
}

static void test_refuses_nonsense(void **state)
{
    (void)state;
    /* each changes 4 bytes of the body: chain, step, gather, part, tokens, columns, a value */
    static const struct {
        size_t at;
        uint32_t value;
    } bad[] = {{0, 12},       {8, 23}, {24, 8}, {28, 1},           {28, 2},
               {28, 5},       {32, 2}, {36, 3}, {40, 0x7fc00000u}, {40 + 44, 0xff800000u},
               {36, 1u << 30}};
    float data[N_TOKENS * N_COLS];
    struct buf b;
    buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct shard_slice slice;
        struct err e = {0};
        fill(data, 2);
        const struct decoder_gather g = gather_over(data);
        struct shard_gather s = shard_gather_begin(&g, 11, 22, 3, 2);
        struct shard_frame f = frame_of(&b, 0, 11, 22);
        memcpy(b.data + SHARD_MSG_HEAD + bad[i].at, &bad[i].value, 4);
        if (shard_gather_take(&s, &f, &slice, &e) != SHOAL_EFORMAT || e.msg[0] == '\0')
            fail_msg("slice %zu is taken", i);
        assert_false(shard_gather_done(&s));
    }
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_come_to_their_place),
        cmocka_unit_test(test_a_part_without_columns_sends_nothing),
        cmocka_unit_test(test_refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
