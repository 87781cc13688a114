/* test_convert_llama2c.c - llama2.c checkpoints of all three formats to GGUF. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "format/convert/convert_llama2c.h"
#include "format/gguf.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum {
    DIM = 32,
    HIDDEN = 48,
    LAYERS = 2,
    HEADS = 4,
    KV_HEADS = 2,
    VOCAB = 20,
    CTX = 8,
    GROUP = 16
};

static char folder[64], bin_path[96], tok_path[96], out_path[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/shoal-llama2c-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(bin_path, sizeof(bin_path), "%s/model.bin", folder);
    snprintf(tok_path, sizeof(tok_path), "%s/tok.bin", folder);
    snprintf(out_path, sizeof(out_path), "%s/out.gguf", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(bin_path);
    unlink(tok_path);
    unlink(out_path);
    return rmdir(folder); /* fails if a test left other files behind */
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

/* The test model's weights: small integers over 64, and so exact in F32 and in 8-bit groups. */
static int code_at(enum llama2c_part part, uint32_t layer, uint64_t i)
{
    return (int)(hash_mix((uint64_t)part << 40 | (uint64_t)layer << 32 | i) % 255) - 127;
}

static float scale_of(enum llama2c_part part, uint64_t group)
{
    return (float)(1 + (group + part) % 3) / 64;
}

static uint64_t values_of(enum llama2c_part part)
{
    switch (part) {
    case LLAMA2C_EMBEDDING:
    case LLAMA2C_OUTPUT:
        return VOCAB * DIM;
    case LLAMA2C_ATTN_Q:
    case LLAMA2C_ATTN_OUTPUT:
        return DIM * DIM;
    case LLAMA2C_ATTN_K:
    case LLAMA2C_ATTN_V:
        return DIM * DIM / 2;
    case LLAMA2C_FFN_GATE:
    case LLAMA2C_FFN_DOWN:
    case LLAMA2C_FFN_UP:
        return DIM * HIDDEN;
    default:
        return DIM;
    }
}

static float weight_at(enum llama2c_part part, uint32_t layer, uint64_t i)
{
    return (float)code_at(part, layer, i) * scale_of(part, i / GROUP);
}

static void put_i32(struct buf *b, int32_t v)
{
    buf_put(b, &v, sizeof(v));
}

static void put_f32(struct buf *b, float v)
{
    buf_put(b, &v, sizeof(v));
}

static void put_part(struct buf *b, enum llama2c_part part, uint32_t n_layers, bool grouped)
{
    uint64_t n = values_of(part);
    for (uint32_t l = 0; l < n_layers; l++) {
        for (uint64_t i = 0; i < n; i++)
            if (grouped)
                buf_putc(b, (char)code_at(part, l, i));
            else
                put_f32(b, weight_at(part, l, i));
        for (uint64_t g = 0; grouped && g < n / GROUP; g++)
            put_f32(b, scale_of(part, g));
    }
}

static void make_checkpoint(struct buf *b, int version, bool shared)
{
    static const int order[2][11] = {
        {LLAMA2C_EMBEDDING, LLAMA2C_ATTN_NORM, LLAMA2C_ATTN_Q, LLAMA2C_ATTN_K, LLAMA2C_ATTN_V,
         LLAMA2C_ATTN_OUTPUT, LLAMA2C_FFN_NORM, LLAMA2C_FFN_GATE, LLAMA2C_FFN_DOWN, LLAMA2C_FFN_UP,
         LLAMA2C_FINAL_NORM},
        {LLAMA2C_ATTN_NORM, LLAMA2C_FFN_NORM, LLAMA2C_FINAL_NORM, LLAMA2C_EMBEDDING, LLAMA2C_ATTN_Q,
         LLAMA2C_ATTN_K, LLAMA2C_ATTN_V, LLAMA2C_ATTN_OUTPUT, LLAMA2C_FFN_GATE, LLAMA2C_FFN_DOWN,
         LLAMA2C_FFN_UP},
    };
    const int32_t header[7] = {
        DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, version == 0 && !shared ? -VOCAB : VOCAB, CTX};
    buf_init(b, 1 << 20);
    if (version > 0) {
        put_i32(b, 0x616b3432);
        put_i32(b, version);
    }
    buf_put(b, header, sizeof(header));
    if (version > 0)
        buf_putc(b, shared);
    if (version == 2)
        put_i32(b, GROUP);
    while (version > 0 && b->len < 256)
        buf_putc(b, 0);
    for (int i = 0; i < 11; i++) {
        enum llama2c_part part = (enum llama2c_part)order[version > 0][i];
        bool norm = values_of(part) == DIM;
        bool once = part == LLAMA2C_EMBEDDING || part == LLAMA2C_FINAL_NORM;
        put_part(b, part, once ? 1 : LAYERS, version == 2 && !norm);
    }
    for (int i = 0; version == 0 && i < CTX * DIM / HEADS; i++)
        put_f32(b, 0);
    if (!shared)
        put_part(b, LLAMA2C_OUTPUT, 1, version == 2);
    assert_int_equal(b->rc, 0);
}

static void write_tokenizer(void)
{
    static const char *const special[] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    struct buf b;
    buf_init(&b, 1 << 16);
    put_i32(&b, 8);
    for (int i = 0; i < VOCAB; i++) {
        char piece[16];
        if (i < 3)
            snprintf(piece, sizeof(piece), "%s", special[i]);
        else
            snprintf(piece, sizeof(piece), " w%d", i);
        put_f32(&b, (float)-i);
        put_i32(&b, (int32_t)strlen(piece));
        buf_puts(&b, piece);
    }
    write_file(tok_path, b.data, b.len);
    buf_fini(&b);
}

static void write_inputs(int version, bool shared)
{
    struct buf b;
    make_checkpoint(&b, version, shared);
    write_file(bin_path, b.data, b.len);
    buf_fini(&b);
    write_tokenizer();
}

static const char *const names[] = {
    "token_embd", "attn_norm", "attn_q",   "attn_k", "attn_v",      "attn_output",
    "ffn_norm",   "ffn_gate",  "ffn_down", "ffn_up", "output_norm", "output",
};

static void check_tensor(const struct model_file *g, enum llama2c_part part, uint32_t layer)
{
    char name[64];
    if (part == LLAMA2C_EMBEDDING || part == LLAMA2C_FINAL_NORM || part == LLAMA2C_OUTPUT)
        snprintf(name, sizeof(name), "%s.weight", names[part]);
    else
        snprintf(name, sizeof(name), "blk.%u.%s.weight", layer, names[part]);
    const struct model_file_tensor *t = model_file_find_tensor(g, name);
    if (!t)
        fail_msg("no tensor %s", name);
    assert_int_equal(t->dims[0], part == LLAMA2C_FFN_DOWN ? HIDDEN : DIM);
    assert_int_equal(t->dims[0] * t->dims[1], values_of(part));
    assert_int_equal(t->n_dims, values_of(part) == DIM ? 1 : 2);
    assert_int_equal(t->type, QUANT_F32);
    for (uint64_t i = 0; i < values_of(part); i++) {
        float v;
        memcpy(&v, t->data + 4 * i, sizeof(v));
        if (v != weight_at(part, layer, i))
            fail_msg("%s[%d]: %g, want %g", name, (int)i, (double)v,
                     (double)weight_at(part, layer, i));
    }
}

static void check_metadata(const struct model_file *g)
{
    static const struct {
        const char *key;
        uint64_t v;
    } want[] = {
        {"llama.context_length", CTX},
        {"llama.embedding_length", DIM},
        {"llama.block_count", LAYERS},
        {"llama.feed_forward_length", HIDDEN},
        {"llama.attention.head_count", HEADS},
        {"llama.attention.head_count_kv", KV_HEADS},
        {"llama.rope.dimension_count", DIM / HEADS},
        {"llama.vocab_size", VOCAB},
        {"tokenizer.ggml.bos_token_id", 1},
        {"tokenizer.ggml.eos_token_id", 2},
        {"tokenizer.ggml.unknown_token_id", 0},
        {"general.file_type", 0},
    };
    uint64_t v;
    double f;
    struct str s;
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        if (!model_file_get_u64(g, want[i].key, &v) || v != want[i].v)
            fail_msg("%s is wrong", want[i].key);
    assert_true(model_file_get_f64(g, "llama.attention.layer_norm_rms_epsilon", &f) && f > 0.9e-5 &&
                f < 1.1e-5);
    assert_true(model_file_get_str(g, "general.architecture", &s) && s.n == 5);
    assert_true(model_file_get_str(g, "general.name", &s) && s.n == 9 &&
                !memcmp(s.p, "model.bin", 9));
    const struct model_file_value *kv = model_file_find(g, "tokenizer.ggml.tokens");
    assert_true(kv && kv->n_elems == VOCAB);
    struct model_file_strings tokens = model_file_strings(kv);
    for (int i = 0; model_file_strings_next(&tokens, &s); i++)
        assert_true((i != 1 || s.n == 3) && (i != 7 || s.n == 5));
    kv = model_file_find(g, "tokenizer.ggml.scores");
    assert_true(kv && kv->n_elems == VOCAB && model_file_f64_at(kv, 7, &f) && f == -7);
    kv = model_file_find(g, "tokenizer.ggml.token_type");
    assert_true(kv && kv->n_elems == VOCAB);
}

static void test_all_formats_convert_to_the_same_weights(void **state)
{
    (void)state;
    for (int version = 0; version < 3; version++)
        for (int shared = 0; shared < 2; shared++) {
            struct quantize_opts o = {.kind = QUANTIZE_F32};
            struct quantize_result r;
            struct err e = {0};
            struct model_file *g;
            write_inputs(version, shared);
            if (convert_llama2c(bin_path, tok_path, out_path, NULL, &o, &r, &e) < 0)
                fail_msg("version %d: %s", version, e.msg);
            quantize_result_fini(&r);
            assert_int_equal(gguf_open(&g, out_path, &e), 0);
            check_metadata(g);
            assert_int_equal(g->n_tensors, LAYERS * 9 + 2 + !shared);
            for (int part = 0; part < LLAMA2C_N_PARTS; part++) {
                bool layered = part >= LLAMA2C_ATTN_NORM && part <= LLAMA2C_FFN_UP;
                if (part == LLAMA2C_OUTPUT && shared)
                    continue;
                for (uint32_t l = 0; l < (layered ? LAYERS : 1); l++)
                    check_tensor(g, (enum llama2c_part)part, l);
            }
            model_file_close(g);
        }
}

static void test_other_encodings_follow_the_rules_of_quantize(void **state)
{
    struct quantize_opts o = {.kind = QUANTIZE_MIXED};
    struct quantize_result r;
    struct err e = {0};
    struct model_file *g;
    (void)state;
    write_inputs(0, true);
    assert_int_equal(convert_llama2c(bin_path, tok_path, out_path, "tiny", &o, &r, &e), 0);
    quantize_result_fini(&r);
    assert_int_equal(gguf_open(&g, out_path, &e), 0);
    assert_int_equal(model_file_find_tensor(g, "blk.1.attn_q.weight")->type, QUANT_Q8_0);
    assert_int_equal(model_file_find_tensor(g, "blk.1.ffn_up.weight")->type, QUANT_Q4_0);
    assert_int_equal(model_file_find_tensor(g, "blk.1.ffn_down.weight")->type,
                     QUANT_F16); /* 48 wide */
    assert_int_equal(model_file_find_tensor(g, "output_norm.weight")->type, QUANT_F32);
    model_file_close(g);
}

static void test_sizes_must_agree_with_the_file(void **state)
{
    (void)state;
    for (int version = 0; version < 3; version++) {
        struct buf b;
        struct llama2c m;
        struct err e = {0};
        make_checkpoint(&b, version, false);
        assert_int_equal(convert_llama2c_parse(&m, b.data, b.len, &e), 0);
        for (size_t n = 1; n < b.len; n += n < 300 ? 1 : 997) {
            char *cut = malloc(n); /* exact, so that ASan sees a read past the end */
            assert_non_null(cut);
            memcpy(cut, b.data, n);
            assert_int_equal(convert_llama2c_parse(&m, cut, n, &e), SHOAL_EFORMAT);
            free(cut);
        }
        assert_int_equal(convert_llama2c_parse(&m, b.data, b.len - 1, &e), SHOAL_EFORMAT);
        assert_non_null(strstr(e.msg, "the file has"));
        buf_putc(&b, 0);
        assert_int_equal(convert_llama2c_parse(&m, b.data, b.len, &e), SHOAL_EFORMAT);
        buf_fini(&b);
    }
}

static void test_hostile_headers_are_refused(void **state)
{
    static const struct {
        const char *why;
        int field;
        int32_t v;
        const char *text;
    } rows[] = {
        {"no width", 0, 0, "width"},
        {"negative", 0, -32, "width"},
        {"a width to overflow with", 0, INT32_MAX, "width"},
        {"no feed-forward", 1, 0, "feed-forward"},
        {"layers to overflow with", 2, 0x7fffffff, "layer"},
        {"many layers", 2, 4096, "bytes"},
        {"heads that do not divide", 3, 5, "heads"},
        {"heads of width one", 3, 32, "even"},
        {"no key heads", 4, 0, "key head"},
        {"more key heads than heads", 4, 8, "key heads"},
        {"key heads that do not divide", 4, 3, "key heads"},
        {"the most negative vocabulary", 5, INT32_MIN, "vocabulary"},
        {"no vocabulary", 5, 0, "vocabulary"},
        {"no context", 6, 0, "context"},
        {"a large context", 6, 1 << 24, "bytes"},
    };
    struct buf b;
    struct llama2c m;
    struct err e = {0};
    (void)state;
    for (int version = 0; version < 3; version++)
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            make_checkpoint(&b, version, true);
            if (version > 0 && rows[i].field == 6 && rows[i].v > 0) {
                buf_fini(&b);
                continue; /* these formats have no tensor of that size */
            }
            memcpy(b.data + (version > 0 ? 8 : 0) + 4 * rows[i].field, &rows[i].v, 4);
            e.msg[0] = '\0';
            int rc = convert_llama2c_parse(&m, b.data, b.len, &e);
            if (rc != SHOAL_EFORMAT || !strstr(e.msg, rows[i].text))
                fail_msg("version %d, %s: %d %s", version, rows[i].why, rc, e.msg);
            buf_fini(&b);
        }
    static const int32_t groups[] = {0, -1, 5, 1 << 30};
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        make_checkpoint(&b, 2, true);
        memcpy(b.data + 37, &groups[i], 4);
        assert_int_equal(convert_llama2c_parse(&m, b.data, b.len, &e), SHOAL_EFORMAT);
        buf_fini(&b);
    }
    make_checkpoint(&b, 2, true);
    b.data[4] = 3;
    assert_int_equal(convert_llama2c_parse(&m, b.data, b.len, &e), SHOAL_EUNSUPPORTED);
    buf_fini(&b);
}

static void test_failures_leave_no_file(void **state)
{
    struct quantize_opts o = {.kind = QUANTIZE_F16};
    struct quantize_result r;
    struct err e = {0};
    (void)state;
    assert_int_equal(convert_llama2c(bin_path, tok_path, out_path, NULL, &o, &r, &e), SHOAL_EIO);
    write_inputs(0, true);
    assert_int_equal(convert_llama2c(folder, tok_path, out_path, NULL, &o, &r, &e), SHOAL_EIO);
    write_file(tok_path, "abc", 3);
    assert_int_equal(convert_llama2c(bin_path, tok_path, out_path, NULL, &o, &r, &e),
                     SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "tok.bin"));
    write_file(tok_path, "", 0);
    assert_int_equal(convert_llama2c(bin_path, tok_path, out_path, NULL, &o, &r, &e),
                     SHOAL_EFORMAT);
    write_tokenizer();
    write_file(bin_path, "abc", 3);
    assert_int_equal(convert_llama2c(bin_path, tok_path, out_path, NULL, &o, &r, &e),
                     SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "model.bin"));
    assert_true(access(out_path, F_OK) != 0);

    write_inputs(0, true);
    for (uint64_t n = 1;; n++) {
        mem_fail_at(n);
        int rc = convert_llama2c(bin_path, tok_path, out_path, NULL, &o, &r, &e);
        mem_fail_at(0);
        if (rc == 0) {
            assert_true(n > 50);
            quantize_result_fini(&r);
            break;
        }
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_true(access(out_path, F_OK) != 0);
    }
}

#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_all_formats_convert_to_the_same_weights),
        WITH_FOLDER(test_other_encodings_follow_the_rules_of_quantize),
        cmocka_unit_test(test_sizes_must_agree_with_the_file),
        cmocka_unit_test(test_hostile_headers_are_refused),
        WITH_FOLDER(test_failures_leave_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
