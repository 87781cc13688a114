/* constraint_parts.c - see constraint_parts.h. */
#include "flow/tools/constraint_parts.h"

#include "base/buf.h"
#include "wire/json_out.h"
#include "wire/value_json.h"

#define MAX_BYTES ((size_t)256 << 10) /* as much as the engine takes */

static void put_text(struct json_out *j, const char *key, const char *text)
{
    if (text && *text)
        json_out_member_str(j, key, text);
}

static void put_part(struct json_out *j, const struct constraint_part *p)
{
    json_out_object(j);
    put_text(j, "begin", p->begin);
    put_text(j, "begin_token", p->begin_token);
    put_text(j, "end", p->end);
    json_out_key(j, "schema");
    value_json_put(j, &p->schema);
    json_out_object_end(j);
}

int constraint_parts_set(struct request *r, const struct constraint_parts *p, struct err *e)
{
    struct request_constraint *c = &r->generate.constraint;
    struct buf b;
    int rc = 0;
    buf_init(&b, MAX_BYTES);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_member_array(&j, "parts");
    for (uint32_t i = 0; i < p->n; i++)
        put_part(&j, &p->list[i]);
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
