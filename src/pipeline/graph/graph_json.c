/* graph_json.c - see graph_json.h. */
#include "pipeline/graph/graph_json.h"

#define MAX_DEPTH 64u

static void put(struct json_out *j, const struct value *v, uint32_t depth)
{
    switch (depth > MAX_DEPTH ? VALUE_NULL : v->kind) {
    case VALUE_NULL:
        json_out_null(j);
        break;
    case VALUE_BOOL:
        json_out_bool(j, v->boolean);
        break;
    case VALUE_NUMBER:
        json_out_num(j, v->number);
        break;
    case VALUE_TEXT:
        json_out_strn(j, v->text.p, v->text.n);
        break;
    case VALUE_LIST:
        json_out_array(j);
        for (size_t i = 0; i < v->list.n; i++)
            put(j, &v->list.items[i], depth + 1);
        json_out_array_end(j);
        break;
    case VALUE_MAP:
        json_out_object(j);
        for (size_t i = 0; i < v->map.n; i++) {
            json_out_key(j, v->map.members[i].key);
            put(j, &v->map.members[i].value, depth + 1);
        }
        json_out_object_end(j);
        break;
    }
}

void graph_json_put(struct json_out *j, const struct value *v)
{
    put(j, v, 0);
}
