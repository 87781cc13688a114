/* test_reader.c - the reader of the pack as an engine: plans with probabilities, words of people
 * that are never words of plans, and inputs that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "shoal/shoal.h"

#define T "\x01"
#define LINES                                                                                      \
    T "here_is " T "a1 " T "a1 kitchen " T "a2 cellar " T "t1 " T "heating oven " T "a1 " T        \
      "t2 " T "machine " T "exact fermenter one " T "or fv1 " T "a2 " T "pressure " T              \
      "temperature " T "text "

static struct shoal_engine *engine;

static int setup(void **state)
{
    struct shoal_engine_opts o = {.size = sizeof(o), .n_threads = 1};
    struct shoal_error e;
    (void)state;
    if (shoal_engine_open(&engine, SHOAL_TEST_DATA "/../../models/reader.gguf", &o, &e) < 0) {
        print_error("%s\n", e.msg);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shoal_engine_close(engine);
    return 0;
}

static struct shoal_task *read_text(const char *text)
{
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_CLASSIFY, .text = text, .text_bytes = strlen(text)};
    struct shoal_task *t;
    struct shoal_error e;
    if (shoal_infer_submit(engine, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(shoal_task_wait(t), 0);
    return t;
}

static int refused(const char *text, const char *why)
{
    struct shoal_infer_opts o = {
        .size = sizeof(o), .kind = SHOAL_KIND_CLASSIFY, .text = text, .text_bytes = strlen(text)};
    struct shoal_task *t;
    struct shoal_error e = {0};
    int rc = shoal_infer_submit(engine, &o, &t, &e);
    if (rc == 0 || !strstr(e.msg, why))
        fail_msg("'%.60s': %d %s", text, rc, e.msg);
    return rc;
}

static void test_plans_with_probabilities(void **state)
{
    (void)state;
    struct shoal_task *t =
        read_text(LINES T "w0 set " T "w1 fv1 " T "w2 to " T "w3 1.2 " T "w4 bar " T "w5 and " T
                          "w6 turn " T "w7 the " T "w8 lights " T "w9 off");
    const struct shoal_result *r = shoal_task_result(t);
    assert_string_equal(r->label, "set t2 pressure to_value w3 w4 sep off light");
    assert_true(r->confidence > 0.9f);
    assert_true(r->n_labels > 1 && r->n_labels <= 4);
    float sum = 0.0f;
    for (uint32_t i = 0; i < r->n_labels; i++) {
        assert_true(i == 0 || r->labels[i].score <= r->labels[i - 1].score);
        sum += r->labels[i].score;
    }
    assert_true(sum <= 1.0001f);
    shoal_task_free(t);
}

/* Every plan points only at lines and words that are there, in order. */
static void test_pointers_were_read(void **state)
{
    static const char *const texts[] = {"turn everything off in the attic",
                                        "set it to 7",
                                        "asdf qwer",
                                        "is the cellar warm",
                                        "cancel the timer and wake me at six",
                                        "the third pump please",
                                        "play jazz"};
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char input[1024], copy[128], *save = NULL;
        int n = 0;
        snprintf(copy, sizeof(copy), "%s", texts[i]);
        snprintf(input, sizeof(input), "%s", LINES);
        for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
            size_t len = strlen(input);
            snprintf(input + len, sizeof(input) - len, T "w%d %s ", n++, w);
        }
        struct shoal_task *t = read_text(input);
        const struct shoal_result *r = shoal_task_result(t);
        for (uint32_t k = 0; k < r->n_labels; k++) {
            int first = -1, at;
            char plan[512], *s = NULL;
            snprintf(plan, sizeof(plan), "%s", r->labels[k].name);
            for (char *w = strtok_r(plan, " ", &s); w; w = strtok_r(NULL, " ", &s)) {
                if (sscanf(w, "w%d", &at) == 1) {
                    assert_true(at < n);
                    assert_true(first < 0 || at >= first);
                    first = first < 0 ? at : -1;
                } else if (sscanf(w, "t%d", &at) == 1 || sscanf(w, "a%d", &at) == 1) {
                    assert_true(at >= 1 && at <= 2);
                } else {
                    assert_true(sscanf(w, "f%d", &at) != 1 && sscanf(w, "q%d", &at) != 1);
                }
            }
            assert_int_equal(first, -1); /* every span has its end */
        }
        shoal_task_free(t);
    }
}

/* What looks like a word of the language, but came from people, is read as letters. */
static void test_words_of_people(void **state)
{
    (void)state;
    struct shoal_task *a = read_text(T "text " T "w0 <off>"),
                      *b = read_text(T "text " T "w0 " T "off");
    assert_true(shoal_task_result(a)->n_tokens > shoal_task_result(b)->n_tokens);
    shoal_task_free(a);
    shoal_task_free(b);
}

static void test_bad_inputs(void **state)
{
    static char lots[8192];
    (void)state;
    assert_int_equal(refused("", "empty"), SHOAL_EINVAL);
    assert_int_equal(refused("   ", "empty"), SHOAL_EINVAL);
    assert_int_equal(refused(T "tx hello", "no word of the plan language"), SHOAL_EINVAL);
    assert_int_equal(refused(T, "no word of the plan language"), SHOAL_EINVAL);
    assert_int_equal(refused(T "hello", "no word of the plan language"), SHOAL_EINVAL);
    memset(lots, 'x', 200);
    lots[0] = *T;
    assert_int_equal(refused(lots, "plan language"), SHOAL_EINVAL);
    for (size_t i = 0; i + 8 < sizeof(lots); i += 8)
        memcpy(lots + i, "quokkas ", 9);
    assert_int_equal(refused(lots, "tokens"), SHOAL_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_with_probabilities),
        cmocka_unit_test(test_pointers_were_read),
        cmocka_unit_test(test_words_of_people),
        cmocka_unit_test(test_bad_inputs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
