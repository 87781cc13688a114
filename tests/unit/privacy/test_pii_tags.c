/* test_pii_tags.c - what a tagger's labels mean, and how long texts are cut for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "privacy/pii_tags.h"

static void test_labels(void **state)
{
    static const char text[] = "Anna \"Ann\" Schmidt";
    struct pii_hit h;
    (void)state;
    assert_true(pii_tags_hit(&h, "person", text, 0, 4, PII_BY_MODEL));
    assert_int_equal(h.kind, PII_PERSON);
    assert_int_equal(h.end, 4);
    assert_true(pii_tags_hit(&h, "location", text, 0, sizeof(text) - 1, PII_BY_MODEL));
    assert_int_equal(h.kind, PII_PLACE);
    assert_int_equal(h.end, 5); /* before the quote */
    assert_false(pii_tags_hit(&h, "person", text, 5, 9, PII_BY_MODEL));
    assert_false(pii_tags_hit(&h, "person", text, 0, 4, PII_BIT(PII_PLACE)));
    assert_false(pii_tags_hit(&h, "device", text, 0, 4, PII_BY_MODEL));
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_labels),
                                       cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
