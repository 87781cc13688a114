/* test_pii_tags.c - the meaning of a tagger's labels, and how long texts are split for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "privacy/pii_tags.h"

static bool hit(struct pii_hit *h, const char *label, const char *text, size_t start, size_t end,
                unsigned kinds)
{
    const struct pii_tag tag = {label, start, end, 0.5f};
    return pii_tags_hit(h, &tag, text, kinds);
}

static void test_labels(void **state)
{
    static const char text[] = "Anna \"Ann\" Schmidt";
    struct pii_hit h;
    (void)state;
    assert_true(hit(&h, "person", text, 0, 4, PII_BY_MODEL));
    assert_int_equal(h.kind, PII_PERSON);
    assert_int_equal(h.end, 4);
    assert_true(hit(&h, "location", text, 0, sizeof(text) - 1, PII_BY_MODEL));
    assert_int_equal(h.kind, PII_PLACE);
    assert_int_equal(h.end, 5); /* before the quote */
    assert_false(hit(&h, "person", text, 5, 9, PII_BY_MODEL));
    assert_false(hit(&h, "person", text, 0, 4, PII_BIT(PII_PLACE)));
    assert_false(hit(&h, "place", "1995-07-22", 0, 10, PII_BY_MODEL));
    assert_false(hit(&h, "device", text, 0, 4, PII_BY_MODEL));
}

/* "grazie" is not a person; "maria" in a chat is. */
static void test_a_name_without_a_capital_must_be_certain(void **state)
{
    struct pii_hit h;
    (void)state;
    assert_true(
        pii_tags_hit(&h, &(struct pii_tag){"person", 5, 10, 0.5f}, "call Maria", PII_BY_MODEL));
    assert_true(
        pii_tags_hit(&h, &(struct pii_tag){"person", 5, 10, 0.99f}, "call maria", PII_BY_MODEL));
    assert_false(
        pii_tags_hit(&h, &(struct pii_tag){"person", 5, 11, 0.9f}, "ecco grazie", PII_BY_MODEL));
    assert_true(pii_tags_hit(&h, &(struct pii_tag){"person", 5, 11, 0.5f}, "call \xc3\x89mile",
                             PII_BY_MODEL));
    assert_true(
        pii_tags_hit(&h, &(struct pii_tag){"place", 3, 9, 0.5f}, "in london", PII_BY_MODEL));
}

/* Pieces cover the text, and end at blanks or between characters. */
static void test_pieces(void **state)
{
    static const char *const fills[] = {"word ", "\xc3\xa9", "x"};
    char text[4000];
    (void)state;
    for (size_t f = 0; f < 3; f++) {
        size_t n = 0, k = strlen(fills[f]);
        while (n + k < sizeof(text)) {
            memcpy(text + n, fills[f], k);
            n += k;
        }
        for (size_t at = 0, end; at < n; at = end) {
            end = pii_tags_piece_end(text, n, at);
            assert_true(end > at && end - at <= 400);
            if (f == 0 && end < n)
                assert_int_equal(text[end], ' ');
            if (f == 1)
                assert_int_equal(end % 2, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_a_name_without_a_capital_must_be_certain),
        cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
