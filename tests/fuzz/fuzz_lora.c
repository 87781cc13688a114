/* fuzz_lora.c - any bytes as a PEFT adapter: a two-byte length, an adapter_config.json of that
 * length, and adapter_model.safetensors.  If it opens, it is merged into a small base, and every
 * row is read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/convert/lora.h"
#include "support/fuzz_note.h"

static volatile uint64_t sink; /* so that reads are not optimized away */
static char folder[64], config_path[96], model_path[96];
static struct model_file *base;

static void clean_up(void)
{
    model_file_close(base);
    unlink(config_path);
    unlink(model_path);
    rmdir(folder);
}

static void add_matrix(const char *name, uint64_t rows, uint64_t cols)
{
    static const float weights[64];
    struct model_file_tensor *t = model_file_add_tensor(base);
    if (!t)
        abort();
    *t = (struct model_file_tensor){.name = {name, strlen(name)},
                                    .type = QUANT_F32,
                                    .n_dims = 2,
                                    .dims = {cols, rows, 1, 1},
                                    .data = (const uint8_t *)weights,
                                    .n_bytes = (size_t)(rows * cols) * sizeof(float),
                                    .in_memory = true};
}

static void prepare(void)
{
    struct err e;
    snprintf(folder, sizeof(folder), "/tmp/shoal-fuzz-lora-XXXXXX");
    if (!mkdtemp(folder) || model_file_create(&base, &e) < 0)
        abort();
    snprintf(config_path, sizeof(config_path), "%s/adapter_config.json", folder);
    snprintf(model_path, sizeof(model_path), "%s/adapter_model.safetensors", folder);
    model_file_put_str(base, "general.architecture", "llama", 5);
    model_file_put_u32(base, "llama.attention.head_count", 2);
    model_file_put_u32(base, "llama.attention.head_count_kv", 1);
    add_matrix("blk.0.attn_q.weight", 8, 4);
    add_matrix("blk.0.attn_v.weight", 4, 4);
    atexit(clean_up);
}

static void put(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0)
        abort();
}

static void read_rows(const struct model_file *m)
{
    float row[4];
    for (size_t i = 0; i < m->n_tensors; i++)
        for (uint64_t r = 0; r < m->tensors[i].dims[1]; r++) {
            model_file_row_f32(&m->tensors[i], r, row);
            sink += row[0] > 0.0f;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_file *adapter = NULL, *merged = NULL;
    struct err e = {0};
    if (size < 2)
        return 0;
    size_t n = data[0] + 256u * data[1];
    n = n < size - 2 ? n : size - 2;
    if (!folder[0])
        prepare();
    put(config_path, data + 2, n);
    put(model_path, data + 2 + n, size - 2 - n);
    int rc = lora_open(&adapter, folder, base, &e);
    const char *text = rc < 0 && strlen(e.msg) > strlen(folder) ? e.msg + strlen(folder) : "";
    FUZZ_NOTE("%d %s", rc, text);
    if (rc == 0 && (rc = lora_merge(&merged, base, adapter, 1.0f, &e)) == 0)
        read_rows(merged);
    else if (rc < 0 && adapter)
        FUZZ_NOTE("%d %s", rc, e.msg);
    model_file_close(merged);
    model_file_close(adapter);
    return 0;
}
