/* test_constraint.c - constrained generations of an engine: they follow the constraint, end with
 * it, continue on another engine with the same tokens, and share compiled grammars. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/decode/constraint.h"
#include "engine/decode/constraint_check.h"
#include "engine/engine_state.h"
#include "engine/task.h"
#include "shoal/shoal.h"

#define PERSON                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":9},"         \
    "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":120}},\"required\":[\"name\","        \
    "\"age\"]}"

struct got {
    int32_t tokens[512];
    char text[4096];
    uint32_t n;
    size_t text_bytes;
    enum shoal_finish finish;
    int code;
    const struct shoal_engine *watched; /* NULL: not watched */
    uint32_t ahead;                     /* most tokens sent before they were computed */
    uint32_t generated;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    if (ev->kind == SHOAL_EVENT_DONE) {
        g->finish = ev->finish;
        g->code = ev->code;
        g->generated = ev->generated_tokens;
        return;
    }
    for (uint32_t i = 0; g->watched && i < g->watched->n_active; i++) { /* the engine's thread */
        const struct shoal_task *t = g->watched->active[i];
        if (t->event_ctx == g && t->n_tokens - t->n_computed > g->ahead)
            g->ahead = t->n_tokens - t->n_computed;
    }
    if (ev->token >= 0 && g->n < 512)
        g->tokens[g->n++] = ev->token;
    if (g->text_bytes + ev->text_bytes < sizeof(g->text)) {
        memcpy(g->text + g->text_bytes, ev->text, ev->text_bytes);
        g->text_bytes += ev->text_bytes;
    }
}

static struct shoal_engine *open_engine(const char *model)
{
    struct shoal_engine *en = NULL;
    struct err e = {0};
    const struct shoal_engine_opts o = {
        .size = sizeof(o), .cache_dir = "", .n_threads = 1, .max_tasks = 4};
    if (shoal_engine_open(&en, model, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

static const int32_t prompt[] = {1, 7, 33, 120, 26, 9, 14, 77};
#define N_PROMPT ((uint32_t)(sizeof(prompt) / sizeof(prompt[0])))

static struct shoal_task_opts opts(struct got *g, enum shoal_constraint kind, const char *text)
{
    memset(g, 0, sizeof(*g));
    return (struct shoal_task_opts){.size = sizeof(struct shoal_task_opts),
                                    .tokens = prompt,
                                    .n_tokens = N_PROMPT,
                                    .max_tokens = 400,
                                    .sampling = {.temperature = 1, .seed = 11},
                                    .event = on_event,
                                    .event_ctx = g,
                                    .constraint = kind,
                                    .constraint_text = text,
                                    .constraint_bytes = strlen(text)};
}

static int run(struct shoal_engine *en, struct shoal_task_opts o)
{
    struct shoal_task *t = NULL;
    struct err e = {0};
    if (shoal_task_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    int rc = shoal_task_wait(t);
    shoal_task_free(t);
    return rc;
}

static const char *const models[] = {SHOAL_TEST_DATA "/refs/llama-gqa.gguf",
                                     SHOAL_TEST_DATA "/refs/qwen2.gguf",
                                     SHOAL_TEST_DATA "/refs/gemma3.gguf"};

static void test_an_answer_ends_with_its_constraint(void **state)
{
    static struct got g;
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct shoal_engine *en = open_engine(models[i]);
        struct shoal_task_opts o = opts(&g, SHOAL_CONSTRAINT_CHOICE, "[\"left\",\"right\"]");
        assert_int_equal(run(en, o), 0);
        assert_true(strcmp(g.text, "left") == 0 || strcmp(g.text, "right") == 0);
        assert_int_equal(g.finish, SHOAL_FINISH_STOP);
        o = opts(&g, SHOAL_CONSTRAINT_REGEX, "[a-z]{50}");
        o.max_tokens = 2;
        assert_int_equal(run(en, o), 0);
        assert_int_equal(g.finish, SHOAL_FINISH_LENGTH);
        o = opts(&g, SHOAL_CONSTRAINT_REGEX, "x{3}"); /* the likeliest; the end cannot be ignored */
        o.sampling.temperature = 0;
        o.ignore_end = true;
        assert_int_equal(run(en, o), 0);
        assert_string_equal(g.text, "xxx");
        assert_int_equal(g.finish, SHOAL_FINISH_STOP);
        o = opts(&g, SHOAL_CONSTRAINT_SCHEMA, PERSON);
        assert_int_equal(run(en, o), 0);
        assert_int_equal(g.finish, SHOAL_FINISH_STOP);
        assert_int_equal(g.text[0], '{');
        assert_non_null(strstr(g.text, "\"age\""));
        assert_int_equal(g.text[g.text_bytes - 1], '}');
        shoal_engine_close(en);
    }
}

/* Interrupted after any token, another engine continues with the same tokens and the same text. */
static void test_an_answer_goes_on_elsewhere(void **state)
{
    static struct got whole, rest;
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct shoal_engine *en = open_engine(models[i]), *other = open_engine(models[i]);
        struct shoal_task_opts o = opts(&whole, SHOAL_CONSTRAINT_SCHEMA, PERSON);
        assert_int_equal(run(en, o), 0);
        assert_true(whole.n > 5 && whole.n < 300);
        for (uint32_t cut = 1; cut <= whole.n; cut += 3) {
            int32_t tokens[N_PROMPT + 512];
            memcpy(tokens, prompt, sizeof(prompt));
            memcpy(tokens + N_PROMPT, whole.tokens, cut * sizeof(*tokens));
            o = opts(&rest, SHOAL_CONSTRAINT_SCHEMA, PERSON);
            o.tokens = tokens;
            o.n_tokens = N_PROMPT + cut;
            o.n_continued = cut;
            assert_int_equal(run(other, o), 0);
            assert_int_equal(rest.finish, SHOAL_FINISH_STOP);
            assert_int_equal(rest.n, whole.n - cut);
            assert_memory_equal(rest.tokens, whole.tokens + cut, rest.n * sizeof(*tokens));
        }
        shoal_engine_close(en);
        shoal_engine_close(other);
    }
}

/* An answer is the same in a batch as alone. */
static void test_answers_share_an_engine(void **state)
{
    static struct got alone[4], beside[4];
    static const struct {
        enum shoal_constraint kind;
        const char *text;
    } list[4] = {{SHOAL_CONSTRAINT_SCHEMA, PERSON},
                 {SHOAL_CONSTRAINT_NONE, ""},
                 {SHOAL_CONSTRAINT_REGEX, "([a-c]{2} ){1,9}"},
                 {SHOAL_CONSTRAINT_SCHEMA, PERSON}};
    struct shoal_engine *en = open_engine(models[0]);
    struct shoal_task *tasks[4];
    struct err e = {0};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct shoal_task_opts o = opts(&alone[i], list[i].kind, list[i].text);
        o.max_tokens = 60;
        o.sampling.seed = i;
        assert_int_equal(run(en, o), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct shoal_task_opts o = opts(&beside[i], list[i].kind, list[i].text);
        o.max_tokens = 60;
        o.sampling.seed = i;
        o.held = true;
        assert_int_equal(shoal_task_submit(en, &o, &tasks[i], &e), 0);
    }
    shoal_engine_wake(en);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(shoal_task_wait(tasks[i]), 0);
        shoal_task_free(tasks[i]);
        assert_int_equal(beside[i].n, alone[i].n);
        assert_memory_equal(beside[i].tokens, alone[i].tokens, alone[i].n * sizeof(int32_t));
    }
    shoal_engine_close(en);
}

/* Forced text is computed in one step and gives the same tokens as single steps. */
static void test_forced_text_is_not_decoded(void **state)
{
    static const struct {
        enum shoal_constraint kind;
        const char *text, *stop;
        uint32_t max_tokens;
    } list[] = {
        {SHOAL_CONSTRAINT_SCHEMA, PERSON, NULL, 400},
        {SHOAL_CONSTRAINT_REGEX, "the answer is [0-9]{1,3} degrees of the scale", NULL, 400},
        {SHOAL_CONSTRAINT_REGEX, "the answer is [0-9]{1,3} degrees of the scale", "of", 400},
        {SHOAL_CONSTRAINT_REGEX, "the answer is [0-9]{1,3} degrees of the scale", NULL, 9},
        {SHOAL_CONSTRAINT_GBNF, "root ::= \"ab\" root | \"ab\"", NULL, 300},
    };
    static struct got jumped, stepped;
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        struct shoal_engine *en = open_engine(models[i]);
        for (size_t k = 0; k < sizeof(list) / sizeof(list[0]); k++)
            for (uint32_t logprobs = 0; logprobs < 2; logprobs++) {
                struct got *g = logprobs ? &stepped : &jumped;
                struct shoal_task_opts o = opts(g, list[k].kind, list[k].text);
                o.max_tokens = list[k].max_tokens;
                o.stop = list[k].stop ? &list[k].stop : NULL;
                o.n_stop = list[k].stop != NULL;
                o.sampling.logprobs = logprobs;
                g->watched = en;
                assert_int_equal(run(en, o), 0);
                assert_int_equal(g->generated, g->n);
                if (!logprobs)
                    continue;
                assert_int_equal(stepped.ahead, 1);
                if (list[k].kind == SHOAL_CONSTRAINT_REGEX)
                    assert_true(jumped.ahead > 1);
                assert_int_equal(jumped.n, stepped.n);
                assert_memory_equal(jumped.tokens, stepped.tokens, jumped.n * sizeof(int32_t));
                assert_string_equal(jumped.text, stepped.text);
                assert_int_equal(jumped.finish, stepped.finish);
            }
        shoal_engine_close(en);
    }
}

static void test_bad_constraints_are_refused(void **state)
{
    static struct got g;
    struct shoal_engine *en = open_engine(models[0]);
    struct shoal_task *t = NULL;
    struct err e = {0};
    (void)state;
    struct shoal_task_opts o = opts(&g, SHOAL_CONSTRAINT_GBNF, "root ::= (");
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "line 1"));
    o = opts(&g, (enum shoal_constraint)99, "x");
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), SHOAL_EINVAL);
    /* the error blames the grammar, not the context */
    o = opts(&g, SHOAL_CONSTRAINT_GBNF,
             "root ::= (((((((((((\"a\"){4}){4}){4}){4}){4}){4}){4}){4}){4}){4}){4}");
    assert_int_equal(shoal_task_submit(en, &o, &t, &e), SHOAL_EINVAL);
    assert_int_equal(constraint_check(en, SHOAL_CONSTRAINT_REGEX, "a+", 2, &e), 0);
    /* state from another run does not fit */
    o = opts(&g, SHOAL_CONSTRAINT_REGEX, "a+");
    o.n_continued = 3;
    assert_int_equal(run(en, o), SHOAL_EINVAL);
    assert_int_equal(g.finish, SHOAL_FINISH_ERROR);
    shoal_engine_close(en);
}

/* More constraints than are cached: those in use stay complete. */
static void test_old_constraints_are_dropped(void **state)
{
    static struct got g[CONSTRAINTS_KEPT + 5];
    struct shoal_task *tasks[CONSTRAINTS_KEPT + 5];
    struct shoal_engine *en = open_engine(models[1]);
    struct err e = {0};
    (void)state;
    for (uint32_t i = 0; i < CONSTRAINTS_KEPT + 5; i++) {
        char regex[32];
        snprintf(regex, sizeof(regex), "[a-z]{%u}", i + 3);
        struct shoal_task_opts o = opts(&g[i], SHOAL_CONSTRAINT_REGEX, regex);
        o.held = true;
        assert_int_equal(shoal_task_submit(en, &o, &tasks[i], &e), 0);
    }
    shoal_engine_wake(en);
    for (uint32_t i = 0; i < CONSTRAINTS_KEPT + 5; i++) {
        assert_int_equal(shoal_task_wait(tasks[i]), 0);
        shoal_task_free(tasks[i]);
        assert_int_equal(g[i].text_bytes, i + 3);
    }
    shoal_engine_close(en);
}

static size_t bytes_now(const struct shoal_engine *en)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    assert_int_equal(shoal_engine_info(en, &info), 0);
    return info.constraint_bytes;
}

/* The memory of constraints is counted while they grow, and no longer after release. */
static void test_memory_is_counted(void **state)
{
    static struct got g;
    struct shoal_engine *en = open_engine(models[1]);
    (void)state;
    assert_int_equal(bytes_now(en), 0);
    struct shoal_task_opts o = opts(&g, SHOAL_CONSTRAINT_REGEX, "[a-c]{3}");
    assert_int_equal(run(en, o), 0);
    const size_t small = bytes_now(en);
    assert_true(small > 0);
    o = opts(&g, SHOAL_CONSTRAINT_SCHEMA, PERSON);
    assert_int_equal(run(en, o), 0);
    const size_t both = bytes_now(en);
    assert_true(both > small);
    assert_int_equal(run(en, o), 0); /* the same answer: nothing new is computed */
    assert_int_equal(bytes_now(en), both);
    for (uint32_t i = 0; i < 2 * CONSTRAINTS_KEPT; i++) {
        char regex[32];
        snprintf(regex, sizeof(regex), "[a-c]{%u}", 3 + i % 2 * 100 + i);
        o = opts(&g, SHOAL_CONSTRAINT_REGEX, regex);
        assert_int_equal(run(en, o), 0);
    }
    const size_t full = bytes_now(en);
    assert_true(full > both && full < CONSTRAINTS_MAX_BYTES);
    for (uint32_t i = 0; i < CONSTRAINTS_KEPT; i++) { /* the large ones are evicted */
        char choice[32];
        snprintf(choice, sizeof(choice), "[\"a%u\"]", i);
        o = opts(&g, SHOAL_CONSTRAINT_CHOICE, choice);
        assert_int_equal(run(en, o), 0);
    }
    assert_true(bytes_now(en) < full);
    shoal_engine_close(en);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_ends_with_its_constraint),
        cmocka_unit_test(test_an_answer_goes_on_elsewhere),
        cmocka_unit_test(test_answers_share_an_engine),
        cmocka_unit_test(test_forced_text_is_not_decoded),
        cmocka_unit_test(test_bad_constraints_are_refused),
        cmocka_unit_test(test_old_constraints_are_dropped),
        cmocka_unit_test(test_memory_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
