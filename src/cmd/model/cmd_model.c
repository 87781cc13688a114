/* cmd_model.c - shoal model: verbs for model files and for the models of a server. */
#include "cmd/cmd.h"
#include "cmd/commands.h"

int cmd_model(int argc, const char *const *argv)
{
    return commands_run_verb(
        "model",
        "Shows, converts and quantizes model files; loads and unloads the models of a server.",
        argc, argv);
}
