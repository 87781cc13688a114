/* test_meter.c - which tokens a client's request costs, also when it ends early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* a member of sink_ops */

#include "gateway/call/meter.h"
#include "host/admission.h"
#include "host/quota.h"
#include "support/front_walk.h"

enum event { END, TOKEN, LOOSE, DONE, BROKE_OFF, RESULT, FAIL };

static uint32_t n_passed;

static void pass_token(struct sink *s, const struct sink_token *e)
{
    (void)s;
    (void)e;
    n_passed++;
}

static void pass_done(struct sink *s, const struct sink_done *e)
{
    (void)s;
    (void)e;
    n_passed++;
}

static void pass_result(struct sink *s, const struct sink_result *e)
{
    (void)s;
    (void)e;
    n_passed++;
}

static void pass_fail(struct sink *s, const struct failure *f)
{
    (void)s;
    (void)f;
    n_passed++;
}

static void pass_closed(struct sink *s)
{
    (void)s;
    n_passed++;
}

static void pass_broke_off(struct sink *s, const struct sink_done *e, int code)
{
    (void)s;
    (void)e;
    (void)code;
    n_passed++;
}

struct spent {
    uint64_t prompt, generated;
};

/* The tokens that these events cost; the request has n_each answers to each prompt. */
static struct spent cost_of(const enum event *events, uint32_t n_each)
{
    static const struct sink_ops ops = {.token = pass_token,
                                        .result = pass_result,
                                        .done = pass_done,
                                        .fail = pass_fail,
                                        .closed = pass_closed,
                                        .broke_off = pass_broke_off};
    char name[] = "app";
    const struct quota_opts qo = {.cache_dir = ""};
    const struct admission_key key = {
        .name = name, .sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    struct sink to = {.ops = &ops};
    struct admission_opts ao = {.keys = &key, .n_keys = 1};
    struct admission *a;
    struct meter m;
    struct err e = {0};
    uint32_t n = 0, choice = 0;
    assert_int_equal(quota_create(&ao.quota, &qo, &e), 0);
    assert_int_equal(admission_create(&a, &ao, &e), 0);
    struct admission_client *client = admission_find_name(a, "app");
    assert_non_null(client);
    meter_init(&m, &to, a, client, 1000);
    struct sink *sink = &m.front.sink;
    m.n_each = n_each;
    n_passed = 0;
    for (; events[n] != END; n++) {
        const struct sink_token token = {.token = events[n] == TOKEN ? 0 : -1};
        const struct sink_done done = {
            .choice = choice, .prompt_tokens = 10, .generated_tokens = 4};
        const struct shoal_result of = {.n_tokens = 7};
        const struct sink_result result = {.result = &of};
        const struct failure failure = {.kind = FAILURE_INTERNAL};
        if (events[n] == TOKEN || events[n] == LOOSE)
            sink->ops->token(sink, &token);
        else if (events[n] == DONE)
            sink->ops->done(sink, &done), choice++;
        else if (events[n] == BROKE_OFF)
            sink->ops->broke_off(sink, &done, SHOAL_ECANCELLED), choice++;
        else if (events[n] == RESULT)
            sink->ops->result(sink, &result);
        else
            sink->ops->fail(sink, &failure);
    }
    sink->ops->closed(sink);
    assert_int_equal(n_passed, n + 1); /* the codec got every event */
    const struct spent c = {client->account->prompt_tokens, client->account->generated_tokens};
    admission_destroy(a);
    quota_destroy(ao.quota);
    return c;
}

static void test_costs(void **state)
{
    static const struct {
        const char *why;
        uint32_t n_each;
        struct spent want;
        enum event events[8];
    } rows[] = {
        {"an answer", 1, {10, 4}, {TOKEN, TOKEN, TOKEN, TOKEN, DONE}},
        {"from the cache, or a tool call: as usage says", 1, {10, 4}, {DONE}},
        {"two answers to one prompt share it", 2, {10, 8}, {DONE, DONE}},
        {"two prompts with one answer each do not", 1, {20, 8}, {DONE, DONE}},
        {"two prompts with two answers each", 2, {20, 16}, {DONE, DONE, DONE, DONE}},
        {"more tokens came than were counted",
         1,
         {10, 5},
         {TOKEN, TOKEN, TOKEN, TOKEN, TOKEN, DONE}},
        {"text without a token is free", 1, {10, 4}, {LOOSE, LOOSE, LOOSE, LOOSE, LOOSE, DONE}},
        {"the client left: what was computed", 1, {10, 4}, {TOKEN, BROKE_OFF}},
        {"a node worked for it: a guess, and what came", 1, {1000, 2}, {TOKEN, TOKEN}},
        {"nothing came, nothing failed: the guess", 1, {1000, 0}, {END}},
        {"it failed before anything was computed", 1, {0, 0}, {FAIL}},
        {"it failed after two tokens", 1, {1000, 2}, {TOKEN, TOKEN, FAIL}},
        {"results of specialists are prompts", 1, {21, 0}, {RESULT, RESULT, RESULT}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct spent c = cost_of(rows[i].events, rows[i].n_each);
        if (c.prompt != rows[i].want.prompt || c.generated != rows[i].want.generated)
            print_error("%s\n", rows[i].why);
        assert_int_equal(c.prompt, rows[i].want.prompt);
        assert_int_equal(c.generated, rows[i].want.generated);
    }
}

static struct meter meter;
static struct admission *unlimited;

static struct sink *open_meter(struct sink *client)
{
    meter_init(&meter, client, unlimited, NULL, 10);
    return &meter.front.sink;
}

static void end(void)
{
}

static void test_it_changes_nothing(void **state)
{
    static const enum walk_kind kinds[] = {WALK_GENERATE, WALK_INFER, WALK_ASK};
    struct err e;
    (void)state;
    assert_int_equal(admission_create(&unlimited, &(struct admission_opts){.quota = NULL}, &e), 0);
    for (size_t i = 0; i < 3; i++)
        walk(&(struct walk_opts){.kind = kinds[i],
                                 .n_choices = kinds[i] == WALK_GENERATE ? 2 : 1,
                                 .calls = true,
                                 .replaces = true,
                                 .open = open_meter,
                                 .end = end});
    admission_destroy(unlimited);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_it_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
