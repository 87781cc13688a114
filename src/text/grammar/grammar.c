/* grammar.c - see grammar.h. */
#include "text/grammar/grammar.h"

#include <cjson/cJSON.h>

#include "text/grammar/grammar_gbnf.h"
#include "text/grammar/grammar_json.h"
#include "text/grammar/grammar_net.h"
#include "text/grammar/grammar_regex.h"
#include "text/grammar/grammar_schema.h"
#include "text/grammar/grammar_tree.h"
#include "text/grammar/grammar_parts.h"
#include "wire/json_scan.h"

#define MAX_CHOICES 250000u

static uint32_t read_choices(struct grammar_tree *t, const char *text, size_t n)
{
    struct grammar_tree_list l = {0};
    struct json_scan scan;
    const cJSON *one;
    if (json_scan(&scan, text, n, MAX_CHOICES, t->e) < 0)
        return grammar_tree_fail(t, SHOAL_EINVAL,
                                 "there are more than %u choices, or one has a NUL", MAX_CHOICES);
    cJSON *list = cJSON_ParseWithLength(text, n);
    const cJSON *items = cJSON_IsArray(list) ? list : NULL;
    if (!items || !items->child)
        grammar_tree_fail(t, SHOAL_EINVAL, "choices must be a list of texts");
    cJSON_ArrayForEach(one, items)
    {
        if (!cJSON_IsString(one) || !one->valuestring[0])
            grammar_tree_fail(t, SHOAL_EINVAL, "a choice must be a text that is not empty");
        else
            grammar_tree_push(t, &l, grammar_tree_text(t, one->valuestring));
    }
    cJSON_Delete(list);
    return grammar_tree_rc(t) < 0 ? GRAMMAR_TREE_NONE : grammar_tree_either(t, &l);
}

/* Returns the rule to start with. */
static uint32_t read_text(struct grammar_tree *t, enum shoal_constraint kind, const char *text,
                          size_t n)
{
    struct grammar_json json;
    uint32_t node = GRAMMAR_TREE_NONE;
    switch (kind) {
    case SHOAL_CONSTRAINT_JSON:
        grammar_json_init(&json, t);
        node = grammar_json_object(&json);
        break;
    case SHOAL_CONSTRAINT_SCHEMA:
        node = grammar_schema_read(t, text, n);
        break;
    case SHOAL_CONSTRAINT_GBNF:
        return grammar_gbnf_read(t, text, n);
    case SHOAL_CONSTRAINT_REGEX:
        node = grammar_regex_read(t, text, n, 0);
        break;
    case SHOAL_CONSTRAINT_CHOICE:
        node = read_choices(t, text, n);
        break;
    case SHOAL_CONSTRAINT_PARTS:
        node = grammar_parts_read(t, text, n);
        break;
    default:
        return grammar_tree_fail(t, SHOAL_EINVAL, "%d is not a kind of constraint", (int)kind);
    }
    uint32_t root = grammar_tree_add_rule(t, NULL, 0);
    grammar_tree_define(t, root, node);
    return root;
}

int grammar_compile(struct grammar_net **out, enum shoal_constraint kind, const char *text,
                    size_t n, struct err *e)
{
    struct grammar_tree t;
    struct err own = {0};
    *out = NULL;
    if (n > GRAMMAR_MAX_TEXT)
        return err_set(e, SHOAL_ELIMIT, "the grammar has %zu bytes, at most %zu are allowed", n,
                       GRAMMAR_MAX_TEXT);
    grammar_tree_init(&t, &own);
    uint32_t root = read_text(&t, kind, text, n);
    int rc = grammar_tree_rc(&t);
    if (rc == 0)
        rc = grammar_net_compile(out, &t, root, &own);
    grammar_tree_fini(&t);
    return rc < 0 ? err_set(e, rc, "%s", own.msg) : 0;
}
