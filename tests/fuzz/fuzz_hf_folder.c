/* fuzz_hf_folder.c - any bytes as a Hugging Face folder: a two-byte length, a config.json of
 * that length, and model.safetensors. If it opens, every tensor is read, it is planned as a
 * decoder, an encoder or both, and run for two tokens if it is small enough. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/decoder.h"
#include "model/encoder.h"
#include "model/t5.h"
#include "format/model_open.h"
#include "support/fuzz_note.h"

static volatile uint64_t sink; /* so that reads are not optimized away */
static char folder[64], config_path[96], model_path[96];

static void remove_folder(void)
{
    unlink(config_path);
    unlink(model_path);
    rmdir(folder);
}

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/shoal-fuzz-hf-XXXXXX");
    if (!mkdtemp(folder))
        abort();
    snprintf(config_path, sizeof(config_path), "%s/config.json", folder);
    snprintf(model_path, sizeof(model_path), "%s/model.safetensors", folder);
    atexit(remove_folder);
}

static void put(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0)
        abort();
}

static void run_encoder(const struct model_file *g)
{
    struct encoder *d = NULL;
    struct err e;
    struct encoder_opts o = {
        .kernels = &kern_scalar, .n_threads = 1, .max_tokens = 16, .max_seqs = 1};
    struct encoder_sizes s;
    if (encoder_measure(&s, g, &o, &e) < 0 || s.weights > (4u << 20) || s.scratch > (4u << 20) ||
        encoder_create(&d, g, folder, &o, &e) < 0)
        return;
    const struct encoder_config *c = encoder_config(d);
    int32_t tokens[2] = {0, (int32_t)c->n_vocab - 1};
    uint8_t *image = calloc((size_t)c->picture.size * c->picture.size + 1, 3);
    struct encoder_seq seq = {.tokens = tokens, .n = c->n_ctx > 1 ? 2 : 1};
    if (c->picture.size)
        seq = (struct encoder_seq){.image = image, .n = c->n_ctx};
    if (image) {
        encoder_forward(d, &seq, 1);
        sink += encoder_hidden(d, 0, 0)[0] > 0.0f;
    }
    free(image);
    encoder_destroy(d);
}

/* An encoder with a decoder that writes from a source of two tokens. */
static void run_both(const struct model_file *g)
{
    struct t5 *t = NULL;
    struct err e = {0};
    struct t5_opts o = {
        .kernels = &kern_scalar, .n_threads = 1, .n_ctx = 16, .max_seqs = 1, .max_rows = 1};
    struct t5_sizes s;
    int rc = t5_measure(&s, g, &o, &e);
    if (rc == 0 && s.weights <= (4u << 20) && s.scratch <= (4u << 20) && s.kv_page <= (4u << 20))
        rc = t5_create(&t, g, folder, &o, &e);
    FUZZ_NOTE(" %s", rc < 0 ? e.msg : "");
    uint8_t *kv = t ? mem_pages(2 * s.kv_page) : NULL;
    if (kv) {
        const int32_t tokens[2] = {0, (int32_t)t5_config(t)->n_vocab - 1};
        const uint32_t pages[2] = {0, 1};
        const struct t5_source source = {.tokens = tokens, .n = 2, .pages = pages};
        const struct t5_row row = {.token = t5_config(t)->start_token,
                                   .pages = pages + 1,
                                   .source_pages = pages,
                                   .n_source = 2};
        t5_set_kv(t, kv);
        t5_encode(t, &source, 1);
        t5_decode(t, &row, 1);
        sink += t5_logits(t, 0)[0] > 0.0f;
        mem_pages_free(kv, 2 * s.kv_page);
    }
    t5_destroy(t);
}

static void run(const struct model_file *g)
{
    struct decoder *d = NULL;
    struct err e;
    struct decoder_opts o = {.kernels = &kern_scalar, .n_threads = 1, .n_ctx = 16, .max_batch = 2};
    struct decoder_sizes s;
    if (decoder_measure(&s, g, &o, &e) < 0 || s.weights > (4u << 20) || s.scratch > (4u << 20) ||
        s.kv_page > (4u << 20) || decoder_create(&d, g, folder, &o, &e) < 0)
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
    if (size < 2)
        return 0;
    size_t n = data[0] + 256u * data[1];
    n = n < size - 2 ? n : size - 2;
    if (!folder[0])
        make_folder();
    put(config_path, data + 2, n);
    put(model_path, data + 2 + n, size - 2 - n);
    const int rc = model_open(&g, folder, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 && strlen(e.msg) > strlen(folder) ? e.msg + strlen(folder) : "");
    if (rc < 0)
        return 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct model_file_tensor *t = &g->tensors[i];
        uint8_t byte, cell[4];
        if (t->data) {
            model_file_read(t, t->n_bytes - 1, &byte, 1);
            sink += t->data[0] + byte;
        } else {
            model_file_rows(t, t->dims[1] - 1, 1, t->dims[0] - 1, 1, cell);
            sink += cell[0];
        }
    }
    if (encoder_knows(g))
        run_encoder(g);
    else if (t5_knows(g) && !t5_hears(g))
        run_both(g);
    else
        run(g);
    model_file_close(g);
    return 0;
}
