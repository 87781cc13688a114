// Small templates for the conformance test: each value with each operator, filter, test and
// method, and the statements and white space rules in their corners.
"use strict";

const context = {
    s: "Hello World", e: "", u: "Zürich 🦈 ßtraße", ws: " \t a  b\u00a0c \n", num: " 42px", flt: "3.25e1x", hex: "0x1f",
    zero: 0, i: 7, neg: -3, f: 2.5, whole: 1e3, big: 1e21, small: 1.5e-7, t: true, fa: false, no: null,
    l: [3, 1, 2], el: [], ls: ["b", "A", "c", "a"], mix: [1, "a", null, true, [2, "x"], { k: 1 }, 1.5], dup: [1, 2, 1, "1", "x", "x"],
    d: { b: 1, a: "x", C: 2 }, ed: {}, nested: { a: { b: [1, 2, { c: "deep" }] }, items: "shadow" },
    ld: [{ a: 1, n: "x" }, { a: 3, n: "Y" }, { a: 2, n: "z", extra: null }], partial: [{ a: 1 }, { b: 2 }, { a: 0 }, { a: "" }],
    lines: "one\n\n two\nthree\n", greek: "ΌΣΟΣ ΣΑΣ Σ", quote: "a\"b\\c\b\f\n\r\t\u0001\u007f\u2028é🦈",
    pairs: [["a", 1], ["b", 2]], weird: { "key with space": 1, "ключ": "значение" }, messages: [{ role: "user", content: "hi" }],
};

const values = [
    ...Object.keys(context).filter((k) => k !== "messages"),
    "undef", "1.0", "-0.0", "0.1 + 0.2", "(1, 2)", "()", "[1, (2, 3)]", "[[1, [2]], {}]", "[] | first", "'abc'[9]", "u[7]", "u[8]", "u[7] + u[8]",
    "namespace(a=1, b='x')", "range(3)", "'1'", "'2.50'", "true", "none", "-7", "'a' 'b'", "[none, undef, 1.0]", "{'a': 1.0, 'b': none, 'c': undef}",
    "nested.a", "ld[0]", "'[object Map]'", "'3,1,2'", "1e3", "10 ** 25", "1 // 0", "0 % 0", "2 ** -1", "loop", "s.length", "l.length",
];
const operators = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"];
const filters = [
    "abs", "capitalize", "count", "default", "d", "dictsort", "e", "escape", "first", "float", "indent", "int", "items", "join",
    "last", "length", "list", "lower", "map", "reject", "reverse", "safe", "select", "sort", "string", "title", "tojson", "trim", "unique", "upper",
    "format", "max", "min", "round", "sum", "wordcount", "nosuchfilter",
];
const filterCalls = [
    "default('D')", "default('D', true)", "default('D', boolean=true)", "default('D', false)", "default('D', 1)", "default([])", "int(5)", "int(default=6)",
    "int()", "float(1.5)", "float()", "join(', ')", "join()", "join(separator='-')", "join(1)", "indent(2)", "indent(2, true)", "indent(width=3, first=true)",
    "indent(1, true, true)", "indent(blank=true)", "indent('x')", "indent(0)", "replace('l', 'L')", "replace('l', 'L', 1)", "replace('', '-')",
    "replace('', '-', 2)", "replace('o', '', count=1)", "replace('o')", "replace('$', '$&')", "replace('l', 'L', -1)", "replace('l', 'L', none)",
    "sort(reverse=true)", "sort(true)", "sort(false, true)", "sort(case_sensitive=true)", "sort(attribute='a')", "sort(attribute='n')",
    "sort(attribute='n', case_sensitive=true)", "sort(attribute=0)", "sort(attribute=1, reverse=true)", "sort(reverse=1)", "map(attribute='a')",
    "map(attribute='a', default='?')", "map(attribute='a.b')", "map(attribute=1)", "map('upper')", "map('length')", "selectattr('a')", "rejectattr('a')",
    "selectattr('a', 'defined')", "rejectattr('a', 'defined')", "selectattr('n', 'equalto', 'x')", "selectattr('n', 'eq', 'x')", "rejectattr('n', 'equalto', 'x')",
    "selectattr('n', 'equalto')", "selectattr('a', 'odd')", "selectattr('extra', 'none')", "selectattr('n', 'nosuchtest')", "selectattr('n', 'string')",
    "tojson(indent=2)", "tojson(indent=0)", "tojson(indent=none)", "tojson(indent='2')", "tojson(indent=1, separators=(',', ':'))", "tojson(separators=(',', ':'))",
    "tojson(separators=[' ; ', '='])", "tojson(separators=',')", "tojson(ensure_ascii=true)", "tojson(ensure_ascii=false)", "tojson(ensure_ascii=1)",
    "tojson(2)", "tojson()", "dictsort(true)", "dictsort(by='value')", "dictsort(reverse=true)", "dictsort(false, 'key', true)", "dictsort(by='x')",
    "dictsort(case_sensitive=true)", "items()", "keys()", "get('a')", "get('zz', 5)", "tojson | length", "string | length", "list | length", "first | upper",
    "length | string", "upper | lower", "int + 1", "join(',') | upper", "tojson(indent=4) | length", "string | tojson", "safe | tojson",
];
const tests = [
    "boolean", "callable", "odd", "even", "false", "true", "none", "string", "number", "integer", "iterable", "mapping", "sequence", "lower", "upper",
    "defined", "undefined", "equalto", "eq", "nosuchtest",
];
const members = [
    ".upper()", ".lower()", ".strip()", ".lstrip()", ".rstrip()", ".strip('H')", ".lstrip('\\n')", ".title()", ".capitalize()", ".split()", ".split(' ')",
    ".split(none, 1)", ".split(' ', 1)", ".split('l', 0)", ".split('l', -1)", ".split('l', -2)", ".split('')", ".split(1)", ".split(' ', '1')", ".split('🦈')[-1]",
    ".startswith('H')", ".startswith(('x', 'H'))", ".startswith(['Z'])", ".startswith(1)", ".startswith()", ".startswith([1])", ".endswith('d')", ".endswith('')",
    ".endswith(('a', 'd'))", ".replace('l', 'L')", ".replace('l', 'L', 2)", ".replace('l', 'L', count=1)", ".replace('l')", ".replace('', '.')", ".length",
    ".items()", ".keys()", ".values()", ".get('a')", ".get('q')", ".get('q', 'dflt')", ".get('q', none)", ".get(1)", ".get()", ".dictsort()", ".items", ".a", ".a.b",
    ".nosuch", ".nosuch.deeper", ".nosuch()", ".0", ".1", "[0]", "[1]", "[-1]", "[99]", "[-99]", "['a']", "['length']", "[none]", "[true]", "[1.0]", "['nosuch']['x']",
    "[:2]", "[1:]", "[1:3]", "[-2:]", "[:-1]", "[::2]", "[::-1]", "[2:0:-1]", "[-1:0:-1]", "[5:-9:-2]", "[::0]", "[:]", "[-100:100]", "[1:2:3]", "[i:]", "['a':]", "[none:]",
    "[1.5:]", "[undef:2]", "[:undef]", ".append(1)", ".join(l)", ".upper", ".b[2].c",
];
const numbers = ["0.1", "1e5", "1.", ".5", "123456789012345678901234567890", "0.000001", "0.0000001", "1.10", "100.0", "1 000", "007", "1_000"];

// Whole templates: statements, scopes, white space, syntax.
const templates = [
    "{% if t %}a{% elif fa %}b{% else %}c{% endif %}", "{% if fa %}a{% elif i %}b{% else %}c{% endif %}", "{% if fa %}a{% elif zero %}b{% else %}c{% endif %}",
    "{% if not el %}empty{% else %}not{% endif %}", "{% if not ed %}empty{% else %}not{% endif %}", "{% if not e %}empty{% endif %}", "{{ not undef }}{{ not none }}{{ not 0 }}",
    "{{ 'a' if t }}|{{ 'a' if fa }}|{{ 'a' if fa else 'b' if zero else 'c' }}", "{{ ('a' if fa) is defined }}",
    "{% for x in l %}{{ x }}{% endfor %}", "{% for x in el %}{{ x }}{% else %}none{% endfor %}", "{% for x in d %}{{ x }}={{ d[x] }};{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d | items %}{{ k }}{{ v }}{% endfor %}", "{% for (k, v) in pairs %}{{ k }}{{ v }}{% endfor %}",
    "{% for a, b in [(1, 2)] %}{{ a }}{% endfor %}", "{% for a, b in l %}{{ a }}{% endfor %}", "{% for a, b in [[1]] %}x{% endfor %}", "{% for a, b, c in pairs %}x{% endfor %}",
    "{% for a, 1 in pairs %}x{% endfor %}", "{% for a, 1 in [] %}x{% else %}y{% endfor %}", "{% for x in s %}{{ x }}{% endfor %}", "{% for x in undef %}{{ x }}{% endfor %}",
    "{% for x in i %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for x in range(5) if x is even %}{{ x }}{{ loop.index }}{{ loop.last }}{% endfor %}",
    "{% for x in l if x > 5 %}{{ x }}{% else %}none{% endfor %}", "{% for x in (l if t) %}{{ x }}{% endfor %}", "{% for x in l if x > 1 else el %}{{ x }}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }}{% endfor %}", "{% for x in l %}{{ loop }}{% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}a{% if x == 1 %}b{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}a{% continue %}{% else %}else{% endfor %}", "{% for x in l %}a{% break %}{% else %}else{% endfor %}", "{% break %}", "a{% continue %}",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %}{{ x }}{% endfor %}",
    "{% macro m() %}z{% break %}{% endmacro %}{% for x in l %}{{ x }}{{ m() }}{% endfor %}", "{% for x in el %}{% else %}{% break %}{% endfor %}",
    "{% for x in l %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in l %}{% set y = y + x %}{{ y }},{% endfor %}{{ y }}",
    "{% for x in l %}{{ q | default('-') }}{% set q = x %}{% endfor %}", "{% for x in l %}{% endfor %}{{ x }}{{ loop }}",
    "{% if t %}{% set y = 5 %}{% endif %}{{ y }}", "{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}", "{% set ns = namespace() %}{% set ns.x = 1 %}{{ ns.x }}{{ ns.y }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}{{ ns | tojson }}", "{% set ns = namespace([['a', 1], 'bc']) %}{{ ns }}", "{% set ns = namespace(1) %}", "{% set ns = namespace({}, {}) %}",
    "{% set d.x = 1 %}", "{% set ns = namespace() %}{% set ns['x'] = 1 %}", "{% set ns = namespace() %}{% set ns[i] = 1 %}{{ ns }}", "{% set l[0] = 1 %}", "{% set 1 = 2 %}",
    "{% set namespace = 1 %}{{ namespace }}{% for x in el %}{% else %}{{ namespace is callable }}{% endfor %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = l %}", "{% set a, b = s %}", "{% set (a, b) = pairs %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a | length }}", "{% set a = (1, 2) %}{{ a }}",
    "{% set x %}  hi {{ s }}\n{% endset %}[{{ x }}]", "{% set x %}{% endset %}[{{ x }}]{{ x is string }}", "{% set ns = namespace() %}{% set ns.b %}blk{% endset %}{{ ns.b }}", "{% set x | upper %}a{% endset %}",
    "{% set true = 1 %}{{ true }}", "{% set none = 1 %}{{ none }}", "{{ True }}{{ False }}{{ None }}{{ true }}", "{{ undef }}|{{ none }}|{{ true }}|{{ 1.0 }}|{{ 1 }}",
    "{% macro m(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }};{{ m(1, 3) }};{{ m(1, c=5) }};{{ m(b=7, a=8) }};{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, z=2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, z=4) }}", "{% macro m() %}{% set kwargs = 1 %}{{ kwargs }}{% endmacro %}{{ m(z=4) }}",
    "{% macro m() %}{{ kwargs }}{% set kwargs = 1 %}{% endmacro %}{{ m(z=4) }}{{ m() }}", "{% macro m() %}{% for varargs in l %}{{ varargs }}{% endfor %}{% endmacro %}{{ m(1) }}",
    "{% macro m() %}{% for x in l if x in varargs %}{{ x }}{% endfor %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(kwargs) %}{{ kwargs }}{% endmacro %}{{ m(z=4) }}",
    "{% macro m() %}{{ d.kwargs }}{{ 'x' | default(kwargs) }}{% endmacro %}{{ m(z=4) }}", "{% macro m() %}{{ d.kwargs }}{% endmacro %}{{ m(z=4) }}", "{% macro m(a, a) %}{% endmacro %}", "{% macro m(1) %}{% endmacro %}",
    "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(*a) %}{% endmacro %}", "{% macro m(x) %}{{ y }}{% endmacro %}{% set y = 3 %}{{ m(1) }}", "{% macro m() %}{{ x }}{% endmacro %}{% for x in l %}{{ m() }}{% endfor %}",
    "{% macro m() %}{% set y = 5 %}{% endmacro %}{{ m() }}{{ y }}", "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{{ m() }}{% macro m() %}{% endmacro %}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*l[:1]) }}{{ m(*[9]) }}{{ m(**{'a': 4}) }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1], b=2) }}{{ m(b=1, *[2]) }}{{ m(1, **{'b': 3}) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(*1) }}", "{% macro m(a) %}{% endmacro %}{{ m(**1) }}", "{% macro m(a) %}{% endmacro %}{{ m(*[1], *[2]) }}", "{% macro m(a) %}{% endmacro %}{{ m(a=1, a=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(**{}, 1) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(a=1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m([] | first) }}", "{% macro m(a=7) %}{{ a }}{% endmacro %}{{ m([] | first) }}{{ m(undef) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(m) | length > 0 }}",
    "{% macro w(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call w('b') %}x{{ s }}{% endcall %}", "{% macro w() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=3) w() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro w() %}{{ caller(1) }}{% endmacro %}{% call w() %}x{% endcall %}", "{% macro w() %}{{ caller }}{% endmacro %}{{ w() }}", "{% call nosuch() %}x{% endcall %}", "{% call namespace(a=1) %}x{% endcall %}",
    "{% macro w() %}{% for x in l %}{{ caller(x) }}{% endfor %}{% endmacro %}{% set y = 2 %}{% call(q) w() %}{{ q * y }},{% endcall %}", "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b') %}banana{% endfilter %}",
    "{% filter indent(2) %}a\nb{% endfilter %}", "{% filter nosuch %}a{% endfilter %}", "{% filter length %}abc{% endfilter %}", "{{ raise_exception('bad') }}", "{{ raise_exception() }}", "{% if fa %}{{ raise_exception('bad') }}{% endif %}ok",
    "{{ range(3) }}{{ range(1, 4) }}{{ range(5, 1, -2) }}{{ range(0, 1, 0.25) }}{{ range(0) }}", "{{ range(1, 5, 0) }}", "{{ range('x') | length }}", "{{ strftime_now('%Y-%m-%d %H:%M %b %B %% %A %y %') }}", "{{ strftime_now(1) }}",
    "{{ strftime_now() }}", "{{ {'a': 1, 'b': {'c': [1, 2]}} }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a': 1}.a }}{{ {} }}{{ [] }}", "{{ {1: 2} }}", "{{ {'a': 1, 'a': 2} }}", "{{ {s: 1} }}", "{{ [1, 2,] }}{{ {'a': 1,} }}", "{{ [1 2] }}",
    "{{ 'it''s' }}", "{{ 'a\\'b\"c\\n\\t\\\\\\v' }}", "{{ 'a\\x' }}", "{{ 'open }}", "{{ \"dq 'sq'\" }}", "{{ 'multi\nline' }}", "{{ 'a' 'b' \"c\" }}", "{{ 'ünïcode 🦈' }}",
    "{# c #}a", "{#- c -#} a", "a {#- c #} b", "a {# c -#} b", "{# unterminated", "{# a {# b #} c #}", "{##}x", "{#-#}x", "{#- -#}x", "{# -#}", "a{# c #}\nb", "  {# c #}\nb", "x {# c #}\n\nb",
    "a\n", "a\n\n", "\n", "a\r\n{% if t %}\r\nb{% endif %}\r\n", "{% if t %}\n  a\n{% endif %}\nb", "  {% if t %}  a  {% endif %}  ", "a  {%- if t %} b {% endif -%}  c", "a {{- s -}} b", "a\n  {{- s }}\n  b", "{{ s }}\n{{ s }}\n",
    "\t{% if t -%}\n\n x {%- endif %}\n\n\ny", "{%- if t -%}{%- endif -%}", " {%- set x = 1 -%} {{ x }}", "{% set x = 1 %}\n\n{{ x }}", "x{% set y = 1 %}\ny", "text -}\nmore", "a #}\nb %}\nc", "{-\n", "  {- x", "{%+ if t %}a{% endif %}", "{% if t +%}a{% endif %}",
    "\u00a0{%- if t %}\u3000a\ufeff{%- endif %}", "\u2028  {% if t %}a{% endif %}", "{{ s }}{% if t %} {% endif %}\n {{ s }}", "{%if t%}a{%endif%}", "{%-if t-%}a{%-endif-%}", "{{s}}{{-s-}}",
    "{% generation %}a{% endgeneration %}", "x {% generation %} a {% endgeneration %} y", "x {%- generation -%} a {%- endgeneration -%} y", "x\n{% generation %}\na\n{% endgeneration %}\ny", "{% generation %}{{ s }}{%- endgeneration %} z", "{% generation x %}", "{%generation%}a{%endgeneration-%} b",
    "{{ 1 + 2 * 3 }}{{ (1 + 2) * 3 }}{{ 2 ** 3 ** 2 }}{{ -2 ** 2 }}{{ 7 // 2 }}{{ -7 // 2 }}{{ 7 % 3 }}{{ -7 % 3 }}{{ 7 / 2 }}{{ 6 / 2 }}", "{{ 1 - 1 }}{{ 1 -1 }}{{ 1-1 }}{{ i -1 }}{{ - i }}{{ -i }}{{ +i }}{{ --i }}{{ - -i }}", "{{ i-1 }}{{ l[0]-1 }}{{ (1)-1 }}{{ not -1 }}",
    "{{ 1 < 2 < 3 }}", "{{ 1 == 1 == true }}", "{{ 'a' in s == true }}", "{{ not t == fa }}", "{{ not t and fa }}", "{{ t or fa and fa }}", "{{ 'a' ~ 1 ~ 2.0 ~ true ~ l }}", "{{ 'a' + 1 | string + 'b' }}", "{{ -3 | abs }}{{ -i | abs }}{{ neg | abs }}", "{{ s | length > 3 and s | upper == 'HELLO WORLD' }}",
    "{{ 'x' is defined and undef is not defined }}", "{{ i is odd is true }}", "{{ 4 * 4 is even }}", "{{ s is string | string }}", "{{ s | upper is upper }}", "{{ x if x is defined else 'no' }}", "{{ not x is defined }}", "{{ 'a' not in l }}", "{{ not 'a' in l }}", "{{ l is not mapping }}",
    "{{ s.split(' ')[0].upper() }}", "{{ (s ~ '!')[-1] }}", "{{ l[l | length - 1] }}", "{{ nested['a'].b[2]['c'] }}", "{{ nested.items }}{{ d.items() }}", "{{ nested.items() }}", "{{ 'abc'.upper().lower()[1:] }}", "{{ messages[0]['role'] }}{{ messages[-1].content }}", "{{ messages[5].role }}", "{{ messages[5]['role'] }}",
    "{{ }}", "{{ 1 2 }}", "{{ 1 + }}", "{{ (1 }}", "{{ [1 }}", "{{ {'a' 1} }}", "{{ a.(b) }}", "{{ a.'b' }}", "{{ a[] }}", "{{ a[1:2:3:4] }}", "{{ s", "{% if %}", "{% if t %}", "{% endif %}", "{% for x l %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for in l %}{% endfor %}", "{% else %}", "{% nosuch %}", "{% raw %}{{ x }}{% endraw %}", "{% include 'x' %}",
    "{% block a %}{% endblock %}", "{% with a = 1 %}{% endwith %}", "{% import 'x' as y %}", "{% do l %}", "{% macro %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% set %}", "{% set x %}", "{% set x = %}", "{% 1 %}", "{%", "{{", "{#", "}}", "%}", "{% if t %}{% else %}{% else %}{% endif %}", "{% for x in l recursive %}{% endfor %}", "{{ s | }}", "{{ s | 1 }}", "{{ s is 1 }}", "{{ s is }}",
    "{{ 'a' $ }}", "{{ @ }}", "{{ s | upper() }}", "{{ s | join(',').upper() }}", "{{ x.y.z }}", "{{ none.x }}{{ 1.x }}", "{{ i.x }}{{ t.x.y }}", "{{ none['x'] }}", "{{ none[0] }}", "{{ undef[0] }}", "{{ undef['a'] }}", "{{ undef() }}", "{{ s() }}", "{{ undef + 1 }}", "{{ undef ~ 'a' }}", "{{ none ~ 'a' }}", "{{ none + 1 }}", "{{ 'a' in undef }}{{ 'a' not in undef }}", "{{ 'a' in none }}",
    "{% set x = [] | first %}{{ x is defined }}{{ [x, 1] | length }}", "{{ ([] | first) is defined }}", "{{ [[] | first] | length }}{{ [([] | first)] | join }}", "{% if [] | last %}{% endif %}", "{{ ([] | first) | default('d') }}", "{{ {'a': [] | first}.a }}", "{% for x in [[] | first] %}{{ x }}!{% endfor %}",
    "{{ e[0] == 'a' }}{{ e[0] == none }}{{ e[0] is string }}{{ e[0] is defined }}", "{{ e[0] }}", "{{ e[0] + 'a' }}", "{{ [e[0], 1] }}{{ {'a': e[0]} }}{{ e[0] | tojson }}", "{{ e[0] in s }}{{ e[0] in l }}", "{% if e[0] %}a{% else %}b{% endif %}", "{{ e[0].x }}", "{{ e[0] | upper }}", "{{ e[0] | int }}{{ e[0] | string }}",
    "{{ nested.a.b | tojson }}{{ nested | tojson }}{{ weird | tojson }}{{ weird | tojson(ensure_ascii=true) }}", "{{ d | tojson(sort_keys=true) }}", "{{ {'b_c': 1, 'bc': 2, 'B-c': 3, 'a1': 4, 'a10': 5, 'a2': 6, '': 7, 'A': 8, 'a': 9, '$': 10, ' ': 11} | tojson(sort_keys=true) }}", "{{ (1, 2) | tojson }}", "{{ [(1, 2)] | tojson }}", "{{ range | tojson }}", "{{ undef | tojson }}{{ [undef] | tojson }}{{ [undef] }}", "{{ namespace(a=[1]) | tojson(indent=1) }}",
    "{{ l | map(attribute='x') | list }}", "{{ ld | map(attribute='n') | join(',') }}", "{{ ld | map(attribute='a') | sort(reverse=true) | list }}", "{{ ld | selectattr('a') | map(attribute='n') | list }}", "{{ ld | sort(attribute='a') | map(attribute='a') | list }}", "{{ nested.a | length }}", "{{ mix | join('|') }}", "{{ mix ~ '' }}", "{{ mix }}", "{{ 'x' ~ d }}", "{{ 'x' + l }}", "{{ l == '3,1,2' }}{{ d == '[object Map]' }}{{ [[1], [2, 3]] == '[1],[2, 3]' }}{{ '' == 0 }}{{ '1' == 1 }}{{ ' 1 ' == 1 }}{{ '1x' == 1 }}{{ true == 1 }}{{ true == '1' }}{{ none == undef }}{{ none == 0 }}{{ none == false }}{{ '0x10' == 16 }}{{ 'Infinity' == 1 // 0 }}",
    "{{ l == l }}{{ l == [3, 1, 2] }}{{ d == d }}{{ l[:] == l }}{{ (l | list) == l }}{{ messages[0] == messages[-1] }}", "{{ l in [l] }}", "{{ d in [d, 1] }}{{ [1] in [[1]] }}", "{{ 1 in [true] }}{{ '1' in [1] }}{{ 1.0 in [1] }}{{ none in [none] }}", "{{ 'b' in d }}{{ 1 in d }}", "{{ 1 in '1' }}", "{{ l | sort }}{{ ls | sort }}{{ ls | sort(case_sensitive=true) }}{{ dup | unique }}", "{{ mix | sort }}", "{{ [true, 0, 1.5, false] | sort }}", "{{ [none, none] | sort }}", "{{ [[1], [2]] | sort }}", "{{ ['é', 'z', 'ｚ', '🦈', 'e'] | sort }}",
    "{{ u | length }}{{ u[7:8] }}{{ u[::-1] }}{{ u | reverse }}", "{{ greek | lower }}{{ 'ΑΣ.Α ΑΣ. Σ' | lower }}{{ u | upper }}{{ 'İIıi ŉ ﬁ' | lower }}{{ 'İIıi ŉ ﬁ ǆ' | upper }}{{ u | title }}{{ 'ß' | capitalize }}{{ '𐐨x' | capitalize }}{{ 'éa b_c 1d' | title }}",
    "{{ lines | indent }}|{{ lines | indent(1, true, true) }}", "{{ ws | trim }}|{{ ws.split() }}|{{ ws.split(none, 1) }}", "{{ quote | tojson }}{{ quote | tojson(ensure_ascii=true) }}{{ quote }}", "{{ num | int }}{{ flt | float }}{{ 'x' | int }}{{ 'x' | float }}{{ '1e3' | int }}{{ '-5' | int }}{{ '.5' | float }}{{ 'Infinity' | float }}{{ '1' | float }}{{ 3.7 | int }}{{ -3.7 | int }}{{ 3 | float }}{{ true | int }}{{ true | float }}",
    ...numbers.map((n) => `{{ ${n} }}|{{ -${n} }}|{{ ${n} ~ '' }}|{{ ${n} | tojson }}|{{ ${n} | string }}`),
    "{{ 0.1 + 0.2 }}{{ 1 / 3 }}{{ 1e21 }}{{ 10 ** 20 }}{{ 10 ** 21 }}{{ 2 ** 53 }}{{ 2.0 ** 53 }}{{ 1 / 0 }}{{ -1 / 0 }}{{ 0 / 0 }}{{ 5 % 0 }}{{ 1.5 // 0.5 }}{{ 1.5 % 1 }}{{ 2 ** 0.5 }}{{ 4 ** 0.5 }}{{ 0 ** 0 }}", "{{ 0 ** -1 }}", "{{ (-8) ** 0.5 }}", "{{ 10 ** 400 }}", "{{ true ** 2 }}{{ true + 1 }}", "{{ true + true }}",
    "{{ 123456789 * 987654321 }}{{ 9007199254740993 }}{{ 0.1 * 3 }}{{ 1.0 * 3 }}{{ 100 * 1.1 }}{{ 5e-324 }}{{ big }}{{ small }}{{ whole }}{{ f }}{{ big * 10 }}{{ small / 1000000 }}",
];

// Jinja evaluates constants before a template runs, with different rules for slices and for signs before **; ours does
// not copy that.
const folded = /^\{\{ \(\(*(-?[\d.]|true|none|'|\(|\[[\d\[]).*\)\[[^\]]*:[^\]]*\] \}\}$|^\{\{ \(-[\d.]+\) \*\* /;

exports.snippets = function () {
    const json = JSON.stringify(context), jobs = [];
    const add = (source) => folded.test(source) || jobs.push({ name: source, source, json });
    let turn = 0;
    for (const v of values) {
        add(`{{ ${v} }}`);
        add(`{% if ${v} %}T{% else %}F{% endif %}{{ not (${v}) }}`);
        add(`{{ -(${v}) }}`);
        add(`{% for x in ${v} %}[{{ x }}]{% else %}E{% endfor %}`);
        add(`{% for x, y in ${v} %}[{{ x }}{{ y }}]{% else %}E{% endfor %}`);
        add(`{% set q = ${v} %}{{ q }}{{ [q] | length }}`);
        // every seventh pair: all of them would take minutes
        for (const w of values) for (const op of operators) if (turn++ % 7 === 0) add(`{{ (${v}) ${op} (${w}) }}`);
        for (const f of [...filters, ...filters.map((x) => x + "()"), ...filterCalls]) add(`{{ (${v}) | ${f} }}`);
        for (const t of tests) add(`{{ (${v}) is ${t} }}{{ (${v}) is not ${t} }}`);
        for (const m of members) add(`{{ (${v})${m} }}`);
    }
    templates.forEach(add);
    return jobs;
};
