/* test_model_file.c - metadata written and read back, tensors in every order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/model_file.h"

static struct model_file *create(void)
{
    struct model_file *m;
    struct err e = {0};
    assert_int_equal(model_file_create(&m, &e), 0);
    return m;
}

static void test_values_come_back_with_their_type(void **state)
{
    (void)state;
    struct model_file *m = create();
    struct err e = {0};
    const struct str words[] = {STR("one"), STR(""), STR("three")};
    const int16_t numbers[] = {-3, 7};
    const uint64_t large = UINT64_MAX;
    uint64_t u;
    double f;
    bool b;
    struct str s;
    int64_t i;

    model_file_put_u32(m, "u", 5);
    model_file_put_f32(m, "f", 0.5f);
    model_file_put_bool(m, "b", true);
    model_file_put_str(m, "s", "a\0b", 3);
    model_file_put_scalar(m, "large", MODEL_FILE_U64, &large);
    model_file_put_array(m, "numbers", MODEL_FILE_I16, numbers, 2);
    model_file_put_strings(m, "words", words, 3);
    assert_int_equal(model_file_check(m, &e), 0);
    assert_int_equal(m->n_values, 7);

    assert_true(model_file_get_u64(m, "u", &u) && u == 5);
    assert_true(model_file_get_f64(m, "u", &f) && f == 5);
    assert_true(model_file_get_f64(m, "f", &f) && f == 0.5);
    assert_false(model_file_get_u64(m, "f", &u));
    assert_true(model_file_get_bool(m, "b", &b) && b);
    assert_false(model_file_get_bool(m, "u", &b));
    assert_true(model_file_get_str(m, "s", &s) && s.n == 3 && memcmp(s.p, "a\0b", 3) == 0);
    assert_false(model_file_get_str(m, "u", &s));
    assert_false(model_file_get_u64(m, "large", &u)); /* above what int64 holds */
    assert_false(model_file_get_u64(m, "numbers", &u));
    const struct model_file_value *v = model_file_find(m, "numbers");
    assert_true(model_file_i64_at(v, 0, &i) && i == -3);
    assert_true(model_file_f64_at(v, 1, &f) && f == 7);
    assert_false(model_file_i64_at(v, 2, &i));
    struct model_file_strings it = model_file_strings(model_file_find(m, "words"));
    for (size_t k = 0; k < 3; k++) {
        assert_true(model_file_strings_next(&it, &s));
        assert_true(s.n == words[k].n && memcmp(s.p, words[k].p, s.n) == 0);
    }
    assert_false(model_file_strings_next(&it, &s));
    it = model_file_strings(v); /* not an array of strings */
    assert_false(model_file_strings_next(&it, &s));
    assert_null(model_file_find(m, "none"));
    model_file_close(m);
}

static void test_keys_are_replaced_and_copied(void **state)
{
    (void)state;
    struct model_file *m = create(), *copy = create();
    uint64_t u;
    struct str s;
    model_file_put_u32(m, "a", 1);
    model_file_put_u32(m, "b", 2);
    model_file_put_str(m, "a", "text", 4); /* keeps its place, changes its type */
    assert_int_equal(m->n_values, 2);
    assert_true(&m->values[0] == model_file_find(m, "a"));
    assert_true(model_file_get_str(m, "a", &s) && str_is(s, "text"));
    model_file_put_u32(copy, "b", 9);
    model_file_put_all(copy, m);
    model_file_close(m);
    assert_true(model_file_get_u64(copy, "b", &u) && u == 2); /* does not need its source */
    assert_true(model_file_get_str(copy, "a", &s) && str_is(s, "text"));
    model_file_close(copy);
}

static void test_the_first_failure_stays(void **state)
{
    (void)state;
    struct model_file *m = create();
    struct err e = {0};
    uint32_t v = 1;
    model_file_put_scalar(m, "bad", MODEL_FILE_STRING, &v);
    model_file_put_u32(m, "good", 1);
    assert_int_equal(model_file_check(m, &e), SHOAL_EINVAL);
    assert_string_equal(e.msg, "string is not a scalar type");
    assert_int_equal(m->n_values, 0);
    model_file_close(m);

    m = create();
    model_file_put_u32(m, "", 1);
    assert_int_equal(model_file_check(m, &e), SHOAL_EINVAL);
    model_file_close(m);

    m = create();
    model_file_put_array(m, "a", MODEL_FILE_F64, &v, SIZE_MAX / 2);
    assert_int_equal(model_file_check(m, &e), SHOAL_EINVAL);
    model_file_close(m);
}

static void fill(struct model_file *m)
{
    const struct str words[] = {STR("a"), STR("b")};
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "key.%d", i);
        model_file_put_strings(m, key, words, 2);
        if (!model_file_add_tensor(m) || !model_file_alloc(m, 200))
            err_set(&m->first, SHOAL_ENOMEM, "out of memory");
    }
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    uint64_t n = 1;
    for (;; n++) {
        struct model_file *m;
        struct err e = {0};
        mem_fail_at(n);
        int rc = model_file_create(&m, &e);
        if (rc == 0) {
            fill(m);
            rc = model_file_check(m, &e);
        }
        mem_fail_at(0);
        model_file_close(m);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
    }
    assert_true(n > 8);
}

static void computed(const void *ctx, uint64_t row, float *out)
{
    for (int i = 0; i < 2; i++)
        out[i] = (float)row * 2 + (float)i + *(const float *)ctx;
}

/* The matrix 0..7 of four rows, stored in every order. */
static void test_rows_in_every_order(void **state)
{
    static const float plain[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const float transposed[] = {0, 2, 4, 6, 1, 3, 5, 7};
    static const float halves[] = {0, 1, 4, 5, 2, 3, 6, 7}; /* rows 0, 2, 1, 3 */
    static const float zero = 0;
    const struct {
        const char *why;
        struct model_file_tensor t;
    } cases[] = {
        {"plain", {.order = MODEL_FILE_PLAIN, .data = (const uint8_t *)plain}},
        {"transposed", {.order = MODEL_FILE_TRANSPOSED, .stored = (const uint8_t *)transposed}},
        {"halves", {.order = MODEL_FILE_HALVES, .stored = (const uint8_t *)halves, .n_heads = 1}},
        {"computed", {.order = MODEL_FILE_COMPUTED, .row = computed, .row_ctx = &zero}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct model_file_tensor t = cases[k].t;
        float row[2], all[8];
        t.type = QUANT_F32;
        t.n_dims = 2;
        t.dims[0] = 2;
        t.dims[1] = 4;
        t.dims[2] = t.dims[3] = 1;
        for (uint64_t r = 0; r < 4; r++) {
            model_file_row_f32(&t, r, row);
            if (row[0] != plain[2 * r] || row[1] != plain[2 * r + 1])
                fail_msg("%s: row %d", cases[k].why, (int)r);
        }
        if (t.order == MODEL_FILE_COMPUTED)
            continue;
        model_file_rows(&t, 0, 4, 0, 2, all);
        if (memcmp(all, plain, sizeof(all)) != 0)
            fail_msg("%s: all rows", cases[k].why);
        model_file_rows(&t, 1, 2, 1, 1, all); /* the second column of the middle rows */
        if (all[0] != 3 || all[1] != 5)
            fail_msg("%s: a part", cases[k].why);
    }
}

static void test_documents_point_into_their_file(void **state)
{
    (void)state;
    char path[] = "/tmp/shoal-document-XXXXXX";
    int fd = mkstemp(path);
    struct model_file *m = create();
    struct file_map map;
    struct err e = {0};
    struct str s;
    assert_true(fd >= 0 && write(fd, "{\"a\": 1}", 8) == 8 && close(fd) == 0);
    assert_int_equal(file_map_open(&map, path, &e), 0);
    const uint8_t *bytes = map.bytes;
    model_file_put_document(m, "doc", false, &map);
    assert_null(map.bytes); /* moved */
    assert_int_equal(file_map_open(&map, path, &e), 0);
    model_file_put_document(m, "bin", true, &map);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(model_file_check(m, &e), 0);
    model_file_trim_metadata(m); /* pages are released, content stays */
    assert_true(model_file_get_str(m, "doc", &s) && (const uint8_t *)s.p == bytes);
    assert_true(str_is(s, "{\"a\": 1}"));
    const struct model_file_value *v = model_file_find(m, "bin");
    assert_true(v->type == MODEL_FILE_ARRAY && v->elem_type == MODEL_FILE_U8 && v->n_elems == 8);
    model_file_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_come_back_with_their_type),
        cmocka_unit_test(test_keys_are_replaced_and_copied),
        cmocka_unit_test(test_the_first_failure_stays),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_rows_in_every_order),
        cmocka_unit_test(test_documents_point_into_their_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
