/* test_roll_call.c - who must be heard before a lost desired state is written back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cluster/control/desired.h"
#include "cluster/control/desired_code.h"
#include "cluster/control/roll_call.h"
#include "cluster/control/roll_code.h"

#define S UINT64_C(1000000000)
#define CALL 77u

static struct roll_call r;
static const struct roll_call_mark have = {12, 5};

static void heard(const char *name, uint64_t version, uint64_t writer, uint64_t number,
                  uint64_t at_ns)
{
    roll_call_heard(&r, name, (struct roll_call_mark){version, writer}, number, at_ns);
}

static bool complete(uint64_t at_ns)
{
    return roll_call_is_complete(&r, "me", have, at_ns);
}

static int set_up(void **state)
{
    (void)state;
    r = (struct roll_call){.n = 0};
    heard("a", 12, 5, 0, 99 * S);
    heard("b", 12, 5, 0, 99 * S);
    heard("long-gone", 12, 5, 0, 10 * S);
    heard("me", 11, 5, 0, 99 * S); /* it hears itself */
    roll_call_begin(&r, CALL, 100 * S);
    return 0;
}

static void test_all_that_were_there_answer(void **state)
{
    (void)state;
    heard("a", 12, 5, CALL, 100 * S + 1);
    assert_false(complete(102 * S));
    heard("b", 12, 5, CALL - 1, 101 * S); /* a heartbeat from before the call */
    assert_false(complete(102 * S));
    heard("b", 12, 5, CALL, 101 * S);
    assert_true(complete(102 * S));
}

static void test_nobody_is_overlooked_in_the_first_second(void **state)
{
    (void)state;
    heard("a", 12, 5, CALL, 100 * S);
    heard("b", 12, 5, CALL, 100 * S);
    assert_false(complete(100 * S + S / 2));
    heard("c", 12, 5, 0, 100 * S + S / 2); /* one that nobody knew of */
    assert_false(complete(101 * S));
    heard("c", 12, 5, CALL, 101 * S);
    assert_true(complete(101 * S));
}

static void test_then_a_majority_is_enough(void **state)
{
    (void)state;
    roll_call_name(&r, "away"); /* 2 of 4 are not more than half */
    heard("a", 12, 5, CALL, 101 * S);
    assert_false(complete(103 * S));
    heard("b", 12, 5, CALL, 103 * S);
    assert_true(complete(103 * S));
    assert_false(complete(102 * S + S / 2));
}

static void test_a_minority_decides_in_the_end(void **state)
{
    (void)state;
    assert_false(complete(129 * S));
    assert_true(complete(130 * S));
}

static void test_a_newer_copy_is_waited_for(void **state)
{
    (void)state;
    heard("a", 12, 5, CALL, 101 * S);
    heard("b", 13, 4, CALL, 101 * S);
    assert_false(complete(110 * S));
    heard("b", 12, 6, CALL, 101 * S); /* the same version of a later writer */
    assert_false(complete(110 * S));
    assert_true(roll_call_is_complete(&r, "me", (struct roll_call_mark){12, 6}, 110 * S));
    assert_true(complete(130 * S)); /* nobody has sent it */
}

static void test_the_next_loss_is_another_call(void **state)
{
    (void)state;
    roll_call_name(&r, "away");
    roll_call_begin(&r, 5, 110 * S); /* the call goes on */
    assert_int_equal(r.number, CALL);
    assert_int_equal(r.since_ns, 100 * S);
    roll_call_end(&r);
    roll_call_begin(&r, CALL + 1, 200 * S);
    heard("a", 12, 5, CALL, 200 * S);
    heard("b", 12, 5, CALL + 1, 200 * S);
    assert_false(complete(202 * S)); /* a has not answered this one; nobody names "away" */
    heard("a", 12, 5, CALL + 1, 200 * S);
    assert_true(complete(202 * S));
}

static void test_more_members_than_there_is_room_for(void **state)
{
    char name[16];
    (void)state;
    for (uint32_t i = 0; i < ROLL_CALL_MAX + 10; i++) {
        snprintf(name, sizeof(name), "m%u", i);
        heard(name, 12, 5, CALL, 101 * S + i);
    }
    assert_int_equal(r.n, ROLL_CALL_MAX);
    roll_call_name(&r, "another");
    assert_int_equal(r.n, ROLL_CALL_MAX);
    assert_true(complete(102 * S));
}

static void test_messages(void **state)
{
    struct desired *d;
    struct roll_code c;
    struct buf b, encoded;
    struct err e = {0};
    (void)state;
    buf_init(&b, 1 << 20);
    buf_init(&encoded, 1 << 20);
    assert_int_equal(roll_code_put_call(&b, CALL, have), 0);
    assert_int_equal(roll_code_parse(&c, b.data, b.len, &e), 0);
    assert_int_equal(c.number, CALL);
    assert_int_equal(c.have.version, 12);
    assert_int_equal(c.have.writer, 5);
    assert_null(c.state);
    roll_code_free(&c);
    assert_int_equal(roll_code_parse(&c, b.data, b.len - 1, &e), SHOAL_EFORMAT);
    assert_int_equal(desired_create(&d, &e), 0);
    d->version = 13;
    assert_int_equal(desired_code_put(&encoded, d, &e), 0);
    buf_clear(&b);
    assert_int_equal(roll_code_put_copy(&b, CALL, encoded.data, encoded.len), 0);
    assert_int_equal(roll_code_parse(&c, b.data, b.len, &e), 0);
    assert_non_null(c.state);
    assert_int_equal(c.state->version, 13);
    roll_code_free(&c);
    buf_clear(&b);
    assert_int_equal(roll_code_put_copy(&b, CALL, "nonsense", 8), 0);
    assert_true(roll_code_parse(&c, b.data, b.len, &e) < 0);
    assert_null(c.state);
    buf_clear(&b);
    assert_int_equal(roll_code_put_call(&b, 0, have), 0); /* a call has a number */
    assert_int_equal(roll_code_parse(&c, b.data, b.len, &e), SHOAL_EFORMAT);
    desired_destroy(d);
    buf_fini(&b);
    buf_fini(&encoded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all_that_were_there_answer, set_up),
        cmocka_unit_test_setup(test_nobody_is_overlooked_in_the_first_second, set_up),
        cmocka_unit_test_setup(test_then_a_majority_is_enough, set_up),
        cmocka_unit_test_setup(test_a_minority_decides_in_the_end, set_up),
        cmocka_unit_test_setup(test_a_newer_copy_is_waited_for, set_up),
        cmocka_unit_test_setup(test_the_next_loss_is_another_call, set_up),
        cmocka_unit_test_setup(test_more_members_than_there_is_room_for, set_up),
        cmocka_unit_test(test_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
