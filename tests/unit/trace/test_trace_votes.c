/* Votes on answers: each trace once, a bounded number of models, a bounded file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/made_tree.h"
#include "trace/trace_votes.h"

struct sums {
    uint32_t n_models;
    uint64_t up, down, others;
};

static void add(void *ctx, const char *model, uint64_t up, uint64_t down)
{
    struct sums *s = ctx;
    s->n_models++;
    s->up += up;
    s->down += down;
    if (strcmp(model, "other") == 0)
        s->others = up + down;
}

static void test_votes(void **state)
{
    struct made_tree t;
    struct trace_votes *v;
    struct sums s = {0};
    struct err e = {0};
    struct stat st;
    char file[128], old[160], id[40], model[40];
    (void)state;
    made_tree_open(&t);
    snprintf(file, sizeof(file), "%s/deep/feedback.jsonl", t.root);
    snprintf(old, sizeof(old), "%s.1", file);
    assert_int_equal(trace_votes_create(&v, file, 1000, &e), 0);
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "%032d", i);
        snprintf(model, sizeof(model), "m%d", i);
        const struct trace_vote x = {
            .trace_id = id, .request = "req_1", .model = model, .up = i % 2 == 0, .unix_ms = 5};
        assert_int_equal(trace_votes_add(v, &x, &e), 1);
        assert_int_equal(trace_votes_add(v, &x, &e), 0); /* again */
    }
    trace_votes_each(v, add, &s);
    assert_int_equal(s.n_models, TRACE_VOTES_MODELS + 1);
    assert_true(s.up == 50 && s.down == 50 && s.others == 100 - TRACE_VOTES_MODELS);
    assert_int_equal(stat(file, &st), 0);
    assert_true(st.st_size > 0 && st.st_size <= 1000);
    assert_int_equal(stat(old, &st), 0);
    assert_true(st.st_size > 0 && st.st_size <= 1000);
    trace_votes_destroy(v);
    /* a file that cannot be written: the vote counts */
    made_tree_put(&t, "plain", "");
    snprintf(file, sizeof(file), "%s/plain/feedback.jsonl", t.root);
    assert_int_equal(trace_votes_create(&v, file, 1000, &e), 0);
    const struct trace_vote x = {.trace_id = "a", .request = "r", .model = "m"};
    assert_int_equal(trace_votes_add(v, &x, &e), SHOAL_EIO);
    s = (struct sums){0};
    trace_votes_each(v, add, &s);
    assert_true(s.down == 1 && s.n_models == 1);
    trace_votes_destroy(v);
    made_tree_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_votes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
