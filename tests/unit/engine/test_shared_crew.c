/* test_shared_crew.c - all engines of a process share one crew of compute threads. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shoal/shoal.h"

#define MODEL SHOAL_TEST_DATA "/refs/llama-gqa.gguf"

enum { N_ENGINES = 8, N_TOKENS = 60 };

struct got {
    int32_t tokens[N_TOKENS];
    uint32_t n;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct got *g = ctx;
    if (ev->kind == SHOAL_EVENT_TOKEN && ev->token >= 0 && g->n < N_TOKENS)
        g->tokens[g->n++] = ev->token;
}

static struct shoal_engine *open_engine(uint32_t n_threads)
{
    struct shoal_engine *en = NULL;
    struct shoal_error e = {0};
    const struct shoal_engine_opts o = {.size = sizeof(o), .n_threads = n_threads, .cache_dir = ""};
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

/* A prompt of this many tokens; long ones take several chunks of the scheduler. */
static struct shoal_task *submit(struct shoal_engine *en, struct got *g, uint32_t n_prompt,
                                 int32_t priority)
{
    int32_t prompt[200];
    struct shoal_task *t = NULL;
    struct shoal_error e = {0};
    assert_true(n_prompt <= 200);
    for (uint32_t i = 0; i < n_prompt; i++)
        prompt[i] = (int32_t)(1 + i * 7 % 250);
    memset(g, 0, sizeof(*g));
    const struct shoal_task_opts o = {.size = sizeof(o),
                                      .tokens = prompt,
                                      .n_tokens = n_prompt,
                                      .max_tokens = N_TOKENS,
                                      .ignore_end = true,
                                      .priority = priority,
                                      .event = on_event,
                                      .event_ctx = g};
    if (shoal_task_submit(en, &o, &t, &e) < 0)
        fail_msg("%s", e.msg);
    return t;
}

static void finish(struct shoal_task *t)
{
    assert_int_equal(shoal_task_wait(t), 0);
    shoal_task_free(t);
}

/* Threads of this process whose name starts with this. */
static uint32_t count_threads(const char *prefix)
{
    uint32_t n = 0;
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char path[300], name[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *f = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (f && fgets(name, sizeof(name), f))
            n += strncmp(name, prefix, strlen(prefix)) == 0;
        if (f)
            fclose(f);
    }
    closedir(dir);
    return n;
}

/* A joined thread may be listed a moment longer, and a new one may not have its name yet. */
static void expect_threads(const char *prefix, uint32_t n)
{
    for (int i = 0; i < 5000 && count_threads(prefix) != n; i++)
        usleep(1000);
    assert_int_equal(count_threads(prefix), n);
}

static void test_eight_engines_on_two_threads(void **state)
{
    (void)state;
    static struct got want[2], got[N_ENGINES];
    struct shoal_engine *en[N_ENGINES];
    struct shoal_task *tasks[N_ENGINES];
    expect_threads("crew-", 0);
    struct shoal_engine *alone = open_engine(1);
    for (uint32_t i = 0; i < 2; i++)
        finish(submit(alone, &want[i], i ? 190 : 5, 0));
    expect_threads("crew-", 0); /* one thread: the engine's own */
    shoal_engine_close(alone);

    for (uint32_t i = 0; i < N_ENGINES; i++)
        en[i] = open_engine(2);
    expect_threads("engine-llama-gq", N_ENGINES);
    expect_threads("crew-", 1);
    expect_threads("crew-1", 1);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < N_ENGINES; i++)
            tasks[i] = submit(en[i], &got[i], i % 2 ? 190 : 5, (int32_t)(i % 3));
        for (uint32_t i = 0; i < N_ENGINES; i++) {
            finish(tasks[i]);
            assert_int_equal(got[i].n, N_TOKENS);
            assert_memory_equal(got[i].tokens, want[i % 2].tokens, sizeof(want[0].tokens));
        }
    }
    for (uint32_t i = 0; i < N_ENGINES; i++)
        shoal_engine_close(en[i]);
    expect_threads("crew-", 0); /* ended with the last engine */
}

/* The crew has as many threads as its widest engine needs, and an engine uses no more than its
 * own. */
static void test_each_engine_has_its_number_of_threads(void **state)
{
    (void)state;
    static const uint32_t threads[] = {2, 4, 1, 3};
    static struct got want, got;
    struct shoal_engine *en[4];
    for (uint32_t i = 0; i < 4; i++) {
        struct shoal_engine_info info = {.size = sizeof(info)};
        en[i] = open_engine(threads[i]);
        shoal_engine_info(en[i], &info);
        assert_int_equal(info.n_threads, threads[i]);
        expect_threads("crew-", i == 0 ? 1 : 3);
    }
    finish(submit(en[2], &want, 190, 0));
    for (uint32_t i = 0; i < 4; i++) {
        finish(submit(en[i], &got, 190, 0));
        assert_int_equal(got.n, N_TOKENS);
        assert_memory_equal(got.tokens, want.tokens, sizeof(want.tokens));
    }
    for (uint32_t i = 0; i < 4; i++)
        shoal_engine_close(en[i]);
}

/* Engines open and close while another one generates. */
static void test_engines_come_and_go_beside_a_generation(void **state)
{
    (void)state;
    static struct got want, got, other;
    struct shoal_engine *steady = open_engine(3);
    finish(submit(steady, &want, 190, 0));
    for (uint32_t round = 0; round < 6; round++) {
        struct shoal_task *t = submit(steady, &got, 190, 0);
        struct shoal_engine *en = open_engine(2 + round % 3);
        finish(submit(en, &other, 190, 1));
        shoal_engine_close(en);
        finish(t);
        assert_memory_equal(got.tokens, want.tokens, sizeof(want.tokens));
        assert_memory_equal(other.tokens, want.tokens, sizeof(want.tokens));
    }
    shoal_engine_close(steady);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight_engines_on_two_threads),
        cmocka_unit_test(test_each_engine_has_its_number_of_threads),
        cmocka_unit_test(test_engines_come_and_go_beside_a_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
