/* openapi.c - /openapi.json, written from the table of routes and their fields: it documents
 * exactly what the server checks. */
#include <ctype.h>
#include <string.h>

#include "gateway/api/api.h"
#include "gateway/call/call.h"
#include "wire/json_out.h"

static void put_field(struct json_out *j, const struct field *f)
{
    static const char *const names[] = {"boolean", "integer", "number", "string"};
    json_out_member_object(j, f->name);
    if (f->type <= FIELD_STR)
        json_out_member_str(j, "type", names[f->type]);
    if (f->type == FIELD_INT || f->type == FIELD_NUM) {
        json_out_member_num(j, "minimum", f->min);
        json_out_member_num(j, "maximum", f->max);
    }
    if (f->schema) { /* inlines its members next to the description */
        size_t n = strlen(f->schema);
        buf_put(j->b, f->schema + 1, n - 2);
        j->comma = n > 2;
    }
    if (f->help)
        json_out_member_str(j, "description", f->help);
    json_out_object_end(j);
}

static void put_body(struct json_out *j, const struct route *r)
{
    json_out_member_object(j, "requestBody");
    json_out_member_bool(j, "required", true);
    json_out_member_object(j, "content");
    json_out_member_object(j, "application/json");
    json_out_member_object(j, "schema");
    json_out_member_str(j, "type", "object");
    if (r->fields) {
        json_out_member_object(j, "properties");
        for (size_t i = 0; i < *r->n_fields; i++)
            if (r->fields[i].type != FIELD_UNBUILT)
                put_field(j, &r->fields[i]);
        json_out_object_end(j);
        json_out_member_bool(j, "additionalProperties", false);
    }
    for (int i = 0; i < 4; i++)
        json_out_object_end(j);
}

static void put_response(struct json_out *j, const char *status, const char *what)
{
    json_out_member_object(j, status);
    json_out_member_str(j, "description", what);
    json_out_object_end(j);
}

static void put_operation(struct json_out *j, const struct route *r)
{
    char method[8] = "";
    for (size_t i = 0; i < sizeof(method) - 1 && r->method[i]; i++)
        method[i] = (char)tolower((unsigned char)r->method[i]);
    json_out_member_object(j, method);
    json_out_member_str(j, "summary", r->summary);
    json_out_member_array(j, "tags");
    json_out_str(j, r->tag);
    json_out_array_end(j);
    if (strchr(r->path, '*')) {
        json_out_member_array(j, "parameters");
        json_out_object(j);
        json_out_member_str(j, "name", "name");
        json_out_member_str(j, "in", "path");
        json_out_member_bool(j, "required", true);
        json_out_member_object(j, "schema");
        json_out_member_str(j, "type", "string");
        json_out_object_end(j);
        json_out_object_end(j);
        json_out_array_end(j);
    }
    if (r->flags & ROUTE_JSON)
        put_body(j, r);
    json_out_member_object(j, "responses");
    put_response(j, "200", "the answer");
    if (r->flags & ROUTE_JSON)
        put_response(j, "400", "the request is invalid: error.param names the field");
    if (!(r->flags & ROUTE_OPEN))
        put_response(j, "401", "an API key is required");
    if (r->flags & ROUTE_WORK) {
        put_response(j, "429", "too many requests: see Retry-After");
        put_response(j, "503", "the model is being loaded: see Retry-After");
        put_response(j, "504", "the latency budget cannot be met, or was used up");
    }
    json_out_object_end(j);
    if (r->flags & ROUTE_OPEN) {
        json_out_member_array(j, "security");
        json_out_array_end(j);
    }
    json_out_object_end(j);
}

static void put_paths(struct json_out *j, const struct gw *gw)
{
    json_out_member_object(j, "paths");
    for (size_t i = 0; i < gw->n_routes; i++) {
        const struct route *r = &gw->routes[i];
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= strcmp(gw->routes[k].path, r->path) == 0;
        if (seen || strcmp(r->path, "/*") == 0)
            continue;
        struct buf path;
        buf_init(&path, 256);
        for (const char *p = r->path; *p; p++)
            buf_puts(&path, *p == '*' ? "{name}" : (const char[]){*p, '\0'});
        json_out_key(j, buf_str(&path));
        buf_fini(&path);
        json_out_object(j);
        for (size_t k = i; k < gw->n_routes; k++)
            if (strcmp(gw->routes[k].path, r->path) == 0)
                put_operation(j, &gw->routes[k]);
        json_out_object_end(j);
    }
    json_out_object_end(j);
}

void openapi_get(struct call *c)
{
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_str(&j, "openapi", "3.1.0");
    json_out_member_object(&j, "info");
    json_out_member_str(&j, "title", "Shoal");
    json_out_member_str(&j, "version", shoal_version());
    json_out_member_str(
        &j, "description",
        "Small language models on the machine you have. Unknown fields are refused unless "
        "'x-shoal-lenient: 1' is sent; 'x-latency-budget-ms' sets a deadline, 'x-session-id' "
        "names the session of a request, 'x-shoal-version' the SHA-256 of the model that must "
        "answer.");
    json_out_object_end(&j);
    json_out_key(&j, "components");
    buf_puts(j.b, "{\"securitySchemes\":{\"key\":{\"type\":\"http\",\"scheme\":\"bearer\"}}}");
    j.comma = true;
    json_out_key(&j, "security");
    buf_puts(j.b, "[{\"key\":[]}]");
    j.comma = true;
    put_paths(&j, c->gl->gw);
    json_out_object_end(&j);
    call_json(c, 200);
}
