/* main.c - the shoal program: the table of commands. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "shoal/shoal.h"
#include "site/deeds/plugin_host.h"

cmd_fn cmd_worker, cmd_plugin; /* only started by the server: in no list */

static int help(void)
{
    printf("Shoal runs small language models on your own machine.\n\n"
           "Usage: shoal <command> [options]\n");
    for (const struct command *c = commands_all; c->name; c++) {
        if (c->heading)
            printf("\n%s:\n", c->heading);
        printf("  %-12s %s\n", c->name, c->summary);
    }
    printf(
        "\nExamples:\n"
        "  shoal ask --explain \"turn off the kitchen lights and set the heating to 19 degrees\"\n"
        "  shoal serve                  # then open http://127.0.0.1:8080\n"
        "  shoal chat -m model.gguf     # any GGUF file, or a model that comes with Shoal\n"
        "\n'shoal <command> --help' shows the options of a command, 'shoal version' the "
        "version.\n");
    return CMD_OK;
}

static int unknown(const char *name)
{
    const char *near = commands_nearest(commands_all, name);
    fprintf(stderr, "shoal: unknown command %s", name);
    if (near)
        fprintf(stderr, " (did you mean %s?)", near);
    fprintf(stderr, "\nTry 'shoal help'.\n");
    return CMD_USAGE;
}

static int dispatch(int argc, const char *const *argv)
{
    const struct command *c = commands_find(commands_all, argv[0]);
    if (strcmp(argv[0], "worker") == 0)
        return cmd_worker(argc - 1, argv + 1);
    if (strcmp(argv[0], PLUGIN_HOST_COMMAND) == 0)
        return cmd_plugin(argc - 1, argv + 1);
    return c ? commands_run(c, argc - 1, argv + 1) : unknown(argv[0]);
}

/* Number of words at argv that form an option allowed before the command; 0: none. */
static int leading_option(int argc, char **argv)
{
    static const char *const names[] = {"--log-level", "--log-format"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(argv[0], names[i], n) == 0 && argv[0][n] == '=')
            return 1;
        if (strcmp(argv[0], names[i]) == 0)
            return argc > 1 ? 2 : 1;
    }
    return 0;
}

static int version(bool json)
{
    int n = json ? printf("{\"version\":\"%s\",\"commit\":\"%s\"}\n", shoal_version(), SHOAL_COMMIT)
                 : printf("shoal %s\n", shoal_version());
    return n < 0 ? CMD_FAILED : CMD_OK;
}

static int start(int argc, char **argv, const char **args)
{
    int at = 1, n = 0, n_words;
    while (at < argc && (n_words = leading_option(argc - at, argv + at)) > 0)
        at += n_words;
    int n_leading = at - 1;
    if (at == argc || strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)
        return help();
    bool ask_help = strcmp(argv[at], "help") == 0;
    if (ask_help && at + 1 == argc)
        return help();
    if (strcmp(argv[at], "version") == 0 || strcmp(argv[at], "--version") == 0)
        return version(at + 1 < argc && strcmp(argv[at + 1], "--json") == 0);
    if (!ask_help && argv[at][0] == '-')
        return unknown(argv[at]);
    /* The command and its options, then the options before it, then all after "--". */
    for (at += ask_help; at < argc && strcmp(argv[at], "--") != 0; at++)
        args[n++] = argv[at];
    for (int i = 0; i < n_leading; i++)
        args[n++] = argv[1 + i];
    if (ask_help)
        args[n++] = "--help";
    for (; at < argc; at++)
        args[n++] = argv[at];
    return dispatch(n, args);
}

int main(int argc, char **argv)
{
    const char **args = mem_zalloc_n((size_t)argc + 2, sizeof(*args));
    if (!args) {
        fputs("shoal: out of memory\n", stderr);
        return CMD_FAILED;
    }
    int rc = start(argc, argv, args);
    mem_free(args);
    if (fflush(stdout) != 0 && rc == CMD_OK)
        rc = CMD_FAILED;
    return rc;
}
