/* test_fair.c - clients share an engine by tokens: order of tasks, weights, preemption, prompts,
 * slots in the queue, and what an estimate counts. Only orders are compared, never times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/fair.h"
#include "engine/task.h"
#include "shoal/shoal.h"
#include "support/watchdog.h"

#define MODEL SHOAL_TEST_DATA "/refs/llama-gqa.gguf"
#define MAX_TASKS 96u

struct one { /* a task */
    struct shoal_task *task;
    int32_t tokens[512];
    _Atomic uint32_t n;
    uint32_t first, end; /* its position among all first tokens, and among all ends */
};

static struct one ones[MAX_TASKS];
static _Atomic uint32_t n_firsts, n_ends;
static int32_t priority;  /* of the tasks that are submitted */
static _Atomic bool hold; /* the engine's thread waits in the next event */

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct one *o = ctx;
    uint32_t n = atomic_load(&o->n);
    if (ev->kind == SHOAL_EVENT_DONE) {
        o->end = atomic_fetch_add(&n_ends, 1) + 1;
        return;
    }
    if (ev->token < 0 || n == 512)
        return;
    if (n == 0)
        o->first = atomic_fetch_add(&n_firsts, 1) + 1;
    o->tokens[n] = ev->token;
    atomic_store(&o->n, n + 1);
    WAIT_UNTIL(n < 4 || !atomic_load(&hold));
}

static struct shoal_engine *open_engine(struct shoal_engine_opts o)
{
    struct shoal_engine *en = NULL;
    struct err e = {0};
    o.size = sizeof(o);
    o.cache_dir = "";
    o.n_threads = 1;
    memset(ones, 0, sizeof(ones));
    atomic_store(&n_firsts, 0);
    atomic_store(&n_ends, 0);
    if (shoal_engine_open(&en, MODEL, &o, &e) < 0)
        fail_msg("%s", e.msg);
    return en;
}

/* The i-th task, for a client; its prompt is unique. The engine sleeps until it is woken.
 */
static int submit(struct shoal_engine *en, uint32_t i, uint64_t client, float weight,
                  uint32_t n_prompt, uint32_t n_tokens)
{
    static int32_t prompt[512];
    for (uint32_t k = 0; k < n_prompt; k++)
        prompt[k] = (int32_t)(1 + (7 * i + 3 * k + i * k) % 250);
    const struct shoal_task_opts o = {.size = sizeof(o),
                                      .tokens = prompt,
                                      .n_tokens = n_prompt,
                                      .max_tokens = n_tokens,
                                      .ignore_end = true,
                                      .held = true,
                                      .event = on_event,
                                      .event_ctx = &ones[i],
                                      .client = client,
                                      .weight = weight,
                                      .priority = priority};
    return shoal_task_submit(en, &o, &ones[i].task, NULL);
}

static void begin(struct shoal_engine *en, uint32_t i, uint64_t client, float weight,
                  uint32_t n_prompt, uint32_t n_tokens)
{
    assert_int_equal(submit(en, i, client, weight, n_prompt, n_tokens), 0);
}

static void wait_all(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!ones[i].task)
            continue;
        assert_int_equal(shoal_task_wait(ones[i].task), 0);
        shoal_task_free(ones[i].task);
    }
}

/* How many of tasks from..to-1 ended before place `end`. */
static uint32_t ended_before(uint32_t from, uint32_t to, uint32_t end)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++)
        n += ones[i].end < end;
    return n;
}

static uint32_t last_end(uint32_t from, uint32_t to)
{
    uint32_t last = 0;
    for (uint32_t i = from; i < to; i++)
        last = ones[i].end > last ? ones[i].end : last;
    return last;
}

static void test_a_flood_does_not_starve_another_client(void **state)
{
    (void)state;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 4, .n_ctx = 128, .max_queue = 256});
    for (uint32_t i = 0; i < 60; i++)
        begin(en, i, 11, 0, 20, 20);
    atomic_store(&hold, true);
    shoal_engine_wake(en);
    WAIT_UNTIL(atomic_load(&ones[0].n) >= 5);
    for (uint32_t i = 60; i < 64; i++)
        begin(en, i, 12, 0, 20, 20);
    atomic_store(&hold, false);
    wait_all(64);
    /* Before the four, the flood's share is four tasks and those running at the time. */
    uint32_t before = ended_before(0, 60, last_end(60, 64));
    assert_in_range(before, 0, 12);
    shoal_engine_close(en);
}

/* Sixty tasks of a high class wait already: the one of a lower class gets a tenth of the tokens. */
static void test_the_lowest_class_has_a_share(void **state)
{
    (void)state;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 1, .n_ctx = 128, .max_queue = 256});
    priority = 5;
    for (uint32_t i = 0; i < 60; i++)
        begin(en, i, 11, 0, 20, 20);
    priority = -3;
    begin(en, 60, 12, 0, 20, 20); /* due after 400 tokens of the others: ten of them */
    begin(en, 61, 11, 0, 20, 20); /* of the same client as the others, behind all of them */
    priority = 0;
    begin(en, 62, 13, 0, 20, 20); /* it would always go before the other two */
    shoal_engine_wake(en);
    wait_all(63);
    assert_in_range(ended_before(0, 60, ones[60].end), 8, 12);
    assert_in_range(ended_before(0, 60, ones[61].end), 18, 24);
    assert_in_range(ended_before(0, 60, ones[62].end), 28, 36);
    shoal_engine_close(en);
}

/* Many tasks of the lowest class came first: the one of a class between waits for one of them. */
static void test_lower_classes_take_turns(void **state)
{
    (void)state;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 1, .n_ctx = 128, .max_queue = 256});
    priority = 5;
    for (uint32_t i = 0; i < 60; i++)
        begin(en, i, 11, 0, 20, 20);
    priority = -3;
    for (uint32_t i = 60; i < 80; i++)
        begin(en, i, 12, 0, 20, 20);
    priority = 0;
    begin(en, 80, 13, 0, 20, 20);
    shoal_engine_wake(en);
    wait_all(81);
    assert_int_equal(ended_before(60, 80, ones[80].end), 1);
    assert_in_range(ended_before(0, 60, ones[80].end), 18, 24);
    shoal_engine_close(en);
}

/* A long answer of a lower class keeps its place no longer than its share: the others go on. */
static void test_a_due_task_gives_its_place_back(void **state)
{
    (void)state;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 1, .n_ctx = 1024, .max_queue = 256});
    priority = 1;
    for (uint32_t i = 0; i < 90; i++)
        begin(en, i, 11, 0, 40, 40);
    priority = 0;
    begin(en, 90, 12, 0, 20, 300);
    shoal_engine_wake(en);
    wait_all(91);
    uint32_t between = 0;
    for (uint32_t i = 0; i < 90; i++)
        between += ones[i].first > ones[90].first && ones[i].end < ones[90].end;
    assert_in_range(between, 5, 20);                            /* for the last 64 tokens */
    assert_in_range(ended_before(0, 90, ones[90].end), 36, 55); /* 32 for the first 256 */
    shoal_engine_close(en);
}

/* A short request does not wait for the long ones of its own key, also not for those that run. */
static void test_short_tasks_go_first_within_a_client(void **state)
{
    (void)state;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 2, .n_ctx = 512, .max_queue = 256});
    for (uint32_t i = 0; i < 6; i++)
        begin(en, i, 11, 0, 30, 400);
    atomic_store(&hold, true);
    shoal_engine_wake(en);
    WAIT_UNTIL(atomic_load(&ones[0].n) >= 5);
    begin(en, 6, 11, 0, 10, 10);
    atomic_store(&hold, false);
    wait_all(7);
    assert_int_equal(ones[6].end, 1);
    shoal_engine_close(en);
}

/* ... and a long one is overtaken by no more work than its own, however many short ones come. */
static void test_long_tasks_get_their_turn(void **state)
{
    static struct fair f;
    static struct shoal_task tasks[64];
    uint32_t n_before = 0;
    (void)state;
    fair_init(&f);
    for (uint32_t i = 0; i < 64; i++)
        tasks[i] = (struct shoal_task){.n_prompt = i ? 10 : 30,
                                       .n_tokens = i ? 10 : 30,
                                       .expected = i ? 10 : 370,
                                       .serial = i,
                                       .weight = 1.0F,
                                       .client = fair_enter(&f, 11, 1.0F, 0)};
    fair_add(&f, &tasks[0]);
    for (uint32_t i = 1; i < 64; i++) {
        fair_add(&f, &tasks[i]);
        struct shoal_task **at = fair_best(&f), *t = *at;
        if (t == &tasks[0])
            break;
        fair_remove(&f, at);
        fair_begin(&f, t);
        fair_end(&f, t);
        n_before++;
    }
    assert_int_equal(n_before, 20); /* 400 tokens */
    fair_fini(&f);
}

static void test_long_answers_give_way_and_go_on_unchanged(void **state)
{
    (void)state;
    static int32_t alone[400];
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){.max_tasks = 2, .n_ctx = 512});
    begin(en, 1, 11, 0, 30, 400);
    shoal_engine_wake(en);
    wait_all(2);
    memcpy(alone, ones[1].tokens, sizeof(alone));
    memset(ones, 0, sizeof(ones));
    begin(en, 0, 11, 0, 30, 400);
    begin(en, 1, 11, 0, 30, 400);
    atomic_store(&hold, true);
    shoal_engine_wake(en);
    WAIT_UNTIL(atomic_load(&ones[0].n) >= 5);
    begin(en, 2, 12, 0, 30, 5);
    atomic_store(&hold, false);
    wait_all(3);
    assert_int_equal(ended_before(0, 2, ones[2].end), 0);
    assert_int_equal(ones[1].n, 400);
    assert_memory_equal(ones[1].tokens, alone, sizeof(alone));
    shoal_engine_close(en);
}

static void test_weights_divide_the_tokens(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){.max_tasks = 1, .n_ctx = 128});
    for (uint32_t i = 0; i < 24; i++) { /* the lighter one came first */
        begin(en, i, 11, 1, 10, 10);
        begin(en, 24 + i, 12, 3, 10, 10);
    }
    shoal_engine_wake(en);
    wait_all(48);
    uint32_t heavy = ended_before(24, 48, 17), light = ended_before(0, 24, 17);
    assert_int_equal(heavy + light, 16);
    assert_in_range(heavy, 11, 13);
    shoal_engine_close(en);
}

static void test_an_idle_client_saves_nothing_up(void **state)
{
    (void)state;
    struct shoal_engine *en = open_engine((struct shoal_engine_opts){.max_tasks = 1, .n_ctx = 128});
    for (uint32_t i = 0; i < 20; i++)
        begin(en, i, 11, 0, 10, 10);
    shoal_engine_wake(en);
    wait_all(20);
    memset(ones, 0, sizeof(ones));
    atomic_store(&n_ends, 0);
    for (uint32_t i = 0; i < 16; i++) {
        begin(en, i, 11, 0, 10, 10);
        begin(en, 16 + i, 12, 0, 10, 10);
    }
    shoal_engine_wake(en);
    wait_all(32);
    assert_in_range(ended_before(0, 16, 9), 3, 5);
    shoal_engine_close(en);
}

static void test_long_prompts_leave_room_for_short_ones(void **state)
{
    (void)state;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 4, .n_ctx = 512, .chunk = 32});
    for (uint32_t i = 0; i < 3; i++)
        begin(en, i, 11, 0, 400, 2);
    begin(en, 3, 12, 0, 40, 2);
    shoal_engine_wake(en);
    wait_all(4);
    assert_int_equal(ones[3].first, 1); /* in order of submission it would be the last */
    shoal_engine_close(en);
}

static void test_one_client_cannot_fill_the_queue(void **state)
{
    (void)state;
    struct shoal_engine *en =
        open_engine((struct shoal_engine_opts){.max_tasks = 1, .n_ctx = 128, .max_queue = 32});
    uint32_t n = 0;
    while (n < 64 && submit(en, n, 11, 0, 10, 2) == 0)
        n++;
    assert_in_range(n, 26, 31); /* the engine is not woken: all wait */
    assert_int_equal(submit(en, 64, 12, 0, 10, 2), 0);
    shoal_engine_wake(en);
    wait_all(65);
    /* the anonymous client need not leave room for others */
    memset(ones, 0, sizeof(ones));
    atomic_store(&hold, true); /* the engine is awake: a first task keeps it busy */
    begin(en, 0, 0, 0, 10, 8);
    shoal_engine_wake(en);
    WAIT_UNTIL(atomic_load(&ones[0].n) >= 5);
    for (n = 0; n < 63 && submit(en, n + 1, 0, 0, 10, 2) == 0;)
        n++;
    assert_int_equal(n, 32);
    atomic_store(&hold, false);
    shoal_engine_wake(en);
    wait_all(33);
    shoal_engine_close(en);
}

static void test_estimates_count_what_goes_first(void **state)
{
    (void)state;
    static struct fair f;
    const struct fair_load found = {
        .n_active = 8, .n_waiting = 60, .max_active = 8, .active_prompt = 80, .active_decode = 800};
    struct fair_load l = found;
    fair_init(&f);
    struct fair_client *a = fair_enter(&f, 11, 1, 0);
    a->n_tasks = 68;
    a->n_waiting = 60;
    a->waiting_prompt = 600;
    a->waiting_decode = 6000;
    fair_reduce(&f, &(struct fair_who){.client = 11}, &l); /* all of its own tasks go first */
    assert_int_equal(l.n_waiting, 60);
    assert_int_equal(l.waiting_decode, 6000);
    assert_int_equal(l.n_active, 8);
    l = found;
    fair_reduce(&f, &(struct fair_who){.client = 12}, &l); /* one task of the other goes first */
    assert_int_equal(l.n_waiting, 1);
    assert_int_equal(l.waiting_prompt, 10);
    assert_int_equal(l.waiting_decode, 100);
    assert_int_equal(l.n_active, 4); /* the others make room */
    assert_int_equal(l.active_decode, 400);
    l = found;
    fair_reduce(&f, &(struct fair_who){.client = 12, .priority = -1}, &l);
    assert_int_equal(l.n_waiting, 60); /* of lower priority: all go first */
    l = found;
    fair_reduce(&f, &(struct fair_who){.client = 12, .priority = 1}, &l);
    assert_int_equal(l.n_waiting, 0);
    fair_fini(&f);
}

/* More clients than slots: those without tasks are replaced, the others stay. */
static void test_many_clients(void **state)
{
    (void)state;
    static struct fair f;
    fair_init(&f);
    const struct fair_client *busy = fair_enter(&f, 1, 1, 0);
    for (uint64_t id = 2; id < 5 * FAIR_MAX_CLIENTS; id++) {
        struct fair_client *c = fair_enter(&f, id, 1, 0);
        assert_true(c != busy && c->id == id);
        fair_leave(c);
    }
    assert_ptr_equal(fair_enter(&f, 1, 1, 0), busy);
    assert_int_equal(f.n_clients, FAIR_MAX_CLIENTS);
    for (uint64_t id = 2; f.nobody.n_tasks == 0; id++) /* all in use: the rest is anonymous */
        assert_true(id < FAIR_MAX_CLIENTS + 2 && fair_enter(&f, id, 1, 0));
    fair_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flood_does_not_starve_another_client),
        cmocka_unit_test(test_the_lowest_class_has_a_share),
        cmocka_unit_test(test_lower_classes_take_turns),
        cmocka_unit_test(test_a_due_task_gives_its_place_back),
        cmocka_unit_test(test_short_tasks_go_first_within_a_client),
        cmocka_unit_test(test_long_tasks_get_their_turn),
        cmocka_unit_test(test_long_answers_give_way_and_go_on_unchanged),
        cmocka_unit_test(test_weights_divide_the_tokens),
        cmocka_unit_test(test_an_idle_client_saves_nothing_up),
        cmocka_unit_test(test_long_prompts_leave_room_for_short_ones),
        cmocka_unit_test(test_one_client_cannot_fill_the_queue),
        cmocka_unit_test(test_estimates_count_what_goes_first),
        cmocka_unit_test(test_many_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
