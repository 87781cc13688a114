/* test_onnx.c - which files make up an ONNX model, and a missing library. What needs the library
 * is in tests/conformance/onnx.js. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/onnx/onnx_api.h"
#include "engine/onnx/onnx_encoder.h"
#include "engine/onnx/onnx_files.h"
#include "engine/onnx/onnx_lm.h"

static char root[PATH_MAX];

static const char *at(const char *name)
{
    static char path[4][PATH_MAX];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, PATH_MAX, "%.2000s/%.2000s", root, name);
    return out;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int begin(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/shoal-onnx-unit-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    mkdir(at("onnx"), 0755);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char command[PATH_MAX + 16];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    return system(command);
}

/* The file that a path refers to, relative to the root; "" if it is not an ONNX model. */
static const char *found(const char *path)
{
    static struct onnx_files f;
    struct err e = {0};
    int rc = onnx_files_find(&f, path, &e);
    if (rc < 0)
        return err_name(rc);
    return rc == 0 ? "" : f.model + strlen(root) + 1;
}

static void test_a_folder_means_one_file(void **state)
{
    (void)state;
    assert_string_equal(found(root), "");
    put("any.onnx", "x");
    assert_string_equal(found(root), "any.onnx");
    put("other.onnx", "x");
    assert_string_equal(found(root), "INVAL");
    put("model.onnx", "x");
    assert_string_equal(found(root), "model.onnx");
    put("onnx/b.onnx", "x");
    assert_string_equal(found(root), "model.onnx");
    put("onnx/model.onnx", "x");
    assert_string_equal(found(root), "onnx/model.onnx");
    put("onnx/model_quantized.onnx", "x");
    assert_string_equal(found(root), "onnx/model_quantized.onnx");
    put("model.safetensors", "x"); /* then the native engine takes it, unless a file is named */
    assert_string_equal(found(root), "");
    assert_string_equal(found(at("onnx/model.onnx")), "onnx/model.onnx");
}

static void test_what_is_no_onnx_model(void **state)
{
    (void)state;
    static char path[PATH_MAX + 10];
    put("model.gguf", "GGUF");
    mkdir(at("folder.onnx"), 0755);
    assert_string_equal(found(at("model.gguf")), "");
    assert_string_equal(found(at("folder.onnx")), "");
    assert_string_equal(found(at("missing")), "");
    assert_string_equal(found(at("missing.onnx")), "IO");
    assert_string_equal(found("/dev/null"), "");
    memset(path, 'a', sizeof(path) - 1);
    assert_string_equal(found(path), "LIMIT");
}

static void test_documents_are_next_to_it_or_above(void **state)
{
    (void)state;
    struct onnx_files f;
    struct model_file *g;
    struct str s;
    struct err e = {0};
    put("onnx/model.onnx", "x");
    assert_int_equal(onnx_files_find(&f, at("onnx/model.onnx"), &e), 1);
    assert_string_equal(f.folder, "");
    assert_int_equal(onnx_files_open(&f, &g, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "tokenizer.json"));
    put("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n");
    put("config.json", "{\"model_type\":\"thing\",\"max_position_embeddings\":77}");
    assert_int_equal(onnx_files_find(&f, at("onnx/model.onnx"), &e), 1);
    assert_int_equal(onnx_files_open(&f, &g, &e), 0);
    assert_int_equal(onnx_files_n_ctx(g), 77);
    assert_int_equal(g->n_tensors, 0);
    assert_true(model_file_get_str(g, "general.architecture", &s) && s.n == 5);
    model_file_close(g);
    put("onnx/config.json", "{}"); /* nearer, but empty */
    assert_int_equal(onnx_files_find(&f, at("onnx/model.onnx"), &e), 1);
    assert_int_equal(onnx_files_open(&f, &g, &e), 0);
    assert_int_equal(onnx_files_n_ctx(g), 0);
    model_file_close(g);
    put("onnx/config.json",
        "{\"max_position_embeddings\":1e99,\"n_positions\":\"5\",\"n_ctx\":-1}");
    assert_int_equal(onnx_files_open(&f, &g, &e), 0);
    assert_int_equal(onnx_files_n_ctx(g), 0);
    model_file_close(g);
    put("onnx/config.json", "{\"model_type\":\"roberta\",\"max_position_embeddings\":514}");
    assert_int_equal(onnx_files_open(&f, &g, &e), 0);
    assert_int_equal(onnx_files_n_ctx(g), 512);
    model_file_close(g);
    put("onnx/config.json", "[1");
    assert_int_equal(onnx_files_open(&f, &g, &e), SHOAL_EFORMAT);
    assert_null(g);
}

static void test_documents_without_memory(void **state)
{
    (void)state;
    struct onnx_files f;
    struct model_file *g;
    struct err e = {0};
    put("model.onnx", "x");
    put("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n");
    put("config.json", "{\"model_type\":\"thing\"}");
    assert_int_equal(onnx_files_find(&f, root, &e), 1);
    for (uint64_t n = 1;; n++) {
        mem_fail_at(n);
        int rc = onnx_files_open(&f, &g, &e);
        mem_fail_at(0);
        if (rc == 0) {
            assert_true(n > 3);
            model_file_close(g);
            return;
        }
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(g);
    }
}

static void test_a_missing_library_says_how_to_install_it(void **state)
{
    (void)state;
    struct onnx_lib *lib;
    struct onnx_encoder *enc;
    struct lm lm;
    struct err e = {0};
    put("model.onnx", "x");
    setenv("SHOAL_ONNXRUNTIME", at("nothing"), 1);
    assert_int_equal(onnx_lib_open(&lib, &e), SHOAL_ENOTFOUND);
    assert_null(lib);
    assert_non_null(strstr(e.msg, "tools/install-onnxruntime"));
    assert_int_equal(onnx_encoder_open(&enc, at("model.onnx"), &(struct onnx_encoder_opts){0}, &e),
                     SHOAL_ENOTFOUND);
    assert_null(enc);
    assert_int_equal(
        onnx_lm_open(&lm, at("model.onnx"), &(struct onnx_lm_opts){.max_tasks = 1}, &e),
        SHOAL_ENOTFOUND);
    assert_null(lm.ops);
    mkdir(at("nothing"), 0755); /* a folder without the library */
    assert_int_equal(onnx_lib_open(&lib, &e), SHOAL_ENOTFOUND);
    put("nothing/libonnxruntime.so.1", "not a library");
    assert_int_equal(onnx_lib_open(&lib, &e), SHOAL_EUNSUPPORTED);
    unsetenv("SHOAL_ONNXRUNTIME");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_folder_means_one_file),
        TEST(test_what_is_no_onnx_model),
        TEST(test_documents_are_next_to_it_or_above),
        TEST(test_documents_without_memory),
        TEST(test_a_missing_library_says_how_to_install_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
