/* fuzz_trees.c - LightGBM model text from hostile bytes: parse, then walk some rows. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "score/trees.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double values[] = {0,      -1,  1,        33,        1e300,
                                    -1e300, NAN, INFINITY, -INFINITY, 2147483648.0};
    struct trees *t;
    struct err e = {0};

    if (trees_parse(&t, data, size, &e) < 0) {
        if (e.code == 0 || t)
            abort();
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    struct trees_info info = trees_info(t);
    double *row = malloc(info.n_features * sizeof(*row));
    double *out = malloc(info.n_outputs * sizeof(*out));
    double *scratch = malloc(trees_scratch(t) * sizeof(*scratch));
    uint32_t *leaves = malloc(info.n_trees * sizeof(*leaves));
    size_t n = sizeof(values) / sizeof(values[0]);
    for (size_t r = 0; r < n && row && out && scratch && leaves; r++) {
        for (uint32_t f = 0; f < info.n_features; f++)
            row[f] = values[(r + f) % n];
        trees_predict(t, row, 1, r % 2, out, scratch);
        trees_leaves(t, row, leaves, scratch);
        for (uint32_t i = 0; i < info.n_outputs; i++)
            FUZZ_NOTE(" %.6g", out[i]);
        for (uint32_t i = 0; i < info.n_trees; i++)
            if (leaves[i] >= 131072)
                abort();
    }
    free(row);
    free(out);
    free(scratch);
    free(leaves);
    trees_close(t);
    return 0;
}
