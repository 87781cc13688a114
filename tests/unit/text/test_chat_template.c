/* test_chat_template.c - chat templates: their output, errors and limits.
 * tests/conformance/chat_templates compares with the reference on a far larger set. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/value.h"
#include "text/chat_template.h"

static const char context[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\" Be kind. \"},"
    "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Hello!\"},"
    "{\"role\":\"user\",\"content\":\"Z\\u00fcrich \\ud83e\\udd88?\"}],"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":"
    "{\"type\":\"object\",\"properties\":{},\"n\":[1,2.5,1e21,true,null]}}}],"
    "\"add_generation_prompt\":true,\"bos_token\":\"<s>\",\"eos_token\":\"</s>\","
    "\"l\":[3,1,2],\"d\":{\"b\":1,\"a\":\"x\"},\"el\":[],\"s\":\"Hello "
    "World\",\"none_value\":null}";

/* Renders with a fixed time, 2025-07-24 13:04:05; gives the code, and the text or the error. */
static int render(const char *template, const char *json, char *text, size_t room,
                  const struct chat_template_opts *limits)
{
    struct chat_template_opts o = limits ? *limits : (struct chat_template_opts){0};
    struct chat_template *t = NULL;
    struct err e = {0};
    struct buf out;
    o.fixed_time = true;
    o.unix_s = 1753362245 - 7200;
    o.utc_offset_s = 7200;
    buf_init(&out, 1u << 20);
    int rc = chat_template_parse(&t, template, strlen(template), &e);
    if (rc == 0)
        rc = chat_template_render_opts(t, &out, json, strlen(json), &o, &e);
    else
        assert_null(t);
    if (rc < 0) {
        assert_int_equal(e.code, rc);
        assert_int_equal(out.len, 0);
    }
    snprintf(text, room, "%s", rc < 0 ? e.msg : buf_str(&out));
    buf_fini(&out);
    chat_template_destroy(t);
    return rc;
}

static char *read_data(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/chat_templates/%s", SHOAL_TEST_DATA, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, f) > 0);
    fclose(f);
    return text;
}

static void test_families_write_their_prompts(void **state)
{
    (void)state;
    static const struct {
        const char *file, *want;
    } cases[] = {
        {"chatml.jinja",
         "<|im_start|>system\n Be kind. <|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
         "<|im_start|>assistant\nHello!<|im_end|>\n"
         "<|im_start|>user\nZürich 🦈?<|im_end|>\n<|im_start|>assistant\n"},
        {"smollm2.jinja",
         "<|im_start|>system\n Be kind. <|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
         "<|im_start|>assistant\nHello!<|im_end|>\n"
         "<|im_start|>user\nZürich 🦈?<|im_end|>\n<|im_start|>assistant\n"},
        {"llama2.jinja", "<s>[INST] <<SYS>>\n Be kind. \n<</SYS>>\n\nHi [/INST] Hello! </s>"
                         "<s>[INST] Zürich 🦈? [/INST]"},
        {"llama3.jinja", "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
                         "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
                         "<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>"
                         "<|start_header_id|>user<|end_header_id|>\n\nZürich 🦈?<|eot_id|>"
                         "<|start_header_id|>assistant<|end_header_id|>\n\n"},
        {"zephyr.jinja", "<|system|>\n Be kind. </s>\n<|user|>\nHi</s>\n<|assistant|>\nHello!</s>\n"
                         "<|user|>\nZürich 🦈?</s>\n<|assistant|>\n"},
        {"tinyllama.jinja",
         "<|system|>\n Be kind. </s>\n<|user|>\nHi</s>\n<|assistant|>\nHello!</s>\n"
         "<|user|>\nZürich 🦈?</s>\n<|assistant|>\n"},
        {"mistral_v03.jinja",
         "<s>[INST] Hi[/INST] Hello!</s>[AVAILABLE_TOOLS] [{\"type\": \"function\", \"function\": "
         "{\"name\": \"f\", \"parameters\": {\"type\": \"object\", \"properties\": {}, \"n\": "
         "[1, 2.5, 1e+21, true, null]}}}][/AVAILABLE_TOOLS][INST]  Be kind. \n\n"
         "Zürich 🦈?[/INST]"},
        {"gemma3.jinja", "<s><start_of_turn>user\n Be kind. \n\nHi<end_of_turn>\n"
                         "<start_of_turn>model\nHello!<end_of_turn>\n"
                         "<start_of_turn>user\nZürich 🦈?<end_of_turn>\n<start_of_turn>model\n"},
        {"phi1_5.jinja",
         " Be kind. \n\nInstruct: Hi\nOutput: Hello!\nInstruct: Zürich 🦈?\nOutput:"},
        {"phi3.jinja",
         "<|system|>\n Be kind. <|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello!<|end|>\n"
         "<|user|>\nZürich 🦈?<|end|>\n<|assistant|>\n"},
        {"phi4.jinja",
         "<|im_start|>system<|im_sep|> Be kind. <|im_end|><|im_start|>user<|im_sep|>Hi"
         "<|im_end|><|im_start|>assistant<|im_sep|>Hello!<|im_end|>"
         "<|im_start|>user<|im_sep|>Zürich 🦈?<|im_end|><|im_start|>assistant<|im_sep|>"},
        {"phi4_mini.jinja", "<|system|> Be kind. <|end|><|user|>Hi<|end|><|assistant|>Hello!<|end|>"
                            "<|user|>Zürich 🦈?<|end|><|assistant|>"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[4096], *source = read_data(cases[i].file);
        int rc = render(source, context, text, sizeof(text), NULL);
        free(source);
        if (rc < 0 || strcmp(text, cases[i].want) != 0)
            fail_msg("%s: %d\n got: %s\nwant: %s", cases[i].file, rc, text, cases[i].want);
    }
}

static void test_constructs(void **state)
{
    (void)state;
    static const struct {
        const char *template, *want;
    } cases[] = {
        {"{% for x in l %}{{ loop.index }}{{ x }}{{ ',' if not loop.last }}{% endfor %}",
         "13,21,32"},
        {"{% for x in el %}a{% else %}none{% endfor %}", "none"},
        {"{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{% endfor %}", "3222"},
        {"{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "32"},
        {"{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "3"},
        {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "b=1;a=x;"},
        {"{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}", "a=x;b=1;"},
        {"{% set n = namespace(x=0) %}{% for x in l %}{% set n.x = n.x + x %}{% endfor %}{{ n.x }}",
         "6"},
        {"{% set x %}a{{ s }}{% endset %}{{ x | upper }}", "AHELLO WORLD"},
        {"{% set a, b = 1, 2 %}{{ a + b }}", "3"},
        {"{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}", "1213"},
        {"{% macro m() %}<{{ caller(1) }}>{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}",
         "<1>"},
        {"{% filter upper %}abc{% endfilter %}", "ABC"},
        {"{{ s[0] }}{{ s[-1] }}{{ s[::-1] }}{{ l[1:] }}{{ s[:-6] }}", "HddlroW olleH[1, 2]Hello"},
        {"{{ s.split(' ') | last }}{{ s.replace('o', '0') }}{{ s.startswith('He') }}",
         "WorldHell0 W0rldTrue"},
        {"{{ l | sort | join('-') }}{{ l | length }}{{ l | first }}{{ l | last }}", "1-2-3332"},
        {"{{ messages | map(attribute='role') | join(' ') }}", "system user assistant user"},
        {"{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "2"},
        {"{{ messages | rejectattr('role', 'in', ['user']) | list | length }}", "2"},
        {"{{ l | select('odd') | list }}{{ l | reject('odd') | list }}{{ l | map('string') | join "
         "}}",
         "[3, 1][2]312"},
        {"{{ 5 is eq 5 }}{{ 5 is in l }}{{ 6 is divisibleby(3) }}", "TrueFalseTrue"},
        {"{{ '<a>' | e }}{{ undef | default('x') }}{{ '' | default('y', true) }}", "&lt;a&gt;xy"},
        {"{{ {'a': [1, 'ü']} | tojson }}{{ {'a': 'ü'} | tojson(ensure_ascii=true) }}",
         "{\"a\": [1, \"ü\"]}{\"a\": \"\\u00fc\"}"},
        {"{{ [{}, []] | tojson(indent=2) }}", "[\n  {},\n  []\n]"},
        {"{{ 'xxaxx'.strip('x') }}{{ 'xya'.lstrip('yx') }}{{ 'a\\n\\n '.rstrip('\\n') }}",
         "aaa\n\n "},
        {"{{ {'items': 1, 'b': 2}.items() | length }}", "2"},
        {"{% for x in nothing %}x{% else %}none{% endfor %}", "none"},
        {"{{ none | selectattr('a') | list | length }}", "0"},
        {"{{ documents is defined }}{{ documents is none }}", "TrueTrue"},
        {"{{ [3, 1, 2] | min }}{{ [3, 1, 2] | max }}{{ ['b', 'A'] | min }}", "13A"},
        {"{{ '<{}|{}>{{}}{k}'.format('a', 2, k='c') }}", "<a|2>{}c"},
        {"{{ d | tojson(indent=2) }}", "{\n  \"b\": 1,\n  \"a\": \"x\"\n}"},
        {"{{ 7 // 2 }}{{ 7 / 2 }}{{ 7 % 4 }}{{ 2 ** 3 }}{{ 1.0 }}{{ 3.0 * 2 }}{{ 0.1 + 0.2 }}",
         "33.5381.06.00.30000000000000004"},
        {"{{ 'a' ~ 1 ~ true }}{{ 'x' in 'xyz' }}{{ 'b' not in d }}{{ 1 if s else 2 }}",
         "a1TrueTrueFalse1"},
        {"{{ strftime_now('%d %b %Y %H:%M') }}", "24 Jul 2025 13:04"},
        {"{{ undef }}{{ none_value }}{{ true }}{{ undef is defined }}{{ s is string }}",
         "NoneTrueFalseTrue"},
        {"{# gone #}a {#- gone -#} b", "ab"},
        {"  {% if true %}\n  x\n  {% endif %}\ny\n", "  x\ny"},
        {"a {%- if true -%} b {%- endif %} c", "ab c"},
        {"{% generation %}x{% endgeneration %}", "x"},
        {"{{ s[20] }}|{{ ('🦈'[0] ~ '🦈'[1]) }}|{{ '🦈'[0] }}", "|🦈|🦈"},
        {"{{ [] | first | default('kept') if false else 'ok' }}", "ok"},
        {"{% set s = '' %}{% for i in range(3) %}{% set s = s + 'ab' %}{{ s }};{% endfor %}{{ s }}",
         "ab;ab;ab;"},
        /* how Python prints values */
        {"{{ [none, true, 1.0, 'a', \"it's\", 'q\"', '\\né\\x07'] }}",
         "[None, True, 1.0, 'a', \"it's\", 'q\"', '\\né\\x07']"},
        {"{{ (1,) }}{{ {'a': (1, 2), 2: none} }}{{ d.items() }}{{ range(1, 9, 3) }}",
         "(1,){'a': (1, 2), 2: None}dict_items([('b', 1), ('a', 'x')])range(1, 9, 3)"},
        {"{{ 1e16 }}|{{ 1e-5 }}|{{ 123456789012345678901234567890 }}|{{ 1e22 | tojson }}|{{ -0.0 "
         "}}",
         "1e+16|1e-05|123456789012345678901234567890|1e+22|-0.0"},
        {"{{ namespace(a=1) }}{% for x in l %}{{ loop }}{% endfor %}",
         "<Namespace {'a': 1}><LoopContext 1/3><LoopContext 2/3><LoopContext 3/3>"},
        {"{{ not [] }}{{ not {} }}{{ [] == [] }}{{ [1, [2]] == [1, [2]] }}{{ '1' == 1 }}",
         "TrueTrueTrueTrueFalse"},
        {"{{ -7 // 2 }}{{ -7 % 3 }}{{ 7.5 // 2 }}{{ 1 < 2 < 3 }}{{ 3 > 2 > 2 }}{{ 'ab' * 2 }}",
         "-423.0TrueFalseabab"},
        {"{{ {1: 'a'}[1] }}{{ {'a': 1}.get('b') }}{{ {'items': 1}['items'] }}", "aNone1"},
        {"{{ {'a': 1}['items']() | list }}{{ l.append is defined }}{{ s.nosuch is defined }}",
         "[('a', 1)]FalseFalse"},
        {"{{ '%s|%5.1f|%-4d|' % ('a', 2.25, 7) }}{{ '%d%%' | format(5) }}", "a|  2.2|7   |5%"},
        {"{{ '{:>5}|{:05.1f}|{!r}|{a[0]}|{:,}'.format('x', 2.25, 'y', 12345, a=l) }}",
         "    x|002.2|'y'|3|12,345"},
        {"{{ ('<' | e) + '<' }}{{ '<b>' | safe }}{{ ['a' | safe] }}", "&lt;&lt;<b>[Markup('a')]"},
        {"{{ 'ab cd-ef (gh' | title }}|{{ \"it's\".title() }}|{{ 'ABC dEF' | capitalize }}",
         "Ab Cd-Ef (Gh|It'S|Abc def"},
        {"{{ ' 42 ' | int }}{{ '3.9' | int }}{{ 'x' | int(-1) }}{{ '1_0' | int }}{{ '1e2' | float "
         "}}",
         "423-110100.0"},
        {"{{ 2.5 | round }}{{ 2.675 | round(2) }}{{ 1.1 | round(0, 'ceil') }}", "2.02.672.0"},
        {"{{ '-42'.zfill(5) }} {{ '7'.zfill(3) }} {{ 'abc'.zfill(2) }} {{ '+1'.zfill(4) }}",
         "-0042 007 abc +001"},
        {"{{ [1, 2] | sum }} {{ [] | sum }} {{ [1.5] | sum(start=2) }} {{ [{'a': 3}, {'a': 4}] | "
         "sum('a') }}",
         "3 0 3.5 7"},
        {"{{ ['aa', 'b', 'a'] | sort | join }}{{ 'a' < 'ab' }}{{ 'ab' < 'a' }}{{ 'b' > 'ab' }}",
         "aaabTrueFalseTrue"},
        {"{{ ['b', 'B', 'a'] | max }}{{ [2, 1, 1.0] | min }}{{ [{'n': 2}, {'n': 1}] | "
         "min(attribute='n') }}{{ [] | max | default('-') }}",
         "b1{'n': 1}-"},
        /* scopes: a name set in a scope belongs to it, and macros see the scope of their
         * definition */
        {"{% for x in l %}{{ s }}{% endfor %}{% set s = 1 %}{{ s }}", "1"},
        {"{% for x in l %}{{ q | default('-') }}{% set q = x %}{% endfor %}", "---"},
        {"{% macro m() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ m() }}", "3"},
        {"{% macro m() %}[{{ x }}]{% endmacro %}{% for x in l %}{{ m() }}{% endfor %}", "[][][]"},
        {"{% if false %}{% set s = 1 %}{% endif %}{{ s }}", "Hello World"},
        {"{% with a = 1 %}{{ a }}{% endwith %}{{ a }}{% generation %}{% set a = 2 %}{% "
         "endgeneration "
         "%}{{ a }}",
         "1"},
        {"{% for x in l %}a{% break %}{% else %}else{% endfor %}", "aelse"},
        {"{% for x in [[1, [2]], 3] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ "
         "x }}"
         "{{ loop.depth }}{% endif %}{% endfor %}",
         "(12(23))31"},
        {"{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}",
         "aTruebTrueaTrue"},
        {"{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, z=4) }}",
         "1(2,){'z': 4}"},
        /* iterators can be iterated once */
        {"{% set m = l | map('string') %}{{ m | join }}{{ m | join }}{{ m is iterable }}",
         "312True"},
        {"{{ (l | select('nosuch')) is defined }}{{ undef | map('nosuch') | list }}", "True[]"},
        {"{% if false %}{{ s | nosuch }}{% endif %}{{ 'x' is filter }}{{ 'trim' is filter }}",
         "FalseTrue"},
        /* white space */
        {"a\r\n{% if true %}\r\nb{% endif %}\r\n", "a\nb"},
        {"  {%+ if true %}\n a {% endif +%}\nb", "   a \nb"},
        {"{% raw %}{{ x }}{% endraw %}\n{#- c +#}\nx", "{{ x }}\nx"},
        {"{{ '\\x41\\u00e9\\q\\101' }}{{ '\\\nb' }}", "Aé\\qAb"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1024];
        int rc = render(cases[i].template, context, text, sizeof(text), NULL);
        if (rc < 0 || strcmp(text, cases[i].want) != 0)
            fail_msg("%s: %d\n got: %s\nwant: %s", cases[i].template, rc, text, cases[i].want);
    }
}

static void test_errors_name_the_construct_and_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *template;
        int code;
        const char *want;
    } cases[] = {
        {"a\nü {% include 'x' %}", SHOAL_EUNSUPPORTED, "line 2, column 6: statement 'include'"},
        {"{{ s | nosuch }}", SHOAL_EUNSUPPORTED,
         "line 1, column 8: filter 'nosuch' does not exist"},
        {"{{ s is nosuch }}", SHOAL_EUNSUPPORTED, "line 1, column 9: test 'nosuch' does not exist"},
        {"{{ s | truncate }}", SHOAL_EUNSUPPORTED, "filter 'truncate' is not supported"},
        {"{{ s.encode() }}", SHOAL_EUNSUPPORTED, "method 'encode' of a string is not supported"},
        {"{{ cycler(1) }}", SHOAL_EUNSUPPORTED, "function 'cycler' is not supported"},
        {"{{ d.update({}) }}", SHOAL_EUNSUPPORTED, "'update' cannot be called"},
        {"{{ l | map('trim') }}", SHOAL_EINVAL, "make a list of it"},
        {"{{ d.get }}", SHOAL_EINVAL, "function 'get' cannot be written"},
        {"{{ undef.x }}", SHOAL_EINVAL, "'undef' is undefined"},
        {"{{ s.nosuch() }}", SHOAL_EUNSUPPORTED, "'nosuch' cannot be called"},
        {"\n\n  {{ raise_exception('roles must alternate') }}", SHOAL_EINVAL,
         "line 3, column 6: roles must alternate"},
        {"{{ undef + 'a' }}", SHOAL_EINVAL, "line 1, column 10: 'undef' is undefined"},
        {"{% if true %}", SHOAL_EFORMAT, "{% endif %}"},
        {"{{ 'abc }}", SHOAL_EFORMAT, "line 1, column 4: string without its closing quote"},
        {"{{ 'a\\xq' }}", SHOAL_EFORMAT, "line 1, column 7: bad escape"},
        {"{{ 1 $ 2 }}", SHOAL_EFORMAT, "line 1, column 6: unexpected character"},
        {"{# x", SHOAL_EFORMAT, "comment without #}"},
        {"{{ [1, }}", SHOAL_EFORMAT, "closing bracket without its opening one"},
        {"{{ 1 + }}", SHOAL_EFORMAT, "expected a value"},
        {"{% for x in l %}{{ loop(l) }}{% endfor %}", SHOAL_EINVAL, "recursive for only"},
        {"{% break %}", SHOAL_EFORMAT, "allowed only in a for statement"},
        {"{{ 9223372036854775807 + 1 }}", SHOAL_ELIMIT, "more than 64 bits"},
        {"{{ 1 // 0 }}", SHOAL_EINVAL, "division by zero"},
        {"{% for loop in l %}{% endfor %}", SHOAL_EFORMAT, "the name loop"},
        {"\xff", SHOAL_EFORMAT, "UTF-8"},
        {"{% for x in 5 %}{% endfor %}", SHOAL_EINVAL, "cannot loop over an integer"},
        {"{{ {'ü': 1, 2: 3} | tojson(sort_keys=true) }}", SHOAL_EINVAL, "keys of different kinds"},
        {"{{ ['a', 'b'] | sum(start='') }}", SHOAL_EINVAL, "sum cannot add strings"},
        {"{{ ['a', 'b'] | sum }}", SHOAL_EINVAL, "between an integer and a string"},
        {"{{ [1, 'a'] | max }}", SHOAL_EINVAL, "between an integer and a string"},
        {"{{ range(*l, *l) }}", SHOAL_EFORMAT, "argument"},
        {"{{ range(**d, *l) }}", SHOAL_EFORMAT, "argument"},
        {"{{ range(**d, **d) }}", SHOAL_EFORMAT, "argument"},
        {"{{ range(**d, a=1) }}", SHOAL_EFORMAT, "argument"},
        {"{{ range(a=1, 2) }}", SHOAL_EFORMAT, "argument"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        int rc = render(cases[i].template, context, text, sizeof(text), NULL);
        if (rc != cases[i].code || !strstr(text, cases[i].want))
            fail_msg("%s: %d %s; want %d %s", cases[i].template, rc, text, cases[i].code,
                     cases[i].want);
    }
}

static void test_bad_contexts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *want;
        int code;
    } cases[] = {
        {"", "not JSON", SHOAL_EFORMAT},
        {"{\"a\":", "not JSON", SHOAL_EFORMAT},
        {"{} x", "trailing data", SHOAL_EFORMAT},
        {"[]", "not a JSON object", SHOAL_EFORMAT},
        {"{\"a\":\"\\u00\"}", "not JSON", SHOAL_EFORMAT},
        {"{\"a\":01}", "not JSON", SHOAL_EFORMAT},
        {"{\"a\":1.}", "not JSON", SHOAL_EFORMAT},
        {"{\"a\":+1}", "not JSON", SHOAL_EFORMAT},
        {"{\"a\":[1,]}", "not JSON", SHOAL_EFORMAT},
        {"{\"a\":\"\n\"}", "not JSON", SHOAL_EFORMAT},
        {"{\"a\":\"\xc3\"}", "UTF-8", SHOAL_EFORMAT},
    };
    char text[512];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = render("x", cases[i].json, text, sizeof(text), NULL);
        if (rc != cases[i].code || !strstr(text, cases[i].want))
            fail_msg("%s: %d %s", cases[i].json, rc, text);
    }
    assert_int_equal(render("{{ a }}", "{\"a\":\"\\\\u0000\"}", text, sizeof(text), NULL), 0);
    assert_string_equal(text, "\\u0000");
    assert_int_equal(render("{{ a }}", "{\"a\":\"x\\u0000b\"}", text, sizeof(text), NULL), 0);
    assert_memory_equal(text, "x", 2); /* the zero byte is part of the prompt */
    static const char numbers[] = "{\"a\":[1.0,1,1e2,-0,123456789012345678901,\"\\ud83e\\udd88\"]}";
    assert_int_equal(render("{{ a }}", numbers, text, sizeof(text), NULL), 0);
    assert_string_equal(text, "[1.0, 1, 100.0, 0, 123456789012345678901, '🦈']");
    char deep[2001];
    memset(deep, '[', 900);
    memset(deep + 900, ']', 900);
    deep[1800] = '\0';
    char json[2100];
    snprintf(json, sizeof(json), "{\"a\":%s}", deep);
    assert_int_equal(render("x", json, text, sizeof(text), NULL), SHOAL_ELIMIT);
}

/* head, n times body, tail */
static char *repeated(const char *head, const char *body, size_t n, const char *tail)
{
    struct buf b;
    buf_init(&b, 1u << 26);
    buf_puts(&b, head);
    for (size_t i = 0; i < n; i++)
        buf_puts(&b, body);
    buf_puts(&b, tail);
    char *text = buf_take(&b, NULL);
    assert_non_null(text);
    return text;
}

static void test_limits(void **state)
{
    (void)state;
    const struct chat_template_opts small = {
        .max_steps = 100000, .max_output_bytes = 10000, .max_memory_bytes = 1u << 20};
    char text[512];
    static const char *const run[] = {
        "{% for i in range(1000000000) %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for i in range(100) %}{{ s * 1 if false else s }}{{ s }}{{ s }}{{ s }}{{ s }}{{ s }}"
        "{{ s }}{{ s }}{{ s }}{{ s }}{% endfor %}",
        "{% set x = namespace(s='ab') %}{% for i in range(60) %}{% set x.s = x.s + x.s %}{% endfor "
        "%}",
        "{% set x = namespace(l=[1]) %}{% for i in range(60) %}{% set x.l = x.l + x.l %}{% endfor "
        "%}",
        "{% set n = namespace() %}{% set n.n = n %}{{ n }}",
        "{{ d | tojson(indent=9000000000) }}",
        "{{ 'a\nb' | indent(9000000000) }}",
        "{% for i in range(10000) %}{% for j in range(10000) %}{% set y = j %}{% endfor %}{% "
        "endfor %}",
        "{% set x = namespace(s='a') %}{% for i in range(14) %}{% set x.s = x.s + x.s %}{% endfor "
        "%}"
        "{% for i in range(20000) %}{% if 'b' in x.s %}{% endif %}{% endfor %}",
    };
    for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
        int rc = render(run[i], context, text, sizeof(text), &small);
        if (rc != SHOAL_ELIMIT)
            fail_msg("%s: %d %s", run[i], rc, text);
    }
    static const struct {
        const char *head, *body, *tail;
    } source[] = {
        {"{{ ", "(", "1 }}"},      {"{{ ", "not ", "1 }}"},
        {"{{ ", "- ", "1 }}"},     {"{{ ", "[", "1 }}"},
        {"{{ 1", " + 1", " }}"},   {"{{ x", ".a", " }}"},
        {"{{ x", "(1)", " }}"},    {"{{ x", "|trim", " }}"},
        {"", "{% if true %}", ""}, {"{{ 1", " if 1 else 1", " }}"},
        {"{{ ", "{'a':", "1 }}"},
    };
    for (size_t i = 0; i < sizeof(source) / sizeof(source[0]); i++) {
        char *t = repeated(source[i].head, source[i].body, 20000, source[i].tail);
        int rc = render(t, context, text, sizeof(text), NULL);
        mem_free(t);
        if (rc != SHOAL_ELIMIT)
            fail_msg("many '%s': %d %s", source[i].body, rc, text);
    }
    char *big = repeated("", "0123456789abcdef", 70000, "");
    assert_int_equal(render(big, context, text, sizeof(text), NULL), SHOAL_ELIMIT);
    mem_free(big);
    char *elif = repeated("{% if false %}", "{% elif false %}", 20000, "{% else %}x{% endif %}");
    assert_int_equal(render(elif, context, text, sizeof(text), NULL), 0);
    assert_string_equal(text, "x");
    mem_free(elif);
}

static void test_appends_and_leaves_the_buffer_alone_on_failure(void **state)
{
    (void)state;
    struct chat_template *t = NULL;
    struct err e = {0};
    struct buf out;
    buf_init(&out, 20);
    buf_puts(&out, "before ");
    assert_int_equal(chat_template_parse(&t, "{{ s }}", 7, &e), 0);
    assert_int_equal(chat_template_render(t, &out, "{\"s\":\"x\"}", 9, &e), 0);
    assert_string_equal(buf_str(&out), "before x");
    const char *longer = "{\"s\":\"0123456789abcdef\"}";
    assert_int_equal(chat_template_render(t, &out, longer, strlen(longer), &e), SHOAL_ELIMIT);
    assert_string_equal(buf_str(&out), "before x");
    chat_template_destroy(t);
    buf_fini(&out);
    chat_template_destroy(NULL);
}

static void test_failed_allocations(void **state)
{
    (void)state;
    char *source = read_data("toolbox.jinja");
    bool done = false;
    int n = 1;
    for (; !done; n++) {
        struct chat_template *t = NULL;
        struct err e = {0};
        struct buf out;
        buf_init(&out, 1u << 20);
        mem_fail_at((uint64_t)n);
        int rc = chat_template_parse(&t, source, strlen(source), &e);
        if (rc == 0)
            rc = chat_template_render(t, &out, context, sizeof(context) - 1, &e);
        mem_fail_at(0);
        if (rc == 0)
            done = true;
        else if (rc != SHOAL_ENOMEM || !e.msg[0])
            fail_msg("allocation %d: %d %s", n, rc, e.msg);
        chat_template_destroy(t);
        buf_fini(&out);
    }
    assert_true(n > 5);
    free(source);
}

struct job {
    const struct chat_template *t;
    char want[4096];
    int bad;
};

static void *render_often(void *arg)
{
    struct job *j = arg;
    for (int i = 0; i < 200; i++) {
        struct chat_template_opts o = {.fixed_time = true};
        struct err e = {0};
        struct buf out;
        buf_init(&out, 1u << 20);
        int rc = chat_template_render_opts(j->t, &out, context, sizeof(context) - 1, &o, &e);
        j->bad += rc != 0 || strcmp(buf_str(&out), j->want) != 0;
        buf_fini(&out);
    }
    return NULL;
}

/* Tools and calls arrive as typed values, not as JSON; templates must see the same. */
static void test_tools_as_values(void **state)
{
    (void)state;
    static const char source[] =
        "{% if tools is not none and tools | length > 0 %}{{ tools | tojson }}\n{% endif %}"
        "{% for m in messages %}{{ m.role }}:{{ m.content }}:"
        "{{ m.reasoning_content | default('-') }}:{{ m.tool_call_id }}"
        "{% for c in m.tool_calls %}|{{ c.id }} {{ c.function.name }} "
        "{{ c.function.arguments | tojson }} {{ c.function.arguments }}{% endfor %}\n{% endfor %}"
        "{{ documents is none }}";
    static const char want[] =
        "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}]\n"
        "assistant:None:why:|c1 f {\"x\": 1, \"y\": [0.5, true, null]} "
        "{'x': 1, 'y': [0.5, True, None]}tool:ok:-:c1True";
    const struct value none = {.kind = VALUE_NULL};
    const struct value list[] = {{.kind = VALUE_NUMBER, .number = 0.5}, value_bool(true), none};
    const struct value_member arguments[] = {
        {"x", {.kind = VALUE_NUMBER, .number = 1}},
        {"y", {.kind = VALUE_LIST, .list = {list, 3}}},
    };
    const struct value_member function[] = {
        {"name", value_text("f", 1)},
        {"arguments", {.kind = VALUE_MAP, .map = {arguments, 2}}},
    };
    const struct value_member call[] = {
        {"id", value_text("c1", 2)},
        {"type", value_text("function", 8)},
        {"function", {.kind = VALUE_MAP, .map = {function, 2}}},
    };
    const struct value calls = {.kind = VALUE_MAP, .map = {call, 3}};
    const struct value_member asking[] = {
        {"role", value_text("assistant", 9)},
        {"content", none},
        {"reasoning_content", value_text("why", 3)},
        {"tool_calls", {.kind = VALUE_LIST, .list = {&calls, 1}}},
    };
    const struct value_member answering[] = {
        {"role", value_text("tool", 4)},
        {"tool_call_id", value_text("c1", 2)},
        {"content", value_text("ok", 2)},
    };
    const struct value messages[] = {{.kind = VALUE_MAP, .map = {asking, 4}},
                                     {.kind = VALUE_MAP, .map = {answering, 3}}};
    const struct value_member declared[] = {
        {"name", value_text("f", 1)},
        {"parameters", {.kind = VALUE_MAP}},
    };
    const struct value_member tool[] = {
        {"type", value_text("function", 8)},
        {"function", {.kind = VALUE_MAP, .map = {declared, 2}}},
    };
    const struct value tools = {.kind = VALUE_MAP, .map = {tool, 2}};
    const struct value_member variables[] = {
        {"messages", {.kind = VALUE_LIST, .list = {messages, 2}}},
        {"tools", {.kind = VALUE_LIST, .list = {&tools, 1}}},
    };
    const struct value values = {.kind = VALUE_MAP, .map = {variables, 2}};
    struct chat_template *t = NULL;
    struct err e = {0};
    struct buf out;
    buf_init(&out, 10000);
    assert_int_equal(chat_template_parse(&t, source, sizeof(source) - 1, &e), 0);
    assert_int_equal(chat_template_render_value(t, &out, &values, &e), 0);
    assert_string_equal(buf_str(&out), want);
    chat_template_destroy(t);
    buf_fini(&out);
}

static bool to_stars(void *ctx, const char **p, size_t *n)
{
    static const char stars[] = "****";
    size_t *left = ctx;
    if (*left == 0)
        return false;
    --*left;
    *p = stars;
    *n = *n < 4 ? *n : 4;
    return true;
}

/* The caller's variables fill gaps, and its function sees every text except names. */
static void test_options_for_json(void **state)
{
    (void)state;
    static const struct value_member vars[] = {{"a", {.kind = VALUE_TEXT, .text = {"va", 2}}},
                                               {"b", {.kind = VALUE_TEXT, .text = {"vb", 2}}}};
    static const char source[] = "{{ a }} {{ b }} {{ c | tojson }}";
    static const char json[] = "{\"a\":\"one\",\"c\":{\"k\":[\"xy\",1.0,\"\"]}}";
    for (size_t left = 0; left < 4; left++) {
        size_t count = left;
        const struct chat_template_opts o = {
            .vars = vars, .n_vars = 2, .text = to_stars, .text_ctx = &count};
        char text[200];
        int rc = render(source, json, text, sizeof(text), &o);
        assert_int_equal(rc, left < 3 ? SHOAL_ENOMEM : 0);
        if (rc == 0)
            assert_string_equal(text, "*** vb {\"k\": [\"**\", 1.0, \"\"]}");
    }
}

/* An empty text is a prompt too: nothing is read from a missing buffer. */
static void test_a_template_may_write_nothing(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "",
        "\n",
        "{# x #}",
        "{% if false %}x{% endif %}",
        "{{ '' }}",
        "{% set x %}{% endset %}{{ x }}{{ '' ~ x | trim | upper }}",
        "{{ [''] | join }}{{ ''.split('a') | first | tojson | replace('\"', '') }}"};
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        char text[64];
        assert_int_equal(render(sources[i], "{}", text, sizeof(text), NULL), 0);
        assert_string_equal(text, "");
    }
}

static void test_threads_render_one_template(void **state)
{
    (void)state;
    static struct job jobs[4];
    struct chat_template *t = NULL;
    struct err e = {0};
    char *source = read_data("toolbox.jinja");
    assert_int_equal(chat_template_parse(&t, source, strlen(source), &e), 0);
    struct buf out;
    buf_init(&out, 1u << 20);
    struct chat_template_opts o = {.fixed_time = true};
    assert_int_equal(chat_template_render_opts(t, &out, context, sizeof(context) - 1, &o, &e), 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        jobs[i].t = t;
        snprintf(jobs[i].want, sizeof(jobs[i].want), "%s", buf_str(&out));
        assert_int_equal(pthread_create(&threads[i], NULL, render_often, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].bad, 0);
    }
    buf_fini(&out);
    chat_template_destroy(t);
    free(source);
}

static void *recurse(void *arg)
{
    static const char *const sources[] = {
        "{% macro f(a) %}{% for x in l %}{% if true %}{{ [f(a)] | join }}{% endif %}{% endfor %}"
        "{% endmacro %}{{ f(1) }}",
        "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}"
        "{% endcall %}{% endmacro %}{{ g() }}",
    };
    int *bad = arg;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        struct chat_template *t = NULL;
        struct err e = {0};
        struct buf out;
        buf_init(&out, 1000);
        int rc = chat_template_parse(&t, sources[i], strlen(sources[i]), &e);
        if (rc == 0)
            rc = chat_template_render(t, &out, context, sizeof(context) - 1, &e);
        *bad += rc != SHOAL_ELIMIT;
        chat_template_destroy(t);
        buf_fini(&out);
    }
    return NULL;
}

/* The deepest calls fit the stack of a pool thread; sanitizers enlarge frames. */
static void test_deep_calls_fit_a_small_stack(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const size_t stack_bytes = 8u << 20;
#else
    const size_t stack_bytes = 768u << 10;
#endif
    int bad = 0;
    pthread_t thread;
    pthread_attr_t attr;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, stack_bytes), 0);
    assert_int_equal(pthread_create(&thread, &attr, recurse, &bad), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families_write_their_prompts),
        cmocka_unit_test(test_constructs),
        cmocka_unit_test(test_errors_name_the_construct_and_its_place),
        cmocka_unit_test(test_bad_contexts_are_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_appends_and_leaves_the_buffer_alone_on_failure),
        cmocka_unit_test(test_failed_allocations),
        cmocka_unit_test(test_tools_as_values),
        cmocka_unit_test(test_options_for_json),
        cmocka_unit_test(test_a_template_may_write_nothing),
        cmocka_unit_test(test_threads_render_one_template),
        cmocka_unit_test(test_deep_calls_fit_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
