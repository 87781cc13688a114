/* index_site.c - see index_site.h. */
#include "cmd/index/index_site.h"

#include <limits.h>

#include "cmd/cli/term.h"
#include "cmd/local/model_opts.h"

static const struct opts_def site_defs[] = {
    {"dir", 0, OPTS_TEXT, "DIR", NULL, 0, 0,
     "folder of the collections; default: $SHOAL_COLLECTIONS, or shoal/collections in the state "
     "folder"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print JSON"},
};
const struct opts_group index_site_group = OPTS_GROUP_INIT("Options", site_defs);

static const struct opts_def model_defs[] = {
    {"int8", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "compute with 8-bit weights, whatever the file contains"},
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256,
     "number of threads; 0: chosen for this model and machine"},
    {"kernels", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "use this kernel set (see 'shoal doctor'); default: the best for this CPU"},
    {"no-cache", 0, OPTS_FLAG, NULL, NULL, 0, 0, "do not cache tiled weights on disk"},
    {"key-file", 0, OPTS_TEXT, "FILE", NULL, 0, 0,
     "file with the key or the passphrase of an encrypted model"},
};
const struct opts_group index_site_model_group = OPTS_GROUP_INIT("Model", model_defs);

int index_site_open(struct index_site *s, const struct opts *o)
{
    char usual[PATH_MAX];
    const char *dir = opts_text(o, "dir");
    struct err e = {0};
    *s = (struct index_site){.o = o, .interrupt_fd = term_catch_interrupt()};
    if (!dir && !collections_default_dir(usual, sizeof(usual)))
        return opts_usage(o->page, "there is no state folder: use --dir DIR");
    if (collections_open(&s->collections, dir ? dir : usual, 0, &e) < 0 ||
        local_open(&s->local, &e) < 0)
        return cmd_fail(o->page, "%s", e.msg);
    return CMD_OK;
}

void index_site_close(struct index_site *s)
{
    local_close(&s->local);
    for (uint32_t i = 0; i < s->n_engines; i++) {
        shoal_engine_close(s->engines[i]);
        model_name_fini(&s->names[i]);
    }
    collections_close(s->collections);
    term_release_interrupt(s->interrupt_fd);
}

int index_site_lend(struct index_site *s, const char *model)
{
    struct err e = {0};
    uint32_t i = s->n_engines;
    int rc =
        model_opts_specialist_open_as(s->o, model, s->interrupt_fd, &s->engines[i], &s->names[i]);
    s->n_engines++;
    if (rc == CMD_OK && local_lend(&s->local, model, NULL, s->engines[i], &e) < 0)
        rc = cmd_fail(s->o->page, "%s", e.msg);
    if (rc == CMD_OK) /* vectors are stored: record their weights */
        local_identify(&s->local, model, s->names[i].path);
    return rc;
}

void index_site_run(struct index_site *s, const bool *over, void (*cancel)(void *ctx), void *ctx)
{
    while (!*over)
        if (local_turn(&s->local, s->interrupt_fd) && !s->interrupted) {
            s->interrupted = true;
            cancel(ctx);
        }
}

int index_site_info(struct index_site *s, const char *name, struct collection_info *out)
{
    struct collection *c = NULL;
    struct err e = {0};
    int rc = collections_hold(s->collections, name, &c, &e);
    if (rc == 0)
        rc = collection_info(c, out, &e);
    collections_release(s->collections, c);
    return rc < 0 ? cmd_fail(s->o->page, "%s", e.msg) : CMD_OK;
}
