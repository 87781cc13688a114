/* test_hf_folder.c - Hugging Face folders as GGUF views. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "format/model_open.h"

static uint64_t u64_of(const struct model_file *g, const char *key)
{
    uint64_t v = UINT64_MAX;
    if (!model_file_get_u64(g, key, &v))
        fail_msg("no %s", key);
    return v;
}

static const struct model_file_tensor *tensor(const struct model_file *g, const char *name,
                                              uint64_t cols, uint64_t rows)
{
    const struct model_file_tensor *t = model_file_find_tensor(g, name);
    if (!t || t->dims[0] != cols || t->dims[1] != rows)
        fail_msg("tensor %s is missing or has another shape", name);
    return t;
}

/* Our own encoder: two heads with separate label sets. */
static void test_opens_our_encoder(void **state)
{
    (void)state;
    struct model_file *g;
    struct str s;
    struct err e = {0};
    if (model_open(&g, "models/encoder", &e) < 0)
        fail_msg("%s", e.msg);
    assert_true(model_file_get_str(g, "general.architecture", &s));
    assert_true(s.n == 4 && !memcmp(s.p, "bert", 4));
    assert_int_equal(u64_of(g, "bert.context_length"), 256);
    assert_int_equal(u64_of(g, "bert.embedding_length"), 384);
    assert_int_equal(u64_of(g, "bert.block_count"), 3);
    assert_int_equal(u64_of(g, "bert.attention.head_count"), 12);
    assert_int_equal(u64_of(g, "bert.feed_forward_length"), 640);
    assert_int_equal(g->n_tensors, 63);
    tensor(g, "token_embd.weight", 384, 8192);
    tensor(g, "blk.2.ffn_down.weight", 640, 384);
    tensor(g, "cls.weight", 384, 384);
    tensor(g, "cls.output.weight", 384, 392);
    tensor(g, "tag.output.weight", 384, 314);
    const struct model_file_tensor *t = tensor(g, "tag.transitions.home", 63, 64);
    assert_false(t->in_memory);
    assert_ptr_equal(t->map, &g->maps[0]);
    uint8_t bytes[16];
    model_file_read(t, 32, bytes, sizeof(bytes));
    assert_memory_equal(bytes, t->data + 32, sizeof(bytes));
    assert_true(model_file_get_str(g, "huggingface.config", &s) && s.n > 40000);
    assert_true(model_file_get_str(g, "tokenizer.huggingface.json", &s) && s.p[0] == '{');
    model_file_close(g);
}

static void test_survives_failing_allocations(void **state)
{
    (void)state;
    struct model_file *g;
    struct err e = {0};
    int failures = 0;
    for (uint64_t at = 1;; at++) {
        mem_fail_at(at);
        int rc = model_open(&g, SHOAL_TEST_DATA "/folders/llama3", &e);
        mem_fail_at(0);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(g);
        failures++;
    }
    model_file_close(g);
    assert_true(failures > 10); /* keys and names share arena blocks */
}

/* ---- folders made here ---------------------------------------------------------------------- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/shoal-hf-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static void put_file(const char *name, const void *p, size_t n)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"config.json", "model.safetensors", "modules.json",
                                        "vocab.txt",   "spiece.model",      "tokenizer.json"};
    char path[128];
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

/* name:rows:cols (cols 0: a vector) of F32 values 0, 1, 2, ... each. */
struct part {
    const char *name;
    unsigned rows, cols;
};

static void put_model(const char *config, const struct part *parts, size_t n)
{
    char header[4096] = "{";
    static uint8_t file[65536];
    size_t at = 1, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size =
            (parts[i].cols ? parts[i].rows * parts[i].cols : parts[i].rows) * sizeof(float);
        char shape[32];
        snprintf(shape, sizeof(shape), parts[i].cols ? "%u,%u" : "%u", parts[i].rows,
                 parts[i].cols);
        at += (size_t)snprintf(header + at, sizeof(header) - at,
                               "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":"
                               "[%zu,%zu]}",
                               i ? "," : "", parts[i].name, shape, bytes, bytes + size);
        bytes += size;
    }
    header[at++] = '}';
    assert_true(at < sizeof(header) && 8 + at + bytes < sizeof(file));
    uint64_t length = at;
    memcpy(file, &length, 8);
    memcpy(file + 8, header, at);
    for (size_t i = 0, to = 8 + at; i < n; i++) {
        size_t m = parts[i].cols ? parts[i].rows * parts[i].cols : parts[i].rows;
        for (size_t k = 0; k < m; k++, to += sizeof(float)) {
            float v = (float)k;
            memcpy(file + to, &v, sizeof(v));
        }
    }
    put_file("config.json", config, strlen(config));
    put_file("model.safetensors", file, 8 + at + bytes);
}

static struct model_file *open_made(void)
{
    struct model_file *g;
    struct err e = {0};
    if (model_open(&g, folder, &e) < 0)
        fail_msg("%s", e.msg);
    return g;
}

static float value(const struct model_file_tensor *t, size_t i)
{
    float v;
    if (t->data)
        memcpy(&v, t->data + i * sizeof(v), sizeof(v));
    else
        model_file_rows(t, i / t->dims[0], 1, i % t->dims[0], 1, &v);
    return v;
}

#define LLAMA                                                                                      \
    "\"model_type\":\"llama\",\"hidden_size\":4,\"intermediate_size\":4,\"num_hidden_layers\":1,"  \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":4,"                          \
    "\"max_position_embeddings\":8"

static void test_rows_of_llama_become_pairs(void **state)
{
    (void)state;
    static const struct part parts[] = {{"model.layers.0.self_attn.q_proj.weight", 8, 4},
                                        {"model.layers.0.self_attn.q_proj.bias", 8, 0},
                                        {"model.layers.0.self_attn.k_proj.weight", 4, 4},
                                        {"model.layers.0.self_attn.v_proj.weight", 4, 4},
                                        {"model.layers.0.self_attn.rotary_emb.inv_freq", 2, 0}};
    /* head 0: rows 0 1 2 3 -> 0 2 1 3, head 1: 4 6 5 7 */
    static const float order[] = {0, 2, 1, 3, 4, 6, 5, 7};
    put_model("{" LLAMA "}", parts, 5);
    struct model_file *g = open_made();
    const struct model_file_tensor *q = tensor(g, "blk.0.attn_q.weight", 4, 8);
    const struct model_file_tensor *b = model_file_find_tensor(g, "blk.0.attn_q.bias");
    assert_non_null(b);
    for (size_t i = 0; i < 8; i++) {
        assert_true(value(q, 4 * i) == 4 * order[i] && value(q, 4 * i + 3) == 4 * order[i] + 3);
        assert_true(value(b, i) == order[i]);
    }
    assert_true(value(tensor(g, "blk.0.attn_k.weight", 4, 4), 4) == 8);
    assert_true(value(tensor(g, "blk.0.attn_v.weight", 4, 4), 4) == 4);
    assert_true(!q->in_memory && b->in_memory); /* matrices are not copied */
    assert_int_equal(g->n_tensors, 4);
    assert_int_equal(u64_of(g, "llama.attention.key_length"), 4);
    model_file_close(g);
}

static void test_matrices_of_gpt2_are_turned(void **state)
{
    (void)state;
    static const struct part parts[] = {{"h.0.attn.c_attn.weight", 40, 70}, /* more than a block */
                                        {"h.0.attn.c_attn.bias", 70, 0},
                                        {"transformer.h.0.mlp.c_fc.weight", 3, 2},
                                        {"h.0.attn.bias", 9, 9}};
    put_model("{\"model_type\":\"gpt2\",\"n_positions\":8,\"n_embd\":4,\"n_layer\":1,\"n_head\":2}",
              parts, 4);
    struct model_file *g = open_made();
    const struct model_file_tensor *t = tensor(g, "blk.0.attn_qkv.weight", 40, 70);
    for (size_t r = 0; r < 70; r++)
        for (size_t c = 0; c < 40; c++)
            assert_true(value(t, r * 40 + c) == (float)(c * 70 + r));
    float part[2][3]; /* rows 68 and 69, columns 36 to 38 */
    model_file_rows(t, 68, 2, 36, 3, part);
    assert_true(part[0][0] == 36 * 70 + 68 && part[1][2] == 38 * 70 + 69);
    tensor(g, "blk.0.attn_qkv.bias", 70, 1);
    tensor(g, "blk.0.ffn_up.weight", 3, 2);
    assert_int_equal(g->n_tensors, 3);
    model_file_close(g);
}

static void test_positions_of_roberta_begin_after_the_padding(void **state)
{
    (void)state;
    static const struct part parts[] = {{"roberta.embeddings.position_embeddings.weight", 6, 4},
                                        {"classifier.weight", 3, 4},
                                        {"classifier.bias", 3, 0}};
    put_model("{\"model_type\":\"roberta\",\"architectures\":[\"RobertaForTokenClassification\"],"
              "\"max_position_embeddings\":6,\"hidden_size\":4,\"num_hidden_layers\":1,"
              "\"num_attention_heads\":1,\"intermediate_size\":4,\"pad_token_id\":1}",
              parts, 3);
    struct model_file *g = open_made();
    const struct model_file_tensor *t = tensor(g, "position_embd.weight", 4, 4);
    assert_true(value(t, 0) == 8); /* the third row */
    assert_int_equal(t->n_bytes, 64);
    assert_int_equal(u64_of(g, "roberta.context_length"), 4);
    tensor(g, "tag.output.weight", 4, 3); /* not cls.output */
    model_file_close(g);
}

#define BERT                                                                                       \
    "\"model_type\":\"bert\",\"max_position_embeddings\":6,\"hidden_size\":4,"                     \
    "\"num_hidden_layers\":1,\"num_attention_heads\":1,\"intermediate_size\":4"

static void test_files_of_tokenizers_travel(void **state)
{
    (void)state;
    static const struct part parts[] = {{"embeddings.LayerNorm.gamma", 4, 0},
                                        {"embeddings.LayerNorm.beta", 4, 0}};
    static const char vocab[] = "[PAD]\n[UNK]\nthe\n##re", spiece[] = "\n\0\xff";
    struct str s;
    put_model("{" BERT "}", parts, 2);
    put_file("vocab.txt", vocab, sizeof(vocab) - 1);
    put_file("spiece.model", spiece, sizeof(spiece) - 1);
    struct model_file *g = open_made();
    assert_true(model_file_get_str(g, "tokenizer.huggingface.vocab_txt", &s));
    assert_true(s.n == sizeof(vocab) - 1 && !memcmp(s.p, vocab, s.n));
    const struct model_file_value *kv = model_file_find(g, "tokenizer.huggingface.spiece");
    assert_true(kv && kv->elem_type == MODEL_FILE_U8 && kv->n_elems == sizeof(spiece) - 1);
    assert_memory_equal(kv->data, spiece, sizeof(spiece) - 1);
    tensor(g, "token_embd_norm.weight", 4, 1); /* gamma and beta are old names */
    tensor(g, "token_embd_norm.bias", 4, 1);
    model_file_close(g);
    put_file("tokenizer.json", "{}", 2); /* contains everything */
    g = open_made();
    assert_non_null(model_file_find(g, "tokenizer.huggingface.json"));
    assert_null(model_file_find(g, "tokenizer.huggingface.vocab_txt"));
    model_file_close(g);
}

#define OTHER(type)                                                                                \
    "\"model_type\":\"" type "\",\"max_position_embeddings\":6,\"hidden_size\":4,"                 \
    "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"num_key_value_heads\":1,"                 \
    "\"intermediate_size\":4"
#define SIDES                                                                                      \
    "\"d_model\":4,\"encoder_layers\":1,\"decoder_layers\":2,\"encoder_attention_heads\":2,"       \
    "\"decoder_attention_heads\":2,\"encoder_ffn_dim\":6,\"max_position_embeddings\":3,"           \
    "\"vocab_size\":5"
#define BART SIDES ",\"model_type\":\"bart\",\"decoder_ffn_dim\":6"
#define MARIAN SIDES ",\"model_type\":\"marian\",\"decoder_ffn_dim\":6"

static void test_refuses_what_it_does_not_know(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        struct part part;
        const char *says;
        int code;
    } cases[] = {
        {"{}", {"x", 1, 0}, "no model_type", SHOAL_EFORMAT},
        {"[]", {"x", 1, 0}, "config.json is not a JSON object", SHOAL_EFORMAT},
        {"{\"model_type\":\"mamba\"}",
         {"x", 1, 0},
         "model_type \"mamba\" (known: bert, ",
         SHOAL_EUNSUPPORTED},
        {"{\"model_type\":\"bert\"}",
         {"x", 1, 0},
         "config.json has no max_position_embeddings",
         SHOAL_EFORMAT},
        {"{" BERT "}",
         {"qa_outputs.weight", 2, 4},
         "tensor qa_outputs.weight is not part of the bert architecture",
         SHOAL_EUNSUPPORTED},
        {"{" BERT "}",
         {"encoder.layer.01.output.dense.bias", 4, 0},
         "tensor encoder.layer.01.output.dense.bias is not part",
         SHOAL_EUNSUPPORTED},
        {"{" BERT "}",
         {"encoder.layer.4096.output.dense.bias", 4, 0},
         "is not part of the bert",
         SHOAL_EUNSUPPORTED},
        {"{" BERT "}",
         {"tagger.transitions.a_name_that_is_much_longer_than_a_tensor_may_have_in_gguf", 2, 2},
         "too long",
         SHOAL_EFORMAT},
        {"{" BERT ",\"position_embedding_type\":\"relative_key\"}",
         {"x", 1, 0},
         "position_embedding_type \"relative_key\"",
         SHOAL_EUNSUPPORTED},
        {"{" BERT ",\"hidden_act\":\"mish\"}",
         {"x", 1, 0},
         "hidden_act \"mish\"",
         SHOAL_EUNSUPPORTED},
        {"{" LLAMA ",\"rope_scaling\":{\"type\":\"mrope\"}}",
         {"x", 1, 0},
         "rope scaling \"mrope\"",
         SHOAL_EUNSUPPORTED},
        {"{" LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":0.5}}",
         {"x", 1, 0},
         "factor of yarn is below 1",
         SHOAL_EFORMAT},
        {"{" LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"mscale\":1}}",
         {"x", 1, 0},
         "yarn with mscale",
         SHOAL_EUNSUPPORTED},
        {"{" LLAMA ",\"rope_scaling\":{\"type\":\"longrope\",\"long_factor\":[1]}}",
         {"x", 1, 0},
         "longrope factors are not 2 numbers",
         SHOAL_EFORMAT},
        {"{" LLAMA ",\"rope_scaling\":{\"type\":\"longrope\",\"long_factor\":[0,1]}}",
         {"x", 1, 0},
         "longrope factor is not positive",
         SHOAL_EFORMAT},
        {"{" OTHER("smollm3") ",\"no_rope_layers\":[0]}",
         {"x", 1, 0},
         "no_rope_layers: layer 0",
         SHOAL_EUNSUPPORTED},
        {"{" OTHER("smollm3") ",\"no_rope_layer_interval\":3}",
         {"x", 1, 0},
         "no_rope_layer_interval 3",
         SHOAL_EUNSUPPORTED},
        {"{" OTHER("exaone4") ",\"layer_types\":[\"chunked_attention\"]}",
         {"x", 1, 0},
         "layer 0 is \"chunked_attention\"",
         SHOAL_EUNSUPPORTED},
        {"{" OTHER("phi3") ",\"partial_rotary_factor\":2}",
         {"x", 1, 0},
         "rotated part of a head is not in 0..1",
         SHOAL_EFORMAT},
        {"{" OTHER("gpt_neox") ",\"hidden_act\":\"gelu_new\"}",
         {"x", 1, 0},
         "hidden_act \"gelu_new\"",
         SHOAL_EUNSUPPORTED},
        {"{" OTHER("gpt_neox") ",\"tie_word_embeddings\":true}",
         {"layers.0.attention.query_key_value.weight", 7, 4},
         "7 rows are not 2 heads",
         SHOAL_EFORMAT},
        {"{" OTHER("gpt_neox") ",\"tie_word_embeddings\":false}",
         {"x", 1, 0},
         "embed_out.weight is missing",
         SHOAL_EFORMAT},
        {"{" OTHER("stablelm") ",\"qk_layernorm\":true}",
         {"x", 1, 0},
         "qk_layernorm",
         SHOAL_EUNSUPPORTED},
        {"{" OTHER("gemma2") ",\"query_pre_attn_scalar\":0}",
         {"x", 1, 0},
         "query_pre_attn_scalar is not positive",
         SHOAL_EFORMAT},
        {"{" OTHER("gemma3_text") ",\"use_bidirectional_attention\":true}",
         {"x", 1, 0},
         "use_bidirectional_attention",
         SHOAL_EUNSUPPORTED},
        {"{" OTHER("gemma3_text") "}",
         {"layers.0.input_layernorm.weight", 2, 2},
         "2 dimensions, expected 1",
         SHOAL_EFORMAT},
        {"{" LLAMA ",\"tie_word_embeddings\":false}",
         {"x", 1, 0},
         "lm_head.weight is missing",
         SHOAL_EFORMAT},
        {"{" SIDES ",\"model_type\":\"bart\",\"decoder_ffn_dim\":7,\"eos_token_id\":2}",
         {"x", 1, 0},
         "encoder_ffn_dim is 6 and decoder_ffn_dim 7: they must be equal",
         SHOAL_EUNSUPPORTED},
        {"{" BART "}", {"x", 1, 0}, "eos_token_id is not a token's number", SHOAL_EFORMAT},
        {"{" BART ",\"decoder_start_token_id\":-1}",
         {"x", 1, 0},
         "decoder_start_token_id is not a token's number",
         SHOAL_EFORMAT},
        {"{" BART ",\"decoder_start_token_id\":2,\"activation_function\":\"mish\"}",
         {"x", 1, 0},
         "activation_function \"mish\" is not supported for bart",
         SHOAL_EUNSUPPORTED},
        {"{" BART ",\"decoder_start_token_id\":2}",
         {"classification_head.dense.weight", 4, 4},
         "classification_head.dense.weight is not part of the bart architecture",
         SHOAL_EUNSUPPORTED},
        {"{" BART ",\"decoder_start_token_id\":2}",
         {"encoder.embed_positions.weight", 2, 4},
         "encoder.embed_positions.weight: too few positions",
         SHOAL_EFORMAT},
        {"{" MARIAN ",\"pad_token_id\":4,\"share_encoder_decoder_embeddings\":false}",
         {"x", 1, 0},
         "share_encoder_decoder_embeddings false",
         SHOAL_EUNSUPPORTED},
        {"{" MARIAN ",\"pad_token_id\":4,\"decoder_vocab_size\":6}",
         {"x", 1, 0},
         "decoder_vocab_size 6 is not vocab_size 5",
         SHOAL_EUNSUPPORTED},
        {"{" LLAMA "}",
         {"model.layers.0.self_attn.q_proj.weight", 7, 4},
         "q_proj.weight: 7 rows are not 2 heads",
         SHOAL_EFORMAT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_file *g;
        struct err e = {0};
        put_model(cases[i].config, &cases[i].part, 1);
        int rc = model_open(&g, folder, &e);
        if (rc != cases[i].code || !strstr(e.msg, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].config, rc, e.msg);
        assert_null(g);
    }
    static const struct part norm = {"embeddings.LayerNorm.weight", 4, 0};
    static const char lstm[] = "[{\"type\":\"sentence_transformers.models.Transformer\"},"
                               "{\"type\":\"sentence_transformers.models.LSTM\"}]";
    static const char dense[] = "[{\"type\":\"sentence_transformers.models.Transformer\"},"
                                "{\"type\":\"sentence_transformers.models.Dense\","
                                "\"path\":\"2_Dense\"}]";
    struct model_file *g;
    struct err e = {0};
    put_model("{" BERT "}", &norm, 1);
    put_file("modules.json", lstm, sizeof(lstm) - 1);
    assert_int_equal(model_open(&g, folder, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "sentence_transformers.models.LSTM"));
    put_file("modules.json", dense, sizeof(dense) - 1);
    assert_int_equal(model_open(&g, folder, &e), SHOAL_EFORMAT);
    assert_non_null(strstr(e.msg, "2_Dense/config.json is missing"));
    assert_int_equal(model_open(&g, "/", &e), SHOAL_EIO);
    assert_non_null(strstr(e.msg, "/ is a folder without config.json"));
}

/* The first T5 and later versions, which files distinguish in two ways. */
static void test_t5_says_what_its_output_is(void **state)
{
    (void)state;
#define T5                                                                                         \
    "\"model_type\":\"t5\",\"d_model\":4,\"d_kv\":2,\"d_ff\":4,\"num_layers\":1,\"num_heads\":2"
    static const struct part parts[] = {
        {"shared.weight", 5, 4},
        {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 32, 2},
        {"decoder.block.0.layer.1.EncDecAttention.o.weight", 4, 4},
        {"decoder.block.0.layer.2.DenseReluDense.wi_1.weight", 4, 4},
        {"lm_head.weight", 5, 4}, /* the same values as the first */
        {"lm_head.weight", 6, 4},
    };
    static const struct {
        const char *config;
        size_t n_parts; /* this many of the parts, or 6: the last one instead of lm_head */
        bool output, scaled;
        const char *act;
    } cases[] = {
        {"{" T5 "}", 4, false, true, "relu"},
        {"{" T5 "}", 5, false, true, "relu"}, /* a copy of the embedding */
        {"{" T5 ",\"tie_word_embeddings\":false,\"feed_forward_proj\":\"gated-gelu\"}", 5, true,
         false, "gelu_new"},
        {"{" T5 ",\"tie_word_embeddings\":true,\"scale_decoder_outputs\":false}", 6, true, false,
         "relu"},
        {"{" T5 ",\"tie_word_embeddings\":true,\"scale_decoder_outputs\":false}", 4, false, false,
         "relu"},
    };
#undef T5
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct part some[5];
        bool scaled = !cases[i].scaled;
        struct str act;
        memcpy(some, parts, sizeof(some));
        if (cases[i].n_parts == 6)
            some[4] = parts[5];
        put_model(cases[i].config, some, cases[i].n_parts < 5 ? cases[i].n_parts : 5);
        struct model_file *g = open_made();
        assert_int_equal(model_file_find_tensor(g, "output.weight") != NULL, cases[i].output);
        assert_true(model_file_get_bool(g, "t5.scale_decoder_outputs", &scaled));
        assert_int_equal(scaled, cases[i].scaled);
        assert_true(model_file_get_str(g, "t5.activation", &act));
        assert_true(act.n == strlen(cases[i].act) && !memcmp(act.p, cases[i].act, act.n));
        tensor(g, "enc.blk.0.attn_rel_b.weight", 2, 32);
        tensor(g, "dec.blk.0.cross_attn_o.weight", 4, 4);
        tensor(g, "dec.blk.0.ffn_up.weight", 4, 4);
        assert_int_equal(u64_of(g, "t5.attention.relative_buckets_count"), 32);
        assert_int_equal(u64_of(g, "t5.decoder_block_count"), 1);
        model_file_close(g);
    }
}

/* mT5 has T5's tensors, a gate unless its settings say otherwise, and never scales its output. */
static void test_mt5_is_a_t5(void **state)
{
    (void)state;
    static const struct part shared = {"shared.weight", 5, 4};
    bool scaled = true;
    struct str act;
    put_model("{\"model_type\":\"mt5\",\"d_model\":4,\"d_kv\":2,\"d_ff\":4,\"num_layers\":1,"
              "\"num_heads\":2}",
              &shared, 1);
    struct model_file *g = open_made();
    assert_true(model_file_get_str(g, "general.architecture", &act) && act.n == 2);
    assert_true(model_file_get_bool(g, "t5.scale_decoder_outputs", &scaled) && !scaled);
    assert_true(model_file_get_str(g, "t5.activation", &act) && act.n == 8 &&
                !memcmp(act.p, "gelu_new", 8));
    model_file_close(g);
}

static void test_bart_and_marian(void **state)
{
    (void)state;
    static const struct part parts[] = {
        {"model.shared.weight", 5, 4},
        {"model.encoder.embed_positions.weight", 5, 4}, /* the first two are never used */
        {"model.decoder.layers.1.encoder_attn_layer_norm.bias", 4, 0},
        {"final_logits_bias", 1, 5},
        {"lm_head.weight", 5, 4}, /* the same values as the first */
    };
    put_model("{" BART ",\"eos_token_id\":2,\"scale_embedding\":true}", parts, 5);
    struct model_file *g = open_made();
    assert_int_equal(u64_of(g, "bart.context_length"), 3);
    assert_int_equal(u64_of(g, "bart.block_count"), 1);
    assert_int_equal(u64_of(g, "bart.decoder_block_count"), 2);
    assert_int_equal(u64_of(g, "bart.decoder_start_token_id"), 2);
    assert_true(value(tensor(g, "enc.position_embd.weight", 4, 3), 0) == 8.0f);
    tensor(g, "dec.blk.1.cross_attn_output_norm.bias", 4, 1);
    assert_int_equal(model_file_find_tensor(g, "output.bias")->n_dims, 1);
    assert_null(model_file_find_tensor(g, "output.weight"));
    assert_non_null(model_file_find(g, "bart.embedding_scale"));
    model_file_close(g);
    /* Marian's positions are computed, and it begins with the padding */
    put_model("{" MARIAN ",\"pad_token_id\":4,\"activation_function\":\"swish\"}", parts, 5);
    g = open_made();
    assert_int_equal(u64_of(g, "marian.decoder_start_token_id"), 4);
    assert_null(model_file_find_tensor(g, "enc.position_embd.weight"));
    assert_null(model_file_find(g, "marian.embedding_scale"));
    model_file_close(g);
}

/* A config that ties the output to the embedding, beside an output matrix of its own. */
static void test_a_tied_output_beside_another(void **state)
{
    (void)state;
    static const struct part embedding = {"model.embed_tokens.weight", 5, 4};
    static const struct part bare = {"embed_tokens.weight", 5, 4};
    /* every tensor has the values 0, 1, 2 ...: only its shape tells a matrix apart */
    static const struct part same = {"lm_head.weight", 5, 4}, other = {"lm_head.weight", 6, 4};
    static const struct {
        const char *config;
        const struct part *embedding, *head;
        bool output; /* the model has a separate output matrix */
    } cases[] = {
        {"{" LLAMA ",\"tie_word_embeddings\":true}", &embedding, &same, false},
        {"{" LLAMA ",\"tie_word_embeddings\":true}", &embedding, &other, true},
        {"{" LLAMA ",\"tie_word_embeddings\":true}", &bare, &same, false},
        {"{" LLAMA ",\"tie_word_embeddings\":true}", &embedding, NULL, false},
        {"{" LLAMA ",\"tie_word_embeddings\":false}", &embedding, &same, true},
        {"{" LLAMA "}", &embedding, &same, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct part parts[2] = {*cases[i].embedding};
        if (cases[i].head)
            parts[1] = *cases[i].head;
        put_model(cases[i].config, parts, cases[i].head ? 2 : 1);
        struct model_file *g = open_made();
        if ((model_file_find_tensor(g, "output.weight") != NULL) != cases[i].output)
            fail_msg("case %zu: output.weight is %sthere", i, cases[i].output ? "not " : "");
        model_file_close(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opens_our_encoder),
        cmocka_unit_test(test_survives_failing_allocations),
#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
        WITH_FOLDER(test_rows_of_llama_become_pairs),
        WITH_FOLDER(test_matrices_of_gpt2_are_turned),
        WITH_FOLDER(test_positions_of_roberta_begin_after_the_padding),
        WITH_FOLDER(test_files_of_tokenizers_travel),
        WITH_FOLDER(test_a_tied_output_beside_another),
        WITH_FOLDER(test_t5_says_what_its_output_is),
        WITH_FOLDER(test_mt5_is_a_t5),
        WITH_FOLDER(test_bart_and_marian),
        WITH_FOLDER(test_refuses_what_it_does_not_know),
#undef WITH_FOLDER
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
