/* test_choose.c - which replica a request gets, and when one that looks slow is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/choose.h"
#include "cluster/control/desired.h"
#include "cluster/deployed.h"
#include "flow/request.h"

#define MS UINT64_C(1000000)
#define NOW UINT64_C(1000000000000)
#define N 3u

static struct {
    struct node_model models[N];
    struct node_state states[N];
    struct replica replicas[N];
    struct probe probes[N];
    bool ready[N];
    uint32_t calls[N], told[N];
    double held[N];
    struct request request;
    struct deployed *deployed; /* or NULL */
    enum split_mode split;
} site;

/* Three nodes with one model: 1 ms a token, idle. */
static void reset(void)
{
    static char *const names[] = {"a", "b", "c"};
    memset(&site, 0, sizeof(site));
    site.request.kind = REQUEST_GENERATE;
    site.request.model = "m";
    for (uint32_t i = 0; i < N; i++) {
        site.models[i] = (struct node_model){.name = "m",
                                             .kinds = SHOAL_KIND_GENERATE,
                                             .state = REGISTRY_READY,
                                             .token_ns = 1e6,
                                             .prefill_ns = 1e5};
        site.states[i] =
            (struct node_state){.name = names[i], .models = &site.models[i], .n_models = 1};
        site.replicas[i].name = names[i];
        site.ready[i] = true;
    }
}

static struct replica *choose(uint64_t now, const struct replica_query *more, uint64_t *expect_ns)
{
    struct replica_query q = more ? *more : (struct replica_query){0};
    struct choose c = {.now_ns = now, .deployed = site.deployed, .split = site.split};
    uint64_t ns = 0;
    q.request = &site.request;
    q.expect_ns = expect_ns ? expect_ns : &ns;
    for (uint32_t i = 0; i < N; i++) {
        const struct choose_view v = {.state = &site.states[i],
                                      .replica = &site.replicas[i],
                                      .name = site.states[i].name,
                                      .ready = site.ready[i],
                                      .calls = site.calls[i],
                                      .told_calls = site.told[i],
                                      .slowness = 1,
                                      .held = site.held[i],
                                      .probe = &site.probes[i]};
        choose_look(&c, &q, &v);
    }
    return choose_end(&c, &q);
}

static uint32_t chosen(uint64_t now)
{
    const struct replica *p = choose(now, NULL, NULL);
    return p ? (uint32_t)(p - site.replicas) : N;
}

static void test_the_cheapest(void **state)
{
    (void)state;
    reset();
    site.models[0].token_ns = 2e6;
    site.calls[2] = 1;
    assert_int_equal(chosen(NOW), 1);
    site.models[1].in_flight =
        4; /* now: 2 ms, 5 ms, and 4 ms: what it has not told makes it slower */
    assert_int_equal(chosen(NOW), 0);
    site.ready[0] = false;
    assert_int_equal(chosen(NOW), 2);
    site.models[2].standby = true; /* only if no other can answer */
    assert_int_equal(chosen(NOW), 1);
    site.ready[1] = false;
    assert_int_equal(chosen(NOW), 2);
    site.ready[2] = false;
    assert_int_equal(chosen(NOW), N);
}

/* A node told that it works on a request of ours, which has ended since. */
/* Whether a request should wait, though no node can answer it now. */
static bool waits(void)
{
    struct choose c = {.now_ns = 1};
    const struct replica_query q = {.request = &site.request};
    for (uint32_t i = 0; i < N; i++)
        choose_look(&c, &q,
                    &(struct choose_view){.state = &site.states[i], .replica = &site.replicas[i]});
    assert_null(choose_end(&c, &q));
    return c.known;
}

static void test_a_model_that_is_loading_may_be_the_default(void **state)
{
    (void)state;
    reset();
    site.request.kind = REQUEST_INFER;
    site.request.infer.kind = SHOAL_KIND_TRANSCRIBE;
    site.request.model = NULL;
    assert_false(waits());
    site.models[1].kinds = 0;
    assert_false(waits()); /* ready, and of no kind */
    site.models[1].state = REGISTRY_LOADING;
    assert_true(waits());
    site.request.model = "other"; /* its name is known */
    assert_false(waits());
    site.request.model = NULL;
    site.request.kind = REQUEST_ASK;
    assert_false(waits());
}

/* Whoever loads the model is asked when no other can answer: the request would wait.  A model that
 * nobody has asked for is loaded by a request, if those that have it are busy; but not by one that
 * continues an answer. */
static void test_a_node_that_is_ready_comes_before_one_that_loads(void **state)
{
    static const uint8_t sum[SHA256_BYTES] = {1};
    const struct replica_query stream = {.version = sum};
    bool loads = false;
    struct replica_query ask = {.loads = &loads};
    (void)state;
    reset();
    site.ready[2] = false;
    site.models[0].in_flight = 40; /* 41 ms a token, and the other does not know what it needs */
    site.models[1] =
        (struct node_model){.name = "m", .kinds = SHOAL_KIND_GENERATE, .state = REGISTRY_LOADING};
    assert_int_equal(chosen(NOW), 0);
    site.models[0].standby = true; /* that is what it is for */
    assert_ptr_equal(choose(NOW, &ask, NULL), &site.replicas[0]);
    assert_false(loads);
    site.models[0].waits = true; /* its version is perhaps not the present one */
    site.request.may_be_old = true;
    assert_ptr_equal(choose(NOW, &ask, NULL), &site.replicas[1]);
    assert_true(loads);
    ask.loaded = true;
    assert_ptr_equal(choose(NOW, &ask, NULL), &site.replicas[0]);
    site.models[0].sum = site.models[1].sum = sum;
    assert_ptr_equal(choose(NOW, &stream, NULL), &site.replicas[0]); /* it is the right one */
    site.models[0].standby = site.models[0].waits = false;
    site.models[1].state = REGISTRY_UNLOADED;
    assert_int_equal(chosen(NOW), 1);
    assert_ptr_equal(choose(NOW, &stream, NULL), &site.replicas[0]);
    site.ready[0] = false;
    assert_ptr_equal(choose(NOW, &stream, NULL), &site.replicas[1]);
    site.ready[0] = true;
    site.models[1].state = REGISTRY_READY; /* idle, but it has not heard the present state */
    site.models[1].waits = true;
    assert_ptr_equal(choose(NOW, &stream, NULL), &site.replicas[0]);
}

/* Node a reads ten times as fast, but has so many streams that b is chosen. */
static void test_long_prompts_begin_on_the_strong_node(void **state)
{
    bool splits = false;
    const struct replica_query q = {.splits = &splits};
    (void)state;
    reset();
    site.ready[2] = false;
    site.request.generate.n = site.request.generate.n_prompts = 1;
    site.request.input_bytes = (size_t)(4000 * REQUEST_TOKEN_BYTES);
    for (uint32_t i = 0; i < N; i++) {
        site.models[i].page_bytes = 16 * 4096;
        site.states[i].link = 125e6;
        site.replicas[i].address = "somewhere";
    }
    site.models[0].prefill_ns = 1e5;
    site.models[0].token_ns = 7e7;
    site.models[1].prefill_ns = 2e6;
    site.models[1].token_ns = 2e7;
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[0]);
    assert_true(splits);
    assert_int_equal(chosen(NOW), 1); /* a request that began already */
    site.request.input_bytes = 100;
    splits = false;
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    assert_false(splits);
    site.request.input_bytes = (size_t)(4000 * REQUEST_TOKEN_BYTES);
    site.split = SPLIT_NEVER;
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    site.split = SPLIT_AUTO;
    site.models[0].token_ns = 3e7; /* it writes well, too */
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[0]);
    assert_false(splits);
    site.models[0].token_ns = 7e7;
    site.held[1] = 0.6; /* a conversation stays, though the other would still be faster */
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    assert_false(splits);
    site.held[1] = 0;
    site.request.generate.max_tokens = 4; /* not worth a second node */
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[0]);
    assert_false(splits);
    site.request.generate.max_tokens = 0;
    site.models[0].state = REGISTRY_UNLOADED;
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    site.models[0].state = REGISTRY_READY;
    site.replicas[0].address = NULL; /* nobody could fetch from it */
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    site.replicas[0].address = "somewhere";
    site.models[0].page_bytes = 0;
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    site.models[0].page_bytes = 16 * 4096;
    site.models[0].standby = true;
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    site.models[0].standby = false;
    site.request.generate.n = 2; /* two answers */
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    site.request.generate.n = 1;
    assert_false(splits);
    site.split = SPLIT_ALWAYS; /* whoever was chosen */
    site.models[1].prefill_ns = 1e3;
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    assert_true(splits);
    splits = false;
    site.ready[0] = false; /* there is nobody else */
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    assert_false(splits);
}

static void test_what_a_node_told_is_old(void **state)
{
    (void)state;
    reset();
    site.models[0].in_flight = site.models[1].in_flight = 2;
    site.models[2].in_flight = 1;
    assert_int_equal(chosen(NOW), 2);
    site.told[1] = 2; /* both were ours, and none is left */
    assert_int_equal(chosen(NOW), 1);
    site.calls[1] = 2;
    assert_int_equal(chosen(NOW), 2);
    site.calls[2] = 1; /* another one of ours, which it has not told yet */
    site.told[0] = 1;
    assert_int_equal(chosen(NOW), 0);
}

/* A node is lost, and all its requests look for another one at the same moment: they are shared
 * out, though one node has just come back, is idle, and says so. */
static void test_an_idle_node_does_not_get_all_requests_of_a_moment(void **state)
{
    (void)state;
    reset();
    site.ready[2] = false;
    site.models[1].in_flight = site.calls[1] = site.told[1] = 8;
    site.models[1].token_ns = 9e6; /* of a step with one more */
    for (uint32_t i = 0; i < 16; i++)
        site.calls[chosen(NOW)]++;
    assert_in_range(site.calls[0], 11, 13);
    assert_int_equal(site.calls[0] + site.calls[1], 24);
}

/* What a node says is of the load that it tells: a step serves all its requests. */
static void test_the_time_to_the_next_piece(void **state)
{
    uint64_t expect_ns = 0, token_ns = 0;
    const struct replica_query q = {.token_ns = &token_ns};
    (void)state;
    reset();
    site.ready[1] = site.ready[2] = false;
    site.request.input_bytes = 100 * REQUEST_TOKEN_BYTES;
    assert_non_null(choose(NOW, &q, &expect_ns));
    assert_int_equal(expect_ns, 11 * MS); /* 100 tokens of the prompt, and one */
    assert_int_equal(token_ns, MS);
    const struct replica_query more = {.n_given = 50};
    assert_non_null(choose(NOW, &more, &expect_ns));
    assert_int_equal(expect_ns, 16 * MS); /* and 50 of the answer, which the client has */
    site.models[0].in_flight = site.calls[0] = site.told[0] = 9;
    site.models[0].queue_ns = 5e6;
    assert_non_null(choose(NOW, &q, &expect_ns));
    assert_int_equal(expect_ns, 16 * MS);
    assert_int_equal(token_ns, MS);
    site.calls[0] = 19; /* ten that it has not told yet */
    assert_non_null(choose(NOW, &q, &expect_ns));
    assert_int_equal(expect_ns, 32 * MS);
    assert_int_equal(token_ns, 2 * MS);
}

/* One that looks slow gets a request at once, then ever more rarely. */
static void test_probes_are_rare(void **state)
{
    uint32_t n = 0, first = 0;
    (void)state;
    reset();
    site.models[1].token_ns = 5e9;
    for (uint64_t ms = 0; ms < 300000; ms += 10) {
        bool probed = chosen(NOW + ms * MS) == 1;
        n += probed;
        first += probed && ms < 5000;
    }
    assert_int_equal(first, 3);    /* at 0, 1 and 3 s */
    assert_in_range(n, 7, 11);     /* of 30,000 */
    site.models[1].token_ns = 1e6; /* it was measured: it has its share again */
    site.calls[0] = site.calls[2] = 1;
    assert_int_equal(chosen(NOW + 300000 * MS), 1);
    site.models[1].token_ns = 5e9; /* and the next doubt is a new one */
    assert_int_equal(chosen(NOW + 300000 * MS), 1);
}

/* A probe is expected to answer like the best: the relay does not wait for as long as it says. */
static void test_a_probe_has_the_patience_of_the_best(void **state)
{
    uint64_t best = 0, probe = 0;
    (void)state;
    reset();
    assert_int_equal(choose(NOW, NULL, &best) - site.replicas, 0);
    site.models[1].token_ns = 5e9;
    assert_int_equal(choose(NOW, NULL, &probe) - site.replicas, 1);
    assert_true(best > 0 && probe == best);
}

/* What is not probed, or not used as a probe. */
static void test_no_probe(void **state)
{
    const uint8_t sum[SHA256_BYTES] = {1};
    struct replica *const tried[] = {&site.replicas[2]};
    const struct replica_query again = {.avoid = tried, .n_avoid = 1}, version = {.version = sum};
    (void)state;
    for (int i = 0; i < 10; i++) {
        const struct replica_query *q = NULL;
        reset();
        site.models[1].token_ns = 5e9;
        if (i == 0)
            site.request.deadline_ns = NOW + 1000 * MS;
        else if (i == 1)
            site.request.node = "a";
        else if (i == 2)
            q = &again;
        else if (i == 3)
            site.models[0].sum = site.models[1].sum = site.models[2].sum = sum, q = &version;
        else if (i == 4)
            site.models[1].in_flight = 1; /* somebody measures it */
        else if (i == 5)
            site.calls[1] = 1;
        else if (i == 6)
            site.ready[1] = false;
        else if (i == 7)
            site.models[1].token_ns = 3e6; /* not far from the best */
        else if (i ==
                 8) /* nobody knows how long an answer takes: a silent one would be waited for */
            site.models[0].prefill_ns = site.models[2].prefill_ns = 0;
        else
            site.models[1].standby = true;
        if (choose(NOW, q, NULL) != &site.replicas[0])
            fail_msg("case %d", i);
    }
}

/* A node that does not know of an update that has ended is used only when no other can answer. */
static void test_who_is_behind_comes_last(void **state)
{
    static const uint8_t old[SHA256_BYTES] = {1}, new[SHA256_BYTES] = {2};
    struct desired_model m = {.name = "m", .source = "", .apart = ""};
    struct desired_rollout r = {
        .id = "r", .model = "m", .source = "", .kind = DESIRED_ROLLING, .state = DESIRED_RUNNING};
    struct desired *d;
    (void)state;
    reset();
    assert_int_equal(deployed_create(&site.deployed, NULL), 0);
    assert_int_equal(desired_create(&d, NULL), 0);
    memcpy(m.sha256, new, SHA256_BYTES);
    memcpy(r.from, old, SHA256_BYTES);
    memcpy(r.to, new, SHA256_BYTES);
    assert_int_equal(desired_put_model(d, &m), 0);
    assert_int_equal(desired_put_rollout(d, &r), 0);
    d->version = 7;
    d->epoch = 3;
    deployed_set(site.deployed, d);
    for (uint32_t i = 0; i < N; i++) {
        site.states[i].desired = 7;
        site.models[i].sum = new;
        site.models[i].token_ns = 2e6;
    }
    site.models[0].sum = old; /* the fastest, but behind */
    site.models[0].token_ns = 1e6;
    site.states[0].desired = 6;
    assert_int_equal(chosen(NOW), 0); /* both versions serve while the update runs */
    d->rollouts[0].state = DESIRED_DONE;
    deployed_set(site.deployed, d);
    assert_int_equal(chosen(NOW), 1);
    site.request.epoch = 3;
    assert_int_equal(chosen(NOW), 1);
    site.request.epoch = 2; /* an old request: it gets the version of its epoch */
    assert_int_equal(chosen(NOW), 0);
    site.request.epoch = 0;
    site.states[0].desired = 8; /* it knows more than this gateway */
    assert_int_equal(chosen(NOW), 0);
    site.states[0].desired = 0; /* it has just started */
    assert_int_equal(chosen(NOW), 1);
    site.ready[1] = site.ready[2] = false; /* better than none */
    assert_int_equal(chosen(NOW), 0);
    desired_destroy(d);
    deployed_destroy(site.deployed);
}

/* The node that has read the prompt answers although it is busier, but only up to a limit. */
static void test_who_has_read_the_prompt(void **state)
{
    (void)state;
    reset();
    site.request.input_bytes = 4000; /* 1,000 tokens: 100 ms, and 64 tokens of an answer: 64 ms */
    site.held[1] = 0.9;
    assert_int_equal(chosen(NOW), 1);
    site.models[1].in_flight = 3; /* 4 to 1; for nine tenths of the prompt 3.7 are allowed */
    site.models[1].token_ns = 2e6;
    assert_int_equal(chosen(NOW), 0);
    site.models[1].in_flight = 2;
    assert_int_equal(chosen(NOW), 1);
    site.models[1].in_flight = 20; /* it still has room: its figures decide */
    site.models[1].parallel = 32;
    assert_int_equal(chosen(NOW), 1);
    site.models[1].token_ns = 10e6; /* 640 ms and a little; elsewhere 164 ms */
    assert_int_equal(chosen(NOW), 0);
    site.models[1].token_ns = 2e6;
    site.models[1].queue_ns = 1e9; /* the wait would be longer than reading it again */
    assert_int_equal(chosen(NOW), 0);
}

/* Where its pages are, if another node answers; also one that takes no requests at the moment. */
static void test_who_has_the_pages(void **state)
{
    (void)state;
    const struct replica *holder = NULL;
    double part = 0;
    const struct replica_query q = {.holder = &holder, .holder_part = &part};
    reset();
    site.request.input_bytes = 4000;
    site.held[1] = 0.9;
    assert_ptr_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    assert_null(holder); /* it answers itself */
    site.models[1].in_flight = 30;
    site.models[1].queue_ns = 1e9;
    assert_ptr_not_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    assert_ptr_equal(holder, &site.replicas[1]);
    assert_true(part > 0.89 && part < 0.91);
    holder = NULL;
    site.ready[1] = false;
    assert_ptr_not_equal(choose(NOW, &q, NULL), &site.replicas[1]);
    assert_ptr_equal(holder, &site.replicas[1]);
    holder = NULL;
    site.held[0] = site.held[2] = 0.85; /* hardly less */
    (void)choose(NOW, &q, NULL);
    assert_null(holder);
    site.held[0] = site.held[2] = 0;
    site.models[1].state = REGISTRY_UNLOADING; /* with its pages */
    (void)choose(NOW, &q, NULL);
    assert_null(holder);
}

/* A node with two replicas takes twice as much. */
static void test_replicas_share_the_load(void **state)
{
    (void)state;
    reset();
    for (uint32_t i = 0; i < N; i++)
        site.models[i].in_flight = 4;
    site.models[2].replicas = 2;
    site.models[2].in_flight = 6;
    assert_int_equal(chosen(NOW), 2);
    site.models[2].in_flight = 9;
    assert_int_not_equal(chosen(NOW), 2);
}

/* What is soon computed again is no reason to wait. */
static void test_a_short_prompt_goes_anywhere(void **state)
{
    (void)state;
    reset();
    site.request.input_bytes = 40;
    site.held[1] = 1;
    assert_int_equal(chosen(NOW), 1);
    site.calls[1] = 1;
    assert_int_equal(chosen(NOW), 0);
}

/* Requests that were sent since the last heartbeat count: a prompt that all clients send does not
 * make one node hot. */
static void test_a_shared_prompt_makes_no_hot_spot(void **state)
{
    (void)state;
    reset();
    site.request.input_bytes = 4000;
    site.held[1] = 0.9;
    for (uint32_t i = 0; i < N; i++)
        site.models[i].parallel = 64;
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t to = chosen(NOW);
        assert_true(to < N);
        site.calls[to]++;
        site.held[to] = 0.9; /* it has been read there now */
    }
    for (uint32_t i = 0; i < N; i++)
        assert_in_range(site.calls[i], 12, 32);
}

/* The longest prefix wins; of equals the cheapest; none goes where it must not. */
static void test_the_longest_prefix(void **state)
{
    (void)state;
    reset();
    site.request.input_bytes = 4000;
    site.held[0] = 0.3;
    site.held[1] = 0.6;
    site.held[2] = 0.62;
    site.calls[2] = 1;
    assert_int_equal(chosen(NOW), 1);
    site.calls[1] = 1, site.calls[2] = 0;
    assert_int_equal(chosen(NOW), 2);
    site.models[2].standby = true;
    assert_int_equal(chosen(NOW), 1);
    site.ready[1] = false;
    assert_int_equal(chosen(NOW), 0);
    site.ready[1] = true;
    site.models[1].state = REGISTRY_LOADING; /* whatever it had is gone */
    assert_int_equal(chosen(NOW), 0);
    site.models[1].state = REGISTRY_READY;
    site.request.node = "a"; /* the route has chosen, with this in mind */
    assert_int_equal(chosen(NOW), 0);
}

/* A conversation is not used to find out whether another node is as slow as it looks. */
static void test_no_probe_with_a_conversation(void **state)
{
    (void)state;
    reset();
    site.models[1].token_ns = 5e9;
    site.held[0] = 0.8;
    assert_int_equal(chosen(NOW), 0);
    site.held[1] = 0.8; /* both have it */
    assert_int_equal(chosen(NOW), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_cheapest),
        cmocka_unit_test(test_a_model_that_is_loading_may_be_the_default),
        cmocka_unit_test(test_a_node_that_is_ready_comes_before_one_that_loads),
        cmocka_unit_test(test_long_prompts_begin_on_the_strong_node),
        cmocka_unit_test(test_what_a_node_told_is_old),
        cmocka_unit_test(test_an_idle_node_does_not_get_all_requests_of_a_moment),
        cmocka_unit_test(test_the_time_to_the_next_piece),
        cmocka_unit_test(test_probes_are_rare),
        cmocka_unit_test(test_a_probe_has_the_patience_of_the_best),
        cmocka_unit_test(test_no_probe),
        cmocka_unit_test(test_who_is_behind_comes_last),
        cmocka_unit_test(test_who_has_read_the_prompt),
        cmocka_unit_test(test_who_has_the_pages),
        cmocka_unit_test(test_replicas_share_the_load),
        cmocka_unit_test(test_a_short_prompt_goes_anywhere),
        cmocka_unit_test(test_a_shared_prompt_makes_no_hot_spot),
        cmocka_unit_test(test_the_longest_prefix),
        cmocka_unit_test(test_no_probe_with_a_conversation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
