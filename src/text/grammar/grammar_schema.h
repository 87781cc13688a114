/* grammar_schema.h - a JSON Schema as a grammar of the JSON texts that satisfy it.
 *
 * Drafts 4 to 2020-12, as far as a grammar can express them. Every text of the grammar is valid
 * under the schema, but not every valid value has a text: properties come in the order of the
 * schema, unnamed ones come only if additionalProperties explicitly allows them, and numbers have a
 * limited number of digits.
 *
 * Thread:    pure.
 * Failure:   of the tree: SHOAL_EUNSUPPORTED names the keyword that cannot be enforced and where it
 *            is; SHOAL_EINVAL says what is wrong in the schema; SHOAL_ELIMIT what is too large. */
#ifndef SHOAL_TEXT_GRAMMAR_GRAMMAR_SCHEMA_H
#define SHOAL_TEXT_GRAMMAR_GRAMMAR_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

struct grammar_tree;
struct cJSON;

/* A node for the values of a schema. */
uint32_t grammar_schema_read(struct grammar_tree *t, const char *p, size_t n);
/* The same for a parsed schema. */
uint32_t grammar_schema_of(struct grammar_tree *t, const struct cJSON *schema);

#endif
