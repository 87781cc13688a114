/* schema_emit.h - shared by the parts of grammar_schema.h: objects, arrays and their contents.
 *
 * Thread:    belongs to its caller.
 * Ownership: borrows the schema's document. */
#ifndef SHOAL_TEXT_GRAMMAR_SCHEMA_EMIT_H
#define SHOAL_TEXT_GRAMMAR_SCHEMA_EMIT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strmap.h"
#include "text/grammar/grammar_json.h"
#include "text/grammar/grammar_product.h"
#include "text/grammar/grammar_tree.h"

struct schema_emit {
    struct grammar_tree *t;
    struct grammar_json json;
    const cJSON *root;
    struct strmap rules; /* rules of schemas by their text, so that each is built once */
    char path[160];      /* path of the schema being built, "/properties/x" */
    uint32_t depth;
    uint32_t joins; /* remaining budget of schema merges */
    /* builds a node for a schema below the current one, at a path step */
    uint32_t (*below)(struct schema_emit *s, const cJSON *schema, const char *step);
};

/* Path of the schema being built, for an error. */
const char *schema_emit_where(const struct schema_emit *s);
/* Refuses a keyword. */
uint32_t schema_emit_refuse(struct schema_emit *s, const char *key, const char *why);
uint32_t schema_emit_invalid(struct schema_emit *s, const char *key, const char *why);
/* Matches nothing. */
uint32_t schema_emit_nothing(struct schema_emit *s);
/* The same, because a keyword leaves no value: if the whole schema becomes empty, the error names
 * it. */
uint32_t schema_emit_empty(struct schema_emit *s, const char *key, const char *why);
/* A whole number of a schema, `missing` without the key; reports other values as errors. */
uint32_t schema_emit_count(struct schema_emit *s, const cJSON *schema, const char *key,
                           uint32_t missing);

/* The values of one type; schema is flat. */
uint32_t schema_object(struct schema_emit *s, const cJSON *schema);
uint32_t schema_array(struct schema_emit *s, const cJSON *schema);
uint32_t schema_string(struct schema_emit *s, const cJSON *schema);
/* Adds the string constraints of a flat schema; schema NULL: nothing. */
SHOAL_MUST_CHECK int schema_string_parts(struct schema_emit *s, const cJSON *schema,
                                         struct grammar_product *p);
/* Whether a text is valid under a flat schema. */
bool schema_string_allows(struct schema_emit *s, const cJSON *schema, const char *text);
/* Adds texts that match a pattern, or do not match it. */
SHOAL_MUST_CHECK int schema_string_pattern(struct schema_emit *s, struct grammar_product *p,
                                           const char *pattern, bool without);

#endif
