/* test_pseudonyms.c - a mark stands for one value of one conversation, and for nothing elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "flow/privacy/pseudonyms.h"

static const uint8_t key[PSEUDONYMS_KEY_BYTES] = {1, 2, 3};
static struct pseudonyms *all;
static struct arena a;

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    arena_init(&a, (size_t)64 << 20);
    return pseudonyms_create(&all, key, &e);
}

static int teardown(void **state)
{
    (void)state;
    pseudonyms_destroy(all);
    arena_fini(&a);
    return 0;
}

static struct pseudonyms_map turn(const char *tenant, const char *conversation)
{
    struct pseudonyms_map m;
    pseudonyms_map_init(&m, all, &a, tenant, conversation);
    return m;
}

static const char *mark(struct pseudonyms_map *m, enum pii_kind kind, const char *text)
{
    char *out = arena_zalloc(&a, PSEUDONYMS_MARK_BYTES);
    assert_non_null(out);
    assert_int_equal(pseudonyms_mark(m, kind, text, strlen(text), out), 0);
    return out;
}

/* Whether the mark stands for the text there; NULL: whether it stands for nothing. */
static bool means(struct pseudonyms_map *m, const char *what, const char *text)
{
    size_t n = 0;
    const char *found = pseudonyms_find(m, what, strlen(what), &n);
    return text ? found && n == strlen(text) && memcmp(found, text, n) == 0 : !found;
}

enum { MANY = 2000 }; /* so many that they share places */

/* Of the values that are kept, each comes back only in its own conversation. */
static void test_marks_mean_nothing_elsewhere(void **state)
{
    static const char *marks[MANY], *texts[MANY];
    struct pseudonyms_map first = turn("client", "one");
    uint32_t n_kept = 0;
    (void)state;
    for (uint32_t i = 0; i < MANY; i++) {
        texts[i] = arena_printf(&a, "user%u@example.org", i);
        marks[i] = mark(&first, PII_EMAIL, texts[i]);
        assert_true(means(&first, marks[i], texts[i]));
    }
    struct pseudonyms_map next = turn("client", "one"), other = turn("client", "two"),
                          stranger = turn("stranger", "one"), none = turn("client", "");
    for (uint32_t i = 0; i < MANY; i++) {
        bool kept = means(&next, marks[i], texts[i]);
        n_kept += kept;
        if (!kept && !means(&next, marks[i], NULL)) /* displaced, but never another one's */
            fail_msg("%s is another value", marks[i]);
        if (!means(&other, marks[i], NULL) || !means(&stranger, marks[i], NULL) ||
            !means(&none, marks[i], NULL))
            fail_msg("%s is known elsewhere", marks[i]);
    }
    assert_in_range(n_kept, MANY / 2, MANY);
}

/* Each client and conversation has marks of its own for the same value. */
static void test_marks_cannot_be_compared(void **state)
{
    struct pseudonyms_map maps[] = {turn("client", "one"), turn("client", "two"),
                                    turn("stranger", "one"), turn("client", "")};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(mark(&maps[i], PII_EMAIL, "a@b.org"),
                                    mark(&maps[k], PII_EMAIL, "a@b.org"));
    struct pseudonyms_map again = turn("client", "one");
    assert_string_equal(mark(&again, PII_EMAIL, "a@b.org"), mark(&maps[0], PII_EMAIL, "a@b.org"));
}

static void test_spellings_of_one_value(void **state)
{
    static const struct {
        enum pii_kind kind;
        const char *a, *b;
        bool same;
    } rows[] = {
        {PII_EMAIL, "Ann@Example.org", "ann@example.ORG", true},
        {PII_EMAIL, "a.nn@example.org", "ann@example.org", false},
        {PII_PHONE, "+44 20 7946-0958", "+442079460958", true},
        {PII_PHONE, "020 7946 0958", "+020 7946 0958", false},
        {PII_CARD, "4111 1111 1111 1111", "4111-1111-1111-1111", true},
        {PII_CARD, "4111 1111 1111 1111", "4111 1111 1111 1112", false},
        {PII_IBAN, "DE89 3704 0044", "de8937040044", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pseudonyms_map m = turn("client", "spellings");
        const char *first = mark(&m, rows[i].kind, rows[i].a);
        const char *second = mark(&m, rows[i].kind, rows[i].b);
        if ((strcmp(first, second) == 0) != rows[i].same)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
        assert_int_equal(m.n, rows[i].same ? 1 : 2);
        assert_true(means(&m, first, rows[i].a)); /* as it was written first */
    }
    struct pseudonyms_map m = turn("client", "kinds"); /* the kind counts, too */
    assert_string_not_equal(mark(&m, PII_PHONE, "5550100") + 6, mark(&m, PII_ID, "5550100") + 3);
}

static void test_marks_in_a_text(void **state)
{
    static const struct {
        const char *text;
        enum pseudonyms_scan want;
    } rows[] = {
        {"[email-0123abcd]", PSEUDONYMS_WHOLE},
        {"[EMAIL-0123ABCD]", PSEUDONYMS_WHOLE},
        {"[email-0123abcd] x", PSEUDONYMS_WHOLE},
        {"[email-0123abcd", PSEUDONYMS_PART},
        {"[", PSEUDONYMS_PART},
        {"[em", PSEUDONYMS_PART},
        {"[email-", PSEUDONYMS_PART},
        {"[email-0123abcg]", PSEUDONYMS_NO},
        {"[email-0123abcd)", PSEUDONYMS_NO},
        {"[email_0123abcd]", PSEUDONYMS_NO},
        {"[email-0123abc]", PSEUDONYMS_NO},
        {"[nothing-0123abcd]", PSEUDONYMS_NO},
        {"[email-0123abcde]", PSEUDONYMS_NO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t bytes = 0;
        if (pseudonyms_scan(rows[i].text, strlen(rows[i].text), &bytes) != rows[i].want)
            fail_msg("%s", rows[i].text);
        if (rows[i].want == PSEUDONYMS_WHOLE)
            assert_int_equal(bytes, 16);
    }
}

/* A request has room for so many values and no more; those that it has still work. */
static void test_a_request_has_a_limit(void **state)
{
    struct pseudonyms_map m = turn("client", "");
    char out[PSEUDONYMS_MARK_BYTES], text[32];
    (void)state;
    for (uint32_t i = 0; i <= PSEUDONYMS_MAX_VALUES; i++) {
        int n = snprintf(text, sizeof(text), "%u@x.org", i);
        int rc =
            pseudonyms_mark(&m, PII_EMAIL, arena_copy(&a, text, (size_t)n + 1), (size_t)n, out);
        assert_int_equal(rc, i < PSEUDONYMS_MAX_VALUES ? 0 : SHOAL_ELIMIT);
    }
    assert_true(means(&m, mark(&m, PII_EMAIL, "17@x.org"), "17@x.org"));
}

/* A client with many values displaces its own, not those of others. */
static void test_a_client_displaces_its_own(void **state)
{
    struct pseudonyms_map m = turn("anna", "one");
    const char *hers = mark(&m, PII_EMAIL, "anna@example.org");
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct pseudonyms_map flood = turn("ben", arena_printf(&a, "%u", i));
        for (uint32_t k = 0; k < MANY; k++)
            (void)mark(&flood, PII_EMAIL, arena_printf(&a, "user%u@example.org", k));
    }
    m = turn("anna", "one");
    assert_true(means(&m, hers, "anna@example.org"));
}

/* A long value comes back in its own request; the next one does not have it. */
static void test_long_values_are_not_kept(void **state)
{
    char text[322];
    (void)state;
    for (size_t n = 320; n <= 321; n++) {
        struct pseudonyms_map m = turn("client", "long"), next;
        memset(text, 'a' + (int)(n - 320), n);
        text[n] = '\0';
        const char *what = mark(&m, PII_EMAIL, text);
        assert_true(means(&m, what, text));
        next = turn("client", "long");
        assert_true(means(&next, what, n == 320 ? text : NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_marks_mean_nothing_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_marks_cannot_be_compared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_client_displaces_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_spellings_of_one_value, setup, teardown),
        cmocka_unit_test_setup_teardown(test_marks_in_a_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_request_has_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_values_are_not_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
