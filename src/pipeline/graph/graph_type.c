/* graph_type.c - see graph_type.h. */
#include "pipeline/graph/graph_type.h"

#include <string.h>

const struct graph_type graph_type_any = {.kind = GRAPH_TYPE_ANY};
const struct graph_type graph_type_bool = {.kind = GRAPH_TYPE_BOOL};
const struct graph_type graph_type_number = {.kind = GRAPH_TYPE_NUMBER};
const struct graph_type graph_type_text = {.kind = GRAPH_TYPE_TEXT};
const struct graph_type graph_type_texts = {.kind = GRAPH_TYPE_LIST, .of = &graph_type_text};
const struct graph_type graph_type_numbers = {.kind = GRAPH_TYPE_LIST, .of = &graph_type_number};

const char *graph_type_name(const struct graph_type *t)
{
    switch (t->kind) {
    case GRAPH_TYPE_ANY:
        return "any value";
    case GRAPH_TYPE_BOOL:
        return "true or false";
    case GRAPH_TYPE_NUMBER:
        return "a number";
    case GRAPH_TYPE_TEXT:
        return "a text";
    case GRAPH_TYPE_LIST:
        return t->of->kind == GRAPH_TYPE_NUMBER ? "a list of numbers"
               : t->of->kind == GRAPH_TYPE_TEXT ? "a list of texts"
                                                : "a list";
    case GRAPH_TYPE_RECORD:
    case GRAPH_TYPE_TABLE:
        break;
    }
    return "a map of fields";
}

bool graph_type_fits(const struct graph_type *from, const struct graph_type *to)
{
    if (from == to || from->kind == GRAPH_TYPE_ANY || to->kind == GRAPH_TYPE_ANY)
        return true;
    if (from->kind != to->kind)
        return false;
    if (from->kind == GRAPH_TYPE_LIST || from->kind == GRAPH_TYPE_TABLE)
        return graph_type_fits(from->of, to->of);
    if (from->kind != GRAPH_TYPE_RECORD)
        return true;
    for (uint32_t i = 0; i < to->n_fields; i++) {
        const struct graph_type *f =
            graph_type_field(from, to->fields[i].name, strlen(to->fields[i].name));
        if (!f || !graph_type_fits(f, to->fields[i].type))
            return false;
    }
    return true;
}

const struct graph_type *graph_type_field(const struct graph_type *t, const char *name, size_t n)
{
    if (t->kind == GRAPH_TYPE_ANY)
        return t;
    if (t->kind == GRAPH_TYPE_TABLE)
        return t->of;
    for (uint32_t i = 0; t->kind == GRAPH_TYPE_RECORD && i < t->n_fields; i++)
        if (strlen(t->fields[i].name) == n && memcmp(t->fields[i].name, name, n) == 0)
            return t->fields[i].type;
    return NULL;
}

struct value graph_type_empty(const struct graph_type *t)
{
    switch (t->kind) {
    case GRAPH_TYPE_BOOL:
        return value_bool(false);
    case GRAPH_TYPE_NUMBER:
        return (struct value){.kind = VALUE_NUMBER};
    case GRAPH_TYPE_TEXT:
        return value_text("", 0);
    case GRAPH_TYPE_LIST:
        return (struct value){.kind = VALUE_LIST};
    case GRAPH_TYPE_RECORD:
    case GRAPH_TYPE_TABLE:
        return (struct value){.kind = VALUE_MAP};
    case GRAPH_TYPE_ANY:
        break;
    }
    return (struct value){.kind = VALUE_NULL};
}

const struct value *graph_type_member(const struct value *map, const char *name, size_t n)
{
    const struct value *found = NULL;
    for (size_t i = 0; map->kind == VALUE_MAP && i < map->map.n; i++)
        if (strncmp(map->map.members[i].key, name, n) == 0 && !map->map.members[i].key[n])
            found = &map->map.members[i].value; /* the last of equal keys wins */
    return found;
}

bool graph_type_is_empty(const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        return true;
    case VALUE_BOOL:
        return !v->boolean;
    case VALUE_NUMBER:
        return v->number == 0;
    case VALUE_TEXT:
        return v->text.n == 0;
    case VALUE_LIST:
        return v->list.n == 0;
    case VALUE_MAP:
        break;
    }
    return v->map.n == 0;
}
