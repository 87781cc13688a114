/* test_gguf.c - the places that a GGUF file claims for its tensors are checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/gguf_build.h"

enum { N_DATA = 256 };

/* One tensor of 8 floats at the offset, behind the alignment (0: none is given); the data follows.
 */
static int parse(struct model_file **m, struct buf *b, uint32_t alignment, uint64_t offset,
                 struct err *e)
{
    const uint64_t one = 1;
    gb_begin(b);
    if (alignment)
        gb_kv_u32(b, "general.alignment", alignment);
    gb_text(b, "t", 1);
    gb_u32(b, 1); /* dimensions */
    gb_u64(b, 8);
    gb_u32(b, QUANT_F32);
    gb_u64(b, offset);
    memcpy(b->data + 8, &one, sizeof(one));
    while (b->len % (alignment ? alignment : 32) != 0)
        buf_putc(b, 0);
    for (int i = 0; i < N_DATA; i++)
        buf_putc(b, (char)i);
    assert_int_equal(b->rc, 0);
    return gguf_parse(m, b->data, b->len, e);
}

static void test_tensors_begin_at_the_alignment_and_end_in_the_file(void **state)
{
    static const struct {
        uint32_t alignment;
        uint64_t offset;
        const char *error; /* NULL: it is fine */
    } cases[] = {
        {0, 0, NULL},
        {0, 32, NULL},
        {0, N_DATA - 32, NULL},
        {0, 1, "not aligned to 32"},
        {0, 16, "not aligned to 32"},
        {0, N_DATA, "needs 32 bytes"},
        {0, UINT64_MAX - 31, "needs 32 bytes"},
        {8, 8, NULL},
        {8, 24, NULL},
        {8, 4, "not aligned to 8"},
        {8, N_DATA - 24, "needs 32 bytes"},
        {64, 32, "not aligned to 64"},
        {3, 0, "small power of two"},
        {1u << 17, 0, "small power of two"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_file *m;
        struct buf b;
        struct err e = {0};
        int rc = parse(&m, &b, cases[i].alignment, cases[i].offset, &e);
        if (cases[i].error) {
            if (rc != SHOAL_EFORMAT || !strstr(e.msg, cases[i].error))
                fail_msg("row %zu: %d %s", i, rc, e.msg);
        } else {
            if (rc != 0)
                fail_msg("row %zu: %d %s", i, rc, e.msg);
            const uint8_t *at = m->tensors[0].data;
            assert_int_equal(at[0], cases[i].offset);
            assert_int_equal(at[31], cases[i].offset + 31);
        }
        model_file_close(m);
        buf_fini(&b);
    }
}

/* One tensor of a row with n_cols values, as much data as it should have, less `missing` bytes. */
static int parse_row(uint32_t type, uint64_t n_cols, size_t missing, struct err *e)
{
    const struct quant_info *qi = quant_info(type);
    const uint64_t one = 1;
    struct model_file *m;
    struct buf b;
    gb_begin(&b);
    gb_text(&b, "row", 3);
    gb_u32(&b, 1); /* dimensions */
    gb_u64(&b, n_cols);
    gb_u32(&b, type);
    gb_u64(&b, 0);
    memcpy(b.data + 8, &one, sizeof(one));
    while (b.len % 32 != 0)
        buf_putc(&b, 0);
    for (size_t i = missing; i < n_cols / qi->block * qi->block_bytes; i++)
        buf_putc(&b, 0);
    assert_int_equal(b.rc, 0);
    const int rc = gguf_parse(&m, b.data, b.len, e);
    model_file_close(m);
    buf_fini(&b);
    return rc;
}

/* Rows are whole blocks of their type, or the file is refused with the tensor and the type. */
static void test_rows_are_whole_blocks_of_a_readable_type(void **state)
{
    int n_refused = 0;
    (void)state;
    for (uint32_t type = 0; type < QUANT_N_TYPES; type++) {
        const struct quant_info *qi = quant_info(type);
        struct err e = {0};
        char want[96];
        if (!qi->supported) {
            snprintf(want, sizeof(want), "tensor row has type %s, which is not supported",
                     qi->name);
            assert_int_equal(parse_row(type, qi->block, 0, &e), SHOAL_EUNSUPPORTED);
            assert_string_equal(e.msg, want);
            n_refused++;
            continue;
        }
        if (parse_row(type, 2 * (uint64_t)qi->block, 0, &e) != 0)
            fail_msg("%s: %s", qi->name, e.msg);
        assert_int_equal(parse_row(type, 2 * (uint64_t)qi->block, 1, &e), SHOAL_EFORMAT);
        if (qi->block == 1)
            continue;
        snprintf(want, sizeof(want), "tensor row has impossible dimensions for %s", qi->name);
        for (uint32_t over = 1; over < qi->block; over *= 2) {
            assert_int_equal(parse_row(type, qi->block + over, 0, &e), SHOAL_EFORMAT);
            assert_string_equal(e.msg, want);
        }
    }
    assert_int_equal(n_refused, QUANT_N_TYPES - 26);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_whole_blocks_of_a_readable_type),
        cmocka_unit_test(test_tensors_begin_at_the_alignment_and_end_in_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
