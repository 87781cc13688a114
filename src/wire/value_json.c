/* value_json.c - see value_json.h. */
#include "wire/value_json.h"

#include <math.h>
#include <string.h>

#define MAX_DEPTH 64

static struct value take(struct arena *a, const cJSON *v, int depth);

static struct value take_list(struct arena *a, const cJSON *v, int depth)
{
    size_t n = (size_t)cJSON_GetArraySize(v), i = 0;
    struct value *items = arena_zalloc_n(a, n, sizeof(*items));
    const cJSON *one;
    cJSON_ArrayForEach(one, v) if (items) items[i++] = take(a, one, depth + 1);
    return (struct value){.kind = VALUE_LIST, .list = {items, i}};
}

static const char *keep(struct arena *a, const char *s)
{
    char *copy = arena_copy(a, s, strlen(s) + 1);
    return copy ? copy : "";
}

static struct value take_map(struct arena *a, const cJSON *v, int depth)
{
    size_t n = (size_t)cJSON_GetArraySize(v), i = 0;
    struct value_member *members = arena_zalloc_n(a, n, sizeof(*members));
    const cJSON *one;
    cJSON_ArrayForEach(one, v) if (members)
    {
        members[i].key = keep(a, one->string);
        members[i++].value = take(a, one, depth + 1);
    }
    return (struct value){.kind = VALUE_MAP, .map = {members, i}};
}

static struct value take(struct arena *a, const cJSON *v, int depth)
{
    if (depth > MAX_DEPTH) {
        a->rc = a->rc < 0 ? a->rc : SHOAL_EFORMAT;
        return (struct value){.kind = VALUE_NULL};
    }
    if (cJSON_IsBool(v))
        return value_bool(cJSON_IsTrue(v));
    if (cJSON_IsNumber(v) && isfinite(v->valuedouble))
        return (struct value){.kind = VALUE_NUMBER, .number = v->valuedouble};
    if (cJSON_IsArray(v))
        return take_list(a, v, depth);
    if (cJSON_IsObject(v))
        return take_map(a, v, depth);
    if (cJSON_IsString(v))
        return value_text(keep(a, v->valuestring), strlen(v->valuestring));
    return (struct value){.kind = VALUE_NULL};
}

struct value value_json_of(struct arena *a, const cJSON *v)
{
    return take(a, v, 0);
}

int value_json_read(struct value *out, struct arena *a, const char *p, size_t n)
{
    cJSON *root = cJSON_ParseWithLength(p, n);
    if (!root)
        return SHOAL_EFORMAT;
    *out = take(a, root, 0);
    cJSON_Delete(root);
    return a->rc;
}
