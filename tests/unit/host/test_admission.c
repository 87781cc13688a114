/* test_admission.c - keys, rates and slots in flight. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "host/admission.h"

/* A name is kept whole or refused: one that is cut could be another's. */
static void test_names(void **state)
{
    char longest[65] = {0};
    struct admission_key key = {.name = longest};
    struct admission_opts o = {&key, 1, 3, NULL};
    struct admission *all;
    (void)state;
    assert_true(admission_hash("secret", 6, key.sha256));
    memset(longest, 'x', 64);
    assert_int_equal(admission_create(&all, &o, NULL), SHOAL_EINVAL);
    longest[63] = '\0';
    assert_int_equal(admission_create(&all, &o, NULL), 0);
    assert_string_equal(admission_find(all, "secret", 6)->name, longest);
    admission_destroy(all);
    assert_false(admission_name_ok(""));
    assert_false(admission_name_ok("a\nb"));
    assert_false(admission_name_ok("a\x7f"));
    assert_true(admission_name_ok("Zo\xc3\xab's phone"));
}

static void test_keys_have_rates_and_places(void **state)
{
    struct admission_key key = {
        .name = (char[]){"a"}, .rate = 0.001, .burst = 2, .max_in_flight = 5};
    struct admission_opts o = {&key, 1, 3, NULL};
    struct admission *all;
    uint32_t retry, most;
    (void)state;
    assert_true(admission_hash("secret", 6, key.sha256));
    key.sha256[5] = 'x';
    assert_int_equal(admission_create(&all, &o, NULL), SHOAL_EINVAL);
    assert_true(admission_hash("secret", 6, key.sha256));
    assert_int_equal(admission_create(&all, &o, NULL), 0);
    assert_true(admission_needed(all));
    assert_null(admission_find(all, "Secret", 6));
    struct admission_client *a = admission_find(all, "secret", 6);
    assert_non_null(a);
    assert_string_equal(a->name, "a");
    assert_ptr_equal(admission_find_name(all, "a"), a);
    assert_null(admission_find_name(all, "b"));
    assert_int_equal(admission_enter(all, a, &retry), ADMISSION_OK);
    assert_int_equal(admission_enter(all, a, &retry), ADMISSION_OK);
    assert_int_equal(admission_enter(all, a, &retry), ADMISSION_RATE);
    assert_true(retry > 500000);
    assert_int_equal(admission_enter(all, NULL, &retry), ADMISSION_OK);
    assert_int_equal(admission_enter(all, NULL, &retry), ADMISSION_FULL);
    assert_int_equal(admission_in_flight(all), 3);
    admission_leave(all, a, 1);
    assert_int_equal(admission_in_flight(all), 2);
    assert_int_equal(admission_enter_more(all, a, 2, &most), ADMISSION_FULL);
    assert_int_equal(most, 3);
    assert_int_equal(admission_enter_more(all, a, 1, &most), ADMISSION_OK);
    assert_int_equal(admission_enter(all, NULL, &retry), ADMISSION_FULL);
    admission_leave(all, a, 1);
    assert_int_equal(admission_enter(all, NULL, &retry), ADMISSION_OK);
    o.n_keys = 0; /* a reload without the key */
    assert_int_equal(admission_reload(all, &o, NULL), 0);
    assert_null(admission_find(all, "secret", 6));
    assert_null(admission_find_name(all, "a"));
    assert_false(admission_needed(all));
    admission_leave(all, a, 1); /* a client inside may still leave */
    o.n_keys = 1;
    assert_int_equal(admission_reload(all, &o, NULL), 0); /* it comes back with its counters */
    assert_ptr_equal(admission_find(all, "secret", 6), a);
    key.priority = 7; /* a thread with the old client keeps its data */
    for (uint64_t n = 1; n <= 2; n++) {
        mem_fail_at(n);
        assert_int_equal(admission_reload(all, &o, NULL), SHOAL_ENOMEM);
        mem_fail_at(0);
        assert_ptr_equal(admission_find(all, "secret", 6), a);
    }
    assert_int_equal(admission_reload(all, &o, NULL), 0);
    struct admission_client *b = admission_find(all, "secret", 6);
    assert_true(b != a && b->priority == 7 && a->priority == 0);
    admission_destroy(all);
}

struct reader {
    struct admission *all;
    _Atomic bool stop;
    uint32_t n, n_torn;
};

static void *read_keys(void *arg)
{
    struct reader *r = arg;
    while (!r->stop || r->n == 0) {
        struct admission_client *c = admission_find(r->all, "secret", 6);
        r->n_torn += !c || c->priority != (c->name[0] == 'a' ? 1 : 2) || strlen(c->name) != 40;
        r->n++;
    }
    return NULL;
}

/* Other threads read a client that they found, without the lock, while keys change. */
static void test_keys_change_while_they_are_read(void **state)
{
    char names[2][41];
    struct admission_key keys[2] = {{.priority = 1}, {.priority = 2}};
    struct reader r = {.n = 0};
    pthread_t thread;
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof(names[i]), "%c%039d", 'a' + i, 0);
        keys[i].name = names[i];
        assert_true(admission_hash("secret", 6, keys[i].sha256));
    }
    assert_int_equal(admission_create(&r.all, &(struct admission_opts){keys, 1, 0, NULL}, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_keys, &r), 0);
    for (int i = 0; i < 2000; i++) {
        const struct admission_opts o = {&keys[i % 2], 1, 0, NULL};
        assert_int_equal(admission_reload(r.all, &o, NULL), 0);
    }
    r.stop = true;
    pthread_join(thread, NULL);
    assert_int_equal(r.n_torn, 0);
    admission_destroy(r.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_keys_have_rates_and_places),
        cmocka_unit_test(test_keys_change_while_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
