/* test_weights.c - factors beside matrices, as GGUF files in NVFP4 have them: with and without a
 * cache file, and those that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/gguf.h"
#include "model/decoder.h"
#include "model/weights.h"

#define FILE_WITH_SCALE SHOAL_TEST_DATA "/refs/quant-g.gguf" /* beside blk.0.attn_v.weight */

static struct model_file *open_file(void)
{
    struct model_file *m;
    struct err e = {0};
    if (gguf_open(&m, FILE_WITH_SCALE, &e) < 0)
        fail_msg("%s", e.msg);
    return m;
}

/* The factor of a matrix that is loaded with a scale (0: none). */
static float loaded_factor(const struct model_file_tensor *t, const char *cache, float scale,
                           bool *from_cache)
{
    struct crew_lane *lane;
    struct weights w;
    uint32_t index;
    weights_init(&w, &kern_scalar.layout);
    assert_int_equal(crew_lane_create(&lane, NULL, 1, NULL), 0);
    assert_int_equal(weights_add(&w, t, &index, NULL), 0);
    if (scale > 0.0f)
        weights_scale(&w, index, scale);
    assert_int_equal(weights_load(&w, FILE_WITH_SCALE, cache, lane, NULL, NULL, NULL), 0);
    const float factor = w.mats[index].mul;
    *from_cache = w.from_cache;
    weights_fini(&w);
    crew_lane_destroy(lane);
    return factor;
}

static void test_a_scale_is_applied_once_with_and_without_a_cache(void **state)
{
    (void)state;
    char dir[] = "/tmp/shoal-weights-XXXXXX", command[64];
    struct model_file *m = open_file();
    bool cached;
    assert_non_null(mkdtemp(dir));
    /* NVFP4, whose own factor is 1, and a type that has one */
    static const char *const names[] = {"blk.0.attn_v.weight", "blk.0.attn_q.weight"};
    for (int i = 0; i < 2; i++) {
        const struct model_file_tensor *t = model_file_find_tensor(m, names[i]);
        assert_non_null(t);
        const float own = loaded_factor(t, NULL, 0.0f, &cached);
        assert_true(i == 0 ? own == 1.0f : own < 1.0f);
        assert_true(loaded_factor(t, NULL, 0.75f, &cached) == own * 0.75f);
        assert_true(loaded_factor(t, dir, 0.75f, &cached) == own * 0.75f && !cached);
        assert_true(loaded_factor(t, dir, 0.75f, &cached) == own * 0.75f && cached);
        assert_true(loaded_factor(t, dir, 0.0f, &cached) == own && cached);
    }
    model_file_close(m);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void test_scales_that_are_no_factors_are_refused(void **state)
{
    static const struct {
        uint32_t bits;
        const char *says; /* NULL: it loads */
    } cases[] = {{0x3f000000, NULL},           {0x00000000, "attn_v is 0, which is out of range"},
                 {0xbf800000, "attn_v is -1"}, {0x7e967699, "attn_v is 1e+38"},
                 {0x7fc00000, "not finite"},   {0x7f800000, "not finite"}};
    (void)state;
    struct model_file *m = open_file();
    const struct model_file_tensor *t = model_file_find_tensor(m, "blk.0.attn_v.scale");
    assert_non_null(t);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_file_tensor *own = (struct model_file_tensor *)(uintptr_t)t;
        uint32_t value = cases[i].bits;
        const uint8_t *was = own->data;
        const struct decoder_opts o = {.n_threads = 1, .max_batch = 1, .max_logits = 1};
        struct decoder *d;
        struct err e = {0};
        own->data = (const uint8_t *)&value;
        const int rc = decoder_create(&d, m, FILE_WITH_SCALE, &o, &e);
        own->data = was;
        if (cases[i].says ? rc != SHOAL_EFORMAT || !strstr(e.msg, cases[i].says) : rc != 0)
            fail_msg("row %zu: %d %s", i, rc, e.msg);
        decoder_destroy(d);
    }
    model_file_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_scale_is_applied_once_with_and_without_a_cache),
        cmocka_unit_test(test_scales_that_are_no_factors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
