/* convert_llama2c.c - see convert_llama2c.h. */
#include "format/convert/convert_llama2c.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rd.h"
#include "format/convert/llama2c_vocab.h"
#include "format/model_file.h"

#define MAGIC 0x616b3432u /* "ak42" as a number; the bytes are in reverse order */

enum {
    HEADER_BYTES = 256, /* of versions 1 and 2 */
    /* Far above any real model, far below what could overflow the arithmetic. */
    MAX_WIDTH = 1 << 20,
    MAX_VOCAB = 1 << 24,
    MAX_LAYERS = 1 << 12,
    MAX_CONTEXT = 1 << 24,
};

static const enum llama2c_part order_legacy[LLAMA2C_N_PARTS] = {
    LLAMA2C_EMBEDDING, LLAMA2C_ATTN_NORM,   LLAMA2C_ATTN_Q,     LLAMA2C_ATTN_K,
    LLAMA2C_ATTN_V,    LLAMA2C_ATTN_OUTPUT, LLAMA2C_FFN_NORM,   LLAMA2C_FFN_GATE,
    LLAMA2C_FFN_DOWN,  LLAMA2C_FFN_UP,      LLAMA2C_FINAL_NORM, LLAMA2C_OUTPUT,
};
static const enum llama2c_part order_later[LLAMA2C_N_PARTS] = {
    LLAMA2C_ATTN_NORM, LLAMA2C_FFN_NORM, LLAMA2C_FINAL_NORM, LLAMA2C_EMBEDDING,
    LLAMA2C_ATTN_Q,    LLAMA2C_ATTN_K,   LLAMA2C_ATTN_V,     LLAMA2C_ATTN_OUTPUT,
    LLAMA2C_FFN_GATE,  LLAMA2C_FFN_DOWN, LLAMA2C_FFN_UP,     LLAMA2C_OUTPUT,
};

static bool is_norm(enum llama2c_part part)
{
    return part == LLAMA2C_ATTN_NORM || part == LLAMA2C_FFN_NORM || part == LLAMA2C_FINAL_NORM;
}

static bool is_layered(enum llama2c_part part)
{
    return part >= LLAMA2C_ATTN_NORM && part <= LLAMA2C_FFN_UP;
}

void convert_llama2c_shape(const struct llama2c *m, enum llama2c_part part, uint64_t *n_rows,
                           uint64_t *n_cols)
{
    *n_cols = m->dim;
    switch (part) {
    case LLAMA2C_EMBEDDING:
    case LLAMA2C_OUTPUT:
        *n_rows = m->n_vocab;
        break;
    case LLAMA2C_ATTN_Q:
    case LLAMA2C_ATTN_OUTPUT:
        *n_rows = m->dim;
        break;
    case LLAMA2C_ATTN_K:
    case LLAMA2C_ATTN_V:
        *n_rows = (uint64_t)m->dim / m->n_heads * m->n_kv_heads;
        break;
    case LLAMA2C_FFN_GATE:
    case LLAMA2C_FFN_UP:
        *n_rows = m->n_hidden;
        break;
    case LLAMA2C_FFN_DOWN:
        *n_rows = m->dim;
        *n_cols = m->n_hidden;
        break;
    default: /* norms */
        *n_rows = 1;
    }
}

/* Bytes of one layer's tensor. */
static uint64_t part_bytes(const struct llama2c *m, enum llama2c_part part)
{
    uint64_t n_rows, n_cols;
    convert_llama2c_shape(m, part, &n_rows, &n_cols);
    uint64_t n = n_rows * n_cols;
    return m->group && !is_norm(part) ? n + n / m->group * sizeof(float) : n * sizeof(float);
}

static int check_range(const char *what, int64_t v, int64_t max, struct err *e)
{
    if (v < 1 || v > max)
        return err_set(e, SHOAL_EFORMAT, "not a llama2.c checkpoint: %s of %lld", what,
                       (long long)v);
    return 0;
}

static int check_header(struct llama2c *m, const int32_t h[7], struct err *e)
{
    const struct {
        const char *what;
        int64_t v, max;
        uint32_t *out;
    } fields[] = {
        {"width", h[0], MAX_WIDTH, &m->dim},
        {"feed-forward width", h[1], MAX_WIDTH, &m->n_hidden},
        {"layer count", h[2], MAX_LAYERS, &m->n_layers},
        {"head count", h[3], MAX_WIDTH, &m->n_heads},
        {"key head count", h[4], MAX_WIDTH, &m->n_kv_heads},
        {"vocabulary", h[5] < 0 ? -(int64_t)h[5] : h[5], MAX_VOCAB, &m->n_vocab},
        {"context length", h[6], MAX_CONTEXT, &m->n_ctx},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        int rc = check_range(fields[i].what, fields[i].v, fields[i].max, e);
        if (rc < 0)
            return rc;
        *fields[i].out = (uint32_t)fields[i].v;
    }
    if (m->dim % m->n_heads != 0 || m->dim / m->n_heads % 2 != 0)
        return err_set(e, SHOAL_EFORMAT, "width %u does not divide into %u heads of even width",
                       m->dim, m->n_heads);
    if (m->n_kv_heads > m->n_heads || m->n_heads % m->n_kv_heads != 0)
        return err_set(e, SHOAL_EFORMAT, "%u heads cannot share %u key heads", m->n_heads,
                       m->n_kv_heads);
    return 0;
}

static int read_header(struct llama2c *m, struct rd *r, struct err *e)
{
    int32_t h[7];
    uint32_t magic = rd_u32(r);

    if (magic == MAGIC) {
        m->version = rd_u32(r);
        if (!r->bad && m->version != 1 && m->version != 2)
            return err_set(e, SHOAL_EUNSUPPORTED, "llama2.c checkpoint of version %u", m->version);
    } else {
        *r = rd_make(r->start, (size_t)(r->end - r->start));
    }
    for (int i = 0; i < 7; i++)
        h[i] = rd_i32(r);
    m->shared = h[5] > 0; /* legacy format: a negative size means not shared */
    if (m->version > 0)
        m->shared = rd_u8(r) != 0;
    if (m->version == 2)
        m->group = rd_u32(r);
    if (m->version > 0)
        (void)rd_take(r, HEADER_BYTES - rd_pos(r));
    if (r->bad)
        return err_set(e, SHOAL_EFORMAT, "not a llama2.c checkpoint: %zu bytes", rd_pos(r));
    if (m->version > 0 && h[5] < 0)
        return err_set(e, SHOAL_EFORMAT, "not a llama2.c checkpoint: vocabulary of %d", h[5]);
    int rc = check_header(m, h, e);
    if (rc == 0 && m->version == 2 &&
        (m->group < 1 || m->group > MAX_WIDTH || m->dim % m->group != 0))
        rc = err_set(e, SHOAL_EFORMAT, "groups of %u values do not divide width %u", m->group,
                     m->dim);
    return rc;
}

int convert_llama2c_parse(struct llama2c *out, const void *bytes, size_t n, struct err *e)
{
    struct rd r = rd_make(bytes, n);
    struct llama2c m = {.bytes = bytes};
    int rc = read_header(&m, &r, e);
    if (rc < 0)
        return rc;

    const enum llama2c_part *order = m.version == 0 ? order_legacy : order_later;
    uint64_t at = rd_pos(&r);
    for (int i = 0; i < LLAMA2C_N_PARTS; i++) {
        enum llama2c_part part = order[i];
        if (part == LLAMA2C_OUTPUT) {
            if (m.version == 0) /* tables of rotations, which are recomputed */
                at += (uint64_t)m.n_ctx * (m.dim / m.n_heads) * sizeof(float);
            if (m.shared)
                break;
        }
        if (at > n)
            break;
        m.offsets[part] = (size_t)at;
        at += part_bytes(&m, part) * (is_layered(part) ? m.n_layers : 1);
    }
    if (at != n)
        return err_set(
            e, SHOAL_EFORMAT,
            "checkpoint of width %u, feed-forward %u, %u layers, %u/%u heads, vocabulary "
            "%u%s, context %u needs %s%llu bytes, the file has %zu",
            m.dim, m.n_hidden, m.n_layers, m.n_heads, m.n_kv_heads, m.n_vocab,
            m.shared ? " (shared)" : "", m.n_ctx, at > n ? "at least " : "", (unsigned long long)at,
            n);
    *out = m;
    return 0;
}

void convert_llama2c_row(const struct llama2c *m, enum llama2c_part part, uint32_t layer,
                         uint64_t row, float *out)
{
    uint64_t n_rows, n_cols;
    convert_llama2c_shape(m, part, &n_rows, &n_cols);
    const uint8_t *p = m->bytes + m->offsets[part] + part_bytes(m, part) * layer;
    if (!m->group || is_norm(part)) {
        memcpy(out, p + row * n_cols * sizeof(float), (size_t)n_cols * sizeof(float));
        return;
    }
    const uint8_t *scales = p + n_rows * n_cols;
    for (uint64_t c = 0; c < n_cols; c++) {
        uint64_t i = row * n_cols + c;
        float scale;
        memcpy(&scale, scales + i / m->group * sizeof(float), sizeof(scale));
        out[c] = (float)(int8_t)p[i] * scale;
    }
}

/* ---- as a struct model_file --------------------------------------------------------------- */

static const char *const part_names[LLAMA2C_N_PARTS] = {
    [LLAMA2C_EMBEDDING] = "token_embd",   [LLAMA2C_ATTN_NORM] = "attn_norm",
    [LLAMA2C_ATTN_Q] = "attn_q",          [LLAMA2C_ATTN_K] = "attn_k",
    [LLAMA2C_ATTN_V] = "attn_v",          [LLAMA2C_ATTN_OUTPUT] = "attn_output",
    [LLAMA2C_FFN_NORM] = "ffn_norm",      [LLAMA2C_FFN_GATE] = "ffn_gate",
    [LLAMA2C_FFN_DOWN] = "ffn_down",      [LLAMA2C_FFN_UP] = "ffn_up",
    [LLAMA2C_FINAL_NORM] = "output_norm", [LLAMA2C_OUTPUT] = "output",
};

struct source_row {
    const struct llama2c *m;
    enum llama2c_part part;
    uint32_t layer;
};

struct convert {
    struct llama2c m;
    struct llama2c_vocab vocab;
    const char *name;
    struct model_file *file;
};

static void row_of(const void *ctx, uint64_t row, float *out)
{
    const struct source_row *s = ctx;
    convert_llama2c_row(s->m, s->part, s->layer, row, out);
}

static int put_vocabulary(struct model_file *f, const struct llama2c_vocab *v, struct err *e)
{
    struct str *pieces = mem_zalloc_n(v->n, sizeof(*pieces));
    if (!pieces)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary of %u tokens", v->n);
    for (uint32_t i = 0; i < v->n; i++)
        pieces[i] = (struct str){v->pieces[i], v->piece_bytes[i]};
    model_file_put_str(f, "tokenizer.ggml.model", "llama", 5);
    model_file_put_strings(f, "tokenizer.ggml.tokens", pieces, v->n);
    model_file_put_array(f, "tokenizer.ggml.scores", MODEL_FILE_F32, v->scores, v->n);
    model_file_put_array(f, "tokenizer.ggml.token_type", MODEL_FILE_I32, v->types, v->n);
    model_file_put_u32(f, "tokenizer.ggml.bos_token_id", (uint32_t)v->bos);
    model_file_put_u32(f, "tokenizer.ggml.eos_token_id", (uint32_t)v->eos);
    model_file_put_u32(f, "tokenizer.ggml.unknown_token_id", (uint32_t)v->unk);
    model_file_put_bool(f, "tokenizer.ggml.add_bos_token", true);
    model_file_put_bool(f, "tokenizer.ggml.add_eos_token", false);
    mem_free(pieces);
    return 0;
}

static int put_metadata(const struct convert *c, struct err *e)
{
    struct model_file *f = c->file;
    const struct llama2c *m = &c->m;

    model_file_put_str(f, "general.architecture", "llama", 5);
    model_file_put_str(f, "general.name", c->name, strlen(c->name));
    model_file_put_u32(f, "llama.vocab_size", m->n_vocab);
    model_file_put_u32(f, "llama.context_length", m->n_ctx);
    model_file_put_u32(f, "llama.embedding_length", m->dim);
    model_file_put_u32(f, "llama.block_count", m->n_layers);
    model_file_put_u32(f, "llama.feed_forward_length", m->n_hidden);
    model_file_put_u32(f, "llama.attention.head_count", m->n_heads);
    model_file_put_u32(f, "llama.attention.head_count_kv", m->n_kv_heads);
    model_file_put_f32(f, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    model_file_put_u32(f, "llama.rope.dimension_count", m->dim / m->n_heads);
    model_file_put_f32(f, "llama.rope.freq_base", 10000);
    int rc = put_vocabulary(f, &c->vocab, e);
    return rc < 0 ? rc : model_file_check(f, e);
}

static int add_tensor(const struct convert *c, enum llama2c_part part, uint32_t layer,
                      struct err *e)
{
    char name[64];
    int n = is_layered(part)
                ? snprintf(name, sizeof(name), "blk.%u.%s.weight", layer, part_names[part])
                : snprintf(name, sizeof(name), "%s.weight", part_names[part]);
    struct source_row *row = model_file_alloc(c->file, sizeof(*row));
    char *own_name = model_file_alloc(c->file, (size_t)n + 1);
    struct model_file_tensor *t = model_file_add_tensor(c->file);
    if (!row || !own_name || !t)
        return err_set(e, SHOAL_ENOMEM, "out of memory for tensor %s", name);
    memcpy(own_name, name, (size_t)n);
    *row = (struct source_row){&c->m, part, layer};
    *t = (struct model_file_tensor){.name = {own_name, (size_t)n},
                                    .type = QUANT_F32,
                                    .n_dims = is_norm(part) ? 1 : 2,
                                    .dims = {1, 1, 1, 1},
                                    .n_bytes = (size_t)part_bytes(&c->m, part),
                                    .order = MODEL_FILE_COMPUTED,
                                    .row = row_of,
                                    .row_ctx = row};
    convert_llama2c_shape(&c->m, part, &t->dims[1], &t->dims[0]);
    return 0;
}

static int add_tensors(const struct convert *c, struct err *e)
{
    int rc = add_tensor(c, LLAMA2C_EMBEDDING, 0, e);
    for (uint32_t l = 0; l < c->m.n_layers && rc == 0; l++)
        for (int part = LLAMA2C_ATTN_NORM; part <= LLAMA2C_FFN_UP && rc == 0; part++)
            rc = add_tensor(c, (enum llama2c_part)part, l, e);
    if (rc == 0)
        rc = add_tensor(c, LLAMA2C_FINAL_NORM, 0, e);
    if (rc == 0 && !c->m.shared)
        rc = add_tensor(c, LLAMA2C_OUTPUT, 0, e);
    return rc;
}

static int read_inputs(struct convert *c, const struct file_map *model, const char *model_path,
                       const struct file_map *tok, const char *tok_path, struct err *e)
{
    int rc = convert_llama2c_parse(&c->m, model->bytes, model->n_bytes, e);
    if (rc < 0) {
        err_wrap(e, "%s", model_path);
        return rc;
    }
    rc = llama2c_vocab_parse(&c->vocab, tok->bytes, tok->n_bytes, c->m.n_vocab, e);
    if (rc < 0)
        err_wrap(e, "%s", tok_path);
    return rc;
}

int convert_llama2c(const char *model_path, const char *tokenizer_path, const char *out_path,
                    const char *name, const struct quantize_opts *o, struct quantize_result *result,
                    struct err *e)
{
    struct convert c = {.name = name};
    struct file_map model = {0}, tok = {0};

    memset(result, 0, sizeof(*result));
    if (!c.name) {
        const char *slash = strrchr(model_path, '/');
        c.name = slash ? slash + 1 : model_path;
    }
    int rc = file_map_open(&model, model_path, e);
    if (rc == 0)
        rc = file_map_open(&tok, tokenizer_path, e);
    if (rc == 0)
        rc = read_inputs(&c, &model, model_path, &tok, tokenizer_path, e);
    if (rc == 0)
        rc = model_file_create(&c.file, e);
    if (rc == 0)
        rc = put_metadata(&c, e);
    if (rc == 0)
        rc = add_tensors(&c, e);
    if (rc == 0) {
        c.file->n_bytes = model.n_bytes;
        rc = quantize_run(c.file, out_path, o, result, e);
    }
    model_file_close(c.file);
    llama2c_vocab_fini(&c.vocab);
    file_map_close(&model);
    file_map_close(&tok);
    return rc;
}
