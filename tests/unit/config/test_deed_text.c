/* test_deed_text.c - templates of topics, URLs and payloads: what is filled in, escaped, found
 * again, and which things a pattern means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/deed_text.h"
#include "support/dice.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))

static void test_values_are_escaped(void **state)
{
    static const struct {
        const char *pattern;
        enum deed_text_form form;
        const char *want;
    } rows[] = {
        {"{id} {ability} {value} {unit} {action}", DEED_TEXT_PLAIN, "a/b c \"d\" % set"},
        {"{id}{id}", DEED_TEXT_PLAIN, "a/ba/b"},
        {"{\"v\":\"{value}\"}", DEED_TEXT_JSON, "{\"v\":\"\\\"d\\\"\"}"},
        {"/x/{id}?v={value}&u={unit}", DEED_TEXT_URL, "/x/a%2Fb?v=%22d%22&u=%25"},
        {"/a-b._~AZ09/{action}", DEED_TEXT_URL, "/a-b._~AZ09/set"},
        {"{ID} {id {} }", DEED_TEXT_PLAIN, "{ID} {id {} }"},
        {"", DEED_TEXT_PLAIN, ""},
    };
    const struct deed_text_facts f = {"a/b", "c", "\"d\"", "%", "set"}, none = {0};
    struct buf b;
    (void)state;
    buf_init(&b, 1024);
    for (size_t i = 0; i < N(rows); i++) {
        buf_clear(&b);
        deed_text_fill(&b, rows[i].pattern, &f, rows[i].form);
        assert_string_equal(buf_str(&b), rows[i].want);
    }
    buf_clear(&b);
    deed_text_fill(&b, "-{unit}-", &none, DEED_TEXT_URL); /* what is not known is nothing */
    assert_string_equal(buf_str(&b), "--");
    buf_clear(&b);
    deed_text_fill(&b, "{value}", &(struct deed_text_facts){.value = "-._~azAZ09 \xc3\xa4"},
                   DEED_TEXT_URL);
    assert_string_equal(buf_str(&b), "-._~azAZ09%20%C3%A4");
    buf_fini(&b);
    buf_init(&b, 4); /* no room: the failure stays */
    deed_text_fill(&b, "{value}", &(struct deed_text_facts){.value = "123456"}, DEED_TEXT_JSON);
    assert_true(b.rc < 0);
    buf_fini(&b);
}

static void test_words(void **state)
{
    static const char *const good[] = {"",      "{id}", "a{unit}b", "{\"a\":1}", "{}",
                                       "{a b}", "{A}",  "{id}{",    "{1}"};
    static const char *const bad[] = {"{thing}", "{id}{ids}", "{i}", "{i_d}"};
    (void)state;
    for (size_t i = 0; i < N(good); i++)
        assert_true(deed_text_ok(good[i]));
    for (size_t i = 0; i < N(bad); i++)
        assert_false(deed_text_ok(bad[i]));
}

/* A state's topic is heard by its filter, and gives back what its pattern was filled with. */
static void test_topics_are_found_again(void **state)
{
    static const struct {
        const char *pattern, *filter; /* NULL: none */
    } rows[] = {
        {"z/{id}/{ability}", "z/+/+"},
        {"{id}", "+"},
        {"{id}/x", "+/x"},
        {"z/x", "z/x"},
        {"z/a{id}", NULL},
        {"z/{id}a", NULL},
        {"z/{value}", NULL},
        {"z/#", NULL},
        {"z/+", NULL},
        {"", NULL},
    };
    static const struct {
        const char *pattern, *topic, *id, *ability; /* id NULL: no match */
    } topics[] = {
        {"z/{id}/{ability}", "z/lamp/power", "lamp", "power"},
        {"z/{id}/{ability}", "z/lamp", NULL, NULL},
        {"z/{id}/{ability}", "z/lamp/power/x", NULL, NULL},
        {"z/{id}/{ability}", "y/lamp/power", NULL, NULL},
        {"z/{id}", "z/lam", "lam", ""},
        {"zz/{id}", "z/lamp", NULL, NULL},
        {"z/{id}", "zz/lamp", NULL, NULL},
        {"{ability}/{id}", "power/lamp", "lamp", "power"},
        {"z/x", "z/x", "", ""},
        {"z/{id}/x", "z//x", "", ""},
    };
    char filter[16];
    struct str id, ability;
    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        assert_int_equal(deed_text_filter(filter, sizeof(filter), rows[i].pattern),
                         rows[i].filter != NULL);
        if (rows[i].filter)
            assert_string_equal(filter, rows[i].filter);
    }
    assert_true(deed_text_filter(filter, 6, "z/{id}/{ability}")); /* z/+/+ and its end */
    assert_false(deed_text_filter(filter, 5, "z/{id}/{ability}"));
    assert_false(deed_text_filter(filter, 0, "z"));
    for (size_t i = 0; i < N(topics); i++) {
        const bool found = deed_text_match(topics[i].pattern, topics[i].topic, &id, &ability);
        assert_int_equal(found, topics[i].id != NULL);
        if (!found)
            continue;
        assert_int_equal(id.n, strlen(topics[i].id));
        assert_memory_equal(id.p ? id.p : "", topics[i].id, id.n);
        assert_int_equal(ability.n, strlen(topics[i].ability));
        assert_memory_equal(ability.p ? ability.p : "", topics[i].ability, ability.n);
    }
}

/* The same, by its definition. */
static bool fits(const char *pattern, const char *name)
{
    if (*pattern == '*')
        return fits(pattern + 1, name) || (*name && fits(pattern, name + 1));
    return *pattern == *name && (!*name || fits(pattern + 1, name + 1));
}

static void any_text(char *out, uint32_t most, const char *letters)
{
    const uint32_t n = dice_below(most + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = letters[dice_below((uint32_t)strlen(letters))];
    out[n] = '\0';
}

static void test_patterns_of_things(void **state)
{
    uint32_t n_fit = 0;
    char pattern[8], name[10];
    (void)state;
    dice_seed(3);
    for (int i = 0; i < 50000; i++) {
        any_text(pattern, sizeof(pattern) - 1, "ab*");
        any_text(name, sizeof(name) - 1, "ab");
        const bool want = fits(pattern, name);
        n_fit += want;
        if (deed_text_glob(pattern, name) != want)
            fail_msg("%s and %s", pattern, name);
    }
    assert_in_range(n_fit, 1000, 49000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_escaped),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_topics_are_found_again),
        cmocka_unit_test(test_patterns_of_things),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
