/* cmd_node.c - shoal node: runs models for the gateways of a shoal. */
#include "base/mem.h"
#include "cluster/trust/roles.h"
#include "cmd/serve/serving.h"

cmd_fn cmd_node;

static const struct opts_def defs[] = {
    {"config", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "YAML file; see docs/CLUSTER.md"},
    {"listen", 0, OPTS_LIST, "ADDRESS", NULL, 0, 0,
     "where gateways reach it: HOST:PORT or unix:PATH, default 0.0.0.0:7600; may be repeated"},
    {"model", 'm', OPTS_LIST, "NAME=PATH", NULL, 0, 0,
     "model to run; may be repeated; default: the models included with Shoal"},
    {"lora", 0, OPTS_LIST, "NAME=PATH", NULL, 0, 0,
     "LoRA adapter beside the first model, or MODEL:NAME=PATH; may be repeated"},
    {"no-models", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "run only models that the controller assigns (shoal cluster deploy), with --join"},
    {"model-dir", 0, OPTS_LIST, "FOLDER", NULL, 0, 0,
     "folder to search for assigned models; may be repeated"},
    {"advertise", 0, OPTS_TEXT, "ADDRESS", NULL, 0, 0,
     "address announced to gateways, with --join; default: the listen address, with the host name"},
    {"http", 0, OPTS_LIST, "ADDRESS", NULL, 0, 0,
     "also serve clients and metrics on this address; may be repeated"},
    {"threads", 0, OPTS_UINT, "N", NULL, 1, 64,
     "number of event loops; default: depends on the cores"},
    {"memory", 0, OPTS_UINT, "MIB", NULL, 1, 1e9, "memory limit for all models together, in MiB"},
    {"check", 0, OPTS_FLAG, NULL, NULL, 0, 0, "check the configuration, report errors, and exit"},
};

static const struct opts_page page = {
    .command = "node",
    .arguments = "",
    .summary = "Runs models for the gateways of a shoal.",
    .details = "Gateways (shoal gateway --node ADDRESS) send requests here.  Both sides show a "
               "certificate\nof the shoal's own CA (shoal ca).  SIGTERM drains: gateways move new "
               "requests away at once,\nand running ones end here.",
    .groups = {OPTS_GROUP("Node", defs), &serving_member_group},
    .examples = "  shoal node --certs ca/members/hub1\n"
                "  shoal node --join tls://nats1:4222 --certs ca/members/hub1\n"
                "  shoal node --listen unix:/run/shoal/node.sock -m story=stories15M.gguf\n",
};

static int configure(struct config **out, const struct opts *o, struct err *e)
{
    static const char *const everywhere[] = {"0.0.0.0:7600"};
    const char *const *list;
    int rc = serving_begin(out, o, e);
    struct config *c = *out;
    size_t n = rc == 0 ? opts_list(o, "listen", &list) : 0;
    if (rc == 0 && n > 0) {
        yaml_in_strs_fini(&c->cluster.listen);
        rc = yaml_in_strs_add(&c->cluster.listen, list, n, e);
    } else if (rc == 0 && c->cluster.listen.n == 0) {
        rc = yaml_in_strs_add(&c->cluster.listen, everywhere, 1, e);
    }
    if (rc == 0 && opts_text(o, "advertise")) {
        mem_free(c->cluster.advertise);
        c->cluster.advertise = mem_strdup(opts_text(o, "advertise"));
        if (!c->cluster.advertise)
            rc = err_set(e, SHOAL_ENOMEM, "configuration");
    }
    n = rc == 0 ? opts_list(o, "http", &list) : 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = config_add_listen(c, list[i], e);
    n = rc == 0 ? opts_list(o, "model-dir", &list) : 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = config_add_model_dir(c, list[i], e);
    if (rc == 0 && !opts_flag(o, "no-models"))
        rc = serving_models(c, o, e);
    if (rc == 0 && !opts_flag(o, "no-models"))
        rc = serving_pack(c, false, e);
    if (rc == 0)
        c->store_offer = false; /* the controller assigns what its store has */
    if (rc == 0)
        rc = serving_member(c, o, e);
    if (rc == 0 && opts_flag(o, "no-models") && c->cluster.nats.n == 0)
        rc = err_set(e, SHOAL_EINVAL,
                     "--no-models needs a controller that assigns models: use --join URL");
    if (rc == 0)
        c->cluster.no_relay = true;
    if (rc == 0 && opts_given(o, "threads"))
        c->threads = opts_u32(o, "threads");
    if (rc == 0 && opts_given(o, "memory"))
        c->memory_bytes = (size_t)opts_uint(o, "memory") << 20;
    return rc;
}

int cmd_node(int argc, const char *const *argv)
{
    static const struct serving serving = {&page, ROLE_NODE, configure};
    return serving_main(&serving, argc, argv);
}
