/* test_roles.c - cluster/trust/roles.h: names to bits and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/trust/roles.h"

static void test_names_become_bits(void **state)
{
    (void)state;
    unsigned r = 0;
    char text[64];
    assert_int_equal(roles_parse(&r, "node,gateway", NULL), 0);
    assert_int_equal(r, ROLE_NODE | ROLE_GATEWAY);
    roles_text(text, sizeof(text), r);
    assert_string_equal(text, "gateway,node");
    assert_int_equal(roles_parse(&r, "admin", NULL), 0);
    assert_int_equal(r, ROLE_ADMIN);
    roles_text(text, sizeof(text), 0);
    assert_string_equal(text, "");
    roles_text(text, 5, ROLE_CONTROLLER); /* truncated, with its NUL */
    assert_string_equal(text, "cont");
}

static void test_wrong_names(void **state)
{
    (void)state;
    unsigned r = 0;
    struct err e = {0};
    assert_int_equal(roles_parse(&r, "node,king", &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "'king'"));
    assert_int_equal(roles_parse(&r, "nod", &e), SHOAL_EINVAL);
    assert_int_equal(roles_parse(&r, "", &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "no role"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_become_bits),
                                       cmocka_unit_test(test_wrong_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
