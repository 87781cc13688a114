/* grammar_json.c - see grammar_json.h. */
#include "text/grammar/grammar_json.h"

#include <stdio.h>

#include "base/err.h"
#include "text/grammar/grammar_regex.h"
#include "text/grammar/grammar_tree.h"

#define NONE GRAMMAR_TREE_NONE
#define UNBOUNDED GRAMMAR_TREE_UNBOUNDED

void grammar_json_init(struct grammar_json *j, struct grammar_tree *t)
{
    *j = (struct grammar_json){t, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE};
}

static uint32_t regex(struct grammar_json *j, const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return grammar_regex_read(j->t, text, n, 0);
}

static uint32_t space(struct grammar_json *j)
{
    if (j->space == NONE)
        j->space = regex(j, "( |\\n[ \\t]{0,20})?");
    return j->space;
}

uint32_t grammar_json_character(struct grammar_json *j)
{
    if (j->character == NONE)
        j->character =
            regex(j, "[^\"\\\\\\x00-\\x1f\\x7f]|\\\\([\"\\\\/bfnrt]|u("
                     "000[1-9a-fA-F]|00[1-9a-fA-F][0-9a-fA-F]|0[1-9a-fA-F][0-9a-fA-F]{2}|"
                     "[1-9a-ce-fA-CE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|"
                     "[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}))");
    return j->character;
}

/* A rule that is created on first use. */
static uint32_t once(struct grammar_json *j, uint32_t *rule, const char *text)
{
    if (*rule == NONE) {
        uint32_t node = regex(j, text);
        *rule = grammar_tree_add_rule(j->t, NULL, 0);
        grammar_tree_define(j->t, *rule, node);
    }
    return grammar_tree_call(j->t, *rule);
}

uint32_t grammar_json_number(struct grammar_json *j)
{
    return once(j, &j->number, "-?(0|[1-9][0-9]{0,15})(\\.[0-9]{1,16})?([eE][+-]?[0-9]{1,2})?");
}

uint32_t grammar_json_integer(struct grammar_json *j)
{
    return once(j, &j->integer, "-?(0|[1-9][0-9]{0,14})");
}

uint32_t grammar_json_boolean(struct grammar_json *j)
{
    return once(j, &j->boolean, "true|false");
}

uint32_t grammar_json_null(struct grammar_json *j)
{
    return grammar_tree_text(j->t, "null");
}

uint32_t grammar_json_string_of(struct grammar_json *j, uint32_t min, uint32_t max)
{
    uint32_t quote = grammar_tree_text(j->t, "\"");
    return grammar_tree_sequence3(
        j->t, quote, grammar_tree_repeat(j->t, grammar_json_character(j), min, max), quote);
}

uint32_t grammar_json_string(struct grammar_json *j)
{
    if (j->string == NONE) {
        uint32_t node = grammar_json_string_of(j, 0, UNBOUNDED);
        j->string = grammar_tree_add_rule(j->t, "string", 6);
        grammar_tree_define(j->t, j->string, node);
    }
    return grammar_tree_call(j->t, j->string);
}

uint32_t grammar_json_pair(struct grammar_json *j, uint32_t key, uint32_t value)
{
    uint32_t colon = grammar_tree_sequence3(j->t, grammar_tree_text(j->t, ":"), space(j), NONE);
    return grammar_tree_sequence3(j->t, key, colon, value);
}

uint32_t grammar_json_next(struct grammar_json *j, uint32_t node)
{
    return grammar_tree_sequence3(j->t, grammar_tree_text(j->t, ","), space(j), node);
}

uint32_t grammar_json_close(struct grammar_json *j, const char *bracket)
{
    return grammar_tree_sequence3(j->t, space(j), grammar_tree_text(j->t, bracket), NONE);
}

uint32_t grammar_json_open(struct grammar_json *j, const char *bracket, uint32_t node)
{
    return grammar_tree_sequence3(j->t, grammar_tree_text(j->t, bracket), space(j), node);
}

/* [ ] or { } around any number of items. */
static uint32_t list_of(struct grammar_json *j, uint32_t item, const char *open, const char *close)
{
    uint32_t more = grammar_tree_repeat(j->t, grammar_json_next(j, item), 0, UNBOUNDED);
    uint32_t full = grammar_tree_sequence3(j->t, space(j), item, more);
    return grammar_tree_sequence3(j->t, grammar_tree_text(j->t, open),
                                  grammar_tree_optional(j->t, full), grammar_json_close(j, close));
}

uint32_t grammar_json_object(struct grammar_json *j)
{
    if (j->object == NONE) {
        j->object = grammar_tree_add_rule(j->t, "object", 6);
        uint32_t pair = grammar_json_pair(j, grammar_json_string(j), grammar_json_value(j));
        grammar_tree_define(j->t, j->object, list_of(j, pair, "{", "}"));
    }
    return grammar_tree_call(j->t, j->object);
}

static uint32_t any_array(struct grammar_json *j)
{
    if (j->array == NONE) {
        j->array = grammar_tree_add_rule(j->t, "array", 5);
        grammar_tree_define(j->t, j->array, list_of(j, grammar_json_value(j), "[", "]"));
    }
    return grammar_tree_call(j->t, j->array);
}

uint32_t grammar_json_value(struct grammar_json *j)
{
    if (j->value == NONE) {
        struct grammar_tree_list l = {0};
        j->value = grammar_tree_add_rule(j->t, "value", 5);
        grammar_tree_push(j->t, &l, grammar_json_object(j));
        grammar_tree_push(j->t, &l, any_array(j));
        grammar_tree_push(j->t, &l, grammar_json_string(j));
        grammar_tree_push(j->t, &l, grammar_json_number(j));
        grammar_tree_push(j->t, &l, grammar_json_boolean(j));
        grammar_tree_push(j->t, &l, grammar_json_null(j));
        uint32_t node = grammar_tree_rc(j->t) < 0 ? NONE : grammar_tree_either(j->t, &l);
        grammar_tree_define(j->t, j->value, node);
    }
    return grammar_tree_call(j->t, j->value);
}

uint32_t grammar_json_quoted(struct grammar_json *j, const char *p, size_t n)
{
    struct grammar_tree_list l = {0};
    grammar_tree_push(j->t, &l, grammar_tree_text(j->t, "\""));
    for (size_t i = 0; i < n && grammar_tree_rc(j->t) == 0;) {
        size_t plain = i;
        char escape[8];
        while (plain < n && (uint8_t)p[plain] >= 0x20 && p[plain] != '"' && p[plain] != '\\')
            plain++;
        if (plain > i)
            grammar_tree_push(j->t, &l, grammar_tree_literal(j->t, p + i, plain - i));
        i = plain;
        if (i == n)
            break;
        const char c = p[i++];
        snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)(uint8_t)c);
        grammar_tree_push(j->t, &l,
                          grammar_tree_text(j->t, c == '"'    ? "\\\""
                                                  : c == '\\' ? "\\\\"
                                                  : c == '\n' ? "\\n"
                                                  : c == '\r' ? "\\r"
                                                  : c == '\t' ? "\\t"
                                                              : escape));
    }
    grammar_tree_push(j->t, &l, grammar_tree_text(j->t, "\""));
    return grammar_tree_rc(j->t) < 0 ? NONE : grammar_tree_sequence(j->t, &l);
}
