/* test_cluster_findings.c - what `shoal cluster doctor` says about a shoal that a gateway
 * describes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/cluster/cluster_findings.h"

static struct cluster_finding found[CLUSTER_FINDINGS_MAX];

static size_t look(const char *nodes)
{
    char text[2048];
    snprintf(text, sizeof(text),
             "{\"nats\":\"up\",\"controller\":\"a\",\"member\":\"a\",\"nodes\":[%s]}", nodes);
    cJSON *o = cJSON_Parse(text);
    assert_non_null(o);
    memset(found, 0, sizeof(found));
    const size_t n = cluster_findings(found, o, 1000000000);
    cJSON_Delete(o);
    return n;
}

static void test_a_shoal_that_is_well(void **state)
{
    (void)state;
    assert_int_equal(look("{\"name\":\"a\",\"address\":\"h:1\",\"state\":\"ready\",\"self\":true},"
                          "{\"name\":\"b\",\"address\":\"h:2\",\"state\":\"ready\"}"),
                     0);
}

/* Both run; one that moved to another address is no twin of what it was. */
static void test_two_processes_with_one_certificate(void **state)
{
    (void)state;
    assert_int_equal(look("{\"name\":\"a\",\"address\":\"h:1\",\"state\":\"ready\",\"self\":true},"
                          "{\"name\":\"b\",\"address\":\"h:2\",\"state\":\"ready\"},"
                          "{\"name\":\"b\",\"address\":\"h:3\",\"state\":\"ready\"}"),
                     1);
    assert_true(found[0].error);
    assert_string_equal(found[0].where, "b");
    assert_non_null(strstr(found[0].what, "two processes run under this name, at h:2 and h:3"));
    assert_non_null(strstr(found[0].fix, "shoal ca issue"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(look(i ? "{\"name\":\"b\",\"address\":\"h:2\",\"state\":\"ready\"},"
                                  "{\"name\":\"b\",\"address\":\"h:3\",\"state\":\"lost\"}"
                                : "{\"name\":\"b\",\"address\":\"h:2\",\"state\":\"unknown\"},"
                                  "{\"name\":\"b\",\"address\":\"h:3\",\"state\":\"ready\"}"),
                         1);
        assert_non_null(strstr(found[0].what, "it is not heard"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_shoal_that_is_well),
                                       cmocka_unit_test(test_two_processes_with_one_certificate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
