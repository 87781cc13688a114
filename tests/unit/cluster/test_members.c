/* test_members.c - what a member answers about models when it does not hear all nodes: which there
 * are, and whether one may still come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* a member of sink_ops */

#include "base/log.h"
#include "cluster/control/desired.h"
#include "cluster/deployed.h"
#include "cluster/members.h"
#include "cluster/messages/node_state.h"
#include "cluster/replica.h"
#include "flow/dispatch.h"
#include "flow/flow.h"
#include "net/loop.h"
#include "support/recorder.h"

static struct {
    struct loop *loop;
    struct flow flow;
    struct flow_owner owner;
    struct deployed *deployed;
    struct members *members;
    struct replica_counts counts;
    char names[256];
} site;

static int open_site(void **state)
{
    struct err e = {0};
    (void)state;
    memset(&site, 0, sizeof(site));
    int rc = loop_create(&site.loop, &e);
    if (rc == 0)
        rc = deployed_create(&site.deployed, &e);
    flow_owner_init(&site.owner, &site.flow, loop_executor(site.loop));
    return rc;
}

static int close_site(void **state)
{
    (void)state;
    members_destroy(site.members);
    loop_turn(site.loop, 0); /* connections are freed by the loop */
    assert_int_equal(site.owner.n_jobs, 0);
    flow_owner_fini(&site.owner);
    deployed_destroy(site.deployed);
    loop_destroy(site.loop);
    return 0;
}

static void open_members(uint32_t n_nodes, bool with_nats)
{
    static const char *const nowhere[] = {"unix:/nowhere/shoal-1", "unix:/nowhere/shoal-2"};
    const struct members_opts o = {.nodes = nowhere,
                                   .n_nodes = n_nodes,
                                   .deployed = with_nats ? site.deployed : NULL,
                                   .counts = &site.counts,
                                   .wait_ms = 200,
                                   .heartbeat_ms = 100,
                                   .silent_ms = 1000};
    struct err e = {0};
    assert_int_equal(members_create(&site.members, site.loop, &o, &e), 0);
}

/* False: this process is to answer, which knows only its own models. */
static bool ask(struct recorder *r, const char *model)
{
    struct request *q = flow_take_request(&site.owner);
    struct request_prompt *p = q ? arena_zalloc(&q->arena, sizeof(*p)) : NULL;
    assert_non_null(p);
    *p = (struct request_prompt){.text = "hello", .text_bytes = 5};
    q->kind = REQUEST_GENERATE;
    q->model = model;
    q->generate.prompts = p;
    q->generate.n_prompts = q->generate.n = 1;
    q->generate.max_tokens = 1;
    recorder_init(r);
    struct dispatch *d = members_dispatch(site.members);
    const bool taken = d->ops->run(d, &site.owner, q, &r->sink);
    if (!taken)
        flow_give_request(&site.owner, q);
    while (taken && r->n_closed == 0)
        loop_turn(site.loop, 10);
    return taken;
}

static void until_settled(void)
{
    while (!members_settled(site.members))
        loop_turn(site.loop, 10);
}

static struct recorder rec;

/* Nodes of a list that cannot be reached may have any model: "not now", and never "there is none",
 * which clients take as final. */
static void test_a_node_that_was_never_reached(void **state)
{
    (void)state;
    open_members(2, false);
    for (int settled = 0; settled < 2; settled++) {
        assert_true(ask(&rec, "story"));
        assert_int_equal(rec.n_fails, 1);
        assert_int_equal(rec.failure.kind, FAILURE_UNAVAILABLE);
        assert_string_equal(rec.reason, REPLICA_ABSENT);
        assert_true(rec.failure.retry_after_s > 0);
        until_settled();
    }
    assert_false(members_ready(site.members));
}

/* A gateway that finds nodes through NATS and knows none yet waits; when all have had the time to
 * be heard, what nobody has does not exist. */
static void test_before_all_were_heard(void **state)
{
    (void)state;
    open_members(0, true);
    assert_false(members_settled(site.members));
    assert_true(ask(&rec, "story"));
    assert_int_equal(rec.failure.kind, FAILURE_UNAVAILABLE);
    deployed_settle(site.deployed);
    assert_true(members_settled(site.members));
    assert_false(ask(&rec, "story"));
}

static void deploy(struct desired *d, const char *name, unsigned kinds)
{
    const struct desired_model m = {
        .name = name, .kinds = kinds, .source = "", .apart = "", .memory_bytes = 1};
    assert_int_equal(desired_put_model(d, &m), 0);
}

static void note_model(void *ctx, const struct node_model *m)
{
    char *names = ctx;
    snprintf(names + strlen(names), 256 - strlen(names), "%s%s ", m->name,
             m->state == REGISTRY_UNLOADED ? "" : "!");
}

/* A model that is scaled to zero is listed, so that somebody can ask for it; and a request for it
 * waits for a replica, which the controller hears of. */
static void test_models_scaled_to_zero(void **state)
{
    struct desired *d;
    struct arena a;
    struct err e = {0};
    const char *const *wanted;
    (void)state;
    open_members(0, true);
    deployed_settle(site.deployed);
    assert_int_equal(desired_create(&d, &e), 0);
    deploy(d, "sleeps", SHOAL_KIND_GENERATE);
    deploy(d, "rests", SHOAL_KIND_CLASSIFY);
    deployed_set(site.deployed, d);
    members_each_model(site.members, note_model, site.names);
    assert_string_equal(site.names, "sleeps rests ");
    arena_init(&a, 1 << 16);
    assert_int_equal(deployed_wanted(site.deployed, &a, &wanted), 0);
    do { /* it is wanted for a second after the last look */
        assert_true(ask(&rec, "sleeps"));
        assert_int_equal(rec.failure.kind, FAILURE_UNAVAILABLE);
    } while (deployed_wanted(site.deployed, &a, &wanted) == 0);
    assert_string_equal(wanted[0], "sleeps");
    assert_false(ask(&rec, "other"));
    arena_fini(&a);
    desired_destroy(d);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_site, close_site)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_node_that_was_never_reached),
        TEST(test_before_all_were_heard),
        TEST(test_models_scaled_to_zero),
    };
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
