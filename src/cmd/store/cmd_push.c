/* cmd_push.c - shoal push: sends a model of the store to a registry; shoal import: takes over the
 * models of other programs. */
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "cmd/store/pull_opts.h"
#include "depot/model_import.h"
#include "depot/model_place.h"
#include "depot/model_pull.h"
#include "depot/model_push.h"
#include "depot/store/model_refs.h"
#include "depot/store/model_store.h"
#include "wire/json_out.h"

cmd_fn cmd_push, cmd_import_ollama, cmd_import_hf;

static const struct opts_def push_defs[] = {
    {"sign", 0, OPTS_TEXT, "KEY", NULL, 0, 0,
     "private key (PEM) to sign it with, as cosign does"},
};

static const struct opts_page push_page = {
    .command = "push",
    .arguments = "MODEL [HOST/PATH:TAG]",
    .min_args = 1,
    .max_args = 2,
    .summary = "Sends a model of the store to an OCI registry.",
    .details = "A model of one file gets Ollama's manifest, a folder that of ModelPack.  Without a "
               "second\nargument the model's name says where it goes.",
    .groups = {OPTS_GROUP("Model", push_defs), &pull_opts_group},
    .examples = "  shoal push reply2 registry.local:5000/team/reply:2\n"
                "  shoal push localhost:5000/team/reply:2 --sign sign.pem\n",
};
static const struct opts_page ollama_page = {
    .command = "import ollama",
    .arguments = "[DIR]",
    .max_args = 1,
    .summary = "Copies the models of Ollama into the store, with their names.",
    .details = "DIR: default $OLLAMA_MODELS, or ~/.ollama/models.  Ollama's own copies stay.",
    .groups = {&pull_opts_group},
    .examples = "  shoal import ollama\n  shoal import ollama /usr/share/ollama/.ollama/models\n",
};
static const struct opts_page hf_page = {
    .command = "import hf-cache",
    .arguments = "[DIR]",
    .max_args = 1,
    .summary = "Copies models from the cache of Hugging Face's tools into the store.",
    .details =
        "DIR: default $HF_HUB_CACHE, $HF_HOME/hub, or ~/.cache/huggingface/hub.  GGUF files, "
        "and folders\nwith config.json and .safetensors, of the main branch.",
    .groups = {&pull_opts_group},
    .examples = "  shoal import hf-cache\n",
};

/* ---- push ---- */

static int push(const struct opts *o, struct model_store *s)
{
    const char *to = o->args[o->n_args > 1 ? 1 : 0];
    struct model_pulled shown = {.bytes = 0};
    const struct model_ref *ref = NULL;
    struct model_refs *refs = NULL;
    struct model_place place;
    struct model_pushed m = {.bytes = 0};
    struct pull_report r;
    struct err e = {0};
    char path[PATH_MAX];
    pull_report_init(&r, o, s);
    int rc = model_refs_open(&refs, model_store_dir(s), &e);
    if (rc == 0)
        rc = model_refs_get(refs, o->args[0], &ref, &e);
    if (rc == 0 && ref->stored)
        rc = model_store_find(s, ref->sha256, path, &e);
    if (rc == 0)
        rc = model_place_read(&place, to, r.source.plain_http, &e);
    if (rc == 0 && place.kind != PLACE_KIND_OCI)
        rc = err_set(&e, SHOAL_EINVAL, "%.100s is no place in a registry: HOST[:PORT]/PATH[:TAG]",
                     to);
    if (rc == 0) {
        const struct model_push_opts p = {.base = place.base,
                                          .key = opts_text(o, "sign"),
                                          .name = place.name,
                                          .path = ref->stored ? path : ref->path,
                                          .system = ref->system,
                                          .parameters = ref->parameters,
                                          .license = ref->license,
                                          .messages = ref->messages};
        rc = model_push(&m, &p, &r.source, &e);
    }
    snprintf(shown.name, sizeof(shown.name), "%s", to);
    memcpy(shown.sha256, m.sha256, SHA256_BYTES);
    shown.bytes = m.bytes;
    model_refs_close(refs);
    return pull_report_end(&r, rc, &shown, "pushed", &e);
}

/* ---- import ---- */

struct imports {
    struct pull_report report;
    uint32_t n_good, n_bad;
};

static void on_told(void *ctx, const char *name, int rc, const struct err *e)
{
    struct imports *x = ctx;
    struct buf b;
    x->n_good += rc == 0;
    x->n_bad += rc < 0;
    pull_report_rest(&x->report);
    if (!x->report.json) {
        if (rc == 0)
            printf("imported %s\n", name);
        else
            fprintf(stderr, "not imported: %s: %s\n", name, e->msg);
        return;
    }
    buf_init(&b, 65536);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_member_str(&j, "event", rc == 0 ? "done" : "error");
    json_out_member_str(&j, "name", name);
    if (rc < 0)
        json_out_member_str(&j, "message", e->msg);
    json_out_object_end(&j);
    buf_putc(&b, '\n');
    (void)cmd_print(x->report.o->page, &b);
    buf_fini(&b);
}

static int import(const struct opts *o, struct model_store *s,
                  int (*from)(const struct model_import_opts *io, struct err *e))
{
    struct imports x = {.n_good = 0};
    struct err e = {0};
    pull_report_init(&x.report, o, s);
    const struct model_import_opts io = {.dir = o->n_args ? o->args[0] : NULL,
                                         .source = &x.report.source,
                                         .told = on_told,
                                         .ctx = &x};
    int rc = from(&io, &e);
    pull_report_rest(&x.report);
    if (rc < 0)
        return stored_fail(o, &e);
    fprintf(stderr, "%u model%s imported%s\n", x.n_good, plural(x.n_good),
            x.n_bad ? ", others could not be" : "");
    return x.n_bad ? CMD_NOT_WELL : CMD_OK;
}

static int import_ollama(const struct opts *o, struct model_store *s)
{
    return import(o, s, model_import_ollama);
}

static int import_hf(const struct opts *o, struct model_store *s)
{
    return import(o, s, model_import_hf);
}

/* ---- the commands ---- */

int cmd_push(int argc, const char *const *argv)
{
    return stored_main(&push_page, argc, argv, push);
}

int cmd_import_ollama(int argc, const char *const *argv)
{
    return stored_main(&ollama_page, argc, argv, import_ollama);
}

int cmd_import_hf(int argc, const char *const *argv)
{
    return stored_main(&hf_page, argc, argv, import_hf);
}
