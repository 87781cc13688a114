/* fuzz_adapter.c - any bytes as a LoRA adapter in GGUF form, put beside a small decoder: if it
 * fits, it is applied to a few tokens at every place. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/convert/lora.h"
#include "format/model_open.h"
#include "model/adapter.h"
#include "model/adapter_make.h"
#include "model/decoder.h"
#include "support/fuzz_note.h"

static char path[64];
static struct model_file *base;
static struct decoder *decoder;

static void clean_up(void)
{
    decoder_destroy(decoder);
    model_file_close(base);
    unlink(path);
}

static void prepare(void)
{
    const struct decoder_opts o = {.n_threads = 1, .max_batch = 4, .kernels = &kern_scalar};
    struct err e = {0};
    snprintf(path, sizeof(path), "/tmp/shoal-fuzz-adapter-XXXXXX");
    const int fd = mkstemp(path);
    if (fd < 0 || model_open(&base, SHOAL_TEST_DATA "/folders/llama", &e) < 0 ||
        decoder_create(&decoder, base, "", &o, &e) < 0)
        abort();
    close(fd);
    atexit(clean_up);
}

static void apply(const struct adapter *a)
{
    enum { TOKENS = 3, WIDEST = 256 };
    static float x[TOKENS * WIDEST], out[TOKENS * WIDEST], up[TOKENS * WIDEST];
    const struct adapter_rows rows = {
        .x = x, .x_ld = WIDEST, .out = {out, up}, .ld = WIDEST, .n = TOKENS};
    for (uint32_t i = 0; i < decoder_config(decoder)->n_layers; i++)
        for (int p = 0; p < ADAPTER_PLACES; p++)
            adapter_apply(a, i, (enum adapter_place)p, 1.0f, &rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_file *file = NULL;
    struct adapter *a = NULL;
    struct err e = {0};
    if (!path[0])
        prepare();
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
    int rc = lora_open(&file, path, base, &e);
    if (rc == 0)
        rc = adapter_make(&a, decoder, file, &e);
    const char *text = strncmp(e.msg, path, strlen(path)) == 0 ? e.msg + strlen(path) : e.msg;
    FUZZ_NOTE("%d %s", rc, rc < 0 ? text : "");
    if (rc == 0)
        apply(a);
    adapter_destroy(a);
    model_file_close(file);
    return 0;
}
