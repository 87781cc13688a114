/* cmd_serve.c - shoal serve: runs the gateway with the models of this machine. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "gateway/config.h"
#include "gateway/gateway.h"

static const struct opts_def defs[] = {
    {"config", 0, OPTS_TEXT, "FILE", NULL, 0, 0, "YAML file; see docs/GATEWAY.md"},
    {"listen", 0, OPTS_LIST, "ADDRESS", NULL, 0, 0,
     "HOST:PORT or unix:PATH, default 127.0.0.1:8080; may be repeated"},
    {"model", 'm', OPTS_LIST, "NAME=PATH", NULL, 0, 0,
     "model to serve; may be repeated; default: the models included with Shoal"},
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
        "stops\nit at once.  SIGHUP reloads the configuration.",
    .groups = {OPTS_GROUP("Server", defs)},
    .examples = "  shoal serve\n"
                "  shoal serve -m story=stories15M.gguf --listen 0.0.0.0:8080\n"
                "  shoal serve --config shoal.yaml\n",
};

static int configure(struct gw_config **out, const struct opts *o, struct err *e)
{
    const char *const *list;
    int rc = config_create(out, e);
    if (rc < 0)
        return rc;
    struct gw_config *c = *out;
    if (opts_text(o, "config"))
        rc = config_load(c, opts_text(o, "config"), e);
    size_t n = opts_list(o, "listen", &list);
    if (rc == 0 && n > 0)
        config_clear_listen(c);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = config_add_listen(c, list[i], e);
    if (rc == 0 && c->n_listen == 0)
        rc = config_add_listen(c, "127.0.0.1:8080", e);
    n = opts_list(o, "model", &list);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = config_add_model_arg(c, list[i], e);
    if (rc == 0 && c->n_models == 0) {
        rc = config_add_pack(c, NULL, e);
        if (rc == SHOAL_ENOTFOUND)
            rc = err_set(e, rc,
                         "no models: use -m NAME=PATH, or set SHOAL_MODELS to a folder "
                         "with a models.json");
    }
    if (opts_given(o, "threads"))
        c->threads = opts_u32(o, "threads");
    if (opts_given(o, "memory"))
        c->memory_bytes = (size_t)opts_uint(o, "memory") << 20;
    return rc;
}

static void say_hello(struct gateway *g, const struct gw_config *c)
{
    for (size_t i = 0; gateway_address(g, i); i++)
        printf("listening on %s\n", gateway_address(g, i));
    printf("models:");
    for (uint32_t i = 0; i < c->n_models; i++)
        printf(" %s", c->models[i].name);
    const char *url = gateway_address(g, 0);
    if (url && strncmp(url, "http", 4) == 0)
        printf("\nopen %s in a browser, or: curl %s/v1/models", url, url);
    printf("\n");
    fflush(stdout);
}

static void reload(struct gateway *g, struct gw_config **current, const struct opts *o)
{
    struct gw_config *next = NULL;
    struct err e = {0};
    int rc = configure(&next, o, &e);
    if (rc == 0)
        rc = gateway_reload(g, next, &e);
    if (rc < 0) {
        log_error("serve", "keeping the old configuration: %s", e.msg);
        config_unref(next);
        return;
    }
    config_unref(*current);
    *current = next;
    log_info("serve", "configuration reloaded");
}

static int serve(struct gw_config **c, const struct opts *o)
{
    struct gateway *g = NULL;
    struct err e = {0};
    sigset_t set;
    /* Threads inherit the mask, so that only this thread receives signals. */
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    mem_map_large();
    if (gateway_start(&g, *c, &e) < 0)
        return cmd_fail(&page, "%s", e.msg);
    say_hello(g, *c);
    int sig = 0;
    while (sigwait(&set, &sig) == 0 && sig == SIGHUP)
        reload(g, c, o);
    log_info("serve", "stopping");
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* a second Ctrl-C exits at once */
    signal(SIGHUP, SIG_IGN);
    gateway_drain(g);
    gateway_destroy(g);
    return CMD_OK;
}

int cmd_serve(int argc, const char *const *argv)
{
    struct opts o;
    struct err e = {0};
    struct gw_config *c = NULL;
    int code;
    if (!cmd_begin(&o, &page, argc, argv, &code))
        return code;
    if (configure(&c, &o, &e) < 0 || (opts_flag(&o, "check") && gateway_check(c, &e) < 0))
        code = cmd_fail(&page, "%s", e.msg);
    else if (opts_flag(&o, "check"))
        code = printf("the configuration is valid: %u models\n", c->n_models) < 0 ? CMD_FAILED
                                                                                  : CMD_OK;
    else
        code = serve(&c, &o);
    config_unref(c);
    opts_fini(&o);
    return code;
}
