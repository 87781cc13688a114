/* test_prom_in.c - samples of a page of metrics. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/prom_in.h"

static const char page[] =
    "# HELP a_total text\n# TYPE a_total counter\na_total 3\n"
    "b{model=\"x\\\"}y\",le=\"+Inf\"} 1e3 # {trace_id=\"7\"} 0.5\n"
    "\nbroken{model=\"x} 3\nno_value\nnan_value{} NaN\nbad 3x\n{x=\"y\"} 1\nlast -2.5";

static void test_samples(void **state)
{
    const char *p = page, *end = page + strlen(page);
    struct prom_sample s;
    char label[16], cut[3];
    (void)state;
    assert_true(prom_in_next(&p, end, &s));
    assert_true(prom_in_is(&s, "a_total") && !prom_in_is(&s, "a") && s.value == 3.0);
    assert_false(prom_in_label(&s, "model", label, sizeof(label)));
    assert_true(prom_in_next(&p, end, &s));
    assert_true(prom_in_is(&s, "b") && s.value == 1000.0); /* an exemplar is not part of it */
    assert_true(prom_in_label(&s, "model", label, sizeof(label)));
    assert_string_equal(label, "x\"}y");
    assert_true(prom_in_label(&s, "le", label, sizeof(label)));
    assert_string_equal(label, "+Inf");
    assert_true(prom_in_label(&s, "model", cut, sizeof(cut)));
    assert_string_equal(cut, "x\"");
    assert_false(prom_in_label(&s, "mode", label, sizeof(label)));
    assert_true(prom_in_next(&p, end, &s));
    assert_true(prom_in_is(&s, "nan_value") && isnan(s.value));
    assert_true(prom_in_next(&p, end, &s));
    assert_true(prom_in_is(&s, "last") && s.value == -2.5);
    assert_false(prom_in_next(&p, end, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
