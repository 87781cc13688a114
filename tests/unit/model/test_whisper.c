/* test_whisper.c - Whisper against transformers on a small random model, from a file of whisper.cpp
 * and from a folder: features, encoder and logits; the same bits on every kernel set and with any
 * number of threads.  tools/make_whisper_refs.py made the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <math.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/model_open.h"
#include "model/mel.h"
#include "model/t5.h"
#include "support/ref_file.h"

enum {
    DIM = 32,
    HEADS = 2,
    FRAMES = 1500,
    EVERY_FRAME = 25,
    EVERY_LOGIT = 8,
    TARGET = 20,
    SAMPLES = 5 * 16000
};
#define MOST_LOGITS 4096
#define BIN SHOAL_TEST_DATA "/whisper/whisper.bin"
#define FOLDER SHOAL_TEST_DATA "/whisper/folder"

static float sound[SAMPLES];
static struct ref_file refs;

struct results {
    float encoded[FRAMES][DIM];
    float logits[TARGET][MOST_LOGITS];
    uint32_t n_vocab;
};

static int setup(void **state)
{
    uint32_t seed = 1;
    (void)state;
    for (uint32_t i = 0; i < SAMPLES; i++) { /* as the script does */
        seed = seed * 1664525u + 1013904223u;
        const int32_t tone = (int32_t)((uint64_t)i * i / 4096 % 8000) - 4000;
        sound[i] = (float)(tone + (int32_t)(seed >> 21) - 1024) / 32768.0f;
    }
    return ref_open(&refs, SHOAL_TEST_DATA "/whisper/whisper.ref");
}

static int teardown(void **state)
{
    (void)state;
    ref_close(&refs);
    return 0;
}

static void close_to(const float *got, uint32_t step, const char *name, size_t row)
{
    const struct ref_array *a = ref_find(&refs, name);
    const float *want = (const float *)(const void *)a->data + row * a->cols;
    assert_true(row < a->rows);
    for (uint32_t i = 0; i < a->cols; i++)
        if (!(fabsf(got[(size_t)i * step] - want[i]) < 1e-3f))
            fail_msg("%s[%zu][%u] is %g, expected %g", name, row, i, (double)got[(size_t)i * step],
                     (double)want[i]);
}

static void run(struct results *out, const char *path, const struct t5_opts *o)
{
    const struct ref_array *targets = ref_find(&refs, "targets");
    struct model_file *g;
    struct t5 *t;
    struct err e = {0};
    uint32_t pages[128];
    if (model_open(&g, path, &e) < 0 || t5_create(&t, g, path, o, &e) < 0)
        fail_msg("%s", e.msg);
    for (uint32_t i = 0; i < 128; i++)
        pages[i] = (i * 37 + 5) % 128; /* any order */
    const size_t kv_bytes = t5_sizes(t).kv_page * 128;
    uint8_t *kv = mem_pages(kv_bytes);
    assert_non_null(kv);
    t5_set_kv(t, kv);
    assert_int_equal(t5_hear(t, sound, SAMPLES, pages), FRAMES);
    for (uint32_t i = 0; i < FRAMES; i++)
        memcpy(out->encoded[i], t5_encoded(t, 0, i), sizeof(out->encoded[i]));
    out->n_vocab = t5_config(t)->n_vocab;
    assert_true(out->n_vocab <= MOST_LOGITS);
    for (uint32_t i = 0; i < TARGET; i++) {
        const struct t5_row row = {ref_int(targets, i), i, pages + 100, pages, FRAMES, NULL};
        t5_decode(t, &row, 1);
        memcpy(out->logits[i], t5_logits(t, 0), out->n_vocab * sizeof(float));
    }
    t5_destroy(t);
    model_file_close(g);
    mem_pages_free(kv, kv_bytes);
}

static void test_features(void **state)
{
    static float x[MEL_FRAMES][80];
    struct mel *m;
    float most = -INFINITY;
    (void)state;
    assert_int_equal(mel_create(&m, 80, NULL), 0);
    for (uint32_t i = 0; i < MEL_FRAMES; i += 2) {
        const float top = mel_frames(m, sound, SAMPLES, i, x[i]);
        most = top > most ? top : most;
    }
    mel_finish(x[0], MEL_FRAMES * 80, most);
    for (uint32_t i = 0; i < MEL_FRAMES; i += EVERY_FRAME)
        close_to(x[i], 1, "features", i / EVERY_FRAME);
    mel_destroy(m);
}

static void test_reference(void **state)
{
    static struct results file, folder;
    const struct t5_opts o = {.n_threads = 2};
    (void)state;
    run(&file, BIN, &o);
    for (uint32_t i = 0; i < FRAMES; i += EVERY_FRAME)
        close_to(file.encoded[i], 1, "encoded", i / EVERY_FRAME);
    for (uint32_t i = 0; i < TARGET; i++)
        close_to(file.logits[i], EVERY_LOGIT, "logits", i);
    run(&folder, FOLDER, &o);
    assert_memory_equal(&file, &folder, sizeof(file));
}

/* Where the heads of the decoder's only layer look, with 16 bits and with 8. */
static void test_looks(void **state)
{
    const struct ref_array *targets = ref_find(&refs, "targets");
    static float looks[TARGET][HEADS][FRAMES];
    struct ref_file words;
    struct model_file *g;
    struct t5 *t;
    uint32_t pages[128];
    (void)state;
    assert_int_equal(ref_open(&words, SHOAL_TEST_DATA "/whisper/words.ref"), 0);
    const struct ref_array *a = ref_find(&words, "looks");
    assert_int_equal(a->rows, TARGET * HEADS);
    for (uint32_t i = 0; i < 128; i++)
        pages[i] = i;
    for (int q8 = 0; q8 < 2; q8++) {
        const struct t5_opts o = {.n_threads = 2, .kv_kind = q8 ? KERN_KV_Q8 : KERN_KV_F16};
        assert_int_equal(model_open(&g, BIN, NULL), 0);
        assert_int_equal(t5_create(&t, g, BIN, &o, NULL), 0);
        assert_int_equal(t5_n_aligned(t), HEADS);
        const size_t kv_bytes = t5_sizes(t).kv_page * 128;
        uint8_t *kv = mem_pages(kv_bytes);
        t5_set_kv(t, kv);
        t5_hear(t, sound, SAMPLES, pages);
        for (uint32_t i = 0; i < TARGET; i++) {
            const struct t5_row row = {ref_int(targets, i), i, pages + 100, pages, FRAMES,
                                       looks[i][0]};
            t5_decode(t, &row, 1);
        }
        for (uint32_t r = 0; r < TARGET * HEADS; r++) {
            const float *got = looks[0][0] + (size_t)r * FRAMES;
            const float *want = (const float *)(const void *)a->data + (size_t)r * a->cols;
            double sum = 0;
            for (uint32_t i = 0; i < FRAMES; i++)
                sum += (double)got[i];
            for (uint32_t i = 0; i < a->cols; i++) {
                const double share = (double)got[(size_t)i * EVERY_FRAME] / sum;
                if (!(fabs(share / (double)want[i] - 1) < (q8 ? 0.2 : 0.01)))
                    fail_msg("row %u, frame %u: %g, expected %g", r, i * EVERY_FRAME, share,
                             (double)want[i]);
            }
        }
        t5_destroy(t);
        model_file_close(g);
        mem_pages_free(kv, kv_bytes);
    }
    ref_close(&words);
}

static void test_same_bits(void **state)
{
    static struct results first, other;
    const struct kern_ops *sets[16];
    const size_t n = kern_usable(sets, 16);
    (void)state;
    for (int rounded = 0; rounded < 2; rounded++) {
        struct t5_opts o = {.kernels = &kern_scalar, .n_threads = 1, .int8 = rounded};
        run(&first, BIN, &o);
        for (size_t i = 0; i < (rounded ? n : 1); i++) { /* floats: test_refs_bits has the others */
            o.kernels = sets[i];
            o.n_threads = i % 2 ? 1 : 3;
            run(&other, BIN, &o);
            assert_memory_equal(&first, &other, sizeof(first));
        }
    }
}

/* Every truncation, and headers that lie, have a reason. */
static void refused(uint8_t *bytes, size_t n, const char *why)
{
    char path[] = "/tmp/whisper-XXXXXX";
    struct model_file *g = NULL;
    struct t5 *t = NULL;
    struct err e = {0};
    const int fd = mkstemp(path);
    FILE *f = fdopen(fd, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    int rc = model_open(&g, path, &e);
    if (rc == 0)
        rc = t5_create(&t, g, path, &(struct t5_opts){.n_threads = 1}, &e);
    remove(path);
    model_file_close(g);
    assert_true(rc < 0);
    if (!strstr(e.msg, why))
        fail_msg("expected \"%s\" in: %s", why, e.msg);
}

static void test_hostile(void **state)
{
    FILE *f = fopen(BIN, "rb");
    static uint8_t bytes[1 << 20];
    (void)state;
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    refused(bytes, 30, "ends inside the header at offset 28");
    refused(bytes, 60, "ends inside the filters");
    refused(bytes, 56 + 80 * 201 * 4 + 20, "ends inside the vocabulary");
    refused(bytes, n - 1, "ends inside a tensor");
    refused(bytes, n - 31 - 32 * 4, "dec.output_norm.bias"); /* the last tensor is gone */
    bytes[4 * 4] = 3;
    refused(bytes, n, "they must be alike");
    bytes[4 * 8] = 3;
    refused(bytes, n, "32 values are not 3 heads");
    bytes[4 * 4] = 0;
    refused(bytes, n, "n_audio_head of 0");
    bytes[4 * 4] = bytes[4 * 8] = 2;
    bytes[4] = 0;
    bytes[5] = 1;
    refused(bytes, n, "are not a vocabulary of Whisper");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features), cmocka_unit_test(test_reference),
        cmocka_unit_test(test_looks),    cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
