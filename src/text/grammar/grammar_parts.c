/* grammar_parts.c - see grammar_parts.h. */
#include "text/grammar/grammar_parts.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <string.h>

#include "text/grammar/grammar_schema.h"
#include "text/grammar/grammar_tree.h"
#include "text/grammar/vocab_trie.h"
#include "wire/json_scan.h"

#define NONE GRAMMAR_TREE_NONE
#define MAX_VALUES 250000u
#define MAX_PARTS 512
#define MAX_TRIGGER 64u

struct parts {
    struct grammar_tree *t;
    const cJSON *doc;
    const char *trigger; /* "": none */
};

static const char *text_of(struct parts *p, const cJSON *object, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!v)
        return "";
    if (!cJSON_IsString(v))
        grammar_tree_fail(p->t, SHOAL_EINVAL, "'%s' must be a text", key);
    return cJSON_IsString(v) ? v->valuestring : "";
}

static uint32_t count_of(struct parts *p, const char *key, uint32_t missing)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(p->doc, key);
    if (!v)
        return missing;
    if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble > 1000) {
        grammar_tree_fail(p->t, SHOAL_EINVAL, "'%s' must be a number from 0 to 1000", key);
        return missing;
    }
    return (uint32_t)v->valuedouble;
}

/* A text, with a control token before it. cut: without the trigger, which is already matched. */
static uint32_t begin_of(struct parts *p, const cJSON *object, const char *token_key,
                         const char *text_key, bool cut)
{
    const char *token = text_of(p, object, token_key), *text = text_of(p, object, text_key);
    struct grammar_tree *t = p->t;
    uint32_t node = NONE;
    char mark = (char)VOCAB_TRIE_MARK;
    if (*token) {
        uint32_t around = grammar_tree_literal(t, &mark, 1);
        node = grammar_tree_sequence3(t, around, grammar_tree_text(t, token), around);
        node = grammar_tree_either2(t, node, grammar_tree_text(t, token));
    }
    if (cut) {
        if (*token || strncmp(text, p->trigger, strlen(p->trigger)) != 0)
            return grammar_tree_fail(t, SHOAL_EINVAL, "'%s' must begin with the trigger \"%.40s\"",
                                     text_key, p->trigger);
        text += strlen(p->trigger);
    }
    uint32_t rest = grammar_tree_text(t, text);
    return node == NONE ? rest : grammar_tree_sequence3(t, node, rest, NONE);
}

/* One of the parts. */
static uint32_t part_of(struct parts *p, const cJSON *list, bool cut)
{
    struct grammar_tree_list l = {0};
    const cJSON *one;
    cJSON_ArrayForEach(one, list)
    {
        const cJSON *schema = cJSON_GetObjectItemCaseSensitive(one, "schema");
        if (grammar_tree_rc(p->t) < 0)
            return NONE;
        if (!schema)
            return grammar_tree_fail(p->t, SHOAL_EINVAL, "a part needs a 'schema'");
        uint32_t begin = begin_of(p, one, "begin_token", "begin", cut);
        uint32_t value = grammar_schema_of(p->t, schema);
        uint32_t end = grammar_tree_text(p->t, text_of(p, one, "end"));
        grammar_tree_push(p->t, &l, grammar_tree_sequence3(p->t, begin, value, end));
    }
    if (grammar_tree_rc(p->t) < 0)
        return NONE;
    uint32_t rule = grammar_tree_add_rule(p->t, NULL, 0);
    grammar_tree_define(p->t, rule, grammar_tree_either(p->t, &l));
    return grammar_tree_call(p->t, rule);
}

/* All text; after a trigger, all that follows it. */
static uint32_t all_of(struct parts *p, bool triggered)
{
    struct grammar_tree *t = p->t;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(p->doc, "parts");
    const uint32_t min = count_of(p, "min", 1), max = count_of(p, "max", min > 1 ? min : 1);
    const bool before = *text_of(p, p->doc, "before") || *text_of(p, p->doc, "before_token");
    struct grammar_tree_list l = {0};
    if (!cJSON_IsArray(list) || !list->child || cJSON_GetArraySize(list) > MAX_PARTS)
        return grammar_tree_fail(t, SHOAL_EINVAL, "'parts' must be a list of 1 to %d", MAX_PARTS);
    if (max == 0 || min > max)
        return grammar_tree_fail(t, SHOAL_EINVAL, "'max' must be at least 1, and 'min'");
    if (triggered && min == 0)
        return grammar_tree_fail(t, SHOAL_EINVAL, "'min' must be at least 1 behind a trigger");
    if (before)
        grammar_tree_push(t, &l, begin_of(p, p->doc, "before_token", "before", triggered));
    uint32_t first = part_of(p, list, triggered && !before);
    if (max > 1) {
        uint32_t next = triggered && !before ? part_of(p, list, false) : first;
        next = grammar_tree_sequence3(t, grammar_tree_text(t, text_of(p, p->doc, "between")), next,
                                      NONE);
        first = grammar_tree_sequence3(
            t, first, grammar_tree_repeat(t, next, min > 0 ? min - 1 : 0, max - 1), NONE);
    }
    grammar_tree_push(t, &l, min == 0 ? grammar_tree_optional(t, first) : first);
    grammar_tree_push(t, &l, grammar_tree_text(t, text_of(p, p->doc, "after")));
    const char *trailing = text_of(p, p->doc, "trailing");
    if (*trailing)
        grammar_tree_push(t, &l, grammar_tree_optional(t, grammar_tree_text(t, trailing)));
    return grammar_tree_rc(t) < 0 ? NONE : grammar_tree_sequence(t, &l);
}

/* How much of the trigger has been read when c follows its first n characters. */
static uint32_t advance(const char *trigger, uint32_t n, char c)
{
    char seen[MAX_TRIGGER + 2];
    memcpy(seen, trigger, n);
    seen[n] = c;
    for (uint32_t k = n + 1; k > 0; k--)
        if (memcmp(trigger, seen + n + 1 - k, k) == 0)
            return k;
    return 0;
}

/* Any text up to the trigger, then `behind`: one rule per number of trigger characters read. */
static uint32_t until_trigger(struct parts *p, uint32_t behind)
{
    struct grammar_tree *t = p->t;
    const uint32_t m = (uint32_t)strlen(p->trigger);
    struct grammar_tree_range others[MAX_TRIGGER];
    uint32_t rules[MAX_TRIGGER] = {0};
    for (uint32_t i = 0; i < m; i++) {
        rules[i] = grammar_tree_add_rule(t, NULL, 0);
        others[i].lo = others[i].hi = (uint8_t)p->trigger[i];
    }
    uint32_t other = grammar_tree_class(t, others, m, true);
    for (uint32_t i = 0; i < m && grammar_tree_rc(t) == 0; i++) {
        struct grammar_tree_list l = {0};
        grammar_tree_push(t, &l, grammar_tree_text(t, ""));
        grammar_tree_push(t, &l,
                          grammar_tree_sequence3(t, other, grammar_tree_call(t, rules[0]), NONE));
        for (uint32_t k = 0; k < m; k++) {
            if (memchr(p->trigger, p->trigger[k], k))
                continue; /* the same character again */
            const uint32_t to = advance(p->trigger, i, p->trigger[k]);
            grammar_tree_push(
                t, &l,
                grammar_tree_sequence3(t, grammar_tree_literal(t, &p->trigger[k], 1),
                                       to == m ? behind : grammar_tree_call(t, rules[to]), NONE));
        }
        grammar_tree_define(t, rules[i],
                            grammar_tree_rc(t) < 0 ? NONE : grammar_tree_either(t, &l));
    }
    return grammar_tree_call(t, rules[0]);
}

static uint32_t read_document(struct parts *p)
{
    const size_t n = strlen(p->trigger = text_of(p, p->doc, "trigger"));
    if (n == 0)
        return all_of(p, false);
    for (size_t i = 0; i < n; i++)
        if (n > MAX_TRIGGER || (uint8_t)p->trigger[i] >= 0x80)
            return grammar_tree_fail(p->t, SHOAL_EINVAL,
                                     "'trigger' must be at most %u characters of ASCII",
                                     MAX_TRIGGER);
    uint32_t behind = all_of(p, true);
    return grammar_tree_rc(p->t) < 0 ? NONE : until_trigger(p, behind);
}

uint32_t grammar_parts_read(struct grammar_tree *t, const char *p, size_t n)
{
    struct json_scan scan;
    struct parts x = {.t = t, .trigger = ""};
    if (json_scan(&scan, p, n, MAX_VALUES, t->e) < 0)
        return grammar_tree_fail(t, SHOAL_EINVAL,
                                 "the parts are too large or have a NUL in a text");
    cJSON *doc = cJSON_ParseWithLength(p, n);
    x.doc = doc;
    uint32_t node = cJSON_IsObject(doc)
                        ? read_document(&x)
                        : grammar_tree_fail(t, SHOAL_EINVAL, "the parts are not a JSON object");
    cJSON_Delete(doc);
    return node;
}
