/* cmd_cluster_join.c - shoal cluster join: starts this machine as a member of a shoal. */
#include <stdio.h>

#include "cmd/cluster/cluster_start.h"
#include "cmd/cluster/join_by_token.h"
#include "cmd/cmd.h"

cmd_fn cmd_cluster_join;

static const struct opts_def defs[] = {
    {"with-nats", 0, OPTS_TEXT, "FOLDER", NULL, 0, 0,
     "also start the NATS server of this folder, such as ca/members/nats-1"},
};

static const struct opts_def token_defs[] = {
    {"token", 0, OPTS_TEXT, "TOKEN", NULL, 0, 0,
     "join with a token of 'shoal cluster token'; -: the first line of stdin"},
    {"name", 0, OPTS_TEXT, "NAME", NULL, 0, 0, "name of this member (default: of this machine)"},
    {"host", 0, OPTS_TEXT, "HOST", NULL, 0, 0,
     "name or address at which others reach this machine (default: as the other side sees it)"},
    {"at", 0, OPTS_TEXT, "HOST:PORT", NULL, 0, 0,
     "where 'shoal cluster token' waits (default: it is found on the local network)"},
    {"no-start", 0, OPTS_FLAG, NULL, NULL, 0, 0, "only write the folder"},
};

static const struct opts_page page = {
    .command = "cluster join",
    .arguments = "[FOLDER]",
    .min_args = 0,
    .max_args = 1,
    .summary = "Starts this machine as a member of a shoal: it serves models and clients.",
    .details = "FOLDER is what 'shoal cluster init --member NAME=HOST' wrote: certificate, key, CA "
               "and a\nshoal.yaml, which can be edited.  It runs 'shoal serve --config shoal.yaml' "
               "in it, and\nthe NATS server of FOLDER/nats beside it, if there is one: "
               "it is started again when it ends, and\nstopped with the member.\n\n"
               "With --token, FOLDER (default: the member's name) is made: this machine makes its "
               "key, and the\nmachine with the CA certifies it.  The key never leaves this "
               "machine.",
    .groups = {OPTS_GROUP("Options", defs), OPTS_GROUP("With a token", token_defs)},
    .examples = "  shoal cluster join hub2\n"
                "  shoal cluster join ca/members/hub1 --with-nats ca/members/nats-1\n"
                "  shoal cluster join --token -      # and paste it\n",
};

static int run(const struct opts *o)
{
    char own[64];
    const struct join_by_token j = {.token = opts_text(o, "token"),
                                    .at = opts_text(o, "at"),
                                    .name = opts_text(o, "name"),
                                    .host = opts_text(o, "host")};
    const char *folder = o->n_args > 0 ? o->args[0] : j.name;
    if (!j.token && o->n_args == 0)
        return opts_usage(&page, "give the FOLDER of a member, or --token");
    if (!j.token && (j.at || j.name || j.host || opts_flag(o, "no-start")))
        return opts_usage(&page, "--name, --host, --at and --no-start need --token");
    if (!folder) {
        join_by_token_name(own);
        folder = own;
    }
    int rc = j.token ? join_by_token(&page, &j, folder) : CMD_OK;
    if (rc == CMD_OK && j.token)
        fprintf(stderr, "this machine is a member now: its folder is %s\n", folder);
    if (rc != CMD_OK || opts_flag(o, "no-start"))
        return rc;
    return cluster_start(&page, folder, opts_text(o, "with-nats"));
}

int cmd_cluster_join(int argc, const char *const *argv)
{
    return cmd_page(&page, argc, argv, run);
}
