/* value_json.c - see value_json.h. */
#include "wire/value_json.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "wire/json_nul.h"

#define MAX_DEPTH 64

static struct value take(struct arena *a, const cJSON *v, int depth, bool nul);

static struct value take_list(struct arena *a, const cJSON *v, int depth, bool nul)
{
    size_t n = (size_t)cJSON_GetArraySize(v), i = 0;
    struct value *items = arena_zalloc_n(a, n, sizeof(*items));
    const cJSON *one;
    cJSON_ArrayForEach(one, v) if (items) items[i++] = take(a, one, depth + 1, nul);
    return (struct value){.kind = VALUE_LIST, .list = {items, i}};
}

/* nul: the string is of json_nul.h. */
static const char *keep(struct arena *a, const char *s, size_t *n, bool nul)
{
    size_t bytes = strlen(s);
    const char *copy = nul ? json_nul_text(a, s, bytes, &bytes) : arena_copy(a, s, bytes + 1);
    *n = 0;
    return copy ? utf8_repaired(a, copy, bytes, n) : "";
}

static struct value take_map(struct arena *a, const cJSON *v, int depth, bool nul)
{
    size_t n = (size_t)cJSON_GetArraySize(v), i = 0;
    struct value_member *members = arena_zalloc_n(a, n, sizeof(*members));
    const cJSON *one;
    cJSON_ArrayForEach(one, v) if (members)
    {
        size_t bytes;
        members[i].key = keep(a, one->string, &bytes, nul);
        members[i++].value = take(a, one, depth + 1, nul);
    }
    return (struct value){.kind = VALUE_MAP, .map = {members, i}};
}

static struct value take(struct arena *a, const cJSON *v, int depth, bool nul)
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
        return take_list(a, v, depth, nul);
    if (cJSON_IsObject(v))
        return take_map(a, v, depth, nul);
    if (cJSON_IsString(v)) {
        size_t n;
        const char *text = keep(a, v->valuestring, &n, nul);
        return value_text(text, n);
    }
    return (struct value){.kind = VALUE_NULL};
}

struct value value_json_of(struct arena *a, const cJSON *v)
{
    return take(a, v, 0, false);
}

int value_json_read(struct value *out, struct arena *a, const char *p, size_t n)
{
    cJSON *root = json_nul_parse(p, n);
    if (!root)
        return SHOAL_EFORMAT;
    *out = take(a, root, 0, true);
    cJSON_Delete(root);
    return a->rc;
}

static void put(struct json_out *j, const struct value *v, int depth)
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

void value_json_put(struct json_out *j, const struct value *v)
{
    put(j, v, 0);
}

static size_t count(const struct value *v, int depth)
{
    size_t n = 2;
    if (depth > MAX_DEPTH || v->kind == VALUE_NULL || v->kind == VALUE_BOOL)
        return 4;
    if (v->kind == VALUE_NUMBER)
        return 8;
    if (v->kind == VALUE_TEXT)
        return v->text.n + 2;
    for (size_t i = 0; v->kind == VALUE_LIST && i < v->list.n; i++)
        n += count(&v->list.items[i], depth + 1) + 1;
    for (size_t i = 0; v->kind == VALUE_MAP && i < v->map.n; i++)
        n += strlen(v->map.members[i].key) + 4 + count(&v->map.members[i].value, depth + 1);
    return n;
}

size_t value_json_bytes(const struct value *v)
{
    return count(v, 0);
}
