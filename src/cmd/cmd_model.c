/* cmd_model.c - shoal model: verbs for model files and for the models of a server. */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/commands.h"

static void help(FILE *f)
{
    fprintf(
        f,
        "Shows, converts and quantizes model files; loads and unloads the models of a server.\n\n"
        "Usage: shoal model <verb> [options]\n\nVerbs:\n");
    for (const struct command *v = commands_verbs; v->name; v++)
        fprintf(f, "  %-12s %s\n", v->name, v->summary);
    fprintf(f, "\n'shoal model <verb> --help' shows the options of a verb.\n");
}

int cmd_model(int argc, const char *const *argv)
{
    if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        help(argc == 0 ? stderr : stdout);
        return argc == 0 ? CMD_USAGE : CMD_OK;
    }
    const struct command *verb = commands_find(commands_verbs, argv[0]);
    if (verb)
        return verb->run(argc - 1, argv + 1);
    const char *near = commands_nearest(commands_verbs, argv[0]);
    fprintf(stderr, "shoal model: unknown verb %s%s%s%s\nTry 'shoal model --help'.\n", argv[0],
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    return CMD_USAGE;
}
