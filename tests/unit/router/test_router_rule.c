/* test_router_rule.c - rules on the properties of a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "router/router.h"

static char tier[] = "X-Tier", field[] = "metadata.size", *gold[] = {"gold", "silver"};
static char big[] = "big", *use_big[] = {big};

static const struct router_tag tags[] = {
    {ROUTER_FIELD_HEADER, "x-tier", "gold"},
    {ROUTER_FIELD_JSON, "metadata.size", "12.5"},
    {ROUTER_FIELD_JSON, "X-Tier", "iron"},
};
static const struct router_facts facts = {.path = "/v1/embeddings",
                                          .client = "app",
                                          .language = "de",
                                          .kind = "embed",
                                          .text = "Schreib ein Python-Programm für mich",
                                          .text_bytes = 37,
                                          .tags = tags,
                                          .n_tags = 3};

static bool matches(struct router_rule r, const char *pattern)
{
    struct err e = {0};
    r.use = use_big;
    r.n_use = 1;
    if (pattern && router_regex_create(&r.regex, pattern, &e) < 0)
        fail_msg("%s", e.msg);
    if (router_rule_check(&r, &e) < 0)
        fail_msg("%s", e.msg);
    bool m = router_rule_matches(&r, &facts);
    router_regex_destroy(r.regex);
    return m;
}

#define RULE(...) ((struct router_rule){__VA_ARGS__})

static void test_fields(void **state)
{
    (void)state;
    assert_true(matches(RULE(.field = ROUTER_FIELD_TEXT), "(?i)python|rust"));
    assert_true(matches(RULE(.field = ROUTER_FIELD_TEXT), "f\\x{fc}r"));
    assert_false(matches(RULE(.field = ROUTER_FIELD_TEXT), "^python"));
    assert_true(matches(RULE(.field = ROUTER_FIELD_TEXT, .negate = true), "^python"));
    assert_true(matches(RULE(.field = ROUTER_FIELD_PATH), "^/v1/emb"));
    assert_true(
        matches(RULE(.field = ROUTER_FIELD_HEADER, .name = tier, .is = gold, .n_is = 2), 0));
    assert_false(matches(RULE(.field = ROUTER_FIELD_JSON, .name = tier, .is = gold, .n_is = 2), 0));
    assert_false(matches(RULE(.field = ROUTER_FIELD_HEADER, .name = field), "."));
    assert_true(matches(RULE(.field = ROUTER_FIELD_KEY), "^app$"));
    assert_true(matches(RULE(.field = ROUTER_FIELD_LANGUAGE), "^de$"));
    assert_true(matches(RULE(.field = ROUTER_FIELD_KIND), "^embed$"));
    assert_true(matches(RULE(.field = ROUTER_FIELD_SIZE, .above_given = true, .above = 36), 0));
    assert_false(matches(RULE(.field = ROUTER_FIELD_SIZE, .above_given = true, .above = 37), 0));
    assert_true(matches(RULE(.field = ROUTER_FIELD_SIZE, .below_given = true, .below = 38), 0));
    assert_true(matches(
        RULE(.field = ROUTER_FIELD_JSON, .name = field, .above_given = true, .above = 12), 0));
    assert_false(matches(
        RULE(.field = ROUTER_FIELD_HEADER, .name = tier, .below_given = true, .below = 1e9), 0));
}

static void test_hard_texts_end(void **state)
{
    struct router_regex *x;
    struct err e = {0};
    char text[4096];
    (void)state;
    /* exponential in the length of the text, if nothing stops it */
    assert_int_equal(router_regex_create(&x, "^(a+)+$", &e), 0);
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = 'b';
    assert_false(router_regex_matches(x, text, sizeof(text)));
    assert_true(router_regex_matches(x, "aaa", 3));
    assert_false(router_regex_matches(x, "a\xff", 2)); /* not UTF-8 */
    router_regex_destroy(x);
    assert_int_equal(router_regex_create(&x, "a(b", &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "character"));
    char *large = mem_zalloc(2000);
    assert_non_null(large);
    memset(large, 'x', 1999);
    assert_int_equal(router_regex_create(&x, large, &e), SHOAL_EINVAL);
    mem_free(large);
}

static void test_rules_are_checked(void **state)
{
    struct router_regex *x = NULL;
    struct err e = {0};
    (void)state;
    assert_int_equal(router_regex_create(&x, "a", &e), 0);
    const struct router_rule wrong[] = {
        RULE(.field = ROUTER_FIELD_HEADER, .regex = x, .use = use_big, .n_use = 1),
        RULE(.field = ROUTER_FIELD_TEXT, .name = tier, .regex = x, .use = use_big, .n_use = 1),
        RULE(.field = ROUTER_FIELD_TEXT, .use = use_big, .n_use = 1),
        RULE(.field = ROUTER_FIELD_TEXT, .regex = x, .is = gold, .n_is = 2, .use = use_big,
             .n_use = 1),
        RULE(.field = ROUTER_FIELD_SIZE, .regex = x, .use = use_big, .n_use = 1),
        RULE(.field = ROUTER_FIELD_TEXT, .above_given = true, .use = use_big, .n_use = 1),
        RULE(.field = ROUTER_FIELD_TEXT, .regex = x),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        e.msg[0] = '\0';
        assert_int_equal(router_rule_check(&wrong[i], &e), SHOAL_EINVAL);
        assert_true(e.msg[0]);
    }
    router_regex_destroy(x);
}

static void test_first_rule_that_matches_counts(void **state)
{
    static char small[] = "small", *use_small[] = {small};
    struct router_model models[] = {{.name = small, .quality = 0.5}, {.name = big, .quality = 0.9}};
    const struct router_candidate c[] = {{.model = &models[0]}, {.model = &models[1]}};
    struct router_rule rules[] = {RULE(.field = ROUTER_FIELD_SIZE, .above_given = true,
                                       .above = 1000, .use = use_big, .n_use = 1),
                                  RULE(.field = ROUTER_FIELD_SIZE, .above_given = true, .above = 10,
                                       .use = use_small, .n_use = 1),
                                  RULE(.field = ROUTER_FIELD_SIZE, .above_given = true, .above = 0,
                                       .use = use_big, .n_use = 1)};
    struct router_route r = {.models = models, .n_models = 2, .rules = rules, .n_rules = 3};
    struct router_request q = {.facts = facts};
    struct router_decision d;
    struct err e = {0};
    (void)state;
    assert_int_equal(router_policy_add(&r.policy, "quality", &e), 0);
    router_decide(&d, &r, &q, c, 2);
    assert_int_equal(d.rule, 1);
    assert_int_equal(d.chosen, 0);
    assert_int_equal(d.verdicts[1], ROUTER_BY_RULE);
    r.n_rules = 1;
    router_decide(&d, &r, &q, c, 2);
    assert_int_equal(d.rule, -1);
    assert_int_equal(d.chosen, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_hard_texts_end),
        cmocka_unit_test(test_rules_are_checked),
        cmocka_unit_test(test_first_rule_that_matches_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
