/* fuzz_recurrent.c - layer programs from hostile bytes: a config, a NUL, a safetensors file; a
 * program that opens is run. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "score/recurrent.h"
#include "support/fuzz_note.h"

enum { MAX_SCRATCH = 1 << 22, SAMPLES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recurrent *r;
    struct err e = {0};
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t n = nul ? (size_t)(nul - data) : size;
    const uint8_t *weights = nul ? nul + 1 : data + size;
    struct recurrent_opts o = {.int8 = size % 2};

    if (recurrent_parse(&r, data, n, weights, (size_t)(data + size - weights), &o, &e) < 0) {
        if (e.code == 0 || r)
            abort();
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    struct recurrent_info info = recurrent_info(r);
    size_t bytes = recurrent_scratch_bytes(r);
    /* Large windows are slow: a few windows of small input are enough. */
    if (bytes <= MAX_SCRATCH && (uint64_t)info.window * info.n_layers < 10000) {
        size_t samples = (size_t)info.window + (size_t)info.hop * SAMPLES;
        float *x = calloc(samples * info.channels, sizeof(*x));
        float *out = calloc((recurrent_n_scores(r, samples) + 1) * info.n_outputs, sizeof(*out));
        void *scratch = mem_aligned(bytes);
        for (size_t i = 0; x && i < samples * info.channels; i++)
            x[i] = (float)(i % 17) - 8;
        if (x && out && scratch)
            recurrent_series(r, x, samples, out, scratch);
        for (size_t i = 0; out && i < recurrent_n_scores(r, samples) * info.n_outputs; i++)
            FUZZ_NOTE(" %.3g", (double)out[i]);
        free(x);
        free(out);
        mem_free(scratch);
    }
    recurrent_close(r);
    return 0;
}
