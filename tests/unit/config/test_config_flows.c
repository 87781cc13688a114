/* test_config_flows.c - flows of the configuration file: parsing, and errors with file, line and
 * column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "config/config.h"

static const char whole[] =
    "flows:\n"
    "  - name: helper\n"
    "    budget: 500ms\n"
    "    output: ${answer.value}\n"
    "    fallback: Sorry\n"
    "    inputs: [{name: room, default: hall}, {name: limit, type: number}]\n"
    "    steps:\n"
    "      - {name: intent, do: classify, text: '${input.text}', fallback: none}\n"
    "      - {name: slots, do: tag, text: \"\\\"${input.text}\"}\n"
    "      - name: weather\n"
    "        do: template\n"
    "        text: |\n"
    "          In ${input.room}:\n"
    "          ${slots.values.city} ${round(intent.score, 2)}\n"
    "      - {name: chat, do: generate, text: '${input.text}', fallback_step: weather}\n"
    "      - {name: each, do: map, over: '${slots.entities}', step: one}\n"
    "      - {name: one, do: template, text: '${item.text}'}\n"
    "      - {name: all, do: merge, from: ['${each.items}', '${each.items}'], how: list}\n"
    "      - {name: tell, do: call, via: http, url: 'http://h:1/${intent.label}'}\n"
    "      - {name: said, do: call, via: mqtt, topic: 'home/${intent.label}/say', payload: x}\n"
    "      - name: answer\n"
    "        do: switch\n"
    "        cases:\n"
    "          - {when: '${intent.label} == \"weather\" && len(all.value) > 0', step: weather}\n"
    "          - {step: chat}\n"
    "flows_allow: {hosts: ['h:1'], topics: [home/+/say]}\n"
    "routes:\n"
    "  - {name: help, flow: helper, budget: 2s}\n"
    "process: {flow: help}\n";

static int parse(struct config **c, const char *text, struct err *e)
{
    int rc = config_create(c, e);
    return rc < 0 ? rc : config_parse(*c, text, strlen(text), "f", e);
}

static void test_flows_are_read(void **state)
{
    struct config *c;
    struct err e = {0};
    (void)state;
    if (parse(&c, whole, &e) < 0)
        fail_msg("%s", e.msg);
    const struct graph *g = config_flows_find(&c->flows, "helper");
    assert_non_null(g);
    assert_int_equal(g->budget_ms, 500);
    assert_int_equal(g->n_steps, 10);
    assert_string_equal(c->router.routes[0].flow, "helper");
    int32_t weather = graph_find(g, "weather", 7), chat = graph_find(g, "chat", 4);
    assert_true(g->steps[weather].lazy && g->steps[chat].lazy);
    assert_false(g->steps[graph_find(g, "intent", 6)].lazy);
    assert_false(g->steps[graph_find(g, "tell", 4)].lazy); /* it has a side effect, so it runs */
    assert_int_equal(g->steps[chat].fallback_step, weather);
    assert_int_equal(g->inputs[0].value.text.n, 4);
    config_unref(c);
}

static void test_memory_failures(void **state)
{
    struct config *c = NULL;
    struct err e = {0};
    bool ended = false;
    (void)state;
    for (uint64_t n = 1; n < 3000 && !ended; n++) { /* an error, no leak */
        uint64_t before = mem_calls();
        mem_fail_at(n);
        int rc = parse(&c, whole, &e);
        mem_fail_at(0);
        ended = rc == 0 && mem_calls() - before < n;
        config_unref(c);
        c = NULL;
    }
    assert_true(ended);
}

struct change {
    const char *from, *to, *says;
};

/* The file with one change, and the resulting error. */
static const struct change changes[] = {
    {"city} ${round", "city} ${rund", "f:14:34: there is no function 'rund'"},
    {"slots.values.city", "slotz.values.city", "f:14:13: there is no step 'slotz'"},
    {"slots.values.city", "slots.value.city", "f:14:19: there is no field 'value'. Available"},
    {"\"\\\"${input.text}\"", "\"\\\"${input.txt}\"", "f:9:49: there is no field 'txt'"},
    {"'${input.text}', fallback: none", "'it''s ${input.txt}', fallback: none",
     "f:8:59: there is no field 'txt'"},
    {"fallback: none", "fallback: none, share: 2", "f:8:"},
    {"do: classify", "do: clasify", "f:8:28: do must be one of"},
    {"do: tag, ", "do: tag, count: 3, ", "f:9:32: a tag has no 'count'"},
    {"do: tag, text: \"\\\"${input.text}\"", "do: tag, model: x", "f:9:9: a tag needs 'text'"},
    {"step: one", "step: two", "f:16:9: there is no step 'two'"},
    {"step: one", "step: answer", "which cannot be the step of a map"},
    {"'${item.text}'", "'${item.txt}'", "there is no field 'txt'. Available: label, text"},
    {"${item.text}", "${one.text}", "f:17:9: step 'one' uses its own result"},
    {"'${slots.entities}'", "'${intent.label}'", "`over` needs a list, but this is a text"},
    {"In ${input.room}", "In ${item.room}", "f:13:16: 'item' is only in the step of a map"},
    {"In ${input.room}", "In ${answer.value}", "a cycle"},
    {"{step: chat}", "{value: 3, step: chat}", "f:25:13: a case needs `value` or `step`"},
    {"> 0', step: weather}", "> 0', value: '${len(\"\")}'}",
     "f:25:13: this case gives a text, one before gives a number"},
    {"&& len(all.value) > 0", "&& len(all.value)", "f:24:53: this is a number"},
    {"name: all, do", "name: input, do", "f:18:9: a step's name has letters"},
    {"name: slots, do", "name: intent, do", "f:9:9: two steps are named 'intent'"},
    {"do: map, over", "do: map, fallback: '', over", "has no main result"},
    {"fallback: Sorry", "fallback: '${intent.label}'", "f:5:16: the flow's fallback is for when"},
    {"name: room", "name: text", "f:6:14: an input's name"},
    {"type: number", "type: number, default: x", "must be a number"},
    {"output: ${answer.value}", "output: ${answer.value", "f:4:13: this has no closing '}'"},
    {"output: ${answer.value}", "output: ${weather.text}", "nothing uses step"},
    {"{hosts: ['h:1'],", "{", "f:19:49: add h:1 to flows_allow.hosts to use it"},
    {"home/+/say]", "home/+]", "f:20:51: add home/${intent.label}/say to flows_allow.topics"},
    {"http://h:1/", "http://${intent.label}/", "f:19:48: url must be http://HOST:PORT/PATH"},
    {"flow: helper", "flow: nope", "f:28:24: the route 'help' names the flow 'nope'"},
    {"{flow: help}", "{flow: nope}", "f:29:17: process.flow is 'nope'"},
    {"name: help,", "name: helper,", "'helper' is the name of a flow and of a route"},
};

static void test_errors_have_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const struct change *x = &changes[i];
        char text[sizeof(whole) + 256];
        struct config *c;
        struct err e = {0};
        const char *at = strstr(whole, x->from);
        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - whole), whole, x->to,
                 at + strlen(x->from));
        if (parse(&c, text, &e) == 0 || !strstr(e.msg, x->says))
            fail_msg("%s -> %s: '%s', not '%s'", x->from, x->to, e.msg, x->says);
        config_unref(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flows_are_read),
        cmocka_unit_test(test_memory_failures),
        cmocka_unit_test(test_errors_have_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
