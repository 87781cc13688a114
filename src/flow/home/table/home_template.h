/* home_template.h - the short texts of a table that are filled in: "list: {list}; items: none".
 *
 * A template is text with {name} or {name|text if the value is missing}; what stands in [ ] is left
 * out if a value in it is missing.  It is compiled when the table is read, so unknown names are
 * reported there.
 *
 * Thread:    immutable once compiled.
 * Ownership: parts live in the arena given to home_template_compile. */
#ifndef SHOAL_FLOW_HOME_HOME_TEMPLATE_H
#define SHOAL_FLOW_HOME_HOME_TEMPLATE_H

#include <stdint.h>

#include "base/arena.h"

struct home_template_part {
    const char *text; /* literal; NULL: a name */
    uint32_t var;     /* what find gave for the name */
    const char *none; /* instead of a value that is missing */
    uint32_t group;   /* of [ ], from 1 on; 0: none */
};

struct home_template {
    const struct home_template_part *parts;
    uint32_t n; /* 0: there is no template */
};

/* What a name stands for, or UINT32_MAX: not known here. */
typedef uint32_t (*home_template_find)(void *ctx, const char *name);
/* The value of one; NULL: missing. */
typedef const char *(*home_template_get)(void *ctx, uint32_t var);

/* NULL, or what is wrong with the text (in the arena, or a constant). */
const char *home_template_compile(struct home_template *out, struct arena *a, const char *text,
                                  home_template_find find, void *ctx);
const char *home_template_fill(struct arena *a, const struct home_template *t,
                               home_template_get get, void *ctx);

#endif
