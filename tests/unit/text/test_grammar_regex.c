/* test_grammar_regex.c - regular expressions as constraints against PCRE2: random expressions, all
 * short texts, as they are and as strings of JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "support/grammar_walk.h"
#include "wire/json_out.h"

static uint32_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % n;
}

/* ---- expressions ---- */

static void put_either(struct buf *b, uint32_t depth);

static void put_atom(struct buf *b, uint32_t depth)
{
    static const char *const atoms[] = {
        "a",   "b",       ".",    "\\d",    "\\D",     "\\w",         "\\W",    "\\s",
        "\\S", "[ab]",    "[^a]", "[a-b1]", "[^\\d]",  "[\\w-]",      "[^a-b]", "\\.",
        "\\n", "[\\n\"]", "\"",   "\\\\",   "[\\\\a]", "[^\\n\"\\\\]"};
    if (depth > 0 && draw(3) == 0) {
        buf_puts(b, draw(2) ? "(" : "(?:");
        put_either(b, depth - 1);
        buf_putc(b, ')');
    } else {
        buf_puts(b, atoms[draw(sizeof(atoms) / sizeof(atoms[0]))]);
    }
}

static void put_either(struct buf *b, uint32_t depth)
{
    static const char *const counts[] = {"",  "",    "",      "?",     "*",
                                         "+", "{2}", "{1,2}", "{0,1}", "{1,}"};
    const uint32_t n_branches = 1 + draw(3) / 2;
    for (uint32_t i = 0; i < n_branches; i++) {
        if (i > 0)
            buf_putc(b, '|');
        for (uint32_t k = 0, n = 1 + draw(3); k < n; k++) {
            put_atom(b, depth);
            buf_puts(b, counts[draw(sizeof(counts) / sizeof(counts[0]))]);
        }
    }
}

/* ---- texts ---- */

static const char letters[] = "ab1-\"\\\n. ";

/* The text of a number: its digits are letters.  False: it is longer than three. */
static bool text_of(uint32_t i, char out[4])
{
    const uint32_t n = sizeof(letters) - 1;
    size_t k = 0;
    for (; i > 0 && k < 3; i = (i - 1) / n)
        out[k++] = letters[(i - 1) % n];
    out[k] = '\0';
    return i == 0;
}

static bool matches(const pcre2_code *code, pcre2_match_data *m, const char *text)
{
    return pcre2_match(code, (PCRE2_SPTR)text, strlen(text), 0, 0, m, NULL) >= 0;
}

static char verdict(struct grammar_walk *w, const char *text)
{
    uint32_t place;
    assert_int_equal(grammar_mask_start(w->mask, &place), 0);
    assert_int_equal(grammar_mask_step(w->mask, &place, text, strlen(text)), 0);
    if (place == GRAMMAR_MASK_DEAD)
        return 'n';
    return grammar_mask_complete(w->mask, place) ? 'y' : 'p';
}

/* A constraint and PCRE2 agree on every text; a text that matches has no prefix that is refused. */
static void compare(const char *regex, bool json)
{
    struct buf whole, grammar;
    struct err e = {0};
    struct grammar_walk w;
    int error;
    PCRE2_SIZE at;
    buf_init(&whole, 4096);
    buf_init(&grammar, 4096);
    buf_printf(&whole, "^(?:%s)\\z", regex);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)buf_str(&whole), whole.len, 0, &error, &at, NULL);
    assert_non_null(code);
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(code, NULL);
    if (json) {
        struct json_out j = json_out_make(&grammar);
        buf_clear(&whole);
        buf_printf(&whole, "^(?:%s)$", regex);
        json_out_object(&j);
        json_out_member_str(&j, "type", "string");
        json_out_member_str(&j, "pattern", buf_str(&whole));
        json_out_object_end(&j);
    } else {
        buf_puts(&grammar, regex);
    }
    if (grammar_walk_open(&w, json ? SHOAL_CONSTRAINT_SCHEMA : SHOAL_CONSTRAINT_REGEX,
                          buf_str(&grammar), grammar.len, &e) < 0)
        fail_msg("%s: %s", regex, e.msg);
    char text[4];
    for (uint32_t i = 0; text_of(i, text); i++) {
        struct buf said;
        const bool want = matches(code, m, text);
        buf_init(&said, 256);
        if (json) {
            struct json_out j = json_out_make(&said);
            json_out_str(&j, text);
        } else {
            buf_puts(&said, text);
        }
        const char got = verdict(&w, buf_str(&said));
        if ((got == 'y') != want)
            fail_msg("%s: %s is %c, expected %s", regex, buf_str(&said), got, want ? "y" : "no y");
        for (size_t n = 0; want && n < said.len; n++) {
            char prefix[64];
            snprintf(prefix, sizeof(prefix), "%.*s", (int)n, buf_str(&said));
            if (verdict(&w, prefix) == 'n')
                fail_msg("%s: %s matches, but its prefix %s is refused", regex, buf_str(&said),
                         prefix);
        }
        buf_fini(&said);
    }
    grammar_walk_close(&w);
    pcre2_match_data_free(m);
    pcre2_code_free(code);
    buf_fini(&whole);
    buf_fini(&grammar);
}

static void test_texts(void **state)
{
    (void)state;
    seed = 1;
    for (int i = 0; i < 120; i++) {
        struct buf b;
        buf_init(&b, 4096);
        put_either(&b, 2);
        compare(buf_str(&b), false);
        buf_fini(&b);
    }
}

static void test_strings_of_json(void **state)
{
    (void)state;
    seed = 2;
    for (int i = 0; i < 60; i++) {
        struct buf b;
        buf_init(&b, 4096);
        put_either(&b, 1);
        compare(buf_str(&b), true);
        buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_strings_of_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
