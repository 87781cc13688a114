/* test_gguf_write.c - the reader reads back what the GGUF writer wrote; failures leave no file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "format/gguf.h"
#include "format/gguf_write.h"

static char folder[64];
static char path[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/shoal-gguf-write-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/m.gguf", folder);
    return 0;
}

static int count_files(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));)
        n += f->d_name[0] != '.';
    closedir(d);
    return n;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if a test left other files behind */
}

/* One value of every type, then two tensors of 96 and 100 floats. */
static int write_sample(struct err *e)
{
    static const uint64_t dims[2] = {32, 3}, vector[1] = {100};
    static const struct str words[] = {{"a", 1}, {"", 0}, {"c\0d", 3}};
    static const int16_t shorts[] = {-3, 0, 7};
    int8_t i8 = -5;
    uint8_t u8 = 200;
    uint16_t u16 = 60000;
    int16_t i16 = -30000;
    int32_t i32 = -2000000000;
    uint64_t u64 = INT64_MAX;
    int64_t i64 = INT64_MIN;
    double f64 = 0.1;
    float data[100];
    struct gguf_write *w;

    int rc = gguf_write_create(&w, path, e);
    if (rc < 0)
        return rc;
    gguf_write_str(w, "general.architecture", "test", 4);
    gguf_write_scalar(w, "t.u8", MODEL_FILE_U8, &u8);
    gguf_write_scalar(w, "t.i8", MODEL_FILE_I8, &i8);
    gguf_write_scalar(w, "t.u16", MODEL_FILE_U16, &u16);
    gguf_write_scalar(w, "t.i16", MODEL_FILE_I16, &i16);
    gguf_write_u32(w, "t.u32", 4000000000u);
    gguf_write_scalar(w, "t.i32", MODEL_FILE_I32, &i32);
    gguf_write_f32(w, "t.f32", 0.25f);
    gguf_write_bool(w, "t.bool", true);
    gguf_write_scalar(w, "t.u64", MODEL_FILE_U64, &u64);
    gguf_write_scalar(w, "t.i64", MODEL_FILE_I64, &i64);
    gguf_write_scalar(w, "t.f64", MODEL_FILE_F64, &f64);
    gguf_write_strings(w, "t.words", words, 3);
    gguf_write_array(w, "t.shorts", MODEL_FILE_I16, shorts, 3);
    gguf_write_array(w, "t.none", MODEL_FILE_U8, NULL, 0);
    gguf_write_u32(w, "t.u32", 4000000001u); /* set again: new value, old position */
    gguf_write_u32(w, "general.alignment", 64);
    gguf_write_tensor(w, "one", 3, QUANT_Q8_0, 2, dims);
    gguf_write_tensor(w, "two", 3, QUANT_F32, 1, vector);
    rc = gguf_write_begin(w, e);
    for (int i = 0; i < 100; i++)
        data[i] = (float)i;
    uint8_t block[34 * 3];
    memset(block, 7, sizeof(block));
    for (size_t i = 0; rc == 0 && i < sizeof(block); i += 51) /* pieces of any size */
        rc = gguf_write_data(w, block + i, 51, e);
    if (rc == 0)
        rc = gguf_write_data(w, data, sizeof(data), e);
    if (rc == 0)
        rc = gguf_write_finish(w, e);
    gguf_write_destroy(w);
    return rc;
}

static void test_the_reader_reads_what_was_written(void **state)
{
    struct err e = {0};
    struct model_file *g;
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    struct str s;
    (void)state;

    assert_int_equal(write_sample(&e), 0);
    assert_int_equal(count_files(), 1);
    assert_int_equal(gguf_open(&g, path, &e), 0);
    assert_int_equal(g->gguf_version, 3);
    assert_int_equal(g->n_values, 16);
    assert_true(model_file_get_str(g, "general.architecture", &s) && s.n == 4);
    assert_true(model_file_get_u64(g, "t.u8", &u) && u == 200);
    assert_true(model_file_i64_at(model_file_find(g, "t.i8"), 0, &i) && i == -5);
    assert_true(model_file_get_u64(g, "t.u16", &u) && u == 60000);
    assert_true(model_file_i64_at(model_file_find(g, "t.i16"), 0, &i) && i == -30000);
    assert_true(model_file_get_u64(g, "t.u32", &u) && u == 4000000001u);
    assert_true(&g->values[5] == model_file_find(g, "t.u32"));
    assert_true(model_file_i64_at(model_file_find(g, "t.i32"), 0, &i) && i == -2000000000);
    assert_true(model_file_get_f64(g, "t.f32", &f) && f == 0.25);
    assert_true(model_file_get_bool(g, "t.bool", &b) && b);
    assert_true(model_file_get_u64(g, "t.u64", &u) && u == INT64_MAX);
    assert_true(model_file_i64_at(model_file_find(g, "t.i64"), 0, &i) && i == INT64_MIN);
    assert_true(model_file_get_f64(g, "t.f64", &f) && f == 0.1);
    const struct model_file_value *kv = model_file_find(g, "t.words");
    assert_true(kv && kv->n_elems == 3);
    struct model_file_strings words = model_file_strings(kv);
    assert_true(model_file_strings_next(&words, &s) && s.n == 1 && s.p[0] == 'a');
    assert_true(model_file_strings_next(&words, &s) && s.n == 0);
    assert_true(model_file_strings_next(&words, &s) && s.n == 3 && !memcmp(s.p, "c\0d", 3));
    assert_false(model_file_strings_next(&words, &s));
    kv = model_file_find(g, "t.shorts");
    words = model_file_strings(kv);
    assert_false(model_file_strings_next(&words, &s));
    assert_true(kv && kv->n_elems == 3 && model_file_i64_at(kv, 0, &i) && i == -3);
    kv = model_file_find(g, "t.none");
    assert_true(kv && kv->n_elems == 0);
    assert_null(model_file_find(g, "t.never"));

    assert_int_equal(g->n_tensors, 2);
    const struct model_file_tensor *t = model_file_find_tensor(g, "one");
    assert_true(t && t->type == QUANT_Q8_0 && t->dims[0] == 32 && t->dims[1] == 3);
    assert_int_equal((size_t)(t->data - g->maps[0].bytes) % 64, 0);
    assert_true(t->data[0] == 7 && t->data[34 * 3 - 1] == 7);
    t = model_file_find_tensor(g, "two");
    assert_true(t && t->n_bytes == 400);
    assert_int_equal((size_t)(t->data - g->maps[0].bytes) % 64, 0);
    float last;
    memcpy(&last, t->data + 396, sizeof(last));
    assert_true(last == 99);
    model_file_close(g);
}

static void test_a_copy_is_equal_and_may_replace_its_source(void **state)
{
    struct err e = {0};
    struct model_file *a, *b;
    struct gguf_write *w;
    (void)state;
    assert_int_equal(write_sample(&e), 0);
    assert_int_equal(gguf_open(&a, path, &e), 0);
    assert_int_equal(gguf_write_create(&w, path, &e), 0);
    gguf_write_copy(w, a);
    for (size_t i = 0; i < a->n_tensors; i++)
        gguf_write_tensor(w, a->tensors[i].name.p, a->tensors[i].name.n, a->tensors[i].type,
                          a->tensors[i].n_dims, a->tensors[i].dims);
    assert_int_equal(gguf_write_begin(w, &e), 0);
    for (size_t i = 0; i < a->n_tensors; i++)
        assert_int_equal(gguf_write_data(w, a->tensors[i].data, a->tensors[i].n_bytes, &e), 0);
    uint64_t size = gguf_write_size(w);
    assert_int_equal(gguf_write_finish(w, &e), 0);
    gguf_write_destroy(w);
    assert_int_equal(gguf_open(&b, path, &e), 0);
    assert_int_equal(b->n_bytes, size);
    assert_int_equal(a->n_bytes, b->n_bytes);
    assert_memory_equal(a->maps[0].bytes, b->maps[0].bytes, a->n_bytes);
    model_file_close(a);
    model_file_close(b);
    assert_int_equal(count_files(), 1);
}

static void test_misuse_is_an_error(void **state)
{
    static const uint64_t dims[4] = {32, 0, 1, 1}, odd[1] = {33}, fine[1] = {32};
    static const struct {
        const char *why;
        uint32_t n_dims;
        const uint64_t *dims;
        const char *name;
    } rows[] = {
        {"no dimension", 0, fine, "t"},
        {"too many", 5, dims, "t"},
        {"an empty one", 2, dims, "t"},
        {"not whole blocks", 1, odd, "t"},
        {"no name", 1, fine, ""},
        {"a name others refuse", 1, fine,
         "a-name-of-64-bytes-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"the same name twice", 1, fine, "first"},
    };
    struct err e;
    struct gguf_write *w;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(gguf_write_create(&w, path, &e), 0);
        gguf_write_tensor(w, "first", 5, QUANT_F32, 1, fine);
        gguf_write_tensor(w, rows[i].name, strlen(rows[i].name), QUANT_Q8_0, rows[i].n_dims,
                          rows[i].dims);
        gguf_write_u32(w, "later", 1); /* the first failure is the one reported */
        e = (struct err){0};
        if (gguf_write_begin(w, &e) != SHOAL_EINVAL || !strstr(e.msg, "tensor"))
            fail_msg("%s: %s", rows[i].why, e.msg);
        gguf_write_destroy(w);
    }
    /* Data that does not fit the declaration. */
    assert_int_equal(gguf_write_create(&w, path, &e), 0);
    gguf_write_tensor(w, "t", 1, QUANT_F32, 1, fine);
    assert_int_equal(gguf_write_begin(w, &e), 0);
    assert_int_equal(gguf_write_data(w, path, 129, &e), SHOAL_EINTERNAL);
    assert_int_equal(gguf_write_finish(w, &e), SHOAL_EINTERNAL); /* no data yet */
    gguf_write_destroy(w);
    uint32_t three = 3;
    assert_int_equal(gguf_write_create(&w, path, &e), 0);
    gguf_write_scalar(w, "general.alignment", MODEL_FILE_U32, &three);
    assert_int_equal(gguf_write_begin(w, &e), SHOAL_EINVAL);
    gguf_write_destroy(w);
    assert_int_equal(count_files(), 0);
}

static void test_places_that_cannot_be_written(void **state)
{
    struct err e = {0};
    struct gguf_write *w;
    char p[128];
    (void)state;
    snprintf(p, sizeof(p), "%s/no/such/folder", folder);
    assert_int_equal(gguf_write_create(&w, p, &e), SHOAL_EIO);
    assert_null(w);
    assert_non_null(strstr(e.msg, "cannot create"));
    assert_int_equal(gguf_write_create(&w, "/dev/full", &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "not a regular file"));
    assert_int_equal(gguf_write_create(&w, folder, &e), SHOAL_EIO);
}

/* A file-size limit simulates a full disk: the same path through fallocate and write. */
static void test_a_full_disk_leaves_the_old_file_and_no_other(void **state)
{
    struct err e = {0};
    struct model_file *g;
    struct rlimit old, small = {0};
    (void)state;
    assert_int_equal(write_sample(&e), 0);
    void (*former)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = write_sample(&e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, former);
    assert_int_equal(rc, SHOAL_EIO);
    assert_non_null(strstr(e.msg, "m.gguf"));
    assert_non_null(strstr(e.msg, "File too large"));
    assert_int_equal(count_files(), 1);
    assert_int_equal(gguf_open(&g, path, &e), 0); /* the old one, complete */
    model_file_close(g);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct err e = {0};
        mem_fail_at(n);
        int rc = write_sample(&e);
        mem_fail_at(0);
        if (rc == 0) {
            assert_true(n > 15);
            break;
        }
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_true(e.msg[0] != '\0');
        assert_int_equal(count_files(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_reader_reads_what_was_written, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_copy_is_equal_and_may_replace_its_source,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_misuse_is_an_error, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_places_that_cannot_be_written, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_full_disk_leaves_the_old_file_and_no_other,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_every_allocation_may_fail, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
