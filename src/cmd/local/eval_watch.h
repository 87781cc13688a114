/* eval_watch.h - shared by commands that measure a model on rows: reading rows, and progress on the
 * terminal.
 *
 * Thread:    the command's.
 * Ownership: rows belong to the caller, also after a failure. */
#ifndef SHOAL_CMD_LOCAL_EVAL_WATCH_H
#define SHOAL_CMD_LOCAL_EVAL_WATCH_H

#include "cmd/cli/opts.h"
#include "cmd/cli/term.h"
#include "eval/eval_rows.h"

struct eval_watch {
    int interrupt_fd; /* -1: none */
    struct term_progress bar;
};

/* For eval.progress: draws the bar; true: stop. */
bool eval_watch_show(void *watch, double part);
/* Reads the files named by the arguments from `first` on, and limits the rows to --limit. Returns a
 * CMD_ code. */
int eval_watch_read(const struct opts *o, size_t first, struct eval_rows *rows);

#endif
