/* cmd_serve.c - shoal serve: runs the gateway with the models of this machine. */
#include "cluster/trust/roles.h"
#include "cmd/serve/serving.h"

cmd_fn cmd_serve;

static const struct opts_def defs[] = {
    {"config", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "YAML file; see docs/CONFIG.md"},
    {"listen", 0, OPTS_LIST, "ADDRESS", NULL, 0, 0,
     "HOST:PORT or unix:PATH, default 127.0.0.1:8080; may be repeated"},
    {"wyoming", 0, OPTS_TEXT, "ADDRESS", NULL, 0, 0,
     "serve Wyoming there, for Home Assistant: tcp://HOST:PORT"},
    {"model", 'm', OPTS_LIST, "NAME=PATH", NULL, 0, 0,
     "model to serve, beside those of the store and those that come with Shoal; may be repeated"},
    {"lora", 0, OPTS_LIST, "NAME=PATH", NULL, 0, 0,
     "LoRA adapter beside the first model, or MODEL:NAME=PATH; may be repeated"},
    {"only", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "serve only the models of -m and of the configuration"},
    {"once", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "do not keep models that clients add: they are gone after a restart"},
    {"threads", 0, OPTS_UINT, "N", NULL, 1, 64,
     "number of event loops; default: depends on the cores"},
    {"memory", 0, OPTS_UINT, "MIB", NULL, 1, 1e9, "memory limit for all models together, in MiB"},
    {"check", 0, OPTS_FLAG, NULL, NULL, 0, 0, "check the configuration, report errors, and exit"},
};

static const struct opts_page page = {
    .command = "serve",
    .arguments = "",
    .summary = "Serves models over HTTP and gRPC: OpenAI's API, Ollama's, and its own.",
    .details =
        "SIGTERM or Ctrl-C stops the server after running requests are done; a second Ctrl-C "
        "stops\nit at once.  The configuration is read again when its file changes, and on SIGHUP.",
    .groups = {OPTS_GROUP("Server", defs)},
    .examples = "  shoal serve\n"
                "  shoal serve -m story=stories15M.gguf --listen 0.0.0.0:8080\n"
                "  shoal serve --config shoal.yaml\n",
};

static int configure(struct config **out, const struct opts *o, struct err *e)
{
    int rc = serving_begin(out, o, e);
    if (rc == 0)
        rc = serving_listen(*out, o, "127.0.0.1:8080", e);
    if (rc == 0)
        rc = serving_wyoming(*out, o, e);
    if (rc == 0)
        rc = serving_models(*out, o, e);
    if (rc == 0 && opts_flag(o, "only"))
        (*out)->pack = (*out)->store_offer = false;
    if (rc == 0)
        rc = serving_pack(*out, true, e);
    if (rc == 0)
        (*out)->once = opts_flag(o, "once");
    if (rc == 0 && opts_given(o, "threads"))
        (*out)->threads = opts_u32(o, "threads");
    if (rc == 0 && opts_given(o, "memory"))
        (*out)->memory_bytes = (size_t)opts_uint(o, "memory") << 20;
    return rc;
}

int cmd_serve(int argc, const char *const *argv)
{
    static const struct serving serving = {&page, ROLE_NODE | ROLE_GATEWAY, configure};
    return serving_main(&serving, argc, argv);
}
