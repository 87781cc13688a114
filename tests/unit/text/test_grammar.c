/* test_grammar.c - constraints: what each notation matches, what is refused and how, and the
 * token sets compared with a slow reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "support/grammar_walk.h"
#include "support/tok_build.h"

#define JSON SHOAL_CONSTRAINT_JSON
#define SCHEMA SHOAL_CONSTRAINT_SCHEMA
#define GBNF SHOAL_CONSTRAINT_GBNF
#define REGEX SHOAL_CONSTRAINT_REGEX
#define CHOICE SHOAL_CONSTRAINT_CHOICE
#define PARTS SHOAL_CONSTRAINT_PARTS

/* 'y': a complete text of the grammar; 'p': a prefix of one; 'n': neither. */
static char verdict(struct grammar_walk *w, const char *text)
{
    uint32_t place;
    assert_int_equal(grammar_mask_start(w->mask, &place), 0);
    assert_int_equal(grammar_mask_step(w->mask, &place, text, strlen(text)), 0);
    if (place == GRAMMAR_MASK_DEAD)
        return 'n';
    return grammar_mask_complete(w->mask, place) ? 'y' : 'p';
}

struct match {
    enum shoal_constraint kind;
    const char *grammar;
    struct {
        char want;
        const char *text;
    } texts[10];
};

static void check_matches(const struct match *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct grammar_walk w;
        struct err e = {0};
        if (grammar_walk_open(&w, list[i].kind, list[i].grammar, strlen(list[i].grammar), &e) < 0)
            fail_msg("%s: %s", list[i].grammar, e.msg);
        for (size_t k = 0; k < 10 && list[i].texts[k].text; k++) {
            char got = verdict(&w, list[i].texts[k].text);
            if (got != list[i].texts[k].want)
                fail_msg("%s: \"%s\" gives %c, expected %c", list[i].grammar, list[i].texts[k].text,
                         got, list[i].texts[k].want);
        }
        grammar_walk_close(&w);
    }
}

struct refusal {
    enum shoal_constraint kind;
    const char *grammar;
    int code;
    const char *says;
};

static void check_refusals(const struct refusal *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct grammar_walk w;
        struct err e = {0};
        int rc = grammar_walk_open(&w, list[i].kind, list[i].grammar, strlen(list[i].grammar), &e);
        if (rc != list[i].code || !strstr(e.msg, list[i].says))
            fail_msg("%s: %d, \"%s\"", list[i].grammar, rc, e.msg);
        grammar_walk_close(&w);
    }
}

static void test_gbnf(void **state)
{
    static const struct match list[] = {
        {GBNF,
         "root ::= \"a\" [b-d]* (\"x\" | \"y\\u00e9\")",
         {{'y', "ax"}, {'y', "abcdy\xc3\xa9"}, {'p', "abc"}, {'n', "aax"}, {'n', "axx"}}},
        {GBNF,
         "# comment\nroot ::= item (\",\" item)* # more\nitem ::=\n  [0-9]+ |\n  \"(\" root "
         "\")\"\n",
         {{'y', "1,2,33"}, {'y', "(1,(2))"}, {'p', "(1"}, {'n', ",1"}, {'n', "()"}}},
        {GBNF, "root ::= [^a-z]{2} .", {{'y', "AB\n"}, {'p', "A"}, {'n', "Aa"}, {'n', "ABxx"}}},
        {GBNF, "root ::= \"x\"{3,}", {{'p', "xx"}, {'y', "xxx"}, {'y', "xxxxxxx"}}},
        {GBNF,
         "root ::= a-1 B_2 zZ09\na-1 ::= \"x\"\nB_2 ::= \"y\"\nzZ09 ::= \"z\"",
         {{'y', "xyz"}, {'p', "xy"}}},
        {GBNF,
         "root ::= \"x\"{2,30} \"y\"",
         {{'n', "xy"},
          {'y', "xxy"},
          {'y', "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy"},
          {'n', "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}},
        {GBNF, "root ::= \"\\\"\" \"\\x41\\n\" \"]\" [\\]\\[]", {{'y', "\"A\n]["}}},
        {GBNF,
         "root ::= (\"a\" | ) \"b\"?\nunused ::= \"c\"",
         {{'y', ""}, {'y', "ab"}, {'y', "b"}}},
    };
    static const struct refusal bad[] = {
        {GBNF, "root ::= root \"a\" | \"b\"", SHOAL_EINVAL, "rule root can begin with itself"},
        {GBNF, "root ::= x root \"a\" | \"b\"\nx ::= \"c\"?", SHOAL_EINVAL, "begin with itself"},
        {GBNF, "root ::= \"a", SHOAL_EINVAL, "line 1, column 10"},
        {GBNF, "root ::= \"a\"\nb ::= [c", SHOAL_EINVAL, "line 2, column 7"},
        {GBNF, "root ::= other", SHOAL_EINVAL, "not defined: other"},
        {GBNF, "start ::= \"a\"", SHOAL_EINVAL, "no rule named root"},
        {GBNF, "root ::= \"a\" root", SHOAL_EINVAL, "no text matches rule root"},
        {GBNF, "root ::= \"a\"{99999999}", SHOAL_EINVAL, "count is too large"},
        {GBNF, "root ::= \"a\"\nroot ::= \"b\"", SHOAL_EINVAL, "defined twice"},
        {GBNF, "", SHOAL_EINVAL, "no rule named root"},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
    check_refusals(bad, sizeof(bad) / sizeof(bad[0]));
}

static void test_regex_and_choice(void **state)
{
    static const struct match list[] = {
        {REGEX, "^(cat|dog)s?$", {{'y', "cat"}, {'y', "dogs"}, {'p', "ca"}, {'n', "catsx"}}},
        {REGEX, "\\d{3}-\\w+", {{'y', "123-ab_9"}, {'n', "12-a"}, {'p', "123-"}}},
        {REGEX, "[^\\s\\d]+?", {{'y', "a\xc3\xa9"}, {'n', "a b"}, {'n', "4"}}},
        {REGEX, "a{2}b{1,}c{0,2}", {{'y', "aab"}, {'y', "aabbcc"}, {'n', "ab"}, {'n', "aabccc"}}},
        {REGEX, "(?:x|(?<n>y)\\.){2}", {{'y', "xy."}, {'p', "y."}, {'n', "y.."}}},
        {REGEX,
         "\\u00e9|\\u{1F600}|\\ud83d\\ude01",
         {{'y', "\xc3\xa9"}, {'y', "\xf0\x9f\x98\x80"}, {'y', "\xf0\x9f\x98\x81"}, {'n', "e"}}},
        {REGEX,
         ".",
         {{'y', "x"}, {'n', "\n"}, {'y', "\xe2\x82\xac"}, {'n', "\xff"}, {'n', "\xed\xa0"}}},
        {REGEX, "a{x}", {{'y', "a{x}"}}},
        {CHOICE,
         "[\"yes\", \"no\", \"not now\"]",
         {{'y', "yes"}, {'y', "no"}, {'p', "not"}, {'n', "maybe"}, {'n', "yesno"}}},
    };
    static const struct refusal bad[] = {
        {REGEX, "a(?=b)", SHOAL_EINVAL, "look-ahead"},
        {REGEX, "(a)\\1", SHOAL_EINVAL, "back references"},
        {REGEX, "\\bword", SHOAL_EINVAL, "word boundaries"},
        {REGEX, "a^b", SHOAL_EINVAL, "anchor"},
        {REGEX, "(a", SHOAL_EINVAL, "no closing )"},
        {REGEX, "a)", SHOAL_EINVAL, "character 2"},
        {REGEX, "*", SHOAL_EINVAL, "nothing to repeat"},
        {REGEX, "[b-a]", SHOAL_EINVAL, "backwards"},
        {CHOICE, "[]", SHOAL_EINVAL, "list of texts"},
        {CHOICE, "[\"a\", 1]", SHOAL_EINVAL, "a choice must be a text"},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
    check_refusals(bad, sizeof(bad) / sizeof(bad[0]));
}

static void test_json(void **state)
{
    static const struct match list[] = {
        {JSON,
         "",
         {{'y', "{}"},
          {'y', "{\"a\": [1, -2.5e3, {\"b\":null}],\n  \"c\": \"x\\n\\u00e9\\ud83d\\ude00\"}"},
          {'p', "{\"a\":"},
          {'n', "[1]"},
          {'n', "{\"a\":01"},
          {'n', "{\"a\":\"\n"},
          {'n', "{\"a\":\"\\ud800\""},
          {'n', "{}}"},
          {'n', "{a"}}},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
}

static void test_schema_values(void **state)
{
    static const struct match list[] = {
        {SCHEMA,
         "{\"type\":\"integer\",\"minimum\":-17,\"maximum\":1205}",
         {{'y', "-17"},
          {'n', "-18"},
          {'y', "0"},
          {'y', "1205"},
          {'n', "1206"},
          {'y', "999"},
          {'n', "00"},
          {'n', "1.5"}}},
        {SCHEMA,
         "{\"type\":\"integer\",\"exclusiveMinimum\":9,\"exclusiveMaximum\":12}",
         {{'n', "9"}, {'y', "10"}, {'y', "11"}, {'n', "12"}}},
        {SCHEMA,
         "{\"type\":\"number\",\"minimum\":0.5,\"maximum\":12.25}",
         {{'y', "0.5"},
          {'n', "0.4"},
          {'y', "12.25"},
          {'n', "12.26"},
          {'y', "3"},
          {'y', "3.99"},
          {'p', "0"},
          {'y', "12.249"},
          {'n', "-"}}},
        {SCHEMA,
         "{\"type\":\"number\",\"exclusiveMinimum\":0}",
         {{'p', "0"}, {'p', "0.0"}, {'y', "0.001"}, {'y', "7"}}},
        {SCHEMA,
         "{\"type\":\"integer\",\"multipleOf\":7}",
         {{'y', "0"}, {'y', "49"}, {'p', "50"}, {'y', "-14"}}},
        {SCHEMA,
         "{\"type\":[\"string\",\"null\"],\"maxLength\":2}",
         {{'y', "null"}, {'y', "\"a\xc3\xa9\""}, {'n', "\"abc"}, {'y', "\"\\n\\n\""}}},
        {SCHEMA,
         "{\"type\":\"string\",\"pattern\":\"^[a-z]+\\\"$\",\"minLength\":3}",
         {{'y', "\"ab\\\"\""}, {'n', "\"a\\\"\""}, {'n', "\"ab\""}}},
        {SCHEMA,
         "{\"type\":\"string\",\"pattern\":\"b\"}",
         {{'y', "\"abc\""}, {'p', "\"ac"}, {'n', "\"ac\""}}},
        {SCHEMA,
         "{\"type\":\"string\",\"format\":\"date\"}",
         {{'y', "\"2023-02-28\""},
          {'n', "\"2023-02-29"},
          {'y', "\"2024-02-29\""},
          {'n', "\"2023-13"},
          {'n', "\"2023-04-31"},
          {'n', "\"0000-08-05"},
          {'y', "\"0001-01-01\""},
          {'n', "\"2023-02-30"}}},
        {SCHEMA,
         "{\"type\":\"string\",\"format\":\"date-time\"}",
         {{'y', "\"2024-02-29T23:59:59Z\""}, {'n', "\"0000-12"}, {'n', "\"2100-02-29"}}},
        {SCHEMA,
         "{\"enum\":[1,\"a\\n\",null,{\"x\":[true]}]}",
         {{'y', "1"}, {'y', "\"a\\n\""}, {'y', "{\"x\":[true]}"}, {'n', "2"}}},
        {SCHEMA, "{\"const\":\"only\"}", {{'y', "\"only\""}, {'n', "\"other"}}},
        {SCHEMA, "true", {{'y', "null"}, {'y', "[[]]"}, {'y', "-1"}}},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
}

/* Of the values of an enum, those that the other keywords allow. */
static void test_schema_enums_obey_other_keywords(void **state)
{
    static const struct match list[] = {
        {SCHEMA,
         "{\"enum\":[1,2,3,4,6,9,\"x\"],\"multipleOf\":3}",
         {{'n', "1"}, {'n', "2"}, {'y', "3"}, {'n', "4"}, {'y', "6"}, {'y', "9"}, {'y', "\"x\""}}},
        {SCHEMA,
         "{\"enum\":[1,5,9,10],\"minimum\":5,\"maximum\":9}",
         {{'n', "1"}, {'y', "5"}, {'y', "9"}, {'n', "10"}}},
        {SCHEMA,
         "{\"enum\":[1,5,7,9],\"exclusiveMinimum\":5,\"exclusiveMaximum\":9}",
         {{'n', "1"}, {'n', "5"}, {'y', "7"}, {'n', "9"}}},
        {SCHEMA,
         "{\"enum\":[\"a\",\"abc\",\"abcdef\",7],\"minLength\":3,\"maxLength\":5}",
         {{'n', "\"a\""}, {'y', "\"abc\""}, {'n', "\"abcd"}, {'y', "7"}}},
        {SCHEMA,
         "{\"enum\":[\"x1\",\"y\"],\"pattern\":\"[0-9]\"}",
         {{'y', "\"x1\""}, {'n', "\"y"}}},
        {SCHEMA,
         "{\"type\":\"integer\",\"enum\":[1,\"a\",null]}",
         {{'y', "1"}, {'n', "\"a"}, {'n', "null"}}},
        {SCHEMA, "{\"enum\":[1,2],\"not\":{\"const\":2}}", {{'y', "1"}, {'n', "2"}}},
        /* a part of 1 leaves the whole numbers */
        {SCHEMA,
         "{\"type\":\"number\",\"multipleOf\":0.5,\"minimum\":-2,\"maximum\":3}",
         {{'n', "-3"}, {'y', "-2"}, {'y', "0"}, {'y', "3"}, {'n', "4"}, {'n', "0.5"}}},
        {SCHEMA,
         "{\"type\":\"number\",\"multipleOf\":0.5}",
         {{'y', "-70"},
          {'y', "0"},
          {'y', "123456"},
          {'y', "50000000000000"},
          {'n', "50000000000001"},
          {'y', "-50000000000000"},
          {'n', "-50000000000001"}}},
        {SCHEMA,
         "{\"type\":\"number\",\"multipleOf\":0.5,\"minimum\":-7}",
         {{'y', "-7"}, {'n', "-8"}, {'y', "50000000000000"}}},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
}

/* For all bounds: a number is accepted exactly if it is between them. */
static void test_schema_numbers_are_between_their_bounds(void **state)
{
    static const double bounds[] = {-12.5, -1, -0.5, 0, 0.5, 9.75, 10, 100};
    static const char *const numbers[] = {
        "-101", "-99.5",        "-12.6",       "-12.5", "-12.499999999",
        "-12",  "-2",           "-1",          "-0.99", "-0.51",
        "-0.5", "-0.49",        "-0.1",        "0",     "0.1",
        "0.49", "0.5",          "0.500000001", "0.51",  "1",
        "9",    "9.7",          "9.75",        "9.8",   "9.99",
        "10",   "10.000000001", "11.25",       "20",    "99",
        "99.9", "99.999999999", "100",         "100.5", "101",
        "1000",
    };
    const size_t n = sizeof(bounds) / sizeof(bounds[0]);
    (void)state;
    for (size_t k = 0; k < n * n * 4 * 2; k++) {
        double lo = bounds[k % n], hi = bounds[k / n % n];
        bool above = k / n / n & 1, below = k / n / n & 2, whole = k / n / n & 4;
        struct grammar_walk w;
        struct err e = {0};
        char schema[200];
        if (lo + (whole ? 2 : 0) >= hi) /* nothing, or hardly anything, is between */
            continue;
        int len = snprintf(schema, sizeof(schema), "{\"type\":\"%s\",\"%s\":%g,\"%s\":%g}",
                           whole ? "integer" : "number", above ? "exclusiveMinimum" : "minimum", lo,
                           below ? "exclusiveMaximum" : "maximum", hi);
        if (grammar_walk_open(&w, SCHEMA, schema, (size_t)len, &e) < 0)
            fail_msg("%s: %s", schema, e.msg);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
            double v = strtod(numbers[i], NULL);
            bool want = (above ? v > lo : v >= lo) && (below ? v < hi : v <= hi) &&
                        !(whole && strchr(numbers[i], '.'));
            if ((verdict(&w, numbers[i]) == 'y') != want)
                fail_msg("%s: %s is %s", schema, numbers[i], want ? "refused" : "accepted");
        }
        grammar_walk_close(&w);
    }
}

static void test_schema_shapes(void **state)
{
    static const struct match list[] = {
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":"
         "\"boolean\"},\"c\":{}},\"required\":[\"b\"]}",
         {{'y', "{\"b\":true}"},
          {'y', "{\"a\":1,\"b\":false,\"c\":[1]}"},
          {'n', "{}"},
          {'n', "{\"b\":true,\"a\":1}"},
          {'n', "{\"a\":1}"},
          {'n', "{\"d\""}}},
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"foo\":{\"type\":\"string\"},\"fob\":{\"type\":"
         "\"integer\"}},\"additionalProperties\":{\"type\":\"boolean\"}}",
         {{'y', "{}"},
          {'y', "{\"fob\":3,\"fox\":true}"},
          {'n', "{\"foo\":t"},
          {'y', "{\"f\":true}"},
          {'n', "{\"fox\":1"},
          {'n', "{\"fob\":3,\"fob\":"}}},
        {SCHEMA,
         "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":3}",
         {{'n', "[1]"}, {'y', "[1, 2]"}, {'y', "[1,2,3]"}, {'n', "[1,2,3,"}, {'n', "[]"}}},
        {SCHEMA,
         "{\"prefixItems\":[{\"type\":\"null\"},{\"const\":1}],\"items\":{\"type\":\"string\"}}",
         {{'y', "[]"}, {'y', "[null,1,\"x\"]"}, {'n', "[1"}}},
        {SCHEMA,
         "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,2,3]}}",
         {{'y', "[1,3]"}, {'n', "[1,1"}, {'y', "[]"}}},
        {SCHEMA,
         "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"next\":"
         "{\"$ref\":\"#/$defs/n\"}}}}}",
         {{'y', "{\"next\":{\"next\":{}}}"}, {'p', "{\"next\":{}"}}},
        {SCHEMA,
         "{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"integer\",\"string\"]"
         "}}},"
         "{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}]}",
         {{'y', "{\"a\":\"x\"}"}, {'n', "{\"a\":1"}, {'n', "{}"}}},
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"null\"},\"r\":{\"type\":\"null\"}}"
         ","
         "\"oneOf\":[{\"required\":[\"r\"]},{\"required\":[\"l\"]}]}",
         {{'y', "{\"r\":null}"}, {'y', "{\"l\":null}"}, {'n', "{\"l\":null,\"r\""}, {'n', "{}"}}},
        /* a value that two branches list is valid under neither */
        {SCHEMA,
         "{\"oneOf\":[{\"enum\":[\"on\",\"off\",7]},{\"enum\":[\"off\",\"auto\"]},{\"const\":7}]}",
         {{'y', "\"on\""}, {'n', "\"off\""}, {'y', "\"auto\""}, {'n', "7"}}},
        /* this many optional properties become required */
        {SCHEMA,
         "{\"type\":\"object\",\"minProperties\":1,\"properties\":{\"a\":{\"type\":\"null\"},\"b\":"
         "{\"type\":"
         "\"null\"}}}",
         {{'y', "{\"a\":null}"},
          {'y', "{\"b\":null}"},
          {'y', "{\"a\":null,\"b\":null}"},
          {'n', "{}"}}},
        {SCHEMA,
         "{\"type\":\"object\",\"minProperties\":3,\"required\":[\"c\"],\"properties\":{\"a\":{"
         "\"type\":"
         "\"null\"},\"b\":{\"type\":\"null\"},\"c\":{\"type\":\"null\"}}}",
         {{'y', "{\"a\":null,\"b\":null,\"c\":null}"}, {'n', "{\"a\":null,\"c"}}},
        /* an optional property that tells the branches apart becomes required */
        {SCHEMA,
         "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":1}}},{\"type\":"
         "\"object\","
         "\"properties\":{\"k\":{\"const\":2}}}]}",
         {{'y', "{\"k\":1}"}, {'y', "{\"k\":2}"}, {'n', "{}"}}},
        {SCHEMA,
         "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}},"
         "\"additionalProperties\":false},{\"type\":\"object\",\"properties\":{\"b\":{\"type\":"
         "\"null\"}},"
         "\"additionalProperties\":false}]}",
         {{'y', "{\"a\":null}"}, {'y', "{\"b\":null}"}, {'n', "{}"}}},
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}}"
         ","
         "\"dependentRequired\":{\"a\":[\"b\"]}}",
         {{'y', "{}"},
          {'y', "{\"b\":null}"},
          {'y', "{\"a\":null,\"b\":null}"},
          {'n', "{\"a\":null}"}}},
        {SCHEMA,
         "{\"type\":\"object\",\"patternProperties\":{\"^x-\":{\"type\":\"null\"}},"
         "\"additionalProperties\":false}",
         {{'y', "{\"x-a\":null}"}, {'n', "{\"a"}}},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
}

static void test_schema_combinations(void **state)
{
    static const struct match list[] = {
        /* two branches of a oneOf that can both hold: values that both accept are never
         * generated */
        {SCHEMA,
         "{\"oneOf\":[{\"enum\":[\"a\",\"xb\"]},{\"type\":\"string\",\"pattern\":\"x\"}]}",
         {{'y', "\"a\""}, {'n', "\"xb\""}, {'y', "\"cx\""}, {'n', "\"c\""}}},
        /* found by test_schema_model.c: no named property may come, */
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}},\"maxProperties\":0}",
         {{'y', "{}"}, {'n', "{\"a\""}}},
        /* a condition on a name that the schema does not name, */
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{},\"dependentRequired\":{\"a\":[\"b\"]}}",
         {{'y', "{}"}, {'y', "{\"a\":1,\"b\":1}"}, {'n', "{\"a\":1}"}}},
        /* which the other branch may have, too, */
        {SCHEMA,
         "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\"]},"
         "{\"type\":\"object\",\"properties\":{}}]}",
         {{'y', "{}"}, {'n', "{\"a\":1}"}}},
        /* multiples that are forbidden, */
        {SCHEMA,
         "{\"type\":\"integer\",\"multipleOf\":2,\"minimum\":0,\"not\":{\"enum\":[2]}}",
         {{'y', "0"}, {'y', "4"}, {'n', "2,"}}},
        /* an item that must be there, and values of another type, */
        {SCHEMA,
         "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"uniqueItems\":true,\"contains\":"
         "{\"const\":\"a\"}}",
         {{'n', "[]"}, {'y', "[\"a\"]"}}},
        {SCHEMA,
         "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,\"a\"],\"type\":"
         "\"integer\"}}",
         {{'y', "[1]"}, {'n', "[\"a\""}}},
        /* and values with too few or other parts */
        {SCHEMA,
         "{\"enum\":[{\"a\":1},{},[],[1],2],\"minProperties\":1,\"maxItems\":0}",
         {{'y', "{\"a\":1}"}, {'n', "{}"}, {'y', "[]"}, {'n', "[1"}, {'y', "2"}}},
        {SCHEMA,
         "{\"enum\":[{\"a\":1},{\"b\":1}],\"required\":[\"b\"]}",
         {{'n', "{\"a\""}, {'y', "{\"b\":1}"}}},
        /* not with a type */
        {SCHEMA,
         "{\"not\":{\"type\":[\"null\",\"object\",\"array\"]}}",
         {{'y', "true"}, {'y', "\"a\""}, {'n', "null"}, {'n', "{"}}},
        /* and with values */
        {SCHEMA,
         "{\"type\":\"string\",\"not\":{\"enum\":[\"yes\",\"no\"]}}",
         {{'y', "\"yess\""}, {'y', "\"\""}, {'n', "\"yes\""}, {'n', "\"no\""}}},
        /* 5.0 equals 5 */
        {SCHEMA,
         "{\"type\":\"number\",\"minimum\":0,\"maximum\":9,\"not\":{\"const\":5}}",
         {{'y', "5.1"}, {'p', "5"}, {'p', "5.0"}, {'y', "0"}}},
        /* one of the names must be missing */
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}}"
         ",\"not\":{\"required\":[\"a\",\"b\"]}}",
         {{'y', "{}"}, {'y', "{\"a\":null}"}, {'y', "{\"b\":null}"}, {'n', "{\"a\":null,\"b"}}},
        /* a condition that holds, and one that does not */
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"x\",\"y\"]},\"v\":{}},"
         "\"required\":[\"k\",\"v\"],\"if\":{\"properties\":{\"k\":{\"const\":\"x\"}}},\"then\":{"
         "\"properties\":{\"v\":{\"type\":\"integer\"}}},\"else\":{\"properties\":{\"v\":{\"type\":"
         "\"null\"}}}}",
         {{'y', "{\"k\":\"x\",\"v\":1}"},
          {'y', "{\"k\":\"y\",\"v\":null}"},
          {'n', "{\"k\":\"x\",\"v\":null}"},
          {'n', "{\"k\":\"y\",\"v\":1"}}},
        /* names and patterns together; a name that matches a pattern must satisfy both */
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"ab\":{\"type\":[\"integer\",\"null\"]},\"c\":{"
         "\"type\":\"null\"}},\"patternProperties\":{\"^a\":{\"type\":\"integer\"},\"z$\":{"
         "\"type\":\"boolean\"}},\"additionalProperties\":false}",
         {{'y', "{\"ab\":1,\"c\":null,\"ax\":2,\"xz\":true}"},
          {'n', "{\"ab\":null"},
          {'n', "{\"az\""},
          {'n', "{\"d\""},
          {'n', "{\"ax\":true"}}},
        /* names of properties */
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"ab\":{\"type\":\"null\"},\"XY\":{\"type\":"
         "\"null\"}},\"propertyNames\":{\"pattern\":\"^[a-z]+$\"},\"additionalProperties\":{"
         "\"type\":\"integer\"}}",
         {{'y', "{\"ab\":null,\"c\":1}"}, {'n', "{\"XY\""}, {'n', "{\"C\""}}},
        /* a pattern beside a format, and a length beside both */
        {SCHEMA,
         "{\"type\":\"string\",\"format\":\"date\",\"pattern\":\"^2024-0[12]\"}",
         {{'y', "\"2024-02-29\""}, {'n', "\"2024-03"}, {'n', "\"2024-02-30\""}}},
        {SCHEMA,
         "{\"type\":\"string\",\"pattern\":\"^[a-z]+(-[a-z]+)*$\",\"maxLength\":5}",
         {{'y', "\"ab-cd\""}, {'y', "\"a-b-c\""}, {'n', "\"abcdef\""}, {'n', "\"a-\""}}},
        /* a look-ahead at the beginning */
        {SCHEMA,
         "{\"type\":\"string\",\"pattern\":\"^(?!con)[a-z]{3,5}$\"}",
         {{'n', "\"cone\""}, {'y', "\"coal\""}, {'n', "\"con\""}}},
        /* two patterns */
        {SCHEMA,
         "{\"allOf\":[{\"type\":\"string\",\"pattern\":\"^a\"},{\"pattern\":\"z$\"}]}",
         {{'y', "\"az\""}, {'y', "\"abz\""}, {'n', "\"ab\""}, {'n', "\"z"}}},
        /* fewer properties than are named */
        {SCHEMA,
         "{\"type\":\"object\",\"maxProperties\":1,\"properties\":{\"a\":{\"type\":\"null\"},\"b\":"
         "{\"type\":\"null\"},\"c\":{\"type\":\"null\"}}}",
         {{'y', "{}"}, {'y', "{\"b\":null}"}, {'n', "{\"a\":null,\"c"}}},
        /* items that differ */
        {SCHEMA,
         "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"string\"}}",
         {{'y', "[\"Ab\",\"cd\"]"}, {'n', "[\"ab\",\"ac"}, {'y', "[]"}}},
        /* only one item of kinds that cannot be compared */
        {SCHEMA,
         "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"object\"}}",
         {{'y', "[{}]"}, {'n', "[{},"}}},
        /* a required item comes first */
        {SCHEMA,
         "{\"type\":\"array\",\"items\":{\"type\":[\"integer\",\"null\"]},\"contains\":{\"type\":"
         "\"null\"}}",
         {{'y', "[null,1]"}, {'n', "[]"}, {'n', "[1"}}},
        {SCHEMA,
         "{\"items\":{\"type\":[\"integer\",\"null\"]},\"contains\":{\"type\":\"null\"},"
         "\"minContains\":2,\"maxContains\":3}",
         {{'y', "[null,null,1]"}, {'n', "[null,1"}, {'n', "[null,null,null"}}},
        /* all digits of a number */
        {SCHEMA, "{\"const\":9007199254740993}", {{'y', "9007199254740992"}}},
        /* multiples between bounds */
        {SCHEMA,
         "{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":10,\"maximum\":30}",
         {{'y', "14"}, {'y', "28"}, {'n', "7"}, {'n', "15"}}},
        /* an anchor */
        {SCHEMA,
         "{\"$ref\":\"#n\",\"$defs\":{\"x\":{\"$anchor\":\"n\",\"const\":1}}}",
         {{'y', "1"}, {'n', "2"}}},
        /* the $id of a part, and a pointer from it */
        {SCHEMA,
         "{\"$ref\":\"http://x/y#/a\",\"$defs\":{\"x\":{\"$id\":\"http://x/"
         "y\",\"a\":{\"const\":1}}}}",
         {{'y', "1"}, {'n', "2"}}},
        /* an optional property that no value fits is left out */
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"enum\":[\"x\"]},\"b\":{"
         "\"type\":\"null\"}}}",
         {{'y', "{}"}, {'y', "{\"b\":null}"}, {'n', "{\"a"}}},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
}

static void test_schema_refusals(void **state)
{
    static const struct refusal bad[] = {
        {SCHEMA, "{\"properties\":{\"a\":{\"multipleOf\":0.3}}}", SHOAL_EUNSUPPORTED,
         "'multipleOf' at /a"},
        {SCHEMA, "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":2}", SHOAL_EUNSUPPORTED,
         "'uniqueItems'"},
        {SCHEMA, "{\"not\":{\"items\":{\"type\":\"null\"}}}", SHOAL_EUNSUPPORTED, "'items'"},
        {SCHEMA, "{\"type\":\"string\",\"const\":1}", SHOAL_EINVAL, "'enum' at /"},
        {SCHEMA, "{\"$dynamicRef\":\"#x\",\"$defs\":{\"x\":{\"$dynamicAnchor\":\"x\"}}}",
         SHOAL_EUNSUPPORTED, "'$dynamicRef'"},
        {SCHEMA,
         "{\"$ref\":\"#x\",\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}",
         SHOAL_EUNSUPPORTED, "'$ref'"},
        {SCHEMA, "{\"unevaluatedProperties\":false,\"not\":{\"not\":{\"required\":[\"a\"]}}}",
         SHOAL_EUNSUPPORTED, "'unevaluatedProperties'"},
        {SCHEMA, "{\"properties\":{\"a\":{}},\"allOf\":[{\"unevaluatedProperties\":false}]}",
         SHOAL_EUNSUPPORTED, "'unevaluatedProperties'"},
        {SCHEMA, "{\"$ref\":\"http://x/y\"}", SHOAL_EUNSUPPORTED, "'$ref'"},
        {SCHEMA, "{\"$ref\":\"#/nowhere\"}", SHOAL_EINVAL, "has no target"},
        {SCHEMA, "{\"$ref\":\"#\"}", SHOAL_EINVAL, "begin with itself"},
        {SCHEMA, "{\"type\":\"text\"}", SHOAL_EINVAL, "'type'"},
        {SCHEMA, "{\"type\":\"string\",\"pattern\":\"(?!a)\"}", SHOAL_EINVAL, "'pattern' at /"},
        {SCHEMA, "{\"type\":\"string\",\"minLength\":-1}", SHOAL_EINVAL, "'minLength'"},
        {SCHEMA, "{\"type\":\"string\",\"minLength\":9999999}", SHOAL_ELIMIT, "'minLength'"},
        {SCHEMA, "{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}",
         SHOAL_EINVAL, "no text matches"},
        {SCHEMA, "{\"type\":", SHOAL_EINVAL, "not JSON"},
        {SCHEMA, "[]", SHOAL_EINVAL, "must be an object or a boolean"},
    };
    (void)state;
    check_refusals(bad, sizeof(bad) / sizeof(bad[0]));
}

/* Schemas that take forever without limits: each is rejected or compiled, never both slow and
 * large.
 */
static void test_hostile_schemas(void **state)
{
    static const struct {
        const char *begin, *each, *end;
        uint32_t n;
    } list[] = {
        {"{\"allOf\":[", "{\"anyOf\":[{\"minLength\":%u},{\"pattern\":\"a\"}]},", "{}]}", 40},
        {"{\"oneOf\":[", "{\"properties\":{\"a%u\":{\"type\":\"null\"}}},", "{}]}", 60},
        {"{\"patternProperties\":{", "\"a.{%u}b\":{},", "\"x\":{}}}", 60},
        {"{\"anyOf\":[", "{\"pattern\":\"(a|b)*a(a|b){%u}$\",\"format\":\"date\"},", "{}]}", 60},
        {"{\"allOf\":[", "{\"if\":{\"required\":[\"a%u\"]},\"then\":{\"minProperties\":2}},",
         "{}]}", 40},
        {"{\"enum\":[", "\"value %u\",", "0]}", 20000},
        {"{\"not\":{\"enum\":[", "\"value %u\",", "0]}}", 5000},
        {"{\"$defs\":{", "\"%u\":{\"allOf\":[{\"$ref\":\"#/$defs/0\"},{\"$ref\":\"#/$defs/1\"}]},",
         "\"x\":{}},\"$ref\":\"#/$defs/0\"}", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        const size_t size = 1 << 20;
        char *text = malloc(size);
        struct grammar_net *net = NULL;
        struct err e = {0};
        assert_non_null(text);
        size_t at = (size_t)snprintf(text, size, "%s", list[i].begin);
        for (uint32_t k = 0; k < list[i].n; k++)
            at += (size_t)snprintf(text + at, size - at, list[i].each, k);
        at += (size_t)snprintf(text + at, size - at, "%s", list[i].end);
        assert_true(at < size);
        int rc = grammar_compile(&net, SCHEMA, text, at, &e);
        if (rc < 0 && rc != SHOAL_ELIMIT && !strchr(e.msg, '\''))
            fail_msg("%s: %d, \"%s\"", list[i].begin, rc, e.msg);
        grammar_net_destroy(net);
        free(text);
    }
}

static void test_parts(void **state)
{
    static const struct match list[] = {
        {PARTS,
         "{\"parts\":[{\"begin\":\"<f>\",\"schema\":{\"type\":\"integer\"},\"end\":\"</f>\"},"
         "{\"begin\":\"<g>\",\"schema\":{\"type\":\"null\"},\"end\":\"</g>\"}],\"max\":2,"
         "\"between\":\"\\n\"}",
         {{'y', "<f>12</f>"},
          {'y', "<g>null</g>\n<f>3</f>"},
          {'n', "<f>null"},
          {'p', "<f>1</f>\n"},
          {'n', "x"}}},
        {PARTS,
         "{\"parts\":[{\"begin\":\"<f>\",\"schema\":{\"type\":\"integer\"},\"end\":\"</f>\"}],"
         "\"max\":2,\"between\":\"\\n\",\"trailing\":\"\\n\"}",
         {{'y', "<f>1</f>\n"},
          {'y', "<f>1</f>"},
          {'y', "<f>1</f>\n<f>2</f>\n"},
          {'n', "<f>1</f>\n\n"},
          {'p', "<f>1</f>\n<"}}},
        {PARTS,
         "{\"parts\":[{\"begin\":\"<<f>\",\"schema\":{\"type\":\"integer\"},\"end\":\";\"}],"
         "\"trigger\":\"<<f\"}",
         {{'y', ""},
          {'y', "any <text <f"},
          {'y', "so <<<f>12;"},
          {'n', "so <<f 12"},
          {'p', "so <<f>1"}}},
        {PARTS,
         "{\"parts\":[{\"begin_token\":\"[CALL]\",\"begin\":\" "
         "\",\"schema\":true}],\"before\":\"(\","
         "\"after\":\")\"}",
         {{'y', "([CALL] null)"}, {'y', "(\xff[CALL]\xff 1)"}, {'n', "(1"}}},
    };
    static const struct refusal bad[] = {
        {PARTS, "{}", SHOAL_EINVAL, "'parts'"},
        {PARTS, "{\"parts\":[{\"begin\":\"x\"}]}", SHOAL_EINVAL, "'schema'"},
        {PARTS, "{\"parts\":[{\"begin\":\"x\",\"schema\":{}}],\"trigger\":\"y\"}", SHOAL_EINVAL,
         "begin with the trigger"},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
    check_refusals(bad, sizeof(bad) / sizeof(bad[0]));
}

/* ---- token sets ---- */

struct vocabulary {
    struct tok_build b;
    struct tokenizer *t;
    struct vocab_trie *v;
};

/* All bytes, words, pieces of JSON, and random mixtures of JSON's parts. */
static void make_vocabulary(struct vocabulary *x)
{
    static const char *const words[] = {
        "{\"",   "\":",      "\", \"",   "\"}",  "},", "name", "\"name\"",
        " true", "null",     "[]",       "[{",   "12", "3.5",  "e",
        "\\n",   "\xc3\xa9", "\xe2\x82", "\n  ", "  ", "abc",  "\"a\":"};
    static const char alphabet[] = "{}[]\",: abn01.-\\xe\n";
    struct err e;
    tb_init(&x->b, "llama", NULL);
    x->b.unk = (int)tb_add(&x->b, "<unk>", 0, TOKEN_TYPE_UNKNOWN);
    x->b.bos = (int)tb_add(&x->b, "<s>", 0, TOKEN_TYPE_CONTROL);
    x->b.eos = (int)tb_add(&x->b, "</s>", 0, TOKEN_TYPE_CONTROL);
    tb_add(&x->b, "[CALL]", 0, TOKEN_TYPE_CONTROL);
    tb_add_byte_tokens(&x->b);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        tb_add(&x->b, words[i], -1, TOKEN_TYPE_NORMAL);
    for (uint32_t i = 0; i < 600; i++) {
        char text[8] = "";
        uint32_t n = 1 + (uint32_t)(hash_mix(i) % 5);
        for (uint32_t k = 0; k < n; k++)
            text[k] = alphabet[hash_mix(i * 100 + k + 7) % (sizeof(alphabet) - 1)];
        tb_add(&x->b, text, -2, TOKEN_TYPE_NORMAL);
    }
    assert_int_equal(tokenizer_create(&x->t, tb_gguf(&x->b), &e), 0);
    assert_int_equal(vocab_trie_create(&x->v, x->t, x->b.n + 3, &e), 0);
}

static void drop_vocabulary(struct vocabulary *x)
{
    vocab_trie_destroy(x->v);
    tokenizer_destroy(x->t);
    tok_build_fini(&x->b);
}

/* The same token by token: slow, and without shortcuts. */
static bool allowed_slowly(struct grammar_mask *slow, const struct vocab_trie *v, const char *text,
                           size_t n, uint32_t token, bool lead)
{
    uint32_t place;
    assert_int_equal(grammar_mask_start(slow, &place), 0);
    assert_int_equal(grammar_mask_step(slow, &place, text, n), 0);
    assert_int_not_equal(place, GRAMMAR_MASK_DEAD);
    if (v->ends[token / 64] >> (token % 64) & 1)
        return grammar_mask_complete(slow, place);
    uint32_t skip = lead && v->text_bytes[token] > 0 && v->texts[token][0] == ' ';
    assert_int_equal(grammar_mask_take(slow, &place, (int32_t)token, skip), 0);
    return place != GRAMMAR_MASK_DEAD;
}

static void compare_sets(const struct vocabulary *x, enum shoal_constraint kind, const char *text)
{
    struct grammar_net *net;
    struct grammar_mask *m, *slow;
    struct grammar_mask_set set;
    struct err e = {0};
    uint32_t place;
    char so_far[512];
    size_t n = 0;
    if (grammar_compile(&net, kind, text, strlen(text), &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    assert_int_equal(grammar_mask_create(&m, net, x->v, &e), 0);
    assert_int_equal(grammar_mask_create(&slow, net, x->v, &e), 0);
    assert_int_equal(grammar_mask_start(m, &place), 0);
    for (uint32_t step = 0; step < 40 && !grammar_mask_over(m, place); step++) {
        const bool lead = step % 7 == 0;
        uint32_t count = 0;
        assert_int_equal(grammar_mask_allowed(m, place, lead, &set), 0);
        for (uint32_t t = 0; t < x->v->n_vocab; t++) {
            bool fast = set.bits[t / 64] >> (t % 64) & 1;
            count += fast;
            if (fast != allowed_slowly(slow, x->v, so_far, n, t, lead))
                fail_msg("%s: after \"%.*s\" token %u is %s", text, (int)n, so_far, t,
                         fast ? "allowed" : "missing");
        }
        assert_int_equal(count, set.n);
        assert_true(count > 0);
        uint32_t skip = (uint32_t)(hash_mix(step * 31 + strlen(text)) % count), t = 0;
        while (!(set.bits[t / 64] >> (t % 64) & 1) || skip-- > 0)
            t++;
        if (x->v->text_bytes[t] == 0)
            break; /* the end */
        uint32_t hidden = lead && x->v->texts[t][0] == ' ';
        assert_int_equal(grammar_mask_take(m, &place, (int32_t)t, hidden), 0);
        assert_true(n + x->v->text_bytes[t] < sizeof(so_far));
        memcpy(so_far + n, x->v->texts[t] + hidden, x->v->text_bytes[t] - hidden);
        n += x->v->text_bytes[t] - hidden;
    }
    grammar_mask_destroy(m);
    grammar_mask_destroy(slow);
    grammar_net_destroy(net);
}

/* The token that must follow, found by testing all of them. */
static int32_t only_slowly(struct grammar_mask *m, const struct vocab_trie *v, uint32_t place)
{
    char text[256];
    struct grammar_mask_set set;
    int32_t best = -1;
    const size_t n = grammar_mask_forced(m, place, text, sizeof(text));
    assert_int_equal(grammar_mask_allowed(m, place, false, &set), 0);
    for (uint32_t t = 0; t < v->n_vocab; t++) {
        if (!(set.bits[t / 64] >> (t % 64) & 1))
            continue;
        if (v->text_bytes[t] == 0 || v->text_bytes[t] > n ||
            memcmp(v->texts[t], text, v->text_bytes[t]) != 0)
            return -1;
        if (best < 0 || v->text_bytes[t] > v->text_bytes[best])
            best = (int32_t)t;
    }
    return best;
}

static void test_the_only_token(void **state)
{
    static const struct {
        enum shoal_constraint kind;
        const char *text;
        uint32_t n_only; /* at least */
    } list[] = {
        {CHOICE, "[\"abcabc12.5\",\"xabcabc\"]", 2},
        {SCHEMA, "{\"const\":\"abcabcabcabc\"}", 3},
        {REGEX, "abc[0-9]{2}abn", 2},
        {REGEX, "[a-z]{4}", 0},
        {SCHEMA, "{\"type\":\"boolean\"}", 1},
    };
    struct vocabulary x = {0};
    (void)state;
    make_vocabulary(&x);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        struct grammar_net *net;
        struct grammar_mask *m;
        struct grammar_mask_set set;
        struct err e;
        uint32_t place, n_only = 0;
        assert_int_equal(
            grammar_compile(&net, list[i].kind, list[i].text, strlen(list[i].text), &e), 0);
        assert_int_equal(grammar_mask_create(&m, net, x.v, &e), 0);
        assert_int_equal(grammar_mask_start(m, &place), 0);
        while (!grammar_mask_over(m, place)) {
            int32_t token;
            assert_int_equal(grammar_mask_only(m, place, &token), 0);
            assert_int_equal(token, only_slowly(m, x.v, place));
            n_only += token >= 0;
            assert_int_equal(grammar_mask_allowed(m, place, false, &set), 0);
            for (uint32_t t = 0; token < 0; t++)
                token = set.bits[t / 64] >> (t % 64) & 1 ? (int32_t)t : -1;
            assert_int_equal(grammar_mask_take(m, &place, token, 0), 0);
            assert_int_not_equal(place, GRAMMAR_MASK_DEAD);
        }
        if (n_only < list[i].n_only)
            fail_msg("%s: %u tokens had to follow", list[i].text, n_only);
        grammar_mask_destroy(m);
        grammar_net_destroy(net);
    }
    drop_vocabulary(&x);
}

static void test_sets_equal_the_slow_ones(void **state)
{
    static const struct {
        enum shoal_constraint kind;
        const char *text;
    } list[] = {
        {JSON, ""},
        {SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":12},"
         "\"a\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}},\"abn\":{\"type\":\"integer\","
         "\"minimum\":10,\"maximum\":1210}},\"required\":[\"a\"]}"},
        {SCHEMA, "{\"type\":\"string\",\"minLength\":7,\"maxLength\":300}"},
        {SCHEMA,
         "{\"additionalProperties\":{\"type\":\"null\"},\"properties\":{\"ab\":{},\"abx\":{}}}"},
        {GBNF, "root ::= \"a\" root \"b\" | \"a\" root \"n\" | \"x\""},
        {GBNF, "root ::= word (\" \" word)*\nword ::= [a-z]{1,9}"},
        {REGEX, "(a|ab|abn)*(0|1|\\.)+"},
        {CHOICE, "[\"abc\",\"abcabc\",\"12.5\"]"},
        {PARTS, "{\"parts\":[{\"begin_token\":\"[CALL]\",\"schema\":{\"type\":\"null\"}}]}"},
    };
    struct vocabulary x = {0};
    (void)state;
    make_vocabulary(&x);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        compare_sets(&x, list[i].kind, list[i].text);
    drop_vocabulary(&x);
}

static void test_control_tokens(void **state)
{
    static const char text[] =
        "{\"parts\":[{\"begin_token\":\"[CALL]\",\"schema\":{\"type\":\"null\"}}]}";
    struct vocabulary x = {0};
    struct grammar_net *net;
    struct grammar_mask *m;
    struct grammar_mask_set set;
    struct err e;
    uint32_t place;
    (void)state;
    make_vocabulary(&x);
    assert_int_equal(grammar_compile(&net, PARTS, text, strlen(text), &e), 0);
    assert_int_equal(grammar_mask_create(&m, net, x.v, &e), 0);
    assert_int_equal(grammar_mask_start(m, &place), 0);
    assert_int_equal(grammar_mask_allowed(m, place, false, &set), 0);
    assert_true(set.bits[0] >> 3 & 1);  /* [CALL] */
    assert_false(set.bits[0] >> 1 & 1); /* <s> */
    assert_int_equal(grammar_mask_take(m, &place, 3, 0), 0);
    assert_int_not_equal(place, GRAMMAR_MASK_DEAD);
    char forced[8] = "";
    assert_int_equal(grammar_mask_forced(m, place, forced, sizeof(forced)), 4);
    assert_memory_equal(forced, "null", 4);
    grammar_mask_destroy(m);
    grammar_net_destroy(net);
    drop_vocabulary(&x);
}

/* ---- long lists ---- */

#define N_NAMES 100000u

/* Names with common beginnings; one in ten is the beginning of another. */
static uint32_t name_at(char out[48], uint32_t i)
{
    const uint64_t h = hash_mix(i / 10 + 1);
    uint32_t n = (uint32_t)sprintf(out, "item-%u-%llx", i / 1000, (unsigned long long)h);
    if (i % 10 > 0)
        n += (uint32_t)sprintf(out + n, "-%u", i % 10);
    return n;
}

/* The names between `before` and `after`, with `between` between two. */
static char *name_list(const char *before, const char *between, const char *after, size_t *n)
{
    char *text = malloc((size_t)N_NAMES * 56 + 64), *p = text;
    assert_non_null(text);
    p += sprintf(p, "%s", before);
    for (uint32_t i = 0; i < N_NAMES; i++) {
        p += i > 0 ? sprintf(p, "%s", between) : 0;
        p += name_at(p, i);
    }
    p += sprintf(p, "%s", after);
    *n = (size_t)(p - text);
    return text;
}

static void test_lists_of_a_hundred_thousand_names(void **state)
{
    static const struct {
        enum shoal_constraint kind;
        const char *before, *between, *after, *quote;
    } list[] = {
        {CHOICE, "[\"", "\",\"", "\"]", ""},
        {SCHEMA, "{\"enum\":[\"", "\",\"", "\"]}", "\""},
        {SCHEMA, "{\"type\":\"string\",\"pattern\":\"^(", "|", ")$\"}", "\""},
        {REGEX, "", "|", "", ""},
        {REGEX, "(?:", "|", ")", ""},
        {GBNF, "root ::= \"", "\" | \"", "\"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        struct grammar_walk w;
        struct err e = {0};
        char name[48], text[64];
        size_t n;
        char *grammar = name_list(list[i].before, list[i].between, list[i].after, &n);
        if (grammar_walk_open(&w, list[i].kind, grammar, n, &e) < 0)
            fail_msg("list %zu: %s", i, e.msg);
        for (uint32_t k = 0; k < N_NAMES; k += 37) {
            name_at(name, k);
            sprintf(text, "%s%s%s", list[i].quote, name, list[i].quote);
            if (verdict(&w, text) != 'y')
                fail_msg("list %zu: %s is missing", i, text);
            sprintf(text, "%s%s~", list[i].quote, name);
            assert_int_equal(verdict(&w, text), 'n');
        }
        grammar_walk_close(&w);
        free(grammar);
    }
}

/* Rules that stand for one text, and branches that go on differently. */
static void test_branches_that_begin_alike(void **state)
{
    static const struct match list[] = {
        {GBNF,
         "root ::= \"ab\" [0-9] | \"abc\" | \"ab\" | x \"d\" | \"\" | \"abcdef\"\nx ::= \"abc\"",
         {{'y', ""},
          {'y', "ab"},
          {'y', "ab7"},
          {'y', "abc"},
          {'y', "abcd"},
          {'p', "abcde"},
          {'y', "abcdef"},
          {'n', "ab77"},
          {'n', "abd"}}},
        {REGEX,
         "abc+|abd|ab(x|y)z",
         {{'y', "abccc"}, {'n', "abcabc"}, {'y', "abd"}, {'y', "abyz"}}},
        {REGEX,
         "a\\.b\\-c|a\\.b\\d",
         {{'y', "a.b-c"}, {'y', "a.b4"}, {'n', "axb-c"}, {'p', "a.b"}}},
        {SCHEMA,
         "{\"type\":\"string\",\"pattern\":\"^(abc|\xc3\xa9\xc3\xa9|x\\\"yz)$\",\"maxLength\":3}",
         {{'y', "\"abc\""}, {'y', "\"\xc3\xa9\xc3\xa9\""}, {'n', "\"x\\\"yz\""}}},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
}

/* ---- limits and failures ---- */

/* A repetition of texts that may be empty needs no more than one of texts that may not. */
static void test_repeated_empty_texts(void **state)
{
    static const struct match list[] = {
        {GBNF, "root ::= (\"\" | \"a\"){5000} \"b\"", {{'y', "b"}, {'y', "aaab"}, {'n', "ba"}}},
        {GBNF, "root ::= (\"a\"?){900000}", {{'y', ""}, {'y', "aaaa"}, {'n', "b"}}},
        {REGEX, "(a?b?){2,6}", {{'y', ""}, {'y', "abbbab"}, {'y', "bbbbbb"}, {'n', "bbbbbbb"}}},
        {GBNF,
         "root ::= x{9,9}\nx ::= \"a\" y | \"\"\ny ::= (\"c\" x)? | \"d\"*",
         {{'y', ""},
          {'y', "acaca"},
          {'y', "addd"},
          {'n', "c"},
          {'y', "aaaaaaaaa"},
          {'n', "aaaaaaaaaa"}}},
        {GBNF,
         "root ::= ((\"a\"?){50}){50}",
         {{'y', ""}, {'y', "aaaaaaaaaaaaaaaaaaaa"}, {'n', "b"}}},
    };
    static const struct refusal bad[] = {
        {GBNF, "root ::= x{9}\nx ::= (x | ){9} \"a\" | ", SHOAL_EINVAL,
         "rule x can begin with itself"},
    };
    (void)state;
    check_matches(list, sizeof(list) / sizeof(list[0]));
    check_refusals(bad, sizeof(bad) / sizeof(bad[0]));
}

/* Every a doubles the stacks: at some depth no further one is allowed, but all before are, and
 * their texts can be completed. */
static void test_ambiguity_is_bounded(void **state)
{
    static const char text[] = "root ::= \"\" | \"a\" root \"b\" | \"a\" root \"c\"";
    struct grammar_walk w;
    struct err e;
    uint32_t place, last = 0, n = 0;
    (void)state;
    assert_int_equal(grammar_walk_open(&w, GBNF, text, strlen(text), &e), 0);
    assert_int_equal(grammar_mask_start(w.mask, &place), 0);
    for (; place != GRAMMAR_MASK_DEAD && n < 64; n++) {
        last = place;
        assert_int_equal(grammar_mask_step(w.mask, &place, "a", 1), 0);
    }
    assert_in_range(n, 10, 20);
    for (uint32_t i = 1; i < n; i++)
        assert_int_equal(grammar_mask_step(w.mask, &last, i % 2 ? "b" : "c", 1), 0);
    assert_true(grammar_mask_complete(w.mask, last));
    grammar_walk_close(&w);
}

static void test_ambiguous_beginnings_are_refused_by_name(void **state)
{
    static char text[32768] = "root ::= ";
    const struct refusal bad[] = {{GBNF, text, SHOAL_ELIMIT, "too ambiguous"}};
    (void)state;
    for (uint32_t i = 0; i < 5000; i++)
        strcat(text, "[a]? ");
    check_refusals(bad, 1);
}

static void test_trim_forgets(void **state)
{
    struct grammar_walk w;
    struct err e;
    uint32_t place;
    (void)state;
    assert_int_equal(grammar_walk_open(&w, JSON, "", 0, &e), 0);
    assert_int_equal(verdict(&w, "{\"a\":[[[[[[1]]]]]]}"), 'y');
    size_t full = grammar_mask_bytes(w.mask);
    assert_false(grammar_mask_trim(w.mask, full));
    assert_true(grammar_mask_trim(w.mask, full - 1));
    assert_true(grammar_mask_bytes(w.mask) < full);
    assert_int_equal(grammar_mask_start(w.mask, &place), 0);
    assert_int_equal(verdict(&w, "{\"a\":[[[[[[1]]]]]]}"), 'y');
    grammar_walk_close(&w);
}

/* Every allocation fails once: an error, and no leak. */
static void test_out_of_memory(void **state)
{
    static const struct {
        enum shoal_constraint kind;
        const char *text;
    } list[] = {{GBNF, "root ::= \"a\" [b-d]{2,9} root?"},
                {REGEX, "(a|b)+c{3,20}"},
                {SCHEMA, "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},"
                         "\"additionalProperties\":{\"type\":\"integer\"}}"},
                {SCHEMA,
                 "{\"type\":\"object\",\"patternProperties\":{\"^a\":{\"type\":\"integer\"},"
                 "\"b$\":{\"not\":{\"pattern\":\"x\"},\"type\":\"string\",\"maxLength\":9}}}"}};
    (void)state;
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        for (uint64_t n = 1;; n++) {
            struct grammar_walk w;
            struct err e = {0};
            uint32_t place;
            mem_fail_at(n);
            int rc = grammar_walk_open(&w, list[i].kind, list[i].text, strlen(list[i].text), &e);
            if (rc == 0)
                rc = grammar_mask_start(w.mask, &place);
            if (rc == 0)
                rc = grammar_mask_step(w.mask, &place, "{\"ab", 4);
            mem_fail_at(0);
            grammar_walk_close(&w);
            if (rc == 0)
                break;
            assert_int_equal(rc, SHOAL_ENOMEM);
            assert_true(n < 10000);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gbnf),
        cmocka_unit_test(test_regex_and_choice),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_schema_values),
        cmocka_unit_test(test_schema_enums_obey_other_keywords),
        cmocka_unit_test(test_schema_numbers_are_between_their_bounds),
        cmocka_unit_test(test_schema_shapes),
        cmocka_unit_test(test_schema_combinations),
        cmocka_unit_test(test_schema_refusals),
        cmocka_unit_test(test_hostile_schemas),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_sets_equal_the_slow_ones),
        cmocka_unit_test(test_the_only_token),
        cmocka_unit_test(test_control_tokens),
        cmocka_unit_test(test_lists_of_a_hundred_thousand_names),
        cmocka_unit_test(test_branches_that_begin_alike),
        cmocka_unit_test(test_repeated_empty_texts),
        cmocka_unit_test(test_ambiguity_is_bounded),
        cmocka_unit_test(test_ambiguous_beginnings_are_refused_by_name),
        cmocka_unit_test(test_trim_forgets),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
