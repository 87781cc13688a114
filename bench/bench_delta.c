/* bench_delta.c - writes versions of a model for bench/delta.js:
 *   old.gguf, old-f16.gguf    the model as Q8_0 and as F16
 *   tuned*.gguf               all values moved a little, as training does: by a normal deviate of
 *                             1/300 of their matrix's standard deviation
 *   layer.gguf                the same for one layer only, and by ten times as much
 *   metadata.gguf             another chat template, so that all tensors move
 *   q4.gguf, q4-tuned.gguf    the same values as Q4_0, and the moved ones
 *
 * usage: bench_delta MODEL FOLDER */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "format/gguf_write.h"
#include "format/model_open.h"

static void fail(const char *text)
{
    fprintf(stderr, "bench_delta: %s\n", text);
    exit(1);
}

static double uniform(uint64_t i)
{
    return ((double)(hash_mix(i) >> 11) + 0.5) / (double)(1ull << 53);
}

static void move(float *v, size_t n, double by, uint64_t seed)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * v[i];
    by *= sqrt(sum / (double)n);
    for (size_t i = 0; i < n; i++) {
        const double a = uniform(seed * 0x9e3779b9u + 2 * i),
                     b = uniform(seed * 0x9e3779b9u + 2 * i + 1);
        v[i] += (float)(by * sqrt(-2 * log(a)) * cos(6.283185307179586 * b));
    }
}

/* What a version is: its type, how far values move, and where. */
struct version {
    const char *file;
    enum quant_type type;
    double by;
    const char *prefix; /* of the tensors that move */
    bool other_template;
};

static enum quant_type type_of(const struct version *v, const struct model_file_tensor *t)
{
    return t->n_dims < 2 || t->dims[0] % quant_info(v->type)->block ? QUANT_F32 : v->type;
}

static void put(struct gguf_write *w, const struct version *v, const struct model_file_tensor *t,
                uint64_t seed)
{
    struct err e = {0};
    const size_t n = (size_t)(t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]);
    const struct quant_info *to = quant_info(type_of(v, t));
    float *values = mem_alloc(n * sizeof(float));
    uint8_t *out = mem_alloc(n / to->block * to->block_bytes);
    if (!values || !out)
        fail("out of memory");
    quant_to_f32(t->type, t->data, values, n);
    if (v->by > 0 && strncmp(t->name.p, v->prefix, strlen(v->prefix)) == 0)
        move(values, n, v->by, seed);
    if (!quant_from_f32(type_of(v, t), values, out, n, NULL) ||
        gguf_write_data(w, out, n / to->block * to->block_bytes, &e) < 0)
        fail(e.msg);
    mem_free(values);
    mem_free(out);
}

static void make(const struct model_file *m, const char *folder, const struct version *v)
{
    static const char other[] =
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}";
    char path[512];
    struct gguf_write *w;
    struct err e = {0};
    snprintf(path, sizeof(path), "%s/%s.gguf", folder, v->file);
    if (gguf_write_create(&w, path, &e) < 0)
        fail(e.msg);
    gguf_write_copy(w, m);
    if (v->other_template)
        gguf_write_str(w, "tokenizer.chat_template", other, sizeof(other) - 1);
    for (size_t i = 0; i < m->n_tensors; i++) {
        const struct model_file_tensor *t = &m->tensors[i];
        gguf_write_tensor(w, t->name.p, t->name.n, type_of(v, t), t->n_dims, t->dims);
    }
    if (gguf_write_begin(w, &e) < 0)
        fail(e.msg);
    for (size_t i = 0; i < m->n_tensors; i++)
        put(w, v, &m->tensors[i], i + 1);
    if (gguf_write_finish(w, &e) < 0)
        fail(e.msg);
    gguf_write_destroy(w);
}

int main(int argc, char **argv)
{
    static const struct version all[] = {
        {"old", QUANT_Q8_0, 0, "", false},
        {"old-f16", QUANT_F16, 0, "", false},
        {"tuned", QUANT_Q8_0, 1 / 300.0, "", false},
        {"tuned-f16", QUANT_F16, 1 / 300.0, "", false},
        {"layer", QUANT_Q8_0, 1 / 30.0, "blk.3.", false},
        {"metadata", QUANT_Q8_0, 0, "", true},
        {"q4", QUANT_Q4_0, 0, "", false},
        {"q4-tuned", QUANT_Q4_0, 1 / 300.0, "", false},
    };
    struct model_file *m;
    struct err e = {0};
    if (argc != 3)
        fail("usage: bench_delta MODEL FOLDER");
    if (model_open(&m, argv[1], &e) < 0)
        fail(e.msg);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        make(m, argv[2], &all[i]);
    model_file_close(m);
    return 0;
}
