/* test_router.c - decisions: filters, policies, degraded answers, and the report on every
 * candidate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "router/router.h"

#define MS 1e6

static char small_name[] = "small", big_name[] = "big", coder_name[] = "coder";
static char *code[] = {"code"}, *german[] = {"de", "at"};
static struct router_model models[] = {
    {.name = small_name, .quality = 0.6, .cost = 1, .watts = 5},
    {.name = big_name, .quality = 0.9, .cost = 4, .watts = 20},
    {.name = coder_name, .quality = 0.8, .cost = 2, .watts = 10, .domains = {code, 1}},
};

/* small here and on "pi"; big on "pc"; coder here. */
static struct router_candidate all[] = {
    {.model = &models[0], .speed = {.prefill_ns = 0.05 * MS, .token_ns = 1 * MS, .parallel = 4}},
    {.model = &models[0],
     .node = "pi",
     .on_battery = true,
     .battery = 50,
     .speed = {.prefill_ns = 0.2 * MS, .token_ns = 4 * MS, .rtt_ns = 1 * MS, .parallel = 2}},
    {.model = &models[1],
     .node = "pc",
     .speed = {.prefill_ns = 0.4 * MS, .token_ns = 8 * MS, .rtt_ns = 1 * MS, .parallel = 4}},
    {.model = &models[2], .speed = {.prefill_ns = 0.1 * MS, .token_ns = 3 * MS, .parallel = 4}},
};
enum { SMALL_HERE, SMALL_PI, BIG_PC, CODER_HERE, N_ALL };

static struct router_route make(const char *policy)
{
    static char name[] = "auto";
    struct router_route r = {.name = name, .models = models, .n_models = 3, .least_battery = 20};
    char words[64];
    struct err e = {0};
    snprintf(words, sizeof(words), "%s", policy);
    for (char *rest = words, *w; (w = strsep(&rest, " "));)
        if (router_policy_add(&r.policy, w, &e) < 0)
            fail_msg("%s", e.msg);
    return r;
}

static struct router_request ask(double budget_ms)
{
    return (struct router_request){
        .facts = {.path = "/v1/chat/completions",
                  .client = "app",
                  .language = "",
                  .kind = "generate",
                  .text = "hello",
                  .text_bytes = 5},
        .work = {.prompt_tokens = 100, .max_tokens = 20},
        .budget_ns = budget_ms * MS,
    };
}

static void test_policies_choose(void **state)
{
    static const struct {
        const char *why, *policy;
        double budget_ms;
        int32_t want;
        bool degraded;
    } cases[] = {
        {"no deadline: the best quality", "sla", 0, BIG_PC, false},
        {"the best that is in time: big needs 201 ms and a margin", "sla", 300, BIG_PC, false},
        {"big is late", "sla", 205, CODER_HERE, false},
        {"only the small one here is in time", "sla", 50, SMALL_HERE, false},
        {"nobody is: the fastest, and it is told", "sla", 10, SMALL_HERE, true},
        {"the cheapest of those in time", "cheapest", 300, SMALL_HERE, false},
        {"cheapest, however slow", "cost latency", 0, SMALL_HERE, false},
        {"least energy: 5 W for 25 ms", "energy", 0, SMALL_HERE, false},
        {"mains power, then quality", "battery quality", 0, BIG_PC, false},
        {"the fastest", "latency", 0, SMALL_HERE, false},
        {"the first of equally loaded ones", "least_loaded", 0, SMALL_HERE, false},
        {"quality first, deadline not asked", "quality", 1, BIG_PC, false},
    };
    struct router_decision d;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct router_route r = make(cases[i].policy);
        struct router_request q = ask(cases[i].budget_ms);
        router_decide(&d, &r, &q, all, N_ALL);
        if (d.chosen != cases[i].want || d.degraded != cases[i].degraded)
            fail_msg("%s: %d, degraded %d", cases[i].why, d.chosen, d.degraded);
    }
}

/* From the route's limit on all batteries are alike, so the next step of the policy decides; below
 * it the fuller one wins. */
static void test_batteries_at_the_limit_of_a_route(void **state)
{
    static const struct {
        uint32_t slow, fast; /* charge of the slower and of the faster node */
        int32_t want;
    } cases[] = {{90, 20, 1}, {90, 21, 1}, {90, 19, 0}, {20, 19, 0}, {19, 18, 0}, {18, 19, 1}};
    struct router_route r = make("battery latency");
    struct router_request q = ask(0);
    struct router_decision d;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct router_candidate c[2] = {all[SMALL_PI], all[SMALL_PI]};
        c[0].battery = cases[i].slow;
        c[1].battery = cases[i].fast;
        c[1].speed.token_ns /= 4;
        router_decide(&d, &r, &q, c, 2);
        if (d.chosen != cases[i].want)
            fail_msg("%u %% and %u %%: %d", cases[i].slow, cases[i].fast, d.chosen);
    }
}

static void test_every_candidate_has_a_reason(void **state)
{
    struct router_route r = make("sla");
    struct router_request q = ask(205);
    struct router_decision d;
    (void)state;
    router_decide(&d, &r, &q, all, N_ALL);
    assert_int_equal(d.n, N_ALL);
    assert_int_equal(d.verdicts[CODER_HERE], ROUTER_CHOSEN);
    assert_int_equal(d.verdicts[BIG_PC], ROUTER_LATE);
    assert_int_equal(d.verdicts[SMALL_HERE], ROUTER_WORSE);
    assert_int_equal(d.verdicts[SMALL_PI], ROUTER_WORSE);
    for (int v = 0; v < ROUTER_N_VERDICTS; v++)
        assert_true(router_verdict_name((enum router_verdict)v)[0] &&
                    router_verdict_text((enum router_verdict)v)[0]);
    const struct router_estimate *x = &d.estimates[BIG_PC];
    assert_true(x->known && x->prefill_ns == 40 * MS && x->decode_ns == 160 * MS);
    assert_true(x->total_ns == 201 * MS && x->sure_ns > x->total_ns);
}

static void test_load_and_errors_count(void **state)
{
    struct router_route r = make("sla");
    struct router_request q = ask(300);
    struct router_candidate c[N_ALL];
    struct router_decision d;
    (void)state;
    memcpy(c, all, sizeof(c));
    c[BIG_PC].speed.queue_ns = 200 * MS; /* busy */
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, CODER_HERE);
    memcpy(c, all, sizeof(c));
    c[BIG_PC].speed.error = 0.5; /* its predictions are unreliable */
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, CODER_HERE);
    memcpy(c, all, sizeof(c));
    c[BIG_PC].speed.answer_tokens = 5; /* short answers */
    q.budget_ns = 110 * MS;
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, BIG_PC);
    c[BIG_PC].state = ROUTER_LOADING; /* others are ready */
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.verdicts[BIG_PC], ROUTER_NOT_READY);
    for (int i = 0; i < N_ALL; i++)
        c[i].state = ROUTER_GONE;
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, -1);
    assert_int_equal(d.why, ROUTER_NOT_READY);
    router_decide(&d, &r, &q, c, 0);
    assert_int_equal(d.chosen, -1);
}

static void test_filters(void **state)
{
    struct router_route r = make("sla");
    struct router_request q = ask(0);
    struct router_decision d;
    struct router_candidate c[N_ALL];
    (void)state;
    memcpy(c, all, sizeof(c));
    /* domain: only the coder is for code; other texts go to models without domains */
    static char encoder[] = "enc";
    r.classifier = encoder;
    q.domain = "code";
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, CODER_HERE);
    assert_int_equal(d.verdicts[BIG_PC], ROUTER_DOMAIN);
    q.domain = NULL;
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, BIG_PC);
    assert_int_equal(d.verdicts[CODER_HERE], ROUTER_DOMAIN);
    q.domain = "law"; /* no model has it: all may try */
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, BIG_PC);
    r.classifier = NULL;
    /* language */
    models[1].languages = (struct router_names){german, 2};
    q.facts.language = "fr";
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, CODER_HERE);
    assert_int_equal(d.verdicts[BIG_PC], ROUTER_LANGUAGE);
    q.facts.language = "DE";
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, BIG_PC);
    models[1].languages = (struct router_names){0};
    /* quality */
    q.facts.language = "";
    q.min_quality = 0.7;
    struct router_route cheap = make("cheapest");
    router_decide(&d, &cheap, &q, c, N_ALL);
    assert_int_equal(d.chosen, CODER_HERE);
    assert_int_equal(d.verdicts[SMALL_HERE], ROUTER_LOW_QUALITY);
    assert_false(d.degraded);
    q.min_quality = 0.95;
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, BIG_PC);
    assert_true(d.degraded);
    /* context */
    q.min_quality = 0;
    c[BIG_PC].context = 64;
    router_decide(&d, &r, &q, c, N_ALL);
    assert_int_equal(d.chosen, CODER_HERE);
    assert_int_equal(d.verdicts[BIG_PC], ROUTER_TOO_LONG);
}

static void test_turns_hashes_and_load(void **state)
{
    struct router_route turns = make("round_robin"), hash = make("hash"),
                        load = make("least_loaded");
    struct router_request q = ask(0);
    struct router_candidate c[N_ALL];
    struct router_decision d;
    uint32_t seen[N_ALL] = {0}, by_hash[N_ALL] = {0}, moved = 0;
    (void)state;
    memcpy(c, all, sizeof(c));
    for (q.turn = 0; q.turn < 400; q.turn++) {
        router_decide(&d, &turns, &q, c, N_ALL);
        seen[d.chosen]++;
    }
    for (int i = 0; i < N_ALL; i++)
        assert_int_equal(seen[i], 100);
    for (q.key = 1; q.key <= 4000; q.key++) {
        router_decide(&d, &hash, &q, c, N_ALL);
        int32_t first = d.chosen;
        by_hash[first]++;
        c[BIG_PC].state = ROUTER_GONE; /* only its own keys move */
        router_decide(&d, &hash, &q, c, N_ALL);
        moved += d.chosen != first;
        c[BIG_PC].state = ROUTER_READY;
    }
    assert_int_equal(moved, by_hash[BIG_PC]);
    for (int i = 0; i < N_ALL; i++)
        if (by_hash[i] < 800 || by_hash[i] > 1200)
            fail_msg("%u of 4000 keys", by_hash[i]);
    c[SMALL_HERE].speed.in_flight = 3;
    c[SMALL_PI].speed.in_flight = 1;
    c[BIG_PC].speed.in_flight = 1;
    c[CODER_HERE].speed.in_flight = 2;
    router_decide(&d, &load, &q, c, N_ALL);
    assert_int_equal(d.chosen, BIG_PC); /* a quarter of its parallel capacity */
    assert_int_equal(d.verdicts[SMALL_PI], ROUTER_BUSIER);
}

static void test_requests_on_their_way_count(void **state)
{
    struct router_speed s = {
        .token_ns = 2 * MS, .answer_tokens = 10, .in_flight = 1, .parallel = 4};
    (void)state;
    router_speed_unseen(&s, 3); /* all find a slot */
    assert_true(s.queue_ns == 0 && s.in_flight == 3);
    router_speed_unseen(&s, 6); /* two wait for an answer of 20 ms while four run */
    assert_true(s.queue_ns == 10 * MS && s.in_flight == 6);
    router_speed_unseen(&s, 6); /* already counted */
    assert_true(s.queue_ns == 10 * MS);
    const struct router_work specialist = {.prompt_tokens = 100, .specialist = true};
    const struct router_speed reads = {.unit_ns = 0.01 * MS, .rtt_ns = 1 * MS};
    const struct router_estimate x = router_estimate(&reads, &specialist);
    assert_true(x.known && x.decode_ns == 0 && x.total_ns == 2 * MS);
}

/* A node that has read most of the prompt before needs less time for it. */
static void test_what_was_read_before_costs_nothing(void **state)
{
    const struct router_work chat = {.prompt_tokens = 1000, .max_tokens = 10};
    struct router_speed s = {.prefill_ns = 0.1 * MS, .token_ns = 1 * MS, .answer_tokens = 10};
    (void)state;
    const double whole = router_estimate(&s, &chat).prefill_ns;
    s.held = 0.75;
    const struct router_estimate x = router_estimate(&s, &chat);
    assert_true(whole == 100 * MS && x.prefill_ns == 25 * MS);
    s.queue_ns = 80 * MS; /* but it would have to wait */
    assert_true(router_estimate(&s, &chat).total_ns > whole + x.decode_ns);
}

static void test_policies_are_checked(void **state)
{
    struct router_policy p = {.n = 0};
    struct err e = {0};
    (void)state;
    assert_int_equal(router_policy_add(&p, "fastest", &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "least_loaded"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(router_policy_add(&p, "sla", &e), 0);
    assert_int_equal(router_policy_add(&p, "cheapest", &e), SHOAL_EINVAL);
    assert_string_equal(router_step_name(ROUTER_SPARE), "battery");
}

static void test_callers(void **state)
{
    static char app[] = "app";
    char *names[] = {app};
    struct router_route r = {.callers = {names, 1}}, open = {.name = NULL};
    (void)state;
    assert_true(router_may_call(&r, "app"));
    assert_false(router_may_call(&r, "other") || router_may_call(&r, ""));
    assert_true(router_may_call(&open, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies_choose),
        cmocka_unit_test(test_batteries_at_the_limit_of_a_route),
        cmocka_unit_test(test_every_candidate_has_a_reason),
        cmocka_unit_test(test_load_and_errors_count),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_turns_hashes_and_load),
        cmocka_unit_test(test_requests_on_their_way_count),
        cmocka_unit_test(test_what_was_read_before_costs_nothing),
        cmocka_unit_test(test_policies_are_checked),
        cmocka_unit_test(test_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
