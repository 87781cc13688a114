/* cmd_cluster_deploy.c - shoal cluster deploy and remove: which models the shoal serves. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/plural.h"
#include "cluster/control/desired.h"
#include "cluster/controller/controller_input.h"
#include "cluster/controller/controller_view.h"
#include "cluster/messages/node_state.h"
#include "cmd/cluster/cluster_site.h"
#include "cmd/cluster/cluster_opts.h"
#include "cmd/cmd.h"
#include "host/identity.h"
#include "host/pack.h"
#include "wire/json_out.h"

cmd_fn cmd_cluster_deploy, cmd_cluster_remove;

#define LOOK_MS 500u
#define PIN_LOOK_MS 1500u /* longer than the pause between two heartbeats */
#define MAX_ARGS 64u

static const struct opts_def defs[] = {
    {"file", 'f', OPTS_TEXT, "PATH", NULL, 0, 0,
     "model file or folder on this machine, for its SHA-256 and size"},
    {"sha256", 0, OPTS_TEXT, "HEX", NULL, 0, 0,
     "SHA-256 of the model; default: that of --file, or of the included model NAME"},
    {"source", 0, OPTS_TEXT, "URL", NULL, 0, 0,
     "where nodes fetch it from; default: from each other, or their own folders"},
    {"replicas", 'r', OPTS_UINT, "N", NULL, 0, 65536, "as --min N --max N"},
    {"min", 0, OPTS_UINT, "N", NULL, 0, 65536,
     "minimum number of replicas; 0: none while it is idle"},
    {"max", 0, OPTS_UINT, "N", NULL, 0, 65536,
     "maximum number of replicas; load decides between both"},
    {"standby", 0, OPTS_UINT, "N", NULL, 0, 65536, "additional loaded replicas"},
    {"per-node", 0, OPTS_UINT, "N", NULL, 1, DESIRED_MAX_PER_NODE,
     "replicas that one node may have when no other has room; default: 1"},
    {"idle", 0, OPTS_UINT, "S", NULL, 0, 4000000,
     "with --min 0: seconds without requests until no replica is left"},
    {"budget", 0, OPTS_UINT, "MS", NULL, 0, 4000000000.0,
     "latency target of a request, for autoscaling"},
    {"memory", 0, OPTS_UINT, "MIB", NULL, 1, 4000000,
     "memory it needs; default: estimated, then measured by nodes"},
};
static const struct opts_def place_defs[] = {
    {"pin", 0, OPTS_LIST, "NODE", NULL, 0, 0, "node that always has it; may be repeated"},
    {"unpin", 0, OPTS_LIST, "NODE", NULL, 0, 0,
     "node that no longer has to have it; may be repeated"},
    {"zone", 0, OPTS_LIST, "ZONE", NULL, 0, 0, "only nodes of this zone; may be repeated"},
    {"label", 0, OPTS_LIST, "LABEL", NULL, 0, 0,
     "only nodes with this label: gpu, site=hall-3; may be repeated"},
    {"not-label", 0, OPTS_LIST, "LABEL", NULL, 0, 0, "only nodes without this label"},
    {"max-per-zone", 0, OPTS_UINT, "N", NULL, 0, 65536,
     "maximum number of replicas in a zone; 0: any"},
    {"spread", 0, OPTS_FLAG, NULL, NULL, 0, 0, "prefer zones with few replicas of it"},
    {"apart", 0, OPTS_TEXT, "WORD", NULL, 0, 0,
     "never on the same node as models with the same word"},
    {"priority", 0, OPTS_REAL, "N", NULL, -1e9, 1e9, "higher ones are placed first; default: 0"},
};
static const struct opts_def out_defs[] = {
    {"wait", 0, OPTS_UINT, "S", "0", 0, 86400,
     "wait up to this many seconds until enough replicas are ready"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};

static const struct opts_page page = {
    .command = "cluster deploy",
    .arguments = "NAME",
    .min_args = 1,
    .max_args = 1,
    .summary = "Deploys a model to the shoal: the controller chooses nodes for it.",
    .details =
        "For a model that is already deployed, it changes the given settings and keeps the others. "
        " "
        "To change\nits bytes, use 'shoal rollout'.  Exit code 3: not enough replicas are ready "
        "after --wait, or a\npinned node does not have it; without --wait: a pinned node is "
        "not heard.",
    .groups = {OPTS_GROUP("Model", defs), OPTS_GROUP("Placement", place_defs),
               OPTS_GROUP("Output", out_defs), &cluster_opts_nats},
    .examples =
        "  shoal cluster deploy reply --replicas 2 --wait 60\n"
        "  shoal cluster deploy story --file stories15M.gguf --min 1 --max 4 --budget 800\n"
        "  shoal cluster deploy night --sha256 0123... --source http://depot/ --min 0 --max "
        "2 --idle 600\n",
};

static const struct opts_def remove_defs[] = {
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};
static const struct opts_page remove_page = {
    .command = "cluster remove",
    .arguments = "NAME",
    .min_args = 1,
    .max_args = 1,
    .summary = "Removes a model from the shoal; running requests are finished.",
    .groups = {OPTS_GROUP("Options", remove_defs), &cluster_opts_nats},
    .examples = "  shoal cluster remove story\n",
};

/* ---- which bytes ---- */

struct bytes {
    bool known;
    uint8_t sha256[SHA256_BYTES];
    uint64_t size; /* 0: not known */
};

static bool read_hex(uint8_t out[SHA256_BYTES], const char *hex)
{
    if (strlen(hex) != 2 * SHA256_BYTES)
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        unsigned v;
        if (!isxdigit((unsigned char)hex[2 * i]) || !isxdigit((unsigned char)hex[2 * i + 1]) ||
            sscanf(hex + 2 * i, "%2x", &v) != 1)
            return false;
        out[i] = (uint8_t)v;
    }
    return true;
}

static int read_file(struct bytes *out, const struct opts *o, const char *path)
{
    static const _Atomic bool never = false;
    struct identity_list *l = NULL;
    struct identity id;
    struct err e = {0};
    struct stat st;
    int rc = identity_list(&l, path, &e);
    if (rc == 0)
        rc = identity_read(&id, l, NULL, &never, &e);
    identity_list_free(l);
    if (rc < 0)
        return cmd_fail(o->page, "%s", e.msg);
    out->known = true;
    memcpy(out->sha256, id.sum, SHA256_BYTES);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        out->size = (uint64_t)st.st_size;
    return CMD_OK;
}

/* A model that comes with Shoal, if there is one of this name. */
static int read_included(struct bytes *out, const struct opts *o, const char *name)
{
    struct pack *p = NULL;
    struct err e = {0};
    int rc = CMD_OK;
    const struct pack_model *m = pack_open(&p, NULL, &e) == 0 ? pack_find(p, name) : NULL;
    if (m)
        rc = read_file(out, o, m->open);
    pack_close(p);
    return rc;
}

static int find_bytes(struct bytes *out, const struct opts *o)
{
    const char *hex = opts_text(o, "sha256"), *file = opts_text(o, "file");
    struct bytes given = {.known = false};
    *out = (struct bytes){.known = false};
    int rc = file ? read_file(out, o, file) : CMD_OK;
    if (rc != CMD_OK)
        return rc;
    if (hex && !read_hex(given.sha256, hex))
        return opts_usage(o->page, "--sha256 needs 64 hex digits");
    if (hex && file && memcmp(given.sha256, out->sha256, SHA256_BYTES) != 0)
        return cmd_fail(o->page, "%s does not have the SHA-256 %s", file, hex);
    if (hex) {
        memcpy(out->sha256, given.sha256, SHA256_BYTES);
        out->known = true;
    }
    return out->known ? CMD_OK : read_included(out, o, o->args[0]);
}

/* ---- the change ---- */

struct deploy {
    const struct opts *o;
    struct bytes bytes;
    const char *pins[MAX_ARGS];
};

static void set_names(struct desired_names *to, const struct opts *o, const char *option)
{
    const char *const *list;
    size_t n = opts_list(o, option, &list);
    if (n > 0)
        *to = (struct desired_names){(const char **)(uintptr_t)list, (uint32_t)n};
}

static bool is_in(const char *name, const struct opts *o, const char *option)
{
    const char *const *list;
    size_t n = opts_list(o, option, &list);
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* Pins that stay and new ones, in k->pins. */
static void set_pins(struct desired_names *to, struct deploy *k)
{
    const char *const *list;
    size_t n = opts_list(k->o, "pin", &list);
    uint32_t all = 0;
    for (uint32_t i = 0; i < to->n && all < MAX_ARGS; i++)
        if (!is_in(to->items[i], k->o, "unpin") && !is_in(to->items[i], k->o, "pin"))
            k->pins[all++] = to->items[i];
    if (n > 0 && !opts_given(k->o, "unpin"))
        all = 0; /* as before: the given ones replace the others */
    for (size_t i = 0; i < n && all < MAX_ARGS; i++)
        k->pins[all++] = list[i];
    *to = (struct desired_names){k->pins, all};
}

static void set_u32(uint32_t *to, const struct opts *o, const char *option)
{
    if (opts_given(o, option))
        *to = opts_u32(o, option);
}

static void set_counts(struct desired_model *m, const struct opts *o)
{
    if (opts_given(o, "replicas"))
        m->replicas_min = m->replicas_max = opts_u32(o, "replicas");
    set_u32(&m->replicas_min, o, "min");
    set_u32(&m->replicas_max, o, "max");
    if (m->replicas_max < m->replicas_min && !opts_given(o, "max"))
        m->replicas_max = m->replicas_min;
    if (m->replicas_min > m->replicas_max && !opts_given(o, "min"))
        m->replicas_min = m->replicas_max;
    uint32_t low = m->replicas_min ? m->replicas_min : m->replicas_max ? 1 : 0;
    if (m->replicas_want < low)
        m->replicas_want = low;
    if (m->replicas_want > m->replicas_max)
        m->replicas_want = m->replicas_max;
}

static int change(void *ctx, struct desired *d, struct err *e)
{
    struct deploy *k = ctx;
    const struct opts *o = k->o;
    const char *name = o->args[0];
    const struct desired_model *old = desired_find_model(d, name);
    struct desired_model m = {
        .name = name, .source = "", .apart = "", .replicas_min = 1, .replicas_max = 1};
    if (!desired_name_ok(name))
        return err_set(e, SHOAL_EINVAL, "'%.127s' is not a valid name for a model", name);
    if (old)
        m = *old;
    else if (!k->bytes.known)
        return err_set(e, SHOAL_EINVAL, "which model is '%.127s'? Use --file PATH or --sha256 HEX",
                       name);
    if (old && k->bytes.known && memcmp(old->sha256, k->bytes.sha256, SHA256_BYTES) != 0)
        return err_set(e, SHOAL_EINVAL,
                       "'%.127s' is already deployed with different bytes: use 'shoal rollout "
                       "start' to change "
                       "its version, or 'shoal cluster remove' it first",
                       name);
    if (!old)
        memcpy(m.sha256, k->bytes.sha256, SHA256_BYTES);
    if (!old && k->bytes.size) /* weights and room for a context, until a node says better */
        m.memory_bytes = k->bytes.size + k->bytes.size / 4 + ((uint64_t)32 << 20);
    if (opts_given(o, "memory"))
        m.memory_bytes = opts_uint(o, "memory") << 20;
    if (opts_text(o, "source"))
        m.source = opts_text(o, "source");
    if (opts_text(o, "apart"))
        m.apart = opts_text(o, "apart");
    set_counts(&m, o);
    set_u32(&m.standby, o, "standby");
    set_u32(&m.per_node, o, "per-node");
    set_u32(&m.budget_ms, o, "budget");
    if (opts_given(o, "idle"))
        m.idle_ms = opts_u32(o, "idle") * 1000;
    set_u32(&m.max_per_zone, o, "max-per-zone");
    set_pins(&m.pins, k);
    set_names(&m.zones, o, "zone");
    set_names(&m.labels, o, "label");
    set_names(&m.not_labels, o, "not-label");
    m.spread |= opts_flag(o, "spread");
    if (opts_given(o, "priority"))
        m.priority = (int32_t)opts_real(o, "priority");
    int rc = desired_put_model(d, &m);
    return rc < 0 ? err_set(e, rc, "model %.127s", name) : 0;
}

/* ---- waiting ---- */

static uint32_t n_ready(const struct controller_snapshot *s, const struct desired_model *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct node_model *h = controller_input_held(&s->nodes[i], m->name, m->sha256);
        if (h && h->state == REGISTRY_READY && h->duty != DESIRED_STAGE && h->duty != DESIRED_LEAVE)
            n += node_model_replicas(h);
    }
    return n;
}

/* A pinned node without it; NULL: all have it. */
static const char *unmet_pin(const struct controller_snapshot *s, const struct desired_model *m)
{
    for (uint32_t i = 0; i < m->pins.n; i++) {
        const struct node_state *n = controller_snapshot_node(s, m->pins.items[i]);
        const struct node_model *h = n ? controller_input_held(n, m->name, m->sha256) : NULL;
        if (!h || h->state != REGISTRY_READY)
            return m->pins.items[i];
    }
    return NULL;
}

/* Waits until enough replicas answer; ready: how many do. */
static int wait_ready(struct cluster_site *s, const struct desired *d, uint32_t *ready)
{
    const struct opts *o = s->o;
    const struct desired_model *m = desired_find_model(d, o->args[0]);
    uint32_t wait = opts_u32(o, "wait") * 1000, was = UINT32_MAX;
    const char *unmet = NULL;
    for (uint32_t ms = 0; m && ms <= wait; ms += LOOK_MS) {
        struct controller_snapshot *now = NULL;
        int rc = cluster_site_look(s, LOOK_MS, d, &now);
        if (rc != CMD_OK)
            return rc;
        *ready = n_ready(now, m);
        unmet = unmet_pin(now, m);
        controller_snapshot_free(now);
        if (*ready != was)
            fprintf(stderr, "%s: %u of %u replicas ready\n", m->name, *ready, m->replicas_want);
        was = *ready;
        if (*ready >= m->replicas_want && !unmet)
            return CMD_OK;
    }
    if (unmet)
        fprintf(stderr, "%s: the pinned node %s does not have it\n", m->name, unmet);
    return CMD_NOT_WELL;
}

/* Without --wait: whether the pinned nodes are there at all. */
static int check_pins(struct cluster_site *s, const struct desired *d)
{
    const struct desired_model *m = desired_find_model(d, s->o->args[0]);
    struct controller_snapshot *now = NULL;
    int rc = cluster_site_look(s, PIN_LOOK_MS, d, &now);
    for (uint32_t i = 0; rc == CMD_OK && m && i < m->pins.n; i++)
        if (!controller_snapshot_node(now, m->pins.items[i])) {
            fprintf(stderr, "%s: the pinned node %s is not heard\n", m->name, m->pins.items[i]);
            rc = CMD_NOT_WELL;
        }
    controller_snapshot_free(now);
    return rc;
}

static int print_model(const struct opts *o, const struct desired *d, bool waited, uint32_t ready)
{
    const struct desired_model *m = desired_find_model(d, o->args[0]);
    char hex[2 * SHA256_BYTES + 1];
    struct buf b;
    if (!m)
        return CMD_OK;
    sha256_hex(hex, m->sha256);
    buf_init(&b, 65536);
    if (opts_flag(o, "json")) {
        struct json_out j = json_out_make(&b);
        json_out_object(&j);
        json_out_member_str(&j, "model", m->name);
        json_out_member_str(&j, "sha256", hex);
        json_out_member_uint(&j, "version", d->version);
        json_out_member_uint(&j, "replicas", m->replicas_want);
        if (waited)
            json_out_member_uint(&j, "ready", ready);
        json_out_object_end(&j);
        buf_putc(&b, '\n');
    } else {
        buf_printf(&b, "%s %.12s: %u to %u replica%s, %u wanted now\n", m->name, hex,
                   m->replicas_min, m->replicas_max, plural(m->replicas_max), m->replicas_want);
    }
    return cmd_print_end(o->page, &b);
}

int cmd_cluster_deploy(int argc, const char *const *argv)
{
    struct deploy k = {0};
    struct cluster_site s;
    struct desired *d = NULL;
    struct opts o;
    uint32_t ready = 0;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    bool waits = opts_u32(&o, "wait") > 0, pins = opts_given(&o, "pin");
    k.o = &o;
    rc = cluster_opts_check_source(&o);
    if (rc == CMD_OK)
        rc = find_bytes(&k.bytes, &o);
    if (rc == CMD_OK) {
        rc = cluster_site_open(&s, &o, waits || pins);
        if (rc == CMD_OK)
            rc = cluster_site_change(&s, change, &k, &d);
        int waited = rc != CMD_OK ? rc
                     : waits      ? wait_ready(&s, d, &ready)
                     : pins       ? check_pins(&s, d)
                                  : CMD_OK;
        if (rc == CMD_OK)
            rc = print_model(&o, d, waits, ready);
        rc = rc == CMD_OK ? waited : rc;
        cluster_site_close(&s);
    }
    desired_destroy(d);
    opts_fini(&o);
    return rc;
}

/* ---- remove ---- */

static int take_out(void *ctx, struct desired *d, struct err *e)
{
    const char *name = ctx;
    if (!desired_find_model(d, name))
        return err_set(e, SHOAL_ENOTFOUND, "the shoal has no model '%.127s'", name);
    desired_remove_model(d, name);
    return 0;
}

int cmd_cluster_remove(int argc, const char *const *argv)
{
    struct cluster_site s;
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &remove_page, argc, argv, &rc))
        return rc;
    rc = cluster_site_open(&s, &o, false);
    if (rc == CMD_OK)
        rc = cluster_site_change(&s, take_out, (void *)(uintptr_t)o.args[0], NULL);
    if (rc == CMD_OK) {
        struct buf b;
        buf_init(&b, 4096);
        struct json_out j = json_out_make(&b);
        if (opts_flag(&o, "json")) {
            json_out_object(&j);
            json_out_member_str(&j, "removed", o.args[0]);
            json_out_object_end(&j);
            buf_putc(&b, '\n');
        } else {
            buf_printf(&b, "%s is removed\n", o.args[0]);
        }
        rc = cmd_print(&remove_page, &b);
        buf_fini(&b);
    }
    cluster_site_close(&s);
    opts_fini(&o);
    return rc;
}
