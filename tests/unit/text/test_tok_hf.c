/* test_tok_hf.c - tokenizers of Hugging Face folders on small vocabularies: every kind of step,
 * ranges in the input, pairs, hostile documents, failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "support/tok_build.h"

/* A tokenizer from a tokenizer.json; config may be NULL. */
static int create(struct tokenizer **t, const char *json, const char *config, struct err *e)
{
    struct model_file *g = NULL;
    struct buf b;
    gb_begin(&b);
    gb_kv_str(&b, "tokenizer.huggingface.json", json);
    if (config)
        gb_kv_str(&b, "tokenizer.huggingface.config", config);
    assert_int_equal(gguf_parse(&g, b.data, b.len, e), 0);
    int rc = tokenizer_create(t, g, e);
    model_file_close(g);
    buf_fini(&b);
    return rc;
}

static struct tokenizer *must_create(const char *json, const char *config)
{
    struct tokenizer *t = NULL;
    struct err e = {0};
    if (create(&t, json, config, &e) < 0)
        fail_msg("%s\nof %s", e.msg, json);
    return t;
}

/* The tokens of a text as "piece@start-end", between bars; special ones as "<id>". */
static const char *shown(struct buf *out, const struct tokenizer *t, const char *a, const char *b,
                         size_t max, unsigned flags)
{
    struct tok_encoding x;
    struct err e;
    tokenizer_encoding_init(&x);
    assert_int_equal(
        tokenizer_encode_pair(t, &x, a, strlen(a), b, b ? strlen(b) : 0, max, flags, &e), 0);
    buf_clear(out);
    for (size_t i = 0; i < x.n; i++) {
        struct str w = tokenizer_piece(t, x.ids[i], TOKENIZER_RENDER_SPECIAL);
        if (i > 0)
            buf_putc(out, '|');
        if (x.inputs[i] == TOK_INPUT_NONE)
            buf_printf(out, "<%d>", x.ids[i]);
        else
            buf_printf(out, "%.*s@%u-%u", (int)w.n, w.p, x.start[i], x.end[i]);
        if (x.types[i])
            buf_printf(out, "'%u", x.types[i]);
    }
    tokenizer_encoding_fini(&x);
    return buf_str(out);
}

struct example {
    const char *why, *a, *b;
    size_t max;
    unsigned flags;
    const char *want;
};

static void check_all(const struct tokenizer *t, const struct example *c, size_t n)
{
    struct buf out;
    buf_init(&out, 10000);
    for (size_t i = 0; i < n; i++) {
        const char *got = shown(&out, t, c[i].a, c[i].b, c[i].max, c[i].flags);
        if (strcmp(got, c[i].want) != 0)
            fail_msg("%s: \"%s\" gives %s, want %s", c[i].why, c[i].a, got, c[i].want);
    }
    buf_fini(&out);
}
#define CHECK(t, cases) check_all(t, cases, sizeof(cases) / sizeof((cases)[0]))

#define SPECIAL(id, text)                                                                          \
    "{\"id\":" #id ",\"content\":\"" text "\",\"special\":true,\"normalized\":false}"
#define BERT                                                                                       \
    "{\"added_tokens\":[" SPECIAL(0, "[PAD]") "," SPECIAL(1, "[UNK]") "," SPECIAL(                 \
        2, "[CLS]") "," SPECIAL(3, "[SEP]") "],\"normalizer\":{\"type\":\"BertNormalizer\","       \
                                            "\"lowercase\":true},"                                 \
                                            "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"   \
                                            "\"post_processor\":"                                  \
                                            "{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],"  \
                                            "\"cls\":[\"[CLS]\",2]},"                              \
                                            "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##"  \
                                            "\",\"cleanup\":true},"                                \
                                            "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"["  \
                                            "UNK]\",\"vocab\":{\"[PAD]\":0,"                       \
                                            "\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"play\":4,\"##"  \
                                            "ing\":5,\"cafe\":6,\"!\":7,\"a\":8,"                  \
                                            "\"##b\":9,\"\\u4e2d\":10,\"i\":11}}}"

/* A token that is not spelled in the byte alphabet is never produced from text: Command R has
 * some characters twice, once as themselves and once as their bytes. */
static void test_byte_level_sees_its_alphabet_only(void **state)
{
    (void)state;
    static const char json[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\\u200d\":0,\"\\u00e2\":1,\"\\u0122\":2,"
        "\"\\u012f\":3,\"\\u00e2\\u0122\":4,\"\\u00e2\\u0122\\u012f\":5,\"a\":6},"
        "\"merges\":[\"\\u00e2 \\u0122\",\"\\u00e2\\u0122 \\u012f\"]},"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
        "\"decoder\":{\"type\":\"ByteLevel\"}}";
    struct tokenizer *t = must_create(json, NULL);
    struct tok_encoding x;
    struct err e = {0};
    tokenizer_encoding_init(&x);
    assert_int_equal(
        tokenizer_encode_pair(t, &x, "a\xe2\x80\x8d", 4, NULL, 0, 0, TOKENIZER_ADD_SPECIAL, &e), 0);
    assert_int_equal(x.n, 2);
    assert_int_equal(x.ids[0], 6);
    assert_int_equal(x.ids[1], 5);
    tokenizer_encoding_fini(&x);
    tokenizer_destroy(t);
}

/* U+FDD0 is an ordinary character in a file without NUL. */
static void test_a_noncharacter_in_the_vocabulary(void **state)
{
    (void)state;
    static const char with[] =
        "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,"
        "\"\\ufdd0\":1,\"a\":2},\"merges\":[]}}";
    static const char nul[] = "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,"
                              "\"\\u0000\":1,\"a\":2},\"merges\":[]}}";
    const struct {
        const char *json, *text;
        size_t n;
        int32_t id;
    } cases[] = {{with, "\xef\xb7\x90", 3, 1}, {with, "\0", 1, 0}, {nul, "\0", 1, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tokenizer *t = must_create(cases[i].json, NULL);
        struct tok_encoding x;
        struct err e = {0};
        tokenizer_encoding_init(&x);
        assert_int_equal(tokenizer_encode_pair(t, &x, cases[i].text, cases[i].n, NULL, 0, 0, 0, &e),
                         0);
        assert_int_equal(x.n, 1);
        assert_int_equal(x.ids[0], cases[i].id);
        tokenizer_encoding_fini(&x);
        tokenizer_destroy(t);
    }
}

static void test_wordpiece(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"words and parts", "Playing a", NULL, 0, 1, "<2>| play@0-4|ing@4-7| a@8-9|<3>"},
        {"accents go, ranges stay", "x caf\xc3\xa9!", NULL, 0, 0, " [UNK]@0-1| cafe@2-7|!@7-8"},
        {"combining accent", "cafe\xcc\x81!", NULL, 0, 0, " cafe@0-4|!@6-7"},
        {"a Chinese character alone",
         "a\xe4\xb8\xad"
         "a",
         NULL, 0, 0, " a@0-1| \xe4\xb8\xad@1-4| a@4-5"},
        {"control characters go",
         "pl\x01"
         "ay",
         NULL, 0, 0, " play@0-5"},
        {"invalid bytes are U+FFFD, which goes",
         "pl\xff"
         "ay\xe4\xb8",
         NULL, 0, 0, " play@0-5"},
        {"a pair", "a", "ab!", 0, 1, "<2>| a@0-1|<3>| a@0-1'1|b@1-2'1|!@2-3'1|<3>'1"},
        {"special tokens in the text", "a[SEP]a", NULL, 0, 2, " a@0-1| [SEP]@1-6| a@6-7"},
        {"not of a user", "[SEP]", NULL, 0, 0, " [UNK]@0-1| [UNK]@1-4| [UNK]@4-5"},
        {"one text cut", "a a a a", NULL, 4, 1, "<2>| a@0-1| a@2-3|<3>"},
        {"the longer first", "a a a a a", "ab", 7, 1,
         "<2>| a@0-1| a@2-3|<3>| a@0-1'1|b@1-2'1|<3>'1"},
        {"then both", "a a a a", "a b a a", 8, 1,
         "<2>| a@0-1| a@2-3|<3>| a@0-1'1| [UNK]@2-3'1| a@4-5'1|<3>'1"},
        {"only the second", "a a a", "ab", 7, 1 | TOKENIZER_CUT_SECOND,
         "<2>| a@0-1| a@2-3| a@4-5|<3>| a@0-1'1|<3>'1"},
        {"the second is gone", "a a a", "ab", 5, 1 | TOKENIZER_CUT_SECOND,
         "<2>| a@0-1| a@2-3|<3>|<3>'1"},
        {"no room at all", "a a", "a", 2, 1, "<2>|<3>|<3>'1"},
        {"nothing", "", NULL, 0, 1, "<2>|<3>"},
    };
    struct tokenizer *t = must_create(BERT, NULL);
    CHECK(t, cases);
    assert_int_equal(tokenizer_info(t)->kind, TOKENIZER_KIND_WPM);
    assert_int_equal(tokenizer_info(t)->bos, 2);
    assert_int_equal(tokenizer_info(t)->sep, 3);
    assert_true(tokenizer_info(t)->add_bos && tokenizer_info(t)->add_sep);
    assert_int_equal(tokenizer_find(t, "[PAD]", 5), 0);
    tokenizer_destroy(t);
}

/* The tokenizers of GGUF files give the same ranges. */
/* One step at a time, on a vocabulary of characters and of pairs that only meet in one piece. */
static void test_steps_alone(void **state)
{
    static const struct {
        const char *step, *text, *want;
    } rows[] = {
        {"", "ab", "ab@0-2"},
        {"", "aXYb", "a@0-1|?@1-2|?@2-3|b@3-4"},
        /* normalizers */
        {"\"normalizer\":{\"type\":\"Lowercase\"}", "AB", "ab@0-2"},
        {"\"normalizer\":{\"type\":\"StripAccents\"}", "e\xcc\x81.", "e@0-1|.@3-4"},
        {"\"normalizer\":{\"type\":\"StripAccents\"}", "E", "?@0-1"},
        {"\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},{\"type\":"
         "\"StripAccents\"}]}",
         "\xc3\xa9", "e@0-2"},
        {"\"normalizer\":{\"type\":\"Nmt\"}", "a\tb\x01", "a@0-1| @1-2|b@2-3"},
        /* pre-tokenizers */
        {"", "a.", "a.@0-2"},
        {"\"pre_tokenizer\":{\"type\":\"Punctuation\"}", "a.", "a@0-1|.@1-2"},
        {"", "a\xe3\x80\x82", "a\xe3\x80\x82@0-4"},
        {"\"pre_tokenizer\":{\"type\":\"Punctuation\"}", "a\xe3\x80\x82", "a@0-1|\xe3\x80\x82@1-4"},
        {"\"pre_tokenizer\":{\"type\":\"Punctuation\"}", "a1", "a1@0-2"},
        {"\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":false}", "a11",
         "a@0-1|11@1-3"},
        {"\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":true}", "a11",
         "a@0-1|1@1-2|1@2-3"},
        {"\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":true}", "a\xd9\xa3",
         "a@0-1|\xd9\xa3@1-3"},
        {"\"pre_tokenizer\":{\"type\":\"Digits\",\"individual_digits\":true}", "a.", "a.@0-2"},
        {"\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}", "a b", "a@0-1|b@2-3"},
    };
    struct buf out;
    (void)state;
    buf_init(&out, 10000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[1024];
        snprintf(json, sizeof(json),
                 "{\"decoder\":{\"type\":\"Fuse\"},%s%s\"model\":{\"type\":\"BPE\",\"unk_token\":"
                 "\"?\",\"fuse_unk\":false,\"vocab\":"
                 "{\"?\":0,\"a\":1,\"b\":2,\"e\":3,\" \":4,\".\":5,\"1\":6,\"\\u3002\":7,"
                 "\"\\u0663\":8,\"ab\":9,\"a.\":10,\"a\\u3002\":11,\"11\":12,\"a1\":13,"
                 "\"a\\u0663\":14},\"merges\":[\"a b\",\"a .\",\"a \\u3002\",\"1 1\",\"a 1\","
                 "\"a \\u0663\"]}}",
                 rows[i].step, rows[i].step[0] ? "," : "");
        struct tokenizer *t = must_create(json, NULL);
        const char *got = shown(&out, t, rows[i].text, NULL, 100, 0);
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s: \"%s\" gives %s, want %s", rows[i].step, rows[i].text, got, rows[i].want);
        tokenizer_destroy(t);
    }
    buf_fini(&out);
}

/* Unknown characters in a row are one token, with the range of all of them. */
static void test_unknown_characters_are_fused(void **state)
{
    static const struct example cases[] = {
        {"two between", "aXYa", NULL, 100, 0, "a@0-1|?@1-3|a@3-4"},
        {"at the end", "aXYZ", NULL, 100, 0, "a@0-1|?@1-4"},
        {"one alone", "Xa", NULL, 100, 0, "?@0-1|a@1-2"},
        {"apart", "XaY", NULL, 100, 0, "?@0-1|a@1-2|?@2-3"},
        {"of several bytes",
         "\xc3\xa9\xc3\xa9"
         "a",
         NULL, 100, 0, "?@0-4|a@4-5"},
    };
    struct tokenizer *t = must_create("{\"decoder\":{\"type\":\"Fuse\"},\"model\":{\"type\":"
                                      "\"BPE\",\"unk_token\":\"?\",\"fuse_unk\":true,"
                                      "\"vocab\":{\"?\":0,\"a\":1},\"merges\":[]}}",
                                      NULL);
    (void)state;
    CHECK(t, cases);
    tokenizer_destroy(t);
}

static void test_ranges_of_gguf_kinds(void **state)
{
    (void)state;
    static const struct example wpm[] = {
        {"words", "A\xc3\xa9 b", NULL, 0, 0, " a@0-1|e@1-3| b@4-5"},
        {"a pair", "a", "b", 0, 1, "<0>| a@0-1|<1>| b@0-1'1|<1>'1"},
    };
    static const struct example spm[] = {
        {"the space that encode adds is nowhere", "hello hello", NULL, 0, 0,
         " hello@0-5| hello@6-11"},
        {"byte tokens have the whole character", "\xc3\xb8", NULL, 0, 0, " @0-0|\xc3@0-2|\xb8@0-2"},
    };
    static const struct example bpe[] = {
        {"merged", "hello wor", NULL, 0, 0, "hell@0-4|o@4-5| wor@6-9"},
    };
    struct tok_build b;
    tb_init(&b, "bert", NULL);
    tb_add(&b, "[CLS]", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "[SEP]", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b,
           "\xe2\x96\x81"
           "a",
           0, TOKEN_TYPE_NORMAL);
    tb_add(&b, "e", 0, TOKEN_TYPE_NORMAL);
    tb_add(&b,
           "\xe2\x96\x81"
           "b",
           0, TOKEN_TYPE_NORMAL);
    b.bos = 0;
    b.sep = 1;
    struct tokenizer *t = tb_tokenizer(&b);
    CHECK(t, wpm);
    tokenizer_destroy(t);
    tb_spm(&b);
    t = tb_tokenizer(&b);
    CHECK(t, spm);
    tokenizer_destroy(t);
    tb_bpe(&b, "gpt-2");
    t = tb_tokenizer(&b);
    CHECK(t, bpe);
    tokenizer_destroy(t);
}

/* ---- the folders of tests/data/tokenizers ---- */

static const struct {
    const char *file, *key;
    bool bytes;
} files[] = {
    {"tokenizer.json", "tokenizer.huggingface.json", false},
    {"tokenizer_config.json", "tokenizer.huggingface.config", false},
    {"vocab.txt", "tokenizer.huggingface.vocab_txt", false},
    {"spiece.model", "tokenizer.huggingface.spiece", true},
    {"vocab.json", "tokenizer.huggingface.vocab_json", false},
    {"merges.txt", "tokenizer.huggingface.merges_txt", false},
};

static void put_folder(struct buf *b, const char *name)
{
    gb_begin(b);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[512];
        static char data[1 << 17];
        snprintf(path, sizeof(path), SHOAL_TEST_DATA "/tokenizers/%s/%s", name, files[i].file);
        FILE *f = fopen(path, "rb");
        if (!f)
            continue;
        size_t n = fread(data, 1, sizeof(data), f);
        assert_true(n < sizeof(data));
        fclose(f);
        if (files[i].bytes) {
            gb_kv_array(b, files[i].key, MODEL_FILE_U8, n);
            buf_put(b, data, n);
        } else {
            gb_key(b, files[i].key, MODEL_FILE_STRING);
            gb_text(b, data, n);
        }
    }
}

static struct tokenizer *open_folder(const char *name)
{
    struct tokenizer *t = NULL;
    struct model_file *g = NULL;
    struct err e = {0};
    struct buf b;
    put_folder(&b, name);
    assert_int_equal(gguf_parse(&g, b.data, b.len, &e), 0);
    if (tokenizer_create(&t, g, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    model_file_close(g);
    buf_fini(&b);
    return t;
}

static const char *const folders[] = {"bpe-files",     "bpe-split",        "bpe-words",   "roberta",
                                      "spiece-bpe",    "spiece-unigram",   "spiece-xlmr", "unigram",
                                      "unigram-bytes", "unigram-charsmap", "vocab-txt",   "words"};
#define N_FOLDERS (sizeof(folders) / sizeof(folders[0]))

/* What the files say besides the tokens. */
static void test_info(void **state)
{
    (void)state;
    struct tokenizer *t = open_folder("spiece-unigram");
    assert_int_equal(tokenizer_info(t)->kind, TOKENIZER_KIND_UNIGRAM);
    assert_true(tokenizer_info(t)->add_eos && !tokenizer_info(t)->add_bos);
    assert_int_equal(tokenizer_find(t, "<extra_id_0>", 12), tokenizer_info(t)->n_vocab - 1);
    assert_true(tokenizer_is_eog(t, tokenizer_info(t)->eos));
    tokenizer_destroy(t);
    t = open_folder("spiece-bpe");
    assert_int_equal(tokenizer_info(t)->kind, TOKENIZER_KIND_SPM);
    assert_true(tokenizer_info(t)->add_bos && tokenizer_info(t)->bos == 1);
    tokenizer_destroy(t);
    t = open_folder("vocab-txt");
    assert_int_equal(tokenizer_info(t)->kind, TOKENIZER_KIND_WPM);
    assert_int_equal(tokenizer_info(t)->mask, tokenizer_find(t, "[MASK]", 6));
    tokenizer_destroy(t);
    t = must_create(BERT, "{\"eos_token\":{\"content\":\"a\"},\"pad_token\":\"[PAD]\","
                          "\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"no\"},"
                          "{\"name\":\"default\",\"template\":\"yes\"}]}");
    assert_int_equal(tokenizer_info(t)->eos, 8);
    assert_int_equal(tokenizer_info(t)->pad, 0);
    assert_string_equal(tokenizer_info(t)->chat_template, "yes");
    tokenizer_destroy(t);
}

static void test_several_ids_end_a_generation(void **state)
{
    (void)state;
    struct tokenizer *t = NULL;
    struct model_file *g = NULL;
    struct err e;
    struct buf b;
    gb_begin(&b);
    gb_kv_str(&b, "tokenizer.huggingface.json", BERT);
    gb_kv_str(&b, "huggingface.generation_config", "{\"eos_token_id\":[4,7,100000,-1,\"x\"]}");
    gb_kv_str(&b, "huggingface.config", "{\"eos_token_id\":6}");
    assert_int_equal(gguf_parse(&g, b.data, b.len, &e), 0);
    assert_int_equal(tokenizer_create(&t, g, &e), 0);
    assert_int_equal(tokenizer_info(t)->eos, 4);
    for (int32_t i = 0; i < 12; i++)
        assert_int_equal(tokenizer_is_eog(t, i), i == 4 || i == 6 || i == 7);
    tokenizer_destroy(t);
    model_file_close(g);
    buf_fini(&b);
}

/* Tokens with a NUL, which the JSON library cannot hold. */
static void test_nul_in_the_vocabulary(void **state)
{
    (void)state;
    struct tokenizer *t = must_create("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\\u0000\":"
                                      "1,\"a\\u0000\":2,\"\\\\u0000\":3},"
                                      "\"merges\":[[\"a\",\"\\u0000\"]]}}",
                                      NULL);
    struct tok_ids ids;
    struct err e;
    tok_ids_init(&ids, 10);
    assert_int_equal(tokenizer_encode(t, &ids, "a\0\0a", 4, 0, &e), 0);
    assert_int_equal(ids.n, 3);
    assert_int_equal(ids.ids[0], 2);
    assert_int_equal(ids.ids[1], 1);
    assert_int_equal(tokenizer_find(t, "\\u0000", 6), 3);
    tok_ids_fini(&ids);
    tokenizer_destroy(t);
}

#define MODEL "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}"

static void test_what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
        int code;
    } cases[] = {
        {"{\"model\":", "not JSON", SHOAL_EFORMAT},
        {"[]", "without a vocab", SHOAL_EFORMAT},
        {"{\"model\":{\"type\":\"Magic\"}}", "\"Magic\"", SHOAL_EUNSUPPORTED},
        {"{\"normalizer\":{\"type\":\"Foo\"}," MODEL "}", "normalizer \"Foo\"", SHOAL_EUNSUPPORTED},
        {"{\"normalizer\":{}," MODEL "}", "normalizer", SHOAL_EUNSUPPORTED},
        {"{\"pre_tokenizer\":{\"type\":\"Foo\"}," MODEL "}", "pre_tokenizer \"Foo\"",
         SHOAL_EUNSUPPORTED},
        {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_____\"}," MODEL "}",
         "one character", SHOAL_EFORMAT},
        {"{\"post_processor\":{\"type\":\"Foo\"}," MODEL "}", "post_processor \"Foo\"",
         SHOAL_EUNSUPPORTED},
        {"{\"decoder\":{\"type\":\"CTC\"}," MODEL "}", "decoder \"CTC\"", SHOAL_EUNSUPPORTED},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}}",
         "dropout", SHOAL_EUNSUPPORTED},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],"
         "\"end_of_word_suffix\":\"</w>\"}}",
         "end_of_word_suffix", SHOAL_EUNSUPPORTED},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", "merge 0",
         SHOAL_EFORMAT},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":16000000},\"merges\":[]}}",
         "cannot have ids up to", SHOAL_EFORMAT},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "\"a\"",
         SHOAL_EFORMAT},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0.5},\"merges\":[]}}", "\"a\"",
         SHOAL_EFORMAT},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "piece 0", SHOAL_EFORMAT},
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":7,\"vocab\":[[\"a\",0]]}}", "unk_id",
         SHOAL_EFORMAT},
        {"{\"added_tokens\":[{\"id\":1}]," MODEL "}", "added_tokens", SHOAL_EFORMAT},
        {"{\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"b\",1]}"
         "," MODEL "}",
         "sep", SHOAL_EFORMAT},
        {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
         "{\"id\":\"zz\"}}]}," MODEL "}",
         "\"zz\"", SHOAL_EFORMAT},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"}}," MODEL "}",
         "regular expression", SHOAL_EFORMAT},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&[b]]\"}}," MODEL "}",
         "at 2", SHOAL_EUNSUPPORTED},
        {"{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\"},"
         "{\"type\":\"Digits\"}]}," MODEL "}",
         "\"Digits\" after ByteLevel", SHOAL_EUNSUPPORTED},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"x\"},\"behavior\":"
         "\"Odd\"}," MODEL "}",
         "\"Odd\"", SHOAL_EUNSUPPORTED},
        {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}," MODEL "}",
         "precompiled_charsmap", SHOAL_EFORMAT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tokenizer *t = NULL;
        struct err e = {0};
        int rc = create(&t, cases[i].json, NULL, &e);
        if (rc != cases[i].code || !strstr(e.msg, cases[i].says))
            fail_msg("%s gives %d \"%s\", want %d and %s", cases[i].json, rc, e.msg, cases[i].code,
                     cases[i].says);
        assert_null(t);
    }
}

static void test_deep_sequences_are_refused(void **state)
{
    (void)state;
    struct buf b;
    struct err e = {0};
    struct tokenizer *t = NULL;
    buf_init(&b, 1 << 16);
    buf_puts(&b, "{" MODEL ",\"normalizer\":");
    for (int i = 0; i < 200; i++)
        buf_puts(&b, "{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 200; i++)
        buf_puts(&b, "]}");
    buf_puts(&b, "}");
    assert_int_equal(create(&t, buf_str(&b), NULL, &e), SHOAL_ELIMIT);
    buf_fini(&b);
}

/* Three steps that each turn one letter into a thousand would expand 11 bytes to gigabytes. */
static void test_growth_in_normalizers_is_bounded(void **state)
{
    (void)state;
    struct buf b;
    struct tok_ids ids;
    struct err e = {0};
    buf_init(&b, 1 << 16);
    buf_puts(&b, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 3; i++) {
        buf_printf(&b, "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"",
                   i ? "," : "");
        for (int k = 0; k < 1000; k++)
            buf_putc(&b, 'a');
        buf_puts(&b, "\"}");
    }
    buf_puts(&b, "]}," MODEL "}");
    struct tokenizer *t = must_create(buf_str(&b), NULL);
    tok_ids_init(&ids, (size_t)1 << 30);
    assert_int_equal(tokenizer_encode(t, &ids, "a text, aaa", 11, 0, &e), SHOAL_ELIMIT);
    assert_non_null(strstr(e.msg, "longer normalized text"));
    assert_int_equal(ids.n, 0);
    /* a text without the letter is not affected */
    assert_int_equal(tokenizer_encode(t, &ids, "b", 1, 0, &e), 0);
    tok_ids_fini(&ids);
    tokenizer_destroy(t);
    buf_fini(&b);
}

/* An expression that backtracks endlessly is stopped. */
static void test_slow_expressions_are_stopped(void **state)
{
    (void)state;
    struct tokenizer *t = must_create(
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?:a+a+)+[bc]\"},"
        "\"behavior\":\"Isolated\"}," MODEL "}",
        NULL);
    char text[64];
    struct tok_ids ids;
    struct err e;
    memset(text, 'a', sizeof(text));
    tok_ids_init(&ids, 100);
    assert_int_equal(tokenizer_encode(t, &ids, text, sizeof(text), 0, &e), SHOAL_ELIMIT);
    tok_ids_fini(&ids);
    tokenizer_destroy(t);
}

static void fail_everywhere(const char *name, const struct buf *b)
{
    static const char text[] =
        " The  pump\tin caf\xc3\xa9 e\xcc\x81 <s> \xef\xac\x81ne \xe4\xb8\xad "
        "42-a \xff\xf0\x9f\x98\x80 \xea\xb0\x80 tag";
    struct tokenizer *t = NULL;
    struct model_file *g = NULL;
    struct err e;
    assert_int_equal(gguf_parse(&g, b->data, b->len, &e), 0);
    uint64_t calls = mem_calls();
    assert_int_equal(tokenizer_create(&t, g, &e), 0);
    calls = mem_calls() - calls;
    for (uint64_t n = 1; n <= calls; n++) {
        struct tokenizer *other = NULL;
        mem_fail_at(n);
        int rc = tokenizer_create(&other, g, &e);
        mem_fail_at(0);
        /* an expression that cannot be compiled to machine code is only slower */
        if (rc != SHOAL_ENOMEM && rc != 0)
            fail_msg("%s: call %llu gives %d %s", name, (unsigned long long)n, rc, e.msg);
        assert_true((rc == 0) == (other != NULL));
        tokenizer_destroy(other);
    }
    model_file_close(g);
    int rc = -1;
    for (uint64_t n = 1; rc < 0; n++) {
        struct tok_encoding x;
        tokenizer_encoding_init(&x);
        mem_fail_at(n);
        rc = tokenizer_encode_pair(t, &x, text, sizeof(text) - 1, "a", 1, 0, 3, &e);
        mem_fail_at(0);
        tokenizer_encoding_fini(&x);
        assert_true(rc == 0 || rc == SHOAL_ENOMEM);
        assert_true(n < 60); /* a call allocates buffers, not tokens */
    }
    tokenizer_destroy(t);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    struct buf b;
    gb_begin(&b);
    gb_kv_str(&b, "tokenizer.huggingface.json", BERT);
    fail_everywhere("BERT", &b);
    buf_fini(&b);
    for (size_t i = 0; i < N_FOLDERS; i++) {
        put_folder(&b, folders[i]);
        fail_everywhere(folders[i], &b);
        buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_byte_level_sees_its_alphabet_only),
        cmocka_unit_test(test_a_noncharacter_in_the_vocabulary),
        cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_steps_alone),
        cmocka_unit_test(test_unknown_characters_are_fused),
        cmocka_unit_test(test_ranges_of_gguf_kinds),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_several_ids_end_a_generation),
        cmocka_unit_test(test_nul_in_the_vocabulary),
        cmocka_unit_test(test_what_is_wrong_is_named),
        cmocka_unit_test(test_deep_sequences_are_refused),
        cmocka_unit_test(test_growth_in_normalizers_is_bounded),
        cmocka_unit_test(test_slow_expressions_are_stopped),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
