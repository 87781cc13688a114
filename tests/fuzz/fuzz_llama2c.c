/* fuzz_llama2c.c - llama2.c checkpoints from hostile bytes: parse, then read every row. */
#include <stdint.h>
#include <stdlib.h>

#include "format/convert/convert_llama2c.h"
#include "support/fuzz_note.h"

static volatile float sink; /* so that reads are not optimized away */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct llama2c m;
    struct err e = {0};

    if (size == 0 || convert_llama2c_parse(&m, data, size, &e) < 0) {
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    FUZZ_NOTE("%u %u %u %d", m.dim, m.n_hidden, m.n_layers, m.shared);
    /* A parsed file is as large as its header says, so this is bounded by the input. */
    float *row = malloc(sizeof(float) * (m.dim > m.n_hidden ? m.dim : m.n_hidden));
    for (int part = 0; row && part < LLAMA2C_N_PARTS; part++) {
        uint64_t n_rows, n_cols;
        bool layered = part >= LLAMA2C_ATTN_NORM && part <= LLAMA2C_FFN_UP;
        if (part == LLAMA2C_OUTPUT && m.shared)
            continue;
        convert_llama2c_shape(&m, (enum llama2c_part)part, &n_rows, &n_cols);
        for (uint32_t l = 0; l < (layered ? m.n_layers : 1); l++)
            for (uint64_t r = 0; r < n_rows; r++) {
                convert_llama2c_row(&m, (enum llama2c_part)part, l, r, row);
                sink += row[n_cols - 1];
            }
    }
    free(row);
    return 0;
}
