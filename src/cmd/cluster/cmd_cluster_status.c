/* cmd_cluster_status.c - shoal cluster status, nodes, models, top: the shoal as a gateway sees it.
 */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes_text.h"
#include "cmd/cli/term.h"
#include "cmd/server_ask.h"

cmd_fn cmd_cluster_status, cmd_cluster_nodes, cmd_cluster_models, cmd_cluster_top;

#define NAME_WIDTH 24

static const struct opts_def defs[] = {SERVER_ASK_DEFS};
static const struct opts_def top_defs[] = {
    SERVER_ASK_DEFS,
    {"interval", 0, OPTS_REAL, "S", "1", 0.1, 3600, "seconds between two updates"}};

static const struct opts_page status_page = {
    .command = "cluster status",
    .arguments = "",
    .summary = "Shows the state of a shoal, as a gateway sees it.",
    .details = "Exit code 0: every node that the gateway knows accepts requests.  1: the gateway "
               "cannot be\nreached.  3: some node does not, or none is known.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal cluster status --server http://gateway:8080\n"
                "  shoal cluster status --json\n",
};
static const struct opts_page nodes_page = {
    .command = "cluster nodes",
    .arguments = "",
    .summary = "Lists the nodes of a shoal: machine, memory, load.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal cluster nodes --server http://gateway:8080\n",
};
static const struct opts_page models_page = {
    .command = "cluster models",
    .arguments = "",
    .summary = "Lists the models of a shoal, and which node has which version.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal cluster models --server http://gateway:8080\n",
};
static const struct opts_page top_page = {
    .command = "cluster top",
    .arguments = "",
    .summary = "Shows nodes and requests live, until Ctrl-C.",
    .details = "If stdout is not a terminal, the tables are printed one after another.",
    .groups = {OPTS_GROUP("Options", top_defs)},
    .examples = "  shoal cluster top --server http://gateway:8080 --interval 0.5\n",
};

static const cJSON *list(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static bool is_ready(const cJSON *node)
{
    return strcmp(server_ask_text(node, "state"), "ready") == 0;
}

static uint32_t count(const cJSON *nodes, bool ready)
{
    const cJSON *n;
    uint32_t k = 0;
    cJSON_ArrayForEach(n, nodes)
    {
        k += is_ready(n) == ready;
    }
    return k;
}

/* ---- tables ---- */

static void put_head(struct buf *b, const cJSON *o)
{
    const cJSON *k = list(o, "counts"), *nodes = list(o, "nodes");
    const char *nats = server_ask_text(o, "nats"), *shoal = server_ask_text(o, "shoal");
    buf_printf(b, "%s%s%s: %u of %u nodes ready", server_ask_text(o, "member"),
               shoal[0] ? " of " : "", shoal, count(nodes, true),
               count(nodes, true) + count(nodes, false));
    if (strcmp(nats, "none") != 0)
        buf_printf(b, ", NATS %s", nats);
    buf_printf(b, "\n%.0f requests, %.0f moved to another node, %.0f retried, %.0f lost\n",
               server_ask_number(k, "requests"), server_ask_number(k, "moved"),
               server_ask_number(k, "retried"), server_ask_number(k, "lost"));
}

static double in_flight(const cJSON *node)
{
    const cJSON *m;
    double n = 0;
    cJSON_ArrayForEach(m, list(node, "models"))
    {
        n += server_ask_number(m, "in_flight");
    }
    return n;
}

static void put_nodes(struct buf *b, const cJSON *nodes)
{
    const cJSON *n;
    buf_printf(b, "%-*s  %-8s  %-8s  %5s  %10s  %6s  %9s  %8s  %s\n", NAME_WIDTH, "NODE", "STATE",
               "ISA", "CORES", "FREE", "MODELS", "IN FLIGHT", "RTT", "ADDRESS");
    cJSON_ArrayForEach(n, nodes)
    {
        char bytes[32] = "-", rtt[32] = "-";
        const char *error = server_ask_text(n, "error"), *isa = server_ask_text(n, "isa");
        if (server_ask_number(n, "memory_free") > 0)
            bytes_text(bytes, server_ask_number(n, "memory_free"));
        if (server_ask_number(n, "rtt_us") > 0)
            snprintf(rtt, sizeof(rtt), "%.0f us", server_ask_number(n, "rtt_us"));
        buf_printf(b, "%-*.*s  %-8s  %-8s  %5.0f  %10s  %6d  %9.0f  %8s  %s%s%s\n", NAME_WIDTH,
                   NAME_WIDTH, server_ask_text(n, "name"), server_ask_text(n, "state"),
                   isa[0] ? isa : "-", server_ask_number(n, "cores"), bytes,
                   cJSON_GetArraySize(list(n, "models")), in_flight(n), rtt,
                   server_ask_text(n, "address"), error[0] ? ": " : "", error);
    }
}

/* What nodes cannot load, and why. */
static void put_refused(struct buf *b, const cJSON *nodes)
{
    const cJSON *n, *m;
    cJSON_ArrayForEach(n, nodes)
    {
        cJSON_ArrayForEach(m, list(n, "models"))
        {
            const char *error = server_ask_text(m, "error");
            if (error[0])
                buf_printf(b, "%s cannot load %s: %s\n", server_ask_text(n, "name"),
                           server_ask_text(m, "name"), error);
        }
    }
}

static void put_models(struct buf *b, const cJSON *nodes)
{
    const cJSON *n, *m;
    buf_printf(b, "%-*s  %-*s  %-9s  %-12s  %10s  %9s  %10s\n", NAME_WIDTH, "MODEL", NAME_WIDTH,
               "NODE", "STATE", "VERSION", "MEMORY", "IN FLIGHT", "PER TOKEN");
    cJSON_ArrayForEach(n, nodes)
    {
        cJSON_ArrayForEach(m, list(n, "models"))
        {
            char bytes[32] = "-", token[32] = "-";
            if (server_ask_number(m, "bytes") > 0)
                bytes_text(bytes, server_ask_number(m, "bytes"));
            if (server_ask_number(m, "token_us") > 0)
                snprintf(token, sizeof(token), "%.0f us", server_ask_number(m, "token_us"));
            const char *error = server_ask_text(m, "error");
            double part = server_ask_number(m, "progress");
            char state[32];
            snprintf(state, sizeof(state), "%s",
                     is_ready(n) ? server_ask_text(m, "state") : server_ask_text(n, "state"));
            if (is_ready(n) && server_ask_number(m, "replicas") > 1)
                snprintf(state, sizeof(state), "ready x%.0f", server_ask_number(m, "replicas"));
            else if (is_ready(n) && part > 0 && part < 1 && strcmp(state, "ready") != 0)
                snprintf(state, sizeof(state), "fetch %.0f%%", part * 100);
            buf_printf(b, "%-*.*s  %-*.*s  %-9s  %-12.12s  %10s  %9.0f  %10s%s%s\n", NAME_WIDTH,
                       NAME_WIDTH, server_ask_text(m, "name"), NAME_WIDTH, NAME_WIDTH,
                       server_ask_text(n, "name"), state, server_ask_text(m, "version"), bytes,
                       server_ask_number(m, "in_flight"), token, error[0] ? "  " : "", error);
        }
    }
}

/* "0-7 NODE" by layers, "42% NODE" by rows. */
static void put_part(struct buf *b, const cJSON *p)
{
    const double share = server_ask_number(p, "share");
    if (share > 0)
        buf_printf(b, " %.0f%%", share * 100);
    else
        buf_printf(b, " %.0f-%.0f", server_ask_number(p, "first"), server_ask_number(p, "end") - 1);
    buf_printf(b, " %s", server_ask_text(p, "node"));
}

/* Models with layers or rows on several nodes; nothing if there are none. */
static void put_shards(struct buf *b, const cJSON *nodes)
{
    const cJSON *n, *c, *p;
    bool any = false;
    cJSON_ArrayForEach(n, nodes)
    {
        cJSON_ArrayForEach(c, list(n, "shards"))
        {
            const char *lost = server_ask_text(c, "lost");
            if (!any)
                buf_printf(b, "\n%-12s  %9s  %9s  %9s  %9s  %10s  %7s  %s\n", "SHARDED",
                           "PREDICTED", "STEP", "OTHERS", "WAITING", "BYTES/STEP", "REBUILT",
                           "LAYERS OR ROWS");
            any = true;
            buf_printf(b, "%-12s  %6.1f ms  %6.1f ms  %6.1f ms  %6.1f ms  %10.0f  %7.0f ",
                       server_ask_text(c, "model"), server_ask_number(c, "predicted_ms"),
                       server_ask_number(c, "step_ms"), server_ask_number(c, "remote_ms"),
                       server_ask_number(c, "wait_ms"), server_ask_number(c, "step_bytes"),
                       server_ask_number(c, "rebuilt"));
            cJSON_ArrayForEach(p, list(c, "parts"))
            {
                put_part(b, p);
            }
            const bool q8 = strcmp(server_ask_text(c, "wire"), "q8") == 0;
            buf_printf(b, "%s%s%s\n", q8 ? "  q8: answers may differ" : "",
                       lost[0] ? "  lost " : "", lost);
        }
    }
}

/* ---- commands ---- */

typedef void (*put_fn)(struct buf *b, const cJSON *o);

static void put_status(struct buf *b, const cJSON *o)
{
    put_head(b, o);
    buf_putc(b, '\n');
    put_nodes(b, list(o, "nodes"));
    put_refused(b, list(o, "nodes"));
    put_shards(b, list(o, "nodes"));
}

static void put_nodes_of(struct buf *b, const cJSON *o)
{
    put_nodes(b, list(o, "nodes"));
}

static void put_models_of(struct buf *b, const cJSON *o)
{
    put_models(b, list(o, "nodes"));
}

static int show(const struct opts_page *page, int argc, const char *const *argv, put_fn put,
                bool judge)
{
    struct opts o;
    struct server_ask r;
    struct buf b;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    server_ask_init(&r, &o);
    buf_init(&b, 2 * SERVER_ASK_MAX_BYTES);
    rc = server_ask(&r, "/v1/cluster", "nodes", NULL, 0);
    if (rc == CMD_OK && opts_flag(&o, "json"))
        buf_printf(&b, "%s\n", buf_str(&r.body));
    else if (rc == CMD_OK)
        put(&b, r.json);
    if (rc == CMD_OK)
        rc = cmd_print(page, &b);
    if (rc == CMD_OK && judge &&
        (count(list(r.json, "nodes"), false) > 0 || count(list(r.json, "nodes"), true) == 0))
        rc = CMD_NOT_WELL;
    buf_fini(&b);
    server_ask_fini(&r);
    opts_fini(&o);
    return rc;
}

int cmd_cluster_status(int argc, const char *const *argv)
{
    return show(&status_page, argc, argv, put_status, true);
}

int cmd_cluster_nodes(int argc, const char *const *argv)
{
    return show(&nodes_page, argc, argv, put_nodes_of, false);
}

int cmd_cluster_models(int argc, const char *const *argv)
{
    return show(&models_page, argc, argv, put_models_of, false);
}

static int print_top(const struct opts *o, struct server_ask *r)
{
    struct buf b;
    buf_init(&b, 2 * SERVER_ASK_MAX_BYTES);
    if (opts_flag(o, "json")) {
        buf_printf(&b, "%s\n", buf_str(&r->body));
    } else {
        if (isatty(STDOUT_FILENO))
            buf_puts(&b, "\033[H\033[J"); /* clears the screen and starts at the top */
        put_status(&b, r->json);
        buf_putc(&b, '\n');
        put_models(&b, list(r->json, "nodes"));
    }
    return cmd_print_end(o->page, &b);
}

int cmd_cluster_top(int argc, const char *const *argv)
{
    struct opts o;
    struct server_ask r;
    int rc;
    if (!cmd_begin(&o, &top_page, argc, argv, &rc))
        return rc;
    int fd = term_catch_interrupt();
    int wait_ms = (int)lround(opts_real(&o, "interval") * 1000);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    server_ask_init(&r, &o);
    do {
        rc = server_ask(&r, "/v1/cluster", "nodes", NULL, 0);
        if (rc == CMD_OK)
            rc = print_top(&o, &r);
    } while (rc == CMD_OK && poll(&p, fd >= 0 ? 1 : 0, wait_ms) == 0);
    server_ask_fini(&r);
    term_release_interrupt(fd);
    opts_fini(&o);
    return rc;
}
