/* eval_watch.c - see eval_watch.h. */
#include "cmd/local/eval_watch.h"

#include "cmd/cmd.h"

bool eval_watch_show(void *watch, double part)
{
    struct eval_watch *w = watch;
    term_progress_show(&w->bar, part, NULL);
    return term_interrupted(w->interrupt_fd);
}

int eval_watch_read(const struct opts *o, size_t first, struct eval_rows *rows)
{
    struct err e = {0};
    int rc = 0;
    for (size_t i = first; rc == 0 && i < o->n_args; i++)
        rc = eval_rows_read(rows, o->args[i], &e);
    if (rc == 0 && opts_uint(o, "limit"))
        eval_rows_cut(rows, opts_uint(o, "limit"));
    return rc < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
}
