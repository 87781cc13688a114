/* test_safetensors.c - good files, broken files, shards, and memory that runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/safetensors.h"

static char folder[] = "/tmp/shoal-safetensors-XXXXXX";

/* A file with that header and this many bytes of data (0, 1, 2, ...). */
static size_t make(uint8_t *out, const char *header, size_t n_data)
{
    uint64_t n = strlen(header);
    memcpy(out, &n, 8);
    memcpy(out + 8, header, n);
    for (size_t i = 0; i < n_data; i++)
        out[8 + n + i] = (uint8_t)i;
    return 8 + n + n_data;
}

static void write_file(const char *name, const void *p, size_t n)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void remove_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    unlink(path);
}

static const char good[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
    "\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[5],\"data_offsets\":[24,34]},"
    "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[34,42]}}  ";

static void test_reads_names_shapes_and_data(void **state)
{
    (void)state;
    uint8_t file[1024];
    struct safetensors *s;
    struct err e = {0};
    size_t n = make(file, good, 42);
    assert_int_equal(safetensors_parse(&s, file, n, &e), 0);
    assert_int_equal(s->n_tensors, 3);
    const struct safetensors_tensor *b = safetensors_find(s, "b.weight");
    assert_non_null(b);
    assert_int_equal(b->type, SAFETENSORS_BF16);
    assert_int_equal(b->n_dims, 1);
    assert_int_equal(b->dims[0], 5);
    assert_int_equal(b->n_bytes, 10);
    assert_int_equal(b->data[0], 24);
    assert_int_equal(safetensors_find(s, "a")->dims[1], 3);
    assert_int_equal(safetensors_find(s, "n")->n_bytes, 8);
    assert_null(safetensors_find(s, "__metadata__"));
    safetensors_close(s);
}

#define TENSOR(type, shape, offsets)                                                               \
    "{\"t\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void test_refuses_broken_files_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *header, *says;
        int code;
    } cases[] = {
        {"", "not a JSON object", SHOAL_EFORMAT},
        {"[1]", "not a JSON object", SHOAL_EFORMAT},
        {"{\"t\":", "not a JSON object", SHOAL_EFORMAT},
        {"{\"t\":7}", "tensor t has no dtype", SHOAL_EFORMAT},
        {"{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "name of 0 bytes",
         SHOAL_EFORMAT},
        {TENSOR("F7", "[1]", "[0,4]"), "tensor t has type F7", SHOAL_EUNSUPPORTED},
        {TENSOR("F32", "7", "[0,4]"), "no shape", SHOAL_EFORMAT},
        {TENSOR("F32", "[-1]", "[0,4]"), "impossible dimensions", SHOAL_EFORMAT},
        {TENSOR("F32", "[1.5]", "[0,4]"), "impossible dimensions", SHOAL_EFORMAT},
        {TENSOR("F32", "[4294967296,4294967296,4]", "[0,4]"), "impossible dimensions",
         SHOAL_EFORMAT},
        {TENSOR("F32", "[1e300]", "[0,4]"), "impossible dimensions", SHOAL_EFORMAT},
        {TENSOR("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "more than 8 dimensions", SHOAL_EFORMAT},
        {TENSOR("F32", "[1]", "[0]"), "no data_offsets", SHOAL_EFORMAT},
        {TENSOR("F32", "[1]", "[4,0]"), "bytes 4 to 0 of the data", SHOAL_EFORMAT},
        {TENSOR("F32", "[5]", "[0,20]"), "the file has 16", SHOAL_EFORMAT},
        {TENSOR("F32", "[1]", "[0,8]"), "has 8 bytes, its shape needs 4", SHOAL_EFORMAT},
        {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         "two tensors are named t", SHOAL_EFORMAT},
    };
    uint8_t file[1024];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct safetensors *s = (void *)1;
        struct err e = {0};
        size_t n = make(file, cases[i].header, 16);
        int rc = safetensors_parse(&s, file, n, &e);
        if (rc != cases[i].code || !strstr(e.msg, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].header, rc, e.msg);
        assert_null(s);
    }
    struct safetensors *s;
    struct err e = {0};
    size_t n = make(file, good, 42);
    for (size_t cut = 0; cut < n; cut++) /* every prefix */
        assert_true(safetensors_parse(&s, file, cut, &e) < 0);
    memset(file, 0xff, 8);
    assert_int_equal(safetensors_parse(&s, file, n, &e), SHOAL_EFORMAT);
}

#define ONE(name) "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}"

static void write_shards(void)
{
    static const char index[] = "{\"metadata\":{},\"weight_map\":{\"a\":\"m-1.safetensors\","
                                "\"b\":\"m-2.safetensors\"}}";
    uint8_t file[256];
    write_file("m-1.safetensors", file, make(file, ONE("a"), 2));
    write_file("m-2.safetensors", file, make(file, ONE("b"), 2));
    write_file("model.safetensors.index.json", index, sizeof(index) - 1);
}

static void test_opens_shards(void **state)
{
    (void)state;
    struct safetensors *s;
    struct err e = {0};
    uint8_t file[256];
    write_shards();
    assert_int_equal(safetensors_open(&s, folder, &e), 0);
    assert_int_equal(s->n_maps, 2);
    assert_ptr_equal(safetensors_find(s, "a")->map, &s->maps[0]);
    assert_ptr_equal(safetensors_find(s, "b")->map, &s->maps[1]);
    assert_int_equal(safetensors_find(s, "b")->data[1], 1);
    safetensors_close(s);

    static const struct {
        const char *index, *says;
    } cases[] = {
        {"{\"weight_map\":{\"a\":\"m-1.safetensors\",\"c\":\"m-2.safetensors\"}}",
         "tensor c of the index is not in m-2.safetensors"},
        {"{\"weight_map\":{\"a\":\"../m-1.safetensors\"}}",
         "names a file outside of the folder: ../m-1.safetensors"},
        {"{\"weight_map\":{\"a\":\"m-3.safetensors\"}}", "m-3.safetensors: No such file"},
        {"{\"weight_map\":{\"a\":3}}", "no file for tensor a"},
        {"{\"weight_map\":{}}", "no weight_map"},
        {"nonsense", "no weight_map"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file("model.safetensors.index.json", cases[i].index, strlen(cases[i].index));
        assert_true(safetensors_open(&s, folder, &e) < 0);
        if (!strstr(e.msg, cases[i].says))
            fail_msg("%s: %s", cases[i].index, e.msg);
        assert_null(s);
    }
    /* one name in two shards */
    write_shards();
    write_file("m-2.safetensors", file, make(file, ONE("a"), 2));
    assert_int_equal(safetensors_open(&s, folder, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "two tensors are named a"));

    remove_file("model.safetensors.index.json");
    remove_file("m-1.safetensors");
    remove_file("m-2.safetensors");
    assert_int_equal(safetensors_open(&s, folder, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "has no model.safetensors"));
    write_file("pytorch_model.bin", "x", 1);
    assert_int_equal(safetensors_open(&s, folder, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "pytorch_model.bin is not read"));
    remove_file("pytorch_model.bin");
    write_shards();
    remove_file("model.safetensors.index.json");
    write_file("model.safetensors", file, make(file, ONE("x"), 2));
    assert_int_equal(safetensors_open(&s, folder, &e), 0);
    assert_int_equal(s->n_tensors, 1);
    safetensors_close(s);
    remove_file("model.safetensors");
    assert_int_equal(safetensors_open(&s, folder, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "several models: m-"));
    remove_file("m-2.safetensors"); /* a single file may have any name */
    assert_int_equal(safetensors_open(&s, folder, &e), 0);
    assert_non_null(safetensors_find(s, "a"));
    safetensors_close(s);
    remove_file("m-1.safetensors");
    remove_file("m-2.safetensors");
}

static void test_survives_failing_allocations(void **state)
{
    (void)state;
    struct safetensors *s;
    struct err e = {0};
    int failures = 0;
    write_shards();
    for (uint64_t at = 1;; at++) {
        mem_fail_at(at);
        int rc = safetensors_open(&s, folder, &e);
        mem_fail_at(0);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(s);
        failures++;
    }
    safetensors_close(s);
    assert_true(failures > 5);
    remove_file("model.safetensors.index.json");
    remove_file("m-1.safetensors");
    remove_file("m-2.safetensors");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_names_shapes_and_data),
        cmocka_unit_test(test_refuses_broken_files_with_a_reason),
        cmocka_unit_test(test_opens_shards),
        cmocka_unit_test(test_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
