/* cmd_cluster.c - shoal cluster: verbs for a shoal of several machines; their table is in
 * commands.c. */
#include "cmd/cmd.h"
#include "cmd/commands.h"

int cmd_cluster(int argc, const char *const *argv)
{
    return commands_run_verb("cluster", "Sets up and inspects a shoal of several machines.", argc,
                             argv);
}
