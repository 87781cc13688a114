/* commands.c - see commands.h. */
#include "cmd/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cmd/cmd.h"
#include "cmd/cmd_completion.h"

/* Each is defined in a file of its own. */
cmd_fn cmd_anomaly_export, cmd_anomaly_fit, cmd_anomaly_run, cmd_ask, cmd_audit_export,
    cmd_audit_verify, cmd_bench, cmd_bundle, cmd_ca_init, cmd_ca_issue, cmd_ca_list, cmd_ca_revoke,
    cmd_ca_rotate, cmd_ca_show, cmd_calibrate, cmd_chat, cmd_classify, cmd_cluster_deploy,
    cmd_cluster_desired, cmd_cluster_doctor, cmd_cluster_drain, cmd_cluster_events,
    cmd_cluster_init, cmd_cluster_join, cmd_cluster_models, cmd_cluster_nodes, cmd_cluster_plan,
    cmd_cluster_remove, cmd_cluster_status, cmd_cluster_token, cmd_cluster_top, cmd_cluster_undrain,
    cmd_config_check, cmd_config_explain, cmd_config_reference, cmd_config_schema, cmd_cp,
    cmd_detokenize, cmd_doctor, cmd_embed, cmd_eval_ask, cmd_eval_cascade, cmd_eval_classify,
    cmd_eval_embed, cmd_eval_perplexity, cmd_eval_pii, cmd_eval_rerank, cmd_eval_score,
    cmd_eval_summarize, cmd_eval_tag, cmd_flow_check, cmd_flow_draw, cmd_flow_run, cmd_flow_trace,
    cmd_gateway, cmd_gc, cmd_generate, cmd_health, cmd_home_check, cmd_home_import, cmd_home_list,
    cmd_import_hf, cmd_import_ollama, cmd_index_add, cmd_index_ask, cmd_index_query,
    cmd_index_remove, cmd_index_stats, cmd_init, cmd_list, cmd_load, cmd_logits, cmd_mcp,
    cmd_model_convert, cmd_model_decrypt, cmd_model_delta, cmd_model_encrypt, cmd_model_list,
    cmd_model_load, cmd_model_patch, cmd_model_lora, cmd_model_quantize, cmd_model_show,
    cmd_model_sign, cmd_model_unload, cmd_model_verify, cmd_node, cmd_perplexity, cmd_pii,
    cmd_profile, cmd_ps, cmd_pull, cmd_push, cmd_rerank, cmd_rm, cmd_rollout_history,
    cmd_rollout_pause, cmd_rollout_promote, cmd_rollout_start, cmd_rollout_status, cmd_rollout_undo,
    cmd_route, cmd_router_fit, cmd_run, cmd_say, cmd_score, cmd_serve, cmd_shard_plan, cmd_show,
    cmd_sim, cmd_store_add, cmd_store_fetch, cmd_store_gc, cmd_store_list, cmd_store_remove,
    cmd_store_tag, cmd_store_verify, cmd_summarize, cmd_tag, cmd_tokenize, cmd_trace,
    cmd_transcribe, cmd_listen, cmd_satellite, cmd_top, cmd_wake;

#define MAX_NAMES 64u

static const struct command model_verbs[] = {
    {"show", cmd_model_show, "show the contents of a model file", NULL},
    {"convert", cmd_model_convert, "convert a Hugging Face folder or llama2.c checkpoint to GGUF",
     NULL},
    {"quantize", cmd_model_quantize, "quantize a model to fewer bits per weight", NULL},
    {"lora", cmd_model_lora, "merge a LoRA adapter into its base model", NULL},
    {"sign", cmd_model_sign, "sign a model with a key or a certificate", NULL},
    {"verify", cmd_model_verify, "check who signed a model, and that it is what was signed", NULL},
    {"encrypt", cmd_model_encrypt, "encrypt a model, so that a stolen disk does not give it away",
     NULL},
    {"decrypt", cmd_model_decrypt, "write the plain file of an encrypted model", NULL},
    {"delta", cmd_model_delta, "write a new version of a model as a patch of the old one", NULL},
    {"patch", cmd_model_patch, "make the new version of a model of the old one and a patch", NULL},
    {"list", cmd_model_list, "list the models of a running server", NULL},
    {"load", cmd_model_load, "load a model on a running server", NULL},
    {"unload", cmd_model_unload, "unload a model from a running server's memory", NULL},
    {0},
};

static const struct command shard_verbs[] = {
    {"plan", cmd_shard_plan, "show which nodes would compute which layers of a model", NULL},
    {0},
};

static const struct command anomaly_verbs[] = {
    {"fit", cmd_anomaly_fit, "learn what is normal for a machine from a recording", NULL},
    {"export", cmd_anomaly_export, "print the readings that a server keeps: CSV, columns, InfluxDB",
     NULL},
    {"run", cmd_anomaly_run, "monitor a machine: print alarms as they are raised and cleared",
     NULL},
    {0},
};

static const struct command router_verbs[] = {
    {"fit", cmd_router_fit, "train a router model on labelled texts", NULL},
    {0},
};

static const struct command ca_verbs[] = {
    {"init", cmd_ca_init, "create a private certificate authority", NULL},
    {"issue", cmd_ca_issue, "issue the certificate of a member", NULL},
    {"list", cmd_ca_list, "list the certificates that were issued", NULL},
    {"revoke", cmd_ca_revoke, "revoke the certificates of a member", NULL},
    {"rotate", cmd_ca_rotate, "replace the authority's key without dropping a connection", NULL},
    {"show", cmd_ca_show, "show the authority or a certificate", NULL},
    {0},
};

static const struct command cluster_verbs[] = {
    {"init", cmd_cluster_init, "write the configuration of the NATS servers", NULL},
    {"join", cmd_cluster_join, "start this machine as a member of a shoal", NULL},
    {"token", cmd_cluster_token, "invite one machine to join the shoal", NULL},
    {"status", cmd_cluster_status, "show the state of the shoal, as a gateway sees it", NULL},
    {"nodes", cmd_cluster_nodes, "list the nodes: machine, memory, load", NULL},
    {"models", cmd_cluster_models, "list the models, and which node has which version", NULL},
    {"top", cmd_cluster_top, "show nodes and requests live", NULL},
    {"doctor", cmd_cluster_doctor, "look for problems of all members, and say what to do", NULL},
    {"deploy", cmd_cluster_deploy, "deploy a model to the shoal, with a number of replicas", NULL},
    {"remove", cmd_cluster_remove, "remove a model from the shoal", NULL},
    {"plan", cmd_cluster_plan, "show what the controller would move, and why", NULL},
    {"drain", cmd_cluster_drain, "drain a node without losing a request, and wait for it", NULL},
    {"undrain", cmd_cluster_undrain, "return a drained node to service", NULL},
    {"desired", cmd_cluster_desired, "show what the shoal should serve, and where", NULL},
    {"events", cmd_cluster_events, "show what happened", NULL},
    {0},
};

static const struct command rollout_verbs[] = {
    {"start", cmd_rollout_start, "start replacing a model with a new version", NULL},
    {"status", cmd_rollout_status, "show the rollouts in progress", NULL},
    {"pause", cmd_rollout_pause, "pause a rollout", NULL},
    {"promote", cmd_rollout_promote, "resume a rollout, or promote a canary", NULL},
    {"undo", cmd_rollout_undo, "return to the old version", NULL},
    {"history", cmd_rollout_history, "show all rollouts with their steps", NULL},
    {0},
};

static const struct command audit_verbs[] = {
    {"verify", cmd_audit_verify, "check that no line was changed, lost, added or reordered", NULL},
    {"export", cmd_audit_export, "print the log for syslog, Loki or as JSON lines", NULL},
    {0},
};

static const struct command store_verbs[] = {
    {"list", cmd_store_list, "list the models on disk", NULL},
    {"add", cmd_store_add, "copy a model into the store", NULL},
    {"fetch", cmd_store_fetch, "fetch a model from a node or a URL", NULL},
    {"verify", cmd_store_verify, "compare models with their SHA-256", NULL},
    {"remove", cmd_store_remove, "remove models", NULL},
    {"tag", cmd_store_tag, "give a model of the store another tag", NULL},
    {"gc", cmd_store_gc, "remove leftovers and unused models", NULL},
    {0},
};

static const struct command import_verbs[] = {
    {"ollama", cmd_import_ollama, "copy the models of Ollama into the store", NULL},
    {"hf-cache", cmd_import_hf, "copy models from the cache of Hugging Face's tools", NULL},
    {0},
};

static const struct command index_verbs[] = {
    {"add", cmd_index_add, "add documents to a collection, or replace them", NULL},
    {"query", cmd_index_query, "find the passages that best match a query", NULL},
    {"ask", cmd_index_ask, "answer a question from a collection, with citations", NULL},
    {"stats", cmd_index_stats, "show the collections and their documents", NULL},
    {"remove", cmd_index_remove, "remove documents, or a collection", NULL},
    {0},
};

static const struct command home_verbs[] = {
    {"check", cmd_home_check, "check a home file", NULL},
    {"list", cmd_home_list, "list the things of a home", NULL},
    {"import", cmd_home_import, "create a home file from Home Assistant's registries", NULL},
    {0},
};

static const struct command flow_verbs[] = {
    {"check", cmd_flow_check, "check the flows of a configuration file", NULL},
    {"run", cmd_flow_run, "run a flow in this process", NULL},
    {"trace", cmd_flow_trace, "run a flow and show what each step did", NULL},
    {"draw", cmd_flow_draw, "draw a flow as SVG", NULL},
    {0},
};

static const struct command eval_verbs[] = {
    {"classify", cmd_eval_classify, "labels of texts: accuracy, F1, calibration", NULL},
    {"tag", cmd_eval_tag, "spans of texts: F1 of whole spans", NULL},
    {"embed", cmd_eval_embed, "embeddings: nearest neighbours, or retrieval", NULL},
    {"rerank", cmd_eval_rerank, "retrieval with every pair scored", NULL},
    {"summarize", cmd_eval_summarize, "summaries: ROUGE", NULL},
    {"score", cmd_eval_score, "scores of tables: anomalies, classes, numbers", NULL},
    {"perplexity", cmd_eval_perplexity, "how well a model predicts a text", NULL},
    {"cascade", cmd_eval_cascade, "two classifiers, the larger one for uncertain inputs", NULL},
    {"ask", cmd_eval_ask, "texts with the actions they must cause", NULL},
    {"pii", cmd_eval_pii, "texts with personal data: what the rules find", NULL},
    {0},
};

static const struct command config_verbs[] = {
    {"check", cmd_config_check, "check a configuration file", NULL},
    {"explain", cmd_config_explain, "explain a key of the file, or list all", NULL},
    {"schema", cmd_config_schema, "print a JSON Schema of the file, for editors", NULL},
    {"reference", cmd_config_reference, "print all keys as Markdown", NULL},
    {0},
};

static const struct command *verbs_of(const char *name);

static int completion(int argc, const char *const *argv)
{
    return cmd_completion(commands_all, verbs_of, argc, argv);
}

static int manual(int argc, const char *const *argv)
{
    return cmd_manual(commands_all, verbs_of, argc, argv);
}

const struct command commands_all[] = {
    {"ask", cmd_ask, "turn a command or question into actions (JSON) and a reply", "Start here"},
    {"home", NULL, "check, list and import home files: your rooms and devices", NULL},
    {"serve", cmd_serve, "serve models over HTTP, with a web page", NULL},
    {"init", cmd_init, "write a configuration file for the models found", NULL},
    {"config", NULL, "check and explain the configuration file", NULL},
    {"route", cmd_route, "show which model a route would choose, and why", NULL},
    {"flow", NULL, "check, run, trace and draw flows: graphs of steps", NULL},
    {"router", NULL, "train a router model, which finds the domain of a text", NULL},
    {"profile", cmd_profile, "show where a model spends its time: kernels, layers, threads", NULL},
    {"bundle", cmd_bundle, "write a file for whoever helps you, without personal data", NULL},
    {"doctor", cmd_doctor, "show the machine, what Shoal uses of it, and problems", NULL},
    {"mcp", cmd_mcp, "serve classify, tag, search and ask as MCP tools, over stdin", NULL},
    {"health", cmd_health, "check whether a server accepts requests", NULL},
    {"top", cmd_top, "show what a server does now: requests, tokens, latencies", NULL},
    {"trace", cmd_trace, "show where a request of a server spent its time", NULL},
    {"index", NULL, "find passages in documents, by meaning and by words", NULL},
    {"run", cmd_run, "chat with a model, which is pulled first if need be", "Models by name"},
    {"pull", cmd_pull, "bring a model into the store: packages, hubs, registries, URLs", NULL},
    {"push", cmd_push, "send a model of the store to a registry", NULL},
    {"import", NULL, "take over the models of Ollama, or of Hugging Face's cache", NULL},
    {"list", cmd_list, "list the models that were pulled or come with Shoal", NULL},
    {"show", cmd_show, "show what the store knows about a model", NULL},
    {"ps", cmd_ps, "list the models that a running server has in memory", NULL},
    {"cp", cmd_cp, "give a model a second name", NULL},
    {"rm", cmd_rm, "remove models", NULL},
    {"gc", cmd_gc, "remove models without a name and interrupted pulls", NULL},
    {"generate", cmd_generate, "continue a text", "One model at a time"},
    {"chat", cmd_chat, "chat with a model", NULL},
    {"classify", cmd_classify, "label a text: intent, topic, sentiment", NULL},
    {"tag", cmd_tag, "find entities, slots and personal data in a text", NULL},
    {"pii", cmd_pii, "find or mask personal data in a text, by rules", NULL},
    {"embed", cmd_embed, "compute the embedding of a text", NULL},
    {"rerank", cmd_rerank, "sort documents by relevance to a query", NULL},
    {"score", cmd_score, "score rows of numbers: trees, networks, anomalies", NULL},
    {"anomaly", NULL, "learn what is normal for a machine, and monitor it", NULL},
    {"summarize", cmd_summarize, "summarize a long text", NULL},
    {"listen", cmd_listen, "write down what is said at a microphone, and do it", NULL},
    {"satellite", cmd_satellite, "be the microphone and loudspeaker of a Shoal or a Home Assistant",
     NULL},
    {"wake", cmd_wake, "find a wake word in sounds", NULL},
    {"transcribe", cmd_transcribe, "write down what is said in a sound", NULL},
    {"say", cmd_say, "say a text", NULL},
    {"tokenize", cmd_tokenize, "convert text to token ids", NULL},
    {"detokenize", cmd_detokenize, "convert token ids to text", NULL},
    {"logits", cmd_logits, "show the probabilities of the next token", NULL},
    {"eval", NULL, "measure quality and speed of a model on a data set", NULL},
    {"calibrate", cmd_calibrate, "calibrate the confidences of a classifier on labelled texts",
     NULL},
    {"perplexity", cmd_perplexity, "measure how well a model predicts a text", NULL},
    {"bench", cmd_bench, "measure the speed of a model, and this machine's limit", NULL},
    {"load", cmd_load, "send traffic to a server: latency, goodput, its capacity", NULL},
    {"model", NULL, "show, convert and quantize model files; manage a server's models", NULL},
    {"node", cmd_node, "run models for the gateways of a shoal", "Several machines"},
    {"gateway", cmd_gateway, "serve clients with the models of other nodes", NULL},
    {"cluster", NULL, "set up and inspect a shoal of several machines", NULL},
    {"rollout", NULL, "update the models of a shoal: rolling, canary, strong", NULL},
    {"ca", NULL, "create and manage the certificates of a shoal's members", NULL},
    {"audit", NULL, "check and export the audit log of a server", NULL},
    {"store", NULL, "manage the models on this machine's disk, by SHA-256", NULL},
    {"shard", NULL, "plan models that are computed by several machines", NULL},
    {"sim", cmd_sim, "simulate a cluster: placement, autoscaling, churn", NULL},
    {"completion", completion, "print completions for bash, zsh or fish", "Shell and manual"},
    {"manual", manual, "print the help of all commands as a man page", NULL},
    {0},
};

static const struct with_verbs {
    const char *name;
    const struct command *verbs;
    const char *intro; /* a sentence above the list of verbs */
} with_verbs[] = {
    {"model", model_verbs,
     "Shows, converts and quantizes model files; loads and unloads the models of a server."},
    {"cluster", cluster_verbs, "Sets up and inspects a shoal of several machines."},
    {"rollout", rollout_verbs, "Updates the models of a shoal."},
    {"shard", shard_verbs, "Plans models whose layers several machines compute together."},
    {"ca", ca_verbs, "Creates and manages the certificates of a shoal's members."},
    {"audit", audit_verbs, "Checks and exports the audit log of a server."},
    {"store", store_verbs, "Manages the models on this machine's disk, by SHA-256."},
    {"import", import_verbs, "Takes over models that other programs have on this machine."},
    {"eval", eval_verbs,
     "Measures quality and speed of models on data sets: one JSON object per line, - means stdin.\n"
     "Latency is measured from submitting a row to its result; for score, per row of a stream."},
    {"config", config_verbs, "Checks and explains the configuration file."},
    {"index", index_verbs,
     "Collections of documents, searched by meaning and by words (docs/RETRIEVAL.md)."},
    {"home", home_verbs, "Works with home files: your rooms, devices and people."},
    {"anomaly", anomaly_verbs, "Learns what is normal for a machine, and monitors it."},
    {"flow", flow_verbs, "Checks, runs, traces and draws flows of a configuration file."},
    {"router", router_verbs, "Trains router models, which find the domain of a text."},
};

static const struct with_verbs *find_with_verbs(const char *name)
{
    for (size_t i = 0; i < sizeof(with_verbs) / sizeof(with_verbs[0]); i++)
        if (strcmp(with_verbs[i].name, name) == 0)
            return &with_verbs[i];
    return NULL;
}

/* The verbs of a command; NULL: it has none. */
static const struct command *verbs_of(const char *name)
{
    const struct with_verbs *w = find_with_verbs(name);
    return w ? w->verbs : NULL;
}

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
    for (; n < MAX_NAMES && list[n].name; n++)
        names[n] = list[n].name;
    if (list == commands_all) { /* main.c knows these */
        names[n++] = "help";
        names[n++] = "version";
    }
    return nearest_word(name, names);
}

static int run_verb(const struct with_verbs *w, int argc, const char *const *argv)
{
    const struct command *verbs = w->verbs;
    const char *name = w->name;
    if (argc == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        FILE *f = argc == 0 ? stderr : stdout;
        fprintf(f, "%s\n\nUsage: shoal %s <verb> [options]\n\nVerbs:\n", w->intro, name);
        for (const struct command *v = verbs; v->name; v++)
            fprintf(f, "  %-12s %s\n", v->name, v->summary);
        fprintf(f, "\n'shoal %s <verb> --help' shows the options of a verb.\n", name);
        return argc == 0 ? CMD_USAGE : CMD_OK;
    }
    const struct command *verb = commands_find(verbs, argv[0]);
    if (verb)
        return verb->run(argc - 1, argv + 1);
    const char *near = commands_nearest(verbs, argv[0]);
    fprintf(stderr, "shoal %s: unknown verb %s%s%s%s\nTry 'shoal %s --help'.\n", name, argv[0],
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", name);
    return CMD_USAGE;
}

int commands_run(const struct command *c, int argc, const char *const *argv)
{
    return c->run ? c->run(argc, argv) : run_verb(find_with_verbs(c->name), argc, argv);
}
