/* test_cuda.c - the CUDA backend around its kernel: a driver that is missing, too old or failing,
 * and an engine that generates on an emulated GPU (tests/tools/cuda_fake.c).  make test-cuda runs
 * what needs a real one. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/cuda/cuda_gpu.h"
#include "format/convert/quantize.h"
#include "format/gguf.h"
#include "shoal/shoal.h"

#define MODEL SHOAL_TEST_DATA "/refs/llama-gqa.gguf"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EMULATOR_RUNS 0 /* see step_emulator.h */
#else
#define EMULATOR_RUNS 1
#endif

static char code[64];

static void pretend(const char *what)
{
    setenv("SHOAL_CUDA", CUDA_FAKE_LIBRARY, 1);
    setenv("SHOAL_CUDA_CODE", code, 1);
    setenv("CUDA_FAKE", what, 1);
}

static int begin(void **state)
{
    (void)state;
    snprintf(code, sizeof(code), "/tmp/shoal-cuda-unit-XXXXXX");
    const int fd = mkstemp(code);
    if (fd < 0 || write(fd, "code", 4) != 4)
        return -1;
    return close(fd);
}

static int end(void **state)
{
    (void)state;
    return unlink(code);
}

static void refused(const char *what, int rc, const char *text)
{
    struct cuda_gpu *g = NULL;
    struct err e = {0};
    pretend(what);
    assert_int_equal(cuda_gpu_open(&g, &e), rc);
    assert_null(g);
    if (!strstr(e.msg, text))
        fail_msg("%s: \"%s\" does not say \"%s\"", what, e.msg, text);
}

static void test_what_is_missing_is_said(void **state)
{
    (void)state;
    struct cuda_gpu *g = NULL;
    struct err e = {0};
    refused("none", SHOAL_ENOTFOUND, "finds no GPU");
    refused("old", SHOAL_EUNSUPPORTED, "for CUDA 11.8, 12.0 or later is needed");
    refused("ancient", SHOAL_EUNSUPPORTED, "compute capability is 7.0, 7.5 or later");
    pretend("");
    setenv("SHOAL_CUDA", "/nonexistent/libcuda.so.1", 1);
    assert_int_equal(cuda_gpu_open(&g, &e), SHOAL_ENOTFOUND);
    assert_non_null(strstr(e.msg, "SHOAL_CUDA"));
    setenv("SHOAL_CUDA", SHOAL_NOT_CUDA_LIBRARY, 1);
    assert_int_equal(cuda_gpu_open(&g, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "has no cuInit"));
    pretend("");
    setenv("SHOAL_CUDA_CODE", "/nonexistent/code", 1);
    assert_int_equal(cuda_gpu_open(&g, &e), SHOAL_ENOTFOUND);
    assert_non_null(strstr(e.msg, "SHOAL_CUDA_CODE"));
    setenv("SHOAL_CUDA_CODE", CUDA_FAKE_LIBRARY, 1);
    assert_int_equal(cuda_gpu_open(&g, &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "cannot load the kernels"));
}

static void test_a_gpu_is_described(void **state)
{
    (void)state;
    struct cuda_gpu_info info;
    struct err e = {0};
    pretend("");
    assert_int_equal(cuda_gpu_describe(&info, &e), 0);
    assert_string_equal(info.name, "Emulated GPU");
    assert_int_equal(info.major, 9);
    assert_int_equal(info.n_sms, 16);
    assert_int_equal(info.driver, 13000);
    assert_true(info.clusters);
    assert_true(cuda_gpu_has_code());
}

static void test_every_multiprocessor_gets_a_block(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        uint32_t n;
    } want[] = {{"", 16}, {"turing", 3}};
    for (size_t i = 0; i < 2; i++) {
        struct cuda_gpu *g = NULL;
        struct err e = {0};
        pretend(want[i].gpu);
        assert_int_equal(cuda_gpu_open(&g, &e), 0);
        assert_int_equal(cuda_gpu_grid(g).n_blocks, want[i].n);
        assert_false(cuda_gpu_grid(g).cluster);
        cuda_gpu_close(g);
    }
}

/* ---- the engine ---- */

struct got {
    int32_t tokens[64];
    uint32_t n;
    int status;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    if (ev->kind == SHOAL_EVENT_DONE)
        g->status = ev->code;
    else if (ev->token >= 0 && g->n < 64)
        g->tokens[g->n++] = ev->token;
}

static int open_model(struct shoal_engine **en, const char *path, const char *kernels,
                      struct err *e)
{
    struct shoal_engine_opts o = {
        .size = sizeof(o), .cache_dir = "", .kernels = kernels, .n_ctx = 64, .max_tasks = 2};
    return shoal_engine_open(en, path, &o, e);
}

static int open_engine(struct shoal_engine **en, const char *kernels, struct err *e)
{
    return open_model(en, MODEL, kernels, e);
}

/* Two tasks at once, the second with a longer prompt. */
static void generate(struct shoal_engine *en, struct got got[2])
{
    static const int32_t prompt[] = {1, 7, 33, 120, 260, 9, 14, 77, 290, 45, 8, 19, 22, 200};
    struct shoal_task *t[2];
    struct err e = {0};
    for (uint32_t i = 0; i < 2; i++) {
        memset(&got[i], 0, sizeof(got[i]));
        const struct shoal_task_opts o = {.size = sizeof(o),
                                          .tokens = prompt,
                                          .n_tokens = i ? 14 : 3,
                                          .max_tokens = 12,
                                          .ignore_end = true,
                                          .sampling = {.temperature = i ? 0.9f : 0.0f, .seed = 4},
                                          .event = on_event,
                                          .event_ctx = &got[i]};
        if (shoal_task_submit(en, &o, &t[i], &e) < 0)
            fail_msg("%s", e.msg);
    }
    for (uint32_t i = 0; i < 2; i++) {
        (void)shoal_task_wait(t[i]);
        shoal_task_free(t[i]);
    }
}

static void test_an_engine_generates_the_tokens_of_the_cpu(void **state)
{
    (void)state;
    if (!EMULATOR_RUNS)
        skip();
    struct shoal_engine *en = NULL;
    struct shoal_engine_info info = {.size = sizeof(info)};
    struct err e = {0};
    struct got want[2], got[2];
    assert_int_equal(open_engine(&en, "scalar", &e), 0);
    generate(en, want);
    shoal_engine_close(en);
    static const char *const gpus[] = {"", "turing"};
    for (size_t i = 0; i < 2; i++) {
        pretend(gpus[i]);
        if (open_engine(&en, "cuda", &e) < 0)
            fail_msg("%s", e.msg);
        shoal_engine_info(en, &info);
        assert_string_equal(info.engine, "cuda");
        assert_string_equal(info.kernels,
                            i ? "cuda sm_75, Emulated GPU" : "cuda sm_90, Emulated GPU");
        generate(en, got);
        shoal_engine_close(en);
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(got[k].status, 0);
            assert_int_equal(got[k].n, 12);
            assert_memory_equal(got[k].tokens, want[k].tokens, 12 * sizeof(int32_t));
        }
    }
}

/* A model whose batches the kernels of many tokens compute, to be unlinked. */
static void write_whole_numbers(char *path)
{
    const struct quantize_opts o = {.kind = QUANTIZE_Q8_0, .n_threads = 1, .pure = true};
    struct quantize_result result;
    struct model_file *g;
    struct err e = {0};
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    if (gguf_open(&g, SHOAL_TEST_DATA "/refs/qwen2.gguf", &e) < 0 ||
        quantize_run(g, path, &o, &result, &e) < 0)
        fail_msg("%s", e.msg);
    quantize_result_fini(&result);
    model_file_close(g);
}

/* How many recorded passes the driver has launched. */
static int passes_launched(void *driver)
{
    int (*count)(void);
    *(void **)&count = dlsym(driver, "fake_passes_launched");
    assert_non_null(count);
    return count();
}

static void test_passes_that_repeat_are_recorded(void **state)
{
    (void)state;
    if (!EMULATOR_RUNS)
        skip();
    void *driver = dlopen(CUDA_FAKE_LIBRARY, RTLD_NOW | RTLD_LOCAL); /* keeps its counter */
    struct shoal_engine *en = NULL;
    struct err e = {0};
    struct got want[2], got[2];
    char path[] = "/tmp/shoal-cuda-unit-XXXXXX";
    write_whole_numbers(path);
    assert_non_null(driver);
    assert_int_equal(open_model(&en, path, "scalar", &e), 0);
    generate(en, want);
    shoal_engine_close(en);
    static const char *const gpus[] = {"", "plain"};
    for (size_t i = 0; i < 2; i++) {
        pretend(gpus[i]);
        const int before = passes_launched(driver);
        if (open_model(&en, path, "cuda", &e) < 0)
            fail_msg("%s", e.msg);
        for (int again = 0; again < 2; again++) { /* the second time with other pages */
            generate(en, got);
            for (uint32_t k = 0; k < 2; k++) {
                assert_int_equal(got[k].status, 0);
                assert_memory_equal(got[k].tokens, want[k].tokens, 12 * sizeof(int32_t));
            }
        }
        shoal_engine_close(en);
        if (i == 0)
            assert_true(passes_launched(driver) > before);
        else
            assert_int_equal(passes_launched(driver), before);
    }
    dlclose(driver);
    unlink(path);
}

static void test_a_gpu_that_dies_fails_its_tasks(void **state)
{
    (void)state;
    if (!EMULATOR_RUNS)
        skip();
    struct shoal_engine *en = NULL;
    struct err e = {0};
    struct got got[2];
    pretend("dies");
    assert_int_equal(open_engine(&en, "cuda", &e), 0);
    generate(en, got);
    assert_int_equal(got[0].status, SHOAL_EIO);
    assert_int_equal(got[1].status, SHOAL_EIO);
    assert_true(got[0].n < 12);
    generate(en, got);
    assert_int_equal(got[0].status, SHOAL_EIO);
    assert_int_equal(got[0].n, 0);
    shoal_engine_close(en);
}

static void test_what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct shoal_engine *en = NULL;
    struct err e = {0};
    pretend("full");
    assert_int_equal(open_engine(&en, "cuda", &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "does not fit"));
    pretend("taken");
    assert_int_equal(open_engine(&en, "cuda", &e), SHOAL_ENOMEM);
    assert_non_null(strstr(e.msg, "on the GPU: out of memory"));
    pretend("small");
    assert_int_equal(open_engine(&en, "cuda", &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "16 KiB of shared memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_missing_is_said),
        cmocka_unit_test(test_a_gpu_is_described),
        cmocka_unit_test(test_every_multiprocessor_gets_a_block),
        cmocka_unit_test(test_an_engine_generates_the_tokens_of_the_cpu),
        cmocka_unit_test(test_passes_that_repeat_are_recorded),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_a_gpu_that_dies_fails_its_tasks), /* the last: it stays dead */
    };
    return cmocka_run_group_tests(tests, begin, end);
}
