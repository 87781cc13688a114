/* cmd_model_delta.c - shoal model delta, shoal model patch: a new version of a model as a patch of
 * the old one. */
#include <stdio.h>

#include "cmd/cmd.h"
#include "depot/delta/model_delta.h"

cmd_fn cmd_model_delta, cmd_model_patch;

static const struct opts_def delta_defs[] = {
    {"output", 'o', OPTS_TEXT, "PATCH", NULL, 0, 0, "where to write the patch (required)"},
};

static const struct opts_page delta_page = {
    .command = "model delta",
    .arguments = "OLD NEW",
    .min_args = 2,
    .max_args = 2,
    .summary = "Writes a patch that makes the new version of a model of the old one.",
    .details = "GGUF files are compared tensor by tensor; other files as bytes.  The patch knows "
               "both files by their\nSHA-256.",
    .groups = {OPTS_GROUP("Options", delta_defs)},
    .examples = "  shoal model delta reply-1.gguf reply-2.gguf -o reply.patch\n"
                "  shoal model patch reply-1.gguf reply.patch -o reply-2.gguf\n",
};

static const struct opts_def patch_defs[] = {
    {"output", 'o', OPTS_TEXT, "NEW", NULL, 0, 0, "where to write the new version (required)"},
};

static const struct opts_page patch_page = {
    .command = "model patch",
    .arguments = "OLD PATCH",
    .min_args = 2,
    .max_args = 2,
    .summary = "Makes the new version of a model of the old one and a patch.",
    .details = "The result is the file that the patch was made of, by its SHA-256, or none.",
    .groups = {OPTS_GROUP("Options", patch_defs)},
    .examples = "  shoal model patch reply-1.gguf reply.patch -o reply-2.gguf\n",
};

typedef int work_fn(const char *old_path, const char *other, const char *out,
                    struct model_delta *done, struct err *e);

static int run(const struct opts_page *page, work_fn *work, int argc, const char *const *argv)
{
    struct opts o;
    struct err e = {0};
    struct model_delta d;
    int rc;
    if (!cmd_begin(&o, page, argc, argv, &rc))
        return rc;
    const char *out = opts_text(&o, "output");
    if (!out)
        rc = cmd_fail(page, "where does it go? say -o FILE");
    else if (work(o.args[0], o.args[1], out, &d, &e) < 0)
        rc = cmd_fail(page, "%s", e.msg);
    else
        fprintf(stderr,
                "patch of %llu bytes, %.1f %% of %llu: %llu copied, %llu as differences, %llu "
                "anew\n",
                (unsigned long long)d.patch_bytes,
                d.new_bytes ? 100.0 * (double)d.patch_bytes / (double)d.new_bytes : 0.0,
                (unsigned long long)d.new_bytes, (unsigned long long)d.copied,
                (unsigned long long)d.differed, (unsigned long long)d.packed);
    opts_fini(&o);
    return rc;
}

int cmd_model_delta(int argc, const char *const *argv)
{
    return run(&delta_page, model_delta_make, argc, argv);
}

int cmd_model_patch(int argc, const char *const *argv)
{
    return run(&patch_page, model_delta_apply, argc, argv);
}
