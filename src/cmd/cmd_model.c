/* cmd_model.c - shoal model: what can be done with model files, and with the models of a server. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cmd/cmd.h"

static const struct {
    const char *name;
    int (*run)(int argc, const char *const *argv);
    const char *summary;
} verbs[] = {
    {"show", cmd_model_show, "what is in a model file"},
    {"convert", cmd_model_convert, "a llama2.c checkpoint to GGUF"},
    {"quantize", cmd_model_quantize, "a model in fewer bits a weight"},
    {"list", cmd_model_list, "the models of a running server"},
    {"load", cmd_model_load, "loads a model on a running server"},
    {"unload", cmd_model_unload, "takes one out of its memory"},
};
#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void help(FILE *f)
{
    fprintf(
        f,
        "Shows, converts and quantizes model files; loads and unloads the models of a server.\n\n"
        "Usage: shoal model <verb> [options]\n\nVerbs:\n");
    for (size_t i = 0; i < N_VERBS; i++)
        fprintf(f, "  %-12s %s\n", verbs[i].name, verbs[i].summary);
    fprintf(f, "\n'shoal model <verb> --help' shows the options of a verb.\n");
}

int cmd_model(int argc, const char *const *argv)
{
    const char *names[N_VERBS + 1] = {0};
    if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        help(argc == 0 ? stderr : stdout);
        return argc == 0 ? CMD_USAGE : CMD_OK;
    }
    for (size_t i = 0; i < N_VERBS; i++) {
        if (strcmp(verbs[i].name, argv[0]) == 0)
            return verbs[i].run(argc - 1, argv + 1);
        names[i] = verbs[i].name;
    }
    const char *near = nearest_word(argv[0], names);
    fprintf(stderr, "shoal model: unknown verb %s%s%s%s\nTry 'shoal model --help'.\n", argv[0],
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    return CMD_USAGE;
}
