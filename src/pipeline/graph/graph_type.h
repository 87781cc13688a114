/* graph_type.h - types of the values in a flow, checked when its file is read.
 *
 * Thread:    constant, or in the arena of a graph.
 * Failure:   none. */
#ifndef SHOAL_PIPELINE_GRAPH_GRAPH_TYPE_H
#define SHOAL_PIPELINE_GRAPH_GRAPH_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/value.h"

enum graph_type_kind {
    GRAPH_TYPE_ANY, /* known only at run time, such as the answer of a web server */
    GRAPH_TYPE_BOOL,
    GRAPH_TYPE_NUMBER,
    GRAPH_TYPE_TEXT,
    GRAPH_TYPE_LIST,   /* list of `of` */
    GRAPH_TYPE_RECORD, /* record with the fields */
    GRAPH_TYPE_TABLE,  /* any names; values of `of`, empty if there is no such name */
};

struct graph_field;

struct graph_type {
    enum graph_type_kind kind;
    const struct graph_type *of;
    const struct graph_field *fields;
    uint32_t n_fields;
};

struct graph_field {
    const char *name;
    const struct graph_type *type;
};

extern const struct graph_type graph_type_any, graph_type_bool, graph_type_number, graph_type_text;
extern const struct graph_type graph_type_texts, graph_type_numbers; /* lists */

/* "text", "a list of numbers", ... */
const char *graph_type_name(const struct graph_type *t);
/* Whether a value of type `from` may be used where `to` is expected. */
bool graph_type_fits(const struct graph_type *from, const struct graph_type *to);
const struct graph_type *graph_type_field(const struct graph_type *t, const char *name, size_t n);
/* "", 0, false, an empty list; a record has no members, but its fields read as empty. */
struct value graph_type_empty(const struct graph_type *t);
/* A member of a map; NULL: it has none of this name. */
const struct value *graph_type_member(const struct value *map, const char *name, size_t n);
/* Null, "", 0, false, nothing in it. */
bool graph_type_is_empty(const struct value *v);

#endif
