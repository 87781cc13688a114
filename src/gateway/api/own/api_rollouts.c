/* api_rollouts.c - rollouts of the shoal's models: in /v1/cluster, and /admin/rollouts to pause,
 * promote and undo them. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/control/control.h"
#include "cluster/control/control_json.h"
#include "cluster/control/desired.h"
#include "cluster/join.h"
#include "cluster/rollout/rollout.h"
#include "cluster/rollout/rollout_admin.h"
#include "gateway/api/api.h"
#include "gateway/call/call.h"
#include "wire/json_out.h"

#define N_LAST 5u /* number of finished ones shown */

struct body {
    const char *rollout, *action;
};

#define AT(member) offsetof(struct body, member)
const struct field api_rollout_fields[] = {
    {"rollout", FIELD_STR, AT(rollout), 0, 0, "id of a rollout, or the name of its model", NULL},
    {"action", FIELD_STR, AT(action), 0, 0, "pause, promote or undo", NULL}};
const size_t api_n_rollout_fields = sizeof(api_rollout_fields) / sizeof(api_rollout_fields[0]);

/* ---- showing ---- */

static void put_all(void *ctx, const struct desired *d)
{
    struct json_out *j = ctx;
    uint32_t over = 0;
    for (uint32_t i = 0; i < d->n_rollouts; i++)
        over += !rollout_active(&d->rollouts[i]);
    for (uint32_t i = 0; i < d->n_rollouts; i++) {
        const struct desired_rollout *r = &d->rollouts[i];
        if (rollout_active(r) || over-- <= N_LAST)
            control_json_rollout(j, r);
    }
}

void api_rollouts_put(struct json_out *j, const struct call *c)
{
    json_out_member_array(j, "rollouts");
    if (c->gl->gw->join)
        join_with_desired(c->gl->gw->join, put_all, j);
    json_out_array_end(j);
}

/* ---- changing ---- */

struct wish {
    struct control_change change;
    enum rollout_action action;
    char name[DESIRED_MAX_NAME + 1];
    struct call *call; /* held; it is answered on its own thread */
    struct executor_task answer;
    int rc;
    struct err error;
};

static int apply(void *ctx, struct desired *d, struct err *e)
{
    const struct wish *w = ctx;
    const struct desired_rollout *r;
    return rollout_admin_act(d, w->name, w->action, "the page", clock_unix_ms(), &r, e);
}

static void on_answer(struct executor_task *t)
{
    struct wish *w = EXECUTOR_OF(t, struct wish, answer);
    struct call *c = w->call;
    if (c->req && (w->rc == SHOAL_ENOTFOUND || w->rc == SHOAL_EINVAL)) {
        call_fail(c, w->rc == SHOAL_ENOTFOUND ? 404 : 409, NULL, "rollout", "not_possible", "%s",
                  w->error.msg);
    } else if (c->req && w->rc < 0) {
        call_fail_code(c, w->rc, w->error.msg);
    } else if (c->req) {
        struct json_out j = json_out_make(&c->out);
        json_out_object(&j);
        json_out_member_str(&j, "rollout", w->name);
        json_out_member_bool(&j, "accepted", true);
        json_out_object_end(&j);
        call_json(c, 202);
    }
    mem_free(w);
    call_release(c);
}

/* The stored state was changed, or not: this member's copy may be outdated. */
static void on_done(struct control_change *change, int rc, const struct err *e)
{
    struct wish *w = change->ctx;
    w->rc = rc;
    if (rc < 0) {
        w->error = *e;
        log_warn("gateway", "rollout %s was not changed: %s", w->name, e->msg);
    }
    executor_post(w->call->gl->flow.executor, &w->answer);
}

static bool read_action(enum rollout_action *out, const char *word)
{
    static const char *const words[] = {"pause", "promote", "undo"};
    for (int i = 0; i < 3; i++)
        if (strcmp(words[i], word) == 0) {
            *out = (enum rollout_action)i;
            return true;
        }
    return false;
}

static void submit(struct call *c, const struct wish *wish)
{
    struct join *join = c->gl->gw->join;
    struct err e = {0};
    struct wish *w = join ? mem_alloc(sizeof(*w)) : NULL;
    if (!w) {
        if (join)
            call_fail_code(c, SHOAL_ENOMEM, "out of memory");
        else
            call_fail(c, 404, NULL, "rollout", "not_possible",
                      "this member has no rollouts: it has not joined a shoal");
        return;
    }
    *w = *wish;
    w->call = c;
    w->answer.fn = on_answer;
    w->change = (struct control_change){.fn = apply, .done = on_done, .ctx = w};
    call_hold(c);
    int rc = join_submit(join, &w->change, &e);
    if (rc < 0) {
        mem_free(w);
        call_fail_code(c, rc, e.msg);
        call_release(c);
    }
}

void api_rollouts_change(struct call *c)
{
    struct body b = {.rollout = NULL};
    struct fields_error fe = {{0}, {0}, NULL};
    struct wish w = {.action = ROLLOUT_PAUSE};
    int rc = fields_read(api_rollout_fields, api_n_rollout_fields, c->json, &b, c->lenient, &fe);
    if (rc == 0 && (!b.rollout || !b.action))
        rc = fields_fail(&fe, b.rollout ? "action" : "rollout", "missing_required_parameter",
                         "'rollout' and 'action' are required");
    else if (rc == 0 && (strlen(b.rollout) > DESIRED_MAX_NAME || !read_action(&w.action, b.action)))
        rc = fields_fail(&fe, "action", "invalid_value", "'action' must be pause, promote or undo");
    if (rc < 0) {
        call_fail_fields(c, &fe);
        return;
    }
    memcpy(w.name, b.rollout, strlen(b.rollout) + 1);
    submit(c, &w);
}
