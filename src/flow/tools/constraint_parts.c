/* constraint_parts.c - see constraint_parts.h. */
#include "flow/tools/constraint_parts.h"

#include "base/buf.h"
#include "wire/json_in.h"
#include "wire/json_out.h"

#define MAX_BYTES ((size_t)256 << 10) /* as much as the engine takes */

static void put_text(struct json_out *j, const char *key, const char *text)
{
    if (text && *text)
        json_out_member_str(j, key, text);
}

static int put_part(struct json_out *j, const struct constraint_part *p, struct err *e)
{
    cJSON *schema = NULL;
    if (json_in_object(&schema, "schema", p->schema, p->schema_bytes, MAX_BYTES, NULL) < 0)
        return err_set(e, SHOAL_EINVAL, "a schema is not a JSON object");
    cJSON_Delete(schema);
    json_out_object(j);
    put_text(j, "begin", p->begin);
    put_text(j, "begin_token", p->begin_token);
    put_text(j, "end", p->end);
    json_out_key(j, "schema");
    json_out_raw(j, p->schema, p->schema_bytes);
    json_out_object_end(j);
    return 0;
}

int constraint_parts_set(struct request *r, const struct constraint_parts *p, struct err *e)
{
    struct request_constraint *c = &r->generate.constraint;
    struct buf b;
    int rc = 0;
    buf_init(&b, MAX_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_key(&j, "parts");
    json_out_array(&j);
    for (uint32_t i = 0; i < p->n && rc == 0; i++)
        rc = put_part(&j, &p->list[i], e);
    json_out_array_end(&j);
    json_out_member_uint(&j, "min", p->max > 0 ? p->min : 1);
    json_out_member_uint(&j, "max", p->max > 0 ? p->max : 1);
    put_text(&j, "before", p->before);
    put_text(&j, "before_token", p->before_token);
    put_text(&j, "between", p->between);
    put_text(&j, "after", p->after);
    put_text(&j, "trailing", p->trailing);
    put_text(&j, "trigger", p->trigger);
    json_out_object_end(&j);
    if (rc == 0 && b.rc < 0)
        rc = err_set(e, SHOAL_EINVAL, "the schemas have more than %zu bytes together", MAX_BYTES);
    if (rc == 0) {
        c->kind = SHOAL_CONSTRAINT_PARTS;
        c->text_bytes = b.len;
        c->text = request_copy(r, buf_str(&b), b.len);
        rc = request_rc(r);
    }
    buf_fini(&b);
    return rc;
}
