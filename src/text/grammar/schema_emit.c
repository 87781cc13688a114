/* schema_emit.c - see schema_emit.h: shared by the parts of grammar_schema.h. */
#include "text/grammar/schema_emit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/grammar/schema_read.h"

const char *schema_emit_where(const struct schema_emit *s)
{
    return s->path[0] ? s->path : "/";
}

uint32_t schema_emit_refuse(struct schema_emit *s, const char *key, const char *why)
{
    return grammar_tree_fail(s->t, SHOAL_EUNSUPPORTED,
                             "the keyword '%.60s' at %s is not supported: %s", key,
                             schema_emit_where(s), why);
}

uint32_t schema_emit_invalid(struct schema_emit *s, const char *key, const char *why)
{
    return grammar_tree_fail(s->t, SHOAL_EINVAL, "'%.60s' at %s: %s", key, schema_emit_where(s),
                             why);
}

uint32_t schema_emit_nothing(struct schema_emit *s)
{
    const struct grammar_tree_list none = {0};
    return grammar_tree_either(s->t, &none);
}

uint32_t schema_emit_empty(struct schema_emit *s, const char *key, const char *why)
{
    if (!s->t->why_empty[0])
        snprintf(s->t->why_empty, sizeof(s->t->why_empty), "'%.60s' at %.60s: %.60s", key,
                 schema_emit_where(s), why);
    return schema_emit_nothing(s);
}

uint32_t schema_emit_count(struct schema_emit *s, const cJSON *schema, const char *key,
                           uint32_t missing)
{
    const cJSON *v = schema_read_get(schema, key);
    if (!v)
        return missing;
    if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble != floor(v->valuedouble)) {
        schema_emit_invalid(s, key, "it must be a whole number, 0 or more");
        return missing;
    }
    if (v->valuedouble > GRAMMAR_TREE_MAX_COUNT) {
        if (strncmp(key, "max", 3) == 0)
            return missing > GRAMMAR_TREE_MAX_COUNT ? GRAMMAR_TREE_MAX_COUNT : missing;
        grammar_tree_fail(s->t, SHOAL_ELIMIT, "'%s' at %s counts to more than %u", key,
                          schema_emit_where(s), GRAMMAR_TREE_MAX_COUNT);
        return missing;
    }
    return (uint32_t)v->valuedouble;
}
