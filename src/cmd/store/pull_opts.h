/* pull_opts.h - the options of commands that transfer models, and how they report progress: a bar
 * on a terminal, lines of JSON for scripts.
 *
 * Thread:    the main thread.
 * Ownership: init over the caller's storage; it must stay valid while the transfer runs. */
#ifndef SHOAL_CMD_STORE_PULL_OPTS_H
#define SHOAL_CMD_STORE_PULL_OPTS_H

#include "cmd/cli/term.h"
#include "cmd/local/stored.h"
#include "depot/source/model_source.h"

extern const struct opts_group pull_opts_group;

struct model_pulled;

struct pull_report {
    struct model_source_opts source; /* for model_pull and model_push */
    const struct opts *o;
    struct term_progress bar;
    char what[80];
    uint64_t begin_ns, shown_ns, begin_bytes;
    bool json, bar_open;
};

void pull_report_init(struct pull_report *r, const struct opts *o, struct model_store *s);
/* Removes the bar: something else is printed. */
void pull_report_rest(struct pull_report *r);
/* The end of a transfer; rc and e: of the call. done: "pulled", "pushed". The exit code. */
int pull_report_end(struct pull_report *r, int rc, const struct model_pulled *m, const char *done,
                    const struct err *e);

#endif
