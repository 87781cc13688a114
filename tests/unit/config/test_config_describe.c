/* test_config_describe.c - the keys of the file as people and editors see them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "config/config_describe.h"

/* ---- the schema ---- */

static const cJSON *in(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* The schema of the map that has the key, whatever forms its list may be written in. */
static const cJSON *map_of(const cJSON *schema)
{
    const cJSON *one;
    if (in(schema, "properties"))
        return schema;
    if (in(schema, "items"))
        return map_of(in(schema, "items"));
    cJSON_ArrayForEach(one, in(schema, "anyOf"))
    {
        const cJSON *found = map_of(one);
        if (found)
            return found;
    }
    return NULL;
}

/* The schema of a key: "models[].path" is in the properties of an entry of models. */
static const cJSON *find(const cJSON *schema, const char *path)
{
    while (schema && *path) {
        char part[64];
        size_t n = strcspn(path, ".[");
        snprintf(part, sizeof(part), "%.*s", (int)n, path);
        schema = map_of(schema);
        schema = schema ? in(in(schema, "properties"), part) : NULL;
        path += n;
        path += strncmp(path, "[]", 2) == 0 ? 2 : 0;
        path += *path == '.';
    }
    return schema;
}

static bool is_needed(const cJSON *schema, const struct config_key *k)
{
    char parent[128];
    const char *leaf = config_key_leaf(k);
    const cJSON *one;
    snprintf(parent, sizeof(parent), "%.*s", (int)(leaf - k->path), k->path);
    const cJSON *map = map_of(find(schema, parent));
    cJSON_ArrayForEach(one,
                       in(map, "required")) if (strcmp(one->valuestring, leaf) == 0) return true;
    return false;
}

/* Whether one of the texts in the schema of a choice is the word. */
static bool has_word(const cJSON *schema, const char *word, size_t n)
{
    const cJSON *one;
    if (cJSON_IsString(schema) && strlen(schema->valuestring) == n &&
        strncmp(schema->valuestring, word, n) == 0)
        return true;
    cJSON_ArrayForEach(one, schema) if (has_word(one, word, n)) return true;
    return false;
}

static void test_every_key_is_in_the_schema(void **state)
{
    struct buf b;
    (void)state;
    buf_init(&b, 1 << 24);
    config_describe_schema(&b);
    cJSON *schema = cJSON_Parse(buf_str(&b));
    assert_non_null(schema);
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *k = &config_keys[i];
        const cJSON *s = find(schema, k->path);
        if (!s)
            fail_msg("%s is not in the schema", k->path);
        const char *text = cJSON_GetStringValue(in(s, "description"));
        if (!text || strncmp(text, k->text, strlen(k->text)) != 0)
            fail_msg("%s is described as '%s'", k->path, text ? text : "");
        const char *type = cJSON_GetStringValue(in(s, "type"));
        if (k->type == CONFIG_MAP)
            assert_true(type && strcmp(type, "object") == 0);
        if ((k->type == CONFIG_U32 || k->type == CONFIG_I32) && (k->min != 0 || k->max != 0)) {
            assert_string_equal(type, "integer");
            assert_true(in(s, "minimum")->valuedouble == k->min);
            assert_true(in(s, "maximum")->valuedouble == k->max);
        }
        if (k->type == CONFIG_CHOICE) {
            size_t n;
            for (uint32_t c = 0; config_key_choice(k, c, &n); c++)
                assert_true(has_word(s, config_key_choice(k, c, &n), n));
        }
        if (is_needed(schema, k) != k->needed)
            fail_msg("%s: required: %d", k->path, !k->needed);
    }
    cJSON_Delete(schema);
    buf_fini(&b);
}

/* ---- one key ---- */

static void test_every_key_as_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_n_keys; i++) {
        const struct config_key *k = &config_keys[i];
        const char *near;
        struct buf b;
        buf_init(&b, 1 << 20);
        config_describe_json(&b, k);
        cJSON *json = cJSON_Parse(buf_str(&b));
        if (!json)
            fail_msg("%s: %s", k->path, buf_str(&b));
        assert_string_equal(cJSON_GetStringValue(in(json, "key")), k->path);
        buf_clear(&b);
        config_describe_key(&b, k);
        assert_int_equal(strncmp(buf_str(&b), k->path, strlen(k->path)), 0);
        assert_ptr_equal(config_describe_find(k->path, &near), k);
        cJSON_Delete(json);
        buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_is_in_the_schema),
        cmocka_unit_test(test_every_key_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
