/* make_shapes.c - GGUF files with random F16 weights in the shapes of real small models.
 *
 * usage: make_shapes NAME OUT.gguf     (names: see shapes[], or no argument at all)
 *
 * For benchmarks only: the output is noise, but all sizes are those of the real model, including
 * the vocabulary, because loading it takes time too.  The values depend only on the shape.
 *
 * Failure:   a message and exit code 1; no partial file is left. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/quants/quant.h"
#include "format/gguf_write.h"

static const struct shape {
    const char *name, *arch, *pre; /* pre: pre-tokenizer of byte-level BPE; NULL: SentencePiece */
    uint32_t dim, ffn, layers, heads, kv_heads, vocab;
    bool tied, qkv_bias;
    float rope_base;
} shapes[] = {
    {"s15m", "llama", NULL, 288, 768, 6, 6, 6, 32000, true, false, 1e4f},
    {"mind26m", "llama", NULL, 512, 1408, 8, 8, 2, 6400, true, false, 1e6f},
    {"s110m", "llama", NULL, 768, 2048, 12, 12, 12, 32000, true, false, 1e4f},
    {"smol135m", "llama", "smollm", 576, 1536, 30, 9, 3, 49152, true, false, 1e5f},
    {"qwen05b", "qwen2", "qwen2", 896, 4864, 24, 14, 2, 151936, true, true, 1e6f},
    {"tiny1b", "llama", NULL, 2048, 5632, 22, 32, 4, 32000, false, false, 1e4f},
};
#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

enum { N_CONTEXT = 2048, N_NORMALS = 65536, CHUNK = 1 << 18 };

struct maker {
    const struct shape *s;
    struct gguf_write *w;
    uint16_t *normals; /* [N_NORMALS] F16 values of a normal distribution, std 0.02 */
    uint16_t *chunk;   /* [CHUNK] */
    uint64_t random;
};

static uint64_t next_random(struct maker *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random;
}

static void fill_normals(struct maker *m)
{
    for (int i = 0; i < N_NORMALS; i++) {
        double u = ((double)(next_random(m) >> 11) + 0.5) * 0x1p-53;
        double v = (double)(next_random(m) >> 11) * 0x1p-53;
        m->normals[i] = quant_f32_to_f16((float)(0.02 * sqrt(-2 * log(u)) * cos(6.283185307 * v)));
    }
}

/* ---- vocabulary ---- */

/* The k-th word: all words over 36 letters, two of them long first, then three, then four; each is
 * a merge of two shorter ones.  *cut is where the first part ends. */
static int word(char out[8], uint32_t k, int *cut)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    int len = 2;
    for (uint32_t n = 1296; k >= n; n *= 36) {
        k -= n;
        len++;
    }
    for (int i = len - 1; i >= 0; i--) {
        out[i] = letters[k % 36];
        k /= 36;
    }
    out[len] = 0;
    *cut = len == 2 ? 1 : 2;
    return len;
}

/* GPT-2's printable substitute for a byte, in UTF-8. */
static size_t byte_char(char out[4], uint32_t b)
{
    uint32_t c = b, other = 0;
    if (b < 33 || (b > 126 && b < 161) || b == 173) {
        for (uint32_t i = 0; i < b; i++)
            other += i < 33 || (i > 126 && i < 161) || i == 173;
        c = 256 + other;
    }
    if (c < 128) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(0xC0 | c >> 6);
    out[1] = (char)(0x80 | (c & 63));
    return 2;
}

struct vocab {
    struct str *tokens, *merges;
    float *scores;
    int32_t *types;
    char *text; /* storage of tokens and merges */
    size_t used;
};

static struct str keep(struct vocab *v, const char *p, size_t n)
{
    struct str s = {v->text + v->used, n};
    memcpy(v->text + v->used, p, n);
    v->used += n;
    return s;
}

static void fill_spm(struct vocab *v, uint32_t n)
{
    static const char *const head[] = {"<unk>", "<s>", "</s>"};
    char t[16];
    int cut;
    for (uint32_t i = 0; i < n; i++) {
        if (i < 3)
            snprintf(t, sizeof(t), "%s", head[i]);
        else if (i < 259)
            snprintf(t, sizeof(t), "<0x%02X>", i - 3);
        else if (i < 295) /* the letters themselves */
            snprintf(t, sizeof(t), "%c", i < 285 ? 'a' + (int)i - 259 : '0' + (int)i - 285);
        else if (i == 295) /* the space */
            snprintf(t, sizeof(t), "\xE2\x96\x81");
        else
            word(t, i - 296, &cut);
        v->tokens[i] = keep(v, t, strlen(t));
        v->types[i] = i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1;
        v->scores[i] = i < 259 ? 0 : -(float)(i - 259);
    }
}

static uint32_t fill_bpe(struct vocab *v, uint32_t n)
{
    uint32_t n_merges = n - 256 - 1; /* one control token at the end */
    char t[24];
    int cut;
    for (uint32_t i = 0; i < 256; i++)
        v->tokens[i] = keep(v, t, byte_char(t, i));
    for (uint32_t i = 0; i < n_merges; i++) {
        size_t len = (size_t)word(t, i, &cut);
        v->tokens[256 + i] = keep(v, t, len);
        memmove(t + cut + 1, t + cut, len - (size_t)cut);
        t[cut] = ' ';
        v->merges[i] = keep(v, t, len + 1);
    }
    v->tokens[n - 1] = keep(v, "<|endoftext|>", 13);
    for (uint32_t i = 0; i < n; i++)
        v->types[i] = i == n - 1 ? 3 : 1;
    return n_merges;
}

static int put_vocab(struct maker *m, struct err *e)
{
    uint32_t n = m->s->vocab, n_merges = 0;
    bool bpe = m->s->pre != NULL;
    struct vocab v = {.tokens = mem_zalloc(n * sizeof(*v.tokens)),
                      .merges = mem_zalloc(n * sizeof(*v.merges)),
                      .scores = mem_zalloc(n * sizeof(*v.scores)),
                      .types = mem_zalloc(n * sizeof(*v.types)),
                      .text = mem_zalloc(n * (size_t)24)};
    int rc = 0;

    if (!v.tokens || !v.merges || !v.scores || !v.types || !v.text) {
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %" PRIu32 " tokens", n);
        goto out;
    }
    if (bpe)
        n_merges = fill_bpe(&v, n);
    else
        fill_spm(&v, n);
    gguf_write_str(m->w, "tokenizer.ggml.model", bpe ? "gpt2" : "llama", bpe ? 4 : 5);
    if (bpe)
        gguf_write_str(m->w, "tokenizer.ggml.pre", m->s->pre, strlen(m->s->pre));
    gguf_write_strings(m->w, "tokenizer.ggml.tokens", v.tokens, n);
    gguf_write_array(m->w, "tokenizer.ggml.token_type", MODEL_FILE_I32, v.types, n);
    if (bpe)
        gguf_write_strings(m->w, "tokenizer.ggml.merges", v.merges, n_merges);
    else
        gguf_write_array(m->w, "tokenizer.ggml.scores", MODEL_FILE_F32, v.scores, n);
    gguf_write_u32(m->w, "tokenizer.ggml.bos_token_id", bpe ? n - 1 : 1);
    gguf_write_u32(m->w, "tokenizer.ggml.eos_token_id", bpe ? n - 1 : 2);
    gguf_write_bool(m->w, "tokenizer.ggml.add_bos_token", !bpe);
out:
    mem_free(v.tokens);
    mem_free(v.merges);
    mem_free(v.scores);
    mem_free(v.types);
    mem_free(v.text);
    return rc;
}

/* ---- tensors ---- */

static void put_meta(struct maker *m)
{
    const struct shape *s = m->s;
    const struct {
        const char *key;
        uint32_t v;
    } numbers[] = {
        {"context_length", N_CONTEXT},
        {"embedding_length", s->dim},
        {"block_count", s->layers},
        {"feed_forward_length", s->ffn},
        {"attention.head_count", s->heads},
        {"attention.head_count_kv", s->kv_heads},
        {"rope.dimension_count", s->dim / s->heads},
        {"vocab_size", s->vocab},
    };
    char key[64];

    gguf_write_str(m->w, "general.architecture", s->arch, strlen(s->arch));
    gguf_write_str(m->w, "general.name", s->name, strlen(s->name));
    gguf_write_u32(m->w, "general.file_type", 1); /* mostly F16 */
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        snprintf(key, sizeof(key), "%s.%s", s->arch, numbers[i].key);
        gguf_write_u32(m->w, key, numbers[i].v);
    }
    snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon", s->arch);
    gguf_write_f32(m->w, key, 1e-5f);
    snprintf(key, sizeof(key), "%s.rope.freq_base", s->arch);
    gguf_write_f32(m->w, key, s->rope_base);
}

typedef int (*tensor_fn)(struct maker *m, const char *name, uint32_t cols, uint32_t rows,
                         struct err *e);

/* rows 0: a vector, in F32. */
static int declare(struct maker *m, const char *name, uint32_t cols, uint32_t rows, struct err *e)
{
    uint64_t dims[2] = {cols, rows};
    (void)e;
    gguf_write_tensor(m->w, name, strlen(name), rows ? QUANT_F16 : QUANT_F32, rows ? 2 : 1, dims);
    return 0;
}

static int give(struct maker *m, const char *name, uint32_t cols, uint32_t rows, struct err *e)
{
    uint64_t left = (uint64_t)cols * rows;
    int rc = 0;

    if (rows == 0) {
        bool bias = strstr(name, ".bias") != NULL;
        for (uint32_t i = 0; i < cols && rc == 0; i++) {
            float v = bias ? quant_f16_to_f32(m->normals[next_random(m) % N_NORMALS]) : 1.0f;
            rc = gguf_write_data(m->w, &v, sizeof(v), e);
        }
        return rc;
    }
    while (left > 0 && rc == 0) {
        uint64_t n = left < CHUNK ? left : CHUNK;
        for (uint64_t i = 0; i < n; i += 4) { /* CHUNK is a multiple of four */
            uint64_t r = next_random(m);
            for (int j = 0; j < 4; j++)
                m->chunk[i + (uint64_t)j] = m->normals[r >> (16 * j) & 0xFFFF];
        }
        rc = gguf_write_data(m->w, m->chunk, n * sizeof(*m->chunk), e);
        left -= n;
    }
    return rc;
}

static int each_tensor(struct maker *m, tensor_fn fn, struct err *e)
{
    const struct shape *s = m->s;
    uint32_t kv = s->dim / s->heads * s->kv_heads;
    const struct {
        const char *name;
        uint32_t cols, rows;
        bool bias; /* only if the shape has biases */
    } parts[] = {
        {"attn_norm.weight", s->dim, 0, false},
        {"attn_q.weight", s->dim, s->dim, false},
        {"attn_q.bias", s->dim, 0, true},
        {"attn_k.weight", s->dim, kv, false},
        {"attn_k.bias", kv, 0, true},
        {"attn_v.weight", s->dim, kv, false},
        {"attn_v.bias", kv, 0, true},
        {"attn_output.weight", s->dim, s->dim, false},
        {"ffn_norm.weight", s->dim, 0, false},
        {"ffn_gate.weight", s->dim, s->ffn, false},
        {"ffn_up.weight", s->dim, s->ffn, false},
        {"ffn_down.weight", s->ffn, s->dim, false},
    };
    char name[64];
    int rc = fn(m, "token_embd.weight", s->dim, s->vocab, e);

    for (uint32_t i = 0; i < s->layers; i++)
        for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]) && rc == 0; j++) {
            if (parts[j].bias && !s->qkv_bias)
                continue;
            snprintf(name, sizeof(name), "blk.%" PRIu32 ".%s", i, parts[j].name);
            rc = fn(m, name, parts[j].cols, parts[j].rows, e);
        }
    if (rc == 0)
        rc = fn(m, "output_norm.weight", s->dim, 0, e);
    if (rc == 0 && !s->tied)
        rc = fn(m, "output.weight", s->dim, s->vocab, e);
    return rc;
}

static int make(const struct shape *s, const char *path, struct err *e)
{
    struct maker m = {.s = s, .random = 0x9E3779B97F4A7C15u ^ s->dim};
    int rc = gguf_write_create(&m.w, path, e);

    m.normals = mem_alloc(N_NORMALS * sizeof(*m.normals));
    m.chunk = mem_alloc((CHUNK + 4) * sizeof(*m.chunk));
    if (rc == 0 && (!m.normals || !m.chunk))
        rc = err_set(e, SHOAL_ENOMEM, "buffers");
    if (rc < 0)
        goto out;
    fill_normals(&m);
    put_meta(&m);
    rc = put_vocab(&m, e);
    if (rc == 0)
        rc = each_tensor(&m, declare, e);
    if (rc == 0)
        rc = gguf_write_begin(m.w, e);
    if (rc == 0)
        rc = each_tensor(&m, give, e);
    if (rc == 0)
        rc = gguf_write_finish(m.w, e);
out:
    gguf_write_destroy(m.w);
    mem_free(m.normals);
    mem_free(m.chunk);
    return rc;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    for (size_t i = 0; argc == 3 && i < N_SHAPES; i++)
        if (!strcmp(argv[1], shapes[i].name)) {
            if (make(&shapes[i], argv[2], &e) == 0)
                return 0;
            fprintf(stderr, "make_shapes: %s\n", e.msg);
            return 1;
        }
    fprintf(stderr, "usage: %s NAME OUT.gguf, where NAME is one of", argv[0]);
    for (size_t i = 0; i < N_SHAPES; i++)
        fprintf(stderr, " %s", shapes[i].name);
    fputc('\n', stderr);
    return 2;
}
