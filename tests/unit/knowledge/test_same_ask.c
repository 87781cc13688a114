/* test_same_ask.c - the guard of the semantic cache, on tests/data/similar/pairs.txt: none of
 * the pairs that only look alike may match, and at least 70 % of the paraphrases must, with the
 * vectors of the pack's encoder and the documented threshold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "knowledge/same_ask.h"
#include "shoal/shoal.h"

#define THRESHOLD 0.8
#define MAX_LINE 256
#define MAX_DIMS 1024

static uint32_t embed(struct shoal_engine *en, const char *text, float *out)
{
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_EMBED, .text = text, .text_bytes = strlen(text)};
    struct shoal_task *t;
    struct err e = {0};
    if (shoal_infer_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    shoal_task_wait(t);
    const struct shoal_result *r = shoal_task_result(t);
    assert_int_equal(r->code, 0);
    assert_true(r->n_dims <= MAX_DIMS);
    memcpy(out, r->vector, r->n_dims * sizeof(float));
    uint32_t n = r->n_dims;
    shoal_task_free(t);
    return n;
}

static double similarity(struct shoal_engine *en, const char *a, const char *b)
{
    float x[MAX_DIMS], y[MAX_DIMS];
    double s = 0;
    uint32_t n = embed(en, a, x);
    assert_int_equal(embed(en, b, y), n);
    for (uint32_t i = 0; i < n; i++)
        s += (double)x[i] * (double)y[i];
    return s;
}

static void test_committed_pairs(void **state)
{
    struct shoal_engine_opts eo = {.size = sizeof(eo), .int8 = true, .n_threads = 1};
    struct shoal_engine *en;
    char base[MAX_LINE] = "", line[MAX_LINE];
    uint32_t n[2] = {0, 0}, hits[2] = {0, 0};
    struct err e = {0};
    FILE *f = fopen(SHOAL_TEST_DATA "/similar/pairs.txt", "r");
    (void)state;
    assert_non_null(f);
    if (shoal_engine_open(&en, SHOAL_TEST_DATA "/../../models/encoder", &eo, &e) < 0)
        fail_msg("%s", e.msg);
    while (fgets(line, sizeof(line), f)) {
        size_t len = strcspn(line, "\n");
        line[len] = '\0';
        if (line[0] == '#' || len < 3)
            continue;
        if (line[1] != ' ' || !strchr("=!", line[0])) {
            memcpy(base, line, len + 1);
            continue;
        }
        int other = line[0] == '!';
        const char *text = line + 2, *why;
        /* the order must not matter */
        bool same = same_ask(base, strlen(base), text, strlen(text), &why),
             back = same_ask(text, strlen(text), base, strlen(base), &why);
        if (same != back)
            fail_msg("'%s' and '%s': it depends on which is first", base, text);
        if (same && other)
            fail_msg("'%s' would be answered with the answer to '%s'", text, base);
        n[other]++;
        hits[other] += same && similarity(en, base, text) >= THRESHOLD;
    }
    fclose(f);
    shoal_engine_close(en);
    print_message("paraphrases: %u of %u; wrong: %u of %u\n", hits[0], n[0], hits[1], n[1]);
    assert_true(n[0] >= 300 && n[1] >= 300);
    assert_int_equal(hits[1], 0);
    assert_true(hits[0] * 10 >= n[0] * 7);
}

/* Cases that are not in the list of pairs, one for each rule. */
static void test_rules(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"a flight from Paris to London", "a flight from London to Paris", false},
        {"does a cat chase a dog", "does a dog chase a cat", false},
        {"raise it by 5", "raise it to 5", false},
        {"wake me at 7:30", "wake me at 7:45", false},
        {"send 1,000 euros", "send 1000 euros", true},
        {"send 1,000 euros", "send 1.000 euros", false},
        {"it is -5 degrees", "it is 5 degrees", false},
        {"a 5kg bag", "a 5 kg bag", true},
        {"a 5 kg bag", "a 5 lb bag", false},
        {"what is your name", "what is my name", false},
        {"does he like tea", "does she like tea", false},
        {"all lights on", "some lights on", false},
        {"the light in the kitchen", "the kitchen light", true},
        {"can dogs swim", "do dogs swim", false},
        {"how can dogs swim", "how do dogs swim", true},
        {"the 3rd floor", "the third floor", true},
        {"I won't come", "I will come", false},
        {"is the back door locked", "lock the back door", false},
        {"is the back door locked", "tell me if the back door is locked", true},
        {"is the back door locked", "please check whether the back door is locked", true},
        {"have you fed the cat", "you have fed the cat", false},
        {"do not open the door", "don't open the door", true},
        {"send Maria the invoice for May", "send me Maria's invoice for May", false},
        {"show my open invoices", "show me my open invoices", true},
        {"pay 250 euros to Lena", "Lena paid 250 euros", false},
        {"at sea level, what is the boiling point", "what is the boiling point at sea level", true},
        {"warmer than 20 °C", "warmer than 20 degrees celsius", true},
        {"warmer than 20°C", "warmer than 20 °F", false},
        {"", "", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *why = "";
        bool got = same_ask(cases[i].a, strlen(cases[i].a), cases[i].b, strlen(cases[i].b), &why);
        if (got != cases[i].same)
            fail_msg("'%s' and '%s': %s", cases[i].a, cases[i].b, got ? "the same" : why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_committed_pairs),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
