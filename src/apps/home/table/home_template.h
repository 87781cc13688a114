/* home_template.h - the short text templates of a table: "list: {list}; items: none".
 *
 * A template is text with {name} or {name|text if the value is missing}; a group in [ ] is dropped
 * if one of its values is missing.  It is compiled when the table is read, so unknown names are
 * reported there.
 *
 * Thread:    immutable once compiled.
 * Ownership: parts live in the arena given to home_template_compile. */
#ifndef SHOAL_APPS_HOME_HOME_TEMPLATE_H
#define SHOAL_APPS_HOME_HOME_TEMPLATE_H

#include <stdint.h>

#include "base/arena.h"

struct home_template_part {
    const char *text; /* literal; NULL: a name */
    uint32_t var;     /* the result of find for the name */
    const char *none; /* replaces a missing value */
    uint32_t group;   /* of [ ], from 1 on; 0: none */
};

struct home_template {
    const struct home_template_part *parts;
    uint32_t n; /* 0: no template */
};

/* Resolves a name, or UINT32_MAX: unknown here. */
typedef uint32_t (*home_template_find)(void *ctx, const char *name);
/* The value of a name; NULL: missing. */
typedef const char *(*home_template_get)(void *ctx, uint32_t var);

/* NULL, or the error in the text (in the arena, or a constant). */
const char *home_template_compile(struct home_template *out, struct arena *a, const char *text,
                                  home_template_find find, void *ctx);
const char *home_template_fill(struct arena *a, const struct home_template *t,
                               home_template_get get, void *ctx);

#endif
