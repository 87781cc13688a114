/* cmd_cluster_desired.c - shoal cluster desired: what the shoal should serve, and where. */
#include <stdio.h>
#include <string.h>

#include "base/bytes_text.h"
#include "cluster/control/bus.h"
#include "cluster/control/control_json.h"
#include "cluster/control/desired.h"
#include "cluster/control/desired_file.h"
#include "cluster/control/desired_store.h"
#include "cmd/cluster/cluster_opts.h"
#include "cmd/cluster/cluster_site.h"
#include "cmd/cmd.h"
#include "wire/json_out.h"

cmd_fn cmd_cluster_desired;

#define MAX_OUTPUT_BYTES ((size_t)256 << 20)

static const struct opts_def defs[] = {
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read a member's snapshot instead of asking NATS"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page page = {
    .command = "cluster desired",
    .arguments = "",
    .summary = "Shows the desired state: models, the nodes that hold them, rollouts, policy.",
    .details = "The state is in NATS.  Every member keeps the last one it saw in a file and uses "
               "it\nwhile NATS is down; --file shows such a file.",
    .groups = {OPTS_GROUP("Options", defs), &cluster_opts_nats},
    .examples = "  shoal cluster desired\n"
                "  shoal cluster desired --nats nats://10.0.0.1:4222 --json\n"
                "  shoal cluster desired --file /var/lib/shoal/desired\n",
};

static int load(struct desired **d, const struct opts *o)
{
    const char *file = opts_text(o, "file");
    struct desired_store_opts so = {0};
    struct desired_store *s = NULL;
    struct err e = {0};
    int rc;
    *d = NULL;
    if (file)
        return desired_file_read(d, file, &e) < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
    rc = cluster_opts_connect(&so.bus, o, NULL);
    if (rc != CMD_OK)
        return rc;
    so.wait_ms = cluster_site_wait_ms(o);
    so.retry_ms = opts_u32(o, "timeout") * 1000;
    int failed = desired_store_open(&s, &so, NULL, NULL, NULL, &e);
    if (failed == 0)
        failed = cluster_site_read(s, o, d, &e);
    if (failed == SHOAL_ENOTFOUND)
        rc = cmd_fail(o->page,
                      "the shoal '%s' has no desired state yet: the first change creates it, or "
                      "the name is wrong (--cluster)",
                      bus_cluster(so.bus));
    else if (failed < 0)
        rc = cmd_fail(o->page, "%s", e.msg);
    desired_store_close(s);
    bus_close(so.bus);
    return rc;
}

static void put_model(struct buf *b, const struct desired *d, const struct desired_model *m)
{
    char memory[32], hex[2 * SHA256_BYTES + 1];
    const char *sep = "";
    sha256_hex(hex, m->sha256);
    buf_printf(b, "%-24s %.12s %10s %4u-%-4u ", m->name, hex,
               bytes_text(memory, (double)m->memory_bytes), m->replicas_min, m->replicas_max);
    for (uint32_t i = 0; i < d->n_assignments; i++) {
        const struct desired_assignment *a = &d->assignments[i];
        if (strcmp(a->model, m->name) != 0)
            continue;
        sha256_hex(hex, a->sha256);
        buf_printf(b, "%s%s", sep, a->node);
        if (a->copies > 1)
            buf_printf(b, " (%u replicas)", a->copies);
        if (memcmp(a->sha256, m->sha256, SHA256_BYTES) != 0)
            buf_printf(b, " (version %.12s)", hex);
        if (a->duty != DESIRED_SERVE)
            buf_printf(b, " (%s)", desired_duty_text(a->duty));
        sep = ", ";
    }
    buf_puts(b, sep[0] ? "\n" : "-\n");
}

static void put_table(struct buf *b, const struct desired *d)
{
    buf_printf(b, "version %llu, epoch %llu, fence %llu, revision %llu in NATS\n",
               (unsigned long long)d->version, (unsigned long long)d->epoch,
               (unsigned long long)d->fence, (unsigned long long)d->revision);
    if (d->n_models)
        buf_printf(b, "\n%-24s %-12s %10s %-9s %s\n", "MODEL", "SHA-256", "MEMORY", "REPLICAS",
                   "NODES");
    else
        buf_puts(b, "no models\n");
    for (uint32_t i = 0; i < d->n_models; i++)
        put_model(b, d, &d->models[i]);
    for (uint32_t i = 0; i < d->n_rollouts; i++) {
        const struct desired_rollout *r = &d->rollouts[i];
        char from[2 * SHA256_BYTES + 1], to[2 * SHA256_BYTES + 1];
        sha256_hex(from, r->from);
        sha256_hex(to, r->to);
        buf_printf(b, "%srollout %s: %s, %s, %.12s to %.12s, %s, %.1f %%\n", i ? "" : "\n", r->id,
                   r->model, desired_rollout_kind_text(r->kind), from, to,
                   desired_rollout_state_text(r->state), r->share / 10.0);
    }
    for (uint32_t i = 0; i < d->drained.n; i++)
        buf_printf(b, "%s%s%s", i ? ", " : "\ndrained: ", d->drained.items[i],
                   i + 1 == d->drained.n ? "\n" : "");
}

int cmd_cluster_desired(int argc, const char *const *argv)
{
    struct desired *d = NULL;
    struct buf b;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = load(&d, &o);
    buf_init(&b, MAX_OUTPUT_BYTES);
    if (rc == CMD_OK) {
        if (opts_flag(&o, "json")) {
            struct json_out j = json_out_make(&b);
            control_json_desired(&j, d);
            buf_putc(&b, '\n');
        } else {
            put_table(&b, d);
        }
        rc = cmd_print(&page, &b);
    }
    buf_fini(&b);
    desired_destroy(d);
    opts_fini(&o);
    return rc;
}
