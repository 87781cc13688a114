/* Energy shared out among requests by their compute, driven by a made counter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/energy_ledger.h"
#include "support/made_tree.h"

static const struct energy_model none;

static void assert_near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-9);
}

static void set(const struct made_tree *t, double joules)
{
    char text[32];
    snprintf(text, sizeof(text), "%.0f\n", joules * 1e6);
    made_tree_put(t, "class/powercap/intel-rapl:0/energy_uj", text);
}

static void test_shares(void **state)
{
    struct energy_account a, b;
    struct energy_figures f;
    struct energy_ledger *l;
    struct made_tree t;
    struct err e = {0};
    (void)state;
    made_tree_open(&t);
    made_tree_put(&t, "class/powercap/intel-rapl:0/name", "package-0\n");
    set(&t, 100);
    assert_int_equal(energy_ledger_create(&l, t.root, &none, &e), 0);
    set(&t, 110);
    energy_account_begin(l, &a); /* 10 J before it: idle */
    energy_account_work(l, &a, 50);
    set(&t, 116);
    energy_account_begin(l, &b); /* 6 J: of a alone */
    energy_account_work(l, &a, 80);
    energy_account_work(l, &b, 10);
    energy_account_work(l, &b, 5); /* less than before: ignored */
    set(&t, 124);
    assert_near(energy_account_end(l, &b), 8.0 * 10 / 40);
    energy_account_work(l, &b, 1000); /* it has ended */
    assert_near(energy_account_end(l, &b), 2.0);
    set(&t, 125); /* no new work: a is the only one */
    assert_near(energy_account_end(l, &a), 6 + 6 + 1);
    set(&t, 130);
    energy_ledger_figures(l, &f);
    assert_near(f.request_joules, 15);
    assert_near(f.idle_joules, 15);
    assert_true(f.kind == ENERGY_RAPL && !f.estimated);
    energy_ledger_destroy(l);
    made_tree_close(&t);
}

/* Without a ledger nothing is counted. */
static void test_nothing(void **state)
{
    struct energy_account a;
    (void)state;
    energy_account_begin(NULL, &a);
    energy_account_work(NULL, &a, 1);
    assert_true(energy_account_end(NULL, &a) == 0);
    energy_ledger_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
