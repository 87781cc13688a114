/* cmd_cluster_drain.c - shoal cluster drain and undrain: takes a node out of service and back. */
#include <string.h>

#include "cluster/control/desired.h"
#include "cluster/controller/controller_view.h"
#include "cluster/messages/node_state.h"
#include "cmd/cluster/cluster_site.h"
#include "cmd/cluster/cluster_opts.h"
#include "cmd/cmd.h"
#include "wire/json_out.h"

cmd_fn cmd_cluster_drain, cmd_cluster_undrain;

#define LOOK_MS 500u
#define FIRST_LOOK_MS 1500u

static const struct opts_def drain_defs[] = {
    {"wait", 0, OPTS_UINT, "S", "600", 0, 86400, "wait this many seconds for it to become empty"},
    {"force", 0, OPTS_FLAG, NULL, NULL, 0, 0, "even if the node is silent"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON, one object a line"},
};
static const struct opts_def undrain_defs[] = {
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page drain_page = {
    .command = "cluster drain",
    .arguments = "NODE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Drains a node: its models move to other nodes, its requests are finished.",
    .details = "The controller first loads the models on other nodes.  Then this node accepts no "
               "new requests,\nand unloads a model when its last request is done.  Exit code 0: "
               "the node is empty and may be\nswitched off.  3: it is still draining; repeat "
               "'shoal cluster drain' to wait longer.",
    .groups = {OPTS_GROUP("Options", drain_defs), &cluster_opts_nats},
    .examples = "  shoal cluster drain hub2\n"
                "  shoal cluster drain hub2 --wait 0\n",
};
static const struct opts_page undrain_page = {
    .command = "cluster undrain",
    .arguments = "NODE",
    .min_args = 1,
    .max_args = 1,
    .summary = "Returns a drained node to service.",
    .groups = {OPTS_GROUP("Options", undrain_defs), &cluster_opts_nats},
    .examples = "  shoal cluster undrain hub2\n",
};

struct mark {
    const char *node;
    bool drained;
};

static int set_mark(void *ctx, struct desired *d, struct err *e)
{
    const struct mark *m = ctx;
    if (!desired_name_ok(m->node))
        return err_set(e, SHOAL_EINVAL, "'%.127s' is not a valid name for a node", m->node);
    if (desired_is_drained(d, m->node) == m->drained)
        return 1;
    int rc = desired_set_drained(d, m->node, m->drained);
    return rc < 0 ? err_set(e, rc, "drained nodes") : 0;
}

/* ---- progress ---- */

struct left { /* on the node */
    uint32_t n_models, n_assigned, n_requests;
    bool heard, aside, empty;
};

static struct left look_at(const struct desired *d, const struct controller_snapshot *s,
                           const char *name)
{
    const struct node_state *n = controller_snapshot_node(s, name);
    struct left l = {.heard = n != NULL, .aside = n && n->draining};
    for (uint32_t i = 0; i < d->n_assignments; i++)
        l.n_assigned += strcmp(d->assignments[i].node, name) == 0;
    for (uint32_t i = 0; n && i < n->n_models; i++) {
        l.n_models += n->models[i].duty != 0;
        l.n_requests += n->models[i].in_flight;
    }
    l.empty = l.n_assigned == 0 && (!l.heard || (l.aside && !l.n_models && !l.n_requests));
    if (l.n_assigned > l.n_models)
        l.n_models = l.n_assigned;
    return l;
}

static bool same(const struct left *a, const struct left *b)
{
    return a->n_models == b->n_models && a->n_requests == b->n_requests && a->heard == b->heard &&
           a->aside == b->aside && a->empty == b->empty;
}

static int print_left(const struct opts *o, const struct left *l)
{
    struct buf b;
    buf_init(&b, 4096);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_str(&j, "node", o->args[0]);
        json_out_member_bool(&j, "empty", l->empty);
        json_out_member_bool(&j, "heard", l->heard);
        json_out_member_uint(&j, "models", l->n_models);
        json_out_member_uint(&j, "requests", l->n_requests);
        json_out_object_end(&j);
    } else if (l->empty) {
        buf_printf(&b, "%s is empty%s", o->args[0], l->heard ? "" : ": it is silent");
    } else {
        buf_printf(&b, "%s: %u model%s, %u request%s left%s", o->args[0], l->n_models,
                   l->n_models == 1 ? "" : "s", l->n_requests, l->n_requests == 1 ? "" : "s",
                   l->aside ? ", accepts no new ones" : "");
    }
    buf_putc(&b, '\n');
    return cmd_print_end(o->page, &b);
}

static int wait_empty(struct cluster_site *s)
{
    const struct opts *o = s->o;
    uint64_t wait = (uint64_t)opts_u32(o, "wait") * 1000;
    struct left was = {.n_models = UINT32_MAX};
    for (uint64_t ms = 0;; ms += LOOK_MS) {
        struct controller_snapshot *now = NULL;
        struct desired *d = NULL;
        struct left l = {0};
        int rc = cluster_site_load(s, &d);
        if (rc == CMD_OK)
            rc = cluster_site_look(s, LOOK_MS, d, &now);
        if (rc == CMD_OK)
            l = look_at(d, now, o->args[0]);
        controller_snapshot_free(now);
        desired_destroy(d);
        if (rc == CMD_OK && !same(&l, &was))
            rc = print_left(o, &l);
        was = l;
        if (rc != CMD_OK || l.empty)
            return rc;
        if (ms >= wait)
            return CMD_NOT_WELL;
    }
}

/* A mistyped name would be drained without anybody noticing. */
static int check_heard(struct cluster_site *s)
{
    struct controller_snapshot *now = NULL;
    struct desired *d = NULL;
    int rc = cluster_site_load(s, &d);
    if (rc == CMD_OK)
        rc = cluster_site_look(s, FIRST_LOOK_MS, d, &now);
    if (rc == CMD_OK && !opts_flag(s->o, "force") &&
        !controller_snapshot_node(now, s->o->args[0]) && !desired_is_drained(d, s->o->args[0]))
        rc = cmd_fail(s->o->page, "node '%s' is silent; use --force to drain it anyway",
                      s->o->args[0]);
    controller_snapshot_free(now);
    desired_destroy(d);
    return rc;
}

int cmd_cluster_drain(int argc, const char *const *argv)
{
    struct cluster_site s;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &drain_page, argc, argv, &rc))
        return rc;
    struct mark m = {o.args[0], true};
    rc = cluster_site_open(&s, &o, true);
    if (rc == CMD_OK)
        rc = check_heard(&s);
    if (rc == CMD_OK)
        rc = cluster_site_change(&s, set_mark, &m, NULL);
    if (rc == CMD_OK)
        rc = wait_empty(&s);
    cluster_site_close(&s);
    opts_fini(&o);
    return rc;
}

int cmd_cluster_undrain(int argc, const char *const *argv)
{
    struct cluster_site s;
    struct opts o;
    struct buf b;
    int rc;
    if (!cmd_begin(&o, &undrain_page, argc, argv, &rc))
        return rc;
    struct mark m = {o.args[0], false};
    rc = cluster_site_open(&s, &o, false);
    if (rc == CMD_OK)
        rc = cluster_site_change(&s, set_mark, &m, NULL);
    buf_init(&b, 4096);
    if (rc == CMD_OK) {
        struct json_out j = json_out_make(&b);
        if (opts_flag(&o, "json")) {
            json_out_object(&j);
            json_out_member_str(&j, "undrained", o.args[0]);
            json_out_object_end(&j);
        } else {
            buf_printf(&b, "%s is back in service", o.args[0]);
        }
        buf_putc(&b, '\n');
        rc = cmd_print(&undrain_page, &b);
    }
    buf_fini(&b);
    cluster_site_close(&s);
    opts_fini(&o);
    return rc;
}
