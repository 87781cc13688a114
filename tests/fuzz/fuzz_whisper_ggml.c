/* fuzz_whisper_ggml.c - any bytes as a model file of whisper.cpp: parsed, its tokenizer made, its
 * tensors read and planned.  A file must never make us read outside of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/model_file.h"
#include "format/whisper_ggml.h"
#include "model/t5.h"
#include "support/fuzz_note.h"
#include "text/tokenizer/tokenizer.h"

static volatile uint64_t sink; /* so that reads are not optimized away */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_file *m = NULL;
    struct tokenizer *t = NULL;
    struct t5_sizes sizes;
    struct err e = {0};
    int rc = whisper_ggml_parse(&m, data, size, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc < 0)
        return 0;
    for (size_t i = 0; i < m->n_tensors; i++) {
        const struct model_file_tensor *x = &m->tensors[i];
        if (!x->in_memory && (x->data < data || x->n_bytes > (size_t)(data + size - x->data)))
            abort(); /* a tensor outside the file */
        sink += x->data[0] + x->data[x->n_bytes - 1];
    }
    rc = tokenizer_create(&t, m, &e);
    FUZZ_NOTE("tokenizer %d", rc);
    tokenizer_destroy(t);
    rc = t5_measure(&sizes, m, &(struct t5_opts){.kernels = &kern_scalar, .n_threads = 1}, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    model_file_close(m);
    return 0;
}
