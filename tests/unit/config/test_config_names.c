/* test_config_names.c - names that a configuration uses: found, or reported with their position and
 * the nearest right one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/config_names.h"

static const char *const pack[] = {"reply", "intent", "embed", NULL};
static const char *const manuals[] = {"manuals", "notes", NULL};

static bool generates(void *ctx, const char *model)
{
    (void)ctx;
    return strcmp(model, "reply") == 0;
}

static const char *const *label_sets(void *ctx, const char *model)
{
    static const char *const sets[] = {"snips", "massive", NULL};
    (void)ctx;
    return strcmp(model, "intent") == 0 || strcmp(model, "mine") == 0 ? sets : NULL;
}

static const struct config_names_world here = {
    .models = pack, .collections = manuals, .generates = generates, .label_sets = label_sets};

/* The message, "" if all names are right. */
static void check(const char *text, const struct config_names_world *w,
                  char out[sizeof(((struct err *)NULL)->msg)])
{
    struct config *c = NULL;
    struct err e = {0};
    assert_int_equal(config_create(&c, &e), 0);
    if (config_parse(c, text, strlen(text), "f", &e) == 0 && config_names_check(c, w, "f", &e) == 0)
        e.msg[0] = '\0';
    memcpy(out, e.msg, sizeof(e.msg));
    config_unref(c);
}

#define KEY                                                                                        \
    "keys: [{name: app, sha256: "                                                                  \
    "0000000000000000000000000000000000000000000000000000000000000000}]\n"

static void test_wrong_names(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"routes:\n- {name: r, models: [repli]}\n",
         "f:2:22: routes[r].models[repli].name: there is no model 'repli' (did you mean 'reply'?)"},
        {"routes:\n- {name: r, cascade: {models: [intent, intend]}}\n",
         "f:2:31: routes[r].cascade.models: there is no model 'intend' (did you mean 'intent'?)"},
        {"routes:\n- {name: r, refine: {model: reply, better: replay}}\n",
         "f:2:44: routes[r].refine.better: there is no model 'replay' (did you mean 'reply'?)"},
        {"routes:\n- {name: r, vote: {models: [intent, reply]}}\n",
         "f:2:28: routes[r].vote.models: 'reply' writes text and has no labels to vote for: name "
         "classifiers, or use consensus"},
        {"routes:\n- {name: reply, models: [intent]}\n",
         "f:2:10: routes[reply].name: 'reply' is the name of a model: give the route another one"},
        {"routes:\n- {name: r, models: [reply], classifier: {model: intent, labels: snip}}\n",
         "f:2:66: routes[r].classifier.labels: there is no label set 'snip' (did you mean "
         "'snips'?)"},
        {"models: [{name: mine, path: x, labels: masive}]\n",
         "f:1:40: models[mine].labels: there is no label set 'masive' (did you mean 'massive'?)"},
        {KEY "routes:\n- {name: r, models: [reply], callers: [ap]}\n",
         "f:3:39: routes[r].callers: there is no key 'ap' (did you mean 'app'?)"},
        {"machines: [{name: motor3}]\nsensors: [{name: a, machine: motor4}]\n",
         "f:2:30: sensors[a].machine: there is no machine 'motor4' (did you mean 'motor3'?)"},
        {"sensors: [{name: a, machine: m}]\n",
         "f:1:30: sensors[a].machine: there is no machine 'm'"},
        {"alarms: {manuals: manual}\n",
         "f:1:19: alarms.manuals: there is no collection 'manual' (did you mean 'manuals'?)"},
        {"privacy: {model: entitys}\n", "f:1:18: privacy.model: there is no model 'entitys'"},
        {"mqtt: {subscribe: [{topic: a, sensor: b}]}\n",
         "f:1:28: mqtt.subscribe[1].topic: a subscription needs 'mqtt.broker'"},
        {"deeds: [{things: a, topic: x}]\n",
         "f:1:28: deeds[1].topic: via: mqtt needs 'mqtt.broker'"},
        {"deeds: [{things: a, via: command, command: [/bin/true], ability: p, state: y}]\n"
         "deeds_allow: {commands: [/bin/true]}\n",
         "f:1:76: deeds[1].state: a state needs 'mqtt.broker'"},
        {"deeds: [{things: a, via: command, command: [/bin/true]}]\n",
         "f:1:44: add /bin/true to deeds_allow.commands to run it"},
        {"listen: [a:1]\ndeeds: [{things: a, via: http, url: 'http://h:8/x'}]\n",
         "f:2:37: add h:8 to deeds_allow.hosts to call it"},
        {"deeds: [{things: a, via: modbus, tag: p.q}]\n",
         "f:1:39: there is no tag p.q; modbus has controllers with tags, as in press.setpoint"},
        {"alarms:\n  webhooks: [{url: 'http://h:8/a'}]\n",
         "f:2:20: add h:8 to alarms.allow to call it"},
        {"modbus: [{name: p, address: 'h:1', tags: [{name: t, table: input, register: 1, "
         "sensor: s}]}]\n",
         "f:1:88: the tag p.t is of the sensor 's', which sensors does not have"},
        {"sensors: [{name: a}, {name: b}, {name: a}]\n", "f:1:33: two sensors are named 'a'"},
        {"routes: [{name: r, flow: f}]\n",
         "f:1:26: the route 'r' names the flow 'f', which is not in `flows`"},
        {"mqtt: {broker: 'mqtt://h', subscribe: [{topic: a/+/b, sensor: 's{2}'}]}\n",
         "f:1:40: the sensor 's{2}' uses {2}, but 'a/+/b' has 1 wildcard"},
        {"mqtt: {broker: 'mqtt://h', subscribe: [{topic: a, sensor: 's{1}'}]}\n",
         "f:1:40: the sensor 's{1}' uses {1}, but 'a' has 0 wildcards"},
        {"trust: {signers: [{name: a}]}\n", "f:1:19: a signer needs either key or certificate"},
        {"trust: {signers: [{name: a, key: k, certificate: c}]}\n",
         "f:1:19: a signer needs either key or certificate"},
        {"trust: {signers: [{name: a, key: k, subject: s}]}\n",
         "f:1:19: subject is for signers with a certificate"},
        {"trust: {signers: [{name: a, key: k}, {name: a, key: l}]}\n",
         "f:1:38: two signers have this name; several keys of one signer need names of their own"},
        {"sessions: {store: 'redis:/x'}\n",
         "f:1:19: 'redis:/x' is not a session store: use sqlite:PATH, redis://HOST:PORT, "
         "redis://HOST:PORT/DB, or off"},
        {"sessions: {store: 'redis://x'}\n",
         "f:1:19: 'redis://x' is not a session store: use sqlite:PATH, redis://HOST:PORT, "
         "redis://HOST:PORT/DB, or off"},
    };
    char got[sizeof(((struct err *)NULL)->msg)];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(cases[i].text, &here, got);
        assert_string_equal(got, cases[i].want);
    }
}

static void test_right_names(void **state)
{
    static const char *const cases[] = {
        "routes:\n- {name: r, models: [reply, intent]}\n- {name: s, models: [r]}\n",
        "routes:\n- {name: r, vote: {models: [intent, embed]}}\n",
        "models: [{name: mine, path: x, labels: snips}]\nroutes: [{name: reply, models: [mine]}]\n",
        KEY "routes:\n- {name: r, models: [reply], callers: [app]}\n",
        "machines: [{name: m}]\nsensors: [{name: a, machine: m}, {name: b}]\n",
        "alarms: {manuals: notes}\n",
        "flows:\n- name: f\n  output: ${a.text}\n  steps:\n  - {name: a, do: generate, model: "
        "reply, "
        "text: x}\n- name: g\n  output: ${a.text}\n  steps:\n  - {name: a, do: generate, model: f, "
        "text: x}\n",
        "mqtt: {broker: 'mqtt://h', subscribe: [{topic: $share/g/a/+/#, sensor: 's{2}{1}'}]}\n",
        "trust: {require: signed, signers: [{name: a, key: k, models: ['l-*', x]}]}\n",
        "trust: {signers: [{name: a, certificate: c, subject: s}]}\naudit: {dir: x, full: serve}\n",
        "sessions: {store: 'redis://h:6379/2'}\n",
        "sessions: {store: 'redis://h:6379'}\n",
        "sessions: {store: 'sqlite:/x'}\n",
        "sessions: {store: off}\n",
    };
    char got[sizeof(((struct err *)NULL)->msg)];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(cases[i], &here, got);
        assert_string_equal(got, "");
    }
}

/* In a shoal a model, or the key of a caller, may be known to another node. */
static void test_what_cannot_be_known_is_no_error(void **state)
{
    const struct config_names_world shoal = {.elsewhere = true};
    char got[sizeof(((struct err *)NULL)->msg)];
    (void)state;
    check("routes: [{name: r, models: [far], callers: [someone]}]\n", &shoal, got);
    assert_string_equal(got, "");
    check("alarms: {manuals: x}\nmodels: [{name: a, path: x, labels: y}]\n", &shoal, got);
    assert_string_equal(got, "");
    check("sensors: [{name: a, machine: m}]\n", &shoal, got); /* machines are of the file alone */
    assert_string_not_equal(got, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_right_names),
        cmocka_unit_test(test_what_cannot_be_known_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
