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
    struct gguf *g = NULL;
    struct buf b;
    gb_begin(&b);
    gb_kv_str(&b, "tokenizer.huggingface.json", json);
    if (config)
        gb_kv_str(&b, "tokenizer.huggingface.config", config);
    assert_int_equal(gguf_parse(&g, b.data, b.len, e), 0);
    int rc = tokenizer_create(t, g, e);
    gguf_close(g);
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
    tok_encoding_init(&x);
    assert_int_equal(
        tokenizer_encode_pair(t, &x, a, strlen(a), b, b ? strlen(b) : 0, max, flags, &e), 0);
    buf_clear(out);
    for (size_t i = 0; i < x.n; i++) {
        struct tok_piece w = tokenizer_piece(t, x.ids[i], TOKENIZER_RENDER_SPECIAL);
        if (i > 0)
            buf_putc(out, '|');
        if (x.inputs[i] == TOK_INPUT_NONE)
            buf_printf(out, "<%d>", x.ids[i]);
        else
            buf_printf(out, "%.*s@%u-%u", (int)w.n, w.p, x.start[i], x.end[i]);
        if (x.types[i])
            buf_printf(out, "'%u", x.types[i]);
    }
    tok_encoding_fini(&x);
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

/* The same ranges from the tokenizers of GGUF files. */
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
    tb_add(&b, "[CLS]", 0, TOKENIZER_TYPE_CONTROL);
    tb_add(&b, "[SEP]", 0, TOKENIZER_TYPE_CONTROL);
    tb_add(&b,
           "\xe2\x96\x81"
           "a",
           0, TOKENIZER_TYPE_NORMAL);
    tb_add(&b, "e", 0, TOKENIZER_TYPE_NORMAL);
    tb_add(&b,
           "\xe2\x96\x81"
           "b",
           0, TOKENIZER_TYPE_NORMAL);
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

static void test_failing_allocations(void **state)
{
    (void)state;
    struct tokenizer *t = NULL;
    struct err e;
    for (uint64_t n = 1;; n++) {
        struct gguf *g = NULL;
        struct buf b;
        gb_begin(&b);
        gb_kv_str(&b, "tokenizer.huggingface.json", BERT);
        assert_int_equal(gguf_parse(&g, b.data, b.len, &e), 0);
        mem_fail_at(n);
        int rc = tokenizer_create(&t, g, &e);
        mem_fail_at(0);
        gguf_close(g);
        buf_fini(&b);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
        assert_null(t);
    }
    for (uint64_t n = 1;; n++) {
        struct tok_encoding x;
        tok_encoding_init(&x);
        mem_fail_at(n);
        int rc = tokenizer_encode_pair(t, &x, "Playing caf\xc3\xa9\xff", 13, "a", 1, 0, 1, &e);
        mem_fail_at(0);
        tok_encoding_fini(&x);
        if (rc == 0)
            break;
        assert_int_equal(rc, SHOAL_ENOMEM);
    }
    tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_ranges_of_gguf_kinds),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
