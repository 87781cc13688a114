/* test_fit_sink.c - which turns a conversation loses, and how a request is sent again until it
 * fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* a member of sink_ops */

#include "base/thread/executor_queue.h"
#include "flow/fit_sink.h"
#include "support/recorder.h"

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
} site;

/* A message for each letter: s(ystem), u(ser), a(ssistant), t(ool). */
static uint32_t write_chat(struct chat_message *m, const char *letters)
{
    static const struct {
        char letter;
        const char *role;
    } roles[] = {
        {'s', "system"}, {'d', "developer"}, {'u', "user"}, {'a', "assistant"}, {'t', "tool"}};
    uint32_t n = (uint32_t)strlen(letters);
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof(roles) / sizeof(roles[0]); k++)
            if (roles[k].letter == letters[i])
                m[i] = (struct chat_message){
                    .role = roles[k].role, .content = letters + i, .content_bytes = 1};
    return n;
}

static void test_whole_turns_are_left_out(void **state)
{
    static const struct {
        const char *from;
        uint32_t turns, drop;
        const char *left;
    } rows[] = {
        {"uauau", 3, 0, "uauau"},     {"uauau", 3, 1, "uau"},
        {"uauau", 3, 2, "u"},         {"suauau", 3, 2, "su"}, /* the system message stays */
        {"duasuau", 3, 2, "dsu"},                             /* and later ones */
        {"auau", 2, 1, "u"},          /* what stands before the first turn goes with it */
        {"uatauatau", 3, 1, "uatau"}, /* results of tools go with their calls */
        {"uatauatau", 3, 2, "u"},     {"s", 0, 0, "s"},
    };
    struct chat_message from[16], to[16];
    (void)state;
    trace("== %s\n", __func__);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char left[16] = "";
        uint32_t n = write_chat(from, rows[i].from);
        assert_int_equal(fit_sink_turns(from, n), rows[i].turns);
        uint32_t k = fit_sink_trim(to, from, n, rows[i].drop);
        for (uint32_t m = 0; m < k; m++)
            left[m] = to[m].content[0];
        left[k] = '\0';
        assert_string_equal(left, rows[i].left);
    }
}

/* A model with room for this many messages. */
static uint32_t room, n_tries, n_last;
static bool hold;
static struct request *held;
static struct sink *held_by;
static struct flow_job held_job;

static void on_held_cancel(struct flow_job *j)
{
    (void)j;
    held_by->job = NULL;
    held_by->ops->closed(held_by);
    flow_give_request(&site.owner, held);
    held = NULL;
}

static void answer(struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops job_ops = {on_held_cancel, on_held_cancel};
    const struct sink_start start = {.model = "m", .version = ""};
    const struct sink_done done = {.finish = SHOAL_FINISH_STOP, .last = true};
    struct failure f;
    n_tries++;
    n_last = r->generate.chat.n_messages;
    assert_int_equal(r->input_bytes, n_last);
    if (hold) {
        held_job.ops = &job_ops;
        held = r;
        held_by = s;
        s->job = &held_job;
        return;
    }
    s->ops->start(s, &start); /* a prompt that is too long fails after it */
    if (n_last > room) {
        failure_of_model(&f, SHOAL_ELIMIT, "too long");
        s->ops->fail(s, &f);
    } else {
        s->ops->done(s, &done);
    }
    s->ops->closed(s);
    flow_give_request(o, r);
}

static struct request *chat(const char *letters)
{
    struct request *r = flow_take_request(&site.owner);
    struct chat_message *m = arena_zalloc_n(&r->arena, strlen(letters), sizeof(*m));
    r->kind = REQUEST_GENERATE;
    r->truncates = true;
    r->generate.chat.n_messages = write_chat(m, letters);
    r->generate.chat.messages = m;
    r->generate.n = r->generate.n_prompts = 1;
    r->input_bytes = r->generate.chat.n_messages;
    r->way.pass_on = answer;
    return r;
}

static struct recorder *run(const char *letters, uint32_t n_room)
{
    static struct recorder to;
    recorder_fini(&to);
    recorder_init(&to);
    room = n_room;
    n_tries = 0;
    assert_true(fit_sink_take(&site.owner, chat(letters), &to.sink));
    while (executor_queue_run(&site.executor))
        ;
    return &to;
}

static void test_it_is_sent_again_until_it_fits(void **state)
{
    static const char long_chat[] = "suauauauauauauauauauauauauauauauauauau"; /* 19 turns */
    (void)state;
    trace("== %s\n", __func__);
    struct recorder *to = run("suauau", 6);
    assert_int_equal(n_tries, 1);
    assert_int_equal(to->start.n_dropped, 0);
    to = run("suauau", 4);
    assert_int_equal(n_tries, 2);
    assert_int_equal(to->start.n_dropped, 2);
    assert_int_equal(to->n_done, 1);
    assert_int_equal(to->n_fails, 0);
    to = run(long_chat, 9);
    assert_true(n_tries <= 16 && n_last <= 9 && n_last >= 8); /* no turn is lost needlessly */
    assert_int_equal(to->start.n_dropped, strlen(long_chat) - n_last);
    to = run(long_chat, 1); /* even the last turn is too long: one failure */
    assert_int_equal(to->n_fails, 1);
    assert_int_equal(n_last, 2);
    assert_string_equal(to->reason, "context_length_exceeded");
    assert_int_equal(to->n_closed, 1);
    assert_int_equal(site.owner.n_jobs, 0);
}

static void test_who_is_taken(void **state)
{
    struct recorder to;
    (void)state;
    trace("== %s\n", __func__);
    recorder_init(&to);
    for (int i = 0; i < 4; i++) {
        struct request *r = chat(i == 0 ? "sua" : "uau");
        r->truncates = i != 1;
        r->remembered = i == 2;
        if (i == 3)
            r->kind = REQUEST_TOKENS;
        assert_false(fit_sink_take(&site.owner, r, &to.sink));
        flow_give_request(&site.owner, r);
    }
    recorder_fini(&to);
}

static void test_cancel(void **state)
{
    struct recorder to;
    (void)state;
    trace("== %s\n", __func__);
    recorder_init(&to);
    hold = true; /* while a try runs */
    assert_true(fit_sink_take(&site.owner, chat("uau"), &to.sink));
    flow_cancel(&to.sink);
    assert_int_equal(to.n_closed, 1);
    recorder_fini(&to);
    recorder_init(&to);
    hold = false; /* between two */
    room = 1;
    assert_true(fit_sink_take(&site.owner, chat("uauau"), &to.sink));
    flow_cancel(&to.sink);
    assert_int_equal(to.n_closed, 0);
    n_tries = 0;
    while (executor_queue_run(&site.executor))
        ;
    assert_int_equal(to.n_closed, 1);
    assert_int_equal(n_tries, 0);
    assert_int_equal(to.n_fails, 0);
    recorder_fini(&to);
}

static int open_site(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(executor_queue_init(&site.executor, &e), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    return 0;
}

static void the_whole_trace(void **state)
{
    (void)state;
    golden_end("fit_sink");
}

int main(void)
{
    const struct CMUnitTest whole[] = {cmocka_unit_test(the_whole_trace)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_turns_are_left_out),
        cmocka_unit_test(test_it_is_sent_again_until_it_fits),
        cmocka_unit_test(test_who_is_taken),
        cmocka_unit_test(test_cancel),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, open_site, close_site);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
