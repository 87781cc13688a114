/* fuzz_anomaly.c - the config of an anomaly model from hostile bytes, beside small trees and a
 * small layer program; the bytes after a NUL are the values for a model that opens. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "score/anomaly.h"
#include "support/fuzz_note.h"

enum { MAX_VALUES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char trees[] = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\n"
                            "label_index=0\nmax_feature_idx=1\nobjective=binary sigmoid:1\n"
                            "feature_names=z_long z_16\nfeature_infos=[-20:20] [-20:20]\n"
                            "tree_sizes=220\n\nTree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\n"
                            "split_gain=1\nthreshold=1.5\ndecision_type=2\nleft_child=-1\n"
                            "right_child=-2\nleaf_value=-2 3\nleaf_weight=1 1\nleaf_count=1 1\n"
                            "internal_value=0\ninternal_weight=2\ninternal_count=2\n"
                            "is_linear=0\nshrinkage=1\n\n\nend of trees\n";
static const char layers[] =
    "{\"model_type\":\"shoal_scorer\",\"input\":{\"channels\":2,\"window\":1,\"stateful\":true,"
    "\"names\":[\"z_long\",\"step\"]},\"layers\":[{\"type\":\"linear\",\"name\":\"out\"},"
    "{\"type\":\"sigmoid\"}]}";
static const char header[] =
    "{\"out.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}";

/* A safetensors file of one matrix. */
static size_t make_weights(uint8_t out[256])
{
    const float w[] = {0.5f, -0.25f};
    const uint64_t n = sizeof(header) - 1;
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(n >> (8 * i));
    memcpy(out + 8, header, n);
    memcpy(out + 8 + n, w, sizeof(w));
    return 8 + n + sizeof(w);
}

static void run(const struct anomaly *a, const uint8_t *data, size_t size)
{
    uint32_t channels = 1 + (uint32_t)(size % 5);
    size_t n = size / sizeof(double) / channels;
    void *state = mem_aligned(anomaly_state_bytes(a, channels));
    void *scratch = mem_aligned(anomaly_scratch_bytes(a));
    if (state && scratch) {
        anomaly_reset(a, state, channels);
        for (size_t i = 0; i < n && i < MAX_VALUES; i++) {
            double row[5];
            struct anomaly_point p;
            memcpy(row, data + i * channels * sizeof(double), channels * sizeof(double));
            anomaly_step(a, state, row, &p, scratch);
            if (!isfinite(p.value) || !(p.score >= 0 && p.score <= 1))
                abort();
            FUZZ_NOTE(" %.4g %.4g", (double)p.value, (double)p.score);
        }
    }
    mem_free(state);
    mem_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct anomaly *a;
    struct err e = {0};
    uint8_t weights[256];
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    const size_t n = nul ? (size_t)(nul - data) : size;
    struct anomaly_bytes b = {.config = data,
                              .n_config = n,
                              .trees = trees,
                              .n_trees = sizeof(trees) - 1,
                              .layers = layers,
                              .n_layers = sizeof(layers) - 1,
                              .weights = weights};
    b.n_weights = make_weights(weights);
    (void)anomaly_detect(data, n);
    if (anomaly_parse(&a, &b, &e) < 0) {
        if (e.code == 0 || a)
            abort();
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    if (nul)
        run(a, nul + 1, size - n - 1);
    anomaly_close(a);
    return 0;
}
