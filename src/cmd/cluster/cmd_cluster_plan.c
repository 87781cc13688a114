/* cmd_cluster_plan.c - shoal cluster plan: what the controller would move, and why. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "cluster/control/desired.h"
#include "cluster/controller/controller_input.h"
#include "cluster/controller/controller_view.h"
#include "cluster/placement/placement.h"
#include "cmd/cluster/cluster_site.h"
#include "cmd/cluster/cluster_opts.h"
#include "cmd/cmd.h"
#include "wire/json_out.h"

cmd_fn cmd_cluster_plan;

#define MAX_OUTPUT_BYTES ((size_t)256 << 20)
#define MAX_INPUT_BYTES ((size_t)1 << 30)

static const struct opts_def defs[] = {
    {"drain", 0, OPTS_LIST, "NODE", NULL, 0, 0, "as if this node were drained; may be repeated"},
    {"without", 0, OPTS_LIST, "NODE", NULL, 0, 0, "as if this node were gone; may be repeated"},
    {"replicas", 0, OPTS_LIST, "MODEL=N", NULL, 0, 0,
     "as if the model had this many replicas; may be repeated"},
    {"listen", 0, OPTS_UINT, "MS", "1500", 100, 60000, "how long to listen to heartbeats"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page page = {
    .command = "cluster plan",
    .arguments = "",
    .summary = "Shows what the controller would load, unload and move, and why; changes nothing.",
    .details = "It reads the desired state, listens to the nodes, and plans with the controller's "
               "own code.\nSteps of one wave run together; the next wave starts when the nodes "
               "report the last one as done.\nExit code 3: some replica does not fit anywhere.",
    .groups = {OPTS_GROUP("Options", defs), &cluster_opts_nats},
    .examples = "  shoal cluster plan\n"
                "  shoal cluster plan --drain hub2\n"
                "  shoal cluster plan --without hub1 --replicas reply=3 --json\n",
};

/* ---- what if ---- */

static int suppose_replicas(struct desired *d, const struct opts *o)
{
    const char *const *list;
    size_t n = opts_list(o, "replicas", &list);
    for (size_t i = 0; i < n; i++) {
        char name[DESIRED_MAX_NAME + 1];
        unsigned count;
        const char *eq = strrchr(list[i], '=');
        if (!eq || eq == list[i] || (size_t)(eq - list[i]) >= sizeof(name) ||
            sscanf(eq + 1, "%u", &count) != 1 || count > 65536)
            return opts_usage(o->page, "--replicas needs MODEL=N, not %s", list[i]);
        snprintf(name, sizeof(name), "%.*s", (int)(eq - list[i]), list[i]);
        struct desired_model *m = desired_find_model(d, name);
        if (!m)
            return cmd_fail(o->page, "the shoal has no model '%s'", name);
        m->replicas_min = m->replicas_max = m->replicas_want = count;
    }
    return CMD_OK;
}

static int suppose(struct desired *d, struct controller_snapshot *s, const struct opts *o)
{
    const char *const *list;
    size_t n = opts_list(o, "drain", &list);
    for (size_t i = 0; i < n; i++)
        if (!controller_snapshot_node(s, list[i]))
            return cmd_fail(o->page, "no node '%s' is heard", list[i]);
        else if (desired_set_drained(d, list[i], true) < 0)
            return cmd_fail(o->page, "out of memory");
    n = opts_list(o, "without", &list);
    for (size_t i = 0; i < n; i++)
        if (controller_snapshot_remove(s, list[i]) < 0)
            return cmd_fail(o->page, "no node '%s' is heard", list[i]);
    return suppose_replicas(d, o);
}

/* ---- output ---- */

static void put_text(struct buf *b, const struct placement_plan *p,
                     const struct placement_input *in)
{
    buf_printf(b, "%zu node%s, %zu model%s: %u to load, %u to unload (%u move%s)\n", in->n_nodes,
               in->n_nodes == 1 ? "" : "s", in->n_models, in->n_models == 1 ? "" : "s", p->n_loads,
               p->n_unloads, p->n_moves, p->n_moves == 1 ? "" : "s");
    if (p->n_steps > 0)
        buf_printf(b, "\n%-4s  %-6s  %-24s  %-24s  %s\n", "WAVE", "STEP", "MODEL", "NODE", "WHY");
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct placement_step *s = &p->steps[i];
        buf_printf(b, "%-4u  %-6s  %-24s  %-24s  %s\n", s->wave + 1,
                   s->action == PLACEMENT_LOAD ? "load" : "unload", s->model_name, s->node_name,
                   s->reason);
    }
    for (size_t i = 0; i < p->n_gaps; i++)
        buf_printf(b, "%sno place: %s, %u missing: %s\n", i ? "" : "\n",
                   in->models[p->gaps[i].model].name, p->gaps[i].n_missing, p->gaps[i].reason);
}

static void put_str(struct json_out *j, const char *key, const char *value)
{
    json_out_member_str(j, key, value);
}

static void put_uint(struct json_out *j, const char *key, uint64_t value)
{
    json_out_member_uint(j, key, value);
}

static void put_json(struct buf *b, const struct placement_plan *p,
                     const struct placement_input *in)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    put_uint(&j, "nodes", in->n_nodes);
    put_uint(&j, "models", in->n_models);
    put_uint(&j, "moves", p->n_moves);
    json_out_member_array(&j, "steps");
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct placement_step *s = &p->steps[i];
        json_out_object(&j);
        put_uint(&j, "wave", s->wave);
        put_str(&j, "action", s->action == PLACEMENT_LOAD ? "load" : "unload");
        put_str(&j, "model", s->model_name);
        put_str(&j, "node", s->node_name);
        put_str(&j, "reason", s->reason);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_member_array(&j, "gaps");
    for (size_t i = 0; i < p->n_gaps; i++) {
        json_out_object(&j);
        put_str(&j, "model", in->models[p->gaps[i].model].name);
        put_uint(&j, "missing", p->gaps[i].n_missing);
        put_str(&j, "reason", p->gaps[i].reason);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static int show(const struct opts *o, const struct desired *d, const struct controller_snapshot *s)
{
    struct placement_plan *p = NULL;
    struct placement_input in;
    struct err e = {0};
    struct arena a;
    struct buf b;
    int rc = CMD_OK;
    arena_init(&a, MAX_INPUT_BYTES);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (controller_input_make(&in, d, s, NULL, &a, &e) < 0 || placement_plan(&p, &in, &e) < 0) {
        rc = cmd_fail(o->page, "%s", e.msg);
    } else {
        if (opts_flag(o, "json"))
            put_json(&b, p, &in);
        else
            put_text(&b, p, &in);
        rc = cmd_print(o->page, &b);
        if (rc == CMD_OK && p->n_gaps > 0)
            rc = CMD_NOT_WELL;
    }
    placement_destroy(p);
    buf_fini(&b);
    arena_fini(&a);
    return rc;
}

int cmd_cluster_plan(int argc, const char *const *argv)
{
    struct controller_snapshot *now = NULL;
    struct cluster_site s;
    struct desired *d = NULL;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = cluster_site_open(&s, &o, true);
    if (rc == CMD_OK)
        rc = cluster_site_load(&s, &d);
    if (rc == CMD_OK)
        rc = cluster_site_look(&s, opts_u32(&o, "listen"), d, &now);
    if (rc == CMD_OK)
        rc = suppose(d, now, &o);
    if (rc == CMD_OK)
        rc = show(&o, d, now);
    controller_snapshot_free(now);
    desired_destroy(d);
    cluster_site_close(&s);
    opts_fini(&o);
    return rc;
}
