/* fields.c - see fields.h. */
#include "gateway/call/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fields_fail(struct fields_error *e, const char *param, const char *code, const char *fmt, ...)
{
    va_list ap;
    snprintf(e->param, sizeof(e->param), "%s", param);
    e->code = code;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
    va_end(ap);
    return SHOAL_EINVAL;
}

static int wrong_type(struct fields_error *e, const struct field *f, const char *want)
{
    return fields_fail(e, f->name, "invalid_type", "'%s' must be %s", f->name, want);
}

static int out_of_range(struct fields_error *e, const struct field *f, double v)
{
    return fields_fail(e, f->name, "invalid_value", "'%s' is %.15g, it must be from %.15g to %.15g",
                       f->name, v, f->min, f->max);
}

static int read_number(const struct field *f, const cJSON *v, void *at, struct fields_error *e)
{
    bool whole = f->type == FIELD_INT;
    if (!cJSON_IsNumber(v) || (whole && v->valuedouble != floor(v->valuedouble)))
        return wrong_type(e, f, whole ? "a whole number" : "a number");
    double d = v->valuedouble;
    if (!(d >= f->min && d <= f->max))
        return out_of_range(e, f, d);
    if (whole)
        *(int64_t *)at = d >= 9.2233720368547748e18 ? INT64_MAX : (int64_t)d;
    else
        *(double *)at = d;
    return 0;
}

/* Whether the value of an unsupported field is neutral: false, or an empty list, object or text,
 * which client libraries send as defaults ("tools": []), or what happens anyway ("modalities":
 * ["text"]). */
static bool is_neutral(const struct field *f, const cJSON *v)
{
    if (((cJSON_IsArray(v) || cJSON_IsObject(v)) && !v->child) ||
        (cJSON_IsString(v) && !v->valuestring[0]) || cJSON_IsFalse(v))
        return true;
    if (cJSON_IsArray(v) && !v->child->next)
        v = v->child; /* a list of one */
    if (cJSON_IsNumber(v) && f->schema) {
        char *end;
        double neutral = strtod(f->schema, &end);
        return end != f->schema && *end == '\0' && v->valuedouble == neutral;
    }
    return cJSON_IsString(v) && f->schema && strcmp(v->valuestring, f->schema) == 0;
}

static int read_one(const struct field *f, const cJSON *v, void *into, bool lenient,
                    struct fields_error *e)
{
    void *at = (char *)into + f->offset;
    switch (f->type) {
    case FIELD_BOOL:
        if (!cJSON_IsBool(v))
            return wrong_type(e, f, "true or false");
        *(bool *)at = cJSON_IsTrue(v);
        return 0;
    case FIELD_INT:
    case FIELD_NUM:
        return read_number(f, v, at, e);
    case FIELD_STR:
        if (!cJSON_IsString(v))
            return wrong_type(e, f, "a string");
        *(const char **)at = v->valuestring;
        return 0;
    case FIELD_VALUE:
        *(const cJSON **)at = v;
        return 0;
    case FIELD_IGNORED:
        return 0;
    case FIELD_UNBUILT:
        break;
    }
    if (lenient || is_neutral(f, v))
        return 0;
    return fields_fail(
        e, f->name, "unsupported_parameter",
        "'%s' is not supported yet; leave it out, or send 'x-shoal-lenient: 1' to ignore it",
        f->name);
}

int fields_read(const struct field *table, size_t n, const cJSON *object, void *into, bool lenient,
                struct fields_error *e)
{
    uint64_t seen[FIELDS_MAX / 64] = {0};
    const cJSON *v;
    if (!cJSON_IsObject(object))
        return fields_fail(e, "", "invalid_type", "the body must be a JSON object");
    cJSON_ArrayForEach(v, object)
    {
        size_t i = 0;
        while (i < n && strcmp(table[i].name, v->string) != 0)
            i++;
        if (i == n) {
            if (lenient || cJSON_IsNull(v))
                continue;
            return fields_fail(e, v->string, "unknown_parameter", "unknown field '%.64s'",
                               v->string);
        }
        if (seen[i / 64] >> i % 64 & 1)
            return fields_fail(e, v->string, "invalid_value", "'%s' is given twice", v->string);
        seen[i / 64] |= (uint64_t)1 << i % 64;
        if (cJSON_IsNull(v))
            continue;
        int rc = read_one(&table[i], v, into, lenient, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int fields_check(const struct field *table, size_t n, const char *name, double v,
                 struct fields_error *e)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].name, name) == 0 && !(v >= table[i].min && v <= table[i].max))
            return isnan(v) ? wrong_type(e, &table[i], "a number") : out_of_range(e, &table[i], v);
    return 0;
}
