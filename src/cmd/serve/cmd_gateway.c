/* cmd_gateway.c - shoal gateway: serves clients with the models of other nodes. */
#include "cluster/trust/roles.h"
#include "cmd/serve/serving.h"

cmd_fn cmd_gateway;

static const struct opts_def defs[] = {
    {"config", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "YAML file; see docs/CLUSTER.md"},
    {"listen", 0, OPTS_LIST, "ADDRESS", NULL, 0, 0,
     "HOST:PORT or unix:PATH, default 127.0.0.1:8080; may be repeated"},
    {"node", 'n', OPTS_LIST, "ADDRESS", NULL, 0, 0,
     "node to send requests to: HOST:PORT or unix:PATH; may be repeated"},
    {"threads", 0, OPTS_UINT, "N", NULL, 1, 64,
     "number of event loops; default: depends on the cores"},
    {"check", 0, OPTS_FLAG, NULL, NULL, 0, 0, "check the configuration, report errors, and exit"},
};

static const struct opts_page page = {
    .command = "gateway",
    .arguments = "",
    .summary = "Serves clients with the models of other nodes.",
    .details = "It holds no model itself.  A request goes to the node with the lowest expected "
               "latency.\nWhen a node dies in the middle of an answer, another one continues it: "
               "the client sees a\nshort pause and the same text.",
    .groups = {OPTS_GROUP("Gateway", defs), &serving_member_group},
    .examples = "  shoal gateway --node hub1:7600 --node hub2:7600 --certs ca/members/gw\n"
                "  shoal gateway --join tls://nats1:4222 --certs ca/members/gw\n"
                "  shoal gateway --config shoal.yaml\n",
};

static int configure(struct config **out, const struct opts *o, struct err *e)
{
    const char *const *list;
    int rc = serving_begin(out, o, e);
    struct config *c = *out;
    if (rc == 0)
        rc = serving_listen(c, o, "127.0.0.1:8080", e);
    size_t n = rc == 0 ? opts_list(o, "node", &list) : 0;
    if (rc == 0 && n > 0) {
        yaml_in_strs_fini(&c->cluster.nodes);
        rc = yaml_in_strs_add(&c->cluster.nodes, list, n, e);
    }
    if (rc == 0)
        rc = serving_member(c, o, e);
    if (rc == 0 && c->cluster.nodes.n == 0 && c->cluster.nats.n == 0)
        rc = err_set(e, SHOAL_EINVAL,
                     "no nodes: use --node ADDRESS, or --join URL to find them through NATS");
    if (rc == 0 && opts_given(o, "threads"))
        c->threads = opts_u32(o, "threads");
    if (rc == 0)
        c->store_offer = false; /* it has no models of its own */
    return rc;
}

int cmd_gateway(int argc, const char *const *argv)
{
    static const struct serving serving = {&page, ROLE_GATEWAY, configure};
    return serving_main(&serving, argc, argv);
}
