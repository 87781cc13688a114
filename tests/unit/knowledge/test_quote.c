/* test_quote.c - sentences that can be quoted, and which of them answers a question. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "knowledge/quote_rank.h"
#include "knowledge/quote_split.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))
#define MOST 8u

static void test_sentences(void **state)
{
    static const struct {
        const char *text;
        const char *want[4];
    } rows[] = {
        {"One is here. Two is there! Is three? Yes.",
         {"One is here.", "Two is there!", "Is three?"}}, /* "Yes." has too few letters */
        {"Dr. Smith, e.g. J. Brown of the U.S. team, paid 3.5 dollars. He left.",
         {"Dr. Smith, e.g. J. Brown of the U.S. team, paid 3.5 dollars.", "He left."}},
        /* wrapped lines belong together, short ones and paragraphs do not */
        {"This line of the paper is wrapped at the\nmargin of the page, as lines are.\n\nAnother "
         "one",
         {"This line of the paper is wrapped at the\nmargin of the page, as lines are.",
          "Another one"}},
        {"Settings\nThe pump starts when the water is above the upper mark.",
         {"Settings", "The pump starts when the water is above the upper mark."}},
        {"Two drivers are there for it:\n- apcsmart for serial ports\n- usbhid for the others",
         {"Two drivers are there for it:", "- apcsmart for serial ports",
          "- usbhid for the others"}},
        {"He said \"Go now.\" Then he left.", {"He said \"Go now.\"", "Then he left."}},
        {"2.3 Settings . . . . . . 14\nThe valve opens at 5 bar.", {"The valve opens at 5 bar."}},
        {"", {NULL}},
        {"12 - 34.", {NULL}},
    };
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct quote_span s[MOST];
        uint32_t n = quote_split(s, MOST, rows[i].text, strlen(rows[i].text)), k = 0;
        while (k < 4 && rows[i].want[k])
            k++;
        for (uint32_t m = 0; m < n && m < k; m++)
            if (strlen(rows[i].want[m]) != s[m].n ||
                strncmp(rows[i].text + s[m].at, rows[i].want[m], s[m].n) != 0)
                fail_msg("'%.*s', expected '%s'", (int)s[m].n, rows[i].text + s[m].at,
                         rows[i].want[m]);
        assert_int_equal(n, k);
    }
    struct quote_span one;
    assert_int_equal(quote_split(&one, 1, "First one. Second one.", 22), 1);
}

static void test_contents(void **state)
{
    (void)state;
    assert_true(quote_is_contents("4 Drivers . . . . 7", 19));
    assert_true(quote_is_contents("4 Drivers........7", 18));
    assert_false(quote_is_contents("Wait ... then go on.", 20));
    assert_false(quote_is_contents("a.b.c.d.e", 9));
}

static struct quote_question read(const char *question, const char *rare)
{
    struct quote_question q;
    struct quote_count counts[QUOTE_MAX_WORDS];
    uint32_t n = quote_question_words(counts, question);
    for (uint32_t i = 0; i < n; i++)
        counts[i].n_passages = rare && strcmp(counts[i].word, rare) == 0 ? 1 : 500;
    quote_question_read(&q, question, counts, n, 1000);
    return q;
}

static void test_questions(void **state)
{
    static const struct {
        const char *text;
        enum quote_kind wants;
    } rows[] = {{"How many litres does it hold?", QUOTE_NUMBER},
                {"When was it built?", QUOTE_NUMBER},
                {"In what year did it end?", QUOTE_NUMBER},
                {"Who opened the gate?", QUOTE_NAME},
                {"Why is it hot?", QUOTE_REASON},
                {"How do I reset it?", QUOTE_ANY},
                {"Where is the label?", QUOTE_ANY},
                {"What is it?", QUOTE_ANY}};
    struct quote_count words[QUOTE_MAX_WORDS];
    (void)state;
    for (size_t i = 0; i < N(rows); i++)
        assert_int_equal(read(rows[i].text, NULL).wants, rows[i].wants);
    assert_int_equal(quote_question_words(words, "What's E42, Anna?"), 4);
    assert_string_equal(words[2].word, "e42");
    /* a rare word counts more than one that half of the passages have */
    struct quote_question q = read("pump noise", "noise");
    assert_true(q.weights[1] > 3 * q.weights[0]);
}

static double score(const struct quote_question *q, const char *text, const char *before,
                    float similarity)
{
    double f[1][QUOTE_N_FEATURES];
    const struct quote_context c = {.text = text,
                                    .n = strlen(text),
                                    .before = before,
                                    .n_before = strlen(before),
                                    .heading = "",
                                    .passage = text,
                                    .similarity = similarity,
                                    .passage_similarity = NAN};
    quote_rank_features(f[0], q, &c);
    quote_rank_compare(f, 1);
    return quote_rank_score(f[0]);
}

static void test_scores(void **state)
{
    (void)state;
    struct quote_question q = read("How many litres does the tank hold?", NULL);
    const double right = score(&q, "The tank holds 270 litres.", "", 0.8f);
    assert_true(right > 0.5 && right <= 1);
    assert_true(score(&q, "The tank holds litres of water.", "", 0.8f) < right); /* no number */
    assert_true(score(&q, "The tank holds 270 litres.", "", 0.2f) < right);      /* vectors */
    assert_true(score(&q, "The gate weighs 98 kilograms.", "", 0.1f) < 0.1);     /* words */
    assert_true(score(&q, "The tank holds 270 litres.", "", NAN) < right);       /* unknown */
    assert_true(score(&q, "It holds 270.", "Of the tank in litres.", 0.5f) >
                score(&q, "It holds 270.", "", 0.5f)); /* what is said before */
    struct quote_question name = read("what does the Acme valve cost", NULL);
    assert_true(score(&name, "the Acme valve costs five", "", 0.5f) >
                score(&name, "the Bolt valve costs five", "", 0.5f));
}

/* A sentence that is far behind the best is no answer. */
static void test_the_best_counts(void **state)
{
    double f[2][QUOTE_N_FEATURES] = {{[QUOTE_WORDS] = 0.9, [QUOTE_SIMILARITY] = 0.4},
                                     {[QUOTE_WORDS] = 0.5, [QUOTE_SIMILARITY] = 0.7}};
    (void)state;
    quote_rank_compare(f, 2);
    assert_true(f[0][QUOTE_BEHIND] == 0 && fabs(f[1][QUOTE_BEHIND] - 0.4) < 1e-9);
    assert_true(fabs(f[0][QUOTE_BELOW] - 0.3) < 1e-9 && f[1][QUOTE_BELOW] == 0);
    for (int i = 0; i < QUOTE_N_FEATURES; i++)
        assert_true(strlen(quote_rank_name((enum quote_feature)i)) > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences), cmocka_unit_test(test_contents),
        cmocka_unit_test(test_questions), cmocka_unit_test(test_scores),
        cmocka_unit_test(test_the_best_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
