/* cluster_start.c - see cluster_start.h. */
#include "cmd/cluster/cluster_start.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cluster/trust/cert.h"
#include "cmd/cluster/nats_keeper.h"
#include "cmd/cmd.h"

/* Reports missing files before anything is started. */
static int check_folder(const struct opts_page *page, const char *folder)
{
    char config[PATH_MAX];
    struct cert_files files;
    struct cert_info info;
    struct err e = {0};
    if ((size_t)snprintf(config, sizeof(config), "%s/shoal.yaml", folder) >= sizeof(config) ||
        access(config, R_OK) < 0)
        return cmd_fail(page,
                        "%s has no shoal.yaml: 'shoal cluster init --member NAME=HOST' writes the "
                        "folder of a member",
                        folder);
    if (cert_files_in(&files, folder, &e) < 0 || cert_check(&info, &files, &e) < 0)
        return cmd_fail(page, "%s", e.msg);
    return CMD_OK;
}

int cluster_start(const struct opts_page *page, const char *folder, const char *nats)
{
    char *const argv[] = {"shoal", "serve", "--config", "shoal.yaml", NULL};
    char own[PATH_MAX]; /* the server that 'cluster init' has given to this member */
    int rc = check_folder(page, folder);
    const bool fits = (size_t)snprintf(own, sizeof(own), "%s/nats", folder) < sizeof(own);
    if (rc == CMD_OK && nats)
        rc = nats_keeper_start(page, nats);
    else if (rc == CMD_OK && fits && nats_keeper_folder_ok(own))
        (void)!nats_keeper_start(page, own); /* it has said why; the other servers may be there */
    if (rc != CMD_OK)
        return rc;
    if (chdir(folder) < 0)
        return cmd_fail(page, "cannot enter %s: %s", folder, strerror(errno));
    execv("/proc/self/exe", argv);
    return cmd_fail(page, "cannot start 'shoal serve': %s", strerror(errno));
}
