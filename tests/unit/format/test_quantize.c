/* test_quantize.c - rewriting a GGUF model in smaller encodings: rules, values, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "format/gguf.h"
#include "format/gguf_write.h"
#include "format/convert/quantize.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static char folder[64], in_path[96], out_path[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/shoal-quantize-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(in_path, sizeof(in_path), "%s/in.gguf", folder);
    snprintf(out_path, sizeof(out_path), "%s/out.gguf", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(in_path);
    unlink(out_path);
    return rmdir(folder); /* fails if a test left other files behind */
}

/* One layer of a small llama: 256 wide, rows of 256 and 288 and one odd width. */
static const struct {
    const char *name;
    uint64_t cols, rows; /* rows 0: a vector */
} model[] = {
    {"token_embd.weight", 256, 64},      {"blk.0.attn_norm.weight", 256, 0},
    {"blk.0.attn_q.weight", 256, 256},   {"blk.0.attn_v.weight", 256, 128},
    {"blk.0.attn_q.bias", 256, 0},       {"blk.0.attn_output.weight", 256, 256},
    {"blk.0.ffn_norm.weight", 256, 0},   {"blk.0.ffn_gate.weight", 256, 288},
    {"blk.0.ffn_down.weight", 288, 256}, {"blk.0.ffn_gate_inp.weight", 256, 4},
    {"blk.0.odd.weight", 40, 8},         {"position_embd.weight", 256, 32},
    {"blk.1.attn_q_norm.weight", 64, 4}, {"output_norm.weight", 256, 0},
    {"output.weight", 256, 64},
};

static float value_at(size_t tensor, uint64_t i)
{
    double a = ((double)(hash_mix(tensor * 1000003 + 2 * i) >> 11) + 0.5) * 0x1p-53;
    double b = (double)(hash_mix(tensor * 1000003 + 2 * i + 1) >> 11) * 0x1p-53;
    return (float)(0.05 * sqrt(-2 * log(a)) * cos(6.283185307179586 * b));
}

/* bad: a tensor that gets a NaN in its third row, or -1. */
static void write_model(enum quant_type type, int bad)
{
    struct gguf_write *w;
    struct err e = {0};
    assert_int_equal(gguf_write_create(&w, in_path, &e), 0);
    gguf_write_str(w, "general.architecture", "llama", 5);
    gguf_write_u32(w, "llama.block_count", 2);
    gguf_write_u32(w, "general.file_type", 0);
    gguf_write_str(w, "keep.me", "yes", 3);
    for (size_t t = 0; t < ARRAY_LEN(model); t++) {
        uint64_t dims[2] = {model[t].cols, model[t].rows};
        gguf_write_tensor(w, model[t].name, strlen(model[t].name),
                          model[t].rows && model[t].cols % 32 == 0 ? type : QUANT_F32,
                          model[t].rows ? 2 : 1, dims);
    }
    assert_int_equal(gguf_write_begin(w, &e), 0);
    static float x[256 * 288];
    static uint8_t coded[sizeof(x)];
    for (size_t t = 0; t < ARRAY_LEN(model); t++) {
        uint64_t n = model[t].cols * (model[t].rows ? model[t].rows : 1);
        enum quant_type as = model[t].rows && model[t].cols % 32 == 0 ? type : QUANT_F32;
        for (uint64_t i = 0; i < n; i++)
            x[i] = value_at(t, i);
        if ((int)t == bad)
            x[2 * model[t].cols + 5] = NAN;
        assert_true(quant_from_f32(as, x, coded, n, NULL));
        size_t bytes = n / quant_info(as)->block * quant_info(as)->block_bytes;
        assert_int_equal(gguf_write_data(w, coded, bytes, &e), 0);
    }
    assert_int_equal(gguf_write_finish(w, &e), 0);
    gguf_write_destroy(w);
}

static int run(const struct quantize_opts *o, struct quantize_result *r, struct err *e)
{
    struct model_file *g;
    int rc = gguf_open(&g, in_path, e);
    if (rc < 0)
        return rc;
    rc = quantize_run(g, out_path, o, r, e);
    model_file_close(g);
    return rc;
}

static void test_rules_choose_by_name_and_width(void **state)
{
    static const uint64_t wide[] = {256, 64}, narrow[] = {288, 64}, odd[] = {40, 8}, vec[] = {256};
    static const struct {
        const char *why;
        enum quantize_kind kind;
        const char *name;
        uint32_t n_dims;
        const uint64_t *dims;
        enum quant_type want;
    } rows[] = {
        {"body", QUANTIZE_Q8_0, "blk.0.attn_q.weight", 2, wide, QUANT_Q8_0},
        {"body", QUANTIZE_Q4_0, "blk.0.attn_q.weight", 2, narrow, QUANT_Q4_0},
        {"head keeps more", QUANTIZE_Q4_0, "output.weight", 2, wide, QUANT_Q6_K},
        {"head in blocks of 32", QUANTIZE_Q4_0, "token_embd.weight", 2, narrow, QUANT_Q8_0},
        {"k", QUANTIZE_Q4_K, "blk.1.attn_q.weight", 2, wide, QUANT_Q4_K},
        {"k falls back", QUANTIZE_Q4_K, "blk.1.attn_q.weight", 2, narrow, QUANT_Q5_0},
        {"early layers get more", QUANTIZE_Q4_K, "blk.0.ffn_down.weight", 2, wide, QUANT_Q6_K},
        {"most layers do not", QUANTIZE_Q4_K, "blk.5.ffn_down.weight", 2, wide, QUANT_Q4_K},
        {"each third does", QUANTIZE_Q4_K, "blk.7.attn_v.weight", 2, wide, QUANT_Q6_K},
        {"late layers too", QUANTIZE_Q4_K, "blk.15.attn_v.weight", 2, narrow, QUANT_Q8_0},
        {"no whole blocks at all", QUANTIZE_Q4_0, "blk.0.ffn_up.weight", 2, odd, QUANT_F16},
        {"floats need no blocks", QUANTIZE_BF16, "blk.0.ffn_up.weight", 2, odd, QUANT_BF16},
        {"mixed attention", QUANTIZE_MIXED, "blk.0.attn_k.weight", 2, wide, QUANT_Q8_0},
        {"mixed feed-forward", QUANTIZE_MIXED, "blk.0.ffn_up.weight", 2, wide, QUANT_Q4_0},
        {"mixed head", QUANTIZE_MIXED, "output.weight", 2, wide, QUANT_Q8_0},
        {"a norm", QUANTIZE_Q4_0, "blk.0.attn_norm.weight", 1, vec, QUANT_F32},
        {"a norm per head", QUANTIZE_Q4_0, "blk.0.attn_q_norm.weight", 2, wide, QUANT_F32},
        {"a bias", QUANTIZE_Q4_0, "blk.0.attn_q.bias", 1, vec, QUANT_F32},
        {"positions", QUANTIZE_Q4_0, "position_embd.weight", 2, wide, QUANT_F32},
        {"a router", QUANTIZE_Q4_0, "blk.0.ffn_gate_inp.weight", 2, wide, QUANT_F32},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct quantize_opts o = {.kind = rows[i].kind};
        struct quantize_shape t = {rows[i].name, rows[i].n_dims, rows[i].dims, 16};
        enum quant_type got = quantize_choose(&t, QUANT_F32, &o);
        if (got != rows[i].want)
            fail_msg("%s (%s): got %s, want %s", rows[i].name, rows[i].why, quant_info(got)->name,
                     quant_info(rows[i].want)->name);
    }
    struct quantize_opts o = {
        .kind = QUANTIZE_MIXED, .attn_type = QUANT_F16, .ffn_type = QUANT_Q4_K};
    struct quantize_shape attn = {"blk.0.attn_v.weight", 2, wide, 16};
    struct quantize_shape ffn = {"blk.0.ffn_up.weight", 2, wide, 16};
    struct quantize_shape thin = {"blk.0.ffn_up.weight", 2, narrow, 16};
    assert_int_equal(quantize_choose(&attn, QUANT_F32, &o), QUANT_F16);
    assert_int_equal(quantize_choose(&ffn, QUANT_F32, &o), QUANT_Q4_K);
    assert_int_equal(quantize_choose(&thin, QUANT_F32, &o), QUANT_Q4_1); /* still four bits */
    assert_int_equal(quantize_file_type(&o), 15);
    o = (struct quantize_opts){.kind = QUANTIZE_Q4_0, .pure = true};
    struct quantize_shape head = {"output.weight", 2, wide, 16};
    assert_int_equal(quantize_choose(&head, QUANT_F32, &o), QUANT_Q4_0);
}

static void test_kinds_have_names(void **state)
{
    enum quantize_kind k;
    (void)state;
    for (int i = 0; i < QUANTIZE_N_KINDS; i++) {
        assert_true(quantize_kind_from_name(quantize_kind_name((enum quantize_kind)i), &k));
        assert_int_equal(k, i);
    }
    assert_true(quantize_kind_from_name("Q4_K", &k));
    assert_false(quantize_kind_from_name("q4", &k));
}

/* Every kind: the file reads back, metadata stays, values are within the type's error, and the
 * figures in the result are those of the file. */
static void test_every_kind_round_trips(void **state)
{
    static const struct {
        enum quantize_kind kind;
        double bound; /* limit for the relative error of any tensor */
    } kinds[] = {
        {QUANTIZE_F32, 0},       {QUANTIZE_F16, 1e-3},    {QUANTIZE_BF16, 3e-3},
        {QUANTIZE_Q8_0, 7e-3},   {QUANTIZE_Q6_K, 0.02},   {QUANTIZE_Q5_K, 0.037},
        {QUANTIZE_Q4_K, 0.073},  {QUANTIZE_IQ4_NL, 0.08}, {QUANTIZE_Q4_0, 0.085},
        {QUANTIZE_MIXED, 0.085},
    };
    static float back[256 * 288];
    (void)state;
    write_model(QUANT_F32, -1);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct quantize_opts o = {.kind = kinds[k].kind, .n_threads = 1 + (uint32_t)k % 3};
        struct quantize_result r;
        struct err e = {0};
        struct model_file *g;
        struct str s;
        uint64_t v;
        assert_int_equal(run(&o, &r, &e), 0);
        assert_int_equal(gguf_open(&g, out_path, &e), 0);
        assert_int_equal(g->n_bytes, r.bytes_to);
        assert_true(model_file_get_str(g, "keep.me", &s) && s.n == 3);
        assert_true(model_file_get_u64(g, "general.file_type", &v) && v == quantize_file_type(&o));
        assert_true(model_file_get_u64(g, "general.quantization_version", &v) && v == 2);
        assert_int_equal(g->n_tensors, ARRAY_LEN(model));
        assert_int_equal(r.n_tensors, ARRAY_LEN(model));
        uint64_t bytes = 0, tensors = 0;
        for (size_t t = 0; t < ARRAY_LEN(r.types); t++) {
            bytes += r.types[t].n_bytes;
            tensors += r.types[t].n_tensors;
        }
        assert_int_equal(tensors, ARRAY_LEN(model));
        for (size_t t = 0; t < g->n_tensors; t++) {
            const struct model_file_tensor *gt = &g->tensors[t];
            double error = 0, size = 0;
            assert_int_equal(gt->type, r.tensors[t].to);
            bytes -= gt->n_bytes;
            quant_to_f32(gt->type, gt->data, back, (size_t)r.tensors[t].n_values);
            for (uint64_t i = 0; i < r.tensors[t].n_values; i++) {
                double x = (double)value_at(t, i), d = x - (double)back[i];
                error += d * d;
                size += x * x;
            }
            double relative = sqrt(error / size);
            if (!(relative <= kinds[k].bound))
                fail_msg("%s, %s: error %g", quantize_kind_name(o.kind), r.tensors[t].name,
                         relative);
            assert_true(fabs(relative - r.tensors[t].relative) < 1e-9);
            double rmse = sqrt(error / (double)r.tensors[t].n_values);
            assert_true(fabs(rmse - r.tensors[t].rmse) < 1e-9);
        }
        assert_int_equal(bytes, 0);
        model_file_close(g);
        quantize_result_fini(&r);
    }
}

static uint64_t hash_file(const char *path)
{
    struct model_file *g;
    struct err e;
    assert_int_equal(gguf_open(&g, path, &e), 0);
    uint64_t h = hash_bytes(g->maps[0].bytes, g->n_bytes, 0);
    model_file_close(g);
    return h;
}

static void test_threads_change_nothing(void **state)
{
    uint64_t first = 0;
    double rmse = 0;
    (void)state;
    write_model(QUANT_F16, -1);
    for (uint32_t n = 1; n <= 4; n++) {
        struct quantize_opts o = {.kind = QUANTIZE_Q4_0, .n_threads = n};
        struct quantize_result r;
        struct err e = {0};
        assert_int_equal(run(&o, &r, &e), 0);
        if (n == 1) {
            first = hash_file(out_path);
            rmse = r.tensors[2].rmse;
        }
        assert_true(first == hash_file(out_path));
        assert_true(rmse == r.tensors[2].rmse);
        quantize_result_fini(&r);
    }
}

static float importance_values[288];

static const float *importance_of(void *ctx, const char *tensor, uint64_t n_cols)
{
    (*(int *)ctx)++;
    assert_true(n_cols <= ARRAY_LEN(importance_values));
    return strcmp(tensor, "blk.0.ffn_gate.weight") ? NULL : importance_values;
}

static void test_importance_reaches_the_tensor_it_is_for(void **state)
{
    int asked = 0;
    struct quantize_opts o = {.kind = QUANTIZE_Q4_0};
    struct quantize_result r;
    struct err e = {0};
    struct model_file *g;
    double weighted[2] = {0, 0};
    static float back[256 * 288];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(importance_values); i++)
        importance_values[i] = i % 16 == 0 ? 100 : 1;
    write_model(QUANT_F32, -1);
    for (int with = 0; with < 2; with++) {
        if (with) {
            o.importance = importance_of;
            o.importance_ctx = &asked;
        }
        assert_int_equal(run(&o, &r, &e), 0);
        assert_int_equal(r.tensors[7].important, with);
        assert_false(r.tensors[2].important);
        quantize_result_fini(&r);
        assert_int_equal(gguf_open(&g, out_path, &e), 0);
        quant_to_f32(g->tensors[7].type, g->tensors[7].data, back, 256 * 288);
        for (uint64_t i = 0; i < 256 * 288; i++) {
            double d = (double)value_at(7, i) - (double)back[i];
            weighted[with] += d * d * (double)importance_values[i % 256];
        }
        model_file_close(g);
    }
    assert_true(asked > 0);
    assert_true(weighted[1] < 0.8 * weighted[0]);
}

static void test_quantized_sources_need_a_word(void **state)
{
    struct quantize_opts o = {.kind = QUANTIZE_Q4_0};
    struct quantize_result r;
    struct err e = {0};
    (void)state;
    write_model(QUANT_Q8_0, -1);
    assert_int_equal(run(&o, &r, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "is already Q8_0"));
    assert_true(access(out_path, F_OK) != 0);
    o.allow_requantize = true;
    assert_int_equal(run(&o, &r, &e), 0);
    quantize_result_fini(&r);
    o = (struct quantize_opts){.kind = QUANTIZE_F16}; /* unpacking loses nothing more */
    assert_int_equal(run(&o, &r, &e), 0);
    quantize_result_fini(&r);
    o = (struct quantize_opts){.kind = QUANTIZE_Q8_0}; /* correct data is copied */
    assert_int_equal(run(&o, &r, &e), 0);
    assert_true(r.tensors[2].from == QUANT_Q8_0 && r.tensors[2].rmse == 0);
    quantize_result_fini(&r);
}

static void test_values_that_are_no_numbers_are_refused(void **state)
{
    struct quantize_opts o = {.kind = QUANTIZE_Q4_K};
    struct quantize_result r;
    struct err e = {0};
    (void)state;
    write_model(QUANT_F32, 5);
    assert_int_equal(run(&o, &r, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "blk.0.attn_output.weight, row 2"));
    assert_int_equal(r.n_tensors, 0);
    assert_true(access(out_path, F_OK) != 0);
}

struct watcher {
    int calls, stop_at;
    uint64_t last, total;
};

static bool watch(void *ctx, const struct quantize_progress *p)
{
    struct watcher *w = ctx;
    assert_true(p->bytes_done >= w->last && p->bytes_done <= p->bytes_total);
    assert_true(p->tensor_index < p->n_tensors && p->tensor);
    w->last = p->bytes_done;
    w->total = p->bytes_total;
    return ++w->calls != w->stop_at;
}

static void test_progress_reaches_the_end_and_can_cancel(void **state)
{
    struct watcher w = {0, 0, 0, 0};
    struct quantize_opts o = {.kind = QUANTIZE_Q8_0, .progress = watch, .progress_ctx = &w};
    struct quantize_result r;
    struct err e = {0};
    (void)state;
    write_model(QUANT_F32, -1);
    assert_int_equal(run(&o, &r, &e), 0);
    quantize_result_fini(&r);
    assert_true(w.calls >= (int)ARRAY_LEN(model) && w.last == w.total);
    unlink(out_path);
    for (int stop = 1; stop <= w.calls; stop += 5) {
        struct watcher again = {0, stop, 0, 0};
        o.progress_ctx = &again;
        assert_int_equal(run(&o, &r, &e), SHOAL_ECANCELLED);
        assert_int_equal(again.calls, stop);
        assert_int_equal(r.n_tensors, 0);
        assert_true(access(out_path, F_OK) != 0);
    }
}

static void test_a_full_disk_is_told_and_leaves_nothing(void **state)
{
    struct quantize_opts o = {.kind = QUANTIZE_Q8_0};
    struct quantize_result r;
    struct err e = {0};
    struct rlimit old, small;
    (void)state;
    write_model(QUANT_F32, -1);
    void (*former)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 50000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = run(&o, &r, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, former);
    assert_int_equal(rc, SHOAL_EIO);
    assert_non_null(strstr(e.msg, "out.gguf"));
    assert_true(access(out_path, F_OK) != 0);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    write_model(QUANT_F32, -1);
    for (uint64_t n = 1;; n++) {
        struct quantize_opts o = {.kind = QUANTIZE_Q8_0, .n_threads = 2};
        struct quantize_result r;
        struct err e = {0};
        mem_fail_at(n);
        int rc = run(&o, &r, &e);
        mem_fail_at(0);
        if (rc == 0) {
            assert_true(n > 50);
            quantize_result_fini(&r);
            break;
        }
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_true(access(out_path, F_OK) != 0);
    }
}

#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_choose_by_name_and_width),
        cmocka_unit_test(test_kinds_have_names),
        WITH_FOLDER(test_every_kind_round_trips),
        WITH_FOLDER(test_threads_change_nothing),
        WITH_FOLDER(test_importance_reaches_the_tensor_it_is_for),
        WITH_FOLDER(test_quantized_sources_need_a_word),
        WITH_FOLDER(test_values_that_are_no_numbers_are_refused),
        WITH_FOLDER(test_progress_reaches_the_end_and_can_cancel),
        WITH_FOLDER(test_a_full_disk_is_told_and_leaves_nothing),
        WITH_FOLDER(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
