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
    struct buf packed;
    buf_init(&packed, 4096);
    buf_clear(b);
    shard_gather_put(b, &packed, &s, 5);
    buf_fini(&packed);
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
    struct buf b, packed;
    buf_init(&b, 4096);
    buf_init(&packed, 4096);
    shard_gather_put(&b, &packed, &s, 0);
    assert_int_equal(b.len, 0);
    buf_fini(&b);
    buf_fini(&packed);
}

/* In 8 bits a value is off by 1/254 of its block's largest at most, and sender and receiver have
 * the same. */
static void test_in_8_bits(void **state)
{
    (void)state;
    enum { COLS = 70 };
    float sent[COLS], before[COLS], got[COLS];
    struct buf out, packed;
    struct shard_frame f;
    struct shard_slice slice;
    for (uint32_t i = 0; i < COLS; i++)
        sent[i] = before[i] = ((float)(i * 7919u % 1000u) - 500.0f) * (i < 32 ? 1.0f : 1e-3f);
    struct decoder_gather g = {.data = sent, .ld = COLS, .n_tokens = 1, .cuts = {0, COLS, COLS}};
    struct shard_gather s = shard_gather_begin(&g, 1, 2, 2, 0);
    s.q8 = true;
    buf_init(&out, 4096);
    buf_init(&packed, 4096);
    shard_gather_put(&out, &packed, &s, 0);
    assert_int_equal(shard_frame_next(&f, (const uint8_t *)out.data, out.len, NULL), 1);
    assert_int_equal(f.body_bytes, 40 + 3 * 36);
    g.data = got;
    struct shard_gather exact = shard_gather_begin(&g, 1, 2, 2, 1), other = exact;
    exact.got = other.got = 2; /* the columns of part 0 are missing */
    assert_int_equal(shard_gather_take(&exact, &f, &slice, NULL), SHOAL_EFORMAT); /* not agreed */
    other.q8 = true;
    assert_int_equal(shard_gather_take(&other, &f, &slice, NULL), 0);
    assert_memory_equal(got, sent, sizeof(got));
    for (uint32_t i = 0; i < COLS; i++) {
        const float off = got[i] - before[i], most = i < 32 ? 500.0f : 0.5f;
        assert_true(off <= most / 253.0f && off >= -most / 253.0f);
    }
    sent[40] = __builtin_nanf(""); /* what is not a number stays none */
    g.data = sent;
    buf_clear(&out);
    shard_gather_put(&out, &packed, &s, 0);
    assert_int_equal(shard_frame_next(&f, (const uint8_t *)out.data, out.len, NULL), 1);
    other.got = 2;
    assert_int_equal(shard_gather_take(&other, &f, &slice, NULL), SHOAL_EFORMAT);
    buf_fini(&out);
    buf_fini(&packed);
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
        cmocka_unit_test(test_in_8_bits),
        cmocka_unit_test(test_refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
