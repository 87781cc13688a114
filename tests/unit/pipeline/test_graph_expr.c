/* test_graph_expr.c - pipeline/graph/graph_expr.h: parsing, types, values, and hostile input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "pipeline/graph/graph_expr.h"

static const struct graph_field item_fields[] = {{"text", &graph_type_text},
                                                 {"score", &graph_type_number}};
static const struct graph_type item = {
    .kind = GRAPH_TYPE_RECORD, .fields = item_fields, .n_fields = 2};
static const struct graph_type items = {.kind = GRAPH_TYPE_LIST, .of = &item};
static const struct graph_type table = {.kind = GRAPH_TYPE_TABLE, .of = &graph_type_text};
static const struct graph_field step_fields[] = {{"label", &graph_type_text},
                                                 {"score", &graph_type_number},
                                                 {"list", &items},
                                                 {"words", &graph_type_texts},
                                                 {"values", &table},
                                                 {"json", &graph_type_any},
                                                 {"ok", &graph_type_bool}};
static const struct graph_type step = {
    .kind = GRAPH_TYPE_RECORD, .fields = step_fields, .n_fields = 7};

static const struct graph_type *type_of(const struct graph_scope *s, const char *name, size_t n,
                                        const char **why)
{
    (void)s;
    (void)why;
    return n == 6 && memcmp(name, "intent", 6) == 0 ? &step : NULL;
}

static const char *const names[] = {"intent", NULL};
static const struct graph_scope scope = {type_of, names};

static const struct value_member list_members[] = {{"text", {.kind = VALUE_TEXT, .text = {"a", 1}}},
                                                   {"score", {.kind = VALUE_NUMBER, .number = 2}}};
static const struct value list_items[] = {{.kind = VALUE_MAP, .map = {list_members, 2}}};
static const struct value words[] = {{.kind = VALUE_TEXT, .text = {"x", 1}},
                                     {.kind = VALUE_TEXT, .text = {"y\"", 2}}};
static const struct value_member values[] = {{"city", {.kind = VALUE_TEXT, .text = {"Bern", 4}}}};
static const struct value_member step_members[] = {
    {"label", {.kind = VALUE_TEXT, .text = {"Weather", 7}}},
    {"score", {.kind = VALUE_NUMBER, .number = 0.75}},
    {"list", {.kind = VALUE_LIST, .list = {list_items, 1}}},
    {"words", {.kind = VALUE_LIST, .list = {words, 2}}},
    {"values", {.kind = VALUE_MAP, .map = {values, 1}}},
    {"json", {.kind = VALUE_MAP, .map = {values, 1}}},
    {"ok", {.kind = VALUE_BOOL, .boolean = true}}};
static const struct value intent = {.kind = VALUE_MAP, .map = {step_members, 7}};

static const struct value *value_of(const struct graph_values *v, const char *name, size_t n)
{
    (void)v;
    (void)name;
    (void)n;
    return &intent;
}

static const struct graph_values all_values = {value_of};

/* The value as text; or "!N: message" for an error at byte N (0 for an error during evaluation). */
static const char *run(const char *text, enum graph_expr_mode mode, enum graph_expr_form form)
{
    static char out[512];
    struct arena a;
    struct graph_expr *x;
    struct graph_expr_error bad = {0};
    struct err e = {0};
    struct value v;
    struct buf b;
    arena_init(&a, (size_t)16 << 20);
    buf_init(&b, (size_t)8 << 20);
    int rc = graph_expr_parse(&x, &a, text, strlen(text), mode, &bad);
    if (rc == 0)
        rc = graph_expr_check(x, &scope, NULL, &bad);
    if (rc < 0) {
        snprintf(out, sizeof(out), "!%zu: %.200s", bad.at, bad.msg);
    } else if (graph_expr_eval(&v, x, &all_values, form, &a, &e) < 0) {
        snprintf(out, sizeof(out), "!0: %s", e.msg);
    } else {
        graph_expr_put(&b, &v, GRAPH_EXPR_PLAIN);
        snprintf(out, sizeof(out), "%.400s", buf_str(&b));
    }
    buf_fini(&b);
    arena_fini(&a);
    return out;
}

#define TEMPLATE(text) run(text, GRAPH_EXPR_TEMPLATE, GRAPH_EXPR_PLAIN)
#define CONDITION(text) run(text, GRAPH_EXPR_CONDITION, GRAPH_EXPR_PLAIN)
#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        const char *got_ = (text);                                                                 \
        if (!strstr(got_, part))                                                                   \
            fail_msg("'%s' is not in '%s'", part, got_);                                           \
    } while (0)

static void test_templates(void **state)
{
    (void)state;
    assert_string_equal(TEMPLATE(""), "");
    assert_string_equal(TEMPLATE("plain { } $ text"), "plain { } $ text");
    assert_string_equal(TEMPLATE("${intent.label}"), "Weather");
    assert_string_equal(TEMPLATE("in ${ intent.values.city }: ${intent.score}!"), "in Bern: 0.75!");
    assert_string_equal(TEMPLATE("$${intent.label} is ${lower(intent.label)}"),
                        "${intent.label} is weather");
    assert_string_equal(TEMPLATE("${intent.values.nowhere}."), ".");
    assert_string_equal(TEMPLATE("${intent.list[0].text}${intent.list[7].score}"), "a0");
    assert_string_equal(TEMPLATE("${join(intent.words, \"-\")}"), "x-y\"");
    assert_string_equal(TEMPLATE("${text(intent.list)}"), "[{\"text\":\"a\",\"score\":2}]");
    assert_string_equal(TEMPLATE("${default(intent.values.none, 'home')} ${trim('  a ')}"),
                        "home a");
    assert_string_equal(TEMPLATE("${round(intent.score * 10 / 3, 2)} ${-intent.score}"),
                        "2.5 -0.75");
    assert_string_equal(TEMPLATE("${intent.json.city}"), "Bern");
}

static void test_conditions(void **state)
{
    (void)state;
    assert_string_equal(CONDITION("${intent.label} == \"Weather\" && ${intent.score} > 0.5"),
                        "true");
    assert_string_equal(CONDITION("intent.label != 'Weather' || intent.score <= 0.5"), "false");
    assert_string_equal(CONDITION("!intent.ok || 1 + 2 * 3 == 7"), "true");
    assert_string_equal(CONDITION("(1 + 2) * 3 == 7"), "false");
    assert_string_equal(CONDITION("contains(intent.words, 'x') && starts(intent.label, 'Wea')"),
                        "true");
    assert_string_equal(CONDITION("len(intent.list) == 1 && number('2.5') > 2"), "true");
    assert_string_equal(CONDITION("intent.json.city == 'Bern'"), "true");
    /* unneeded operands are not evaluated */
    assert_string_equal(CONDITION("intent.ok || 1 / 0 > 1"), "true");
}

static void test_forms(void **state)
{
    (void)state;
    assert_string_equal(
        run("{\"a\": \"${intent.words[1]}\"}", GRAPH_EXPR_TEMPLATE, GRAPH_EXPR_JSON),
        "{\"a\": \"y\\\"\"}");
    assert_string_equal(
        run("http://h/${intent.words[1]}/${'a/../b ?'}", GRAPH_EXPR_TEMPLATE, GRAPH_EXPR_URL),
        "http://h/y%22/a%2F..%2Fb%20%3F");
    assert_string_equal(run("${'a b'}", GRAPH_EXPR_TEMPLATE, GRAPH_EXPR_URL), "a%20b");
}

static void test_errors(void **state)
{
    (void)state;
    assert_has(TEMPLATE("a ${intnet.label}"), "!4: there is no step 'intnet' (did you mean");
    assert_has(TEMPLATE("${intent.labl}"), "!9: there is no field 'labl'. Available: label, score");
    assert_has(TEMPLATE("ab ${intent.label"), "!3: this has no closing '}'");
    assert_has(TEMPLATE("${intent.label + 1}"), "!9: this is a text, but a number is needed");
    assert_has(TEMPLATE("x ${intent.list}"), "!11: a list cannot be part of a text");
    assert_has(TEMPLATE("${intent.label[0]}"), "has no items");
    assert_has(TEMPLATE("${intent.label.x}"), "has no fields");
    assert_has(TEMPLATE("${lower()}"), "!2: lower takes 1 values");
    assert_has(TEMPLATE("${exec('rm')}"), "!2: there is no function 'exec'");
    assert_has(TEMPLATE("${'a}"), "!2: the text has no closing '");
    assert_has(TEMPLATE("${'\\q'}"), "unknown escape");
    assert_has(TEMPLATE("${}"), "!2: expected a value");
    assert_has(TEMPLATE("${1e999}"), "!2: not a number");
    assert_has(CONDITION("intent.ok intent.ok"), "!10: expected an operator");
    assert_has(CONDITION("intent.label == 3"), "is never equal to");
    assert_has(CONDITION("intent.score > "), "ends where a value is expected");
    assert_has(CONDITION("1 / 0 > 1"), "a division by zero");
    assert_has(CONDITION("1e308 * 10 > 1"), "a number is too large");
    assert_has(CONDITION("number('x') > 1"), "is not a number");
    assert_has(CONDITION("intent.json.city > 1"), "a text was found where a number is needed");
}

static char *repeated(const char *part, size_t n, const char *end)
{
    struct buf b;
    buf_init(&b, (size_t)1 << 20);
    for (size_t i = 0; i < n; i++)
        buf_puts(&b, part);
    buf_puts(&b, end);
    char *out = buf_take(&b, NULL);
    assert_non_null(out);
    return out;
}

static void test_hostile(void **state)
{
    static const struct {
        const char *part;
        size_t n;
        const char *end, *says;
    } cases[] = {
        {"(", 5000, "1", "nested too deeply"},
        {"!", 5000, "intent.ok", "nested too deeply"},
        {"-", 5000, "1", "nested too deeply"},
        {"1+", 30000, "1", "too long"},
        {"lower(", 5000, "'a'", "nested"},
        {"intent.ok&&", 5000, "true", "too long"},
        {"${", 5000, "1", "nested too deeply"},
        {"1==", 5000, "1", "too long"},
        {"a", 70000, "", "the expression is too long"},
    };
    char *text;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        text = repeated(cases[i].part, cases[i].n, cases[i].end);
        assert_has(CONDITION(text), cases[i].says);
        mem_free(text);
    }
    text = repeated("${intent.label}", 4000, "");
    assert_has(TEMPLATE(text), "more than 256 pieces");
    mem_free(text);
    text = repeated(".label", 1000, "}");
    char *path = repeated("", 0, "${intent");
    struct buf b;
    buf_init(&b, (size_t)1 << 20);
    buf_printf(&b, "%s%s", path, text);
    assert_has(TEMPLATE(buf_str(&b)), "the path is too long");
    buf_fini(&b);
    mem_free(path);
    mem_free(text);
}

/* The text limit stops expressions that multiply their output. */
static void test_bounded_text(void **state)
{
    struct buf b;
    char *big = repeated("x", 60000, "");
    struct arena a;
    struct graph_expr *x;
    struct graph_expr_error bad;
    struct err e = {0};
    struct value v;
    (void)state;
    struct value *many = mem_zalloc_n(100, sizeof(*many));
    assert_non_null(many);
    for (int i = 0; i < 100; i++)
        many[i] = value_text(big, 60000);
    const struct value list = {.kind = VALUE_LIST, .list = {many, 100}};
    buf_init(&b, (size_t)1 << 20);
    graph_expr_put(&b, &list, GRAPH_EXPR_PLAIN);
    assert_int_equal(b.rc, SHOAL_ELIMIT);
    buf_fini(&b);
    buf_init(&b, (size_t)1 << 20);
    buf_puts(&b, "'");
    buf_puts(&b, big);
    buf_puts(&b, "'");
    arena_init(&a, (size_t)64 << 20);
    assert_int_equal(graph_expr_parse(&x, &a, buf_str(&b), b.len, GRAPH_EXPR_CONDITION, &bad), 0);
    assert_int_equal(graph_expr_check(x, &scope, &graph_type_text, &bad), 0);
    assert_int_equal(graph_expr_eval(&v, x, &all_values, GRAPH_EXPR_PLAIN, &a, &e), 0);
    assert_int_equal(v.text.n, 60000);
    arena_fini(&a);
    buf_fini(&b);
    mem_free(many);
    mem_free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_templates), cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_forms),     cmocka_unit_test(test_errors),
        cmocka_unit_test(test_hostile),   cmocka_unit_test(test_bounded_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
