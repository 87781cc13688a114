/* test_tokenizer.c - the tokenizers on small vocabularies: merging, special tokens, round trips,
 * hostile metadata, failing allocations, threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "format/convert/llama2c_vocab.h"
#include "support/tok_build.h"
#include "support/watchdog.h"

static uint64_t rng_state;

static uint32_t rnd(uint32_t n)
{
    rng_state += 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash_mix(rng_state) >> 33) % n;
}

/* The pieces of a text, one after the other between bars: "he|ll|o". */
static const char *pieces_of(struct buf *b, const struct tokenizer *t, const char *text, size_t n,
                             unsigned flags)
{
    struct tok_ids ids;
    struct err e;
    tok_ids_init(&ids, 1000);
    assert_int_equal(tokenizer_encode(t, &ids, text, n, flags, &e), 0);
    buf_clear(b);
    for (size_t i = 0; i < ids.n; i++) {
        struct str w = tokenizer_piece(t, ids.ids[i], TOKENIZER_RENDER_SPECIAL);
        if (i > 0)
            buf_putc(b, '|');
        if (tokenizer_token_type(t, ids.ids[i]) == TOKEN_TYPE_BYTE)
            buf_printf(b, "x%02x", (unsigned)(uint8_t)*w.p);
        else
            buf_put(b, w.p, w.n);
    }
    tok_ids_fini(&ids);
    return buf_str(b);
}

struct example {
    const char *why, *text;
    unsigned flags;
    const char *want;
};

static void check_examples(const struct tokenizer *t, const struct example *c, size_t n)
{
    struct buf b;
    buf_init(&b, 10000);
    for (size_t i = 0; i < n; i++) {
        const char *got = pieces_of(&b, t, c[i].text, strlen(c[i].text), c[i].flags);
        if (strcmp(got, c[i].want) != 0)
            fail_msg("%s: \"%s\": got \"%s\", want \"%s\"", c[i].why, c[i].text, got, c[i].want);
    }
    buf_fini(&b);
}

static void test_spm_merges_by_score(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"nothing", "", 0, ""},
        {"begin of text alone", "", TOKENIZER_ADD_SPECIAL, "<s>"},
        {"a space goes in front", "hello", 0, " hello"},
        {"only of the first word", "hello hello", 0, " hello| hello"},
        {"the best score first: ll, then he", "hell", 0, " he|ll"},
        {"spaces are kept: of equal pairs the left one", "  hello", 0, "  | hello"},
        {"characters that are no token are bytes", "h\xc3\xa4", 0, " |h|xc3|xa4"},
        {"characters that are a token", "h\xc3\xa9", 0, " |h|\xc3\xa9"},
        {"newline is a byte", "h\n", 0, " |h|x0a"},
        {"of equals the left one", "aaa", 0, " |aa|a"},
        {"merges of merges", "aaaaaa", 0, " |aaaa|aa"},
        {"no control token out of plain text", "<s>", 0, " |<s|>"},
        {"nor a byte token", "<0x41>", 0, " |<|x30|x78|x34|x31|>"},
        {"but when asked to", "he<s>he", TOKENIZER_PARSE_SPECIAL, " he|<s>| he"},
        {"U+2581 is read as a space", "\xe2\x96\x81hello", 0, " | hello"},
    };
    struct tok_build b;
    tb_spm(&b);
    struct tokenizer *t = tb_tokenizer(&b);
    check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    const struct tokenizer_info *in = tokenizer_info(t);
    assert_string_equal(in->model, "llama");
    assert_int_equal(in->kind, TOKENIZER_KIND_SPM);
    assert_int_equal(in->bos, 1);
    assert_int_equal(in->nl, 3 + '\n');
    assert_true(in->add_bos && in->add_space_prefix && !in->add_eos);
    assert_true(tokenizer_is_eog(t, 2) && !tokenizer_is_eog(t, 1) && !tokenizer_is_eog(t, -1));
    assert_null(in->chat_template);
    tokenizer_destroy(t);
}

/* A text with plain ranges is encoded as a whole: only the control tokens that overlap them are
 * not parsed. */
static void test_plain_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *why, *text;
        struct tokenizer_range plain[2];
        size_t n_plain;
        const char *like;      /* the same ids as this text with its control tokens */
        const char *text_like; /* or as this one without */
    } cases[] = {
        {"no range", "he<s>he", {{0}}, 0, "he<s>he", NULL},
        {"a range around nothing special", "hello hello", {{2, 5}}, 1, "hello hello", NULL},
        {"the end of a message", "he<hello", {{2, 3}}, 1, "he<hello", NULL},
        {"a spelled token", "he<s>he", {{2, 5}}, 1, NULL, "he<s>he"},
        {"begun in the range", "he<s>he", {{2, 4}}, 1, NULL, "he<s>he"},
        {"ended in the range", "he<s>he", {{4, 5}}, 1, NULL, "he<s>he"},
        {"ranges beside a token", "he<s>he", {{0, 2}, {5, 7}}, 2, "he<s>he", NULL},
    };
    struct tok_build b;
    struct tok_ids got, want;
    struct err e;
    tb_spm(&b);
    struct tokenizer *t = tb_tokenizer(&b);
    tok_ids_init(&got, 1000);
    tok_ids_init(&want, 1000);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *like = cases[i].like ? cases[i].like : cases[i].text_like;
        unsigned flags = cases[i].like ? TOKENIZER_PARSE_SPECIAL : 0;
        got.n = want.n = 0;
        assert_int_equal(tokenizer_encode(t, &want, like, strlen(like), flags, &e), 0);
        assert_int_equal(tokenizer_encode_mixed(t, &got, cases[i].text, strlen(cases[i].text),
                                                cases[i].plain, cases[i].n_plain, &e),
                         0);
        if (got.n != want.n || memcmp(got.ids, want.ids, want.n * sizeof(*want.ids)) != 0)
            fail_msg("%s: %zu tokens, want %zu", cases[i].why, got.n, want.n);
    }
    tok_ids_fini(&got);
    tok_ids_fini(&want);
    tokenizer_destroy(t);
}

static void test_spm_without_prefix_and_with_words_over_spaces(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"gemma: no space in front", "hello", 0, "hello"},
        {"a token that spans a space", "o\xc3\xa9 hello", 0, "o|\xc3\xa9 he|llo"},
    };
    struct tok_build b;
    tb_spm(&b);
    b.space_prefix = 0;
    b.add_bos = 0;
    tb_add(&b, "\xc3\xa9\xe2\x96\x81", 5, TOKEN_TYPE_NORMAL);
    tb_add(&b, "\xc3\xa9\xe2\x96\x81he", 4, TOKEN_TYPE_NORMAL);
    struct tokenizer *t = tb_tokenizer(&b);
    check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    assert_false(tokenizer_info(t)->add_bos);
    tokenizer_destroy(t);
}

static void test_spm_without_byte_tokens_says_unknown(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"one for each character", "h\xc3\xa4h", 0, " |h|<unk>|h"},
        {"and for each bad byte", "h\xff", 0, " |h|<unk>"},
    };
    struct tok_build b;
    tb_init(&b, "llama", NULL);
    tb_add(&b, "<unk>", 0, TOKEN_TYPE_UNKNOWN);
    tb_add(&b, "<s>", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "</s>", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "\xe2\x96\x81", 0, TOKEN_TYPE_NORMAL);
    tb_add(&b, "h", 0, TOKEN_TYPE_NORMAL);
    struct tokenizer *t = tb_tokenizer(&b);
    check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    tokenizer_destroy(t);
}

static void test_bpe_merges_by_rank(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"nothing", "", TOKENIZER_ADD_SPECIAL, ""},
        {"as far as merges go", "hello", 0, "hell|o"},
        {"the space belongs to the word", "hello world", 0, "hell|o| wor|ld"},
        {"spaces before a word keep one for it", "a   world", 0, "a|  | wor|ld"},
        {"of equals the left one", "aaaaaaa", 0, "aaaa|aa|a"},
        {"no control token out of plain text", "<|endoftext|>", 0, "<|||e|n|d|o|f|t|e|x|t|||>"},
        {"but when asked to", "a<|endoftext|>a", TOKENIZER_PARSE_SPECIAL, "a|<|endoftext|>|a"},
    };
    static const struct example ignoring[] = {
        {"a word that is a token is that token", "hello", 0, "hello"},
        {"begin of text is on for this one", "hello", TOKENIZER_ADD_SPECIAL, "<|endoftext|>|hello"},
        {"others merge", "hell world", 0, "hell| wor|ld"},
    };
    struct tok_build b;
    tb_bpe(&b, "gpt-2");
    b.chat_template = "{{ messages }}";
    struct tokenizer *t = tb_tokenizer(&b);
    for (int again = 0; again < 2; again++) /* the second time from the cache of the first */
        check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    assert_string_equal(tokenizer_info(t)->chat_template, "{{ messages }}");
    assert_string_equal(tokenizer_info(t)->pre, "gpt-2");
    assert_int_equal(tokenizer_info(t)->eot, tokenizer_info(t)->eos);
    assert_int_equal(tokenizer_info(t)->nl, tokenizer_find(t, "\n", 1));
    assert_int_equal(tokenizer_find(t, "<|endoftext|>", 13), tokenizer_info(t)->eos);
    assert_int_equal(tokenizer_find(t, " wor", 4), 256 + 6);
    assert_int_equal(tokenizer_find(t, "nothing", 7), TOKENIZER_NONE);
    tokenizer_destroy(t);
    tb_bpe(&b, "llama-bpe");
    t = tb_tokenizer(&b);
    check_examples(t, ignoring, sizeof(ignoring) / sizeof(ignoring[0]));
    tokenizer_destroy(t);
}

static void test_bpe_with_odd_merges(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"a merge that is no token leads to one", "xyz", 0, "xyz"},
        {"and alone falls apart into bytes", "xy", 0, "x|y"},
        {"a merge into a control token does not count", "<s>", 0, "<|s|>"},
        {"and leaves the merges before it", "vwx", 0, "v|wx"}, /* one word for the splitter */
        {"nor does one that goes on from there", "vwxy", 0, "v|wx|y"},
    };
    struct tok_build b;
    tb_bpe(&b, "gpt-2");
    tb_add(&b, "xyz", 0, TOKEN_TYPE_NORMAL);
    tb_add(&b, "<s>", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "wx", 0, TOKEN_TYPE_NORMAL);
    tb_add(&b, "vwx", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "vwxy", 0, TOKEN_TYPE_NORMAL);
    tb_add_merge(&b, "w x");
    tb_add_merge(&b, "v wx");
    tb_add_merge(&b, "vwx y");
    tb_add_merge(&b, "x y"); /* xy is not a token */
    tb_add_merge(&b, "xy z");
    tb_add_merge(&b, "s >"); /* not a token either */
    tb_add_merge(&b, "< s>");
    tb_add_merge(&b, "nospace");
    tb_add_merge(&b, " ");
    tb_add_merge(&b, "q ");
    tb_add_merge(&b, "nobody knows");
    tb_add_merge(&b, "\xe4\xb8\x80 q");
    struct tokenizer *t = tb_tokenizer(&b);
    check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    tokenizer_destroy(t);
}

static void test_bpe_drops_bytes_that_it_cannot_spell(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"a byte without a token, unknown is the end of text: nothing",
         "a\x01"
         "a",
         0, "a|a"},
    };
    struct tok_build b;
    tb_init(&b, "gpt2", "gpt-2");
    tb_add(&b, "a", 0, TOKEN_TYPE_NORMAL);
    b.unk = b.eos = (int)tb_add(&b, "<|endoftext|>", 0, TOKEN_TYPE_CONTROL);
    struct tokenizer *t = tb_tokenizer(&b);
    check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    tokenizer_destroy(t);
}

/* Spellings of a vocabulary that are not valid UTF-8: kept as they are.  In byte-level BPE no text
 * becomes such a token; SentencePiece finds it by its bytes. */
static void test_spellings_that_are_not_utf8(void **state)
{
    (void)state;
    struct tok_build b;
    tb_init(&b, "gpt2", "gpt-2");
    tb_add_byte_chars(&b);
    int32_t odd = (int32_t)tb_add(&b, "\xff", 0, TOKEN_TYPE_NORMAL);
    struct tokenizer *t = tb_tokenizer(&b);
    struct str piece = tokenizer_piece(t, odd, 0);
    assert_int_equal(piece.n, 1);
    assert_memory_equal(piece.p, "\xff", 1);
    static const struct example bytes[] = {
        {"the token of the byte, not the odd one", "a\xff", 0, "a|\xff"}};
    check_examples(t, bytes, 1);
    struct tok_ids ids;
    struct err e = {0};
    tok_ids_init(&ids, 10);
    assert_int_equal(tokenizer_encode(t, &ids, "\xff", 1, 0, &e), 0);
    assert_int_equal(ids.n, 1);
    assert_int_not_equal(ids.ids[0], odd);
    tok_ids_fini(&ids);
    tokenizer_destroy(t);
    tb_init(&b, "llama", NULL);
    tb_add(&b, "<unk>", 0, TOKEN_TYPE_UNKNOWN);
    tb_add_byte_tokens(&b);
    odd = (int32_t)tb_add(&b, "\xc3\x28", 5, TOKEN_TYPE_NORMAL);
    b.space_prefix = 0;
    b.unk = 0;
    t = tb_tokenizer(&b);
    piece = tokenizer_piece(t, odd, 0);
    assert_int_equal(piece.n, 2);
    assert_memory_equal(piece.p, "\xc3\x28", 2);
    tokenizer_destroy(t);
}

static void test_gemma4_merges_characters(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"no space in front; spaces inside words", "hi hi", 0, "hi| hi"},
        {"runs of newlines are one token if there is one", "hi\n\nhi", 0, "hi|\n\n|hi"},
        {"others merge", "\n\n\n", 0, "\n|\n|\n"},
        {"byte fallback", "\xc3\xa9", 0, "xc3|xa9"},
        {"begin of text always", "hi", TOKENIZER_ADD_SPECIAL, "<bos>|hi"},
        {"user-defined tokens even in plain text", "hi<tool>hi", 0, "hi|<tool>|hi"},
    };
    struct tok_build b;
    tb_init(&b, "gemma4", NULL);
    b.eos = (int)tb_add(&b, "<eos>", 0, TOKEN_TYPE_CONTROL);
    b.bos = (int)tb_add(&b, "<bos>", 0, TOKEN_TYPE_CONTROL);
    b.add_bos = 0; /* files claim this, wrongly */
    tb_add(&b, "<tool>", 0, TOKEN_TYPE_USER_DEFINED);
    tb_add_byte_tokens(&b);
    static const char *const words[] = {"h",  "i",   "hi", "\xe2\x96\x81", "\xe2\x96\x81hi",
                                        "\n", "\n\n"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        tb_add(&b, words[i], 0, TOKEN_TYPE_NORMAL);
    tb_add_merge(&b, "h i");
    tb_add_merge(&b, "\xe2\x96\x81 hi");
    struct tokenizer *t = tb_tokenizer(&b);
    check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    tokenizer_destroy(t);
}

static void test_wordpiece(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"longest match first", "unaffable", 0, " una|ff|able"},
        {"case and accents go",
         "\xc3\x9cN\xc3\x80"
         "ffable",
         0, " una|ff|able"},
        {"punctuation stands alone", "aff!able,", 0, " aff| !| able| ,"},
        {"a part that is missing makes the word unknown", "unaffx able", 0, "[UNK]| able"},
        {"ideographs stand alone", "able\xe4\xb8\x80\xe4\xb8\x80", 0,
         " able| \xe4\xb8\x80| \xe4\xb8\x80"},
        {"control characters and bad bytes go",
         "a\x01"
         "f\xff"
         "f",
         0, " aff"},
        {"any white space",
         "aff\t\n\xe3\x80\x80"
         "aff",
         0, " aff| aff"},
        {"with what the model wants around", "able", TOKENIZER_ADD_SPECIAL, "[CLS]| able|[SEP]"},
    };
    static const char *const words[] = {
        "una",
        "ff",
        "able",
        "\xe2\x96\x81una",
        "\xe2\x96\x81"
        "aff",
        "\xe2\x96\x81"
        "able",
        "\xe2\x96\x81!",
        "\xe2\x96\x81,",
        "\xe2\x96\x81\xe4\xb8\x80",
    };
    struct tok_build b;
    struct buf text;
    tb_init(&b, "bert", NULL);
    while (b.n < 100) {
        char name[16];
        snprintf(name, sizeof(name), "[unused%u]", b.n);
        tb_add(&b, name, 0, TOKEN_TYPE_UNUSED);
    }
    tb_add(&b, "[UNK]", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "[CLS]", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "[SEP]", 0, TOKEN_TYPE_CONTROL);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        tb_add(&b, words[i], 0, TOKEN_TYPE_NORMAL);
    struct tokenizer *t = tb_tokenizer(&b);
    check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    static const int32_t ids[] = {101, 108, 100, 107, 102};
    buf_init(&text, 1000);
    tokenizer_decode(t, &text, ids, 5, 0);
    assert_string_equal(buf_str(&text), "able aff"); /* [UNK] is hidden and takes no space */
    buf_fini(&text);
    tokenizer_destroy(t);
}

static void test_special_tokens_longest_first(void **state)
{
    (void)state;
    static const struct example cases[] = {
        {"the longest at a place", "<a><a><a>x", 0, "<a><a>|<a>|x"},
        {"no part of one", "<a", 0, "<|a"},
        {"control only when asked", "<c><ca>", 0, "<|c|>|<|c|a|>"},
        {"control when asked", "<c><ca><a>", TOKENIZER_PARSE_SPECIAL, "<c>|<ca>|<a>"},
        {"white space after it", "<a>  \n x", TOKENIZER_PARSE_SPECIAL, "<a>|x"},
        {"not after these", "<unk> x", TOKENIZER_PARSE_SPECIAL, "<unk>| |x"},
        {"spaces that are a token", "x\xc2\xa0\xc2\xa0x", 0, "x|\xc2\xa0\xc2\xa0|x"},
    };
    struct tok_build b;
    tb_bpe(&b, "gpt-2");
    b.name = "Phi-3 mini"; /* these models swallow the white space after special tokens */
    tb_add(&b, "<a>", 0, TOKEN_TYPE_USER_DEFINED);
    tb_add(&b, "<a><a>", 0, TOKEN_TYPE_USER_DEFINED);
    tb_add(&b, "\xc2\xa0\xc2\xa0", 0, TOKEN_TYPE_USER_DEFINED);
    tb_add(&b, "<c>", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "<ca>", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "<unk>", 0, TOKEN_TYPE_UNKNOWN);
    struct tokenizer *t = tb_tokenizer(&b);
    check_examples(t, cases, sizeof(cases) / sizeof(cases[0]));
    tokenizer_destroy(t);
}

static void test_end_of_generation_by_spelling(void **state)
{
    (void)state;
    struct tok_build b;
    tb_bpe(&b, "qwen2");
    int32_t im_end = (int32_t)tb_add(&b, "<|im_end|>", 0, TOKEN_TYPE_NORMAL);
    int32_t fim = (int32_t)tb_add(&b, "<|fim_prefix|>", 0, TOKEN_TYPE_CONTROL);
    struct tokenizer *t = tb_tokenizer(&b);
    assert_int_equal(tokenizer_info(t)->eot, im_end); /* before <|endoftext|> */
    assert_int_equal(tokenizer_info(t)->fim_pre, fim);
    assert_int_equal(tokenizer_token_type(t, im_end), TOKEN_TYPE_CONTROL);
    assert_true(tokenizer_is_eog(t, im_end) && tokenizer_is_eog(t, tokenizer_info(t)->eos));
    assert_false(tokenizer_is_eog(t, fim));
    tokenizer_destroy(t);

    tb_bpe(&b, "gpt-4o"); /* where replies have parts, <|end|> only ends one of them */
    int32_t end = (int32_t)tb_add(&b, "<|end|>", 0, TOKEN_TYPE_CONTROL);
    int32_t ret = (int32_t)tb_add(&b, "<|return|>", 0, TOKEN_TYPE_CONTROL);
    tb_add(&b, "<|call|>", 0, TOKEN_TYPE_CONTROL);
    t = tb_tokenizer(&b);
    assert_true(tokenizer_is_eog(t, ret) && !tokenizer_is_eog(t, end));
    tokenizer_destroy(t);
}

static void random_text(struct buf *b, bool valid)
{
    buf_clear(b);
    for (uint32_t n = rnd(60); n > 0; n--) {
        char u[4];
        uint32_t cp;
        switch (rnd(6)) {
        case 0:
            cp = rnd(0x110000);
            break;
        case 1:
            cp = ' ';
            break;
        case 2:
            cp = rnd(0x800);
            break;
        default:
            cp = (uint32_t) "helo wrd\naa<s>|"[rnd(15)];
        }
        if ((cp >= 0xd800 && cp < 0xe000) || cp == 0x2581)
            cp = 'x';
        buf_put(b, u, utf8_encode(u, cp));
        if (!valid && rnd(3) == 0)
            buf_putc(b, (char)(128 + rnd(128)));
    }
}

static void check_round_trips(const struct tokenizer *t, bool valid)
{
    static const unsigned flags[] = {0, TOKENIZER_PARSE_SPECIAL, TOKENIZER_ADD_SPECIAL};
    struct buf text, back, streamed;
    buf_init(&text, 10000);
    buf_init(&back, 10000);
    buf_init(&streamed, 10000);
    for (int i = 0; i < 3000; i++) {
        struct tok_ids ids;
        struct tok_stream s;
        struct err e;
        unsigned f = flags[i % 3];
        random_text(&text, valid);
        tok_ids_init(&ids, 10000);
        assert_int_equal(tokenizer_encode(t, &ids, buf_str(&text), text.len, f, &e), 0);
        /* added tokens are not part of the text, parsed ones are */
        unsigned render = f == TOKENIZER_PARSE_SPECIAL ? TOKENIZER_RENDER_SPECIAL : 0;
        buf_clear(&back);
        tokenizer_decode(t, &back, ids.ids, ids.n, render);
        assert_int_equal(back.len, text.len);
        assert_memory_equal(buf_str(&back), buf_str(&text), text.len);
        buf_clear(&streamed);
        tokenizer_stream_init(&s, t, TOKENIZER_NONE, render);
        for (size_t k = 0; k < ids.n; k++) {
            tokenizer_stream_push(&s, &streamed, ids.ids[k]);
            if (valid)
                assert_int_equal(utf8_valid_prefix(buf_str(&streamed), streamed.len), streamed.len);
        }
        tokenizer_stream_flush(&s, &streamed);
        assert_int_equal(streamed.len, text.len);
        assert_memory_equal(buf_str(&streamed), buf_str(&text), text.len);
        tok_ids_fini(&ids);
    }
    buf_fini(&text);
    buf_fini(&back);
    buf_fini(&streamed);
}

static void test_round_trips(void **state)
{
    (void)state;
    static const char *const pre[] = {"gpt-2",        "llama-bpe", "qwen2",   "default",
                                      "deepseek-llm", "gpt-4o",    "superbpe"};
    struct tok_build b;
    rng_state = 1;
    for (int prefix = 0; prefix < 2; prefix++) {
        tb_spm(&b);
        b.space_prefix = prefix;
        struct tokenizer *t = tb_tokenizer(&b);
        check_round_trips(t, true);
        check_round_trips(t, false);
        tokenizer_destroy(t);
    }
    for (size_t i = 0; i < sizeof(pre) / sizeof(pre[0]); i++) {
        tb_bpe(&b, pre[i]);
        struct tokenizer *t = tb_tokenizer(&b);
        check_round_trips(t, true);
        check_round_trips(t, false);
        tokenizer_destroy(t);
    }
}

static void test_stream_takes_up_after_a_prompt(void **state)
{
    (void)state;
    struct tok_build b;
    struct tok_stream s;
    struct buf out;
    tb_spm(&b);
    struct tokenizer *t = tb_tokenizer(&b);
    int32_t hello = tokenizer_find(t, " hello", 6);
    buf_init(&out, 100);
    tokenizer_stream_init(&s, t, hello, 0); /* in the middle of a text */
    tokenizer_stream_push(&s, &out, hello);
    assert_string_equal(buf_str(&out), " hello");
    buf_clear(&out);
    tokenizer_stream_init(&s, t, 1, 0); /* after <s>: where encode adds a space */
    tokenizer_stream_push(&s, &out, hello);
    tokenizer_stream_push(&s, &out, 3 + 0xc3);
    assert_string_equal(buf_str(&out), "hello"); /* half a character is held back */
    tokenizer_stream_push(&s, &out, 3 + 0xa9);
    tokenizer_stream_push(&s, &out, 2); /* hidden */
    tokenizer_stream_push(&s, &out, 1 << 20);
    tokenizer_stream_push(&s, &out, -5);
    tokenizer_stream_flush(&s, &out);
    assert_string_equal(buf_str(&out), "hello\xc3\xa9");
    buf_fini(&out);
    tokenizer_destroy(t);
}

static void test_limits_leave_the_output_as_it_was(void **state)
{
    (void)state;
    struct tok_build b;
    struct tok_ids ids;
    struct err e;
    tb_spm(&b);
    struct tokenizer *t = tb_tokenizer(&b);
    tok_ids_init(&ids, 4);
    assert_int_equal(tokenizer_encode(t, &ids, "hello", 5, 0, &e), 0);
    assert_int_equal(ids.n, 1);
    assert_int_equal(tokenizer_encode(t, &ids, "w w w w", 7, 0, &e), SHOAL_ELIMIT);
    assert_int_equal(ids.n, 1);
    assert_non_null(strstr(e.msg, "more tokens"));
    tok_ids_fini(&ids);
    tokenizer_destroy(t);
}

/* ---- hostile metadata ---- */

/* Creates a tokenizer from what the callback writes; expects the code and a word of the message. */
static void expect_failure(void (*write)(struct buf *b), int code, const char *word)
{
    struct buf b;
    struct model_file *g = NULL;
    struct tokenizer *t = NULL;
    struct err e = {0};
    gb_begin(&b);
    write(&b);
    assert_int_equal(gguf_parse(&g, b.data, b.len, &e), 0);
    assert_int_equal(tokenizer_create(&t, g, &e), code);
    assert_null(t);
    if (!strstr(e.msg, word))
        fail_msg("\"%s\" does not say \"%s\"", e.msg, word);
    model_file_close(g);
    buf_fini(&b);
}

static void put_tokens(struct buf *b)
{
    gb_kv_array(b, "tokenizer.ggml.tokens", MODEL_FILE_STRING, 2);
    gb_text(b, "a", 1);
    gb_text(b, "b", 1);
}

static void no_tokenizer(struct buf *b)
{
    gb_kv_u32(b, "tokenizer.ggml.model", 3);
}

static void unknown_model(struct buf *b)
{
    gb_kv_str(b, "tokenizer.ggml.model", "klingon");
    put_tokens(b);
}

static void unknown_pre(struct buf *b)
{
    gb_kv_str(b, "tokenizer.ggml.model", "gpt2");
    gb_kv_str(b, "tokenizer.ggml.pre", "klingon-2");
    put_tokens(b);
}

static void no_tokens(struct buf *b)
{
    gb_kv_str(b, "tokenizer.ggml.model", "llama");
}

static void tokens_of_numbers(struct buf *b)
{
    gb_kv_str(b, "tokenizer.ggml.model", "llama");
    gb_kv_array(b, "tokenizer.ggml.tokens", MODEL_FILE_U32, 1);
    gb_u32(b, 1);
}

static void empty_tokens(struct buf *b)
{
    gb_kv_str(b, "tokenizer.ggml.model", "llama");
    gb_kv_array(b, "tokenizer.ggml.tokens", MODEL_FILE_STRING, 0);
}

static void no_scores(struct buf *b)
{
    gb_kv_str(b, "tokenizer.ggml.model", "llama");
    put_tokens(b);
}

static void short_scores(struct buf *b)
{
    no_scores(b);
    gb_kv_array(b, "tokenizer.ggml.scores", MODEL_FILE_F32, 1);
    gb_u32(b, 0);
}

static void short_types(struct buf *b)
{
    no_scores(b);
    gb_kv_array(b, "tokenizer.ggml.token_type", MODEL_FILE_I32, 1);
    gb_u32(b, 1);
}

static void types_of_text(struct buf *b)
{
    no_scores(b);
    gb_kv_array(b, "tokenizer.ggml.token_type", MODEL_FILE_STRING, 2);
    gb_text(b, "", 0);
    gb_text(b, "", 0);
}

static void no_merges(struct buf *b)
{
    gb_kv_str(b, "tokenizer.ggml.model", "gpt2");
    put_tokens(b);
}

static void test_bad_metadata_is_named(void **state)
{
    (void)state;
    expect_failure(no_tokenizer, SHOAL_EFORMAT, "tokenizer.ggml.model");
    expect_failure(unknown_model, SHOAL_EUNSUPPORTED, "klingon");
    expect_failure(unknown_pre, SHOAL_EUNSUPPORTED, "klingon-2");
    expect_failure(no_tokens, SHOAL_EFORMAT, "tokens");
    expect_failure(tokens_of_numbers, SHOAL_EFORMAT, "tokens");
    expect_failure(empty_tokens, SHOAL_EFORMAT, "0 tokens");
    expect_failure(no_scores, SHOAL_EFORMAT, "scores");
    expect_failure(short_scores, SHOAL_EFORMAT, "scores");
    expect_failure(short_types, SHOAL_EFORMAT, "token_type");
    expect_failure(types_of_text, SHOAL_EFORMAT, "token_type");
    expect_failure(no_merges, SHOAL_EFORMAT, "merges");
}

static void test_ids_out_of_range_are_ignored(void **state)
{
    (void)state;
    struct tok_build b;
    struct buf text;
    tb_spm(&b);
    b.bos = 1 << 30;
    b.eos = 100000;
    struct tokenizer *t = tb_tokenizer(&b);
    assert_int_equal(tokenizer_info(t)->bos, 1); /* the default of the kind */
    assert_int_equal(tokenizer_info(t)->eos, 2);
    tokenizer_destroy(t);
    tb_bpe(&b, "llama-bpe");
    b.bos = 1 << 30;
    b.add_bos = 1;
    t = tb_tokenizer(&b);
    assert_int_equal(tokenizer_info(t)->bos, TOKENIZER_NONE);
    assert_false(tokenizer_info(t)->add_bos); /* nothing to add */
    buf_init(&text, 100);
    assert_string_equal(pieces_of(&text, t, "hello", 5, TOKENIZER_ADD_SPECIAL), "hello");
    buf_fini(&text);
    tokenizer_destroy(t);
}

/* ---- memory, time, threads ---- */

static void test_failing_allocations(void **state)
{
    (void)state;
    static const struct {
        const char *pre;
        const char *text;
    } cases[] = {
        {NULL,
         "hello \xe2\x96\x81 hello\xff aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"default",
         "hello\xff world aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"gpt-2", "hello<|endoftext|>"},
    };
    struct tok_ids ids;
    struct err e;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct tok_build b;
        struct tokenizer *t = NULL;
        uint64_t n = 0;
        int rc;
        if (cases[c].pre) {
            tb_bpe(&b, cases[c].pre);
            tb_add_merge(&b, "x y"); /* makes the builder allocate as well */
        } else {
            tb_spm(&b);
        }
        tb_gguf(&b);
        do {
            mem_fail_at(++n);
            rc = tokenizer_create(&t, b.g, &e);
            mem_fail_at(0);
            if (rc < 0) {
                assert_int_equal(rc, SHOAL_ENOMEM);
                assert_null(t);
            }
        } while (rc < 0 && n < 1000);
        assert_int_equal(rc, 0);
        assert_true(n > 5);
        tok_build_fini(&b);
        n = 0;
        do {
            tok_ids_init(&ids, 1000);
            mem_fail_at(++n);
            rc = tokenizer_encode(t, &ids, cases[c].text, strlen(cases[c].text),
                                  TOKENIZER_PARSE_SPECIAL, &e);
            mem_fail_at(0);
            if (rc < 0) {
                assert_int_equal(rc, SHOAL_ENOMEM);
                assert_int_equal(ids.n, 0);
            }
            tok_ids_fini(&ids);
        } while (rc < 0 && n < 1000);
        assert_int_equal(rc, 0);
        assert_true(n > 1);
        tokenizer_destroy(t);
    }
}

static uint64_t calls_for_words(const struct tokenizer *t, int n_words)
{
    struct tok_ids ids;
    struct buf b;
    struct err e;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < n_words; i++)
        buf_puts(&b, i % 3 ? " hello" : " world 12\n");
    tok_ids_init(&ids, 1 << 20);
    ids.ids = mem_alloc(sizeof(*ids.ids) << 20); /* the buffer has room: only work counts */
    ids.cap = (size_t)1 << 20;
    uint64_t before = mem_calls();
    assert_int_equal(tokenizer_encode(t, &ids, buf_str(&b), b.len, 0, &e), 0);
    uint64_t calls = mem_calls() - before;
    tok_ids_fini(&ids);
    buf_fini(&b);
    return calls;
}

static void test_encoding_allocates_per_call_not_per_token(void **state)
{
    (void)state;
    static const char *const pre[] = {NULL, "gpt-2", "default", "llama-bpe"};
    for (size_t i = 0; i < sizeof(pre) / sizeof(pre[0]); i++) {
        struct tok_build b;
        if (pre[i])
            tb_bpe(&b, pre[i]);
        else
            tb_spm(&b);
        struct tokenizer *t = tb_tokenizer(&b);
        assert_true(calls_for_words(t, 10) <= 4);
        assert_true(calls_for_words(t, 10000) <= 4);
        tokenizer_destroy(t);
    }
}

/* A megabyte without a place to split takes a fraction of a second; quadratic work would take
 * hours. */
static void test_long_words(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    char *text = malloc(N);
    assert_non_null(text);
    for (int kind = 0; kind < 2; kind++) {
        struct tok_build b;
        if (kind)
            tb_bpe(&b, "gpt-2");
        else
            tb_spm(&b);
        struct tokenizer *t = tb_tokenizer(&b);
        for (const char *c = "a \n1<\xff"; *c; c++) {
            struct tok_ids ids;
            struct err e;
            memset(text, *c, N);
            tok_ids_init(&ids, 2 * N);
            char what[60];
            snprintf(what, sizeof(what), "kind %d, byte %02x", kind, (unsigned)(uint8_t)*c);
            watchdog_cpu(60, what);
            assert_int_equal(tokenizer_encode(t, &ids, text, N, 0, &e), 0);
            watchdog_cpu(0, "");
            if (*c == 'a')
                assert_int_equal(ids.n, kind ? N / 4 : N / 4 + 1);
            tok_ids_fini(&ids);
        }
        tokenizer_destroy(t);
    }
    free(text);
}

struct job {
    const struct tokenizer *t;
    const char *text;
    size_t n;
    uint64_t hash;
};

static void *encode_job(void *arg)
{
    struct job *j = arg;
    struct tok_ids ids;
    struct err e;
    j->hash = 0;
    for (int i = 0; i < 20; i++) {
        tok_ids_init(&ids, 1 << 20);
        if (tokenizer_encode(j->t, &ids, j->text, j->n, 0, &e) == 0)
            j->hash = hash_bytes(ids.ids, ids.n * sizeof(*ids.ids), j->hash);
        tok_ids_fini(&ids);
    }
    return NULL;
}

static void test_threads_share_a_tokenizer(void **state)
{
    (void)state;
    enum { N = 4 };
    struct tok_build b;
    struct buf text;
    pthread_t th[N];
    struct job jobs[N + 1];
    tb_bpe(&b, "default");
    struct tokenizer *shared = tb_tokenizer(&b);
    tb_bpe(&b, "default");
    struct tokenizer *alone = tb_tokenizer(&b);
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 200; i++)
        buf_puts(&text, "hello world, hell aaaaa 12345 \xc3\xa9\n");
    for (int i = 0; i <= N; i++)
        jobs[i] = (struct job){i < N ? shared : alone, buf_str(&text), text.len, 0};
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&th[i], NULL, encode_job, &jobs[i]), 0);
    encode_job(&jobs[N]);
    for (int i = 0; i < N; i++) {
        pthread_join(th[i], NULL);
        assert_true(jobs[i].hash == jobs[N].hash && jobs[i].hash != 0);
    }
    buf_fini(&text);
    tokenizer_destroy(shared);
    tokenizer_destroy(alone);
}

/* ---- llama2.c ---- */

static void put_llama2c(struct buf *b, const char *text, float score)
{
    buf_put(b, &score, sizeof(score));
    gb_u32(b, (uint32_t)strlen(text));
    buf_puts(b, text);
}

static void test_llama2c_vocabulary(void **state)
{
    (void)state;
    struct llama2c_vocab v;
    struct buf b;
    struct err e = {0};
    buf_init(&b, 10000);
    gb_u32(&b, 7);
    put_llama2c(&b, "<unk>", 0);
    put_llama2c(&b, "\n<s>\n", 0);
    put_llama2c(&b, "\n</s>\n", 0);
    put_llama2c(&b, "<0x0A>", 0);
    put_llama2c(&b, " a b", -1.5f);
    assert_int_equal(llama2c_vocab_parse(&v, b.data, b.len, 5, &e), 0);
    static const int32_t types[] = {2, 3, 3, 6, 1};
    static const char *const pieces[] = {"<unk>", "<s>", "</s>", "<0x0A>",
                                         "\xe2\x96\x81"
                                         "a\xe2\x96\x81"
                                         "b"};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(v.types[i], types[i]);
        assert_int_equal(v.piece_bytes[i], strlen(pieces[i]));
        assert_memory_equal(v.pieces[i], pieces[i], v.piece_bytes[i]);
    }
    assert_true(v.scores[4] == -1.5f && v.bos == 1 && v.eos == 2 && v.unk == 0);
    llama2c_vocab_fini(&v);
    for (size_t n = 0; n < b.len; n++) { /* truncated anywhere */
        void *copy = malloc(n + 1);
        memcpy(copy, b.data, n);
        assert_int_equal(llama2c_vocab_parse(&v, copy, n, 5, &e), SHOAL_EFORMAT);
        assert_null(v.pieces);
        free(copy);
    }
    assert_int_equal(llama2c_vocab_parse(&v, b.data, b.len, 4, &e), SHOAL_EFORMAT);
    assert_int_equal(llama2c_vocab_parse(&v, b.data, b.len, 0, &e), SHOAL_EFORMAT);
    assert_int_equal(llama2c_vocab_parse(&v, b.data, b.len, UINT32_MAX, &e), SHOAL_EFORMAT);
    for (uint64_t n = 1; n <= 5; n++) {
        mem_fail_at(n);
        assert_int_equal(llama2c_vocab_parse(&v, b.data, b.len, 5, &e), SHOAL_ENOMEM);
        mem_fail_at(0);
    }
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spm_merges_by_score),
        cmocka_unit_test(test_plain_ranges),
        cmocka_unit_test(test_spm_without_prefix_and_with_words_over_spaces),
        cmocka_unit_test(test_spm_without_byte_tokens_says_unknown),
        cmocka_unit_test(test_bpe_merges_by_rank),
        cmocka_unit_test(test_bpe_with_odd_merges),
        cmocka_unit_test(test_bpe_drops_bytes_that_it_cannot_spell),
        cmocka_unit_test(test_spellings_that_are_not_utf8),
        cmocka_unit_test(test_gemma4_merges_characters),
        cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_special_tokens_longest_first),
        cmocka_unit_test(test_end_of_generation_by_spelling),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_stream_takes_up_after_a_prompt),
        cmocka_unit_test(test_limits_leave_the_output_as_it_was),
        cmocka_unit_test(test_bad_metadata_is_named),
        cmocka_unit_test(test_ids_out_of_range_are_ignored),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_encoding_allocates_per_call_not_per_token),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_threads_share_a_tokenizer),
        cmocka_unit_test(test_llama2c_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
