/* cmd_shard_plan.c - shoal shard plan: which nodes would compute which layers or rows of a model,
 * and how fast. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes_text.h"
#include "base/mem.h"
#include "base/membw.h"
#include "base/thread/crew.h"
#include "cluster/messages/node_state.h"
#include "cluster/node_machine.h"
#include "cluster/shard/shard_peer.h"
#include "cluster/shard/shard_plan.h"
#include "cluster/trust/cert.h"
#include "cmd/cmd.h"
#include "format/model_open.h"
#include "model/decoder.h"
#include "net/tls.h"

cmd_fn cmd_shard_plan;

#define MAX_NODES 64u
#define PROBE_BYTES ((size_t)64 << 20)
#define PROBE_MS 100u

static const struct opts_def defs[] = {
    {"node", 0, OPTS_LIST, "HOST:PORT", NULL, 0, 0, "a node to ask and to measure, repeatable"},
    {"certs", 0, OPTS_TEXT, "FOLDER", NULL, 0, 0,
     "certificate of an administrator or a node, for --node"},
    {"machine", 0, OPTS_LIST, "NAME,MIB,GB/S,MS,MBIT/S", NULL, 0, 0,
     "a machine to assume: memory for models, memory bandwidth, round trip and rate of the link; "
     "the first one has the engine"},
    {"shard", 0, OPTS_TEXT, "HOW", "auto", 0, 0,
     "as in the configuration: auto, layers:2..4, rows:2"},
    {"context", 0, OPTS_UINT, "N", "0", 0, 16777216, "tokens of the longest conversation"},
    {"parallel", 0, OPTS_UINT, "N", "8", 1, 1024, "requests at once"},
    {"explain", 0, OPTS_FLAG, NULL, NULL, 0, 0, "show all plans and what is known of the machines"},
};

static const struct opts_page page = {
    .command = "shard plan",
    .arguments = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "Shows which machines would compute which layers of a model, and how fast.",
    .details =
        "The machine that runs the command has the engine and the last layers, unless --machine "
        "describes\nall of them. Nothing is loaded and nothing changes.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples =
        "  shoal shard plan model.gguf --node 10.0.0.2:7600 --certs ca/members/admin --explain\n"
        "  shoal shard plan model.gguf --machine a,700,10,0,0 --machine b,500,8,1,1000\n",
};

struct planning {
    struct shard_plan_model model;
    struct shard_plan_node nodes[MAX_NODES];
    char names[MAX_NODES][64];
    uint32_t n_nodes;
};

/* ---- the model ---- */

static int read_model(struct planning *p, const struct opts *o, struct err *e)
{
    const struct decoder_opts d = {.n_ctx = opts_u32(o, "context"), .max_batch = 256};
    const uint64_t tasks = opts_uint(o, "parallel");
    struct model_file *file = NULL;
    struct decoder_costs c;
    struct decoder_sizes sizes;
    int rc = model_open(&file, o->args[0], e);
    if (rc == 0)
        rc = decoder_costs(&c, file, &d, e);
    if (rc == 0)
        rc = decoder_measure(&sizes, file, &d, e);
    model_file_close(file);
    if (rc < 0)
        return rc;
    /* as the engine reserves them: for half of the requests */
    const uint64_t pages = (sizes.n_ctx / KERN_PAGE + 2) * (tasks > 1 ? tasks / 2 : 1);
    p->model = (struct shard_plan_model){.n_layers = c.n_layers,
                                         .dim = c.dim,
                                         .layer_bytes = c.layer_bytes,
                                         .head_bytes = c.head_bytes,
                                         .kv_bytes = c.kv_page_bytes * pages,
                                         .scratch_bytes = sizes.scratch,
                                         .ffn_dim = c.ffn_dim,
                                         .rows = c.rows};
    return 0;
}

/* ---- the machines ---- */

static struct shard_plan_node *add(struct planning *p, const char *name)
{
    struct shard_plan_node *n = &p->nodes[p->n_nodes];
    snprintf(p->names[p->n_nodes], sizeof(p->names[0]), "%s", name);
    *n = (struct shard_plan_node){.name = p->names[p->n_nodes]};
    p->n_nodes++;
    return n;
}

static int assume(struct planning *p, const char *text, struct err *e)
{
    char name[64];
    double mib, gb, ms, mbit;
    int at = 0;
    if (sscanf(text, "%63[^,],%lf,%lf,%lf,%lf%n", name, &mib, &gb, &ms, &mbit, &at) != 5 ||
        text[at] ||
        !(mib > 0 && mib < 1e9 && gb >= 0 && gb < 1e6 && ms >= 0 && ms < 1e6 && mbit >= 0 &&
          mbit < 1e9))
        return err_set(e, SHOAL_EINVAL,
                       "\"%.80s\" is no machine: write NAME,MIB,GB/S,MS,MBIT/S, such as "
                       "b,500,8,1,1000",
                       text);
    struct shard_plan_node *n = add(p, name);
    n->memory_bytes = (uint64_t)(mib * 1048576);
    n->rate = gb * 1e9;
    n->rtt_s = ms / 1e3;
    n->link_rate = mbit * 125e3;
    return 0;
}

static void add_self(struct planning *p)
{
    struct node_state s = {.name = NULL};
    struct shard_plan_node *n = add(p, "this");
    void *memory = mem_pages(PROBE_BYTES);
    node_machine_fill(&s);
    n->memory_bytes = s.memory_free;
    if (memory) {
        memset(memory, 1, PROBE_BYTES);
        n->rate = membw_read(memory, PROBE_BYTES, crew_cores(), PROBE_MS) * 1e9;
        mem_pages_free(memory, PROBE_BYTES);
    }
}

static int measure(struct planning *p, const char *address, struct tls_client *tls, struct err *e)
{
    struct shard_peer peer;
    int rc = shard_peer_open(&peer, address, tls, e);
    if (rc == 0)
        rc = shard_peer_measure(&peer, e);
    if (rc == 0) {
        struct shard_plan_node *n = add(p, peer.name);
        n->memory_bytes = peer.memory_bytes;
        n->rate = (double)peer.rate;
        n->rtt_s = peer.rtt_s;
        n->link_rate = peer.link_rate;
    }
    shard_peer_close(&peer);
    return rc;
}

static int ask_nodes(struct planning *p, const char *const *list, size_t n, const char *certs,
                     struct err *e)
{
    struct cert_files f;
    struct tls_client *tls = NULL;
    if (!certs)
        return err_set(e, SHOAL_EINVAL, "--node needs --certs");
    int rc = cert_files_in(&f, certs, e);
    const struct tls_opts to = {
        .cert = f.cert, .key = f.key, .ca = f.ca, .crl = f.crl, .shard = true};
    if (rc == 0)
        rc = tls_client_open(&tls, &to, e);
    add_self(p);
    for (size_t i = 0; rc == 0 && i < n && p->n_nodes < MAX_NODES; i++)
        rc = measure(p, list[i], tls, e);
    tls_client_close(tls);
    return rc;
}

static int find_machines(struct planning *p, const struct opts *o, struct err *e)
{
    const char *const *nodes, *const *machines;
    const size_t n = opts_list(o, "node", &nodes), n_machines = opts_list(o, "machine", &machines);
    if (n > 0 && n_machines > 0)
        return err_set(e, SHOAL_EINVAL, "use either --node or --machine");
    if (n > 0)
        return ask_nodes(p, nodes, n, opts_text(o, "certs"), e);
    if (n_machines == 0)
        add_self(p);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n_machines && p->n_nodes < MAX_NODES; i++)
        rc = assume(p, machines[i], e);
    return rc;
}

/* ---- what is printed ---- */

static void put_machines(struct buf *b, const struct planning *p)
{
    const struct shard_plan_model *m = &p->model;
    char a[32], h[32], k[32];
    bytes_text(a, (double)m->layer_bytes);
    bytes_text(h, (double)m->head_bytes);
    bytes_text(k, (double)m->kv_bytes);
    buf_printf(b, "%u layers of %s, head %s, keys and values of a layer %s\n\n", m->n_layers, a, h,
               k);
    buf_printf(b, "%-16s  %10s  %12s  %10s  %12s\n", "MACHINE", "MEMORY", "COMPUTES", "ROUND TRIP",
               "LINK");
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const struct shard_plan_node *n = &p->nodes[i];
        char memory[32] = "no limit", rate[40] = "-", link[40] = "-";
        if (n->memory_bytes)
            bytes_text(memory, (double)n->memory_bytes);
        if (n->rate > 0)
            snprintf(rate, sizeof(rate), "%.1f GB/s", n->rate / 1e9);
        if (n->link_rate > 0)
            snprintf(link, sizeof(link), "%.0f Mbit/s", n->link_rate / 125e3);
        buf_printf(b, "%-16s  %10s  %12s  %7.2f ms  %12s\n", n->name, memory, rate, n->rtt_s * 1e3,
                   link);
    }
    buf_putc(b, '\n');
}

static void put_head(struct buf *b)
{
    buf_printf(b, "   %5s  %11s  %9s  %10s  %5s  %11s  %s\n", "NODES", "FIRST TOKEN", "PER TOKEN",
               "8 AT ONCE", "WIRE", "BYTES/TOKEN", "LAYERS OR ROWS");
}

static void put_plan(struct buf *b, const struct planning *p, const struct shard_plan *plan,
                     bool chosen)
{
    buf_printf(b, "%s  %5u  %8.1f ms  %6.1f ms  %6.1f t/s  %3.0f %%  %11llu ", chosen ? "*" : " ",
               plan->n_parts, plan->first_s * 1e3, plan->token_s * 1e3, plan->rate_8,
               plan->wire * 100, (unsigned long long)plan->bytes);
    for (uint32_t i = 0; i < plan->n_parts; i++) {
        const struct shard_plan_part *part = &plan->parts[i];
        if (plan->rows)
            buf_printf(b, " %.0f%%", part->share * 100);
        else
            buf_printf(b, " %u-%u", part->first, part->end - 1);
        buf_printf(b, " %s", p->nodes[part->node].name);
    }
    buf_putc(b, '\n');
}

/* The best plan with each number of nodes; best: the chosen one, or NULL. */
static void put_candidates(struct buf *b, const struct planning *p, const struct shard_plan *best,
                           bool rows)
{
    struct shard_plan plan;
    for (uint32_t n = rows ? 2 : 1; n <= SHARD_PLAN_MAX_PARTS && n <= p->n_nodes; n++) {
        const bool fits = rows ? shard_plan_rows_with(&plan, &p->model, p->nodes, p->n_nodes, n, 0)
                               : shard_plan_with(&plan, &p->model, p->nodes, p->n_nodes, n);
        if (fits)
            put_plan(b, p, &plan, best && best->rows == rows && best->n_parts == n);
        else
            buf_printf(b, "   %5u  does not fit%s\n", n, rows ? " by rows" : "");
    }
}

static int print_plans(const struct planning *p, const struct opts *o, struct shard_want want)
{
    struct shard_plan best;
    struct err e = {0};
    struct buf b;
    const int found = shard_plan_choose(&best, &p->model, p->nodes, p->n_nodes, want, 0, &e);
    buf_init(&b, (size_t)1 << 20);
    if (opts_flag(o, "explain"))
        put_machines(&b, p);
    if (found == 0 || opts_flag(o, "explain"))
        put_head(&b);
    if (opts_flag(o, "explain"))
        put_candidates(&b, p, found == 0 ? &best : NULL, false);
    if (opts_flag(o, "explain") && p->model.rows)
        put_candidates(&b, p, found == 0 ? &best : NULL, true);
    if (found == 0 && !opts_flag(o, "explain"))
        put_plan(&b, p, &best, true);
    int rc = cmd_print(o->page, &b);
    buf_fini(&b);
    return rc == CMD_OK && found < 0 ? cmd_fail(o->page, "%s", e.msg) : rc;
}

int cmd_shard_plan(int argc, const char *const *argv)
{
    struct opts o;
    struct planning *p;
    struct shard_want want;
    struct err e = {0};
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    p = mem_zalloc(sizeof(*p));
    if (!p)
        err_set(&e, SHOAL_ENOMEM, "out of memory");
    else if (shard_want_read(&want, opts_text(&o, "shard"), &e) == 0 && want.mode == SHARD_NONE)
        err_set(&e, SHOAL_EINVAL, "--shard none plans nothing");
    if (e.code == 0 && find_machines(p, &o, &e) == 0)
        (void)read_model(p, &o, &e);
    rc = e.code ? cmd_fail(&page, "%s", e.msg) : print_plans(p, &o, want);
    mem_free(p);
    opts_fini(&o);
    return rc;
}
