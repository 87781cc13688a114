/* cmd_plugin.c - shoal plugin: a process with one plug-in, started by the server for steps with
 * `via: plugin`.  Not in the list of commands. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "site/deeds/plugin_host.h"

cmd_fn cmd_plugin;

int cmd_plugin(int argc, const char *const *argv)
{
    struct stat st;
    if (argc != 2 || fstat(PLUGIN_HOST_FD, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fputs("shoal plugin: 'shoal serve' starts this for steps with 'via: plugin'; try a flow "
              "with 'shoal flow run'\n",
              stderr);
        return CMD_USAGE;
    }
    _exit(plugin_host_main(PLUGIN_HOST_FD, argv[0], strtoul(argv[1], NULL, 10)));
}
