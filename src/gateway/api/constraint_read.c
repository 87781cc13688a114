/* constraint_read.c - see constraint_read.h. */
#include "gateway/api/constraint_read.h"

#include <string.h>

#include "base/buf.h"

/* Sets the constraint; a second one is refused. */
static int set(struct request *r, enum shoal_constraint kind, const char *text, const char *name,
               struct fields_error *e)
{
    struct request_constraint *c = &r->generate.constraint;
    if (c->kind != SHOAL_CONSTRAINT_NONE)
        return fields_fail(e, name, "invalid_value",
                           "'%s' is given beside another constraint: give only one", name);
    c->kind = kind;
    c->text_bytes = strlen(text);
    c->text = request_copy(r, text, c->text_bytes);
    r->input_bytes += c->text_bytes;
    return 0;
}

static int set_json(struct request *r, enum shoal_constraint kind, const cJSON *v, const char *name,
                    struct fields_error *e)
{
    char *text = cJSON_PrintUnformatted(v);
    int rc = text ? set(r, kind, text, name, e) : fields_fail(e, name, NULL, "out of memory");
    cJSON_free(text);
    return rc;
}

/* A text that is not empty. */
static int read_text(struct request *r, enum shoal_constraint kind, const cJSON *v,
                     const char *name, struct fields_error *e)
{
    if (!v || cJSON_IsNull(v) || (cJSON_IsString(v) && !v->valuestring[0]))
        return 0;
    if (!cJSON_IsString(v))
        return fields_fail(e, name, "invalid_type", "'%s' must be a text", name);
    return set(r, kind, v->valuestring, name, e);
}

/* A schema, also as a text. */
static int read_schema(struct request *r, const cJSON *v, const char *name, struct fields_error *e)
{
    if (!v || cJSON_IsNull(v) || (cJSON_IsString(v) && !v->valuestring[0]))
        return 0;
    if (cJSON_IsString(v))
        return set(r, SHOAL_CONSTRAINT_SCHEMA, v->valuestring, name, e);
    if (!cJSON_IsObject(v) && !cJSON_IsBool(v))
        return fields_fail(e, name, "invalid_type", "'%s' must be a JSON Schema", name);
    return set_json(r, SHOAL_CONSTRAINT_SCHEMA, v, name, e);
}

static int read_choice(struct request *r, const cJSON *v, const char *name, struct fields_error *e)
{
    const cJSON *one;
    if (!v || cJSON_IsNull(v) || (cJSON_IsArray(v) && !v->child))
        return 0;
    if (!cJSON_IsArray(v))
        return fields_fail(e, name, "invalid_type", "'%s' must be a list of texts", name);
    cJSON_ArrayForEach(one, v) if (!cJSON_IsString(one) || !one->valuestring[0]) return fields_fail(
        e, name, "invalid_type", "'%s' must be a list of texts that are not empty", name);
    return set_json(r, SHOAL_CONSTRAINT_CHOICE, v, name, e);
}

static int read_response_format(struct request *r, const cJSON *v, bool lenient,
                                struct fields_error *e)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "type"));
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(v, "json_schema"), *schema;
    if (!v || (type && strcmp(type, "text") == 0))
        return 0;
    /* OpenAI nests the schema; llama.cpp takes it as {"type": "json_object", "schema": ...} */
    schema = cJSON_GetObjectItemCaseSensitive(inner, "schema");
    if (!schema)
        schema = cJSON_GetObjectItemCaseSensitive(v, "schema");
    if (type && strcmp(type, "json_object") == 0)
        return schema ? read_schema(r, schema, "response_format.schema", e)
                      : set(r, SHOAL_CONSTRAINT_JSON, "", "response_format", e);
    if (type && strcmp(type, "json_schema") == 0)
        return schema ? read_schema(r, schema, "response_format.json_schema.schema", e)
                      : fields_fail(e, "response_format.json_schema", "missing_required_parameter",
                                    "'response_format' has no 'json_schema' with a 'schema'");
    if (lenient)
        return 0;
    return fields_fail(e, "response_format", "invalid_value",
                       "'response_format.type' must be text, json_object or json_schema");
}

static int read_structured(struct request *r, const cJSON *v, struct fields_error *e)
{
    if (!v)
        return 0;
    if (!cJSON_IsObject(v))
        return fields_fail(e, "structured_outputs", "invalid_type",
                           "'structured_outputs' must be an object");
    int rc =
        read_schema(r, cJSON_GetObjectItemCaseSensitive(v, "json"), "structured_outputs.json", e);
    if (rc == 0)
        rc = read_text(r, SHOAL_CONSTRAINT_REGEX, cJSON_GetObjectItemCaseSensitive(v, "regex"),
                       "structured_outputs.regex", e);
    if (rc == 0)
        rc = read_choice(r, cJSON_GetObjectItemCaseSensitive(v, "choice"),
                         "structured_outputs.choice", e);
    if (rc == 0)
        rc = read_text(r, SHOAL_CONSTRAINT_GBNF, cJSON_GetObjectItemCaseSensitive(v, "grammar"),
                       "structured_outputs.grammar", e);
    if (rc == 0 && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(v, "json_object")))
        rc = set(r, SHOAL_CONSTRAINT_JSON, "", "structured_outputs.json_object", e);
    return rc;
}

int constraint_read(struct request *r, const struct constraint_fields *f, bool lenient,
                    struct fields_error *e)
{
    int rc = read_response_format(r, f->response_format, lenient, e);
    if (rc == 0)
        rc = read_text(r, SHOAL_CONSTRAINT_GBNF, f->grammar, "grammar", e);
    if (rc == 0)
        rc = read_schema(r, f->json_schema, "json_schema", e);
    if (rc == 0)
        rc = read_structured(r, f->structured_outputs, e);
    if (rc == 0)
        rc = read_schema(r, f->guided_json, "guided_json", e);
    if (rc == 0)
        rc = read_text(r, SHOAL_CONSTRAINT_REGEX, f->guided_regex, "guided_regex", e);
    if (rc == 0)
        rc = read_choice(r, f->guided_choice, "guided_choice", e);
    if (rc == 0)
        rc = read_text(r, SHOAL_CONSTRAINT_GBNF, f->guided_grammar, "guided_grammar", e);
    return rc;
}

int constraint_read_format(struct request *r, const cJSON *v, struct fields_error *e)
{
    if (cJSON_IsString(v) && strcmp(v->valuestring, "json") == 0)
        return set(r, SHOAL_CONSTRAINT_JSON, "", "format", e);
    if (cJSON_IsString(v) && v->valuestring[0])
        return fields_fail(e, "format", "invalid_value", "'format' must be \"json\" or a schema");
    if (!v || cJSON_IsString(v) || cJSON_IsNull(v) || (cJSON_IsObject(v) && !v->child))
        return 0;
    return read_schema(r, v, "format", e);
}
