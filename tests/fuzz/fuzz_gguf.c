/* fuzz_gguf.c - any bytes as a model file: parsed, looked up in every way, planned as a decoder,
 * and run for two tokens when that is small enough.  A file must never make us read outside of it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/gguf.h"
#include "model/decoder.h"
#include "support/fuzz_note.h"

static volatile uint64_t sink; /* so that reads are not optimized away */

static void touch(const struct model_file *g, const uint8_t *bytes)
{
    for (size_t i = 0; i < g->n_values; i++) {
        const struct model_file_value *kv = &g->values[i];
        struct model_file_strings strings = model_file_strings(kv);
        struct str s;
        double f;
        int64_t n;
        while (model_file_strings_next(&strings, &s))
            if (s.n > 0)
                sink += (uint8_t)s.p[s.n - 1];
        for (uint64_t j = 0; j < kv->n_elems && j < 1000; j++)
            if (model_file_f64_at(kv, j, &f) && model_file_i64_at(kv, j, &n))
                sink += (uint64_t)n;
    }
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct model_file_tensor *t = &g->tensors[i];
        if (t->data < bytes || t->n_bytes > (size_t)(bytes + g->n_bytes - t->data))
            abort(); /* a tensor outside the file */
        sink += t->data[0] + t->data[t->n_bytes - 1];
    }
}

static void run(const struct model_file *g)
{
    struct decoder *d = NULL;
    struct err e;
    struct decoder_opts o = {.kernels = &kern_scalar, .n_threads = 1, .n_ctx = 16, .max_batch = 2};
    struct decoder_sizes s;
    const int rc = decoder_measure(&s, g, &o, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc < 0 || s.weights > (4u << 20) || s.scratch > (4u << 20) || s.kv_page > (4u << 20))
        return;
    if (decoder_create(&d, g, "fuzz", &o, &e) < 0)
        return;
    uint8_t *kv = mem_pages(s.kv_page);
    if (kv) {
        int32_t tokens[2] = {0, (int32_t)decoder_config(d)->n_vocab - 1};
        uint32_t page = 0;
        struct decoder_run r = {.tokens = tokens, .n = 2, .pages = &page, .n_logits_last = 1};
        decoder_set_kv(d, kv);
        decoder_forward(d, &r, 1);
        sink += decoder_logits(d, 0)[0] > 0.0f;
        mem_pages_free(kv, s.kv_page);
    }
    decoder_destroy(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_file *g = NULL;
    struct err e;
    const int rc = gguf_parse(&g, data, size, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc == 0) {
        touch(g, data);
        run(g);
        model_file_close(g);
    }
    return 0;
}
