/* tok_build.h - small vocabularies for tests of the tokenizers.
 *
 * Thread:    belongs to its caller.
 * Ownership: tok_build_fini frees; the gguf lives in it.
 * Failure:   asserts: tests build only what must be buildable. */
#ifndef SHOAL_TEST_TOK_BUILD_H
#define SHOAL_TEST_TOK_BUILD_H

#include <assert.h>
#include <stdio.h>

#include "text/tokenizer/tokenizer.h"
#include "support/gguf_build.h"

#define TB_MAX 1200

struct tok_build {
    const char *model, *pre;
    char text[TB_MAX][64];
    float score[TB_MAX];
    int32_t type[TB_MAX];
    uint32_t n;
    const char *merges[64]; /* "left right" */
    uint32_t n_merges;
    int bos, eos, unk, sep;    /* -1: no key */
    int add_bos, space_prefix; /* -1: no key */
    const char *name, *chat_template;
    struct buf bytes;
    struct model_file *g;
};

static inline uint32_t tb_add(struct tok_build *b, const char *text, float score, int32_t type)
{
    assert(b->n < TB_MAX && strlen(text) < sizeof(b->text[0]));
    memcpy(b->text[b->n], text, strlen(text) + 1);
    b->score[b->n] = score;
    b->type[b->n] = type;
    return b->n++;
}

static inline void tb_init(struct tok_build *b, const char *model, const char *pre)
{
    memset(b, 0, sizeof(*b));
    b->model = model;
    b->pre = pre;
    b->bos = b->eos = b->unk = b->sep = b->add_bos = b->space_prefix = -1;
}

/* <0x00> ... <0xFF>: the byte tokens of SentencePiece. */
static inline void tb_add_byte_tokens(struct tok_build *b)
{
    for (unsigned i = 0; i < 256; i++) {
        char t[8];
        snprintf(t, sizeof(t), "<0x%02X>", i);
        tb_add(b, t, 0, TOKEN_TYPE_BYTE);
    }
}

/* The 256 characters of byte-level BPE. */
static inline void tb_add_byte_chars(struct tok_build *b)
{
    uint32_t next = 256;
    for (uint32_t i = 0; i < 256; i++) {
        bool prints = (i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || i >= 0xae;
        char t[8] = "";
        utf8_encode(t, prints ? i : next++);
        tb_add(b, t, 0, TOKEN_TYPE_NORMAL);
    }
}

static inline void tb_add_merge(struct tok_build *b, const char *merge)
{
    assert(b->n_merges < 64);
    b->merges[b->n_merges++] = merge;
}

/* Writes the metadata and parses it. */
static inline struct model_file *tb_gguf(struct tok_build *b)
{
    struct err e;
    gb_begin(&b->bytes);
    gb_kv_str(&b->bytes, "general.architecture", "llama");
    gb_kv_str(&b->bytes, "general.name", b->name ? b->name : "test");
    gb_kv_str(&b->bytes, "tokenizer.ggml.model", b->model);
    if (b->pre)
        gb_kv_str(&b->bytes, "tokenizer.ggml.pre", b->pre);
    gb_kv_array(&b->bytes, "tokenizer.ggml.tokens", MODEL_FILE_STRING, b->n);
    for (uint32_t i = 0; i < b->n; i++)
        gb_text(&b->bytes, b->text[i], strlen(b->text[i]));
    gb_kv_array(&b->bytes, "tokenizer.ggml.scores", MODEL_FILE_F32, b->n);
    buf_put(&b->bytes, b->score, b->n * sizeof(float));
    gb_kv_array(&b->bytes, "tokenizer.ggml.token_type", MODEL_FILE_I32, b->n);
    buf_put(&b->bytes, b->type, b->n * sizeof(int32_t));
    gb_kv_array(&b->bytes, "tokenizer.ggml.merges", MODEL_FILE_STRING, b->n_merges);
    for (uint32_t i = 0; i < b->n_merges; i++)
        gb_text(&b->bytes, b->merges[i], strlen(b->merges[i]));
    if (b->bos >= 0)
        gb_kv_u32(&b->bytes, "tokenizer.ggml.bos_token_id", (uint32_t)b->bos);
    if (b->eos >= 0)
        gb_kv_u32(&b->bytes, "tokenizer.ggml.eos_token_id", (uint32_t)b->eos);
    if (b->unk >= 0)
        gb_kv_u32(&b->bytes, "tokenizer.ggml.unknown_token_id", (uint32_t)b->unk);
    if (b->sep >= 0)
        gb_kv_u32(&b->bytes, "tokenizer.ggml.seperator_token_id", (uint32_t)b->sep);
    if (b->add_bos >= 0)
        gb_kv_bool(&b->bytes, "tokenizer.ggml.add_bos_token", b->add_bos);
    if (b->space_prefix >= 0)
        gb_kv_bool(&b->bytes, "tokenizer.ggml.add_space_prefix", b->space_prefix);
    if (b->chat_template)
        gb_kv_str(&b->bytes, "tokenizer.chat_template", b->chat_template);
    int rc = gguf_parse(&b->g, b->bytes.data, b->bytes.len, &e);
    assert(rc == 0);
    return b->g;
}

static inline void tok_build_fini(struct tok_build *b)
{
    model_file_close(b->g);
    buf_fini(&b->bytes);
}

/* Builds the file and creates a tokenizer from it. */
static inline struct tokenizer *tb_tokenizer(struct tok_build *b)
{
    struct tokenizer *t = NULL;
    struct err e = {0};
    int rc = tokenizer_create(&t, tb_gguf(b), &e);
    if (rc < 0)
        fprintf(stderr, "tokenizer_create: %s\n", e.msg);
    assert(rc == 0);
    tok_build_fini(b); /* the tokenizer must not need it any more */
    return t;
}

/* <unk> <s> </s>, byte tokens, then letters and words with scores. */
static inline void tb_spm(struct tok_build *b)
{
    static const struct {
        const char *text;
        float score;
    } words[] = {
        {"\xe2\x96\x81", -1},
        {"h", -20},
        {"e", -20},
        {"l", -20},
        {"o", -20},
        {"he", -3},
        {"ll", -2},
        {"llo", -4},
        {"hello", -6},
        {"\xe2\x96\x81hello", -5},
        {"\xe2\x96\x81he", -7},
        {"w", -20},
        {"\xc3\xa9", -20},
        {"\xe2\x96\x81\xe2\x96\x81", -8},
        {"<", -20},
        {"s", -20},
        {">", -20},
        {"<s", -9},
        {"a", -20},
        {"aa", -10},
        {"aaaa", -11},
    };
    tb_init(b, "llama", NULL);
    tb_add(b, "<unk>", 0, TOKEN_TYPE_UNKNOWN);
    tb_add(b, "<s>", 0, TOKEN_TYPE_CONTROL);
    tb_add(b, "</s>", 0, TOKEN_TYPE_CONTROL);
    tb_add_byte_tokens(b);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        tb_add(b, words[i].text, words[i].score, TOKEN_TYPE_NORMAL);
}

/* 256 byte characters, a few merges and their tokens, an end token. */
static inline void tb_bpe(struct tok_build *b, const char *pre)
{
    static const char *const words[] = {
        "he",          "ll", "hell", "hello", "\xc4\xa0w",       "or",
        "\xc4\xa0wor", "ld", "aa",   "aaaa",  "\xc4\xa0\xc4\xa0"};
    tb_init(b, "gpt2", pre);
    tb_add_byte_chars(b);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        tb_add(b, words[i], 0, TOKEN_TYPE_NORMAL);
    tb_add_merge(b, "h e");
    tb_add_merge(b, "l l");
    tb_add_merge(b, "he ll");
    tb_add_merge(b, "\xc4\xa0 w");
    tb_add_merge(b, "o r");
    tb_add_merge(b, "\xc4\xa0w or");
    tb_add_merge(b, "l d");
    tb_add_merge(b, "a a");
    tb_add_merge(b, "aa aa");
    tb_add_merge(b, "\xc4\xa0 \xc4\xa0");
    b->eos = (int)tb_add(b, "<|endoftext|>", 0, TOKEN_TYPE_CONTROL);
    b->bos = b->eos;
}

#endif
