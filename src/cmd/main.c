/* main.c - the shoal program: which command runs. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "cmd/cmd.h"
#include "shoal/shoal.h"

struct command {
    const char *name;
    int (*run)(int argc, const char *const *argv);
    const char *summary;
};

static const struct command commands[] = {
    {"ask", cmd_ask, "a command or question: actions as JSON, and a reply"},
    {"serve", cmd_serve, "a web page, and everything over HTTP"},
    {"doctor", cmd_doctor, "what this machine has, what is used, what is wrong"},
    {"generate", cmd_generate, "continue a text with a model"},
    {"chat", cmd_chat, "talk with a model"},
    {"classify", cmd_classify, "what a text is: intent, topic, sentiment"},
    {"tag", cmd_tag, "entities, slots and personal data in a text"},
    {"embed", cmd_embed, "a vector for a text"},
    {"rerank", cmd_rerank, "documents in the order in which they answer a query"},
    {"score", cmd_score, "numbers for rows of numbers"},
    {"summarize", cmd_summarize, "a long text made short"},
    {"tokenize", cmd_tokenize, "text to token ids"},
    {"detokenize", cmd_detokenize, "token ids to text"},
    {"logits", cmd_logits, "what a model expects next"},
    {"eval", cmd_eval, "how good and how fast a model is on a data set"},
    {"perplexity", cmd_perplexity, "how well a model predicts a text"},
    {"bench", cmd_bench, "how fast a model runs here, beside the machine's limit"},
    {"model", cmd_model, "show, convert and quantize model files"},
};
#define N_FIRST 3u /* commands to begin with */
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int help(void)
{
    printf("Shoal runs small language models on the machine you have.\n\n"
           "Usage: shoal <command> [options]\n\nStart here:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("%s  %-12s %s\n", i == N_FIRST ? "\nOne model at a time:\n" : "", commands[i].name,
               commands[i].summary);
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
    const char *names[N_COMMANDS + 3];
    size_t n = 0;
    for (; n < N_COMMANDS; n++)
        names[n] = commands[n].name;
    names[n++] = "help";
    names[n++] = "version";
    names[n] = NULL;
    const char *near = nearest_word(name, names);
    fprintf(stderr, "shoal: unknown command %s", name);
    if (near)
        fprintf(stderr, " (did you mean %s?)", near);
    fprintf(stderr, "\nTry 'shoal help'.\n");
    return CMD_USAGE;
}

static int dispatch(int argc, const char *const *argv)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, argv[0]) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return unknown(argv[0]);
}

/* How many words at argv are an option that may stand in front of the command; 0: none. */
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
        return printf("shoal %s\n", shoal_version()) < 0 ? CMD_FAILED : CMD_OK;
    if (!ask_help && argv[at][0] == '-')
        return unknown(argv[at]);
    /* The command and its options; then what stood in front of it; then what follows "--". */
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
