/* test_deferred_store.c - requests that are answered later: order, retries, keys, limits,
 * expiry, and what another process or a restart finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/deferred_store.h"

#define MINUTE 60000
#define T0 1000000000000 /* ms: any time */

static char dir[64], path[96];
static const struct deferred_store_opts usual = {
    .max_requests = 100, .max_bytes = 1 << 20, .keep_ms = MINUTE};

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-deferred-XXXXXX");
    bool ok = mkdtemp(dir) != NULL;
    snprintf(path, sizeof(path), "%s/d.db", dir);
    return ok ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static struct deferred_store *open_store(const struct deferred_store_opts *o)
{
    struct deferred_store *s;
    struct err e = {0};
    if (deferred_store_open(&s, path, o, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static int put(struct deferred_store *s, const char *client, const char *body, const char *key,
               int64_t now, int64_t expires, char *id)
{
    struct deferred_item r = {.client = client,
                              .path = "/v1/score",
                              .query = "",
                              .headers = "x-a\0b",
                              .n_headers = 6,
                              .body = body,
                              .n_body = strlen(body)};
    uint8_t digest[DEFERRED_STORE_DIGEST_BYTES] = {0}, k[DEFERRED_STORE_DIGEST_BYTES] = {0};
    char unused[DEFERRED_STORE_ID_BYTES];
    struct err e = {0};
    snprintf((char *)digest, sizeof(digest), "%.30s", body);
    snprintf((char *)k, sizeof(k), "%s", key ? key : "");
    return deferred_store_put(s, &r, digest, key ? k : NULL, now, expires, id ? id : unused, &e);
}

/* The body of the request that is due; "": none. */
static const char *take(struct deferred_store *s, int64_t now, struct deferred_item *r,
                        struct arena *a)
{
    int64_t next;
    struct err e = {0};
    int rc = deferred_store_take(s, now, r, a, &next, &e);
    if (rc < 0)
        fail_msg("%s", e.msg);
    if (rc == 0)
        assert_true(next > now && next <= now + MINUTE);
    return rc == 1 ? r->body : "";
}

static enum deferred_state state_of(struct deferred_store *s, const char *client, const char *id,
                                    const char *answer)
{
    struct deferred_view v;
    struct buf b;
    struct err e = {0};
    buf_init(&b, 10000);
    if (deferred_store_show(s, client, id, &v, &b, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(buf_str(&b), answer);
    buf_fini(&b);
    return v.state;
}

static void test_a_request_waits_runs_and_is_answered(void **state)
{
    struct deferred_store *s = open_store(&usual);
    char first[DEFERRED_STORE_ID_BYTES], second[DEFERRED_STORE_ID_BYTES];
    struct deferred_item r;
    struct arena a;
    struct err e = {0};
    (void)state;
    arena_init(&a, 100000);
    assert_int_equal(put(s, "ann", "one", NULL, T0, T0 + MINUTE, first), 0);
    assert_int_equal(put(s, "ann", "two", NULL, T0 + 1, T0 + MINUTE, second), 0);
    assert_string_equal(take(s, T0 + 2, &r, &a), "one");
    assert_string_equal(r.id, first);
    assert_string_equal(r.client, "ann");
    assert_string_equal(r.path, "/v1/score");
    assert_int_equal(r.n_headers, 6);
    assert_memory_equal(r.headers, "x-a\0b", 6);
    assert_int_equal(r.n_tries, 0);
    assert_int_equal(state_of(s, "ann", first, ""), DEFERRED_RUNNING);
    assert_int_equal(deferred_store_put_back(s, first, T0 + 1000, "no node", &e), 0);
    assert_string_equal(take(s, T0 + 3, &r, &a), "two"); /* the first is not due */
    assert_int_equal(deferred_store_finish(s, second, T0 + 4, 200, "application/json", "{}", 2, &e),
                     0);
    assert_int_equal(state_of(s, "ann", second, "{}"), DEFERRED_DONE);
    assert_string_equal(take(s, T0 + 5, &r, &a), "");
    assert_string_equal(take(s, T0 + 1000, &r, &a), "one");
    assert_int_equal(r.n_tries, 1);
    arena_fini(&a);
    deferred_store_close(s);
}

static void test_a_restart_runs_what_was_taken_again(void **state)
{
    struct deferred_store *s = open_store(&usual), *other;
    struct deferred_item r;
    struct arena a;
    struct err e = {0};
    (void)state;
    arena_init(&a, 100000);
    assert_int_equal(put(s, "", "one", NULL, T0, T0 + MINUTE, NULL), 0);
    assert_string_equal(take(s, T0, &r, &a), "one");
    assert_string_equal(take(s, T0, &r, &a), "");
    assert_int_equal(deferred_store_open(&other, path, &usual, &e), SHOAL_EBUSY);
    deferred_store_close(s);
    s = open_store(&usual);
    assert_string_equal(take(s, T0, &r, &a), "one");
    arena_fini(&a);
    deferred_store_close(s);
}

static void test_a_key_makes_one_request(void **state)
{
    struct deferred_store *s = open_store(&usual);
    char first[DEFERRED_STORE_ID_BYTES], again[DEFERRED_STORE_ID_BYTES];
    (void)state;
    assert_int_equal(put(s, "ann", "one", "k", T0, T0 + MINUTE, first), 0);
    assert_int_equal(put(s, "ann", "one", "k", T0, T0 + MINUTE, again), 1);
    assert_string_equal(first, again);
    assert_int_equal(put(s, "ann", "two", "k", T0, T0 + MINUTE, again), SHOAL_EINVAL);
    assert_int_equal(put(s, "bob", "two", "k", T0, T0 + MINUTE, again), 0);
    assert_string_not_equal(first, again);
    deferred_store_close(s);
}

static void test_others_do_not_see_it(void **state)
{
    struct deferred_store *s = open_store(&usual);
    char id[DEFERRED_STORE_ID_BYTES];
    struct deferred_view v;
    struct buf b;
    struct err e = {0};
    (void)state;
    buf_init(&b, 100);
    assert_int_equal(put(s, "ann", "one", NULL, T0, T0 + MINUTE, id), 0);
    assert_int_equal(deferred_store_show(s, "bob", id, &v, &b, &e), SHOAL_ENOTFOUND);
    assert_int_equal(deferred_store_show(s, "", id, &v, &b, &e), SHOAL_ENOTFOUND);
    assert_int_equal(deferred_store_drop(s, "bob", id, &e), SHOAL_ENOTFOUND);
    assert_int_equal(deferred_store_drop(s, "ann", id, &e), 0);
    assert_int_equal(deferred_store_show(s, "ann", id, &v, &b, &e), SHOAL_ENOTFOUND);
    buf_fini(&b);
    deferred_store_close(s);
}

static void test_requests_expire_and_answers_are_forgotten(void **state)
{
    struct deferred_store *s = open_store(&usual);
    char id[DEFERRED_STORE_ID_BYTES];
    struct deferred_item r;
    struct deferred_view v;
    struct arena a;
    struct buf b;
    struct err e = {0};
    (void)state;
    arena_init(&a, 100000);
    buf_init(&b, 10000);
    assert_int_equal(put(s, "", "one", NULL, T0, T0 + 10, id), 0);
    assert_string_equal(take(s, T0 + 10, &r, &a), "");
    assert_int_equal(state_of(s, "", id, ""), DEFERRED_EXPIRED);
    assert_string_equal(take(s, T0 + 10 + MINUTE, &r, &a), "");
    assert_int_equal(deferred_store_show(s, "", id, &v, &b, &e), SHOAL_ENOTFOUND);
    buf_fini(&b);
    arena_fini(&a);
    deferred_store_close(s);
}

static void test_the_store_is_bounded(void **state)
{
    const struct deferred_store_opts few = {
        .max_requests = 8, .max_bytes = 4000, .keep_ms = MINUTE};
    struct deferred_store *s = open_store(&few);
    char ids[3][DEFERRED_STORE_ID_BYTES], large[3000];
    struct deferred_item r;
    struct deferred_view v;
    struct arena a;
    struct buf b;
    struct err e = {0};
    (void)state;
    arena_init(&a, 100000);
    buf_init(&b, 10000);
    memset(large, 'a', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    assert_int_equal(put(s, "ann", "1", NULL, T0, T0 + MINUTE, ids[0]), 0);
    assert_int_equal(put(s, "ann", "2", NULL, T0 + 1, T0 + MINUTE, ids[1]), 0);
    assert_int_equal(put(s, "ann", "3", NULL, T0, T0 + MINUTE, NULL), SHOAL_ELIMIT); /* a quarter */
    assert_int_equal(put(s, "", large, NULL, T0, T0 + MINUTE, NULL), SHOAL_ELIMIT);
    assert_int_equal(put(s, "bob", "3", NULL, T0 + 2, T0 + MINUTE, ids[2]), 0);
    for (int i = 0; i < 3; i++) /* the answer to the first is evicted when the third needs space */
        assert_string_not_equal(take(s, T0 + 2, &r, &a), "");
    assert_int_equal(deferred_store_finish(s, ids[0], T0 + 3, 200, "t", large, 1500, &e), 0);
    assert_int_equal(deferred_store_finish(s, ids[1], T0 + 4, 200, "t", "x", 1, &e), 0);
    assert_int_equal(deferred_store_finish(s, ids[2], T0 + 5, 200, "t", large, 1500, &e), 0);
    assert_int_equal(deferred_store_show(s, "ann", ids[0], &v, &b, &e), SHOAL_ENOTFOUND);
    assert_int_equal(state_of(s, "ann", ids[1], "x"), DEFERRED_DONE);
    /* a client's answer makes room for its own, before the older one of another */
    assert_int_equal(put(s, "bob", "4", NULL, T0 + 6, T0 + MINUTE, ids[0]), 0);
    assert_string_equal(take(s, T0 + 6, &r, &a), "4");
    assert_int_equal(deferred_store_finish(s, ids[0], T0 + 7, 200, "t", large, 1500, &e), 0);
    assert_int_equal(state_of(s, "ann", ids[1], "x"), DEFERRED_DONE);
    assert_int_equal(deferred_store_show(s, "bob", ids[2], &v, &b, &e), SHOAL_ENOTFOUND);
    buf_fini(&b);
    arena_fini(&a);
    deferred_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_request_waits_runs_and_is_answered, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(test_a_restart_runs_what_was_taken_again, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(test_a_key_makes_one_request, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_others_do_not_see_it, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_requests_expire_and_answers_are_forgotten, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(test_the_store_is_bounded, make_dir, remove_dir)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
