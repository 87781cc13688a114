/* api_demo.c - /v1/demo: the simulated plant of `make run`, whose bearing can be broken and
 * repaired.
 */
#include "gateway/api/api.h"
#include "gateway/call/call.h"
#include "site/things/demo.h"

struct body {
    bool broken;
};

const struct field api_demo_fields[] = {{"broken", FIELD_BOOL, offsetof(struct body, broken), 0, 0,
                                         "whether the bearing of motor 3 is broken", NULL}};
const size_t api_n_demo_fields = sizeof(api_demo_fields) / sizeof(api_demo_fields[0]);

static bool has_demo(struct call *c)
{
    if (c->gl->gw->demo)
        return true;
    call_fail(c, 404, NULL, NULL, NULL,
              "no plant is simulated here: `make run` has one, or set 'demo' in the configuration");
    return false;
}

void api_demo(struct call *c)
{
    if (!has_demo(c))
        return;
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    json_out_member_bool(&j, "broken", demo_broken(c->gl->gw->demo));
    json_out_object_end(&j);
    call_json(c, 200);
}

void api_demo_change(struct call *c)
{
    struct body b = {.broken = false};
    struct fields_error fe = {{0}, {0}, NULL};
    struct err e = {0};
    if (!has_demo(c))
        return;
    int rc = fields_read(api_demo_fields, api_n_demo_fields, c->json, &b, c->lenient, &fe);
    if (rc == 0 && !cJSON_HasObjectItem(c->json, "broken"))
        rc = fields_fail(&fe, "broken", "missing_required_parameter",
                         "'broken' is missing: true or false");
    if (rc < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    rc = demo_set(c->gl->gw->demo, b.broken, &e);
    if (rc < 0)
        call_fail_code(c, rc, e.msg);
    else
        api_demo(c);
}
