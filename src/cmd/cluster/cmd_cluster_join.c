/* cmd_cluster_join.c - shoal cluster join: starts this machine as a member of a shoal. */
#include "cmd/cluster/cluster_start.h"
#include "cmd/cmd.h"

cmd_fn cmd_cluster_join;

static const struct opts_def defs[] = {
    {"with-nats", 0, OPTS_TEXT, "FOLDER", NULL, 0, 0,
     "also start the NATS server of this folder, such as ca/members/nats-1"},
};

static const struct opts_page page = {
    .command = "cluster join",
    .arguments = "FOLDER",
    .min_args = 1,
    .max_args = 1,
    .summary = "Starts this machine as a member of a shoal: it serves models and clients.",
    .details = "FOLDER is what 'shoal cluster init --member NAME=HOST' wrote: certificate, key, CA "
               "and a\nshoal.yaml, which can be edited.  It runs 'shoal serve --config shoal.yaml' "
               "in it, and\nthe NATS server of FOLDER/nats beside it, if there is one: "
               "it is started again when it ends, and\nstopped with the member.",
    .groups = {OPTS_GROUP("Options", defs)},
    .examples = "  shoal cluster join hub2\n"
                "  shoal cluster join ca/members/hub1 --with-nats ca/members/nats-1\n",
};

int cmd_cluster_join(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    rc = cluster_start(&page, o.args[0], opts_text(&o, "with-nats"));
    opts_fini(&o);
    return rc;
}
