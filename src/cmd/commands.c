/* commands.c - see commands.h. */
#include "cmd/commands.h"

#include <string.h>

#include "base/nearest.h"
#include "cmd/cmd.h"

#define MAX_NAMES 64u

const struct command commands_all[] = {
    {"ask", cmd_ask, "a command or question: actions as JSON, and a reply", "Start here"},
    {"serve", cmd_serve, "a web page, and everything over HTTP", NULL},
    {"doctor", cmd_doctor, "what this machine has, what is used, what is wrong", NULL},
    {"generate", cmd_generate, "continue a text with a model", "One model at a time"},
    {"chat", cmd_chat, "talk with a model", NULL},
    {"classify", cmd_classify, "what a text is: intent, topic, sentiment", NULL},
    {"tag", cmd_tag, "entities, slots and personal data in a text", NULL},
    {"embed", cmd_embed, "a vector for a text", NULL},
    {"rerank", cmd_rerank, "documents in the order in which they answer a query", NULL},
    {"score", cmd_score, "numbers for rows of numbers", NULL},
    {"summarize", cmd_summarize, "a long text made short", NULL},
    {"tokenize", cmd_tokenize, "text to token ids", NULL},
    {"detokenize", cmd_detokenize, "token ids to text", NULL},
    {"logits", cmd_logits, "what a model expects next", NULL},
    {"eval", cmd_eval, "how good and how fast a model is on a data set", NULL},
    {"perplexity", cmd_perplexity, "how well a model predicts a text", NULL},
    {"bench", cmd_bench, "how fast a model runs here, beside the machine's limit", NULL},
    {"model", cmd_model, "show, convert and quantize model files", NULL},
    {"completion", cmd_completion, "completions for bash, zsh and fish", "For shells and man"},
    {"manual", cmd_manual, "this help and that of all commands, as a man page", NULL},
    {0},
};

const struct command commands_verbs[] = {
    {"show", cmd_model_show, "what is in a model file", NULL},
    {"convert", cmd_model_convert, "a llama2.c checkpoint to GGUF", NULL},
    {"quantize", cmd_model_quantize, "a model in fewer bits a weight", NULL},
    {"list", cmd_model_list, "the models of a running server", NULL},
    {"load", cmd_model_load, "loads a model on a running server", NULL},
    {"unload", cmd_model_unload, "takes one out of its memory", NULL},
    {0},
};

const struct command *commands_find(const struct command *list, const char *name)
{
    for (; list->name; list++)
        if (strcmp(list->name, name) == 0)
            return list;
    return NULL;
}

const char *commands_nearest(const struct command *list, const char *name)
{
    const char *names[MAX_NAMES + 3] = {0};
    size_t n = 0;
    for (; list[n].name && n < MAX_NAMES; n++)
        names[n] = list[n].name;
    if (list == commands_all) { /* main.c knows these */
        names[n++] = "help";
        names[n++] = "version";
    }
    return nearest_word(name, names);
}
