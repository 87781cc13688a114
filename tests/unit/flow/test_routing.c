/* test_routing.c - requests whose model is a route: who may call it, what it changes in the
 * request, which model and node is chosen, the router model, and nodes that were not heard yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor_queue.h"
#include "flow/dispatch.h"
#include "flow/routing.h"
#include "host/registry.h"
#include "support/recorder.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

static struct router_model known[] = {
    {.name = TEXT("small"), .quality = 0.5, .cost = 1},
    {.name = TEXT("large"), .quality = 0.9, .cost = 3},
};

/* A replica on another node. */
struct node {
    const char *model, *name;
    unsigned kind;
    struct router_candidate at;
};

static struct {
    struct executor_queue executor;
    struct flow flow;
    struct flow_owner owner;
    struct dispatch flows, others;
    struct routing_source source;
    struct router_table table;
    struct router_route routes[2];
    const struct node *nodes;
    uint32_t n_nodes;
    bool unsettled;
    uint32_t n_looks;
    /* what became of a request */
    char passed[32], node[32], flow_model[32];
    bool here, leaving, no_cache, shares_cache;
    int32_t priority;
    /* the request to the router model */
    struct request *asked;
    struct sink *asked_sink;
    struct flow_job asked_job;
    bool asked_cancelled, flows_take;
} site;

static struct recorder rec;

/* ---- surroundings ---- */

static void end(struct flow_owner *o, struct request *r, struct sink *s)
{
    s->job = NULL;
    s->ops->closed(s);
    flow_give_request(o, r);
}

/* The stage behind. */
static void on_pass(struct flow_owner *o, struct request *r, struct sink *s)
{
    trace_request("passed on:", r);
    snprintf(site.passed, sizeof(site.passed), "%s", r->model ? r->model : "");
    snprintf(site.node, sizeof(site.node), "%s", r->node ? r->node : "-");
    site.here = r->here;
    site.leaving = r->leaving != NULL;
    site.no_cache = r->no_cache;
    site.shares_cache = r->shares_cache;
    site.priority = r->priority;
    end(o, r, s);
}

static bool take_flow(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    (void)d;
    if (!site.flows_take)
        return false;
    snprintf(site.flow_model, sizeof(site.flow_model), "%s", r->model);
    site.here = r->here;
    end(o, r, s);
    return true;
}

static void on_cancel(struct flow_job *j)
{
    (void)j;
    site.asked_cancelled = true;
}

/* Only the router model's requests are run. */
static bool take_other(struct dispatch *d, struct flow_owner *o, struct request *r, struct sink *s)
{
    static const struct flow_job_ops ops = {on_cancel, NULL};
    (void)d;
    (void)o;
    trace_request("to the router model:", r);
    site.asked = r;
    site.asked_sink = s;
    site.asked_job.ops = &ops;
    s->job = &site.asked_job;
    return true;
}

static void each_node(struct routing_source *s, struct request *r, unsigned kind,
                      void (*fn)(void *ctx, const char *model, const struct router_candidate *c),
                      void *ctx)
{
    (void)r;
    (void)s;
    site.n_looks++;
    for (uint32_t i = 0; i < site.n_nodes; i++)
        if (site.nodes[i].kind & kind) {
            struct router_candidate c = site.nodes[i].at;
            c.node = site.nodes[i].name;
            fn(ctx, site.nodes[i].model, &c);
        }
}

static bool is_settled(struct routing_source *s)
{
    (void)s;
    return !site.unsettled;
}

static struct request *make(const char *model)
{
    struct request *r = flow_take_request(&site.owner);
    struct chat_message *m = arena_zalloc(&r->arena, sizeof(*m));
    *m = (struct chat_message){.role = "user", .content = "my bill", .content_bytes = 7};
    r->kind = REQUEST_GENERATE;
    r->model = model;
    r->generate.chat.messages = m;
    r->generate.chat.n_messages = 1;
    r->generate.n_prompts = r->generate.n = 1;
    r->input_bytes = 7;
    return r;
}

/* Whether the stage takes it. */
static bool run(struct request *r)
{
    recorder_init(&rec);
    site.passed[0] = site.node[0] = site.flow_model[0] = '\0';
    site.here = site.leaving = false;
    site.asked = NULL;
    site.asked_cancelled = false;
    site.n_looks = 0;
    r->way.pass_on = on_pass;
    return routing_take(&site.owner, r, &rec.sink);
}

static void check_refused(enum failure_kind kind, const char *reason, const char *message)
{
    assert_int_equal(rec.n_fails, 1);
    assert_int_equal(rec.n_closed, 1);
    assert_string_equal(rec.failure.message, message);
    assert_string_equal(rec.reason, reason);
    assert_int_equal(rec.failure.kind, kind);
    assert_string_equal(rec.failure.param, "model");
    assert_int_equal(site.owner.n_jobs, 0);
}

static const struct node both[] = {
    {"small", "pi", SHOAL_KIND_GENERATE, {.speed = {.prefill_ns = 1e3, .token_ns = 1e6}}},
    {"large", "pc", SHOAL_KIND_GENERATE, {.speed = {.prefill_ns = 1e4, .token_ns = 9e6}}},
    {"other", "pc", SHOAL_KIND_GENERATE, {.speed = {.prefill_ns = 1, .token_ns = 1}}},
    {"large", "emb", SHOAL_KIND_EMBED, {.speed = {.prefill_ns = 1, .token_ns = 1}}},
};

static int open_site(void **state)
{
    static const struct dispatch_ops flow_ops = {.run = take_flow}, other_ops = {.run = take_other};
    (void)state;
    memset(&site, 0, sizeof(site));
    const struct registry_opts ro = {.lent_only = true};
    assert_int_equal(registry_create(&site.flow.registry, &ro, NULL), 0);
    assert_int_equal(executor_queue_init(&site.executor, NULL), 0);
    flow_owner_init(&site.owner, &site.flow, &site.executor.executor);
    site.flows.ops = &flow_ops;
    site.others.ops = &other_ops;
    site.owner.dispatch = &site.others;
    site.owner.flows = &site.flows;
    site.source = (struct routing_source){each_node, is_settled};
    site.owner.replicas = &site.source;
    site.routes[0] = (struct router_route){
        .name = TEXT("r"), .models = known, .n_models = 2, .policy = {{ROUTER_QUALITY}, 1}};
    site.routes[1] = (struct router_route){.name = TEXT("q"), .flow = NULL};
    site.table =
        (struct router_table){.routes = site.routes, .n_routes = 2, .known = known, .n_known = 2};
    site.owner.routes = &site.table;
    site.nodes = both;
    site.n_nodes = 4;
    return 0;
}

static int close_site(void **state)
{
    (void)state;
    assert_int_equal(site.owner.n_jobs, 0);
    flow_owner_fini(&site.owner);
    executor_queue_fini(&site.executor);
    registry_destroy(site.flow.registry);
    return 0;
}

/* ---- tests ---- */

static void test_not_a_route(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct request *r = make("small");
    assert_false(run(r)); /* a model */
    assert_false(r->here);
    flow_give_request(&site.owner, r);

    site.flows_take = true;
    assert_true(run(make("a-flow")));
    assert_string_equal(site.flow_model, "a-flow");
    site.flows_take = false;

    r = make("small"); /* nobody's route: personal data that must not leave stays */
    site.table.private = true;
    site.table.privacy.action = PRIVACY_MASK;
    assert_false(run(r));
    assert_true(r->leaving == &site.table.privacy); /* it may go to another node, masked */
    assert_false(r->here);
    site.owner.dispatch = NULL;
    assert_false(run(r));
    assert_null(r->leaving);
    assert_true(r->here);
    flow_give_request(&site.owner, r);

    r = make("r"); /* an ask chooses its models itself */
    r->kind = REQUEST_ASK;
    assert_false(run(r));
    flow_give_request(&site.owner, r);

    r = make("small"); /* a question about a route needs one */
    r->dry = true;
    assert_true(run(r));
    check_refused(FAILURE_NOT_FOUND, "model_not_found",
                  "there is no route 'small' for this client");
    site.owner.routes = NULL;
    r = make("r");
    assert_false(run(r));
    flow_give_request(&site.owner, r);
}

static void test_who_may_call(void **state)
{
    char *names[] = {TEXT("app")};
    (void)state;
    trace("== %s\n", __func__);
    site.routes[0].callers = (struct router_names){names, 1};
    struct request *r = make("r");
    assert_false(run(r)); /* as if there were no such name */
    flow_give_request(&site.owner, r);
    r = make("r");
    snprintf(r->client.name, sizeof(r->client.name), "app");
    assert_true(run(r));
    assert_string_equal(site.passed, "large");
}

/* The best of the route's models, on its node. */
static void test_a_choice(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    assert_true(run(make("r")));
    assert_string_equal(site.passed, "large");
    assert_string_equal(site.node, "pc");
    assert_int_equal(rec.n_closed, 1);
    site.routes[0].policy.steps[0] = ROUTER_COST;
    assert_true(run(make("r")));
    assert_string_equal(site.passed, "small");
    assert_string_equal(site.node, "pi");
    site.routes[0].policy.steps[0] = ROUTER_ROUND_ROBIN; /* each route has its own turn */
    char first[32];
    assert_true(run(make("r")));
    snprintf(first, sizeof(first), "%s", site.passed);
    assert_true(run(make("auto")));
    assert_true(run(make("r")));
    assert_string_not_equal(site.passed, first);
    assert_true(run(make("r")));
    assert_string_equal(site.passed, first);
    struct request *r = make("r"); /* another kind of request */
    r->kind = REQUEST_INFER;
    r->infer.kind = SHOAL_KIND_EMBED;
    r->infer.inputs = NULL;
    r->infer.n_inputs = 0;
    r->infer.query = NULL;
    assert_true(run(r));
    assert_string_equal(site.node, "emb");
}

/* A session stays together, then a client, then equal texts. */
static void test_what_stays_together(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    site.routes[0].policy.steps[0] = ROUTER_HASH;
    uint32_t n_small = 0;
    for (int i = 0; i < 32; i++) {
        char first[32] = "";
        for (int k = 0; k < 3; k++) {
            struct request *r = make("r");
            if (k < 2)
                snprintf(r->session, sizeof(r->session), "session %d", i);
            snprintf(r->client.name, sizeof(r->client.name), "client %d", k == 1 ? 99 : i);
            assert_true(run(r));
            if (k == 1)
                assert_string_equal(site.passed, first); /* whoever asks */
            else if (k == 0)
                snprintf(first, sizeof(first), "%s", site.passed);
        }
        n_small += strcmp(first, "small") == 0;
    }
    assert_in_range(n_small, 4, 28);
    char of_address[32];
    assert_true(run(make("r")));
    snprintf(of_address, sizeof(of_address), "%s", site.passed);
    uint32_t n_other = 0;
    for (int i = 0; i < 32; i++) {
        struct request *r = make("r");
        r->from = (uint64_t)i + 1; /* another address */
        assert_true(run(r));
        n_other += strcmp(site.passed, of_address) != 0;
    }
    assert_in_range(n_other, 4, 28);
}

static void test_what_a_route_changes(void **state)
{
    struct router_route *route = &site.routes[0];
    (void)state;
    trace("== %s\n", __func__);
    route->priority = 3;
    route->no_cache = route->shares_cache = true;
    struct request *r = make("r");
    r->priority = -1;
    assert_true(run(r));
    assert_int_equal(site.priority, 2);
    assert_true(site.no_cache && site.shares_cache);
    /* A budget that is over: the fastest is chosen, and it is told. */
    route->policy = (struct router_policy){{ROUTER_FIT, ROUTER_QUALITY}, 2};
    r = make("r");
    r->generate.max_tokens = 100;
    assert_true(run(r));
    assert_string_equal(site.passed, "large");
    route->budget_ms = 300; /* large needs about 900 ms */
    r = make("r");
    r->generate.max_tokens = 100;
    r->received_ns = clock_ns();
    assert_true(run(r));
    assert_string_equal(site.passed, "small");
    r = make("r"); /* the client's own deadline counts, up to the route's ceiling */
    r->generate.max_tokens = 100;
    r->received_ns = clock_ns();
    r->deadline_ns = clock_ns() + 60000000000u;
    assert_true(run(r));
    assert_string_equal(site.passed, "large");
    route->max_budget_ms = 300;
    r = make("r");
    r->generate.max_tokens = 100;
    r->received_ns = clock_ns();
    r->deadline_ns = clock_ns() + 60000000000u;
    assert_true(run(r));
    assert_string_equal(site.passed, "small");
    /* Personal data: on another node it is removed, here it must stay. */
    route->privacy.action = PRIVACY_MASK;
    site.table.private = true;
    assert_true(run(make("r")));
    assert_true(site.leaving);
    assert_false(site.here);
}

static uint32_t n_dry;
static int32_t rule_seen;

static void on_rule(struct sink *s, const struct sink_done *e)
{
    (void)e;
    n_dry++;
    rule_seen = s->routed->rule;
    assert_string_equal(s->routed->model, "small");
    assert_int_equal(s->routed->candidates[1].verdict, ROUTER_BY_RULE);
}

static void on_dry(struct sink *s, const struct sink_done *e)
{
    const struct routing_choice *c = s->routed;
    assert_true(e->last);
    n_dry++;
    assert_string_equal(c->route, "r");
    assert_string_equal(c->model, "large");
    assert_string_equal(c->node, "pc");
    assert_string_equal(c->policy, "quality");
    assert_int_equal(c->rule, -1);
    assert_int_equal(c->n_candidates, 2);
    assert_string_equal(c->candidates[0].model, "small");
    assert_string_equal(c->candidates[0].node, "pi");
    assert_int_equal(c->candidates[0].verdict, ROUTER_WORSE);
    assert_int_equal(c->candidates[1].verdict, ROUTER_CHOSEN);
    assert_true(c->candidates[1].quality > 0.89 && c->candidates[1].cost > 2.9);
    assert_int_equal(c->work.prompt_tokens, 2); /* 7 bytes */
    assert_null(c->domain);
}

/* A dry run decides, explains, and runs nothing. */
static void test_dry(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    struct request *r = make("r");
    r->dry = true;
    r->way.pass_on = on_pass;
    recorder_init(&rec);
    struct sink_ops ops = *rec.sink.ops;
    ops.done = on_dry;
    rec.sink.ops = &ops;
    site.passed[0] = '\0';
    n_dry = 0;
    assert_true(routing_take(&site.owner, r, &rec.sink));
    assert_int_equal(n_dry, 1);
    assert_int_equal(rec.n_closed, 1);
    assert_string_equal(site.passed, "");
}

/* The explanation names the rule that matched: here the second one, by the client's path. */
static void test_a_rule(void **state)
{
    static char *paths[][1] = {{TEXT("/other")}, {TEXT("/v1/x")}}, *use[] = {TEXT("small")};
    struct router_rule rules[] = {
        {.field = ROUTER_FIELD_PATH, .is = paths[0], .n_is = 1, .use = use, .n_use = 1},
        {.field = ROUTER_FIELD_PATH, .is = paths[1], .n_is = 1, .use = use, .n_use = 1},
    };
    (void)state;
    trace("== %s\n", __func__);
    site.routes[0].rules = rules;
    site.routes[0].n_rules = 2;
    struct request *r = make("r");
    r->path = "/v1/x";
    r->dry = true;
    r->way.pass_on = on_pass;
    recorder_init(&rec);
    struct sink_ops ops = *rec.sink.ops;
    ops.done = on_rule;
    rec.sink.ops = &ops;
    n_dry = 0;
    assert_true(routing_take(&site.owner, r, &rec.sink));
    assert_int_equal(n_dry, 1);
    assert_int_equal(rule_seen, 1);
}

static void on_any_rule(struct sink *s, const struct sink_done *e)
{
    (void)e;
    n_dry++;
    rule_seen = s->routed->rule;
}

/* A rule sees the text that says what is wanted: of the last message, of the first prompt, of the
 * query, or of the first input. */
static void test_what_a_rule_reads(void **state)
{
    static char *words[] = {TEXT("my bill")}, *use[] = {TEXT("small")};
    struct router_rule rule = {
        .field = ROUTER_FIELD_TEXT, .is = words, .n_is = 1, .use = use, .n_use = 1};
    const struct request_prompt prompts[] = {{.text = "my bill", .text_bytes = 7},
                                             {.text = "other", .text_bytes = 5}},
                                no_text[] = {{.ids = (const int32_t[]){1}, .n_ids = 1}};
    const struct request_input inputs[] = {{.text = "my bill", .text_bytes = 7},
                                           {.text = "other", .text_bytes = 5}};
    (void)state;
    trace("== %s\n", __func__);
    site.routes[0].rules = &rule;
    site.routes[0].n_rules = 1;
    for (int i = 0; i < 7; i++) {
        struct request *r = make("r");
        const bool infers = i > 3;
        if (i > 0)
            r->generate.chat.n_messages = 0;
        if (i > 0 && !infers) { /* prompts: text, the other one first, ids */
            r->generate.prompts = i == 3 ? no_text : &prompts[i - 1];
            r->generate.n_prompts = 1;
        }
        if (infers) {
            r->kind = REQUEST_INFER;
            r->infer = (struct request_infer){.kind = SHOAL_KIND_GENERATE,
                                              .inputs = i == 5 ? &inputs[1] : inputs,
                                              .n_inputs = 1,
                                              .query = i == 6 ? "other" : NULL};
        }
        r->dry = true;
        r->way.pass_on = on_pass;
        recorder_init(&rec);
        struct sink_ops ops = *rec.sink.ops;
        ops.done = on_any_rule;
        rec.sink.ops = &ops;
        n_dry = 0;
        rule_seen = -2;
        assert_true(routing_take(&site.owner, r, &rec.sink));
        assert_int_equal(n_dry, 1);
        assert_int_equal(rule_seen, i == 0 || i == 1 || i == 4 ? 0 : -1);
    }
}

static void test_nobody_can(void **state)
{
    struct node nodes[2] = {both[0], both[1]};
    (void)state;
    trace("== %s\n", __func__);
    site.n_nodes = 0;
    assert_true(run(make("r")));
    check_refused(FAILURE_NOT_FOUND, "model_not_found", "no model of the route 'r' can generate");
    site.nodes = nodes;
    site.n_nodes = 2;
    nodes[0].at.context = nodes[1].at.context = 1;
    assert_true(run(make("r")));
    check_refused(FAILURE_INVALID, "context_length_exceeded",
                  "the request is too long for every model of the route 'r'");
    nodes[0].at.state = nodes[1].at.state = ROUTER_GONE;
    assert_true(run(make("r")));
    assert_int_equal(rec.failure.kind, FAILURE_UNAVAILABLE);
    assert_int_equal(rec.failure.code, SHOAL_EBUSY);
    assert_int_equal(rec.failure.retry_after_s, 2);
    assert_non_null(strstr(rec.failure.message, "no model of the route 'r' can answer now: "));
}

/* ---- flows and averages ---- */

static void test_a_flow(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    site.routes[1].flow = TEXT("steps");
    site.flows_take = true;
    assert_true(run(make("q")));
    assert_string_equal(site.flow_model, "steps");
    assert_false(site.here);
    site.table.private = true;
    site.table.privacy.action = PRIVACY_REFUSE;
    assert_true(run(make("q")));
    assert_true(site.here);        /* its steps, too */
    struct request *r = make("q"); /* asks may be answered by flows */
    r->kind = REQUEST_ASK;
    assert_true(run(r));
    assert_string_equal(site.flow_model, "steps");
    site.flows_take = false;
    assert_true(run(make("q")));
    check_refused(FAILURE_NOT_FOUND, "model_not_found", "there is no flow 'steps'");
    site.owner.flows = NULL;
    assert_true(run(make("q")));
    check_refused(FAILURE_NOT_FOUND, "model_not_found", "there is no flow 'steps'");
}

static void test_an_average(void **state)
{
    static char *models[] = {TEXT("small"), TEXT("large")};
    static double weights[] = {0.25, 0};
    (void)state;
    trace("== %s\n", __func__);
    site.routes[1].ensemble = (struct ensemble){
        .kind = ENSEMBLE_AVERAGE, .models = models, .weights = weights, .n_models = 2};
    assert_true(run(make("q")));
    assert_string_equal(site.passed, "q"); /* an engine of that name */
    assert_int_equal(site.n_looks, 0);
}

/* ---- the router model ---- */

static void answer_domain(const char *label, float p)
{
    const struct sink_start start = {.model = "router", .version = ""};
    const struct shoal_result got = {.kind = SHOAL_KIND_CLASSIFY, .label = label, .confidence = p};
    const struct sink_result e = {0, &got, true};
    struct sink *s = site.asked_sink;
    struct request *r = site.asked;
    s->ops->start(s, &start);
    s->ops->result(s, &e);
    s->job = NULL;
    s->ops->closed(s);
    flow_give_request(&site.owner, r);
}

static void test_the_router_model(void **state)
{
    static char *bills[] = {TEXT("billing")};
    static struct router_model by_domain[] = {
        {.name = TEXT("small"), .quality = 0.5, .domains = {bills, 1}},
        {.name = TEXT("large"), .quality = 0.9},
    };
    static const struct {
        const char *label;
        float p;
        const char *want;
    } rows[] = {
        {"billing", 0.9f, "small"}, /* a specialist */
        {"billing", 0.5f, "small"}, /* at the threshold */
        {"billing", 0.49f, "large"},
        {"weather", 0.9f, "large"},
        {"a label of more than sixty-four bytes, which no configuration can have at all", 0.9f,
         "large"},
    };
    struct router_route *route = &site.routes[0];
    (void)state;
    trace("== %s\n", __func__);
    route->classifier = TEXT("router");
    route->labels = TEXT("set");
    route->threshold = 0.5;
    route->models = by_domain;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct request *r = make("r");
        r->priority = -2;
        r->deadline_ns = clock_ns() + 60000000000u;
        assert_true(run(r));
        assert_string_equal(site.passed, ""); /* first the domain */
        assert_non_null(site.asked);
        assert_string_equal(site.asked->model, "router");
        assert_string_equal(site.asked->infer.labels, "set");
        assert_string_equal(site.asked->infer.inputs[0].text, "my bill");
        assert_int_equal(site.asked->input_bytes, 7);
        assert_int_equal(site.asked->priority, -2);
        assert_int_equal(site.asked->deadline_ns, r->deadline_ns);
        assert_false(site.asked->here);
        answer_domain(rows[i].label, rows[i].p);
        assert_string_equal(site.passed, rows[i].want);
    }
    /* A text of no domain does not go to a specialist. */
    by_domain[1].domains = (struct router_names){(char *[]){TEXT("weather")}, 1};
    assert_true(run(make("r")));
    answer_domain("billing", 0.5f); /* at the threshold */
    assert_string_equal(site.passed, "small");
    assert_true(run(make("r")));
    answer_domain("weather", 0.9f);
    assert_string_equal(site.passed, "large");

    /* A long text is cut, at a character. */
    struct request *r = make("r");
    char *text = arena_bytes(&r->arena, 4001);
    memset(text, 'a', 4000);
    text[4000] = '\0';
    struct chat_message *m = arena_zalloc(&r->arena, sizeof(*m));
    *m = (struct chat_message){.role = "user", .content = text, .content_bytes = 4000};
    r->generate.chat.messages = m;
    assert_true(run(r));
    assert_int_equal(site.asked->infer.inputs[0].text_bytes, 2048);
    answer_domain("weather", 0.9f);

    /* Personal data that must not leave: the router model runs here. */
    site.table.private = true;
    site.table.privacy.action = PRIVACY_MASK;
    site.owner.dispatch = NULL; /* here, there is no such model: the text is of no domain */
    assert_true(run(make("r")));
    for (int i = 0; i < 100 && rec.n_closed == 0; i++)
        executor_queue_turn(&site.executor, 10);
    assert_int_equal(rec.n_closed, 1);
    site.table.private = false;
    site.owner.dispatch = &site.others;

    assert_true(run(make("r"))); /* cancelled while it reads */
    flow_cancel(&rec.sink);
    flow_cancel(&rec.sink);
    assert_true(site.asked_cancelled);
    answer_domain("weather", 0.9f);
    assert_string_equal(site.passed, "");
    assert_int_equal(rec.n_closed, 1);

    assert_true(run(make("r"))); /* a reload removed the route */
    site.table.n_routes = 0;
    answer_domain("weather", 0.9f);
    check_refused(FAILURE_NOT_FOUND, "model_not_found", "the route 'r' no longer exists");
}

/* ---- nodes that were not heard yet ---- */

static void test_nodes_not_heard_yet(void **state)
{
    (void)state;
    trace("== %s\n", __func__);
    site.n_nodes = 0;
    site.unsettled = true;
    assert_true(run(make("r")));
    assert_int_equal(rec.n_fails + rec.n_closed, 0);
    assert_int_equal(site.owner.n_jobs, 1);
    while (site.n_looks < 2) /* it looks again and again */
        executor_queue_turn(&site.executor, 1000);
    assert_int_equal(rec.n_closed, 0);
    site.n_nodes = 4;
    while (rec.n_closed == 0)
        executor_queue_turn(&site.executor, 1000);
    assert_string_equal(site.passed, "large");
    assert_int_equal(site.owner.n_jobs, 0);

    site.n_nodes = 0; /* there are none after all */
    assert_true(run(make("r")));
    site.unsettled = false;
    while (rec.n_closed == 0)
        executor_queue_turn(&site.executor, 1000);
    check_refused(FAILURE_NOT_FOUND, "model_not_found", "no model of the route 'r' can generate");

    site.unsettled = true;
    assert_true(run(make("r")));
    flow_cancel(&rec.sink);
    assert_int_equal(rec.n_closed, 1);
    assert_int_equal(rec.n_fails, 0);
    assert_int_equal(site.owner.n_jobs, 0);

    struct request *r = make("r"); /* no longer than its deadline */
    r->received_ns = clock_ns() - 5000000000u;
    r->deadline_ns = clock_ns() - 1;
    assert_true(run(r));
    check_refused(FAILURE_UNAVAILABLE, "no_model",
                  "no model of the route 'r' can answer yet: still discovering nodes");
    assert_int_equal(rec.failure.retry_after_s, 2);

    assert_true(run(make("r"))); /* a reload removed the route */
    site.table.n_routes = 0;
    while (rec.n_closed == 0)
        executor_queue_turn(&site.executor, 1000);
    check_refused(FAILURE_NOT_FOUND, "model_not_found", "the route 'r' no longer exists");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, open_site, close_site)

static void the_whole_trace(void **state)
{
    (void)state;
    golden_end("routing");
}

int main(void)
{
    const struct CMUnitTest whole[] = {cmocka_unit_test(the_whole_trace)};
    const struct CMUnitTest tests[] = {
        TEST(test_not_a_route),
        TEST(test_who_may_call),
        TEST(test_a_choice),
        TEST(test_what_stays_together),
        TEST(test_what_a_route_changes),
        TEST(test_dry),
        TEST(test_a_rule),
        TEST(test_what_a_rule_reads),
        TEST(test_nobody_can),
        TEST(test_a_flow),
        TEST(test_an_average),
        TEST(test_the_router_model),
        TEST(test_nodes_not_heard_yet),
    };
    golden_begin();
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    return n_failed ? n_failed : cmocka_run_group_tests(whole, NULL, NULL);
}
