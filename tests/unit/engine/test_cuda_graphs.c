/* test_cuda_graphs.c - which passes are recorded, and which may use a recording: one for another
 * shape or other buffers would compute something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/cuda/cuda_graphs.h"

static struct {
    int launched, recorded, started, destroyed; /* calls; started: recordings */
    bool recording, cannot_begin, cannot_instantiate, fails;
    struct cu_graph_exec *last; /* that was started */
} driver;

static int capture_begin(struct cu_stream *stream, int mode)
{
    (void)stream;
    (void)mode;
    driver.recording = !driver.cannot_begin;
    return driver.cannot_begin ? 1 : 0;
}

static int capture_end(struct cu_stream *stream, struct cu_graph **graph)
{
    (void)stream;
    driver.recording = false;
    *graph = (struct cu_graph *)(void *)&driver;
    return 0;
}

static int graph_instantiate(struct cu_graph_exec **exec, struct cu_graph *graph,
                             unsigned long long flags)
{
    (void)graph;
    (void)flags;
    if (driver.cannot_instantiate)
        return 1;
    *exec = (struct cu_graph_exec *)(uintptr_t)(16 * ++driver.recorded);
    return 0;
}

static int graph_launch(struct cu_graph_exec *exec, struct cu_stream *stream)
{
    (void)stream;
    driver.started++;
    driver.last = exec;
    return 0;
}

static int graph_destroy(struct cu_graph *graph)
{
    (void)graph;
    return 0;
}

static int graph_exec_destroy(struct cu_graph_exec *exec)
{
    assert_non_null(exec);
    driver.destroyed++;
    return 0;
}

static const struct cuda_lib lib = {.api = {.capture_begin = capture_begin,
                                            .capture_end = capture_end,
                                            .graph_instantiate = graph_instantiate,
                                            .graph_launch = graph_launch,
                                            .graph_destroy = graph_destroy,
                                            .graph_exec_destroy = graph_exec_destroy}};

static int launch(void *ctx, struct err *e)
{
    (void)ctx;
    driver.launched += !driver.recording;
    return driver.fails ? err_set(e, SHOAL_EIO, "cannot launch") : 0;
}

static struct cuda_graphs graphs;

static int run(const struct cuda_graphs_key *key)
{
    struct err e = {0};
    return cuda_graphs_run(&graphs, &lib, NULL, key, launch, NULL, &e);
}

static int begin(void **state)
{
    (void)state;
    graphs = (struct cuda_graphs){.now = 0};
    driver.launched = driver.recorded = driver.started = driver.destroyed = 0;
    driver.cannot_begin = driver.cannot_instantiate = driver.fails = false;
    return 0;
}

static struct cuda_graphs_key usual(void)
{
    return (struct cuda_graphs_key){.plan = &graphs, .pass = {.n_tokens = 4}, .last = 127};
}

static void test_the_third_of_a_kind_is_recorded(void **state)
{
    (void)state;
    const struct cuda_graphs_key key = usual();
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(run(&key), 0);
        assert_int_equal(driver.launched, i < 3 ? i : 2);
        assert_int_equal(driver.started, i < 3 ? 0 : i - 2);
    }
    assert_int_equal(driver.recorded, 1);
    cuda_graphs_clear(&graphs, &lib);
    assert_int_equal(driver.destroyed, 1);
    assert_int_equal(run(&key), 0); /* forgotten */
    assert_int_equal(driver.launched, 3);
}

static void test_whatever_differs_is_another_pass(void **state)
{
    (void)state;
    static const uint32_t numbers[2];
    static const struct step_token token;
    static float values[2];
    struct cuda_graphs_key others[10];
    for (int i = 0; i < 10; i++)
        others[i] = usual();
    others[0].plan = NULL;
    others[1].last = 255;
    others[2].pass.n_tokens = 5;
    others[3].pass.n_wanted = 1;
    others[4].pass.n_tiles = 1;
    others[5].pass.tokens = &token;
    others[6].pass.pages = numbers;
    others[7].pass.embedded = values;
    others[8].pass.logits = values;
    others[9].pass.wanted = numbers;
    struct cuda_graphs_key tiles = usual();
    tiles.pass.tiles = numbers;
    for (int i = 0; i <= 10; i++) {
        const struct cuda_graphs_key key = usual();
        (void)begin(NULL);
        for (int k = 0; k < 3; k++)
            assert_int_equal(run(&key), 0);
        assert_int_equal(driver.started, 1);
        assert_int_equal(run(i < 10 ? &others[i] : &tiles), 0);
        if (driver.started != 1)
            fail_msg("a recording was used for another pass, difference %d", i);
    }
}

static void test_the_one_that_was_not_used_for_longest_goes(void **state)
{
    (void)state;
    struct cuda_graphs_key key = usual();
    for (uint32_t n = 1; n <= CUDA_GRAPHS_MAX; n++)
        for (int k = 0; k < 3; k++) {
            key.pass.n_tokens = n;
            assert_int_equal(run(&key), 0);
        }
    assert_int_equal(driver.recorded, CUDA_GRAPHS_MAX);
    key.pass.n_tokens = 1;
    assert_int_equal(run(&key), 0); /* now the second is the oldest */
    key.pass.n_tokens = CUDA_GRAPHS_MAX + 1;
    assert_int_equal(run(&key), 0);
    assert_int_equal(driver.destroyed, 1);
    const int started = driver.started;
    key.pass.n_tokens = 1;
    assert_int_equal(run(&key), 0);
    assert_int_equal(driver.started, started + 1);
    assert_int_equal((intptr_t)driver.last, 16);
    key.pass.n_tokens = 2;
    assert_int_equal(run(&key), 0);
    assert_int_equal(driver.started, started + 1); /* that one is gone */
}

static void test_a_driver_that_cannot_is_not_asked_again(void **state)
{
    (void)state;
    const struct cuda_graphs_key key = usual();
    for (int how = 0; how < 2; how++) {
        (void)begin(NULL);
        driver.cannot_begin = how == 0;
        driver.cannot_instantiate = how == 1;
        for (int k = 0; k < 5; k++)
            assert_int_equal(run(&key), 0);
        assert_int_equal(driver.launched, 5);
        assert_int_equal(driver.started, 0);
        assert_true(graphs.off);
    }
    driver.fails = true; /* what the launches say is said */
    assert_int_equal(run(&key), SHOAL_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_third_of_a_kind_is_recorded, begin),
        cmocka_unit_test_setup(test_whatever_differs_is_another_pass, begin),
        cmocka_unit_test_setup(test_the_one_that_was_not_used_for_longest_goes, begin),
        cmocka_unit_test_setup(test_a_driver_that_cannot_is_not_asked_again, begin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
