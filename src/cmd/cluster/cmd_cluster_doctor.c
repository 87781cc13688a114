/* cmd_cluster_doctor.c - shoal cluster doctor: what is wrong with a shoal, and what to do. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/plural.h"
#include "cmd/cluster/cluster_findings.h"
#include "cmd/server_ask.h"
#include "wire/json_out.h"

cmd_fn cmd_cluster_doctor;

static const struct opts_def defs[] = {SERVER_ASK_DEFS};

static const struct opts_page page = {
    .command = "cluster doctor",
    .arguments = "",
    .summary = "Looks for problems of all members of a shoal, and says what to do about each.",
    .details = "Clocks, certificates, disks, memory, temperatures, versions, links, models that "
               "wait: as\nthe members report them to a gateway.\n\n"
               "Exit code 0: nothing was found.  1: the gateway cannot be reached.  3: something "
               "was found.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal cluster doctor --server http://gateway:8080\n"
                "  shoal cluster doctor --json | jq -r '.findings[].what'\n",
};

static void put_json(struct buf *b, const struct cluster_finding *v, size_t n, int n_nodes)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_uint(&j, "nodes", (uint64_t)n_nodes);
    json_out_key(&j, "findings");
    json_out_array(&j);
    for (size_t i = 0; i < n; i++) {
        json_out_object(&j);
        json_out_member_str(&j, "member", v[i].where);
        json_out_member_str(&j, "severity", v[i].error ? "error" : "warning");
        json_out_member_str(&j, "what", v[i].what);
        json_out_member_str(&j, "fix", v[i].fix);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    json_out_object_end(&j);
    buf_putc(b, '\n');
}

static void put_text(struct buf *b, const struct cluster_finding *v, size_t n, int n_nodes)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(b, "%-7s %s%s%s\n        -> %s\n", v[i].error ? "error" : "warning", v[i].where,
                   v[i].where[0] ? ": " : "", v[i].what, v[i].fix);
    buf_printf(b, "%d node%s, ", n_nodes, plural((uint64_t)n_nodes));
    if (n == 0)
        buf_puts(b, "no problems found\n");
    else
        buf_printf(b, "%zu problem%s\n", n, plural(n));
}

int cmd_cluster_doctor(int argc, const char *const *argv)
{
    struct opts o;
    struct server_ask r;
    struct buf b;
    int rc;
    size_t n = 0;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    struct cluster_finding *v = mem_zalloc(CLUSTER_FINDINGS_MAX * sizeof(*v));
    server_ask_init(&r, &o);
    buf_init(&b, SERVER_ASK_MAX_BYTES);
    rc = v ? server_ask(&r, "/v1/cluster", "nodes", NULL, 0) : cmd_fail(&page, "out of memory");
    if (rc == CMD_OK) {
        const int n_nodes = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(r.json, "nodes"));
        n = cluster_findings(v, r.json, (int64_t)(clock_unix_ms() / 1000));
        (opts_flag(&o, "json") ? put_json : put_text)(&b, v, n, n_nodes);
        rc = cmd_print(&page, &b);
    }
    if (rc == CMD_OK && n > 0)
        rc = CMD_NOT_WELL;
    mem_free(v);
    buf_fini(&b);
    server_ask_fini(&r);
    opts_fini(&o);
    return rc;
}
