/* cmd_completion.c - shoal completion and shoal manual: shell completions and the man page. */
#include "cmd/cmd_completion.h"

#include <stdio.h>
#include <string.h>

#include "cmd/cli/command.h"
#include "cmd/cmd.h"

static const struct opts_page completion_page = {
    .command = "completion",
    .arguments = "bash|zsh|fish",
    .min_args = 1,
    .max_args = 1,
    .summary = "Prints completions of commands and options for a shell.",
    .details = "make install installs them where shells find them.",
    .examples = "  source <(shoal completion bash)    # this shell only\n"
                "  source <(shoal completion zsh)\n"
                "  shoal completion fish | source\n",
};

static const struct opts_page manual_page = {
    .command = "manual",
    .arguments = "",
    .summary = "Prints the manual of all commands in the format of man pages.",
    .examples = "  shoal manual | man -l -\n",
};

static void describe(enum describe_form form, const struct command *all, describe_verbs verbs_of)
{
    char option[64];
    snprintf(option, sizeof(option), DESCRIBE_OPTION "%s", describe_form_name(form));
    const char *argv[] = {option};
    describe_begin(form, all, verbs_of);
    for (const struct command *c = all; c->name; c++)
        if (!verbs_of(c->name)) /* with verbs, only the verbs have pages */
            c->run(1, argv);
    for (const struct command *c = all; c->name; c++)
        for (const struct command *v = verbs_of(c->name); v && v->name; v++)
            v->run(1, argv);
    describe_end(form, all, verbs_of);
}

int cmd_completion(const struct command *all, describe_verbs verbs_of, int argc,
                   const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &completion_page, argc, argv, &rc))
        return rc;
    enum describe_form form = 0;
    while (form < DESCRIBE_MAN && strcmp(describe_form_name(form), o.args[0]) != 0)
        form++;
    if (form < DESCRIBE_MAN) {
        describe(form, all, verbs_of);
        rc = CMD_OK;
    } else {
        rc =
            opts_usage(&completion_page, "unknown shell %s, expected bash, zsh or fish", o.args[0]);
    }
    opts_fini(&o);
    return rc;
}

int cmd_manual(const struct command *all, describe_verbs verbs_of, int argc,
               const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &manual_page, argc, argv, &rc))
        return rc;
    describe(DESCRIBE_MAN, all, verbs_of);
    opts_fini(&o);
    return CMD_OK;
}
