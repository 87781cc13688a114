/* test_config.c - the configuration file: its table of keys, errors with their position,
 * defaults, and differences between two files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "cluster/affinity/split_way.h"
#include "config/config.h"
#include "config/config_describe.h"
#include "config/config_diff.h"
#include "privacy/pii.h"
#include "things/things.h"

#define SHA_63 "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHA "0" SHA_63

static const char whole[] =
    "listen: 127.0.0.1:9\n"
    "threads: 3\n"
    "memory: 1.5GiB\n"
    "models:\n"
    "  - {name: a, path: /x, context: 100, kv: q8, lazy: yes, priority: -2}\n"
    "  - {name: b, path: /x, task: embed, labels: l}\n"
    "  - {name: c, path: /y, isolation: process, isolation_memory: 1GiB, nice: 5, cpus: '0,2-3'}\n"
    "keys:\n"
    "  - {name: app, sha256: " SHA ", rate: 20, priority: 1}\n"
    "limits: {body: 2KiB, idle_timeout: 2m}\n"
    "deadline: {default: 500ms, max: 3s}\n"
    "cluster: {nodes: [a:1, b:2], heartbeat: 50ms, split: always}\n"
    "cors: ['*']\n";

static struct config *parse(const char *text)
{
    struct config *c;
    struct err e = {0};
    assert_int_equal(config_create(&c, &e), 0);
    if (config_parse(c, text, strlen(text), "f", &e) < 0)
        fail_msg("%s", e.msg);
    return c;
}

static void test_configuration_is_read(void **state)
{
    struct config *c = parse(whole);
    struct err e = {0};
    (void)state;
    assert_int_equal(c->listen.n, 1);
    assert_int_equal(c->threads, 3);
    assert_int_equal(c->memory_bytes, 3u << 29);
    assert_int_equal(c->n_models, 3);
    assert_true(c->models[0].kv_q8 && !c->models[0].pinned && c->models[0].priority == -2);
    assert_true(c->models[1].pinned && !c->models[1].kv_q8 && !c->models[1].apart);
    assert_string_equal(c->models[1].labels, "l");
    assert_true(c->models[2].apart && c->models[2].apart_opts.nice == 5);
    assert_int_equal(c->models[2].apart_opts.cpus[0], 13);
    assert_int_equal(c->n_keys, 1);
    assert_true(c->keys[0].rate == 20 && c->keys[0].burst == 20 && c->keys[0].priority == 1);
    assert_int_equal(c->limits.max_body_bytes, 2048);
    assert_int_equal(c->limits.idle_ms, 120000);
    assert_int_equal(c->default_deadline_ms, 500);
    assert_int_equal(c->max_deadline_ms, 3000);
    assert_int_equal(c->cluster.nodes.n, 2);
    assert_int_equal(c->cluster.heartbeat_ms, 50);
    assert_int_equal(c->cluster.split, SPLIT_ALWAYS);
    assert_int_equal(c->cors.n, 1);
    const struct config_setting *s = config_settings_find(&c->set, "models[a].context");
    assert_non_null(s);
    assert_string_equal(s->value, "100");
    assert_int_equal(s->line, 5);
    config_unref(c);
    for (uint64_t n = 1; n < 1000; n++) { /* any allocation fails: an error, no leak */
        uint64_t before = mem_calls();
        mem_fail_at(n);
        int rc = config_create(&c, &e);
        if (rc == 0)
            rc = config_parse(c, whole, strlen(whole), "f", &e);
        mem_fail_at(0);
        bool failed = mem_calls() - before >= n;
        if (failed && rc == 0)
            fail_msg("allocation %u failed and nobody said so", (unsigned)n);
        config_unref(c);
        c = NULL;
        if (!failed)
            return;
    }
    fail_msg("more allocations than expected");
}

static void test_errors_say_where_and_what(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"lisen: x\n", "f:1:1: unknown key 'lisen' (did you mean 'listen'?)"},
        {"limits:\n  bdy: 1\n", "f:2:3: unknown key 'bdy' in limits (did you mean 'body'?)"},
        {"models:\n  - name: a\n    path: b\n    contxt: 1\n",
         "f:4:5: unknown key 'contxt' in models (did you mean 'context'?)"},
        {"zebra: 1\n", "f:1:1: unknown key 'zebra'"},
        {"threads: 1\nthreads: 2\n", "f:2:1: 'threads' is given twice"},
        {"threads: 65\n", "f:1:10: threads must be from 0 to 64"},
        {"threads: 1.5\n", "f:1:10: threads must be a whole number"},
        {"memory: 1XB\n", "f:1:9: memory: 'XB' is not a unit here"},
        {"limits: 5\n", "f:1:9: limits must be a map of keys and values"},
        {"[a]\n", "f:1:1: the file must be a map of keys and values"},
        {"models: [{path: x}]\n", "f:1:10: an entry of models needs name"},
        {"models: [{name: x}]\n", "f:1:10: an entry of models needs path"},
        {"models: [{name: a, path: x}, {name: a}]\n", "f:1:30: an entry of models needs path"},
        {"models: [{name: a, path: x}, {name: a, path: y}]\n", "f:1:30: two models are named a"},
        {"models: [{name: a, path: x, adapters: [{name: b}]}]\n", "path"},
        {"models: [{name: a, path: x, adapters: [{name: 'b:c', path: y}]}]\n",
         "'b:c' cannot name an adapter"},
        {"models: [{name: a, path: x, adapters: [{name: b, path: y, scale: 0}]}]\n",
         "a scale of 0 adds nothing"},
        {"models: [{name: a, path: x, adapters: [{name: b, path: y}, {name: b, path: z}]}]\n",
         "two models are named a:b"},
        {"models: [{name: a, path: x, isolation: process, adapters: [{name: b, path: y}]}]\n",
         "a: adapters do not work with isolation: process"},
        {"models: [{name: a, path: x, kv: q7}]\n", "f:1:33: kv must be one of: f16, q8"},
        {"models: [{name: a, path: x, nice: 20, isolation: process}]\n",
         "nice must be from 0 to 19"},
        {"models: [{name: a, path: x, nice: 2}]\n", "need isolation: process"},
        {"models: [{name: a, path: x, isolation: process, cpus: 3-1}]\n", "cpus must be a list"},
        {"keys: [{name: a, sha256: xyz}]\n", "64 hex digits"},
        {"keys: [{name: a}]\n", "an entry of keys needs sha256"},
        {"keys: [{name: " SHA ", sha256: " SHA "}]\n",
         "f:1:8: the name of a key has 1 to 63 bytes, without control characters"},
        {"keys: [{name: \"a\\nb\", sha256: " SHA "}]\n", "the name of a key has 1 to 63 bytes"},
        {"keys: [{name: \"a\\0b\", sha256: " SHA "}]\n", "f:1:15: name must not contain NUL"},
        {"tls: {cert: a.pem}\n", "f:1:13: tls needs cert and key"},
        {"cluster: {heartbeat: 5ms}\n", "heartbeat must be from 20 to 2147483647 ms"},
        {"cluster: {split: sometimes}\n", "split must be one of: auto, never, always"},
        {"listen: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", "listen has more than 8 entries"},
        {"watch: maybe\n", "f:1:8: watch must be true or false"},
        {"a: [\n", "f:2:1: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *c;
        struct err e = {0};
        assert_int_equal(config_create(&c, &e), 0);
        int rc = config_parse(c, cases[i].text, strlen(cases[i].text), "f", &e);
        if (rc != SHOAL_EFORMAT || !strstr(e.msg, cases[i].error))
            fail_msg("%s: %d %s", cases[i].text, rc, e.msg);
        config_unref(c);
    }
}

/* Every row has a map or list above it, and its own path. */
static void test_table_is_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *k = &config_keys[i];
        uint32_t n_parents = config_key_in(k, NULL);
        for (size_t p = 0; p < i; p++) {
            if (strcmp(config_keys[p].path, k->path) == 0)
                fail_msg("%s has two rows", k->path);
            if (config_keys[p].type == CONFIG_MAP || config_keys[p].type == CONFIG_ITEMS)
                n_parents += config_key_in(k, &config_keys[p]);
        }
        if (n_parents != 1)
            fail_msg("%s has %u parents before it", k->path, n_parents);
        if (!k->text || !k->text[0] || k->text[strlen(k->text) - 1] != '.')
            fail_msg("%s: its text must be sentences", k->path);
        if ((k->type == CONFIG_ITEMS) != (k->take != NULL))
            fail_msg("%s: lists of maps, and they alone, have a take function", k->path);
        if (k->type == CONFIG_CHOICE && (!k->choices || (!k->fallback && !k->needed)))
            fail_msg("%s: a choice needs its words and a default, or must be given", k->path);
    }
}

/* docs/CONFIG.md is what the program says: defaults, limits and all. */
static void test_the_page_is_current(void **state)
{
    struct buf want, got;
    struct err e = {0};
    (void)state;
    buf_init(&want, 1 << 24);
    buf_init(&got, 1 << 24);
    if (file_read(SHOAL_TEST_DATA "/../../docs/CONFIG.md", &want, &e) < 0)
        fail_msg("%s", e.msg);
    config_describe_reference(&got);
    for (const char *a = buf_str(&want), *b = buf_str(&got); *a || *b;) {
        const size_t n = strcspn(a, "\n"), k = strcspn(b, "\n");
        if (n != k || memcmp(a, b, n) != 0)
            fail_msg("got  %.*s\nwant %.*s\nnew keys: shoal config reference > docs/CONFIG.md",
                     (int)k, b, (int)n, a);
        a += n + (a[n] == '\n');
        b += k + (b[k] == '\n');
    }
    buf_fini(&want);
    buf_fini(&got);
}

static void test_defaults_are_those_of_the_parts(void **state)
{
    struct config *c = parse("");
    const struct http_limits *d = &http_default_limits;
    (void)state;
    assert_int_equal(c->limits.max_body_bytes, d->max_body_bytes);
    assert_int_equal(c->limits.max_header_bytes, d->max_header_bytes);
    assert_int_equal(c->limits.max_conns, d->max_conns);
    assert_int_equal(c->limits.max_streams, d->max_streams);
    assert_int_equal(c->limits.request_ms, d->request_ms);
    assert_int_equal(c->limits.idle_ms, d->idle_ms);
    assert_int_equal(c->limits.write_ms, d->write_ms);
    assert_int_equal(c->limits.max_resets, d->max_resets);
    assert_int_equal(c->limits.max_headers, d->max_headers);
    assert_int_equal(c->load_wait_ms, 10000);
    assert_int_equal(c->cluster.split, SPLIT_AUTO);
    assert_int_equal(c->cache_bytes, 16u << 20);
    assert_true(c->watch && c->log_requests);
    assert_int_equal(c->set.n, 0);
    config_unref(c);
}

#define TWO "models: [{name: a, path: x, quality: 0.5, cost: 2}, {name: b, path: y, domains: d}]\n"

static const char routed[] =
    TWO "routes:\n"
        "  - name: r\n"
        "    callers: [app]\n"
        "    policy: [fit, cost, hash]\n"
        "    budget: 2s\n"
        "    cache: false\n"
        "    classifier: {model: b, threshold: 80%}\n"
        "    models: [a, {name: b, quality: 0.9}, {name: far, languages: [en, de]}]\n"
        "    rules:\n"
        "      - {when: json, name: x.y, above: 0, use: a}\n"
        "      - {matches: '(?i)code', use: [b, far]}\n";

static void test_routes_are_read(void **state)
{
    struct config *c = parse(routed);
    const struct router_route *r = router_table_find(&c->router, "r");
    struct err e = {0};
    (void)state;
    assert_non_null(r);
    assert_int_equal(r->n_models, 3);
    /* settings missing in the route come from `models` */
    assert_true(r->models[0].quality == 0.5 && r->models[0].cost == 2);
    assert_true(r->models[1].quality == 0.9 && r->models[1].domains.n == 1);
    assert_int_equal(r->models[2].languages.n, 2);
    assert_int_equal(r->policy.n, 3);
    assert_int_equal(r->policy.steps[1], ROUTER_COST);
    assert_int_equal(r->budget_ms, 2000);
    assert_true(r->no_cache && r->threshold == 0.8 && r->least_battery == 20);
    assert_string_equal(r->classifier, "b");
    assert_int_equal(r->n_rules, 2);
    assert_true(r->rules[0].field == ROUTER_FIELD_JSON && r->rules[0].above_given &&
                !r->rules[0].below_given);
    assert_non_null(r->rules[1].regex);
    const struct router_route *own = router_table_find(&c->router, "auto");
    assert_true(own && own->n_models == 0 && own->policy.n == 3);
    assert_null(router_table_find(&c->router, "a"));
    config_unref(c);
    c = parse("models: [{name: auto, path: x}]\n");
    assert_null(router_table_find(&c->router, "auto")); /* a model has this name */
    config_unref(c);
    for (uint64_t n = 1; n < 2000; n++) {
        uint64_t before = mem_calls();
        mem_fail_at(n);
        int rc = config_create(&c, &e);
        if (rc == 0)
            rc = config_parse(c, routed, strlen(routed), "f", &e);
        mem_fail_at(0);
        bool failed = mem_calls() - before >= n;
        if (failed && rc == 0)
            fail_msg("allocation %u failed and nobody said so", (unsigned)n);
        config_unref(c);
        c = NULL;
        if (!failed)
            return;
    }
    fail_msg("more allocations than expected");
}

/* What a route says of privacy and caches is its own; what it does not say is the default. */
static void test_policies_of_routes(void **state)
{
    static const struct {
        const char *text;
        enum privacy_action action;
        enum privacy_zone zone;
        unsigned kinds;
        const char *tagger;
        bool no_cache, shares_cache;
    } rows[] = {
        {"", PRIVACY_DEFAULT, PRIVACY_EVERYWHERE, PII_BY_RULES, "entities", false, false},
        {"privacy: {action: mask}", PRIVACY_MASK, PRIVACY_EVERYWHERE, PII_BY_RULES, "entities",
         false, false},
        {"privacy: {action: pseudonym, zone: nodes, find: [email]}", PRIVACY_PSEUDONYM,
         PRIVACY_NODES, PII_BIT(PII_EMAIL), "entities", false, false},
        {"privacy: {action: refuse, find: [card, email, person], model: names}", PRIVACY_REFUSE,
         PRIVACY_EVERYWHERE, PII_BIT(PII_CARD) | PII_BIT(PII_EMAIL) | PII_BIT(PII_PERSON), "names",
         false, false},
        {"privacy: {action: none}, cache: false", PRIVACY_NONE, PRIVACY_EVERYWHERE, PII_BY_RULES,
         "entities", true, false},
        {"cache: shared", PRIVACY_DEFAULT, PRIVACY_EVERYWHERE, PII_BY_RULES, "entities", false,
         true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "models: [{name: m, path: x}]\nroutes: [{name: r%s%s}]\n",
                 rows[i].text[0] ? ", " : "", rows[i].text);
        struct config *c = parse(text);
        const struct router_route *r = router_table_find(&c->router, "r");
        assert_non_null(r);
        assert_int_equal(r->privacy.action, rows[i].action);
        assert_int_equal(r->privacy.zone, rows[i].zone);
        assert_int_equal(r->privacy.kinds, rows[i].kinds);
        assert_string_equal(r->privacy.tagger, rows[i].tagger);
        assert_int_equal(r->no_cache, rows[i].no_cache);
        assert_int_equal(r->shares_cache, rows[i].shares_cache);
        config_unref(c);
    }
}

static void test_ensembles_are_read(void **state)
{
    (void)state;
    struct config *c = parse("routes:\n"
                             "  - {name: c, cascade: {models: [a, b, d], measure: margin}}\n"
                             "  - {name: v, vote: {models: [a, b], weights: [1, 2.5]}}\n"
                             "  - {name: s, consensus: {model: a, part: number, samples: 7}}\n"
                             "  - {name: r, rerank: {model: a, judge: b}}\n"
                             "  - {name: f, refine: {model: a, better: b}}\n"
                             "  - {name: n, models: [a]}\n");
    const struct ensemble *e = &c->router.routes[0].ensemble;
    assert_int_equal(e->kind, ENSEMBLE_CASCADE);
    assert_int_equal(e->n_models, 3);
    assert_string_equal(e->models[2], "d");
    assert_int_equal(e->measure, ENSEMBLE_MARGIN);
    assert_true(e->threshold == 0.8 && e->hold == 8 && !e->replace);
    e = &c->router.routes[1].ensemble;
    assert_int_equal(e->kind, ENSEMBLE_VOTE);
    assert_true(e->weights[0] == 1 && e->weights[1] == 2.5);
    e = &c->router.routes[2].ensemble;
    assert_true(e->kind == ENSEMBLE_CONSENSUS && e->samples == 7 && e->part == ENSEMBLE_NUMBER);
    e = &c->router.routes[3].ensemble;
    assert_true(e->kind == ENSEMBLE_RERANK && e->samples == 4 && e->n_models == 2);
    e = &c->router.routes[4].ensemble;
    assert_true(e->kind == ENSEMBLE_REFINE);
    assert_string_equal(e->models[1], "b");
    assert_int_equal(c->router.routes[5].ensemble.kind, ENSEMBLE_NONE);
    config_unref(c);
}

/* Everything that an ensemble can be told reaches it. */
static void test_ensembles_are_whole(void **state)
{
    static const struct {
        const char *text;
        struct ensemble want;
        const char *models;
        double weights[2];
    } rows[] = {
        {"cascade: {models: [a, b], measure: confidence, threshold: 0.6, hold: 3, replace: true}",
         {.kind = ENSEMBLE_CASCADE, .threshold = 0.6, .hold = 3, .replace = true},
         "a b ",
         {1, 1}},
        {"cascade: {models: [a, b], measure: margin}",
         {.kind = ENSEMBLE_CASCADE, .measure = ENSEMBLE_MARGIN, .threshold = 0.8, .hold = 8},
         "a b ",
         {1, 1}},
        {"vote: {models: [a, b], by: probability, weights: [2, 3]}",
         {.kind = ENSEMBLE_VOTE, .by = ENSEMBLE_BY_PROBABILITY},
         "a b ",
         {2, 3}},
        {"consensus: {model: a, part: last_line, samples: 9, temperature: 0.3}",
         {.kind = ENSEMBLE_CONSENSUS, .part = ENSEMBLE_LAST_LINE, .samples = 9, .temperature = 0.3},
         "a ",
         {1, 0}},
        {"rerank: {model: a, judge: b, samples: 6, temperature: 0.2}",
         {.kind = ENSEMBLE_RERANK, .samples = 6, .temperature = 0.2},
         "a b ",
         {1, 1}},
        {"refine: {model: a, better: b}", {.kind = ENSEMBLE_REFINE}, "a b ", {1, 1}},
        {"average: {models: [a, b], weights: [0, 4]}", {.kind = ENSEMBLE_AVERAGE}, "a b ", {0, 4}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256], models[64] = "";
        snprintf(text, sizeof(text), "routes: [{name: r, %s}]\n", rows[i].text);
        struct config *c = parse(text);
        const struct ensemble *e = &c->router.routes[0].ensemble, *w = &rows[i].want;
        assert_int_equal(e->kind, w->kind);
        assert_int_equal(e->measure, w->measure);
        assert_true(e->threshold == w->threshold && e->temperature == w->temperature);
        assert_int_equal(e->hold, w->hold);
        assert_int_equal(e->replace, w->replace);
        assert_int_equal(e->samples, w->samples);
        assert_int_equal(e->part, w->part);
        assert_int_equal(e->by, w->by);
        for (uint32_t k = 0; k < e->n_models; k++) {
            snprintf(models + strlen(models), sizeof(models) - strlen(models), "%s ", e->models[k]);
            assert_true(e->weights[k] == rows[i].weights[k]);
        }
        assert_string_equal(models, rows[i].models);
        config_unref(c);
    }
}

/* The same for machines and sensors. */
static void test_sensors_are_whole(void **state)
{
    (void)state;
    struct config *c = parse(
        "machines:\n"
        "  - {name: m, title: Motor, joint: false, cascade: false, false_alarms: 3, delay: 4s,"
        " clear: 5s, hold_off: 6s}\n"
        "  - {name: n}\n"
        "sensors:\n"
        "  - {name: a, title: Heat, unit: C, machine: m, normal: 1..2, limits: ..9, max_rate: 0.5,"
        " interval: 7s, lost: 8s, learn: 99, delay: 1s, clear: 2s, hold_off: 3s, false_alarms: 2,"
        " statistics: false, cascade: false}\n"
        "  - {name: b}\n");
    assert_int_equal(c->things.n_machines, 2);
    assert_int_equal(c->things.n_sensors, 2);
    const struct things_machine_opts *m = c->things.machines;
    assert_string_equal(m[0].title, "Motor");
    assert_true(m[0].no_joint && m[0].policy.no_cascade && m[0].policy.false_alarms == 3);
    assert_int_equal(m[0].policy.delay_ms, 4000);
    assert_int_equal(m[0].policy.clear_ms, 5000);
    assert_int_equal(m[0].policy.hold_off_ms, 6000);
    assert_false(m[1].no_joint || m[1].policy.no_cascade || m[1].policy.delay_ms);
    const struct things_sensor_opts *s = c->things.sensors;
    assert_string_equal(s[0].name, "a");
    assert_string_equal(s[0].title, "Heat");
    assert_string_equal(s[0].unit, "C");
    assert_string_equal(s[0].machine, "m");
    assert_true(s[0].normal_low == 1 && s[0].normal_high == 2 && s[0].max_rate == 0.5);
    assert_true(isnan(s[0].limit_low) && s[0].limit_high == 9);
    assert_int_equal(s[0].interval_ms, 7000);
    assert_int_equal(s[0].lost_ms, 8000);
    assert_int_equal(s[0].learn, 99);
    assert_int_equal(s[0].policy.delay_ms, 1000);
    assert_int_equal(s[0].policy.clear_ms, 2000);
    assert_int_equal(s[0].policy.hold_off_ms, 3000);
    assert_true(s[0].policy.false_alarms == 2);
    assert_true(s[0].policy.no_statistics && s[0].policy.no_cascade);
    assert_true(isnan(s[1].normal_low) && isnan(s[1].limit_high) && isnan(s[1].max_rate));
    assert_false(s[1].policy.no_statistics || s[1].policy.no_cascade || s[1].interval_ms);
    assert_null(s[1].machine);
    config_unref(c);
}

static void test_wrong_routes_are_refused(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"routes: [{policy: sla}]\n", "an entry of routes needs name"},
        {"routes: [{name: r, policy: best}]\n", "'best' is not a policy (known: sla, cheapest"},
        {"routes: [{name: r}, {name: r}]\n", "f:1:21: two routes are named r"},
        {"routes: [{name: r, models: [a], priority: 1}]\n", "a priority above 0 needs callers"},
        {"routes: [{name: r, models: [a], cache: often}]\n", "true, false"},
        {"routes: [{name: r, models: [a, a]}]\n", "f:1:32: the route names the model 'a' twice"},
        {TWO "routes: [{name: a}]\n", "'a' is the name of a model and of a route"},
        {"routes: [{name: r, models: [a], rules: [{matches: x, use: b}]}]\n",
         "rule 1 uses 'b', which is not one of the route's models"},
        {"routes: [{name: r, rules: [{matches: '(', use: b}]}]\n", "f:1:28: bad expression"},
        {"routes: [{name: r, cascade: {models: [a]}}]\n", "f:1:29: cascade needs at least two"},
        {"routes: [{name: r, cascade: {models: [a, a]}}]\n",
         "f:1:29: the model 'a' is listed twice"},
        {"routes: [{name: r, cascade: {models: [a, b], threshold: 1.5}}]\n", "f:1:57"},
        {"routes: [{name: r, cascade: {models: [a, b], measure: luck}}]\n", "confidence"},
        {"routes: [{name: r, cascade: {models: [a, b], wait: 1}}]\n", "wait"},
        {"routes: [{name: r, vote: {models: [a, b], weights: [1]}}]\n",
         "f:1:26: there are 2 models and 1 weights"},
        {"routes: [{name: r, vote: {models: [a, b], weights: [1, -2]}}]\n",
         "the weight '-2' is not a number above 0"},
        {"routes: [{name: r, refine: {model: a}}]\n", "f:1:28: the name of a model is missing"},
        {"routes: [{name: r, consensus: {model: a, samples: 1}}]\n", "f:1:51"},
        {"routes: [{name: r, vote: {models: [a, b]}, refine: {model: a, better: b}}]\n",
         "f:1:52: a route is one ensemble: vote or refine"},
        {"routes: [{name: r, models: [a], cascade: {models: [a, b]}}]\n",
         "f:1:28: a route with cascade does not choose a model: leave out models"},
        {"routes: [{name: q, models: [a]}, {name: r, cascade: {models: [q, b]}}]\n",
         "'q' in the cascade of the route 'r' is a route: name a model"},
        {"models: [{name: a, path: p, calibration: /nowhere/c.json}]\n", "f:1:10: "},
        {"routes: [{name: r, rules: [{when: size, use: b}]}]\n", "a rule needs one condition"},
        {"routes: [{name: r, rules: [{when: colour, use: b}]}]\n",
         "when must be one of: text, path, header, key, language, kind, size, json"},
        {"routes: [{name: r, classifier: {labels: x}}]\n", "a classifier needs its model"},
        {"routes: [{name: r, min_quality: 2}]\n", "min_quality is 2, it must be from 0 to 1"},
        {"routes: [{name: r, modles: [a]}]\n",
         "unknown key 'modles' in routes (did you mean 'models'?)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *c;
        struct err e = {0};
        assert_int_equal(config_create(&c, &e), 0);
        int rc = config_parse(c, cases[i].text, strlen(cases[i].text), "f", &e);
        if (rc != SHOAL_EFORMAT || !strstr(e.msg, cases[i].error))
            fail_msg("%s: %d %s", cases[i].text, rc, e.msg);
        config_unref(c);
    }
}

static void note(void *ctx, const struct config_change *c)
{
    struct buf *b = ctx;
    buf_printf(b, "%s%s %s %s%s\n", c->path,
               c->from && c->to ? ""
               : c->to          ? " +"
                                : " -",
               c->from ? c->from : "", c->to ? c->to : "", c->restart ? " restart" : "");
}

static void test_difference_of_two_files(void **state)
{
    struct config *a = parse("threads: 2\nlimits: {body: 1KiB}\nload_wait: 10s\n"
                             "models: [{name: x, path: p, kv: f16}, {name: y, path: q}]\n"
                             "keys: [{name: k, sha256: a" SHA_63 "}]\ncors: [a, b]\n");
    struct config *b = parse("limits: {body: 2KiB}\ncors: [a]\n"
                             "models: [{name: z, path: q}, {name: x, path: p, context: 9}]\n"
                             "keys: [{name: k, sha256: b" SHA_63 "}]\n");
    struct buf out;
    (void)state;
    buf_init(&out, 4096);
    config_diff(&a->set, &b->set, note, &out);
    /* load_wait was the default, and so was kv: no change. Hashes of keys are not shown. */
    assert_string_equal(buf_str(&out), "threads 2 (default) restart\n"
                                       "limits.body 1KiB 2KiB\n"
                                       "models[y] -  \n"
                                       "keys[k].sha256 (hidden) (hidden)\n"
                                       "cors a, b a\n"
                                       "models[z] +  \n"
                                       "models[x].context (default) 9 restart\n");
    buf_clear(&out);
    config_diff(&b->set, &b->set, note, &out);
    assert_string_equal(buf_str(&out), "");
    buf_fini(&out);
    config_unref(a);
    config_unref(b);
}

static void test_keys_are_found_as_people_type_them(void **state)
{
    const char *near;
    (void)state;
    assert_string_equal(config_describe_find("models.path", &near)->path, "models[].path");
    assert_string_equal(config_describe_find("models[reply].path", &near)->path, "models[].path");
    assert_null(config_describe_find("limits.bdy", &near));
    assert_string_equal(near, "limits.body");
    assert_null(config_describe_find("heartbeat", &near));
    assert_string_equal(near, "cluster.heartbeat");
    assert_null(config_describe_find("xyzzy", &near));
    assert_null(near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configuration_is_read),
        cmocka_unit_test(test_errors_say_where_and_what),
        cmocka_unit_test(test_table_is_sound),
        cmocka_unit_test(test_the_page_is_current),
        cmocka_unit_test(test_defaults_are_those_of_the_parts),
        cmocka_unit_test(test_routes_are_read),
        cmocka_unit_test(test_policies_of_routes),
        cmocka_unit_test(test_ensembles_are_read),
        cmocka_unit_test(test_ensembles_are_whole),
        cmocka_unit_test(test_sensors_are_whole),
        cmocka_unit_test(test_wrong_routes_are_refused),
        cmocka_unit_test(test_difference_of_two_files),
        cmocka_unit_test(test_keys_are_found_as_people_type_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
