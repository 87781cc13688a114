/* test_pretok.c - pre-tokenizers: scanners against the regular expressions that they replace, and
 * UTF-8 streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "support/watchdog.h"
#include "text/tokenizer/split/tok_pretok.h"

static uint64_t rng_state;

static uint32_t rnd(uint32_t n)
{
    rng_state += 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash_mix(rng_state) >> 33) % n;
}

/* Words between bars; the text itself has none. */
static int put_word(void *ctx, const char *p, size_t n)
{
    struct buf *b = ctx;
    if (b->len > 0)
        buf_putc(b, '|');
    buf_put(b, p, n);
    return n > 0 ? 0 : SHOAL_EINTERNAL;
}

static const char *split(struct buf *b, const struct tok_pretok *pt, const char *p, size_t n)
{
    struct tok_pretok_scratch s = {0};
    buf_clear(b);
    assert_int_equal(tok_pretok_split(pt, &s, p, n, put_word, b), 0);
    tok_pretok_scratch_fini(&s);
    return buf_str(b);
}

static void test_words_of_known_pre_tokenizers(void **state)
{
    (void)state;
    static const struct {
        const char *pre, *text, *want;
    } cases[] = {
        {"gpt-2", "I'm  you'll WE'LL 12ab\n\n x", "I|'m| | you|'ll| WE|'|LL| 12|ab|\n\n| x"},
        {"smollm", "in 2024, x9", "in| |2|0|2|4|,| x|9"},
        {"llama-bpe", "WE'LL pay $12345.67!\n\n  ok", "WE|'LL| pay| $|123|45|.|67|!\n\n| | ok"},
        {"qwen2", "x=123\t\ty", "x|=|1|2|3|\t|\ty"},
        {"qwen35", "\xe0\xa4\xb9\xe0\xa4\xbf x", "\xe0\xa4\xb9\xe0\xa4\xbf| x"},
        {"qwen2", "\xe0\xa4\xb9\xe0\xa4\xbf x", "\xe0\xa4\xb9|\xe0\xa4\xbf| x"},
        {"gpt-4o", "HelloWorld's ABCdef a/b//\n", "Hello|World's| ABCdef| a|/b|//\n"},
        {"tekken", "HelloWorld's 123", "Hello|World|'s| |1|2|3"},
        {"falcon", "a--b 12345 c", "a|--|b| |123|45| c"},
        {"default", "a$b 12345", "a|$|b| |123|45"},
        {"deepseek-llm", "a  b\n12 \xe4\xb8\x80\xe4\xb8\x81",
         "a| | b|\n|12| |\xe4\xb8\x80\xe4\xb8\x81"},
        {"deepseek-coder", "a 12\r\nb", "a| |1|2|\r|\n|b"},
        {"deepseek-v3", "x1234,y z", "x|123|4|,y| z"},
        {"superbpe", "pay 1234567 now", "pay |1|234|567| now"},
        {"afmoe", "pay 1234567 now", "pay| |1|234|567| now"},
        {"tiny_aya", "1234567 1234x", "1|234|567| |123|4|x"},
        {"gemma4", "a b\n\nc", "a b|\n\n|c"},
        {"bloom", "a b,c", "a| b|,|c"},
        {"exaone-moe", "a b c1", "a b c|1"},
        {"kimi-k2",
         "\xe4\xb8\x80\xe4\xb8\x81"
         "Abc",
         "\xe4\xb8\x80\xe4\xb8\x81|Abc"},
    };
    struct buf b;
    buf_init(&b, 10000);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tok_pretok *pt;
        struct err e = {0};
        assert_int_equal(tok_pretok_create(&pt, cases[i].pre, TOK_PRETOK_FAST, &e), 0);
        const char *got = split(&b, pt, cases[i].text, strlen(cases[i].text));
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: \"%s\": got \"%s\", want \"%s\"", cases[i].pre, cases[i].text, got,
                     cases[i].want);
        tok_pretok_destroy(pt);
    }
    buf_fini(&b);
}

/* Every name with its traits and words; tests/data/tokenizers/pretok.txt holds what is expected,
 * SHOAL_GOLDEN=1 writes that of now. */
static void test_all_names(void **state)
{
    static const char path[] = SHOAL_TEST_DATA "/tokenizers/pretok.txt";
    static const char text[] = "I'm WE'LL 1234567 $12.50 a--b c_d HelloWorld's ABCdef x=1\t\ty"
                               " \xe4\xb8\x80\xe4\xb8\x81 \xe0\xa4\xb9\xe0\xa4\xbf"
                               " \xc3\xa9t\xc3\xa9 a/b//\r\n\n  z 9x";
    struct buf out, words, want;
    struct err e = {0};
    (void)state;
    buf_init(&out, 1 << 18);
    buf_init(&words, 10000);
    for (size_t i = 0; tok_pretok_name(i); i++) {
        struct tok_pretok *pt;
        assert_int_equal(tok_pretok_create(&pt, tok_pretok_name(i), TOK_PRETOK_FAST, &e), 0);
        buf_printf(&out, "%s %x ", tok_pretok_name(i), tok_pretok_traits(pt));
        for (const char *p = split(&words, pt, text, strlen(text)); *p; p++)
            if (*p == '\n' || *p == '\r' || *p == '\t')
                buf_puts(&out, *p == '\n' ? "\\n" : *p == '\r' ? "\\r" : "\\t");
            else
                buf_putc(&out, *p);
        buf_putc(&out, '\n');
        tok_pretok_destroy(pt);
    }
    if (getenv("SHOAL_GOLDEN")) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(out.data, 1, out.len, f), out.len);
        fclose(f);
    }
    buf_init(&want, 1 << 18);
    assert_int_equal(file_read(path, &want, &e), 0);
    size_t line = 0;
    for (size_t i = 0; i < want.len && i < out.len && want.data[i] == out.data[i]; i++)
        line = want.data[i] == '\n' ? i + 1 : line;
    if (strcmp(buf_str(&want), buf_str(&out)) != 0)
        print_error("was %.200s\nis  %.200s\n", buf_str(&want) + line, buf_str(&out) + line);
    assert_true(strcmp(buf_str(&want), buf_str(&out)) == 0);
    buf_fini(&want);
    buf_fini(&words);
    buf_fini(&out);
}

static void test_unknown_name(void **state)
{
    (void)state;
    struct tok_pretok *pt;
    struct err e;
    assert_int_equal(tok_pretok_create(&pt, "klingon", TOK_PRETOK_FAST, &e), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(e.msg, "klingon"));
    assert_null(pt);
}

/* Characters whose category no version of Unicode will change. */
static uint32_t random_char(void)
{
    static const uint32_t some[] = {
        'a',    'Z',    '0',    '9',    '\'',   's',    'S',     'l',     'L',    'r',    'e',
        'd',    't',    'm',    'v',    ' ',    ' ',    ' ',     '\n',    '\r',   '\t',   '/',
        '-',    '.',    ',',    '!',    '$',    '+',    '_',     '<',     '`',    0x85,   0xa0,
        0x180e, 0x200b, 0x2003, 0x2028, 0x3000, 0xe9,   0xc9,    0x1c5,   0x2b0,  0x5d0,  0x301,
        0x93f,  0x939,  0x660,  0xbd,   0x2167, 0xb2,   0x4e00,  0x3007,  0x3005, 0xac00, 0x3042,
        0x30a2, 0x1100, 0x20ac, 0x2026, 0x201c, 0xff01, 0x1f600, 0x20000, 0xe000, 0xfdd0, 0xfffd,
        0x200d, 0xfe0f, 1,      0x7f,   0xad,   0x203f, 0x1d400, 0x10400, 0x3105, 0x1780, 0xe40,
    };
    return some[rnd(sizeof(some) / sizeof(some[0]))];
}

static void random_text(struct buf *b, bool valid)
{
    buf_clear(b);
    for (uint32_t n = rnd(24) + 1; n > 0; n--) {
        char u[4];
        uint32_t cp = random_char();
        unsigned len = utf8_encode(u, cp);
        for (uint32_t k = rnd(4) ? 1 : rnd(30) ? rnd(8) + 1 : rnd(1100); k > 0; k--)
            buf_put(b, u, len);
        if (!valid && rnd(4) == 0)
            buf_putc(b, (char)(128 + rnd(128)));
    }
}

static void test_scanners_equal_their_expressions(void **state)
{
    (void)state;
    struct buf text, fast, slow;
    const char *name;
    buf_init(&text, 1 << 20);
    buf_init(&fast, 1 << 20);
    buf_init(&slow, 1 << 20);
    rng_state = 3;
    for (size_t i = 0; (name = tok_pretok_name(i)); i++) {
        struct tok_pretok *a, *b;
        struct err e = {0};
        assert_int_equal(tok_pretok_create(&a, name, TOK_PRETOK_FAST, &e), 0);
        if (tok_pretok_create(&b, name, TOK_PRETOK_REGEX_ONLY, &e) < 0)
            fail_msg("%s", e.msg);
        for (int k = 0; k < 400; k++) {
            random_text(&text, k % 4 != 0);
            const char *x = split(&fast, a, buf_str(&text), text.len);
            const char *y = split(&slow, b, buf_str(&text), text.len);
            if (fast.len != slow.len || memcmp(x, y, fast.len) != 0)
                fail_msg("%s: \"%s\": scanner \"%s\", expression \"%s\"", name, buf_str(&text), x,
                         y);
            size_t n = 0; /* nothing lost, nothing invented */
            for (size_t j = 0; j < fast.len; j++)
                if (x[j] != '|') {
                    assert_true(n < text.len && x[j] == buf_str(&text)[n]);
                    n++;
                }
            assert_int_equal(n, text.len);
        }
        tok_pretok_destroy(a);
        tok_pretok_destroy(b);
    }
    buf_fini(&text);
    buf_fini(&fast);
    buf_fini(&slow);
}

static int count_word(void *ctx, const char *p, size_t n)
{
    (void)p;
    *(size_t *)ctx += n;
    return 0;
}

#ifdef __SANITIZE_ADDRESS__
enum { LONG_TEXT = 60000 }; /* several times slower */
#else
enum { LONG_TEXT = 300000 };
#endif

/* A long text takes milliseconds, whatever it repeats; quadratic work would take minutes. */
static void test_no_text_is_slow(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "a", " ", "1", "\n", "!", "\xcc\x81", "A", "\xe3\x80\x80", " a", "a1", "\xff", "'",
    };
    static const char *const tails[] = {"", "1", "x", "A", "!", "\n"};
    static const char *const names[] = {
        "default",      "gpt-2",          "smollm",      "falcon",   "llama-bpe",  "qwen2",
        "qwen35",       "gpt-4o",         "tekken",      "tiny_aya", "kimi-k2",    "youtu",
        "deepseek-llm", "deepseek-coder", "deepseek-v3", "spark2_5", "afmoe",      "bloom",
        "viking",       "chameleon",      "jais-2",      "superbpe", "seed-coder", "ufakzeka",
        "laguna",       "exaone-moe",     "minicpm5",    "gemma4",
    };
    enum { N_PARTS = sizeof(parts) / sizeof(parts[0]), N_TAILS = sizeof(tails) / sizeof(tails[0]) };
    struct buf b;
    buf_init(&b, 1 << 22);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tok_pretok *pt;
        struct err e;
        assert_int_equal(tok_pretok_create(&pt, names[i], TOK_PRETOK_FAST, &e), 0);
        for (size_t p = 0; p < N_PARTS; p++) {
            const char *tail = tails[(i + p) % N_TAILS];
            struct tok_pretok_scratch s = {0};
            char what[100];
            size_t total = 0;
            buf_clear(&b);
            while (b.len < LONG_TEXT)
                buf_puts(&b, parts[p]);
            buf_puts(&b, tail);
            snprintf(what, sizeof(what), "%s, \"%s\" and \"%s\"", names[i], parts[p], tail);
            watchdog_cpu(5, what);
            assert_int_equal(tok_pretok_split(pt, &s, buf_str(&b), b.len, count_word, &total), 0);
            watchdog_cpu(0, "");
            assert_int_equal(total, b.len);
            tok_pretok_scratch_fini(&s);
        }
        tok_pretok_destroy(pt);
    }
    buf_fini(&b);
}

/* ---- UTF-8 ---- */

static void test_utf8_is_strict(void **state)
{
    (void)state;
    static const struct {
        const char *why, *p;
        size_t n, valid;
    } cases[] = {
        {"empty", "", 0, 0},
        {"ascii and nul", "a\0b", 3, 3},
        {"all lengths", "$\xc2\xa2\xe2\x82\xac\xf0\x9f\x98\x80", 10, 10},
        {"first and last of each length",
         "\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80", 14, 14},
        {"the very last", "\xf4\x8f\xbf\xbf", 4, 4},
        {"beyond it", "a\xf4\x90\x80\x80", 5, 1},
        {"far beyond", "a\xf5\x80\x80\x80", 5, 1},
        {"overlong slash", "ab\xc0\xaf", 4, 2},
        {"overlong in three", "\xe0\x9f\xbf", 3, 0},
        {"overlong in four", "\xf0\x8f\xbf\xbf", 4, 0},
        {"surrogate", "abc\xed\xa0\x80", 6, 3},
        {"before surrogates", "\xed\x9f\xbf", 3, 3},
        {"stray continuation", "\x80", 1, 0},
        {"cut", "abcdefgh\xe2\x82", 10, 8},
        {"bad second byte", "\xe2(\xac", 3, 0},
        {"bad third byte", "\xe2\x82(", 3, 0},
        {"after a long run", "12345678901234567\xff", 18, 17},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (utf8_valid_prefix(cases[i].p, cases[i].n) != cases[i].valid)
            fail_msg("%s", cases[i].why);
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        char u[4];
        uint32_t back = 0;
        if (cp >= 0xd800 && cp < 0xe000)
            continue;
        unsigned n = utf8_encode(u, cp);
        assert_int_equal(utf8_decode((uint8_t *)u, (uint8_t *)u + n, &back), n);
        assert_int_equal(back, cp);
    }
}

static void test_utf8_stream_gives_whole_characters(void **state)
{
    (void)state;
    struct buf text, out;
    buf_init(&text, 1 << 20);
    buf_init(&out, 1 << 20);
    rng_state = 11;
    for (int i = 0; i < 5000; i++) {
        struct utf8_stream s = {0};
        bool valid = i % 2;
        random_text(&text, valid);
        buf_clear(&out);
        for (size_t at = 0; at < text.len;) {
            size_t n = rnd(5);
            n = n < text.len - at ? n : text.len - at;
            utf8_stream_push(&s, &out, buf_str(&text) + at, n);
            at += n;
            assert_true(at - out.len <= 3); /* never holds more than a partial character */
            if (valid)
                assert_int_equal(utf8_valid_prefix(buf_str(&out), out.len), out.len);
        }
        utf8_stream_flush(&s, &out);
        assert_int_equal(out.len, text.len);
        assert_memory_equal(buf_str(&out), buf_str(&text), text.len);
    }
    struct utf8_stream s = {0};
    buf_clear(&out);
    utf8_stream_push(&s, &out, "\xff\xc0\x80", 3); /* nothing that could be completed */
    assert_int_equal(out.len, 3);
    utf8_stream_push(&s, &out, "\xe2\x82", 2);
    assert_int_equal(out.len, 3);
    utf8_stream_push(&s, &out, "x", 1); /* can no longer be completed */
    assert_int_equal(out.len, 6);
    buf_fini(&text);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_of_known_pre_tokenizers),
        cmocka_unit_test(test_all_names),
        cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_scanners_equal_their_expressions),
        cmocka_unit_test(test_no_text_is_slow),
        cmocka_unit_test(test_utf8_is_strict),
        cmocka_unit_test(test_utf8_stream_gives_whole_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
