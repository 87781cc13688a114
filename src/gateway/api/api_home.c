/* api_home.c - /v1/home: the things that /v1/process knows, and another home at run time. */
#include "flow/home/home_file_read.h"
#include "flow/home/home_things.h"
#include "gateway/api/api.h"
#include "gateway/call.h"

static bool has_home(struct call *c)
{
    if (c->gl->gw->things)
        return true;
    call_fail(c, 404, NULL, NULL, "home_not_found",
              "this server has no home: it needs the models that come with Shoal, or 'home' in its "
              "configuration");
    return false;
}

void api_home(struct call *c)
{
    if (!has_home(c))
        return;
    struct json_out j = json_out_make(&c->out);
    json_out_object(&j);
    home_things_json(&j, c->gl->gw->things);
    json_out_object_end(&j);
    call_json(c, 200);
}

void api_home_change(struct call *c)
{
    struct gw *gw = c->gl->gw;
    struct home_file *f;
    struct err e = {0};
    if (!has_home(c))
        return;
    if (!c->req->body || c->req->body_bytes == 0) {
        call_fail(c, 400, NULL, NULL, "missing_required_parameter",
                  "the body is empty: send a home file, as YAML or JSON");
        return;
    }
    int rc = home_file_read_text(&f, gw->home, c->req->body, c->req->body_bytes, "body", &e);
    if (rc == SHOAL_EFORMAT || rc == SHOAL_ELIMIT) {
        call_fail(c, rc == SHOAL_ELIMIT ? 413 : 400, NULL, NULL, "invalid_home", "%s", e.msg);
        return;
    }
    if (rc < 0) {
        call_fail_code(c, rc, e.msg);
        return;
    }
    home_things_set_file(gw->things, f);
    home_file_unref(f);
    api_home(c);
}
