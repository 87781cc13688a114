/* home_table_base.c - see home_table_base.h. */
#include "apps/home/table/home_table_base.h"

#include <stdio.h>
#include <string.h>

#include "wire/json_strict.h"

#define MAX_BYTES ((size_t)256 << 10) /* of a table, as in home_table.h */
#define MAX_KEY 256u                  /* bytes; longer ones are cut, and then no key of a table */

int home_table_base_name(const char *json, size_t n, char *name, size_t cap, struct err *e)
{
    struct json_strict d = {0};
    *name = '\0';
    if (json_strict_parse(&d, json, n, MAX_BYTES, e) == 0) {
        struct json_node root = json_strict_root(&d), v = json_strict_get(&root, "base");
        const char *text = v.v ? json_strict_text(&d, &v, cap - 1) : "";
        if (strchr(text, '/') || *text == '.')
            json_strict_fail(&d, &v, "the base is a file in the same folder");
        snprintf(name, cap, "%s", text);
    }
    int rc = json_strict_rc(&d);
    json_strict_fini(&d);
    return rc;
}

static bool is_nested(const cJSON *x)
{
    if (!cJSON_IsObject(x))
        return false;
    for (const cJSON *v = x->child; v; v = v->next)
        if (cJSON_IsObject(v) || cJSON_IsArray(v))
            return true;
    return false;
}

/* Moves the entries of an object into another; false: out of memory. */
static bool merge(cJSON *into, cJSON *from)
{
    while (from->child) {
        cJSON *v = cJSON_DetachItemViaPointer(from, from->child);
        cJSON *old = cJSON_GetObjectItemCaseSensitive(into, v->string);
        bool ok;
        if (old && cJSON_IsObject(v) && is_nested(old)) {
            ok = merge(old, v);
            cJSON_Delete(v);
        } else if (old) {
            ok = cJSON_ReplaceItemViaPointer(into, old, v);
        } else {
            char key[MAX_KEY];
            snprintf(key, sizeof(key), "%s", v->string);
            ok = cJSON_AddItemToObject(into, key, v);
        }
        if (!ok)
            return false;
    }
    return true;
}

int home_table_base_merge(char **out, const char *base, size_t n_base, const char *json, size_t n,
                          struct err *e)
{
    struct json_strict b = {0}, d = {0};
    *out = NULL;
    int rc = json_strict_parse(&b, base, n_base, MAX_BYTES, e);
    if (rc == 0)
        rc = json_strict_parse(&d, json, n, MAX_BYTES, e);
    if (rc == 0 && (!cJSON_IsObject(b.root) || !cJSON_IsObject(d.root)))
        rc = err_set(e, SHOAL_EFORMAT, "a table is an object");
    if (rc == 0 && cJSON_GetObjectItemCaseSensitive(b.root, "base"))
        rc = err_set(e, SHOAL_EFORMAT, "base: the base of a table has a base itself");
    if (rc == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(d.root, "base");
        *out = merge(b.root, d.root) ? cJSON_PrintUnformatted(b.root) : NULL;
        rc = *out ? 0 : err_set(e, SHOAL_ENOMEM, "table");
    }
    json_strict_fini(&b);
    json_strict_fini(&d);
    return rc;
}
