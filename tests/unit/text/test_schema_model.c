/* test_schema_model.c - random JSON schemas: every text that a grammar accepts is valid, as a plain
 * validator sees it.  Which valid ones it accepts is compared with tests/data/schemas/random.txt;
 * SHOAL_GOLDEN=1 writes that of now. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "support/dice.h"
#include "support/grammar_walk.h"

#define N_SCHEMAS 400u
#define GOLDEN SHOAL_TEST_DATA "/schemas/random.txt"

static const char *const values[] = {"null",
                                     "true",
                                     "false",
                                     "0",
                                     "1",
                                     "2",
                                     "3",
                                     "-1",
                                     "10",
                                     "2.5",
                                     "\"\"",
                                     "\"a\"",
                                     "\"ab\"",
                                     "\"b\"",
                                     "\"abc\"",
                                     "[]",
                                     "[1]",
                                     "[1,2]",
                                     "[1,1]",
                                     "[\"a\"]",
                                     "[\"a\",1]",
                                     "[1,\"a\"]",
                                     "[null]",
                                     "[1,2,3]",
                                     "[[1]]",
                                     "{}",
                                     "{\"a\":1}",
                                     "{\"a\":2}",
                                     "{\"a\":\"a\"}",
                                     "{\"a\":null}",
                                     "{\"b\":1}",
                                     "{\"b\":\"a\"}",
                                     "{\"c\":1}",
                                     "{\"a\":1,\"b\":1}",
                                     "{\"a\":1,\"b\":\"a\"}",
                                     "{\"a\":1,\"c\":1}",
                                     "{\"b\":1,\"c\":1}",
                                     "{\"a\":1,\"b\":1,\"c\":1}",
                                     "{\"a\":{}}",
                                     "{\"a\":[1]}"};
#define N_VALUES (sizeof(values) / sizeof(values[0]))

/* ---- a plain validator ---- */

static bool is_type(const cJSON *v, const char *name)
{
    return strcmp(name, "null") == 0      ? cJSON_IsNull(v)
           : strcmp(name, "boolean") == 0 ? cJSON_IsBool(v)
           : strcmp(name, "integer") == 0
               ? cJSON_IsNumber(v) && floor(v->valuedouble) == v->valuedouble
           : strcmp(name, "number") == 0 ? cJSON_IsNumber(v)
           : strcmp(name, "string") == 0 ? cJSON_IsString(v)
           : strcmp(name, "array") == 0  ? cJSON_IsArray(v)
                                         : cJSON_IsObject(v);
}

static bool valid(const cJSON *s, const cJSON *v);

static bool type_ok(const cJSON *t, const cJSON *v)
{
    const cJSON *one;
    if (cJSON_IsString(t))
        return is_type(v, t->valuestring);
    cJSON_ArrayForEach(one, t) if (is_type(v, one->valuestring)) return true;
    return false;
}

static uint32_t n_valid(const cJSON *list, const cJSON *v)
{
    const cJSON *one;
    uint32_t n = 0;
    cJSON_ArrayForEach(one, list) n += valid(one, v);
    return n;
}

static bool object_ok(const cJSON *s, const cJSON *v)
{
    const cJSON *props = cJSON_GetObjectItem(s, "properties"), *one;
    const cJSON *more = cJSON_GetObjectItem(s, "additionalProperties");
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(s, "required"))
    {
        if (!cJSON_GetObjectItem(v, one->valuestring))
            return false;
    }
    cJSON_ArrayForEach(one, v)
    {
        const cJSON *p = cJSON_GetObjectItem(props, one->string);
        if (p ? !valid(p, one) : more && !valid(more, one))
            return false;
    }
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(s, "dependentRequired"))
    {
        const cJSON *name;
        if (cJSON_GetObjectItem(v, one->string))
            cJSON_ArrayForEach(name,
                               one) if (!cJSON_GetObjectItem(v, name->valuestring)) return false;
    }
    const cJSON *min = cJSON_GetObjectItem(s, "minProperties"),
                *max = cJSON_GetObjectItem(s, "maxProperties");
    const int n = cJSON_GetArraySize(v);
    return !(min && n < min->valueint) && !(max && n > max->valueint);
}

static bool array_ok(const cJSON *s, const cJSON *v)
{
    const cJSON *items = cJSON_GetObjectItem(s, "items"),
                *first = cJSON_GetObjectItem(s, "prefixItems");
    const cJSON *min = cJSON_GetObjectItem(s, "minItems"),
                *max = cJSON_GetObjectItem(s, "maxItems"),
                *contains = cJSON_GetObjectItem(s, "contains");
    const int n = cJSON_GetArraySize(v);
    bool found = false;
    for (int i = 0; i < n; i++) {
        const cJSON *at = cJSON_GetArrayItem(v, i), *p = cJSON_GetArrayItem(first, i);
        if (p ? !valid(p, at) : items && !valid(items, at))
            return false;
        found |= contains && valid(contains, at);
        for (int k = 0; k < i && cJSON_IsTrue(cJSON_GetObjectItem(s, "uniqueItems")); k++)
            if (cJSON_Compare(at, cJSON_GetArrayItem(v, k), true))
                return false;
    }
    return !(min && n < min->valueint) && !(max && n > max->valueint) && (!contains || found);
}

static bool number_ok(const cJSON *s, double x)
{
    const cJSON *a = cJSON_GetObjectItem(s, "minimum"), *b = cJSON_GetObjectItem(s, "maximum");
    const cJSON *c = cJSON_GetObjectItem(s, "exclusiveMinimum"),
                *d = cJSON_GetObjectItem(s, "exclusiveMaximum");
    const cJSON *m = cJSON_GetObjectItem(s, "multipleOf");
    return !(a && x < a->valuedouble) && !(b && x > b->valuedouble) &&
           !(c && x <= c->valuedouble) && !(d && x >= d->valuedouble) &&
           !(m && fmod(x, m->valuedouble) != 0);
}

static bool text_ok(const cJSON *s, const char *text)
{
    const cJSON *a = cJSON_GetObjectItem(s, "minLength"), *b = cJSON_GetObjectItem(s, "maxLength");
    const cJSON *p = cJSON_GetObjectItem(s, "pattern"); /* a letter, perhaps behind ^ */
    const int n = (int)strlen(text);
    if (p && (p->valuestring[0] == '^' ? text[0] != p->valuestring[1]
                                       : !strchr(text, p->valuestring[0])))
        return false;
    return !(a && n < a->valueint) && !(b && n > b->valueint);
}

static bool valid(const cJSON *s, const cJSON *v)
{
    if (cJSON_IsBool(s))
        return cJSON_IsTrue(s);
    const cJSON *type = cJSON_GetObjectItem(s, "type"), *list = cJSON_GetObjectItem(s, "enum");
    const cJSON *any = cJSON_GetObjectItem(s, "anyOf"), *all = cJSON_GetObjectItem(s, "allOf");
    const cJSON *one = cJSON_GetObjectItem(s, "oneOf"), *not = cJSON_GetObjectItem(s, "not"), *e;
    const cJSON *cond = cJSON_GetObjectItem(s, "if");
    bool found = !list;
    cJSON_ArrayForEach(e, list) found |= cJSON_Compare(e, v, true);
    if (!found || (type && !type_ok(type, v)) || (any && n_valid(any, v) == 0) ||
        (all && n_valid(all, v) < (uint32_t)cJSON_GetArraySize(all)) ||
        (one && n_valid(one, v) != 1) || (not &&valid(not, v)))
        return false;
    const cJSON *branch = cond ? cJSON_GetObjectItem(s, valid(cond, v) ? "then" : "else") : NULL;
    if (branch && !valid(branch, v))
        return false;
    return cJSON_IsObject(v)   ? object_ok(s, v)
           : cJSON_IsArray(v)  ? array_ok(s, v)
           : cJSON_IsNumber(v) ? number_ok(s, v->valuedouble)
           : cJSON_IsString(v) ? text_ok(s, v->valuestring)
                               : true;
}

/* ---- random schemas ---- */

static void put_schema(struct buf *b, uint32_t depth);

static void put_list(struct buf *b, const char *key, uint32_t n, uint32_t depth)
{
    buf_printf(b, "\"%s\":[", key);
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(b, i ? "," : "");
        put_schema(b, depth);
    }
    buf_putc(b, ']');
}

static void put_object(struct buf *b, uint32_t depth)
{
    static const char *const needs[] = {"[\"a\"]", "[\"b\"]", "[\"a\",\"b\"]", "[\"c\"]"};
    static const char *const more[] = {"true", "false", "{\"type\":\"integer\"}"};
    uint32_t n = dice_below(3);
    buf_puts(b, "\"type\":\"object\",\"properties\":{");
    for (uint32_t i = 0; i < n; i++) {
        buf_printf(b, "%s\"%c\":", i ? "," : "", 'a' + (int)i);
        put_schema(b, depth);
    }
    buf_putc(b, '}');
    if (dice_below(2))
        buf_printf(b, ",\"required\":%s", needs[dice_below(4)]);
    if (dice_below(2))
        buf_printf(b, ",\"additionalProperties\":%s", more[dice_below(3)]);
    if (dice_below(4) == 0)
        buf_printf(b, ",\"minProperties\":%u", dice_below(3));
    if (dice_below(4) == 0)
        buf_printf(b, ",\"maxProperties\":%u", dice_below(3));
    if (dice_below(4) == 0)
        buf_puts(b, ",\"dependentRequired\":{\"a\":[\"b\"]}");
}

static void put_array(struct buf *b, uint32_t depth)
{
    buf_puts(b, "\"type\":\"array\"");
    if (dice_below(3)) {
        buf_puts(b, ",\"items\":");
        put_schema(b, depth);
    }
    if (dice_below(4) == 0) {
        buf_putc(b, ',');
        put_list(b, "prefixItems", 1 + dice_below(2), depth);
    }
    if (dice_below(2))
        buf_printf(b, ",\"minItems\":%u", dice_below(3));
    if (dice_below(2))
        buf_printf(b, ",\"maxItems\":%u", dice_below(3));
    if (dice_below(5) == 0)
        buf_puts(b, ",\"uniqueItems\":true");
    if (dice_below(5) == 0)
        buf_puts(b, ",\"contains\":{\"type\":\"integer\"}");
}

static void put_scalar(struct buf *b)
{
    static const char *const bounds[] = {"minimum", "maximum", "exclusiveMinimum",
                                         "exclusiveMaximum"};
    switch (dice_below(5)) {
    case 0:
        buf_printf(b, "\"type\":\"%s\"", dice_below(2) ? "integer" : "number");
        for (uint32_t i = 0; i < 4; i++)
            if (dice_below(4) == 0)
                buf_printf(b, ",\"%s\":%d", bounds[i], (int)dice_below(5) - 1);
        if (dice_below(4) == 0)
            buf_puts(b, ",\"multipleOf\":2");
        break;
    case 1:
        buf_puts(b, "\"type\":\"string\"");
        if (dice_below(2))
            buf_printf(b, ",\"minLength\":%u", dice_below(3));
        if (dice_below(2))
            buf_printf(b, ",\"maxLength\":%u", 1 + dice_below(3));
        if (dice_below(3) == 0)
            buf_printf(b, ",\"pattern\":\"%s\"", dice_below(2) ? "^a" : "b");
        break;
    case 2:
        buf_puts(b, dice_below(2) ? "\"type\":[\"null\",\"integer\"]" : "\"type\":\"boolean\"");
        break;
    case 3:
        buf_puts(b,
                 dice_below(2) ? "\"enum\":[1,\"a\",null,{\"a\":1}]" : "\"enum\":[\"a\",\"ab\",2]");
        break;
    default:
        break;
    }
}

static void put_schema(struct buf *b, uint32_t depth)
{
    static const char *const words[] = {"anyOf", "allOf", "oneOf"};
    const uint32_t what = dice_below(depth > 0 ? 12 : 4);
    buf_putc(b, '{');
    if (what < 4)
        put_scalar(b);
    else if (what < 6)
        put_object(b, depth - 1);
    else if (what < 8)
        put_array(b, depth - 1);
    else if (what < 10)
        put_list(b, words[dice_below(3)], 2, depth - 1);
    else if (what == 10) {
        buf_puts(b, "\"type\":[\"object\",\"integer\",\"string\"],\"not\":");
        put_schema(b, depth - 1);
    } else {
        buf_puts(b, "\"if\":");
        put_schema(b, depth - 1);
        buf_puts(b, ",\"then\":");
        put_schema(b, depth - 1);
        buf_puts(b, ",\"else\":");
        put_schema(b, depth - 1);
    }
    buf_putc(b, '}');
}

/* ---- the comparison ---- */

static bool accepts(struct grammar_walk *w, const char *text)
{
    uint32_t place;
    assert_int_equal(grammar_mask_start(w->mask, &place), 0);
    assert_int_equal(grammar_mask_step(w->mask, &place, text, strlen(text)), 0);
    return place != GRAMMAR_MASK_DEAD && grammar_mask_complete(w->mask, place);
}

/* A letter for each value: y accepted, - valid but never generated, n neither. */
static void check_schema(const char *text, struct buf *out)
{
    struct grammar_walk w;
    struct err e = {0};
    cJSON *schema = cJSON_Parse(text);
    assert_non_null(schema);
    buf_printf(out, "%s\n  ", text);
    int rc = grammar_walk_open(&w, SHOAL_CONSTRAINT_SCHEMA, text, strlen(text), &e);
    if (rc < 0)
        buf_printf(out, "%d: %s", rc, e.msg);
    for (size_t i = 0; i < N_VALUES && rc == 0; i++) {
        cJSON *v = cJSON_Parse(values[i]);
        const bool good = valid(schema, v), taken = accepts(&w, values[i]);
        if (taken && !good)
            print_error("%s accepts %s\n", text, values[i]);
        assert_true(good || !taken);
        buf_putc(out, taken ? 'y' : good ? '-' : 'n');
        cJSON_Delete(v);
    }
    buf_putc(out, '\n');
    grammar_walk_close(&w);
    cJSON_Delete(schema);
}

static void test_what_is_accepted_is_valid(void **state)
{
    struct buf text, out;
    (void)state;
    dice_seed(11);
    buf_init(&text, 1 << 16);
    buf_init(&out, 1 << 22);
    for (uint32_t i = 0; i < N_SCHEMAS; i++) {
        buf_clear(&text);
        put_schema(&text, 2);
        check_schema(buf_str(&text), &out);
    }
    if (getenv("SHOAL_GOLDEN")) {
        FILE *f = fopen(GOLDEN, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(out.data, 1, out.len, f), out.len);
        fclose(f);
    } else if (!getenv("SHOAL_SEED")) {
        struct buf want;
        struct err e;
        buf_init(&want, 1 << 22);
        assert_int_equal(file_read(GOLDEN, &want, &e), 0);
        size_t at = 0;
        for (size_t i = 0; i < want.len && i < out.len && want.data[i] == out.data[i]; i++)
            at = want.data[i] == '\n' ? i + 1 : at;
        if (want.len != out.len || memcmp(want.data, out.data, out.len) != 0)
            print_error("was %.300s\nis  %.300s\n", buf_str(&want) + at, buf_str(&out) + at);
        assert_true(want.len == out.len && memcmp(want.data, out.data, out.len) == 0);
        buf_fini(&want);
    }
    buf_fini(&text);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_accepted_is_valid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
